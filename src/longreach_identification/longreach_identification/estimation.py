"""
Weighted nonlinear least squares over several measured signals, with standard errors.

The sum of ((measured - predicted(p) - offset) / deviation)^2 over all rows, and of
(p - m)^T C^-1 (p - m) of a Gaussian prior, is least. An offset is one unknown constant of a signal
in a recording; it is eliminated: residuals and derivatives lose their weighted mean.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from longreach_dynamics.errors import InputError, LongreachError, check_among, check_within
from longreach_dynamics.tables import for_json
from longreach_identification import covariance, search
from longreach_identification.machine import Recording

# Predicts the signals of a recording, by its number, for the values of all unknowns: for each of
# its signals an array like its times. It is sent to processes: an object of a class, or a function
# of a module. LongreachError: there is no prediction for these values.
Predict = Callable[[int, Mapping[str, float]], Mapping[str, np.ndarray]]

# Rounds in which unknown noise levels are estimated; relative change of the sum of squares or of
# the unknowns that ends a search.
_MOST_ROUNDS, _TOLERANCE = 5, 1e-6

# Warned about: standard deviation of a combination relative to the scales, residuals relative to
# their given deviation.
_WEAKEST, _LARGEST_RATIO = 0.2, 3.0
# Likewise relative to the noise from row to row, where no deviation is given: noise of first order
# with a correlation of 0.98 has this ratio. Residuals below this share of a signal are rounding.
_LARGEST_WAVE, _ROUNDING = 5.0, 1e-6

# Typical size of a logarithm: what data tell about it is not judged by a factor of 3.
_DECADES = 10.0


class Unknown(NamedTuple):
    """A number to estimate; the prior of a ``logarithmic`` one is that of its logarithm."""

    name: str
    start: float
    lowest: float = -math.inf  # bounds of the search
    highest: float = math.inf
    scale: float = 0.0  # typical size; 0: that of the start, or 1 for a start of 0
    recording: int | None = None  # number of the only one that it concerns; None: all
    logarithmic: bool = False
    considered: bool = False  # keeps its start; its prior error counts in all others

    @property
    def size(self) -> float:
        """Return the typical size."""
        return self.scale or abs(self.start) or 1.0

    def inner(self) -> Unknown:
        """Return the number that the search changes: of a logarithmic unknown its logarithm."""
        if not self.logarithmic:
            return self
        start, low, high = (math.log(value) for value in (self.start, self.lowest, self.highest))
        return self._replace(start=start, lowest=low, highest=high, scale=_DECADES)


class Prior(NamedTuple):
    """What is known about some unknowns before: a Gaussian distribution; by default nothing."""

    names: tuple[str, ...] = ()
    mean: np.ndarray = np.zeros(0)  # (names,)
    covariance: np.ndarray = np.zeros((0, 0))  # (names, names)


@dataclasses.dataclass(frozen=True)
class Problem:
    """What is to be estimated from which recordings; InputError for what does not fit."""

    predict: Predict
    recordings: Sequence[Recording]  # rows that are not finite are left out
    unknowns: Sequence[Unknown]
    prior: Prior = Prior()  # quantities that are not unknown are left out
    offsets: Sequence[str] = ()  # patterns of signals with an unknown constant in each recording
    validation: Sequence[str] = ()  # names of recordings that are predicted, but not fitted
    # Lowest noise level that may be estimated, by signal, such as the error of rounding: readings
    # that stay on one level of a quantised signal show no noise.
    floors: Mapping[str, float] = dataclasses.field(default_factory=dict)
    # Of each recording, which rows have equal conditions: their residuals may be alike.
    poses: Sequence[np.ndarray] = ()

    def __post_init__(self) -> None:
        """Check start and validation."""
        if not self.unknowns:
            raise InputError('there is no unknown, allowed: at least one')
        for unknown in self.unknowns:
            bounds = f'[{unknown.lowest}, {unknown.highest}]'
            check_within(f'{unknown.name} at the start', unknown.start, bounds)
        given = [recording.name for recording in self.recordings]
        for name in self.validation:
            check_among('validation', name, given)

    @property
    def names(self) -> list[str]:
        """Return the names of the unknowns."""
        return [unknown.name for unknown in self.unknowns]


class Estimate(NamedTuple):
    """Result of :func:`estimate`."""

    names: tuple[str, ...]
    start: np.ndarray  # (names,)
    values: np.ndarray  # (names,)
    covariance: np.ndarray  # (names, names); infinite variances for what the data cannot tell
    prior_share: np.ndarray  # (names,) part of the information from the prior; 1: all
    condition: float  # of the information matrix with ones on its diagonal
    weakest: dict[str, float]  # combination that is known worst, in typical sizes
    fit: dict[str, search.SignalFit]
    # By names of recording and signal, at all of its times, with its offset.
    predicted: dict[tuple[str, str], np.ndarray]
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
    problem: Problem

    @property
    def standard_errors(self) -> np.ndarray:
        """Return the standard errors (names,); NaN of a search that was interrupted."""
        if self.status == search.INTERRUPTED:
            # Those of the smooth part at some point on its way.
            return np.full(len(self.names), np.nan)
        return np.sqrt(np.diag(self.covariance))

    @property
    def correlation(self) -> np.ndarray:
        """Return the correlation matrix (names, names); NaN where a variance is infinite."""
        errors = self.standard_errors
        with np.errstate(invalid='ignore', divide='ignore'):
            return np.asarray(self.covariance / np.outer(errors, errors))

    @property
    def by_name(self) -> dict[str, float]:
        """Return the values by name."""
        return dict(zip(self.names, self.values.tolist(), strict=True))

    def value(self, name: str) -> float:
        """Return the value of an unknown."""
        return float(self.values[self.names.index(name)])

    def interval(self, name: str) -> tuple[float, float]:
        """Return the 95 % interval of an unknown, by Student's distribution."""
        from scipy.stats import t

        index = self.names.index(name)
        reach = float(t.ppf(0.975, max(1, self.rows - len(self.names))))
        reach *= float(self.standard_errors[index])
        value = float(self.values[index])
        if self.logarithmic[index]:
            factor = math.exp(min(reach / value, 700.0))  # NaN stays
            return value / factor, value * factor
        return value - reach, value + reach

    def propagated(
        self, function: Callable[[Mapping[str, float]], Mapping[str, float]]
    ) -> dict[str, tuple[float, float]]:
        """Return quantities that follow from the unknowns, and their errors; NaN as of these."""
        shown = function(self.by_name)
        here = np.array(list(shown.values()), dtype=float)
        gradient = np.zeros((len(self.names), here.size))

        def at(values: np.ndarray) -> np.ndarray:
            named = dict(zip(self.names, values.tolist(), strict=True))
            return np.array(list(function(named).values()), dtype=float)

        def beside(step: np.ndarray) -> np.ndarray:
            try:
                return at(self.values + step)
            except LongreachError:
                # Beyond what a machine may have, such as less static than Coulomb friction.
                return np.asarray(2.0 * here - at(self.values - step))

        for j, error in enumerate(self.standard_errors):
            size = abs(self.values[j]) or 1.0
            step = np.zeros(len(self.names))
            # In this order: the error may be NaN.
            step[j] = min(search.FIRST_STEP * size, error) or search.SHORTEST_STEP * size
            gradient[j] = (beside(step) - beside(-step)) / (2.0 * step[j])
        found = {}
        for name, value, slope in zip(shown, here.tolist(), gradient.T, strict=True):
            used = np.flatnonzero(slope)
            variance = slope[used] @ self.covariance[np.ix_(used, used)] @ slope[used]
            unknown = np.isnan(self.standard_errors[used]).any()
            found[name] = value, math.nan if unknown else math.sqrt(max(0.0, float(variance)))
        return found

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
        found: dict[str, Any] = {
            'parameters': {
                name: {
                    'value': self.values[j],
                    'standard_error': errors[j],
                    'start': self.start[j],
                    'interval': self.interval(name),
                    'prior_share': self.prior_share[j],
                }
                for j, name in enumerate(self.names)
            },
            'fit': {name: fit._asdict() for name, fit in self.fit.items()},
            'warnings': self.warnings,
            'correlation': {'names': self.names, 'matrix': self.correlation},
            'condition': self.condition,
            'weakest': _words(self.weakest),
        }
        found |= {n: getattr(self, n) for n in ('status', 'chi_square', 'rows', 'aic', 'bic')}
        return dict(for_json(found))


