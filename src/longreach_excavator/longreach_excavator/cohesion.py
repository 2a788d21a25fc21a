"""
Estimation of the cohesion of a soil from measurements of digging.

The thesis tries four values until the final pose and the force in a rod look right (Ozunlu 2009,
5.2); here it is :mod:`longreach_identification.estimation`. The standard error states how well the
data determine the cohesion, not how well the model describes the soil.

A bucket that stalls, or a valve that closes at the end of the sweep, makes narrow minima and jumps
in the sum of squares. The search begins at the best of a scan, refined where a value between two
neighbours could fit better; a derivative-free search (Brent) follows in each valley between jumps
nearby. Data need not determine the cohesion, as the pose after a full sweep: an error then reports
the range of values that fit equally well.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from longreach_dynamics.errors import InputError, check_among, check_within, named
from longreach_excavator.columns import COLUMNS
from longreach_excavator.machine import STEP
from longreach_excavator.measurements import Measurements, usual_noise
from longreach_excavator.parameters import ExcavatorParameters
from longreach_excavator.scenario import FIXED_DEPTHS, Scenario
from longreach_excavator.simulation import ExcavatorRun, simulate
from longreach_identification.estimation import Estimate, Problem, Unknown, estimate
from longreach_identification.machine import Recording, Signal
from longreach_identification.search import INTERRUPTED
from longreach_machine.machine import step_time

BOUNDS = (1e3, 1e5)  # [Pa]
# Values of the scan, maximum number with refinement, and smallest ratio of neighbours.
_SCAN, _MOST, _FINE = 25, 80, 1.01
# Length of a curve between two neighbours over their distance; smallest useful improvement [1].
_DETOUR, _LEAST_GAIN = 1.5, 2.0
# Least and largest distance from the best value, as a share of it, up to which all valleys are
# searched, from so many values; rounds of that, as each may tell the noise better.
_LEAST_REACH, _LARGEST_REACH, _VALUES, _ROUNDS = 0.03, 0.1, 41, 4
# In place of infinity, which Brent's method cannot use.
_HUGE = 1e100
# Increase of the sum of squares up to which values fit equally well: two standard errors; and
# places, in those, where jumps may let values fit as well that the derivative rules out.
_EQUAL, _NEAR = 4.0, np.array([1.0, 1.5, 2.0, 3.0])
# Finest and coarsest precision of the range of such values, as a share; those that are no further
# than this share from the best one belong to the same minimum.
_PRECISION, _COARSE, _APART = 1e-6, 1e-3, 0.05


@dataclasses.dataclass(frozen=True)
class CohesionFit:
    """The cohesion that fits measurements best."""

    cohesion: float  # [Pa]
    # [Pa]; larger by Student's factor where few rows tell the noise: two of them hold 95 %.
    standard_error: float
    data: Measurements
    estimate: Estimate  # residuals and noise of the columns, warnings
    fitted: np.ndarray  # (rows, columns) of the run with this cohesion, at the measured times
    # (values, 2) cohesions that were tried, increasing [Pa]; sums of squares over the noise [1].
    scan: np.ndarray
    result: ExcavatorRun  # with this cohesion

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

    def summary(self) -> dict[str, Any]:
        """Return cohesion, errors, and sweep and stall of the run with it as plain numbers."""
        return {
            'cohesion_pa': self.cohesion,
            'standard_error_pa': self.standard_error,
            'residuals': {
                name: {'rms': rms, 'unit': COLUMNS.unit(name)}
                for name, rms in self.residuals().items()
            },
            'rows': len(self.data.values),
            'warnings': list(self.estimate.warnings),
            'runs': len(self.scan),
            'stalled': self.result.stalled(),
            'sweep_deg': float(np.degrees(self.result.column('swept')[-1])),
        }


def fit_cohesion(
    excavator: ExcavatorParameters,
    scenario: Scenario,
    data: Measurements,
    bounds: tuple[float, float] = BOUNDS,
    noise: Mapping[str, float] | None = None,
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
        Standard deviations of measured columns, in their units. That of others is estimated; of a
        single row it is 2 kN, 0.5 deg, 5 mm.

    Raises
    ------
    InputError
        For arguments that are not allowed, and when the data do not determine the cohesion: with
        the values that fit equally well.
    """
    from scipy.stats import norm, t  # not for every command

    digs = _Digs(excavator, scenario, data, bounds)
    known = _noise(data, noise or {})
    factor = 1.0
    if len(known) < len(data.columns):
        factor = float(t.ppf(0.975, max(len(data.values) - 1, 1)) / norm.ppf(0.975))
    for value in np.geomspace(*bounds, _SCAN):
        digs.errors(float(value))
    best = math.nan
    for _ in range(_ROUNDS):
        digs.explore()
        if best == digs.best():
            break
        found = estimate(digs.problem(digs.best(), known))
        if found.status == INTERRUPTED:
            raise KeyboardInterrupt
        digs.sigma = np.array([found.fit[name].deviation for name in data.columns])
        best, error = digs.best(), float(found.standard_errors[0])
        reach = digs.search(best, error)
    best, inflation = digs.best(), float(found.inflation[0])
    digs.spread = factor**2 * (inflation if math.isfinite(inflation) else 1.0)
    precision = min(max(0.2 * error / best, _PRECISION), _COARSE)
    equal = digs.equal(best, reach, precision, found.warnings)
    return CohesionFit(
        cohesion=best,
        standard_error=max(factor * error, 0.5 * equal),
        data=data,
        estimate=found,
        fitted=data.values + digs.errors(best),
        scan=np.array([(value, digs.sum_of_squares(value)) for value in digs.tried()]),
        result=digs.result(best),
    )


