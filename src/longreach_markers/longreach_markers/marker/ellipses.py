"""
Ellipse hypotheses from edge points, ranked by distance and expected radius.

An ellipse is represented by its centre c and symmetric shape matrix A; its points are
c + A (cos t, sin t). Polarity is +1 if the outside is brighter, -1 if the inside is brighter. Each
chain of edge points is a seed: the ellipse fitted to it collects all nearby points of the window
whose gradient is along its normal with its polarity, so that a rim interrupted by an occluder is
reassembled. The two edges of a ring differ in polarity, which identifies the inner edge.

Arguments of several compiled functions:

- u, v, nu, nv, shape (n,): positions [px] and unit gradients of edge points;
- row, shape (10,): a hypothesis, in the order of the fields of :class:`Hypothesis`;
- at_u, at_v, radius, search, a11, a12, a22, shape_tolerance, polarity: the fields of
  :class:`Expectation`;
- chosen, shape (size,), int64: indices of edge points.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from longreach_dynamics.kernels import kernel
from longreach_dynamics.linear_algebra import assign, cholesky, cholesky_solve
from longreach_markers.marker.edges import EdgePoints
from longreach_markers.marker.symmetric import SECTORS, inverse, largest, sector_of, times

# RANSAC: number of longest chains, of which all pairs are sampled; samples for each pair.
_POOLS, _TRIALS = 5, 60
# Columns of a hypothesis in the kernels' tables.
_CU, _CV, _A11, _A12, _A22, _POLARITY, _SUPPORT, _SCORE, _INNER, _INNER_SUPPORT = range(10)
_WIDTH = 10
_MOST = 16
# Cosine of the largest angle between gradient and normal (30 degrees).
_ALONG = math.cos(math.radians(30.0))
# Distance from a rim at which another outline is suspect: least [px], largest [share of the
# radius].
_BESIDE = (1.5, 0.3)
# Least ratio of semi-axes of a marker: a circle tilted by 75 degrees.
_THINNEST = 0.25
# Ranking: scale of the logarithm of the radius, and penalty of an edge that may be the inner edge
# of a ring.
_RADIUS_SCALE = 0.25
_INSIDE = 0.6


class Expectation(NamedTuple):
    """
    Prior knowledge of a marker: centre, longer semi-axis, shape matrix (NaN: unknown) [px].

    ``search``: largest distance [px]; ``shape_tolerance``: largest relative difference;
    ``polarity``: +1 dark on bright, -1 bright on dark, 0 either.
    """

    u: float
    v: float
    radius: float
    search: float
    a11: float = math.nan
    a12: float = math.nan
    a22: float = math.nan
    shape_tolerance: float = 0.3
    polarity: int = 0


class Hypothesis(NamedTuple):
    """
    Ellipse that may be the outer edge of a marker: centre and shape matrix [px].

    ``polarity``: +1 darker than its surroundings; ``support``: share of the rim with edge points;
    ``score``: higher is better; ``inner``: relative radius of a concentric edge of opposite
    polarity (0: none), with its support.
    """

    u: float
    v: float
    a11: float
    a12: float
    a22: float
    polarity: float
    support: float
    score: float
    inner: float
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
    """
    Return the ellipses in a window, the most likely outer edge of the marker first.

    Ranked by distance and expected radius (Henikl 2015, section 4.2.1), and the visible rim.
    """
    rows = _rank(
        edges.u, edges.v, edges.nu, edges.nv, edges.chain, edges.chains, *expected, thorough
    )  # fmt: skip
    return [Hypothesis(*row) for row in rows.tolist()]


def closed_ellipses(
    edges: EdgePoints, smallest: float, largest: float, support: float
) -> list[Hypothesis]:
    """Return the ellipses that single chains of edge points form: quick, for a whole image."""
    order = np.argsort(edges.chain, kind='stable')
    ends = np.cumsum(np.bincount(edges.chain, minlength=max(edges.chains, 1)))
    rows = _closed(
        edges.u, edges.v, edges.nu, edges.nv, order, ends, smallest, largest, support
    )  # fmt: skip
    return [Hypothesis(*row) for row in rows.tolist()]


def seen_sectors(edges: EdgePoints, hypothesis: Hypothesis) -> NDArray[np.bool_]:
    """Return in which sectors a marker's edges are visible, and not beside a gap: an occluder."""
    return _seen(edges.u, edges.v, edges.nu, edges.nv, np.array(hypothesis))  # type: ignore[no-any-return]


