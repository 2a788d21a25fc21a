"""
Ellipse hypotheses from edge points, ranked by distance and expected radius.

An ellipse is represented by its centre c and symmetric shape matrix A; its points are
c + A (cos t, sin t). Polarity is +1 if the outside is brighter, -1 if the inside is brighter. Each
chain of edge points is a seed: the ellipse fitted to it collects all nearby points of the window
whose gradient is along its normal with its polarity, so that a rim interrupted by an occluder is
reassembled. The two edges of a ring differ in polarity, which identifies the inner edge.

Compiled functions take edge points, an expectation, hypotheses as rows, shape (10,), in the order
of their fields, and ``chosen``, shape (size,), int64: indices of edge points.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from longreach_dynamics.kernels import kernel
from longreach_dynamics.linear_algebra import assign
from longreach_markers.marker.edges import EdgePoints
from longreach_markers.marker.ellipse_fit import (
    A11,
    A12,
    A22,
    ALONG,
    CU,
    CV,
    INNER,
    INNER_SUPPORT,
    POLARITY,
    SCORE,
    SUPPORT,
    WIDTH,
    fit_ellipse,
    gather_points,
    major_axis,
    minor_axis,
    rim_support,
    sectors_near,
)
from longreach_markers.marker.symmetric import SECTORS, inverse, largest, sector_of, times

# RANSAC: number of longest chains, of which all pairs are sampled; samples for each pair.
_POOLS, _TRIALS = 5, 60
_MOST = 16
# Distance from a rim at which another outline is suspect: least [px], largest [share of the
# radius].
_BESIDE = (1.5, 0.3)
# Ranking: scale of the logarithm of the radius, and penalty of an edge that may be the inner edge
# of a ring.
_RADIUS_SCALE = 0.25
_INSIDE = 0.6
# Largest relative difference from the expected shape.
_OTHER_SHAPE = 0.3


class Expectation(NamedTuple):
    """Prior knowledge of a marker [px]: a shape matrix of NaN and polarity 0 are unknown."""

    u: float
    v: float
    radius: float
    search: float  # largest distance
    a11: float = math.nan
    a12: float = math.nan
    a22: float = math.nan
    polarity: int = 0  # +1 dark on bright, -1 bright on dark


class Hypothesis(NamedTuple):
    """Ellipse that may be the outer edge of a marker: centre and shape matrix [px]."""

    u: float
    v: float
    a11: float
    a12: float
    a22: float
    polarity: float  # +1 darker than its surroundings
    support: float  # share of the rim with edge points
    score: float  # higher is better
    inner: float  # relative radius of a concentric edge of opposite polarity; 0: none
    inner_support: float

    @property
    def shape(self) -> NDArray[np.float64]:
        """Shape matrix, (2, 2) [px]."""
        return np.array([[self.a11, self.a12], [self.a12, self.a22]])

    @property
    def longest(self) -> float:
        """Longer semi-axis [px]."""
        half = math.hypot(0.5 * (self.a11 - self.a22), self.a12)
        return 0.5 * (self.a11 + self.a22) + half


def rank_hypotheses(
    edges: EdgePoints, expected: Expectation, *, thorough: bool = False
) -> list[Hypothesis]:
    """Return the ellipses in a window, the most likely outer edge first (Henikl 2015, 4.2.1)."""
    return [Hypothesis(*row) for row in _rank(edges, expected, thorough).tolist()]


def closed_ellipses(
    edges: EdgePoints, smallest: float, largest: float, support: float
) -> list[Hypothesis]:
    """Return the ellipses that single chains of edge points form: quick, for a whole image."""
    order = np.argsort(edges.chain, kind='stable')
    ends = np.cumsum(np.bincount(edges.chain, minlength=max(edges.chains, 1)))
    rows = _closed(edges, order, ends, smallest, largest, support)
    return [Hypothesis(*row) for row in rows.tolist()]


def seen_sectors(edges: EdgePoints, hypothesis: Hypothesis) -> NDArray[np.bool_]:
    """Return in which sectors a marker's edges are visible, and not beside a gap: an occluder."""
    return _seen(edges, np.array(hypothesis))  # type: ignore[no-any-return]


