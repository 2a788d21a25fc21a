"""
The search for the smallest sum of squares: predictions, derivatives, weights and steps.

Predictions with stick and slip have jumps. Derivatives are differences with steps of a hundredth
of a standard error; where those to both sides do not agree, one contains a jump, and the smaller
one is taken.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from tqdm import tqdm

from longreach_dynamics.errors import InputError, LongreachError
from longreach_dynamics.parallel import keep_workers, run_jobs
from longreach_identification.covariance import inverse_of, inverse_root
from longreach_identification.machine import matches

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
CONVERGED, INTERRUPTED, STOPPED = 'converged', 'interrupted', 'not converged'


class Block(NamedTuple):
    """One signal of one recording."""

    recording: int
    signal: str
    name: tuple[str, str]  # of recording and signal
    size: int  # rows of the signal
    rows: np.ndarray  # indices of its finite rows
    place: slice  # of these among the rows of all blocks
    times: np.ndarray  # (rows,) [s]
    values: np.ndarray  # (rows,)
    deviation: np.ndarray  # (rows,); NaN: unknown
    fitted: bool
    offset: bool


class SignalFit(NamedTuple):
    """How well a signal is predicted, over all recordings; NaN without rows."""

    rows: int  # fitted
    rms: float  # of the residuals, in the unit of the signal
    variance_explained: float  # 1 - variance of the residuals / variance of the signal
    deviation: float  # of the noise: as given, or as estimated
    validation_rows: int
    validation_rms: float


def _run(job: tuple[Predict, int, dict[str, float]]) -> dict[str, np.ndarray] | str:
    """Return the predicted signals of a recording, or the message of a LongreachError."""
    predict, recording, values = job
    try:
        return {n: np.asarray(v, dtype=float) for n, v in predict(recording, values).items()}
    except LongreachError as error:
        return str(error)


@contextlib.contextmanager
def searching(
    problem: Problem,
    processes: int | None = 1,
    cluster: str | None = None,
    progress: bool | None = False,
) -> Iterator[Search]:
    """Yield a search with workers, see :func:`longreach_dynamics.parallel.run_jobs`."""
    hidden = None if progress is None else not progress
    with keep_workers(), tqdm(disable=hidden, unit='run') as bar:
        yield Search(problem, bar, processes, cluster)


class Search:
    """The state of an estimation."""

    def __init__(
        self, problem: Problem, bar: Any, processes: int | None = 1, cluster: str | None = None
    ) -> None:
        self.problem, self.bar, self.processes, self.cluster = problem, bar, processes, cluster
        self.blocks = _blocks(problem)
        self.fitted = [block for block in self.blocks if block.fitted]
        self.rows = sum(block.rows.size for block in self.fitted)
        if self.rows == 0:
            raise InputError(
                'the recordings have no finite row to fit; check their signals and validation'
            )
        self.unknowns = tuple(unknown.inner() for unknown in problem.unknowns)
        self.logarithmic, considered = np.array(
            [(unknown.logarithmic, unknown.considered) for unknown in problem.unknowns]
        ).T
        self.free, self.considered = np.flatnonzero(~considered), np.flatnonzero(considered)
        self.sizes = np.array([unknown.size for unknown in self.unknowns])
        self.lowest, self.highest, self.best = np.array(
            [(u.lowest, u.highest, u.start) for u in self.unknowns], dtype=float
        ).T.copy()
        self.least = math.inf
        self.levels: dict[str, float] = {}
        self.shares = np.ones(sum(block.rows.size for block in self.blocks))  # weights of rows
        self.owners = np.concatenate([np.full(b.rows.size, b.recording) for b in self.blocks])
        self.steps = FIRST_STEP * self.sizes
        self.derivatives: np.ndarray | None = None  # of all rows of all blocks, not weighted
        self.evaluations = 0
        self.known: dict[bytes, np.ndarray] = {}
        self.reason = ''
        # Of the estimated unknowns, and the covariance of these with those that are considered.
        names, prior = problem.names, problem.prior
        estimated = [names[j] for j in self.free]
        used = [name for name in prior.names if name in estimated]
        rows = [prior.names.index(name) for name in used]
        self.prior_columns = np.array([names.index(n) for n in used], dtype=int)
        self.prior_mean = prior.mean[rows]
        self.prior_root = inverse_root(prior.covariance[np.ix_(rows, rows)], used)
        rows += [prior.names.index(names[j]) for j in self.considered]
        self.prior_covariance = prior.covariance[np.ix_(rows, rows)]
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

    def _predictions(
        self, points: Sequence[np.ndarray], which: Sequence[int | None] = ()
    ) -> list[Any]:
        """Return predictions of all rows, or of one recording (others 0), by point, or None."""
        problem = self.problem
        jobs, owners = [], []
        for k, (point, only) in enumerate(zip(points, which or [None] * len(points), strict=True)):
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
        found: list[Any] = [np.zeros(self.shares.size) for _ in points]
        for job, k, outcome in zip(jobs, owners, outcomes, strict=True):
            if isinstance(outcome, str):
                self.reason, found[k] = outcome, None
            elif found[k] is not None:
                for block in self.blocks:
                    if block.recording == job[1]:
                        found[k][block.place] = self._of_block(block, outcome)
        return found

    def _of_block(self, block: Block, outcome: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return the predicted finite rows of a block."""
        shown = outcome.get(block.signal)
        if shown is None or shown.shape != (block.size,):
            got = 'nothing' if shown is None else shown.shape
            raise InputError(
                f'the prediction of {block.signal} in {block.name[0]} has {got}, allowed: the'
                f' shape of its times, ({block.size},)'
            )
        return np.asarray(shown[block.rows])

    def predicted(self, x: np.ndarray) -> np.ndarray | None:
        """Return the predictions of all rows, or None when there are none."""
        key = x.tobytes()
        if key not in self.known:
            (found,) = self._predictions([x])
            if found is None or not np.isfinite(found).all():
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

    def settled(self, x: np.ndarray) -> np.ndarray:
        """Return the weighted derivatives by all, with steps that belong to standard errors."""
        self.jacobian(x)
        self.jacobian(x)
        assert self.derivatives is not None
        if self.considered.size:
            self.derivatives += self._derivatives(x, self.considered)
        return self.weighted_derivatives(self.derivatives)

    def _derivatives(self, x: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Return the derivatives of all rows by some unknowns, 0 for others."""
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
                widths.append(float(end - x[j]))
        found = self._predictions(points, numbers)
        here = self.predicted(x)
        assert here is not None
        derivatives = np.zeros((here.size, len(self.unknowns)))
        # Differences are compared in units of the noise.
        weights = np.concatenate([np.nan_to_num(1.0 / self.deviation(b)) for b in self.blocks])
        for k, j in enumerate(columns.tolist()):
            pairs = zip(found[2 * k : 2 * k + 2], widths[2 * k : 2 * k + 2], strict=True)
            sides = [(there, width) for there, width in pairs if there is not None and width]
            if not sides:
                raise LongreachError(
                    f'there is no prediction for {self.unknowns[j].name} near {x[j]:g}:'
                    f' {self.reason}'
                )
            only = self.unknowns[j].recording
            own = self.owners == only if only is not None else True
            slopes = np.array(
                [np.where(own, (there - here) / width, 0.0) for there, width in sides]
            )
            reach = np.abs([width for _, width in sides])
            sizes = np.linalg.norm(slopes * weights, axis=1)
            if np.linalg.norm((slopes[-1] - slopes[0]) * weights) > _JUMP * sizes.min():
                derivatives[:, j] = slopes[int(np.argmin(sizes))]
            else:
                derivatives[:, j] = reach @ slopes / reach.sum()
        return derivatives

    def set_steps(self, errors: np.ndarray) -> None:
        """Set the steps of differences to standard errors of what is free, within limits."""
        sizes = self.sizes[self.free]
        self.steps[self.free] = np.clip(
            _STEP_SHARE * errors, SHORTEST_STEP * sizes, _LONGEST_STEP * sizes
        )

    # --- weighting

    def deviation(self, block: Block) -> np.ndarray:
        """Return the deviation of the rows of a block."""
        level = self.levels.get(block.signal, 1.0)
        found = np.where(np.isnan(block.deviation), level, block.deviation)
        return np.asarray(found / np.sqrt(self.shares[block.place]))

    def offset(self, block: Block, part: np.ndarray) -> float:
        """Return the constant of a predicted block; one for validation has its own."""
        if not block.offset or not part.size:
            return 0.0
        weights = self.deviation(block) ** -2.0 if block.fitted else None
        return float(np.average(block.values - part, weights=weights))

    def residuals(self, predicted: np.ndarray) -> list[np.ndarray]:
        """Return the weighted residuals of all fitted blocks."""
        found = []
        for block in self.fitted:
            part = predicted[block.place]
            error = block.values - part - self.offset(block, part)
            found.append(error / self.deviation(block))
        return found

    def scores(
        self, points: Sequence[np.ndarray], score: Callable[[np.ndarray, np.ndarray], float]
    ) -> list[float]:
        """Return a score of the predictions at some points; inf without a prediction."""
        found = [
            math.inf if predicted is None else score(x, predicted)
            for x, predicted in zip(points, self._predictions(points), strict=True)
        ]
        return [value if math.isfinite(value) else math.inf for value in found]

    def unlikely(self, _: np.ndarray, predicted: np.ndarray) -> float:
        """Return -2 times the log-likelihood of predictions, noise unknown: a score."""
        total = 0.0
        for block, part in zip(self.fitted, self.residuals(predicted), strict=True):
            error = part * self.deviation(block)
            if error.size:
                floor = self.problem.floors.get(block.signal, 0.0)
                level = max(float(error @ error) / error.size, floor**2, 1e-300)
                total += error.size * math.log(level)
        return total

    def squares(self, x: np.ndarray, predicted: np.ndarray) -> float:
        """Return the sum of squares of predictions at a point, prior included: a score."""
        return float(np.sum(self._with_prior(x, predicted) ** 2))

    def weighted(self, x: np.ndarray) -> np.ndarray:
        """Return all weighted residuals, those of the prior last; NaN without a prediction."""
        predicted = self.predicted(x)
        if predicted is None:
            return np.full(self.rows + self.prior_mean.size, np.nan)
        residuals = self._with_prior(x, predicted)
        cost = float(residuals @ residuals)
        if cost < self.least:
            self.least, self.best = cost, x.copy()
        return residuals

    def _with_prior(self, x: np.ndarray, predicted: np.ndarray) -> np.ndarray:
        """Return the weighted residuals of predictions, and those of the prior."""
        prior = self.prior_root @ (self.prior_mean - x[self.prior_columns])
        return np.concatenate([*self.residuals(predicted), prior])

    def weighted_derivatives(self, derivatives: np.ndarray) -> np.ndarray:
        """Return the derivatives of :meth:`weighted` from those of all predicted rows."""
        found = []
        for block in self.fitted:
            part, deviation = derivatives[block.place], self.deviation(block)
            if block.offset and len(part):
                part = part - np.average(part, axis=0, weights=deviation**-2.0)
            found.append(-part / deviation[:, None])
        prior = np.zeros((self.prior_mean.size, derivatives.shape[1]))
        prior[:, self.prior_columns] = -self.prior_root
        return np.concatenate([*found, prior])

    def by_block(self, weighted: np.ndarray) -> list[np.ndarray]:
        """Return the rows of each fitted block, and those of the prior last."""
        return np.split(weighted, np.cumsum([block.rows.size for block in self.fitted]))

    def fits(
        self, rows: np.ndarray
    ) -> tuple[dict[str, SignalFit], dict[tuple[str, str], np.ndarray]]:
        """Return fit by signal, and predicted rows with offsets by recording and signal."""
        predicted: dict[tuple[str, str], np.ndarray] = {}
        errors: dict[str, list[tuple[Block, np.ndarray]]] = {}
        for block in self.blocks:
            part, predicted[block.name] = rows[block.place], np.full(block.size, np.nan)
            offset = self.offset(block, part)
            predicted[block.name][block.rows] = part + offset
            errors.setdefault(block.signal, []).append((block, block.values - part - offset))
        fits = {}
        for signal, own in errors.items():
            fitted, others = (
                [error for block, error in own if block.fitted == one] for one in (True, False)
            )
            used = [block for block, _ in own if block.fitted and block.rows.size]
            level = [self.deviation(block) for block in used]
            moved = squares_of([block.values - block.values.mean() for block in used])
            with np.errstate(invalid='ignore', divide='ignore'):
                explained = float(1.0 - np.divide(squares_of(fitted), moved))
            count, more = (sum(error.size for error in part) for part in (fitted, others))
            fits[signal] = SignalFit(count, rms(fitted), explained, rms(level), more, rms(others))
        return fits, predicted

    def first_levels(self, x: np.ndarray) -> None:
        """Set unknown noise levels to the residuals at the start; raises LongreachError."""
        if self.predicted(x) is None:
            why = self.reason or 'a predicted value is not finite'
            raise LongreachError(f'there is no prediction at the start: {why}')
        self.update_levels(x)
        self.least = math.inf

    def update_levels(self, x: np.ndarray, robust: bool = False) -> bool:
        """Estimate unknown noise levels, and weights of outliers; return whether they changed."""
        predicted = self.predicted(x)
        assert predicted is not None
        errors = [
            part * self.deviation(block)
            for block, part in zip(self.fitted, self.residuals(predicted), strict=True)
        ]
        share = self.free.size / self.rows
        changed = False
        for signal in {block.signal for block in self.fitted}:
            known, count, size = [np.zeros(0)], 0.0, 0.0
            for block, error in zip(self.fitted, errors, strict=True):
                unknown = np.isnan(block.deviation)
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
        if robust:
            before_shares, self.shares = self.shares, np.ones_like(self.shares)
            for block, error in zip(self.fitted, errors, strict=True):
                far = np.abs(error) / self.deviation(block) / _OUTLIER
                self.shares[block.place] = 1.0 / np.maximum(far, 1.0)
            changed |= bool(np.abs(self.shares - before_shares).max() > _LEVEL_CHANGE)
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
    blocks: list[Block] = []
    for number, recording in enumerate(problem.recordings):
        for name, signal in recording.signals.items():
            rows = np.flatnonzero(np.isfinite(signal.values) & np.isfinite(signal.times))
            deviation = signal.deviation[rows]
            wrong = deviation[(deviation <= 0.0) | np.isinf(deviation)]
            if wrong.size:
                raise InputError(
                    f'the deviation of {name} in {recording.name} is {wrong[0]}, allowed: above 0,'
                    ' or NaN when it is unknown'
                )
            first = blocks[-1].place.stop if blocks else 0
            place = slice(first, first + rows.size)
            shape = (recording.name, name), len(signal.times), rows, place
            fitted, offset = (
                recording.name not in problem.validation,
                matches(name, problem.offsets),
            )
            shown = signal.times[rows], signal.values[rows], deviation
            blocks.append(Block(number, name, *shape, *shown, fitted, offset))
    return blocks


def squares_of(parts: Sequence[np.ndarray]) -> float:
    """Return the sum of squares."""
    return sum(float(np.sum(part**2)) for part in parts)


def rms(parts: Sequence[np.ndarray]) -> float:
    """Return the root mean square; NaN of nothing."""
    rows = sum(part.size for part in parts)
    return math.sqrt(squares_of(parts) / rows) if rows else math.nan
