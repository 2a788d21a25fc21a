"""
Covariance of a weighted least squares estimate whose residuals are correlated.

    H^-1 (J^T Gamma J + C^-1) H^-1,   H = J^T J + C^-1

J: derivatives of the weighted residuals, C: covariance of the prior, Gamma: that of an
autoregressive model of each signal's residuals, whose rows are taken as equally spaced (Ljung,
"System identification", 1999, 9.4). Rows of signals with few of them, such as poses at rest, are
correlated with those of others at the same time, and with those of the same signal in equal poses
(robust for clusters: Cameron and Miller, J. Human Resources 50, 2015). With parameters g that are
considered, C of all, and W the information of the prior of the others p, the term C^-1 in the
middle becomes A C A^T, A = [W, -J_p^T J_g] (Schmidt's consider filter).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from longreach_dynamics.errors import InputError

if TYPE_CHECKING:
    from longreach_identification.search import Block, Search

# Shortest signal whose residuals' correlation is estimated, and the highest order of its model.
FEWEST_ROWS, _HIGHEST_ORDER = 40, 30
# Fewest rows from which a correlation between signals is estimated.
_FEWEST_SHARED = 8
# Eigenvalues of correlation matrices that rounding may have changed.
_ROUNDING = 1e-10
# Singular values of derivatives with columns of length 1 that count as 0.
_SINGULAR = 1e-8


def covariance_of(
    fit: Search, weighted: np.ndarray, inverse: np.ndarray, noise: np.ndarray
) -> np.ndarray:
    """Return the covariance of all from J, and inverse and J^T Gamma J of free ones."""
    free, considered = fit.free, fit.considered
    infinite = np.isinf(np.diag(inverse))
    usable = np.where(np.isfinite(inverse), inverse, 0.0)
    # A of the module's docstring.
    known = np.zeros((free.size, len(fit.prior_covariance)))
    places = np.searchsorted(free, fit.prior_columns)
    count = places.size
    known[places, :count] += fit.prior_root.T @ fit.prior_root
    known[:, count:] = -weighted[:, free].T @ weighted[:, considered]
    spread = noise + known @ fit.prior_covariance @ known.T
    # By a root: it may become a prior, and rounding must not make a variance negative.
    size = np.sqrt(np.maximum(np.diag(spread), 1e-300))
    values, vectors = np.linalg.eigh(spread / np.outer(size, size))
    root = usable @ (size[:, None] * vectors * np.sqrt(np.maximum(values, 0.0)))
    part = root @ root.T
    part[infinite, infinite] = np.inf
    covariance = np.zeros((len(fit.unknowns),) * 2)
    covariance[np.ix_(free, free)] = part
    between = usable @ known @ fit.prior_covariance[:, count:]
    covariance[np.ix_(free, considered)] = between
    covariance[np.ix_(considered, free)] = between.T
    covariance[np.ix_(considered, considered)] = fit.prior_covariance[count:, count:]
    return covariance


def noise_of(
    fit: Search, residuals: Sequence[np.ndarray], weighted: np.ndarray, inverse: np.ndarray
) -> tuple[np.ndarray, float, int]:
    """Return J^T Gamma J, -2 times the log-likelihood, and how many parameters it has."""
    usable = np.where(np.isfinite(inverse), inverse, 0.0)
    count = weighted.shape[1]
    total, likelihood, extra = np.zeros((count, count)), 0.0, 0
    pooled: dict[str, np.ndarray] = {}
    rows = []
    for block, part, J in zip(fit.fitted, residuals, fit.by_block(weighted), strict=False):
        # Rows that the fit itself takes up.
        taken = float(np.einsum('ij,jk,ik->', J, usable, J)) + block.offset
        if part.size:
            rows.append((block, part, J, taken))
        if part.size < FEWEST_ROWS:
            sums = pooled.setdefault(block.signal, np.zeros(2))
            sums += part @ part, part.size - taken
    few: list[tuple[Block, np.ndarray, np.ndarray]] = []
    for block, part, J, taken in rows:
        likelihood += float(np.sum(np.log(2.0 * math.pi * fit.deviation(block) ** 2)))
        extra += 1 + block.offset
        if part.size < FEWEST_ROWS:
            square, left = pooled[block.signal].tolist()
            # Not zero, even if a prediction is exact.
            level = max(square / left, 1e-300) if left > 0.5 else 1.0
            if not np.isnan(block.deviation).any():
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
    return total + _related(fit, few, count), likelihood, extra


def _related(
    fit: Search, few: Sequence[tuple[Block, np.ndarray, np.ndarray]], count: int
) -> np.ndarray:
    """Return the part of J^T Gamma J between rows: at the same time, and of a signal in a pose."""
    if not few:
        return np.zeros((count, count))
    names = list(dict.fromkeys(block.signal for block, _, _ in few))
    r, J = (np.concatenate([one[k] for one in few]) for k in (1, 2))
    rows = [(block, np.ones(part.size)) for block, part, _ in few]
    signal = np.concatenate([names.index(block.signal) * ones for block, ones in rows])
    when = np.concatenate([block.times + 1j * block.recording * ones for block, ones in rows])
    pose = np.arange(r.size)
    if fit.problem.poses:
        pose = np.concatenate([fit.problem.poses[one.recording][one.rows] for one, _ in rows])
    at_once, in_pose = (
        np.equal.outer(one, one) & ~np.eye(r.size, dtype=bool) for one in (when, pose)
    )
    gamma, related = np.zeros((r.size, r.size)), np.eye(len(names))
    for a, b in itertools.combinations_with_replacement(range(len(names)), 2):
        place = np.ix_(signal == a, signal == b)
        pairs = (in_pose if a == b else at_once)[place]
        x, y = r[signal == a], r[signal == b]
        size = math.sqrt((pairs.sum(1) @ x**2) * (pairs.sum(0) @ y**2))
        different = pairs.sum() if a != b else np.unique(pose[signal == a]).size
        if different < _FEWEST_SHARED or size == 0.0:
            continue
        if a == b:
            gamma[place] = max(0.0, float(x @ pairs @ y) / size) * pairs
        else:
            related[a, b] = related[b, a] = float(x @ pairs @ y) / size
    # Estimated pair by pair, they need not belong to any distribution.
    values, vectors = np.linalg.eigh(related)
    related = (vectors * np.maximum(values, 0.0)) @ vectors.T
    related /= np.sqrt(np.outer(np.diag(related), np.diag(related)))
    own = signal.astype(int)
    gamma += np.where(np.not_equal.outer(own, own) & at_once, related[np.ix_(own, own)], 0.0)
    return np.asarray(J.T @ gamma @ J)


def inverse_root(covariance: np.ndarray, names: Sequence[str]) -> np.ndarray:
    """Return W with W^T W the inverse of a covariance; raises InputError."""
    size = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    good = bool((size > 0.0).all())
    if good:
        # Scaled first: variances of different units differ by many powers of ten.
        related = covariance / np.outer(size, size)
        values, vectors = np.linalg.eigh(related)
        apart = np.abs(related - related.T).max(initial=0.0)
        good = bool(apart < _ROUNDING and values.min(initial=0.0) > -_ROUNDING)
    if not good:
        raise InputError(
            f'the covariance of the prior for {", ".join(names)} is not positive definite'
        )
    # What others tell to more digits than numbers have is known that well.
    return np.asarray((vectors / np.sqrt(np.maximum(values, _ROUNDING))).T / size)


def inverse_of(weighted: np.ndarray) -> tuple[np.ndarray, float]:
    """Return inverse and condition number of J^T J; inf for what it does not tell."""
    # J is not squared: data may be more exact than a prior by many powers of ten.
    scale = np.linalg.norm(weighted, axis=0)
    safe = np.where(scale == 0.0, 1.0, scale)
    count = weighted.shape[1]
    # At least as many rows as unknowns, so that there are as many singular values.
    padded = np.concatenate([weighted / safe, np.zeros((count, count))])
    _, values, directions = np.linalg.svd(np.linalg.qr(padded, mode='r'))
    none = values < _SINGULAR * math.sqrt(count)
    kept = directions[~none]
    inverse = (kept.T / values[~none] ** 2) @ kept / np.outer(safe, safe)
    lost = (np.abs(directions[none]) > 1e-3).any(axis=0)
    inverse[lost, lost] = np.inf
    condition = math.inf if none.any() else float((values[0] / values[-1]) ** 2)
    return inverse, condition


def weak_spread(information: np.ndarray, sizes: np.ndarray) -> tuple[float, np.ndarray]:
    """Return the largest standard deviation relative to typical sizes, and its combination."""
    values, vectors = np.linalg.eigh(information * np.outer(sizes, sizes))
    loose = vectors[:, 0] * np.sign(vectors[np.argmax(np.abs(vectors[:, 0])), 0])
    return 1.0 / math.sqrt(values[0]) if values[0] > 0.0 else math.inf, loose


def autoregression(residuals: np.ndarray) -> tuple[np.ndarray, float]:
    """Return a of r_t + a_1 r_(t-1) + .. = e_t and the variance of e (Burg, Akaike)."""
    n = residuals.size
    variance = max(float(residuals @ residuals) / n, 1e-300)
    # What is left of a signal without noise is rounding.
    least = 1e-12 * variance
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
        if variance <= least:
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
