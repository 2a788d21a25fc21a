"""
Natural frequencies, damping and mode shapes of a boom, compared with fine finite elements.

Linearised about the static equilibrium in a pose, weight and sag included, or about the straight
unloaded beams. With ``locked`` pistons the joint angles are fixed; with ``free`` ones the oil of
closed valves is a spring, k = beta (A_1^2 / V_1 + A_2^2 / V_2), and friction is viscous only.

The finite elements use the same kinematics (Henikl 2015, (1) to (5), beams that bend without
foreshortening), so that the difference is due to the Ritz functions only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from longreach_boom.kinematics import point_motion
from longreach_boom.model import Constants, Load, boom_bases, constants_of
from longreach_boom.motion import inertia
from longreach_boom.parameters import BoomParameters, TruckParameters
from longreach_boom.statics import equilibrium, tangent_stiffness
from longreach_dynamics.errors import LongreachError, check_among, check_within
from longreach_dynamics.finite_elements import ChainBase, ChainBeam, chain_modes
from longreach_dynamics.hydraulics import oil_stiffness
from longreach_dynamics.linkages import pistons_and_arms

PISTONS = ('locked', 'free')
ABOUT = ('equilibrium', 'straight')
# The matrices are dense.
_MOST_ELEMENTS = 500
# Points of a mode shape on each beam.
_POINTS = 25


class NaturalModes(NamedTuple):
    """Modes in ascending order of frequency."""

    frequencies: np.ndarray  # (count,) undamped [Hz]
    damping_ratios: np.ndarray  # (count,)
    finite_element: np.ndarray  # (count,) [Hz]
    rest: np.ndarray  # (N, points, 2) the boom at rest, x and z [m]
    shapes: np.ndarray  # (count, N, points, 2) displacement, largest 1

    @property
    def relative_error(self) -> np.ndarray:
        """Return the deviation from the finite elements, shape (count,)."""
        return np.asarray(self.frequencies / self.finite_element - 1.0)


def natural_modes(
    boom: BoomParameters,
    angles: np.ndarray,
    loads: tuple[Load, ...] = (),
    pistons: str = 'locked',
    count: int = 6,
    about: str = 'equilibrium',
    elements: int = 20,
) -> NaturalModes:
    """
    Return natural modes at joint angles (N,) [rad]; fewer than ``count`` if the model has fewer.

    ``pistons`` are ``locked`` or ``free``; ``about`` is ``equilibrium``, where the boom sags under
    its weight, or ``straight``, without gravity and sag; each beam has so many finite
    ``elements``.
    InputError for a pose outside the strokes or an unknown choice, LongreachError when the
    equilibrium in this pose is not stable.
    """
    for name, value, allowed in (('pistons', pistons, PISTONS), ('about', about, ABOUT)):
        check_among(name, value, allowed)
    check_within('count', count, '[1, inf)')
    check_within('elements', elements, f'[1, {_MOST_ELEMENTS}]')
    N = boom.size
    if about == 'straight':
        boom.check_pose(angles)
        boom = boom.replace(gravity=0.0)
        q = np.concatenate([angles, np.zeros(N * boom.ritz.functions + (2 if boom.truck else 0))])
    else:
        q = equilibrium(boom, angles, loads).coordinates
    constants = constants_of(boom, loads)
    springs, free = None, np.arange(N, q.size)
    if pistons == 'free':
        forces = equilibrium(boom, angles, loads).forces
        M, D, K, springs = _with_oil(q, constants, forces)
        free = np.arange(q.size)
    else:
        M, D, K = _linear_model(q, constants)
    M, D, K = (matrix[np.ix_(free, free)] for matrix in (M, D, K))
    frequencies, vectors, ratios = _eigen(M, D, K)
    reference = chain_modes(
        chain_beams(boom, angles, loads),
        elements=elements,
        count=min(count, free.size),
        joint_stiffness=None if springs is None else springs.tolist(),
        gravity=boom.gravity,
        sagged=about == 'equilibrium',
        foreshortening=False,
        base=None if boom.truck is None else chain_base(boom.truck),
    )
    count = min(count, free.size, reference.size)
    rest, shapes = _shapes(boom, q, free, vectors[:, :count])
    return NaturalModes(frequencies[:count], ratios[:count], reference[:count], rest, shapes)


def held_modes(
    boom: BoomParameters, angles: np.ndarray, loads: tuple[Load, ...], sliding: Sequence[bool]
) -> tuple[np.ndarray, np.ndarray]:
    """Return frequencies [Hz] and damping ratios when only the ``sliding`` pistons move."""
    rest = equilibrium(boom, angles, loads)
    q, N = rest.coordinates, boom.size
    constants = constants_of(boom, loads)
    M, D, K, _ = _with_oil(q, constants, rest.forces)
    free = np.flatnonzero([*sliding, *[True] * (q.size - N)])
    frequencies, _, ratios = _eigen(*(matrix[np.ix_(free, free)] for matrix in (M, D, K)))
    return frequencies, ratios


def chain_beams(
    boom: BoomParameters, angles: np.ndarray, loads: tuple[Load, ...]
) -> list[ChainBeam]:
    """Return beams and loads at joint angles (N,) [rad] as finite elements take them."""
    absolute = np.cumsum(angles)
    return [
        ChainBeam(
            basis.beam.length,
            basis.beam.mass_per_length,
            basis.beam.bending_stiffness,
            float(absolute[i]),
            basis.beam.support,
            basis.beam.breaks,
            tuple((load.position, load.mass) for load in loads if load.beam == i),
        )
        for i, basis in enumerate(boom_bases(boom))
    ]


def chain_base(truck: TruckParameters) -> ChainBase:
    """Return the truck as finite elements take it."""
    return ChainBase(
        truck.x, truck.z, truck.mass, truck.inertia, truck.heave_stiffness, truck.pitch_stiffness
    )


def _linear_model(
    q: np.ndarray, constants: Constants
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return M, D and K (n, n) of small motion about a state at rest."""
    N, n = constants.length.size, q.size
    M, f = np.empty((n, n)), np.empty(n)
    own = n - (0 if constants.truck is None else 2)
    still = np.zeros(n - own)
    inertia(np.concatenate([q[:own], np.zeros(own), q[own:], still]), constants, M, f)
    D = np.zeros((n, n))
    if constants.truck is not None:
        D[range(own, n), range(own, n)] = constants.truck.damping
    D[range(N), range(N)] = constants.joint_damping
    for i in range(N):
        D[N + i : own : N, N + i : own : N] = constants.damping[i]
    return M, D, tangent_stiffness(q, constants)


