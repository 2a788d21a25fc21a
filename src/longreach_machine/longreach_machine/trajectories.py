"""
Trajectories of joints: at rest in each waypoint, or with rates there as motion planners give them.

From rest to rest a joint follows the polynomial of fifth order without rate and acceleration at
both ends: of all ways in that time it has the least integral of jerk squared. With rates it
follows the cubic polynomial that has the angles and rates of both waypoints (Hermite), with s from
0 to 1 in the duration T of the way:

    a(s) = a_0 + s T r_0 + s^2 (3 d - T (2 r_0 + r_1)) + s^3 (T (r_0 + r_1) - 2 d),  d = a_1 - a_0.

Making and checking a trajectory takes time in proportion to its waypoints, about 0.2 s for
100,000 of them; looking at it takes microseconds.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, Self

import numpy as np

from longreach_dynamics.errors import InputError, named
from longreach_dynamics.parameters import Parameters, quantity

# Of the polynomial of fifth order from 0 to 1 in the time 1: largest rate and acceleration.
PEAK_RATE, PEAK_ACCELERATION = 15.0 / 8.0, 10.0 / math.sqrt(3.0)
# The time T of an onset [s], and its largest addition over the rate [s].
_ONSET_TIME = 1.0
ONSET_WAY = 4.0 / 27.0 * _ONSET_TIME
# Planners leave such rates in the last waypoint [rad/s]; they count as 0.
_REST = 1e-3
# Where on the way from one waypoint to the next speeds are checked.
_SHARES = np.linspace(0.0, 1.0, 9)[:, None, None]


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


class Onset(NamedTuple):
    """Rates r at the begin of what is planned from rest: adds r t (1 - t / T)^2 until T = 1 s."""

    begin: float  # [s]
    rates: np.ndarray  # (N,) [rad/s]

    def added_to(self, reference: Reference, time: float) -> Reference:
        """Return a reference at a time [s] with what these rates add."""
        t = time - self.begin
        left = 1.0 - t / _ONSET_TIME
        if t < 0.0 or left <= 0.0:
            return reference
        return Reference(
            reference.angles + t * left**2 * self.rates,
            reference.rates + left * (1.0 - 3.0 * t / _ONSET_TIME) * self.rates,
        )


@dataclasses.dataclass(frozen=True, eq=False)
class Trajectory:
    """
    Joint angles over time: at rest in each waypoint, with the least jerk on the way to the next.

    ``times`` of the waypoints (K,) [s], ascending, ``angles`` in them (K, N) [rad]; ``onset`` for
    joints that move at its begin. InputError when shapes do not match, a number is not finite, or
    times do not ascend.
    """

    times: np.ndarray
    angles: np.ndarray
    onset: Onset | None = dataclasses.field(default=None, kw_only=True)

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
        check_finite('time', times)
        check_finite('angle', angles)
        for index in np.flatnonzero(np.diff(times) <= 0.0) + 1:
            raise InputError(
                f'waypoint {index} of the trajectory has the time {times[index]} s, allowed:'
                f' after {times[index - 1]} s of the one before; sort them'
            )
        object.__setattr__(self, 'times', times)
        object.__setattr__(self, 'angles', angles)

    @classmethod
    def of(cls, waypoints: Sequence[Waypoint]) -> Self:
        """Return the trajectory through the waypoints of a scenario."""
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

    def check_with(self, machine: Jointed, before: int = 0) -> None:
        """
        Check the waypoints against the joint limits of a machine, which is monotone between them.

        So many waypoints ``before`` are where the machine is; they are not checked, nor counted.
        """
        limits, angles = machine.joint_limits(), self.angles[before:]
        suspects = np.arange(len(angles))
        if angles.shape[1] == len(limits):
            within = (angles >= limits[:, 0]) & (angles <= limits[:, 1])
            suspects = suspects[~within.all(axis=1)]
        for index in suspects:
            with named(f'waypoint {index} of the trajectory: '):
                machine.check_pose(angles[index])

    def check_rates(
        self, joints: Sequence[str], limits: Callable[[np.ndarray], np.ndarray], before: int = 0
    ) -> None:
        """
        Check the speeds of the joints on the way, without those of its onset.

        ``limits`` takes angles (M, N) [rad] and returns the lowest (negative) and highest rates
        there, (M, N, 2) [rad/s]. Waypoints ``before`` are not counted.
        """
        # One way after the other.
        angles, rates = (
            part.swapaxes(0, 1).reshape(-1, part.shape[-1]) for part in self._on_ways(_SHARES)
        )
        spans = np.diff(self.times)

        def where(sample: int, factor: float) -> tuple[str, str]:
            way = sample // len(_SHARES)
            index = way + 1 - before
            return (
                f'waypoint {index} of the trajectory: on the way there',
                f'plan at least {factor * spans[way]:.3g} s for this way, now {spans[way]:.3g} s',
            )

        check_speeds(joints, rates, limits(angles), where)

    def rate_shares(self, limits: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """Return the largest rate over its limit on each way, (K - 1,); as :meth:`check_rates`."""
        angles, rates = (part.reshape(-1, part.shape[-1]) for part in self._on_ways(_SHARES))
        shares = (rates / _in_direction(limits(angles), rates)).max(axis=1)
        return np.asarray(shares.reshape(len(_SHARES), -1).max(axis=0))

    def _on_ways(self, s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return angles and rates, (S, K - 1, N), at shares of the time of all ways (S, 1, 1)."""
        way, spans = np.diff(self.angles, axis=0), np.diff(self.times)[:, None]
        share = s**3 * (10.0 + s * (6.0 * s - 15.0))
        return self.angles[:-1] + share * way, 30.0 * (s * (1.0 - s)) ** 2 * (way / spans)

    def at(self, time: float) -> Reference:
        """Return the reference at a time [s]; the joints rest before and after all waypoints."""
        if not math.isfinite(time):
            raise InputError(f'time = {time} s, allowed: a finite number')
        after = int(np.searchsorted(self.times, time, side='right'))
        if after in (0, self.times.size):
            held = self.angles[0 if after == 0 else -1]
            reference = Reference(held.copy(), np.zeros(held.size))
        else:
            reference = self._between(time, after)
        return self.onset.added_to(reference, time) if self.onset else reference

    def _between(self, time: float, after: int) -> Reference:
        """Return the reference at a time [s] before the waypoint ``after``, and after another."""
        begin, span = self.times[after - 1], self.times[after] - self.times[after - 1]
        way = self.angles[after] - self.angles[after - 1]
        # The polynomial of fifth order without rate and acceleration at both ends.
        s = float((time - begin) / span)
        share = s**3 * (10.0 + s * (6.0 * s - 15.0))
        share_rate = 30.0 * (s * (1.0 - s)) ** 2 / span
        return Reference(self.angles[after - 1] + share * way, share_rate * way)

    def extremes(self) -> np.ndarray:
        """Return angles (M, N) [rad] of which each joint reaches the lowest and the highest."""
        return self.angles

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


