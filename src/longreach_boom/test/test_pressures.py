"""Pressures of the installed boom within the limits of docs/boom.md; any operation: see there."""

from pathlib import Path

import numpy as np
import pytest

from longreach_boom.machine import STEP, Boom
from longreach_boom.parameters import default_file, load_boom
from longreach_boom.scenario import HangingLoad, Scenario, load_scenario
from longreach_boom.simulation import simulate
from longreach_boom.state import StateParts, flows_of
from longreach_dynamics.hydraulics import ReliefParameters
from longreach_machine.scenarios import ValveCommand

SCENARIOS = Path(__file__).resolve().parents[3] / 'config' / 'scenarios'
BAR = 1e5
LOWEST, HIGHEST = 5.0 * BAR, 300.0 * BAR
LOAD = HangingLoad(90.0)
RELIEF = ReliefParameters(head=100e5, rod=300e5, override=20e5, area=1e-5)
SCENARIO_FILES = (
    'boom_reversals',
    'boom_load_release',
    'boom_hold',
    'boom_wave',
    'boom_wave_loaded',
)


def extremes(run):
    """Return the lowest and the highest pressure of all chambers [Pa]."""
    assert not run.message
    pressures = [run.columns_like(side) for side in ('p_head', 'p_rod')]
    return float(np.min(pressures)), float(np.max(pressures))


def full_step(boom, joint, spool, **scenario):
    """Return a run in which one valve is fully open for 2 s."""
    spools = [0.0] * boom.size
    spools[joint] = spool
    commands = (ValveCommand(0.5, tuple(spools)), ValveCommand(2.5, (0.0,) * boom.size))
    return simulate(boom, Scenario(**{'duration': 10.0, 'valve_commands': commands, **scenario}))


@pytest.mark.slow_after(3)
@pytest.mark.parametrize('name', SCENARIO_FILES)
def test_scenario_files_stay_within_the_limits(name, boom):
    run = simulate(boom, load_scenario(SCENARIOS / f'{name}.yaml', boom, STEP))
    low, high = extremes(run)
    assert LOWEST < low < high < HIGHEST
    assert run.cavitated == ()


@pytest.mark.slow_after(8)
@pytest.mark.parametrize('spool', [1.0, -1.0])
@pytest.mark.parametrize('joint', range(4))
@pytest.mark.parametrize(
    ('pose', 'loads'),
    [(pose, loads) for pose in ('site', 'sprawled', 'upright') for loads in ((), (LOAD,))],
)
def test_full_steps_stay_within_the_limits(pose, loads, joint, spool, boom):
    run = full_step(boom, joint, spool, pose=pose, loads=loads)
    low, high = extremes(run)
    assert LOWEST < low < high < HIGHEST
    moved = run.column(f'piston_{joint + 1}')
    assert spool * (moved[-1] - moved[0]) > 0.02


@pytest.mark.slow_after(2)
@pytest.mark.parametrize('interval', [0.2, 0.5, 1.0, 2.0])
@pytest.mark.parametrize(
    ('pose', 'spools', 'mass'),
    [
        ('site', (1.0, 1.0, 1.0, 1.0), 0.0),
        ('site', (1.0, -1.0, 1.0, -1.0), 150.0),
        ('sprawled', (-1.0, 1.0, 1.0, -1.0), 90.0),
        ('sprawled', (1.0, 1.0, -1.0, -1.0), 0.0),
        # Pistons at their stops.
        ('upright', (1.0, 1.0, 1.0, 1.0), 90.0),
        ('upright', (1.0, -1.0, -1.0, -1.0), 0.0),
    ],
)
def test_reversals_of_all_joints_stay_within_the_limits(pose, spools, mass, interval, boom):
    # The first command lasts longest, and brings pistons to their stops.
    times = [0.0, *np.arange(4.0, 12.0, interval).round(3)]
    commands = [
        ValveCommand(time, tuple((-1.0) ** k * spool for spool in spools))
        for k, time in enumerate(times)
    ]
    loads = (HangingLoad(mass),) if mass else ()
    scenario = Scenario(duration=12.0, pose=pose, loads=loads, valve_commands=tuple(commands))
    low, high = extremes(simulate(boom, scenario))
    assert LOWEST < low < high < HIGHEST


