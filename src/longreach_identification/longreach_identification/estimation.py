"""
Weighted nonlinear least squares over several measured signals, with standard errors.

The estimate minimises

    sum over all rows of ((measured - predicted(p) - offset) / deviation)^2
    + (p - m)^T C^-1 (p - m),

the second term for a Gaussian prior with mean m and covariance C, such as the result of an earlier
estimation. An offset is one unknown constant of a signal in a recording. It enters linearly, so
that it is eliminated: residuals and their derivatives lose their weighted mean.

Standard errors. With J the derivatives of the weighted residuals and Gamma their covariance, the
covariance of the estimate is

    H^-1 (J^T Gamma J + C^-1) H^-1,   H = J^T J + C^-1.

Residuals of recordings are correlated in time, and Gamma = 1 would promise too much. It is the
covariance of an autoregressive model of each signal's residuals (Burg's method, order by Akaike's
criterion), and J^T Gamma J is computed from its spectrum by the fast Fourier transform (Ljung,
"System identification", 1999, section 9.4, has the same covariance for output errors with coloured
noise). The rows of a signal are taken as equally spaced. Of signals with few rows, such as those
of poses at rest, the rows are independent, and correlated with those of other signals at the same
time.

Predictions with stick and slip have jumps: a small change decides whether a piston slips once
more. Between them they are smooth, and standard errors are those of the smooth part. Derivatives
are differences with steps of a tenth of a standard error; where those to both sides do not agree,
one contains a jump, and the smaller one is taken. A search may end where jumps surround a minimum.
Points scattered around the result by some standard errors then find a lower one, from which the
search goes on. They also tell how uncertain jumps make the estimate: with the difference e between
a point's weighted residuals and their linear extrapolation, H^-1 J^T e is by how much the jumps on
the way move the estimate, and its mean square is added to the covariance.

What is known before and not estimated, such as dimensions, counts in the errors of all that is:
with the unknowns p, the considered parameters g, their joint prior covariance C, the information W
of the marginal prior of p, and A = [W, -J_p^T J_g], the term C^-1 above becomes A C A^T (Schmidt's
consider filter). Positive parameters that data may hardly tell are estimated as logarithms.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

import numpy as np
from tqdm import tqdm

from longreach_dynamics.errors import InputError, LongreachError
from longreach_dynamics.parallel import keep_workers, run_jobs
from longreach_identification.machine import Recording

# Predicts the signals of a recording, by its number, for the values of all unknowns: for each of
# its signals an array like its times. It is sent to processes: an object of a class, or a function
# of a module. LongreachError: there is no prediction for these values.
Predict = Callable[[int, Mapping[str, float]], Mapping[str, np.ndarray]]

CONVERGED, INTERRUPTED, STOPPED = 'converged', 'interrupted', 'not converged'

# Steps of differences: share of a standard error; and relative to typical sizes of unknowns the
# first, the shortest, the longest.
_STEP_SHARE, _FIRST_STEP, _SHORTEST_STEP, _LONGEST_STEP = 0.1, 1e-4, 1e-6, 1e-2
# Differences to both sides that differ by more than this share have a jump between them.
_JUMP = 0.3
# Points scattered around a result: nearest and furthest distance in standard deviations, and how
# often they may begin a new search.
_SCATTER, _MOST_SCATTERS = (0.3, 10.0), 3
# Change of chi-square by jumps within one standard deviation from which a result is called rugged.
_RUGGED = 10.0
# Shortest signal whose residuals' correlation is estimated, and the highest order of its model.
_FEWEST_ROWS, _HIGHEST_ORDER = 40, 30
# Fewest rows from which a correlation between signals is estimated.
_FEWEST_SHARED = 8
# Rounds in which unknown noise levels are estimated, and their change that ends them.
_MOST_ROUNDS, _LEVEL_CHANGE = 5, 0.02
# Warned about: standard deviation of a combination relative to the scales, residuals relative to
# their given deviation.
_WEAKEST, _LARGEST_RATIO = 0.2, 3.0
# Likewise relative to the noise from row to row, where no deviation is given: noise of first order
# with a correlation of 0.98 has this ratio. Residuals below this share of a signal are rounding.
_LARGEST_WAVE, _ROUNDING = 5.0, 1e-6
# Inverse of the standard deviation, in typical sizes, with which a search knows where it began:
# without it SciPy's trust region prolongs the steps of a singular Jacobian, as of an unknown
# without any effect, to its whole radius, which ends at bounds far from the solution.
_ANCHOR = 1e-4
# Singular values of derivatives with columns of length 1 that count as 0.
_SINGULAR = 1e-8


class Unknown(NamedTuple):
    """
    A number to estimate.

    The prior of a ``logarithmic`` one is that of its logarithm, which is estimated. A
    ``considered`` one, which needs a prior, keeps its start, and its error counts in those of the
    others.
    """

    name: str
    start: float
    lowest: float = -math.inf  # bounds of the search
    highest: float = math.inf
    scale: float = 0.0  # typical size; 0: that of the start, or 1 for a start of 0
    recording: int | None = None  # number of the only one that it concerns; None: all
    logarithmic: bool = False
    considered: bool = False

    @property
    def size(self) -> float:
        """Return the typical size."""
        return self.scale or abs(self.start) or 1.0

    def inner(self) -> Unknown:
        """Return the number that the search changes: of a logarithmic unknown its logarithm."""
        if not self.logarithmic:
            return self
        start, low, high = (math.log(value) for value in (self.start, self.lowest, self.highest))
        return self._replace(start=start, lowest=low, highest=high, scale=1.0)


class Prior(NamedTuple):
    """What is known about some unknowns before: a Gaussian distribution."""

    names: tuple[str, ...]
    mean: np.ndarray  # (names,)
    covariance: np.ndarray  # (names, names)


@dataclasses.dataclass(frozen=True)
class Problem:
    """
    What is to be estimated from which recordings.

    Parameters
    ----------
    predict : callable
        See ``Predict``.
    recordings : sequence of Recording
        Rows that are not finite are left out.
    unknowns : sequence of Unknown
    prior : Prior, optional
        May name quantities that are not unknown; they are left out.
    offsets : sequence of str
        Patterns such as ``strain_*``: signals with an unknown constant in each recording.
    validation : sequence of str
        Names of recordings that are not fitted, but predicted for comparison.
    floors : mapping of str to float
        Lowest noise level that may be estimated, by signal, such as the error of rounding:
        readings that stay on one level of a quantised signal show no noise.

    Raises
    ------
    InputError
        For unknowns outside their bounds, and for names that are unknown or given twice.
    """

    predict: Predict
    recordings: Sequence[Recording]
    unknowns: Sequence[Unknown]
    prior: Prior | None = None
    offsets: Sequence[str] = ()
    validation: Sequence[str] = ()
    floors: Mapping[str, float] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check all."""
        names = self.names
        if not names:
            raise InputError('there is no unknown, allowed: at least one')
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise InputError(f'unknowns has {", ".join(twice)} more than once')
        for unknown in self.unknowns:
            if not unknown.lowest < unknown.highest:
                raise InputError(
                    f'{unknown.name} has the bounds [{unknown.lowest:g}, {unknown.highest:g}],'
                    ' allowed: the lower one below the upper one'
                )
            if not unknown.lowest <= unknown.start <= unknown.highest:
                raise InputError(
                    f'{unknown.name} = {unknown.start:g} at the start, allowed:'
                    f' [{unknown.lowest:g}, {unknown.highest:g}]'
                )
            if unknown.logarithmic and not unknown.lowest > 0.0:
                raise InputError(
                    f'{unknown.name} is estimated as a logarithm, with the lower bound'
                    f' {unknown.lowest:g}, allowed: above 0'
                )
            if unknown.considered and unknown.name not in (self.prior.names if self.prior else ()):
                raise InputError(f'{unknown.name} is not estimated and has no prior; give one')
        given = [recording.name for recording in self.recordings]
        for name in self.validation:
            if name not in given:
                raise InputError(f'validation = {name!r}, allowed: {" | ".join(given)}')
        if self.prior is not None:
            count = len(self.prior.names)
            if self.prior.mean.shape != (count,) or self.prior.covariance.shape != (count, count):
                raise InputError(
                    f'the prior has {count} names, a mean of shape {self.prior.mean.shape} and a'
                    f' covariance of shape {self.prior.covariance.shape}'
                )

    @property
    def names(self) -> list[str]:
        """Return the names of the unknowns."""
        return [unknown.name for unknown in self.unknowns]