@dataclasses.dataclass(frozen=True, eq=False)
class CubicTrajectory(Trajectory):
    """
    Joint angles over time, with given rates in the waypoints.

    Before the first and after the last waypoint the joints rest there. ``times`` (K,) [s],
    ascending, ``angles`` (K, N) [rad] and ``rates`` (K, N) [rad/s]. InputError when shapes do not
    match, a number is not finite, times do not ascend, or the last rates are not zero.
    """

    rates: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros((0, 0)))

    def __post_init__(self) -> None:
        """Check and copy the arrays."""
        super().__post_init__()
        rates = np.array(self.rates, dtype=float)
        if rates.shape != self.angles.shape:
            raise InputError(
                f'rates of the trajectory have the shape {rates.shape}, allowed:'
                f' {self.angles.shape}'
            )
        check_finite('rate', rates)
        if np.abs(rates[-1]).max() > _REST:
            raise InputError(
                f'the last waypoint of the trajectory has the rates {rates[-1].tolist()} rad/s,'
                ' allowed: 0, the joints rest there'
            )
        rates[-1] = 0.0
        object.__setattr__(self, 'rates', rates)

    def _between(self, time: float, after: int) -> Reference:
        """Return the reference at a time [s] before the waypoint ``after``, and after another."""
        span = float(self.times[after] - self.times[after - 1])
        s = float(time - self.times[after - 1]) / span
        a, b, c, d = (row[after - 1] for row in self._polynomials)
        angles = a + s * (b + s * (c + s * d))
        return Reference(angles, (b + s * (2.0 * c + 3.0 * s * d)) / span)

    def _on_ways(self, s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return angles and rates, (S, K - 1, N), at shares of the time of all ways (S, 1, 1)."""
        a, b, c, d = self._polynomials
        rates = (b + s * (2.0 * c + 3.0 * s * d)) / np.diff(self.times)[:, None]
        return a + s * (b + s * (c + s * d)), rates

    def peak_rates(self) -> np.ndarray:
        """Return the largest rate of each joint [rad/s], shape (N,)."""
        _, b, c, d = self._polynomials
        spans = np.diff(self.times)[:, None]
        # At the waypoints, and where the acceleration is zero.
        s = np.clip(-c / np.where(d == 0.0, np.inf, 3.0 * d), 0.0, 1.0)
        inside = np.abs(b + s * (2.0 * c + 3.0 * s * d)) / spans
        return np.asarray(np.vstack([np.abs(self.rates), inside]).max(axis=0))

    def peak_accelerations(self) -> np.ndarray:
        """Return the largest acceleration of each joint [rad/s^2], shape (N,)."""
        _, _, c, d = self._polynomials
        ends = np.abs([2.0 * c, 2.0 * c + 6.0 * d]) / np.diff(self.times)[:, None] ** 2
        return np.asarray(ends.max(axis=(0, 1), initial=0.0))

    def check_with(self, machine: Jointed, before: int = 0) -> None:
        """Check waypoints, and turning points between them, against a machine's limits."""
        super().check_with(machine, before)
        turning = self._turning()
        low, high = machine.joint_limits().T
        beyond = (turning < low - 1e-9) | (turning > high + 1e-9)
        for _, way, joint in np.argwhere(beyond)[:1]:
            angle = turning[:, way, joint]
            worst = angle[np.argmax(np.maximum(low[joint] - angle, angle - high[joint]))]
            raise InputError(
                f'waypoint {way + 1 - before} of the trajectory: on the way there joint'
                f' {joint + 1} turns at {math.degrees(worst):.6g} deg, allowed:'
                f' [{math.degrees(low[joint]):.4f}, {math.degrees(high[joint]):.4f}] deg'
            )

    def extremes(self) -> np.ndarray:
        """Return angles (M, N) [rad] of which each joint reaches the lowest and the highest."""
        return np.vstack([self.angles, *self._turning()])

    def _turning(self) -> np.ndarray:
        """Return the angles where joints turn on their ways, or at the ends (2, K - 1, N)."""
        a, b, c, d = self._polynomials
        # Roots of b + 2 c s + 3 d s^2, in the form that is exact for small d.
        root = np.sqrt(np.maximum(c * c - 3.0 * b * d, 0.0))
        q = -(c + np.copysign(root, c))
        with np.errstate(divide='ignore', invalid='ignore'):
            places = np.array([q / (3.0 * d), b / q])
        places = np.clip(np.where(np.isfinite(places), places, 0.0), 0.0, 1.0)
        return np.asarray(a + places * (b + places * (c + places * d)))

    @functools.cached_property
    def _polynomials(self) -> tuple[np.ndarray, ...]:
        """Coefficients of the powers of s of all ways, each (K - 1, N)."""
        spans = np.diff(self.times)[:, None]
        way = np.diff(self.angles, axis=0)
        first, last = spans * self.rates[:-1], spans * self.rates[1:]
        return self.angles[:-1], first, 3.0 * way - 2.0 * first - last, first + last - 2.0 * way


def check_finite(what: str, values: np.ndarray) -> None:
    """Raise InputError for a number of waypoints, (K,) or (K, N), that is not finite."""
    for place in np.argwhere(~np.isfinite(values)).tolist():
        of = f'joint {place[1] + 1} has' if len(place) > 1 else 'has'
        raise InputError(
            f'waypoint {place[0]} of the trajectory: {of} the {what} {values[tuple(place)]},'
            ' allowed: finite numbers'
        )


def check_speeds(
    joints: Sequence[str],
    rates: np.ndarray,
    limits: np.ndarray,
    where: Callable[[int, float], tuple[str, str]],
) -> None:
    """Raise InputError, with a text of ``where``, for the rate that exceeds its limit the most."""
    highest = _in_direction(limits, rates)
    # Joints without a reference have NaN.
    excess = np.nan_to_num(rates / highest)
    if excess.size == 0 or not excess.max() > 1.0 + 1e-9:
        return
    sample, joint = (int(i) for i in np.unravel_index(int(excess.argmax()), excess.shape))
    place, remedy = where(sample, float(excess[sample, joint]))
    rate, limit = np.degrees([rates[sample, joint], highest[sample, joint]])
    raise InputError(
        f'{place} {joints[joint]} has {rate:.4g} deg/s, allowed there: {limit:.4g} deg/s; {remedy}'
    )


def _in_direction(limits: np.ndarray, rates: np.ndarray) -> np.ndarray:
    """Return the limits of rates (M, N), of both (M, N, 2) those in their direction."""
    return np.where(rates < 0.0, limits[..., 0], limits[..., 1])
