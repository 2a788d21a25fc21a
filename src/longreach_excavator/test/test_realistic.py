"""The excavator with relief and make-up valves, hoses and a pump of limited flow."""

import numpy as np
import pytest

from longreach_excavator.linkage import CYLINDERS
from longreach_excavator.motion import HEAD, SPOOL
from longreach_excavator.scenario import dig_scenario
from longreach_excavator.simulation import simulate

ARM = 1


@pytest.fixture(scope='module')
def dug(realistic):
    """The standard dig."""
    return simulate(realistic, dig_scenario())


def test_closed_chambers_no_longer_run_empty(excavator, dug):
    published = simulate(excavator, dig_scenario())
    assert published.states[:, HEAD:SPOOL].min() < excavator.oil.vapour_pressure - 1e5
    assert dug.states[:, HEAD:SPOOL].min() > 1e5


def test_energy_is_balanced(dug):
    assert dug.energy_error() < 1e-6


def test_flows_of_relief_and_make_up_valves_are_columns(excavator, dug):
    usual = simulate(excavator, dig_scenario().replace(duration=0.1))
    added = dug.columns.names[len(usual.columns.names) :]
    flows = [f'port_{side}_{name}' for side in ('head', 'rod') for name in CYLINDERS]
    assert added == (*flows, 'rail_pressure', 'rail_flow')
    made_up = False
    for c in dug.parameters.cylinders:
        for side, setting in (('head', c.relief.head), ('rod', c.relief.rod)):
            p, flow = dug.column(f'p_{side}_{c.name}'), dug.column(f'port_{side}_{c.name}')
            filled = p < c.make_up.supply - c.make_up.cracking
            np.testing.assert_array_equal(flow > 0.0, filled)
            np.testing.assert_array_equal(flow < 0.0, p > setting)
            made_up |= filled.any()
    assert made_up
