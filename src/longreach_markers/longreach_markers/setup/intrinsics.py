"""
Least-squares estimation of intrinsics and board poses.

OpenCV minimises plumb_bob and equidistant (Zhang's method, then Levenberg-Marquardt on all poses
and intrinsics). The covariance of the intrinsics is that of least squares with the poses
eliminated and the noise estimated from the residuals.

The eight coefficients of rational_polynomial are strongly correlated: numerator and denominator
may have nearly equal roots, and single coefficients are then poorly determined. Each coefficient
therefore has a prior: its standard deviation changes a ray at the corner of the image by about
half of its radius. The prior has no influence where corners were seen, and keeps the minimum
bounded; elsewhere, a lens with far larger coefficients is off by a few times the standard
deviation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import cv2
import numpy as np
from scipy.linalg import block_diag

# Prior of a coefficient of rational_polynomial: change of a ray at a corner of the image, over its
# radius; least standard deviation of a board corner [px].
_USUAL, _FINEST = 0.5, 1e-3
# Prior standard deviation of a board corner's shift from its place on a flat board [m].
_BENT = 2e-3
_STEPS, _DAMPING = 100, 1e-3
_ITERATIONS = (cv2.TERM_CRITERIA_COUNT + cv2.TERM_CRITERIA_EPS, 100, 1e-12)
RICHER = 'rational_polynomial'
"""The model that contains plumb_bob as a special case."""

COEFFICIENTS = {
    'plumb_bob': ('k1', 'k2', 'p1', 'p2', 'k3'),
    'rational_polynomial': ('k1', 'k2', 'p1', 'p2', 'k3', 'k4', 'k5', 'k6'),
    'equidistant': ('k1', 'k2', 'k3', 'k4'),
}
"""Coefficients of each model, in the order of ROS and OpenCV."""

# Powers of the radius multiplied by each coefficient, over the radius.
_POWERS = {'k1': 2, 'k2': 4, 'p1': 1, 'p2': 1, 'k3': 6, 'k4': 2, 'k5': 4, 'k6': 6}


class Solution(NamedTuple):
    """A minimum, or an intermediate state of the iteration."""

    intrinsics: np.ndarray  # (m,) fx, fy, cx, cy and coefficients
    turns: np.ndarray  # (views, 3) rotation vectors
    shifts: np.ndarray  # (views, 3) [m]


def solve(
    points: np.ndarray, corners: list[np.ndarray], size: tuple[int, int], model: str
) -> Solution | None:
    """Estimate camera and board poses from corners (n, 3) [m] and pixels (n, 2), or None."""
    if model == 'equidistant':
        return _solve_fisheye(points, corners, size)
    places = [points.astype(np.float32) for _ in corners]
    pixels = [c.astype(np.float32) for c in corners]
    try:
        _, matrix, distortion, turns, shifts = cv2.calibrateCamera(
            places, pixels, size, np.eye(3), np.zeros(8), criteria=_ITERATIONS
        )
    except cv2.error:
        return None
    intrinsics = _in_a_row(np.asarray(matrix), np.asarray(distortion), 'plumb_bob')
    found = Solution(intrinsics, np.reshape(turns, (-1, 3)), np.reshape(shifts, (-1, 3)))
    return found if model == 'plumb_bob' else enriched(found, points, corners, size)


def covariance_of(
    model: str,
    solution: Solution,
    points: np.ndarray,
    corners: Sequence[np.ndarray],
    size: tuple[int, int],
) -> tuple[np.ndarray, np.ndarray, float]:
    """Return residuals (views, n, 2) [px], covariance (m, m) of the intrinsics, and left."""
    # left is the next Gauss-Newton step in standard deviations (RMS): 0 at the minimum.
    count, views = len(solution.intrinsics), _views(model, solution, points, corners)
    normal, gradient, by_poses = np.zeros((count, count)), np.zeros(count), 0.0
    for rest, A, B in views:
        J, apart, by_pose = _apart_from_pose(B, A, rest)
        normal += J.T @ J
        gradient += J.T @ apart
        by_poses += by_pose
    off = np.array([rest.reshape(-1, 2) for rest, _, _ in views])
    variance = float(np.sum(off**2)) / max(off.size - count - 6 * len(corners), 1)
    fine = max(variance, _FINEST**2)
    expected = fine * _expectation(model, size, solution.intrinsics)
    inverse = _inverse(normal + np.diag(expected))
    gradient -= expected * solution.intrinsics
    decrease = max(by_poses + float(gradient @ inverse @ gradient), 0.0)
    left = math.sqrt(decrease / fine / (count + 6 * len(corners)))
    return off, variance * inverse, left


def _apart_from_pose(
    by_pose: np.ndarray, J: np.ndarray, residuals: np.ndarray
) -> tuple[np.ndarray, np.ndarray, float]:
    """Return derivatives and residuals that no pose of a board explains, and squares it does."""
    Q = np.linalg.qr(by_pose)[0]
    along = Q.T @ residuals
    return J - Q @ (Q.T @ J), residuals - Q @ along, float(along @ along)


def shape_of_board(
    model: str,
    solution: Solution,
    points: np.ndarray,
    corners: Sequence[np.ndarray],
    size: tuple[int, int],
) -> tuple[np.ndarray, float]:
    """Return shifts (n, 3) [m] of the board's corners, the same in all pictures, and their F."""
    # A Gauss-Newton step with intrinsics and poses. F is the decrease of squares for each shift
    # over the variance that is left: about 1 for a flat board, 0 for too few pictures.
    count, shifts = len(solution.intrinsics), 3 * len(points)
    normal, gradient, squares = np.zeros((count + shifts,) * 2), np.zeros(count + shifts), 0.0
    views = _views(model, solution, points, corners)
    for (rest, A, B), turn in zip(views, solution.turns, strict=True):
        by_shifts = B[:, 3:].reshape(-1, 2, 3) @ cv2.Rodrigues(turn)[0]
        J = np.hstack([A, block_diag(*by_shifts)])
        J, rest, _ = _apart_from_pose(B, J, rest)
        normal += J.T @ J
        gradient += J.T @ rest
        squares += float(rest @ rest)
    # The board's place and scale are no part of its shape.
    shape, freedom = shifts - 7, (2 * len(points) - 6) * len(corners) - count
    if freedom < 2 * shape:
        return np.zeros((len(points), 3)), 0.0
    variance = max(squares / freedom, _FINEST**2)
    expected = _expectation(model, size, solution.intrinsics)
    prior = np.append(expected, np.full(shifts, _BENT**-2.0)) * variance
    step = _inverse(normal + np.diag(prior)) @ gradient
    gain = float(gradient @ step)
    left = max((squares - gain) / (freedom - shape), _FINEST**2)
    return step[count:].reshape(-1, 3), gain / shape / left


