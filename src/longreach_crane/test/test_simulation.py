"""The crane as a machine, and simulations with the controller in the loop."""

import numpy as np
import pytest

from longreach_crane.machine import Command, Crane, CraneState
from longreach_crane.model import FREE, HELD, advance_motion
from longreach_crane.scenario import Disturbance, InitialState, Scenario
from longreach_crane.simulation import simulate
from longreach_crane.spec import CRANE
from longreach_dynamics.errors import InputError
from longreach_dynamics.stepping import IntegrationError

SWINGING = np.array([20.0, 1.0, 0.4, 0.5, -0.3])


@pytest.fixture(scope='module')
def result_c(machinery, task_c):
    return simulate(machinery, task_c)


@pytest.mark.parametrize('model', ['nonlinear', 'linear'])
@pytest.mark.parametrize('brake', ['viscous', 'rigid'])
@pytest.mark.parametrize('closed', [False, True])
def test_result_does_not_depend_on_the_pieces(model, brake, closed, crane):
    scenario = Scenario(duration=1.0, disturbances=(Disturbance(0.0, 1.0, 80.0),))
    plant = Crane(crane, scenario, model, brake)
    command = Command(0.0 if closed else 60.0, closed)
    whole = plant.advance(CraneState(SWINGING), command, 0.0, 1.0)
    state = CraneState(SWINGING)
    for piece in range(7):
        state = plant.advance(state, command, piece / 7.0, 1.0 / 7.0)
    assert state.x == pytest.approx(whole.x, abs=1e-10)
    assert state.car == whole.car


def test_rigid_brake_holds_and_lets_go(crane):
    plant = Crane(crane, brake='rigid')
    held = plant.advance(CraneState(SWINGING), Command(0.0, True), 0.0, 0.5)
    assert held.car == HELD
    assert held.x[1:3].tolist() == [1.0, 0.0]
    # Held once, it is not stopped again: no second impulse.
    longer = plant.advance(held, Command(0.0, True), 0.5, 0.5)
    once = plant.advance(CraneState(SWINGING), Command(0.0, True), 0.0, 1.0)
    assert longer.x == pytest.approx(once.x, abs=1e-11)
    released = plant.advance(longer, Command(0.0, False), 1.0, 0.1)
    assert released.car == FREE
    assert released.x[2] != 0.0


def test_a_new_number_compiles_nothing(crane, machinery, task_c):
    CRANE.warm_up()
    before = list(advance_motion.signatures)
    short = task_c.replace(duration=0.05, initial_state=InitialState(angle=0.2))
    for length in (1, 3.3, 12):
        changed = machinery.replace(crane=crane.replace(cable_length=length, car_friction=0))
        for model in ('nonlinear', 'linear'):
            for brake in ('viscous', 'rigid'):
                simulate(changed, short, model, brake, relative=1e-9, absolute=1e-9)
                plant = Crane(changed.crane, model=model, brake=brake)
                plant.advance(plant.initial_state(), Command(0.0, True), 0.0, 0.1)
    assert list(advance_motion.signatures) == before
    assert len(before) >= 1


def test_unknown_variants_are_refused(machinery, task_b):
    with pytest.raises(InputError, match=r"model = 'quadratic', allowed: nonlinear \| linear"):
        simulate(machinery, task_b, model='quadratic')
    with pytest.raises(InputError, match=r"brake = 'worn', allowed: viscous \| rigid"):
        simulate(machinery, task_b, brake='worn')


@pytest.mark.parametrize(
    ('name', 'value'), [('car_friction', 1e9), ('load_friction', 1e9), ('motor_rate', 1e4)]
)
def test_strong_friction_and_fast_motors_do_not_cost_small_steps(name, value, crane):
    machine = Crane(crane.replace(**{name: value}))
    # DOP853 alone needs up to 20 million evaluations for this cycle, of 200,000 that are allowed.
    after = machine.advance(machine.initial_state(), Command(100.0, False), 0.0, 0.01)
    assert np.isfinite(after.x).all()


def test_a_crane_that_is_too_fast_to_simulate_is_an_error(crane):
    # The cable swings with 3e8 rad/s.
    fast = crane.replace(cable_length=0.01, gravity=1e3, car_mass=1e-3, load_mass=1e9)
    with pytest.raises(IntegrationError, match=r'needs more evaluations.*Reduce friction'):
        Crane(fast).advance(CraneState(np.array([0.0, 0.0, 0.0, 0.1, 0.0])), Command(), 0.0, 0.01)


def test_table_has_one_row_per_cycle(result_c):
    # Exact multiples, without the last bits of a product.
    assert result_c.column('time').tolist() == [round(0.01 * n, 2) for n in range(6001)]
    assert np.isfinite(result_c.table).all()


def test_events_of_task_c(result_c):
    brake = result_c.column('brake')
    names = ['brake_engaged', 'brake_released', 'emergency', 'brake_engaged']
    assert [event.name for event in result_c.events] == names
    # The set point of that time.
    assert result_c.events[1].time == 36.0
    assert set(np.unique(brake)) == {0.0, 1.0}
    assert np.all(result_c.column('command')[brake == 1.0] == 0.0)


def test_car_that_starts_beyond_a_limit_is_an_emergency_at_once(machinery):
    scenario = Scenario(duration=0.1, initial_state=InitialState(car_position=-5.5))
    events = simulate(machinery, scenario).events
    assert list(map(tuple, events)) == [(0.0, 'emergency'), (0.0, 'brake_engaged')]
    without = simulate(machinery, scenario.replace(diagnosis=False))
    assert without.events == ()


def test_a_run_of_too_many_rows_is_refused(machinery):
    with pytest.raises(InputError, match=r'gives 100000000001 rows .*; take a shorter duration$'):
        simulate(machinery, Scenario(duration=1e9))
