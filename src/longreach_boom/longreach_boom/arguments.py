"""Common arguments of subcommands of ``longreach boom``: the boom, its pose, a load."""

from __future__ import annotations

import argparse

import numpy as np

from longreach_boom.model import Load
from longreach_boom.parameters import BoomParameters
from longreach_boom.scenario import HangingLoad
from longreach_boom.spec import BOOM, BendingOptions
from longreach_boom.statics import equilibrium
from longreach_dynamics.errors import InputError, LongreachError
from longreach_dynamics.kinematics import joint_places, solve_pose
from longreach_tools.arguments import not_negative, numbers
from longreach_tools.machine_command import add_machine, machine_of, options_of
from longreach_tools.poses import pose_of

# Tolerance of the tip position [m], and largest number of corrections of the sag.
_CLOSE, _MOST_ROUNDS = 1e-5, 50


def add_boom(parser: argparse.ArgumentParser) -> None:
    """Add the boom and its model of bending."""
    add_machine(BOOM, parser, ('step', 'sample_time'))


def add_pose(parser: argparse.ArgumentParser, pose: str, load: float = 0.0) -> None:
    """Add pose and load."""
    parser.add_argument(
        '--pose',
        help='a pose of the boom file, or joint angles a,b,.. [rad]'
        f' (default: {pose}, or the first of the file)',
    )
    parser.set_defaults(usual_pose=pose)
    parser.add_argument(
        '--tip',
        type=numbers,
        metavar='X,Z',
        help='position of the tip of the bent boom [m]; selects the pose nearest to --pose',
    )
    parser.add_argument('--degrees', action='store_true', help='angles are in degrees')
    parser.add_argument(
        '--load',
        type=not_negative,
        default=load,
        help=f'mass at the tip [kg] (default: {load:g})',
    )
    parser.add_argument('--load-beam', default='', help='beam with the load (default: the last)')
    parser.add_argument(
        '--load-position',
        type=not_negative,
        help='position along that beam [m] (default: its tip)',
    )


def boom_of(arguments: argparse.Namespace) -> BoomParameters:
    """Return the boom of the arguments, with their model of bending."""
    boom: BoomParameters = machine_of(BOOM, arguments, options_of(arguments, BendingOptions))
    return boom


def angles_of(arguments: argparse.Namespace, boom: BoomParameters) -> np.ndarray:
    """Return the joint angles [rad] of ``--pose``, or of the nearest pose for ``--tip``."""
    angles = pose_of(arguments, boom, boom.size, arguments.usual_pose)
    if arguments.tip is None:
        return angles
    if len(arguments.tip) != 2:
        raise InputError(f'--tip has {len(arguments.tip)} numbers, allowed: x,z')
    boom.check_pose(angles)
    loads, wanted, limits = loads_of(arguments, boom), np.array(arguments.tip), boom.joint_limits()
    lengths, sag = [beam.length for beam in boom.beams], np.zeros(2)
    for _ in range(_MOST_ROUNDS):
        # The sag changes little between iterations.
        angles = solve_pose(
            lambda q: _tip(joint_places(lengths, q)), wanted - sag, limits, angles, 'straight tip'
        )
        miss = equilibrium(boom, angles, loads).tip - wanted
        if np.abs(miss).max() < _CLOSE:
            return angles
        sag = sag + miss
    raise LongreachError(
        f'--tip {wanted.tolist()}: no pose of the bent boom found; start from another --pose'
    )


def _tip(places: np.ndarray) -> np.ndarray:
    """Return x and z of the last point."""
    return np.array([places[-1].real, places[-1].imag])


def hanging_loads(arguments: argparse.Namespace) -> tuple[HangingLoad, ...]:
    """Return the load of the arguments."""
    if arguments.load == 0.0:
        return ()
    return (
        HangingLoad(
            mass=arguments.load, beam=arguments.load_beam, position=arguments.load_position
        ),
    )


def loads_of(arguments: argparse.Namespace, boom: BoomParameters) -> tuple[Load, ...]:
    """Return the load of the arguments for the model."""
    return tuple(item.on(boom, '--load') for item in hanging_loads(arguments))
