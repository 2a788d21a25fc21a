"""Subcommand ``longreach vision check``: the accuracy of two cameras by a known distance."""

from __future__ import annotations

import argparse
import contextlib
import re
import sys
from pathlib import Path
from typing import Any

from tqdm import tqdm

from longreach_dynamics.errors import InputError
from longreach_tools.arguments import positive
from longreach_tools.output import add_format, print_result, table
from longreach_vision.arguments import add_namespace, add_reading, add_rig, add_scale, rig_of
from longreach_vision.following import Follower
from longreach_vision.known_distance import DistanceCheck, KnownDistance
from longreach_vision.streams import follow
from longreach_vision.tracking_commands import _opened

__all__ = ['configure_check']

_DISTANCE = re.compile(r'([^:=]+):([^:=]+)=([^:=]+)')


def configure_check(commands: Any) -> None:
    """Add the subcommand ``check``."""
    check = commands.add_parser(
        'check',
        help='compare the measured distance of two markers with the known one',
        description='Tracks a bar with a marker at each end, and compares the distance of the'
        ' triangulated markers with the known one: the true accuracy of cameras and poses.',
    )
    check.add_argument(
        'left', metavar='RECORDING', help='bag of images; with RIGHT: left video or folder'
    )
    check.add_argument('right', metavar='RIGHT', nargs='?', help='right video or folder')
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
    add_namespace(check)
    add_rig(check, required=True)
    add_reading(check)
    add_scale(check)
    add_format(check)
    check.set_defaults(run=_run_check)


def _run_check(arguments: argparse.Namespace) -> None:
    """Run ``check``."""
    arguments.camera = arguments.from_bag = None
    if arguments.right is None:
        arguments.left, arguments.from_bag = None, Path(arguments.left)
    rig = rig_of(arguments)
    checks = []
    for text in arguments.distance:
        found = _DISTANCE.fullmatch(text)
        try:
            if found is None:
                raise ValueError
            length = float(found[3])
        except ValueError as error:
            raise InputError(f'--distance {text}, allowed: such as one:two=1.078') from error
        checks.append(KnownDistance(rig, (found[1], found[2]), length, arguments.deviation))
    with contextlib.ExitStack() as stack:
        rig, images, total, _ = _opened(stack, arguments, rig)
        frames = follow(Follower(rig), images)
        for one in tqdm(frames, total=total, disable=None, delay=1.0, unit='pair', leave=False):
            for check in checks:
                check.add(one.frame)
    results = [check.result() for check in checks]
    warnings = [text for result in results for text in result.warnings]
    print_result(
        {'distances': [result.fields() for result in results], 'warnings': warnings},
        _text(results),
        arguments.format,
    )
    for text in warnings:
        print(f'longreach vision: {text}', file=sys.stderr)


def _text(results: list[DistanceCheck]) -> str:
    """Return the comparisons as a table in mm."""
    head = ['markers', 'pairs', 'known [m]', 'measured [m]', 'error [mm]', 'explained']
    head += ['scatter [mm]', 'explained']
    rows = [
        (
            ':'.join(one.markers),
            one.pairs,
            one.length,
            f'{one.mean:.5f}',
            f'{1e3 * one.error:+.3f}',
            f'±{1e3 * one.mean_explained:.3f}',
            f'{1e3 * one.scatter:.3f}',
            f'{1e3 * one.scatter_explained:.3f}',
        )
        for one in results
    ]
    return table(head, rows)
