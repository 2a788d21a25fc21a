"""
Simulate a digging excavator, Ozunlu (2009), corrected.

Digging with printed forces or with hydraulics, scenarios, poses, loads of a prescribed motion,
cohesion from measurements, and the comparison of recordings with the library.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path

import numpy as np

from longreach_dynamics.errors import InputError, LongreachError
from longreach_dynamics.kinematics import solve_pose
from longreach_dynamics.runs import Run
from longreach_excavator.arguments import (
    add_digging,
    add_excavator,
    digging_excavator,
    digging_scenario,
)
from longreach_excavator.digging_commands import configure_digging
from longreach_excavator.kinematics import pin_places
from longreach_excavator.linkage import CYLINDERS
from longreach_excavator.machine import SAMPLE_TIME, STEP
from longreach_excavator.parameters import ExcavatorParameters, default_file, load_excavator
from longreach_excavator.results import ExcavatorRun
from longreach_excavator.scenario import Scenario, load_scenario
from longreach_excavator.simulation import simulate
from longreach_excavator.statics import standing
from longreach_excavator.study_commands import configure_studies
from longreach_tools.arguments import allow_lists, not_negative, numbers
from longreach_tools.machine_command import MachineCommand, check_files, lazily
from longreach_tools.options import add_results, add_steps
from longreach_tools.output import (
    add_format,
    print_result,
    summary_table,
    table,
)
from longreach_tools.poses import pose_of

__all__ = ['SUMMARY', 'configure']

SUMMARY = 'an excavator that digs (Ozunlu 2009)'
# Largest relative error of the energy balance of a valid run; 1e-10 to 1e-6 is usual.
_WORST_ENERGY = 1e-2
# A sweep takes seconds with hydraulics, and 0.125 s with prescribed forces [s].
_LONGEST_SAMPLE = {'hydraulic': 0.1, 'printed': 0.01, 'thesis': 0.01}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the subcommands of ``longreach excavator``."""
    commands = parser.add_subparsers(required=True, metavar='COMMAND')

    dig = commands.add_parser('dig', help='turn the bucket through the soil')
    add_digging(dig, 'longest time [s] (default: 7)')
    dig.add_argument(
        '--cohesion',
        type=not_negative,
        help='cohesion of the soil [Pa] (default: from the file)',
    )
    add_steps(dig, STEP, SAMPLE_TIME, 'interval of rows; prescribed forces: the step')
    _add_tolerance(dig)
    dig.set_defaults(sample_time=None)
    add_results(dig, 'a table of all rows', 'figures 5.17 to 5.25 of the thesis')
    dig.set_defaults(run=_run_dig)

    run = EXCAVATOR.add_run(commands)
    add_excavator(run)
    add_steps(run, STEP, SAMPLE_TIME, 'interval of rows')
    _add_tolerance(run)
    add_results(run, 'a table of all rows', 'the machine, forces, reactions and motion over time')

    many = EXCAVATOR.add_sweep(
        commands, 'longreach_excavator.commands:EXCAVATOR', 'scenario.cohesion', 'dig_17kpa'
    )
    add_excavator(many)
    add_steps(many, STEP, SAMPLE_TIME, 'interval of rows')
    _add_tolerance(many)

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

    EXCAVATOR.add_urdf(commands)
    compare = EXCAVATOR.add_compare(
        commands,
        'Name what was run with --scenario, --file and --step; commands by hand differ, too',
        step=STEP,
    )
    add_excavator(compare)

    EXCAVATOR.add_services(commands)
    EXCAVATOR.add_valves(
        commands,
        'cylinder_command',
        'commands the cylinders on {topic}, too; start the excavator with longreach launch'
        ' excavator operator:=false to move its valves by hand',
        'if it is paused, longreach excavator resume lets it go on',
    )
    EXCAVATOR.add_demo(
        commands,
        'digging over ROS: run, record, compare, draw',
        'dig_17kpa',
        ('operator:=false', 'real_time_factor:=0.0', 'duration:=7.0'),
        _NEXT,
    )


def _add_tolerance(parser: argparse.ArgumentParser) -> None:
    """Add ``--tolerance``."""
    parser.add_argument(
        '--tolerance',
        type=not_negative,
        default=0.0,
        help='tolerance of the local error with steps of order 8 (default: 0, steps of order 4)',
    )


# --- runs -----------------------------------------------------------------------------------


