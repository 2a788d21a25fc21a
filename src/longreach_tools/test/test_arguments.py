"""Types of command-line arguments, and what demonstrations share."""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from longreach_dynamics.errors import InputError
from longreach_tools.arguments import count, finite, not_negative, optional_file, positive
from longreach_tools.demo import call_in_sight, prepare, remove_old_bag


def test_numbers_are_read() -> None:
    assert finite('-1e3') == -1000.0
    assert positive('0.5') == 0.5
    assert not_negative('0') == 0.0
    assert count(10)('10') == 10
    assert optional_file('') is None
    assert optional_file('a/b') == Path('a/b')


@pytest.mark.parametrize(
    ('kind', 'text', 'allowed'),
    [
        (finite, 'inf', 'inf, allowed: finite numbers'),
        (finite, 'nan', 'nan, allowed: finite numbers'),
        (positive, '0', '0, allowed: above 0'),
        (positive, 'nan', 'nan, allowed: finite numbers'),
        (not_negative, '-1', '-1, allowed: 0 or more'),
        (count(10), '0', '0, allowed: 1 to 10'),
        (count(10), '11', '11, allowed: 1 to 10'),
    ],
)
def test_others_are_refused(kind, text: str, allowed: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match=allowed):
        kind(text)


@pytest.mark.parametrize(('kind', 'text'), [(finite, 'two'), (count(10), '1.5')])
def test_no_numbers_are_argparses_to_refuse(kind, text: str) -> None:
    with pytest.raises(ValueError):
        kind(text)


def test_commands_are_shown_and_called(capsys: pytest.CaptureFixture[str]) -> None:
    assert call_in_sight(['false', 'x']) == 1
    assert capsys.readouterr().out == '$ false x\n'


def test_a_command_in_sight_may_end_in_peace() -> None:
    child = (
        'import signal, sys, time; '
        'signal.signal(signal.SIGTERM, lambda *_: (print("bye"), sys.exit(0))); '
        'print("ready", flush=True); time.sleep(60)'
    )
    code = (
        'import sys; from longreach_tools.demo import call_in_sight; '
        'from longreach_tools.cli import _leaving_on_sigterm\n'
        f'with _leaving_on_sigterm(): call_in_sight([sys.executable, "-c", {child!r}])'
    )
    with subprocess.Popen(
        [sys.executable, '-c', code], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        while (line := process.stdout.readline()) != 'ready\n':
            assert line
        process.send_signal(signal.SIGTERM)
        rest = process.stdout.read()
    assert (process.returncode, rest) == (143, 'bye\n')


def test_the_directory_of_a_demonstration(tmp_path: Path) -> None:
    assert prepare(tmp_path / 'a' / 'b') == tmp_path / 'a' / 'b'
    assert prepare(tmp_path / 'a' / 'b').is_dir()
    assert list((tmp_path / 'a' / 'b').iterdir()) == []
    (tmp_path / 'file').write_text('')
    for place, error in (
        ('file', 'File exists'),
        ('file/out', 'Not a directory'),
        ('n' * 300, 'File name too long'),
    ):
        with pytest.raises(InputError, match=f'cannot be used: {error}; name a directory'):
            prepare(tmp_path / place)
    if os.geteuid():
        tmp_path.chmod(0o500)
        with pytest.raises(InputError, match='Permission denied'):
            prepare(tmp_path)


def test_only_a_bag_is_removed(tmp_path: Path) -> None:
    remove_old_bag(tmp_path / 'none')
    other = tmp_path / 'letters'
    other.mkdir()
    (other / 'letter.txt').write_text('dear')
    with pytest.raises(InputError, match='is no bag; move it away or choose another --out'):
        remove_old_bag(other)
    assert (other / 'letter.txt').exists()
    with pytest.raises(InputError, match='is no bag'):
        remove_old_bag(other / 'letter.txt')
    bag = tmp_path / 'bag'
    bag.mkdir()
    (bag / 'bag.mcap').write_bytes(b'')
    remove_old_bag(bag)
    assert not bag.exists()
