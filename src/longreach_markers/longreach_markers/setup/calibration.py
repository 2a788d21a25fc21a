"""
Intrinsics of a camera from pictures of a checkerboard, and their assessment.

The covariance of the intrinsics (:mod:`longreach_markers.setup.intrinsics`) is propagated to the
image: this gives the standard deviation of a pixel's ray, minus the part that a rotation of the
camera absorbs, because the camera's pose is estimated later with the same intrinsics. The
covariance does not show what the pictures have not covered, therefore coverage, tilt and distance
of the boards are checked separately. Nor does it show model errors: for plumb_bob, the richer
rational_polynomial is fitted to the same corners, and a difference between the two is reported.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import cv2
import numpy as np

from longreach_dynamics.errors import InputError, check_among
from longreach_markers.camera.model import Camera
from longreach_markers.setup.checkerboards import FEWEST, Board, BoardView
from longreach_markers.setup.intrinsics import (
    COEFFICIENTS,
    RICHER,
    Solution,
    covariance_of,
    enriched,
    project,
    shape_of_board,
    solve,
)

_ENOUGH = 10  # pictures
# Limits of a good calibration; beyond them a warning says what to do.
_LARGEST_RMS = 0.5  # [px]
_LEAST_AREA = 0.6
_CORNER_REACH = 0.3  # distance to an image corner, as a share of half the diagonal
_LEAST_TILT, _LEAST_TURN = math.radians(20.0), math.radians(30.0)
_LEAST_RATIO = 1.3  # largest over smallest distance
_LARGEST_FOCAL = 2e-3  # relative standard deviation of the focal length
_LARGEST_RAY = 0.5  # standard deviation of a ray [px]
_LARGEST_ASPECT, _SURE = 0.002, 4.0  # the least significance of a difference
_LARGEST_F = 3.0  # of the shape of the board
_LEFT = 0.1  # next step of converged least squares, in standard deviations
# Difference between models inside and outside the covered area [px]; its least significance.
_LARGEST_DIFFERENCE, _SIGNIFICANT = (0.3, 1.0), 3.0
# Outlier: error that a picture adds, relative to the median error of the others, and least one
# [px]; largest share of the pictures that is left out; their least error over that of the worst
# of the others.
_OUTLIER, _OUTLIER_FROM, _OUTLIERS, _APART = 2.5, 0.15, 0.2, 2.0
# Pictures with the largest errors, one of which may be the outlier.
_SUSPECTS = 4
_MASK = 120  # columns of the mask of the covered area
_GRID = (13, 10)  # columns and rows of the grid of rays that are checked
_FEWEST_ROWS = 6  # residuals, two for each ray, needed to fit a rotation
_IMAGE_CORNERS = ('upper left', 'upper right', 'lower left', 'lower right')


@dataclasses.dataclass(frozen=True)
class Coverage:
    """Coverage of the image and of poses by the pictures of a calibration."""

    area: float  # share of the image
    missing: tuple[str, ...]  # corners without a board
    tilts: np.ndarray  # (views,) between the board's normal and the line of sight [rad]
    turns: tuple[float, float]  # their range about the vertical and the horizontal axis [rad]
    distances: np.ndarray  # (views,) to the board's centre [m]


@dataclasses.dataclass(frozen=True)
class Calibration:
    """
    Estimated intrinsics and their assessment.

    Parameters
    ----------
    camera : Camera
    deviations : dict
        Standard deviations of fx, fy, cx, cy [px] and of the coefficients by name.
    covariance : ndarray, shape (m, m)
        Covariance of the same values, in that order.
    rms : float
        Root mean square distance between corners and their projections [px].
    views : tuple of BoardView
    errors : ndarray, shape (views,)
        RMS distance for each picture [px].
    residuals : ndarray, shape (views, n, 2)
        Detected minus projected corner [px].
    ray_deviation : ndarray, shape (rows, columns)
        Standard deviation of rays on a grid over the image, RMS of both axes [px].
    difference : ndarray, shape (rows, columns)
        Distance between the pixels of that grid and their rays' pixels in a richer model that is
            fitted to the same corners [px]; NaN for a model without a richer one.
    coverage : Coverage
    outliers : tuple of str
        Names of pictures that do not fit the others, and were left out.
    warnings : tuple of str
        Reasons not to trust the calibration, and remedies; empty for a good one.
    """

    camera: Camera
    deviations: dict[str, float]
    covariance: np.ndarray
    rms: float
    views: tuple[BoardView, ...]
    errors: np.ndarray
    residuals: np.ndarray
    ray_deviation: np.ndarray
    difference: np.ndarray
    coverage: Coverage
    outliers: tuple[str, ...]
    warnings: tuple[str, ...]


def calibrate(
    views: Sequence[BoardView],
    board: Board,
    size: tuple[int, int],
    model: str = 'plumb_bob',
    name: str = 'camera',
) -> Calibration:
    """
    Estimate a camera's intrinsics.

    Parameters
    ----------
    views : sequence of BoardView
    board : Board
    size : tuple of int
        Width and height of the pictures [px].
    model : str
        plumb_bob, rational_polynomial or equidistant.
    name : str
        The camera's name.

    Returns
    -------
    Calibration

    Raises
    ------
    InputError
        For too few views, an unknown model, or views that do not determine the intrinsics.
    """
    check_among('model', model, COEFFICIENTS)
    if len(views) < FEWEST:
        raise InputError(
            f'{len(views)} pictures with a board, allowed: {FEWEST} or more, 15 to 30 are good'
        )
    points = board.points
    for view in views:
        if view.corners.shape != (len(points), 2) or not np.isfinite(view.corners).all():
            raise InputError(
                f'{view.name} has corners of shape {view.corners.shape}, allowed: {len(points)}'
                ' finite pixels'
            )
    views, solution, outliers = _fitting(views, points, size, model)
    corners = [view.corners for view in views]
    try:
        fx, fy, cx, cy, *distortion = solution.intrinsics.tolist()
        camera = Camera(name, *size, fx, fy, cx, cy, model, tuple(distortion))
    except InputError as error:
        raise InputError(
            f'the pictures lead to invalid intrinsics: {error}; check --board'
        ) from error
    residuals, covariance, left = covariance_of(model, solution, points, corners, size)
    rms = math.sqrt(float(np.sum(residuals**2)) / (residuals.size / 2))
    errors = np.sqrt(np.mean(np.sum(residuals**2, axis=2), axis=1))
    rays = _ray_deviation(camera, covariance)
    coverage = _coverage(views, points, size, solution.turns, solution.shifts)
    difference, noise, further = _difference(camera, solution, points, views)
    names = ('fx', 'fy', 'cx', 'cy', *COEFFICIENTS[model])
    deviations = dict(zip(names, np.sqrt(np.diag(covariance)).tolist(), strict=True))
    warnings = _warnings(camera, deviations, rms, rays, coverage, outliers)
    shape, gain = shape_of_board(model, solution, points, corners, size)
    if gain > _LARGEST_F:
        off = 1e3 * float(np.linalg.norm(shape, axis=1).max())
        warnings.append(
            f'the board is not flat, or its squares are not equal: corners are off by up to'
            f' {off:.2g} mm in all pictures, F = {gain:.2g}, allowed: {_LARGEST_F:g}; deviations'
            ' do not contain this: print it to scale, and glue it to a plate of glass or metal'
        )
    warnings += _doubts(difference, noise, _covered_places(views, size), size)
    if not left <= _LEFT:
        warnings.append(
            f'the estimate has not converged: the next step would move it by {left:.2g} standard'
            f' deviations, allowed: {_LEFT:g}; add pictures, tilted and at other distances, or'
            ' take a --model with fewer coefficients'
        )
    if not further <= _LEFT:
        warnings.append(
            f'{RICHER} was fitted to the same corners, which shows where {model} is wrong, but has'
            ' not converged: this is not known; add pictures, up to the corners of the image'
        )
    return Calibration(
        camera,
        deviations,
        covariance,
        rms,
        tuple(views),
        errors,
        residuals,
        rays,
        difference,
        coverage,
        outliers,
        tuple(warnings),
    )


def _fitting(
    views: Sequence[BoardView], points: np.ndarray, size: tuple[int, int], model: str
) -> tuple[Sequence[BoardView], Solution, tuple[str, ...]]:
    """Return the pictures that fit each other, their solution, and the names of the others."""
    # A picture of another camera, or focus, is fitted at the expense of the others: it shows by
    # how much less all errors are without it. Where many pictures do not fit, the others fit
    # hardly better, or a richer model fits all, it is the model that does not, and none is left
    # out.

    def solved(views: Sequence[BoardView]) -> tuple[Solution, np.ndarray]:
        # With the sum of squares of each picture [px^2].
        corners = [view.corners for view in views]
        solution = solve(points, corners, size, model)
        if solution is None or not all(np.isfinite(part).all() for part in solution):
            raise InputError(
                'the pictures do not determine the intrinsics; show the board tilted by 20 to 45'
                ' deg, about both axes, in most of them'
            )
        residuals, *_ = covariance_of(model, solution, points, corners, size)
        return solution, np.sum(residuals**2, axis=(1, 2))

    everything = views, *solved(views)
    kept, solution, squares = everything
    outliers: list[str] = []
    least = math.inf
    while len(kept) > FEWEST:
        if math.sqrt(float(squares.max()) / len(points)) < _OUTLIER_FROM:
            break
        # Sums of squares without the pictures that fit worst.
        trials = []
        for k in np.argsort(-squares)[:_SUSPECTS].tolist():
            rest = [*kept[:k], *kept[k + 1 :]]
            try:
                trials.append((k, rest, *solved(rest)))
            except InputError:
                continue
        if not trials:
            break
        k, rest, without, less = min(trials, key=lambda trial: float(trial[3].sum()))
        added = math.sqrt(max(float(squares.sum() - less.sum()), 0.0) / len(points))
        usual = math.sqrt(float(np.median(less)) / len(points))
        if not added > max(_OUTLIER * usual, _OUTLIER_FROM):
            break
        outliers.append(kept[k].name)
        least = min(least, added)
        kept, solution, squares = rest, without, less
    worst = math.sqrt(float(squares.max()) / len(points))
    if len(outliers) > max(1.0, _OUTLIERS * len(views)) or least < _APART * worst:
        return *everything[:2], ()
    if outliers and model == 'plumb_bob':
        *_, others = _fitting(views, points, size, RICHER)
        if not set(outliers) <= set(others):
            return *everything[:2], ()
    return kept, solution, tuple(outliers)


def _ray_deviation(camera: Camera, covariance: np.ndarray) -> np.ndarray:
    columns, rows = _GRID
    seen, ahead = _rays(camera)
    deviation = np.full(rows * columns, math.nan)
    intrinsics = np.array([camera.fx, camera.fy, camera.cx, camera.cy, *camera.distortion])
    deviation[seen] = _scatter(camera.model, intrinsics, ahead, covariance)
    return deviation.reshape(rows, columns)


def _rays(camera: Camera) -> tuple[np.ndarray, np.ndarray]:
    """Return which pixels of the grid have a ray, (m,), and these rays (n, 3)."""
    rays = camera.undistort(_places((camera.width, camera.height)), strict=False)
    # A fisheye lens does not reach the corners of its image.
    seen = np.isfinite(rays).all(axis=1)
    return seen, np.column_stack([rays[seen], np.ones(int(seen.sum()))])


def _scatter(
    model: str, intrinsics: np.ndarray, ahead: np.ndarray, covariance: np.ndarray
) -> np.ndarray:
    """Return standard deviations of rays (n, 3), without a common rotation, (n,) [px]."""
    _, A, B = project(model, intrinsics, ahead, np.zeros(3), np.zeros(3))
    Q = np.linalg.qr(B[:, :3])[0]
    J = A - Q @ (Q.T @ A)
    variance = np.einsum('ij,jk,ik->i', J, covariance, J).reshape(-1, 2).mean(axis=1)
    return np.asarray(np.sqrt(np.maximum(variance, 0.0)))


def _places(size: tuple[int, int]) -> np.ndarray:
    u, v = (np.linspace(0.0, length - 1.0, n) for length, n in zip(size, _GRID, strict=True))
    return np.stack(np.meshgrid(u, v), axis=-1).reshape(-1, 2)


def _difference(
    camera: Camera, solution: Solution, points: np.ndarray, views: Sequence[BoardView]
) -> tuple[np.ndarray, np.ndarray, float]:
    """Return the difference to a richer model, its standard deviation [px], and its left."""
    # The first two (rows, columns), without the rotation that fits best in the covered area. NaN
    # where there is no ray, and without a richer model; infinite if that has no minimum.
    columns, rows = _GRID
    found = np.full((2, rows * columns), math.nan)
    size = (camera.width, camera.height)
    richer, left = None, 0.0
    corners = [view.corners for view in views]
    if camera.model == 'plumb_bob':
        richer, left = enriched(solution, points, corners, size), math.inf
    if richer is not None:
        places = _places(size)
        seen, ahead = _rays(camera)
        pixels, _, B = project(RICHER, richer.intrinsics, ahead, np.zeros(3), np.zeros(3))
        rest = (pixels - places[seen]).ravel()
        among = np.repeat(_covered_places(views, size)[seen], 2)
        if np.sum(among) < _FEWEST_ROWS:
            among[:] = True
        turn = np.linalg.lstsq(B[among, :3], rest[among], rcond=None)[0]
        found[0, seen] = np.linalg.norm((rest - B[:, :3] @ turn).reshape(-1, 2), axis=1)
        _, covariance, left = covariance_of(RICHER, richer, points, corners, size)
        found[1, seen] = _scatter(RICHER, richer.intrinsics, ahead, covariance)
    return found[0].reshape(rows, columns), found[1].reshape(rows, columns), left


def _covered(views: Sequence[BoardView], size: tuple[int, int]) -> np.ndarray:
    scale = _MASK / size[0]
    mask = np.zeros((max(round(size[1] * scale), 1), _MASK), np.uint8)
    for view in views:
        hull = cv2.convexHull(view.corners.astype(np.float32)) * scale
        cv2.fillConvexPoly(mask, np.rint(hull).astype(np.int32), (1,))
    return mask


def _covered_places(views: Sequence[BoardView], size: tuple[int, int]) -> np.ndarray:
    mask = _covered(views, size)
    u, v = (_places(size) * (_MASK / size[0])).astype(int).T
    return np.asarray(mask[np.minimum(v, len(mask) - 1), u] > 0)


def _coverage(
    views: Sequence[BoardView],
    points: np.ndarray,
    size: tuple[int, int],
    turns: np.ndarray,
    shifts: np.ndarray,
) -> Coverage:
    every = np.concatenate([view.corners for view in views])
    ends = np.array([(u, v) for v in (0.0, size[1] - 1.0) for u in (0.0, size[0] - 1.0)])
    reach = _CORNER_REACH * 0.5 * math.hypot(*size)
    missing = tuple(
        name
        for name, end in zip(_IMAGE_CORNERS, ends, strict=True)
        if np.linalg.norm(every - end, axis=1).min() > reach
    )
    tilts, sideways, upwards, distances = [], [], [], []
    for turn, shift in zip(turns, shifts, strict=True):
        R = cv2.Rodrigues(turn)[0]
        middle = R @ points.mean(axis=0) + shift
        distance = float(np.linalg.norm(middle))
        normal = R[:, 2] * np.sign(R[:, 2] @ middle)
        tilts.append(math.acos(min(float(normal @ middle) / distance, 1.0)))
        sideways.append(math.asin(normal[0]) - math.asin(middle[0] / distance))
        upwards.append(math.asin(normal[1]) - math.asin(middle[1] / distance))
        distances.append(distance)
    return Coverage(
        float(_covered(views, size).mean()),
        missing,
        np.array(tilts),
        (float(np.ptp(sideways)), float(np.ptp(upwards))),
        np.array(distances),
    )


def _warnings(
    camera: Camera,
    deviations: dict[str, float],
    rms: float,
    rays: np.ndarray,
    coverage: Coverage,
    outliers: tuple[str, ...],
) -> list[str]:
    found = []
    count = len(coverage.tilts)
    if count < _ENOUGH:
        found.append(f'only {count} pictures show the board: take 15 to 30')
    if outliers:
        found.append(
            f'{", ".join(outliers)} {"does" if len(outliers) == 1 else "do"} not fit the others,'
            f' and {"was" if len(outliers) == 1 else "were"} left out: look for another camera,'
            ' zoom or focus, motion blur, or a board that is cut off'
        )
    if rms > _LARGEST_RMS:
        found.append(
            f'the error of {rms:.2f} px is large: look for a board that is not flat, blurred'
            ' pictures, or another --model'
        )
    tilted = int(np.sum(coverage.tilts > _LEAST_TILT))
    if 3 * tilted < count:
        found.append(
            f'{tilted} of {count} pictures show the board tilted by more than'
            f' {math.degrees(_LEAST_TILT):.0f} deg, so that focal length and distance are poorly'
            ' separated: tilt it in half of them'
        )
    elif min(coverage.turns) < _LEAST_TURN:
        axis = ('vertical', 'horizontal')[int(np.argmin(coverage.turns))]
        found.append(
            f'the board is turned about the {axis} axis over'
            f' {math.degrees(min(coverage.turns)):.0f} deg only: turn it to both sides, about both'
            ' axes'
        )
    if coverage.area < _LEAST_AREA:
        found.append(
            f'boards cover {100.0 * coverage.area:.0f} % of the image: hold the board where it has'
            ' not been yet, up to the edges'
        )
    if coverage.missing:
        found.append(
            f'no board came near the corner {", ".join(coverage.missing)} of the image, where'
            ' distortion is largest: hold it there'
        )
    ratio = float(coverage.distances.max() / coverage.distances.min())
    if ratio < _LEAST_RATIO:
        found.append(
            f'all boards are about as far away, within a factor of {ratio:.2f}: take some pictures'
            ' at twice the distance'
        )
    focal = max(deviations['fx'] / camera.fx, deviations['fy'] / camera.fy)
    if focal > _LARGEST_FOCAL:
        found.append(
            f'the focal length is uncertain by {100.0 * focal:.2g} %: add pictures with a board'
            ' that is tilted and fills half of the image'
        )
    aspect, spread = camera.fx / camera.fy, math.hypot(deviations['fx'], deviations['fy'])
    if abs(aspect - 1.0) > max(_LARGEST_ASPECT, _SURE * spread / camera.fy):
        found.append(
            f'fx/fy = {aspect:.4f}, while most sensors have square pixels: measure whether the'
            ' printer has stretched the board along one side, and check that the pictures are not'
            ' stretched'
        )
    worst = float(np.nanmax(rays))
    if worst > _LARGEST_RAY:
        u, v = _places((camera.width, camera.height))[np.nanargmax(rays)]
        found.append(
            f'rays are uncertain by up to {worst:.2g} px, most at pixel ({u:.0f}, {v:.0f}): hold'
            ' the board there, or take a --model with fewer coefficients'
        )
    return found


def _doubts(
    difference: np.ndarray, noise: np.ndarray, covered: np.ndarray, size: tuple[int, int]
) -> list[str]:
    places = _places(size)
    apart = np.where(difference > _SIGNIFICANT * noise, difference, 0.0).ravel()
    found = []
    for among, limit in zip((True, False), _LARGEST_DIFFERENCE, strict=True):
        there = np.where(covered == among, apart, 0.0)
        worst = int(np.argmax(there))
        if not there[worst] > limit:
            continue
        u, v = places[worst]
        text = (
            f'{RICHER} fits the same corners and puts pixel ({u:.0f}, {v:.0f})'
            f' {there[worst]:.2g} px elsewhere'
        )
        if among:
            text += f', in the covered area: plumb_bob does not fit the lens; use --model {RICHER}'
        else:
            text += (
                ', where no board was: the pictures do not determine the lens there; hold the'
                f' board there, or use --model {RICHER}'
            )
        found.append(text)
    return found
