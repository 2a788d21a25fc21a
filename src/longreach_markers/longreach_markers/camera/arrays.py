"""Checked copies of arrays passed by callers."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from longreach_dynamics.errors import InputError

# Relative tolerance for asymmetry and negative eigenvalues caused by rounding.
_ASYMMETRY = 1e-6


def checked_array(values: ArrayLike, shape: tuple[int, ...], name: str) -> np.ndarray:
    """Return a copy of an array after checking shape and finiteness."""
    array = np.array(values, dtype=np.float64)
    if array.shape != shape:
        raise InputError(f'{name} has shape {array.shape}, allowed: {shape}')
    if not np.isfinite(array).all():
        raise InputError(f'{name} = {array.tolist()}, allowed: finite numbers')
    return array


def checked_covariance(values: ArrayLike, size: int, name: str) -> np.ndarray:
    """Return a copy of a covariance (size, size) after checking that it is one."""
    covariance = checked_array(values, (size, size), name)
    largest = float(np.abs(covariance).max())
    if not float(np.abs(covariance - covariance.T).max()) <= _ASYMMETRY * largest:
        raise InputError(f'{name} is not symmetric: {covariance.tolist()}')
    covariance = (covariance + covariance.T) / 2.0
    # Scale by the standard deviations, because rad and m share one matrix.
    deviations = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    with np.errstate(over='ignore'):
        scaled = covariance / np.outer(deviations, deviations).clip(1e-300)
    if not np.isfinite(scaled).all():
        raise InputError(
            f'{name} is not a covariance: it has a negative or far too large variance'
        )
    least = float(np.linalg.eigvalsh(scaled)[0]) if size > 2 else _least_eigenvalue(scaled)
    if not least >= -_ASYMMETRY:
        raise InputError(
            f'{name} is not a covariance: it has a negative eigenvalue,'
            f' {covariance.tolist()}, allowed: positive semidefinite'
        )
    return np.asarray(covariance)


def _least_eigenvalue(matrix: np.ndarray) -> float:
    """Return the smaller eigenvalue of a symmetric matrix (2, 2), faster than LAPACK."""
    (a, b), (_, d) = matrix.tolist()
    return float((a + d) / 2.0 - math.hypot((a - d) / 2.0, b))
