"""The excavator as a machine: pieces of runs, commands, scenarios and whole runs."""

import math
import re

import numpy as np
import pytest

from longreach_dynamics.errors import InputError
from longreach_dynamics.stepping import IntegrationError
from longreach_excavator.linkage import CYLINDERS
from longreach_excavator.machine import CLOSED, Excavator, ExcavatorCommand, ExcavatorState
from longreach_excavator.motion import HEAD, RATE, ROD, SOIL, SPOOL
from longreach_excavator.scenario import Scenario, dig_scenario
from longreach_excavator.simulation import simulate
from longreach_machine.machine import BY_SCENARIO
from longreach_machine.scenarios import ValveCommand

BUSY = Scenario(
    duration=1.5,
    pose='dig',
    sweep_deg=20.0,
    loose=('arm',),
    valve_commands=(
        ValveCommand(0.013, (0.2, 0.0, 1.0)),
        ValveCommand(0.501, (0.1, -0.3, 0.9)),
        ValveCommand(1.203, (0.0, 0.0, -0.4)),
    ),
)
PRINTED = dig_scenario('printed', 17e3, duration=0.3)


def same(one, other):
    """Tell whether two states are equal to the last bit."""
    return np.array_equal(one.y, other.y) and one[1:] == other[1:]


@pytest.mark.parametrize('pose', ['dig', 'reach', 'tucked'])
def test_initial_state_is_at_rest(excavator, pose):
    plant = Excavator(excavator, Scenario(duration=1.0, pose=pose))
    state = plant.initial_state()
    oil = excavator.oil
    assert np.all(state.y[HEAD:SPOOL] >= oil.tank_pressure)
    assert np.all((state.y[ROD:SPOOL] == oil.preload) | (state.y[HEAD:ROD] == oil.tank_pressure))
    later = plant.advance(state, CLOSED, 0.0, 2.0)
    assert later.y[:RATE] == pytest.approx(state.y[:RATE], abs=1e-12)
    assert later.y[HEAD:SPOOL] == pytest.approx(state.y[HEAD:SPOOL], rel=1e-9)
    assert np.abs(later.y[RATE:HEAD]).max() < 1e-12
    assert np.abs(later.y[SOIL:]).max() < 1e-9


@pytest.mark.parametrize(
    ('scenario', 'every', 'pieces'),
    [
        (BUSY, 3, [1] * 1500),
        (BUSY, 3, [7, 494, 1, 1, 700, 47, 250]),
        # Stops are met, too: the forces go on.
        (PRINTED, 1, [1] * 300),
        (PRINTED, 1, [13, 1, 99, 187]),
        (dig_scenario(cohesion=17e3, depth='terrain'), 3, [1, 13, 486, 400]),
    ],
)
def test_run_does_not_depend_on_the_pieces(excavator, scenario, every, pieces):
    plant = Excavator(excavator, scenario)
    start = plant.initial_state()
    kept = start.y.copy()
    whole, table = plant.advance_recorded(start, BY_SCENARIO, 0, sum(pieces), every)
    assert whole.swept or scenario is not BUSY
    state, step, rows = start, 0, []
    for piece in pieces:
        state, part = plant.advance_recorded(state, BY_SCENARIO, step, piece, every)
        rows.append(part)
        step += piece
    assert same(state, whole)
    assert np.array_equal(np.concatenate(rows), table)
    assert np.array_equal(start.y, kept)


def test_scenario_is_the_same_as_its_commands(excavator):
    scenario = BUSY.replace(sweep_deg=0.0, loose=())
    plant = Excavator(excavator, scenario)
    whole = plant.advance(plant.initial_state(), BY_SCENARIO, 0.0, 1.5)
    state = plant.initial_state()
    for step in range(1500):
        spools = CLOSED.spools
        for entry in scenario.valve_commands:
            if round(entry.time * 1000) <= step:
                spools = entry.spools
        state = plant.advance(state, ExcavatorCommand(spools), step * 1e-3, 1e-3)
    assert same(state, whole)


