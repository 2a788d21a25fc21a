"""The command ``longreach``: finding subcommands, exit codes, one line for each error."""

import functools
import json
import os
import signal
import subprocess
import sys
import types
from importlib import metadata

import pytest

from longreach_dynamics.errors import InputError, LongreachError
from longreach_tools import cli
from longreach_tools.arguments import add_common
from longreach_tools.testing import Outcome

PROGRAM = [sys.executable, '-c', 'from longreach_tools.cli import console; console()']


class Point:
    """Stands for an entry point."""

    def __init__(self, name, run):
        self.name = name
        self.module = f'no_such_module_{name}'
        self._run = run

    def load(self):
        module = types.ModuleType(self.name, doc='What it does.\n\nMore about it.')

        def configure(parser):
            parser.add_argument('--count', type=int, default=1)
            parser.set_defaults(run=self._run)
            if self.name == 'outer':
                commands = parser.add_subparsers()
                commands.add_parser('inner').add_subparsers().add_parser('deepest')
                for name, level in (('high', 4), ('low', 5)):
                    add_common(commands.add_parser(name), '--level', level, type=int, help='code')
                wide = commands.add_parser('wide')
                wide.add_argument('--level', dest='count', type=len)
                add_common(wide, '--top-level', type=int)

        module.SUMMARY = f'summary of {self.name}'  # type: ignore[attr-defined]
        module.configure = configure  # type: ignore[attr-defined]
        return module


@pytest.fixture
def points(monkeypatch):
    def raising(error):
        def run(arguments):
            raise error

        return run

    found = {
        'count': Point('count', lambda arguments: arguments.count),
        'nothing': Point('nothing', lambda _: None),
        'input': Point('input', raising(InputError('x = 3, allowed: 1 | 2'))),
        'failure': Point('failure', raising(LongreachError('it broke; try again'))),
        'system': Point('system', raising(OSError(28, 'No space left on device'))),
        'interrupt': Point('interrupt', raising(KeyboardInterrupt())),
        'early': Point('early', raising(KeyboardInterrupt('no result'))),
        'mistake': Point('mistake', raising(ZeroDivisionError('a mistake in the program'))),
        'leaves': Point('leaves', raising(SystemExit(5))),
        'outer': Point('outer', lambda given: getattr(given, 'level', given.count)),
        'lines': Point('lines', raising(InputError('bad a  b:\n  in line 1\n\n  name another'))),
        'pipe': Point('pipe', raising(BrokenPipeError())),
        'ros': Point('ros', raising(ModuleNotFoundError(name='std_msgs.msg'))),
        'package': Point('package', raising(ModuleNotFoundError(name='cv2'))),
        'own': Point('own', raising(ModuleNotFoundError(name='longreach_gone.module'))),
    }
    monkeypatch.setattr(
        metadata,
        'entry_points',
        lambda group: list(found.values()) if 'longreach' in group else [],
    )
    return found


