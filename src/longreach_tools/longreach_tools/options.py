"""Options and subcommands shared by the commands of several machines."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from longreach_tools.arguments import add_network, count, optional_file, positive
from longreach_tools.output import add_format

__all__ = [
    'add_demo',
    'add_file',
    'add_results',
    'add_steps',
    'add_whom',
    'add_workers',
]


def add_file(parser: argparse.ArgumentParser, metavar: str, text: str) -> None:
    """Add ``--file``, the machine's parameter file; None by default and for an empty name."""
    parser.add_argument('--file', metavar=metavar, type=optional_file, help=text)


def add_results(parser: argparse.ArgumentParser, rows: str, picture: str) -> None:
    """Add ``--format``, ``--csv`` and ``--plot``, with descriptions of the files' contents."""
    add_format(parser)
    parser.add_argument('--csv', metavar='FILE', type=Path, help=rows)
    parser.add_argument('--plot', metavar='FILE', type=Path, help=picture)


def add_workers(parser: argparse.ArgumentParser) -> None:
    """Add ``--processes`` and ``--cluster`` of :func:`longreach_dynamics.parallel.run_jobs`."""
    parser.add_argument(
        '--processes',
        type=count(1000),
        help='number of parallel processes (default: one for each core)',
    )
    parser.add_argument(
        '--cluster',
        metavar='ADDRESS',
        help='run on a Dask cluster: tcp://HOST:PORT, or local:COUNT for one on this computer',
    )


def _step_or_auto(text: str) -> float:
    """Parse a step above 0, or 'auto' as 0."""
    return 0.0 if text == 'auto' else positive(text)


def add_steps(
    parser: argparse.ArgumentParser,
    step: float,
    sample_time: float,
    what: str = 'interval of rows, and cycle of the controller',
    automatic: bool = False,
) -> None:
    """
    Add ``--step`` and ``--sample-time`` with these defaults [s]; ``what`` describes the latter.

    With ``automatic``, the step may be 'auto', which is converted to 0.
    """
    auto = ', or auto: the longest that is stable and divides the sample time' if automatic else ''
    parser.add_argument(
        '--step',
        type=_step_or_auto if automatic else positive,
        default=step,
        help=f'integration step [s]{auto} (default: {step:g})',
    )
    parser.add_argument(
        '--sample-time',
        type=positive,
        default=sample_time,
        help=f'{what} [s] (default: {sample_time:g})',
    )


def add_demo(commands: Any, text: str, run: Callable[[argparse.Namespace], int]) -> None:
    """Add the subcommand ``demo`` with ``--out``."""
    parser = commands.add_parser('demo', help=text)
    parser.add_argument('--out', metavar='DIR', type=Path, default=Path('out/demo'))
    parser.set_defaults(run=run)


def add_whom(parser: argparse.ArgumentParser, machine: str) -> None:
    """Add ``--namespace``, ``--network`` and ``--timeout`` for requests to running nodes."""
    parser.add_argument(
        '--namespace', default=machine, help=f'namespace of the {machine} (default: {machine})'
    )
    parser.add_argument(
        '--timeout', type=positive, default=5.0, help='longest wait for an answer [s] (default: 5)'
    )
    add_network(parser)
