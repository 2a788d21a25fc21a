"""The boom as a machine, and whole runs."""

import math
import re

import numpy as np
import pytest
from test_control import with_valves

from longreach_boom import machine
from longreach_boom.kinematics import point_motion
from longreach_boom.machine import AUTOMATIC, Boom, longest_step
from longreach_boom.model import Load
from longreach_boom.motion import INDEFINITE, UNSETTLED
from longreach_boom.scenario import Attachment, HangingLoad, Scenario
from longreach_boom.simulation import simulate
from longreach_boom.state import BoomState, StateParts
from longreach_dynamics.errors import InputError, LongreachError
from longreach_dynamics.hydraulics.friction import OUTWARDS, STUCK
from longreach_dynamics.stepping import IntegrationError
from longreach_machine.machine import BY_SCENARIO
from longreach_machine.scenarios import ValveCommand

CLOSED = (0.0,) * 4
BUSY = Scenario(
    duration=1.5,
    pose='site',
    loads=(HangingLoad(90.0),),
    release=(0.0, 0.9),
    attach=(Attachment(70.0, 'beam_3', 2.0, time=0.403), Attachment(30.0, time=0.75)),
    valve_commands=(
        ValveCommand(0.301, (0.4, -0.3, 0.5, 0.0)),
        ValveCommand(1.1, (0.0, 0.0, 0.0, -0.4)),
    ),
)


def test_initial_state_is_at_rest(boom):
    for pose in ('sprawled', 'site', 'upright'):
        scenario = Scenario(duration=1.0, pose=pose, loads=(HangingLoad(90.0),))
        state = Boom(boom, scenario).initial_state()
        assert state.loads == (Load(90.0, 3, 9.0),)
        assert np.all(state.modes == STUCK)
        later = Boom(boom, scenario).advance(state, CLOSED, 0.0, 1.0)
        assert later.y == pytest.approx(state.y, rel=1e-9, abs=1e-9)
        assert np.array_equal(later.y[:4], state.y[:4])
    free = Boom(boom, Scenario(duration=1.0, pose='site', friction=False))
    assert np.all(free.initial_state().modes == OUTWARDS)
    later = free.advance(free.initial_state(), CLOSED, 0.0, 1.0)
    assert later.y[:12] == pytest.approx(free.initial_state().y[:12], abs=1e-9)


@pytest.mark.parametrize('friction', [True, False])
@pytest.mark.parametrize(
    ('every', 'pieces'), [(1, [1] * 1500), (50, [5] * 300), (3, [7, 294, 1, 1, 400, 47, 150, 600])]
)
def test_rows_depend_neither_on_pieces_nor_on_how_many_are_asked_for(
    boom, every, pieces, friction
):
    # Valves and loads change within a piece, as well as between two.
    plant, step, rows, modes = Boom(boom, BUSY.replace(friction=friction)), 0, [], []
    start = state = plant.initial_state()
    end, all_rows, all_modes, _ = plant.advance_recorded(start, BY_SCENARIO, 0, 1500, 1)
    for piece in pieces:
        state, *part, _ = plant.advance_recorded(state, BY_SCENARIO, step, piece, every)
        rows.append(part[0])
        modes.append(part[1])
        step += piece
    assert np.array_equal(np.concatenate(rows), all_rows[every - 1 :: every])
    assert np.array_equal(np.concatenate(modes), all_modes[every - 1 :: every])
    assert np.array_equal(state.y, end.y)


def test_loads_by_scenario_and_by_hand_are_the_same(boom):
    result = simulate(boom, BUSY.replace(valve_commands=()))
    plant = Boom(boom, Scenario(duration=1.5, pose='site', loads=BUSY.loads))
    state = plant.release(plant.initial_state())
    assert state.loads == ()
    state = plant.advance(state, CLOSED, 0.0, 0.403)
    state = plant.attach(state, Load(70.0, 2, 2.0))
    state = plant.advance(state, CLOSED, 0.403, 0.347)
    state = plant.attach(state, Load(30.0, 3, 9.0))
    assert len(state.loads) == 2
    state = plant.advance(state, CLOSED, 0.75, 0.15)
    state = plant.advance(plant.release(state), CLOSED, 0.9, 0.6)
    assert np.array_equal(state.y, result.states[-1])
    # The loads were felt.
    bare = simulate(boom, Scenario(duration=1.5, pose='site', loads=BUSY.loads, release=(0.0,)))
    assert np.abs(result.states[-1, :4] - bare.states[-1, :4]).max() > 1e-4


