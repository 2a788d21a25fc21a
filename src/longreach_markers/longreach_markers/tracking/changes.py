"""
What changed while two cameras saw the same markers: steps of a clock, or a bump.

Found by comparing hypotheses with the residuals of :mod:`longreach_markers.tracking.pair_fit`:
from a time on, the offset has another value as the clock of a camera jumped, or the pose has as it
was bumped. Each is solved for all times at which blocks of sightings begin, steps of the clock
from each of several multiples of the interval to each other one. The logarithms of their
likelihoods are compared, for as many independent residuals as their autocorrelation leaves, less
Schwarz's penalty for the unknowns.
"""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

import numpy as np
import scipy

from longreach_markers.tracking.pair_fit import (
    MOVES,
    PARTS,
    QUIET,
    SURE,
    UNFIT,
    Fit,
    PairFit,
    Rows,
)

# Search for an offset: largest one [s], also as a share of the duration; sightings used; cost
# below which, relative to that of the nearest minimum, a farther one is taken.
_FARTHEST, _SHARE, _THINNED, _BETTER = 1.0, 0.25, 400, 0.5
# Search for changes: largest number of them; blocks of time, and sightings in each; steps of the
# clock to both sides of the present offset, in intervals.
_CHANGES, _PIECES, _PIECE, _STEPS = 4, 60, 6, 4
# Mean square of a block over that of noise from which a search is worth while; least ratio of the
# costs without and with a change, and of their likelihoods (logarithm).
_LOUD, _LEAST_RATIO, _LEAST_GAIN = 4.0, 1.3, 30.0
# Residuals over noise that count as this many at most.
_CLIP = 6.0
# Unknowns of the pose: rotation, and displacement across the baseline.
_POSE = slice(3, 8)


def solve(problem: PairFit, *, search: bool) -> Fit | None:
    """Return the solution up to a bump, with all steps; None for too few sightings."""
    near = problem.descend(np.zeros(1))
    starts = [near]
    if search and near is not None:
        far = problem.descend(np.array([_nearest(problem)]))
        if far is not None and far.cost < _BETTER * near.cost:
            is_good = SURE * far.deviations[0] < problem.interval and problem.misfit(far) < UNFIT
            starts = [far] if is_good else [near, far]
    best: tuple[Fit, list[float], float] | None = None
    for start in starts:
        problem.steps, problem.bump = [], math.inf
        found = _with_changes(problem, start)
        if found is not None and (best is None or found.cost < _BETTER * best[0].cost):
            best = found, problem.steps, problem.bump
    if best is None:
        return None
    found, problem.steps, problem.bump = best
    return found


