"""
The command ``longreach``.

Each subcommand is an entry point of the group ``longreach.commands``: a module with

``SUMMARY``
    one line for ``longreach --help``; a literal, because the module is not imported for the help,
``configure(parser)``
    adds its arguments to an :class:`argparse.ArgumentParser` and calls
    ``parser.set_defaults(run=function)``; nested subcommands may each set another ``run``,
``run(arguments)``
    runs the command and returns the exit code, None for 0.

Options are in groups; what :data:`longreach_tools.arguments.VOCABULARY` has of one is not given.
A command that talks to nodes has ``--network``; if it sometimes does not, its default ``offline``
is a function that tells this from the arguments. It finds nodes on this computer only, unless that
option or the user's environment says otherwise.

A machine is an object of the group ``longreach.machines``, see
:mod:`longreach_tools.machine_command`.

Only the module of the called subcommand is imported. Bad input is an InputError (exit code 2), any
other expected failure a LongreachError (exit code 1); both are printed as one line, without a
traceback. SIGTERM and SIGHUP end a command as Ctrl-C does, so that ``finally`` removes incomplete
results; a command that waits for signals sets its own handlers.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import functools
import inspect
import os
import re
import signal
import sys
import warnings
from collections.abc import Iterator, Sequence
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TextIO

from longreach_dynamics.errors import InputError, LongreachError, unwrapped
from longreach_node.middleware import check_middleware, limit_discovery, use_dds_profile
from longreach_tools.arguments import VOCABULARY, name_of, with_vocabulary

COMMAND_GROUP = 'longreach.commands'
# As longreach_machine.MACHINE_GROUP, whose import takes time.
MACHINE_GROUP = 'longreach.machines'

_SUMMARY = re.compile(r"""^(?:SUMMARY|    summary) = ('[^'\n]*'|"[^"\n]*")$""", re.MULTILINE)

# Python packages that come with ROS.
_OF_ROS = re.compile(r'rclpy|launch|ament_index_python|rosidl_\w+|\w+_(msgs|srvs|interfaces)')
# Imported by another name than pip installs it by.
_INSTALLED_AS = {'cv2': 'opencv-contrib-python-headless', 'yaml': 'pyyaml', 'PIL': 'pillow'}

_ENDING = signal.SIGTERM, signal.SIGHUP
# Delay before an exit that a callback has discarded is requested again [s].
_AGAIN = 0.02


