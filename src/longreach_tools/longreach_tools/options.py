"""Options and subcommands that the commands of several machines have, each with one meaning."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
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
    'add_timed_command',
    'add_whom',
]


def add_file(parser: argparse.ArgumentParser, metavar: str, text: str) -> None:
    """Add ``--file``, the machine; without it, or with an empty name, it is None."""
    parser.add_argument('--file', metavar=metavar, type=optional_file, help=text)


def add_results(parser: argparse.ArgumentParser, rows: str, picture: str) -> None:
    """Add ``--format``, ``--csv`` and ``--plot``; the texts say what the files show."""
    add_format(parser)
    parser.add_argument('--csv', metavar='FILE', type=Path, help=rows)
    parser.add_argument('--plot', metavar='FILE', type=Path, help=picture)


def _step_or_auto(text: str) -> float:
    """Return a step above 0, or 0 for 'auto'."""
    return 0.0 if text == 'auto' else positive(text)


def add_steps(
    parser: argparse.ArgumentParser,
    step: float,
    sample_time: float,
    what: str = 'interval of rows, and cycle of the controller',
    automatic: bool = False,
) -> None:
    """
    Add ``--step`` and ``--sample-time`` with these defaults [s]; ``what`` is the second's.

    With ``automatic`` the step may be 'auto', which becomes 0.
    """
    auto = ', or auto: the longest that is stable and divides the sample time' if automatic else ''
    parser.add_argument(
        '--step',
        type=_step_or_auto if automatic else positive,
        default=step,
        help=f'step of the integration [s]{auto} (default: {step:g})',
    )
    parser.add_argument(
        '--sample-time',
        type=positive,
        default=sample_time,
        help=f'{what} [s] (default: {sample_time:g})',
    )


def add_compare(
    commands: Any, machine: str, usual: str | None = None, step: float | None = None
) -> argparse.ArgumentParser:
    """
    Add the subcommand ``compare`` with BAG, ``--scenario``, ``--namespace``, and results.

    Parameters
    ----------
    commands : subparsers
        Of the machine's command.
    machine : str
        Its usual namespace.
    usual : str, optional
        What was run without ``--scenario``, for the help; without it that has to be named.
    step : float, optional
        Adds ``--step``, what the plant's step was by default [s], which no recording holds.

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
        help='scenario that was run' + ('' if usual is None else f' (default: {usual})'),
    )
    parser.add_argument('--namespace', default=machine, help='namespace of the recorded topics')
    if step is not None:
        parser.add_argument(
            '--step',
            type=positive,
            default=step,
            help=f'step of the plant [s] (default: {step:g})',
        )
    add_format(parser)
    parser.add_argument('--csv', metavar='FILE', type=Path, help='the recorded run, row by row')
    return parser


def add_demo(commands: Any, text: str, run: Callable[[argparse.Namespace], int]) -> None:
    """Add the subcommand ``demo`` with ``--out``."""
    parser = commands.add_parser('demo', help=text)
    parser.add_argument('--out', metavar='DIR', type=Path, default=Path('out/demo'))
    parser.set_defaults(run=run)


def add_whom(parser: argparse.ArgumentParser, machine: str) -> None:
    """Add ``--namespace``, ``--network`` and ``--timeout`` for calls of running nodes."""
    parser.add_argument(
        '--namespace', default=machine, help=f'namespace of the {machine} (default: {machine})'
    )
    parser.add_argument(
        '--timeout', type=positive, default=5.0, help='longest wait for an answer [s] (default: 5)'
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
        'pause': f'pause the simulation of a running {machine}',
        'resume': 'resume it',
        'step': 'advance by one sample, while paused',
        'reset': 'go back to the initial state at time 0',
    }
    for name, text in services.items():
        parser = commands.add_parser(name, help=text)
        add_whom(parser, machine)
        parser.set_defaults(run=run, service=name.replace('-', '_'))


def add_timed_command(
    commands: Any,
    machine: str,
    name: str,
    send: Callable[[Sequence[float], float, str, float], str],
    texts: tuple[str, str, str],
    limit: float,
) -> None:
    """
    Add a subcommand that commands the actuators of a plant that runs as a node for some time.

    Parameters
    ----------
    commands : subparsers
        Of the machine's command.
    machine : str
        Its name, and usual namespace.
    name : str
        Of the subcommand.
    send : callable
        Gets the values, the duration [s], namespace and timeout [s]; returns the topic.
    texts : tuple of str
        Help of the subcommand, help of its values, and the actuators' state at the end.
    limit : float
        Largest magnitude of a value.
    """

    def bounded(text: str) -> tuple[float, ...]:
        values = numbers(text)
        for value in values:
            if abs(value) > limit:
                raise argparse.ArgumentTypeError(f'{value:g}, allowed: [{-limit:g}, {limit:g}]')
        return values

    def run(arguments: argparse.Namespace) -> None:
        values, duration = arguments.values, arguments.duration
        topic = send(values, duration, arguments.namespace, arguments.timeout)
        told = ', '.join(f'{value:g}' for value in values)
        print(f'{name} at {told} for {duration:g} s over {topic}, then {texts[2]}')

    parser = commands.add_parser(name, help=texts[0])
    allow_lists(parser)
    parser.add_argument('values', metavar='V1,V2,..', type=bounded, help=texts[1])
    parser.add_argument(
        '--duration',
        type=positive,
        default=1.0,
        help=f'in real time, then {texts[2]} [s] (default: 1)',
    )
    add_whom(parser, machine)
    parser.set_defaults(run=run)
