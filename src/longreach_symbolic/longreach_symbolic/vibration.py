"""
Small vibrations of flexible links about a pose: assumed modes beside exact beams.

Joints are ``locked`` at the motors, or have a spring and a damper there, as PD control of the
motor angles is one. Weight is left out of both: links vibrate about straight ones.

The exact solution is that of the partial differential equation E I w'''' = -(m / L) s^2 w with
w(x, t) = w(x) exp(s t), by transfer matrices: displacement, rotation, force and moment at one end
of a link follow from those at the other. A chain that is clamped at its base and free at its end
has the eigenvalues s for which a determinant (3, 3) vanishes. Links are inextensible, as those of
the assumed modes are.

Source: Pestel, Leckie, Matrix Methods in Elastomechanics (1963), chapters 3 and 4.
"""

from __future__ import annotations

import cmath
import dataclasses
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from longreach_dynamics.errors import LongreachError
from longreach_symbolic.generated import evaluator
from longreach_symbolic.links import Links

JOINTS = ('locked', 'springs', 'pd')
"""Conditions of the motors, see :meth:`Joints.of`."""

# Functions of a link that lead to first values of the exact eigenvalues.
_MOST_MODES = 4
_MOST_ITERATIONS = 50
# Relative change of an eigenvalue at which the iteration ends; it is quadratic.
_SETTLED = 1e-10
# Half the step of the derivative of the determinant, relative to the eigenvalue.
_STEP = 1e-5


class Joints(NamedTuple):
    """What holds the motor angles."""

    stiffness: float  # [N m/rad]; infinite: locked
    damping: float  # [N m s/rad]

    @classmethod
    def of(cls, name: str, proportional: float, derivative: float) -> Joints:
        """Return ``locked``, ``springs`` (no damping) or ``pd`` with these gains."""
        if name == 'locked':
            return cls(math.inf, 0.0)
        return cls(proportional, derivative if name == 'pd' else 0.0)


