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
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from longreach_dynamics.errors import InputError
from longreach_dynamics.tables import Table, read_table
from longreach_excavator.linkage import CYLINDERS
from longreach_excavator.machine import SAMPLE_TIME, STEP
from longreach_excavator.parameters import ExcavatorParameters
from longreach_excavator.results import ExcavatorRun
from longreach_excavator.scenario import FIXED_DEPTHS, Scenario
from longreach_excavator.simulation import simulate

BOUNDS = (1e3, 1e5)  # [Pa]
STEEL = 2.1e11  # modulus of elasticity [Pa]

_RODS = ('lk', 'pk')
# Measured quantities: unit, and the noise that is assumed where none is given or estimated.
_KINDS = {
    'force': ('N', 2e3),
    'theta': ('rad', math.radians(0.5)),
    'length': ('m', 5e-3),
}
# Larger values mean wrong units.
_LARGEST = {'force': 1e8, 'theta': 2.0 * math.pi, 'length': 100.0}
MEASURED = (
    *(f'force_{rod}' for rod in _RODS),
    *(f'theta_{k}' for k in (2, 3, 4)),
    *(f'length_{name}' for name in CYLINDERS),
)
# Larger strains are not elastic; the column is probably in microstrain.
_LARGEST_STRAIN = 0.01

# Values of the scan, maximum number with refinement, and smallest ratio of neighbours.
_SCAN, _MOST, _FINE = 25, 80, 1.01
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
class Measurements:
    """Measurements of digging; InputError for what cannot have been measured."""

    columns: tuple[str, ...]
    values: np.ndarray
    times: np.ndarray | None = None
    name: str = 'data'

    def __post_init__(self) -> None:
        """Check names, shapes, numbers and times."""
        for name in self.columns:
            if name not in MEASURED or self.columns.count(name) > 1:
                raise InputError(
                    f'{self.name} has the column {name!r}, allowed, each once:'
                    f' {", ".join(MEASURED)}'
                )
        rows = 1 if self.times is None else len(self.times)
        if not self.columns or self.values.shape != (rows, len(self.columns)) or not rows:
            raise InputError(
                f'{self.name} has values of shape {self.values.shape}, allowed: {rows or 1} rows'
                f' of {len(self.columns) or "one or more"} columns; without times one row, the'
                ' end'
            )
        if not np.isfinite(self.values).all():
            raise InputError(f'{self.name} has values that are not finite, allowed: finite ones')
        for name, values in zip(self.columns, self.values.T, strict=True):
            largest, most = float(np.abs(values).max()), _LARGEST[name.partition('_')[0]]
            if largest > most:
                raise InputError(
                    f'{self.name}: {name} goes to {largest:g} {_kind(name)[0]}, allowed: up to'
                    f' {most:g}; look at its unit'
                )
        if self.times is None:
            return
        if not np.isfinite(self.times).all() or self.times[0] < 0.0:
            raise InputError(
                f'{self.name}: time begins at {self.times[0]:g} s, allowed: finite times from 0'
                ' on, when the bucket begins to dig'
            )
        if np.any(np.diff(self.times) <= 0.0):
            k = int(np.argmax(np.diff(self.times) <= 0.0)) + 1
            raise InputError(
                f'{self.name}: time in row {k + 1} = {self.times[k]:g} s, allowed: above'
                f' {self.times[k - 1]:g} s of the row before; sort the rows'
            )


def read_measurements(
    file: str | Path, rod_area: float | None = None, youngs_modulus: float = STEEL
) -> Measurements:
    """
    Read measurements from a CSV file; see :func:`measurements_from` for columns and errors.

    Parameters
    ----------
    file : path
    rod_area : float, optional
        Cross-section of the rod with the strain gauge [m^2].
    youngs_modulus : float
        Modulus of elasticity of the rod [Pa].
    """
    return measurements_from(read_table(file, None), rod_area, youngs_modulus)


