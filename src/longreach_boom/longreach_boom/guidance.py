"""
What the controller works on: a trajectory, a pose that it holds, or the scenario's open loop.

A trajectory that was sent by hand comes before the scenario's. A scenario without a trajectory
leaves the valves to its own commands, closed when it has none. Without any scenario the controller
holds the pose in which it found the boom.

A controller that begins in mid-run, or that has not received samples for some time, finds the boom
away from the reference. The trajectory then goes on late: from where the boom is to the end of the
nearest part of the path that was due, and from there as planned, no joint faster or with a larger
acceleration than planned. The same is done for a boom that does not follow: one that stays further
from the reference than ``FAR`` and hardly moves towards it, as when its valves get no commands.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from longreach_boom.control import JointController
from longreach_boom.parameters import BoomParameters
from longreach_boom.scenario import Scenario
from longreach_boom.state import BoomCommand
from longreach_dynamics.control import ControllerState
from longreach_dynamics.errors import InputError
from longreach_dynamics.machine import step_count
from longreach_dynamics.scenarios import spools_at
from longreach_dynamics.splines import CubicTrajectory
from longreach_dynamics.trajectories import (
    PEAK_ACCELERATION,
    PEAK_RATE,
    Reference,
    Trajectory,
)

__all__ = ['FAR', 'Guidance', 'GuidanceState', 'Measurement', 'Order', 'reference_of', 'resumed']

# A first point at time 0 is where the joint is, but for this [rad].
_JUMP = math.radians(0.5)
# A boom that is so near to the reference goes on in time [rad].
_NEAR = math.radians(0.5)
# On an order to stop the joints come to rest within this time [s].
_STOPPING_TIME = 0.5
# Streamed positions are followed with a lag of this time [s], and no faster than this [rad/s].
_STREAM_TIME, _STREAM_RATE = 0.05, math.radians(10.0)
# Of the oil, to compile with [Pa].
_USUAL_PRESSURE = 1e7
# Without a cycle for longer than this the boom is taken over anew [s].
_GAP = 0.25
# A joint that is further from the reference than this [rad], and in this time [s] moves towards it
# by less than this way [rad], does not follow. At full spool the slowest joint goes five times as
# far.
FAR, _FAR_TIME, _LEAST_WAY = math.radians(3.0), 0.5, math.radians(0.15)
# Largest rate [rad/s] and acceleration [rad/s^2] on the way back to a trajectory in which nothing
# moves.
_SLOW, _GENTLE = math.radians(2.0), math.radians(2.0)


class Measurement(NamedTuple):
    """What the controller knows of the boom in one cycle."""

    angles: np.ndarray  # (N,) phi [rad]
    pistons: np.ndarray  # (N,) s_p [m]
    head_pressures: np.ndarray  # (N,) p_1 [Pa]
    rod_pressures: np.ndarray  # (N,) p_2 [Pa]


class Order(NamedTuple):
    """A trajectory that was sent by hand, for some joints or all."""

    joints: tuple[int, ...]  # (J,) indices
    times: Sequence[float]  # (K,) after its start [s]
    angles: Sequence[Sequence[float]]  # (K, J) [rad]
    start: float = 0.0  # [s]; in the past: at once
    rates: Sequence[Sequence[float]] | None = None  # (K, J) [rad/s]; None: at rest in each point


class Stream(NamedTuple):
    """Joint positions that come one by one."""

    target: np.ndarray  # (N,) the latest [rad]
    angles: np.ndarray  # (N,) the reference on its way there [rad]

    def moved(self, interval: float) -> tuple[Stream, Reference]:
        """Return the stream a cycle [s] later, and the reference: a lag of bounded rate."""
        rates = np.clip((self.target - self.angles) / _STREAM_TIME, -_STREAM_RATE, _STREAM_RATE)
        angles = self.angles + interval * rates
        return self._replace(angles=angles), Reference(angles, rates)


class Away(NamedTuple):
    """A boom that was further from the reference than ``FAR``."""

    since: float  # [s]
    angles: np.ndarray  # (N,) where it was then [rad]


class GuidanceState(NamedTuple):
    """State of the controller. Never changed in place."""

    memory: ControllerState
    trajectory: Trajectory | None = None  # none: open loop
    streamed: Stream | None = None  # positions that come one by one, in place of the trajectory
    away: Away | None = None  # none: near the reference
    left_behind: int = 0  # how often the reference went on without the boom


def reference_of(state: GuidanceState, time: float, angles: np.ndarray) -> Reference:
    """
    Return the reference at a time [s].

    Parameters
    ----------
    state : GuidanceState
    time : float
    angles : ndarray, shape (N,)
        Where the boom is [rad], the reference of an open loop.
    """
    if state.streamed is not None:
        return state.streamed.moved(0.0)[1]
    if state.trajectory is not None:
        return state.trajectory.at(time)
    return Reference(np.asarray(angles), np.zeros(len(angles)))


@dataclasses.dataclass(frozen=True)
class Guidance:
    """
    The controller with what it follows.

    Parameters
    ----------
    parameters : BoomParameters
    scenario : Scenario or None
    sample_time : float
        Interval of cycles [s].

    Raises
    ------
    InputError
        When valve commands of the scenario do not fall on cycles.
    """

    parameters: BoomParameters
    scenario: Scenario | None
    sample_time: float
    controller: JointController = dataclasses.field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Check the scenario and make the controller."""
        if self.scenario is not None:
            for index, entry in enumerate(self.scenario.valve_commands):
                what = f'with a controller, valve_commands[{index}].time'
                step_count(entry.time, self.sample_time, what)
        controller = JointController(self.parameters, self.sample_time)
        object.__setattr__(self, 'controller', controller)

    def warm_up(self) -> None:
        """Compile what a cycle needs, or load it from the cache."""
        cylinders, limits = self.parameters.cylinders, self.parameters.joint_limits()
        angles = limits.mean(axis=1)
        pistons = [c.linkage.position(a) for c, a in zip(cylinders, angles, strict=True)]
        pressures = np.full(len(cylinders), _USUAL_PRESSURE)
        here = Reference(angles, np.zeros(len(angles)))
        memory = self.begin(angles).memory
        self.controller.cycle(memory, np.array(pistons), pressures, pressures, here)

    def begin(self, angles: np.ndarray, time: float = 0.0) -> GuidanceState:
        """
        Return the state before the first cycle.

        Parameters
        ----------
        angles : ndarray, shape (N,)
            Where it finds the boom [rad].
        time : float
            Of that cycle [s]; in mid-run the boom is taken over as by :meth:`resume`.
        """
        state = self._at_the_start(angles)
        return self.resume(state, time, angles) if time > 0.0 else state

    def _at_the_start(self, angles: np.ndarray) -> GuidanceState:
        """Return the state before a first cycle at time 0."""
        memory = self.controller.initial_state()
        if self.scenario is None:
            return GuidanceState(memory, Trajectory(np.zeros(1), np.array([angles])))
        if self.scenario.trajectory:
            return GuidanceState(memory, Trajectory.of(self.scenario.waypoints(self.parameters)))
        return GuidanceState(memory)

    def resume(self, state: GuidanceState, time: float, angles: np.ndarray) -> GuidanceState:
        """
        Return the state of a controller that has not acted for some time.

        Parameters
        ----------
        state : GuidanceState
        time : float
            Now [s].
        angles : ndarray, shape (N,)
            Where the boom is [rad].

        Returns
        -------
        GuidanceState
            The same when the boom is where the reference is, within 0.5 deg. Otherwise with a
            trajectory that starts here and now, and is late.
        """
        if state.streamed is not None:
            here = np.array(angles)
            return state._replace(streamed=state.streamed._replace(angles=here))
        trajectory = state.trajectory
        if trajectory is None:
            return state
        if np.abs(trajectory.at(time).angles - angles).max() <= _NEAR:
            return state
        return state._replace(
            memory=self.controller.initial_state(),
            trajectory=resumed(trajectory, time, np.asarray(angles)),
        )

    def follow(
        self, state: GuidanceState, order: Order, time: float, angles: np.ndarray
    ) -> GuidanceState:
        """
        Return the state with a trajectory sent by hand, which takes over at once.

        The reference stays where it is until the start, and goes from there to the first point;
        joints that the order leaves out stay. An order without points stops all joints.

        Parameters
        ----------
        state : GuidanceState
        order : Order
        time : float
            Now [s].
        angles : ndarray, shape (N,)
            Measured joint angles [rad], where an open loop begins to follow.

        Raises
        ------
        InputError
            When the order is no trajectory, leaves a stroke, or begins with a jump.
        """
        here = reference_of(state, time, angles).angles
        start = max(order.start, time)
        if not len(order.times):
            held = Trajectory(np.array([time]), here[None])
            return state._replace(trajectory=held, streamed=None)
        wanted = np.asarray(order.angles, dtype=float)
        if wanted.shape != (len(order.times), len(order.joints)):
            raise InputError(
                f'the trajectory has angles of shape {wanted.shape}, allowed:'
                f' {(len(order.times), len(order.joints))}, a row for each time'
            )
        rows = np.tile(here, (len(wanted), 1))
        rows[:, list(order.joints)] = wanted
        begins = order.times[0] <= 0.0
        if begins:
            self._check_jump(here, rows[0])
            rows[0] = here
            times = start + np.asarray(order.times, dtype=float)
        else:
            rows = np.vstack([here, rows])
            times = start + np.array([0.0, *order.times])
        if order.rates is None:
            trajectory = Trajectory(times, rows)
        else:
            rates = np.zeros_like(rows)
            rates[len(rows) - len(wanted) :, list(order.joints)] = order.rates
            trajectory = CubicTrajectory(times, rows, rates)
        trajectory.check_with(self.parameters)
        return state._replace(trajectory=trajectory, streamed=None)

    def stop(self, state: GuidanceState, time: float, angles: np.ndarray) -> GuidanceState:
        """
        Return the state in which all joints come to rest soon, no faster than they move now.

        Parameters
        ----------
        state : GuidanceState
        time : float
            Now [s].
        angles : ndarray, shape (N,)
            Where the boom is [rad], for an open loop.
        """
        here, rates = reference_of(state, time, angles)
        # With a constant deceleration.
        there = here + 0.5 * _STOPPING_TIME * rates
        low, high = self.parameters.joint_limits().T
        trajectory = CubicTrajectory(
            np.array([time, time + _STOPPING_TIME]),
            np.array([here, np.clip(there, low, high)]),
            np.array([rates, np.zeros_like(rates)]),
        )
        return state._replace(trajectory=trajectory, streamed=None)

    def stream(
        self, state: GuidanceState, time: float, angles: np.ndarray, wanted: dict[int, float]
    ) -> GuidanceState:
        """
        Return the state that follows a stream of joint positions, the latest of which counts.

        Parameters
        ----------
        state : GuidanceState
        time : float
            Now [s].
        angles : ndarray, shape (N,)
            Where the boom is [rad], for an open loop.
        wanted : dict of int to float
            Positions [rad] of joints by their index; the others stay.

        Raises
        ------
        InputError
            When a position is beyond the stroke.
        """
        here = reference_of(state, time, angles).angles
        before = state.streamed or Stream(here, here)
        target = before.target.copy()
        for joint, angle in wanted.items():
            target[joint] = angle
        self.parameters.check_pose(target)
        return state._replace(streamed=before._replace(target=target))

    def _check_jump(self, here: np.ndarray, first: np.ndarray) -> None:
        """Raise InputError when a point at time 0 is not where the reference is."""
        for beam, now, then in zip(self.parameters.beams, here, first, strict=True):
            if not abs(then - now) <= _JUMP:
                raise InputError(
                    f'the trajectory begins with joint {beam.name} at'
                    f' {math.degrees(then):.6g} deg, allowed at time 0: within'
                    f' {math.degrees(_JUMP):g} deg of {math.degrees(now):.6g} deg, where it is;'
                    ' give the first point a later time'
                )

    def answer(
        self, state: GuidanceState | None, before: float, time: float, measured: Measurement
    ) -> tuple[GuidanceState, BoomCommand]:
        """
        Return the state after a sample, and the command to it.

        Parameters
        ----------
        state : GuidanceState or None
            Of the cycle before; None begins.
        before, time : float
            Of the cycle before, and of the sample [s]; after a gap the boom is taken over anew.
        measured : Measurement

        Returns
        -------
        state : GuidanceState
            Its ``left_behind`` has grown when the boom did not follow and was taken over anew.
        command : BoomCommand
        """
        if state is None:
            state = self.begin(measured.angles, time)
        elif time - before > _GAP:
            state = self.resume(state, time, measured.angles)._replace(away=None)
        else:
            state = self._watch(state, time, measured.angles)
        return self.cycle(state, time, measured)

    def _watch(self, state: GuidanceState, time: float, angles: np.ndarray) -> GuidanceState:
        """Return the state, resumed at a time [s] when the boom [rad] does not follow."""
        errors = reference_of(state, time, angles).angles - angles
        far = np.abs(errors) > FAR
        if not far.any():
            return state if state.away is None else state._replace(away=None)
        if state.away is None:
            return state._replace(away=Away(time, angles))
        if time - state.away.since < _FAR_TIME:
            return state
        way = np.sign(errors) * (angles - state.away.angles)
        if (way[far] >= _LEAST_WAY).all():
            return state._replace(away=Away(time, angles))
        state = state._replace(away=None, left_behind=state.left_behind + 1)
        return self.resume(state, time, angles)

    def cycle(
        self, state: GuidanceState, time: float, measured: Measurement
    ) -> tuple[GuidanceState, BoomCommand]:
        """Return the state after a cycle at a time [s], and its command."""
        if state.streamed is not None:
            streamed, reference = state.streamed.moved(self.sample_time)
            state = state._replace(streamed=streamed)
        elif state.trajectory is not None:
            reference = state.trajectory.at(time)
        else:
            assert self.scenario is not None
            commands = self.scenario.valve_commands
            return state, BoomCommand(spools_at(commands, time, self.parameters.size))
        memory, spools = self.controller.cycle(
            state.memory,
            measured.pistons,
            measured.head_pressures,
            measured.rod_pressures,
            reference,
        )
        return state._replace(memory=memory), BoomCommand(tuple(spools.tolist()))


