"""Poses as command-line arguments."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from longreach_dynamics.errors import InputError
from longreach_machine.poses import JointedMachine
from longreach_tools.arguments import numbers


def pose_of(
    arguments: argparse.Namespace, machine: JointedMachine, joints: int, usual: str = ''
) -> np.ndarray:
    """
    Return the joint angles (joints,) [rad] of ``--pose`` and ``--degrees``.

    A name, or comma-separated numbers; without, the pose ``usual`` if the machine has it, or its
    first one. InputError for anything else, and for angles beyond 2 pi.
    """
    names = [pose.name for pose in machine.poses]
    text: str | None = arguments.pose
    if text is None:
        if not names:
            raise InputError("the machine's file has no poses; add one, or give --pose a,b,..")
        text = usual if usual in names else names[0]
    if text in names:
        return machine.pose(text)
    try:
        angles = np.array(numbers(text))
    except argparse.ArgumentTypeError as error:
        raise InputError(
            f'--pose {text}, allowed: {", ".join(names)}, or {joints} angles separated by commas'
        ) from error
    return radians_of(angles, arguments.degrees, '--pose')


def radians_of(angles: Any, degrees: bool, name: str) -> np.ndarray:
    """Return angles in radians; InputError for those that can only be degrees."""
    if degrees:
        return np.asarray(np.radians(angles))
    largest = max(angles, key=abs)
    if abs(largest) > 2.0 * np.pi:
        raise InputError(
            f'{name} up to {largest:g} rad, allowed: [-2 pi, 2 pi]; add --degrees for angles in'
            ' degrees'
        )
    return np.asarray(angles)
