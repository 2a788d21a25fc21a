"""Studies of the excavator: digs, poses, loads of a motion, breakout, cohesion."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from longreach_dynamics.errors import InputError
from longreach_dynamics.kinematics import solve_pose
from longreach_excavator.arguments import (
    add_digging,
    add_excavator,
    digging_excavator,
    digging_scenario,
)
from longreach_excavator.digging_commands import configure_digging
from longreach_excavator.kinematics import pin_places
from longreach_excavator.linkage import CYLINDERS
from longreach_excavator.parameters import ExcavatorParameters, load_excavator
from longreach_excavator.spec import EXCAVATOR, ExcavatorOptions
from longreach_excavator.statics import standing
from longreach_excavator.study_commands import configure_studies
from longreach_tools.arguments import allow_lists, not_negative, numbers
from longreach_tools.machine_command import (
    add_options,
    check_files,
    options_of,
    run_scenario,
)
from longreach_tools.options import add_results
from longreach_tools.output import add_format, print_result, table
from longreach_tools.poses import pose_of


def add_studies(commands: Any) -> None:
    """Add the subcommands that only an excavator has."""
    dig = commands.add_parser('dig', help='turn the bucket through the soil')
    add_digging(dig, 'longest time [s] (default: 7)')
    dig.add_argument(
        '--cohesion',
        type=not_negative,
        help='cohesion of the soil [Pa] (default: from the file)',
    )
    add_options(dig, ExcavatorOptions)
    add_results(dig, 'a table of all rows', 'figures 5.17 to 5.25 of the thesis')
    dig.set_defaults(run=_run_dig)

    configure_studies(commands)
    configure_digging(commands)

    pose = commands.add_parser('pose', help='lengths, levers and forces of a pose at rest')
    allow_lists(pose)
    add_excavator(pose)
    which = pose.add_mutually_exclusive_group()
    which.add_argument(
        '--pose', help='pose of the file, or theta_2,theta_3,theta_4 [rad] (default: the first)'
    )
    which.add_argument(
        '--lengths', type=numbers, metavar='BOOM,ARM,BUCKET', help='lengths of the cylinders [m]'
    )
    which.add_argument(
        '--tip',
        type=numbers,
        metavar='X,Z[,ATTITUDE]',
        help='position of the tooth [m] and, if given, angle of the bucket to the horizontal'
        ' [rad]: the pose nearest to the first one of the file',
    )
    pose.add_argument('--degrees', action='store_true', help='angles are in degrees')
    add_format(pose)
    pose.add_argument('--plot', metavar='FILE', type=Path, help='the machine with its pins')
    pose.set_defaults(run=_run_pose)


def _run_dig(arguments: argparse.Namespace) -> int:
    """Run ``dig``."""
    excavator = digging_excavator(arguments)
    scenario = digging_scenario(arguments, arguments.cohesion)
    options = options_of(arguments, ExcavatorOptions)
    if arguments.sample_time is None and arguments.mode != 'hydraulic':
        # With prescribed forces the sweep takes 0.125 s.
        options = options.replace(sample_time=options.step)
    return run_scenario(EXCAVATOR, arguments, excavator, scenario, options)


# --- without motion -------------------------------------------------------------------------


def _run_pose(arguments: argparse.Namespace) -> None:
    """Run ``pose``."""
    check_files(arguments)
    excavator = load_excavator(arguments.file)
    q = _angles(arguments, excavator)
    row = standing(excavator, q)
    if arguments.plot is not None:
        from longreach_excavator.figures import draw_pose

        draw_pose(arguments.plot, excavator, q)
    rows = [
        (
            name,
            row['theta_deg'][k],
            '{:.1f} to {:.1f}'.format(*row['range_deg'][k]),
            row['length_m'][k],
            row['piston_m'][k],
            row['lever_m'][k],
            1e-3 * row['force_n'][k],
            1e-5 * row['p_head_pa'][k],
            1e-5 * row['p_rod_pa'][k],
        )
        for k, name in enumerate(CYLINDERS)
    ]
    head = (
        'cylinder',
        'joint [deg]',
        'stroke allows',
        'length [m]',
        'piston [m]',
        'lever [m]',
        'weight [kN]',
        'head [bar]',
        'rod [bar]',
    )
    x, z = row['tip_m']
    text = table(head, rows) + f'\n\ntooth: x = {x:.4f} m, z = {z:.4f} m'
    print_result(row, text, arguments.format)


def _angles(arguments: argparse.Namespace, excavator: ExcavatorParameters) -> np.ndarray:
    """Return the joint angles [rad] of ``--pose``, ``--lengths`` or ``--tip``."""
    if arguments.lengths is not None:
        return excavator.linkage().angles(np.array(arguments.lengths))
    angles = pose_of(arguments, excavator, len(CYLINDERS))
    if arguments.tip is None:
        return angles
    target = np.array(arguments.tip)
    if target.size not in (2, 3):
        raise InputError(f'--tip has {target.size} numbers, allowed: x,z or x,z,attitude')
    if arguments.degrees:
        target[2:] = np.radians(target[2:])

    def tooth(q: np.ndarray) -> np.ndarray:
        place = pin_places(excavator, q)[-1]
        return np.array([place.real, place.imag, q.sum()])[: target.size]

    return solve_pose(tooth, target, excavator.joint_limits(), angles, 'tooth')
