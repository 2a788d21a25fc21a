"""
Joint position control: smooth trajectories, and a PI controller with velocity feed-forward.

The controller acts on each piston by itself. With the reference phi_r of its joint and the error

    e = f(phi_r) - s_p - (F - F_slow) / k,    F = p_1 A_1 - p_2 A_2,

it asks for the piston velocity f'(phi_r) phi_r' + K_p e + K_i int e dt, and finds the spool
position that gives it from the valve equation, Henikl 2015, (24), the measured pressures and the
dead band.

What a spool does: its opening A_v lets A_v u_1 into the head side and A_v u_2 out of the rod side,
u = alpha sqrt(2 / rho) sqrt(dp). While the force F stays, (23) makes of both the velocity

    v = A_v (k_1 u_1 / A_1 + k_2 u_2 / A_2) / k,    k_j = beta A_j^2 / V_j,    k = k_1 + k_2:

the mean of what each side would give alone, weighted by the stiffness k_j of its oil. In steady
motion both sides agree, and it reads A_v = A_1 v / u_1.

Why the force is in the error: a swinging boom compresses the oil, and the piston gives way by
F / k. A valve that works against that drives the swing; at K_p = 2 / s it grows until the pumps
give no more. So the motion on the oil is left out. F_slow is F behind two first-order lags in a
row: weight and lasting loads are not left out, and what remains of the swing is not driven.

At a reference at rest the valve closes when the error is small, and opens again only when it has
grown: otherwise static friction would make the piston hunt. Nothing is meant to damp the vibration
that a motion leaves.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np

from longreach_boom.model import Constants, constants_of
from longreach_boom.parameters import BoomParameters
from longreach_boom.scenario import Waypoint
from longreach_dynamics.errors import InputError
from longreach_dynamics.hydraulics import valve_flows

__all__ = ['ControllerState', 'JointController', 'Reference', 'Trajectory', 'spool_positions']


class Reference(NamedTuple):
    """Where the joints shall be, and how fast they shall move."""

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
        for index in range(1, times.size):
            if times[index] <= times[index - 1]:
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

    def check_with(self, boom: BoomParameters) -> None:
        """
        Check the trajectory against a boom.

        It is monotone between two waypoints, so that the strokes bound all of it.

        Raises
        ------
        InputError
            When a waypoint has the wrong number of angles or lies outside the strokes.
        """
        for index, angles in enumerate(self.angles):
            try:
                boom.check_pose(angles)
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


def _oil_stiffness(constants: Constants, pistons: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return k_1 and k_2, beta A^2 / V of the oil on both sides [N/m], each (N,)."""
    p = constants
    head_volumes = p.head_volume + p.head_area * pistons
    rod_volumes = p.rod_volume - p.rod_area * pistons
    return (
        p.bulk_modulus * p.head_area**2 / head_volumes,
        p.bulk_modulus * p.rod_area**2 / rod_volumes,
    )


def spool_positions(
    constants: Constants,
    velocities: np.ndarray,
    pistons: np.ndarray,
    head_pressures: np.ndarray,
    rod_pressures: np.ndarray,
) -> np.ndarray:
    """
    Return the spool positions that give piston velocities: the valve equation solved for A_v.

    Parameters
    ----------
    constants : Constants
    velocities : ndarray, shape (N,)
        Desired [m/s].
    pistons : ndarray, shape (N,)
        Positions [m], within the strokes.
    head_pressures, rod_pressures : ndarray, shape (N,)
        Measured [Pa].

    Returns
    -------
    ndarray, shape (N,)
        0 for the velocity 0. Beyond [-1, 1] where the valve is too small, infinite where the
        pressures would drive the piston the other way. Source: Henikl 2015, (23), (24).
    """
    p = constants
    k1, k2 = _oil_stiffness(constants, pistons)
    spools = np.zeros(p.length.size)
    for i, velocity in enumerate(velocities):
        if velocity == 0.0:
            continue
        sign = math.copysign(1.0, velocity)
        q1, q2 = valve_flows(
            sign,
            head_pressures[i],
            rod_pressures[i],
            p.supply,
            p.tank,
            p.head_opening[i],
            p.rod_opening[i],
            p.flow_coefficient,
            p.laminar,
        )
        fastest = (k1[i] * q1 / p.head_area[i] + k2[i] * q2 / p.rod_area[i]) / (k1[i] + k2[i])
        opening = velocity / fastest if sign * fastest > 0.0 else math.inf
        spools[i] = sign * (p.dead_band[i] + (1.0 - p.dead_band[i]) * opening)
    return spools


class ControllerState(NamedTuple):
    """What the controller remembers from one cycle to the next. Never changed in place."""

    integral: np.ndarray  # (N,) K_i int e dt [m/s]
    closed: np.ndarray  # (N,) of bool: the piston rests where it shall, its valve is closed
    slow_forces: np.ndarray  # (2, N) F behind one lag and behind two [N]; NaN before a first cycle


