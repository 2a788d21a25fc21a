"""
Tracking of the markers in the images of one camera.

Each marker is searched around the prediction of its filter (:mod:`.image_motion`). A marker in
sight whose window cannot contain another one keeps what is found there. All others, near each
other or lost, are assigned jointly (:mod:`.association`): while one of two ambiguous markers is
hidden, both are predicted; once both are in sight they are tracked, and flagged until they are
initialised again or the other camera resolves the ambiguity. Rings that stay lost are searched for
in a part of each image; one that may be several lost markers is tracked as one and flagged.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from longreach_dynamics.errors import InputError, check_among
from longreach_dynamics.tables import numbers_of
from longreach_markers.marker.detection import Search, SharedFits, detect, find_markers
from longreach_markers.marker.detection_input import check_image
from longreach_markers.marker.observation import LOST, TRACKED, UNCERTAIN, Observation, lost
from longreach_markers.rig import MarkerOnRig, Rig
from longreach_markers.tracking.appearance import (
    RADIUS,
    RADIUS_BY_RIG,
    Appearance,
    difference,
    mismatch,
)
from longreach_markers.tracking.association import ANOTHER, PATIENCE, Association, Sighting, may_be
from longreach_markers.tracking.image_motion import SAME, ImageMotion, Prediction, Track, noise_of

# Difference in mismatch of size and inner edge that decides between two markers.
_BETTER = 0.03
_OUTSIDE = 'outside the image'
# Side of the part of an image in which lost markers are searched for at once [px].
_PART = 400
# Gates beyond which a ring is no other marker for sure.
_SURE = 2.0


class CameraTracker:
    """
    Tracks the markers of a rig in the images of the camera ``name``.

    The same images give bitwise equal tracks.
    """

    def __init__(self, rig: Rig, name: str) -> None:
        self.name, self._limits = name, rig.detection
        self.markers = {marker.name: marker for marker in rig.markers}
        self.time = -math.inf
        self.tracks: dict[str, Track] = {}
        self._part = 0
        self.use(rig)

    def use(self, rig: Rig) -> None:
        """Continue with other parameters; tracks are kept."""
        self._rig, self.mounted, self.parameters = rig, rig.cameras[self.name], rig.tracking
        self._camera = camera = self.mounted.camera
        self.appearance = Appearance(self.mounted, rig)
        self._view: dict[str, Any] = {'camera': camera, 'normal_cam': rig.normal_cam(self.name)}
        self.motion = ImageMotion(camera, rig.tracking)

    def predict(self, name: str, time: float) -> Prediction:
        """Return the predicted position of a marker at a time [s]; InputError if untracked."""
        if name not in self.tracks:
            raise InputError(
                f'{name} is not tracked by the camera {self.name}, tracked:'
                f' {", ".join(self.tracks) or "nothing"}; initialise it first'
            )
        return self.motion.predict(self.tracks[name], time)

    def start_given(
        self, image: np.ndarray, time: float, known: Mapping[str, np.ndarray]
    ) -> dict[str, Observation]:
        """
        Start tracking markers with a given pixel or position; return observations by name.

        Refuse what is not TRACKED at a pixel; search from now on for what is not at its position,
        or at its ``known`` centre (2,) [px], which precedes it.
        """
        image = self._checked(image)
        parameters = self.parameters
        seen: dict[str, Observation] = {}
        waiting: dict[str, Prediction] = {}
        centers = {
            name: self._camera.project(self.mounted.pose.to_camera(marker.position), strict=False)
            for name, marker in self.markers.items()
            if marker.position is not None
        } | dict(known)
        for name, marker in self.markers.items():
            given = marker.given(self.name)
            if given is not None:
                try:
                    seen[name] = self.initialize(name, image, time, given[:2], given[2])
                except InputError as error:
                    reference = self.appearance.by_rig(marker)
                    seen[name] = lost(str(error), np.array(given[:2]), given[2], reference)
            elif name in centers:
                center = centers[name]
                if not np.isfinite(center).all():
                    reference = self.appearance.by_rig(marker)
                    seen[name] = dataclasses.replace(reference, reason=_OUTSIDE)
                    continue
                self.expect(name, center, np.zeros(2), time, parameters.start_window)
                waiting[name] = self.motion.predict(self.tracks[name], time)
        taken = _places(seen.values())
        sightings = self._recover(image, waiting, taken, time)
        for name, sighting in sightings.items():
            seen[name] = self._take(self.tracks[name], sighting, time)
            if sighting.taken:
                self.begin(name, sighting.observation, time)
        for name, sighting in sightings.items():
            self.tracks[name].doubt = sighting.doubt
        return seen

    def find_others(
        self, image: np.ndarray, window: tuple[int, int, int, int] | None = None
    ) -> list[Observation]:
        """Return the rings in an image, or in a window of it, that are not tracked yet."""
        image = self._checked(image)
        radii = [self.appearance.by_rig(marker).radius for marker in self.markers.values()]
        low, high = self._limits.smallest, self._limits.largest
        sizes = max(low, 0.5 * min(radii)), min(high, 2.0 * max(radii))
        exclude = [
            (*track.state[:2].tolist(), SAME * track.reference.radius)
            for track in self.tracks.values()
            if not track.lost
        ]
        where: dict[str, Any] = {'window': window, 'exclude': exclude, 'limits': self._limits}
        try:
            return find_markers(image, sizes, **self._view, **where)
        except InputError:
            found = []
        for one in find_markers(image, sizes, **where):
            with contextlib.suppress(InputError):
                found.append(
                    detect(image, one.center, one.radius, **self._view, limits=self._limits)
                )
        return [one for one in found if one.status == TRACKED]

    def initialize(
        self,
        marker_name: str,
        image: np.ndarray,
        time: float,
        at: Sequence[float] | np.ndarray,
        radius: float,
    ) -> Observation:
        """Start or restart tracking a marker at a given pixel."""
        check_among('marker', marker_name, self.markers)
        marker = self.markers[marker_name]
        image = self._checked(image)
        place = numbers_of(f'{marker_name}: pixel', at, (2,))
        seen = detect(image, place, radius, **self._view, limits=self._limits)
        if seen.status != TRACKED:
            return seen
        refusal = difference(seen, self.appearance.by_rig(marker, seen.center), RADIUS_BY_RIG)
        if not refusal and seen.rim_support < self.parameters.least_rim:
            refusal = (
                f'{100 * seen.rim_support:.0f} % of the rim fits, required to initialise:'
                f' {100 * self.parameters.least_rim:.0f} %'
            )
        refusal = refusal or self._better(marker, seen, time)
        if refusal:
            return dataclasses.replace(seen, status=UNCERTAIN, reason=refusal)
        for name, track in self.tracks.items():
            if name != marker_name and track.is_at(seen.center):
                track.lost = True
        self.begin(marker_name, seen, time)
        return seen

    def _better(self, marker: MarkerOnRig, seen: Observation, time: float) -> str:
        """Return which marker tracked at this position fits better, and why; empty for none."""
        own = self.appearance.by_rig(marker, seen.center)
        for name, track in self.tracks.items():
            is_sure = not track.lost and time - track.trusted_time <= PATIENCE
            if name == marker.name or not (is_sure and track.is_at(seen.center)):
                continue
            its = self.appearance.by_rig(track.marker, seen.center)
            if mismatch(seen, its) < mismatch(seen, own) - _BETTER:
                return (
                    f'{name} is tracked here and fits better: radius of {seen.radius:.1f} px,'
                    f' expected {its.radius:.1f} px of {name}, {own.radius:.1f} px of'
                    f' {marker.name}; inner edge at {seen.inner:.2f} of it, expected'
                    f' {its.inner:.2f} and {own.inner:.2f}'
                )
        return ''

    def begin(self, name: str, seen: Observation, time: float) -> None:
        """Start a track from an observation."""
        image_time, time = time, time + self.mounted.row_delay(float(seen.center[1]))
        self.expect(name, seen.center, np.zeros(2), time, 0.0)
        track = self.tracks[name]
        track.covariance[:2, :2] = seen.covariance
        track.reference, track.lost, track.trusted_time = seen, False, time
        track.keep(image_time, time, seen)
        for other in self.tracks.values():
            if other.doubt == name:
                other.doubt = ''

    def resolve(self, name: str, *, exchange: bool = False) -> None:
        """Resolve the ambiguity between a marker and another one, or exchange the two."""
        track = self.tracks[name]
        other = self.tracks.get(track.doubt)
        if other is not None:
            other.doubt = ''
        if other is not None and exchange:
            self.tracks[name], self.tracks[track.doubt] = other, track
            track.marker, other.marker = other.marker, track.marker
        track.doubt = ''

    def expect(
        self, name: str, center: np.ndarray, velocity: np.ndarray, time: float, window: float
    ) -> None:
        """Search for a marker near a centre [px] from now on; forget its track."""
        marker = self.markers[name]
        reference = self.appearance.by_rig(marker, center)
        self.tracks[name] = self.motion.expect(marker, reference, center, velocity, time, window)

    def update(self, image: np.ndarray, time: float) -> dict[str, Observation]:
        """Track the markers in the next image."""
        image = self._checked(image)
        if not (math.isfinite(time) and time > self.time):
            raise InputError(
                f'image of the camera {self.name} at {time:.6f} s, allowed: after {self.time:.6f}'
                ' s, the time of the previous one; skip it, or start with a new tracker'
            )
        self.time = time
        for track in self.tracks.values():
            # After a pause of regular images it is as one that was hidden.
            pause = time - track.time if len(track.latest) > 1 else 0.0
            track.lost |= pause > self.parameters.fade
        predictions = {
            name: self._expected(self.tracks[name], time)
            for name in self.markers
            if name in self.tracks
        }
        found = {}
        for name in self._alone(predictions):
            track, prediction = self.tracks[name], predictions[name]
            seen = self._detect(image, track, prediction)(())
            found[name] = self._judge(seen, track, prediction, time)
        others = {name: place for name, place in predictions.items() if name not in found}
        if others:
            taken = _places(one.observation for one in found.values())
            found.update(self._recover(image, others, taken, time))
        taken_as = {name: self._take(self.tracks[name], found[name], time) for name in predictions}
        return taken_as | self._returned(image, time)

    def _expected(self, track: Track, time: float) -> Prediction:
        prediction = self.motion.predict(track, time)
        delay = self.mounted.row_delay(float(prediction.center[1]))
        return self.motion.predict(track, time + delay) if delay else prediction

    def is_in_sight(self, name: str) -> bool:
        """Return whether a marker was seen in the latest image."""
        track = self.tracks.get(name)
        return track is not None and not track.lost

    def _checked(self, image: np.ndarray) -> np.ndarray:
        image = check_image(image)
        self._rig.check_image(self.name, image)
        return image

    def _detect(
        self,
        image: np.ndarray,
        track: Track,
        prediction: Prediction,
        shared: SharedFits | None = None,
    ) -> Callable[[Sequence[tuple[float, float, float]]], Observation]:
        """Return a search for a marker around its prediction, given regions to exclude."""
        camera = self._camera
        at = np.clip(prediction.center, 0.0, (camera.width - 1.0, camera.height - 1.0))
        reach = prediction.reach + math.dist(at, prediction.center)
        motion = np.array([*prediction.velocity, prediction.speed_deviation])
        try:
            return Search(
                image, at, track.reference.radius, **self._view,
                search=reach, expected=track.reference,
                shear=self.mounted.line_time * motion, limits=self._limits, shared=shared,
            ).result  # fmt: skip
        except InputError as error:
            # The plane is seen edge-on there, or the radius is too small.
            nothing = lost(str(error), at, track.reference.radius, track.reference)
            return lambda _: nothing

    def _judge(
        self, seen: Observation, track: Track, prediction: Prediction, time: float
    ) -> Sighting:
        if seen.status == LOST:
            if prediction.outside:
                seen = dataclasses.replace(seen, reason=_OUTSIDE)
            return Sighting(seen, taken=False)
        distance = prediction.distance(seen.center, noise_of(seen))
        reason = difference(seen, track.reference, RADIUS if track.latest else RADIUS_BY_RIG)
        away = math.dist(seen.center, prediction.center)
        if not reason and (distance > self.parameters.gate**2 or away > prediction.reach + 1.0):
            reason = f'{away:.0f} px from where it was expected'
        if reason:
            seen = lost(reason, prediction.center, seen.radius, track.reference)
            return Sighting(seen, taken=False)
        if seen.status == TRACKED:
            rim = self.parameters.least_rim if track.lost else 0.0
            return Sighting(seen, seen.rim_support >= rim, distance)
        taken = not track.lost and time - track.trusted_time < PATIENCE
        return Sighting(seen, taken, distance)

    def _alone(self, predictions: Mapping[str, Prediction]) -> list[str]:
        sure = [(name, one) for name, one in predictions.items() if not self.tracks[name].lost]
        return [
            name
            for name, one in sure
            if all(not one.meets(other) for key, other in sure if key != name)
        ]

    def _recover(
        self,
        image: np.ndarray,
        missing: Mapping[str, Prediction],
        taken: Sequence[tuple[float, float, float]],
        time: float,
    ) -> dict[str, Sighting]:
        candidates: list[Observation] = []
        result: dict[str, Sighting] = {}
        shared: SharedFits = []
        for name, prediction in missing.items():
            rivals = sum(prediction.meets(one) for key, one in missing.items() if key != name)
            exclude = list(taken)
            good = 0
            search = self._detect(image, self.tracks[name], prediction, shared)
            # One search more than there are markers: the first may find another object.
            for _ in range(2 + rivals):
                seen = search(exclude)
                sighting = self._judge(seen, self.tracks[name], prediction, time)
                if name not in result or result[name].observation.status == LOST:
                    result[name] = sighting
                if seen.status == LOST:
                    break
                exclude.append((*seen.center.tolist(), SAME * seen.radius))
                apart = [math.dist(seen.center, one.center) for one in candidates]
                if sighting.taken and not min(apart, default=math.inf) < SAME * seen.radius:
                    candidates.append(seen)
                good += sighting.distance < math.inf
                if good > rivals:
                    break
        sightings = {
            name: [self._judge(seen, self.tracks[name], prediction, time) for seen in candidates]
            for name, prediction in missing.items()
        }
        association = Association(self.motion, self.tracks, missing, sightings, time)
        result.update(association.solve(result))
        return result

    def _returned(self, image: np.ndarray, time: float) -> dict[str, Observation]:
        """Search for lost rings in the next part of the image; return those that are found."""
        if not any(self._is_gone(name, time) for name in self.tracks):
            return {}
        seen: dict[str, Observation] = {}
        width, height = self._camera.width, self._camera.height
        columns = -(-width // _PART)
        row, column = divmod(self._part % (columns * -(-height // _PART)), columns)
        self._part += 1
        # All of a marker whose centre is in this part.
        radii = [track.reference.radius for track in self.tracks.values()]
        more = round(1.5 * max(radii)) + 6
        u, v = column * _PART, row * _PART
        window = (
            max(u - more, 0), min(u + _PART + more, width),
            max(v - more, 0), min(v + _PART + more, height),
        )  # fmt: skip
        for one in self.find_others(image, window):
            likely = self._likely(one, time)
            gone = [name for name in likely if self._is_gone(name, time)]
            # One that has just been lost is expected in its window, and a new one is searched for
            # in the whole image.
            if not gone or not all(self._may_be_elsewhere(name, time) for name in likely):
                continue
            name = min(gone, key=lambda name: likely[name])
            is_near = likely[name] <= self.parameters.gate**2
            if not is_near or one.rim_support < self.parameters.least_rim:
                continue
            # Those that may have been found in its place, too.
            others = [other for other in likely if other != name] + [
                other
                for other, track in self.tracks.items()
                if other not in likely
                and track.doubt in (name, ANOTHER)
                and not difference(one, track.reference, RADIUS)
            ]
            for other in others:
                self.tracks[other].doubt = self.tracks[other].doubt or name
            doubt = ANOTHER if len(others) > 1 else ''.join(others)
            seen[name] = self._take(self.tracks[name], Sighting(one, True, doubt=doubt), time)
        return seen

    def _may_be_elsewhere(self, name: str, time: float) -> bool:
        """Return whether a marker has been lost for so long that it may be anywhere."""
        track = self.tracks.get(name)
        return track is not None and time - track.time > self.parameters.fade

    def _is_gone(self, name: str, time: float) -> bool:
        """Return whether a ring that has been seen is searched for elsewhere."""
        if not self._may_be_elsewhere(name, time):
            return False
        track = self.tracks[name]
        return track.lost and track.was_seen and track.marker.inner > 0.0

    def _likely(self, seen: Observation, time: float) -> dict[str, float]:
        """Return the squared distances of markers not in sight that a ring may be."""
        # None in the window of one of them, where it has been searched for.
        likely = {}
        for name, marker in self.markers.items():
            track, distance = self.tracks.get(name), 0.0
            if track is not None and not track.lost:
                continue
            if track is not None:
                prediction = self.motion.predict(track, time)
                distance = prediction.distance(seen.center, seen.covariance)
                if math.dist(seen.center, prediction.center) <= prediction.reach:
                    return {}
            if distance <= (_SURE * self.parameters.gate) ** 2 and not difference(
                seen, self.appearance.by_rig(marker, seen.center), RADIUS_BY_RIG
            ):
                likely[name] = distance
        return likely

    def _take(self, track: Track, sighting: Sighting, time: float) -> Observation:
        seen = sighting.observation
        track.lost = not sighting.taken
        if not sighting.taken:
            if seen.status == TRACKED:
                percent = 100 * seen.rim_support
                reason = f'{percent:.0f} % of the rim fits: not enough to recover the marker'
                return dataclasses.replace(seen, status=UNCERTAIN, reason=reason)
            return seen
        if sighting.doubt:
            track.doubt = sighting.doubt
            if sighting.doubt in self.tracks:
                self.tracks[sighting.doubt].doubt = track.marker.name
        image_time, time = time, time + self.mounted.row_delay(float(seen.center[1]))
        self.motion.correct(track, time, seen.center, noise_of(seen))
        if seen.status == TRACKED:
            track.reference, track.trusted_time = seen, time
            track.keep(image_time, time, seen)
            # Of the image, which markers in other rows share.
            track.path.append((image_time, *seen.center.tolist()))
            if track.doubt:
                return may_be(seen, track.doubt)
        return seen


def _places(seen: Iterable[Observation]) -> list[tuple[float, float, float]]:
    return [(*one.center.tolist(), SAME * one.radius) for one in seen if one.status == TRACKED]
