"""
Euler-Bernoulli beams of varying section, their static bending lines, and Ritz functions.

A beam lies along x from 0 to L and bends by w(x), positive along its normal. Its root is carried
in one of two ways (Henikl 2015, figures 3 to 5):

- clamped: w(0) = w'(0) = 0;
- supported, with ``support`` x_m > 0: pinned at 0 and held at x_m, w(0) = w(x_m) = 0. The x axis
  is then the line through both places, and the shear force jumps at x_m.

Either way a bending line follows from its curvature alone, so a :class:`BendingLine` is made from
w''(x): a piecewise polynomial of degree 7, integrated twice without error. Polynomials and
numerical solutions are the same thing to whoever uses them.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.polynomial import chebyshev

from longreach_dynamics.errors import check_among, check_within

Distribution = Callable[[np.ndarray], np.ndarray]

# Panels between two breaks, nodes in each for the curvature, and Gauss points in each.
_PANELS = 4
_DEGREE = 7
_GAUSS = 12
# Column k: Chebyshev's polynomial of degree k at 2 s - 1, in powers of s.
_SHIFTED_CHEBYSHEV = np.array(
    [
        np.pad(polynomial.coef, (0, _DEGREE + 1 - polynomial.coef.size))
        for polynomial in (
            chebyshev.Chebyshev.basis(k)(np.polynomial.Polynomial([-1.0, 2.0]))
            for k in range(_DEGREE + 1)
        )
    ],
    dtype=float,
).T
# Places on a beam that are nearer than this part of its length are one place.
_SAME_PLACE = 1e-9
# Share of the largest deflection below which the tip's is no measure of a line.
_SMALL_TIP = 0.1
# Share of a line that must be left of it without those before it: what is left is not rounding.
_ADDS = 1e-6


@dataclasses.dataclass(frozen=True)
class Beam:
    """A beam; its distributions are called with arrays of places [m]."""

    length: float  # L [m]
    mass_per_length: Distribution  # sigma(x) [kg/m]
    bending_stiffness: Distribution  # EI(x) [N m^2]
    support: float = 0.0  # x_m [m]; 0 for a beam that is clamped at its root
    breaks: tuple[float, ...] = ()  # places [m] where sigma or EI have a kink

    def __post_init__(self) -> None:
        """Check the lengths."""
        check_within('length', self.length, '(0, inf) m')
        check_within('support', self.support, f'[0, {self.length}) m')

    @property
    def grid(self) -> np.ndarray:
        """Edges of the panels [m], ascending from 0 to L."""
        inner = [x for x in (self.support, *self.breaks) if 0.0 < x < self.length]
        edges = places_apart(self.length, inner)
        parts = np.linspace(edges[:-1], edges[1:], _PANELS, endpoint=False, axis=1).ravel()
        return np.append(parts, self.length)

    def gauss(self, start: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
        """Return places [m] and weights [m] of a Gauss quadrature from a place [m] to the tip."""
        nodes, weights = _gauss_rule()
        grid = self.grid
        edges = np.append(start, grid[grid > start])
        left, width = edges[:-1, None], np.diff(edges)[:, None]
        return (left + width * (nodes + 1.0) / 2.0).ravel(), (width * weights / 2.0).ravel()

    def integral(self, values: np.ndarray) -> float:
        """Return the integral over the beam of values given at the Gauss points."""
        return float(np.sum(values * self.gauss()[1], axis=-1))


def places_apart(length: float, wanted: Iterable[float]) -> list[float]:
    """Return 0, the length and what is wanted, ascending; the first of those at one place."""
    places = [0.0, float(length)]
    for place in wanted:
        if all(abs(place - other) > _SAME_PLACE * length for other in places):
            places.append(place)
    return sorted(places)


@functools.cache
def _gauss_rule() -> tuple[np.ndarray, np.ndarray]:
    """Return nodes and weights on [-1, 1], whose computation takes longer than their use."""
    nodes, weights = np.polynomial.legendre.leggauss(_GAUSS)
    nodes.flags.writeable = weights.flags.writeable = False
    return nodes, weights


def _integrated_twice(powers: np.ndarray, widths: np.ndarray) -> np.ndarray:
    """Return the powers of the second integral; it and its slope are 0 at the first edge."""
    K = len(powers)
    twice = np.zeros((K + 2, widths.size))
    factors = [(k + 1) * (k + 2) for k in range(K)]
    twice[2:] = powers / np.array(factors, dtype=float)[:, None]
    for panel in range(1, widths.size):
        for order in (1, 0):
            twice[order, panel] = _power_sum(twice[:, panel - 1], widths[panel - 1], order)
    return twice


def _power_sum(powers: np.ndarray, distance: np.ndarray, derivative: int) -> np.ndarray:
    """Return sum_k powers[k] distance^k, or a derivative of it by the distance."""
    total, power = np.zeros_like(distance), np.ones_like(distance)
    for k in range(derivative, len(powers)):
        total = total + powers[k] * power * math.perm(k, derivative)
        power = power * distance
    return total


@dataclasses.dataclass(frozen=True, eq=False)
class BendingLine:
    """A deflection w(x) [m] that keeps the beam's boundary conditions: polynomials, read-only."""

    # Those of SciPy would be a third of the start of a command.

    powers: np.ndarray
    edges: np.ndarray

    def __post_init__(self) -> None:
        """Take the right to write."""
        self.powers.setflags(write=False)
        self.edges.setflags(write=False)

    @classmethod
    def from_curvature(cls, beam: Beam, curvature: Distribution) -> BendingLine:
        """Return the line with w'' = curvature(x) [1/m]; kinks only at the beam's grid."""
        nodes = np.cos(np.pi * (np.arange(_DEGREE + 1) + 0.5) / (_DEGREE + 1))
        left, width = beam.grid[:-1], np.diff(beam.grid)
        values = curvature((left[:, None] + width[:, None] * (nodes + 1.0) / 2.0).ravel())
        # Chebyshev series, then powers of the distance from the left edge over the width.
        series = np.linalg.inv(chebyshev.chebvander(nodes, _DEGREE))
        powers = _SHIFTED_CHEBYSHEV @ series @ np.reshape(values, (left.size, -1)).T
        powers = powers / width ** np.arange(_DEGREE + 1)[:, None]
        line = cls(_integrated_twice(powers, width), beam.grid)
        if beam.support:
            slope = -float(line.at(beam.support)) / beam.support
            powers = line.powers.copy()
            powers[1] += slope
            powers[0] += slope * left
            line = cls(powers, line.edges)
        return line

    def at(self, x: np.ndarray | float, derivative: int = 0) -> np.ndarray:
        """Return w or a derivative at places [m]; the outer panels go on beyond the ends."""
        x = np.asarray(x, dtype=float)
        panel = np.clip(np.searchsorted(self.edges, x, side='right') - 1, 0, self.edges.size - 2)
        return _power_sum(self.powers[:, panel], x - self.edges[panel], derivative)

    def scaled(self, factor: float) -> BendingLine:
        """Return the line times a factor."""
        return BendingLine(self.powers * factor, self.edges)

    def plus(self, other: BendingLine, factor: float) -> BendingLine:
        """Return this line plus a factor times another of the same beam."""
        return BendingLine(self.powers + factor * other.powers, self.edges)

    def normalised(self) -> BendingLine:
        """Return the line with w(L) = 1; where a beam bends mainly inboard, its largest is 1."""
        grid = self.edges
        values = self.at(np.append(np.linspace(grid[:-1], grid[1:], 8, endpoint=False), grid[-1]))
        largest = values[np.argmax(np.abs(values))]
        size = values[-1] if abs(values[-1]) > _SMALL_TIP * abs(largest) else largest
        return self.scaled(1.0 / float(size))


