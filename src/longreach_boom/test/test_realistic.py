"""The boom with relief and make-up valves, hoses and a pump of limited flow."""

from __future__ import annotations

import numpy as np
import pytest

from longreach_boom.hydraulic_state import flows_of
from longreach_boom.machine import Boom
from longreach_boom.parameters import BoomParameters, default_file, load_boom
from longreach_boom.scenario import Scenario, ValveCommand
from longreach_boom.simulation import simulate
from longreach_boom.state import StateParts


@pytest.fixture(scope='module')
def realistic() -> BoomParameters:
    """The installed file."""
    return load_boom(default_file().parent / 'boom_realistic.yaml')


def test_numbers_differ_from_the_boom_in_its_hydraulics_alone(
    boom: BoomParameters, realistic: BoomParameters
) -> None:
    bare = tuple(c.replace(relief=None, make_up=None, hose=None) for c in realistic.cylinders)
    assert realistic.replace(cylinders=bare, oil=realistic.oil.replace(pump=None)) == boom


def test_pump_is_shared(realistic: BoomParameters) -> None:
    command = ValveCommand(0.0, (0.9, 0.9, -0.9, 0.9))
    scenario = Scenario(duration=0.5, pose='site', valve_commands=(command,))
    unlimited = realistic.replace(oil=realistic.oil.replace(pump=None))
    taken = []
    for parameters in (realistic, unlimited):
        parts = StateParts.of(simulate(parameters, scenario).states, parameters)
        flows = flows_of(parts, Boom(parameters, scenario).constants(()))
        taken.append(np.where(parts.spools >= 0.0, flows.head, -flows.rod))
    assert realistic.oil.pump is not None
    assert taken[1].sum(axis=1).max() > realistic.oil.pump.flow
    assert taken[0].sum(axis=1).max() <= realistic.oil.pump.flow
