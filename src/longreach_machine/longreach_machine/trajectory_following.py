"""
References of a joint controller: a trajectory, a stream of positions, a pose to hold.

Orders of a user take precedence over the scenario. A reference never runs away from the machine:

- On an order to stop, and after a violated tolerance, it is made anew from the measured angles
  and rates. Within 0.5 s it comes to rest, 0.25 s times the rate further on. Tests hold what
  valves, oil and swing of boom and harvester add to 0.35 s times the rate of the fastest joint.
- A trajectory or stream that begins while the reference is further than a tolerance from the
  machine begins at the measured angles with the measured rates.
- Speeds beyond ``rate_limits`` are refused, and a stream of positions is followed with half of
  these at most.
- When a controller starts during a run, when it has received no samples for some time, when a
  joint is further than ``FAR`` from the reference and hardly moves towards it (its valves get no
  commands), and when a joint is further than ``FARTHEST`` from it, the trajectory is resumed with
  a delay: from the present position to the end of the nearest part of the path that was due, and
  from there as planned, with no larger velocity or acceleration of a joint than planned, or than
  2 deg/s and 2 deg/s^2 where hardly any is planned.
"""

from __future__ import annotations

import dataclasses
import math
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Generic, NamedTuple, Protocol, TypeVar, cast

import numpy as np

from longreach_dynamics.errors import InputError
from longreach_machine.control import low_pass
from longreach_machine.trajectories import (
    ONSET_WAY,
    PEAK_ACCELERATION,
    PEAK_RATE,
    CubicTrajectory,
    Jointed,
    Onset,
    Reference,
    Trajectory,
)
from longreach_machine.trajectory_goals import PATH

# Largest deviation of a first point at time 0 from the present position [rad].
_JUMP = math.radians(0.5)
# The same of a point at time 0 that is the only one.
_SAME = 1e-6
# Up to this deviation from the reference a trajectory continues without a delay [rad].
_NEAR = math.radians(0.5)
# On an order to stop the reference comes to rest within this time [s].
_STOPPING_TIME = 0.5
# Measured rates are differences of angles behind a lag of this time [s].
_RATE_TIME = 0.05
# Streamed positions are followed with a lag of this time [s], and no faster than this [rad/s] or
# this share of what a joint can do without load.
_STREAM_TIME, _STREAM_RATE, _STREAM_SHARE = 0.05, math.radians(10.0), 0.5
# Without a cycle for longer than this the machine is taken over anew [s].
_GAP = 0.25
# A joint that is further from the reference than this [rad], and in this time [s] moves towards it
# by less than this way [rad], does not follow. With open valves a joint goes several times as far.
FAR, _FAR_TIME, _LEAST_WAY = math.radians(3.0), 0.5, math.radians(0.15)
# The reference goes no further away from a joint [rad]; a goal's usual tolerance ends it before.
FARTHEST = PATH + math.radians(1.0)
# Largest rate [rad/s] and acceleration [rad/s^2] on the way back to a trajectory in which nothing
# moves.
_SLOW, _GENTLE = math.radians(2.0), math.radians(2.0)
# Share of these up to which joints move by errors of measurement.
_ERROR = 0.05


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
    rates: np.ndarray  # (N,) of the latest cycle [rad/s]

    def moved(self, interval: float, limits: np.ndarray) -> tuple[_Stream, Reference]:
        """Return stream and reference a cycle [s] later, a lag within limits (N, 2) [rad/s]."""
        low, high = np.clip(_STREAM_SHARE * limits, -_STREAM_RATE, _STREAM_RATE).T
        # Of long cycles not further than to the target.
        lag = max(_STREAM_TIME, interval)
        rates = np.clip((self.target - self.angles) / lag, low, high)
        angles = self.angles + interval * rates
        return self._replace(angles=angles, rates=rates), Reference(angles, rates)


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
    time: float  # of the latest sample [s]
    angles: np.ndarray  # (N,) measured then [rad]
    rates: np.ndarray  # (N,) as these have changed [rad/s]
    trajectory: Trajectory | None = None  # none: open loop
    streamed: _Stream | None = None  # positions that come one by one, in place of the trajectory
    away: _Away | None = None  # none: near the reference
    resumptions: int = 0  # how often the reference went on without the machine

    def reference(self, time: float) -> Reference:
        """Return the reference at a time [s]; where there is none, how the machine moves."""
        if self.streamed is not None:
            return Reference(self.streamed.angles, self.streamed.rates)
        if self.trajectory is not None:
            wanted, rates = self.trajectory.at(time)
            left = np.isnan(wanted)
            return Reference(
                np.where(left, self.angles, wanted), np.where(left, self.rates, rates)
            )
        return Reference(self.angles, self.rates)


