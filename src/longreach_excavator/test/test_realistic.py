"""The excavator with relief and make-up valves, hoses and a pump of limited flow."""

import numpy as np
import pytest

from longreach_excavator.linkage import CYLINDERS
from longreach_excavator.motion import HEAD, SPOOL
from longreach_excavator.scenario import Scenario, dig_scenario
from longreach_excavator.simulation import simulate
from longreach_machine.scenarios import ValveCommand

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


def test_relief_holds_the_arm(realistic):
    # The soil pushes the arm's cylinder in, which would reach 320 bar behind its closed valve.
    low = realistic.with_value('cylinders.arm.relief.head', 250e5)
    pressures = simulate(low, dig_scenario()).states[:, HEAD + ARM]
    assert 250e5 < pressures.max() < 250e5 + realistic.cylinders[ARM].relief.override


def test_pump_is_shared(realistic):
    flow = 2e-3
    command = ValveCommand(0.0, (0.9, -0.9, 0.9))
    scenario = Scenario(duration=1.0, pose='reach', soil=False, valve_commands=(command,))
    limited = simulate(realistic.with_value('oil.pump.flow', flow), scenario)
    free = simulate(realistic.with_value('oil.pump', None), scenario)

    def taken(result):
        """Return what the valves take from the supply, (rows, 3) [m^3/s]."""
        heads, rods, spools = (
            result.stack([f'{what}_{name}' for name in CYLINDERS])
            for what in ('head_flow', 'rod_flow', 'spool')
        )
        return np.where(spools >= 0.0, heads, -rods)

    assert taken(free).sum(axis=1).max() > 1.5 * flow
    assert taken(limited).sum(axis=1).max() <= flow
    assert np.all(np.abs(taken(limited)[-1]) < np.abs(taken(free)[-1]))
    assert limited.energy_error() < 1e-6


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