def test_release_of_the_paper(boom):
    scenario = Scenario(duration=20.0, pose='site', loads=(HangingLoad(90.0),), release=(0.0,))
    result = simulate(boom, scenario)
    summary = result.summary()
    # Figure 14 of Henikl 2015: decimetres at the tip, millimetres at the pistons.
    assert 0.3 < summary['tip_highest'] - summary['tip_start'][1] < 0.9
    assert max(summary['piston_travel']) < 5e-3
    assert min(summary['piston_travel']) > 1e-4
    assert summary['cavitated'] == []
    assert summary['duration'] == 20.0
    # The lowest mode shows about 0.4 to 0.5 Hz.
    z = result.column('tip_z') - result.column('tip_z')[2000:].mean()
    crossings = np.count_nonzero((z[:-1] < 0.0) & (z[1:] >= 0.0))
    assert 7 <= crossings <= 11
    assert np.ptp(z[-500:]) < np.ptp(z[:500])


@pytest.mark.parametrize('count', [1, 2, 3, 4, 5, 6])
@pytest.mark.parametrize('functions', [2, 3])
def test_booms_of_any_number_of_beams(resized, count, functions):
    boom = resized(count, functions=functions)
    # Five beams with these cylinders weigh more than relief valves hold.
    boom = boom.replace(cylinders=tuple(c.replace(relief=None) for c in boom.cylinders))
    scenario = Scenario(
        duration=2.0,
        pose='site',
        loads=(HangingLoad(50.0),),
        release=(0.5,),
        valve_commands=(ValveCommand(1.0, (0.2,) * count),),
    )
    # More beams, and more functions each, have faster motions.
    result = simulate(boom, scenario, 2.5e-4)
    assert np.all(np.isfinite(result.table))
    assert result.states.shape == (401, count * (2 * (1 + functions) + 3))
    z = result.column('tip_z')
    # At rest with the load; it springs up; the valves lift.
    assert np.ptp(z[:101]) < 1e-9
    assert z[101:201].max() > z[0] + 1e-5
    assert z[-1] > z[0]


def test_a_state_that_is_not_finite_ends_the_run(boom):
    plant = Boom(boom, Scenario(duration=1.0, pose='site'))
    start = plant.initial_state()
    for place in (0, 5, 12, 20, 24, 31, 35):
        for value in (math.nan, math.inf):
            y = start.y.copy()
            y[place] = value
            with pytest.raises(IntegrationError, match=r'runs away in .* t = 0\.25 s'):
                plant.advance(start._replace(y=y), CLOSED, 0.25, 0.1)


@pytest.mark.parametrize('loaded', [False, True])
def test_error_says_how_to_see_it_again(boom, loaded):
    plant = Boom(boom, Scenario(duration=1.0, pose='site', loads=(HangingLoad(90.0),)))
    start = plant.initial_state()
    # Of such speed that the first steps leave the numbers.
    y = start.y.copy()
    y[12:24] = 1e120
    state = start._replace(y=y, modes=np.full(4, OUTWARDS))
    state = state if loaded else plant.release(state)
    with pytest.raises(IntegrationError) as caught:
        plant.advance(state, CLOSED, 0.5, 0.4)
    text = str(caught.value)
    time = re.search(r'in the step at t = ([0-9.]+) s', text)
    assert 0.5 <= float(time[1]) < 0.9
    # The call stands in the text, and fails in its first step.
    call = re.search(r'To see it again: Boom\.advance\((.*)\)\. Lighten the load', text)
    names = {'np': np, 'BoomState': BoomState, 'Load': Load}
    arguments = eval(f'({call[1]})', names)
    assert np.all(np.isfinite(arguments[0].y))
    assert arguments[0].loads == state.loads
    with pytest.raises(IntegrationError) as again:
        plant.advance(*arguments)
    assert str(again.value) == text


@pytest.mark.parametrize(
    ('status', 'text'),
    [
        (INDEFINITE, r'mass matrix is not positive definite.*Look for masses'),
        (UNSETTLED, r'keep reversing others.*Take a shorter step'),
    ],
)
def test_error_says_why_and_what_to_do(boom, monkeypatch, status, text):
    monkeypatch.setattr(machine, 'advance_motion', lambda *_: (7, status))
    plant = Boom(boom, Scenario(duration=1.0, pose='site'))
    with pytest.raises(IntegrationError, match=r'step at t = 0\.007 s: .*' + text):
        plant.advance(plant.initial_state(), CLOSED, 0.0, 0.1)


