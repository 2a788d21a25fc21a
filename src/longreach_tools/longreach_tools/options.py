"""Options and subcommands shared by the commands of several machines."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from longreach_tools.arguments import add_network, count, optional_file, positive
from longreach_tools.output import add_format


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


def add_demo(commands: Any, text: str, run: Callable[[argparse.Namespace], int]) -> None:
    """Add the subcommand ``demo`` with ``--out``."""
    parser = commands.add_parser('demo', help=text)
    parser.add_argument('--out', metavar='DIR', type=Path, default=Path('out/demo'))
    parser.set_defaults(run=run)


def add_node_options(parser: argparse.ArgumentParser, machine: str) -> None:
    """Add ``--namespace``, ``--network`` and ``--timeout`` for requests to running nodes."""
    parser.add_argument(
        '--namespace', default=machine, help=f'namespace of the {machine} (default: {machine})'
    )
    parser.add_argument(
        '--timeout', type=positive, default=5.0, help='longest wait for an answer [s] (default: 5)'
    )
    add_network(parser)
