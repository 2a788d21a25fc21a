"""
References of a joint controller: a trajectory, a stream of positions, a pose to hold.

Orders of a user take precedence over the scenario. When a controller starts during a run, or has
received no samples for some time, the machine may be away from the reference. The trajectory is
then resumed with a delay: from the present position to the end of the nearest part of the path
that was due, and from there as planned, with no larger velocity or acceleration of a joint than
planned. The same applies when the machine does not follow: when it stays further from the
reference than ``FAR`` and hardly moves towards it, as when its valves get no commands.
"""

from __future__ import annotations

import dataclasses
import math
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np

from longreach_dynamics.errors import InputError
from longreach_dynamics.splines import CubicTrajectory
from longreach_dynamics.trajectories import (
    PEAK_ACCELERATION,
    PEAK_RATE,
    Jointed,
    Reference,
    Trajectory,
)

__all__ = ['FAR', 'FollowerState', 'Order', 'TrajectoryFollower', 'resumed']

# Largest deviation of a first point at time 0 from the present position [rad].
_JUMP = math.radians(0.5)
# Up to this deviation from the reference a trajectory continues without a delay [rad].
_NEAR = math.radians(0.5)
# On an order to stop the joints come to rest within this time [s].
_STOPPING_TIME = 0.5
# Streamed positions are followed with a lag of this time [s], and no faster than this [rad/s].
_STREAM_TIME, _STREAM_RATE = 0.05, math.radians(10.0)
# Without a cycle for longer than this the machine is taken over anew [s].
_GAP = 0.25
# A joint that is further from the reference than this [rad], and in this time [s] moves towards it
# by less than this way [rad], does not follow. With open valves a joint goes several times as far.
FAR, _FAR_TIME, _LEAST_WAY = math.radians(3.0), 0.5, math.radians(0.15)
# Largest rate [rad/s] and acceleration [rad/s^2] on the way back to a trajectory in which nothing
# moves.
_SLOW, _GENTLE = math.radians(2.0), math.radians(2.0)


class Order(NamedTuple):
    """A trajectory that was sent by hand, for some joints or all."""

    joints: tuple[int, ...]  # (J,) indices
    times: Sequence[float]  # (K,) after its start [s]
    angles: Sequence[Sequence[float]]  # (K, J) [rad]
    start: float = 0.0  # [s]; in the past: at once
    rates: Sequence[Sequence[float]] | None = None  # (K, J) [rad/s]; None: at rest in each point


class _Stream(NamedTuple):
    """Joint positions that come one by one."""

    target: np.ndarray  # (N,) the latest [rad]
    angles: np.ndarray  # (N,) the reference on its way there [rad]

    def moved(self, interval: float) -> tuple[_Stream, Reference]:
        """Return the stream a cycle [s] later, and the reference: a lag of bounded rate."""
        rates = np.clip((self.target - self.angles) / _STREAM_TIME, -_STREAM_RATE, _STREAM_RATE)
        angles = self.angles + interval * rates
        return self._replace(angles=angles), Reference(angles, rates)


class _Away(NamedTuple):
    """A machine that was further from the reference than ``FAR``."""

    since: float  # [s]
    angles: np.ndarray  # (N,) where it was then [rad]


class Measured(Protocol):
    """Measurements of a controller in one cycle."""

    @property
    def angles(self) -> np.ndarray:
        """Joint angles [rad], shape (N,)."""
        ...


Command = TypeVar('Command')
Measurement = TypeVar('Measurement', bound=Measured)


class FollowerState(NamedTuple):
    """State of a controller. Never changed in place."""

    memory: Any  # of the control law
    trajectory: Trajectory | None = None  # none: open loop
    streamed: _Stream | None = None  # positions that come one by one, in place of the trajectory
    away: _Away | None = None  # none: near the reference
    left_behind: int = 0  # how often the reference went on without the machine

    def reference(self, time: float, angles: np.ndarray) -> Reference:
        """
        Return the reference at a time [s].

        That of an open loop, and of joints that the trajectory leaves alone (NaN), is where the
        machine is.
        """
        if self.streamed is not None:
            return self.streamed.moved(0.0)[1]
        if self.trajectory is not None:
            wanted, rates = self.trajectory.at(time)
            left = np.isnan(wanted)
            return Reference(np.where(left, angles, wanted), np.where(left, 0.0, rates))
        return Reference(np.asarray(angles), np.zeros(len(angles)))