def measurements_from(
    table: Table, rod_area: float | None = None, youngs_modulus: float = STEEL
) -> Measurements:
    """
    Return the measurements in a table.

    Parameters
    ----------
    table : Table
        Any of force_lk, force_pk, tensions of lever and rod [N]; strain_lk, strain_pk, from which
        they follow; theta_2 to theta_4 [rad], or with _deg; length_boom, length_arm, length_bucket
        [m] for joints without an angle. With time [s], or one row for the end of the digging.
        Other columns are ignored, so that a file of ``dig --csv`` can be read.
    rod_area : float, optional
        Cross-section of the lever or rod with the gauge [m^2]; for two side by side, the sum of
        both, whose strains are assumed to be equal.
    youngs_modulus : float
        E of F = A E eps, Ozunlu 2009, (5.6) [Pa].

    Raises
    ------
    InputError
        When no column can be fitted, or a strain cannot be converted to a force.
    """
    found: dict[str, np.ndarray] = {}
    for rod in _RODS:
        known = {name: table[name] for name in (f'force_{rod}', f'strain_{rod}') if name in table}
        _check_single(table, tuple(known))
        if f'strain_{rod}' in known:
            known = {'': _force_of(table, f'strain_{rod}', rod_area, youngs_modulus)}
        for values in known.values():
            found[f'force_{rod}'] = values
    for k, cylinder in zip((2, 3, 4), CYLINDERS, strict=True):
        radians, degrees, length = f'theta_{k}', f'theta_{k}_deg', f'length_{cylinder}'
        _check_single(table, tuple(name for name in (radians, degrees) if name in table))
        if radians in table:
            found[radians] = table[radians]
        elif degrees in table:
            found[radians] = np.radians(table[degrees])
        elif length in table:
            found[length] = table[length]
    if not found:
        raise InputError(
            f'{table.file}: found the columns {", ".join(table)}; allowed: time with any of'
            f' {", ".join(MEASURED)}, strain_lk, strain_pk'
        )
    times = table.get('time')
    rows = len(next(iter(found.values())))
    if times is None and rows > 1:
        raise InputError(
            f'{table.file} has {rows} rows and no column time, allowed: one row, the end of the'
            ' digging, or a time for each'
        )
    columns = tuple(name for name in MEASURED if name in found)
    values = np.stack([found[name] for name in columns], axis=1)
    return Measurements(columns, values, times, str(table.file))


def _check_single(table: Table, names: tuple[str, ...]) -> None:
    """Raise InputError for two columns of the same quantity."""
    if len(names) > 1:
        raise InputError(f'{table.file} has columns {" and ".join(names)}, allowed: one of them')


def _force_of(
    table: Table, name: str, rod_area: float | None, youngs_modulus: float
) -> np.ndarray:
    """Return the tension [N] of a measured strain, (5.6)."""
    if rod_area is None:
        raise InputError(
            f'{table.file} has the column {name}, but rod_area is missing: the cross-section with'
            ' the gauge [m^2]'
        )
    for what, value in (('rod_area', rod_area), ('youngs_modulus', youngs_modulus)):
        if not 0.0 < value < math.inf:
            raise InputError(f'{what} = {value}, allowed: (0, inf)')
    largest = float(np.abs(table[name]).max())
    if largest > _LARGEST_STRAIN:
        raise InputError(
            f'{table.file}: {name} goes to {largest:g}, allowed: up to {_LARGEST_STRAIN:g};'
            ' microstrain are to be divided by a million'
        )
    return rod_area * youngs_modulus * table[name]


@dataclasses.dataclass(frozen=True)
class CohesionFit:
    """The cohesion that fits measurements best."""

    cohesion: float
    standard_error: float
    data: Measurements
    noise: np.ndarray
    fitted: np.ndarray
    scan: np.ndarray
    result: ExcavatorRun

    @property
    def runs(self) -> int:
        """Number of runs of the search."""
        return len(self.scan)

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
                name: {'rms': rms, 'unit': _kind(name)[0]}
                for name, rms in self.residuals().items()
            },
            'rows': len(self.data.values),
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
    if not scenario.soil:
        raise InputError('the scenario has soil: false, allowed: true, to find its cohesion')
    if scenario.depth not in FIXED_DEPTHS:
        raise InputError(
            f'depth = {scenario.depth!r}, allowed to find a cohesion: {" | ".join(FIXED_DEPTHS)};'
            ' forces on ground that slides change in jumps, and a search ends beside the best fit'
        )
    _check_bounds(excavator, bounds)
    sigma = _noise(data, noise)
    runs = _Runs(excavator, scenario, data, step)
    for value in np.geomspace(*bounds, _SCAN):
        runs.errors(float(value))
    estimates = noise is None and len(data.values) > 1
    for _ in range(_ROUNDS):
        best = _lowest(runs, sigma, bounds)
        if not estimates:
            break
        before, sigma = sigma, np.maximum(_rms(runs.errors(best)), _LEAST_NOISE * _noise(data))
        if np.allclose(sigma, before, rtol=0.01):
            break
    spread = _spread(runs.errors(best) / sigma)
    _check_determined(runs, sigma, spread, best, bounds)
    error = _standard_error(runs, sigma, spread, best, bounds)
    # Jumps may hide a better one nearby.
    reach = 3.0 * min(error, _WIDEST * best)
    for value in np.linspace(best - reach, best + reach, 13):
        runs.errors(float(np.clip(value, *bounds)))
    if runs.best(sigma) != best:
        best = runs.best(sigma)
        low, high = max(best - reach / 6.0, bounds[0]), min(best + reach / 6.0, bounds[1])
        best = _search(runs, sigma, low, high)
        error = _standard_error(runs, sigma, spread, best, bounds)
    return CohesionFit(
        cohesion=best,
        standard_error=max(error, 0.5 * _reach(runs, sigma, spread, best)),
        data=data,
        noise=sigma,
        fitted=data.values + runs.errors(best),
        scan=np.array([(value, runs.sum_of_squares(value, sigma)) for value in runs.tried()]),
        result=runs.result(best),
    )