class SignalFit(NamedTuple):
    """How well a signal is predicted, over all recordings; NaN without rows."""

    rows: int  # fitted
    rms: float  # of the residuals, in the unit of the signal
    variance_explained: float  # 1 - variance of the residuals / variance of the signal
    deviation: float  # of the noise: as given, or as estimated
    validation_rows: int
    validation_rms: float
    validation_variance_explained: float


class Estimate(NamedTuple):
    """
    Result of :func:`estimate`.

    ``weakest`` is the combination of unknowns that the data determine worst, relative to the
    inverse of their sensitivities; or relative to their typical sizes, where the condition is good
    and one is known poorly; ``prior_share`` the part of the information about each unknown
    that comes from the prior (1: the data say nothing).
    """

    names: tuple[str, ...]
    start: np.ndarray  # (names,)
    values: np.ndarray  # (names,)
    covariance: np.ndarray  # (names, names); infinite variances for what the data cannot tell
    prior_share: np.ndarray  # (names,)
    condition: float  # of the information matrix with ones on its diagonal
    weakest: dict[str, float]
    fit: dict[str, SignalFit]
    offsets: dict[tuple[str, str], float]  # by names of recording and signal
    predicted: dict[tuple[str, str], np.ndarray]  # at all times of the signal, with its offset
    chi_square: float  # of the fitted rows and the prior
    rows: int  # fitted
    aic: float  # Akaike's and the Bayesian information criterion, autocorrelation considered
    bic: float
    status: str  # CONVERGED, INTERRUPTED or STOPPED
    evaluations: int  # predictions of a recording
    warnings: tuple[str, ...]
    # Ratio of the variance of each unknown to the one for uncorrelated residuals.
    inflation: np.ndarray
    logarithmic: np.ndarray  # (names,) of bool: estimated as logarithms

    @property
    def standard_errors(self) -> np.ndarray:
        """Return the standard errors (names,)."""
        return np.sqrt(np.diag(self.covariance))

    @property
    def correlation(self) -> np.ndarray:
        """Return the correlation matrix (names, names); NaN where a variance is infinite."""
        errors = self.standard_errors
        with np.errstate(invalid='ignore', divide='ignore'):
            return np.asarray(self.covariance / np.outer(errors, errors))

    def value(self, name: str) -> float:
        """Return the value of an unknown."""
        return float(self.values[self.names.index(name)])

    def interval(self, name: str, level: float = 0.95) -> tuple[float, float]:
        """Return the confidence interval of an unknown, by Student's distribution."""
        from scipy.stats import t

        index = self.names.index(name)
        reach = float(t.ppf(0.5 + level / 2.0, max(1, self.rows - len(self.names))))
        reach *= float(self.standard_errors[index])
        value = float(self.values[index])
        if self.logarithmic[index]:
            factor = math.exp(min(reach / value, 700.0)) if not math.isnan(reach) else math.nan
            return value / factor, value * factor
        return value - reach, value + reach

    def propagated(self, function: Callable[[Mapping[str, float]], float]) -> tuple[float, float]:
        """Return a quantity derived from the unknowns, and its standard error."""

        def at(values: np.ndarray) -> float:
            return function(dict(zip(self.names, values.tolist(), strict=True)))

        gradient = np.zeros(len(self.names))
        for j, error in enumerate(self.standard_errors):
            size = abs(self.values[j]) or 1.0
            step = np.zeros(len(self.names))
            step[j] = min(error, _FIRST_STEP * size) or _SHORTEST_STEP * size
            gradient[j] = (at(self.values + step) - at(self.values - step)) / (2.0 * step[j])
        used = gradient != 0.0
        variance = gradient[used] @ self.covariance[np.ix_(used, used)] @ gradient[used]
        return at(self.values), math.sqrt(max(0.0, float(variance)))

    def prior(self, names: Sequence[str]) -> Prior:
        """Return the result for some unknowns as prior for another estimation."""
        index = [self.names.index(name) for name in names]
        values, logarithmic = self.values[index], self.logarithmic[index]
        scale = np.where(logarithmic, values, 1.0)
        covariance = self.covariance[np.ix_(index, index)] / np.outer(scale, scale)
        mean = values.copy()
        mean[logarithmic] = np.log(values[logarithmic])
        return Prior(tuple(names), mean, covariance)

    def to_dict(self) -> dict[str, Any]:
        """Return the result for JSON; None for numbers that are not finite."""
        errors = self.standard_errors
        return {
            'parameters': {
                name: {
                    'value': _number(self.values[j]),
                    'standard_error': _number(errors[j]),
                    'start': _number(self.start[j]),
                    'interval': [_number(end) for end in self.interval(name)],
                    'prior_share': _number(self.prior_share[j]),
                }
                for j, name in enumerate(self.names)
            },
            'fit': {
                name: {key: _number(value) for key, value in fit._asdict().items()}
                for name, fit in self.fit.items()
            },
            'warnings': list(self.warnings),
            'correlation': {
                'names': list(self.names),
                'matrix': [[_number(value) for value in row] for row in self.correlation],
            },
            'condition': _number(self.condition),
            'weakest': _words(self.weakest),
            'status': self.status,
            'chi_square': _number(self.chi_square),
            'rows': self.rows,
            'aic': _number(self.aic),
            'bic': _number(self.bic),
        }


