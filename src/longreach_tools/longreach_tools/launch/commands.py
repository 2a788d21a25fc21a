"""
Run a launch file: start its nodes, print their output, end them together.

NAME is a launch file of longreach_bringup, FILE the path of any other one, in XML. ROS 2 launch is
not needed.

Exit code: 0 if all nodes succeeded or ended on request, otherwise that of the first node that
failed (128 + n for signal n); 2, before anything is started, for a bad file or argument.
"""

from __future__ import annotations

import argparse
import itertools
import os
import shlex
from collections.abc import Sequence
from pathlib import Path

from longreach_dynamics.errors import InputError
from longreach_node.middleware import check_middleware, limit_discovery

from ._evaluate import Argument, ParameterFile, Process, evaluate_launch_file, flag, survey
from ._packages import find_launch_file

SUMMARY = 'run a launch file'

# Of every launch file, declared or not.
_NETWORK = Argument('network', 'false', 'include nodes on other computers', ('true', 'false'))


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``longreach launch``."""
    parser.add_argument('launch_file', metavar='NAME|FILE', help='launch file')
    parser.add_argument(
        'arguments',
        metavar='name:=value',
        nargs='*',
        default=[],
        help='argument of the launch file',
    )
    parser.add_argument(
        '-s', '--show-args', action='store_true', help='list the arguments of the launch file'
    )
    parser.add_argument(
        '-p', '--print', action='store_true', help='print the processes without running them'
    )
    parser.add_argument(
        '--network',
        # Not ``network``: the argument network:=true of the launch file means the same.
        dest='on_network',
        help='(also: network:=true)',
    )
    # Options may also stand between the file and its arguments.
    parser.parse_args = parser.parse_intermixed_args  # type: ignore[method-assign]
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run ``longreach launch`` and return its exit code."""
    path = find_launch_file(arguments.launch_file, os.environ)
    given = _parse_arguments(arguments.arguments)
    # Before anything is evaluated, as it sets what the processes inherit.
    check_middleware()
    try:
        network = flag(given.get('network', 'false'))
    except ValueError as error:
        raise InputError(f'argument network: {error}') from error
    note = limit_discovery(arguments.on_network or network)
    environment = dict(os.environ)
    if arguments.show_args:
        print(_describe_arguments(path, given, environment))
        return 0
    processes = evaluate_launch_file(path, given, environment)
    if arguments.print:
        print('\n'.join(line for process in processes for line in _describe(process)))
        return 0
    # Not at the top: the command line starts without asyncio.
    from ._processes import Screen, run_processes

    screen = Screen()
    if note:
        screen.message('INFO', 'launch', note)
    return run_processes(processes, screen)


def _parse_arguments(words: Sequence[str]) -> dict[str, str]:
    """Return the values of arguments; the last one counts if a name comes twice."""
    given: dict[str, str] = {}
    for word in words:
        name, mark, value = word.partition(':=')
        if not mark or not name:
            raise InputError(f'argument {word!r}; allowed: name:=value')
        given[name] = value
    return given


def _describe_arguments(path: Path, given: dict[str, str], environment: dict[str, str]) -> str:
    """Return the list of a launch file's arguments."""
    lines = [f'arguments of {path} (name:=value):']
    declared = survey(path, given, environment)
    declared.setdefault('network', _NETWORK)
    for argument in declared.values():
        default = 'required' if argument.default is None else f'default {argument.default!r}'
        lines.append(f'  {argument.name}: {default}')
        if argument.description:
            lines.append(f'      {argument.description}')
        if argument.choices:
            lines.append(f'      allowed: {", ".join(argument.choices)}')
    return '\n'.join(lines)


def _describe(process: Process) -> list[str]:
    """Return the description of a process: command, parameter files, non-default attributes."""
    words: list[str] = []
    lines: list[str] = []
    numbers = itertools.count()
    for word in process.command:
        if isinstance(word, ParameterFile):
            words.append(f'PARAMETERS_{next(numbers)}')
            lines += [f'  {words[-1]}:', *(f'    {line}' for line in word.text.splitlines())]
        else:
            words.append(word)
    notes = {
        f'respawn after {process.respawn_delay:g} s': process.respawn,
        'the launch ends with it': process.ends_all,
    }
    lines += [f'  {note}' for note, shown in notes.items() if shown]
    return [f'{process.name}: {shlex.join(words)}', *lines]
