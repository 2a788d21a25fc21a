"""Packages for tests of launch files."""

import pytest


@pytest.fixture
def prefix(tmp_path):
    """A prefix with the packages longreach_bringup and demo, which has the executable talk."""
    prefix = tmp_path / 'prefix'
    index = prefix / 'share' / 'ament_index' / 'resource_index' / 'packages'
    executable = prefix / 'lib' / 'demo' / 'talk'
    for directory in (index, executable.parent):
        directory.mkdir(parents=True)
    for name in ('demo', 'longreach_bringup'):
        (index / name).touch()
    executable.touch(0o755)
    return prefix