def _run_dig(arguments: argparse.Namespace) -> int:
    """Run ``dig``."""
    excavator = digging_excavator(arguments)
    scenario = digging_scenario(arguments, arguments.cohesion)
    if arguments.sample_time is None:
        # With prescribed forces the sweep takes 0.125 s.
        arguments.sample_time = SAMPLE_TIME if arguments.mode == 'hydraulic' else arguments.step
    return EXCAVATOR.run(arguments, excavator, scenario)


def _simulate(
    excavator: ExcavatorParameters, scenario: Scenario, arguments: argparse.Namespace
) -> Run[ExcavatorParameters]:
    """Simulate a scenario; raise InputError for rows or steps that would give no valid result."""
    step, sample_time = arguments.step, arguments.sample_time
    if 'bag' in arguments:
        # For a comparison, rows and steps are those of the recording.
        return simulate(excavator, scenario, step, sample_time)
    check_files(arguments, *filter(None, [scenario.forces]))
    _check_sample_time(sample_time, scenario)
    run = simulate(excavator, scenario, step, sample_time, arguments.tolerance)
    if not run.message:
        _check_energy(run)
    return run


def _summary_text(run: ExcavatorRun) -> str:
    """Return the summary of a run for people."""
    summary = run.summary()
    for key, text in (('time_to_sweep_s', 'not reached'), ('soil_dumped_at_m', 'nothing')):
        if key in summary and summary[key] is None:
            summary[key] = text
    return summary_table(summary, run.UNITS)


# Results of a run in a sweep, with units.
_SWEPT = {
    'sweep_deg': 'deg',
    'time_to_sweep_s': 's',
    'bucket_joint_moved_m': 'm',
    'peak_soil_force_n': 'N',
    'highest_pressure_pa': 'Pa',
}


def _measure(run: ExcavatorRun) -> tuple[float, ...]:
    """Return the results of a run for a sweep; NaN for a sweep that does not end."""
    summary = run.summary() | run.swing()
    pressures = [p for p in summary['peak_pressures_pa'].values() if p is not None]
    return (
        summary['sweep_deg'],
        math.nan if summary['time_to_sweep_s'] is None else summary['time_to_sweep_s'],
        summary['bucket_joint_moved_m'],
        summary['peak_soil_force_n'],
        max(pressures, default=math.nan),
    )


def _check_sample_time(sample_time: float, scenario: Scenario) -> None:
    """Raise InputError for an interval of rows too long to detect the end of the sweep."""
    longest = _LONGEST_SAMPLE[scenario.mode]
    if scenario.sweep_deg and sample_time > longest:
        raise InputError(
            f'--sample-time = {sample_time:g} s, allowed with mode: {scenario.mode} and a sweep:'
            f' up to {longest:g} s, as the end of the sweep is looked for in the rows'
        )


def _check_energy(result: ExcavatorRun) -> None:
    """Raise LongreachError for a run whose energy balance has too large an error."""
    error = result.energy_error()
    # In this form NaN fails as well.
    if not error <= _WORST_ENERGY:
        raise LongreachError(
            f'the energy balance of the run is wrong by a share of {error:.2g}, allowed: up to'
            f' {_WORST_ENERGY:g}; take a shorter --step or a --tolerance of 1e-9, or look for'
            ' forces and parameters of impossible size'
        )


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


_NEXT = """
The bag is in {bag}, the picture in {picture}. What to try next, after . install/setup.bash:
  longreach excavator dig --cohesion 20000 --plot out/stall.png
  longreach excavator dig --mode printed --plot out/printed.png
  longreach excavator pose --pose 20,-95,39.45 --degrees
  longreach launch excavator scenario:=none        in real time, to be driven; Ctrl-C ends it
  cp {file} my_excavator.yaml
                                                   change a number in it, then:
  longreach excavator dig --file my_excavator.yaml --plot out/mine.png"""

EXCAVATOR = MachineCommand(
    name='excavator',
    load=lambda arguments: load_excavator(arguments.file),
    load_scenario=lambda file, excavator, a: load_scenario(file, excavator, a.step),
    simulate=_simulate,
    read_run=lazily('longreach_excavator.recording:read_run'),
    draw_run=lazily('longreach_excavator.figures:draw_run'),
    default_file=default_file,
    describe=lazily('longreach_excavator.description:robot_description'),
    add_file=add_excavator,
    scenarios='excavator_',
    text=_summary_text,
    swept=_SWEPT,
    measure=_measure,
)