def outlines_beside(edges: EdgePoints, hypothesis: Hypothesis) -> NDArray[np.bool_]:
    """Return in which sectors another outline of the same polarity runs along that of a marker."""
    # A hard shadow, the side of a thick plate or a double exposure: parts of both outlines can
    # look like a single ellipse.
    return _beside(edges, np.array(hypothesis))  # type: ignore[no-any-return]


@kernel
def _beside(edges, row):  # type: ignore[no-untyped-def]
    """Kernel of :func:`outlines_beside`; arguments: see the module's docstring."""
    farthest = _BESIDE[1] * major_axis(row)
    return sectors_near(edges, row, _BESIDE[0], farthest, np.empty(edges.u.size))


@kernel
def _seen(edges, row):  # type: ignore[no-untyped-def]
    """Kernel of :func:`seen_sectors`; arguments: see the module's docstring."""
    result = np.zeros(2 * SECTORS, np.bool_)
    own = row.copy()
    distances = np.empty(edges.u.size)
    for part in range(2):
        ratio = 1.0 if part == 0 else row[INNER]
        if ratio <= 0.0:
            break
        own[A11], own[A12] = ratio * row[A11], ratio * row[A12]
        own[A22] = ratio * row[A22]
        own[POLARITY] = row[POLARITY] if part == 0 else -row[POLARITY]
        seen = sectors_near(edges, own, 0.0, 1.3, distances)
        for sector in range(SECTORS):
            before, after = seen[sector - 1], seen[(sector + 1) % SECTORS]
            # With few pixels, single sectors have no points; only three in a row are a gap.
            far_before, far_after = seen[sector - 2], seen[(sector + 2) % SECTORS]
            result[part * SECTORS + sector] = (
                (seen[sector] or (before and after))
                and (before or far_before)
                and (after or far_after)
            )
    return result


@kernel
def _closed(edges, order, ends, smallest, largest, support):  # type: ignore[no-untyped-def]
    """Fit an ellipse to each chain of ``order``, up to ``ends``; return (k, 10)."""
    found = np.empty((64, WIDTH))
    count = 0
    row = np.empty(WIDTH)
    work = np.empty((6, 5))
    begin = 0
    for chain in range(ends.size):
        end = ends[chain]
        members = order[begin:end]
        begin = end
        if members.size < 3.0 * smallest or members.size > 12.0 * largest:
            continue
        row[A11] = 0.0
        if not fit_ellipse(edges, members, row, work) or not fit_ellipse(
            edges, members, row, work
        ):
            continue
        longest = major_axis(row)
        if longest < smallest or longest > largest:
            continue
        u, v = _taken(edges.u, members), _taken(edges.v, members)
        nu, nv = _taken(edges.nu, members), _taken(edges.nv, members)
        own = EdgePoints(u, v, nu, nv, edges.chain, edges.chains)
        row[SUPPORT] = rim_support(own, row, 1.0, np.empty(members.size))
        if row[SUPPORT] < support:
            continue
        if count == found.shape[0]:
            found = np.concatenate((found, found))
        row[SCORE:] = 0.0
        assign(found[count], row)
        count += 1
    return found[:count].copy()


