"""Subcommand ``longreach vision initialize``: request to a running tracker node."""

from __future__ import annotations

import argparse
from typing import Any

from longreach_dynamics.errors import InputError
from longreach_tools.arguments import allow_lists, numbers, positive
from longreach_tools.bag import checked_name
from longreach_tools.options import add_node_options


def configure_remote(commands: Any) -> None:
    """Add the subcommand ``initialize``."""
    parser = commands.add_parser(
        'initialize', help='make a running tracker track a marker at a pixel'
    )
    parser.add_argument(
        'camera', metavar='CAMERA', choices=('left', 'right'), help='left or right'
    )
    parser.add_argument('name', metavar='NAME', help='name of the marker in the rig file')
    parser.add_argument(
        '--at', required=True, type=numbers, metavar='u,v', help='approximate centre [px]'
    )
    parser.add_argument(
        '--radius',
        required=True,
        type=positive,
        help='approximate longer semi-axis of the outer edge [px]',
    )
    parser.add_argument(
        '--node', default='tracker', help='cameras in one process (default: tracker)'
    )
    add_node_options(parser, 'vision')
    allow_lists(parser)
    parser.set_defaults(run=_run_initialize)


def _run_initialize(arguments: argparse.Namespace) -> None:
    """Run ``initialize``."""
    from longreach_vision.ros.remote import initialize

    if len(arguments.at) != 2:
        raise InputError(f'--at has {len(arguments.at)} numbers; allowed: two, u,v')
    try:
        checked_name(arguments.node)
    except InputError as error:
        raise InputError(
            f'--node {arguments.node!r}, allowed: letters, digits and _, no digit first, such as'
            ' tracker'
        ) from error
    print(
        initialize(
            arguments.camera,
            arguments.name,
            arguments.at,
            arguments.radius,
            arguments.node,
            arguments.namespace,
            arguments.timeout,
        )
    )
