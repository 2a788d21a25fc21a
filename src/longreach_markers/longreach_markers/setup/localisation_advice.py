"""
Warnings about estimated poses: reasons not to trust them, and remedies.

Ambiguous poses, inconsistent measurements with the points that are probably wrong, and points in
unfavourable positions.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence

import cv2
import numpy as np

from longreach_markers.camera.geometry import PlaneFit, Pose
from longreach_markers.setup.bundle_adjustment import (
    FLAT,
    Fit,
    Prediction,
    Predictor,
    Problem,
    State,
    alike,
    best_fit,
    is_misfit,
    projected,
)

# Initial poses for each of many trials.
_FEW_STARTS = 3
# Draws of three points for the pose on which most agree; largest residual of an agreeing point,
# and residual assigned to a point without information [px].
_DRAWN, _AGREEING, _UNKNOWN = 300, 10.0, 1e6
# The tip is far from the points if its error exceeds theirs by this factor, and this value [m].
_FAR, _FAR_FROM = 2.5, 5e-3
# Least radius of a marker in the image [px]; radius that no marker exceeds [m].
_LEAST_RADIUS, _HUGE = 4.0, 2.0
# Share of the image covered by the points below which a warning is given.
_LEAST_SHARE = 0.05


def ambiguities(problem: Problem, best: Fit, rivals: Sequence[Fit]) -> list[str]:
    """Return warnings about other poses that fit equally well."""
    found = []
    for c, (side, seen) in enumerate(zip(problem.sides, problem.seen, strict=True)):
        pose = best.state.poses[c]
        others: list[Pose] = []
        for rival in rivals:
            other = rival.state.poses[c]
            if not any(alike(other, known, problem.measured) for known in (pose, *others)):
                others.append(other)
        if others:
            places = ' or '.join(_place_text(other.translation) for other in others)
            found.append(
                f'{side} is at {_place_text(pose.translation)}, or equally likely at {places}:'
                f' {len(seen.indices)} points leave this open; add points off their plane, or'
                f' give cameras.{side}.position'
            )
        elif len(seen.indices) <= 3:
            found.append(
                f'{side} sees 3 points only: they leave no redundancy, and other poses may fit'
                ' nearly as well; add a point off their plane'
            )
    return found


def _place_text(position: np.ndarray) -> str:
    return '(' + ', '.join(f'{value:.2f}' for value in position) + ') m'


def misfit(problem: Problem, best: Fit, *, is_refused: bool) -> str:
    """Return a message about inconsistent measurements."""
    times = math.sqrt(best.cost / best.freedom)
    residuals = np.concatenate(problem.pixel_residuals(best.state))
    pixels = math.sqrt(float(np.mean(np.sum(residuals**2, axis=1))))
    shifts = np.linalg.norm(best.state.points - problem.measured, axis=1)
    text = (
        f'the measurements do not fit: residuals are {times:.3g} times their standard deviations'
        f' ({pixels:.3g} px, points moved by up to {1e3 * float(shifts.max()):.3g} mm)'
    )
    units = _unit_doubt(problem, best.state)
    if units:
        # If the fit is not refused, the warnings on placement mention units.
        return f'{text}; {units}' if is_refused else text
    likely = culprits(problem)
    if likely:
        return f'{text}; {likely}'
    if is_refused:
        return f'{text}; look for swapped or mistyped points, or another calibration'
    return f'{text}; check the points, or give larger deviations'


def plane_misfit(fit: PlaneFit, expected: float, names: Sequence[str]) -> str:
    """Return a message about points farther off their plane than the expected RMS [m]."""
    worst = int(np.argmax(np.abs(fit.residuals)))
    return (
        f'points with in_plane lie {1e3 * fit.rms:.1f} mm (RMS) off their plane, expected:'
        f' {1e3 * expected:.1f} mm; check {names[worst]}, or leave out points that are not in the'
        ' plane'
    )


# --- wrong points ---------------------------------------------------------------------------


def culprits(problem: Problem) -> str:
    """Return which points are probably wrong, for messages; empty for none."""
    suspects = _suspects(problem)
    if suspects:
        return f'{" or ".join(suspects)} is likely wrong: measure it again, or leave it out'
    odd = _odd_ones(problem)
    verb = 'do' if len(odd) > 1 else 'does'
    return f'{" and ".join(odd)} {verb} not fit the others: swapped or mistyped?' if odd else ''


def _is_consistent(problem: Problem) -> bool:
    if min(len(seen.indices) for seen in problem.seen) < 3:
        return False
    best, _ = best_fit(problem, _FEW_STARTS)
    return best is not None and best.freedom > 0 and not is_misfit(best.cost, best.freedom)


def _suspects(problem: Problem) -> list[str]:
    found = []
    for k, name in enumerate(problem.names):
        by = [c for c, seen in enumerate(problem.seen) if k in seen.indices]
        others = tuple(item for item in problem.distances if k not in item[:2])
        if not by or not _is_consistent(problem._replace(distances=others).without(k, by)):
            continue
        enough = [c for c in by if _is_consistent(problem.without(k, [c]))] if len(by) > 1 else []
        is_pixel = len(enough) == 1
        found.append(f'the pixel of {name} in {problem.sides[enough[0]]}' if is_pixel else name)
    if not found and problem.distances and _is_consistent(problem._replace(distances=())):
        return ['a distance']
    return found


def _odd_ones(problem: Problem) -> list[str]:
    """Return the points away from where a camera sees them by the pose of most; none of many."""
    off = [_errors(problem, c) for c in range(len(problem.cameras))]
    # Any three points agree on some pose.
    off = [one for one in off if sum(error <= _AGREEING for error in one.values()) > 3]
    odd = [
        name
        for k, name in enumerate(problem.names)
        if any(errors.get(k, 0.0) > _AGREEING for errors in off)
    ]
    return odd if 2 * len(odd) < len(problem.names) else []


def _errors(problem: Problem, c: int) -> dict[int, float]:
    """Return the error of each point for the camera pose on which most points agree [px]."""
    single = problem.only(c)
    camera, pixels = single.cameras[0], single.seen[0].pixels
    errors = np.full(len(pixels), _UNKNOWN)
    middle = single.measured.mean(axis=0)
    with contextlib.suppress(cv2.error):
        # Needs at least four points; may find no agreement.
        found, turn, shift, _ = cv2.solvePnPRansac(
            single.measured - middle,
            camera.undistort(pixels),
            np.eye(3),
            np.zeros(0),
            iterationsCount=_DRAWN,
            reprojectionError=_AGREEING / camera.fx,
            flags=cv2.SOLVEPNP_AP3P,
        )
        if found:
            R = cv2.Rodrigues(turn)[0]
            pose = Pose(R.T, middle - R.T @ np.ravel(shift))
            distance = np.linalg.norm(projected(camera, pose, single.measured)[0] - pixels, axis=1)
            errors = np.where(np.isfinite(distance), distance, _UNKNOWN)
    return dict(zip(problem.seen[c].indices.tolist(), errors.tolist(), strict=True))


# --- where the points are -------------------------------------------------------------------


def placement(predictor: Predictor, tip: Prediction, at_points: Sequence[Prediction]) -> list[str]:
    """Return warnings about the placement of the points."""
    problem = predictor.problem
    doubt = _unit_doubt(problem, predictor.state)
    found = [doubt] if doubt else []
    if math.isnan(tip.error):
        if predictor.seen(tip.point):
            found.append(
                'one camera sees the tip and no plane is known: mark three or more points with'
                ' in_plane: true'
            )
        else:
            found.append(
                f'no camera sees the tip at {_place_text(tip.point)}: turn them, or give another'
                ' tip'
            )
    errors = [there.error for there in at_points if math.isfinite(there.error)]
    usual = float(np.median(errors)) if errors else math.nan
    if errors and tip.error > max(_FAR * usual, _FAR_FROM):
        thick = np.linalg.svd(problem.measured - problem.measured.mean(axis=0), compute_uv=False)
        flat = ' and in one plane' if thick[2] < FLAT * thick[1] else ''
        found.append(
            f'a marker at the tip would be off by {1e3 * tip.error:.0f} mm, at the reference'
            f' points by {1e3 * usual:.0f} mm: these are clustered{flat}, far from the tip; spread'
            ' the points over the space in which markers move, also in depth'
        )
    for side, camera, seen in zip(problem.sides, problem.cameras, problem.seen, strict=True):
        hull = cv2.convexHull(seen.pixels.astype(np.float32))
        share = float(cv2.contourArea(hull)) / (camera.width * camera.height)
        if share < _LEAST_SHARE:
            found.append(
                f'the reference points cover {100.0 * share:.1f} % of the image of {side}: spread'
                ' them over the image'
            )
    return found


def _unit_doubt(problem: Problem, state: State) -> str:
    """Return a message if cameras are so far away that lengths are probably not in metres."""
    for side, camera, pose, seen in zip(
        problem.sides, problem.cameras, state.poses, problem.seen, strict=True
    ):
        depth = float(np.median(pose.to_camera(state.points[seen.indices])[:, 2]))
        radius = _LEAST_RADIUS * depth / camera.fx
        if radius > _HUGE:
            return (
                f'{side} stands {depth:.4g} m from its points, where no marker of less than'
                f' {2.0 * radius:.2g} m across can be tracked: are lengths in millimetres? give'
                ' positions, deviations, distances and tip in metres'
            )
    return ''