class TrajectoryFollower(Generic[Measurement, Command]):
    """
    A controller with what it follows; a base of dataclasses, which hold control law and plan.

    ``joints`` are the names of the N joints, ``machine`` has their limits, ``sample_time`` is the
    interval of cycles [s]. In all methods ``time`` is now [s].
    """

    joints: Sequence[str]
    machine: Jointed
    sample_time: float

    # --- what a machine provides -------------------------------------------------------------

    def initial_memory(self, start: Reference | None = None) -> Any:
        """Return the control law's state before its first cycle, on a reference; None: at rest."""

    def renewed(self, memory: Any, start: Reference) -> Any:  # noqa: ARG002
        """Return the state of a control law that acts, for a reference that begins anew."""
        return self.initial_memory(start)

    @abstractmethod
    def rate_limits(self, angles: np.ndarray) -> np.ndarray:
        """Return lowest (negative) and highest rates [rad/s] at angles (M, N), (M, N, 2)."""

    @abstractmethod
    def planned(self, angles: np.ndarray) -> Trajectory | None:
        """Return the trajectory of a run that begins at these angles; None: open loop."""

    def control(
        self, memory: Any, measured: Measurement, reference: Reference
    ) -> tuple[Any, Command]:
        """Return state and command of the control law after a cycle, see :meth:`cycle`."""
        raise NotImplementedError

    def open_loop(self, time: float) -> Command:
        """Return the command at a time [s] of a run without a trajectory, where there are some."""
        raise NotImplementedError

    def warm_up(self) -> None:
        """Compile the functions of a cycle; nothing here."""

    # --- references --------------------------------------------------------------------------

    def begin(self, angles: np.ndarray, time: float = 0.0) -> FollowerState:
        """Return the state before the first cycle at angles (N,) [rad]; later as ``resume``."""
        angles = np.array(angles, dtype=float)
        state = FollowerState(
            self.initial_memory(), time, angles, np.zeros(len(angles)), self.planned(angles)
        )
        return self.resume(state, time) if time > 0.0 else state

    def resume(self, state: FollowerState, time: float, acts: bool = False) -> FollowerState:
        """
        Return the state of a controller that has not acted for some time, or ``acts`` in vain.

        It is the same when the machine is where the reference is, within 0.5 deg. Otherwise it has
        a trajectory that starts here and now, and is late.
        """
        here = self._measured(state)
        memory = self.renewed(state.memory, here) if acts else self.initial_memory(here)
        if state.streamed is not None:
            streamed = state.streamed._replace(angles=here.angles, rates=here.rates)
            return state._replace(memory=memory, streamed=streamed)
        trajectory = state.trajectory
        error = np.abs(state.reference(time).angles - state.angles).max()
        if trajectory is None or error <= _NEAR:
            return state
        late = self._begun(resumed(trajectory, time, here.angles), time, here.rates)
        return state._replace(memory=memory, trajectory=late)

    def follow(
        self, state: FollowerState, order: Order, time: float, tolerance: float | np.ndarray = PATH
    ) -> FollowerState:
        """
        Return the state with a trajectory sent by hand, which takes over at once.

        The reference stays where it is until the start, and goes from there to the first point;
        joints that the order leaves out stay. Where the reference is further than the tolerance
        from a joint [rad], or a first point at time 0 is where the machine is and the reference is
        not, it begins at the measured angles. An order without points is :meth:`stop`. InputError,
        with points counted as in the order, for one that is no trajectory, leaves the limits, is
        too fast or begins with a jump.
        """
        if not len(order.times):
            return self.stop(state, time)
        # Checked by itself first, so that errors count its points.
        times, angles, rates = cast('Any', (order.times, order.angles, order.rates))
        own = Trajectory(times, angles)
        if rates is not None:
            own = CubicTrajectory(times, angles, rates)
        if own.angles.shape[1] != len(order.joints):
            raise InputError(
                f'the trajectory has {own.angles.shape[1]} angles in a point, allowed:'
                f' {len(order.joints)}, one for each of its joints'
            )
        if own.times[0] < 0.0:
            raise InputError(
                f'waypoint 0 of the trajectory has the time {own.times[0]:g} s, allowed: from 0 s'
                ' on, after its start'
            )
        joints, start = list(order.joints), max(order.start, time)
        at_once = own.times[0] == 0.0
        first = own.angles[0] if at_once else None
        begin, memory = self._begin(state, time, tolerance, joints, first)
        rows = np.tile(begin.angles, (1 + len(own.times), 1))
        rates = np.zeros_like(rows)
        rows[1:, joints] = own.angles
        if isinstance(own, CubicTrajectory):
            rates[1:, joints] = own.rates
        times, before = start + np.array([0.0, *own.times]), 1
        if at_once:
            # The only point is all that is asked for: to stay where the joints are, or refused.
            stays = np.abs(own.angles[0] - state.angles[joints]).max() <= _SAME
            is_begin = stays or len(own.times) > 1
            self._check_jump(rows[0], rows[1], _JUMP if is_begin else _SAME)
            rows[1] = rows[0]
            times, rows, rates, before = times[1:], rows[1:], rates[1:], 0
        if order.rates is None:
            trajectory = Trajectory(times, rows)
        else:
            trajectory = CubicTrajectory(times, rows, rates)
        trajectory.check_with(self.machine, before)
        trajectory.check_rates(self.joints, self.rate_limits, before)
        faster = begin.rates - rates[0] if start == time else begin.rates
        trajectory = self._begun(trajectory, time, faster)
        return state._replace(memory=memory, trajectory=trajectory, streamed=None, away=None)

    def stop(self, state: FollowerState, time: float) -> FollowerState:
        """
        Return the state in which all joints come to rest from where and how they move now.

        The reference comes to rest within 0.5 s with a constant deceleration, 0.25 s times the
        measured rate from the measured angle, or at the limit of the joint.
        """
        here = self._measured(state)
        low, high = self.machine.joint_limits().T
        way = 0.5 * _STOPPING_TIME
        rates = np.clip(here.rates, (low - here.angles) / way, (high - here.angles) / way)
        trajectory = CubicTrajectory(
            np.array([time, time + _STOPPING_TIME]),
            np.array([here.angles, here.angles + way * rates]),
            np.array([rates, np.zeros_like(rates)]),
        )
        memory = self.renewed(state.memory, Reference(here.angles, rates))
        return state._replace(memory=memory, trajectory=trajectory, streamed=None, away=None)

    def stream(self, state: FollowerState, time: float, wanted: dict[int, float]) -> FollowerState:
        """Return the state that follows positions [rad] by index; InputError beyond limits."""
        before, memory = state.streamed, state.memory
        if before is None:
            begin, memory = self._begin(state, time, PATH)
            before = _Stream(begin.angles, *begin)
        target = before.target.copy()
        for joint, angle in wanted.items():
            target[joint] = angle
        self.machine.check_pose(target)
        return state._replace(memory=memory, streamed=before._replace(target=target))

    def _measured(self, state: FollowerState) -> Reference:
        """Return where the machine is, within its limits, and how it moves."""
        return Reference(np.clip(state.angles, *self.machine.joint_limits().T), state.rates)

    def _begin(
        self,
        state: FollowerState,
        time: float,
        tolerance: float | np.ndarray,
        joints: Sequence[int] = (),
        first: np.ndarray | None = None,
    ) -> tuple[Reference, Any]:
        """Return where a reference begins that follows the present one, and the memory to it."""
        reference, here = state.reference(time), self._measured(state)

        def jump(begin: Reference) -> float:
            """Return how far some joints have to jump to the first point [rad]."""
            return 0.0 if first is None else float(np.abs(first - begin.angles[joints]).max())

        idle = state.trajectory is None and state.streamed is None
        far = (np.abs(reference.angles - state.angles) > tolerance).any()
        if idle or far or jump(reference) > _JUMP >= jump(here):
            return here, self.renewed(state.memory, here)
        return reference, state.memory

    def _begun(self, trajectory: Trajectory, time: float, rates: np.ndarray) -> Trajectory:
        """Return a trajectory with an onset, if there are rates, that stays within the limits."""
        if not rates.any():
            return dataclasses.replace(trajectory, onset=None)
        (low, high), rows = self.machine.joint_limits().T, trajectory.extremes()
        lowest = np.minimum(low - rows.min(axis=0), 0.0) / ONSET_WAY
        highest = np.maximum(high - rows.max(axis=0), 0.0) / ONSET_WAY
        return dataclasses.replace(trajectory, onset=Onset(time, np.clip(rates, lowest, highest)))

    def _check_jump(self, here: np.ndarray, first: np.ndarray, most: float) -> None:
        """Raise InputError when a point at time 0 is not where the reference is."""
        for name, now, then in zip(self.joints, here, first, strict=True):
            if not abs(then - now) <= most:
                raise InputError(
                    f'the trajectory begins with joint {name} at {math.degrees(then):.6g} deg,'
                    f' allowed at time 0: within {math.degrees(most):.2g} deg of'
                    f' {math.degrees(now):.6g} deg, where it is; give the first point a later time'
                )

    # --- cycles ------------------------------------------------------------------------------

    def answer(
        self, state: FollowerState | None, time: float, measured: Measurement
    ) -> tuple[FollowerState, Command]:
        """Return the state after a sample, None before the first, and the command to it."""
        angles = np.array(measured.angles, dtype=float)
        if state is None:
            return self.cycle(self.begin(angles, time), time, measured)
        interval, rates = time - state.time, np.zeros(len(angles))
        if 0.0 < interval <= _GAP:
            change = (angles - state.angles) / interval
            rates = low_pass(state.rates, change, interval, _RATE_TIME)
        state = state._replace(time=time, angles=angles, rates=rates)
        if interval > _GAP:
            state = self.resume(state, time)._replace(away=None)
        else:
            state = self._watch(state, time)
        return self.cycle(state, time, measured)

    def expected(self, state: FollowerState, time: float) -> np.ndarray:
        """Return the angles (N,) [rad] at which a machine that follows is."""
        return state.reference(time).angles

    def _watch(self, state: FollowerState, time: float) -> FollowerState:
        """Return the state, resumed when the machine does not follow."""
        errors = self.expected(state, time) - state.angles
        far = np.abs(errors) > FAR
        if not far.any():
            return state if state.away is None else state._replace(away=None)
        if (np.abs(errors) <= FARTHEST).all():
            if state.away is None:
                return state._replace(away=_Away(time, state.angles))
            if time - state.away.since < _FAR_TIME:
                return state
            way = np.sign(errors) * (state.angles - state.away.angles)
            if (way[far] >= _LEAST_WAY).all():
                return state._replace(away=_Away(time, state.angles))
        state = state._replace(away=None, resumptions=state.resumptions + 1)
        return self.resume(state, time, acts=True)

    def cycle(
        self, state: FollowerState, time: float, measured: Measurement
    ) -> tuple[FollowerState, Command]:
        """Return the state after a cycle, and its command."""
        if state.streamed is not None:
            limits = self.rate_limits(state.streamed.angles[None])[0]
            streamed, reference = state.streamed.moved(self.sample_time, limits)
            state = state._replace(streamed=streamed)
        elif state.trajectory is not None:
            reference = state.trajectory.at(time)
        else:
            return state, self.open_loop(time)
        memory, command = self.control(state.memory, measured, reference)
        return state._replace(memory=memory), command