class Profile(NamedTuple):
    """Profile likelihood of one unknown: the others are estimated anew for each of its values."""

    name: str
    values: np.ndarray  # (points,)
    # (points,) Increase of chi-square over its smallest value, corrected for autocorrelation: the
    # 95 % interval is where it is below 3.84.
    increase: np.ndarray


def estimate(
    problem: Problem,
    *,
    processes: int | None = 1,
    cluster: str | None = None,
    progress: bool | None = False,
    iterations: int = 30,
    tolerance: float = 1e-6,
    scatter: int = 0,
) -> Estimate:
    """
    Estimate the unknowns of a problem; on Ctrl-C return the best so far, status INTERRUPTED.

    ``iterations`` are for given noise levels, ``tolerance`` is the relative change of the sum of
    squares or of the unknowns that ends the search, ``scatter`` the number of points around a
    result, for predictions with jumps. LongreachError when there is no prediction at the start.
    """
    fit = _Fit(problem, processes, cluster)
    hidden = None if progress is None else not progress
    total = iterations * fit.runs_per_iteration
    with keep_workers(), tqdm(total=total, disable=hidden, unit='run') as bar:
        fit.bar = bar
        status = INTERRUPTED
        try:
            x = fit.best
            fit.first_levels(x)
            for _ in range(_MOST_ROUNDS):
                x, status = fit.solve(x, fit.free, iterations, tolerance)
                if not fit.update_levels(x):
                    break
            # With steps that belong to the standard errors here.
            fit.jacobian(x)
            fit.jacobian(x)
            for _ in range(_MOST_SCATTERS if scatter else 0):
                better = fit.scattered(x, scatter)
                if better is None:
                    break
                x, status = fit.solve(better, fit.free, iterations, tolerance)
                fit.update_levels(x)
                fit.jacobian(x)
            fit.consider(x)
        except KeyboardInterrupt:
            status = INTERRUPTED
            x = fit.best
    return fit.result(x, status)


def profile(
    problem: Problem,
    found: Estimate,
    name: str,
    *,
    points: int = 7,
    reach: float = 3.0,
    processes: int | None = 1,
    cluster: str | None = None,
    iterations: int = 10,
    tolerance: float = 1e-6,
) -> Profile:
    """
    Return the profile likelihood of an unknown over ``reach`` standard errors to both sides.

    InputError for an unknown name, and when its standard error is infinite.
    """
    if name not in found.names:
        raise InputError(f'profile of {name!r}, allowed: {" | ".join(found.names)}')
    index = found.names.index(name)
    fit = _Fit(problem, processes, cluster)
    best = fit.inner(found.values)
    errors = found.standard_errors / np.where(fit.logarithmic, found.values, 1.0)
    unknown, error = fit.unknowns[index], float(errors[index])
    if not 0.0 < error < math.inf:
        raise InputError(f'{name} has the standard error {error:g}: there is no range to profile')
    low = max(unknown.lowest, best[index] - reach * error)
    high = min(unknown.highest, best[index] + reach * error)
    fit.levels = {signal: row.deviation for signal, row in found.fit.items()}
    fit.set_steps(errors)
    grid = np.linspace(low, high, points)
    squares = np.empty(points)
    others = fit.free[fit.free != index]
    # From the middle outwards, each search begins where its neighbour ended.
    middle = int(np.argmin(np.abs(grid - best[index])))
    with keep_workers():
        for order in (range(middle, points), range(middle - 1, -1, -1)):
            x = best.copy()
            for k in order:
                x[index] = grid[k]
                if others.size:
                    x, _ = fit.solve(x, others, iterations, tolerance)
                squares[k] = np.sum(fit.weighted(x) ** 2)
    least = min(float(squares.min()), float(np.sum(fit.weighted(best) ** 2)))
    shown = np.exp(grid) if unknown.logarithmic else grid
    return Profile(name, shown, (squares - least) / found.inflation[index])


