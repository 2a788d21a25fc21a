"""
What changed while two cameras saw the same markers: steps of a clock, or bumps.

Found by comparing hypotheses with the residuals of :mod:`longreach_markers.tracking.pair_fit`:
from a time on, the offset has another value as the clock of a camera jumped, or the pose has as it
was bumped. Each is solved for all times at which blocks of sightings begin, steps of the clock
from each of several multiples of the interval to each other one. The one of least cost is a
change, if the cost is much less than without it.
"""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

import numpy as np
import scipy

from longreach_markers.tracking.pair_fit import MOVES, SURE, UNFIT, Fit, PairFit, Rows

# Search for an offset: largest one [s], also as a share of the duration; sightings used; cost
# below which, relative to that of the nearest minimum, a farther one is taken.
_FARTHEST, _SHARE, _THINNED, _BETTER = 1.0, 0.25, 400, 0.5
# Search for changes: largest number of them; blocks of time, and sightings in each; steps of the
# clock to both sides of the present offset, in intervals.
_CHANGES, _PIECES, _PIECE, _STEPS = 4, 60, 6, 2
# Mean square of a block over that of noise from which a search is worth while; least ratio of the
# costs without and with a change, and of their likelihoods (logarithm).
_LOUD, _LEAST_RATIO, _LEAST_GAIN = 4.0, 1.3, 50.0
# Residuals over noise that count as this many at most.
_CLIP = 6.0


def solve(problem: PairFit, *, search: bool) -> Fit | None:
    """Return the solution with all changes; None for too few sightings."""
    near = problem.descend(np.zeros(1))
    starts = [near]
    if search and near is not None:
        far = problem.descend(np.array([_nearest(problem)]))
        if far is not None and far.cost < _BETTER * near.cost:
            is_good = SURE * far.deviations[0] < problem.interval and problem.misfit(far) < UNFIT
            starts = [far] if is_good else [near, far]
    best: tuple[Fit, list[float], list[float]] | None = None
    for start in starts:
        problem.steps, problem.bumps = [], []
        found = _with_changes(problem, start)
        if found is not None and problem.steps and problem.bumps:
            # Steps that were found before the bumps are near their times only.
            problem.steps = []
            found = _with_changes(problem, problem.descend(found.offsets[:1]))
        found = _with_sure_steps(problem, found)
        if found is not None and (best is None or found.cost < _BETTER * best[0].cost):
            best = found, problem.steps, problem.bumps
    if best is None:
        return None
    found, problem.steps, problem.bumps = best
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
        if not len(offsets):
            problem.bumps = sorted([*problem.bumps, time])
            found = problem.descend(found.offsets)
            continue
        k = int(np.searchsorted(problem.steps, time))
        problem.steps.insert(k, time)
        offsets = np.concatenate([found.offsets[:k], offsets, found.offsets[k + 1 :]])
        after = problem.descend(offsets)
        if after is None or not np.isfinite(after.deviations).all():
            del problem.steps[k]
            break
        found = after
    return found


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


class _Shifted(NamedTuple):
    """Equations at offsets that are shifted alike."""

    rows: Rows
    values: np.ndarray  # (L, P + 1), all columns and residuals over the stated deviations
    sums: np.ndarray  # (B, P + 1, P + 1), products of columns in each of B blocks
    counts: np.ndarray  # (B, 1, 1), sightings in each


def _shifted(
    problem: PairFit, found: Fit, shift: float, edges: np.ndarray, noise: float
) -> _Shifted:
    """Return the equations with all offsets shifted [s], and their sums between edges [s]."""
    rows, count = problem.rows(found.offsets + shift), len(found.offsets)
    values = np.column_stack([problem.columns(rows), rows.residuals]) / rows.deviations[:, None]
    moves = np.abs(rows.matrix[:, 0]) > MOVES * noise * rows.slope_deviations
    values[:, :count] *= moves[:, None]
    # A difference of line times would explain what is seen while a camera is bumped.
    values[:, count + 1] = 0.0
    own = np.abs(problem.residuals(rows, found))
    # Single wrong pixels count less than the others of their time.
    block = np.searchsorted(edges, rows.times, side='right')
    label = rows.markers * (len(edges) + 1) + block
    usual = np.maximum(scipy.ndimage.median(own, label, label), 0.7 * noise)
    scaled = values * np.minimum(1.0, 2.5 * usual / np.maximum(own, usual))[:, None]
    parts = [scaled[block == k] for k in range(len(edges) + 1)]
    sums = np.array([part.T @ part for part in parts])
    return _Shifted(rows, values, sums, np.array([[[len(part)]] for part in parts]))