@dataclasses.dataclass(frozen=True)
class JointController:
    """
    Joint position controller of a boom.

    Parameters
    ----------
    parameters : BoomParameters
        Gains are its ``controller``; geometry, oil and valves are those that the controller knows.
    sample_time : float
        Interval of cycles [s].

    Raises
    ------
    InputError
        For a sample time that is not positive or above 0.1 s.
    """

    parameters: BoomParameters
    sample_time: float
    _constants: Constants = dataclasses.field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Check the sample time."""
        if not 0.0 < self.sample_time <= 0.1:
            raise InputError(f'sample_time = {self.sample_time} s, allowed: (0, 0.1] s')
        object.__setattr__(self, '_constants', constants_of(self.parameters))

    def initial_state(self) -> ControllerState:
        """Return the state before the first cycle: all valves closed."""
        N = self.parameters.size
        return ControllerState(np.zeros(N), np.ones(N, dtype=bool), np.full((2, N), np.nan))

    def cycle(
        self,
        memory: ControllerState,
        pistons: np.ndarray,
        head_pressures: np.ndarray,
        rod_pressures: np.ndarray,
        reference: Reference,
    ) -> tuple[ControllerState, np.ndarray]:
        """
        Run one cycle.

        Parameters
        ----------
        memory : ControllerState
            Of the cycle before.
        pistons : ndarray, shape (N,)
            Measured piston positions s_p [m].
        head_pressures, rod_pressures : ndarray, shape (N,)
            Measured p_1 and p_2 [Pa].
        reference : Reference

        Returns
        -------
        memory : ControllerState
        spools : ndarray, shape (N,)
            Commanded spool positions in [-1, 1], until the next cycle.

        Raises
        ------
        InputError
            When an array has another shape or holds what is not finite.
        """
        self._check(pistons, head_pressures, rod_pressures, reference)
        gains, p = self.parameters.controller, self._constants
        linkages = [cylinder.linkage for cylinder in self.parameters.cylinders]
        pairs = list(zip(linkages, reference.angles, strict=True))
        target = np.array([linkage.position(angle) for linkage, angle in pairs])
        arms = np.array([linkage.arm(angle) for linkage, angle in pairs])

        forces = head_pressures * p.head_area - rod_pressures * p.rod_area
        slow_forces = self._slow_forces(memory.slow_forces, forces)
        k1, k2 = _oil_stiffness(p, pistons)
        errors = target - pistons - (forces - slow_forces[1]) / (k1 + k2)
        allowed = np.where(memory.closed, gains.opening_error, gains.closing_error)
        closed = (reference.rates == 0.0) & (np.abs(errors) <= allowed)

        wanted = arms * reference.rates + gains.proportional_gain * errors + memory.integral
        velocities = np.clip(wanted, -gains.maximum_velocity, gains.maximum_velocity)
        velocities[closed] = 0.0
        spools = spool_positions(p, velocities, pistons, head_pressures, rod_pressures)
        # Opened against pressures that are too high, a valve would let the load down.
        given = np.where(np.isfinite(spools), np.clip(spools, -1.0, 1.0), 0.0)

        limit = gains.integral_limit
        integral = memory.integral + gains.integral_gain * self.sample_time * errors
        # No faster is possible: the integral must not grow for it.
        stopped = ((given != spools) | (velocities != wanted)) & (errors * wanted > 0.0)
        integral = np.where(stopped, memory.integral, np.clip(integral, -limit, limit))
        integral[closed] = 0.0
        return ControllerState(integral, closed, slow_forces), given

    def _slow_forces(self, before: np.ndarray, forces: np.ndarray) -> np.ndarray:
        """Return cylinder forces behind one lag and behind two, (2, N) [N]."""
        if np.isnan(before).any():
            return np.array([forces, forces])
        share = -math.expm1(-self.sample_time / self.parameters.controller.force_time)
        once = before[0] + share * (forces - before[0])
        return np.array([once, before[1] + share * (once - before[1])])

    def _check(
        self,
        pistons: np.ndarray,
        head_pressures: np.ndarray,
        rod_pressures: np.ndarray,
        reference: Reference,
    ) -> None:
        """Raise InputError for arrays that are no N finite numbers."""
        for name, values in (
            ('pistons', pistons),
            ('head_pressures', head_pressures),
            ('rod_pressures', rod_pressures),
            ('reference.angles', reference.angles),
            ('reference.rates', reference.rates),
        ):
            if np.shape(values) != (self.parameters.size,) or not np.isfinite(values).all():
                raise InputError(
                    f'{name} = {np.asarray(values).tolist()}, allowed: {self.parameters.size}'
                    ' finite numbers'
                )
