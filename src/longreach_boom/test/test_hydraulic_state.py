"""Flows through the valves, against the simulation, and columns of runs."""

import numpy as np

from longreach_boom.machine import Boom
from longreach_boom.parameters import default_file, load_boom
from longreach_boom.scenario import Scenario
from longreach_boom.simulation import simulate
from longreach_boom.state import StateParts, flows_of
from longreach_dynamics.hydraulics import ReliefParameters
from longreach_machine.scenarios import ValveCommand

RELIEF = ReliefParameters(head=100e5, rod=300e5, override=20e5, area=1e-5)


def test_what_valves_and_the_pump_do_is_in_columns():
    realistic = load_boom(default_file().parent / 'boom_realistic.yaml')
    command = ValveCommand(0.0, (1.0, 0.9, -0.9, 1.0))
    scenario = Scenario(duration=0.5, pose='site', valve_commands=(command,))
    low = realistic.with_value('cylinders.cylinder_1.relief', RELIEF)
    run = simulate(low, scenario)
    plain = tuple(c.replace(relief=None, make_up=None, counterbalance=None) for c in low.cylinders)
    bare = low.replace(cylinders=plain, oil=low.oil.replace(pump=None))
    usual = simulate(bare, scenario)
    added = run.columns.names[len(usual.columns.names) :]
    flows = [f'port_{side}_{i}' for side in ('head', 'rod') for i in range(1, 5)]
    holding = [f'counterbalance_{side}_{i}' for side in ('head', 'rod') for i in range(1, 5)]
    assert added == (*flows, 'rail_pressure', 'rail_flow', *holding)
    oil, tank = low.oil, low.oil.tank_pressure
    p = run.column('p_head_1')
    share = np.clip((p - RELIEF.head) / RELIEF.override, 0.0, 1.0)
    opening = RELIEF.area * share**2 * (3.0 - 2.0 * share)
    drop = (p - tank) / ((p - tank) ** 2 + oil.laminar_pressure**2) ** 0.25
    expected = -oil.contraction * np.sqrt(2.0 / oil.density) * opening * drop
    assert expected.min() < 0.0
    np.testing.assert_allclose(run.column('port_head_1'), expected, rtol=1e-9, atol=1e-12)
    parts = StateParts.of(run.states, low)
    head, rod = flows_of(parts, Boom(low, scenario).constants(()))
    fed = np.where(parts.spools >= 0.0, head, -rod).sum(axis=1)
    np.testing.assert_allclose(run.column('rail_flow'), fed, rtol=1e-12)
    assert run.column('rail_pressure').min() < 0.9 * oil.supply_pressure
    assert run.column('rail_pressure').max() <= oil.supply_pressure