class _Runs:
    """Runs of a scenario with different cohesions, and their differences from data."""

    def __init__(
        self, excavator: ExcavatorParameters, scenario: Scenario, data: Measurements, step: float
    ) -> None:
        self._excavator, self._data, self._step = excavator, data, step
        self._interval, self._scenario = step, scenario
        self._errors: dict[float, np.ndarray] = {}
        self.name = data.name
        times = data.times
        # No interpolation is needed where the times of the data are rows of the run.
        fits = scenario.mode == 'hydraulic' if times is None else _is_whole(times / SAMPLE_TIME)
        if fits and _is_whole(SAMPLE_TIME / step):
            self._interval = SAMPLE_TIME
        if times is not None:
            samples = max(math.ceil(times[-1] / self._interval - 1e-9), 1)
            duration = round(samples * self._interval, 12)
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

    def sum_of_squares(self, cohesion: float, sigma: np.ndarray) -> float:
        """Return the sum of squared errors in units of the noise."""
        return float(np.sum((self.errors(cohesion) / sigma) ** 2))

    def tried(self) -> list[float]:
        """Return the cohesions tried so far, increasing [Pa]."""
        return sorted(self._errors)

    def best(self, sigma: np.ndarray) -> float:
        """Return the best cohesion so far [Pa]."""
        best = min(self._errors, key=lambda value: self.sum_of_squares(value, sigma))
        if not math.isfinite(self.sum_of_squares(best, sigma)):
            raise InputError(
                'the scenario runs away with every cohesion; look at it with `longreach excavator'
                ' dig` or `run`'
            )
        return best


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


def _kind(name: str) -> tuple[str, float]:
    """Return unit and usual noise of a column."""
    return _KINDS[name.partition('_')[0]]


def _noise(data: Measurements, noise: Mapping[str, float] | None = None) -> np.ndarray:
    """Return the noise of each column: given, or else the assumed one."""
    usual = {name: _kind(name)[1] for name in data.columns}
    for name, value in (noise or {}).items():
        if name not in usual:
            raise InputError(f'noise of {name!r}, allowed: of {", ".join(data.columns)}')
        if not 0.0 < value < math.inf:
            raise InputError(f'noise of {name} = {value}, allowed: (0, inf) {_kind(name)[0]}')
        usual[name] = value
    return np.array(list(usual.values()))


def _rms(errors: np.ndarray) -> np.ndarray:
    """Return the root mean square of each column."""
    return np.asarray(np.sqrt(np.mean(errors**2, axis=0)))


def _explore(runs: _Runs, sigma: np.ndarray) -> None:
    """
    Try cohesions between neighbours while one of them could be better than the best.

    In units of the noise, an error is the distance of a curve from the data. By the triangle
    inequality, a curve between two neighbours can meet the data only if the sum of their distances
    from the data does not exceed their distance from each other.
    """
    while len(known := runs.tried()) < _MOST:
        errors = np.array([runs.errors(value) / sigma for value in known])
        squares = np.sum(errors**2, axis=(1, 2))
        away = np.sqrt(squares - squares.min())
        gains = np.full(len(known) - 1, -np.inf)
        for k in range(len(gains)):
            if known[k + 1] / known[k] > _FINE and np.isfinite(squares[k : k + 2]).all():
                apart = float(np.linalg.norm(errors[k + 1] - errors[k]))
                gains[k] = _DETOUR * apart - away[k] - away[k + 1]
        place = int(gains.argmax())
        if gains[place] < _LEAST_GAIN:
            break
        runs.errors(math.sqrt(known[place] * known[place + 1]))