class TrajectoryFollower(Generic[Measurement, Command]):
    """
    A controller with what it follows; a base of dataclasses, which hold control law and plan.

    In all methods ``time`` is now [s], and ``angles``, shape (N,), is where the machine is [rad].

    Attributes
    ----------
    joints : sequence of str
        Names of the N joints.
    machine : Jointed
        With their limits.
    sample_time : float
        Interval of cycles [s].
    """

    joints: Sequence[str]
    machine: Jointed
    sample_time: float

    # --- what a machine provides -------------------------------------------------------------

    @abstractmethod
    def initial_memory(self) -> Any:
        """Return the state of the control law before its first cycle."""

    @abstractmethod
    def planned(self, angles: np.ndarray) -> Trajectory | None:
        """Return the trajectory of a run that begins at these angles; None: open loop."""

    @abstractmethod
    def control(
        self, memory: Any, measured: Measurement, reference: Reference
    ) -> tuple[Any, Command]:
        """Return state and command of the control law after a cycle."""

    @abstractmethod
    def open_loop(self, time: float) -> Command:
        """Return the command at a time [s] of a run without a trajectory."""

    # --- references --------------------------------------------------------------------------

    def begin(self, angles: np.ndarray, time: float = 0.0) -> FollowerState:
        """Return the state before the first cycle; in mid-run as by :meth:`resume`."""
        state = FollowerState(self.initial_memory(), self.planned(angles))
        return self.resume(state, time, angles) if time > 0.0 else state

    def resume(self, state: FollowerState, time: float, angles: np.ndarray) -> FollowerState:
        """
        Return the state of a controller that has not acted for some time.

        It is the same when the machine is where the reference is, within 0.5 deg. Otherwise it
        has a trajectory that starts here and now, and is late.
        """
        if state.streamed is not None:
            here = np.array(angles)
            return state._replace(streamed=state.streamed._replace(angles=here))
        trajectory = state.trajectory
        error = np.abs(state.reference(time, angles).angles - angles).max()
        if trajectory is None or error <= _NEAR:
            return state
        return state._replace(
            memory=self.initial_memory(),
            trajectory=resumed(trajectory, time, np.asarray(angles)),
        )

    def follow(
        self, state: FollowerState, order: Order, time: float, angles: np.ndarray
    ) -> FollowerState:
        """
        Return the state with a trajectory sent by hand, which takes over at once.

        The reference stays where it is until the start, and goes from there to the first point;
        joints that the order leaves out stay. An order without points stops all joints.

        Raises
        ------
        InputError
            When the order is no trajectory, leaves the limits, or begins with a jump.
        """
        here = state.reference(time, angles).angles
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
        if order.times[0] <= 0.0:
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
        trajectory.check_with(self.machine)
        return state._replace(trajectory=trajectory, streamed=None)

    def stop(self, state: FollowerState, time: float, angles: np.ndarray) -> FollowerState:
        """Return the state in which all joints come to rest soon, no faster than they move now."""
        here, rates = state.reference(time, angles)
        # With a constant deceleration.
        there = here + 0.5 * _STOPPING_TIME * rates
        low, high = self.machine.joint_limits().T
        trajectory = CubicTrajectory(
            np.array([time, time + _STOPPING_TIME]),
            np.array([here, np.clip(there, low, high)]),
            np.array([rates, np.zeros_like(rates)]),
        )
        return state._replace(trajectory=trajectory, streamed=None)

    def stream(
        self, state: FollowerState, time: float, angles: np.ndarray, wanted: dict[int, float]
    ) -> FollowerState:
        """
        Return the state that follows a stream of joint positions, the latest of which counts.

        ``wanted`` has positions [rad] by the joints' index; the others stay.

        Raises
        ------
        InputError
            When a position is beyond its limits.
        """
        here = state.reference(time, angles).angles
        before = state.streamed or _Stream(here, here)
        target = before.target.copy()
        for joint, angle in wanted.items():
            target[joint] = angle
        self.machine.check_pose(target)
        return state._replace(streamed=before._replace(target=target))

    def _check_jump(self, here: np.ndarray, first: np.ndarray) -> None:
        """Raise InputError when a point at time 0 is not where the reference is."""
        for name, now, then in zip(self.joints, here, first, strict=True):
            if not abs(then - now) <= _JUMP:
                raise InputError(
                    f'the trajectory begins with joint {name} at {math.degrees(then):.6g} deg,'
                    f' allowed at time 0: within {math.degrees(_JUMP):g} deg of'
                    f' {math.degrees(now):.6g} deg, where it is; give the first point a later time'
                )

    # --- cycles ------------------------------------------------------------------------------

    def answer(
        self, state: FollowerState | None, before: float, time: float, measured: Measurement
    ) -> tuple[FollowerState, Command]:
        """
        Return the state after a sample, and the command to it.

        ``state`` is that of the cycle at the time ``before`` [s], None to begin; after a gap the
        machine is taken over anew. So is one that does not follow; ``left_behind`` has grown then.
        """
        if state is None:
            state = self.begin(measured.angles, time)
        elif time - before > _GAP:
            state = self.resume(state, time, measured.angles)._replace(away=None)
        else:
            state = self._watch(state, time, measured.angles)
        return self.cycle(state, time, measured)

    def _watch(self, state: FollowerState, time: float, angles: np.ndarray) -> FollowerState:
        """Return the state, resumed when the machine does not follow."""
        errors = state.reference(time, angles).angles - angles
        far = np.abs(errors) > FAR
        if not far.any():
            return state if state.away is None else state._replace(away=None)
        if state.away is None:
            return state._replace(away=_Away(time, angles))
        if time - state.away.since < _FAR_TIME:
            return state
        way = np.sign(errors) * (angles - state.away.angles)
        if (way[far] >= _LEAST_WAY).all():
            return state._replace(away=_Away(time, angles))
        state = state._replace(away=None, left_behind=state.left_behind + 1)
        return self.resume(state, time, angles)

    def cycle(
        self, state: FollowerState, time: float, measured: Measurement
    ) -> tuple[FollowerState, Command]:
        """Return the state after a cycle, and its command."""
        if state.streamed is not None:
            streamed, reference = state.streamed.moved(self.sample_time)
            state = state._replace(streamed=streamed)
        elif state.trajectory is not None:
            reference = state.trajectory.at(time)
        else:
            return state, self.open_loop(time)
        memory, command = self.control(state.memory, measured, reference)
        return state._replace(memory=memory), command


def resumed(trajectory: Trajectory, time: float, angles: np.ndarray) -> Trajectory:
    """
    Return the rest of a trajectory for a machine that is away from its reference.

    Parameters
    ----------
    trajectory : Trajectory
    time : float
        Now [s].
    angles : ndarray, shape (N,)
        Where the machine is [rad].

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
    return dataclasses.replace(trajectory, times=times, angles=points, rates=passing)


def _planned(peaks: np.ndarray, least: float) -> np.ndarray:
    """Return what each joint may have; a joint that rests as planned has that of the others."""
    return np.where(peaks > 0.0, peaks, peaks.max() or least)
