"""Machines that follow trajectories in closed loop: aborted goals, and anything that is sent."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from longreach_boom.follower import BoomFollower
from longreach_boom.follower import Measurement as BoomMeasurement
from longreach_boom.machine import Boom
from longreach_boom.parameters import load_boom
from longreach_boom.scenario import Scenario as BoomScenario
from longreach_boom.state import StateParts, piston_positions
from longreach_dynamics.errors import InputError
from longreach_harvester.control import load_controller
from longreach_harvester.follower import HarvesterFollower
from longreach_harvester.follower import Measurement as HarvesterMeasurement
from longreach_harvester.machine import Harvester
from longreach_harvester.parameters import load_harvester
from longreach_harvester.scenario import resting_scenario
from longreach_machine.trajectory_following import (
    FARTHEST,
    FollowerState,
    Order,
    TrajectoryFollower,
)
from longreach_machine.trajectory_goals import GOAL, PATH, Goal, Outcome, Tolerances
from longreach_symbolic.arm import designed_arm
from longreach_symbolic.follower import LinksFollower
from longreach_symbolic.links import load_links
from longreach_symbolic.machine import BRAKES, FlexibleLinks
from longreach_symbolic.scenario import resting_scenario as resting_scenario_of_links


class Loop:
    """A machine and its controller, cycle by cycle."""

    def __init__(
        self,
        machine: Any,
        follower: TrajectoryFollower[Any, Any],
        measure: Callable[[Any], Any],
        safe: Any,
        region: np.ndarray,
    ) -> None:
        self.machine, self.follower, self.measure, self.safe = machine, follower, measure, safe
        # Lower and upper angles [rad] at which the machine can hold itself, (2, N).
        self.region = region
        self.cycle, self.plant = 0, machine.initial_state()
        self.state: FollowerState
        self.state, self._command = follower.answer(None, 0.0, measure(self.plant))

    @property
    def time(self) -> float:
        return self.cycle * self.follower.sample_time

    def go_on(self) -> np.ndarray:
        """Go on by a cycle, and return where the machine is [rad]."""
        interval = self.follower.sample_time
        self.plant = self.machine.advance(self.plant, self._command, self.time, interval)
        self.cycle += 1
        self.state, self._command = self.follower.answer(
            self.state, self.time, self.measure(self.plant)
        )
        return self.state.angles

    def follow(self, seconds: float, angles: np.ndarray, **more: Any) -> Goal:
        """Follow a trajectory of one point, and return it as a goal."""
        joints = tuple(range(len(angles)))
        order = Order(joints, [seconds], [angles.tolist()], **more)
        self.state = self.follower.follow(self.state, order, self.time)
        assert self.state.trajectory is not None
        limits = Tolerances(np.full(len(joints), PATH), np.full(len(joints), GOAL))
        return Goal(tuple(self.follower.joints), self.state.trajectory, limits)

    def send(self, random: np.random.Generator) -> None:
        """Send anything: trajectories that may be refused, streams, stops, silence."""
        low, high = self.region
        points, every = int(random.integers(1, 4)), range(len(low))
        joints = tuple(sorted(random.permutation(every)[: random.integers(1, len(low) + 1)]))
        scale = random.choice([0.02, 0.2, 1.0])
        angles = self.state.angles + scale * random.normal(size=(points, len(low)))
        angles = np.clip(angles, low, high)[:, joints]
        times = np.cumsum(random.exponential(random.choice([0.2, 2.0, 8.0]), points))
        kind = random.choice(['trajectory', 'stream', 'stop', 'silence'], p=[0.5, 0.35, 0.1, 0.05])
        if kind == 'stream':
            wanted = dict(zip(joints, angles[0].tolist(), strict=True))
            self.state = self.follower.stream(self.state, self.time, wanted)
        elif kind == 'stop':
            self.state = self.follower.stop(self.state, self.time)
        elif kind == 'silence':
            # No sample arrives, and the plant brakes or closes its valves.
            interval = random.choice([0.1, 1.0])
            self.plant = self.machine.advance(self.plant, self.safe, self.time, interval)
            self.cycle += round(interval / self.follower.sample_time)
        else:
            if random.random() < 0.1:
                angles[0, 0], times[0] = random.choice([(np.nan, 1.0), (9.0, 1.0), (0.1, -1.0)])
            if random.random() < 0.2:
                times, angles[0] = times - times[0], self.state.angles[list(joints)]
            rates = random.normal(scale=0.02, size=angles.shape) * (
                np.arange(points)[::-1, None] > 0
            )
            start = self.time + random.choice([0.0, -5.0, 1.0])
            rates = random.choice([0, 1]) * rates if random.random() < 0.3 else None
            order = Order(joints, times, angles, start, rates)
            tolerance = random.choice([PATH, np.inf, 0.002])
            self.state = self.follower.follow(self.state, order, self.time, tolerance)


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

    # Further out, relief valves cannot hold the load while it swings.
    region = known.pose('site') + np.radians([[-15.0], [15.0]])
    follower = BoomFollower(known, None, 0.005)
    return Loop(machine, follower, measure, (0.0,) * known.size, region)


def harvester(weaker: float = 1.0) -> Loop:
    """Return a harvester at rest; its valves are weaker than its controllers know."""
    known, changes = load_harvester(), {}
    for name in ('swing_motor', 'boom_cylinder', 'stick_cylinder'):
        actuator = getattr(known, name)
        valve = actuator.valve.replace(resistance=actuator.valve.resistance / weaker**2)
        changes[name] = actuator.replace(valve=valve)
    machine = Harvester(known.replace(**changes), resting_scenario())
    follower = HarvesterFollower(known, load_controller())

    def measure(state: Any) -> HarvesterMeasurement:
        return HarvesterMeasurement(state.y[:3])

    # Stretched and low, its supply cannot hold it.
    region = np.array([(-2.0, -0.5, -2.2), (2.0, 1.1, -0.5)])
    return Loop(machine, follower, measure, (0.0,) * 3, region)


def links() -> Loop:
    """Return two links at rest."""
    known = load_links()
    machine = FlexibleLinks(known, designed_arm(known), resting_scenario_of_links(known))
    follower = LinksFollower(machine.controller)
    return Loop(
        machine,
        follower,
        lambda state: follower.measured(*machine.controller.motors(state.x)),
        BRAKES,
        np.array([(-2.0,) * 2, (2.0,) * 2]),
    )


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
    there, most = loop.state.angles.copy(), loop.follower.rate_limits(loop.state.angles[None])[0]
    # At half of what its joint could do, ten degrees per second at most.
    rate = 0.5 * min(abs(most[joint, (direction + 1) // 2]), np.radians(20.0))
    there[joint] += direction * np.radians(14.0)
    goal, verdict = loop.follow(np.radians(14.0) * 15.0 / 8.0 / rate, there), None
    while verdict is None:
        verdict = goal.judge(loop.time, loop.go_on())
    assert verdict.outcome is Outcome.PATH_TOLERANCE_VIOLATED
    assert np.abs(loop.state.reference(loop.time).angles - loop.state.angles).max() > PATH
    loop.state = loop.follower.stop(loop.state, loop.time)
    here, rates = loop.state.angles, np.abs(loop.state.rates)
    if hold:
        goal, verdict = loop.follow(1.0, here), None
        while verdict is None:
            verdict = goal.judge(loop.time, loop.go_on())
        assert verdict.outcome is Outcome.SUCCESSFUL
    way = np.array([loop.go_on() for _ in range(round(5.0 / loop.follower.sample_time))]) - here
    assert (np.abs(way) <= 0.25 * rates + 0.35 * rates.max()).all()


def test_a_point_at_once_does_not_move() -> None:
    """The only point of a trajectory, at time 0, is where the joints are, or refused."""
    loop = boom()
    here = loop.state.reference(0.0).angles
    loop.follow(0.0, here)
    with pytest.raises(InputError, match=r'joint beam_1 .* give the first point a later'):
        loop.follow(0.0, here + np.radians(0.4))


def test_links_come_to_rest_where_they_are() -> None:
    loop = links()
    loop.follow(2.0, loop.state.angles + np.array([0.6, -0.9]))
    for _ in range(200):
        loop.go_on()
    loop.state = loop.follower.stop(loop.state, loop.time)
    here, rates = loop.state.angles, np.abs(loop.state.rates)
    assert rates.min() > 0.4
    way = np.array([loop.go_on() for _ in range(1000)]) - here
    assert (np.abs(way) <= 0.25 * rates + 0.1 * rates.max()).all()


def test_links_that_fall_behind_in_motion_are_not_jerked() -> None:
    loop = links()
    loop.follow(2.0, loop.state.angles + np.array([0.6, -0.9]))
    torques = []
    for cycle in range(400):
        if cycle == 200:
            # The reference is away at once: it begins anew where and how the links move.
            planned = loop.state.trajectory
            assert planned is not None
            away = dataclasses.replace(planned, angles=planned.angles + FARTHEST)
            loop.state = loop.state._replace(trajectory=away)
        loop.go_on()
        torques.append(np.abs(loop.plant.torques).max())
    assert loop.state.resumptions == 1
    assert max(torques[200:]) < 2.0 * max(torques[:200])


# Of the minutes 2 to 41 of each machine those that are farthest from their reference, begin anew
# most often, come nearest to a limit, or settle latest and farthest from it.
MINUTES = {
    boom: (5, 8, 12, 13, 17, 23, 35),
    harvester: (9, 19, 23, 25, 32, 34, 36, 37),
    links: (2, 8, 10, 16, 19, 41),
}


@pytest.mark.slow_after(3)
@pytest.mark.parametrize(
    ('make', 'minutes', 'seed'),
    [
        *((make, 0.3, 1) for make in MINUTES),
        *((make, 1.0, seed) for make, seeds in MINUTES.items() for seed in seeds),
    ],
)
def test_nothing_that_is_sent_ends_a_machine(
    make: Callable[[], Loop], minutes: float, seed: int
) -> None:
    loop, random, refused, sent = make(), np.random.default_rng(seed), 0, 0
    low, high = loop.follower.machine.joint_limits().T
    pause, way = 0.0, []
    while loop.time < 60.0 * minutes:
        if loop.time >= pause:
            pause, sent = loop.time + random.exponential(1.5), sent + 1
            try:
                loop.send(random)
            except InputError:
                refused += 1
        way.append((loop.go_on(), loop.state.reference(loop.time).angles))
    angles, wanted = np.array(way).swapaxes(0, 1)
    assert np.isfinite(angles).all()
    assert ((low <= wanted) & (wanted <= high)).all()
    # And what it goes on within a cycle.
    assert np.abs(wanted - angles).max() < FARTHEST + np.radians(1.0)
    assert 0 < refused < 0.9 * sent
    loop.state = loop.follower.stop(loop.state, loop.time)
    errors = [
        loop.go_on() - loop.state.reference(loop.time).angles
        for _ in range(round(20.0 / loop.follower.sample_time))
    ]
    # A joint that gave way is led back. The harvester's swing moves by a degree between both sides
    # of its dead band.
    assert np.abs(errors[-1000:]).max() < np.radians(1.5)