@kernel
def _rank(edges, expected, thorough):  # type: ignore[no-untyped-def]
    """Collect, refine and rank hypotheses; kernel of :func:`rank_hypotheses`; return (k, 10)."""
    at_u, at_v, radius, search, a11, a12, a22, polarity = expected
    found = np.empty((_MOST, WIDTH))
    # No constant, for which numba would compile functions once more.
    count = np.int64(0)
    row = np.empty(WIDTH)
    total = edges.u.size
    sizes = np.zeros(edges.chains, np.int64)
    for index in range(total):
        sizes[edges.chain[index]] += 1
    order = np.argsort(-sizes)[:24]
    chosen = np.empty(total, np.int64)
    distances, work = np.empty(total), np.empty((6, 5))
    known = a11 == a11
    # The expected ellipse is the first seed, with either polarity.
    if known:
        for sign in (1.0, -1.0):
            if polarity * sign < 0.0:
                continue
            row[CU], row[CV] = at_u, at_v
            row[A11], row[A12], row[A22] = a11, a12, a22
            row[POLARITY] = sign
            if gather_points(edges, chosen, row, radius, 0.3 * radius, distances, work):
                count = _keep(found, count, row, expected)
    large = 0
    for first in range(order.size):
        if sizes[order[first]] < 6:
            break
        row[A11] = 0.0
        large = first + 1
        size = 0
        for index in range(total):
            if edges.chain[index] == order[first]:
                chosen[size] = index
                size += 1
        if (
            size > 5
            and fit_ellipse(edges, chosen[:size], row, work)
            and gather_points(edges, chosen, row, radius, 0.15 * radius, distances, work)
        ):
            count = _keep(found, count, row, expected)
    if thorough:
        count = _sample(edges, expected, order[:large], found, count)
    # Rank.
    for index in range(count):
        here = found[index]
        distance = math.hypot(here[CU] - at_u, here[CV] - at_v)
        longest = major_axis(here)
        score = -abs(math.log(longest / radius)) / _RADIUS_SCALE - distance / search
        score -= 1.5 * (1.0 - here[SUPPORT])
        for other in range(count):
            if other != index and _is_inside(here, found[other]):
                score -= _INSIDE
                break
        if polarity * here[POLARITY] < 0.0:
            score -= 100.0
        if known:
            change = _difference(here, a11, a12, a22) / _OTHER_SHAPE
            score -= change * change
            if change > 1.0:
                score -= 10.0
        here[SCORE] = score
        _inner_edge(edges, here)
    result = np.empty((count, WIDTH))
    for rank in range(count):
        best = 0
        for index in range(count):
            if found[index, SCORE] > found[best, SCORE]:
                best = index
        assign(result[rank], found[best])
        found[best, SCORE] = -math.inf
    return result


@njit
def _sample(edges, expected, order, found, count):  # type: ignore[no-untyped-def]
    """Add ellipses through random points of chains and pairs of chains; return the new count."""
    # order (m,): chains by decreasing size; found (_MOST, 10): hypotheses, count rows of them.
    at_u, at_v, radius, search, a11, a12, a22, _ = expected
    u, v, chain, known = edges.u, edges.v, edges.chain, a11 == a11
    pool, chosen = np.empty(u.size, np.int64), np.empty(u.size, np.int64)
    five = np.empty(5, np.int64)
    row, best = np.empty(WIDTH), np.empty(WIDTH)
    distances, work = np.empty(u.size), np.empty((6, 5))
    # A local random generator makes the result reproducible.
    random = 12345
    for first in range(min(_POOLS, order.size)):
        for second in range(first, min(_POOLS, order.size)):
            size = 0
            for index in range(u.size):
                if chain[index] != order[first] and chain[index] != order[second]:
                    continue
                # Points that can belong to an expected rim.
                if math.hypot(u[index] - at_u, v[index] - at_v) < search + 1.4 * radius:
                    pool[size] = index
                    size += 1
            if size < 10:
                continue
            best[SUPPORT] = 0.0
            for _ in range(_TRIALS):
                for slot in range(5):
                    random = (1103515245 * random + 12345) % 2147483648
                    five[slot] = pool[(random >> 8) % size]
                row[A11] = 0.0
                if not fit_ellipse(edges, five, row, work):
                    continue
                longest = major_axis(row)
                away = math.hypot(row[CU] - at_u, row[CV] - at_v)
                if away > search or not 0.6 * radius < longest < 1.6 * radius:
                    continue
                if known and _difference(row, a11, a12, a22) > _OTHER_SHAPE:
                    continue
                row[SUPPORT] = rim_support(edges, row, 0.8, distances)
                if row[SUPPORT] > best[SUPPORT]:
                    assign(best, row)
            if best[SUPPORT] > 0.3 and gather_points(
                edges, chosen, best, radius, 1.5, distances, work
            ):
                count = _keep(found, count, best, expected)
    return count