def information_of(
    problem: Problem,
    *,
    processes: int | None = 1,
    cluster: str | None = None,
    progress: bool | None = False,
) -> list[np.ndarray]:
    """
    Return the information matrix of each recording at the start values, without offsets.

    That of a logarithmic unknown is about its logarithm.

    The prior counts for the unknowns of single recordings only, each in its recording.
    """
    fit = _Fit(problem, processes, cluster)
    hidden = None if progress is None else not progress
    total = 2 * fit.runs_per_iteration
    with keep_workers(), tqdm(total=total, disable=hidden, unit='run') as bar:
        fit.bar = bar
        fit.first_levels(fit.best)
        # Once more with steps that belong to the standard errors.
        for _ in range(2):
            fit.jacobian(fit.best)
        weighted = fit.consider(fit.best)
    prior = weighted[fit.rows :].T @ weighted[fit.rows :]
    found = []
    for number in range(len(problem.recordings)):
        row, matrix = 0, np.zeros_like(prior)
        for block in fit.blocks:
            part = weighted[row : row + int(block.fitted.sum())]
            row += len(part)
            if block.recording == number:
                matrix += part.T @ part
        own = [j for j, unknown in enumerate(problem.unknowns) if unknown.recording == number]
        matrix[np.ix_(own, own)] += prior[np.ix_(own, own)]
        found.append(matrix)
    return found


# --- the search ------------------------------------------------------------------------------


class _Block(NamedTuple):
    """One signal of one recording."""

    recording: int
    signal: str
    rows: np.ndarray  # indices of finite rows
    fitted: np.ndarray  # (rows,) which of them are fitted
    values: np.ndarray  # (rows,)
    deviation: np.ndarray  # (rows,); NaN: unknown
    offset: bool


class _Job(NamedTuple):
    """A prediction of one recording."""

    predict: Predict
    recording: int
    values: dict[str, float]


def _run(job: _Job) -> dict[str, np.ndarray] | str:
    """Return the predicted signals, or the message of a LongreachError."""
    try:
        return {
            name: np.asarray(values, dtype=float)
            for name, values in job.predict(job.recording, job.values).items()
        }
    except LongreachError as error:
        return str(error)


