"""Machines that follow trajectories in closed loop: aborted goals, and anything that is sent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from longreach_boom.guidance import Guidance as BoomGuidance
from longreach_boom.guidance import Measurement as BoomMeasurement
from longreach_boom.machine import Boom
from longreach_boom.parameters import load_boom
from longreach_boom.scenario import Scenario as BoomScenario
from longreach_boom.state import StateParts, piston_positions
from longreach_dynamics.trajectory_following import FollowerState, Order, TrajectoryFollower
from longreach_dynamics.trajectory_goals import GOAL, PATH, Goal, Outcome, Tolerances
from longreach_harvester.control import load_controller
from longreach_harvester.guidance import Guidance as HarvesterGuidance
from longreach_harvester.guidance import Measurement as HarvesterMeasurement
from longreach_harvester.machine import Harvester
from longreach_harvester.parameters import load_harvester
from longreach_harvester.scenario import resting_scenario


class Loop:
    """A machine and its controller, cycle by cycle."""

    def __init__(
        self, machine: Any, guidance: TrajectoryFollower[Any, Any], measure: Callable[[Any], Any]
    ) -> None:
        self.machine, self.guidance, self.measure = machine, guidance, measure
        self.cycle, self.plant = 0, machine.initial_state()
        self.state: FollowerState
        self.state, self._command = guidance.answer(None, 0.0, measure(self.plant))

    @property
    def time(self) -> float:
        return self.cycle * self.guidance.sample_time

    def go_on(self) -> np.ndarray:
        """Go on by a cycle, and return where the machine is [rad]."""
        interval = self.guidance.sample_time
        self.plant = self.machine.advance(self.plant, self._command, self.time, interval)
        self.cycle += 1
        self.state, self._command = self.guidance.answer(
            self.state, self.time, self.measure(self.plant)
        )
        return self.state.angles

    def follow(self, seconds: float, angles: np.ndarray, **more: Any) -> Goal:
        """Follow a trajectory of one point, and return it as a goal."""
        joints = tuple(range(len(angles)))
        order = Order(joints, [seconds], [angles.tolist()], **more)
        self.state = self.guidance.follow(self.state, order, self.time)
        assert self.state.trajectory is not None
        limits = Tolerances(np.full(len(joints), PATH), np.full(len(joints), GOAL))
        return Goal(tuple(self.guidance.joints), self.state.trajectory, limits)


def boom(weaker: float = 1.0, load: float = 90.0) -> Loop:
    """Return a boom at the site pose; its valves are weaker than its controller knows."""
    known = load_boom()
    cylinders = [
        c.replace(valve=c.valve.replace(area=c.valve.area * weaker)) for c in known.cylinders
    ]
    machine = Boom(
        known.replace(cylinders=cylinders),
        BoomScenario(duration=1.0, pose='site', loads=({'mass': load},)),
        1e-3,
    )
    constants = machine.constants(machine.initial_state().loads)

    def measure(state: Any) -> BoomMeasurement:
        parts = StateParts.of(state.y, known)
        angles = parts.q[: known.size]
        pistons = piston_positions(angles, constants)
        return BoomMeasurement(angles, pistons, parts.head_pressures, parts.rod_pressures)

    return Loop(machine, BoomGuidance(known, None, 0.005), measure)


def harvester(weaker: float = 1.0) -> Loop:
    """Return a harvester at rest; its valves are weaker than its controllers know."""
    known, changes = load_harvester(), {}
    for name in ('swing_motor', 'boom_cylinder', 'stick_cylinder'):
        actuator = getattr(known, name)
        valve = actuator.valve.replace(resistance=actuator.valve.resistance / weaker**2)
        changes[name] = actuator.replace(valve=valve)
    machine = Harvester(known.replace(**changes), resting_scenario())
    guidance = HarvesterGuidance(known, load_controller())
    return Loop(machine, guidance, lambda state: HarvesterMeasurement(state.y[:3]))


@pytest.mark.parametrize(
    ('make', 'joint', 'direction', 'weaker'),
    [
        (boom, 0, -1, 0.3),
        (boom, 1, 1, 0.5),
        (boom, 3, -1, 0.3),
        (harvester, 0, 1, 0.3),
        (harvester, 1, 1, 0.3),
        (harvester, 2, 1, 0.3),
    ],
)
@pytest.mark.parametrize('hold', [False, True])
def test_after_an_aborted_goal_a_machine_comes_to_rest_where_it_is(
    make: Callable[[float], Loop], joint: int, direction: int, weaker: float, hold: bool
) -> None:
    loop = make(weaker)
    there, most = loop.state.angles.copy(), loop.guidance.rate_limits(loop.state.angles[None])[0]
    # At half of what its joint could do, ten degrees per second at most.
    rate = 0.5 * min(abs(most[joint, (direction + 1) // 2]), np.radians(20.0))
    there[joint] += direction * np.radians(14.0)
    goal, verdict = loop.follow(np.radians(14.0) * 15.0 / 8.0 / rate, there), None
    while verdict is None:
        verdict = goal.judge(loop.time, loop.go_on())
    assert verdict.outcome is Outcome.PATH_TOLERANCE_VIOLATED
    assert np.abs(loop.state.reference(loop.time).angles - loop.state.angles).max() > PATH
    loop.state = loop.guidance.stop(loop.state, loop.time)
    here, rates = loop.state.angles, np.abs(loop.state.rates)
    if hold:
        goal, verdict = loop.follow(1.0, here), None
        while verdict is None:
            verdict = goal.judge(loop.time, loop.go_on())
        assert verdict.outcome is Outcome.SUCCESSFUL
    way = np.array([loop.go_on() for _ in range(round(5.0 / loop.guidance.sample_time))]) - here
    assert (np.abs(way) <= 0.25 * rates + 0.35 * rates.max()).all()
