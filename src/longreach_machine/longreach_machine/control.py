"""
Control of joints that cylinders move: valve inversion, a controller of piston positions.

:class:`JointController` acts on each piston by itself. With s_p = f(phi), the references phi_r
and phi_r' of a joint are s_r = f(phi_r) and v_r = f'(phi_r) phi_r' of its piston. With the error

    e = s_r - s_p - (F - F_slow) / k,    F = p_1 A_1 - p_2 A_2,

the desired piston velocity is v_r + K_p e + K_i int e dt. The spool position for it is computed
from the valve equation, Henikl 2015, (24), the measured pressures and the dead band.

Velocity for a spool position: the opening A_v gives the flows A_v u_1 into the head side and
A_v u_2 out of the rod side, u = alpha sqrt(2 / rho) sqrt(dp). For a constant force F, (23) gives

    v = A_v (k_1 u_1 / A_1 + k_2 u_2 / A_2) / k,    k_j = beta A_j^2 / V_j,    k = k_1 + k_2:

the mean of the velocities for each side alone, weighted by the stiffness k_j of its oil. In steady
motion both sides agree, and A_v = A_1 v / u_1.

Reason for the force in the error: a swinging boom compresses the oil, which moves the piston by
F / k. A valve that responds to this motion excites the swing; at K_p = 2 / s it grows to the limit
of the supply. The part due to the compression of the oil is therefore subtracted. F_slow is F
filtered by two first-order lags in series: weight and lasting loads remain in the error, and the
remaining swing is not excited.

When the reference is at rest, the valve closes at a small error and opens again at a larger one;
otherwise static friction would cause a limit cycle. Vibrations after a motion are not damped.
"""

from __future__ import annotations

import dataclasses
import math
from typing import NamedTuple

import numpy as np

from longreach_dynamics.errors import InputError, check_within
from longreach_dynamics.hydraulics import Actuators
from longreach_dynamics.hydraulics.actuators import HEAD_AREA, ROD_AREA
from longreach_dynamics.hydraulics.inverse import spool_of, stiffness_of_oil
from longreach_dynamics.kernels import kernel
from longreach_dynamics.linkages import piston_and_arm
from longreach_dynamics.parameters import Parameters, quantity
from longreach_machine.trajectories import Reference


def held_input(A: np.ndarray, B: np.ndarray, interval: float) -> tuple[np.ndarray, np.ndarray]:
    """Return A_d and B_d of x_(k+1) = A_d x_k + B_d u_k: x' = A x + B u, u held over it [s]."""
    # Imported here: it would add to the start of every node.
    from scipy.linalg import expm

    n, m = B.shape
    block = np.zeros((n + m, n + m))
    block[:n, :n], block[:n, n:] = A, B
    grown = expm(interval * block)
    return grown[:n, :n], grown[:n, n:]


class Horizon(NamedTuple):
    """
    States and cost of a sampled model over K steps from x, under stacked inputs V (K m,).

    x_k = free_k x + forced_k V for k = 1 to K; the sum of x_k^T Q x_k + u^T R u, and of
    x_K^T P x_K at the end, is V^T H V + 2 V^T g x, and what does not depend on V.
    """

    free: list[np.ndarray]  # (n, n) each
    forced: list[np.ndarray]  # (n, K m) each
    H: np.ndarray  # (K m, K m)
    g: np.ndarray  # (K m, n)

    @classmethod
    def of(
        cls, A: np.ndarray, B: np.ndarray, Q: np.ndarray, R: np.ndarray, P: np.ndarray, steps: int
    ) -> Horizon:
        """Return the horizon of x_(k+1) = A x_k + B u_k (Rawlings, Mayne, Diehl 2017, 1.3)."""
        n, m = B.shape
        free, forced = [], []
        power, reached = np.eye(n), np.zeros((n, steps * m))
        H, g = np.kron(np.eye(steps), R), np.zeros((steps * m, n))
        for k in range(steps):
            power, reached = A @ power, A @ reached
            reached[:, k * m : (k + 1) * m] += B
            free.append(power)
            forced.append(reached.copy())
            weight = Q if k < steps - 1 else P
            H += reached.T @ weight @ reached
            g += reached.T @ weight @ power
        return cls(free, forced, H, g)


def low_pass(before: np.ndarray, now: np.ndarray, interval: float, time: float) -> np.ndarray:
    """Return the output of a first-order lag of time constant ``time`` [s], one interval later."""
    return np.asarray(before - math.expm1(-interval / time) * (now - before))


