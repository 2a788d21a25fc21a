"""
Positions of markers in space, from one camera or more.

With one camera, the position is the intersection of its ray with the plane of motion, Henikl 2015,
(38). With several there are those of each camera in the plane, merged with minimum variance,
taking into account that errors of the plane are common to all; and the triangulated one, which
does not depend on the plane. Its distance from the plane shows whether the assumption
holds: if a boom sways by 100 mm, positions in the plane are off by about 30 mm, and the
triangulated one is not.

Images taken at different times are reduced to the time of the first one: the pixels of the other
cameras are interpolated or extrapolated from their latest images. At 1 m/s, 5 ms correspond to 5
mm.

BLAS threads slow down problems of this size, especially on a busy machine: set
OPENBLAS_NUM_THREADS=1 in the environment of the process before it imports numpy.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import math
from collections import defaultdict, deque
from collections.abc import Collection, Mapping, Sequence

import numpy as np

from longreach_dynamics.errors import InputError, LongreachError
from longreach_markers.camera.geometry import Plane
from longreach_markers.camera.triangulation import Location, locate_in_plane, triangulate
from longreach_markers.marker.detection import LOST, TRACKED, UNCERTAIN, Observation
from longreach_markers.rig import MarkerOnRig, Rig, TrackingParameters
from longreach_markers.tracking.bodies import BodyEstimate, locate_body
from longreach_markers.tracking.camera_tracker import CameraTracker
from longreach_markers.tracking.ring_names import alike, name_markers

# Standard deviations beyond which a difference is significant.
_SURE = 3.5
# Squared distance of two rays, over its variance, beyond which they do not intersect.
_RAYS_MISS = 25.0
# A centre that is moved to another time without known velocity is accepted while its standard
# deviation is below this share of the marker's radius.
_MOVED = 0.05
# Time between the positions from which a velocity in the other camera is computed [s].
_SHORT = 1e-3
# Sightings in the mean difference of the cameras' positions: more would lag behind a marker that
# moves.
_REMEMBERED = 5
# Latest sightings from which the typical disagreement is computed.
_LATEST = 300
# Weights of successive gaps between both rays in the difference that shows their noise, and its
# standard deviation for gaps of 1; sightings from which noise is known; and its least ratio to the
# stated one for which covariances of pixels are increased.
_DIFFERENCE, _ENOUGH, _EXCESS = (1.0, -2.0, 1.0), 60, 1.5
_LENGTH = math.hypot(*_DIFFERENCE)
# Median of such differences of all markers, over their standard deviations, from which on a camera
# has jumped, and below which it stood still before.
_JUMP, _STILL = 6.0, 3.0
# Share of these squares without the largest, which may be swaps, and the mean of this share of the
# chi-square distribution with 1 degree of freedom.
_KEPT, _KEPT_MEAN = 0.98, 0.873
# Median of the chi-square distribution with 1 degree of freedom.
_MEDIAN = 0.4549


@dataclasses.dataclass(frozen=True, eq=False)
class Estimate:
    """
    Estimated position of a marker.

    Parameters
    ----------
    name : str
    status : str
        ``TRACKED``, ``UNCERTAIN`` or ``LOST``: the worse status of the cameras used; also
        UNCERTAIN
            if their observations are inconsistent, or were moved to a common time without known
            velocity.
    reason : str
        Why the status is not TRACKED; empty otherwise.
    cameras : tuple of str
        Cameras used: an uncertain one is not used if another tracks the marker.
    in_plane : Location, optional
        Position in the world, assuming that it moves in its plane [m].
    triangulated : Location, optional
        Position without this assumption; requires two cameras or more.
    out_of_plane : float
        Distance of the triangulated position from the marker's plane along the normal [m]; NaN
            without a triangulated position.
    out_of_plane_deviation : float
        Standard deviation of out_of_plane [m].
    is_off_plane : bool
        UNCERTAIN only because it is out of the plane: the triangulated position is reliable.
    pairs : mapping of Location
        Positions triangulated by each two of the cameras used, whose rays meet: whether they
        agree.
    """

    name: str
    status: str
    reason: str
    cameras: tuple[str, ...] = ()
    in_plane: Location | None = None
    triangulated: Location | None = None
    out_of_plane: float = math.nan
    out_of_plane_deviation: float = math.nan
    is_off_plane: bool = False
    pairs: Mapping[tuple[str, str], Location] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, eq=False)
class StereoFrame:
    """
    Results of the images of one time.

    Parameters
    ----------
    time : float
        Time of the first camera's image, and of the estimates [s].
    gap : float
        Time of the other image minus this [s], the largest in magnitude of several; NaN with one
        camera.
    observations : dict of dict of Observation
        Observations by camera and marker, at the time of each image.
    estimates : dict of Estimate
        Estimates of all markers of the rig, by name.
    chi_square : float
        Typical squared distance of two cameras' rays over its variance, from the latest
        sightings by each two of them: 1 is expected; NaN if unknown.
    bodies : dict of BodyEstimate
        Poses of the rigid bodies of the rig, by name.
    times : mapping
        Time of each camera's image [s].
    """

    time: float
    gap: float
    observations: dict[str, dict[str, Observation]]
    estimates: dict[str, Estimate]
    chi_square: float = math.nan
    bodies: dict[str, BodyEstimate] = dataclasses.field(default_factory=dict)
    times: Mapping[str, float] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        """Fill in the times of one camera or two."""
        if not self.times:
            gap = self.gap if math.isfinite(self.gap) else 0.0
            both = zip(self.observations, (self.time, self.time + gap), strict=False)
            object.__setattr__(self, 'times', dict(both))

    @property
    def disagreements(self) -> dict[tuple[str, str, str], Location]:
        """Points triangulated by two cameras that both TRACK the marker: marker, both cameras."""
        return {
            (name, *pair): point
            for name, one in self.estimates.items()
            for pair, point in one.pairs.items()
            if all(self.observations[camera][name].status == TRACKED for camera in pair)
        }


@dataclasses.dataclass(frozen=True, eq=False)
class _View:
    """Pixel of a marker in a camera at the time of the estimate."""

    side: str
    status: str
    reason: str
    center: np.ndarray
    covariance: np.ndarray
    doubt: str = (
        ''  # why the pixel is unreliable at this time, although it was TRACKED in its image
    )


@dataclasses.dataclass(frozen=True, eq=False)
class _Apart:
    """Differences of a marker's positions by several cameras in the plane, by camera."""

    count: int  # sightings in the mean
    apart: dict[str, np.ndarray]  # (3,), from the first camera's position, mean of the latest [m]
    noise: dict[str, np.ndarray]  # (3, 3), of each position, of the mean [m^2]
    systematic_apart: float  # trace of the systematic covariance of the differences [m^2]
    systematic: np.ndarray  # (3, 3), of the merged position [m^2]
    gains: dict[str, np.ndarray]  # (3, 3), weight of the position in the merged one
    places: dict[str, np.ndarray]  # (3,), latest positions [m]
    drift: float  # variance of the differences per square of a distance moved


