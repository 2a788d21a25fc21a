"""Options and subcommands that the commands of several machines have, each with one meaning."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from longreach_tools.arguments import add_network, allow_lists, numbers, optional_file, positive
from longreach_tools.output import add_format

__all__ = [
    'add_compare',
    'add_demo',
    'add_file',
    'add_results',
    'add_services',
    'add_steps',
    'add_valves',
    'add_whom',
    'valves_told',
]


def add_file(parser: argparse.ArgumentParser, metavar: str, text: str) -> None:
    """Add ``--file``, the machine; without it, or with an empty name, it is None."""
    parser.add_argument('--file', metavar=metavar, type=optional_file, help=text)


def add_results(parser: argparse.ArgumentParser, rows: str, picture: str) -> None:
    """Add ``--format``, ``--csv`` and ``--plot``; the texts say what the files show."""
    add_format(parser)
    parser.add_argument('--csv', metavar='FILE', type=Path, help=rows)
    parser.add_argument('--plot', metavar='FILE', type=Path, help=picture)


def add_steps(
    parser: argparse.ArgumentParser,
    step: float,
    sample_time: float,
    what: str = 'between rows, and of the controller',
) -> None:
    """Add ``--step`` and ``--sample-time`` with these defaults [s]; ``what`` is the second's."""
    parser.add_argument(
        '--step', type=positive, default=step, help=f'of the integration [s] (default: {step:g})'
    )
    parser.add_argument(
        '--sample-time',
        type=positive,
        default=sample_time,
        help=f'{what} [s] (default: {sample_time:g})',
    )


def add_compare(commands: Any, machine: str, usual: str | None = None) -> argparse.ArgumentParser:
    """
    Add the subcommand ``compare`` with BAG, ``--scenario`` and ``--namespace``.

    Parameters
    ----------
    commands : subparsers
        Of the machine's command.
    machine : str
        Its usual namespace.
    usual : str, optional
        What was run without ``--scenario``, for the help; without it that has to be named.

    Returns
    -------
    ArgumentParser
        For options of the machine's own, and its ``run``.
    """
    parser: argparse.ArgumentParser = commands.add_parser(
        'compare', help='compare a recorded run with the library'
    )
    parser.add_argument('bag', metavar='BAG', type=Path)
    parser.add_argument(
        '--scenario',
        metavar='SCENARIO.yaml',
        type=Path,
        required=usual is None,
        help='what was run' + ('' if usual is None else f' (default: {usual})'),
    )
    parser.add_argument('--namespace', default=machine, help='of the recorded topics')
    return parser


def add_demo(commands: Any, text: str, run: Callable[[argparse.Namespace], int]) -> None:
    """Add the subcommand ``demo`` with ``--out``."""
    parser = commands.add_parser('demo', help=text)
    parser.add_argument('--out', metavar='DIR', type=Path, default=Path('out/demo'))
    parser.set_defaults(run=run)


def add_whom(parser: argparse.ArgumentParser, machine: str) -> None:
    """Add whom to talk to, ``--namespace``, ``--network``, and the longest wait, ``--timeout``."""
    parser.add_argument(
        '--namespace', default=machine, help=f'of the {machine} (default: {machine})'
    )
    parser.add_argument(
        '--timeout', type=positive, default=5.0, help='longest wait for it [s] (default: 5)'
    )
    add_network(parser)


def add_services(
    commands: Any,
    machine: str,
    run: Callable[[argparse.Namespace], None],
    own: Mapping[str, str] | None = None,
) -> None:
    """
    Add subcommands that call services without arguments of a plant that runs as a node.

    Parameters
    ----------
    commands : subparsers
        Of the machine's command.
    machine : str
        Its name, and usual namespace.
    run : callable
        Gets ``service``, such as ``release_load``, ``namespace`` and ``timeout``.
    own : mapping, optional
        Subcommands and their help for services that only this machine has; ``release-load`` calls
        ``release_load``.
    """
    services = {
        **(own or {}),
        'pause': f'let the time of a running {machine} stand still',
        'resume': 'let it go on',
        'step': 'advance by one sample, while paused',
        'reset': 'go back to the initial state at time 0',
    }
    for name, text in services.items():
        parser = commands.add_parser(name, help=text)
        add_whom(parser, machine)
        parser.set_defaults(run=run, service=name.replace('-', '_'))


def add_valves(commands: Any, machine: str, run: Callable[[argparse.Namespace], None]) -> None:
    """
    Add the subcommand ``valves``, which moves the valves of a plant that runs as a node.

    Parameters
    ----------
    commands : subparsers
        Of the machine's command.
    machine : str
        Its name, and usual namespace.
    run : callable
        Gets ``spools``, ``duration`` [s], ``namespace`` and ``timeout``; :func:`valves_told` says
        what it has done.
    """
    parser = commands.add_parser('valves', help='move the valves while nobody else does')
    allow_lists(parser)
    parser.add_argument(
        'spools',
        metavar='S1,S2,..',
        type=_spools,
        help='spool positions, -1 to 1, for all cylinders; positive runs the piston out',
    )
    parser.add_argument(
        '--duration',
        type=positive,
        default=1.0,
        help='in real time, after which they close [s] (default: 1)',
    )
    add_whom(parser, machine)
    parser.set_defaults(run=run)


def valves_told(arguments: argparse.Namespace, topic: str) -> str:
    """Return what ``valves`` has done over a topic."""
    told = ', '.join(f'{spool:g}' for spool in arguments.spools)
    return f'valves at {told} for {arguments.duration:g} s over {topic}, then closed'


def _spools(text: str) -> tuple[float, ...]:
    """Return spool positions."""
    spools = numbers(text)
    for spool in spools:
        if abs(spool) > 1.0:
            raise argparse.ArgumentTypeError(f'{spool:g}, allowed: [-1, 1]')
    return spools