def outlines_beside(edges: EdgePoints, hypothesis: Hypothesis) -> NDArray[np.bool_]:
    """
    Return in which sectors another outline runs along that of a marker.

    It has the same polarity and is nearby: a hard shadow, the side of a thick plate or a double
    exposure. Parts of both outlines can look like a single ellipse.
    """
    row = np.array(hypothesis)
    return _beside(edges.u, edges.v, edges.nu, edges.nv, row)  # type: ignore[no-any-return]


@kernel
def _beside(u, v, nu, nv, row):  # type: ignore[no-untyped-def]
    """Kernel of :func:`outlines_beside`; arguments: see the module's docstring."""
    return _sectors(u, v, nu, nv, row, _BESIDE[0], _BESIDE[1] * _major(row), np.empty(u.size))


@kernel
def _seen(u, v, nu, nv, row):  # type: ignore[no-untyped-def]
    """Kernel of :func:`seen_sectors`; arguments: see the module's docstring."""
    result = np.zeros(2 * SECTORS, np.bool_)
    own = row.copy()
    distances = np.empty(u.size)
    for part in range(2):
        ratio = 1.0 if part == 0 else row[_INNER]
        if ratio <= 0.0:
            break
        own[_A11], own[_A12] = ratio * row[_A11], ratio * row[_A12]
        own[_A22] = ratio * row[_A22]
        own[_POLARITY] = row[_POLARITY] if part == 0 else -row[_POLARITY]
        seen = _sectors(u, v, nu, nv, own, 0.0, 1.3, distances)
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
def _closed(u, v, nu, nv, order, ends, smallest, largest, support):  # type: ignore[no-untyped-def]
    """Fit an ellipse to each chain of ``order``, up to ``ends``; return (k, 10)."""
    found = np.empty((64, _WIDTH))
    count = 0
    row = np.empty(_WIDTH)
    work = np.empty((6, 5))
    begin = 0
    for chain in range(ends.size):
        end = ends[chain]
        members = order[begin:end]
        begin = end
        if members.size < 3.0 * smallest or members.size > 12.0 * largest:
            continue
        row[_A11] = 0.0
        if not _fit(u, v, nu, nv, members, row, work) or not _fit(
            u, v, nu, nv, members, row, work
        ):
            continue
        longest = _major(row)
        if longest < smallest or longest > largest:
            continue
        cu, cv = _taken(u, members), _taken(v, members)
        gu, gv = _taken(nu, members), _taken(nv, members)
        row[_SUPPORT] = _support(cu, cv, gu, gv, row, 1.0, np.empty(members.size))
        if row[_SUPPORT] < support:
            continue
        if count == found.shape[0]:
            found = np.concatenate((found, found))
        row[_SCORE:] = 0.0
        assign(found[count], row)
        count += 1
    return found[:count].copy()


