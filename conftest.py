"""
What all tests of the tree share: ROS that cannot be seen from outside this run.

Set here, at import, because rclpy reads these variables when it starts, and because every process
that a test starts inherits them. A test that needs more isolation sets its own.
"""

from __future__ import annotations

import os
import shutil
import tempfile

import pytest

_WORKER = os.environ.get('PYTEST_XDIST_WORKER', 'gw0')
# Workers are children of the run's own process: they differ by their number, runs by their pid.
_RUN = os.getppid() if 'PYTEST_XDIST_WORKER' in os.environ else os.getpid()
_LOGS = tempfile.mkdtemp(prefix='longreach-test-')

os.environ['ROS_AUTOMATIC_DISCOVERY_RANGE'] = 'LOCALHOST'
# Domains above 101 take ports that the system hands out to others.
os.environ['ROS_DOMAIN_ID'] = str(1 + (7 * _RUN + int(_WORKER.removeprefix('gw'))) % 101)
os.environ['ROS_LOG_DIR'] = _LOGS
os.environ['MPLBACKEND'] = 'Agg'
os.environ.pop('ROS_LOCALHOST_ONLY', None)

# Long files are begun first: one at the end would let all cores but its own wait. Those that wait
# for processes take turns with those that calculate.
LONG = (
    'test_vision_launch.py',
    'test_accuracy.py',
    'test_boom_launch.py',
    'test_cohesion.py',
    'test_crane_launch.py',
    'test_motion.py',
    'test_excavator_launch.py',
    'test_tracking.py',
    'test_rendering.py',
    'test_tracker_node.py',
    'test_kernels.py',
)


def pytest_configure(config: pytest.Config) -> None:
    """Leave the order of files to this file: pytest-xdist would begin with the most tests."""
    if hasattr(config.option, 'loadscopereorder'):
        config.option.loadscopereorder = False


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put long files first."""
    items.sort(
        key=lambda item: LONG.index(item.path.name) if item.path.name in LONG else len(LONG)
    )


def pytest_unconfigure(config: pytest.Config) -> None:  # noqa: ARG001
    """Remove the logs that ROS has written."""
    shutil.rmtree(_LOGS, ignore_errors=True)
