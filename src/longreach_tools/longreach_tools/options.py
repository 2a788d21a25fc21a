"""Options and subcommands shared by the commands of several machines."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from longreach_tools.arguments import add_common, add_network, count, finite, optional_file
from longreach_tools.output import add_format

# Longest wait for an answer of a running node [s].
ANSWER = 10.0


def add_file(parser: argparse.ArgumentParser, metavar: str, text: str) -> None:
    """Add ``--file``, the machine's parameter file; None by default and for an empty name."""
    add_common(parser, '--file', metavar=metavar, type=optional_file, help=text)


def add_results(parser: argparse.ArgumentParser, rows: str, picture: str) -> None:
    """Add ``--format``, ``--csv`` and ``--plot``, with descriptions of the files' contents."""
    add_format(parser)
    parser.add_argument('--csv', metavar='FILE', type=Path, help=rows)
    parser.add_argument('--plot', metavar='FILE', type=Path, help=picture)


def add_signals(parser: argparse.ArgumentParser, text: str) -> None:
    """Add a recording, signals of it, and the part of time that is shown."""
    parser.add_argument('bag', type=Path, help='directory of a recording, or a storage file')
    parser.add_argument('signals', nargs='*', metavar='TOPIC.field', help=text)
    parser.add_argument('--from', dest='begin', type=finite, metavar='S', help='first time [s]')
    parser.add_argument('--to', dest='end', type=finite, metavar='S', help='last time [s]')


def add_workers(parser: argparse.ArgumentParser) -> None:
    """Add ``--processes`` and ``--cluster`` of :func:`longreach_dynamics.parallel.run_jobs`."""
    add_common(
        parser,
        '--processes',
        type=count(1000),
        help='number of parallel processes (default: one for each core)',
    )
    add_common(
        parser,
        '--cluster',
        metavar='ADDRESS',
        help='run on a Dask cluster: tcp://HOST:PORT, or local:COUNT for one on this computer',
    )


def add_demo(commands: Any, text: str, run: Callable[[argparse.Namespace], int]) -> None:
    """Add the subcommand ``demo`` with ``--out``."""
    parser = commands.add_parser('demo', help=text)
    parser.add_argument(
        '--out', metavar='DIR', type=Path, default=Path('out/demo'), help='default: out/demo'
    )
    parser.set_defaults(run=run)


def add_namespace(parser: argparse.ArgumentParser, whose: str, default: str | None) -> None:
    """Add ``--namespace``."""
    shown = f' (default: {default})' if default else ''
    add_common(parser, '--namespace', default, metavar='NS', help=f'namespace of {whose}{shown}')


def add_node_options(parser: argparse.ArgumentParser, machine: str) -> None:
    """Add ``--namespace`` and ``--network`` for requests to running nodes."""
    add_namespace(parser, f'the {machine}', machine)
    add_network(parser)
    parser.set_defaults(timeout=ANSWER)
