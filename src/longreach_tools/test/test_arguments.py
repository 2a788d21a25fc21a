"""Types of command-line arguments, and what demonstrations share."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from longreach_dynamics.errors import InputError
from longreach_tools.arguments import count, finite, not_negative, optional_file, positive
from longreach_tools.demo import call_in_sight, remove_old_bag


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
