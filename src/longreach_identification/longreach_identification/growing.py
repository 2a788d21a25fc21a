"""
A search over growing durations, for motions in which actuators stick and slip.

A piston that slips once more changes all that follows: over a whole recording the sum of squares
has many minima, over the first moments one. A longer duration begins with the solution of a
shorter one; where one is not explained, shorter ones, and then more starts are tried. Noise is
that before the event: levels from residuals would excuse a wrong order of slips.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from tqdm import tqdm

from longreach_dynamics.parallel import keep_workers
from longreach_identification.covariance import inverse_of
from longreach_identification.estimation import Problem
from longreach_identification.search import Search

# First duration [s], by what it grows, and growth below which more starts are tried.
_FIRST, _GROWTH, _CLOSE = 0.15, 1.6, 1.08
# Starts that are drawn at first, of each longer duration, and where none is explained; how many of
# the latter are solved, in how many rounds.
_MANY, _FEW, _MORE, _SOLVED, _ROUNDS = 200, 120, 240, 3, 3
# Searches where actuators slip, of which the last begin only where the ones before ended early.
_SEARCHES = 3
# Sum of squares by which a drawn start must be better than the last solution.
_BETTER = 8.0
# Standard deviations of drawn changes: in those of the last solution, and of logarithms.
_SPREADS, _FACTORS = (0.5, 1.0, 2.0), (0.02, 0.05, 0.1, 0.3)
_ITERATIONS, _TOLERANCE = 10, 1e-4
# Residuals in motion over those at rest that count as explained, for many rows at rest, and by how
# much more for one, over the square root of their number; fewest rows at rest. Of what a longer
# duration adds, the mean square, and its standard errors.
_EXPLAINED, _BY_CHANCE, _FEWEST_ROWS = 1.2, 3.0, 20
_ADDED, _SURELY = 1.1, 5.0


class Solution(NamedTuple):
    """Values of the unknowns, and how they were found."""

    values: Mapping[str, float] = MappingProxyType({})  # empty: nothing was explained
    cost: float = math.inf  # sum of squares
    # Root of their covariance, of logarithms where these are searched: by name a row.
    root: Mapping[str, np.ndarray] = MappingProxyType({})
    duration: float = 0.0  # that they explain [s]


class _Stage(Search):
    """The search over one duration; ``events`` are the first ones [s]."""

    def __init__(self, problem: Problem, events: Sequence[float], **workers: Any) -> None:
        super().__init__(problem, **workers)
        self.events = events
        self.first_levels(self.best)
        # Noise before the events, of signals with enough rows.
        rests: dict[str, list[np.ndarray]] = {}
        for block in self.blocks:
            rest = block.values[block.times < events[block.recording]]
            rests.setdefault(block.signal, []).append(rest - rest.mean() if rest.size else rest)
        for name, parts in rests.items():
            rest = np.concatenate(parts)
            if rest.size >= _FEWEST_ROWS and (rest.any() or name in problem.floors):
                self.levels[name] = max(float(rest.std()), problem.floors.get(name, 0.0))

    def drawn(self, about: Solution, count: int, random: np.random.Generator) -> list[np.ndarray]:
        """Return starts: the given one, and random changes of it."""
        names, begin = self.problem.names, self.start(about)
        # Those of one actuator have its number at the end of their names.
        actuators: dict[str, list[int]] = {}
        for j in self.free[self.logarithmic[self.free]]:
            actuators.setdefault(names[j].rpartition('_')[2], []).append(j)
        own = list(actuators.values())
        width = max((row.size for row in about.root.values()), default=0)
        root = np.array([about.root.get(name, np.zeros(width)) for name in names])
        points = [begin]
        for number in range(count):
            point = begin.copy()
            if number % 4 < 2 or not own:
                point += random.choice(_SPREADS) * (root @ random.standard_normal(width))
            if number % 4 and own:
                actuator = own[random.integers(len(own))]
                some = random.permutation(actuator)[: random.integers(len(actuator)) + 1]
                point[some] += random.choice(_FACTORS, some.size) * random.standard_normal(
                    some.size
                )
            points.append(np.clip(point, self.lowest, self.highest))
        return points

    def start(self, about: Solution) -> np.ndarray:
        """Return the numbers that the search changes, of a solution."""
        values = [about.values.get(u.name, u.start) for u in self.problem.unknowns]
        return self.inner(np.array(values, dtype=float))

    def best_starts(self, points: Sequence[np.ndarray], count: int) -> list[np.ndarray]:
        """Return the best of some starts; the first one alone if none is clearly better."""
        costs = self.scores(points, self.squares)
        order = np.argsort(costs, kind='stable')
        if costs[0] <= costs[order[0]] + _BETTER:
            return [points[0]]
        return [points[k] for k in order[:count]]

    def solved(self, points: Sequence[np.ndarray]) -> Solution:
        """Return the best solution from some starts; its root is 0 for what data do not tell."""
        names = self.problem.names
        found = [self.solve(point, self.free, _ITERATIONS, _TOLERANCE)[0] for point in points]
        costs = [float(np.sum(self.weighted(x) ** 2)) for x in found]
        x = found[int(np.argmin(costs))]
        covariance = np.nan_to_num(inverse_of(self.jacobian(x))[0], nan=0.0, posinf=0.0)
        sizes, axes = np.linalg.eigh(covariance)
        rows = axes * np.sqrt(sizes.clip(0.0))
        root = dict(zip((names[j] for j in self.free), rows, strict=True))
        return Solution(dict(zip(names, self.outer(x).tolist(), strict=True)), min(costs), root)

    def explains(self, found: Solution, before: float) -> bool:
        """Return whether a solution explains all signals, and what is new after a duration."""
        problem, predicted = self.problem, self.predicted(self.start(found))
        if predicted is None:
            return False
        if excess(problem, self.fits(predicted)[1], self.events, problem.validation):
            return False
        total, rows = 0.0, 0
        for block, residuals in zip(self.fitted, self.residuals(predicted), strict=True):
            new = residuals[block.times >= self.events[block.recording] + before]
            total, rows = total + float(new @ new), rows + new.size
        return total <= _ADDED * rows + _SURELY * math.sqrt(2.0 * rows)


def _growing(
    stage_at: Callable[[float, Solution], _Stage], duration: float, random: np.random.Generator
) -> Iterator[Solution]:
    """Yield solutions of growing durations, as long as all signals are explained."""
    growth, last = _GROWTH, Solution()
    while (reached := last.duration) < duration:
        longer = min(growth * reached if reached else _FIRST, duration)
        stage = stage_at(longer, last)
        count = _FEW if last.values else _MANY
        found = stage.solved(stage.best_starts(stage.drawn(last, count, random), 1))
        explained = stage.explains(found, reached)
        if not explained and longer > _CLOSE * reached > 0.0:
            growth = math.sqrt(longer / reached)
            continue
        for number in range(_ROUNDS):
            if explained:
                break
            about = last if last.values and number % 2 else found
            starts = stage.best_starts(stage.drawn(about, _MORE, random), _SOLVED)
            found = min(found, stage.solved(starts), key=lambda one: one.cost)
            explained = stage.explains(found, reached)
        if not explained:
            return
        last = found._replace(duration=longer)
        yield last
        growth = min(growth**1.5, _GROWTH)
    # The same slips may be explained by other values.
    for _ in range(_ROUNDS):
        starts = stage.best_starts(stage.drawn(last, _MORE, random)[1:], _SOLVED)
        other = stage.solved(starts)._replace(duration=duration)
        if other.cost > last.cost - _BETTER:
            break
        last = other
        yield last


def grow(
    problem_at: Callable[[float, Mapping[str, float] | None], Problem],
    events: Sequence[float],
    duration: float,
    slips: bool,
    *,
    progress: bool | None,
    **workers: Any,
) -> tuple[Solution, bool]:
    """Return the longest solution that explains all signals, and whether Ctrl-C ended it."""
    # ``problem_at`` takes a duration [s] and start values. Where a search ends early, others
    # begin.
    found, interrupted = [Solution()], False
    hidden = None if progress is None else not progress
    with keep_workers(), tqdm(disable=hidden, unit='run') as bar:

        def stage_at(longer: float, last: Solution) -> _Stage:
            bar.set_description(f'first {longer:.3g} s')
            return _Stage(problem_at(longer, last.values or None), events, bar=bar, **workers)

        try:
            for seed in range(_SEARCHES if slips else 1):
                if found[-1].duration < duration:
                    found.append(Solution())
                    for one in _growing(stage_at, duration, np.random.default_rng(seed)):
                        found[-1] = one
        except KeyboardInterrupt:
            interrupted = True
    return max(found, key=lambda one: (one.duration, -one.cost)), interrupted


def excess(
    problem: Problem,
    predicted: Mapping[tuple[str, str], np.ndarray],
    events: Sequence[float],
    without: Sequence[str] = (),
) -> dict[str, float]:
    """Return residuals in motion over those at rest, of signals where they are larger, by name."""
    ratios: dict[str, float] = {}
    for recording, event in zip(problem.recordings, events, strict=True):
        for name, signal in recording.signals.items():
            shown = predicted.get((recording.name, name))
            if shown is None or recording.name in without:
                continue
            residuals = signal.values - shown
            use = np.isfinite(residuals)
            rest = residuals[use & (signal.times < event)]
            motion = residuals[use & (signal.times >= event)]
            if rest.size < _FEWEST_ROWS or not motion.size:
                continue
            noise = max(float(rest.std()), problem.floors.get(name, 0.0))
            size = math.sqrt(float(np.mean(motion**2)))
            chance = _BY_CHANCE / math.sqrt(min(rest.size, motion.size))
            if noise > 0.0 and size > (_EXPLAINED + chance) * noise:
                ratios[name] = max(ratios.get(name, 0.0), size / noise)
    return ratios