@pytest.mark.parametrize(
    ('words', 'code', 'error'),
    [
        ('count --count 3', 3, ''),
        ('nothing', 0, ''),
        ('input', 2, 'longreach input: x = 3, allowed: 1 | 2'),
        ('failure', 1, 'longreach failure: it broke; try again'),
        ('system', 1, 'longreach system: stdout: No space left on device'),
        ('interrupt', 130, ''),
        ('early', 130, 'longreach early: no result'),
        ('leaves', 5, ''),
        ('fly', 2, "longreach: no command 'fly'; allowed: count, early, failure, input,"),
        ('count --count x', 2, "longreach count: argument --count: invalid int value: 'x"),
        ('count --speed', 2, 'longreach count: unrecognized arguments: --speed; see: '),
        ('outer inner --speed', 2, 'longreach outer inner: unrecognized arguments: --spe'),
        ('outer --speed inner', 2, 'longreach outer: unrecognized arguments: --speed; see'),
        ('outer inner deepest a\nb', 2, 'longreach outer inner deepest: unrecognized arguments'),
        # An option that subcommands share, with defaults of their own, or have in another meaning.
        ('outer high', 4, ''),
        ('outer low', 5, ''),
        ('outer low --level 3', 3, ''),
        ('outer --level 3 low', 3, ''),
        ('outer --count 3 low --level=7', 7, ''),
        ('outer --count 3 inner deepest', 3, ''),
        ('outer wide --level four', 4, ''),
        ('outer --level 4 wide', 2, 'longreach outer: unrecognized arguments: --level; it belon'),
        ('outer --lev 4 low', 2, 'longreach outer: argument'),
        ('outer low --top-level 4', 2, 'longreach outer low: unrecognized arguments: --top-level'),
        ('outer low --lev 4', 2, 'longreach outer low: unrecognized arguments: --lev'),
        ('outer inner deepest --level 3', 2, 'longreach outer inner deepest: unrecognized argum'),
        ('outer --level 3 inner deepest', 2, 'longreach outer inner deepest: unrecognized argum'),
        ('outer low --level x', 2, "longreach outer: argument --level: invalid int value: 'x'"),
        ('ros', 1, 'longreach ros: this needs ROS 2 (std_msgs.msg was not found); source'),
        ('package', 1, 'longreach package: this needs the Python package opencv-contrib-python'),
        ('lines', 2, 'longreach lines: bad a  b: in line 1 name another\n'),
    ],
)
def test_exit_codes_and_errors(points, capsys, words, code, error):
    assert cli.main(words.split(' ')) == code
    out, err = capsys.readouterr()
    assert out == ''
    assert err.startswith(error)
    assert len(err.splitlines()) == bool(error)


@pytest.mark.parametrize(
    ('name', 'error'),
    [('mistake', ZeroDivisionError), ('pipe', BrokenPipeError), ('own', ModuleNotFoundError)],
)
def test_a_mistake_and_a_lost_reader_are_not_hidden(points, name, error):
    with pytest.raises(error):
        cli.main([name])


@pytest.mark.parametrize('words', [['bag', 'play', 'x'], ['crane', 'pause'], ['launch', 'crane']])
def test_command_that_talks_to_nodes_refuses_a_wrong_domain(monkeypatch, capsys, words):
    monkeypatch.setenv('ROS_DOMAIN_ID', 'abc')
    Outcome(capsys, *words).refused('ROS_DOMAIN_ID = abc, allowed: whole numbers')


@pytest.mark.parametrize('words', [[], ['--help'], ['-h']])
def test_overview(points, capsys, words):
    assert cli.main(words) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == 'usage: longreach COMMAND ...'
    listed = [line.split(maxsplit=1) for line in lines if line.startswith('  ')]
    assert listed == [[name, f'summary of {name}'] for name in sorted(points)]


def test_the_help_of_a_subcommand_has_what_it_shares(points, capsys):
    for name, shared in ('low', True), ('wide', False):
        assert cli.main(['outer', name, '--help']) == 0
        text = capsys.readouterr().out
        assert ('code' in text) is shared
        assert text.startswith(f'usage: longreach outer {name} [OPTION ...]\n')


def test_version(capsys):
    cli.main(['--version'])
    assert capsys.readouterr().out == f'longreach {metadata.version("longreach_tools")}\n'


def imported_by(*words):
    """Return the modules that `longreach WORDS` has imported at its end."""
    code = (
        'import json, sys; from longreach_tools import cli; cli.main(sys.argv[1:]); '
        'print("\\n" + json.dumps(sorted(sys.modules)))'
    )
    done = subprocess.run(
        [sys.executable, '-c', code, *words], capture_output=True, text=True, check=True
    )
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_overview_imports_no_command():
    modules = imported_by('--help')
    commands = {point.module for point in metadata.entry_points(group=cli.COMMAND_GROUP)}
    assert len(commands) >= 5
    assert not modules & {*commands, 'numpy', 'numba', 'scipy', 'yaml', 'rclpy', 'matplotlib'}