def linear_system(
    links: Links, theta: Sequence[float]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return mass (n, n), stiffness (n, n), force map (n, N) of links without weight."""
    evaluate = evaluator(dataclasses.replace(links, gravity=0.0))
    size, count = links.size, len(links.links)
    rest = np.zeros(size)
    q = np.concatenate((theta, rest[count:]))
    found = evaluate(q, rest)
    stiffness = np.zeros((size, size))
    for row in range(count, size):
        moved = q.copy()
        moved[row] = 1.0
        stiffness[:, row] = evaluate(moved, rest).gravity_and_stiffness
    return found.mass_matrix, stiffness, found.force_map


def modal_eigenvalues(
    links: Links,
    theta: Sequence[float],
    joints: Joints,
    force_map: np.ndarray | None = None,
) -> np.ndarray:
    """Return the eigenvalues s [1/s] with assumed modes, by increasing modulus; theta [rad]."""
    mass, stiffness, own = linear_system(links, theta)
    if math.isinf(joints.stiffness):
        # What the motors leave free: the null space of the motor angles.
        free = np.linalg.svd(own.T)[2][own.shape[1] :].T
        mass, stiffness = free.T @ mass @ free, free.T @ stiffness @ free
        damping = np.zeros_like(mass)
    else:
        force = own if force_map is None else force_map
        stiffness = stiffness + joints.stiffness * force @ own.T
        damping = joints.damping * force @ own.T
    n = len(mass)
    matrix = np.zeros((2 * n, 2 * n))
    matrix[:n, n:] = np.eye(n)
    matrix[n:] = -np.linalg.solve(mass, np.hstack((stiffness, damping)))
    found = np.linalg.eigvals(matrix)
    return np.asarray(found[np.argsort(np.abs(found), kind='stable')], dtype=complex)


def oscillating(eigenvalues: np.ndarray, count: int) -> np.ndarray:
    """Return the first ``count`` eigenvalues that oscillate, by their frequency."""
    found = eigenvalues[eigenvalues.imag > 1e-6 * np.abs(eigenvalues)]
    if len(found) < count:
        raise LongreachError(
            f'only {len(found)} of the eigenvalues oscillate, {count} are needed; give more links,'
            ' more functions or less damping'
        )
    return np.asarray(found[np.argsort(found.imag, kind='stable')][:count])


def exact_eigenvalues(
    links: Links, theta: Sequence[float], joints: Joints, count: int
) -> np.ndarray:
    """Return the lowest eigenvalues (count,) [1/s] of exact beams that oscillate."""
    fine = dataclasses.replace(links, basis='cubic', modes=_MOST_MODES)
    guesses = oscillating(modal_eigenvalues(fine, theta, joints), count)
    found = np.array([_root(links, theta, joints, complex(guess)) for guess in guesses])
    if np.any(np.abs(np.diff(found)) < 1e-6 * np.abs(found[1:])):
        raise LongreachError(
            f'the search for exact eigenvalues found one twice: {found.tolist()}; ask for fewer'
        )
    return found


def _root(links: Links, theta: Sequence[float], joints: Joints, s: complex) -> complex:
    """Return the eigenvalue near s by Newton's method."""
    for _ in range(_MOST_ITERATIONS):
        step = _STEP * abs(s)
        ahead, behind = (_determinant(links, theta, joints, s + d) for d in (step, -step))
        change = 2.0 * step * _determinant(links, theta, joints, s) / (ahead - behind)
        s -= change
        if abs(change) < _SETTLED * abs(s):
            return s
    raise LongreachError(
        f'no exact eigenvalue was found near s = {s:.6g} 1/s; give links that are less different'
        ' from each other'
    )


def _determinant(links: Links, theta: Sequence[float], joints: Joints, s: complex) -> complex:
    """Return what vanishes at an eigenvalue: of force and moment at the free end."""
    # Displacement x, y, rotation, force x, y and moment of what is beyond on what is before.
    state = np.eye(6, 3, -3, dtype=complex)
    angle = 0.0
    for turn, link in zip(theta, links.links, strict=True):
        angle += turn
        if math.isfinite(joints.stiffness):
            state[2] += state[5] / (joints.stiffness + s * joints.damping)
        inner = (1.0 + link.lumped_place) * link.length
        density = link.mass / link.length
        for length, mass in ((inner, link.lumped_mass), (link.length - inner, 0.0)):
            if length > 0.0:
                state = _beam(length, density, link.bending_stiffness, angle, s) @ state
            state[3:5] += mass * s * s * state[:2]
    return complex(np.linalg.det(state[3:]))


def _beam(length: float, density: float, stiffness: float, angle: float, s: complex) -> np.ndarray:
    """Return the transfer matrix (6, 6) of a uniform beam in the frame of the base."""
    root = cmath.sqrt(1j * cmath.sqrt(density / stiffness) * s)
    power = root**4
    cosines = cmath.cosh(root * length), cmath.cos(root * length)
    sines = cmath.sinh(root * length), cmath.sin(root * length)
    c0 = (cosines[0] + cosines[1]) / 2.0
    c1 = (sines[0] + sines[1]) / (2.0 * root)
    c2 = (cosines[0] - cosines[1]) / (2.0 * root**2)
    c3 = (sines[0] - sines[1]) / (2.0 * root**3)
    # w, w', E I w'', and the transverse force -E I w'''.
    bending = np.array(
        [
            [c0, c1, c2 / stiffness, -c3 / stiffness],
            [power * c3, c0, c1 / stiffness, -c2 / stiffness],
            [stiffness * power * c2, stiffness * power * c3, c0, -c1],
            [-stiffness * power * c1, -stiffness * power * c2, -power * c3, c0],
        ]
    )
    local = np.eye(6, dtype=complex)
    across = [1, 2, 5, 4]
    local[np.ix_(across, across)] = bending
    # The force along the beam moves its mass.
    local[3, 0] = density * length * s * s
    turned = np.array([[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]])
    rotation = np.eye(6)
    rotation[:2, :2] = rotation[3:5, 3:5] = turned
    return np.asarray(rotation.T @ local @ rotation)
