"""
The command ``longreach``.

Each subcommand is an entry point of the group ``longreach.commands``: a module with

``SUMMARY``
    one line for ``longreach --help``,
``configure(parser)``
    adds its arguments to an :class:`argparse.ArgumentParser` and calls
    ``parser.set_defaults(run=function)``; subcommands of its own may each set another ``run``,
``run(arguments)``
    does the work and returns the exit code, None for 0.

So a package adds a command without a change here. Only the module of the subcommand that is
called is imported. Bad input is an InputError (exit code 2), any other failure that the user can
know about a LongreachError (exit code 1); both are printed as one line, without a traceback.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import metadata

from longreach_dynamics.errors import InputError, LongreachError
from longreach_dynamics.resources import use_dds_profile

__all__ = ['main']

COMMAND_GROUP = 'longreach.commands'


class _Parser(argparse.ArgumentParser):
    """An argument parser whose errors are one line that names the way to the help."""

    def error(self, message: str) -> None:  # type: ignore[override]
        self.exit(2, f'{self.prog}: {message}; see: {self.prog} --help\n')


def main(arguments: Sequence[str] | None = None) -> int:
    """
    Run ``longreach`` and return its exit code: 0 done, 1 failed, 2 bad input, 130 interrupted.

    Parameters
    ----------
    arguments : sequence of str, optional
        What follows ``longreach``; the process's own arguments by default.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    commands = {point.name: point for point in metadata.entry_points(group=COMMAND_GROUP)}
    name = words[0] if words else '--help'
    if name in ('-h', '--help'):
        print(_overview(commands))
        return 0
    if name not in commands:
        allowed = ', '.join(sorted(commands))
        print(f'longreach: no command {name!r}; allowed: {allowed}', file=sys.stderr)
        return 2
    try:
        module = commands[name].load()
        parser = _Parser(prog=f'longreach {name}', description=module.__doc__.strip())
        parser.formatter_class = argparse.RawDescriptionHelpFormatter
        module.configure(parser)
        options = parser.parse_args(words[1:])
        return options.run(options) or 0
    except SystemExit as leaving:
        return leaving.code if isinstance(leaving.code, int) else 1
    except InputError as error:
        print(f'longreach {name}: {error}', file=sys.stderr)
        return 2
    except (LongreachError, OSError) as error:
        print(f'longreach {name}: {error}', file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def _overview(commands: dict[str, metadata.EntryPoint]) -> str:
    """Return the list of commands with their summaries."""
    lines = ['usage: longreach COMMAND ...', '', 'commands:']
    for name in sorted(commands):
        lines.append(f'  {name:<12}{commands[name].load().SUMMARY}')
    lines += ['', 'longreach COMMAND --help tells more.']
    return '\n'.join(lines)


def console() -> None:
    """Entry point of the console script; a reader that closes the pipe early is no error."""
    use_dds_profile()
    try:
        code = main()
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    sys.exit(code)
