"""How well an estimate explains its signals, and what a reader of it must know."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from longreach_identification.covariance import FEWEST_ROWS

if TYPE_CHECKING:
    from longreach_identification.estimation import Estimate
    from longreach_identification.search import Search

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
    fit: Search, parts: Sequence[np.ndarray]
) -> tuple[dict[str, SignalFit], dict[tuple[str, str], np.ndarray]]:
    """Return fit by signal, and predictions with their offsets by recording and signal."""
    predicted: dict[tuple[str, str], np.ndarray] = {}
    sums: dict[str, np.ndarray] = {}
    for block, part in zip(fit.blocks, parts, strict=True):
        recording = fit.problem.recordings[block.recording]
        error = block.values - part
        # A recording for validation has an offset of its own, from its own rows.
        base = block.fitted if block.fitted.any() else np.ones(error.size, dtype=bool)
        offset = float(error[base].mean()) if block.offset else 0.0
        if block.offset and block.fitted.any():
            offset = float(np.average(error[base], weights=fit.deviation(block) ** -2.0))
        shown = np.full(recording.signals[block.signal].times.shape, np.nan)
        shown[block.rows] = part + offset
        predicted[recording.name, block.signal] = shown
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
            row[3] += float(np.sum(fit.deviation(block) ** 2))
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
            )
    return fits, predicted


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
    far: dict[str, list[float]] = {}
    for block, part in zip(fit.blocks, residuals, strict=True):
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
        for signal, ratio in _waves(fit, residuals).items()
        if ratio > _LARGEST_WAVE
    ]
    if waves:
        warnings.append(
            f'the residuals of {", ".join(waves)} are far larger than the noise from row to'
            ' row: the model does not explain them, as when it is of another machine, or'
            ' units, clocks or the time of an event are wrong'
        )
    against = [name for name, one in found.fit.items() if _contradicts(fit, name, one)]
    if against:
        warnings.append(
            f'the model explains nothing of {", ".join(against)}, which a constant fits better:'
            ' look for a wrong column, unit or sign, or the time of the event'
        )
    return tuple(warnings)


def _contradicts(fit: Search, name: str, one: SignalFit) -> bool:
    """Return whether a signal that is not noise alone is predicted worse than by a constant."""
    steps = [np.diff(block.values[block.fitted]) for block in fit.blocks if block.signal == name]
    every = np.concatenate(steps)
    if every.size < FEWEST_ROWS or not one.variance_explained < 0.0:
        return False
    noise = math.sqrt(float(every @ every) / every.size / 2.0)
    return one.rms > 2.0 * max(noise, fit.problem.floors.get(name, 0.0))


def _waves(fit: Search, residuals: Sequence[np.ndarray]) -> dict[str, float]:
    """Return residuals over the noise from row to row, of signals of unknown deviation."""
    sums: dict[str, np.ndarray] = {}
    for block, part in zip(fit.blocks, residuals, strict=True):
        known = not np.isnan(block.deviation).any()
        level = fit.levels.get(block.signal, 1.0)
        size = float(np.abs(block.values).max()) if part.size else 0.0
        if known or part.size < FEWEST_ROWS or level <= _ROUNDING * size:
            continue
        # Not the median: of a quantised signal it is a multiple of the step.
        noise = math.sqrt(float(np.mean(np.diff(part) ** 2)) / 2.0)
        noise = max(noise, fit.problem.floors.get(block.signal, 0.0) / level, _ROUNDING)
        row = sums.setdefault(block.signal, np.zeros(2))
        row += part @ part, part.size * noise**2
    return {signal: math.sqrt(row[0] / row[1]) for signal, row in sums.items()}


def words(combination: Mapping[str, float]) -> str:
    """Return a combination such as ``0.71 youngs_modulus - 0.70 mass_scale_1``."""
    parts = sorted(combination.items(), key=lambda item: -abs(item[1]))
    shown = [(name, value) for name, value in parts if abs(value) >= 0.1][:6]
    text = ''
    for name, value in shown:
        sign = ('-' if value < 0.0 else '') if not text else (' - ' if value < 0.0 else ' + ')
        text += f'{sign}{abs(value):.2f} {name}'
    return text
