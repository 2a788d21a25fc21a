"""Random operation of the installed boom: it ends no run and breaks no bound."""

import numpy as np
import pytest
from test_motion import energy, power

from longreach_boom.machine import STEP, Boom
from longreach_boom.scenario import Attachment, HangingLoad, Scenario
from longreach_boom.state import StateParts, flows_of, piston_positions
from longreach_boom.statics import beyond_relief
from longreach_dynamics.errors import LongreachError
from longreach_machine.hydraulic_columns import port_series
from longreach_machine.machine import BY_SCENARIO
from longreach_machine.testing import random_operation

DURATION = 20.0
HEAVIEST = 150.0  # kg
LOWEST, HIGHEST = 5e5, 300e5  # Pa
# Of the draws 0 to 122 those that come nearest to the lowest (17, 52, 91, 103) and the highest
# pressure (30, 82, 83, 108), to a stroke's end (17, 103) and to the bound of energy (29, 36, 82,
# 102, 115).
DRAWS = (0, 1, 2, 17, 29, 30, 36, 52, 82, 83, 91, 102, 103, 108, 115)


def started(boom, seed):
    """Return the boom in any pose that its relief valves hold, with loads that come and go."""
    random = np.random.default_rng(seed)
    while True:
        masses = random.uniform(1.0, HEAVIEST, 3).tolist()
        gone, here, gone_too, here_too = np.sort(random.uniform(0.0, DURATION, 4)).round(3)
        scenario = Scenario(
            duration=DURATION,
            pose_deg=tuple(np.degrees(random.uniform(*boom.joint_limits().T)).tolist()),
            loads=tuple(HangingLoad(mass) for mass in masses[: random.integers(2)]),
            release=(gone, gone_too),
            attach=(
                Attachment(time=here, mass=masses[1]),
                Attachment(time=here_too, mass=masses[2]),
            ),
            valve_commands=random_operation(random, boom.size, DURATION),
        )
        machine = Boom(boom, scenario)
        try:
            state = machine.initial_state()
        except LongreachError:
            continue  # no equilibrium: beams buckle
        head, rod = (state.y[-k * boom.size :][: boom.size] for k in (3, 2))
        if not beyond_relief(boom, head, rod):
            return machine, state


def gained(machine, load, rows, modes):
    """Return the energy that came from nowhere, as a share of what was turned over."""
    boom, p = machine.parameters, machine.constants(load)
    head, rod = flows_of(StateParts.of(rows, boom), p)
    ports = port_series(p.actuators, rows[:, -3 * boom.size :])
    into, out = head + ports[:, : boom.size], rod - ports[:, boom.size : 2 * boom.size]
    supplied = power(p, rows, modes, (into, out))
    total = energy(boom, p, load, rows[[0, -1]])
    # Stops and impulses dissipate.
    excess = total[1] - total[0] - STEP * 0.5 * np.sum(supplied[1:] + supplied[:-1])
    return float(excess / (1.0 + STEP * np.abs(supplied).sum()))


@pytest.mark.slow_after(3)
@pytest.mark.parametrize('seed', DRAWS)
def test_operation_ends_no_run_and_breaks_no_bound(seed, boom):
    machine, state = started(boom, seed)
    count = round(DURATION / STEP)
    _, rows, modes, _ = machine.advance_recorded(state, BY_SCENARIO, 0, count, 1)
    rows, modes = np.vstack([state.y, rows]), np.vstack([state.modes, modes])
    assert len(rows) == count + 1
    assert np.isfinite(rows).all()
    parts = StateParts.of(rows, boom)
    pressures = np.hstack([parts.head_pressures, parts.rod_pressures])
    assert LOWEST < pressures.min() < pressures.max() < HIGHEST
    pistons = piston_positions(parts.q[:, : boom.size], machine.constants(()))
    # A piston stops in the step in which it reaches its end.
    step = np.abs(np.diff(pistons, axis=0)).max()
    assert pistons.min() > -step
    assert (pistons - [c.stroke for c in boom.cylinders]).max() < step
    load, first = state.loads, 0
    for time, change in (*machine.scenario.load_changes(boom), (DURATION, None)):
        last = round(time / STEP)
        if last > first:
            part = slice(first, last + 1)
            assert gained(machine, load, rows[part], modes[part]) < 1e-3
        load, first = (() if change is None else (*load, change)), last