@kernel
def _rank(  # type: ignore[no-untyped-def]
    u, v, nu, nv, chain, chains,
    at_u, at_v, radius, search, a11, a12, a22, shape_tolerance, polarity,
    thorough,
):  # fmt: skip
    """Collect, refine and rank hypotheses; kernel of :func:`rank_hypotheses`; return (k, 10)."""
    found = np.empty((_MOST, _WIDTH))
    # No constant, for which numba would compile functions once more.
    count = np.int64(0)
    row = np.empty(_WIDTH)
    total = u.size
    sizes = np.zeros(chains, np.int64)
    for index in range(total):
        sizes[chain[index]] += 1
    order = np.argsort(-sizes)[:24]
    chosen = np.empty(total, np.int64)
    distances, work = np.empty(total), np.empty((6, 5))
    known = a11 == a11
    # The expected ellipse is the first seed, with either polarity.
    if known:
        for sign in (1.0, -1.0):
            if polarity * sign < 0.0:
                continue
            row[_CU], row[_CV] = at_u, at_v
            row[_A11], row[_A12], row[_A22] = a11, a12, a22
            row[_POLARITY] = sign
            if _gather(u, v, nu, nv, chosen, row, radius, 0.3 * radius, distances, work):
                count = _keep(found, count, row, at_u, at_v, radius, search, known)
    large = 0
    for first in range(order.size):
        if sizes[order[first]] < 6:
            break
        row[_A11] = 0.0
        large = first + 1
        size = 0
        for index in range(total):
            if chain[index] == order[first]:
                chosen[size] = index
                size += 1
        if (
            size > 5
            and _fit(u, v, nu, nv, chosen[:size], row, work)
            and _gather(u, v, nu, nv, chosen, row, radius, 0.15 * radius, distances, work)
        ):
            count = _keep(found, count, row, at_u, at_v, radius, search, known)
    if thorough:
        count = _sample(
            u, v, nu, nv, chain, order[:large], found, count, at_u, at_v, radius, search, known,
            a11, a12, a22, shape_tolerance,
        )  # fmt: skip
    # Rank.
    for index in range(count):
        here = found[index]
        distance = math.hypot(here[_CU] - at_u, here[_CV] - at_v)
        longest = _major(here)
        score = -abs(math.log(longest / radius)) / _RADIUS_SCALE - distance / search
        score -= 1.5 * (1.0 - here[_SUPPORT])
        for other in range(count):
            if other != index and _is_inside(here, found[other]):
                score -= _INSIDE
                break
        if polarity * here[_POLARITY] < 0.0:
            score -= 100.0
        if known:
            change = _difference(here, a11, a12, a22) / shape_tolerance
            score -= change * change
            if change > 1.0:
                score -= 10.0
        here[_SCORE] = score
        _inner_edge(u, v, nu, nv, here)
    result = np.empty((count, _WIDTH))
    for place in range(count):
        best = 0
        for index in range(count):
            if found[index, _SCORE] > found[best, _SCORE]:
                best = index
        assign(result[place], found[best])
        found[best, _SCORE] = -math.inf
    return result


@njit
def _sample(  # type: ignore[no-untyped-def]
    u, v, nu, nv, chain, order, found, count, at_u, at_v, radius, search, known,
    a11, a12, a22, shape_tolerance,
):  # fmt: skip
    """
    Add ellipses through random points of chains and pairs of chains; return the new count.

    ``order`` (m,): chains by decreasing size; ``found`` (_MOST, 10): hypotheses, ``count`` rows of
    them; ``known``: whether a11, a12, a22 are given.
    """
    pool, chosen = np.empty(u.size, np.int64), np.empty(u.size, np.int64)
    five = np.empty(5, np.int64)
    row, best = np.empty(_WIDTH), np.empty(_WIDTH)
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
            best[_SUPPORT] = 0.0
            for _ in range(_TRIALS):
                for place in range(5):
                    random = (1103515245 * random + 12345) % 2147483648
                    five[place] = pool[(random >> 8) % size]
                row[_A11] = 0.0
                if not _fit(u, v, nu, nv, five, row, work):
                    continue
                longest = _major(row)
                away = math.hypot(row[_CU] - at_u, row[_CV] - at_v)
                if away > search or not 0.6 * radius < longest < 1.6 * radius:
                    continue
                if known and _difference(row, a11, a12, a22) > shape_tolerance:
                    continue
                row[_SUPPORT] = _support(u, v, nu, nv, row, 0.8, distances)
                if row[_SUPPORT] > best[_SUPPORT]:
                    assign(best, row)
            if best[_SUPPORT] > 0.3 and _gather(
                u, v, nu, nv, chosen, best, radius, 1.5, distances, work
            ):
                count = _keep(found, count, best, at_u, at_v, radius, search, known)
    return count


