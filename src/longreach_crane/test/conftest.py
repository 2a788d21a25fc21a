"""The crane of C13R and its two scenarios, built here so that no other package is needed."""

from __future__ import annotations

import pytest

from longreach_crane.parameters import CraneParameters, Machinery, load_machinery
from longreach_crane.scenario import Disturbance, Scenario, SetPoint


@pytest.fixture(scope='session')
def machinery() -> Machinery:
    """The installed crane file."""
    return load_machinery()


@pytest.fixture(scope='session')
def crane(machinery: Machinery) -> CraneParameters:
    return machinery.crane


@pytest.fixture(scope='session')
def task_b() -> Scenario:
    return Scenario(
        duration=60.0,
        set_points=(SetPoint(0.0, 3.0), SetPoint(16.0, -0.5), SetPoint(36.0, 3.8)),
        disturbances=(Disturbance(42.0, 1.0, -200.0),),
        diagnosis=False,
    )


@pytest.fixture(scope='session')
def task_c(task_b: Scenario) -> Scenario:
    disturbances = (*task_b.disturbances, Disturbance(46.0, 1.0, 200.0))
    return task_b.replace(disturbances=disturbances, diagnosis=True)