def test_valves_close_when_the_bucket_has_swept(excavator):
    scenario = dig_scenario('hydraulic', 10e3).replace(sweep_deg=40.0)
    plant = Excavator(excavator, scenario)
    start = plant.initial_state()
    _, table = plant.advance_recorded(start, BY_SCENARIO, 0, 3000, 1)
    turned = np.degrees(start.y[:RATE].sum() - table[:, :RATE].sum(axis=1))
    # It looks every 10 ms; the spool then follows with its time constant.
    reached = int(np.argmax(turned >= 40.0)) + 1
    closing = int(np.argmax(np.diff(table[:, SPOOL + 2], prepend=0.0) < 0.0)) + 1
    assert 0 < closing - reached <= 11
    assert closing % 10 == 1
    assert abs(table[-1, SPOOL + 2]) < 1e-9
    assert 40.0 < turned[-1] < 45.0
    assert np.ptp(turned[-500:]) < 0.5


def test_a_command_goes_before_the_forces_of_the_scenario(excavator):
    given = (1e4, -2e4, 3e4)
    ends = []
    for scenario in (PRINTED, PRINTED.replace(mode='hydraulic')):
        plant = Excavator(excavator, scenario)
        state = plant.initial_state()._replace(forces=given)
        command = ExcavatorCommand(CLOSED.spools, given)
        ends.append(plant.advance(state, command, 0.0, 0.05))
    assert ends[0].forces == given
    assert np.array_equal(ends[0].y, ends[1].y)


def test_oil_takes_over_the_force_that_was_given(excavator):
    plant = Excavator(excavator, Scenario(duration=1.0, pose='reach', soil=False))
    start = plant.initial_state()
    seen = plant.observed(start)
    weight = tuple(seen[f'force_{name}'] for name in CYLINDERS)
    held = plant.advance(start, ExcavatorCommand(CLOSED.spools, weight), 0.0, 0.2)
    assert held.forces == weight
    assert held.y[:RATE] == pytest.approx(start.y[:RATE], abs=1e-9)
    # The oil carries the weight from the first step on; nothing jumps.
    state = plant.advance(held, CLOSED, 0.2, 1e-3)
    for name, force in zip(CYLINDERS, weight, strict=True):
        assert plant.observed(state)[f'force_{name}'] == pytest.approx(force, rel=1e-6)
    later = plant.advance(state, CLOSED, 0.201, 1.0)
    assert later.y[:RATE] == pytest.approx(start.y[:RATE], abs=1e-6)


def test_steps_that_are_too_long_for_the_oil_are_refused(excavator):
    small = {'line_volume': 2e-4, 'dead_length': 0.0}
    stiff = excavator.replace(cylinders=[c.replace(**small) for c in excavator.cylinders])
    scenario = Scenario(duration=1.0, pose='reach')
    with pytest.raises(InputError) as caught:
        Excavator(stiff, scenario).initial_state()
    pattern = r'step = 0\.001 s, allowed for this excavator: at most (\S+) s'
    found = re.match(pattern, str(caught.value))
    # With the step that it names, it runs.
    step = 10.0 ** math.floor(math.log10(float(found[1])))
    plant = Excavator(stiff, scenario, step)
    commands = ExcavatorCommand((0.3, -0.5, 0.4))
    end = plant.advance(plant.initial_state(), commands, 0.0, 2000 * step)
    assert np.isfinite(end.y).all()


def test_runaway_is_an_error_that_says_how_to_see_it_again(excavator):
    plant = Excavator(excavator, Scenario(duration=1.0, pose='reach', soil=False))
    command = ExcavatorCommand(CLOSED.spools, (None, None, 0.0))
    start = plant.initial_state()
    start.y[RATE + 2] = 1e5
    with pytest.raises(IntegrationError) as caught:
        plant.advance(start, command, 0.0, 1.0)
    text = str(caught.value)
    assert text.startswith('the excavator runs away in the step at t = 0')
    assert 'Take a shorter step' in text
    call = re.search(r'Excavator\.advance\((.*), ([^,]+), ([^,)]+)\)\. Take', text)
    names = {one.__name__: one for one in (ExcavatorState, ExcavatorCommand)}
    state, told = eval(f'({call[1]})', {**names, 'np': np, 'nan': math.nan})
    with pytest.raises(IntegrationError):
        plant.advance(state, told, float(call[2]), float(call[3]))