def _change(problem: PairFit, found: Fit) -> tuple[float, np.ndarray] | None:
    """Return time and offsets (none for a bump) of the change that fits best, or None."""
    rows = problem.rows(found.offsets)
    noise = problem.noise(rows, problem.residuals(rows, found))
    times = np.unique(rows.times)
    pieces = min(_PIECES, len(times) // 2, len(rows.times) // _PIECE)
    if pieces < 3:
        return None
    edges = times[np.linspace(0, len(times), pieces + 1).round().astype(int)[1:-1]]
    # Blocks do not extend beyond changes that are known.
    edges = np.unique([*edges, *problem.steps, *problem.bumps])
    middle = _shifted(problem, found, 0.0, edges, noise)
    if not (middle.sums[:, -1:, -1:] > _LOUD * noise**2 * middle.counts).any():
        return None
    shifts, sums = {}, {}
    for k in range(-_STEPS, _STEPS + 1):
        one = shifts[k] = _shifted(problem, found, k * problem.interval, edges, noise)
        # Fewer sightings are usable near gaps and ends: sums of as many as without a shift.
        parts = one.sums * middle.counts / np.maximum(one.counts, 1)
        parts = np.where(one.counts > 0, parts, middle.sums)
        sums[k] = np.concatenate([np.zeros_like(parts[:1]), np.cumsum(parts, axis=0)])
    plain, _ = _least(sums[0][-1:], problem.prior)
    size, count = len(problem.prior), len(found.offsets)
    least = float(plain[0]) / max(_LEAST_RATIO, math.exp(_LEAST_GAIN / len(rows.times)))
    best: tuple[float, np.ndarray] | None = None
    jumps = [(i, j) for i, j in itertools.product(shifts, shifts) if i != j or i == 0]
    # Of clock and pose: first column, number of columns, known changes, shifts before and after.
    clock, pose = (0, 1, problem.steps, jumps), (count + 2, 5, problem.bumps, [(0, 0)])
    for first, many, known, pairs in (clock, pose):
        bounds = [0, *(np.searchsorted(edges, known) + 1), len(edges) + 1]
        for segment, (start, stop) in enumerate(itertools.pairwise(bounds)):
            cuts = np.arange(start + 1, stop)
            own, new = first + many * segment + np.arange(many), size + np.arange(many)
            # From all unknowns, and new ones that replace this segment's own behind a cut.
            before = np.insert(np.eye(size + 1), many * [size], 0.0, axis=1)
            after = before.copy()
            after[own, own], after[own, new] = 0.0, 1.0
            prior = np.append(problem.prior, problem.prior[own])
            for i, j in pairs if len(cuts) else ():
                head = sums[0][start] + sums[i][cuts] - sums[i][start]
                tail = sums[j][stop] - sums[j][cuts] + sums[0][-1] - sums[0][stop]
                costs, unknowns = _least(before.T @ head @ before + after.T @ tail @ after, prior)
                b = int(np.argmin(costs))
                if costs[b] < least:
                    least, x, offsets = float(costs[b]), np.append(unknowns[b], 1.0), np.zeros(0)
                    if many == 1:
                        offsets = found.offsets[segment] + problem.interval * np.array([i, j])
                        offsets += x[[segment, size]]
                    sides = (shifts[i], before @ x), (shifts[j], after @ x)
                    best = _time(edges, int(cuts[b]) - 1, noise, *sides), offsets
    return best


def _time(
    edges: np.ndarray,
    edge: int,
    noise: float,
    head: tuple[_Shifted, np.ndarray],
    tail: tuple[_Shifted, np.ndarray],
) -> float:
    """Return the time of the first sighting after a change near an edge [s]."""
    first, last = edges[max(edge - 1, 0)], edges[min(edge + 1, len(edges) - 1)]
    keys = head[0].rows.keys, tail[0].rows.keys
    _, *both = np.intersect1d(*keys, return_indices=True)
    times = head[0].rows.times[both[0]]
    before, after = (
        np.minimum(np.abs(one.values[which] @ x), _CLIP * noise) ** 2
        for which, (one, x) in zip(both, (head, tail), strict=True)
    )
    found = np.unique(times[(times >= first) & (times <= last)])
    costs = [before[times < at].sum() + after[times >= at].sum() for at in found]
    return float(found[int(np.argmin(costs))] if costs else edges[edge])


def _least(sums: np.ndarray, prior: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return least sums of squares (K,) and unknowns (K, Q) of ``sums`` (K, Q + 1, Q + 1)."""
    matrix, right = sums[:, :-1, :-1] + np.diag(prior), sums[:, :-1, -1:]
    unknowns = -np.linalg.solve(matrix, right)
    return sums[:, -1, -1] + np.sum(right * unknowns, axis=(1, 2)), unknowns[..., 0]
