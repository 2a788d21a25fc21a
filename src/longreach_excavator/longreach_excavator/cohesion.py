"""
Estimation of the cohesion of a soil from measurements of digging.

The thesis tries four values until the final pose and the force in a rod look right (Ozunlu 2009,
5.2). Here the digging is simulated with many values, and the one with the smallest sum of squared
errors is taken, each column in units of its noise.

A bucket that stalls, or a valve that closes at the end of the sweep, makes narrow minima and jumps
in that sum. The search therefore has three stages: a scan of the allowed range; runs between two
neighbours whose curves differ so much that a value between them could fit better than the best one
so far; and a derivative-free search (Brent) around the best value. Without a given noise, that of
a column is estimated from its residuals. The standard error follows from the change of the curves
with the cohesion; autocorrelated errors, such as those of the model, reduce the effective number
of rows. It states how well the data determine the cohesion, not how well the model describes the
soil.

Data need not determine the cohesion: the pose after a full sweep is the same for any soil that the
machine overcomes. An error then reports the range of values that fit equally well.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from longreach_dynamics.errors import InputError
from longreach_dynamics.machine import step_time
from longreach_excavator.machine import SAMPLE_TIME, STEP
from longreach_excavator.measurements import Measurements, kind_of
from longreach_excavator.parameters import ExcavatorParameters
from longreach_excavator.results import ExcavatorRun
from longreach_excavator.scenario import FIXED_DEPTHS, Scenario
from longreach_excavator.simulation import simulate

BOUNDS = (1e3, 1e5)  # [Pa]
# Values of the scan, maximum number with refinement, and smallest ratio of neighbours.
_SCAN, _MOST, _FINE = 25, 80, 1.01
# Residuals over the variation of a column, from which a run does not explain it.
_EXPLAINED = 0.5
# Length of a curve between two neighbours over their distance; smallest useful improvement [1].
_DETOUR, _LEAST_GAIN = 1.5, 2.0
_PRECISION = 1e-6
# In place of infinity, which Brent's method cannot use.
_HUGE = 1e100
# Width of the differences for the standard error, as a share of the cohesion.
_NARROWEST, _WIDEST = 1e-4, 0.1
# Iterations of the noise estimate, and its lower bound as a share of the assumed noise.
_ROUNDS, _LEAST_NOISE = 4, 1e-4
# Increase of the sum of squares up to which values fit equally well: two standard errors.
_EQUAL = 4.0
# Such values belong to the same minimum up to this ratio to the best one.
_APART = 1.05
# With fewer rows the autocorrelation of errors is not estimated.
_ROWS_FOR_CORRELATION, _MOST_CORRELATION = 10, 0.99


@dataclasses.dataclass(frozen=True)
class CohesionFit:
    """The cohesion that fits measurements best."""

    cohesion: float  # [Pa]
    standard_error: float  # [Pa]
    data: Measurements
    noise: np.ndarray  # (columns,) standard deviations that weight the columns
    fitted: np.ndarray  # (rows, columns) of the run with this cohesion, at the measured times
    # (values, 2) cohesions that were tried, increasing [Pa]; sums of squares over the noise [1].
    scan: np.ndarray
    result: ExcavatorRun  # with this cohesion

    @property
    def runs(self) -> int:
        """Number of runs of the search."""
        return len(self.scan)

    def rows(self) -> tuple[list[str], np.ndarray]:
        """Return names and rows of measured and fitted columns side by side."""
        times = self.data.times
        names, columns = ([], []) if times is None else (['time'], [times])
        for k, name in enumerate(self.data.columns):
            names += [f'{name}_measured', f'{name}_fitted']
            columns += [self.data.values[:, k], self.fitted[:, k]]
        return names, np.stack(columns, axis=1)

    def residuals(self) -> dict[str, float]:
        """Return the root mean square of the residuals of each column, in its unit."""
        rms = np.sqrt(np.mean((self.fitted - self.data.values) ** 2, axis=0))
        return dict(zip(self.data.columns, rms.tolist(), strict=True))

    def warnings(self) -> tuple[str, ...]:
        """Return a warning for each column that the best run does not explain."""
        return tuple(
            f'{text}; this cohesion and its error do not hold'
            for text in _unexplained(self.data, self.fitted - self.data.values)
        )

    def summary(self) -> dict[str, Any]:
        """Return cohesion, errors, and sweep and stall of the run with it as plain numbers."""
        return {
            'cohesion_pa': self.cohesion,
            'standard_error_pa': self.standard_error,
            'residuals': {
                name: {'rms': rms, 'unit': kind_of(name)[0]}
                for name, rms in self.residuals().items()
            },
            'rows': len(self.data.values),
            'warnings': list(self.warnings()),
            'runs': self.runs,
            'stalled': self.result.stalled(),
            'sweep_deg': float(np.degrees(self.result.column('swept')[-1])),
        }


def fit_cohesion(
    excavator: ExcavatorParameters,
    scenario: Scenario,
    data: Measurements,
    bounds: tuple[float, float] = BOUNDS,
    noise: Mapping[str, float] | None = None,
    step: float = STEP,
) -> CohesionFit:
    """
    Return the cohesion with which a scenario fits measurements best.

    Parameters
    ----------
    excavator : ExcavatorParameters
    scenario : Scenario
        Its cohesion is ignored. Its duration is that of the data, unless they are a single row
        without time.
    data : Measurements
        Rows after the end of a run of mode printed are compared with its last row.
    bounds : (float, float)
        Lowest and highest cohesion [Pa].
    noise : mapping of str to float, optional
        Standard deviations of the measured columns, in their units. By
        default, 2 kN, 0.5 deg, 5 mm for a single row, and estimated for more rows.
    step : float
        Length of a step [s].

    Raises
    ------
    InputError
        For arguments that are not allowed, and when the data do not determine the cohesion: with
        the values that fit equally well.
    """
    search = _Search(excavator, scenario, data, bounds, _noise(data, noise), step)
    search.scan()
    estimates = noise is None and len(data.values) > 1
    for _ in range(_ROUNDS):
        best = search.lowest()
        if not estimates:
            break
        before, least = search.sigma, _LEAST_NOISE * _noise(data)
        search.sigma = np.maximum(_rms(search.errors(best)), least)
        if np.allclose(search.sigma, before, rtol=0.01):
            break
    search.spread = _spread(search.errors(best) / search.sigma)
    search.check_determined(best)
    error = search.standard_error(best)
    # Jumps may hide a better one nearby.
    reach = 3.0 * min(error, _WIDEST * best)
    for value in np.linspace(best - reach, best + reach, 13):
        search.errors(float(np.clip(value, *bounds)))
    if search.best() != best:
        best = search.best()
        low, high = max(best - reach / 6.0, bounds[0]), min(best + reach / 6.0, bounds[1])
        best = search.minimum(low, high)
        error = search.standard_error(best)
    equal = max(abs(value - best) for value in search.tried() if search.fits(value, best))
    return CohesionFit(
        cohesion=best,
        standard_error=max(error, 0.5 * equal),
        data=data,
        noise=search.sigma,
        fitted=data.values + search.errors(best),
        scan=np.array([(value, search.sum_of_squares(value)) for value in search.tried()]),
        result=search.result(best),
    )


def _unexplained(data: Measurements, errors: np.ndarray) -> list[str]:
    """Return what is wrong with columns of which errors (rows, columns) leave the variation."""
    found = []
    for name, values, rms in zip(data.columns, data.values.T, _rms(errors).tolist(), strict=True):
        unit, least = kind_of(name)
        varies = float(np.std(values))
        if len(values) > 1 and rms > max(_EXPLAINED * varies, least):
            found.append(
                f'{name} varies by {varies:.3g} {unit}, and the best run is off by {rms:.3g}'
                f' {unit}: its sign, unit, column or time is wrong, or machine or scenario are'
                ' others'
            )
    return found


def roughly(
    excavator: ExcavatorParameters, scenario: Scenario, data: Measurements, sigma: np.ndarray
) -> float:
    """Return the best of some cohesions over the whole range [Pa]; ``sigma`` (columns,): noise."""
    search = _Search(excavator, scenario, data, BOUNDS, sigma, STEP)
    search.scan()
    return search.best()


class _Search:
    """Runs of a scenario with different cohesions, and their differences from data."""

    def __init__(
        self,
        excavator: ExcavatorParameters,
        scenario: Scenario,
        data: Measurements,
        bounds: tuple[float, float],
        sigma: np.ndarray,
        step: float,
    ) -> None:
        if not scenario.soil:
            raise InputError('the scenario has soil: false, allowed: true, to find its cohesion')
        if scenario.depth not in FIXED_DEPTHS:
            raise InputError(
                f'depth = {scenario.depth!r}, allowed to find a cohesion:'
                f' {" | ".join(FIXED_DEPTHS)}; forces on ground that slides change in jumps, and'
                ' a search ends beside the best fit'
            )
        _check_bounds(excavator, bounds)
        self._excavator, self._data, self._step = excavator, data, step
        self._bounds, self._interval, self._scenario = bounds, step, scenario
        self._errors: dict[float, np.ndarray] = {}
        self.sigma, self.spread = sigma, 1.0
        times = data.times
        # No interpolation is needed where the times of the data are rows of the run.
        fits = scenario.mode == 'hydraulic' if times is None else _is_whole(times / SAMPLE_TIME)
        if fits and _is_whole(SAMPLE_TIME / step):
            self._interval = SAMPLE_TIME
        if times is not None:
            samples = max(math.ceil(times[-1] / self._interval - 1e-9), 1)
            duration = step_time(samples, self._interval)
            self._scenario = scenario.replace(duration=duration)

    def result(self, cohesion: float) -> ExcavatorRun:
        """Return a run."""
        scenario = self._scenario.replace(cohesion=cohesion)
        return simulate(self._excavator, scenario, self._step, self._interval)

    def errors(self, cohesion: float) -> np.ndarray:
        """Return simulated minus measured values (rows, columns); inf for a run that failed."""
        if cohesion not in self._errors:
            data = self._data
            result = self.result(cohesion)
            if result.message:
                self._errors[cohesion] = np.full(data.values.shape, np.inf)
            else:
                when = result.column('time')
                times = when[-1:] if data.times is None else data.times
                curves = [np.interp(times, when, result.column(name)) for name in data.columns]
                self._errors[cohesion] = np.stack(curves, axis=1) - data.values
        return self._errors[cohesion]

    def sum_of_squares(self, cohesion: float) -> float:
        """Return the sum of squared errors in units of the noise."""
        return float(np.sum((self.errors(cohesion) / self.sigma) ** 2))

    def tried(self) -> list[float]:
        """Return the cohesions tried so far, increasing [Pa]."""
        return sorted(self._errors)

    def best(self) -> float:
        """Return the best cohesion so far [Pa]."""
        best = min(self._errors, key=self.sum_of_squares)
        if not math.isfinite(self.sum_of_squares(best)):
            raise InputError(
                'the scenario runs away with every cohesion; look at it with `longreach excavator'
                ' dig` or `run`'
            )
        return best

    def scan(self) -> None:
        """Try cohesions over the whole range."""
        for value in np.geomspace(*self._bounds, _SCAN):
            self.errors(float(value))

    def explore(self) -> None:
        """
        Try cohesions between neighbours while one of them could be better than the best.

        In units of the noise, an error is the distance of a curve from the data. By the triangle
        inequality, a curve between two neighbours can meet the data only if the sum of their
        distances from the data does not exceed their distance from each other.
        """
        while len(known := self.tried()) < _MOST:
            errors = np.array([self.errors(value) / self.sigma for value in known])
            squares = np.sum(errors**2, axis=(1, 2))
            away = np.sqrt(squares - squares.min())
            gains = np.full(len(known) - 1, -np.inf)
            for k in range(len(gains)):
                if known[k + 1] / known[k] > _FINE and np.isfinite(squares[k : k + 2]).all():
                    apart = float(np.linalg.norm(errors[k + 1] - errors[k]))
                    gains[k] = _DETOUR * apart - away[k] - away[k + 1]
            index = int(gains.argmax())
            if gains[index] < _LEAST_GAIN:
                break
            self.errors(math.sqrt(known[index] * known[index + 1]))

    def lowest(self) -> float:
        """Return the best cohesion of the whole range [Pa]."""
        self.best()
        self.explore()
        best, known = self.best(), self.tried()
        index = known.index(best)
        low = max(min(known[max(index - 1, 0)], best / _FINE), self._bounds[0])
        high = min(max(known[min(index + 1, len(known) - 1)], best * _FINE), self._bounds[1])
        return self.minimum(low, high)

    def minimum(self, low: float, high: float) -> float:
        """Return the best cohesion [Pa] after a search between two bounds [Pa]."""
        from scipy.optimize import minimize_scalar  # not for every command

        minimize_scalar(
            lambda value: min(self.sum_of_squares(float(value)), _HUGE),
            bounds=(low, high),
            method='bounded',
            options={'xatol': _PRECISION * low},
        )
        return self.best()

    def fits(self, value: float, best: float) -> bool:
        """Return whether a cohesion fits as well as the best one."""
        limit = self.sum_of_squares(best) + _EQUAL * self.spread
        return self.sum_of_squares(value) <= limit

    def check_determined(self, best: float) -> None:
        """Raise InputError when others fit as well: up to a bound, or apart from the best."""
        known, bounds = self.tried(), self._bounds
        good = [self.fits(value, best) for value in known]
        first = last = known.index(best)
        while first > 0 and good[first - 1]:
            first -= 1
        while last < len(known) - 1 and good[last + 1]:
            last += 1
        below, above = first == 0, last == len(known) - 1
        others = [
            value
            for k, value in enumerate(known)
            if good[k] and not first <= k <= last and not 1.0 / _APART < value / best < _APART
        ]
        if not (below or above or others):
            return
        low = bounds[0] if below else self._edge(best, known[first], known[first - 1])
        high = bounds[1] if above else self._edge(best, known[last], known[last + 1])
        text = f'from {low:.0f} to {high:.0f} Pa'
        if others:
            text += f', and about {others[0]:.0f} Pa,'
        said = {
            (True, True): 'they say nothing about it',
            (True, False): f'it is at most {high:.0f} Pa',
            (False, True): f'it is at least {low:.0f} Pa',
            (False, False): 'it is one of these',
        }
        raise InputError(
            f'{self._data.name}: the data do not determine the cohesion: values {text} fit equally'
            f' well; {said[below, above]}. Add a rod force or angles over time, or a dig that'
            f' stalls; or give other bounds than {bounds[0]:g} to {bounds[1]:g} Pa'
            + ''.join(f'. {text}' for text in _unexplained(self._data, self.errors(best)))
        )

    def _edge(self, best: float, good: float, bad: float) -> float:
        """Return the last cohesion that fits [Pa] between one that does and one that does not."""
        while abs(bad / good - 1.0) > 1e-3:
            middle = math.sqrt(good * bad)
            good, bad = (middle, bad) if self.fits(middle, best) else (good, middle)
        return good

    def standard_error(self, best: float) -> float:
        """Return the standard error [Pa], by differences of its own width: jumps are narrower."""
        width = 1e-3 * best
        for _ in range(3):
            tried = (max(best - width, self._bounds[0]), best, min(best + width, self._bounds[1]))
            ends = [value for value in tried if np.isfinite(self.errors(value)).all()]
            change = (self.errors(ends[-1]) - self.errors(ends[0])) / self.sigma
            slope = float(np.linalg.norm(change)) / max(ends[-1] - ends[0], _PRECISION * best)
            error = math.sqrt(self.spread) / slope if slope > 0.0 else math.inf
            width = min(max(error, _NARROWEST * best), _WIDEST * best)
        return error


def _is_whole(values: Any) -> bool:
    """Return whether all numbers are integers within rounding."""
    return bool(np.all(np.abs(values - np.round(values)) < 1e-6))


def _check_bounds(excavator: ExcavatorParameters, bounds: tuple[float, float]) -> None:
    """Raise InputError for bounds that are not ordered, or that the soil's law does not allow."""
    low, high = bounds
    if not 0.0 < low < high < math.inf:
        raise InputError(f'bounds = ({low:g}, {high:g}) Pa, allowed: 0 < lowest < highest')
    for value in bounds:
        try:
            excavator.soil.replace(cohesion=value)
        except InputError as error:
            raise InputError(f'bounds = ({low:g}, {high:g}) Pa: {error}') from error