def estimate(
    problem: Problem,
    *,
    iterations: int = 30,
    robust: bool = False,
    interrupted: bool = False,
    **workers: Any,
) -> Estimate:
    """
    Estimate the unknowns of a problem; on Ctrl-C return the best so far, status INTERRUPTED.

    ``robust``: rows further than two deviations from the model weigh less, after Huber.
    ``interrupted``: a search that led here was. LongreachError without a prediction at the start.
    """
    with search.searching(problem, **workers) as fit:
        try:
            x = fit.best
            fit.first_levels(x)
            for _ in range(_MOST_ROUNDS):
                x, status = fit.solve(x, fit.free, iterations, _TOLERANCE)
                if not fit.update_levels(x, robust):
                    break
            fit.settled(x)
        except KeyboardInterrupt:
            status = search.INTERRUPTED
            x = fit.best
    return _result(fit, x, search.INTERRUPTED if interrupted else status)


def best_of(problem: Problem, name: str, values: np.ndarray, **workers: Any) -> float:
    """Return the value of an unknown that explains the signals best, all others at their start."""
    j = problem.names.index(name)
    unknown = problem.unknowns[j]
    values = values[(values >= unknown.lowest) & (values <= unknown.highest)]
    with search.searching(problem, **workers) as fit:
        points = np.tile(fit.outer(fit.best), (values.size, 1))
        points[:, j] = values
        costs = fit.scores([fit.inner(point) for point in points], fit.unlikely)
    best = min(zip(costs, values.tolist(), strict=True), default=(math.inf, 0.0))
    return float(best[1]) if math.isfinite(best[0]) else unknown.start