def project(
    model: str, intrinsics: np.ndarray, points: np.ndarray, turn: np.ndarray, shift: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return pixels (n, 2) and derivatives by intrinsics (2n, m) and pose (2n, 6), by OpenCV."""
    fx, fy, cx, cy = intrinsics[:4]
    matrix = np.array([[fx, 0.0, cx], [0.0, fy, cy], [0.0, 0.0, 1.0]])
    k = intrinsics[4:]
    if model == 'equidistant':
        pixels, J = cv2.fisheye.projectPoints(points[None], turn, shift, matrix, k)
        return pixels.reshape(-1, 2), J[:, :8], J[:, 8:14]
    pixels, J = cv2.projectPoints(points, turn, shift, matrix, k)
    return pixels.reshape(-1, 2), J[:, 6 : 10 + len(k)], J[:, :6]


def _expectation(model: str, size: tuple[int, int], intrinsics: np.ndarray) -> np.ndarray:
    """Return the inverse prior variances (m,); 0 for parameters without prior."""
    names = COEFFICIENTS[model]
    weights = np.zeros(4 + len(names))
    if model == RICHER:
        radius = 0.5 * math.hypot(*size) / intrinsics[0]
        weights[4:] = [(radius ** _POWERS[name] / _USUAL) ** 2 for name in names]
    return weights


def enriched(
    start: Solution, points: np.ndarray, corners: list[np.ndarray], size: tuple[int, int]
) -> Solution | None:
    """Return the minimum of rational_polynomial near one of plumb_bob; None if there is none."""
    # Levenberg-Marquardt with eliminated poses and the prior of the coefficients; whether it has
    # converged is checked by covariance_of.
    state = start._replace(intrinsics=np.append(start.intrinsics, np.zeros(3)))
    if not all(np.isfinite(part).all() for part in state):
        return None
    count = len(state.intrinsics)
    freedom = max(2 * len(points) * len(corners) - count - 6 * len(corners), 1)
    expected = _expectation(RICHER, size, start.intrinsics)
    views = _views(RICHER, state, points, corners)
    damping = _DAMPING
    for _ in range(_STEPS):
        squares = sum(float(rest @ rest) for rest, _, _ in views)
        # The weight of the prior follows from the estimated noise.
        weights = expected * max(squares / freedom, _FINEST**2)
        normal, gradient = np.diag(weights), -weights * state.intrinsics
        for rest, A, B in views:
            J, apart, _ = _apart_from_pose(B, A, rest)
            normal = normal + J.T @ J
            gradient = gradient + J.T @ apart
        try:
            step = np.linalg.solve(normal + damping * np.diag(np.diag(normal)), gradient)
            moved = [np.linalg.lstsq(B, rest - A @ step, rcond=None)[0] for rest, A, B in views]
        except np.linalg.LinAlgError:
            return None
        turns, shifts = np.hsplit(np.array(moved), 2)
        trial = Solution(state.intrinsics + step, state.turns + turns, state.shifts + shifts)
        further = _views(RICHER, trial, points, corners)
        cost = squares + float(weights @ state.intrinsics**2)
        new_cost = sum(float(rest @ rest) for rest, _, _ in further)
        new_cost += float(weights @ trial.intrinsics**2)
        if not new_cost <= cost:
            if damping > 1e8:
                break
            damping *= 10.0
            continue
        state, views = trial, further
        if cost - new_cost <= 1e-10 * cost and damping <= _DAMPING:
            break
        damping = max(0.1 * damping, 1e-12)
    return state


def _views(
    model: str, state: Solution, points: np.ndarray, corners: Sequence[np.ndarray]
) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Return residuals (2n,) of each view, and derivatives of pixels by camera and pose."""
    views = []
    for seen, turn, shift in zip(corners, state.turns, state.shifts, strict=True):
        pixels, A, B = project(model, state.intrinsics, points, turn, shift)
        views.append(((seen - pixels).ravel(), A, B))
    return views


def _in_a_row(matrix: np.ndarray, distortion: np.ndarray, model: str) -> np.ndarray:
    used = distortion.ravel()[: len(COEFFICIENTS[model])]
    return np.array([matrix[0, 0], matrix[1, 1], matrix[0, 2], matrix[1, 2], *used])


def _solve_fisheye(
    points: np.ndarray, corners: list[np.ndarray], size: tuple[int, int]
) -> Solution | None:
    """Solve the equidistant model: the best of several initial values, which may fail."""
    places = [points[None] for _ in corners]
    pixels = [np.ascontiguousarray(c[None]) for c in corners]
    best: tuple[float, Solution] | None = None
    flags = cv2.fisheye.CALIB_RECOMPUTE_EXTRINSIC | cv2.fisheye.CALIB_FIX_SKEW
    for start in (None, 0.35, 0.6, 1.2):
        guess, chosen = np.eye(3), flags
        if start is not None:
            guess[0, 0] = guess[1, 1] = start * max(size)
            guess[:2, 2] = 0.5 * size[0], 0.5 * size[1]
            chosen |= cv2.fisheye.CALIB_USE_INTRINSIC_GUESS
        try:
            rms, matrix, distortion, turns, shifts = cv2.fisheye.calibrate(
                places, pixels, size, guess, np.zeros(4), flags=chosen, criteria=_ITERATIONS
            )
        except cv2.error:
            continue
        if np.isfinite(rms) and (best is None or rms < best[0]):
            intrinsics = _in_a_row(np.asarray(matrix), np.asarray(distortion), 'equidistant')
            poses = np.reshape(turns, (-1, 3)), np.reshape(shifts, (-1, 3))
            best = (rms, Solution(intrinsics, *poses))
    return None if best is None else best[1]


def _inverse(normal: np.ndarray) -> np.ndarray:
    """Return the inverse of a normal matrix; undetermined directions stay finite."""
    scale = 1.0 / np.sqrt(np.maximum(np.diag(normal), 1e-300))
    values, vectors = np.linalg.eigh(normal * np.outer(scale, scale))
    inverse = (vectors / np.maximum(values, 1e-14)) @ vectors.T
    return np.asarray(inverse * np.outer(scale, scale))
