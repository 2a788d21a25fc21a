"""
Edge points of a grey image with sub-pixel position, direction and chains.

The gradient is that of a 5 x 5 binomial window (a Gaussian of about one pixel). A pixel is an edge
point if its gradient magnitude is a maximum along its own direction; a parabola through three
values gives the sub-pixel position. Positions are (u, v) with integer pixel centres.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from longreach_dynamics.kernels import kernel

# Standard deviation of a gradient component for unit white noise.
GRADIENT_NOISE = math.sqrt(70.0) / 16.0 * math.sqrt(10.0) / 8.0
# Cosine of the largest angle between neighbours in a chain (45 degrees).
_ALIGNED = math.cos(math.radians(45.0))
_MARGIN = 3


class EdgePoints(NamedTuple):
    """Edge points: position [px], unit gradient to the bright side, index of their chain (n,)."""

    u: NDArray[np.float64]
    v: NDArray[np.float64]
    nu: NDArray[np.float64]
    nv: NDArray[np.float64]
    chain: NDArray[np.int32]
    chains: int


def find_edges(
    image: NDArray[np.uint8], window: tuple[int, int, int, int], threshold: float
) -> EdgePoints:
    """Find the edge points in a window of an image."""
    return EdgePoints(*_edges(image, *window, threshold))


def without_glare(image: NDArray[np.uint8], edges: EdgePoints) -> EdgePoints:
    """Remove edge points whose bright side is saturated, unless most are: an overexposed image."""
    u = np.rint(edges.u + 2.5 * edges.nu).astype(int).clip(0, image.shape[1] - 1)
    v = np.rint(edges.v + 2.5 * edges.nv).astype(int).clip(0, image.shape[0] - 1)
    keep = image[v, u] < 254
    if keep.all() or 2 * np.count_nonzero(keep) < keep.size:
        return edges
    u, v, nu, nv, chain = (values[keep] for values in edges[:-1])
    return EdgePoints(u, v, nu, nv, chain, edges.chains)


@kernel
def image_noise(image, u0, u1, v0, v1):  # type: ignore[no-untyped-def]
    """Return the standard deviation of the noise in a window without u1, v1 [grey levels]."""
    # Median of the response of a second difference operator that suppresses planes (Immerkær 1996,
    # with a median in place of the mean, so that edges have little influence).
    counts = np.zeros(1025, np.int64)
    total = 0
    for v in range(max(v0, 1), min(v1, image.shape[0] - 1)):
        for u in range(max(u0, 1), min(u1, image.shape[1] - 1)):
            centre = 4 * int(image[v, u])
            sides = (
                int(image[v, u - 1])
                + int(image[v, u + 1])
                + int(image[v - 1, u])
                + int(image[v + 1, u])
            )
            corners = (
                int(image[v - 1, u - 1])
                + int(image[v - 1, u + 1])
                + int(image[v + 1, u - 1])
                + int(image[v + 1, u + 1])
            )
            counts[min(abs(centre - 2 * sides + corners), 1024)] += 1
            total += 1
    if total == 0:
        return 0.0
    # Interpolate the median within its integer step.
    below = 0
    for value in range(1025):
        if 2 * (below + counts[value]) >= total:
            inside = (0.5 * total - below) / counts[value]
            median = max(value - 0.5 + inside, 0.0)
            return median / (0.6745 * 6.0)
        below += counts[value]
    return 1024.0 / (0.6745 * 6.0)


@kernel
def _edges(image, u0, u1, v0, v1, threshold):  # type: ignore[no-untyped-def]
    """Return the fields of EdgePoints in a window (u1, v1 excluded) above a least gradient."""
    height, width = image.shape
    u0, v0 = max(u0, 0), max(v0, 0)
    u1, v1 = min(u1, width), min(v1, height)
    columns, rows = u1 - u0, v1 - v0
    if columns < 2 * _MARGIN + 1 or rows < 2 * _MARGIN + 1:
        nothing = np.empty(0)
        return nothing, nothing, nothing, nothing, np.empty(0, np.int32), 0
    gradient_u = np.zeros((rows, columns), np.float32)
    gradient_v = np.zeros((rows, columns), np.float32)
    magnitude = np.zeros((rows, columns), np.float32)
    _gradients(image, u0, v0, gradient_u, gradient_v, magnitude)

    label = np.full((rows, columns), -1, np.int32)
    # No constant, for which numba would compile the chains once more.
    size = np.int64(0)
    largest = (rows * columns) // 2 + 1
    points = np.empty((4, largest))
    for row in range(_MARGIN, rows - _MARGIN):
        for column in range(_MARGIN, columns - _MARGIN):
            here = magnitude[row, column]
            if here < threshold:
                continue
            gu, gv = gradient_u[row, column], gradient_v[row, column]
            nu, nv = gu / here, gv / here
            ahead = _sample(magnitude, column + nu, row + nv)
            behind = _sample(magnitude, column - nu, row - nv)
            if here < ahead or here <= behind:
                continue
            bend = ahead - 2.0 * here + behind
            offset = 0.5 * (behind - ahead) / bend if bend < 0.0 else 0.0
            if size == largest:
                break
            points[0, size] = u0 + column + offset * nu
            points[1, size] = v0 + row + offset * nv
            points[2, size] = nu
            points[3, size] = nv
            label[row, column] = size
            size += 1
    chain, chains = _chains(label, points[2], points[3], size)
    return (
        points[0, :size].copy(),
        points[1, :size].copy(),
        points[2, :size].copy(),
        points[3, :size].copy(),
        chain,
        chains,
    )


@njit
def _gradients(image, u0, v0, gradient_u, gradient_v, magnitude):  # type: ignore[no-untyped-def]
    """Fill the gradient [grey levels per px]: 1 4 6 4 1 across and 1 2 0 -2 -1 along."""
    rows, columns = magnitude.shape
    smooth = np.zeros((5, columns), np.float32)
    steep = np.zeros((5, columns), np.float32)
    for row in range(rows):
        line = image[v0 + row, u0 : u0 + columns]
        newest = row % 5
        for column in range(2, columns - 2):
            a, b = float(line[column - 2]), float(line[column - 1])
            c = float(line[column])
            d, e = float(line[column + 1]), float(line[column + 2])
            smooth[newest, column] = (a + e + 4.0 * (b + d) + 6.0 * c) * 0.0625
            steep[newest, column] = (e - a + 2.0 * (d - b)) * 0.125
        if row < 4:
            continue
        r0, r1, r2 = (row - 4) % 5, (row - 3) % 5, (row - 2) % 5
        r3, r4 = (row - 1) % 5, newest
        middle = row - 2
        for column in range(2, columns - 2):
            gu = 0.0625 * (
                steep[r0, column]
                + steep[r4, column]
                + 4.0 * (steep[r1, column] + steep[r3, column])
                + 6.0 * steep[r2, column]
            )
            gv = 0.125 * (
                smooth[r4, column]
                - smooth[r0, column]
                + 2.0 * (smooth[r3, column] - smooth[r1, column])
            )
            gradient_u[middle, column] = gu
            gradient_v[middle, column] = gv
            magnitude[middle, column] = math.sqrt(gu * gu + gv * gv)


@njit
def _sample(field, u, v):  # type: ignore[no-untyped-def]
    """Interpolate a field (rows, columns) bilinearly at column u, row v."""
    column, row = int(u), int(v)
    fu, fv = u - column, v - row
    above = field[row, column] * (1.0 - fu) + field[row, column + 1] * fu
    below = field[row + 1, column] * (1.0 - fu) + field[row + 1, column + 1] * fu
    return above * (1.0 - fv) + below * fv


@njit
def _chains(label, nu, nv, size):  # type: ignore[no-untyped-def]
    """Label chains of adjacent points of similar direction; ``label``: their index or -1."""
    rows, columns = label.shape
    parent = np.arange(size)
    for row in range(1, rows - 1):
        for column in range(1, columns - 1):
            here = label[row, column]
            if here < 0:
                continue
            # Half of the neighbours, so that each pair is visited once.
            for step_v, step_u in ((0, 1), (1, -1), (1, 0), (1, 1)):
                other = label[row + step_v, column + step_u]
                if other < 0 or nu[here] * nu[other] + nv[here] * nv[other] < _ALIGNED:
                    continue
                a, b = here, other
                while parent[a] != a:
                    parent[a] = parent[parent[a]]
                    a = parent[a]
                while parent[b] != b:
                    parent[b] = parent[parent[b]]
                    b = parent[b]
                parent[max(a, b)] = min(a, b)
    chain = np.empty(size, np.int32)
    chains = 0
    for index in range(size):
        root = index
        while parent[root] != root:
            root = parent[root]
        if root == index:
            chain[index] = chains
            chains += 1
        else:
            chain[index] = chain[root]
    return chain, chains