def _line(beam: Beam, moment: Distribution) -> BendingLine:
    """Return the line under a bending moment [N m], EI w'' = M, normalised."""
    line = BendingLine.from_curvature(beam, lambda x: moment(x) / beam.bending_stiffness(x))
    return line.normalised()


def _root_share(beam: Beam, x: np.ndarray) -> np.ndarray:
    """Return M(x) / M(x_m) between root pin and support, where the moment grows from 0; else 1."""
    return np.minimum(x / beam.support, 1.0) if beam.support else np.ones_like(x)


def tip_force_line(beam: Beam) -> BendingLine:
    """Return the line under a force at the tip, w(L) = 1; massless, Henikl 2015, (9) to (11)."""
    L = beam.length
    return _line(beam, lambda x: _root_share(beam, x) * (L - np.maximum(x, beam.support)))


def tip_moment_line(beam: Beam) -> BendingLine:
    """Return the bending line of the massless beam under a moment at its tip, with w(L) = 1."""
    return _line(beam, lambda x: _root_share(beam, x))


def self_weight_line(beam: Beam) -> BendingLine:
    """Return the line under the beam's own weight, w(L) = 1; Henikl 2015, (12) and (13)."""
    places, weights = beam.gauss()
    mass = beam.mass_per_length(places) * weights
    nodes, node_weights = _gauss_rule()
    grid = beam.grid

    # Mass, and mass times place, of the panels from each on.
    masses = np.append(np.cumsum(mass.reshape(-1, _GAUSS).sum(axis=1)[::-1])[::-1], 0.0)
    moments = np.append(
        np.cumsum((mass * places).reshape(-1, _GAUSS).sum(axis=1)[::-1])[::-1], 0.0
    )

    def outboard(x: np.ndarray) -> np.ndarray:
        """Return the moment of the weight outboard of x, per unit of gravity [kg m]."""
        panel = np.minimum(np.searchsorted(grid, x, side='right'), grid.size - 1)
        # The rest of the panel that x lies in, then whole panels.
        width = (grid[panel] - x)[:, None]
        rest = x[:, None] + width * (nodes + 1.0) / 2.0
        density = np.reshape(beam.mass_per_length(rest.ravel()), rest.shape) * width / 2.0
        part = np.sum(node_weights * density * (rest - x[:, None]), axis=1)
        return np.asarray(part + moments[panel] - x * masses[panel])

    reaction = float(np.sum(mass * places)) / beam.support if beam.support else 0.0
    return _line(beam, lambda x: outboard(x) - reaction * np.maximum(beam.support - x, 0.0))


