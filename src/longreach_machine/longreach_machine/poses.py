"""Machines with joints: named poses, and parameters that are used as keys of caches."""

from __future__ import annotations

import dataclasses
from typing import Any, cast

import numpy as np

from longreach_dynamics.errors import InputError
from longreach_dynamics.parameters import Parameters, quantity


@dataclasses.dataclass(frozen=True)
class Pose(Parameters):
    """A named pose."""

    name: str = quantity('name', '')
    angles_deg: tuple[float, ...] = quantity('joint angles', 'deg')


class JointedMachine:
    """
    Common part of the parameters of machines with joints; a base of frozen dataclasses.

    A dataclass makes its own hash unless its body says ``__hash__ = JointedMachine.__hash__``.
    """

    poses: tuple[Pose, ...]

    def __hash__(self) -> int:
        """Return the hash, made once: caches ask for it hundreds of times a second."""
        known: int | None = self.__dict__.get('_hash')
        if known is None:
            fields = dataclasses.fields(cast('Any', self))
            known = hash(tuple(getattr(self, field.name) for field in fields))
            object.__setattr__(self, '_hash', known)
        return known

    def __getstate__(self) -> dict[str, object]:
        """Leave the hash behind: texts have other ones in other processes."""
        return {name: value for name, value in self.__dict__.items() if name != '_hash'}

    def pose(self, name: str) -> np.ndarray:
        """Return the joint angles of a named pose [rad], shape (joints,)."""
        for pose in self.poses:
            if pose.name == name:
                return np.radians(pose.angles_deg)
        raise InputError(f'pose = {name!r}, allowed: {" | ".join(p.name for p in self.poses)}')
