"""Subcommand ``longreach vision demo``: boom, cameras and tracker over ROS."""

from __future__ import annotations

import argparse
import os
from typing import Any

from longreach_dynamics.resources import data_directory
from longreach_tools.arguments import positive
from longreach_tools.demo import demonstrate
from longreach_tools.options import add_demo
from longreach_vision.commands.arguments import installed_rig


def configure_demo(commands: Any) -> None:
    """Add the subcommand ``demo``."""
    add_demo(commands, 'boom, cameras and tracker over ROS: run, record, compare, draw', _run_demo)
    commands.choices['demo'].add_argument(
        '--scale',
        type=positive,
        help='image size relative to the cameras (default: 1; 0.5 on a single core)',
    )


def _run_demo(arguments: argparse.Namespace) -> int:
    """Run ``demo``: launch boom, cameras and tracker, then compare with the truth."""
    out, cores = arguments.out, len(os.sched_getaffinity(0))
    scale = arguments.scale or (1.0 if cores > 1 else 0.5)
    truck = data_directory('longreach_boom') / 'config' / 'boom_on_truck.yaml'
    return demonstrate(
        out,
        'vision',
        ('vision', 'boom:=true', f'scale:={scale}', 'duration:=20.0', f'boom_file:={truck}'),
        [
            ('vision', 'compare', '{bag}', '--plot', '{picture}'),
            (
                'vision',
                'simulate',
                '{bag}',
                *('--scale', f'{scale:g}'),
                *('--movement', 'truck={reaction}'),
            ),
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
