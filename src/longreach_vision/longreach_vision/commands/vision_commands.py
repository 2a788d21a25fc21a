"""
Two cameras that track circular markers, Henikl et al. (2015), section 4.2.

Calibration, camera poses, printed markers; detection in pictures, tracking through videos and
folders; rendered pictures, and the comparison of recordings with the truth.
"""

from __future__ import annotations

import argparse

from longreach_vision.commands.check_commands import configure_check
from longreach_vision.commands.detection_commands import configure_detection
from longreach_vision.commands.node_commands import configure_nodes
from longreach_vision.commands.setup_commands import configure_setup
from longreach_vision.commands.simulation_commands import configure_simulation
from longreach_vision.commands.tracking_commands import configure_tracking

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
