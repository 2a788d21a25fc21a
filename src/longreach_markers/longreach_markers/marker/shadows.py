"""
Search for the straight edge of a shadow across a marker: the start of its estimation.

Pixels near both edges of the marker are averaged by sector and level (outside, between the edges,
inside). For a grid of lines, levels on one side are a common share of those on the other; the line
with the least sum of squares is returned. An occluder is none, as its levels do not differ.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from longreach_markers.marker.pixel_parameters import CENTER, RHO, SHADOW_SIZE, SHAPE
from longreach_markers.marker.symmetric import SECTORS, inverse, largest, times

# Directions of lines over half a turn, and distances from the centre, as a share of the largest.
_TURNS, _PLACES = 16, 15
# Distance of a pixel from an edge that belongs to a level [px].
_CLEAR = 1.5
# Light on the shaded side: it is a shadow from the first share down to the second; its levels
# explain this share of the squares.
_LIGHTEST, _DARKEST, _EXPLAINED = 0.93, 0.08, 0.6
# Fewest averages on each side, and iterations of levels and light.
_LEAST, _STEPS = 12, 4


@njit
def find_shadow(samples, sector, burnt, p, disc):  # type: ignore[no-untyped-def]
    """Return the edge of a shadow (8,) of :mod:`pixel_parameters`; empty (0,) if there is none."""
    # Sums of each level in each sector: 1, u, v, grey.
    sums = np.zeros((3 * 2 * SECTORS, 4))
    b11, b12, b22 = inverse(p[SHAPE], p[SHAPE + 1], p[SHAPE + 2])
    reach = largest(p[SHAPE], p[SHAPE + 1], p[SHAPE + 2])
    for index in range(sector.size):
        if burnt[sector[index]]:
            continue
        du, dv = samples[0, index] - p[CENTER], samples[1, index] - p[CENTER + 1]
        yu, yv = times(b11, b12, b22, du, dv)
        r = math.sqrt(yu * yu + yv * yv)
        ku, kv = times(b11, b12, b22, yu, yv)
        # From relative radius to pixels.
        size = r / max(math.sqrt(ku * ku + kv * kv), 1e-9)
        level = 0 if r > 1.0 else (1 if disc or r > p[RHO] else 2)
        away = abs(r - 1.0) * size
        if not disc:
            away = min(away, abs(r - p[RHO]) * size)
        if away > _CLEAR:
            row = sums[level * 2 * SECTORS + sector[index]]
            row[0] += 1.0
            row[1] += du
            row[2] += dv
            row[3] += samples[2, index]
    count = 0
    for index in range(sums.shape[0]):
        if sums[index, 0] > 0.0:
            sums[count, 0], number = index // (2 * SECTORS), sums[index, 0]
            sums[count, 1], sums[count, 2] = sums[index, 1] / number, sums[index, 2] / number
            sums[count, 3] = sums[index, 3] / number
            count += 1
    sums = sums[:count]
    plain, _ = _misfit(sums, 1.0, 0.0, math.inf)
    best, light, chosen_u, chosen_v, offset = plain, 1.0, 1.0, 0.0, 0.0
    for turn in range(_TURNS):
        angle = math.pi * turn / _TURNS
        nu, nv = math.cos(angle), math.sin(angle)
        for place in range(_PLACES):
            away = reach * (2.0 * (place + 1.0) / (_PLACES + 1.0) - 1.0)
            squares, share = _misfit(sums, nu, nv, away)
            if squares < best:
                best, light, chosen_u, chosen_v, offset = squares, share, nu, nv, away
    if light > 1.0:
        # The shadow is on the other side.
        light, chosen_u, chosen_v, offset = 1.0 / light, -chosen_u, -chosen_v, -offset
    if best > (1.0 - _EXPLAINED) * plain or not _DARKEST < light < _LIGHTEST:
        return np.zeros(0)
    shadow = np.zeros(SHADOW_SIZE)
    shadow[0], shadow[1], shadow[2] = math.atan2(chosen_v, chosen_u), offset, 0.2
    shadow[3:6] = light
    shadow[6], shadow[7] = p[CENTER], p[CENTER + 1]
    return shadow


@njit
def _misfit(averages, nu, nv, away):  # type: ignore[no-untyped-def]
    """Return sum of squares of ``averages`` (n, 4: level, u, v, grey) and light beyond a line."""
    counts, totals = np.zeros((3, 2)), np.zeros((3, 2))
    squares = 0.0
    for index in range(averages.shape[0]):
        level = int(averages[index, 0])
        side = 1 if averages[index, 1] * nu + averages[index, 2] * nv > away else 0
        grey = averages[index, 3]
        counts[level, side] += 1.0
        totals[level, side] += grey
        squares += grey * grey
    share = 1.0
    if away < math.inf:
        if min(counts[:, 0].sum(), counts[:, 1].sum()) < _LEAST:
            return math.inf, 1.0
        # Light by the levels outside, or those with most light.
        for _ in range(_STEPS):
            over, under = 0.0, 1e-9
            for level in range(3):
                number = counts[level, 0] + share * share * counts[level, 1]
                if number > 0.0:
                    mean = (totals[level, 0] + share * totals[level, 1]) / number
                    if counts[level, 0] > 0.0:
                        over += mean * totals[level, 1]
                        under += mean * mean * counts[level, 1]
            share = min(max(over / under, 0.02), 50.0)
    for level in range(3):
        number = counts[level, 0] + share * share * counts[level, 1]
        if number > 0.0:
            mean = (totals[level, 0] + share * totals[level, 1]) / number
            squares -= mean * mean * number
    return squares, share