class _Help(argparse.HelpFormatter):
    """Help whose usage has what must be given; the groups below have all options."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        # Docstrings of commands have lines of their own.
        return text if '\n' in text else super()._fill_text(text, width, indent)

    def add_usage(self, usage: Any, actions: Any, groups: Any, prefix: Any = None) -> None:
        # With a prefix it is for the names of subcommands.
        if prefix is None:
            needed = [action for action in actions if action.required or not action.option_strings]
            actions = [argparse.Action([], 'options', '*', metavar='OPTION'), *needed]
        super().add_usage(usage, actions, groups, prefix)


class _Vocabulary(argparse.ArgumentParser):
    """A parser whose options are in groups, with what the vocabulary says of them."""

    def __init__(self, *words: Any, **keywords: Any) -> None:
        super().__init__(*words, **keywords)
        self.formatter_class = _Help
        for purpose in VOCABULARY:
            self.add_argument_group(purpose)

    def add_argument(self, *flags: str, **words: Any) -> argparse.Action:
        return super().add_argument(*flags, **with_vocabulary(flags, words))

    def group_of(self, action: argparse.Action) -> argparse._ArgumentGroup:
        """Return the group of an option."""
        purpose = name_of(action.option_strings)[1] or self._optionals.title
        return next(group for group in self._action_groups if group.title == purpose)

    def _add_action(self, action: Any) -> Any:
        if not action.option_strings:
            return super()._add_action(action)
        return self.group_of(action)._add_action(action)


class _Parser(_Vocabulary):
    """A parser of a command: it reports an error in one line, with the command for the help."""

    def __init__(self, *words: Any, **keywords: Any) -> None:
        super().__init__(*words, **keywords)
        self.command, self.given = self, argparse.Namespace()
        # Values may begin like options: --pose -5,0,0,0. argparse accepts only single numbers.
        self._negative_number_matcher = re.compile(r'^-[\d.][\d.,:eE+-]*$')

    def error(self, message: str) -> None:  # type: ignore[override]
        _complain(f'{self.prog}: {message}; see: {self.prog} --help')
        self.exit(2)

    def add_subparsers(self, **keywords: Any) -> Any:
        """Add subcommands, whose errors refer to their own help."""
        # An abbreviation before a subcommand would be lost to its defaults.
        self.allow_abbrev = False
        kind: Any = functools.partial(_Subcommand, self.command)
        return super().add_subparsers(parser_class=kind, **keywords)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        if self.command is self and self._subparsers:
            # Options of add_common also stand behind a subcommand, unless it has another one.
            inner: Any = self._subparsers._group_actions[0].choices
            called = next((inner[word] for word in args if word in inner), None)
            own = {'-h', *(called._option_string_actions if called else ())}
            common = _Parser(prog=self.prog, add_help=False, allow_abbrev=False)
            for action in self._actions:
                if action.default == argparse.SUPPRESS and own.isdisjoint(action.option_strings):
                    common._add_action(action)
            self.given, args = common.parse_known_args(args)
            if args and args[0].partition('=')[0] in own - {'-h', '--help'}:
                self.error(f'unrecognized arguments: {args[0]}; it belongs behind the subcommand')
        return super().parse_known_args(args, namespace)


class _Subcommand(_Parser):
    """The parser of a subcommand; argparse passes unknown arguments to the outer parser."""

    def __init__(self, command: _Parser, **keywords: Any) -> None:
        super().__init__(**keywords)
        self.command = command

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        given = vars(self.command.given)
        namespace = namespace or argparse.Namespace(**given)
        options, unknown = super().parse_known_args(args, namespace)
        if not self._subparsers:
            names = (name.replace('_', '-') for name in given if name not in self._defaults)
            unknown += [f'--{name}' for name in names]
        if unknown:
            self.error(f'unrecognized arguments: {" ".join(unknown)}')
        return options, unknown


def main(arguments: Sequence[str] | None = None) -> int:
    """
    Run ``longreach`` with some arguments, by default the process's, and return its exit code.

    0, or 1 failure, 2 bad input, 130 interrupted, 143 SIGTERM, 129 SIGHUP; BrokenPipeError.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    commands = {
        point.name: point
        for group in (COMMAND_GROUP, MACHINE_GROUP)
        for point in metadata.entry_points(group=group)
    }
    if '_ARGCOMPLETE' in os.environ:
        _complete(commands)
    name = words[0] if words else '--help'
    if name in ('-h', '--help'):
        print(_overview(commands))
        return 0
    if name == '--version':
        # What is installed, Longreach as one or its packages, has this command.
        print('longreach', getattr(commands['new'].dist, 'version', 'of unknown version'))
        return 0
    if name not in commands:
        allowed = ', '.join(sorted(commands))
        _complain(f'longreach: no command {name!r}; allowed: {allowed}')
        return 2
    try:
        parser = _Parser(prog=f'longreach {name}')
        _configure(commands[name], parser)
        options = parser.parse_args(words[1:])
        # Only commands that talk to nodes have it, and not all of them always do.
        offline = getattr(options, 'offline', None)
        if 'network' in options and not (offline and offline(options)):
            if find_spec('rclpy') is None:
                raise ModuleNotFoundError(name='rclpy')
            check_middleware()
            note = limit_discovery(options.network)
            if note:
                _complain(f'longreach {name}: {note}')
        return options.run(options) or 0
    except InputError as error:
        _complain(f'longreach {name}: {error}')
        return 2
    except BrokenPipeError:
        raise
    except LongreachError as error:
        _complain(f'longreach {name}: {error}')
        return 1
    except ModuleNotFoundError as error:
        package = (error.name or 'longreach_').partition('.')[0]
        if package.startswith('longreach_'):
            raise
        if _OF_ROS.fullmatch(package):
            needed = f'ROS 2 ({error.name} was not found); source install/setup.bash of a'
            needed += ' workspace built by make, or your ROS 2'
        else:
            needed = f'the Python package {_INSTALLED_AS.get(package, package)}; install it, or'
            needed += " Longreach with everything, in its source folder: pip install '.[all]'"
        _complain(f'longreach {name}: this needs {needed}')
        return 1
    except OSError as error:
        # Commands name the files that they open; an error without a name comes from printing.
        _complain(f'longreach {name}: {error.filename or "stdout"}: {error.strerror or error}')
        return 1
    except (KeyboardInterrupt, SystemExit, SystemError) as error:
        cause = unwrapped(error)
        if isinstance(cause, KeyboardInterrupt):
            # Of Ctrl-C itself there is no text.
            if str(cause):
                _complain(f'longreach {name}: {cause}')
            return 130
        if isinstance(cause, SystemExit):
            return cause.code if isinstance(cause.code, int) else 1
        raise


def _configure(point: metadata.EntryPoint, parser: argparse.ArgumentParser) -> None:
    """Add description and arguments of a command or a machine to a parser."""
    command = point.load()
    parser.description = inspect.getdoc(command)
    if hasattr(command, 'configure'):
        command.configure(parser)
    else:
        from longreach_tools.machine_command import configure

        configure(command, parser)


def _complete(commands: dict[str, metadata.EntryPoint]) -> None:
    """Complete the line of a shell, for register-python-argcomplete; does not return."""
    import argcomplete

    parser = _Vocabulary(prog='longreach')
    found = parser.add_subparsers()
    typed = os.environ.get('COMP_LINE', '').split()
    for name, point in commands.items():
        command = found.add_parser(name)
        # Only the module of the command in the line is imported.
        if name in typed[1:2]:
            _configure(point, command)
    argcomplete.autocomplete(parser)


