"""How well an estimate explains its signals, and what a reader of it must know."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from longreach_identification.covariance import FEWEST_ROWS

if TYPE_CHECKING:
    from longreach_identification.estimation import Estimate
    from longreach_identification.search import Block, Search

CONVERGED, INTERRUPTED, STOPPED = 'converged', 'interrupted', 'not converged'
# Warned about: standard deviation of a combination relative to the scales, residuals relative to
# their given deviation.
WEAKEST, _LARGEST_RATIO = 0.2, 3.0
# Likewise relative to the noise from row to row, where no deviation is given: noise of first order
# with a correlation of 0.98 has this ratio. Residuals below this share of a signal are rounding.
_LARGEST_WAVE, _ROUNDING = 5.0, 1e-6


class SignalFit(NamedTuple):
    """How well a signal is predicted, over all recordings; NaN without rows."""

    rows: int  # fitted
    rms: float  # of the residuals, in the unit of the signal
    variance_explained: float  # 1 - variance of the residuals / variance of the signal
    deviation: float  # of the noise: as given, or as estimated
    validation_rows: int
    validation_rms: float


def fits_of(
    fit: Search, rows: np.ndarray
) -> tuple[dict[str, SignalFit], dict[tuple[str, str], np.ndarray]]:
    """Return fit by signal, and predicted rows with offsets by recording and signal."""
    predicted: dict[tuple[str, str], np.ndarray] = {}
    errors: dict[str, list[tuple[Block, np.ndarray]]] = {}
    for block in fit.blocks:
        recording, part = fit.problem.recordings[block.recording], rows[block.place]
        shown = np.full(recording.signals[block.signal].times.shape, np.nan)
        offset = fit.offset(block, part)
        shown[block.rows] = part + offset
        predicted[recording.name, block.signal] = shown
        errors.setdefault(block.signal, []).append((block, block.values - part - offset))
    fits = {}
    for signal, own in errors.items():
        fitted, others = ([e for block, e in own if block.fitted == one] for one in (True, False))
        used = [block for block, _ in own if block.fitted and block.rows.size]
        level = [fit.deviation(block) for block in used]
        moved = _squares([block.values - block.values.mean() for block in used])
        with np.errstate(invalid='ignore', divide='ignore'):
            explained = float(1.0 - np.divide(_squares(fitted), moved))
        rows, more = (sum(error.size for error in part) for part in (fitted, others))
        fits[signal] = SignalFit(rows, _rms(fitted), explained, _rms(level), more, _rms(others))
    return fits, predicted


def _squares(parts: Sequence[np.ndarray]) -> float:
    """Return the sum of squares."""
    return sum(float(np.sum(part**2)) for part in parts)


def _rms(parts: Sequence[np.ndarray]) -> float:
    """Return the root mean square; NaN of nothing."""
    rows = sum(part.size for part in parts)
    return math.sqrt(_squares(parts) / rows) if rows else math.nan


def warnings_of(
    fit: Search, found: Estimate, residuals: Sequence[np.ndarray], spread: float
) -> tuple[str, ...]:
    """Return what a reader of the result must know."""
    warnings = []
    if found.status == INTERRUPTED:
        warnings.append('interrupted: these are the best values so far, not the estimate')
    if found.status == STOPPED:
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
            + (f' alone: only without {words(found.weakest)}' if len(lost) > 1 else '')
        )
    elif spread > WEAKEST:
        warnings.append(
            f'the data can hardly tell {words(found.weakest)}: relative to the typical sizes'
            f' it is known to {spread:.0%}; add recordings, give a prior, or keep one of these'
            ' fixed'
        )
    far: dict[str, np.ndarray] = {}
    waves: dict[str, np.ndarray] = {}
    for block, part in zip(fit.fitted, residuals, strict=True):
        level = fit.levels.get(block.signal, 1.0)
        if part.size and not np.isnan(block.deviation).any():
            row = far.setdefault(block.signal, np.zeros(2))
            row += part @ part, part.size
        elif part.size >= FEWEST_ROWS and level > _ROUNDING * np.abs(block.values).max():
            # Not the median: of a quantised signal it is a multiple of the step.
            noise = math.sqrt(float(np.mean(np.diff(part) ** 2)) / 2.0)
            noise = max(noise, fit.problem.floors.get(block.signal, 0.0) / level, _ROUNDING)
            row = waves.setdefault(block.signal, np.zeros(2))
            row += part @ part, part.size * noise**2
    warnings += [
        f'the residuals of {signal} are {ratio:.1f} times its noise: the model does not explain it'
        for signal, row in far.items()
        if (ratio := math.sqrt(row[0] / row[1])) > _LARGEST_RATIO
    ]
    large = [
        f'{signal} ({ratio:.0f} times)'
        for signal, row in waves.items()
        if (ratio := math.sqrt(row[0] / row[1])) > _LARGEST_WAVE
    ]
    if large:
        warnings.append(
            f'the residuals of {", ".join(large)} are far larger than the noise from row to'
            ' row: the model does not explain them, as when it is of another machine, or'
            ' units, clocks or the time of an event are wrong'
        )
    against = []
    for name, one in found.fit.items():
        steps = [np.diff(block.values) for block in fit.fitted if block.signal == name]
        # What is not noise alone.
        if sum(map(len, steps)) >= FEWEST_ROWS and one.variance_explained < 0.0:
            noise = max(_rms(steps) / math.sqrt(2.0), fit.problem.floors.get(name, 0.0))
            against += [name] if one.rms > 2.0 * noise else []
    if against:
        warnings.append(
            f'the model explains nothing of {", ".join(against)}, which a constant fits better:'
            ' look for a wrong column, unit or sign, or the time of the event'
        )
    return tuple(warnings)


def words(combination: Mapping[str, float]) -> str:
    """Return a combination such as ``0.71 youngs_modulus - 0.70 mass_scale_1``."""
    parts = sorted(combination.items(), key=lambda item: -abs(item[1]))
    shown = [(name, value) for name, value in parts if abs(value) >= 0.1][:6]
    text = ''
    for name, value in shown:
        sign = ('-' if value < 0.0 else '') if not text else (' - ' if value < 0.0 else ' + ')
        text += f'{sign}{abs(value):.2f} {name}'
    return text
