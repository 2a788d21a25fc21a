"""Installed files are found by the environment alone."""

import os
import sys

import pytest

from longreach_dynamics.errors import InputError, LongreachError
from longreach_dynamics.resources import data_directory, open_text, share_directory


def test_first_prefix_that_has_the_package_wins(tmp_path, monkeypatch):
    (tmp_path / 'a').mkdir()
    for name in ('b', 'c'):
        (tmp_path / name / 'share' / 'crane').mkdir(parents=True)
    prefixes = [str(tmp_path / name) for name in ('missing', 'a', 'b', 'c')]
    monkeypatch.setenv('AMENT_PREFIX_PATH', os.pathsep.join(prefixes))
    assert share_directory('crane') == tmp_path / 'b' / 'share' / 'crane'


@pytest.mark.parametrize('value', [None, '', ':'])
def test_no_environment_is_an_error_that_tells_what_to_do(value, monkeypatch):
    if value is None:
        monkeypatch.delenv('AMENT_PREFIX_PATH', raising=False)
    else:
        monkeypatch.setenv('AMENT_PREFIX_PATH', value)
    # An empty entry must not stand for the root directory.
    with pytest.raises(InputError, match=r'source install/setup\.bash'):
        share_directory('bin')


@pytest.mark.parametrize('place', ['arm/config', 'config'])
def test_data_are_found_inside_a_package_or_beside_it(tmp_path, monkeypatch, place):
    monkeypatch.delenv('AMENT_PREFIX_PATH', raising=False)
    source = tmp_path / 'source'
    (source / 'arm').mkdir(parents=True)
    (source / 'arm' / '__init__.py').touch()
    (source / place).mkdir()
    # A build with links: beside the link there is no data.
    (tmp_path / 'build').mkdir()
    (tmp_path / 'build' / 'arm').symlink_to(source / 'arm')
    monkeypatch.syspath_prepend(str(tmp_path / 'build'))
    monkeypatch.delitem(sys.modules, 'arm', raising=False)
    assert (data_directory('arm') / 'config').samefile(source / place)
    monkeypatch.delitem(sys.modules, 'arm')


def test_a_package_without_data_or_unknown_is_named():
    for package in ('longreach_dynamics', 'longreach_nowhere'):
        with pytest.raises(InputError, match=f'data of package {package} were not found'):
            data_directory(package)


def test_a_missing_file_is_told_with_those_that_are_there(tmp_path):
    for name in ('task_c.yaml', 'task_b.yaml', 'notes.txt'):
        (tmp_path / name).touch()

    def check(name, error):
        with pytest.raises(InputError, match=error), open_text(tmp_path / name):
            pass

    check('foo.yaml', r'foo\.yaml cannot be read: No such.*; in that directory are task_b\.yaml')
    check('foo.csv', r'No such file or directory$')
    for k in range(30):
        (tmp_path / f'wave_{k}.yaml').touch()
    check('foo.yaml', r', wave_\d+\.yaml and 12 more$')


@pytest.mark.parametrize('kind', [InputError, LongreachError])
def test_a_long_name_in_an_error_is_shortened(kind):
    text = str(kind(f'no joint {"x" * 1_000_000}, allowed: boom, stick'))
    assert len(text) < 2100
    assert text.startswith('no joint xxx')
    assert text.endswith('xxx, allowed: boom, stick')
    assert ' characters left out) ... ' in text
    assert str(kind('y' * 2000)) == 'y' * 2000


def test_a_pipe_without_a_writer_is_empty(tmp_path):
    os.mkfifo(tmp_path / 'pipe')
    with open_text(tmp_path / 'pipe') as stream:
        assert stream.read() == ''