def _with_oil(
    q: np.ndarray, p: Constants, forces: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return M, D, K with closed cylinders at the joints, and their stiffness (N,) [N m/rad]."""
    N, h = forces.size, 1e-6
    pistons, arms = pistons_and_arms(p.linkage, np.stack([q[:N] - h, q[:N], q[:N] + h]))
    arm = arms[1]
    oil = sum(oil_stiffness(p.actuators, pistons[1]))
    # The lever arm changes with the angle, too, under the holding force.
    springs = oil * arm**2 - forces * (arms[2] - arms[0]) / (2.0 * h)
    M, D, K = _linear_model(q, p)
    K[range(N), range(N)] += springs
    D[range(N), range(N)] += p.actuators.viscous * arm**2
    return M, D, K, springs


def fastest_rate(q: np.ndarray, forces: np.ndarray, constants: Constants) -> float:
    """Return the largest eigenvalue's size [1/s], pistons free, about rest by forces (N,) [N]."""
    n = q.size
    M, D, K, _ = _with_oil(q, constants, forces)
    inverse = np.linalg.inv(M)
    state = np.block([[np.zeros((n, n)), np.eye(n)], [-inverse @ K, -inverse @ D]])
    return float(np.abs(np.linalg.eigvals(state)).max())


def _eigen(
    M: np.ndarray, D: np.ndarray, K: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return undamped frequencies [Hz], mass-normalised vectors, and damping ratios."""
    from scipy.linalg import eig, eigh
    from scipy.optimize import linear_sum_assignment

    squares, vectors = eigh(K, M)
    if squares[0] <= 0.0:
        raise LongreachError(
            'the boom does not stand stably in this pose: the stiffness has the eigenvalue'
            f' {squares[0]:.3g} 1/s^2; raise second_moment, or lower mass and load'
        )
    omega = np.sqrt(squares)
    n = omega.size
    damping = vectors.T @ D @ vectors
    ratios = np.diag(damping) / (2.0 * omega)
    # In modal coordinates damped modes are identified by their largest components.
    state = np.block([[np.zeros((n, n)), np.eye(n)], [-np.diag(squares), -damping]])
    values, parts = eig(state)
    swings = values.imag > 0.0
    sizes = np.abs(parts[:n, swings]) * omega[:, None]
    for k, value in zip(*linear_sum_assignment(-sizes), strict=True):
        ratios[k] = -values[swings][value].real / abs(values[swings][value])
    return omega / (2.0 * np.pi), vectors, ratios


def _shapes(
    boom: BoomParameters, q: np.ndarray, free: np.ndarray, vectors: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the boom at rest and displacements of modes, see NaturalModes."""
    rates = np.zeros((vectors.shape[1], q.size))
    rates[:, free] = vectors.T
    states = np.broadcast_to(q, rates.shape)
    n = boom.size * (1 + boom.ritz.functions)
    truck = np.concatenate([states[:, n:], rates[:, n:]], axis=1) if boom.truck else None
    rest, shapes = [], []
    for i, beam in enumerate(boom.beams):
        # The velocity for rates equal to a mode vector is the first-order displacement.
        motions = [
            point_motion(boom, states[:, :n], rates[:, :n], i, x, truck=truck)
            for x in np.linspace(0.0, beam.length, _POINTS)
        ]
        rest.append([motion.position[0] for motion in motions])
        shapes.append(np.stack([motion.velocity for motion in motions], axis=1))
    found = np.stack(shapes, axis=1)
    largest = np.linalg.norm(found, axis=-1).max(axis=(1, 2))
    return np.array(rest), found / largest[:, None, None, None]