class _Fit:
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
        self.best = np.array([unknown.start for unknown in self.unknowns], dtype=float)
        self.least = math.inf
        self.levels: dict[str, float] = {}
        self.steps = _FIRST_STEP * self.sizes
        self.derivatives: np.ndarray | None = None  # of all rows of all blocks, not weighted
        self.evaluations, self.bar = 0, tqdm(disable=True)
        self.known: dict[bytes, list[np.ndarray]] = {}
        self.reason = ''
        self.jumps: np.ndarray | None = None  # covariance due to jumps of predictions
        self.rugged = 0.0  # typical change of chi-square by jumps within a standard deviation
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
            self.prior_root = _inverse_root(problem.prior.covariance[np.ix_(rows, rows)], used)
            rows += [problem.prior.names.index(problem.names[j]) for j in self.considered]
            self.prior_covariance = problem.prior.covariance[np.ix_(rows, rows)]
            errors = np.sqrt(np.diag(self.prior_covariance))[len(used) :]
            self.steps[self.considered] = 0.3 * errors

    @property
    def runs_per_iteration(self) -> int:
        """Return the number of predictions for a step and its derivatives."""
        count = len(self.problem.recordings)
        return count + sum(
            2 * (count if self.unknowns[j].recording is None else 1) for j in self.free
        )

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
                jobs.append(_Job(problem.predict, number, values))
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
                if block.recording == job.recording and found[k] is not None:
                    found[k][b] = self._of_block(block, outcome)
        return found

    def _of_block(self, block: _Block, outcome: Mapping[str, np.ndarray]) -> np.ndarray:
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
        weighted = self._weighted_derivatives(derivatives)[:, columns]
        if which is None:
            self.derivatives = derivatives
            # Next time with steps of the size of the standard errors.
            self.set_steps(np.sqrt(np.diag(_inverse(weighted)[0])))
        return weighted

    def consider(self, x: np.ndarray) -> np.ndarray:
        """Return the weighted derivatives by all, those by what is not estimated added."""
        assert self.derivatives is not None
        if self.considered.size:
            self.derivatives += self._derivatives(x, self.considered)
        return self._weighted_derivatives(self.derivatives)

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
            [np.nan_to_num(1.0 / self._deviation(block, whole=True)) for block in self.blocks]
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
            _STEP_SHARE * mine, _SHORTEST_STEP * sizes, _LONGEST_STEP * sizes
        )

    # --- weighting

    def _deviation(self, block: _Block, whole: bool = False) -> np.ndarray:
        """Return the deviation of the fitted rows of a block, or of all."""
        given = block.deviation if whole else block.deviation[block.fitted]
        return np.where(np.isnan(given), self.levels.get(block.signal, 1.0), given)

    def _residuals(self, parts: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Return the weighted residuals of the fitted rows of all blocks."""
        found = []
        for block, part in zip(self.blocks, parts, strict=True):
            use = block.fitted
            deviation = self._deviation(block)
            error = block.values[use] - part[use]
            offset = 0.0
            if block.offset and use.any():
                offset = float(np.average(error, weights=deviation**-2.0))
            found.append((error - offset) / deviation)
        return found

    def weighted(self, x: np.ndarray) -> np.ndarray:
        """Return all weighted residuals, those of the prior last; NaN without a prediction."""
        parts = self.predicted(x)
        if parts is None:
            return np.full(self.rows + self.prior_mean.size, np.nan)
        residuals = np.concatenate(
            [
                *self._residuals(parts),
                self.prior_root @ (self.prior_mean - x[self.prior_columns]),
            ]
        )
        cost = float(residuals @ residuals)
        if cost < self.least:
            self.least, self.best = cost, x.copy()
        return residuals

    def _weighted_derivatives(self, derivatives: np.ndarray) -> np.ndarray:
        """Return the derivatives of :meth:`weighted` from those of all predicted rows."""
        found, row = [], 0
        for block in self.blocks:
            part = derivatives[row : row + block.rows.size][block.fitted]
            row += block.rows.size
            deviation = self._deviation(block)[:, None]
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

    def update_levels(self, x: np.ndarray) -> bool:
        """Estimate unknown noise levels from residuals; return whether they changed."""
        parts = self.predicted(x)
        assert parts is not None
        residuals = self._residuals(parts)
        share = self.free.size / self.rows
        changed = False
        for signal in {block.signal for block in self.blocks}:
            total, count, size = 0.0, 0.0, 0.0
            for block, part in zip(self.blocks, residuals, strict=True):
                unknown = np.isnan(block.deviation[block.fitted])
                if block.signal == signal and unknown.any():
                    error = (part * self._deviation(block))[unknown]
                    total += float(error @ error)
                    # Each offset takes one row, and the unknowns their share of all rows.
                    count += error.size * max(0.0, 1.0 - share) - block.offset
                    size = max(size, float(np.abs(block.values).max()))
            if size == 0.0 and total == 0.0:
                continue
            # Not zero, even if a prediction is exact.
            floor = self.problem.floors.get(signal, 0.0)
            level = max(math.sqrt(total / max(count, 1.0)), floor, 1e-9 * size)
            before = self.levels.get(signal)
            if before is None or abs(level - before) > _LEVEL_CHANGE * before:
                changed = True
            self.levels[signal] = level
        if changed:
            self.least = math.inf
        return changed

    def solve(
        self, x: np.ndarray, free: np.ndarray, iterations: int, tolerance: float
    ) -> tuple[np.ndarray, str]:
        """Return the best values from ``x`` on, those of others than ``free`` kept, and status."""
        from scipy.optimize import least_squares

        unknowns = [self.unknowns[j] for j in free]
        size = self.sizes[free]
        begin = x[free] / size

        def whole(part: np.ndarray) -> np.ndarray:
            full = x.copy()
            full[free] = np.clip(
                part * size, [u.lowest for u in unknowns], [u.highest for u in unknowns]
            )
            return full

        def derivatives(part: np.ndarray) -> np.ndarray:
            every = free.size == self.free.size
            found = self.jacobian(whole(part), None if every else free) * size
            return np.concatenate([found, _ANCHOR * np.eye(free.size)])

        def residuals(part: np.ndarray) -> np.ndarray:
            return np.concatenate([self.weighted(whole(part)), _ANCHOR * (part - begin)])

        bounds = (
            [u.lowest / s for u, s in zip(unknowns, size, strict=True)],
            [u.highest / s for u, s in zip(unknowns, size, strict=True)],
        )
        found = least_squares(
            residuals,
            begin,
            derivatives,
            bounds,
            x_scale='jac',
            ftol=tolerance,
            xtol=tolerance,
            gtol=None,
            max_nfev=iterations,
        )
        return whole(found.x), CONVERGED if found.status > 0 else STOPPED

    def scattered(self, x: np.ndarray, count: int) -> np.ndarray | None:
        """Return the best of points scattered around a result, None when all are worse."""
        assert self.derivatives is not None
        free = self.free
        weighted = self._weighted_derivatives(self.derivatives)[:, free]
        inverse = _inverse(weighted)[0]
        inverse = np.where(np.isfinite(inverse), inverse, 0.0)
        values, vectors = np.linalg.eigh(inverse)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        # Always the same points: the result must not depend on chance.
        draws = np.random.default_rng(count).standard_normal((count, free.size))
        # Chi-square of a smooth problem would rise by the square of these distances.
        draws /= np.linalg.norm(draws, axis=1, keepdims=True)
        distances = np.geomspace(*_SCATTER, count)
        draws *= distances[:, None]
        low, high = np.array([(u.lowest, u.highest) for u in self.unknowns])[free].T
        points = np.tile(x, (count, 1))
        points[:, free] = np.clip(x[free] + draws @ root.T, low, high)
        found = self._predictions(list(points), [None] * count)
        here = self.weighted(x)
        best, least = None, float(here @ here)
        moves, near = [], []
        for point, parts, distance in zip(points, found, distances, strict=True):
            if parts is None or not all(np.isfinite(part).all() for part in parts):
                continue
            self.known[point.tobytes()] = parts
            residuals = self.weighted(point)
            cost = float(residuals @ residuals)
            if cost < least:
                best, least = point, cost
            jump = residuals - here - weighted @ (point - x)[free]
            moves.append(inverse @ (weighted.T @ jump))
            if distance <= 1.0:
                near.append(float(jump @ jump))
        self.rugged = float(np.median(near)) if near else 0.0
        self.jumps = np.mean([np.outer(move, move) for move in moves], axis=0) if moves else None
        return best

    # --- the result

    def result(self, x: np.ndarray, status: str) -> Estimate:
        """Return the result for some values."""
        problem, count = self.problem, len(self.problem.unknowns)
        parts = self.predicted(x)
        if parts is None:
            raise LongreachError('interrupted before the first prediction: there is no result')
        residuals = self._residuals(parts)
        deviation = self.prior_root @ (self.prior_mean - x[self.prior_columns])
        chi_square = sum(float(part @ part) for part in residuals) + float(deviation @ deviation)
        covariance = np.full((count, count), np.nan)
        plain, share = np.full(count, np.nan), np.zeros(count)
        condition, weakest, spread, criterion, extra = math.nan, {}, 0.0, math.nan, 0
        if self.derivatives is not None:
            free, names = self.free, [problem.names[j] for j in self.free]
            weighted = self._weighted_derivatives(self.derivatives)
            inverse, weights, condition = _inverse(weighted[:, free])
            weakest = dict(zip(names, weights.tolist(), strict=True))
            spread, loose = _weak_spread(weighted[:, free].T @ weighted[:, free], self.sizes[free])
            if spread > _WEAKEST and not math.isinf(condition):
                # Each is told apart from the others, and one of them poorly.
                weakest = dict(zip(names, loose.tolist(), strict=True))
            noise, criterion, extra = self._noise(residuals, weighted[: self.rows, free], inverse)
            covariance = self._covariance(weighted[: self.rows], inverse, noise)
            plain[free] = np.diag(inverse)
            share[self.considered] = 1.0
            if self.prior_columns.size:
                before = np.diag(self.prior_covariance)[: self.prior_columns.size]
                share[self.prior_columns] = np.clip(plain[self.prior_columns] / before, 0.0, 1.0)
        with np.errstate(invalid='ignore', divide='ignore'):
            inflation = np.where(np.isfinite(plain), np.diag(covariance) / plain, np.nan)
        values = self.outer(x)
        scale = np.where(self.logarithmic, values, 1.0)
        fits = self._fits(parts)
        penalty = count + extra
        found = Estimate(
            tuple(problem.names),
            np.array([unknown.start for unknown in problem.unknowns], dtype=float),
            values,
            covariance * np.outer(scale, scale),
            share,
            condition,
            weakest,
            fits[0],
            fits[1],
            fits[2],
            chi_square,
            self.rows,
            criterion + 2.0 * penalty,
            criterion + math.log(self.rows) * penalty,
            status,
            self.evaluations,
            (),
            inflation,
            self.logarithmic,
        )
        return found._replace(warnings=self._warnings(found, residuals, spread))

    def _covariance(
        self, weighted: np.ndarray, inverse: np.ndarray, noise: np.ndarray
    ) -> np.ndarray:
        """Return the covariance of all from J, and inverse and J^T Gamma J of free ones."""
        free, considered = self.free, self.considered
        infinite = np.isinf(np.diag(inverse))
        usable = np.where(np.isfinite(inverse), inverse, 0.0)
        # A of the module's docstring.
        known = np.zeros((free.size, len(self.prior_covariance)))
        places = np.searchsorted(free, self.prior_columns)
        count = places.size
        known[places, :count] += self.prior_root.T @ self.prior_root
        known[:, count:] = -weighted[:, free].T @ weighted[:, considered]
        part = usable @ (noise + known @ self.prior_covariance @ known.T) @ usable
        if self.jumps is not None:
            part = part + self.jumps
        part[infinite, infinite] = np.inf
        covariance = np.zeros((len(self.unknowns),) * 2)
        covariance[np.ix_(free, free)] = part
        between = usable @ known @ self.prior_covariance[:, count:]
        covariance[np.ix_(free, considered)] = between
        covariance[np.ix_(considered, free)] = between.T
        covariance[np.ix_(considered, considered)] = self.prior_covariance[count:, count:]
        return covariance

    def _noise(
        self, residuals: Sequence[np.ndarray], weighted: np.ndarray, inverse: np.ndarray
    ) -> tuple[np.ndarray, float, int]:
        """Return J^T Gamma J, -2 times the log-likelihood, and how many parameters it has."""
        usable = np.where(np.isfinite(inverse), inverse, 0.0)
        count = weighted.shape[1]
        total, likelihood, extra = np.zeros((count, count)), 0.0, 0
        pooled: dict[str, list[float]] = {}
        rows = []
        start = 0
        for block, part in zip(self.blocks, residuals, strict=True):
            J = weighted[start : start + part.size]
            start += part.size
            # Rows that the fit itself takes up.
            taken = float(np.einsum('ij,jk,ik->', J, usable, J)) + block.offset
            rows.append((block, part, J, taken))
            if part.size < _FEWEST_ROWS:
                sums = pooled.setdefault(block.signal, [0.0, 0.0])
                sums[0] += float(part @ part)
                sums[1] += part.size - taken
        few: list[tuple[_Block, np.ndarray, np.ndarray]] = []
        for block, part, J, taken in rows:
            if not part.size:
                continue
            deviation = self._deviation(block)
            likelihood += float(np.sum(np.log(2.0 * math.pi * deviation**2)))
            extra += 1 + block.offset
            if part.size < _FEWEST_ROWS:
                sums = pooled[block.signal]
                level = sums[0] / sums[1] if sums[1] > 0.5 else 1.0
                if not np.isnan(block.deviation[block.fitted]).any():
                    # Few rows may agree by chance better than their known deviation.
                    level = max(1.0, level)
                total += level * J.T @ J
                few.append((block, part, math.sqrt(level) * J))
                likelihood += part.size * math.log(level) + float(part @ part) / level
                continue
            coefficients, variance = autoregression(part)
            extra += coefficients.size
            likelihood += part.size * (math.log(variance) + 1.0)
            variance *= part.size / max(1.0, part.size - taken)
            total += coloured_product(J, coefficients, variance)
        return total + self._shared(few, count), likelihood, extra

    def _shared(
        self, few: Sequence[tuple[_Block, np.ndarray, np.ndarray]], count: int
    ) -> np.ndarray:
        """Return the part of J^T Gamma J between different signals with few rows."""
        names = list(dict.fromkeys(block.signal for block, _, _ in few))
        pairs: dict[tuple[int, int], list[tuple[np.ndarray, ...]]] = {}
        for (one, r, J), (other, s, K) in itertools.combinations(few, 2):
            if one.recording == other.recording:
                times = [
                    self.problem.recordings[b.recording].signals[b.signal].times[b.rows[b.fitted]]
                    for b in (one, other)
                ]
                _, i, j = np.intersect1d(*times, return_indices=True)
                key = names.index(one.signal), names.index(other.signal)
                pairs.setdefault(key, []).append((r[i], s[j], J[i], K[j]))
        related = np.eye(len(names))
        for (a, b), parts in pairs.items():
            r, s = (np.concatenate([part[k] for part in parts]) for k in (0, 1))
            size = float(np.linalg.norm(r) * np.linalg.norm(s))
            if r.size >= _FEWEST_SHARED and size > 0.0:
                related[a, b] = related[b, a] = float(r @ s) / size
        # Estimated pair by pair, they need not belong to any distribution.
        values, vectors = np.linalg.eigh(related)
        related = (vectors * np.maximum(values, 0.0)) @ vectors.T
        found = np.zeros((count, count))
        for (a, b), parts in pairs.items():
            scale = related[a, b] / math.sqrt(related[a, a] * related[b, b])
            for _, _, J, K in parts:
                found += scale * (J.T @ K + K.T @ J)
        return found

    def _fits(
        self, parts: Sequence[np.ndarray]
    ) -> tuple[
        dict[str, SignalFit], dict[tuple[str, str], float], dict[tuple[str, str], np.ndarray]
    ]:
        """Return fit by signal, and offsets and predictions by recording and signal."""
        offsets: dict[tuple[str, str], float] = {}
        predicted: dict[tuple[str, str], np.ndarray] = {}
        sums: dict[str, np.ndarray] = {}
        for block, part in zip(self.blocks, parts, strict=True):
            recording = self.problem.recordings[block.recording]
            key = (recording.name, block.signal)
            error = block.values - part
            # A recording for validation has an offset of its own, from its own rows.
            base = block.fitted if block.fitted.any() else np.ones(error.size, dtype=bool)
            offset = float(error[base].mean()) if block.offset else 0.0
            if block.offset and block.fitted.any():
                offset = float(np.average(error[base], weights=self._deviation(block) ** -2.0))
            if block.offset:
                offsets[key] = offset
            shown = np.full(recording.signals[block.signal].times.shape, np.nan)
            shown[block.rows] = part + offset
            predicted[key] = shown
            error = error - offset
            row = sums.setdefault(block.signal, np.zeros(8))
            for first, use in ((0, block.fitted), (4, ~block.fitted)):
                if use.any():
                    values = block.values[use]
                    row[first : first + 3] += (
                        use.sum(),
                        error[use] @ error[use],
                        np.sum((values - values.mean()) ** 2),
                    )
            if block.fitted.any():
                row[3] += float(np.sum(self._deviation(block) ** 2))
        fits = {}
        for signal, row in sums.items():
            with np.errstate(invalid='ignore', divide='ignore'):
                fits[signal] = SignalFit(
                    int(row[0]),
                    float(np.sqrt(row[1] / row[0])),
                    float(1.0 - row[1] / row[2]),
                    float(np.sqrt(row[3] / row[0])),
                    int(row[4]),
                    float(np.sqrt(row[5] / row[4])),
                    float(1.0 - row[5] / row[6]),
                )
        return fits, offsets, predicted

    def _warnings(
        self, found: Estimate, residuals: Sequence[np.ndarray], spread: float
    ) -> tuple[str, ...]:
        """Return what a reader of the result must know."""
        warnings = []
        if found.status == INTERRUPTED:
            warnings.append('interrupted: these are the best values so far, not the estimate')
        if found.status == STOPPED:
            warnings.append(
                'not converged: the values still changed at the last iteration; raise iterations,'
                ' or begin with better values'
            )
        if self.derivatives is None:
            return (*warnings, 'interrupted before the derivatives: no standard errors')
        for j, unknown in enumerate(self.problem.unknowns):
            slack = 1e-6 * self.sizes[j]
            for bound, which in ((unknown.lowest, 'lower'), (unknown.highest, 'upper')):
                if abs(found.values[j] - bound) <= slack:
                    warnings.append(
                        f'{unknown.name} is at its {which} bound {bound:g}: data and model'
                        ' contradict each other, or the bound is too narrow; its standard error'
                        ' does not hold'
                    )
        lost = [
            n for n, v in zip(found.names, np.diag(found.covariance), strict=True) if v == np.inf
        ]
        if lost:
            warnings.append(
                f'the data say nothing about {", ".join(lost)}'
                + (f' alone: only without {_words(found.weakest)}' if len(lost) > 1 else '')
            )
        elif spread > _WEAKEST:
            warnings.append(
                f'the data can hardly tell {_words(found.weakest)}: relative to the typical sizes'
                f' it is known to {spread:.0%}; add recordings, give a prior, or keep one of these'
                ' fixed'
            )
        if self.jumps is not None:
            share = np.diag(self.jumps) / np.diag(found.covariance)[self.free]
            rough = [found.names[j] for j, part in zip(self.free, share, strict=True) if part > 0.5]
            if rough:
                warnings.append(
                    'jumps of the predictions, as by stick and slip, make up most of the'
                    f' uncertainty of {", ".join(rough)}; motions that avoid them tell more'
                )
        if self.rugged > _RUGGED:
            warnings.append(
                f'jumps of the predictions change chi-square by about {self.rugged:.2g} within one'
                ' standard error: it has many minima, and the best values may be further from'
                ' these than the standard errors tell. Begin with other values (--file) and keep'
                f' the result with the smallest chi-square, here {found.chi_square:.6g}; lighter'
                ' loads avoid it'
            )
        far: dict[str, list[float]] = {}
        for block, part in zip(self.blocks, residuals, strict=True):
            known = not np.isnan(block.deviation).any()
            if known and part.size:
                sums = far.setdefault(block.signal, [0.0, 0.0])
                sums[0] += float(part @ part)
                sums[1] += part.size
        for signal, (total, rows) in far.items():
            ratio = math.sqrt(total / rows)
            if ratio > _LARGEST_RATIO:
                warnings.append(
                    f'the residuals of {signal} are {ratio:.1f} times its noise: the model does'
                    ' not explain it'
                )
        waves = [
            f'{signal} ({ratio:.0f} times)'
            for signal, ratio in self._waves(residuals).items()
            if ratio > _LARGEST_WAVE
        ]
        if waves:
            warnings.append(
                f'the residuals of {", ".join(waves)} are far larger than the noise from row to'
                ' row: the model does not explain them, as when it is of another machine, or'
                ' units, clocks or the time of an event are wrong'
            )
        return tuple(warnings)

    def _waves(self, residuals: Sequence[np.ndarray]) -> dict[str, float]:
        """Return residuals over the noise from row to row, of signals of unknown deviation."""
        sums: dict[str, np.ndarray] = {}
        for block, part in zip(self.blocks, residuals, strict=True):
            known = not np.isnan(block.deviation).any()
            level = self.levels.get(block.signal, 1.0)
            size = float(np.abs(block.values).max()) if part.size else 0.0
            if known or part.size < _FEWEST_ROWS or level <= _ROUNDING * size:
                continue
            # Not the median: of a quantised signal it is a multiple of the step.
            noise = math.sqrt(float(np.mean(np.diff(part) ** 2)) / 2.0)
            noise = max(noise, self.problem.floors.get(block.signal, 0.0) / level, _ROUNDING)
            row = sums.setdefault(block.signal, np.zeros(2))
            row += part @ part, part.size * noise**2
        return {signal: math.sqrt(row[0] / row[1]) for signal, row in sums.items()}


def _blocks(problem: Problem) -> list[_Block]:
    """Return the signals of all recordings; raises InputError."""
    blocks = []
    for number, recording in enumerate(problem.recordings):
        for name, signal in recording.signals.items():
            if not signal.times.shape == signal.values.shape == signal.deviation.shape:
                raise InputError(
                    f'{name} of {recording.name} has {signal.times.shape} times,'
                    f' {signal.values.shape} values and {signal.deviation.shape} deviations'
                )
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
                _Block(number, name, rows, fitted, signal.values[rows], deviation, offset)
            )
    return blocks


# --- algebra ---------------------------------------------------------------------------------


def _inverse_root(covariance: np.ndarray, names: Sequence[str]) -> np.ndarray:
    """Return W with W^T W the inverse of a covariance; raises InputError."""
    try:
        symmetric = np.allclose(covariance, covariance.T, rtol=1e-6, atol=0.0)
        if not symmetric or not (np.diag(covariance) > 0.0).all():
            raise np.linalg.LinAlgError
        # Scaled first: variances of different units differ by many powers of ten.
        scale = np.sqrt(np.diag(covariance))
        lower = np.linalg.cholesky(covariance / np.outer(scale, scale))
    except np.linalg.LinAlgError as error:
        raise InputError(
            f'the covariance of the prior for {", ".join(names)} is not positive definite'
        ) from error
    return np.asarray(np.linalg.inv(lower) / scale)


def _inverse(weighted: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """
    Return inverse, weakest direction and condition number of the information J^T J.

    J (rows, unknowns), with the rows of the prior, is first scaled to columns of length 1, and not
    squared: data may be more exact than a prior by many powers of ten. Unknowns that take part in
    a direction without information have infinite variances; the rest is inverted without it.
    """
    scale = np.linalg.norm(weighted, axis=0)
    safe = np.where(scale == 0.0, 1.0, scale)
    count = weighted.shape[1]
    # At least as many rows as unknowns, so that there are as many singular values.
    padded = np.concatenate([weighted / safe, np.zeros((count, count))])
    _, values, directions = np.linalg.svd(np.linalg.qr(padded, mode='r'))
    weakest = directions[-1]
    weakest = weakest * np.sign(weakest[np.argmax(np.abs(weakest))])
    none = values < _SINGULAR * math.sqrt(count)
    kept = directions[~none]
    inverse = (kept.T / values[~none] ** 2) @ kept / np.outer(safe, safe)
    lost = (np.abs(directions[none]) > 1e-3).any(axis=0)
    inverse[lost, lost] = np.inf
    condition = math.inf if none.any() else float((values[0] / values[-1]) ** 2)
    return inverse, weakest, condition


def _weak_spread(information: np.ndarray, sizes: np.ndarray) -> tuple[float, np.ndarray]:
    """Return the largest standard deviation relative to typical sizes, and its combination."""
    values, vectors = np.linalg.eigh(information * np.outer(sizes, sizes))
    loose = vectors[:, 0] * np.sign(vectors[np.argmax(np.abs(vectors[:, 0])), 0])
    return 1.0 / math.sqrt(values[0]) if values[0] > 0.0 else math.inf, loose


def autoregression(residuals: np.ndarray) -> tuple[np.ndarray, float]:
    """
    Return coefficients and innovation variance of an autoregressive model, by Burg's method.

    The model is r_t + a_1 r_(t-1) + .. = e_t; its order is that with the smallest value of
    Akaike's criterion.
    """
    n = residuals.size
    variance = max(float(residuals @ residuals) / n, 1e-300)
    forward, backward = residuals[1:], residuals[:-1]
    a = np.zeros(0)
    best, chosen = n * math.log(variance), (a, variance)
    for order in range(1, min(_HIGHEST_ORDER, n // 10) + 1):
        energy = float(forward @ forward + backward @ backward)
        if energy <= 0.0:
            break
        reflection = -2.0 * float(forward @ backward) / energy
        a = np.concatenate([a + reflection * a[::-1], [reflection]])
        variance *= 1.0 - reflection**2
        if variance <= 0.0:
            break
        criterion = n * math.log(variance) + 2.0 * order
        if criterion < best:
            best, chosen = criterion, (a, variance)
        forward, backward = (
            (forward + reflection * backward)[1:],
            (backward + reflection * forward)[:-1],
        )
    return chosen


def coloured_product(J: np.ndarray, coefficients: np.ndarray, variance: float) -> np.ndarray:
    """Return J^T Gamma J for the covariance Gamma of an autoregressive process."""
    # Four times as long: the process fades before it meets itself again.
    length = 4 * 2 ** math.ceil(math.log2(len(J)))
    gain = np.abs(np.fft.rfft(np.concatenate([[1.0], coefficients]), length)) ** 2
    # Both halves of the spectrum, of which rfft returns one.
    weight = np.full(gain.size, 2.0)
    weight[0] = weight[-1] = 1.0
    spectrum = np.fft.rfft(J, length, axis=0)
    found = spectrum.conj().T @ (spectrum * (weight * variance / gain)[:, None])
    return np.asarray(found.real / length)


def _words(combination: Mapping[str, float]) -> str:
    """Return a combination such as ``0.71 youngs_modulus - 0.70 mass_scale_1``."""
    parts = sorted(combination.items(), key=lambda item: -abs(item[1]))
    shown = [(name, value) for name, value in parts if abs(value) >= 0.1][:6]
    text = ''
    for name, value in shown:
        sign = ('-' if value < 0.0 else '') if not text else (' - ' if value < 0.0 else ' + ')
        text += f'{sign}{abs(value):.2f} {name}'
    return text


def _number(value: float) -> float | None:
    """Return a number for JSON, None when it is not finite."""
    return float(value) if math.isfinite(value) else None