def _noise(data: Measurements, noise: Mapping[str, float] | None = None) -> np.ndarray:
    """Return the noise of each column: given, or else the assumed one."""
    usual = {name: kind_of(name)[1] for name in data.columns}
    for name, value in (noise or {}).items():
        if name not in usual:
            raise InputError(f'noise of {name!r}, allowed: of {", ".join(data.columns)}')
        if not 0.0 < value < math.inf:
            raise InputError(f'noise of {name} = {value}, allowed: (0, inf) {kind_of(name)[0]}')
        usual[name] = value
    return np.array(list(usual.values()))


def _rms(errors: np.ndarray) -> np.ndarray:
    """Return the root mean square of each column."""
    return np.asarray(np.sqrt(np.mean(errors**2, axis=0)))


def _spread(errors: np.ndarray) -> float:
    """
    Return the factor of the cohesion's variance from errors in units of the noise.

    Above 1 where the residuals exceed the noise, and where errors are autocorrelated: n errors
    with the correlation r of successive rows have the effective number n (1 - r) / (1 + r).
    """
    total = float(np.sum(errors**2))
    spread = max(total / max(errors.size - 1, 1), 1.0)
    if len(errors) >= _ROWS_FOR_CORRELATION and total > 0.0:
        following = float(np.sum(errors[1:] * errors[:-1])) / total
        following = min(max(following, 0.0), _MOST_CORRELATION)
        spread *= (1.0 + following) / (1.0 - following)
    return spread
