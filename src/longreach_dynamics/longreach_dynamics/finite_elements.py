"""
Natural frequencies of chains of planar beams by finite elements: a second opinion.

Model: straight, inextensible Euler-Bernoulli beams in the vertical plane, no rotary inertia. A
point of the plane is the complex number x + j z. Beam i has the root d_i, the undeformed angle
alpha_i, the rotation theta_i of its own straight line and the deflection w_i(x) from that line,
with w_i' as the angle between the two:

    point    r_i(x) = d_i + z_i u_i(x),     z_i = e^(j (alpha_i + theta_i)),    d_{i+1} = r_i(L_i)
             u_i(x) = int_0^x e(w_i') ds,   e(psi) = 1 + j psi - 1/2 psi^2
    angle    theta_{i+1} = theta_i + w_i'(L_i) + delta phi_{i+1},     theta_1 = delta phi_1

theta_i may be of any size. The last term of e is the beam's own foreshortening, to second order;
without it u_i = x + j w_i, as in models that let each beam bend at right angles to its line only.
Modes are small displacements about the undeformed chain or about its static equilibrium.

A beam without support has w(0) = w'(0) = 0. One with a support at x_m has w(0) = w(x_m) = 0 and a
free slope: its line is the chord from the root pin to the support, and the support pushes at right
angles to the chord.

Elements: in each, w is a cubic and w' is continuous across nodes. These are the Hermite cubics,
but the coordinates are the curvatures at both ends of each element instead of nodal displacements
and slopes. The two sets describe the same functions; with curvatures the stiffness matrix has
2 x 2 blocks and no differences of nearly equal numbers, so that fine meshes lose no digits.
Integrals are Gauss-Legendre sums of 6 points for each element, exact for sigma of degree 5 and EI
of degree 9 within the element. Frequencies converge with the fourth power of the element length.

Weight: the piece ds of beam i lifts all mass m_i(s) outboard of it, on this and on later beams, by
Im(z_i e(w_i')) ds. So the weight's potential, with its derivatives, is a sum over beams

    V   = g sum_i Im(z_i S_i),     S_i = int_0^{L_i} m_i e(w_i') ds
    dV  = g sum_i Im(j z_i S_i dtheta_i + z_i dS_i)
    ddV = g sum_i Im(-z_i S_i dtheta_i^2 + 2 j z_i dS_i dtheta_i + z_i ddS_i)

where ddS_i = -int m_i dw_i'^2 ds comes from foreshortening alone. About the undeformed chain it is

    ddV = sum_i int_0^{L_i} N_i (dtheta_i + dw_i')^2 ds,     N_i = -g sin(alpha_i) m_i

without the term N_i dw_i'^2 where foreshortening is left out. N_i is the normal force, tension
positive: a hanging beam gets stiffer and a standing one softer. Of the first order, the moments
in the joints hold what goes with delta phi_i; the rest vanishes in static equilibrium and is
neglected about the undeformed chain.

Source: Hughes, The Finite Element Method (1987), section 1.16 (cubics) and chapter 7
(convergence of frequencies).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from longreach_dynamics.beams import places_apart
from longreach_dynamics.errors import InputError, LongreachError, check_count, check_within

_GAUSS_POINTS = 6
# Eigenvalues 1 / lambda below this part of the largest hold no digits that could be trusted.
_RESOLVED = 1e-12
# Newton's method stops after a step in which no angle changes by more [rad]: the next would be in
# the last digits.
_SETTLED = 1e-8
_MOST_STEPS = 50
# Largest slope of a beam at rest for which e still stands for the rotation [rad].
_MOST_SLOPE = 1.0


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


class ChainBase(NamedTuple):
    """
    Rigid body below the root of the chain, on a vertical and a rotational spring.

    The springs are at rest under the body's own weight; the root of the chain is then the origin.
    """

    x: float  # of its centre of mass, at which the springs act [m]
    z: float  # [m]
    mass: float  # [kg]
    inertia: float  # about the centre [kg m^2]
    heave_stiffness: float  # [N/m]
    pitch_stiffness: float  # [N m/rad]


def chain_modes(
    beams: Sequence[ChainBeam],
    elements: int = 20,
    count: int = 6,
    joint_stiffness: Sequence[float] | None = None,
    gravity: float = 0.0,
    sagged: bool = False,
    foreshortening: bool = True,
    base: ChainBase | None = None,
) -> np.ndarray:
    """
    Return the lowest natural frequencies of a chain [Hz], ascending, shape (count,).

    A negative one -f stands for an unstable mode that grows with the rate 2 pi f, as of a column
    that buckles under its weight.

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
        The springs' rest positions are such that delta phi = 0 in equilibrium.
    gravity : float
        Acceleration of the second-order effect of the weight [m/s^2], 0 for none.
    sagged : bool
        Whether modes are about the static equilibrium under gravity, else about straight beams.
    foreshortening : bool
        Whether a beam that bends gets shorter along its own line.
    base : ChainBase, optional
        Rigid body below the root of the chain; None: the root is fixed.

    Raises
    ------
    InputError
        For values that are not finite or out of range, with the beam's index.
    LongreachError
        When no modes can be distinguished from rounding, or no static equilibrium is found.
    """
    _check(beams, elements, joint_stiffness, gravity)
    joints = np.asarray([] if joint_stiffness is None else joint_stiffness, dtype=float)
    chain = _Chain(beams, elements, joints, gravity, foreshortening, base)
    if count not in range(1, chain.size + 1):
        raise InputError(
            f'count = {count}, allowed with {chain.size} degrees of freedom: [1, {chain.size}];'
            ' take more elements for more modes'
        )
    q = chain.equilibrium() if sagged else np.zeros(chain.size)
    M, _ = chain.inertia(q)
    weight = chain.weight(q)[1]
    # The least Rayleigh quotient of the elements' own coordinates: a natural size of lambda.
    elastic = slice(joints.size, chain.size)
    shift = float(np.min(np.diag(chain.stiffness)[elastic] / np.diag(M)[elastic]))
    values = _lowest(M, chain.stiffness + weight, shift, int(count))
    return np.asarray(np.sign(values) * np.sqrt(np.abs(values)) / (2.0 * math.pi))


class _Part:
    """Elements of one beam; coordinates: w'' at the left and right end of element 0, of 1, ..."""

    def __init__(self, index: int, beam: ChainBeam, elements: int) -> None:
        self.beam = beam
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
        self._rule = abscissae, weights
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

    def shortening(self, x: np.ndarray, own: np.ndarray) -> np.ndarray:
        """Return int_0^x psi dw' ds (x.size, size), psi the slope of coordinates ``own``."""

        def weighted(places: np.ndarray, weights: np.ndarray) -> np.ndarray:
            slope = self.deflection(places)[1]
            rows = (weights * (slope @ own))[:, np.newaxis] * slope
            return np.asarray(rows.reshape(-1, _GAUSS_POINTS, self.size).sum(axis=1))

        whole = np.zeros((self.nodes.size, self.size))
        whole[1:] = np.cumsum(weighted(self.points, self.weights), axis=0)
        element = self._place(x)[0]
        start = self.nodes[element, np.newaxis]
        abscissae, weights = self._rule
        rest = x[:, np.newaxis] - start
        rows = weighted((start + rest * abscissae).ravel(), (rest * weights).ravel())
        return np.asarray(whole[element] + rows)

    def outboard_mass(self) -> np.ndarray:
        """Return the mass of this beam outboard of each Gauss point, shape (points,) [kg]."""
        element_mass = self.mass_weights.reshape(-1, _GAUSS_POINTS).sum(axis=1)
        later = element_mass[::-1].cumsum()[::-1] - element_mass
        beyond = self.mass_places > self.points[:, np.newaxis]
        m: np.ndarray = self._rest + np.repeat(later, _GAUSS_POINTS) + beyond @ self.point_masses
        return m


