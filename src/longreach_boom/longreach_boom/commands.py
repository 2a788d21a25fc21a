"""Studies of the boom: statics and modes, the release of a load, what a data logger records."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from longreach_boom.arguments import add_pose, angles_of, hanging_loads
from longreach_boom.parameters import BoomParameters
from longreach_boom.scenario import Scenario, load_scenario
from longreach_boom.sensors import load_sensors
from longreach_boom.spec import BOOM, BoomOptions
from longreach_boom.static_commands import configure_statics
from longreach_tools.arguments import positive
from longreach_tools.machine_command import add_machine, machine_of, options_of, run_scenario
from longreach_tools.options import add_results
from longreach_tools.output import check_output


def add_studies(commands: Any) -> None:
    """Add the subcommands that only a boom has."""
    configure_statics(commands)

    release = commands.add_parser('release', help='sudden release of a load')
    add_machine(BOOM, release)
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
    add_results(release, 'a table of all rows', 'figures 13 and 14 of the paper')
    release.set_defaults(run=_run_release)

    measure = commands.add_parser(
        'measure', help='what a data logger would record of a scenario, with errors of sensors'
    )
    measure.add_argument('scenario', metavar='SCENARIO', type=Path, help='a file or a name')
    add_machine(BOOM, measure, ('step', 'sample_time'))
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
    measure.set_defaults(run=_run_measure)


def _release_scenario(arguments: argparse.Namespace, boom: BoomParameters) -> Scenario:
    """Return the release of the load at time 0."""
    angles = angles_of(arguments, boom)
    boom.check_pose(angles)
    return Scenario(
        duration=arguments.duration,
        pose_deg=tuple(np.degrees(angles).tolist()),
        friction=arguments.friction == 'on',
        loads=hanging_loads(arguments),
        release=(0.0,),
    )


def _run_release(arguments: argparse.Namespace) -> int:
    """Run ``release``."""
    options = options_of(arguments, BoomOptions)
    boom = machine_of(BOOM, arguments, options)
    scenario = _release_scenario(arguments, boom)
    return run_scenario(BOOM, arguments, boom, scenario, options)


def _run_measure(arguments: argparse.Namespace) -> None:
    """Run ``measure``."""
    from longreach_boom.measured_files import write_readings

    check_output(arguments.csv)
    boom = machine_of(BOOM, arguments, options_of(arguments, BoomOptions))
    scenario = load_scenario(BOOM.find_scenario(arguments.scenario), boom)
    sensors = load_sensors(arguments.sensors)
    write_readings(arguments.csv, boom, scenario, sensors, arguments.seed, arguments.rate)
