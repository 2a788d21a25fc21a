"""Scenario files of the harvester."""

from pathlib import Path

import numpy as np
import pytest
from harvesters import STANDARD

from longreach_dynamics.machine import BY_SCENARIO
from longreach_harvester.machine import Harvester
from longreach_harvester.scenario import load_scenario

SCENARIOS = Path(__file__).resolve().parents[3] / 'config' / 'scenarios'


@pytest.mark.parametrize(
    'file', sorted(SCENARIOS.glob('harvester_*.yaml')), ids=lambda file: file.stem
)
def test_installed_scenarios_can_be_run(file):
    """Their first tenth of a second."""
    harvester = Harvester(STANDARD, load_scenario(file))
    state, rows = harvester.advance_recorded(harvester.initial_state(), BY_SCENARIO, 0, 100, 50)
    assert len(rows) == 2
    assert np.all(np.isfinite(state.y))