def test_step_must_suit_the_boom(boom):
    scenario = Scenario(duration=1.0, pose='site')
    for step in (0.0, -1e-3, 0.1, math.nan):
        with pytest.raises(InputError, match='step = '):
            Boom(boom, scenario, step)
    plant = Boom(boom, scenario, 2e-3)
    for duration in (5e-3, -2e-3):
        with pytest.raises(InputError, match=f'duration = {duration} s, allowed: whole steps of'):
            plant.advance(plant.initial_state(), CLOSED, 0.0, duration)
    damped = boom.replace(
        beams=tuple(b.replace(joint_damping=b.joint_damping * 20.0) for b in boom.beams)
    )
    with pytest.raises(InputError, match=r'step = 0\.001 s, allowed for this boom.*at most'):
        simulate(damped, scenario)


@pytest.mark.parametrize('pose', ['sprawled', 'site', 'upright'])
def test_installed_boom_takes_two_steps_a_sample(boom, pose):
    scenario = Scenario(duration=1.0, pose=pose, loads=(LOAD,), release=(0.5,))
    step = longest_step(boom, scenario)
    assert step == 2.5e-3
    Boom(boom, scenario, step).initial_state()


LOAD = HangingLoad(90.0)


def test_times_of_the_scenario_are_whole_steps(boom):
    late = ValveCommand(0.101, (0.1, 0.0, 0.0, 0.0))
    scenario = Scenario(duration=1.0, pose='site', valve_commands=(late,))
    assert longest_step(boom, scenario) == 1e-3
    odd = ValveCommand(0.1001234, (0.1, 0.0, 0.0, 0.0))
    with pytest.raises(InputError, match=r'0.005 s has no whole part .* give a step'):
        longest_step(boom, scenario.replace(valve_commands=(odd,)))


def test_tip_stays_within_a_micrometre(boom):
    scenario = Scenario(duration=2.0, pose='site', friction=False, loads=(LOAD,), release=(0.0,))
    tips = []
    for step in (2.5e-4, AUTOMATIC):
        parts = StateParts.of(simulate(boom, scenario, step).states, boom)
        tips.append(point_motion(boom, parts.q, parts.v, 3, boom.beams[3].length).position)
    error = np.linalg.norm(tips[1] - tips[0], axis=1).max()
    assert 0.0 < error < 1e-6


def test_loads_that_never_hang_together_are_not_added_up(boom):
    changes = (Attachment(time=0.1, mass=12e3), Attachment(time=0.3, mass=12e3))
    scenario = Scenario(duration=0.5, pose='site', attach=changes, release=(0.2,))
    with pytest.raises(LongreachError, match='no static equilibrium'):
        longest_step(boom, scenario.replace(release=()))
    assert longest_step(boom, scenario) == 2.5e-3


def opened_to_the_end(boom):
    """All the way out with cylinder 4: at its end no oil flows through the open valve."""
    return Scenario(
        duration=6.0,
        pose=boom.poses[0].name,
        valve_commands=(ValveCommand(0.0, (0.0, 0.0, 0.0, 1.0)),),
    )


@pytest.mark.parametrize('laminar', [1e2, 1e4])
@pytest.mark.parametrize('wide', [1.0, 4.0])
def test_pressures_rest_at_the_end_of_a_stroke_with_an_open_valve(paper_boom, laminar, wide):
    oil = paper_boom.oil.replace(laminar_pressure=laminar)
    boom = with_valves(paper_boom, wide).replace(oil=oil)
    scenario = opened_to_the_end(boom)
    step = longest_step(boom, scenario)
    assert step == (2.5e-3 if wide == 1.0 else pytest.approx(5e-3 / 6, rel=1e-12))
    run = simulate(boom, scenario, step)
    assert run.column('piston_4')[-1] == pytest.approx(boom.cylinders[3].stroke, abs=1e-3)
    for name, rest in (('p_head_4', oil.supply_pressure), ('p_rod_4', oil.tank_pressure)):
        assert run.column(name)[-100:] == pytest.approx(rest, abs=0.01 * oil.supply_pressure)


def test_a_step_too_long_for_the_valves_is_refused(boom):
    wide = with_valves(boom, 4.0)
    scenario = opened_to_the_end(wide)
    error = r'step = 0\.0025 s, allowed .* large valves with a small oil volume'
    with pytest.raises(InputError, match=error):
        Boom(wide, scenario, 2.5e-3).initial_state()
    Boom(wide, scenario, 5e-4).initial_state()
