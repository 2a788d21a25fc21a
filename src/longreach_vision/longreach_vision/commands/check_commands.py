"""Subcommand ``longreach vision check``: the accuracy of cameras by a known distance."""

from __future__ import annotations

import argparse
import itertools
import re
from typing import Any

from longreach_dynamics.errors import InputError
from longreach_markers.setup.known_distance import DistanceCheck, KnownDistance
from longreach_tools.arguments import positive
from longreach_tools.output import add_format, print_result, table
from longreach_vision.commands.arguments import warn
from longreach_vision.commands.tracking_commands import (
    add_recording,
    rig_of_several,
    tracked_frames,
)

_DISTANCE = re.compile(r'([^:=]+):([^:=]+)=([^:=]+)')


def configure_check(commands: Any) -> None:
    """Add the subcommand ``check``."""
    check = commands.add_parser(
        'check',
        help='compare the measured distance of two markers with the known one',
        description='Tracks a bar with a marker at each end, and compares the distance of the'
        ' triangulated markers with the known one: the true accuracy of cameras and poses.',
    )
    add_recording(check)
    add_format(check)
    check.add_argument(
        '--distance',
        metavar='MARKER:MARKER=LENGTH',
        action='append',
        required=True,
        help='two markers and the distance of their centres [m]; may be repeated',
    )
    check.add_argument(
        '--deviation',
        type=positive,
        default=5e-4,
        help='standard deviation of the known distances [m] (default: 0.0005)',
    )
    check.set_defaults(run=_run_check)


def _run_check(arguments: argparse.Namespace) -> None:
    rig = rig_of_several(arguments)
    # More than two cameras: all together, and each two, which shows the one that is wrong.
    names = tuple(rig.cameras)
    compared = [names, *itertools.combinations(names, 2)] if len(names) > 2 else [()]
    checks = []
    for text in arguments.distance:
        found = _DISTANCE.fullmatch(text)
        try:
            if found is None:
                raise ValueError
            length = float(found[3])
        except ValueError as error:
            raise InputError(f'--distance {text}, allowed: such as one:two=1.078') from error
        checks += [
            KnownDistance(rig, (found[1], found[2]), length, arguments.deviation, cameras)
            for cameras in compared
        ]
    for frame in tracked_frames(arguments, rig):
        for check in checks:
            check.add(frame)
    results = [check.result() for check in checks]
    warnings = [text for result in results for text in result.warnings]
    fields = {'distances': [result.fields() for result in results], 'warnings': warnings}
    print_result(fields, _text(results), arguments.format)
    warn(*warnings)


def _text(results: list[DistanceCheck]) -> str:
    head = ['markers', 'cameras', 'pairs', 'known [m]', 'measured [m]', 'error [mm]', 'explained']
    head += ['scatter [mm]', 'explained']
    rows = [
        (
            ':'.join(one.markers),
            ' '.join(one.cameras) or 'all',
            one.pairs,
            one.length,
            f'{one.mean:.5f}',
            f'{1e3 * one.error:+.3f}',
            f'±{1e3 * one.mean_explained:.3f}',
            f'{1e3 * one.scatter:.3f}',
            f'±{1e3 * one.scatter_explained:.3f}',
        )
        for one in results
    ]
    return table(head, rows)