def profile(
    problem: Problem,
    found: Estimate,
    name: str,
    *,
    points: int = 7,
    reach: float = 3.0,
    **workers: Any,
) -> tuple[np.ndarray, np.ndarray]:
    """Return values of an unknown, and the increase of chi-square, others estimated anew."""
    check_among('profile', name, found.names)
    index = found.names.index(name)
    with search.searching(problem, **workers) as fit:
        best = fit.inner(found.values)
        errors = found.standard_errors / np.where(fit.logarithmic, found.values, 1.0)
        unknown, error = fit.unknowns[index], float(errors[index])
        if not 0.0 < error < math.inf:
            raise InputError(
                f'{name} has the standard error {error:g}: there is no range to profile'
            )
        low = max(unknown.lowest, best[index] - reach * error)
        high = min(unknown.highest, best[index] + reach * error)
        fit.levels = {signal: row.deviation for signal, row in found.fit.items()}
        fit.set_steps(errors[fit.free])
        grid = np.linspace(low, high, points)
        squares = np.empty(points)
        others = fit.free[fit.free != index]
        # From the middle outwards, each search begins where its neighbour ended.
        middle = int(np.argmin(np.abs(grid - best[index])))
        for order in (range(middle, points), range(middle - 1, -1, -1)):
            x = best.copy()
            for k in order:
                x[index] = grid[k]
                if others.size:
                    x, _ = fit.solve(x, others, 10, _TOLERANCE)
                squares[k] = np.sum(fit.weighted(x) ** 2)
        least = min(float(squares.min()), float(np.sum(fit.weighted(best) ** 2)))
    shown = np.exp(grid) if unknown.logarithmic else grid
    return shown, (squares - least) / found.inflation[index]


def information_of(problem: Problem, **workers: Any) -> list[np.ndarray]:
    """Return the information of each recording at the start, with priors of its own unknowns."""
    with search.searching(problem, **workers) as fit:
        fit.first_levels(fit.best)
        *parts, last = fit.by_block(fit.settled(fit.best))
    prior, found = last.T @ last, []
    for number in range(len(problem.recordings)):
        matrix = np.zeros_like(prior)
        for block, part in zip(fit.fitted, parts, strict=True):
            if block.recording == number:
                matrix += part.T @ part
        own = [j for j, unknown in enumerate(problem.unknowns) if unknown.recording == number]
        matrix[np.ix_(own, own)] += prior[np.ix_(own, own)]
        found.append(matrix)
    return found


def _result(fit: search.Search, x: np.ndarray, status: str) -> Estimate:
    """Return the result for some values."""
    problem, count = fit.problem, len(fit.problem.unknowns)
    parts = fit.predicted(x)
    if parts is None:
        raise KeyboardInterrupt('interrupted before the first prediction: no result')
    residuals = fit.residuals(parts)
    matrix = np.full((count, count), np.nan)
    plain, share = np.full(count, np.nan), np.zeros(count)
    condition, weakest, spread, criterion, extra = math.nan, {}, 0.0, math.nan, 0
    if fit.derivatives is not None:
        free, weighted = fit.free, fit.weighted_derivatives(fit.derivatives)
        inverse, condition = covariance.inverse_of(weighted[:, free])
        spread, loose = covariance.weak_spread(
            weighted[:, free].T @ weighted[:, free], fit.sizes[free]
        )
        weakest = dict(zip((problem.names[j] for j in free), loose.tolist(), strict=True))
        noise, criterion, extra = covariance.noise_of(
            fit, residuals, weighted[: fit.rows, free], inverse
        )
        matrix = covariance.covariance_of(fit, weighted[: fit.rows], inverse, noise)
        plain[free] = np.diag(inverse)
        share[fit.considered] = 1.0
        before = np.diag(fit.prior_covariance)[: fit.prior_columns.size]
        share[fit.prior_columns] = np.clip(plain[fit.prior_columns] / before, 0.0, 1.0)
    with np.errstate(invalid='ignore', divide='ignore'):
        inflation = np.where(np.isfinite(plain), np.diag(matrix) / plain, np.nan)
    values = fit.outer(x)
    scale = np.where(fit.logarithmic, values, 1.0)
    fits, predicted = fit.fits(parts)
    penalty = count + extra
    found = Estimate(
        tuple(problem.names),
        np.array([unknown.start for unknown in problem.unknowns], dtype=float),
        values,
        matrix * np.outer(scale, scale),
        share,
        condition,
        weakest,
        fits,
        predicted,
        fit.squares(x, parts),
        fit.rows,
        criterion + 2.0 * penalty,
        criterion + math.log(fit.rows) * penalty,
        status,
        fit.evaluations,
        (),
        inflation,
        fit.logarithmic,
        problem,
    )
    return found._replace(warnings=_warnings_of(fit, found, residuals, spread))