def _lowest(runs: _Runs, sigma: np.ndarray, bounds: tuple[float, float]) -> float:
    """Return the best cohesion [Pa]."""
    runs.best(sigma)
    _explore(runs, sigma)
    best, known = runs.best(sigma), runs.tried()
    place = known.index(best)
    low = max(min(known[max(place - 1, 0)], best / _FINE), bounds[0])
    high = min(max(known[min(place + 1, len(known) - 1)], best * _FINE), bounds[1])
    return _search(runs, sigma, low, high)


def _search(runs: _Runs, sigma: np.ndarray, low: float, high: float) -> float:
    """Return the best cohesion [Pa] after a search between two bounds [Pa]."""
    from scipy.optimize import minimize_scalar  # not for every command

    minimize_scalar(
        lambda value: min(runs.sum_of_squares(float(value), sigma), _HUGE),
        bounds=(low, high),
        method='bounded',
        options={'xatol': _PRECISION * low},
    )
    return runs.best(sigma)


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


def _check_determined(
    runs: _Runs, sigma: np.ndarray, spread: float, best: float, bounds: tuple[float, float]
) -> None:
    """Raise InputError when other cohesions fit as well: up to a bound, or apart from the best."""
    limit = runs.sum_of_squares(best, sigma) + _EQUAL * spread

    def fits(value: float) -> bool:
        return runs.sum_of_squares(value, sigma) <= limit

    known = runs.tried()
    good = [fits(value) for value in known]
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
    ends = [bounds[0], bounds[1]]
    if not below:
        ends[0] = _edge(fits, known[first], known[first - 1])
    if not above:
        ends[1] = _edge(fits, known[last], known[last + 1])
    text = f'from {ends[0]:.0f} to {ends[1]:.0f} Pa'
    if others:
        text += f', and about {others[0]:.0f} Pa,'
    if below and above:
        said = 'they say nothing about it'
    elif below:
        said = f'it is at most {ends[1]:.0f} Pa'
    elif above:
        said = f'it is at least {ends[0]:.0f} Pa'
    else:
        said = 'it is one of these'
    raise InputError(
        f'{runs.name}: the data do not determine the cohesion: values {text} fit equally well;'
        f' {said}. Add a rod force or angles over time, or a dig that stalls; or give other bounds'
        f' than {bounds[0]:g} to {bounds[1]:g} Pa'
    )


def _reach(runs: _Runs, sigma: np.ndarray, spread: float, best: float) -> float:
    """Return the largest distance from the best of values that fit equally well [Pa]."""
    limit = runs.sum_of_squares(best, sigma) + _EQUAL * spread
    good = [value for value in runs.tried() if runs.sum_of_squares(value, sigma) <= limit]
    return max(abs(value - best) for value in good)


def _edge(fits: Callable[[float], bool], good: float, bad: float) -> float:
    """Return the last cohesion that fits [Pa] between one that does and one that does not."""
    while abs(bad / good - 1.0) > 1e-3:
        middle = math.sqrt(good * bad)
        good, bad = (middle, bad) if fits(middle) else (good, middle)
    return good


def _standard_error(
    runs: _Runs, sigma: np.ndarray, spread: float, best: float, bounds: tuple[float, float]
) -> float:
    """Return the standard error [Pa], by differences of its own width: jumps are narrower."""
    width = 1e-3 * best
    for _ in range(3):
        tried = (max(best - width, bounds[0]), best, min(best + width, bounds[1]))
        ends = [value for value in tried if np.isfinite(runs.errors(value)).all()]
        change = (runs.errors(ends[-1]) - runs.errors(ends[0])) / sigma
        slope = float(np.linalg.norm(change)) / max(ends[-1] - ends[0], _PRECISION * best)
        error = math.sqrt(spread) / slope if slope > 0.0 else math.inf
        width = min(max(error, _NARROWEST * best), _WIDEST * best)
    return error
