"""
Two cameras that track circular markers, Henikl et al. (2015), section 4.2.

Calibration, camera poses, printed markers; detection in pictures, tracking through videos and
folders; rendered pictures, and the comparison of recordings with the truth.
"""

from __future__ import annotations

import argparse
import os
from typing import Any

from longreach_dynamics.errors import InputError
from longreach_dynamics.resources import data_directory
from longreach_tools.arguments import positive
from longreach_tools.bag import checked_name
from longreach_tools.demo import demonstrate
from longreach_tools.options import add_demo, add_node_options
from longreach_vision.commands.arguments import installed_rig, vector
from longreach_vision.commands.detection_commands import configure_detection
from longreach_vision.commands.setup_commands import configure_setup
from longreach_vision.commands.simulation_commands import configure_simulation
from longreach_vision.commands.tracking_commands import configure_check, configure_tracking


def configure_nodes(commands: Any) -> None:
    """Add the subcommands ``demo`` and ``initialize``."""
    add_demo(commands, 'boom, cameras and tracker over ROS: run, record, compare, draw', _run_demo)
    commands.choices['demo'].add_argument(
        '--scale',
        type=positive,
        help='image size relative to the cameras (default: 1; 0.5 on a single core)',
    )

    begin = commands.add_parser(
        'initialize', help='make a running tracker track a marker at a pixel'
    )
    begin.add_argument('camera', metavar='CAMERA', help='name of the camera in the rig file')
    begin.add_argument('name', metavar='NAME', help='name of the marker in the rig file')
    begin.add_argument(
        '--at', required=True, type=vector(2), metavar='u,v', help='approximate centre [px]'
    )
    begin.add_argument(
        '--radius',
        required=True,
        type=positive,
        help='approximate longer semi-axis of the outer edge [px]',
    )
    begin.add_argument(
        '--node', default='tracker', help='cameras in one process (default: tracker)'
    )
    add_node_options(begin, 'vision')
    begin.set_defaults(run=_run_initialize)


def _run_demo(arguments: argparse.Namespace) -> int:
    out, cores = arguments.out, len(os.sched_getaffinity(0))
    scale = arguments.scale or (1.0 if cores > 1 else 0.5)
    truck = data_directory('longreach_boom') / 'config' / 'boom_on_truck.yaml'
    again = ('vision', 'simulate', '{bag}', '--scale', f'{scale:g}')
    return demonstrate(
        out,
        'vision',
        ('vision', 'boom:=true', f'scale:={scale}', 'duration:=20.0', f'boom_file:={truck}'),
        [
            ('vision', 'compare', '{bag}', '--plot', '{picture}'),
            (*again, '--movement', 'truck={reaction}'),
        ],
        _NEXT,
        reaction=out / 'vision_reaction.png',
        rig=installed_rig(),
        boom=truck,
    )


_NEXT = """
The bag is in {bag}, the pictures in {picture} and {reaction}.
The truck of the second picture is simulated on springs ({boom}).
Next steps, after . install/setup.bash:
  longreach vision render {bag} --duration 2 --scale 0.5 --out out/seen
  longreach vision track out/seen/left out/seen/right --config {rig} --scale 0.5 \\
    --overlay out/seen.mp4
  longreach vision marker --diameter 0.30 --out marker.pdf"""


def _run_initialize(arguments: argparse.Namespace) -> None:
    node = arguments.node
    try:
        checked_name(node)
    except InputError as error:
        raise InputError(
            f'--node {node!r}, allowed: letters, digits and _, no digit first, such as tracker'
        ) from error
    # Imported here: other commands work without ROS.
    from longreach_vision.ros.remote import initialize

    given = arguments.camera, arguments.name, arguments.at, arguments.radius
    print(initialize(*given, node, arguments.namespace, arguments.timeout))


SUMMARY = 'two cameras that track circular markers (Henikl 2015)'


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the subcommands of ``longreach vision``."""
    commands = parser.add_subparsers(required=True, metavar='COMMAND')
    configure_setup(commands)
    configure_detection(commands)
    configure_tracking(commands)
    configure_check(commands)
    configure_simulation(commands)
    configure_nodes(commands)
