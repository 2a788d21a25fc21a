"""Subcommands of ``longreach boom`` that talk to a boom that runs as nodes."""

from __future__ import annotations

import argparse
import math
from typing import Any

from longreach_dynamics.errors import InputError
from longreach_tools.arguments import allow_lists, names, not_negative, numbers, positive
from longreach_tools.options import add_whom

__all__ = ['configure_remote']


def configure_remote(commands: Any) -> None:
    """Add these subcommands to those of ``longreach boom``."""
    attach = commands.add_parser('attach', help='hang a load on a running boom')
    attach.add_argument('mass', metavar='MASS', type=positive, help='[kg]')
    attach.add_argument('--beam', metavar='NAME', default='', help='(default: the last)')
    attach.add_argument(
        '--position', type=not_negative, help='along the beam [m] (default: its tip)'
    )
    add_whom(attach, 'boom')
    attach.set_defaults(run=_run_attach)

    move = commands.add_parser('move', help='let the controller of a running boom move joints')
    allow_lists(move)
    move.add_argument('angles', metavar='A1,A2,..', type=numbers, help='joint angles [rad]')
    move.add_argument('--degrees', action='store_true', help='angles are in degrees')
    move.add_argument(
        '--time', type=positive, required=True, help='until they are there [s of simulation]'
    )
    move.add_argument(
        '--joints',
        metavar='NAME,NAME,..',
        type=names,
        default=(),
        help='beams that the angles are for; the others stay (default: all beams)',
    )
    add_whom(move, 'boom')
    move.set_defaults(run=_run_move)


def _run_attach(arguments: argparse.Namespace) -> None:
    """Run ``attach``."""
    from longreach_boom.remote import attach_load

    print(
        attach_load(
            arguments.mass,
            arguments.beam,
            arguments.position,
            arguments.namespace,
            arguments.timeout,
        )
    )


def _run_move(arguments: argparse.Namespace) -> None:
    """Run ``move``."""
    from longreach_boom.remote import send_trajectory

    angles = arguments.angles
    if arguments.degrees:
        angles = tuple(math.radians(angle) for angle in angles)
    elif max(map(abs, angles)) > 2.0 * math.pi:
        raise InputError(
            f'angles up to {max(angles, key=abs):g} rad, allowed: up to a turn; if they are deg,'
            ' add --degrees'
        )
    topic = send_trajectory(
        angles, arguments.time, arguments.joints, arguments.namespace, arguments.timeout
    )
    print(f'the controller has taken the trajectory of {arguments.time:g} s from {topic}')
