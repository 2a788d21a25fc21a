"""
Trajectories of joints: at rest in each waypoint, with the least jerk on the way to the next.

Between two waypoints a joint follows the polynomial of fifth order without rate and acceleration
at both ends: of all ways from rest to rest in that time it has the least integral of jerk squared.
Making and checking a trajectory takes time in proportion to its waypoints, about 0.2 s for
100,000 of them; looking at it takes microseconds.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import NamedTuple, Protocol, Self

import numpy as np

from longreach_dynamics.errors import InputError
from longreach_dynamics.parameters import Parameters, quantity

__all__ = ['PEAK_ACCELERATION', 'PEAK_RATE', 'Jointed', 'Reference', 'Trajectory', 'Waypoint']

# Of the polynomial of fifth order from 0 to 1 in the time 1: largest rate and acceleration.
PEAK_RATE, PEAK_ACCELERATION = 15.0 / 8.0, 10.0 / math.sqrt(3.0)


class Jointed(Protocol):
    """A machine whose joints have limits."""

    def joint_limits(self) -> np.ndarray:
        """Return the lower and upper limits of the joints [rad], shape (N, 2)."""

    def check_pose(self, angles: np.ndarray) -> None:
        """Raise InputError for joint angles (N,) [rad] that the machine cannot have."""


@dataclasses.dataclass(frozen=True)
class Waypoint(Parameters):
    """Joint angles at a time; the joints rest there, and move smoothly from one to the next."""

    time: float = quantity('when', 's', at_least=0.0, at_most=1e6)
    angles_deg: tuple[float, ...] = quantity('joint angles', 'deg')


class Reference(NamedTuple):
    """Desired joint angles and rates at one instant."""

    angles: np.ndarray  # (N,) [rad]
    rates: np.ndarray  # (N,) [rad/s]


@dataclasses.dataclass(frozen=True, eq=False)
class Trajectory:
    """
    Joint angles over time: at rest in each waypoint, with the least jerk on the way to the next.

    Parameters
    ----------
    times : array_like, shape (K,)
        Times of the waypoints [s], ascending.
    angles : array_like, shape (K, N)
        Joint angles in them [rad].

    Raises
    ------
    InputError
        When shapes do not match, a number is not finite, or times do not ascend.
    """

    times: np.ndarray
    angles: np.ndarray

    def __post_init__(self) -> None:
        """Check and copy the arrays."""
        try:
            times = np.array(self.times, dtype=float)
            angles = np.array(self.angles, dtype=float)
        except (TypeError, ValueError) as error:
            raise InputError(
                f'times and angles of the trajectory are no arrays of numbers ({error}), allowed:'
                ' (K,) and (K, N), the same N in each waypoint'
            ) from error
        fits = times.ndim == 1 and angles.ndim == 2 and len(times) == len(angles)
        if not fits or times.size == 0 or angles.size == 0:
            raise InputError(
                f'trajectory has times of shape {times.shape} and angles of shape {angles.shape},'
                ' allowed: (K,) and (K, N), K and N at least 1'
            )
        for name, values in (('time', times), ('angle', angles)):
            for place in np.argwhere(~np.isfinite(values)):
                raise InputError(
                    f'waypoint {place[0]} of the trajectory has the {name} {values[tuple(place)]},'
                    ' allowed: finite numbers'
                )
        for index in np.flatnonzero(np.diff(times) <= 0.0) + 1:
            raise InputError(
                f'waypoint {index} of the trajectory has the time {times[index]} s, allowed:'
                f' after {times[index - 1]} s of the one before; sort them'
            )
        object.__setattr__(self, 'times', times)
        object.__setattr__(self, 'angles', angles)

    @classmethod
    def of(cls, waypoints: Sequence[Waypoint]) -> Self:
        """
        Return the trajectory through the waypoints of a scenario.

        Raises
        ------
        InputError
            When there is none, they differ in their number of angles, or times do not ascend.
        """
        times = np.array([point.time for point in waypoints])
        counts = {len(point.angles_deg) for point in waypoints}
        if len(counts) > 1:
            raise InputError(
                f'waypoints of the trajectory have {sorted(counts)} angles, allowed: the same'
                ' number in each, one for each joint'
            )
        return cls(times, np.radians([point.angles_deg for point in waypoints]))

    @property
    def duration(self) -> float:
        """Time from which on the joints rest in the last waypoint [s]."""
        return float(self.times[-1])

    def check_with(self, machine: Jointed) -> None:
        """
        Check the trajectory against the joint limits of a machine.

        It is monotone between two waypoints, so that the waypoints bound all of it.

        Raises
        ------
        InputError
            When a waypoint has the wrong number of angles or lies outside the limits.
        """
        limits = machine.joint_limits()
        suspects = np.arange(len(self.angles))
        if self.angles.shape[1] == len(limits):
            within = (self.angles >= limits[:, 0]) & (self.angles <= limits[:, 1])
            suspects = suspects[~within.all(axis=1)]
        for index in suspects:
            try:
                machine.check_pose(self.angles[index])
            except InputError as error:
                raise InputError(f'waypoint {index} of the trajectory: {error}') from error

    def at(self, time: float) -> Reference:
        """
        Return the reference at a time [s].

        The first waypoint holds before its time, the last one after.

        Raises
        ------
        InputError
            When the time is not finite.
        """
        if not math.isfinite(time):
            raise InputError(f'time = {time} s, allowed: a finite number')
        after = int(np.searchsorted(self.times, time, side='right'))
        if after in (0, self.times.size):
            held = self.angles[0 if after == 0 else -1]
            return Reference(held.copy(), np.zeros(held.size))
        begin, span = self.times[after - 1], self.times[after] - self.times[after - 1]
        way = self.angles[after] - self.angles[after - 1]
        # The polynomial of fifth order without rate and acceleration at both ends.
        s = float((time - begin) / span)
        share = s**3 * (10.0 + s * (6.0 * s - 15.0))
        share_rate = 30.0 * (s * (1.0 - s)) ** 2 / span
        return Reference(self.angles[after - 1] + share * way, share_rate * way)

    def peak_rates(self) -> np.ndarray:
        """Return the largest rate of each joint [rad/s], shape (N,)."""
        return self._largest(PEAK_RATE, 1)

    def peak_accelerations(self) -> np.ndarray:
        """Return the largest acceleration of each joint [rad/s^2], shape (N,)."""
        return self._largest(PEAK_ACCELERATION, 2)

    def _largest(self, factor: float, order: int) -> np.ndarray:
        """Return the largest derivative of each joint; 0 where there is one waypoint."""
        ways, spans = np.abs(np.diff(self.angles, axis=0)), np.diff(self.times)[:, None]
        return np.asarray((factor * ways / spans**order).max(axis=0, initial=0.0))