def _overview(commands: dict[str, metadata.EntryPoint]) -> str:
    """Return the list of commands with their summaries."""
    lines = ['usage: longreach COMMAND ...', '', 'commands:']
    for name in sorted(commands):
        lines.append(f'  {name:<12}{_summary(commands[name])}')
    lines += ['', 'longreach COMMAND --help shows its options, longreach --version the version.']
    return '\n'.join(lines)


def _summary(command: metadata.EntryPoint) -> str:
    """Return SUMMARY of a command, from the module's source where that is possible."""
    # Importing all commands takes seconds; finding a module imports the packages above it.
    package, *rest = command.module.split('.')
    spec = find_spec(package)
    for place in (spec and spec.submodule_search_locations) or ():
        file = Path(place, *rest).with_suffix('.py')
        found = _SUMMARY.search(file.read_text(encoding='utf-8')) if file.is_file() else None
        if found:
            return str(ast.literal_eval(found[1]))
    try:
        loaded = command.load()
    except Exception as error:  # noqa: BLE001
        # Of a user's package, beside which all others work.
        return f'cannot be imported: {" ".join(str(error).split())}'
    return str(getattr(loaded, 'SUMMARY', '') or loaded.summary)


def _complain(message: str) -> None:
    """Print an error on stderr as one line; ignore a closed stderr."""
    line = ' '.join(filter(None, map(str.strip, message.splitlines())))
    try:
        print(line, file=sys.stderr, flush=True)
    except OSError:
        _give_up(sys.stderr)


def console() -> None:
    """Run the console script; a pipe closed early by its reader is not an error."""
    _open_closed_streams()
    # A line for users, without the place in the code.
    warnings.showwarning = lambda message, *_, **__: _complain(f'longreach: {message}')
    use_dds_profile()
    code = 0
    with _leaving_on_signals():
        try:
            code = main()
            sys.stdout.flush()
        except BrokenPipeError:
            _give_up(sys.stdout)
        except OSError as error:
            _complain(f'longreach: stdout: {error.strerror}')
            _give_up(sys.stdout)
            code = code or 1
        # What is left is the interpreter's exit, where a second Ctrl-C only prints tracebacks.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.exit(code)


def _open_closed_streams() -> None:
    """Connect standard streams that the caller closed to the null device, not to files."""
    for name, mode in (('stdin', 'r'), ('stdout', 'w'), ('stderr', 'w')):
        if getattr(sys, name) is None:
            # The lowest free descriptor is that of the closed stream.
            stream = Path(os.devnull).open(mode)  # noqa: SIM115
            os.set_inheritable(stream.fileno(), True)
            setattr(sys, name, stream)


def _give_up(stream: TextIO) -> None:
    """Send buffered output to the null device; flushing it at exit would fail."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, stream.fileno())
    os.close(null)


@contextlib.contextmanager
def _leaving_on_signals() -> Iterator[None]:
    """Turn SIGTERM and SIGHUP into SystemExit, unless they have handlers or are ignored."""

    def leave(number: int, _: object) -> None:
        # A second signal must not interrupt the clean-up.
        signal.signal(number, signal.SIG_IGN)
        raise SystemExit(128 + number)

    numbers = [n for n in _ENDING if signal.getsignal(n) is signal.SIG_DFL]
    for number in numbers:
        signal.signal(number, leave)
    try:
        with _leaving_callbacks() if numbers else contextlib.nullcontext():
            yield
    finally:
        for number in numbers:
            if signal.getsignal(number) is leave:
                signal.signal(number, signal.SIG_DFL)


@contextlib.contextmanager
def _leaving_callbacks() -> Iterator[None]:
    """Repeat a SystemExit or KeyboardInterrupt that a callback from compiled code has dropped."""
    # Such callbacks, for example of numba's compiler, only report exceptions.
    report = sys.unraisablehook
    swallowed: list[BaseException] = []

    def notice(lost: sys.UnraisableHookArgs) -> None:
        if isinstance(lost.exc_value, SystemExit | KeyboardInterrupt):
            swallowed.append(lost.exc_value)
            signal.setitimer(signal.ITIMER_REAL, _AGAIN)
        else:
            report(lost)

    def leave(*_: object) -> None:
        raise swallowed[-1].with_traceback(None)

    handler = signal.signal(signal.SIGALRM, leave)
    sys.unraisablehook = notice
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        sys.unraisablehook = report
        signal.signal(signal.SIGALRM, handler)


# --- commands that run until they are stopped -----------------------------------------------


class StopSignals:
    """True once SIGINT, SIGTERM or SIGHUP came; the handlers stay until the process ends."""

    def __init__(self) -> None:
        self._came = False
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._note)

    def _note(self, *_: object) -> None:
        """Handle a signal."""
        self._came = True

    def __call__(self) -> bool:
        """Return whether one has been received."""
        return self._came


def say(line: str) -> None:
    """Print a line on stderr; a closed terminal ends nothing."""
    with contextlib.suppress(OSError):
        print(line, file=sys.stderr, flush=True)
