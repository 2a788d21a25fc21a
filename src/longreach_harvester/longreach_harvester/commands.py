"""
Simulate a forestry machine, Papadopoulos and Gonthier (2002), corrected.

Hydraulics with hoses in full, or reduced to resistances; closed valves that lock, or that leak.
"""

from __future__ import annotations

import argparse

from longreach_harvester.machine import MODELS, SAMPLE_TIME, STEP, Harvester
from longreach_harvester.parameters import HarvesterParameters, default_file, load_harvester
from longreach_harvester.scenario import Scenario, load_scenario
from longreach_harvester.simulation import HarvesterRun, simulate
from longreach_tools.machine_command import MachineCommand, lazily
from longreach_tools.options import add_file, add_results, add_steps
from longreach_tools.output import summary_table, table

__all__ = ['SUMMARY', 'configure']

SUMMARY = 'a forestry machine with hoses (Papadopoulos and Gonthier 2002)'


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the subcommands of ``longreach harvester``."""
    commands = parser.add_subparsers(required=True, metavar='COMMAND')
    run = HARVESTER.add_run(commands)
    _add_harvester(run)
    _add_model(run)
    add_steps(run, STEP, SAMPLE_TIME, 'interval of rows')
    add_results(run, 'a table of all rows', 'angles, spools, pressures and flows over time')


def _add_harvester(parser: argparse.ArgumentParser) -> None:
    """Add ``--file``."""
    add_file(parser, 'YAML', 'harvester file (default: the standard machine)')


def _add_model(parser: argparse.ArgumentParser) -> None:
    """Add ``--model``, ``--switching`` and ``--as-printed``."""
    parser.add_argument(
        '--model',
        choices=MODELS,
        default='full',
        help='full: with lines, 18 states; reduced: resistances, 6 states (default: full)',
    )
    parser.add_argument(
        '--switching',
        choices=('on', 'off'),
        default='on',
        help='whether closed valves lock; off: their greatest resistance leaks (default: on)',
    )
    parser.add_argument(
        '--as-printed',
        action='store_true',
        help='with +P_S2 in the return lines, as (A6a) is printed',
    )


def _simulate(
    harvester: HarvesterParameters, scenario: Scenario, arguments: argparse.Namespace
) -> HarvesterRun:
    """Simulate a scenario."""
    machine = Harvester(
        harvester,
        scenario,
        arguments.step,
        arguments.model,
        arguments.switching == 'on',
        arguments.as_printed,
    )
    # Not to be counted: the code that is compiled or loaded in the first step.
    machine.advance(machine.initial_state(), (0.0, 0.0, 0.0), 0.0, machine.step)
    return simulate(machine, arguments.sample_time)


def _summary_text(run: HarvesterRun) -> str:
    """Return the summary of a run for people."""
    summary = run.summary()
    parts = [summary.pop(name, {}) for name in ('final', 'lowest', 'highest')]
    rows = [(name, *(part[name] for part in parts), run.columns.unit(name)) for name in parts[0]]
    head = ('quantity', 'at the end', 'lowest', 'highest', 'unit')
    return f'{table(head, rows)}\n\n{summary_table(summary, run.UNITS)}'


HARVESTER = MachineCommand(
    name='harvester',
    load=lambda arguments: load_harvester(arguments.file),
    load_scenario=lambda file, _, __: load_scenario(file),
    simulate=_simulate,
    read_run=lazily('longreach_harvester.recording:read_run'),
    draw_run=lazily('longreach_harvester.figures:draw_run'),
    default_file=default_file,
    add_file=_add_harvester,
    scenarios='harvester_',
    text=_summary_text,
)
