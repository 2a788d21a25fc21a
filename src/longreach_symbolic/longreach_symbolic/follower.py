"""
The controllers of flexible links with what they follow.

A trajectory that is sent takes precedence over the scenario, see
:mod:`longreach_machine.trajectory_following`. Angles are those of the chords. Where they are is
what the motors say: the chords of links that rest with the motors where they are, so that a swing
of the links is no deviation from the reference.

Motors have no limits, but links that bend by more than their length end a run. At an angular
acceleration a of a joint they bend by about a l / omega^2, with their length l in one line and
their lowest frequency omega with locked motors. Trajectories and streams may bend them by up to
0.2 times the length of the shortest one: a is bounded so, and rates by sqrt(a), at which the
centripetal acceleration is as large.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from longreach_dynamics.errors import InputError, LongreachError, check_count
from longreach_machine.trajectories import CubicTrajectory, Reference, Trajectory
from longreach_machine.trajectory_following import FollowerState, Order, TrajectoryFollower
from longreach_machine.trajectory_goals import PATH
from longreach_symbolic.arm import lowest_vibration
from longreach_symbolic.machine import Controller, Torques, joint_names

# Largest bend of a link by motions that are sent, over its length.
_BEND = 0.2
# Interval of differences that give rates [s].
_APART = 1e-3
# Rounds of the search for chords; in each the error falls to the share of the links' bend.
_ROUNDS = 4


class Measurement(NamedTuple):
    """What the controllers know of the links in one cycle."""

    motors: np.ndarray  # (N,) angles [rad]
    rates: np.ndarray  # (N,) of the motors [rad/s]
    angles: np.ndarray  # (N,) of the chords [rad]


@dataclasses.dataclass(frozen=True, eq=False)
class _CircleTrajectory(CubicTrajectory):
    """The way on a circle: it goes on, late or not, after the last waypoint but one."""

    later: Callable[[float], np.ndarray] = dataclasses.field(kw_only=True)  # angles at a time
    end: float = dataclasses.field(kw_only=True)  # time of that waypoint [s]

    def at(self, time: float) -> Reference:
        """Return the reference at a time [s]."""
        # It rests at the last waypoint only where no other is left.
        if len(self.times) < 3 or time <= self.times[-2]:
            return super().at(time)
        time += self.end - float(self.times[-2])
        behind, angles, ahead = (self.later(time + k * _APART) for k in (-1, 0, 1))
        return Reference(angles, (ahead - behind) / (2.0 * _APART))


@dataclasses.dataclass(frozen=True, eq=False)
class LinksFollower(TrajectoryFollower[Measurement, Torques]):
    """The controllers with what they follow."""

    controller: Controller
    largest_acceleration: float = dataclasses.field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Make the plan of the scenario."""
        links, scenario = self.controller.links, self.controller.scenario
        count = len(links.links)
        object.__setattr__(self, 'machine', self)
        object.__setattr__(self, 'joints', joint_names(links)[:count])
        object.__setattr__(self, 'sample_time', self.controller.arm.sample_time)
        plan: Trajectory
        if scenario.circle is None:
            plan = Trajectory.of(scenario.trajectory)
        else:
            # For a machine that is away from it; else the scenario itself is followed.
            times = np.arange(0.0, scenario.duration + self.sample_time, self.sample_time)
            angles = np.array([scenario.angles(time, links) for time in times])
            rates = np.gradient(angles, times, axis=0)
            rates[-1] = 0.0
            later, end = self.controller.planned_angles, float(times[-2])
            plan = _CircleTrajectory(times, angles, rates, later=later, end=end)
        object.__setattr__(self, '_plan', plan)
        lengths = [link.length for link in links.links]
        most = _BEND * lowest_vibration(links) ** 2 * min(lengths) / sum(lengths)
        object.__setattr__(self, 'largest_acceleration', most)

    def joint_limits(self) -> np.ndarray:
        """Return the limits of the joints [rad], (N, 2): none."""
        return np.tile((-np.inf, np.inf), (len(self.joints), 1))

    def rate_limits(self, angles: np.ndarray) -> np.ndarray:
        """Return the limits of rates [rad/s] at angles (M, N), (M, N, 2): the same everywhere."""
        most = math.sqrt(self.largest_acceleration)
        return np.tile((-most, most), (*angles.shape, 1))

    def follow(
        self, state: FollowerState, order: Order, time: float, tolerance: float | np.ndarray = PATH
    ) -> FollowerState:
        """Return the state with a trajectory that is sent; one that bends links is refused."""
        state = super().follow(state, order, time, tolerance)
        assert state.trajectory is not None
        peaks, most = state.trajectory.peak_accelerations(), self.largest_acceleration
        if len(order.times) and peaks.max() > most:
            joint = self.joints[int(peaks.argmax())]
            raise InputError(
                f'the trajectory has {peaks.max():.4g} rad/s^2 in {joint},'
                f' allowed: {most:.4g} rad/s^2, which bend links by {_BEND:g} of their length;'
                ' plan more time'
            )
        return state

    def check_pose(self, angles: np.ndarray) -> None:
        """Raise InputError for angles (N,) [rad] at which links cannot rest."""
        check_count('pose', angles, len(self.joints))
        try:
            self.controller.rest_at(angles)
        except LongreachError as error:
            raise InputError(str(error)) from error

    def measured(self, motors: np.ndarray, rates: np.ndarray) -> Measurement:
        """Return the measurements for angles [rad] and rates [rad/s] of the motors, each (N,)."""
        angles = motors.copy()
        for _ in range(_ROUNDS):
            q, _ = self.controller.rest_at(angles)
            angles += motors - self.controller.motors(np.concatenate((q, q)))[0]
        return Measurement(motors, rates, angles)

    def planned(self, angles: np.ndarray) -> Trajectory:  # noqa: ARG002
        """Return what the scenario says."""
        plan: Trajectory = self.__dict__['_plan']
        return plan

    def _watch(self, state: FollowerState, time: float) -> FollowerState:
        """Return the state, resumed when the links do not follow; straight ones sink at first."""
        plan: Trajectory = self.__dict__['_plan']
        sinks = self.controller.scenario.straight and time <= plan.times[0]
        return state if sinks and state.trajectory is plan else super()._watch(state, time)

    def cycle(
        self, state: FollowerState, time: float, measured: Measurement
    ) -> tuple[FollowerState, Torques]:
        """Return the state after a cycle, and its torques, with those that the way needs."""
        controller = self.controller
        ahead: Callable[[float], np.ndarray]
        if state.streamed is not None:
            limits = self.rate_limits(state.streamed.angles[None])[0]
            streamed, now = state.streamed.moved(self.sample_time, limits)
            state = state._replace(streamed=streamed)

            def ahead(later: float) -> np.ndarray:
                return np.asarray(now.angles + (later - time) * now.rates)
        elif state.trajectory is self.__dict__['_plan']:
            time = controller.time(round(time / self.sample_time))
            ahead = controller.planned_angles
        else:
            trajectory = state.trajectory
            assert trajectory is not None
            onset, now = trajectory.onset, trajectory.at(time)
            jumps = (trajectory.times[0], *([onset.begin] if onset else []))

            def ahead(later: float) -> np.ndarray:
                # Rates jump where it begins, such as in the cycle in which it is resumed.
                first, last = sorted((time, later))
                if any(first < jump <= last for jump in jumps):
                    return now.angles + (later - time) * now.rates
                return trajectory.at(later).angles

        return state, controller.torques_towards(ahead, measured.motors, measured.rates, time)
