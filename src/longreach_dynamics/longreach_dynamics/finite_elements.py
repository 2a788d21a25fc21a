"""
Natural frequencies of chains of planar beams by finite elements: a second opinion.

Model: straight, inextensible Euler-Bernoulli beams in the vertical plane, small displacements
about the undeformed chain, no rotary inertia. Beam i has the root D_i, the angle alpha_i, the
directions t_i = (cos alpha_i, sin alpha_i) and n_i = (-sin alpha_i, cos alpha_i), the rotation
theta_i of its own straight line and the deflection w_i(x) from that line:

    point    u_i(x) = D_i + (theta_i x + w_i(x)) n_i,     D_{i+1} = u_i(L_i)
    angle    theta_{i+1} = theta_i + w_i'(L_i) + delta phi_{i+1},     theta_1 = delta phi_1

A beam without support has w(0) = w'(0) = 0. One with a support at x_m has w(0) = w(x_m) = 0 and a
free slope: its line is the chord from the root pin to the support, and the support pushes at right
angles to the chord.

Elements: in each, w is a cubic and w' is continuous across nodes. These are the Hermite cubics,
but the coordinates are the curvatures at both ends of each element instead of nodal displacements
and slopes. The two sets describe the same functions; with curvatures the stiffness matrix has
2 x 2 blocks and no differences of nearly equal numbers, so that fine meshes lose no digits.
Integrals are Gauss-Legendre sums of 6 points for each element, exact for sigma of degree 5 and EI
of degree 9 within the element. Frequencies converge with the fourth power of the element length.

Weight, to second order: a beam element at rotation psi = theta_i + w_i' rises over ds by
sin(alpha_i + psi) ds, of which -1/2 sin(alpha_i) psi^2 ds is of second order and lifts, or lowers,
all mass outboard of it, m_o(s). Summed over the chain

    V_2 = 1/2 sum_i int_0^{L_i} N_i(s) (theta_i + w_i')^2 ds,     N_i = -g sin(alpha_i) m_o(s)

which covers the rotation of whole beams and their foreshortening at once: N_i is the normal force,
tension positive, so that a hanging beam gets stiffer and a standing one softer. First-order terms
are held by the static deflection and the joints' moments; that static deflection is neglected.

Source: Hughes, The Finite Element Method (1987), section 1.16 (cubics) and chapter 7
(convergence of frequencies).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from longreach_dynamics.errors import InputError, LongreachError

__all__ = ['ChainBeam', 'Modes', 'chain_modes', 'chain_points']

_GAUSS_POINTS = 6
# Places on a beam that are nearer than this part of its length are one node.
_SAME_PLACE = 1e-9
# Largest displacement of a drawn mode as a part of the chain's length.
_DRAWN = 0.1
# Eigenvalues 1 / lambda below this part of the largest hold no digits that could be trusted.
_RESOLVED = 1e-12


class ChainBeam(NamedTuple):
    """
    One straight beam of a chain; x runs from its root to its tip.

    ``mass_per_length`` and ``bending_stiffness`` are called with arrays of x and return as many
    values, or one for all. ``support`` is the place x_m of a support along the beam; with 0 the
    root is clamped to the joint coordinate. ``breaks`` are places where sigma or EI have jumps or
    kinks: element boundaries are put there, at the support and at the point masses.
    """

    length: float  # [m]
    mass_per_length: Callable[[np.ndarray], np.ndarray]  # sigma(x) [kg/m]
    bending_stiffness: Callable[[np.ndarray], np.ndarray]  # EI(x) [N m^2]
    angle: float  # of the undeformed beam to the x axis, z up [rad]
    support: float = 0.0  # x_m [m], 0 for none
    breaks: tuple[float, ...] = ()  # [m]
    masses: tuple[tuple[float, float], ...] = ()  # point masses: x [m], m [kg]


class Modes(NamedTuple):
    """
    Natural frequencies and the chain displaced in each mode.

    Frequencies are ascending; a negative one -f stands for an unstable mode that grows with the
    rate 2 pi f, as of a column that buckles under its weight. Each mode is scaled so that its
    largest displacement is a tenth of the chain's length; the places without displacement are
    those of :func:`chain_points`.
    """

    frequencies: np.ndarray  # (count,) [Hz]
    shapes: np.ndarray  # (count, points, 2): x, z from the chain's root [m]


def chain_modes(
    beams: Sequence[ChainBeam],
    elements: int = 20,
    count: int = 6,
    joint_stiffness: Sequence[float] | None = None,
    gravity: float = 0.0,
) -> Modes:
    """
    Return the lowest natural frequencies of a chain and their shapes.

    Parameters
    ----------
    beams : sequence of ChainBeam
        From the root of the chain to its tip.
    elements : int
        Elements for each beam; a few more where breaks, masses or a support ask for them.
    count : int
        The number of modes.
    joint_stiffness : sequence of float, shape (beams,), optional
        Rotational stiffness [N m/rad] on each delta phi_i, 0 for a hinge. None locks all joints.
    gravity : float
        Acceleration of the second-order effect of the weight [m/s^2], 0 for none.

    Returns
    -------
    Modes

    Raises
    ------
    InputError
        For values that are not finite or out of range, with the beam's index.
    LongreachError
        When numbers are too large or too far apart for modes to be found.
    """
    _check(beams, elements, joint_stiffness, gravity)
    parts = [_Part(index, beam, elements) for index, beam in enumerate(beams)]
    joints = np.asarray([] if joint_stiffness is None else joint_stiffness, dtype=float)
    size = joints.size + sum(part.size for part in parts)
    if count not in range(1, size + 1):
        raise InputError(
            f'count = {count}, allowed with {size} degrees of freedom: [1, {size}];'
            ' take more elements for more modes'
        )
    M, K, weight, rows = _assemble(parts, joints, gravity)
    # The least Rayleigh quotient of the elements' own coordinates: a natural size of lambda.
    elastic = slice(joints.size, size)
    shift = float(np.min(np.diag(K)[elastic] / np.diag(M)[elastic]))
    values, vectors = _lowest(M, K + weight, shift, int(count))
    frequencies = np.sign(values) * np.sqrt(np.abs(values)) / (2.0 * math.pi)

    modes = np.moveaxis(rows @ vectors, -1, 0)
    reach = sum(beam.length for beam in beams)
    for mode in modes:
        tip = mode[-1, np.argmax(np.abs(mode[-1]))]
        mode *= math.copysign(_DRAWN * reach / np.max(np.hypot(mode[:, 0], mode[:, 1])), tip)
    return Modes(frequencies, chain_points(beams, elements) + modes)


def chain_points(beams: Sequence[ChainBeam], elements: int = 20) -> np.ndarray:
    """
    Return the element boundaries of an undeformed chain, shape (points, 2): x, z [m].

    Parameters
    ----------
    beams : sequence of ChainBeam
    elements : int
        As of :func:`chain_modes`; the chain's root is the origin and the first point.

    Raises
    ------
    InputError
        As :func:`chain_modes`.
    """
    _check(beams, elements, None, 0.0)
    points = [np.zeros((1, 2))]
    for beam in beams:
        along = np.array([math.cos(beam.angle), math.sin(beam.angle)])
        points.append(points[-1][-1] + np.outer(_nodes(beam, elements)[1:], along))
    return np.concatenate(points)


class _Part:
    """
    The elements of one beam: nodes, Gauss points, and deflections from the end curvatures.

    The coordinates are w'' at the left and at the right end of element 0, of element 1, ...
    """

    def __init__(self, index: int, beam: ChainBeam, elements: int) -> None:
        self.beam = beam
        self.normal = np.array([-math.sin(beam.angle), math.cos(beam.angle)])
        self.nodes = _nodes(beam, elements)
        h = np.diff(self.nodes)[:, np.newaxis]
        self.size = 2 * h.size
        self._left, self._right = np.eye(self.size)[0::2], np.eye(self.size)[1::2]

        # Slope and deflection at the nodes: curvature, linear in each element, integrated twice.
        self._slope, self._deflection = np.zeros((2, h.size + 1, self.size))
        self._slope[1:] = np.cumsum(h * (self._left + self._right) / 2.0, axis=0)
        gained = h * self._slope[:-1] + h * h * (self._left / 3.0 + self._right / 6.0)
        self._deflection[1:] = np.cumsum(gained, axis=0)
        if beam.support > 0.0:
            # A free slope at the root brings the support back to the chord.
            slope = -self.deflection(np.array([beam.support]))[0][0] / beam.support
            self._slope += slope
            self._deflection += np.outer(self.nodes, slope)

        abscissae, weights = np.polynomial.legendre.leggauss(_GAUSS_POINTS)
        abscissae, weights = (abscissae + 1.0) / 2.0, weights / 2.0
        self.points = (self.nodes[:-1, np.newaxis] + h * abscissae).ravel()
        self.weights = (h * weights).ravel()
        sigma = _section(index, beam, 'mass_per_length', self.points)
        stiffness = _section(index, beam, 'bending_stiffness', self.points)
        self.mass_weights = self.weights * sigma
        self.stiffness_weights = self.weights * stiffness
        self.mass_places = np.array([x for x, _ in beam.masses])
        self.point_masses = np.array([mass for _, mass in beam.masses])
        self.mass = float(self.mass_weights.sum() + self.point_masses.sum())

        # Mass between each Gauss point and the end of its element, by a rule of its own.
        rest = np.repeat(self.nodes[1:], _GAUSS_POINTS) - self.points
        inner = self.points[:, np.newaxis] + rest[:, np.newaxis] * abscissae
        inner_sigma = _section(index, beam, 'mass_per_length', inner.ravel())
        self._rest = rest * (inner_sigma.reshape(inner.shape) @ weights)

    def _place(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return element (x.size,), its length and the part of it before x (x.size, 1)."""
        element = np.searchsorted(self.nodes, x, side='right') - 1
        element = np.clip(element, 0, self.nodes.size - 2)
        h = np.diff(self.nodes)[element]
        part = (x - self.nodes[element]) / h
        return element, h[:, np.newaxis], part[:, np.newaxis]

    def curvature(self, x: np.ndarray) -> np.ndarray:
        """Return the rows of w'' at x, shape (x.size, size)."""
        element, _, part = self._place(x)
        return np.asarray((1.0 - part) * self._left[element] + part * self._right[element])

    def deflection(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows of w and of w' at x, each of shape (x.size, size)."""
        element, h, part = self._place(x)
        left, right = self._left[element], self._right[element]
        square, cube = part**2 / 2.0, part**3 / 6.0
        start = self._slope[element]
        w = self._deflection[element] + h * part * start
        w += h * h * ((square - cube) * left + cube * right)
        return w, start + h * ((part - square) * left + square * right)

    def displacement(
        self, x: np.ndarray, own: slice, root: np.ndarray, theta: np.ndarray
    ) -> np.ndarray:
        """
        Return the rows of u(x), shape (x.size, 2, all), for all coordinates of the chain.

        ``own`` picks this beam's among them; ``root`` (2, all) and ``theta`` (all,) are the rows
        of D and of the rotation of the beam's line.
        """
        across = np.outer(x, theta)
        across[:, own] += self.deflection(x)[0]
        u: np.ndarray = root + across[:, np.newaxis, :] * self.normal[:, np.newaxis]
        return u

    def outboard_mass(self) -> np.ndarray:
        """Return the mass of this beam outboard of each Gauss point, shape (points,) [kg]."""
        element_mass = self.mass_weights.reshape(-1, _GAUSS_POINTS).sum(axis=1)
        later = element_mass[::-1].cumsum()[::-1] - element_mass
        beyond = self.mass_places > self.points[:, np.newaxis]
        m: np.ndarray = self._rest + np.repeat(later, _GAUSS_POINTS) + beyond @ self.point_masses
        return m


def _assemble(
    parts: Sequence[_Part], joints: np.ndarray, gravity: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """
    Return the matrices of mass, elastic stiffness and weight, and the displacements of the nodes.

    The coordinates are the free delta phi_i, none where ``joints`` (beams,) or (0,) [N m/rad] is
    empty, and those of the parts, in order. Displacements are rows (points, 2, size).
    """
    size = joints.size + sum(part.size for part in parts)
    M, K, weight = np.zeros((3, size, size))
    K[: joints.size, : joints.size] = np.diag(joints)
    # Rows that take all coordinates to D of the present beam and to the rotation of its line.
    root, theta = np.zeros((2, size)), np.zeros(size)
    nodes = [root[np.newaxis]]
    column = joints.size
    for index, part in enumerate(parts):
        if joints.size:
            theta[index] += 1.0
        own = slice(column, column + part.size)
        column += part.size

        x = part.points
        for places, mass in ((x, part.mass_weights), (part.mass_places, part.point_masses)):
            scale = np.sqrt(mass)[:, np.newaxis, np.newaxis]
            u = (scale * part.displacement(places, own, root, theta)).reshape(-1, size)
            M += u.T @ u
        curvature = part.curvature(x)
        K[own, own] += curvature.T @ (part.stiffness_weights[:, np.newaxis] * curvature)
        outboard = part.outboard_mass() + sum(later.mass for later in parts[index + 1 :])
        force = -gravity * math.sin(part.beam.angle) * outboard
        slope = np.tile(theta, (x.size, 1))
        slope[:, own] += part.deflection(x)[1]
        weight += slope.T @ ((part.weights * force)[:, np.newaxis] * slope)

        nodes.append(part.displacement(part.nodes[1:], own, root, theta))
        root = nodes[-1][-1]
        theta[own] += part.deflection(part.nodes[-1:])[1][0]
    return M, K, weight, np.concatenate(nodes)


def _lowest(
    M: np.ndarray, K: np.ndarray, shift: float, count: int
) -> tuple[np.ndarray, np.ndarray]:
    """
    Return the lowest eigenvalues of K v = lambda M v, ascending, and their vectors in columns.

    (K + s M) v = M v / mu with mu = 1 / (lambda + s): the lowest modes have the largest mu and are
    the most exact. s > 0 lets there be hinges and unstable modes; ``shift`` is where it starts.
    """
    from scipy import linalg

    largest = 1e100 * shift
    while not _positive_definite(K + shift * M):
        shift *= 4.0
        if not shift < largest:
            raise LongreachError(
                'no modes were found: the weight is beyond comparison with the stiffness;'
                ' look for gravity, masses or EI of impossible size'
            )
    # Once more, to stay clear of the point where the sum is singular.
    shift *= 4.0
    size = len(M)
    mu, vectors = linalg.eigh(M, K + shift * M, subset_by_index=[size - count, size - 1])
    if mu[0] <= _RESOLVED * mu[-1]:
        raise LongreachError(
            f'{count} modes cannot be told from rounding: the highest is too far above the lowest;'
            ' ask for fewer modes'
        )
    return 1.0 / mu[::-1] - shift, vectors[:, ::-1]


def _nodes(beam: ChainBeam, elements: int) -> np.ndarray:
    """Return the element boundaries of a beam: the places that ask for one, evenly refined."""
    places = [0.0, float(beam.length)]
    wanted = [beam.support, *beam.breaks, *(x for x, _ in beam.masses)]
    for place in wanted:
        if all(abs(place - other) > _SAME_PLACE * beam.length for other in places):
            places.append(place)
    nodes = [np.zeros(1)]
    for start, end in itertools.pairwise(sorted(places)):
        # The last digits must not add an element.
        parts = math.ceil(elements * (end - start) / beam.length - 1e-6)
        nodes.append(np.linspace(start, end, max(parts, 1) + 1)[1:])
    return np.concatenate(nodes)


def _section(index: int, beam: ChainBeam, name: str, x: np.ndarray) -> np.ndarray:
    """Return sigma or EI at x, checked."""
    values = np.asarray(getattr(beam, name)(x), dtype=float)
    if values.shape not in ((), x.shape):
        raise InputError(
            f'beams[{index}].{name} returned shape {values.shape} for x of shape {x.shape},'
            ' allowed: the shape of x, or one number'
        )
    values = np.broadcast_to(values, x.shape)
    bad = np.flatnonzero(~(np.isfinite(values) & (values > 0.0)))
    if bad.size:
        unit = {'mass_per_length': 'kg/m', 'bending_stiffness': 'N m^2'}[name]
        raise InputError(
            f'beams[{index}].{name} = {values[bad[0]]:g} at x = {x[bad[0]]:g} m,'
            f' allowed: (0, inf) {unit}'
        )
    return values


def _positive_definite(matrix: np.ndarray) -> bool:
    """Tell whether a symmetric matrix is finite and has a Cholesky factor."""
    try:
        return bool(np.isfinite(np.linalg.cholesky(matrix)).all())
    except np.linalg.LinAlgError:
        return False


def _check(
    beams: Sequence[ChainBeam],
    elements: int,
    joint_stiffness: Sequence[float] | None,
    gravity: float,
) -> None:
    """Raise InputError for arguments that cannot be used."""
    if not len(beams):
        raise InputError('beams is empty, allowed: one beam or more')
    if not (elements >= 1 and float(elements).is_integer()):
        raise InputError(f'elements = {elements}, allowed: integers from 1')
    if not math.isfinite(gravity):
        raise InputError(f'gravity = {gravity}, allowed: (-inf, inf) m/s^2')
    if joint_stiffness is not None:
        if len(joint_stiffness) != len(beams):
            raise InputError(
                f'joint_stiffness has {len(joint_stiffness)} values, allowed: one for each of the'
                f' {len(beams)} beams, or None to lock all joints'
            )
        for index, value in enumerate(joint_stiffness):
            if not (math.isfinite(value) and value >= 0.0):
                raise InputError(f'joint_stiffness[{index}] = {value}, allowed: [0, inf) N m/rad')
    for index, beam in enumerate(beams):
        _check_beam(f'beams[{index}]', beam)


def _check_beam(name: str, beam: ChainBeam) -> None:
    """Raise InputError for a beam that cannot be used; its sections are checked where needed."""
    length = beam.length
    if not (math.isfinite(length) and length > 0.0):
        raise InputError(f'{name}.length = {length}, allowed: (0, inf) m')
    if not math.isfinite(beam.angle):
        raise InputError(f'{name}.angle = {beam.angle}, allowed: (-inf, inf) rad')
    # Comparisons with NaN are false.
    if not 0.0 <= beam.support < length:
        raise InputError(
            f'{name}.support = {beam.support}, allowed: [0, {length:g}) m, 0 for none'
        )
    for place in beam.breaks:
        if not 0.0 <= place <= length:
            raise InputError(f'{name}.breaks has {place}, allowed: [0, {length:g}] m')
    for place, mass in beam.masses:
        if not 0.0 <= place <= length:
            raise InputError(f'{name}.masses has one at x = {place}, allowed: [0, {length:g}] m')
        if not (math.isfinite(mass) and mass >= 0.0):
            raise InputError(f'{name}.masses has m = {mass}, allowed: [0, inf) kg')