@pytest.mark.parametrize('tolerance', [0.0, 1e-9])
def test_linkage_never_goes_on_past_a_dead_point(excavator, tolerance):
    """A heavy bucket that falls breaks through weak stops and lugs."""
    bucket = excavator.bucket.replace(mass=1e4, inertia=5e3)
    excavator = excavator.with_value('stops.stiffness', 1e6).replace(bucket=bucket)
    scenario = Scenario(duration=2.0, pose='dig', loose=CYLINDERS)
    run = simulate(excavator, scenario, tolerance=tolerance)
    assert re.search(r'bucket linkage passes its dead point, .* = 67.*shorter step', run.message)
    # The rows up to there are kept.
    assert run.status == 'failed'
    assert 10 < len(run.table) == len(run.states) < 401
    assert np.all(np.isfinite(run.table))
    with pytest.raises(IntegrationError, match='dead point'):
        run.check()


def test_steps_of_1_ms_are_near_those_of_order_8(excavator):
    """The figure of docs/excavator.md for 7 s of digging."""
    coarse, fine = (
        simulate(excavator, dig_scenario('hydraulic', 17e3), tolerance=tolerance).states
        for tolerance in (0.0, 1e-11)
    )
    error = np.abs(coarse[:, :RATE] - fine[:, :RATE]).max()
    assert 0.0 < error < 4e-8


def test_bucket_on_its_way_has_not_stalled(excavator):
    for sample_time in (0.005, 1.5, 3.0):
        for cohesion, duration, stalled in ((15e3, 3.0, False), (30e3, 6.0, True)):
            scenario = dig_scenario(cohesion=cohesion, duration=duration)
            result = simulate(excavator, scenario, sample_time=sample_time)
            assert result.stalled() == stalled


def test_a_bucket_that_opens_into_hard_soil_stalls(excavator):
    opens = (ValveCommand(0.0, (0.0, 0.0, -1.0)),)
    start = Scenario(duration=2.0, pose_deg=(20.0, -95.0, -60.0), cohesion=3e5, depth='surface')
    scenario = start.replace(held=('boom', 'arm'), valve_commands=opens)
    assert simulate(excavator, scenario).stalled()


def test_a_bucket_at_the_end_of_its_stroke_has_not_stalled(excavator):
    curl = (ValveCommand(0.0, (0.0, 0.0, 1.0)),)
    scenario = Scenario(duration=3.0, pose='tucked', soil=False, valve_commands=curl)
    result = simulate(excavator, scenario)
    assert result.stopped() == ('bucket',)
    assert np.ptp(result.column('swept')[-101:]) < np.radians(0.5)
    assert not result.stalled()


@pytest.mark.parametrize('scale', [0.5, 2.0])
def test_machine_of_another_size_is_slower_in_proportion(excavator, resized, scale):
    """Without gravity and soil, lengths and times scale alike; pressures and speeds stay."""
    weightless = excavator.replace(gravity=0.0)
    scenario, step = dig_scenario(cohesion=0.0, duration=0.5), 1e-3 * scale
    first = simulate(weightless, scenario, 1e-3, 1e-3)
    other = simulate(
        resized(weightless, scale), scenario.replace(duration=0.5 * scale), step, step
    )
    np.testing.assert_allclose(other.states[:, :3], first.states[:, :3], atol=1e-9)
    found, expected = (run.column('pin_force_bucket') for run in (other, first))
    np.testing.assert_allclose(found / scale**2, expected, atol=1e-3)
