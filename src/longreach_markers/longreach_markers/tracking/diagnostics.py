"""Diagnostics of tracking: counts of images, pairs and tracked markers, and a summary."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping

import numpy as np

from longreach_markers.marker.detection import LOST, TRACKED
from longreach_markers.tracking.clock_offset import ClockOffset
from longreach_markers.tracking.frames import RigFrame
from longreach_markers.tracking.image_sets import ImageSets

# Summary if nothing is wrong, but no image has arrived since the last report.
_NEXT = 'waiting for the next image'
# Number of images without a partner before a warning.
_UNPAIRED = 5
# A latency above this is that of stamps of another clock, such as those of a recording [s].
_OTHER_CLOCK = 60.0
# Latest images of a camera in which sightings are counted.
_SILENT = 30
_DROPPED = {
    'disordered': 'were not later than the previous one',
    'misdated': 'were far from the previous one',
    'repeated': 'repeat the previous one',
}


class TrackingReport:
    """Diagnostics of a tracker: counters of pairs, times, states; ``topics`` by camera."""

    # gap: largest in a set [s]; latency: above which the state is not good [s].

    def __init__(
        self, pairs: ImageSets, topics: Mapping[str, str], gap: float, latency: float = math.inf
    ) -> None:
        self._pairs, self._topics, self._gap = pairs, dict(topics), gap
        self._frames = dict.fromkeys(topics, 0)
        self._bad = dict.fromkeys(topics, 0)
        self._told = self._left_out()
        self._frames_told = 0
        self._seconds: list[float] = []
        self._limit, self._latency = latency, math.nan
        self._statuses: dict[str, str] = {}
        # Why bodies have no pose; empty for those that have one.
        self._bodies: dict[str, str] = {}
        # Latest images of each camera: the number of markers tracked in each.
        self._sightings: dict[str, deque[int]] = {
            camera: deque(maxlen=_SILENT) for camera in topics
        }
        self.offset: ClockOffset | None = None  # the latest estimate
        self.doubt = ''  # latest warning about clocks or poses of the cameras
        self._chi_square = math.nan

    def change(self, gap: float, latency: float) -> None:
        """Continue with other limits, see the class [s]."""
        self._gap, self._limit = gap, latency

    def add_image(self, camera: str, *, good: bool) -> None:
        """Count a received image, and whether it is valid."""
        (self._frames if good else self._bad)[camera] += 1

    def add_frame(self, frame: RigFrame, seconds: float, latency: float = math.nan) -> None:
        """Add the result of a set of images, the computing time per image, and its latency [s]."""
        self._latency = latency
        self._statuses = {name: one.status for name, one in frame.estimates.items()}
        self._bodies = {name: one.reason for name, one in frame.bodies.items()}
        self._seconds.append(seconds)
        self._chi_square = frame.chi_square
        for camera, seen in frame.observations.items():
            self._sightings[camera].append(sum(one.status == TRACKED for one in seen.values()))

    @property
    def silent(self) -> str:
        """Camera whose images show no marker while others track some; empty for none."""
        known = {
            camera: sum(one) for camera, one in self._sightings.items() if len(one) == _SILENT
        }
        silent = [camera for camera, count in known.items() if not count]
        if len(known) < 2 or len(silent) != 1:
            return ''
        (camera,) = silent
        other = max(known, key=lambda name: known[name])
        return (
            f'{camera} tracks no marker in its latest {_SILENT} images, {other} does: estimates do'
            f' without it; check that {camera} is not covered, upside down or badly exposed, and'
            ' its pose'
        )

    @property
    def unpaired(self) -> str:
        """Description of a pairing problem; empty for none."""
        alone = self._pairs.counts('alone_since_pair')
        queued = self._pairs.counts('queued')
        missed = self._pairs.counts('missed')
        if len(alone) < 2:
            return ''
        camera = max(missed, key=lambda name: missed[name])
        topic = self._topics[camera]
        if missed[camera] >= _UNPAIRED:
            others = f'{missed[camera]} sets of the other cameras: estimates do without it'
            if not alone[camera] + queued[camera]:
                return f'no usable images on {topic}, {others}'
            if max(alone.values()) < _UNPAIRED:
                return (
                    f'images on {topic} have no partners in {others}; check that all cameras use'
                    ' the same clock'
                )
        if max(alone.values()) < _UNPAIRED:
            return ''
        counts = ' and '.join(str(alone[name] + queued[name]) for name in alone)
        return (
            f'no pairs: {counts} images on {" and ".join(self._topics.values())} without a'
            f' partner; the nearest stamps are {self._pairs.nearest_gap:+.6f} s apart, allowed:'
            f' {self._gap:g} s (tracking.gap of the rig); check that all cameras use the same'
            ' clock'
        )

    def state(self, *, silent: bool, waits: str = '') -> tuple[bool, str]:
        """Return whether tracking works, and a summary."""
        topics = ', '.join(self._topics.values())
        came = any(self._frames.values()) or any(self._bad.values()) or bool(self._statuses)
        if waits and not came:
            return False, waits
        if silent or not came:
            return False, f'no images on {topics}'
        # Since the last report.
        left_out = '; '.join(
            f'{count - self._told[what]} images {what}'
            for what, count in self._left_out().items()
            if count > self._told[what]
        )
        lost = [name for name, status in self._statuses.items() if status == LOST]
        if not self._statuses:
            text = 'images wait for their partners'
            if not any(self._frames.values()):
                text = f'no valid images on {topics}'
        elif not self._seconds and (left_out or sum(self._frames.values()) > self._frames_told):
            waiting = self._pairs.waiting and not left_out
            text = 'images wait for their partners' if waiting else 'no valid image'
        elif self.unpaired:
            text = self.unpaired
        elif self.silent:
            text = self.silent
        elif lost:
            text = f'lost: {", ".join(lost)}'
        elif any(self._bodies.values()):
            text = '; '.join(
                f'no pose of {name}: {why}' for name, why in self._bodies.items() if why
            )
        elif self._limit < self._latency < _OTHER_CLOCK:
            text = (
                f'results are {self._latency:.2g} s late, allowed: {self._limit:g} s; use smaller'
                ' images, a lower rate, or fewer markers'
            )
        else:
            # A slow camera may not have delivered an image.
            text = self.doubt or ('tracking' if self._seconds else _NEXT)
        is_good = text in ('tracking', _NEXT) and not left_out
        return is_good, f'{text}; {left_out}' if left_out else text

    def _left_out(self) -> dict[str, int]:
        return {'were not valid': sum(self._bad.values())} | {
            reason: sum(self._pairs.counts(what).values()) for what, reason in _DROPPED.items()
        }

    def values(self) -> dict[str, object]:
        """Return all counters by name; computing times are those since the last call."""
        self._told = self._left_out()
        self._frames_told = sum(self._frames.values())
        values: dict[str, object] = {'paired': self._pairs.paired}
        for camera, frames in self._frames.items():
            values |= {f'{camera} frames': frames, f'{camera} bad': self._bad[camera]}
            values[f'{camera} sightings'] = sum(self._sightings[camera])
            for what in ('dropped', 'late', 'disordered', 'misdated', 'repeated', 'alone'):
                values[f'{camera} {what}'] = self._pairs.counts(what)[camera]
        spent = 1e3 * np.array(self._seconds or [math.nan])
        self._seconds.clear()
        if self.offset is not None:
            known = self.offset.is_known
            values |= {
                'clock_offset': self.offset.offset if known else math.nan,
                'clock_offset_deviation': self.offset.deviation,
            }
        if len(self._topics) > 1:
            values['chi_square'] = self._chi_square
        return {
            **values,
            'latency': round(self._latency, 4),
            'nearest_gap': self._pairs.nearest_gap,
            'milliseconds_per_image': round(float(spent.mean()), 3),
            'milliseconds_at_most': round(float(spent.max()), 3),
            **self._statuses,
            **{name: why or 'pose known' for name, why in self._bodies.items()},
        }