def _nearest(problem: PairFit) -> float:
    """Return the offset on a grid with which the tracks fit best [s]."""
    times = problem.pairs[0][1].times
    count = int(min(_FARTHEST, _SHARE * float(times[-1] - times[0])) / problem.interval)
    step = max(1, sum(len(left.times) for _, left, _ in problem.pairs) // _THINNED)
    costs = {k: problem.cost(k * problem.interval, step) for k in range(-count, count + 1)}
    return problem.interval * min(costs, key=lambda k: costs[k])


def _with_changes(problem: PairFit, found: Fit | None) -> Fit | None:
    """Return the solution with the changes that it leaves over, one after the other."""
    for _ in range(_CHANGES):
        change = None if found is None else _change(problem, found)
        if found is None or change is None:
            break
        time, offsets = change
        if offsets is None:
            problem.bump = time
            problem.steps = [one for one in problem.steps if one < time]
            found = problem.descend(found.offsets[: len(problem.steps) + 1])
            continue
        k = int(np.searchsorted(problem.steps, time))
        problem.steps.insert(k, time)
        before, behind = found.offsets[:k], found.offsets[k + 1 :]
        after = problem.descend(np.concatenate([before, offsets, behind]))
        if after is None or not np.isfinite(after.deviations).all():
            del problem.steps[k]
            break
        found = after
    return _with_sure_steps(problem, found)


def _with_sure_steps(problem: PairFit, found: Fit | None) -> Fit | None:
    """Return the solution without the steps that are not certain once all are known."""
    while found is not None and problem.steps:
        spreads = np.hypot(found.deviations[:-1], found.deviations[1:])
        sizes = np.abs(np.diff(found.offsets)) / spreads
        k = int(np.argmin(sizes))
        if sizes[k] > SURE:
            break
        step = problem.steps.pop(k)
        # The offset that is known better holds on both sides.
        worse = k + int(found.deviations[k + 1] > found.deviations[k])
        after = problem.descend(np.delete(found.offsets, worse))
        if after is None or not np.isfinite(after.deviations).all():
            problem.steps.insert(k, step)
            break
        found = after
    return found


def _change(problem: PairFit, found: Fit) -> tuple[float, tuple[float, float] | None] | None:
    """
    Return the time of the change that explains the residuals of a solution best.

    With the offsets before and after a step of the clock, None for a bump; None for no change.
    """
    rows = problem.rows(found.offsets)
    noise = problem.noise(rows, problem.residuals(rows, found))
    times = np.unique(rows.times)
    pieces = min(_PIECES, len(times) // 2, len(rows.times) // _PIECE)
    if pieces < 3:
        return None
    edges = times[np.linspace(0, len(times), pieces + 1).round().astype(int)[1:-1]]
    # Blocks do not extend beyond steps that are known.
    edges = np.union1d(edges, problem.steps)
    search = _Search(problem, found, edges, noise)
    middle = search.shifted(0.0)
    squares = np.diff(middle.sums[:, -1, -1]) / np.maximum(middle.counts, 1)
    if not (squares > _LOUD * noise**2).any():
        return None
    plain, _ = _least(middle.sums[-1:], problem.prior)
    both = search.as_bump(middle), search.as_step(middle)
    ranked = sorted((one for one in both if one is not None), key=lambda one: one.cost)
    if plain[0] < _LEAST_RATIO * ranked[0].cost:
        return None
    persistence = min(ranked[0].persistence(noise), 0.98)
    count = len(rows.times) * (1.0 - persistence) / (1.0 + persistence)
    gains = [
        count * math.log(plain[0] / one.cost) - one.unknowns * math.log(count) for one in ranked
    ]
    best = int(np.argmax(gains))
    if gains[best] < _LEAST_GAIN:
        return None
    return ranked[best].time(noise), ranked[best].offsets


class _Shifted(NamedTuple):
    """Equations at offsets that are shifted alike."""

    rows: Rows
    values: np.ndarray  # (L, P + 1), matrix and residuals over the stated deviations
    sums: np.ndarray  # (B + 1, P + 1, P + 1), products of columns before each of B blocks
    counts: np.ndarray  # (B,), sightings in each


class _Hypothesis(NamedTuple):
    """A change at the start of a block, with all unknowns."""

    cost: float
    unknowns: int  # more than without a change
    edge: int  # of the blocks
    edges: np.ndarray  # times between the blocks [s]
    parts: list[tuple[_Shifted, np.ndarray]]  # equations before and after, and factors (P + 1,)
    offsets: tuple[float, float] | None

    def residuals(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return times (L,), markers and residuals before and after, of common sightings."""
        (one, x), (other, y) = self.parts
        _, i, j = np.intersect1d(one.rows.keys, other.rows.keys, return_indices=True)
        before, after = (one.values @ x)[i], (other.values @ y)[j]
        return one.rows.times[i], one.rows.markers[i], before, after

    def time(self, noise: float) -> float:
        """Return the time of the first sighting after the change, near the edge [s]."""
        times, _, before, after = self.residuals()
        first = self.edges[max(self.edge - 1, 0)]
        last = self.edges[min(self.edge + 1, len(self.edges) - 1)]
        before, after = (np.minimum(np.abs(one), _CLIP * noise) ** 2 for one in (before, after))
        found = np.unique(times[(times >= first) & (times <= last)])
        if not len(found):
            return float(self.edges[self.edge])
        costs = [before[times < at].sum() + after[times >= at].sum() for at in found]
        return float(found[int(np.argmin(costs))])

    def persistence(self, noise: float) -> float:
        """Return the correlation of a residual with the next one of the same marker."""
        times, markers, before, after = self.residuals()
        own = np.where(times < self.time(noise), before, after)
        order = np.lexsort((times, markers))
        own, markers = np.clip(own, -_CLIP * noise, _CLIP * noise)[order], markers[order]
        same, times = markers[1:] == markers[:-1], times[order][1:]
        both, square = (own[1:] * own[:-1])[same], (own[1:] ** 2)[same]
        # Of quiet parts, as there may be further changes.
        order = np.argsort(times[same])
        parts = zip(*(np.array_split(one[order], PARTS) for one in (both, square)), strict=True)
        ratios = [a.sum() / b.sum() for a, b in parts if b.any()]
        return max(0.0, float(np.quantile(ratios, QUIET))) if ratios else 0.0


class _Search(NamedTuple):
    """Changes at the times between blocks (B - 1,) that the residuals of a solution may show."""

    problem: PairFit
    found: Fit
    edges: np.ndarray
    noise: float

    def shifted(self, shift: float) -> _Shifted:
        """Return the equations with all offsets shifted [s], and their sums over blocks."""
        rows = self.problem.rows(self.found.offsets + shift)
        values = np.column_stack([rows.matrix, rows.residuals]) / rows.deviations[:, None]
        slopes = np.abs(rows.matrix[:, 0])
        values[:, 0] *= slopes > MOVES * self.noise * rows.slope_deviations
        # A difference of line times would explain what is seen while a camera is bumped.
        values[:, 2] = 0.0
        own = np.abs(self.problem.residuals(rows, self.found))
        # Single wrong pixels count less than the others of their time.
        block = np.searchsorted(self.edges, rows.times, side='right')
        label = rows.markers * (len(self.edges) + 1) + block
        usual = np.maximum(scipy.ndimage.median(own, label, label), 0.7 * self.noise)
        weights = np.minimum(1.0, 2.5 * usual / np.maximum(own, usual)) ** 2
        scaled = values * np.sqrt(weights)[:, None]
        cuts = np.searchsorted(np.sort(block), np.arange(len(self.edges) + 2))
        scaled = scaled[np.argsort(block, kind='stable')]
        sums = [scaled[a:b].T @ scaled[a:b] for a, b in itertools.pairwise(cuts)]
        total = np.concatenate([np.zeros_like(sums[:1]), np.cumsum(sums, axis=0)])
        return _Shifted(rows, values, total, np.diff(cuts))

    def as_bump(self, middle: _Shifted) -> _Hypothesis:
        """Return the best time of a change of the pose."""
        size = len(self.problem.prior)
        before, after = np.eye(size + 1, size + 6), np.eye(size + 1, size + 6)
        for one in (before, after):
            one[-1] = np.eye(size + 6)[-1]
        after[_POSE, size : size + 5] = np.eye(5)
        prior = np.concatenate([self.problem.prior, self.problem.prior[_POSE]])
        costs, solutions = _least(
            before.T @ middle.sums[1:-1] @ before
            + after.T @ (middle.sums[-1] - middle.sums[1:-1]) @ after,
            prior,
        )
        b = int(np.argmin(costs))
        both = [(middle, part @ np.append(solutions[b], 1.0)) for part in (before, after)]
        return _Hypothesis(float(costs[b]), 6, b, self.edges, both, None)

    def as_step(self, middle: _Shifted) -> _Hypothesis | None:
        """Return the best time of a step of the clock, and its size; None if it is not certain."""
        problem, size = self.problem, len(self.problem.prior)
        shifts = {
            k: middle if k == 0 else self.shifted(k * problem.interval)
            for k in range(-_STEPS, _STEPS + 1)
        }
        sums = {}
        for k, one in shifts.items():
            # Fewer sightings are usable near gaps and ends: sums of as many as without a shift.
            share = middle.counts / np.maximum(one.counts, 1)
            parts = np.diff(one.sums, axis=0) * share[:, None, None]
            parts[one.counts == 0] = np.diff(middle.sums, axis=0)[one.counts == 0]
            sums[k] = np.concatenate([np.zeros_like(parts[:1]), np.cumsum(parts, axis=0)])
        # Unknowns: the offset before and after, and all others.
        before, after, outside = np.zeros((3, size + 1, size + 2))
        for part in (before, after, outside):
            part[1:, 2:] = np.eye(size)
        before[0, 0] = after[0, 1] = 1.0
        prior = np.concatenate([problem.prior[:1], problem.prior])
        known = [0, *(np.searchsorted(self.edges, problem.steps) + 1), len(self.edges) + 1]
        best: _Hypothesis | None = None
        spread = math.inf
        for segment, (start, stop) in enumerate(itertools.pairwise(known)):
            rest = sums[0][-1] - sums[0][stop] + sums[0][start]
            cut = np.arange(start + 1, stop)
            if not len(cut):
                continue
            for i, j in itertools.product(shifts, shifts):
                if i == j != 0:
                    continue
                whole = (
                    before.T @ (sums[i][cut] - sums[i][start]) @ before
                    + after.T @ (sums[j][stop] - sums[j][cut]) @ after
                    + outside.T @ rest @ outside
                )
                costs, solutions = _least(whole, prior)
                b = int(np.argmin(costs))
                if best is None or costs[b] < best.cost:
                    x = np.append(solutions[b], 1.0)
                    offset = self.found.offsets[segment] + problem.interval * np.array([i, j])
                    offset += x[:2]
                    both = [(shifts[i], before @ x), (shifts[j], after @ x)]
                    jump = float(offset[0]), float(offset[1])
                    best = _Hypothesis(float(costs[b]), 2, int(cut[b]) - 1, self.edges, both, jump)
                    inverse = np.linalg.inv(whole[b][:-1, :-1] + np.diag(prior))
                    variance = inverse[0, 0] + inverse[1, 1] - 2 * inverse[0, 1]
                    spread = self.noise * math.sqrt(variance)
        if best is None or best.offsets is None:
            return None
        return best if abs(best.offsets[1] - best.offsets[0]) > SURE * spread else None


def _least(sums: np.ndarray, prior: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return least sums of squares (K,) and unknowns (K, Q) of ``sums`` (K, Q + 1, Q + 1)."""
    matrix, right = sums[:, :-1, :-1] + np.diag(prior), sums[:, :-1, -1:]
    unknowns = -np.linalg.solve(matrix, right)
    return sums[:, -1, -1] + np.sum(right * unknowns, axis=(1, 2)), unknowns[..., 0]
