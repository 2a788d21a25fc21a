"""
Planar serial chains of rigid links: recursive Newton-Euler, mass matrix, forward dynamics.

The chain moves in the vertical x-z plane, x forward, z up; its first joint is at the origin of the
world. Link i turns about joint i, the next joint lies at its distance L_i along the link's x axis,
and q_i is the angle from link i - 1 (from the world's x axis for the first) to link i. Positive
angles, torques and moments lift; they turn x towards z. A place of a link may be off its axis.

A vector of the plane is a complex number x + j z, so that z_i = e^(j theta_i), theta_i = q_1 + ..
+ q_i, turns it from the frame of link i into the world's. The cross product is Im(conj(r) f), and
a joint's acceleration gives that of a place u of its link as s'' + (j theta'' - theta'^2) z u.

- Inverse dynamics, O(n): accelerations outwards, then the force and the moment with which each
  link is carried inwards (Luh, Walker, Paul 1980). Gravity is an acceleration of the ground.
- Forward dynamics in absolute angles. With b_j = m_j c_j + L_j (m_(j+1) + .. + m_n) the inertia
  between links i < j is Re X and their centrifugal force Im X, X = L_i b_j conj(z_i) z_j: one
  product for each pair. For the few links of a machine a Cholesky solution of this has fewer
  operations than articulated bodies, O(n), which are for long chains.

:class:`PlanarChain` is the interface for Python. Compiled code of a machine makes
:meth:`PlanarChain.table` once, calls :func:`place_links` for each pose, :func:`add_wrench` for
what acts there, and then :func:`newton_euler` or :func:`accelerations`.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from longreach_dynamics._array_calls import ArrayCall, matrix, vector
from longreach_dynamics.errors import InputError, LongreachError
from longreach_dynamics.kernels import kernel
from longreach_dynamics.linear_algebra import ldl_of, ldl_solve_of
from longreach_dynamics.tables import check_numbers, numbers_of

# Rows of the table that compiled code works with, one column for each link. One array for numbers
# and for intermediate results, because numba counts references to each array at each use, and each
# costs a call from Python 40 ns. The numbers: b_i, and the inertia about the joint with the mass
# of what lies outboard at the tip, follow from the others.
LENGTH, MASS, CENTER, CENTER_IM, INERTIA, FIRST, FIRST_IM, SECOND, GRAVITY = range(9)
# z_i, theta_i', the wrench on each link with its moment about the link's joint, the force with
# which the link is carried, z_i b_i; then n rows for a mass matrix.
Z, Z_IM, RATE, PUSH, PUSH_IM, TWIST, FORCE, FORCE_IM, TURNED, TURNED_IM, MATRIX = range(9, 20)


class Wrench(NamedTuple):
    """
    A force on a place of a link, and a moment; several may act on one link.

    The place turns with the link and is given in its frame like a centre of gravity. The force is
    in the world's axes.
    """

    link: int  # index, from 0
    distance: float  # of the place from the link's joint [m]
    angle: float  # from the link's x axis to the place [rad]
    fx: float  # forward [N]
    fz: float  # up [N]
    moment: float = 0.0  # positive lifts [N m]


# Machines have three links, and loops of known length are unrolled: half of the time.
_USUAL = 3


@njit
def place_links(q, v, table):  # type: ignore[no-untyped-def]
    """Set the links' directions and rates from q (n,) and q' = v (n,), and clear all wrenches."""
    if table.shape[1] == _USUAL:
        _place(q, v, table, _USUAL)
    else:
        _place(q, v, table, table.shape[1])


@njit(inline='always')
def _place(q, v, table, n):  # type: ignore[no-untyped-def]
    """Do :func:`place_links` for n links."""
    angle, rate = 0.0, 0.0
    for i in range(n):
        angle += q[i]
        rate += v[i]
        table[Z, i] = math.cos(angle)
        table[Z_IM, i] = math.sin(angle)
        table[RATE, i] = rate
        table[PUSH, i] = 0.0
        table[PUSH_IM, i] = 0.0
        table[TWIST, i] = 0.0


@njit
def add_wrench(link, x, z, fx, fz, moment, table):  # type: ignore[no-untyped-def]
    """Add a force [N], in the world's axes, on the place (x, z) [m] of a link's frame."""
    out = x * table[Z, link] - z * table[Z_IM, link]
    up = x * table[Z_IM, link] + z * table[Z, link]
    table[PUSH, link] += fx
    table[PUSH_IM, link] += fz
    table[TWIST, link] += out * fz - up * fx + moment


@njit
def newton_euler(torque, table):  # type: ignore[no-untyped-def]
    """Overwrite q'' (n,) with joint torques [N m], and write rows FORCE and FORCE_IM."""
    n = table.shape[1]
    joint, turn = complex(0.0, table[GRAVITY, 0]), 0.0
    for i in range(n):
        turn += torque[i]
        z = complex(table[Z, i], table[Z_IM, i])
        arm = z * complex(table[CENTER, i], table[CENTER_IM, i])
        spin = complex(-table[RATE, i] * table[RATE, i], turn)
        force = (joint + spin * arm) * table[MASS, i]
        torque[i] = table[INERTIA, i] * turn + arm.real * force.imag - arm.imag * force.real
        torque[i] -= table[TWIST, i]
        table[FORCE, i] = force.real - table[PUSH, i]
        table[FORCE_IM, i] = force.imag - table[PUSH_IM, i]
        joint += spin * z * table[LENGTH, i]
    for i in range(n - 2, -1, -1):
        lever = table[Z, i] * table[FORCE_IM, i + 1] - table[Z_IM, i] * table[FORCE, i + 1]
        torque[i] += torque[i + 1] + table[LENGTH, i] * lever
        table[FORCE, i] += table[FORCE, i + 1]
        table[FORCE_IM, i] += table[FORCE_IM, i + 1]


@njit
def absolute_mass_matrix(table):  # type: ignore[no-untyped-def]
    """Write the lower triangle of the mass matrix of the absolute angles into MATRIX [kg m^2]."""
    for j in range(table.shape[1]):
        turned = table[Z, j] * table[FIRST, j] - table[Z_IM, j] * table[FIRST_IM, j]
        turned_im = table[Z_IM, j] * table[FIRST, j] + table[Z, j] * table[FIRST_IM, j]
        table[TURNED, j] = turned
        table[TURNED_IM, j] = turned_im
        for i in range(j):
            along = table[Z, i] * turned + table[Z_IM, i] * turned_im
            table[MATRIX + j, i] = table[LENGTH, i] * along
        table[MATRIX + j, j] = table[SECOND, j]


@njit
def accelerations(torque, table):  # type: ignore[no-untyped-def]
    """Overwrite joint torques (n,) [N m] with q'' [rad/s^2]; False where floating point fails."""
    if table.shape[1] == _USUAL:
        return _accelerations(torque, table, _USUAL)
    return _accelerations(torque, table, table.shape[1])


@njit(inline='always')
def _accelerations(torque, table, n):  # type: ignore[no-untyped-def]
    """Do :func:`accelerations` for n links."""
    gravity, push, push_im, outboard = table[GRAVITY, 0], 0.0, 0.0, 0.0
    for i in range(n - 1, -1, -1):
        z, z_im, own = table[Z, i], table[Z_IM, i], torque[i]
        turned = z * table[FIRST, i] - z_im * table[FIRST_IM, i]
        table[TURNED, i] = turned
        table[TURNED_IM, i] = z_im * table[FIRST, i] + z * table[FIRST_IM, i]
        torque[i] = own - outboard + table[TWIST, i] - gravity * turned
        torque[i] += table[LENGTH, i] * (z * push_im - z_im * push)
        push += table[PUSH, i]
        push_im += table[PUSH_IM, i]
        outboard = own
    matrix = table[MATRIX:]
    for j in range(n):
        turned, turned_im, rate = table[TURNED, j], table[TURNED_IM, j], table[RATE, j]
        own = torque[j]
        for i in range(j):
            z, z_im, length = table[Z, i], table[Z_IM, i], table[LENGTH, i]
            matrix[j, i] = length * (z * turned + z_im * turned_im)
            across = (z * turned_im - z_im * turned) * length
            torque[i] += across * rate * rate
            own -= across * table[RATE, i] * table[RATE, i]
        torque[j] = own
        matrix[j, j] = table[SECOND, j]
    definite = ldl_of(matrix, n)
    ldl_solve_of(matrix, torque, n)
    for i in range(n - 1, 0, -1):
        torque[i] -= torque[i - 1]
    return definite


@njit
def _finite(x, table, n):  # type: ignore[no-untyped-def]
    """Return an argument as an array (n,); raise ValueError when a number is not finite."""
    numbers = vector(x, table, n)
    for i in range(n):
        if not math.isfinite(numbers[i]):
            raise ValueError
    return numbers


@njit
def _add_wrenches(wrenches, table):  # type: ignore[no-untyped-def]
    """Add rows of :class:`Wrench`; raise ValueError for those that cannot be used."""
    if wrenches.shape[1] != 6:
        raise ValueError
    for k in range(wrenches.shape[0]):
        for m in range(6):
            if not math.isfinite(wrenches[k, m]):
                raise ValueError
        link = int(wrenches[k, 0])
        if link != wrenches[k, 0] or not 0 <= link < table.shape[1]:
            raise ValueError
        distance, angle = wrenches[k, 1], wrenches[k, 2]
        x, z = distance * math.cos(angle), distance * math.sin(angle)
        add_wrench(link, x, z, wrenches[k, 3], wrenches[k, 4], wrenches[k, 5], table)


# Called from Python. Each result overwrites an argument, because numba takes longer to return an
# array than to fill it. Arguments are checked here, where it costs nothing. Python's lock is held,
# so that threads may share a chain and its table.


@ArrayCall
@kernel
def _inverse(q, v, torque, table):  # type: ignore[no-untyped-def]
    """Overwrite q'' with joint torques."""
    own = matrix(table, table)
    n = own.shape[1]
    place_links(_finite(q, table, n), _finite(v, table, n), own)
    newton_euler(_finite(torque, table, n), own)


@ArrayCall
@kernel
def _reactions(q, v, a, wrenches, reactions, table):  # type: ignore[no-untyped-def]
    """Write forces and torques of the joints (n, 3)."""
    own = matrix(table, table)
    n = own.shape[1]
    acceleration, rows = _finite(a, table, n), matrix(reactions, table)
    place_links(_finite(q, table, n), _finite(v, table, n), own)
    _add_wrenches(matrix(wrenches, table), own)
    torque = rows[:, 2]
    for i in range(n):
        torque[i] = acceleration[i]
    newton_euler(torque, own)
    for i in range(n):
        rows[i, 0] = own[FORCE, i]
        rows[i, 1] = own[FORCE_IM, i]


@ArrayCall
@kernel
def _forward(q, v, a, wrenches, table):  # type: ignore[no-untyped-def]
    """Overwrite joint torques with q'' under wrenches."""
    own = matrix(table, table)
    n = own.shape[1]
    place_links(_finite(q, table, n), _finite(v, table, n), own)
    _add_wrenches(matrix(wrenches, table), own)
    if not accelerations(_finite(a, table, n), own):
        raise ValueError


@ArrayCall
@kernel
def _mass_matrix(q, M, table):  # type: ignore[no-untyped-def]
    """Write the mass matrix of the relative angles (n, n)."""
    own, result = matrix(table, table), matrix(M, table)
    n = own.shape[1]
    pose = _finite(q, table, n)
    place_links(pose, pose, own)
    absolute_mass_matrix(own)
    # theta_k holds all q_i with i <= k, so that each row and column is the sum of those after it.
    for i in range(n - 1, -1, -1):
        total = 0.0
        for k in range(n - 1, -1, -1):
            total += own[MATRIX + i, k] if k < i else own[MATRIX + k, i]
            result[i, k] = total if i == n - 1 else total + result[i + 1, k]


_NO_WRENCHES = np.empty((0, 6))
# What a call raises for arguments of other types, and for numbers that cannot be used.
_REFUSED = (TypeError, ValueError, AttributeError)


@dataclasses.dataclass(frozen=True)
class PlanarChain:
    """
    A planar serial chain of n rigid links; conventions are in the module's docstring.

    Each argument has one value for each link, first link first.

    Parameters
    ----------
    lengths : sequence of float, shape (n,)
        L from joint to joint [m]; nothing here depends on the last.
    masses : sequence of float, shape (n,)
        m [kg].
    centers : sequence of (float, float), shape (n, 2)
        Centres of gravity in the frames of their links: distance from the joint [m], and angle
        from the link's x axis [rad].
    inertias : sequence of float, shape (n,)
        About the centre of gravity [kg m^2].
    gravity : float
        Downwards [m/s^2].

    Raises
    ------
    InputError
        For numbers that no rigid link has, and for no link.

    Notes
    -----
    Vectors q, v, a, torque are of shape (n,), for relative joint angles: [rad], [rad/s],
    [rad/s^2], [N m]. ``wrenches`` are rows of :class:`Wrench`, or an array (m, 6) of their
    numbers. C-contiguous arrays of float take less than half a microsecond for three links; what
    has to be converted to them, such as lists, takes ten. All methods raise InputError for shapes
    and numbers that cannot be used, and LongreachError where floating point does not suffice.
    """

    lengths: Sequence[float]
    masses: Sequence[float]
    centers: Sequence[tuple[float, float]]
    inertias: Sequence[float]
    gravity: float = dataclasses.field(default=9.81, kw_only=True)
    _table: np.ndarray = dataclasses.field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Check the numbers and keep them as tuples."""
        n = len(self.lengths)
        if n == 0:
            raise InputError('lengths is empty, allowed: one link or more')
        lengths = numbers_of('lengths', self.lengths, (n,))
        masses = numbers_of('masses', self.masses, (n,))
        centers = numbers_of('centers', self.centers, (n, 2))
        inertias = numbers_of('inertias', self.inertias, (n,))
        gravity = numbers_of('gravity', self.gravity, ())
        check_numbers('lengths', lengths, lengths > 0.0, '(0, inf) m')
        check_numbers('masses', masses, masses > 0.0, '(0, inf) kg')
        check_numbers('centers', centers, centers >= [0.0, -np.inf], '[0, inf) m from the joint')
        check_numbers('inertias', inertias, inertias >= 0.0, '[0, inf) kg m^2')
        # Else there are motions without kinetic energy.
        massive = (inertias > 0.0) | (centers[:, 0] > 0.0)
        check_numbers('inertias', inertias, massive, '(0, inf) kg m^2 for a centre at the joint')
        for name, values in (('lengths', lengths), ('masses', masses), ('inertias', inertias)):
            object.__setattr__(self, name, tuple(values.tolist()))
        object.__setattr__(self, 'centers', tuple(map(tuple, centers.tolist())))
        object.__setattr__(self, 'gravity', float(gravity))

        outboard = np.append(np.cumsum(masses[::-1])[::-1][1:], 0.0)
        center = centers[:, 0] * np.exp(1j * centers[:, 1])
        first = masses * center + lengths * outboard
        table = np.zeros((MATRIX + n, n))
        table[LENGTH], table[MASS] = lengths, masses
        table[INERTIA], table[GRAVITY] = inertias, gravity
        table[CENTER], table[CENTER_IM] = center.real, center.imag
        table[FIRST], table[FIRST_IM] = first.real, first.imag
        table[SECOND] = inertias + masses * centers[:, 0] ** 2 + outboard * lengths**2
        object.__setattr__(self, '_table', table)

    @property
    def size(self) -> int:
        """Number of links."""
        return len(self.lengths)

    def table(self) -> np.ndarray:
        """Return numbers and room for the compiled functions, see LENGTH and following."""
        return self._table.copy()

    def inverse_dynamics(
        self, q: np.ndarray, v: np.ndarray, a: np.ndarray, wrenches: Any = None
    ) -> np.ndarray:
        """Return the joint torques (n,) [N m] of a motion q, q' = v, q'' = a under wrenches."""
        if wrenches is not None:
            return self.reactions(q, v, a, wrenches)[:, 2].copy()
        try:
            torque = a.copy()
            _inverse.call(q, v, torque, self._table)
        except _REFUSED:
            q, v, torque = self._vectors(q=q, v=v, a=a)
            _again(_inverse, q, v, torque, self._table)
        return torque

    def forward_dynamics(
        self, q: np.ndarray, v: np.ndarray, torque: np.ndarray, wrenches: Any = None
    ) -> np.ndarray:
        """Return q'' (n,) [rad/s^2] under joint torques and wrenches."""
        rows = _NO_WRENCHES if wrenches is None else wrenches
        try:
            a = torque.copy()
            _forward.call(q, v, a, rows, self._table)
        except _REFUSED:
            q, v, a = self._vectors(q=q, v=v, torque=torque)
            _again(_forward, q, v, a, self._rows(rows), self._table)
        return a

    def mass_matrix(self, q: np.ndarray) -> np.ndarray:
        """Return the mass matrix of the relative joint angles (n, n) [kg m^2]."""
        M = np.empty((len(self.lengths), len(self.lengths)))
        try:
            _mass_matrix.call(q, M, self._table)
        except _REFUSED:
            _again(_mass_matrix, *self._vectors(q=q), M, self._table)
        return M

    def bias(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Return c(q, q') + g(q) (n,) [N m], the torques of a motion with q'' = 0."""
        return self.inverse_dynamics(q, v, np.zeros(len(self.lengths)))

    def reactions(
        self, q: np.ndarray, v: np.ndarray, a: np.ndarray, wrenches: Any = None
    ) -> np.ndarray:
        """
        Return what acts on each link from its predecessor, in the joint between them, (n, 3).

        Force forward and up, in the world's axes [N], and joint torque [N m].
        """
        reactions = np.empty((len(self.lengths), 3))
        rows = _NO_WRENCHES if wrenches is None else wrenches
        try:
            _reactions.call(q, v, a, rows, reactions, self._table)
        except _REFUSED:
            vectors = self._vectors(q=q, v=v, a=a)
            _again(_reactions, *vectors, self._rows(rows), reactions, self._table)
        return reactions

    def _vectors(self, **vectors: Any) -> list[np.ndarray]:
        """Return arrays that kernels take; raise InputError for those that cannot be used."""
        return [numbers_of(name, vector, (self.size,)) for name, vector in vectors.items()]

    def _rows(self, wrenches: Any) -> np.ndarray:
        """Return wrenches as the array that kernels take; raise InputError if there is none."""
        count = np.shape(wrenches)[:1] or (1,)
        rows = numbers_of('wrenches', wrenches if count[0] else _NO_WRENCHES, (*count, 6))
        links = rows[:, 0]
        good = (links >= 0.0) & (links < self.size) & (links == np.floor(links))
        check_numbers(
            'wrenches', rows, good[:, None] | [False] + [True] * 5, f'links 0 to {self.size - 1}'
        )
        return rows


def _again(entry: ArrayCall, *arguments: np.ndarray) -> None:
    """Call a kernel with arguments that were checked and converted."""
    try:
        entry.call(*arguments)
    except ValueError:
        raise LongreachError(
            'the mass matrix is not positive definite in floating point; look for masses, lengths'
            ' and inertias of impossible size, and for huge angles'
        ) from None
