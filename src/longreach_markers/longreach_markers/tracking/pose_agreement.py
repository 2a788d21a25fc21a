"""
Agreement of cameras: whether their poses fit, which camera has moved, and its new pose.

The typical square of the gap between both rays over its deviation, its median over 0.455, is 1 if
covariances are correct, for any share of wrong sightings below a half. Gaps alone cannot tell
which of two cameras is wrong. If one was bumped during the recording, all markers jump in its
image, and in no other; of three cameras or more, the wrong one disagrees with all others.

A pose is refined with the other cameras and the plane as reference. Each sighting gives two
equations: its gap, and the distance of the triangulated point from the plane. Sightings by several
others are shared out among them, so that the errors of none count twice.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterator, Sequence
from typing import TypeVar

import numpy as np
from scipy.linalg import block_diag

from longreach_dynamics.errors import LongreachError
from longreach_markers.camera.geometry import Pose
from longreach_markers.rig import Rig
from longreach_markers.tracking.appearance import Appearance
from longreach_markers.tracking.bodies import pose_covariances
from longreach_markers.tracking.clock_offset import ClockOffset, Clocks, clock_estimates
from longreach_markers.tracking.frames import RigFrame, typical_chi_square
from longreach_markers.tracking.pair_fit import HUBER, PairFit, Rays
from longreach_markers.tracking.sightings import Sightings, json_fields

# Typical square from which cameras disagree (3 standard deviations), and least number of sightings
# for it.
_DISAGREE, _LEAST = 9.0, 30
# Relative difference of size from which rings look larger or smaller than the rig says, and
# sightings of each marker by a camera for it.
_SIZE, _SIZES = 0.007, 30
# Refinement: largest number of sightings; prior standard deviations of the change, which exceed
# those of a bump [rad], [m]; largest share of them that may be left.
_SIGHTINGS, _PRIOR_TURN, _PRIOR_SHIFT, _LEFT = 300, 0.05, 0.2, 0.3
# Step of differences [rad], [m], and in normalised coordinates.
_STEP = 1e-5
# Time between the starts of two rounds of estimates of a running tracker [s of wall time], and the
# number of latest sightings of each marker for them.
_ROUND, _LATEST = 10.0, 600

_Judgement = TypeVar('_Judgement', ClockOffset, 'Agreement')


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
    marker, gap : str, float
        Marker with the largest median gap, and this gap [px].
    error : float
        Error of positions in the plane by one camera that would explain it [m].
    moved, since : str, float
        Camera that was bumped during these sightings, empty if unknown; time of it [s], NaN if
        the cameras have not begun to disagree during these sightings.
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
        if self.moved and self.wrong in ('', self.moved):
            return (
                f'{self.moved} moved at {self.since:.2f} s: all markers jumped in its image alone;'
                ' fix it, and find its pose again'
            ), self.moved
        begun = '' if math.isnan(self.since) else f' (since {self.since:.2f} s)'
        text = f'{self.wrong or "a camera"} was moved{begun}, or its pose or calibration is poor'
        if self.wrong:
            again = 'as other cameras agree with each other; find its pose again'
            return f'{text}, {again}', self.wrong
        return (
            f'{text}; which one, {first} or {second}, two cameras that did not see the bump do not'
            ' show: compare with a point of known position, and find the pose of the wrong one'
            ' again'
        ), f'{first}|{second}'

    def fields(self) -> dict[str, object]:
        """Return the result as a JSON object, None for unknown numbers."""
        return json_fields(self) | {'warning': self.warning}


def agreement_of(
    sightings: Sightings, cameras: tuple[str, str], since: float = math.nan, moved: str = ''
) -> Agreement:
    """Judge two cameras by their sightings, from a time on [s] at which one was moved."""
    seen = sightings.gaps(*cameras, -math.inf if math.isnan(since) else since)
    if not seen:
        return Agreement(cameras)
    gaps = {name: float(np.median([abs(one.gap) for one in own])) for name, own in seen.items()}
    worst = max(gaps, key=lambda name: gaps[name])
    squares = [one.chi_square for own in seen.values() for one in own]
    error = gaps[worst] * float(np.median([one.scale for one in seen[worst]]))
    chi_square = typical_chi_square(squares)
    return Agreement(cameras, len(squares), chi_square, worst, gaps[worst], error, moved, since)


def compare_poses(sightings: Sightings, clocks: Clocks) -> list[Agreement]:
    """
    Judge the agreement of each two cameras, and which of three or more is wrong.

    Two cameras of which one was bumped are judged by what they saw since, if they disagree then.
    """
    agreements = []
    bumps = [one for one in clocks.of_each() if math.isfinite(one.bump)]
    for two in itertools.combinations(sightings.rig.cameras, 2):
        found = agreement_of(sightings, two)
        for one in bumps:
            if one.moved in two or two == one.cameras:
                later = agreement_of(sightings, two, one.bump, one.moved)
                found = later if later.is_broken else found
        agreements.append(found)
    wrong = _odd_one(agreements)
    return [dataclasses.replace(one, wrong=wrong * one.is_broken) for one in agreements]


def size_warning(sightings: Sightings) -> str:
    """Return a warning if rings have another size than the rig says in all cameras, or ''."""
    # By the sum of the radii of both edges: what a sensor makes of a blurred edge moves them in
    # opposite directions, by up to 4 % of the radius, and the sum by 0.4 %.
    rig, found = sightings.rig, []
    for camera, mounted in rig.cameras.items():
        appearance, sizes = Appearance(mounted, rig), []
        for marker in rig.markers:
            table = sightings.table(camera, marker.name)
            for row in table[:: len(table) // _SIZES + 1] if marker.inner else ():
                wanted = appearance.by_rig(marker, row[1:3]).radius * (1.0 + marker.inner)
                sizes.append(row[6] / wanted - 1.0)
        if len(sizes) >= _LEAST:
            found.append(100.0 * float(np.median(sizes)))
    least = min(found, key=abs, default=0.0)
    if abs(least) < 100.0 * _SIZE or min(found) * max(found) < 0.0:
        return ''
    size = f'{abs(least):.1f} % {"larger" if least > 0.0 else "smaller"}'
    return (
        f'rings look {size} than the rig says: their radii, the focal lengths or the distance of'
        ' the plane are wrong; with the last two, positions are wrong by as much of their distance'
        ' from the middle of the image, beside what their covariance says: measure the rings, then'
        ' a known distance: longreach vision check'
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


def wrong_camera(agreements: Sequence[Agreement], known: str = '') -> tuple[str, float]:
    """
    Return the camera whose pose is wrong by the agreement of each two, unless it is ``known``.

    And the latest time from which on it disagrees with another one [s], or -inf; '' for none.
    """
    odd = _odd_one(agreements)
    moved = {odd} if odd else {one.moved for one in agreements if one.moved}
    camera = known or (moved.pop() if len(moved) == 1 else '')
    since = (one.since for one in agreements if camera in one.cameras)
    return camera, max((time for time in since if math.isfinite(time)), default=-math.inf)


@dataclasses.dataclass(frozen=True, eq=False)
class Refinement:
    """A pose found again, with covariance from tracked markers, other poses and plane."""

    camera: str
    pose: Pose
    turned: float  # [rad]
    shifted: float  # [m]
    sightings: int
    before: float  # typical chi-square of the gaps, from pixels alone
    after: float


def refine_pose(
    sightings: Sightings, camera: str, plane_deviation: float, since: float
) -> Refinement:
    """Find the pose of one camera again, from markers that it and other cameras have tracked."""
    from scipy.optimize import approx_fprime, least_squares

    rig = sightings.rig
    others = {name: one for name, one in rig.cameras.items() if name != camera}
    two = [sightings.between(camera, name) for name in others]
    fits = [fit for one in two if (fit := PairFit(one, since)).pairs]
    every, available = max(1, _SIGHTINGS // sum(len(fit.pairs) for fit in fits)) if fits else 1, 0
    # Of two cameras and a marker: places, and deviations of gaps and of distances from the plane.
    groups: list[tuple[tuple[str, ...], int, np.ndarray, np.ndarray]] = []
    for k, fit in enumerate(fits):
        for m, (name, *_) in enumerate(fit.pairs):
            seen = fit.common(m, np.zeros(1), ends=True)
            # Each sighting counts for one other camera.
            mine = np.arange(k, len(seen.times), len(fits))
            available += len(mine)
            which = mine[:: -(-len(mine) // every) or 1]
            places, covariances = seen.places[:, which], seen.covariances[:, which]
            rays, heights = Rays(fit.poses, places), np.empty_like(places)
            for c, i in np.ndindex(2, 2):
                near = places.copy()
                near[c, :, i] += _STEP
                change = Rays(fit.poses, near).points() - rays.points()
                heights[c, :, i] = change @ rig.plane.normal / _STEP
            gaps, away = (
                np.einsum('cli,clij,clj->l', by, covariances, by)
                for by in (rays.gradients(), heights)
            )
            deviations = np.sqrt([gaps, away + plane_deviation**2])
            groups.append((fit.cameras, rig.names.index(name), places, deviations))
    count = sum(places.shape[1] for _, _, places, _ in groups)
    if available < _LEAST:
        raise LongreachError(
            f'{available} sightings of a marker by both cameras, allowed: {_LEAST} or more'
        )
    # Errors of the other poses, of a marker's height and of the plane (two rotations and a height)
    # are common to all sightings.
    plane = np.zeros((3, 3)) if rig.plane.covariance is None else rig.plane.covariance
    rest = pose_covariances(dataclasses.replace(rig, cameras=others))
    common = block_diag(rest, plane_deviation**2 * np.eye(len(rig.names)), plane)
    none = np.zeros(len(common))

    def residuals(change: np.ndarray, causes: np.ndarray = none) -> np.ndarray:
        """Return gaps, then distances from the planes, over their deviations, (2 N,)."""
        moves = dict(zip(others, causes[: len(rest)].reshape(-1, 6), strict=True))
        moves[camera] = change
        poses = {name: one.pose.moved(moves[name]) for name, one in rig.cameras.items()}
        found = []
        for cameras, m, places, deviations in groups:
            rays = Rays([poses[name] for name in cameras], places)
            along = (rays.points() - rig.plane.centroid) @ rig.plane.axes.T
            tilt = np.column_stack([along[:, 1], -along[:, 0], np.ones(len(along))])
            away = rig.plane.distance(rays.points()) - tilt @ causes[-3:]
            away -= rig.markers[m].offset + causes[len(rest) + m]
            found.append(np.array([rays.gaps, away]) / deviations)
        return np.concatenate(found, axis=1).ravel()

    prior = np.array(3 * [_PRIOR_TURN] + 3 * [_PRIOR_SHIFT])
    found = least_squares(
        lambda x: np.append(residuals(x), x / prior),
        np.zeros(6),
        x_scale=np.array(3 * [1e-3] + 3 * [1e-2]),
        loss='huber',
        f_scale=HUBER,
    )
    inverse = np.linalg.inv(found.jac.T @ found.jac)
    # Residuals larger than stated: the markers are farther from the plane, or the lens is poor.
    scale = max(1.0, typical_chi_square(residuals(found.x) ** 2))
    left = np.sqrt(scale * np.diag(inverse)) / prior
    if not found.success or left.max() > _LEFT:
        raise LongreachError(
            f'{count} sightings do not determine the pose of {camera}: rotation to'
            f' {1e3 * math.sqrt(scale * np.trace(inverse[:3, :3])):.2g} mrad, position to'
            f' {1e3 * math.sqrt(scale * np.trace(inverse[3:, 3:])):.2g} mm; record three or more'
            ' markers that are spread over the plane, or move them over it'
        )
    by_causes = approx_fprime(none, lambda z: residuals(found.x, z), _STEP)
    effect = inverse @ found.jac[: 2 * count].T @ by_causes
    covariance = scale * inverse + effect @ common @ effect.T
    before, after = (typical_chi_square(residuals(x)[:count] ** 2) for x in (np.zeros(6), found.x))
    return Refinement(
        camera,
        rig.cameras[camera].pose.moved(found.x, 0.5 * (covariance + covariance.T)),
        float(np.linalg.norm(found.x[:3])),
        float(np.linalg.norm(found.x[3:])),
        count,
        before,
        after,
    )


class CameraMonitor:
    """Watches clocks and poses of a rig's cameras by their latest sightings."""

    def __init__(self, rig: Rig, now: float) -> None:
        # Not at the first estimate, while images wait.
        import scipy.interpolate
        import scipy.ndimage  # noqa: F401

        self._sightings = Sightings(rig, _LATEST)
        self._begun = now
        self._round: Iterator[None] | None = None
        # Of the first two cameras that differ, or else of the first two; None: unknown.
        self.offset: ClockOffset | None = None
        self.agreement: Agreement | None = None
        self._size = ''

    def add(self, frame: RigFrame) -> None:
        """Add the result of the images of one time."""
        self._sightings.add(frame)

    def work(self, now: float) -> bool:
        """Make the next estimate that is due at a monotonic time [s]."""
        # One of two cameras for each call, since it takes some 0.1 s during which images wait.
        if self._round is None:
            if now - self._begun < _ROUND:
                return False
            self._begun, self._round = now, self._estimates()
        try:
            next(self._round)
        except StopIteration:
            self._round = None
        return self._round is None

    def _estimates(self) -> Iterator[None]:
        clocks = Clocks()
        yield from clock_estimates(self._sightings, clocks, search=False)
        self.offset = _worst(clocks.of_each())
        self.agreement = _worst(compare_poses(self._sightings, clocks))
        self._size = size_warning(self._sightings)

    @property
    def warning(self) -> str:
        """Warning about clocks, else poses, as wrong clocks make cameras disagree, else sizes."""
        known = (one.warning for one in (self.offset, self.agreement) if one is not None)
        return next(filter(None, known), self._size)


def _worst(found: Sequence[_Judgement]) -> _Judgement | None:
    """Return the first result with a warning, or else the first one; None for one camera."""
    return next((one for one in found if one.warning), next(iter(found), None))