# What takes longer to import than the rest of a command; scipy.special is light.
HEAVY = {
    *('matplotlib', 'rclpy', 'rosbags', 'sympy'),
    *('scipy.integrate', 'scipy.interpolate', 'scipy.optimize', 'scipy.signal', 'scipy.stats'),
}


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(
    'name',
    ['animate', 'bag', 'boom', 'crane', 'excavator', 'launch', 'plot', 'symbolic', 'vision'],
)
def test_command_imports_no_more_than_it_needs(name):
    found = imported_by(name, '--help')
    assert not found & HEAVY
    assert name != 'launch' or not found & {'asyncio', 'numpy', 'yaml'}


def test_summary_that_is_no_literal(tmp_path, monkeypatch):
    (tmp_path / 'made_up_command.py').write_text("SUMMARY = 'one' + ' line'\n")
    monkeypatch.syspath_prepend(tmp_path)
    point = metadata.EntryPoint('made-up', 'made_up_command', cli.COMMAND_GROUP)
    assert cli._summary(point) == 'one line'
    (tmp_path / 'made_up_failure.py').write_text('import made_up_nothing\n')
    failing = metadata.EntryPoint('failing', 'made_up_failure:SPEC', 'longreach.machines')
    assert cli._summary(failing) == "cannot be imported: No module named 'made_up_nothing'"


# A command that does what its arguments say.
COMMAND = """
import contextlib, ctypes, os, signal, sys, time, types
from importlib import metadata
from pathlib import Path
from longreach_dynamics.errors import InputError
from longreach_tools import cli
from longreach_tools.output import writing

# Ignored where the tests run in the background of a shell.
signal.signal(signal.SIGINT, signal.default_int_handler)

def run(arguments):
    match arguments.deed:
        case 'prints':
            for _ in range(10_000):
                print('a line')
            return arguments.code
        case 'fails':
            raise InputError('a mistake')
        case 'writes':
            with writing(arguments.file):
                print('ready', flush=True)
                time.sleep(60)
        case 'opens':
            with Path(arguments.file).open('w') as stream:
                os.system('echo of a child')
                print('to stdout', flush=True)
                stream.write(str(stream.fileno()))
            return arguments.code
        case 'calls back':
            def interrupted():
                signal.raise_signal(getattr(signal, arguments.file))
            with contextlib.suppress(ValueError):
                try:
                    ctypes.CFUNCTYPE(None)(interrupted)()
                    time.sleep(60)
                finally:
                    print('cleaned', flush=True)
        case 'wraps':
            error = SystemExit(143)
            for _ in range(4):
                wrapper = SystemError('returned a result with an exception set')
                wrapper.__cause__, error = error, wrapper
            raise error
        case 'handles':
            signal.signal(signal.SIGTERM, signal.SIG_IGN)

def configure(parser):
    parser.add_argument('deed')
    parser.add_argument('--code', type=int, default=0)
    parser.add_argument('--file', type=str)
    parser.set_defaults(run=run)

module = types.ModuleType('do', 'Do it.')
module.configure = configure
point = types.SimpleNamespace(name='do', load=lambda: module)
metadata.entry_points = lambda group: [point]
try:
    cli.console()
finally:
    if 'handles' in sys.argv:
        os.kill(os.getpid(), signal.SIGTERM)
"""


def do(*words, redirect='', unbuffered=''):
    """Run ``longreach do``, redirected as a shell does it."""
    return subprocess.run(
        ['bash', '-c', f'"$@" {redirect}', 'sh', sys.executable, '-c', COMMAND, 'do']
        + [str(word) for word in words],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={**os.environ, 'PYTHONUNBUFFERED': unbuffered},
    )


