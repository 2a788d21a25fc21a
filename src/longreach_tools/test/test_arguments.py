"""Types of command-line arguments, and what demonstrations share."""

import argparse
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from longreach_dynamics.errors import InputError, LongreachError
from longreach_tools import demo
from longreach_tools.arguments import (
    count,
    finite,
    folder,
    names,
    not_negative,
    numbers,
    optional_file,
    positive,
    seed,
    sweep,
    whole,
)
from longreach_tools.demo import demonstrate, prepare, remove_old_bag


def test_numbers_are_read():
    assert finite('-1e3') == -1000.0
    assert positive('0.5') == 0.5
    assert not_negative('0') == 0.0
    assert count(10)('10') == 10
    assert seed('0') == 0
    assert numbers('-1,2e3') == (-1.0, 2000.0)
    assert sweep('-5:85:4').tolist() == [-5.0, 25.0, 55.0, 85.0]
    assert names('a,b_2') == ('a', 'b_2')
    assert optional_file('') is None
    assert optional_file('a/b') == Path('a/b')


@pytest.mark.parametrize(
    ('kind', 'text', 'allowed'),
    [
        (finite, 'inf', 'inf, allowed: finite numbers'),
        (finite, '1_0', '1_0, allowed: finite numbers'),
        (positive, '١٢', '١٢, allowed: finite numbers'),
        (not_negative, '90kg', "'90kg', allowed: finite numbers"),
        (positive, '', "'', allowed: finite numbers"),
        (positive, '0', '0, allowed: above 0'),
        (not_negative, '-1', '-1, allowed: 0 or more'),
        (seed, '-1', '-1, allowed: 0 or more'),
        (seed, 'x', 'x, allowed: 0 or more, whole numbers'),
        (whole, '2.5', "'2.5', allowed: whole numbers"),
        (folder, '', "'', allowed: the name of a folder"),
        (count(10), '0', '0, allowed: 1 to 10'),
        (count(10), '11', '11, allowed: 1 to 10'),
        (count(10), '1.5', '1.5, allowed: 1 to 10, whole numbers'),
        (numbers, '1,', "'1,', allowed: numbers separated by commas"),
        (names, 'a,,b', "'a,,b', allowed: names separated by commas"),
        (sweep, '1:2', "'1:2', allowed: START:STOP:COUNT such as"),
        (sweep, '0:1:100001', '100001, allowed: 1 to 100000'),
    ],
)
def test_others_are_refused(kind, text, allowed):
    with pytest.raises(argparse.ArgumentTypeError, match=allowed):
        kind(text)


def test_a_command_in_sight_may_end_in_peace():
    child = (
        'import signal, sys, time; '
        'signal.signal(signal.SIGTERM, lambda *_: (print("bye"), sys.exit(0))); '
        'print("ready", flush=True); time.sleep(60)'
    )
    code = (
        'import sys; from longreach_tools.demo import call_in_sight; '
        'from longreach_tools.cli import _leaving_on_signals\n'
        f'with _leaving_on_signals(): call_in_sight([sys.executable, "-c", {child!r}])'
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


def test_the_directory_of_a_demonstration(tmp_path, monkeypatch):
    for _ in range(2):
        assert prepare(tmp_path / 'a' / 'b') == tmp_path / 'a' / 'b'
    assert list((tmp_path / 'a' / 'b').iterdir()) == []
    (tmp_path / 'file').write_text('')
    for place in ('file', 'file/out', 'n' * 300):
        with pytest.raises(InputError, match=r'cannot be used: .*; give a writable'):
            prepare(tmp_path / place)
    # Where ROS is missing nothing is computed.
    monkeypatch.setattr('longreach_tools.demo.find_spec', lambda _: None)
    with pytest.raises(ModuleNotFoundError):
        prepare(tmp_path / 'c')
    assert not (tmp_path / 'c').exists()


def test_only_a_bag_is_removed(tmp_path):
    remove_old_bag(tmp_path / 'none')
    (tmp_path / 'letters').mkdir()
    letter = tmp_path / 'letters' / 'letter.txt'
    letter.write_text('dear')
    for other in (letter, letter.parent):
        with pytest.raises(InputError, match='is not a bag; move it away or choose another --out'):
            remove_old_bag(other)
    assert letter.exists()
    bag = tmp_path / 'bag'
    bag.mkdir()
    (bag / 'bag.mcap').write_bytes(b'')
    remove_old_bag(bag)
    assert not bag.exists()


CALLS = [('toy', 'compare', '{bag}', '--with', '{file}'), ('toy', 'draw', '{picture}')]


@pytest.mark.parametrize(('codes', 'calls'), [((0, 0, 0), 3), ((0, 3), 2), ((2,), 1)])
def test_a_demonstration_ends_where_something_fails(monkeypatch, tmp_path, capsys, codes, calls):
    called = []
    ends = iter(codes)

    def call(words):
        called.append(' '.join(words))
        return next(ends)

    monkeypatch.setattr(demo, 'call_in_sight', call)
    monkeypatch.chdir(tmp_path)
    out = tmp_path / 'out'
    advice = 'look at {bag} and {picture}, change {file}'
    given = (out, 'run', ('toy', 'duration:=1.0'), CALLS, advice)
    if calls == 1:
        with pytest.raises(LongreachError, match=r'^the launch ended with exit code 2; the lines'):
            demonstrate(*given, file=tmp_path / 'a{b}.yaml')
    else:
        assert demonstrate(*given, file=tmp_path / 'a{b}.yaml') == codes[-1]
    expected = [
        f'longreach launch toy duration:=1.0 record:={out}/run rviz:=false',
        f'longreach toy compare {out}/run --with a{{b}}.yaml',
        f'longreach toy draw {out}/run.png',
    ]
    assert called == expected[:calls]
    told = f'\n\nlook at {out}/run and {out}/run.png, change a{{b}}.yaml\n'
    assert (capsys.readouterr().out == told) is (calls == 3)
