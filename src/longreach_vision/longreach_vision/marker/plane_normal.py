"""
The normal of a marker's plane, from the shape of its ellipse.

A circle is seen as an ellipse whose shape depends on the normal of its plane. Where a marker is
not quite parallel to the given plane, the normal from its ellipse gives its centre.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from longreach_dynamics.kernels import kernel
from longreach_dynamics.linear_algebra import cholesky, cholesky_solve
from longreach_vision.marker.measurement import circle_shapes
from longreach_vision.marker.pixel_model import BLUR, CENTER, SHAPE
from longreach_vision.marker.symmetric import root_of_square

__all__ = ['shift_by_normal']

# Chi-square (2 degrees of freedom) from which the ellipse contradicts the plane's normal; standard
# deviations of the normal [rad], for its estimation, and of the ellipse's relative shape in
# addition to noise; step of derivatives [rad].
_CONTRADICTED, _NORMAL_DEVIATION, _SHAPE_FLOOR = 16.0, math.radians(5.0), 5e-4
_TURN = 1e-4
# Iterations of the estimate.
_STEPS = 4


def shift_by_normal(
    parameters: NDArray[np.float64],
    covariance: NDArray[np.float64],
    packed: NDArray[np.float64],
    normal: NDArray[np.float64],
    outline: NDArray[np.float64],
    shear: NDArray[np.float64],
    most: float,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """
    Return by how much a centre is off because the given normal is.

    The shape of the ellipse determines the normal. If it contradicts the given one, the normal is
    estimated from it, with the given one as prior.

    Parameters
    ----------
    parameters : ndarray, shape (20,)
        Of a fit with the given normal, in the order of
        :mod:`longreach_vision.marker.pixel_model`.
    covariance : ndarray, shape (20, 20)
    packed : ndarray, shape (16,)
        The camera.
    normal : ndarray, shape (3,)
        The given unit normal in the camera frame.
    outline : ndarray, shape (3,)
        Shape matrix (11, 12, 22) of a circle with this normal, of any scale.
    shear : ndarray, shape (3,)
        Displacement of the image per row (of u, of v) by motion under a rolling shutter, and its
        standard deviation. It changes the shape as a tilt does, but leaves the centre where it is.
    most : float
        Largest relative difference of the shape; beyond, it is not that of the marker.

    Returns
    -------
    shift : ndarray, shape (2,)
        To be added to the centre [px]; zeros if there is no contradiction, or too large a one.
    uncertainty : ndarray, shape (2, 2)
        Covariance of the shift [px^2].
    """
    own = parameters[SHAPE:BLUR]
    seen, spread = np.empty(3), np.empty((3, 3))
    astray, chi_square = _excess(parameters, covariance, outline, shear, seen, spread)
    if astray > most or chi_square < _CONTRADICTED:
        return np.zeros(2), np.zeros((2, 2))
    center = parameters[CENTER:SHAPE]
    x, y = ((center - packed[2:4]) / packed[:2]).tolist()
    _, _, axes = np.linalg.svd(normal[None, :])
    aside = axes[1:]

    def direction(turn: NDArray[np.float64]) -> NDArray[np.float64]:
        shape, _ = circle_shapes(packed, _turned(normal, aside, turn), x, y)
        return np.asarray(shape / math.sqrt(shape @ shape))

    weight = np.linalg.inv(spread)
    prior = np.eye(2) / _NORMAL_DEVIATION**2
    turn, information = np.zeros(2), prior
    for _ in range(_STEPS):
        now = direction(turn)
        slopes = np.stack(
            [(direction(turn + step) - now) / _TURN for step in _TURN * np.eye(2)], axis=1
        )
        information = slopes.T @ weight @ slopes + prior
        right = slopes.T @ weight @ (seen - now) - prior @ turn
        turn = turn + np.linalg.solve(information, right)
    shape = _matrix_of(own)

    def offset(turn: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the projected centre minus the centre of the ellipse."""
        n = _turned(normal, aside, turn)
        line = n[:2] / packed[:2]
        depth = n[2] + line @ (center - packed[2:4])
        h = -shape @ line / depth
        return np.asarray(shape @ h / (1.0 - h @ h))

    slopes = np.stack(
        [(offset(turn + step) - offset(turn)) / _TURN for step in _TURN * np.eye(2)], axis=1
    )
    return offset(turn) - offset(np.zeros(2)), slopes @ np.linalg.solve(information, slopes.T)


@kernel
def _excess(parameters, covariance, outline, shear, seen, spread):  # type: ignore[no-untyped-def]
    """
    Compare the shape of an ellipse with that of a circle; arguments of :func:`shift_by_normal`.

    Returns
    -------
    astray, chi_square : float
        Relative difference of the shapes, apart from their scale; its square over its variance.

    Fills the shape without motion, of length 1, in ``seen`` (3,), and its covariance in ``spread``
    (3, 3).
    """
    a11, a12, a22 = parameters[SHAPE], parameters[SHAPE + 1], parameters[SHAPE + 2]
    square = a11 * a11 + a12 * a12 + a22 * a22
    # Without motion: (1 - shear e_v^T) A.
    seen[0], seen[1], seen[2] = root_of_square(
        a11 - shear[0] * a12, a12 - shear[0] * a22,
        (1.0 - shear[1]) * a12, (1.0 - shear[1]) * a22,
    )  # fmt: skip
    seen /= math.sqrt(seen[0] ** 2 + seen[1] ** 2 + seen[2] ** 2)
    along, length = 0.0, 0.0
    for i in range(3):
        along += seen[i] * outline[i]
        length += outline[i] * outline[i]
        for j in range(3):
            spread[i, j] = covariance[SHAPE + i, SHAPE + j] / square
        spread[i, i] += _SHAPE_FLOOR**2 + shear[2] ** 2
    # The scale is free: the difference is perpendicular to the shape.
    excess = seen - outline * (along / length)
    right, factor = excess.copy(), spread.copy()
    if not cholesky(factor):
        return math.inf, 0.0
    cholesky_solve(factor, right)
    astray, chi_square = 0.0, 0.0
    for i in range(3):
        astray += excess[i] * excess[i]
        chi_square += excess[i] * right[i]
    return math.sqrt(astray), chi_square


def _turned(
    normal: NDArray[np.float64], aside: NDArray[np.float64], turn: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return a unit normal turned by two small angles [rad] towards two axes (2, 3)."""
    turned = normal + turn @ aside
    return np.asarray(turned / np.linalg.norm(turned))


def _matrix_of(triangle: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the symmetric matrix (2, 2) with the elements 11, 12, 22."""
    return triangle[[0, 1, 1, 2]].reshape(2, 2)