class StereoTracker:
    """
    Tracks markers with the cameras of a rig.

    Parameters
    ----------
    rig : Rig
        Rig with one camera or more.
    """

    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        self.trackers = {
            side: CameraTracker(side, mounted, rig.plane, rig.markers, rig.tracking, rig.detection)
            for side, mounted in rig.cameras.items()
        }
        self._planes = {marker.name: rig.plane_of(marker) for marker in rig.markers}
        self._apart: dict[str, _Apart] = {}
        self._squares: deque[float] = deque(maxlen=_LATEST)
        # Latest gaps between two rays by marker and cameras [px], squares of their differences
        # over the stated variance, and the factor of variances that follows.
        self._gaps: dict[tuple[str, str, str], deque[float]] = defaultdict(
            lambda: deque(maxlen=len(_DIFFERENCE))
        )
        self._scatter: deque[float] = deque(maxlen=_LATEST)
        self._excess = 1.0
        # The latest of these squares, over the variance increased by that factor.
        self._latest_squares: dict[tuple[str, str, str], float] = {}
        # Reasons for markers that were not found at the start, or in a search.
        self._missing: dict[str, str] = {}

    def use(self, parameters: TrackingParameters) -> None:
        """Continue with other parameters; tracks are kept."""
        self.rig = dataclasses.replace(self.rig, tracking=parameters)
        for tracker in self.trackers.values():
            tracker.use(parameters)

    @property
    def excess(self) -> float:
        """Factor of the pixels' variances that the scatter of the cameras' rays asks for."""
        return self._excess

    def _of(self, side: str) -> CameraTracker:
        if side not in self.trackers:
            raise InputError(f'camera {side!r} is unknown, in the rig: {", ".join(self.trackers)}')
        return self.trackers[side]

    def start(
        self, images: Mapping[str, np.ndarray], times: Mapping[str, float]
    ) -> dict[str, dict[str, Observation]]:
        """
        Start tracking with the first images, at times [s]; return observations by camera, marker.

        Markers are initialised at their given pixel, else at their position, as in
        :meth:`CameraTracker.start_given`; those without either are searched for in whole images
        and named by :func:`name_markers`. LongreachError if the search does not find the expected
        number of a kind; kinds that are found are tracked.
        """
        given = {side: self._of(side) for side in images}
        seen = {
            side: tracker.start_given(images[side], times[side]) for side, tracker in given.items()
        }
        for marker in self.rig.markers:
            views = [views[marker.name] for views in seen.values() if marker.name in views]
            if views and not any(marker.name in one.tracks for one in given.values()):
                reasons = dict.fromkeys(one.reason for one in views)
                self._missing[marker.name] = f'{marker.name}: {"; ".join(reasons)}'
        known = {name for views in seen.values() for name in views}
        left = [marker for marker in self.rig.markers if marker.name not in known]
        problem = ''
        if left:
            problem = self._search(images, times, left, seen)
        self._help(times)
        if problem:
            raise LongreachError(problem)
        return seen

    def search(self, images: Mapping[str, np.ndarray], times: Mapping[str, float]) -> str:
        """Search for :attr:`searchable` markers; return why some are missing."""
        left = self.searchable
        problem = ''
        if left:
            problem = self._search(images, times, left, {side: {} for side in images})
            self._help(times)
        missing = self.missing
        return (problem or '; '.join(dict.fromkeys(missing.values()))) if missing else ''

    @property
    def missing(self) -> dict[str, str]:
        """Reasons why markers have not been found, for those not tracked since."""
        return {
            name: why
            for name, why in self._missing.items()
            if not any(name in one.tracks for one in self.trackers.values())
        }

    @property
    def is_any_in_sight(self) -> bool:
        """Whether a camera saw a marker in its latest image."""
        return any(
            not track.lost for one in self.trackers.values() for track in one.tracks.values()
        )

    @property
    def searchable(self) -> list[MarkerOnRig]:
        """
        Markers that a search in whole images may find.

        Rings that no camera has tracked yet, provided that all markers of the same appearance are
        in sight. If no marker at all is in sight, also those that were never seen at their initial
        position, provided that their appearance is unique, since otherwise names could be
        exchanged.
        """
        trackers = self.trackers.values()
        found: list[MarkerOnRig] = []
        for kind in alike([marker for marker in self.rig.markers if marker.inner > 0.0]):
            begun = [
                marker for marker in kind if any(marker.name in one.tracks for one in trackers)
            ]
            others = [marker for marker in kind if marker not in begun]
            if all(one.is_in_sight(marker.name) for marker in begun for one in trackers):
                found += others
            elif len(kind) == 1 and not self.is_any_in_sight:
                found += [
                    marker
                    for marker in begun
                    if not any(one.was_seen(marker.name) for one in trackers)
                ]
        return found

    def _search(
        self,
        images: Mapping[str, np.ndarray],
        times: Mapping[str, float],
        left: Sequence[MarkerOnRig],
        seen: dict[str, dict[str, Observation]],
    ) -> str:
        """Find markers in whole images and add them to ``seen``; return why some are missing."""
        given = {side: self._of(side) for side in images}
        found = {side: tracker.find_others(images[side]) for side, tracker in given.items()}
        appearances = {side: tracker.appearance for side, tracker in given.items()}
        named = name_markers(appearances, found, left, self.rig.tracking.together)
        for name, views in named.views.items():
            self._missing.pop(name, None)
            for side, one in views.items():
                given[side].begin(name, one, times[side])
                seen[side][name] = one
        self._missing.update(named.missing)
        return named.problem

    def update(self, images: Mapping[str, np.ndarray], times: Mapping[str, float]) -> StereoFrame:
        """
        Track the markers in the next images by camera, at times [s]; some may be missing.

        Images further from the first one in time than ``gap`` do not contribute to the estimates.
        InputError for an unknown camera, an image of another size, and without images.
        """
        sides = [side for side in self.trackers if side in images]
        if not sides or len(sides) < len(images):
            raise InputError(
                f'images of {list(images)}, allowed: {", ".join(self.trackers)}, at least one'
            )
        observations = {side: self._of(side).update(images[side], times[side]) for side in sides}
        time = times[sides[0]]
        gap = max((times[side] - time for side in sides[1:]), key=abs, default=math.nan)
        largest = self.rig.tracking.gap
        used = [side for side in sides if not abs(times[side] - time) > largest]
        estimates = {
            marker.name: self._estimate(
                marker, [self._view(side, marker.name, observations, time) for side in used]
            )
            for marker in self.rig.markers
        }
        self._help(times)
        bodies = {one.name: locate_body(one, self.rig, estimates) for one in self.rig.bodies}
        frame = StereoFrame(
            time, gap, observations, estimates, bodies=bodies, times={s: times[s] for s in sides}
        )
        self._squares.extend(point.chi_square for point in frame.disagreements.values())
        self._note_scatter(frame)
        return dataclasses.replace(frame, chi_square=typical_chi_square(self._squares))

    def _note_scatter(self, frame: StereoFrame) -> None:
        """Compare the scatter of the gaps between two rays with the stated noise of pixels."""
        squares: dict[tuple[str, str], dict[tuple[str, str, str], float]] = defaultdict(dict)
        for key, point in frame.disagreements.items():
            gaps = self._gaps[key]
            gaps.append(point.gap)
            if len(gaps) == len(_DIFFERENCE):
                # Motion has hardly any influence: wrong poses and times are not noise.
                off = float(np.dot(_DIFFERENCE, gaps)) / _LENGTH
                squares[key[1], key[2]][key] = (off / point.gap_noise) ** 2
        for cameras, found in squares.items():
            if self._is_jump(found):
                # A camera that was bumped is not noise, either.
                for key, gaps in self._gaps.items():
                    if key[1:] == cameras:
                        gaps.clear()
            else:
                self._scatter.extend(square * self._excess for square in found.values())
            self._latest_squares |= found
        if len(self._scatter) >= _ENOUGH:
            # Not the median: errors of compression have long tails.
            kept = np.sort(self._scatter)[: round(_KEPT * len(self._scatter))]
            excess = float(np.mean(kept)) / _KEPT_MEAN
            self._excess = excess if excess > _EXCESS else 1.0

    def _is_jump(self, squares: Mapping[tuple[str, str, str], float]) -> bool:
        """Return whether the rays to most markers jumped, and did not just before."""
        before = [self._latest_squares.get(key, 0.0) for key in squares]
        return bool(np.median(list(squares.values())) > _JUMP**2 and np.median(before) < _STILL**2)

    def _view(
        self,
        side: str,
        name: str,
        observations: Mapping[str, Mapping[str, Observation]],
        time: float,
    ) -> _View:
        """Return the view of a marker in a camera at a time [s]."""
        seen = observations[side].get(name)
        if seen is None:
            nowhere = np.full((3, 2), math.nan)
            reason = 'not initialised'
            missing = self.missing
            if name in missing:
                reason = f'{reason}: {missing[name]}'
            return _View(side, LOST, reason, nowhere[0], nowhere[1:])
        center, covariance = seen.center, self._excess * seen.covariance
        doubt = ''
        exposed = self.trackers[side].time_of(center)
        if seen.status != LOST and time != exposed:
            place = self.trackers[side].center_at(name, time)
            if place is None:
                return _View(side, LOST, 'not tracked at this time', center, covariance)
            center, covariance = place[0], self._excess * place[1]
            deviation = math.sqrt(float(np.linalg.eigvalsh(covariance)[-1]))
            if deviation > _MOVED * seen.radius and not self.trackers[side].knows_speed(name):
                apart = 1e3 * abs(time - exposed)
                doubt = f'speed not known yet, images {apart:.0f} ms apart'
        return _View(side, seen.status, seen.reason, center, covariance, doubt)

    def _estimate(self, marker: MarkerOnRig, views: list[_View]) -> Estimate:
        """Estimate the position of a marker."""
        for status in (TRACKED, UNCERTAIN):
            used = [view for view in views if view.status == status]
            if used:
                break
        else:
            return Estimate(marker.name, LOST, _reasons(views))
        plane = self._planes[marker.name]
        reason = '' if status == TRACKED else _reasons(used)
        if not reason:
            reason = next((view.doubt for view in used if view.doubt), '')
            status = UNCERTAIN if reason else status
        try:
            located = [self._locate(view, plane) for view in used]
        except InputError as error:
            return Estimate(marker.name, LOST, str(error))
        sides = tuple(view.side for view in used)
        if len(used) == 1:
            alone = self._as_with_all(
                marker.name, sides, located, {sides[0]: np.eye(3)}, located[0]
            )
            return Estimate(marker.name, status, reason, sides, alone)
        pairs = self._pairs(used)
        try:
            point = pairs[sides] if len(used) == 2 and sides in pairs else self._triangulate(used)
        except InputError as error:
            best = _surest(located)
            return Estimate(marker.name, UNCERTAIN, str(error), sides, located[best])
        tracking = self.rig.tracking
        away = float(plane.distance(point.position))
        deviation = math.sqrt(
            float(plane.normal @ point.covariance @ plane.normal)
            + _height_variance(plane, point.position)
        )
        is_off_plane = False
        is_flat = abs(away) <= tracking.out_of_plane + _SURE * deviation
        missing = {
            names: one
            for names, one in pairs.items()
            if one.residual > tracking.ray_gap and one.chi_square > _RAYS_MISS
        }
        agree = status == TRACKED and not missing and abs(away) <= _SURE * deviation
        in_plane = located[_surest(located)]
        if is_flat:
            in_plane = self._merge(sides, located, plane, marker.name, agree)
        if abs(away) > _SURE * deviation:
            in_plane = self._off_plane(in_plane, sides, plane, away)
        if missing:
            reason = _missed(missing, sides)
        elif not is_flat:
            is_off_plane = status == TRACKED and not reason
            reason = (
                f'{1e3 * away:.0f} mm out of the plane: only the triangulated position is valid'
            )
        if reason:
            status = UNCERTAIN
        return Estimate(
            marker.name, status, reason, sides, in_plane, point, away, deviation, is_off_plane,
            pairs,
        )  # fmt: skip

    def _locate(self, view: _View, plane: Plane) -> Location:
        mounted = self.rig.cameras[view.side]
        return locate_in_plane(
            mounted.camera,
            mounted.pose,
            plane,
            view.center,
            view.covariance,
            mounted.calibration_deviation,
        )

    def _triangulate(self, views: Sequence[_View]) -> Location:
        mounted = [self.rig.cameras[view.side] for view in views]
        return triangulate(
            [one.camera for one in mounted],
            [one.pose for one in mounted],
            np.array([view.center for view in views]),
            np.array([view.covariance for view in views]),
            [one.calibration_deviation for one in mounted],
        )

    def _pairs(self, views: list[_View]) -> dict[tuple[str, str], Location]:
        """Return the points triangulated by each two cameras whose rays meet."""
        pairs = {}
        for one, other in itertools.combinations(views, 2):
            with contextlib.suppress(InputError):
                pairs[one.side, other.side] = self._triangulate((one, other))
        return pairs

    def _off_plane(
        self, found: Location, sides: tuple[str, ...], plane: Plane, away: float
    ) -> Location:
        """
        Add to a covariance the error of a position in the plane of a marker that is off it.

        At a distance h from the plane it is displaced by h (r / n.r - n) along each ray r; the
        largest of the cameras' displacements bounds their mean. Its direction is left open.
        """
        shifts = []
        for side in sides:
            ray = found.position - self.rig.cameras[side].pose.translation
            shifts.append(away * math.dist(ray / (plane.normal @ ray), plane.normal))
        extra = max(shifts) ** 2 * plane.axes.T @ plane.axes
        systematic = np.zeros((3, 3)) if found.systematic is None else found.systematic
        return found._replace(covariance=found.covariance + extra, systematic=systematic + extra)

    def _as_with_all(
        self,
        name: str,
        sides: Sequence[str],
        located: Sequence[Location],
        weights: Mapping[str, np.ndarray],
        merged: Location,
    ) -> Location:
        """
        Return the position that all cameras would give, from some of them.

        Errors of poses and plane separate the positions p_i of the cameras by vectors that change
        slowly with the place. They are known from the latest images of all, so that the position
        does not jump where some are hidden: with the weights G_i of all, and H_i of those in
        sight, it is displaced by sum_i (G_i - H_i) (p_i - p_1). It is trusted less the farther the
        marker has moved, as far as the poses are uncertain.
        """
        known = self._apart.get(name)
        if known is None or merged.systematic is None or not set(sides) < set(known.gains):
            return merged
        moved = [one.position - known.places[s] for s, one in zip(sides, located, strict=True)]
        lost = known.drift * max(float(one @ one) for one in moved)
        trust = 1.0
        if lost > 0.0:
            trust = known.systematic_apart / (known.systematic_apart + lost)
        position, noise = merged.position.copy(), merged.noise.copy()
        for side, gain in known.gains.items():
            more = trust * (gain - weights.get(side, np.zeros((3, 3))))
            position += more @ known.apart[side]
            noise += more @ known.noise[side] @ more.T
        systematic = trust * known.systematic + (1.0 - trust) * merged.systematic
        return Location(position, noise + systematic, systematic=systematic)

    def _note_apart(
        self,
        name: str,
        sides: Sequence[str],
        located: Sequence[Location],
        gains: dict[str, np.ndarray],
        merged: Location,
        between: float,
    ) -> None:
        """Remember by how much the cameras' positions differ, for :meth:`_as_with_all`."""
        before = self._apart.get(name)
        if before is not None and set(before.gains) > set(sides):
            # Of more cameras: still valid for those in sight.
            return
        if before is not None and set(before.gains) != set(sides):
            before = None
        count = 1 if before is None else min(before.count + 1, _REMEMBERED)
        first = located[0]
        apart, drift = {}, 0.0
        for side, one in zip(sides, located, strict=True):
            mean = one.position - first.position
            if before is not None:
                mean = before.apart[side] + (mean - before.apart[side]) / count
            apart[side] = mean
            pose = self.rig.cameras[side].pose
            if pose.covariance is not None:
                away = one.position - pose.translation
                drift += float(np.trace(pose.covariance[:3, :3]))
                drift += float(np.trace(pose.covariance[3:, 3:]) / (away @ away))
        # Of one difference, in the mean of all from the first camera.
        others = len(located) - 1
        noise = others * first.noise + sum(one.noise for one in located[1:])
        assert merged.systematic is not None
        self._apart[name] = _Apart(
            count,
            apart,
            {side: one.noise / count for side, one in zip(sides, located, strict=True)},
            float(between - np.trace(noise)) / others,
            merged.systematic,
            gains,
            {side: one.position for side, one in zip(sides, located, strict=True)},
            2.0 * drift / len(located),
        )

    def _merge(
        self,
        sides: Sequence[str],
        located: Sequence[Location],
        plane: Plane,
        name: str = '',
        trusted: bool = False,
    ) -> Location:
        """
        Return the minimum-variance linear combination of positions in the plane.

        p = p_1 + K d with d_i = p_i - p_1 and K = -C(p_1, d) C(d)^-1, from the covariances A_ij of
        the positions. The common part, A_ij for two cameras, is the error of the plane: a height
        error h moves each position by h r_i, r_i = (p_i - t_i) / n.(p_i - t_i).
        """
        count = len(located)
        first = located[0].position
        height = _height_variance(plane, np.mean([one.position for one in located], axis=0))
        rays = [
            item.position - self.rig.cameras[side].pose.translation
            for side, item in zip(sides, located, strict=True)
        ]
        slopes = np.array([ray / (plane.normal @ ray) for ray in rays])
        blocks = height * slopes[:, None, :, None] * slopes[None, :, None, :]
        for k, item in enumerate(located):
            blocks[k, k] = item.covariance
        between = blocks[1:, 1:] + blocks[0, 0] - blocks[1:, :1] - blocks[:1, 1:]
        toward = blocks[0, 0] - blocks[0, 1:]
        inside = plane.axes
        # Both coordinates in the plane of all differences, (2 k - 2, 2 k - 2).
        apart = inside @ between @ inside.T
        apart = apart.transpose(0, 2, 1, 3).reshape(2 * count - 2, -1)
        try:
            np.linalg.cholesky(apart)
        except np.linalg.LinAlgError:
            # Without pixel errors.
            return located[0]
        ahead = (inside @ toward @ inside.T).transpose(1, 0, 2).reshape(2, -1)
        gain = np.hsplit(ahead @ np.linalg.inv(apart), count - 1)
        weights = [inside.T @ one @ inside for one in gain]
        weights.insert(0, np.eye(3) - sum(weights))
        position = first.copy()
        covariance, noise = np.zeros((3, 3)), np.zeros((3, 3))
        for k, item in enumerate(located):
            position += weights[k] @ (item.position - first)
            noise += weights[k] @ item.noise @ weights[k].T
            for i in range(count):
                covariance += weights[k] @ blocks[k, i] @ weights[i].T
        merged = Location(position, covariance, systematic=covariance - noise)
        gains = dict(zip(sides, weights, strict=True))
        if trusted:
            spread = sum(float(np.trace(between[k, k])) for k in range(count - 1))
            self._note_apart(name, sides, located, gains, merged, spread)
        return self._as_with_all(name, sides, located, gains, merged)

    def _help(self, times: Mapping[str, float]) -> None:
        """Search for lost markers at the positions expected by another camera."""
        if len(times) < 2:
            return
        for side in times:
            tracker = self.trackers[side]
            for marker in self.rig.markers:
                name = marker.name
                helpers = [self.trackers[one] for one in times if one != side]
                other = next((one for one in helpers if _is_sure(one, name)), None)
                if other is None:
                    continue
                own = tracker.tracks.get(name)
                if own is not None and own.doubt and not own.lost:
                    self._resolve(tracker, other, name, times)
                    continue
                # At first, its own prediction is better.
                if own is not None and not (
                    own.lost and times[side] - own.time > self.rig.tracking.fade
                ):
                    continue
                self._expect_there(tracker, other, name, times)

    def _there(
        self,
        tracker: CameraTracker,
        other: CameraTracker,
        name: str,
        times: Mapping[str, float],
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return pixel and velocity of a marker in a camera, predicted by the other one."""
        plane, mounted = self._planes[name], tracker.mounted
        seen = other.predict(name, times[tracker.name])
        pixels = []
        for place in (seen.center, seen.center + _SHORT * seen.velocity):
            point = locate_in_plane(
                other.mounted.camera, other.mounted.pose, plane, place, np.eye(2)
            )
            in_camera = mounted.pose.to_camera(point.position)
            pixels.append(mounted.camera.project(in_camera, strict=False))
        return pixels[0], (pixels[1] - pixels[0]) / _SHORT

    def _expect_there(
        self, tracker: CameraTracker, other: CameraTracker, name: str, times: Mapping[str, float]
    ) -> None:
        """Search for a marker where the other camera expects it."""
        camera = tracker.mounted.camera
        try:
            center, velocity = self._there(tracker, other, name, times)
        except InputError:
            # No ray at this pixel, or no intersection with the plane.
            return
        u, v = center.tolist()
        # Outside the image there is nothing to search.
        if 0.0 <= u <= camera.width - 1.0 and 0.0 <= v <= camera.height - 1.0:
            tracker.expect(name, center, velocity, times[tracker.name], self.rig.tracking.hint)

    def _resolve(
        self, tracker: CameraTracker, other: CameraTracker, name: str, times: Mapping[str, float]
    ) -> None:
        """Resolve the ambiguity of two markers in one camera, if the other one knows both."""
        rival = tracker.tracks[name].doubt
        pair = (name, rival)
        if any(
            one not in trackers.tracks or trackers.tracks[one].lost
            for one in pair
            for trackers in (tracker, other)
        ):
            return
        if any(other.tracks[one].doubt for one in pair):
            return
        try:
            wanted = [self._there(tracker, other, one, times)[0] for one in pair]
        except InputError:
            return
        seen = [tracker.tracks[one].state[:2] for one in pair]
        same = math.dist(seen[0], wanted[0]) + math.dist(seen[1], wanted[1])
        exchanged = math.dist(seen[0], wanted[1]) + math.dist(seen[1], wanted[0])
        # A displacement out of the plane shifts both alike.
        if abs(same - exchanged) > self.rig.tracking.hint:
            tracker.resolve(name, exchange=exchanged < same)


def _is_sure(tracker: CameraTracker, name: str) -> bool:
    """Return whether a camera saw a marker, and no other one in its place, in its latest image."""
    track = tracker.tracks.get(name)
    return (
        track is not None and not (track.lost or track.doubt) and track.trusted_time == track.time
    )


def _missed(missing: Mapping[tuple[str, str], Location], sides: Sequence[str]) -> str:
    """Return the reason why a marker is flagged whose rays, of these pairs, do not intersect."""
    worst = max(missing.values(), key=lambda one: one.residual)
    alone = set.intersection(*map(set, missing))
    if len(sides) == 2:
        which = 'rays of both cameras miss each other'
    elif len(alone) == 1:
        which = f'ray of the camera {alone.pop()} misses the others'
    else:
        names = sorted(set().union(*missing), key=list(sides).index)
        which = f'rays of the cameras {", ".join(names)} miss each other'
    return (
        f'the {which} by {worst.residual:.2g} px,'
        f' {math.sqrt(worst.chi_square):.2g} standard deviations: different markers, or'
        ' wrong poses or times'
    )


def typical_chi_square(values: Collection[float] | np.ndarray) -> float:
    """Return the typical value of squares with 1 degree of freedom; 1 is expected, NaN if none."""
    return float(np.median(np.asarray(values))) / _MEDIAN if len(values) else math.nan


def _height_variance(plane: Plane, point: np.ndarray) -> float:
    """Return the variance of the plane's height along its normal at a point (3,) [m^2]."""
    if plane.covariance is None:
        return 0.0
    along = plane.axes @ (point - plane.centroid)
    slope = np.array([along[1], -along[0], 1.0])
    return float(slope @ plane.covariance @ slope)


def _surest(located: list[Location]) -> int:
    """Return the index of the position with the least variance."""
    return int(np.argmin([np.trace(item.covariance) for item in located]))


def _reasons(views: list[_View]) -> str:
    """Return the reasons why no camera tracks a marker."""
    if len({view.reason for view in views}) == 1:
        return views[0].reason
    return '; '.join(f'{view.side}: {view.reason}' for view in views)