def _polynomial(beam: Beam, power: int) -> BendingLine:
    """Return (x - x_m) x^(power - 1) in units of L, the terms of Henikl 2015, (14) and (15)."""
    L, share = beam.length, beam.support / beam.length

    def curvature(x: np.ndarray) -> np.ndarray:
        s = x / L
        first = power * (power - 1) * s ** (power - 2)
        if share == 0.0:
            return first / L**2
        second = share * (power - 1) * (power - 2) * s ** max(power - 3, 0)
        return (first - second) / L**2

    return BendingLine.from_curvature(beam, curvature)


def fit_polynomial(beam: Beam, line: BendingLine, order: int) -> tuple[BendingLine, float]:
    """Return a fitted polynomial of order 2 to 9, Henikl 2015, (14), and its largest deviation."""
    check_within('order', order, f'[2, {_DEGREE + 2}]')
    places, weights = beam.gauss()
    terms = [_polynomial(beam, power) for power in range(2, order + 1)]
    root = np.sqrt(weights)
    matrix = np.stack([term.at(places) * root for term in terms], axis=1)
    wanted = line.at(places)
    factors = np.linalg.lstsq(matrix, wanted * root, rcond=None)[0]
    fitted = terms[0].scaled(factors[0])
    for term, factor in zip(terms[1:], factors[1:], strict=True):
        fitted = fitted.plus(term, factor)
    # The tip is where people look, and no quadrature point.
    seen = np.append(places, beam.length)
    error = float(np.abs(fitted.at(seen) - line.at(seen)).max() / np.abs(line.at(seen)).max())
    return fitted.normalised(), error


@dataclasses.dataclass(frozen=True, eq=False)
class RitzBasis:
    """
    Functions eta(x) of which a beam's deflection is made, w(x, t) = sum_e h_e(t) eta_e(x).

    They are orthogonal, int eta_e eta_f dx = 0, and 1 at the tip, so that h_e is in metres there.
    """

    beam: Beam
    lines: tuple[BendingLine, ...]
    fit_error: float = 0.0  # of the polynomial in place of the static line; 0: none was fitted

    def at(self, x: np.ndarray | float, derivative: int = 0) -> np.ndarray:
        """Return all functions or derivatives of them at places (...) [m], shape (F, ...)."""
        return np.stack([line.at(x, derivative) for line in self.lines])

    def at_place(self, x: float, derivative: int = 0) -> np.ndarray:
        """Return :meth:`at` of one place [m], (F,): read-only, and kept."""
        return _at_place(self, x, derivative)


