"""
What all tests of the tree share: ROS that cannot be seen from outside this run.

Set here, at import, because rclpy reads these variables when it starts, and because every process
that a test starts inherits them. A test that needs more isolation sets its own.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from pathlib import Path
from typing import TextIO

import pytest

_LOGS = tempfile.mkdtemp(prefix='longreach-test-')
# Locks of the domains, held until this process ends.
_LOCKS: list[TextIO] = []


def _free_domain() -> str:
    """Return a ROS domain that no other test run or worker of this machine uses."""
    # Domains above 101 take ports that the system hands out to others.
    for step in range(101):
        domain = 1 + (os.getpid() + step) % 101
        with contextlib.suppress(OSError):
            lock = (Path(tempfile.gettempdir()) / f'longreach-test-domain-{domain}').open('w')
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _LOCKS.append(lock)
            return str(domain)
    raise RuntimeError('all ROS domains from 1 to 101 are in use by tests; end some of them')


os.environ['ROS_AUTOMATIC_DISCOVERY_RANGE'] = 'LOCALHOST'
os.environ['ROS_DOMAIN_ID'] = _free_domain()
# For tests that want one without what others of this process have left.
os.environ['LONGREACH_TEST_QUIET_DOMAIN'] = _free_domain()
os.environ['ROS_LOG_DIR'] = _LOGS
os.environ['MPLBACKEND'] = 'Agg'
os.environ.pop('ROS_LOCALHOST_ONLY', None)

# Long files are begun first: one at the end would let all cores but its own wait. How long a file
# takes is known from the last run; of files that have not run yet it is guessed by these [s].
_DURATIONS = 'longreach/durations'
_LAUNCH_FILE, _TEST = 100.0, 0.3
_measured: dict[str, float] = {}


def pytest_configure(config: pytest.Config) -> None:
    """Leave the order of files to this file: pytest-xdist would begin with the most tests."""
    if hasattr(config.option, 'loadscopereorder'):
        config.option.loadscopereorder = False


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what ``slow_after`` says, before -m looks at marks, and put long files first."""
    seen: dict[str, int] = {}
    for item in items:
        for mark in item.iter_markers('slow_after'):
            name = item.nodeid.partition('[')[0]
            seen[name] = seen.get(name, 0) + 1
            if seen[name] > mark.args[0]:
                item.add_marker(pytest.mark.slow)
    cache = getattr(config, 'cache', None)
    known = (cache.get(_DURATIONS, {}) if cache else {}) or {}
    guessed: dict[str, float] = {}
    for item in items:
        first = _LAUNCH_FILE * item.path.stem.endswith('_launch')
        guessed[_file(item)] = guessed.get(_file(item), first) + _TEST
    items.sort(key=lambda item: (-known.get(_file(item), guessed[_file(item)]), _file(item)))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Add up how long each file takes; pytest-xdist's main process gets all reports."""
    _measured[_file(report)] = _measured.get(_file(report), 0.0) + report.duration


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Keep the durations for the next run."""
    cache = getattr(session.config, 'cache', None)
    if cache and not hasattr(session.config, 'workerinput'):
        cache.set(_DURATIONS, (cache.get(_DURATIONS, {}) or {}) | _measured)


def _file(of: pytest.Item | pytest.TestReport) -> str:
    """Return the file of a test, from the root of the tree."""
    return of.nodeid.partition('::')[0]


def pytest_unconfigure(config: pytest.Config) -> None:  # noqa: ARG001
    """Remove the logs that ROS has written."""
    shutil.rmtree(_LOGS, ignore_errors=True)
