"""
Trajectories with rates in their waypoints, as motion planners give them: cubic splines.

On the way from one waypoint to the next, of duration T, each joint follows the cubic polynomial
that has the angles and rates of both (Hermite), with s from 0 to 1:

    a(s) = a_0 + s T r_0 + s^2 (3 d - T (2 r_0 + r_1)) + s^3 (T (r_0 + r_1) - 2 d),  d = a_1 - a_0.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from longreach_dynamics.errors import InputError
from longreach_dynamics.trajectories import Jointed, Reference, Trajectory, check_finite

# Planners leave such rates in the last waypoint [rad/s]; they count as 0.
_REST = 1e-3


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
        a, b, c, d = (row[after - 1] for row in self._polynomials())
        angles = a + s * (b + s * (c + s * d))
        return Reference(angles, (b + s * (2.0 * c + 3.0 * s * d)) / span)

    def _on_ways(self, s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return angles and rates, (S, K - 1, N), at shares of the time of all ways (S, 1, 1)."""
        a, b, c, d = self._polynomials()
        rates = (b + s * (2.0 * c + 3.0 * s * d)) / np.diff(self.times)[:, None]
        return a + s * (b + s * (c + s * d)), rates

    def peak_rates(self) -> np.ndarray:
        """Return the largest rate of each joint [rad/s], shape (N,)."""
        _, b, c, d = self._polynomials()
        spans = np.diff(self.times)[:, None]
        # At the waypoints, and where the acceleration is zero.
        s = np.clip(-c / np.where(d == 0.0, np.inf, 3.0 * d), 0.0, 1.0)
        inside = np.abs(b + s * (2.0 * c + 3.0 * s * d)) / spans
        return np.asarray(np.vstack([np.abs(self.rates), inside]).max(axis=0))

    def peak_accelerations(self) -> np.ndarray:
        """Return the largest acceleration of each joint [rad/s^2], shape (N,)."""
        _, _, c, d = self._polynomials()
        ends = np.abs([2.0 * c, 2.0 * c + 6.0 * d]) / np.diff(self.times)[:, None] ** 2
        return np.asarray(ends.max(axis=(0, 1), initial=0.0))

    def check_with(self, machine: Jointed, before: int = 0) -> None:
        """Check waypoints, and turning points between them, against a machine's limits."""
        super().check_with(machine, before)
        a, b, c, d = self._polynomials()
        # Roots of b + 2 c s + 3 d s^2, in the form that is exact for small d.
        root = np.sqrt(np.maximum(c * c - 3.0 * b * d, 0.0))
        q = -(c + np.copysign(root, c))
        with np.errstate(divide='ignore', invalid='ignore'):
            places = np.array([q / (3.0 * d), b / q])
        places = np.clip(np.where(np.isfinite(places), places, 0.0), 0.0, 1.0)
        turning = a + places * (b + places * (c + places * d))
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

    def _polynomials(self) -> tuple[np.ndarray, ...]:
        """Return the coefficients of the powers of s of all ways, each (K - 1, N)."""
        known: tuple[np.ndarray, ...] | None = self.__dict__.get('_known')
        if known is None:
            spans = np.diff(self.times)[:, None]
            way = np.diff(self.angles, axis=0)
            first, last = spans * self.rates[:-1], spans * self.rates[1:]
            known = (
                self.angles[:-1],
                first,
                3.0 * way - 2.0 * first - last,
                first + last - 2.0 * way,
            )
            object.__setattr__(self, '_known', known)
        return known