@functools.lru_cache(maxsize=4096)
def _at_place(basis: RitzBasis, x: float, derivative: int) -> np.ndarray:
    values = basis.at(x, derivative)
    values.setflags(write=False)
    return values


def _orthogonal(
    beam: Beam, candidate: BendingLine, helpers: Sequence[BendingLine], to: Sequence[BendingLine]
) -> BendingLine:
    """Return candidate plus a combination of helpers, orthogonal to as many lines."""
    places, _ = beam.gauss()
    products = np.array(
        [[beam.integral(a.at(places) * b.at(places)) for b in helpers] for a in to]
    )
    wanted = [-beam.integral(a.at(places) * candidate.at(places)) for a in to]
    for helper, factor in zip(helpers, np.linalg.solve(products, wanted), strict=True):
        candidate = candidate.plus(helper, factor)
    return candidate


def _size(beam: Beam, line: BendingLine) -> float:
    """Return the root of int w^2 dx."""
    return math.sqrt(beam.integral(line.at(beam.gauss()[0]) ** 2))


def _with_polynomials(beam: Beam, first: BendingLine, count: int) -> list[BendingLine]:
    """Return a line and orthogonal polynomials, Henikl 2015, (15) and (16), and on like these."""
    lines = [first]
    terms = [_polynomial(beam, power) for power in range(2, count + 2)]
    for k in range(1, count):
        lines.append(_orthogonal(beam, terms[k], terms[:k], lines).normalised())
    return lines


def _printed(beam: Beam, last: bool, count: int, order: int) -> tuple[list[BendingLine], float]:
    """Return the paper's functions: fitted static line, orthogonal polynomials."""
    static = self_weight_line(beam) if last else tip_force_line(beam)
    fitted, error = fit_polynomial(beam, static, order)
    return _with_polynomials(beam, fitted, count), error


def _moment(
    beam: Beam,
    last: bool,
    count: int,
    order: int,  # noqa: ARG001
) -> tuple[list[BendingLine], float]:
    """Return the lines of tip force and tip moment, then of the weight, and polynomials."""
    # Of a uniform beam the lines are polynomials themselves: those that add nothing are left out.
    if last:
        return _with_polynomials(beam, self_weight_line(beam), count), 0.0
    lines = [tip_force_line(beam)]
    candidates = [tip_moment_line(beam), self_weight_line(beam)]
    powers = (_polynomial(beam, power) for power in itertools.count(3))
    for candidate in itertools.chain(candidates, powers):
        if len(lines) == count:
            break
        rest = _orthogonal(beam, candidate, lines, lines)
        if not _size(beam, rest) <= _ADDS * _size(beam, candidate):  # also where it is NaN
            lines.append(rest.normalised())
    return lines, 0.0


# Name -> (beam, whether it is the last, number of functions, order) -> lines, error of the fit.
BASIS_SETS: dict[str, Callable[[Beam, bool, int, int], tuple[list[BendingLine], float]]] = {
    'printed': _printed,
    'moment': _moment,
}


def ritz_basis(
    beam: Beam, last: bool, basis: str = 'moment', functions: int = 2, order: int = 6
) -> RitzBasis:
    """
    Return the Ritz functions of one beam of a boom.

    ``last``: nothing but a load hangs on the beam's tip. ``basis``: 'printed' is Henikl 2015,
    'moment' closer to finite elements. ``functions``: how many, 1 to 5; the paper has 2. ``order``
    is that of the fitted polynomial in 'printed'. InputError for what is not allowed.
    """
    check_among('basis', basis, BASIS_SETS)
    check_within('functions', functions, '[1, 5]')
    lines, error = BASIS_SETS[basis](beam, last, functions, order)
    return RitzBasis(beam, tuple(lines), error)