@njit
def _keep(found, count, row, expected):  # type: ignore[no-untyped-def]
    """Add a hypothesis, unless it is a duplicate or implausible; return the new count."""
    distance = math.hypot(row[CU] - expected.u, row[CV] - expected.v)
    longest, radius = major_axis(row), expected.radius
    widest = 1.5 if expected.a11 == expected.a11 else 2.0
    if distance > expected.search or longest > widest * radius or longest < radius / widest:
        return count
    if row[SUPPORT] < 0.25:
        return count
    for index in range(count):
        other = found[index]
        if (
            row[POLARITY] == other[POLARITY]
            and math.hypot(row[CU] - other[CU], row[CV] - other[CV]) < 0.1 * longest
            and abs(major_axis(other) / longest - 1.0) < 0.08
        ):
            if row[SUPPORT] > other[SUPPORT]:
                assign(other, row)
            return count
    if count == _MOST:
        return count
    assign(found[count], row)
    return count + 1


@njit
def _is_inside(row, other):  # type: ignore[no-untyped-def]
    """Return whether an ellipse (10,) can be the inner edge of a ring, other the outer one."""
    if row[POLARITY] == other[POLARITY]:
        return False
    longest = major_axis(other)
    ratio = major_axis(row) / longest
    if not 0.2 < ratio < 0.92:
        return False
    if math.hypot(row[CU] - other[CU], row[CV] - other[CV]) > 0.12 * longest:
        return False
    return _difference(row, ratio * other[A11], ratio * other[A12], ratio * other[A22]) < 0.25


@njit
def _difference(row, a11, a12, a22):  # type: ignore[no-untyped-def]
    """Return the difference of two shapes, relative to the longer axis of the second."""
    d11, d12, d22 = row[A11] - a11, row[A12] - a12, row[A22] - a22
    change = abs(0.5 * (d11 + d22)) + math.hypot(0.5 * (d11 - d22), d12)
    return change / largest(a11, a12, a22)


@njit
def _box(row, ratio):  # type: ignore[no-untyped-def]
    """Return half the size (u, v) [px] of the rectangle around a hypothesis times a ratio."""
    # Not to lose points at its sides by rounding.
    ratio *= 1.0 + 1e-9
    return ratio * math.hypot(row[A11], row[A12]), ratio * math.hypot(row[A12], row[A22])


@njit
def _inner_edge(edges, row):  # type: ignore[no-untyped-def]
    """Find the inner edge of a ring (concentric, opposite polarity); store it in the row."""
    bins = 40
    u, v, nu, nv = edges.u, edges.v, edges.nu, edges.nv
    seen = np.zeros((bins, SECTORS), np.bool_)
    a11, a12, a22 = row[A11], row[A12], row[A22]
    b11, b12, b22 = inverse(a11, a12, a22)
    half_u, half_v = _box(row, 0.95)
    for index in range(u.size):
        du, dv = u[index] - row[CU], v[index] - row[CV]
        if abs(du) > half_u or abs(dv) > half_v:
            continue
        yu, yv = times(b11, b12, b22, du, dv)
        r = math.sqrt(yu * yu + yv * yv)
        if not 0.15 < r < 0.95:
            continue
        ku, kv = times(b11, b12, b22, yu, yv)
        along = (ku * nu[index] + kv * nv[index]) / math.sqrt(ku * ku + kv * kv)
        if -along * row[POLARITY] < ALONG:
            continue
        seen[int(r * bins), sector_of(yu, yv)] = True
    row[INNER], row[INNER_SUPPORT] = 0.0, 0.0
    # There is about one edge point per pixel: a small circle cannot fill all sectors.
    minor = minor_axis(row)
    width = max(1, round(1.2 / minor * bins))
    for low in range(bins - width):
        filled, middle = 0, 0.0
        for sector in range(SECTORS):
            for shift in range(width + 1):
                if seen[low + shift, sector]:
                    filled += 1
                    middle += low + shift + 0.5
                    break
        if filled == 0:
            continue
        ratio = middle / filled / bins
        possible = min(1.0, 2.0 * math.pi * ratio * math.sqrt(minor * major_axis(row)) / SECTORS)
        share = filled / SECTORS / possible
        if share > row[INNER_SUPPORT] + 0.02:
            row[INNER], row[INNER_SUPPORT] = ratio, share


@njit
def _taken(values, chosen):  # type: ignore[no-untyped-def]
    """Return the values (k,) of chosen points."""
    result = np.empty(chosen.size)
    for index in range(chosen.size):
        result[index] = values[chosen[index]]
    return result
