"""The command ``longreach``: finding subcommands, exit codes, one line for each error."""

from __future__ import annotations

import argparse
import subprocess
import sys
import types
from collections.abc import Callable
from importlib import metadata

import pytest

from longreach_dynamics.errors import InputError, LongreachError
from longreach_tools import cli

PROGRAM = [sys.executable, '-c', 'from longreach_tools.cli import console; console()']


class Point:
    """Stands for an entry point; remembers whether it was loaded."""

    def __init__(self, name: str, run: Callable[[argparse.Namespace], int | None]) -> None:
        self.name = name
        self.loaded = False
        self._run = run

    def load(self) -> types.ModuleType:
        self.loaded = True
        module = types.ModuleType(self.name, doc='What it does.\n\nMore about it.')

        def configure(parser: argparse.ArgumentParser) -> None:
            parser.add_argument('--count', type=int, default=1)
            parser.set_defaults(run=self._run)

        module.SUMMARY = f'summary of {self.name}'  # type: ignore[attr-defined]
        module.configure = configure  # type: ignore[attr-defined]
        return module


@pytest.fixture
def points(monkeypatch: pytest.MonkeyPatch) -> dict[str, Point]:
    def raising(error: BaseException) -> Callable[[argparse.Namespace], int]:
        def run(arguments: argparse.Namespace) -> int:
            raise error

        return run

    found = {
        'count': Point('count', lambda arguments: arguments.count),
        'nothing': Point('nothing', lambda _: None),
        'input': Point('input', raising(InputError('x = 3, allowed: 1 | 2'))),
        'failure': Point('failure', raising(LongreachError('it broke; try again'))),
        'system': Point('system', raising(OSError(28, 'No space left on device'))),
        'interrupt': Point('interrupt', raising(KeyboardInterrupt())),
        'mistake': Point('mistake', raising(ZeroDivisionError('a mistake in the program'))),
        'leaves': Point('leaves', raising(SystemExit(5))),
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
        (['count', '--count', '3'], 3, ''),
        (['count', '--count', '0'], 0, ''),
        (['nothing'], 0, ''),
        (['input'], 2, 'longreach input: x = 3, allowed: 1 | 2'),
        (['failure'], 1, 'longreach failure: it broke; try again'),
        (['system'], 1, 'longreach system: [Errno 28] No space left on device'),
        (['interrupt'], 130, ''),
        (['leaves'], 5, ''),
        (['fly'], 2, "longreach: no command 'fly'; allowed: count, failure, input,"),
        (
            ['count', '--count', 'x'],
            2,
            "longreach count: argument --count: invalid int value: 'x'",
        ),
        (['count', '--speed'], 2, 'longreach count: unrecognized arguments: --speed; see: '),
    ],
)
def test_exit_codes_and_errors(
    points: dict[str, Point],
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    code: int,
    error: str,
) -> None:
    assert cli.main(words) == code
    out, err = capsys.readouterr()
    assert out == ''
    assert err.startswith(error)
    assert len(err.splitlines()) == bool(error)


def test_a_mistake_in_a_program_is_not_hidden(points: dict[str, Point]) -> None:
    with pytest.raises(ZeroDivisionError, match='a mistake in the program'):
        cli.main(['mistake'])


def test_only_the_command_that_is_called_is_imported(points: dict[str, Point]) -> None:
    cli.main(['nothing'])
    assert [name for name, point in points.items() if point.loaded] == ['nothing']


@pytest.mark.parametrize('words', [[], ['--help'], ['-h']])
def test_overview(
    points: dict[str, Point], capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    assert cli.main(words) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == 'usage: longreach COMMAND ...'
    listed = [line.split(maxsplit=1) for line in lines if line.startswith('  ')]
    assert listed == [[name, f'summary of {name}'] for name in sorted(points)]


def test_help_of_a_command(points: dict[str, Point], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(['count', '--help']) == 0
    out = capsys.readouterr().out
    assert 'usage: longreach count [-h] [--count COUNT]' in out
    assert 'What it does.' in out


def test_the_installed_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(['--help']) == 0
    out = capsys.readouterr().out
    for name in ('bag', 'crane', 'launch'):
        assert f'\n  {name} ' in out
        assert cli.main([name, '--help']) == 0
        assert f'usage: longreach {name}' in capsys.readouterr().out


def test_a_reader_that_closes_early_is_no_error() -> None:
    with subprocess.Popen(
        [*PROGRAM, '--help'], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        errors = process.stderr.read()
    assert (process.returncode, errors) == (0, b'')


def test_the_process_passes_the_exit_code_on() -> None:
    done = subprocess.run([*PROGRAM, 'fly'], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("longreach: no command 'fly'")