def resumed(trajectory: Trajectory, time: float, angles: np.ndarray) -> Trajectory:
    """
    Return what is left of a trajectory for a boom that is not where it should be.

    Parameters
    ----------
    trajectory : Trajectory
    time : float
        Now [s].
    angles : ndarray, shape (N,)
        Where the boom is [rad].

    Returns
    -------
    Trajectory
        From here to the waypoint at the end of the nearest part of the path that was due until
        now, the latest one where several are as near, and through all waypoints after it with
        their distances in time. The first way is so slow that no joint is faster, or has a larger
        acceleration, than the trajectory plans at any time, and does not end before its
        waypoint's time.
    """
    points, times = trajectory.angles, trajectory.times
    ways = np.diff(points, axis=0)
    begun = int(np.searchsorted(times, time, side='right')) - 1
    target = max(begun, 0)
    if begun >= 0 and len(ways):
        due = ways[: begun + 1]
        starts = points[: len(due)]
        # Nearest point of each straight way in the space of the joints.
        lengths = np.maximum((due**2).sum(axis=1), np.finfo(float).tiny)
        shares = np.clip(((angles - starts) * due).sum(axis=1) / lengths, 0.0, 1.0)
        distances = np.abs(starts + shares[:, None] * due - angles).max(axis=1)
        target = int(np.flatnonzero(distances <= distances.min() + _NEAR)[-1]) + 1
    way = np.abs(points[target] - angles)
    rates = _planned(trajectory.peak_rates(), _SLOW)
    accelerations = _planned(trajectory.peak_accelerations(), _GENTLE)
    needed = max(
        float((PEAK_RATE * way / rates).max()),
        math.sqrt((PEAK_ACCELERATION * way / accelerations).max()),
    )
    late = max(time + needed - float(times[target]), 0.0)
    times, points = times[target:] + late, points[target:]
    if needed > 0.0:
        times, points = np.concatenate([[time], times]), np.vstack([angles, points])
    if not isinstance(trajectory, CubicTrajectory):
        return Trajectory(times, points)
    passing = np.zeros_like(points)
    passing[len(points) - len(trajectory.rates[target:]) :] = trajectory.rates[target:]
    return CubicTrajectory(times, points, passing)


def _planned(peaks: np.ndarray, least: float) -> np.ndarray:
    """Return what each joint may have; a joint that rests as planned has that of the others."""
    return np.where(peaks > 0.0, peaks, peaks.max() or least)
