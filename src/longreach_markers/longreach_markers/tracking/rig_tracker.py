"""
Positions of markers in space, from one camera or more; docs/vision.md, "Positions".

BLAS threads slow down problems of this size, especially on a busy machine: set
OPENBLAS_NUM_THREADS=1 in the environment of the process before it imports numpy.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import math
from collections import deque
from collections.abc import Mapping, Sequence

import numpy as np

from longreach_dynamics.errors import InputError, LongreachError, check_among
from longreach_markers.camera.geometry import Plane
from longreach_markers.camera.triangulation import Location, locate_in_plane, triangulate
from longreach_markers.marker.detection import LOST, TRACKED, UNCERTAIN, Observation
from longreach_markers.rig import MarkerOnRig, Rig
from longreach_markers.tracking.bodies import locate_body
from longreach_markers.tracking.camera_tracker import CameraTracker
from longreach_markers.tracking.frames import Estimate, RigFrame, typical_chi_square
from longreach_markers.tracking.plane_merging import PlaneMerger, height_variance
from longreach_markers.tracking.ring_names import kinds_of, name_markers
from longreach_markers.tracking.sightings import GapNoise

# Standard deviations beyond which a difference is significant.
_SURE = 3.5
# Squared distance of two rays, over its variance, beyond which they do not intersect.
_RAYS_MISS = 25.0
# A centre that is moved to another time without known velocity is accepted while its standard
# deviation is below this share of the marker's radius.
_MOVED = 0.05
# Time between the positions from which a velocity in the other camera is computed [s].
_SHORT = 1e-3
# Latest sightings from which the typical disagreement is computed.
_LATEST = 300


@dataclasses.dataclass(frozen=True, eq=False)
class _View:
    """Pixel of a marker in a camera at the time of the estimate."""

    side: str
    status: str
    reason: str
    center: np.ndarray
    covariance: np.ndarray
    # Why the pixel is unreliable at this time, although it was TRACKED in its image.
    doubt: str = ''


class RigTracker:
    """
    Tracks markers with the cameras of a rig.

    Parameters
    ----------
    rig : Rig
        Rig with one camera or more.
    """

    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        self.trackers = {side: CameraTracker(rig, side) for side in rig.cameras}
        self._planes = {marker.name: rig.plane_of(marker) for marker in rig.markers}
        self._merger = PlaneMerger(rig.cameras)
        # Significant distance from the plane and its deviation [m], when several cameras agreed.
        self._off_plane = dict.fromkeys(rig.names, (0.0, 0.0))
        self._squares: deque[float] = deque(maxlen=_LATEST)
        self.gap_noise = GapNoise()
        # Reasons for markers that were not found at the start, or in a search.
        self._missing: dict[str, str] = {}

    def use(self, rig: Rig) -> None:
        """Continue with other parameters; tracks are kept."""
        self.rig = rig
        for tracker in self.trackers.values():
            tracker.use(rig)

    def _of(self, side: str) -> CameraTracker:
        check_among('camera', side, self.trackers)
        return self.trackers[side]

    def start(
        self, images: Mapping[str, np.ndarray], times: Mapping[str, float]
    ) -> dict[str, dict[str, Observation]]:
        """
        Start tracking with the first images, at times [s]; return observations by camera, marker.

        Markers are initialised at their given pixel, else where a camera that tracks already sees
        them, else at their position; the others are searched for in whole images. LongreachError
        if the search does not find the expected number of a kind; other kinds are tracked.
        """
        known = {side: self._known(self._of(side), times) for side in images}
        seen = {
            side: self.trackers[side].start_given(image, times[side], known[side])
            for side, image in images.items()
        }
        left = []
        for marker in self.rig.markers:
            name = marker.name
            reasons = dict.fromkeys(views[name].reason for views in seen.values() if name in views)
            if not reasons:
                left.append(marker)
            elif not any(name in self.trackers[side].tracks for side in images):
                self._missing[name] = f'{name}: {"; ".join(reasons)}'
        problem = self._search(images, times, left, seen) if left else ''
        self._help(times)
        if problem:
            raise LongreachError(problem)
        return seen

    def search(self, images: Mapping[str, np.ndarray], times: Mapping[str, float]) -> str:
        """Search for :attr:`searchable` markers; return why some are missing."""
        problem = ''
        if left := self.searchable:
            problem = self._search(images, times, left, {side: {} for side in images})
            self._help(times)
        missing = dict.fromkeys(self.missing.values())
        return (problem or '; '.join(missing)) if missing else ''

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

        Rings that no camera has tracked yet, if all markers of the same appearance are in sight.
        If no marker at all is, also those that were never seen at their initial position and have
        an appearance of their own, since otherwise names could be exchanged.
        """
        trackers = self.trackers.values()
        found: list[MarkerOnRig] = []
        rings = [marker for marker in self.rig.markers if marker.inner > 0.0]
        for kind in kinds_of(rings).values():
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
                    if not any(
                        marker.name in one.tracks and one.tracks[marker.name].was_seen
                        for one in trackers
                    )
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
        found = {side: self._of(side).find_others(images[side]) for side in images}
        appearances = {side: self.trackers[side].appearance for side in images}
        named = name_markers(appearances, found, left, self.rig.tracking.together)
        for name, views in named.views.items():
            self._missing.pop(name, None)
            for side, one in views.items():
                self.trackers[side].begin(name, one, times[side])
                seen[side][name] = one
        self._missing.update(named.missing)
        return named.problem

    def update(self, images: Mapping[str, np.ndarray], times: Mapping[str, float]) -> RigFrame:
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
        # To a microsecond: times are rounded.
        used = [side for side in sides if not abs(times[side] - time) > largest + 1e-6]
        estimates = {
            marker.name: self._estimate(
                marker, [self._view(side, marker.name, observations, time) for side in used]
            )
            for marker in self.rig.markers
        }
        self._help(times)
        bodies = {one.name: locate_body(one, self.rig, estimates) for one in self.rig.bodies}
        frame = RigFrame(
            time, gap, observations, estimates, bodies=bodies, times={s: times[s] for s in sides}
        )
        self._squares.extend(point.chi_square for point in frame.disagreements.values())
        self.gap_noise.add(frame)
        return dataclasses.replace(frame, chi_square=typical_chi_square(self._squares))

    def _view(
        self,
        side: str,
        name: str,
        observations: Mapping[str, Mapping[str, Observation]],
        time: float,
    ) -> _View:
        seen = observations[side].get(name)
        if seen is None:
            nowhere = np.full((3, 2), math.nan)
            reason = 'not initialised'
            missing = self.missing
            if name in missing:
                reason = f'{reason}: {missing[name]}'
            return _View(side, LOST, reason, nowhere[0], nowhere[1:])
        center, covariance = seen.center, self.gap_noise.excess * seen.covariance
        doubt = ''
        tracker = self.trackers[side]
        exposed = tracker.time + tracker.mounted.row_delay(float(center[1]))
        if seen.status != LOST and time != exposed:
            track = tracker.tracks[name]
            place = tracker.motion.center_at(track, time)
            if place is None:
                return _View(side, LOST, 'not tracked at this time', center, covariance)
            center, covariance = place[0], self.gap_noise.excess * place[1]
            deviation = math.sqrt(float(np.linalg.eigvalsh(covariance)[-1]))
            if deviation > _MOVED * seen.radius and len(track.latest) < 2:
                apart = 1e3 * abs(time - exposed)
                doubt = f'speed not known yet, images {apart:.0f} ms apart'
        return _View(side, seen.status, seen.reason, center, covariance, doubt)

    def _estimate(self, marker: MarkerOnRig, views: list[_View]) -> Estimate:
        statuses = [view.status for view in views]
        status = min(statuses, key=(TRACKED, UNCERTAIN, LOST).index)
        used = [view for view in views if view.status == status]
        if status == LOST:
            return Estimate(marker.name, LOST, _reasons(views))
        plane = self._planes[marker.name]
        reason = _reasons(used) if status == UNCERTAIN else ''
        reason = reason or next((view.doubt for view in used if view.doubt), '')
        status = UNCERTAIN if reason else status
        try:
            located = [self._locate(view, plane) for view in used]
        except InputError as error:
            return Estimate(marker.name, LOST, str(error))
        sides = tuple(view.side for view in used)
        tracking = self.rig.tracking
        if len(used) == 1:
            alone = self._merger.as_with_all(
                marker.name, sides, located, {sides[0]: np.eye(3)}, located[0]
            )
            away, deviation = self._off_plane[marker.name]
            if away:
                alone = self._merger.off_plane(alone, sides, plane, away)
            if status == TRACKED and abs(away) > tracking.out_of_plane + _SURE * deviation:
                status = UNCERTAIN
                reason = (
                    f'{1e3 * away:.0f} mm out of the plane when several cameras saw it: a position'
                    ' in the plane is not valid'
                )
            return Estimate(marker.name, status, reason, sides, alone, off_plane=away)
        pairs = self._pairs(used)
        try:
            point = pairs[sides] if len(used) == 2 and sides in pairs else self._triangulate(used)
        except InputError as error:
            return Estimate(marker.name, UNCERTAIN, str(error), sides, _surest(located))
        away = float(plane.distance(point.position))
        deviation = math.sqrt(
            float(plane.normal @ point.covariance @ plane.normal)
            + height_variance(plane, point.position)
        )
        is_off_plane = False
        is_flat = abs(away) <= tracking.out_of_plane + _SURE * deviation
        missing = {
            names: one
            for names, one in pairs.items()
            if one.residual > tracking.ray_gap and one.chi_square > _RAYS_MISS
        }
        is_away = abs(away) > _SURE * deviation
        agree = status == TRACKED and not missing
        if agree:
            self._off_plane[marker.name] = (away, deviation) if is_away else (0.0, 0.0)
        in_plane = _surest(located)
        if is_flat:
            trusted = agree and not is_away
            in_plane = self._merger.merge(sides, located, plane, marker.name, trusted=trusted)
        if is_away:
            in_plane = self._merger.off_plane(in_plane, sides, plane, away)
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
            pairs, self._off_plane[marker.name][0],
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

    def _help(self, times: Mapping[str, float]) -> None:
        if len(times) < 2:
            return
        for side in times:
            tracker = self.trackers[side]
            for marker in self.rig.markers:
                name, own = marker.name, tracker.tracks.get(marker.name)
                helpers = [self.trackers[one] for one in times if one != side]
                other = next((one for one in helpers if _is_sure(one, name)), None)
                if other is None:
                    continue
                with contextlib.suppress(InputError):
                    # No ray at a pixel, or no intersection with the plane.
                    if own is not None and own.doubt and not own.lost:
                        self._resolve(tracker, other, name, times)
                    elif own is None or (
                        # At first, its own prediction is better.
                        own.lost and times[side] - own.time > self.rig.tracking.fade
                    ):
                        self._expect_there(tracker, other, name, times)

    def _there(
        self, tracker: CameraTracker, other: CameraTracker, name: str, times: Mapping[str, float]
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

    def _known(self, tracker: CameraTracker, times: Mapping[str, float]) -> dict[str, np.ndarray]:
        pixels = {}
        for name in self.rig.names:
            other = next((one for one in self.trackers.values() if _is_sure(one, name)), None)
            if other is not None:
                with contextlib.suppress(InputError):
                    pixels[name] = self._there(tracker, other, name, times)[0]
        return pixels

    def _expect_there(
        self, tracker: CameraTracker, other: CameraTracker, name: str, times: Mapping[str, float]
    ) -> None:
        camera = tracker.mounted.camera
        center, velocity = self._there(tracker, other, name, times)
        u, v = center.tolist()
        # Outside the image there is nothing to search.
        if 0.0 <= u <= camera.width - 1.0 and 0.0 <= v <= camera.height - 1.0:
            tracker.expect(name, center, velocity, times[tracker.name], self.rig.tracking.hint)

    def _resolve(
        self, tracker: CameraTracker, other: CameraTracker, name: str, times: Mapping[str, float]
    ) -> None:
        pair = name, tracker.tracks[name].doubt
        if not all(one.is_in_sight(marker) for one in (tracker, other) for marker in pair):
            return
        if any(other.tracks[one].doubt for one in pair):
            return
        wanted = [self._there(tracker, other, one, times)[0] for one in pair]
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


def _surest(located: list[Location]) -> Location:
    return located[int(np.argmin([np.trace(item.covariance) for item in located]))]


def _reasons(views: list[_View]) -> str:
    if len({view.reason for view in views}) == 1:
        return views[0].reason
    return '; '.join(f'{view.side}: {view.reason}' for view in views)
