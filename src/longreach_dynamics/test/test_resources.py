"""Installed files are found by the environment alone."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from longreach_dynamics.errors import InputError, LongreachError
from longreach_dynamics.resources import share_directory


def test_first_prefix_that_has_the_package_wins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ('a', 'b', 'c'):
        (tmp_path / name).mkdir()
    for name in ('b', 'c'):
        (tmp_path / name / 'share' / 'crane').mkdir(parents=True)
    prefixes = [str(tmp_path / name) for name in ('missing', 'a', 'b', 'c')]
    monkeypatch.setenv('AMENT_PREFIX_PATH', os.pathsep.join(prefixes))
    assert share_directory('crane') == tmp_path / 'b' / 'share' / 'crane'


def test_a_file_of_that_name_is_no_share_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / 'share').mkdir()
    (tmp_path / 'share' / 'crane').write_text('')
    monkeypatch.setenv('AMENT_PREFIX_PATH', str(tmp_path))
    with pytest.raises(InputError, match='package crane was not found in AMENT_PREFIX_PATH'):
        share_directory('crane')


@pytest.mark.parametrize('value', [None, '', ':'])
def test_no_environment_is_an_error_that_tells_what_to_do(
    value: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if value is None:
        monkeypatch.delenv('AMENT_PREFIX_PATH', raising=False)
    else:
        monkeypatch.setenv('AMENT_PREFIX_PATH', value)
    # An empty entry must not stand for the root directory.
    with pytest.raises(InputError, match=r'source install/setup\.bash'):
        share_directory('bin')


def test_input_errors_are_caught_as_either_kind() -> None:
    assert issubclass(InputError, LongreachError)
    assert issubclass(InputError, ValueError)
