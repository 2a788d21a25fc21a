"""The crane of C13R and its two scenarios."""

from __future__ import annotations

import pytest

from longreach_crane.c13r import task_scenario
from longreach_crane.parameters import CraneParameters, Machinery, load_machinery
from longreach_crane.scenario import Scenario


@pytest.fixture(scope='session')
def machinery() -> Machinery:
    """The installed crane file."""
    return load_machinery()


@pytest.fixture(scope='session')
def crane(machinery: Machinery) -> CraneParameters:
    return machinery.crane


@pytest.fixture(scope='session')
def task_b() -> Scenario:
    return task_scenario('b')


@pytest.fixture(scope='session')
def task_c() -> Scenario:
    return task_scenario('c')