def resumed(trajectory: Trajectory, time: float, angles: np.ndarray) -> Trajectory:
    """Return the rest of a trajectory at a time [s] for a machine at other angles (N,) [rad]."""
    # It goes to the waypoint at the end of the nearest part of the path that was due (the latest
    # where several are as near), and on through the others with their distances in time. On the
    # first way no joint is faster, or accelerates more, than the trajectory plans at any time; one
    # that hardly moves may have ``_SLOW`` and ``_GENTLE``.
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
    peak_rate, peak_acceleration, half = PEAK_RATE, PEAK_ACCELERATION, np.zeros(len(way))
    if isinstance(trajectory, CubicTrajectory):
        # From rest to a rate r, in the worst case against the way d: |a| <= 6 d / T^2 + 4 r / T.
        peak_rate, peak_acceleration = 3.0 / math.sqrt(2.0), 6.0
        half = 2.0 * np.abs(trajectory.rates[target]) / accelerations
    least = half + np.sqrt(half**2 + peak_acceleration * way / accelerations)
    needed = max(float((peak_rate * way / rates).max()), float(least.max()))
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
    """Return what each joint may have; one that rests, or hardly moves, has that of the others."""
    # Where all move by errors only, as in an order to stop at rest, as if nothing was planned.
    most = peaks.max() if peaks.max() > _ERROR * least else least
    return np.where(peaks > 0.0, np.maximum(peaks, min(least, most)), most)