@pytest.mark.parametrize('unbuffered', ['', '1'])
@pytest.mark.parametrize(
    ('deed', 'redirect', 'code', 'error'),
    [
        # A closed stream hides what is printed, but not the exit code.
        ('prints', '>&-', 0, ''),
        ('fails', '2>&-', 2, ''),
        ('fails', '<&- >&- 2>&-', 2, ''),
        # A reader that leaves early is no error.
        ('prints', '| true; exit ${PIPESTATUS[0]}', 0, ''),
        ('prints', '| head -1 >&2; exit ${PIPESTATUS[0]}', 0, 'a line'),
        ('fails', '2>&1 | sleep 0; exit ${PIPESTATUS[0]}', 2, ''),
        # What cannot be written is one.
        ('prints', '1<"/dev/null"', 1, 'Bad file descriptor'),
        ('prints', '>/dev/full', 1, 'No space left on device'),
    ],
)
def test_streams_that_are_closed_or_full(deed, redirect, code, error, unbuffered):
    done = do(deed, redirect=redirect, unbuffered=unbuffered)
    assert (done.returncode, done.stdout) == (code, '')
    assert done.stderr.endswith(f'{error}\n') if error else not done.stderr
    assert len(done.stderr.splitlines()) <= 1


def test_a_file_does_not_become_a_closed_stdout(tmp_path):
    done = do('opens', '--code', 3, '--file', tmp_path / 'file', redirect='>&-')
    assert (done.returncode, done.stdout, done.stderr) == (3, '', '')
    assert int((tmp_path / 'file').read_text()) > 2


def test_ctrl_c_during_the_exit_prints_no_traceback():
    late = 'import atexit, os, signal; atexit.register(os.kill, os.getpid(), signal.SIGINT); '
    command = [sys.executable, '-c', late + PROGRAM[-1], '--help']
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, '')


@pytest.mark.parametrize('number', [signal.SIGTERM, signal.SIGHUP])
def test_signals_end_a_command_and_remove_what_is_half_done(tmp_path, number):
    with subprocess.Popen(
        [sys.executable, '-c', COMMAND, 'do', 'writes', '--file', str(tmp_path / 'a.csv')],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # nohup and some services ignore SIGHUP, which processes inherit.
        preexec_fn=functools.partial(signal.signal, number, signal.SIG_DFL),
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == 'ready\n'
        assert len(list(tmp_path.iterdir())) == 1
        process.send_signal(number)
        assert process.stderr.read() == ''
    assert process.returncode == 128 + number
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ('words', 'code', 'printed'),
    [
        # A signal that a callback swallows comes again.
        (['calls back', '--file', 'SIGTERM'], 143, 'cleaned\n'),
        (['calls back', '--file', 'SIGINT'], 130, 'cleaned\n'),
        # An end that compiled code has wrapped, and a handler that a command sets.
        (['wraps'], 143, ''),
        (['handles'], 0, ''),
    ],
)
def test_signals(words, code, printed):
    done = do(*words)
    assert (done.returncode, done.stdout, done.stderr) == (code, printed, '')


@pytest.mark.parametrize(
    ('line', 'expected'),
    [
        ('longreach exc', ['excavator']),
        ('longreach crane c13r --task ', ['a', 'b', 'c']),
        ('longreach crane run --form', ['--format']),
    ],
)
def test_a_shell_completes_commands_and_options(tmp_path, line, expected):
    """What argcomplete's shell function asks for, in a file in place of descriptor 8."""
    words = {'COMP_LINE': line, 'COMP_POINT': str(len(line)), 'COMP_TYPE': '9'}
    words |= {'_ARGCOMPLETE': '1', '_ARGCOMPLETE_SUPPRESS_SPACE': '1'}
    file = tmp_path / 'found'
    words |= {'_ARGCOMPLETE_STDOUT_FILENAME': str(file), '_ARGCOMPLETE_IFS': ' '}
    subprocess.run(PROGRAM, env=os.environ | words, check=True)
    assert file.read_text().split() == expected
