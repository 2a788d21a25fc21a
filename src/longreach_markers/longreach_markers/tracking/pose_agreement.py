"""
Agreement of cameras: whether their poses fit, which camera has moved, and its new pose.

Both rays to a marker miss each other by a gap, in pixels, with a known variance from pixels and
poses. The typical square of gap over deviation, its median over 0.455, is 1 if these variances are
correct, for any share of wrong sightings below a half; a bumped camera, a wrong pose or a poor
calibration make it large. Gaps alone cannot tell which of two cameras is wrong: a rotation of one
has the effect of an opposite one of the other. If a camera was bumped during the recording,
however, all markers jump in its image, and in no other. Of three cameras or more, the wrong one
disagrees with all others, which agree with each other.

A pose is refined with the other cameras and the plane as reference. Each sighting gives two
equations: its gap, and the distance of the triangulated point from the plane. Sightings by several
others are shared out among them, so that the errors of none count twice.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Sequence

import cv2
import numpy as np

from longreach_dynamics.errors import InputError, LongreachError
from longreach_markers.camera.geometry import Pose
from longreach_markers.camera.triangulation import triangulate
from longreach_markers.rig import Rig
from longreach_markers.tracking.clock_offset import Clocks
from longreach_markers.tracking.frames import typical_chi_square
from longreach_markers.tracking.sightings import Sightings

# Typical square from which cameras disagree (3 standard deviations), and least number of sightings
# for it.
_DISAGREE, _LEAST = 9.0, 30
# Refinement: largest number of sightings; prior standard deviations of the change, which exceed
# those of a bump [rad], [m]; largest share of them that may be left.
_SIGHTINGS, _PRIOR_TURN, _PRIOR_SHIFT, _LEFT = 300, 0.05, 0.2, 0.3
# An interval longer than this many usual ones is not interpolated.
_GAP = 1.6


@dataclasses.dataclass(frozen=True)
class Agreement:
    """
    Agreement of two cameras.

    Parameters
    ----------
    cameras : (str, str)
    sightings : int
        Number of sightings of a marker by both cameras.
    chi_square : float
        Typical squared gap of their rays over its variance: 1 is expected; NaN if unknown.
    marker : str
        Marker with the largest median gap.
    gap : float
        This gap [px].
    error : float
        Error of positions in the plane by one camera that would explain it [m].
    moved : str
        Camera that was bumped during these sightings; empty if unknown.
    since : float
        Time of it [s]; NaN if the cameras have not begun to disagree during these sightings.
    wrong : str
        Camera that disagrees with others, which agree with each other; empty if unknown.
    """

    cameras: tuple[str, str]
    sightings: int = 0
    chi_square: float = math.nan
    marker: str = ''
    gap: float = 0.0
    error: float = 0.0
    moved: str = ''
    since: float = math.nan
    wrong: str = ''

    @property
    def is_broken(self) -> bool:
        """Whether the cameras disagree by more than their covariances explain."""
        return self.sightings >= _LEAST and self.chi_square > _DISAGREE

    def __str__(self) -> str:
        """Return the agreement in one line."""
        first, second = self.cameras
        if not math.isfinite(self.chi_square):
            return f'agreement of {first} and {second}: not known, as no marker was seen by both'
        return (
            f'agreement of {first} and {second}: chi-square {self.chi_square:.3g}, expected 1,'
            f' from {self.sightings} sightings by both'
        )

    @property
    def warning(self) -> str:
        """Warning about cameras that disagree, with its effect and a remedy; empty for none."""
        if not self.is_broken:
            return ''
        first, second = self.cameras
        which, camera = self._which()
        return (
            f'{first} and {second} disagree: their rays to {self.marker} miss each other by'
            f' {self.gap:.2g} px, chi-square {self.chi_square:.3g} instead of 1: positions may be'
            f' wrong by {1e3 * self.error:.2g} mm, which their covariance does not contain;'
            f' {which}: longreach vision pose --refine RECORDING --rig RIG.yaml --camera {camera}'
        )

    def _which(self) -> tuple[str, str]:
        """Return what is known about which camera has moved, and its name for a command."""
        first, second = self.cameras
        begun = '' if math.isnan(self.since) else f' (since {self.since:.2f} s)'
        if self.wrong and self.wrong != self.moved:
            return (
                f'{self.wrong} was moved{begun}, or its pose or calibration is poor, as other'
                ' cameras agree with each other; find its pose again'
            ), self.wrong
        if self.moved:
            return (
                f'{self.moved} moved at {self.since:.2f} s: all markers jumped in its image alone;'
                ' fix it, and find its pose again'
            ), self.moved
        return (
            f'a camera was moved{begun}, or its pose or calibration is poor; which one, {first} or'
            f' {second}, cannot be told from two cameras that did not see the bump: compare with'
            ' a point of known position, and find the pose of the wrong one again'
        ), f'{first}|{second}'

    def fields(self) -> dict[str, object]:
        """Return the result as a JSON object, None for unknown numbers."""
        given = dataclasses.asdict(self) | {'cameras': list(self.cameras)}
        for key, value in given.items():
            if isinstance(value, float) and not math.isfinite(value):
                given[key] = None
        return given | {'warning': self.warning}


class AgreementEstimator:
    """Judges the agreement of two cameras from sightings, which may grow."""

    def __init__(self, sightings: Sightings) -> None:
        self._rig, self._sightings = sightings.rig, sightings
        self._seen = sightings.gaps

    def estimate(self, since: float = math.nan, moved: str = '') -> Agreement | None:
        """Judge the agreement by all sightings so far; None with one camera."""
        if len(self._rig.cameras) < 2:
            return None
        names = tuple(self._rig.cameras)
        first = -math.inf if math.isnan(since) else since
        seen = {name: [s for s in own if s.time >= first] for name, own in self._seen.items()}
        gaps = {name: float(np.median([s.gap for s in own])) for name, own in seen.items() if own}
        if not gaps:
            return Agreement((names[0], names[1]))
        worst = max(gaps, key=lambda name: abs(gaps[name]))
        squares = [one.chi_square for own in seen.values() for one in own]
        return Agreement(
            (names[0], names[1]),
            len(squares),
            typical_chi_square(squares),
            worst,
            abs(gaps[worst]),
            abs(gaps[worst]) * float(np.median([s.scale for s in seen[worst]])),
            moved,
            since,
        )

    # --- pairs for a refinement --------------------------------------------------------------

    def pairs(self, since: float = -math.inf) -> tuple[np.ndarray, np.ndarray, list[str]]:
        """
        Return pixels of markers in both cameras at common times, from a time [s] on.

        Those of the second camera are interpolated in time where cameras are not synchronous.
        """
        pixels, covariances, names = [], [], []
        first, second = self._rig.cameras
        for name in self._rig.names:
            one, other = (self._sightings.table(camera, name) for camera in (first, second))
            one, other = (table[table[:, 0] >= since] for table in (one, other))
            if len(other) < 2:
                continue
            times = other[:, 0]
            k = np.clip(np.searchsorted(times, one[:, 0], side='right') - 1, 0, len(times) - 2)
            usual = float(np.median(np.diff(times)))
            near = np.min(np.abs(one[:, :1] - times[np.stack([k, k + 1], axis=1)]), axis=1)
            within = (times[k] <= one[:, 0]) & (one[:, 0] <= times[k + 1])
            within &= (times[k + 1] - times[k] < _GAP * usual) | (near < 1e-9)
            moved = [np.interp(one[:, 0], times, other[:, column]) for column in range(1, 6)]
            at = np.stack([one[:, 1:], np.stack(moved, axis=1)], axis=1)[within]
            pixels.append(at[:, :, :2])
            covariances.append(at[:, :, [2, 3, 3, 4]].reshape(-1, 2, 2, 2))
            names += [name] * len(at)
        if not names:
            return np.empty((0, 2, 2)), np.empty((0, 2, 2, 2)), []
        return np.concatenate(pixels), np.concatenate(covariances), names


@dataclasses.dataclass(frozen=True, eq=False)
class Refinement:
    """
    A pose found again from tracked markers, with covariance, also from other poses and plane.

    ``turned`` [rad], ``shifted`` [m]; ``before``, ``after``: typical chi-square of the gaps, from
    pixels alone.
    """

    camera: str
    pose: Pose
    turned: float
    shifted: float
    sightings: int
    before: float
    after: float


def compare_poses(sightings: Sightings, clocks: Clocks) -> list[Agreement]:
    """
    Judge the agreement of each two cameras, and which of three or more is wrong.

    Two cameras of which one was bumped are judged by what they saw since, if they disagree then.
    """
    agreements = []
    bumps = [one for one in clocks.of_each() if math.isfinite(one.bump)]
    for two in itertools.combinations(sightings.rig.cameras, 2):
        estimator = AgreementEstimator(sightings.between(*two))
        found = estimator.estimate()
        assert found is not None
        for one in bumps:
            if one.moved in two or two == one.cameras:
                later = estimator.estimate(one.bump, one.moved)
                assert later is not None
                found = later if later.is_broken else found
        agreements.append(found)
    wrong = _odd_one(agreements)
    return [dataclasses.replace(one, wrong=wrong * one.is_broken) for one in agreements]


def agreement_text(agreements: Sequence[Agreement]) -> str:
    """Return the agreement of two cameras, or of several pairs the least and the largest."""
    known = [one for one in agreements if math.isfinite(one.chi_square)]
    if len(known) < 2:
        return str((known or agreements)[0])
    least, *_, most = sorted(known, key=lambda one: one.chi_square)
    return (
        f'agreement of each two cameras: chi-square {least.chi_square:.3g} to'
        f' {most.chi_square:.3g} ({" and ".join(most.cameras)}), expected 1'
    )


def _odd_one(agreements: Sequence[Agreement]) -> str:
    """Return the camera that all who disagree have in common, if others agree; empty for none."""
    broken = [one for one in agreements if one.is_broken]
    common = set.intersection(*(set(one.cameras) for one in broken)) if broken else set()
    is_sure = len(common) == 1 and any(
        one.sightings >= _LEAST and not one.is_broken and not common & set(one.cameras)
        for one in agreements
    )
    return next(iter(common)) if is_sure else ''


def wrong_camera(agreements: Sequence[Agreement]) -> tuple[str, float]:
    """Return the camera whose pose is wrong by the agreement of each two, and since when."""
    odd = _odd_one(agreements)
    moved = {odd} if odd else {one.moved for one in agreements if one.moved}
    if len(moved) != 1:
        return '', -math.inf
    (camera,) = moved
    return camera, begun(camera, agreements)


def begun(camera: str, agreements: Sequence[Agreement]) -> float:
    """Return the latest time from which on a camera disagrees with another one [s], or -inf."""
    since = (one.since for one in agreements if camera in one.cameras)
    return max((time for time in since if math.isfinite(time)), default=-math.inf)


def refine_pose(
    sightings: Sightings, camera: str, plane_deviation: float, since: float
) -> Refinement:
    """Find the pose of one camera again, from markers that it and other cameras have tracked."""
    from scipy.optimize import least_squares

    others = [sightings.between(camera, name) for name in sightings.rig.cameras if name != camera]
    seen = [(two.rig, *AgreementEstimator(two).pairs(since)) for two in others]
    seen = [one for one in seen if one[3]]
    count = sum(len(names[k :: len(seen)]) for k, (*_, names) in enumerate(seen))
    if count < _LEAST:
        raise LongreachError(
            f'{count} sightings of a marker by both cameras, allowed: {_LEAST} or more'
        )
    work = []
    for k, (rig, pixels, covariances, names) in enumerate(seen):
        own = np.arange(k, len(names), len(seen))
        pick = own[
            np.unique(np.linspace(0, len(own) - 1, _SIGHTINGS // len(seen)).round().astype(int))
        ]
        work.append(
            _Refining(
                rig,
                camera,
                pixels[pick],
                covariances[pick],
                [names[m] for m in pick],
                plane_deviation,
            )
        )
    prior = np.array(3 * [_PRIOR_TURN] + 3 * [_PRIOR_SHIFT])
    found = least_squares(
        lambda x: np.concatenate([*(one.residuals(x) for one in work), x / prior]),
        np.zeros(6),
        x_scale=np.array(3 * [1e-3] + 3 * [1e-2]),
        loss='huber',
        f_scale=1.5,
    )
    inverse = np.linalg.inv(found.jac.T @ found.jac)
    # Residuals larger than stated: the markers are farther from the plane, or the lens is poor.
    own = np.concatenate([one.residuals(found.x) for one in work])
    scale = max(1.0, typical_chi_square(own**2))
    left = np.sqrt(scale * np.diag(inverse)) / prior
    count = sum(one.count for one in work)
    if not found.success or left.max() > _LEFT:
        raise LongreachError(
            f'{count} sightings do not determine the pose of {camera}: rotation to'
            f' {1e3 * math.sqrt(scale * np.trace(inverse[:3, :3])):.2g} mrad, position to'
            f' {1e3 * math.sqrt(scale * np.trace(inverse[3:, 3:])):.2g} mm; record three or more'
            ' markers that are spread over the plane, or move them over it'
        )
    covariance = scale * inverse
    solver, row = inverse @ found.jac[: len(own)].T, 0
    by_plane = np.zeros((6, 3))
    for one in work:
        rows = solver[:, row : row + 2 * one.count]
        row += 2 * one.count
        if one.other_covariance is not None:
            effect = rows @ one.by('other', found.x)
            covariance = covariance + effect @ one.other_covariance @ effect.T
        # The plane is common to all.
        by_plane += rows @ one.by('plane', found.x)
    if sightings.rig.plane.covariance is not None:
        covariance = covariance + by_plane @ sightings.rig.plane.covariance @ by_plane.T
    before, after = (
        typical_chi_square(np.concatenate([one.residuals(x)[: one.count] for one in work]) ** 2)
        for x in (np.zeros(6), found.x)
    )
    return Refinement(
        camera,
        work[0].pose(found.x, 0.5 * (covariance + covariance.T)),
        float(np.linalg.norm(found.x[:3])),
        float(np.linalg.norm(found.x[3:])),
        count,
        before,
        after,
    )


class _Refining:
    """Residuals of a refinement by one other camera."""

    def __init__(
        self,
        rig: Rig,
        camera: str,
        pixels: np.ndarray,
        covariances: np.ndarray,
        names: list[str],
        plane_deviation: float,
    ) -> None:
        mounted = list(rig.cameras.values())
        self._cameras = mounted[0].camera, mounted[1].camera
        # Exact: what is common to all sightings is added at the end.
        self._poses = [Pose(one.pose.rotation, one.pose.translation) for one in mounted]
        self._index = tuple(rig.cameras).index(camera)
        self.other_covariance = mounted[1 - self._index].pose.covariance
        self._pixels, self._covariances, self.count = pixels, covariances, len(pixels)
        planes = {marker.name: rig.plane_of(marker) for marker in rig.markers}
        self._planes, self._deviation = [planes[name] for name in names], plane_deviation

    def pose(self, change: np.ndarray, covariance: np.ndarray | None = None) -> Pose:
        """Return the pose after a change: rotation vector in the camera [rad], position [m]."""
        return _changed(self._poses[self._index], change, covariance)

    def residuals(
        self,
        change: np.ndarray,
        other: np.ndarray | None = None,
        plane: np.ndarray | None = None,
    ) -> np.ndarray:
        """Return gaps, then distances from the planes, over their deviations, (2 N,)."""
        poses = list(self._poses)
        poses[self._index] = self.pose(change)
        if other is not None:
            poses[1 - self._index] = _changed(poses[1 - self._index], other)
        gaps, heights = np.zeros(len(self._pixels)), np.zeros(len(self._pixels))
        for k, (pixels, covariances, flat) in enumerate(
            zip(self._pixels, self._covariances, self._planes, strict=True)
        ):
            try:
                point = triangulate(self._cameras, (poses[0], poses[1]), pixels, covariances)
            except InputError:
                # Rays that do not meet have no influence.
                continue
            gaps[k] = point.gap / point.gap_noise
            away = float(flat.distance(point.position))
            if plane is not None:
                along = flat.axes @ (point.position - flat.centroid)
                away -= float(plane @ (along[1], -along[0], 1.0))
            spread = float(flat.normal @ point.covariance @ flat.normal) + self._deviation**2
            heights[k] = away / math.sqrt(spread)
        return np.concatenate([gaps, heights])

    def by(self, kind: str, change: np.ndarray) -> np.ndarray:
        """Return derivatives of the residuals by the pose of the other camera, or the plane."""
        base = self.residuals(change)
        columns = []
        for step in 1e-5 * np.eye({'other': 6, 'plane': 3}[kind]):
            columns.append((self.residuals(change, **{kind: step}) - base) / 1e-5)
        return np.stack(columns, axis=1)


def _changed(pose: Pose, change: np.ndarray, covariance: np.ndarray | None = None) -> Pose:
    """Return a pose after a rotation vector in the camera [rad] and a displacement [m]."""
    return Pose(
        pose.rotation @ cv2.Rodrigues(change[:3].copy())[0],
        pose.translation + change[3:],
        covariance,
    )