class _Chain:
    """A chain; coordinates: free delta phi_i, those of the parts, heave and pitch of a base."""

    def __init__(
        self,
        beams: Sequence[ChainBeam],
        elements: int,
        joints: np.ndarray,
        gravity: float,
        foreshortening: bool,
        base: ChainBase | None = None,
    ) -> None:
        self._base, self._gravity = base, gravity
        self._parts = [_Part(index, beam, elements) for index, beam in enumerate(beams)]
        self._joints = joints.size
        self._foreshortening = foreshortening
        ends = joints.size + np.cumsum([0, *(part.size for part in self._parts)])
        self.size = int(ends[-1]) + (0 if base is None else 2)
        self._own = [slice(int(a), int(b)) for a, b in itertools.pairwise(ends)]

        self.stiffness = np.zeros((self.size, self.size))
        self.stiffness[: joints.size, : joints.size] = np.diag(joints)
        # Rows that take q to theta_i.
        self._theta = np.zeros((len(beams), self.size))
        # Slopes at the Gauss points, and the weight outboard of each times its length [N m].
        self._slopes = []
        self._lifts = []
        for index, (part, own) in enumerate(zip(self._parts, self._own, strict=True)):
            curvature = part.curvature(part.points)
            self.stiffness[own, own] += curvature.T @ (
                part.stiffness_weights[:, np.newaxis] * curvature
            )
            if joints.size:
                self._theta[index:, index] = 1.0
            self._theta[index + 1 :, own] = part.deflection(part.nodes[-1:])[1][0]
            self._slopes.append(part.deflection(part.points)[1])
            outboard = part.outboard_mass() + sum(later.mass for later in self._parts[index + 1 :])
            self._lifts.append(gravity * part.weights * outboard)
        if base is not None:
            self._theta[:, -1] = 1.0
            self.stiffness[-2, -2] = base.heave_stiffness
            self.stiffness[-1, -1] = base.pitch_stiffness

    def weight(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return gradient (size,) and Hessian (size, size) of the potential of the weight at q."""
        gradient, hessian = np.zeros(self.size), np.zeros((self.size, self.size))
        for part, own, theta, slope, lift in zip(
            self._parts, self._own, self._theta, self._slopes, self._lifts, strict=True
        ):
            z = np.exp(1j * (part.beam.angle + theta @ q))
            psi = slope @ q[own]
            e, rate = 1.0 + 1j * psi, np.full(psi.shape, 1j)
            if self._foreshortening:
                e -= psi**2 / 2.0
                rate -= psi
                bent = slope.T @ (lift[:, np.newaxis] * slope)
                hessian[own, own] -= z.imag * bent
            turned = 1j * z * (lift @ e)
            moved = z * (slope.T @ (lift * rate))
            gradient += turned.imag * theta
            gradient[own] += moved.imag
            hessian -= (z * (lift @ e)).imag * np.outer(theta, theta)
            mixed = np.outer((1j * moved).imag, theta)
            hessian[own] += mixed
            hessian[:, own] += mixed.T
        if self._base is not None:
            # The base moves the whole chain.
            weight = self._gravity * sum(part.mass for part in self._parts)
            arm = np.exp(1j * q[-1]) * complex(self._base.x, self._base.z)
            gradient[-2] += weight
            gradient[-1] -= weight * arm.real
            hessian[-1, -1] += weight * arm.imag
        return gradient, hessian

    def inertia(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the mass matrix at q, and the places x + j z of element boundaries [m]."""
        M = np.zeros((self.size, self.size))
        place, root = 0j, np.zeros(self.size, dtype=complex)
        if self._base is not None:
            M[-2, -2], M[-1, -1] = self._base.mass, self._base.inertia
            centre = complex(self._base.x, self._base.z)
            place = centre + 1j * q[-2] - np.exp(1j * q[-1]) * centre
            root[-2], root[-1] = 1j, -1j * np.exp(1j * q[-1]) * centre
        places = [np.array([place])]
        for part, own, theta in zip(self._parts, self._own, self._theta, strict=True):
            z = np.exp(1j * (part.beam.angle + theta @ q))
            for x, mass in (
                (part.points, part.mass_weights),
                (part.mass_places, part.point_masses),
            ):
                moved = root + z * self._along(part, x, q, own, theta)[1]
                heavy = np.sqrt(mass)[:, np.newaxis] * moved
                M += heavy.real.T @ heavy.real + heavy.imag.T @ heavy.imag
            u, du = self._along(part, part.nodes[1:], q, own, theta)
            places.append(place + z * u)
            place, root = places[-1][-1], root + z * du[-1]
        return M, np.concatenate(places)

    def _along(
        self, part: _Part, x: np.ndarray, q: np.ndarray, own: slice, theta: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return u(x) (x.size,) and its rows with those of the rotation (x.size, size)."""
        w = part.deflection(x)[0]
        u, du = x + 1j * (w @ q[own]), 1j * w
        if self._foreshortening and q.any():
            shortening = part.shortening(x, q[own])
            u -= shortening @ q[own] / 2.0
            du -= shortening
        rows = 1j * np.outer(u, theta)
        rows[:, own] += du
        return u, rows

    def equilibrium(self) -> np.ndarray:
        """Return q at rest under the weight, shape (size,), with delta phi = 0."""
        q = np.zeros(self.size)
        free = slice(self._joints, self.size)
        step = np.zeros(self.size)
        # Overflows give results that are not finite, for which every comparison is false.
        with np.errstate(all='ignore'):
            for _ in range(_MOST_STEPS):
                gradient, hessian = self.weight(q)
                residual = gradient + self.stiffness @ q
                tangent = hessian + self.stiffness
                try:
                    step[free] = np.linalg.solve(tangent[free, free], -residual[free])
                except np.linalg.LinAlgError:
                    break
                q += step
                if self._largest_slope(step) < _SETTLED:
                    if self._largest_slope(q) < _MOST_SLOPE:
                        return q
                    break
        raise LongreachError(
            'no static equilibrium was found in which every beam bends by less than'
            f' {_MOST_SLOPE:g} rad: the chain is too slender for its weight; make several beams of'
            ' one, or look for gravity, masses or EI of impossible size'
        )

    def _largest_slope(self, q: np.ndarray) -> float:
        """Return the largest |w'| at the Gauss points of all beams [rad]."""
        slopes = [slope @ q[own] for slope, own in zip(self._slopes, self._own, strict=True)]
        return float(np.max(np.abs(np.concatenate(slopes))))


def _lowest(M: np.ndarray, K: np.ndarray, shift: float, count: int) -> np.ndarray:
    """Return the lowest eigenvalues of K v = lambda M v, ascending."""
    # Of (K + s M) v = M v / mu, mu = 1 / (lambda + s), the lowest modes have the largest mu and
    # are the most exact. s > 0, from ``shift`` on, lets there be hinges and unstable modes.
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
    mu = linalg.eigh(M, K + shift * M, eigvals_only=True, subset_by_index=[size - count, size - 1])
    if mu[0] <= _RESOLVED * mu[-1]:
        raise LongreachError(
            f'{count} modes cannot be distinguished from rounding: the highest is too far above'
            ' the lowest; ask for fewer modes'
        )
    return np.asarray(1.0 / mu[::-1] - shift)


def _nodes(beam: ChainBeam, elements: int) -> np.ndarray:
    """Return the element boundaries of a beam: the places that ask for one, evenly refined."""
    wanted = [beam.support, *beam.breaks, *(x for x, _ in beam.masses)]
    nodes = [np.zeros(1)]
    for start, end in itertools.pairwise(places_apart(beam.length, wanted)):
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
    """Return whether a symmetric matrix is finite and has a Cholesky factor."""
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
    """Raise InputError for arguments that cannot be used; sections are checked where needed."""
    if not len(beams):
        raise InputError('beams is empty, allowed: one beam or more')
    if not (elements >= 1 and float(elements).is_integer()):
        raise InputError(f'elements = {elements}, allowed: integers from 1')
    check_within('gravity', gravity, '(-inf, inf) m/s^2')
    if joint_stiffness is not None:
        check_count('joint_stiffness', joint_stiffness, len(beams), 'or None to lock all joints')
        for index, value in enumerate(joint_stiffness):
            check_within(f'joint_stiffness[{index}]', value, '[0, inf) N m/rad')
    for index, beam in enumerate(beams):
        name, L = f'beams[{index}]', beam.length
        check_within(f'{name}.length', L, '(0, inf) m')
        check_within(f'{name}.angle', beam.angle, '(-inf, inf) rad')
        check_within(f'{name}.support', beam.support, f'[0, {L}) m')
        for place in beam.breaks:
            check_within(f'{name}.breaks: x', place, f'[0, {L}] m')
        for place, mass in beam.masses:
            check_within(f'{name}.masses: x', place, f'[0, {L}] m')
            check_within(f'{name}.masses: m', mass, '[0, inf) kg')