class _Digs:
    """Runs of a scenario with different cohesions, and their differences from data."""

    def __init__(
        self,
        excavator: ExcavatorParameters,
        scenario: Scenario,
        data: Measurements,
        bounds: tuple[float, float],
    ) -> None:
        if not scenario.soil:
            raise InputError('the scenario has soil: false, allowed: true, to find its cohesion')
        remedy = '; forces on ground that slides jump, and a search ends beside the best fit'
        check_among('depth', scenario.depth, FIXED_DEPTHS, remedy)
        low, high = bounds
        if not 0.0 < low < high < math.inf:
            raise InputError(f'bounds = ({low:g}, {high:g}) Pa, allowed: 0 < lowest < highest')
        for value in bounds:
            with named(f'bounds = ({low:g}, {high:g}) Pa: '):
                excavator.soil.replace(cohesion=value)
        data.check_with(excavator)
        self._excavator, self._data, self._bounds = excavator, data, bounds
        self._errors: dict[float, np.ndarray] = {}
        self.sigma = np.array([usual_noise(name) for name in data.columns])
        self.spread = 1.0
        if data.times is not None:
            steps = max(math.ceil(data.times[-1] / STEP - 1e-9), 1)
            scenario = scenario.replace(duration=step_time(steps, STEP))
        self._scenario = scenario

    def result(self, cohesion: float) -> ExcavatorRun:
        """Return a run."""
        scenario = self._scenario.replace(cohesion=cohesion)
        return simulate(self._excavator, scenario, sample_time=STEP)

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

    def predict(self, _number: int, values: Mapping[str, float]) -> dict[str, np.ndarray]:
        """Return the columns with a cohesion."""
        columns = self._data.values + self.errors(values['cohesion'])
        return dict(zip(self._data.columns, columns.T, strict=True))

    def problem(self, start: float, noise: Mapping[str, float]) -> Problem:
        """Return the problem of estimation from a cohesion on [Pa], with noise that is known."""
        data = self._data
        times = np.zeros(1) if data.times is None else data.times
        signals = {
            name: Signal(times, values, np.full(times.size, noise.get(name, math.nan)))
            for name, values in zip(data.columns, data.values.T, strict=True)
        }
        unknown = Unknown('cohesion', start, *self._bounds)
        return Problem(self.predict, (Recording(data.name, signals),), (unknown,))

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

    def explore(self) -> None:
        """Try cohesions between neighbours while one of them could be better than the best."""
        # A curve between two neighbours can meet the data only if the sum of their distances from
        # the data, in units of the noise, does not exceed their distance from each other.
        while len(known := self.tried()) < _MOST:
            errors = np.array([self.errors(value) / self.sigma for value in known])
            squares = np.sum(errors**2, axis=(1, 2))
            if not np.isfinite(squares).any():
                break
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

    def search(self, best: float, error: float) -> float:
        """Search all valleys near the best one [Pa], and return up to where they were."""
        from scipy.optimize import minimize_scalar  # not for every command

        def at(way: float) -> float:
            return float(np.clip(best + way, *self._bounds))

        # Jumps hide better ones nearby, each in a valley of its own, and make the derivative's
        # error too small: as far as values fit.
        reach, most = _LEAST_REACH * best, _LARGEST_REACH * best
        reach = min(max(3.0 * error, reach), most)
        while reach < most and any(self.fits(at(way), best) for way in (-reach, reach)):
            reach = min(2.0 * reach, most)
        even = np.linspace(-reach, reach, _VALUES)
        apart = np.abs(np.subtract.outer(best + even, self.tried())).min(axis=1)
        near = np.outer([-error, error], _NEAR).ravel() if error < reach else np.zeros(0)
        for way in (*even[apart > reach / _VALUES], *near):
            self.errors(at(way))
        known = self.tried()
        squares = [self.sum_of_squares(value) for value in known]
        for k in range(1, len(known) - 1):
            if abs(known[k] - best) <= reach and squares[k] < min(squares[k - 1], squares[k + 1]):
                # Without derivatives: there are jumps.
                minimize_scalar(
                    lambda value: min(self.sum_of_squares(float(value)), _HUGE),
                    bounds=(known[k - 1], known[k + 1]),
                    method='bounded',
                    options={'xatol': max(0.1 * error, _PRECISION * best)},
                )
        return reach

    def fits(self, value: float, best: float) -> bool:
        """Return whether a cohesion fits as well as the best one."""
        limit = self.sum_of_squares(best) + _EQUAL * self.spread
        return self.sum_of_squares(value) <= limit

    def equal(
        self, best: float, reach: float, precision: float, warnings: tuple[str, ...]
    ) -> float:
        """
        Return how far from the best one values fit as well [Pa], those of other valleys too.

        InputError when they go up to a bound, or others beyond ``reach`` fit as well.
        """
        known, (low, high) = self.tried(), self._bounds
        good = [k for k, value in enumerate(known) if self.fits(value, best)]
        first = last = known.index(best)
        while first - 1 in good:
            first -= 1
        while last + 1 in good:
            last += 1
        apart = max(reach, _APART * best)
        others = [k for k in good if not first <= k <= last and abs(known[k] - best) > apart]
        refused = bool(others) or first == 0 or last == len(known) - 1
        ends = []
        for k, step in zip(
            (first, last) if refused else (good[0], good[-1]), (-1, 1), strict=True
        ):
            # Between one that fits and the next.
            fit, bad = known[k], known[min(max(k + step, 0), len(known) - 1)]
            while abs(bad / fit - 1.0) > precision:
                middle = math.sqrt(fit * bad)
                fit, bad = (middle, bad) if self.fits(middle, best) else (fit, middle)
            ends.append(fit)
        if refused:
            also = f', and about {known[others[0]]:.0f} Pa,' if others else ''
            raise InputError(
                f'{self._data.name}: the data do not determine the cohesion: values from'
                f' {ends[0]:.0f} to {ends[1]:.0f} Pa{also} fit equally well. Add a rod force or'
                ' angles over time, or a dig that stalls; or give other bounds than'
                f' {low:g} to {high:g} Pa' + ''.join(f'. {text}' for text in warnings)
            )
        return max(abs(one - best) for one in ends)


def _noise(data: Measurements, given: Mapping[str, float]) -> dict[str, float]:
    """Return the noise of columns where it is known: given, or that of a single row."""
    for name, value in given.items():
        check_among('column of noise', name, data.columns)
        check_within(f'noise of {name}', value, f'(0, inf) {COLUMNS.unit(name)}')
    single = data.columns if len(data.values) == 1 else ()
    return {name: usual_noise(name) for name in single} | dict(given)
