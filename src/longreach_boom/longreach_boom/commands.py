"""
The flexible boom of a concrete pump, Henikl et al. (2015).

Natural modes and finite elements, static equilibrium, the sudden release of a load, scenarios,
sweeps over a parameter, and the comparison of recordings with the library.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path

import numpy as np

from longreach_boom.arguments import (
    add_boom,
    add_boom_file,
    add_pose,
    angles_of,
    boom_of,
    hanging_loads,
)
from longreach_boom.machine import SAMPLE_TIME, STEP
from longreach_boom.parameters import BoomParameters, default_file
from longreach_boom.results import BoomRun
from longreach_boom.scenario import Scenario, load_scenario
from longreach_boom.sensors import load_sensors
from longreach_boom.simulation import simulate
from longreach_boom.static_commands import configure_statics
from longreach_tools.arguments import not_negative, positive
from longreach_tools.machine_command import MachineCommand, lazily
from longreach_tools.options import add_results, add_steps
from longreach_tools.output import check_output

__all__ = ['SUMMARY', 'configure']

SUMMARY = 'a flexible concrete-pump boom with hydraulics (Henikl 2015)'


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the subcommands of ``longreach boom``."""
    commands = parser.add_subparsers(required=True, metavar='COMMAND')

    configure_statics(commands)

    release = commands.add_parser('release', help='sudden release of a load')
    add_boom(release)
    add_pose(release, 'site', load=90.0)
    release.add_argument(
        '--duration', type=positive, default=20.0, help='simulated time [s] (default: 20)'
    )
    release.add_argument(
        '--friction',
        choices=('on', 'off'),
        default='on',
        help='friction of the pistons (default: on)',
    )
    add_steps(release, STEP, SAMPLE_TIME, automatic=True)
    add_results(release, 'a table of all rows', 'figures 13 and 14 of the paper')
    release.set_defaults(run=_run_release)

    run = BOOM.add_run(commands)
    add_boom(run)
    add_steps(run, STEP, SAMPLE_TIME, automatic=True)
    add_results(run, 'a table of all rows', 'forces, strains, pistons and beam tips over time')

    measure = commands.add_parser(
        'measure', help='what a data logger would record of a scenario, with errors of sensors'
    )
    measure.add_argument('scenario', metavar='SCENARIO', type=Path, help='a file or a name')
    add_boom(measure)
    measure.add_argument(
        '--sensors', metavar='FILE', default='typical', help='sensor file, or default, or typical'
    )
    measure.add_argument('--seed', type=int, default=0, help='of the noise (default: 0)')
    measure.add_argument(
        '--rate', type=positive, default=20.0, help='rows per second (default: 20)'
    )
    measure.add_argument(
        '--csv', metavar='FILE', type=Path, required=True, help='signals as columns'
    )
    measure.set_defaults(run=_run_measure, step=None)

    many = BOOM.add_sweep(
        commands,
        'longreach_boom.commands:BOOM',
        'oil.bulk_modulus or beams.beam_1.loss_time',
        scenario_of=_release_scenario,
    )
    add_boom(many)
    add_pose(many, 'site', load=90.0)
    many.add_argument(
        '--duration',
        type=positive,
        default=20.0,
        help='simulated time of the release of a load, without --scenario [s] (default: 20)',
    )
    add_steps(many, STEP, SAMPLE_TIME, automatic=True)

    BOOM.add_urdf(commands)

    compare = BOOM.add_compare(
        commands,
        'Name what was run with --scenario, --file and --step; commands by hand and a controller'
        ' in real time differ, too',
        step=STEP,
    )
    add_boom_file(compare)

    attach = BOOM.add_attach(commands, 'attach a load to a running boom')
    attach.add_argument('--beam', metavar='NAME', default='', help='beam (default: the last)')
    attach.add_argument(
        '--position', type=not_negative, help='position along the beam [m] (default: its tip)'
    )

    BOOM.add_move(commands, 'beams')
    BOOM.add_services(commands, {'release-load': 'release all loads of a running boom'})
    BOOM.add_valves(
        commands,
        'valve_command',
        'commands the valves on {topic}, too; start the boom with longreach launch boom'
        ' controller:=false to move them by hand, or its joints with longreach boom move',
        'if it is paused, longreach boom resume lets it go on; in lockstep it waits for its'
        ' controller, and nobody else can command the valves',
    )
    BOOM.add_demo(
        commands,
        'release over ROS: run, record, compare, draw',
        'load_release',
        ('controller:=false', 'real_time_factor:=0.0', 'duration:=20.0'),
        _NEXT,
    )


def _release_scenario(arguments: argparse.Namespace, boom: BoomParameters) -> Scenario:
    """Return the release of the load at time 0."""
    angles = angles_of(arguments, boom)
    boom.check_pose(angles)
    return Scenario(
        duration=arguments.duration,
        pose_deg=tuple(np.degrees(angles).tolist()),
        friction=getattr(arguments, 'friction', 'on') == 'on',
        loads=hanging_loads(arguments),
        release=(0.0,),
    )


def _run_release(arguments: argparse.Namespace) -> int:
    """Run ``release``."""
    boom = boom_of(arguments)
    return BOOM.run(arguments, boom, _release_scenario(arguments, boom))


def _run_measure(arguments: argparse.Namespace) -> None:
    """Run ``measure``."""
    from longreach_boom.measured_files import write_readings

    check_output(arguments.csv)
    boom = boom_of(arguments)
    scenario = BOOM.scenario_of(arguments, boom)
    sensors = load_sensors(arguments.sensors)
    write_readings(arguments.csv, boom, scenario, sensors, arguments.seed, arguments.rate)


# Results of a run in a sweep, with units.
_SWEPT = {
    'tip_highest': 'm',
    'tip_lowest': 'm',
    'longest_piston_travel': 'm',
    'highest_pressure': 'Pa',
    'largest_joint_error': 'rad',
}


def _measure(run: BoomRun) -> tuple[float, ...]:
    """Return the results of a run for a sweep; without a controller the joint error is NaN."""
    summary = run.summary()
    return (
        summary['tip_highest'],
        summary['tip_lowest'],
        max(summary['piston_travel']),
        summary['highest_pressure'],
        max(summary['joint_error'], default=math.nan),
    )


_NEXT = """
The bag is in {bag}, the picture in {picture}. What to try next, after . install/setup.bash:
  longreach boom modes --pose site --plot out/modes.png
  longreach boom statics --sweep -5:85:19 --degrees --load 90
  longreach boom run config/scenarios/boom_wave.yaml --plot out/wave.png
  longreach launch boom scenario:=wave             in real time; Ctrl-C ends it
  cp {file} my_boom.yaml
                                                   change a number in it, then:
  longreach boom release --file my_boom.yaml --plot out/mine.png"""

BOOM = MachineCommand(
    name='boom',
    load=boom_of,
    load_scenario=lambda file, boom, a: load_scenario(file, boom, a.step or None),
    simulate=lambda boom, scenario, a: simulate(
        boom, scenario, a.step, a.sample_time, getattr(a, 'progress', True)
    ),
    read_run=lazily('longreach_boom.recording:read_run'),
    draw_run=lazily('longreach_boom.figures:draw_run'),
    default_file=default_file,
    describe=lazily('longreach_boom.description:robot_description'),
    add_file=add_boom_file,
    scenarios='boom_',
    swept=_SWEPT,
    measure=_measure,
)