def test_cushions_slow_a_piston_before_its_end(boom):
    command = ValveCommand(0.0, (0.0, 0.0, 0.0, 1.0))
    scenario = Scenario(duration=14.0, pose='site', valve_commands=(command,))
    cylinder, speeds = boom.cylinders[3], []
    bare = boom.with_value('cylinders.cylinder_4.cushion', None)
    for machine in (boom, bare):
        piston = simulate(machine, scenario).column('piston_4')
        assert piston[-1] == pytest.approx(cylinder.stroke, abs=1e-4)
        end = int(np.argmax(piston >= cylinder.stroke - 1e-5))
        speeds.append((piston[end - 1] - piston[end - 11]) / 0.05)
    assert speeds[0] < 0.2 * speeds[1]


def test_papers_valves_intensify_and_cavitate(paper_boom):
    wave = load_scenario(SCENARIOS / 'boom_wave.yaml', paper_boom, STEP)
    _, high = extremes(simulate(paper_boom, wave))
    assert high == pytest.approx(332.3 * BAR, abs=0.1 * BAR)
    _, high = extremes(full_step(paper_boom, 1, -1.0, pose='site'))
    assert high > 390.0 * BAR
    assert full_step(paper_boom, 0, 1.0, pose='site').cavitated


@pytest.mark.slow
@pytest.mark.parametrize(('loads', 'largest'), [((), 2.0e-3), ((LOAD,), 2.6e-3)])
def test_wave_is_followed_as_well_as_with_the_papers_valves(loads, largest, boom, paper_boom):
    errors = []
    for parameters in (boom, paper_boom):
        wave = load_scenario(SCENARIOS / 'boom_wave.yaml', parameters, STEP)
        errors.append(simulate(parameters, wave.replace(loads=loads)).joint_error())
    assert np.all(np.array(errors[0]) <= errors[1])
    assert errors[0][1] < largest


def test_openings_of_counterbalance_valves_are_columns(boom):
    run = full_step(boom, 1, -1.0, pose='site')
    sides = [run.columns_like(f'counterbalance_{side}') for side in ('head', 'rod')]
    valve, oil = boom.cylinders[1].counterbalance, boom.oil
    # Piston 2 retracts: its rod line opens the poppet of the head side.
    head, rod = run.column('p_head_2'), run.column('p_rod_2')
    pilot = np.where(run.column('spool_2') < -0.05, rod, oil.tank_pressure)
    excess = head + valve.pilot_ratio * (pilot - oil.tank_pressure)
    share = np.clip((excess - oil.tank_pressure - valve.head) / valve.override, 0.0, 1.0)
    opening = share**2 * (3.0 - 2.0 * share)
    np.testing.assert_allclose(run.column('counterbalance_head_2'), opening, atol=1e-12)
    assert opening[0] == opening[-1] == 0.0
    assert opening.max() == 1.0
    # The other valves stay closed.
    assert np.all(np.delete(sides[0], 1, axis=1) == 0.0)
    assert np.all(sides[1] == 0.0)


def test_steps_of_half_the_length_agree(boom):
    # Without friction: counterbalance, relief and make-up valves at work, in the step of auto.
    commands = (ValveCommand(0.5, (-1.0, 0.0, 0.5, 0.0)), ValveCommand(2.5, (0.0,) * 4))
    scenario = Scenario(duration=6.0, pose='upright', friction=False, valve_commands=commands)
    runs = [simulate(boom, scenario, step) for step in (2.5e-3, 2.5e-4)]
    for side in ('p_head', 'p_rod'):
        values = [run.columns_like(side) for run in runs]
        assert np.abs(values[0] - values[1]).max() < 1.0 * BAR
    z = [run.column('tip_z') for run in runs]
    assert np.abs(z[0] - z[1]).max() < 1e-3


def test_load_beyond_the_relief_valves_is_named(boom):
    for mass, named in ((90.0, False), (300.0, True)):
        scenario = Scenario(duration=20.0, pose='sprawled', loads=(HangingLoad(mass),))
        run = simulate(boom, scenario)
        text = 'cylinder_3 carries more at rest than its relief valve holds: it gives way'
        assert (text in run.warnings()) is named
        assert (np.ptp(run.column('piston_3')) > 1e-4) == named


def test_what_valves_and_the_pump_do_is_in_columns():
    realistic = load_boom(default_file().with_name('boom_realistic.yaml'))
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
