"""What the controller follows: trajectories, a pose to hold, or nothing."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from longreach_boom.control import JointController
from longreach_boom.guidance import Guidance, GuidanceState, Measurement, Order
from longreach_boom.parameters import BoomParameters
from longreach_boom.scenario import Scenario, ValveCommand
from longreach_dynamics.errors import InputError
from longreach_dynamics.trajectories import Trajectory, Waypoint

T = 0.005
SITE = (70.0, -50.0, -35.0, -30.0)
THERE = (65.0, -45.0, -30.0, -20.0)
DRIVE = Scenario(duration=9.0, pose='site', trajectory=(Waypoint(1.0, SITE), Waypoint(5.0, THERE)))
VALVES = Scenario(
    duration=9.0, pose='site', valve_commands=(ValveCommand(0.01, (0.5, 0.0, 0.0, -0.5)),)
)


def measurement(boom: BoomParameters, angles_deg: tuple[float, ...] = SITE) -> Measurement:
    angles = np.radians(angles_deg)
    pistons = [c.linkage.position(a) for c, a in zip(boom.cylinders, angles, strict=True)]
    return Measurement(angles, np.array(pistons), np.full(4, 1.5e7), np.full(4, 5e6))


def reference(state: GuidanceState, time: float) -> np.ndarray:
    assert state.trajectory is not None
    return np.degrees(state.trajectory.at(time).angles)


def test_a_scenarios_trajectory_is_followed_by_the_controller(boom: BoomParameters) -> None:
    guidance = Guidance(boom, DRIVE, T)
    measured = measurement(boom)
    state = guidance.begin(measured.angles)
    controller, trajectory = JointController(boom, T), Trajectory.of(DRIVE.trajectory)
    memory = controller.initial_state()
    for k in range(590, 620):
        state, command = guidance.cycle(state, k * T, measured)
        memory, spools = controller.cycle(memory, *measured[1:], reference=trajectory.at(k * T))
        assert command.spools == tuple(spools)
        assert any(command.spools)


def test_without_a_scenario_it_holds_the_first_pose(boom: BoomParameters) -> None:
    guidance = Guidance(boom, None, T)
    state = guidance.begin(np.radians(SITE))
    state, command = guidance.cycle(state, 0.0, measurement(boom))
    assert not any(command.spools)
    # Pushed away, it comes back.
    away = measurement(boom, (71.0, -50.0, -36.0, -30.0))
    state, command = guidance.cycle(state, T, away)
    assert command.spools[0] < 0.0 < command.spools[2]
    assert reference(state, 100.0) == pytest.approx(SITE)


def test_a_scenario_without_a_trajectory_has_the_valves(boom: BoomParameters) -> None:
    away = measurement(boom, THERE)
    hold = Guidance(boom, Scenario(duration=1.0, pose='site'), T)
    state = hold.begin(away.angles)
    assert hold.cycle(state, 0.5, away)[1].spools == (0.0,) * 4
    guidance = Guidance(boom, VALVES, T)
    state = guidance.begin(away.angles)
    assert guidance.cycle(state, 0.005, away)[1].spools == (0.0,) * 4
    assert guidance.cycle(state, 0.010, away)[1].spools == (0.5, 0.0, 0.0, -0.5)


def test_valves_of_a_scenario_change_on_cycles_only(boom: BoomParameters) -> None:
    off = VALVES.replace(valve_commands=(ValveCommand(0.012, (0.0,) * 4),))
    error = r'valve_commands\[0\]\.time = 0\.012 s, allowed: whole steps of 0\.005 s'
    with pytest.raises(InputError, match=error):
        Guidance(boom, off, T)
    Guidance(boom, off, 0.001)


def order(**changes: Any) -> Order:
    """All joints THERE within 4 s."""
    values = {'joints': (0, 1, 2, 3), 'times': [4.0], 'angles': [np.radians(THERE)]}
    return Order(**{**values, **changes})


@pytest.mark.parametrize('scenario', [None, DRIVE, VALVES])
def test_an_order_goes_from_here_to_there(boom: BoomParameters, scenario: Scenario | None) -> None:
    guidance = Guidance(boom, scenario, T)
    here = np.radians(SITE)
    state = guidance.follow(guidance.begin(here), order(), 0.5, here)
    assert reference(state, 0.5) == pytest.approx(SITE)
    assert reference(state, 2.5) == pytest.approx(np.add(SITE, THERE) / 2.0)
    assert reference(state, 4.5) == pytest.approx(THERE)
    assert reference(state, 99.0) == pytest.approx(THERE)


def test_an_order_in_mid_way_begins_at_the_reference_not_at_the_boom(boom: BoomParameters) -> None:
    guidance = Guidance(boom, DRIVE, T)
    state = guidance.begin(np.radians(SITE))
    before = reference(state, 3.0)
    lagging = np.radians(SITE)
    state = guidance.follow(state, order(), 3.0, lagging)
    assert reference(state, 3.0) == pytest.approx(before)
    assert reference(state, 7.0) == pytest.approx(THERE)


def test_an_order_may_start_later_but_not_in_the_past(boom: BoomParameters) -> None:
    guidance = Guidance(boom, None, T)
    here = np.radians(SITE)
    state = guidance.follow(guidance.begin(here), order(start=10.0), 2.0, here)
    assert reference(state, 10.0) == pytest.approx(SITE)
    assert reference(state, 14.0) == pytest.approx(THERE)
    state = guidance.follow(guidance.begin(here), order(start=1.0), 2.0, here)
    assert reference(state, 2.0) == pytest.approx(SITE)
    assert reference(state, 6.0) == pytest.approx(THERE)


def test_joints_that_an_order_leaves_out_stay(boom: BoomParameters) -> None:
    guidance = Guidance(boom, None, T)
    here = np.radians(SITE)
    some = order(joints=(3, 1), angles=[np.radians((-20.0, -45.0))])
    state = guidance.follow(guidance.begin(here), some, 0.0, here)
    assert reference(state, 9.0) == pytest.approx((70.0, -45.0, -35.0, -20.0))


def test_an_order_without_points_stops(boom: BoomParameters) -> None:
    guidance = Guidance(boom, DRIVE, T)
    state = guidance.begin(np.radians(SITE))
    here = reference(state, 3.0)
    state = guidance.follow(state, order(times=[], angles=[]), 3.0, np.radians(SITE))
    assert reference(state, 3.0) == pytest.approx(here)
    assert reference(state, 9.0) == pytest.approx(here)


def test_a_first_point_at_time_0_is_where_it_is(boom: BoomParameters) -> None:
    guidance = Guidance(boom, None, T)
    here = np.radians(SITE)
    near = [here + math.radians(0.2), np.radians(THERE)]
    state = guidance.follow(guidance.begin(here), order(times=[0.0, 4.0], angles=near), 1.0, here)
    assert reference(state, 1.0) == pytest.approx(SITE)
    assert reference(state, 5.0) == pytest.approx(THERE)


@pytest.mark.parametrize(
    ('changes', 'error'),
    [
        ({'times': [0.0]}, r'begins with joint beam_1 at 65 deg, allowed at time 0: within 0\.5'),
        ({'times': [2.0, 1.0], 'angles': [np.radians(THERE)] * 2}, 'allowed: after'),
        ({'times': [math.nan]}, 'has the time nan, allowed'),
        ({'angles': [[math.nan] * 4]}, 'has the angle nan, allowed'),
        ({'angles': [np.radians((170.0, 0.0, 0.0, 0.0))]}, 'angle of joint beam_1 = 170 deg'),
        ({'angles': [[1.0]]}, r'angles of shape \(1, 1\), allowed: \(1, 4\)'),
    ],
)
def test_orders_that_cannot_be(boom: BoomParameters, changes: dict[str, Any], error: str) -> None:
    guidance = Guidance(boom, None, T)
    here = np.radians(SITE)
    with pytest.raises(InputError, match=error):
        guidance.follow(guidance.begin(here), order(**changes), 0.0, here)
