"""Arguments that several commands of the excavator share."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from longreach_dynamics.errors import InputError
from longreach_excavator.linkage import CYLINDERS
from longreach_excavator.parameters import ExcavatorParameters, load_excavator
from longreach_excavator.scenario import DEPTHS, MODES, Scenario, dig_scenario
from longreach_excavator.soil import LAWS
from longreach_excavator.spec import EXCAVATOR
from longreach_tools.arguments import positive
from longreach_tools.machine_command import add_file

# Cylinders that carry the bucket's joint.
_STANDING = CYLINDERS[:2]
_LITRES_PER_MINUTE = 1e-3 / 60.0  # [m^3/s]


def add_excavator(parser: argparse.ArgumentParser) -> None:
    """Add ``--file``."""
    add_file(EXCAVATOR, parser)


def add_digging(parser: argparse.ArgumentParser, duration: str) -> None:
    """Add the options of digging; ``duration`` is the help text of ``--duration``."""
    add_excavator(parser)
    parser.add_argument(
        '--mode',
        choices=MODES,
        default='hydraulic',
        help='hydraulic: valves and oil; printed: prescribed forces; thesis: prescribed forces,'
        ' no piston friction, soil force in the direction phi_1 (default: hydraulic)',
    )
    parser.add_argument('--law', choices=LAWS, help='law of the soil (default: from the file)')
    parser.add_argument(
        '--depth',
        choices=DEPTHS,
        default='swing',
        help="swing: as printed in (4.1), as if the bucket's joint were at rest; surface: below"
        " the soil's surface; terrain: of the tooth below ground that is cut, carried and dumped"
        ' (default: swing)',
    )
    parser.add_argument(
        '--flow',
        type=positive,
        help="flow through the bucket's fully open valve at the full supply pressure [L/min]"
        ' (default: from the file); mode hydraulic only',
    )
    parser.add_argument(
        '--forces',
        metavar='FILE.csv',
        type=Path,
        help='forces of the cylinders, or pressures, over time (default: (5.8) to (5.10));'
        ' modes printed and thesis only',
    )
    parser.add_argument(
        '--held',
        action='store_const',
        const=_STANDING,
        default=(),
        help="lock boom and arm at their lengths, so that the bucket's joint does not move, as"
        ' (4.1) assumes; mode hydraulic only',
    )
    parser.add_argument('--pose', default='dig', help='initial pose of the file (default: dig)')
    parser.add_argument('--duration', type=positive, default=7.0, help=duration)


def digging_excavator(arguments: argparse.Namespace) -> ExcavatorParameters:
    """Return the excavator with the valve and soil law of the arguments."""
    excavator = load_excavator(arguments.file)
    if arguments.flow is not None:
        if arguments.mode != 'hydraulic':
            raise InputError('--flow belongs to --mode hydraulic; leave it out for given forces')
        try:
            excavator = excavator.with_flow('bucket', arguments.flow * _LITRES_PER_MINUTE)
        except InputError as error:
            raise InputError(f'--flow {arguments.flow:g} L/min: {error}') from error
    if arguments.law is not None:
        excavator = excavator.with_value('soil.law', arguments.law)
    return excavator


def digging_scenario(arguments: argparse.Namespace, cohesion: float | None = None) -> Scenario:
    """Return the digging scenario of the arguments, in soil of a cohesion [Pa]."""
    forces = '' if arguments.forces is None else str(arguments.forces)
    return dig_scenario(
        arguments.mode,
        cohesion,
        arguments.duration,
        forces,
        arguments.pose,
        arguments.depth,
        arguments.held,
    )


def say(text: str) -> None:
    """Print a line beside the result, on stderr."""
    print(f'longreach excavator: {text}', file=sys.stderr)
