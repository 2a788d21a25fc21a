"""
Arms: what a machine has besides its flexible links, and whether its control loop is stable.

At joint i a motor with a rotor, whose inertia J_i is seen at the joint multiplied by the square of
the gear ratio, turns the motor angle gamma = B^T q of :attr:`Equations.force_map` B. A digital
controller sets the torque tau_i = K_i e_i + D_i e_i' + weight at intervals of T, where it stays
constant between. Links are damped in proportion to their bending stiffness:

    (M(q) + B J B^T) q'' + velocity_terms + delta K_e f' + static = B tau

with the elastic stiffness K_e of the deflections f and a time delta. The force map does not depend
on q, so B J B^T is exact.

About a pose at rest, x = (q, q') has x' = A x + E tau. In a cycle x_{k+1} = F x_k + G tau_k, with
F and G from the exponential of (A, E) T, and tau_k = -(K B^T, D B^T) x_k: the loop is stable when
the spectral radius of F - G (K B^T, D B^T) is below 1.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from longreach_dynamics.errors import InputError
from longreach_dynamics.parameters import Parameters, load, quantity
from longreach_machine.control import held_input
from longreach_symbolic.generated import compiled, parameter_values
from longreach_symbolic.links import Links
from longreach_symbolic.motion import force_matrix

# Of a designed arm: rotor over rigid inertia at each joint, damping ratio of the loop, largest
# D T / J, damping ratio of the lowest vibration with locked motors.
_ROTOR_SHARE, _LOOP_DAMPING, _PER_CYCLE, _LINK_DAMPING = 0.1, 0.7, 0.7, 0.005
SAMPLE_TIME = 0.005
"""Cycle of a designed arm [s]."""
# Half the step of the derivative of weight by coordinates [rad], [m].
_STEP = 1e-6


@dataclasses.dataclass(frozen=True)
class Drive(Parameters):
    """Motor of a joint, and its controller."""

    gain: float = quantity('torque over angle, K', 'N m/rad', at_least=0.0, at_most=1e12)
    rate_gain: float = quantity('torque over rate, D', 'N m s/rad', at_least=0.0, at_most=1e12)
    rotor_inertia: float = quantity(
        'inertia of the rotor times the square of the gear ratio, J',
        'kg m^2',
        at_least=0.0,
        at_most=1e12,
        default=0.0,
    )


@dataclasses.dataclass(frozen=True)
class Arm(Parameters):
    """The contents of an arm file."""

    drives: tuple[Drive, ...] = quantity('for each link, or one for all')
    sample_time: float = quantity(
        'cycle of the controller, T', 's', at_least=1e-6, at_most=1.0, default=SAMPLE_TIME
    )
    damping: float = quantity(
        'of the links, delta: damping over bending stiffness', 's', at_least=0.0, at_most=1e3,
        default=0.0,
    )  # fmt: skip

    def check(self) -> None:
        """Raise InputError for a cycle that time stamps cannot hold."""
        if abs(self.sample_time * 1e9 - round(self.sample_time * 1e9)) > 1e-3:
            raise InputError(
                f'sample_time = {self.sample_time!r} s, allowed: whole nanoseconds, as stamps have'
            )
        if not self.drives:
            raise InputError('drives has 0 entries, allowed: one for each link, or one for all')

    def on(self, links: Links) -> Arm:
        """Return the arm with a drive for each link."""
        count = len(links.links)
        if len(self.drives) not in (1, count):
            raise InputError(
                f'drives has {len(self.drives)} entries, allowed for {count} links: {count}, or 1'
                ' for all'
            )
        return self.replace(drives=self.drives * (count // len(self.drives)))

    def column(self, name: str) -> np.ndarray:
        """Return a quantity of all drives."""
        return np.array([getattr(drive, name) for drive in self.drives])


def elastic_stiffness(links: Links) -> np.ndarray:
    """Return the stiffness matrix (n, n) of straight links without weight."""
    size, count = links.size, len(links.links)
    weightless = links.replace(gravity=0.0)
    found = np.zeros((size, size))
    for k in range(count, size):
        # Linear in the deflections.
        found[:, k] = _evaluated(weightless, np.eye(size)[k])[1]
    return found


def _evaluated(links: Links, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return mass matrix, and gravity with stiffness, at rest."""
    size = links.size
    mass, velocity, static = np.empty((size, size)), np.empty(size), np.empty(size)
    values = parameter_values(links)
    compiled(links).equations(q, np.zeros(size), values, mass, velocity, static)
    return mass, static


