"""
Configuration of all tests: an isolated ROS environment, and the order of the test files.

The environment variables are set at import, because rclpy reads them when it starts, and because
every process that a test starts inherits them. A test that needs more isolation sets its own.
"""

from __future__ import annotations

import contextlib
import fcntl
import math
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
    # Domains above 101 use ports that the system also assigns dynamically.
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
# For tests that need a domain without nodes left by other tests of this process.
os.environ['LONGREACH_TEST_QUIET_DOMAIN'] = _free_domain()
os.environ['ROS_LOG_DIR'] = _LOGS
# Workers share the cores, where threads of BLAS wait for each other, busily.
os.environ['OPENBLAS_NUM_THREADS'] = '1'
os.environ['MPLBACKEND'] = 'Agg'
os.environ.pop('ROS_LOCALHOST_ONLY', None)

# Long files run first; otherwise a long one at the end would leave the other cores idle. Durations
# are those of the last run, or guessed from these [s] and from the tests' own time limits.
_DURATIONS = 'longreach/durations'
_LAUNCH_FILE, _TEST = 100.0, 0.3
_measured: dict[str, float] = {}


def pytest_configure(config: pytest.Config) -> None:
    """Disable the order of pytest-xdist, which begins with the file that has most tests."""
    if hasattr(config.option, 'loadscopereorder'):
        config.option.loadscopereorder = False


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Apply the marker ``slow_after`` before -m is evaluated, and put long files first."""
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
        limit = item.get_closest_marker('timeout')
        more = 0.1 * limit.args[0] if limit else _TEST
        guessed[_file(item)] = guessed.get(_file(item), first) + more
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
    """Return the file of a test, relative to the root of the tree."""
    return of.nodeid.partition('::')[0]


def pytest_unconfigure(config: pytest.Config) -> None:  # noqa: ARG001
    """Remove the logs of ROS."""
    shutil.rmtree(_LOGS, ignore_errors=True)


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let messages wait: a machine may stand still for longer than is usual."""
    monkeypatch.setattr('longreach_node.samples.STALE', math.inf)