@dataclasses.dataclass(frozen=True)
class PistonControllerParameters(Parameters):
    """The position controller of pistons."""

    # Else the valve would open again as soon as it has closed.
    relations = ('opening_error >= closing_error',)

    proportional_gain: float = quantity(
        'piston velocity per error, K_p', '1/s', at_least=0.0, at_most=50.0
    )
    integral_gain: float = quantity(
        'growth of piston velocity per error, K_i', '1/s^2', at_least=0.0, at_most=500.0
    )
    integral_limit: float = quantity(
        'largest desired piston velocity of the integral part', 'm/s', at_least=0.0
    )
    maximum_velocity: float = quantity('largest desired piston velocity', 'm/s', above=0.0)
    force_time: float = quantity(
        'time constant of the filters that separate weight from vibration in a cylinder force',
        's',
        above=0.0,
        at_most=1e3,
    )
    closing_error: float = quantity(
        'error below which the valve closes at a reference at rest', 'm', at_least=0.0
    )
    opening_error: float = quantity(
        'error above which it opens again', 'm', at_least=0.0, at_most=1.0
    )


class ControllerState(NamedTuple):
    """State of the controller between two cycles. Never changed in place."""

    integral: np.ndarray  # (N,) K_i int e dt [m/s]
    closed: np.ndarray  # (N,) of bool: the piston rests where it shall, its valve is closed
    slow_forces: np.ndarray  # (2, N) F behind one lag and behind two [N]; NaN before a first cycle


@dataclasses.dataclass(frozen=True)
class JointController:
    """
    Position controller of N joints, each moved by a cylinder.

    ``cylinders`` are the nominal data of cylinders, valves and oil, ``sample_time`` is the
    interval of cycles [s]; InputError unless it is in (0, 0.1].
    """

    gains: PistonControllerParameters
    cylinders: Actuators
    sample_time: float

    def __post_init__(self) -> None:
        """Check the sample time."""
        check_within('sample_time', self.sample_time, '(0, 0.1] s')

    @property
    def size(self) -> int:
        """Number of joints."""
        return len(self.cylinders.head_area)

    def initial_state(self) -> ControllerState:
        """Return the state before the first cycle: all valves closed."""
        N = self.size
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
        Run a cycle after that of ``memory``; return the next memory and the spool positions.

        Measured piston positions [m] and pressures [Pa], and spool positions in [-1, 1], are (N,).
        InputError for an array of another shape, or values that are not finite.
        """
        gains, time, N = self.gains, self.sample_time, self.size
        measured = {
            'reference.angles': reference.angles,
            'reference.rates': reference.rates,
            'pistons': pistons,
            'head_pressures': head_pressures,
            'rod_pressures': rod_pressures,
        }
        rows = _rows_of(measured, N)
        numbers = (
            gains.proportional_gain,
            gains.integral_gain * time,
            gains.maximum_velocity,
            gains.integral_limit,
            gains.closing_error,
            gains.opening_error,
            math.expm1(-time / gains.force_time),
        )
        after, spools = ControllerState(*(part.copy() for part in memory)), np.zeros(N)
        _cycle(rows, numbers, self.cylinders.table, *after, spools)
        return after, spools


@kernel
def _cycle(measured, numbers, table, integral, closed, slow, spools):  # type: ignore[no-untyped-def]
    """Do :meth:`JointController.cycle` in place, with conditional integration."""
    proportional, growth, fastest, integral_limit, closing, opening, lag = numbers
    N = spools.size
    # Pressures, and room for spools.
    y = np.zeros(3 * N)
    for i in range(N):
        y[i], y[N + i] = measured[3, i], measured[4, i]
    for i in range(N):
        target, arm = piston_and_arm(table, i, measured[0, i])
        ahead, piston = arm * measured[1, i], measured[2, i]
        force = y[i] * table[i, HEAD_AREA] - y[N + i] * table[i, ROD_AREA]
        if math.isnan(slow[0, i]):
            slow[0, i] = slow[1, i] = force
        else:
            slow[0, i] -= lag * (force - slow[0, i])
            slow[1, i] -= lag * (slow[0, i] - slow[1, i])
        k1, k2 = stiffness_of_oil(piston, i, table)
        error = target - piston - (force - slow[1, i]) / (k1 + k2)
        closed[i] = ahead == 0.0 and abs(error) <= (opening if closed[i] else closing)
        if closed[i]:
            integral[i] = 0.0
            continue
        wanted = ahead + proportional * error + integral[i]
        velocity = min(max(wanted, -fastest), fastest)
        spool = spool_of(velocity, piston, y, i, table)
        # Opened against pressures that are too high, a valve would let the load down.
        spools[i] = min(max(spool, -1.0), 1.0) if math.isfinite(spool) else 0.0
        is_limited = spools[i] != spool or velocity != wanted
        if not (is_limited and error * wanted > 0.0):
            grown = integral[i] + growth * error
            integral[i] = min(max(grown, -integral_limit), integral_limit)


def _rows_of(measured: dict[str, np.ndarray], count: int) -> np.ndarray:
    """Return arrays (count,) as rows; InputError names one of another shape, or not finite."""
    if {np.shape(values) for values in measured.values()} == {(count,)}:
        rows = np.array([*measured.values()], dtype=float)
        if np.isfinite(rows).all():
            return rows
    name, values = next(
        (name, values)
        for name, values in measured.items()
        if np.shape(values) != (count,) or not np.isfinite(values).all()
    )
    raise InputError(f'{name} = {np.asarray(values).tolist()}, allowed: {count} finite numbers')