def spectral_radius(links: Links, arm: Arm, q: np.ndarray) -> float:
    """Return that of the digital loop about a pose at rest q (n,); it is stable below 1."""
    force = force_matrix(links)
    n, count = force.shape
    mass, _ = _evaluated(links, q)
    mass = mass + (force * arm.column('rotor_inertia')) @ force.T
    steps = _STEP * np.eye(n)
    ahead, behind = (
        np.array([_evaluated(links, q + sign * step)[1] for step in steps]).T for sign in (1, -1)
    )
    stiffness, damping = (ahead - behind) / (2.0 * _STEP), arm.damping * elastic_stiffness(links)
    A, B = np.zeros((2 * n, 2 * n)), np.zeros((2 * n, count))
    A[:n, n:] = np.eye(n)
    right = np.hstack((-stiffness, -damping, force))
    A[n:], B[n:] = np.hsplit(np.linalg.solve(mass, right), [2 * n])
    Phi, Gamma = held_input(A, B, arm.sample_time)
    gains = [arm.column(name)[:, np.newaxis] * force.T for name in ('gain', 'rate_gain')]
    loop = Phi - Gamma @ np.hstack(gains)
    if not np.isfinite(loop).all():
        return math.inf
    return float(np.abs(np.linalg.eigvals(loop)).max())


def check_stable(links: Links, arm: Arm, poses: Sequence[np.ndarray]) -> None:
    """Raise InputError unless the loop is stable at rest about poses q (n,)."""
    with np.errstate(over='ignore', invalid='ignore'):
        largest = max(spectral_radius(links, arm, q) for q in poses)
    if not largest < 1.0:
        raise InputError(
            f'the digital control loop is unstable: spectral radius {largest:.4g} with sample_time'
            f' = {arm.sample_time:g} s, allowed: below 1; `longreach links stability` shows with'
            ' which cycles, gains and rotors it is stable'
        )


def lowest_vibration(links: Links) -> float:
    """Return the lowest frequency [rad/s] of links in one line with locked motors."""
    mass, _ = _evaluated(links, np.zeros(links.size))
    # What locked motors leave free: the null space of the motor angles.
    free = np.linalg.svd(force_matrix(links).T)[2][len(links.links) :].T
    stiffness = free.T @ elastic_stiffness(links) @ free
    squares = np.linalg.eigvals(np.linalg.solve(free.T @ mass @ free, stiffness)).real
    return math.sqrt(squares.min())


def designed_arm(links: Links) -> Arm:
    """Return an arm with motors and gains for links of which nothing else is known."""
    # Rotors have a tenth of the rigid inertia about their joint of links in one line. All loops
    # have the frequency of the lowest vibration with locked motors or, if that is too fast for the
    # cycle, the one with D T = 0.7 J.
    count = len(links.links)
    mass, _ = _evaluated(links, np.zeros(links.size))
    inertias = np.diag(mass)[:count]
    rotors = _ROTOR_SHARE * inertias
    lowest = lowest_vibration(links)
    share = 2.0 * _LOOP_DAMPING * (inertias + rotors)
    rate = min(lowest, _PER_CYCLE * float((rotors / share).min()) / SAMPLE_TIME)
    columns = (rate**2 * (inertias + rotors), rate * share, rotors)
    try:
        drives = tuple(
            Drive(gain=gain, rate_gain=rate_gain, rotor_inertia=rotor)
            for gain, rate_gain, rotor in zip(*(one.tolist() for one in columns), strict=True)
        )
        return Arm(damping=2.0 * _LINK_DAMPING / lowest, drives=drives)
    except InputError as error:
        raise InputError(
            f'no motors can be designed for these links ({error}); give an arm file'
        ) from error


def arm_of(links: Links, file: str | Path | None = None) -> Arm:
    """Return the arm of a file; None: one that is designed for the links."""
    if not file:
        return designed_arm(links)
    return load(Arm, file, check=lambda arm: arm.on(links)).on(links)