def _warnings_of(
    fit: search.Search, found: Estimate, residuals: Sequence[np.ndarray], spread: float
) -> tuple[str, ...]:
    """Return what a reader of the result must know."""
    warnings = []
    if found.status == search.INTERRUPTED:
        warnings.append('interrupted: these are the best values so far, not the estimate')
    if found.status == search.STOPPED:
        warnings.append(
            'not converged: the values still changed at the last iteration; begin with better'
            ' values'
        )
    if fit.derivatives is None:
        return (*warnings, 'interrupted before the derivatives: no standard errors')
    for j, unknown in enumerate(fit.problem.unknowns):
        slack = 1e-6 * fit.sizes[j]
        for bound, which in ((unknown.lowest, 'lower'), (unknown.highest, 'upper')):
            if abs(found.values[j] - bound) <= slack:
                warnings.append(
                    f'{unknown.name} is at its {which} bound {bound:g}: data and model'
                    ' contradict each other, or the bound is too narrow; its standard error'
                    ' does not hold'
                )
    lost = [n for n, v in zip(found.names, np.diag(found.covariance), strict=True) if v == np.inf]
    if lost:
        warnings.append(
            f'the data say nothing about {", ".join(lost)}'
            + (f' alone: only without {_words(found.weakest)}' if len(lost) > 1 else '')
        )
    elif spread > _WEAKEST:
        size = f'known to {spread:.0%}' if math.isfinite(spread) else 'not known at all'
        warnings.append(
            f'the data can hardly tell {_words(found.weakest)}: relative to the typical sizes'
            f' it is {size}; add recordings, give a prior, or keep one of these'
            ' fixed'
        )
    waves, against = [], []
    for name, one in found.fit.items():
        floor, level = fit.problem.floors.get(name, 0.0), fit.levels.get(name, 1.0)
        pairs = zip(fit.fitted, residuals, strict=True)
        own = [(block, part) for block, part in pairs if block.signal == name and part.size]
        ratio = search.rms([part for block, part in own if not np.isnan(block.deviation).any()])
        if ratio > _LARGEST_RATIO:
            warnings.append(
                f'the residuals of {name} are {ratio:.1f} times its noise: the model does not'
                ' explain it'
            )
        squares = noise = 0.0
        for block, part in own:
            known = not np.isnan(block.deviation).any()
            rounding = level <= _ROUNDING * np.abs(block.values).max()
            if part.size >= covariance.FEWEST_ROWS and not known and not rounding:
                # Not the median: of a quantised signal it is a multiple of the step.
                step = math.sqrt(float(np.mean(np.diff(part) ** 2)) / 2.0)
                noise += part.size * max(step, floor / level, _ROUNDING) ** 2
                squares += float(part @ part)
        if squares > _LARGEST_WAVE**2 * noise:
            waves.append(f'{name} ({math.sqrt(squares / noise):.0f} times)')
        steps = [np.diff(block.values) for block, _ in own]
        # What is not noise alone.
        if sum(map(len, steps)) >= covariance.FEWEST_ROWS and one.variance_explained < 0.0:
            noise = max(search.rms(steps) / math.sqrt(2.0), floor)
            against += [name] if one.rms > 2.0 * noise else []
    if waves:
        warnings.append(
            f'the residuals of {", ".join(waves)} are far larger than the noise from row to'
            ' row: the model does not explain them, as when it is of another machine, or'
            ' units, clocks or the time of an event are wrong'
        )
    if against:
        warnings.append(
            f'the model explains nothing of {", ".join(against)}, which a constant fits better:'
            ' look for a wrong column, unit or sign, or the time of the event'
        )
    return tuple(warnings)


def _words(combination: Mapping[str, float]) -> str:
    """Return a combination such as ``0.71 youngs_modulus - 0.70 mass_scale_1``."""
    parts = sorted(combination.items(), key=lambda item: -abs(item[1]))
    shown = [f'{value:.2f} {name}' for name, value in parts if abs(value) >= 0.1]
    return ' + '.join(shown[:6]).replace('+ -', '- ')
