"""Options and subcommands shared by the commands of several machines."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from longreach_dynamics.errors import InputError
from longreach_tools.arguments import add_common, numbers
from longreach_tools.output import add_format

if TYPE_CHECKING:
    from longreach_machine.poses import JointedMachine

# Longest wait for an answer of a running node [s].
ANSWER = 10.0


def add_results(parser: argparse.ArgumentParser, rows: str, picture: str) -> None:
    """Add ``--format``, ``--csv`` and ``--plot``, with descriptions of the files' contents."""
    add_format(parser)
    parser.add_argument('--csv', help=rows)
    parser.add_argument('--plot', help=picture)


def add_signals(parser: argparse.ArgumentParser, text: str) -> None:
    """Add a recording, signals of it, and the part of time that is shown."""
    parser.add_argument('bag')
    parser.add_argument('signals', nargs='*', metavar='TOPIC.field', help=text)
    parser.add_argument('--from', dest='begin')
    parser.add_argument('--to', dest='end')


def check_span(arguments: argparse.Namespace) -> None:
    """Raise InputError where the part of time that is shown ends before it begins."""
    if None not in (arguments.begin, arguments.end) and arguments.begin >= arguments.end:
        raise InputError(f'--from {arguments.begin:g} --to {arguments.end:g}, allowed: from < to')


def add_workers(parser: argparse.ArgumentParser) -> None:
    """Add ``--processes`` and ``--cluster`` of :func:`longreach_dynamics.parallel.run_jobs`."""
    add_common(parser, '--processes')
    add_common(parser, '--cluster')


def add_demo(commands: Any, text: str, run: Callable[[argparse.Namespace], int]) -> None:
    """Add the subcommand ``demo`` with ``--out``."""
    parser = commands.add_parser('demo', help=text)
    parser.add_argument('--out', metavar='DIR', default=Path('out/demo'))
    parser.set_defaults(run=run)


def add_node_options(parser: argparse.ArgumentParser, machine: str) -> None:
    """Add ``--namespace`` and ``--network`` for requests to running nodes."""
    add_common(parser, '--namespace', machine, help=f'the {machine}')
    add_common(parser, '--network', False)
    parser.set_defaults(timeout=ANSWER)


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
