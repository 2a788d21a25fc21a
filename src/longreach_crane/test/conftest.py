"""The crane of C13R and its two scenarios."""

import pytest

from longreach_crane.c13r import task_scenario
from longreach_crane.parameters import load_machinery


@pytest.fixture(scope='session')
def machinery():
    """The installed crane file."""
    return load_machinery()


@pytest.fixture(scope='session')
def crane(machinery):
    return machinery.crane


@pytest.fixture(scope='session')
def task_b():
    return task_scenario('b')


@pytest.fixture(scope='session')
def task_c():
    return task_scenario('c')
