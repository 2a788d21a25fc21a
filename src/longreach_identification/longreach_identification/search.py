"""
The search for the smallest sum of squares: predictions, derivatives, weights and steps.

Predictions with stick and slip have jumps. Derivatives are differences with steps of a hundredth
of a standard error; where those to both sides do not agree, one contains a jump, and the smaller
one is taken.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from tqdm import tqdm

from longreach_dynamics.errors import InputError, LongreachError
from longreach_dynamics.parallel import run_jobs
from longreach_identification.covariance import inverse_of, inverse_root
from longreach_identification.fit_report import CONVERGED, STOPPED

if TYPE_CHECKING:
    from longreach_identification.estimation import Predict, Problem

# Steps of differences: share of a standard error; and relative to typical sizes of unknowns the
# first, the shortest, the longest.
_STEP_SHARE, FIRST_STEP, SHORTEST_STEP, _LONGEST_STEP = 0.01, 1e-4, 1e-6, 1e-2
# Differences to both sides that differ by more than this share have a jump between them.
_JUMP = 0.3
# Change of an unknown noise level that asks for another round.
_LEVEL_CHANGE = 0.02
# Median of the magnitude of a normal distribution; deviations from which on rows weigh less.
_MEDIAN, _OUTLIER = 0.6745, 2.0
# Inverse of the standard deviation, in typical sizes, with which a search knows where it began:
# without it SciPy's trust region prolongs the steps of a singular Jacobian, as of an unknown
# without any effect, to its whole radius, which ends at bounds far from the solution.
_ANCHOR = 1e-4


class Block(NamedTuple):
    """One signal of one recording."""

    recording: int
    signal: str
    rows: np.ndarray  # indices of finite rows
    fitted: np.ndarray  # (rows,) which of them are fitted
    values: np.ndarray  # (rows,)
    deviation: np.ndarray  # (rows,); NaN: unknown
    offset: bool


def _run(job: tuple[Predict, int, dict[str, float]]) -> dict[str, np.ndarray] | str:
    """Return the predicted signals of a recording, or the message of a LongreachError."""
    predict, recording, values = job
    try:
        return {n: np.asarray(v, dtype=float) for n, v in predict(recording, values).items()}
    except LongreachError as error:
        return str(error)


class Search:
    """The state of an estimation."""

    def __init__(self, problem: Problem, processes: int | None, cluster: str | None) -> None:
        self.problem, self.processes, self.cluster = problem, processes, cluster
        self.blocks = _blocks(problem)
        self.rows = sum(int(block.fitted.sum()) for block in self.blocks)
        self.unknowns = tuple(unknown.inner() for unknown in problem.unknowns)
        self.logarithmic = np.array([unknown.logarithmic for unknown in problem.unknowns])
        considered = np.array([unknown.considered for unknown in problem.unknowns])
        self.free, self.considered = np.flatnonzero(~considered), np.flatnonzero(considered)
        if self.rows == 0:
            raise InputError(
                'the recordings have no finite row to fit; check their signals and validation'
            )
        self.sizes = np.array([unknown.size for unknown in self.unknowns])
        self.lowest = np.array([unknown.lowest for unknown in self.unknowns], dtype=float)
        self.highest = np.array([unknown.highest for unknown in self.unknowns], dtype=float)
        self.best = np.array([unknown.start for unknown in self.unknowns], dtype=float)
        self.least = math.inf
        self.levels: dict[str, float] = {}
        self.shares: dict[tuple[int, str], np.ndarray] = {}  # weights of rows, if not 1
        self.steps = FIRST_STEP * self.sizes
        self.derivatives: np.ndarray | None = None  # of all rows of all blocks, not weighted
        self.evaluations, self.bar = 0, tqdm(disable=True)
        self.known: dict[bytes, list[np.ndarray]] = {}
        self.reason = ''
        # Of the estimated unknowns, and the covariance of these with those that are considered.
        self.prior_columns = np.zeros(0, dtype=int)
        self.prior_mean, self.prior_root = np.zeros(0), np.zeros((0, 0))
        self.prior_covariance = np.zeros((0, 0))
        if problem.prior is not None:
            known = [name for name in problem.prior.names if name in problem.names]
            used = [name for name in known if not considered[problem.names.index(name)]]
            rows = [problem.prior.names.index(name) for name in used]
            self.prior_columns = np.array([problem.names.index(n) for n in used], dtype=int)
            self.prior_mean = problem.prior.mean[rows]
            self.prior_root = inverse_root(problem.prior.covariance[np.ix_(rows, rows)], used)
            rows += [problem.prior.names.index(problem.names[j]) for j in self.considered]
            self.prior_covariance = problem.prior.covariance[np.ix_(rows, rows)]
            errors = np.sqrt(np.diag(self.prior_covariance))[len(used) :]
            self.steps[self.considered] = _STEP_SHARE * errors

    def outer(self, x: np.ndarray) -> np.ndarray:
        """Return the unknowns from the numbers that the search changes."""
        # Not np.where, which would also take the exponential of numbers in Pa.
        found = x.copy()
        found[self.logarithmic] = np.exp(x[self.logarithmic])
        return found

    def inner(self, values: np.ndarray) -> np.ndarray:
        """Return the numbers that the search changes from the unknowns."""
        found = values.copy()
        found[self.logarithmic] = np.log(values[self.logarithmic])
        return found

    # --- predictions

    def _predictions(self, points: Sequence[np.ndarray], which: Sequence[int | None]) -> list[Any]:
        """Return the predictions of all blocks, or of one recording, for each point or None."""
        problem = self.problem
        jobs, owners = [], []
        for k, (point, only) in enumerate(zip(points, which, strict=True)):
            values = dict(zip(problem.names, self.outer(point).tolist(), strict=True))
            for number in range(len(problem.recordings)) if only is None else [only]:
                jobs.append((problem.predict, number, values))
                owners.append(k)
        outcomes = run_jobs(
            _run,
            jobs,
            None if self.cluster else self.processes,
            False,
            cluster=self.cluster,
            finished=lambda _k, _outcome: self.bar.update(),
        )
        self.evaluations += len(jobs)
        found: list[Any] = [[None] * len(self.blocks) for _ in points]
        for job, k, outcome in zip(jobs, owners, outcomes, strict=True):
            if isinstance(outcome, str):
                self.reason, found[k] = outcome, None
                continue
            for b, block in enumerate(self.blocks):
                if block.recording == job[1] and found[k] is not None:
                    found[k][b] = self._of_block(block, outcome)
        return found

    def _of_block(self, block: Block, outcome: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return the predicted finite rows of a block."""
        recording = self.problem.recordings[block.recording]
        expected = recording.signals[block.signal].times.shape
        if block.signal not in outcome or outcome[block.signal].shape != expected:
            got = 'nothing' if block.signal not in outcome else outcome[block.signal].shape
            raise InputError(
                f'the prediction of {block.signal} in {recording.name} has {got}, allowed: the'
                f' shape of its times, {expected}'
            )
        return np.asarray(outcome[block.signal][block.rows])

    def predicted(self, x: np.ndarray) -> list[np.ndarray] | None:
        """Return the predictions of all blocks, or None when there are none."""
        key = x.tobytes()
        if key not in self.known:
            found = self._predictions([x], [None])[0]
            if found is None or not all(np.isfinite(part).all() for part in found):
                return None
            # The search asks for the same point again, for the derivatives and at the end.
            self.known = {key: found, **dict(list(self.known.items())[:3])}
        return self.known[key]

    def jacobian(self, x: np.ndarray, which: np.ndarray | None = None) -> np.ndarray:
        """Return the derivatives of the weighted residuals by the unknowns, prior included."""
        columns = self.free if which is None else which
        derivatives = self._derivatives(x, columns)
        weighted = self.weighted_derivatives(derivatives)[:, columns]
        if which is None:
            self.derivatives = derivatives
            # Next time with steps of the size of the standard errors.
            self.set_steps(np.sqrt(np.diag(inverse_of(weighted)[0])))
        return weighted

    def consider(self, x: np.ndarray) -> np.ndarray:
        """Return the weighted derivatives by all, those by what is not estimated added."""
        assert self.derivatives is not None
        if self.considered.size:
            self.derivatives += self._derivatives(x, self.considered)
        return self.weighted_derivatives(self.derivatives)

    def _derivatives(self, x: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Return the derivatives of all rows by some unknowns, 0 for others."""
        problem = self.problem
        points, numbers, widths = [], [], []
        for j in columns.tolist():
            unknown = self.unknowns[j]
            # One-sided at a bound.
            ends = np.clip(
                [x[j] - self.steps[j], x[j] + self.steps[j]], unknown.lowest, unknown.highest
            )
            for end in ends:
                point = x.copy()
                point[j] = end
                points.append(point)
                numbers.append(unknown.recording)
            widths.append((ends - x[j]).tolist())
        found = self._predictions(points, numbers)
        here = self.predicted(x)
        assert here is not None
        total = sum(block.rows.size for block in self.blocks)
        derivatives = np.zeros((total, len(problem.unknowns)))
        for k, j in enumerate(columns.tolist()):
            before, after = found[2 * k : 2 * k + 2]
            left, right = widths[k]
            if before is None or left == 0.0:
                before, left = here, 0.0
            if after is None or right == 0.0:
                after, right = here, 0.0
            if left == right:
                raise LongreachError(
                    f'there is no prediction for {problem.names[j]} near {x[j]:g}: {self.reason}'
                )
            row, sides = 0, np.zeros((2, total))
            for b, block in enumerate(self.blocks):
                only = problem.unknowns[j].recording
                if only is None or only == block.recording:
                    part = slice(row, row + block.rows.size)
                    sides[0, part] = (here[b] - before[b]) / -left if left else math.nan
                    sides[1, part] = (after[b] - here[b]) / right if right else math.nan
                row += block.rows.size
            derivatives[:, j] = self._smooth(sides, -left, right)
        return derivatives

    def _smooth(self, sides: np.ndarray, left: float, right: float) -> np.ndarray:
        """Return the derivative from differences to both sides (2, rows), without jumps."""
        if left == 0.0 or right == 0.0:
            return np.asarray(sides[1] if left == 0.0 else sides[0])
        # Compared in units of the noise.
        weights = np.concatenate(
            [np.nan_to_num(1.0 / self.deviation(block, whole=True)) for block in self.blocks]
        )
        sizes = np.linalg.norm(sides * weights, axis=1)
        if np.linalg.norm((sides[1] - sides[0]) * weights) > _JUMP * sizes.min():
            return np.asarray(sides[int(np.argmin(sizes))])
        return np.asarray((left * sides[0] + right * sides[1]) / (left + right))

    def set_steps(self, errors: np.ndarray) -> None:
        """Set the steps of differences to standard errors, of all or free ones, within limits."""
        sizes = self.sizes[self.free]
        mine = errors if errors.size == self.free.size else errors[self.free]
        self.steps[self.free] = np.clip(
            _STEP_SHARE * mine, SHORTEST_STEP * sizes, _LONGEST_STEP * sizes
        )

    # --- weighting

    def deviation(self, block: Block, whole: bool = False) -> np.ndarray:
        """Return the deviation of the fitted rows of a block, or of all."""
        found = np.where(
            np.isnan(block.deviation), self.levels.get(block.signal, 1.0), block.deviation
        ) / np.sqrt(self.shares.get((block.recording, block.signal), 1.0))
        return np.asarray(found if whole else found[block.fitted])

    def residuals(self, parts: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Return the weighted residuals of the fitted rows of all blocks."""
        found = []
        for block, part in zip(self.blocks, parts, strict=True):
            use = block.fitted
            deviation = self.deviation(block)
            error = block.values[use] - part[use]
            offset = 0.0
            if block.offset and use.any():
                offset = float(np.average(error, weights=deviation**-2.0))
            found.append((error - offset) / deviation)
        return found

    def costs(self, points: Sequence[np.ndarray]) -> list[float]:
        """Return -2 times the log-likelihood at some points, noise unknown; inf: no prediction."""
        found = []
        for parts in self._predictions(points, [None] * len(points)):
            total = math.inf if parts is None else 0.0
            for block, part in zip(
                self.blocks, self.residuals(parts) if parts else (), strict=False
            ):
                floor = self.problem.floors.get(block.signal, 0.0)
                error = part * self.deviation(block)
                if error.size:
                    level = max(float(error @ error) / error.size, floor**2, 1e-300)
                    total += error.size * math.log(level)
            found.append(total if math.isfinite(total) else math.inf)
        return found

    def squares(self, points: Sequence[np.ndarray]) -> list[float]:
        """Return the sums of squares at some points, prior included; inf: no prediction."""
        found = []
        for x, parts in zip(points, self._predictions(points, [None] * len(points)), strict=True):
            total = math.inf if parts is None else float(np.sum(self._with_prior(x, parts) ** 2))
            found.append(total if math.isfinite(total) else math.inf)
        return found

    def weighted(self, x: np.ndarray) -> np.ndarray:
        """Return all weighted residuals, those of the prior last; NaN without a prediction."""
        parts = self.predicted(x)
        if parts is None:
            return np.full(self.rows + self.prior_mean.size, np.nan)
        residuals = self._with_prior(x, parts)
        cost = float(residuals @ residuals)
        if cost < self.least:
            self.least, self.best = cost, x.copy()
        return residuals

    def _with_prior(self, x: np.ndarray, parts: Sequence[np.ndarray]) -> np.ndarray:
        """Return the weighted residuals of predictions, and those of the prior."""
        prior = self.prior_root @ (self.prior_mean - x[self.prior_columns])
        return np.concatenate([*self.residuals(parts), prior])

    def weighted_derivatives(self, derivatives: np.ndarray) -> np.ndarray:
        """Return the derivatives of :meth:`weighted` from those of all predicted rows."""
        found, row = [], 0
        for block in self.blocks:
            part = derivatives[row : row + block.rows.size][block.fitted]
            row += block.rows.size
            deviation = self.deviation(block)[:, None]
            if block.offset and len(part):
                part = part - np.average(part, axis=0, weights=deviation[:, 0] ** -2.0)
            found.append(-part / deviation)
        prior = np.zeros((self.prior_mean.size, derivatives.shape[1]))
        prior[:, self.prior_columns] = -self.prior_root
        return np.concatenate([*found, prior])

    def first_levels(self, x: np.ndarray) -> None:
        """Set unknown noise levels to the residuals at the start; raises LongreachError."""
        parts = self.predicted(x)
        if parts is None:
            why = self.reason or 'a predicted value is not finite'
            raise LongreachError(f'there is no prediction at the start: {why}')
        self.update_levels(x)
        self.least = math.inf

    def update_levels(self, x: np.ndarray, robust: bool = False) -> bool:
        """Estimate unknown noise levels, and weights of outliers; return whether they changed."""
        parts = self.predicted(x)
        assert parts is not None
        errors = [
            part * self.deviation(block)
            for block, part in zip(self.blocks, self.residuals(parts), strict=True)
        ]
        share = self.free.size / self.rows
        changed = False
        for signal in {block.signal for block in self.blocks}:
            known, count, size = [np.zeros(0)], 0.0, 0.0
            for block, error in zip(self.blocks, errors, strict=True):
                unknown = np.isnan(block.deviation[block.fitted])
                if block.signal == signal and unknown.any():
                    known.append(error[unknown])
                    # Each offset takes one row, and the unknowns their share of all rows.
                    count += known[-1].size * max(0.0, 1.0 - share) - block.offset
                    size = max(size, float(np.abs(block.values).max()))
            every = np.concatenate(known)
            if size == 0.0 and not every.any():
                continue
            level = math.sqrt(float(every @ every) / max(count, 1.0))
            if robust:
                level = float(np.median(np.abs(every))) / _MEDIAN
            # Not zero, even if a prediction is exact.
            level = max(level, self.problem.floors.get(signal, 0.0), 1e-9 * size)
            before = self.levels.get(signal)
            if before is None or abs(level - before) > _LEVEL_CHANGE * before:
                changed = True
            self.levels[signal] = level
        for block, error in zip(self.blocks if robust else (), errors, strict=False):
            key = block.recording, block.signal
            before_shares = self.shares.pop(key, np.ones(block.rows.size))
            shares = np.ones(block.rows.size)
            far = np.abs(error) / self.deviation(block) / _OUTLIER
            shares[block.fitted] = 1.0 / np.maximum(far, 1.0)
            changed = changed or float(np.abs(shares - before_shares).max()) > _LEVEL_CHANGE
            self.shares[key] = shares
        if changed:
            self.least = math.inf
        return changed

    def solve(
        self, x: np.ndarray, free: np.ndarray, iterations: int, tolerance: float
    ) -> tuple[np.ndarray, str]:
        """Return the best values from ``x`` on, those of others than ``free`` kept, and status."""
        from scipy.optimize import least_squares

        size, lowest, highest = self.sizes[free], self.lowest[free], self.highest[free]
        begin = x[free] / size

        def whole(part: np.ndarray) -> np.ndarray:
            full = x.copy()
            full[free] = np.clip(part * size, lowest, highest)
            return full

        def derivatives(part: np.ndarray) -> np.ndarray:
            every = free.size == self.free.size
            found = self.jacobian(whole(part), None if every else free) * size
            return np.concatenate([found, _ANCHOR * np.eye(free.size)])

        def residuals(part: np.ndarray) -> np.ndarray:
            return np.concatenate([self.weighted(whole(part)), _ANCHOR * (part - begin)])

        found = least_squares(
            residuals,
            begin,
            derivatives,
            (lowest / size, highest / size),
            x_scale='jac',
            ftol=tolerance,
            xtol=tolerance,
            gtol=None,
            max_nfev=iterations,
        )
        return whole(found.x), CONVERGED if found.status > 0 else STOPPED


def _blocks(problem: Problem) -> list[Block]:
    """Return the signals of all recordings; raises InputError."""
    blocks = []
    for number, recording in enumerate(problem.recordings):
        for name, signal in recording.signals.items():
            rows = np.flatnonzero(np.isfinite(signal.values) & np.isfinite(signal.times))
            deviation = signal.deviation[rows]
            if (deviation <= 0.0).any() or np.isinf(deviation).any():
                raise InputError(
                    f'the deviation of {name} in {recording.name} is'
                    f' {deviation[(deviation <= 0.0) | np.isinf(deviation)][0]}, allowed: above 0,'
                    ' or NaN when it is unknown'
                )
            fitted = np.full(rows.size, recording.name not in problem.validation)
            offset = any(fnmatchcase(name, pattern) for pattern in problem.offsets)
            blocks.append(
                Block(number, name, rows, fitted, signal.values[rows], deviation, offset)
            )
    return blocks
