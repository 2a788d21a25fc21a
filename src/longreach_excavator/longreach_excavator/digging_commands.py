"""Subcommands of ``longreach excavator`` that set its digging beside the thesis' results."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from longreach_excavator.arguments import add_excavator
from longreach_excavator.forces import MEASURED_TIME, agreement, printed_forces
from longreach_excavator.linkage import CYLINDERS
from longreach_excavator.parameters import load_excavator
from longreach_excavator.scenario import DEPTHS, dig_scenario
from longreach_excavator.simulation import simulate
from longreach_tools.arguments import not_negative
from longreach_tools.machine_command import check_files
from longreach_tools.options import add_results
from longreach_tools.output import print_result, table, write_csv

__all__ = ['configure_digging']


def configure_digging(commands: Any) -> None:
    """Add these subcommands to those of ``longreach excavator``."""
    forces = commands.add_parser(
        'forces', help='cylinder forces of the digging beside the measured ones, (5.8) to (5.10)'
    )
    add_excavator(forces)
    forces.add_argument('--cohesion', type=not_negative, help='[Pa] (default: that of the file)')
    forces.add_argument(
        '--depth', choices=DEPTHS, default='swing', help='as of dig (default: swing)'
    )
    add_results(forces, 'computed and measured forces', 'both over time')
    forces.set_defaults(run=_run_forces)


def _run_forces(arguments: argparse.Namespace) -> None:
    """Run ``forces``."""
    check_files(arguments)
    excavator = load_excavator(arguments.file)
    scenario = dig_scenario(
        cohesion=arguments.cohesion, duration=MEASURED_TIME, depth=arguments.depth
    )
    run = simulate(excavator, scenario)
    times = run.column('time')
    computed = run.stack([f'pin_force_{name}' for name in CYLINDERS])
    measured = printed_forces().at(times)
    rows = {
        name: agreement(times, computed[:, k], measured[:, k]) for k, name in enumerate(CYLINDERS)
    }
    if arguments.csv is not None:
        names = [f'{kind}_{name}' for kind in ('computed', 'measured') for name in CYLINDERS]
        columns = np.column_stack([times, computed, measured])
        write_csv(arguments.csv, ('time', *names), columns)
    if arguments.plot is not None:
        from longreach_excavator.figures import draw_forces

        draw_forces(arguments.plot, times, computed, measured)
    head = (
        'cylinder',
        'RMS of the difference [%]',
        'opposite sign [s]',
        'correlation',
        f'computed / measured at {0.5 * MEASURED_TIME:g} s',
    )
    text = table(
        head,
        [
            (
                name,
                f'{100.0 * a.rms:.0f}',
                f'{a.opposite:.2f}',
                f'{a.correlation:.2f}',
                f'{a.ratio:.2f}',
            )
            for name, a in rows.items()
        ],
    )
    print_result({name: a._asdict() for name, a in rows.items()}, text, arguments.format)