@njit
def _keep(found, count, row, at_u, at_v, radius, search, known):  # type: ignore[no-untyped-def]
    """Add a hypothesis, unless it is a duplicate or implausible; return the new count."""
    distance = math.hypot(row[_CU] - at_u, row[_CV] - at_v)
    longest = _major(row)
    widest = 1.5 if known else 2.0
    if distance > search or longest > widest * radius or longest < radius / widest:
        return count
    if row[_SUPPORT] < 0.25:
        return count
    for index in range(count):
        other = found[index]
        if (
            row[_POLARITY] == other[_POLARITY]
            and math.hypot(row[_CU] - other[_CU], row[_CV] - other[_CV]) < 0.1 * longest
            and abs(_major(other) / longest - 1.0) < 0.08
        ):
            if row[_SUPPORT] > other[_SUPPORT]:
                assign(other, row)
            return count
    if count == _MOST:
        return count
    assign(found[count], row)
    return count + 1


@njit
def _is_inside(row, other):  # type: ignore[no-untyped-def]
    """Return whether an ellipse (10,) can be the inner edge of a ring, other the outer one."""
    if row[_POLARITY] == other[_POLARITY]:
        return False
    longest = _major(other)
    ratio = _major(row) / longest
    if not 0.2 < ratio < 0.92:
        return False
    if math.hypot(row[_CU] - other[_CU], row[_CV] - other[_CV]) > 0.12 * longest:
        return False
    return _difference(row, ratio * other[_A11], ratio * other[_A12], ratio * other[_A22]) < 0.25


@njit
def _difference(row, a11, a12, a22):  # type: ignore[no-untyped-def]
    """Return the difference of two shapes, relative to the longer axis of the second."""
    d11, d12, d22 = row[_A11] - a11, row[_A12] - a12, row[_A22] - a22
    change = abs(0.5 * (d11 + d22)) + math.hypot(0.5 * (d11 - d22), d12)
    return change / largest(a11, a12, a22)


@njit
def _major(row):  # type: ignore[no-untyped-def]
    """Return the longer semi-axis of a hypothesis (10,) [px]."""
    return largest(row[_A11], row[_A12], row[_A22])


@njit
def _minor(row):  # type: ignore[no-untyped-def]
    """Return the shorter semi-axis of a hypothesis (10,) [px]."""
    return row[_A11] + row[_A22] - _major(row)


@njit
def _box(row, ratio):  # type: ignore[no-untyped-def]
    """Return half the size (u, v) [px] of the rectangle around a hypothesis times a ratio."""
    # Not to lose points at its sides by rounding.
    ratio *= 1.0 + 1e-9
    return ratio * math.hypot(row[_A11], row[_A12]), ratio * math.hypot(row[_A12], row[_A22])


@njit
def _gather(u, v, nu, nv, chosen, row, radius, tolerance, distances, work):  # type: ignore[no-untyped-def]
    """
    Fit an ellipse repeatedly to points within a decreasing distance; False if too few remain.

    ``chosen`` (n,) and ``row`` are filled; ``distances`` (n,) and ``work`` (6, 5) overwritten.
    """
    for turn in range(4):
        size = 0
        near = tolerance if turn == 0 else (2.0 if turn == 1 else 1.3)
        _fill_distances(u, v, nu, nv, row, 0.4, 1.8, distances)
        for index in range(u.size):
            if distances[index] <= near:
                chosen[size] = index
                size += 1
        if size < 8 or not _fit(u, v, nu, nv, chosen[:size], row, work):
            return False
        longest = _major(row)
        if not 0.3 * radius < longest < 3.0 * radius:
            return False
    row[_SUPPORT] = _support(u, v, nu, nv, row, 1.0, distances)
    return True


@njit(error_model='numpy')
def _fill_distances(u, v, nu, nv, row, least, most, distances):  # type: ignore[no-untyped-def]
    """
    Fill the distance of each edge point from an ellipse, to first order [px].

    Infinite where the gradient is not along the normal with the ellipse's polarity, or the
    relative radius not between ``least`` and ``most``. Without branches, so that it is vectorised.
    """
    cu, cv, polarity = row[_CU], row[_CV], row[_POLARITY]
    b11, b12, b22 = inverse(row[_A11], row[_A12], row[_A22])
    for index in range(u.size):
        du, dv = u[index] - cu, v[index] - cv
        yu, yv = b11 * du + b12 * dv, b12 * du + b22 * dv
        ku, kv = b11 * yu + b12 * yv, b12 * yu + b22 * yv
        r = math.sqrt(yu * yu + yv * yv)
        steep = math.sqrt(ku * ku + kv * kv)
        along = polarity * (ku * nu[index] + kv * nv[index])
        is_on = (along >= _ALONG * steep) & (r > least) & (r < most)
        distances[index] = abs(r - 1.0) * r / steep if is_on else math.inf


