"""``longreach pendulum``: simulate, draw, compare a recording with the simulation."""

import argparse
from pathlib import Path

from longreach_dynamics.runs import Run
from longreach_pendulum.machine import COLUMNS, PendulumParameters, simulate
from longreach_tools import comparison, options, output, recording

SUMMARY = 'a pendulum on a hydraulic cylinder'


def configure(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(required=True)
    run = commands.add_parser('run', help='simulate 5 s')
    options.add_results(run, 'one row per sample', 'a picture')
    run.set_defaults(run=lambda a: comparison.hand_out(a, 'pendulum', simulate(5.0), draw))
    options.add_compare(commands, 'pendulum', 'the lift').set_defaults(run=compare, plot=None)


def compare(arguments: argparse.Namespace) -> int:
    table = recording.read_columns(arguments.bag, arguments.namespace, COLUMNS, 'pendulum')
    expected = simulate(table[-1, 0])
    run = Run(expected.parameters, COLUMNS, table)
    return comparison.report_comparison(arguments, 'pendulum', run, expected, 'Another YAML?')


def draw(file: Path, run: Run[PendulumParameters]) -> None:
    with output.figure(file, size=(7.0, 6.0), rows=3) as axes:
        for axis, name, unit in zip(axes, COLUMNS.names[1:], ('deg', 'bar', 'bar'), strict=True):
            axis.plot(run.column('time'), run.column(name, unit))
            axis.set(xlabel='time [s]', ylabel=f'{name} [{unit}]')
