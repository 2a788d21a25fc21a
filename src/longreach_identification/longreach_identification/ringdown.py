"""
Natural frequencies and damping ratios from a free decay in several signals.

Each signal is a sum of decaying oscillations and a constant,

    y(t) = c_0 + sum over modes of e^(-zeta w t) (a cos(w_d t) + b sin(w_d t)),
    w = 2 pi f,  w_d = w sqrt(1 - zeta^2),

with the same f and zeta in all signals. They are found in two steps:

1. Signals are averaged onto one slow grid of times. The shift invariance of the signal subspace of
   their Hankel matrix gives poles (the eigensystem realisation algorithm, Juang and Pappa, 1985)
   for many orders. Modes that stay the same from order to order are kept.
2. From there, f and zeta are refined by weighted least squares on the signals at their own times.
   The linear coefficients are eliminated (variable projection, Golub and Pereyra, 1973, with
   Kaufman's derivative). Standard errors consider correlated residuals, see
   :mod:`longreach_identification.estimation`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from longreach_dynamics.errors import InputError, LongreachError
from longreach_identification.estimation import autoregression, coloured_product
from longreach_identification.machine import Signal

# Rows of a signal in a period of the highest frequency, when it has enough.
_RATE = 8.0
# Most times of the slow grid, which limits the singular value decomposition, and fewest periods of
# a mode in a recording.
_MOST_TIMES, _FEWEST_PERIODS = 400, 1.5
# Highest order of a model, and the number of orders in a row in which a mode must be the same.
_HIGHEST_ORDER, _STABLE_ORDERS = 40, 4
# The same from one order to the next: frequency, damping ratio, and correlation of the shapes.
_SAME_FREQUENCY, _SAME_DAMPING, _SAME_SHAPE = 0.02, 0.02, 0.9
# Damping ratios of modes, and the largest standard error of a frequency that is worth its name.
_DAMPING_RANGE, _LARGEST_ERROR = (-0.02, 0.3), 0.03
# Modes that do not lower the sum of squares by this share of the noise are left out.
_GAIN = 40.0


class Pole(NamedTuple):
    """A pole of one order, for a stabilisation diagram."""

    order: int
    frequency: float  # [Hz]
    damping_ratio: float
    stable: bool  # also a pole of the order before


class Mode(NamedTuple):
    """A decaying oscillation."""

    frequency: float  # undamped [Hz]
    damping_ratio: float
    frequency_error: float  # standard errors
    damping_ratio_error: float
    amplitudes: dict[str, complex]  # a - j b by signal, at the start of the decay


class RingDown(NamedTuple):
    """Result of :func:`ring_down`, modes in ascending order of frequency."""

    modes: tuple[Mode, ...]
    covariance: np.ndarray  # (2 modes, 2 modes) of f_1, zeta_1, f_2, ..
    variance_explained: dict[str, float]  # by signal
    poles: tuple[Pole, ...]


def ring_down(
    signals: Mapping[str, Signal],
    start: float,
    end: float = math.inf,
    highest: float | None = None,
    most: int = 6,
) -> RingDown:
    """
    Return the modes of a free decay.

    Parameters
    ----------
    signals : mapping of str to Signal
        Values that are not finite are left out; an unknown deviation is estimated.
    start, end : float
        The decay [s]; nothing acts on the machine between them.
    highest : float, optional
        Highest frequency to look for [Hz]; by default 0.4 times the rate of the slowest signal,
        and not more than 160 periods in the recording.
    most : int
        Largest number of modes; those with the most energy are kept.

    Raises
    ------
    InputError
        Without signals in this time.
    LongreachError
        When no mode is found.
    """
    used = {name: part for name, signal in signals.items() if (part := _part(signal, start, end))}
    if not used:
        raise InputError(
            f'no signal has 20 finite rows between {start:g} s and {end:g} s; check the times of'
            ' the decay'
        )
    if most < 1:
        raise InputError(f'most = {most}, allowed: at least 1')
    grid, rows = _on_grid(used, highest)
    step = float(grid[1] - grid[0])
    upper = 0.5 / step if highest is None else highest
    lower = _FEWEST_PERIODS / float(grid[-1] - grid[0])
    poles, candidates = _stable_poles(rows, step, lower, upper)
    if not candidates:
        raise LongreachError(
            f'no decaying oscillation between {lower:.3g} Hz and {upper:.3g} Hz is found in'
            f' {", ".join(used)}; give a longer decay, or signals with less noise'
        )
    # The choice is made on the grid, which has less rows.
    slow = [_Part(name, grid, row) for name, row in zip(used, rows.T, strict=True)]
    chosen = _selected(candidates[: 2 * most], slow, most)
    weighted = [_thinned(_weighted(name, part), upper) for name, part in used.items()]
    return _refined(_fit(chosen, weighted) if chosen.size else chosen, weighted, poles)


class _Part(NamedTuple):
    """A signal during the decay, its time from the start, in units of its noise."""

    name: str
    times: np.ndarray
    values: np.ndarray


def _part(signal: Signal, start: float, end: float) -> Signal | None:
    """Return the finite rows of a signal in a stretch, times from its start; None: too few."""
    use = (signal.times >= start) & (signal.times <= end)
    use &= np.isfinite(signal.times) & np.isfinite(signal.values)
    if use.sum() < 20:
        return None
    return Signal(signal.times[use] - start, signal.values[use], signal.deviation[use])


def _noise(values: np.ndarray) -> float:
    """Return the noise level of a signal, from its second differences: slow motion has none."""
    spread = float(np.median(np.abs(np.diff(values, 2)))) / 0.6745 / math.sqrt(6.0)
    # Quantisation may leave most of them zero.
    return max(spread, 1e-4 * float(np.std(values)), 1e-300)


def _weighted(name: str, part: Signal) -> _Part:
    """Return a signal in units of its noise."""
    unknown = not np.isfinite(part.deviation).all()
    deviation = _noise(part.values) if unknown else part.deviation
    return _Part(name, part.times, (part.values - part.values.mean()) / np.median(deviation))


def _thinned(part: _Part, upper: float) -> _Part:
    """Return means of neighbouring rows of a signal much faster than the highest frequency."""
    count = int(1.0 / (_RATE * upper * float(np.median(np.diff(part.times)))))
    if count < 2:
        return part
    size = part.times.size // count * count
    times, values = (row[:size].reshape(-1, count).mean(axis=1) for row in part[1:])
    return _Part(part.name, times, values * math.sqrt(count))


def _on_grid(
    signals: Mapping[str, Signal], highest: float | None
) -> tuple[np.ndarray, np.ndarray]:
    """
    Return one grid of times (T,), and all signals on it (T, signals) in units of their noise.

    A value is the mean over two steps: it does not change poles, and suppresses faster motion,
    which would appear as slow motion on the grid.
    """
    first = max(float(signal.times[0]) for signal in signals.values())
    last = min(float(signal.times[-1]) for signal in signals.values())
    slowest = max(float(np.median(np.diff(signal.times))) for signal in signals.values())
    if last - first < 10.0 * slowest:
        raise InputError('the signals have less than 10 samples of the slowest one in common')
    wanted = slowest if highest is None else max(slowest, 0.4 / highest)
    step = max(wanted, (last - first) / _MOST_TIMES)
    if highest is not None and step > 0.45 / highest:
        raise InputError(
            f'highest = {highest:g} Hz, allowed for this decay and these rates: at most'
            f' {0.45 / step:.3g} Hz'
        )
    grid = np.arange(first + step, last - step, step)
    found = []
    for signal in signals.values():
        part = _weighted('', signal)
        steps = np.diff(part.times)
        total = np.concatenate(
            [[0.0], np.cumsum(0.5 * (part.values[1:] + part.values[:-1]) * steps)]
        )
        ends = np.interp(np.stack([grid - step, grid + step]), part.times, total)
        count = max(1.0, 2.0 * step / float(np.median(steps)))
        found.append((ends[1] - ends[0]) / (2.0 * step) * math.sqrt(count))
    return grid, np.stack(found, axis=1)


def _stable_poles(
    rows: np.ndarray, step: float, lower: float, upper: float
) -> tuple[tuple[Pole, ...], list[tuple[float, float]]]:
    """Return the poles of all orders, and (f, zeta) of those that stay the same."""
    times, count = rows.shape
    height = max(4, min(times // 2, 1200 // count))
    # (block rows, signals, columns) to a Hankel matrix of blocks.
    hankel = np.lib.stride_tricks.sliding_window_view(rows, height, axis=0)
    left, values, _ = np.linalg.svd(
        hankel.transpose(2, 1, 0).reshape(height * count, -1), full_matrices=False
    )
    # Poles at 0 Hz take the offsets.
    orders = range(2, min(_HIGHEST_ORDER, values.size, (height - 1) * count) + 1)
    poles: list[Pole] = []
    tracks: list[list[tuple[int, float, float, np.ndarray]]] = []
    for order in orders:
        observability = left[:, :order]
        # Least squares; the columns are orthonormal, but for the last block of rows.
        last = observability[-count:]
        normal = np.eye(order) - last.T @ last
        shift = np.linalg.lstsq(normal, observability[:-count].T @ observability[count:])[0]
        eigenvalues, vectors = np.linalg.eig(shift)
        shapes = observability[:count] @ vectors
        for value, shape in zip(eigenvalues, shapes.T, strict=True):
            rate = np.log(value + 0j) / step
            frequency = abs(rate) / (2.0 * math.pi)
            if rate.imag <= 0.0 or not lower <= frequency <= upper:
                continue
            ratio = -rate.real / abs(rate)
            if not _DAMPING_RANGE[0] <= ratio <= _DAMPING_RANGE[1]:
                continue
            track = next(
                (
                    t
                    for t in tracks
                    if t[-1][0] == order - 1 and _same(t[-1], frequency, ratio, shape)
                ),
                None,
            )
            entry = (order, frequency, ratio, shape)
            poles.append(Pole(order, frequency, ratio, track is not None))
            if track is None:
                tracks.append([entry])
            else:
                track.append(entry)
    # The longest first; pieces of the same track are the same mode.
    found: list[tuple[float, float]] = []
    for track in sorted(tracks, key=len, reverse=True):
        if len(track) < _STABLE_ORDERS:
            break
        frequency = float(np.median([entry[1] for entry in track]))
        if all(abs(frequency / other - 1.0) > 2.0 * _SAME_FREQUENCY for other, _ in found):
            found.append((frequency, float(np.median([entry[2] for entry in track]))))
    return tuple(poles), found


def _same(
    entry: tuple[int, float, float, np.ndarray], frequency: float, ratio: float, shape: np.ndarray
) -> bool:
    """Return whether a pole is the one of the order before."""
    _, before, damping, other = entry
    alike = abs(np.vdot(shape, other)) ** 2
    alike /= max(float(np.vdot(shape, shape).real * np.vdot(other, other).real), 1e-300)
    return bool(
        abs(frequency / before - 1.0) < _SAME_FREQUENCY
        and abs(ratio - damping) < _SAME_DAMPING
        and alike > _SAME_SHAPE
    )


def _basis(poles: np.ndarray, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """
    Return the functions of time (T, 2 modes + 1), and their derivatives (2 modes, T, 2).

    ``poles`` is f_1, zeta_1, f_2, ..; functions are cosine and sine of each mode, and 1. A
    derivative concerns the two functions of its mode only.
    """
    columns, derivatives = [], []
    for f, zeta in poles.reshape(-1, 2):
        root = math.sqrt(1.0 - zeta**2)
        rate = 2.0 * math.pi * complex(-zeta, root)
        wave = np.exp(rate * f * times)
        columns += [wave.real, wave.imag]
        by_frequency = wave * rate * times
        by_ratio = wave * times * f * 2.0 * math.pi * complex(-1.0, -zeta / root)
        derivatives += [
            np.stack([part.real, part.imag], axis=1) for part in (by_frequency, by_ratio)
        ]
    return np.stack([*columns, np.ones(times.size)], axis=1), np.array(derivatives)


def _projected(
    poles: np.ndarray, parts: Sequence[_Part]
) -> tuple[list[np.ndarray], list[np.ndarray], list[np.ndarray]]:
    """Return residuals, their derivatives and the linear coefficients, for each signal."""
    residuals, jacobians, coefficients = [], [], []
    for part in parts:
        basis, derivatives = _basis(poles, part.times)
        q, r = np.linalg.qr(basis)
        c = np.linalg.lstsq(r, q.T @ part.values, rcond=None)[0]
        residuals.append(part.values - basis @ c)
        change = np.stack(
            [d @ c[2 * (k // 2) : 2 * (k // 2) + 2] for k, d in enumerate(derivatives)], axis=1
        )
        jacobians.append(q @ (q.T @ change) - change)
        coefficients.append(c)
    return residuals, jacobians, coefficients


def _fit(poles: np.ndarray, parts: Sequence[_Part]) -> np.ndarray:
    """Return refined poles."""
    from scipy.optimize import least_squares

    count = poles.size // 2
    low = np.tile([0.0, _DAMPING_RANGE[0]], count)
    high = np.tile([math.inf, 0.9], count)
    found = least_squares(
        lambda x: np.concatenate(_projected(x, parts)[0]),
        poles,
        lambda x: np.concatenate(_projected(x, parts)[1]),
        (low, high),
        x_scale=np.tile([1.0, 0.1], count),
        ftol=1e-7,
        xtol=1e-9,
        max_nfev=30,
    )
    return np.asarray(found.x)


def _selected(
    candidates: Sequence[tuple[float, float]], parts: Sequence[_Part], most: int
) -> np.ndarray:
    """Return refined poles of the candidates that explain the most, one after the other."""
    left = list(candidates)
    poles = np.zeros(0)
    size = sum(part.values.size for part in parts)
    squares = sum(float(part.values @ part.values) for part in parts)
    while left and poles.size < 2 * most:
        trials = []
        for f, zeta in left:
            trial = np.append(poles, [f, np.clip(zeta, 1e-3, 0.5)])
            trials.append(sum(float(r @ r) for r in _projected(trial, parts)[0]))
        best = int(np.argmin(trials))
        candidate = left.pop(best)
        trial = _fit(np.append(poles, [candidate[0], np.clip(candidate[1], 1e-3, 0.5)]), parts)
        lower = sum(float(r @ r) for r in _projected(trial, parts)[0])
        # Two coefficients for each signal, and two poles, always explain some noise.
        if squares - lower < _GAIN * len(parts) * lower / size:
            break
        order = np.sort(trial[::2])
        if order.size < 2 or float(np.min(np.diff(order) / order[1:])) > _SAME_FREQUENCY:
            poles, squares = trial, lower
    return poles


def _refined(poles: np.ndarray, parts: Sequence[_Part], diagram: tuple[Pole, ...]) -> RingDown:
    """Return the result with standard errors, without modes whose frequency is not determined."""
    while True:
        if not poles.size:
            raise LongreachError(
                'no decaying oscillation stands out from the noise; give a longer decay, or'
                ' signals with less noise'
            )
        residuals, jacobians, coefficients = _projected(poles, parts)
        information = sum(J.T @ J for J in jacobians)
        noise = np.zeros_like(information)
        for residual, J in zip(residuals, jacobians, strict=True):
            model, variance = autoregression(residual)
            noise += coloured_product(J, model, variance)
        inverse = np.linalg.pinv(information)
        covariance = inverse @ noise @ inverse
        errors = np.sqrt(np.diag(covariance))
        bad = errors[::2] > _LARGEST_ERROR * poles[::2]
        if not bad.any():
            break
        worst = int(np.argmax(errors[::2] / poles[::2]))
        poles = _fit(np.delete(poles, [2 * worst, 2 * worst + 1]), parts) if (
            poles.size > 2
        ) else np.zeros(0)  # fmt: skip
    order = np.argsort(poles[::2])
    index = np.stack([2 * order, 2 * order + 1], axis=1).ravel()
    modes = tuple(
        Mode(
            float(poles[2 * k]),
            float(poles[2 * k + 1]),
            float(errors[2 * k]),
            float(errors[2 * k + 1]),
            {
                part.name: complex(c[2 * k], -c[2 * k + 1])
                for part, c in zip(parts, coefficients, strict=True)
            },
        )
        for k in order
    )
    explained = {
        part.name: 1.0 - float(np.var(residual)) / max(float(np.var(part.values)), 1e-300)
        for part, residual in zip(parts, residuals, strict=True)
    }
    return RingDown(modes, covariance[np.ix_(index, index)], explained, diagram)