@njit
def _sectors(u, v, nu, nv, row, nearest, farthest, distances):  # type: ignore[no-untyped-def]
    """Return the sectors of an ellipse with edge points within a range of distances [px]."""
    seen = np.zeros(SECTORS, np.bool_)
    b11, b12, b22 = inverse(row[_A11], row[_A12], row[_A22])
    _fill_distances(u, v, nu, nv, row, 0.5, 1.5, distances)
    for index in range(u.size):
        if nearest <= distances[index] <= farthest:
            yu, yv = times(b11, b12, b22, u[index] - row[_CU], v[index] - row[_CV])
            seen[sector_of(yu, yv)] = True
    return seen


@njit
def _support(u, v, nu, nv, row, near, distances):  # type: ignore[no-untyped-def]
    """Return the share of sectors of an ellipse with edge points within a distance [px]."""
    seen = _sectors(u, v, nu, nv, row, 0.0, near, distances)
    # On a short rim, the spacing of edge points is larger than a sector.
    filled = 0
    for sector in range(SECTORS):
        if seen[sector] or (seen[sector - 1] and seen[(sector + 1) % SECTORS]):
            filled += 1
    return filled / SECTORS


@njit
def _inner_edge(u, v, nu, nv, row):  # type: ignore[no-untyped-def]
    """Find the inner edge of a ring (concentric, opposite polarity); store it in the row."""
    bins = 40
    seen = np.zeros((bins, SECTORS), np.bool_)
    a11, a12, a22 = row[_A11], row[_A12], row[_A22]
    b11, b12, b22 = inverse(a11, a12, a22)
    half_u, half_v = _box(row, 0.95)
    for index in range(u.size):
        du, dv = u[index] - row[_CU], v[index] - row[_CV]
        if abs(du) > half_u or abs(dv) > half_v:
            continue
        yu, yv = times(b11, b12, b22, du, dv)
        r = math.sqrt(yu * yu + yv * yv)
        if not 0.15 < r < 0.95:
            continue
        ku, kv = times(b11, b12, b22, yu, yv)
        along = (ku * nu[index] + kv * nv[index]) / math.sqrt(ku * ku + kv * kv)
        if -along * row[_POLARITY] < _ALONG:
            continue
        seen[int(r * bins), sector_of(yu, yv)] = True
    row[_INNER], row[_INNER_SUPPORT] = 0.0, 0.0
    # There is about one edge point per pixel: a small circle cannot fill all sectors.
    minor = _minor(row)
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
        possible = min(1.0, 2.0 * math.pi * ratio * math.sqrt(minor * _major(row)) / SECTORS)
        share = filled / SECTORS / possible
        if share > row[_INNER_SUPPORT] + 0.02:
            row[_INNER], row[_INNER_SUPPORT] = ratio, share


@njit
def _taken(values, chosen):  # type: ignore[no-untyped-def]
    """Return the values (k,) of chosen points."""
    result = np.empty(chosen.size)
    for index in range(chosen.size):
        result[index] = values[chosen[index]]
    return result


