"""Random operation of the machine for driving: it ends no run and breaks no bound."""

import numpy as np
import pytest
from harvesters import REALISTIC

from longreach_dynamics.errors import InputError
from longreach_harvester.machine import STEP, Harvester
from longreach_harvester.parameters import JOINTS
from longreach_harvester.scenario import Scenario
from longreach_harvester.teleoperation import Measurement, Teleoperation
from longreach_machine.machine import BY_SCENARIO
from longreach_machine.teleoperation import FUNCTIONS, OperatorState
from longreach_machine.testing import random_operation

DURATION, HEAVIEST = 20.0, 600.0  # [s], [kg]
CYCLE = 10  # steps
# Of the draws 0 to 59 those that come nearest to a bound of pressures, strokes or cavitation.
SPOOLS, KEYS = (0, 1, 6, 10, 14, 20, 31, 34, 43, 45, 50), (0, 1, 6, 11, 22, 37, 38, 48, 52, 54)
# By which stops yield [m], and pressures exceed those of relief valves that are fully open [Pa].
YIELDED, MARGIN = 0.01, 5e6


def any_machine(random, **changes):
    """Return the machine in any pose, with a log that is released, and one that is taken."""
    low, high = np.clip(REALISTIC.joint_limits().T, -np.pi, np.pi)
    while True:
        times = np.sort(random.choice(np.arange(1, 100 * int(DURATION)), 3, replace=False)) / 100
        masses = random.uniform(1.0, HEAVIEST, 2)
        scenario = Scenario(
            duration=DURATION,
            angles=tuple(random.uniform(low, high).tolist()),
            rod_pressure=1e7,
            log=masses[0],
            attach=[{'time': times[1], 'mass': masses[1]}],
            release=[times[0], times[2]],
            **changes,
        )
        try:
            machine = Harvester(REALISTIC, scenario)
        except InputError:
            # That pressure in the rod sides does not hold a stick that is folded in.
            continue
        relief = [actuator.relief.head for actuator in REALISTIC.actuators]
        if (machine.initial_state().y[6:9] < relief).all():
            return machine


def check(rows, state):
    """Check rows of all steps, and the state at the end."""
    assert rows.shape[0] == round(DURATION / STEP)
    assert np.isfinite(rows).all()
    assert state.counters[1] > 0.0, 'no oil cavitates'
    for i, actuator in enumerate(REALISTIC.actuators):
        most = actuator.relief.override + MARGIN
        assert rows[:, 6 + i].max() < actuator.relief.head + most
        assert rows[:, 9 + i].max() < actuator.relief.rod + most
        if i > 0:
            low, high = (actuator.linkage.position(f(rows[:, i])) for f in (np.min, np.max))
            assert -YIELDED < low < high < actuator.stroke + YIELDED


@pytest.mark.slow_after(2)
@pytest.mark.parametrize('seed', SPOOLS)
def test_spools(seed):
    random = np.random.default_rng(seed)
    knots = {name: [] for name in JOINTS}
    for command in random_operation(random, len(JOINTS), DURATION):
        for name, spool in zip(JOINTS, command.spools, strict=True):
            knots[name] += [(command.time, knots[name][-1][1])] if knots[name] else []
            knots[name].append((command.time, spool))
    machine = any_machine(random, spools=knots)
    steps = round(DURATION / STEP)
    state, rows = machine.advance_recorded(machine.initial_state(), BY_SCENARIO, 0, steps, 1)
    check(rows, state)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize('seed', KEYS)
def test_keys_by_joint_and_by_tip(seed):
    """What is held changes, and so does what it moves: joints, or the tip."""
    random = np.random.default_rng(1000 + seed)
    machine = any_machine(random)
    seats = [Teleoperation.of(REALISTIC, control) for control in ('joints', 'tip')]
    held = list(random_operation(random, len(FUNCTIONS), DURATION))
    seat, asked = seats[0], {}
    state, levers, tables = machine.initial_state(), OperatorState(), []
    for first in range(0, round(DURATION / STEP), CYCLE):
        time = first * STEP
        if held and held[0].time <= time:
            asked = dict(zip(FUNCTIONS, held.pop(0).spools, strict=True))
            seat = seats[random.integers(2)]
        levers = seat.take(levers, seat.order_of(asked), time)
        levers, command = seat.cycle(levers, Measurement(time, state.y[:3]), time)
        state, rows = machine.advance_recorded(state, command or seat.closed, first, CYCLE, 1)
        tables.append(rows)
    check(np.vstack(tables), state)