@njit
def _fit(u, v, nu, nv, chosen, row, work):  # type: ignore[no-untyped-def]
    """
    Fit an ellipse to chosen points, update its row; False if they do not define one.

    Least squares of the conic, normalised to a trace of 1 of its quadratic part; weighted by the
    gradient at the row's ellipse (Sampson), unless its A11 is 0. ``work`` (6, 5) is overwritten.
    """
    size = chosen.size
    mean_u, mean_v = 0.0, 0.0
    for index in chosen:
        mean_u += u[index]
        mean_v += v[index]
    mean_u /= size
    mean_v /= size
    spread = 0.0
    for index in chosen:
        spread += (u[index] - mean_u) ** 2 + (v[index] - mean_v) ** 2
    scale = math.sqrt(spread / size)
    if scale < 1.0:
        return False
    b11, b12, b22 = 0.0, 0.0, 0.0
    again = row[_A11] != 0.0
    if again:
        b11, b12, b22 = inverse(row[_A11], row[_A12], row[_A22])
    # Numbers instead of arrays: this is the inner loop of the random samples.
    n00 = n10 = n11 = n20 = n21 = n22 = n30 = n31 = n32 = n33 = 0.0
    n40 = n41 = n42 = n43 = n44 = r0 = r1 = r2 = r3 = r4 = 0.0
    for index in chosen:
        x, y = (u[index] - mean_u) / scale, (v[index] - mean_v) / scale
        weight = 1.0
        if again:
            du, dv = u[index] - row[_CU], v[index] - row[_CV]
            yu, yv = times(b11, b12, b22, du, dv)
            ku, kv = times(b11, b12, b22, yu, yv)
            weight = 1.0 / max(ku * ku + kv * kv, 1e-12)
        square = y * y
        t0, t1 = x * x - square, 2.0 * x * y
        w0, w1, w2, w3 = weight * t0, weight * t1, weight * x, weight * y
        n00 += w0 * t0
        n10 += w1 * t0
        n11 += w1 * t1
        n20 += w2 * t0
        n21 += w2 * t1
        n22 += w2 * x
        n30 += w3 * t0
        n31 += w3 * t1
        n32 += w3 * x
        n33 += w3 * y
        n40 += w0
        n41 += w1
        n42 += w2
        n43 += w3
        n44 += weight
        r0 -= w0 * square
        r1 -= w1 * square
        r2 -= w2 * square
        r3 -= w3 * square
        r4 -= weight * square
    normal, right = work[:5], work[5]
    normal[0, 0], normal[1, 0], normal[1, 1] = n00, n10, n11
    normal[2, 0], normal[2, 1], normal[2, 2] = n20, n21, n22
    normal[3, 0], normal[3, 1], normal[3, 2], normal[3, 3] = n30, n31, n32, n33
    normal[4, 0], normal[4, 1], normal[4, 2], normal[4, 3] = n40, n41, n42, n43
    normal[4, 4] = n44
    right[0], right[1], right[2], right[3], right[4] = r0, r1, r2, r3, r4
    if not cholesky(normal):
        return False
    cholesky_solve(normal, right)
    # right[0] (x^2 - y^2) + 2 right[1] x y + y^2 + right[2] x + right[3] y + right[4] = 0
    q11, q12, q22 = right[0], right[1], 1.0 - right[0]
    determinant = q11 * q22 - q12 * q12
    if not determinant > 1e-6:
        return False
    x0 = (q12 * right[3] - q22 * right[2]) / (2.0 * determinant)
    y0 = (q12 * right[2] - q11 * right[3]) / (2.0 * determinant)
    level = q11 * x0 * x0 + 2.0 * q12 * x0 * y0 + q22 * y0 * y0 - right[4]
    if not level > 0.0:
        return False
    # Q = (conic / level); A = Q^(-1/2): the inverse square root of a symmetric 2 x 2 matrix.
    q11, q12, q22 = q11 / level, q12 / level, q22 / level
    root = math.sqrt(q11 * q22 - q12 * q12)
    trace = math.sqrt(q11 + q22 + 2.0 * root)
    a11, a12, a22 = inverse((q11 + root) / trace, q12 / trace, (q22 + root) / trace)
    row[_CU], row[_CV] = mean_u + scale * x0, mean_v + scale * y0
    row[_A11], row[_A12], row[_A22] = scale * a11, scale * a12, scale * a22
    longest = _major(row)
    if _minor(row) < _THINNEST * longest:
        return False
    agreement = 0.0
    for index in chosen:
        du, dv = u[index] - row[_CU], v[index] - row[_CV]
        ku = q11 * du + q12 * dv
        kv = q12 * du + q22 * dv
        steep = math.sqrt(ku * ku + kv * kv)
        agreement += (ku * nu[index] + kv * nv[index]) / max(steep, 1e-12)
    row[_POLARITY] = 1.0 if agreement > 0.0 else -1.0
    return abs(agreement) > 0.5 * size
