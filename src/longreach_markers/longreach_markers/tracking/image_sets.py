"""
Sets of images of several cameras at one time, by their stamps.

Images of all cameras with equal stamps are a set at once; for cameras that are not synchronised,
the earliest image is joined by the nearest one of each other camera, within a tolerance. The
result depends on stamps only, unless one camera lags behind another by more than the timeout.

A stamp far from the camera's previous one is wrong, and its image dropped, if the next images
continue from the old time. If three, more than one of a camera, continue from the new time, a
forward jump is a pause, a backward jump a restart. An image equal to the previous one in every
pixel is a copy of it, as noise makes real images differ: it is dropped and counted.
"""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from longreach_dynamics.errors import InputError, check_within

ROOM = 256_000_000
"""Sum of the sizes of waiting images [bytes], beyond which they are returned alone, early."""


# A stamp this far before or after the camera's latest one is out of line [ns]; for a slow camera,
# forward: this many intervals between images.
_JUMP, _SLOW = 1_000_000_000, 4
# Consecutive images that confirm a new time.
_CERTAIN = 3
# Number of intervals from which the usual interval is known.
_INTERVALS = 8
# Every so many-th row and column is compared first: different images rarely need all of them.
_SPARSE = 16


class ImageSet(NamedTuple):
    """Images of one time from one camera or more, by camera."""

    stamps: dict[str, int]  # [ns], from which the delays of the rig are already subtracted
    images: dict[str, np.ndarray]
    late: bool  # a set of this time or later has been returned before

    @property
    def stamp(self) -> int:
        """Stamp of the first camera that has an image [ns]."""
        return next(iter(self.stamps.values()))

    @property
    def times(self) -> dict[str, float]:
        """Stamps in seconds."""
        return {camera: stamp * 1e-9 for camera, stamp in self.stamps.items()}


class _Waiting(NamedTuple):
    """A queued image."""

    stamp: int  # [ns]
    interval: int  # shortest interval between images so far [ns]; 0: unknown
    image: np.ndarray


@dataclasses.dataclass
class _Queue:
    """Queued images of one camera, and its state."""

    waiting: deque[_Waiting]
    intervals: deque[int]  # [ns]
    last: int | None = None  # stamp of the latest image [ns]
    absent: bool = False  # images of other cameras do not wait for it
    alone: int = 0  # images returned without a partner
    alone_since_pair: int = 0
    missed: int = 0  # sets without it since its latest image in one
    dropped: int = 0  # missing images, by the usual interval
    disordered: int = 0  # dropped images that were not later than the previous one
    late: int = 0
    repeated: int = 0  # dropped images equal to the previous one
    pixels: np.ndarray | None = None  # of the latest image
    left_out: int = 0  # dropped images with wrong stamps
    # Images with stamps out of line, in increasing order, until it is known whether they are
    # valid.
    doubtful: list[tuple[int, np.ndarray]] = dataclasses.field(default_factory=list)

    @property
    def queued(self) -> int:
        return len(self.waiting)

    @property
    def misdated(self) -> int:
        """Number of images that have been or will be dropped because of stamps out of line."""
        return self.left_out + len(self.doubtful)

    @property
    def usual_interval(self) -> int:
        return statistics.median_high(self.intervals) if self.intervals else 0

    def is_in_line(self, stamp: int) -> bool:
        if self.last is None:
            return True
        ahead = max(_JUMP, _SLOW * self.usual_interval)
        return -_JUMP < stamp - self.last <= ahead

    def goes_on(self, stamp: int) -> bool:
        """Return whether a stamp out of line continues the doubtful ones, early or late."""
        if self.last is None or not self.doubtful:
            return False
        latest, _ = self.doubtful[-1]
        return latest < stamp and (latest < self.last) == (stamp < self.last)

    def leave_out(self) -> None:
        self.left_out += len(self.doubtful)
        self.doubtful.clear()

    def append(self, stamp: int, image: np.ndarray) -> None:
        self.note(stamp)
        self.waiting.append(_Waiting(stamp, min(self.intervals, default=0), image))

    def repeats(self, pixels: np.ndarray) -> bool:
        """Return whether an image equals the previous one, and keep it for the next."""
        before, self.pixels = self.pixels, pixels
        if before is None or pixels.shape != before.shape:
            return False
        every = (slice(None, None, _SPARSE),) * pixels.ndim
        if not np.array_equal(pixels[every], before[every]):
            return False
        # Images of a covered camera are alike.
        return bool(np.ptp(pixels)) and np.array_equal(pixels, before)

    def note(self, stamp: int) -> None:
        if self.last is not None:
            interval = stamp - self.last
            # A single jump may be a wrong stamp; jumps in time do not count as lost images.
            if len(self.intervals) > 1 and self.is_in_line(stamp):
                self.dropped += max(0, round(interval / self.usual_interval) - 1)
            self.intervals.append(interval)
        self.last = stamp
        self.absent = False


class ImageSets:
    """
    Collects the images of each time from one camera or more.

    Parameters
    ----------
    cameras : sequence of str
        Names of the cameras; the time of a set is that of the first one in it.
    tolerance : float
        Largest time between the earliest image of a set and the others [s].
    timeout : float
        If a camera's images are later than a waiting image by more than this [s], that image is
            returned without it. Afterwards no image waits until images of that camera arrive
            again.

    Attributes
    ----------
    tolerance : int
        As given [ns]; can be changed.

    Raises
    ------
    InputError
        For no camera, a name twice, or times that are negative or not finite.
    """

    def __init__(self, cameras: Sequence[str], tolerance: float, timeout: float) -> None:
        if not 1 <= len(set(cameras)) == len(cameras):
            raise InputError(f'cameras = {list(cameras)}, allowed: one or more distinct names')
        for name, value in (('tolerance', tolerance), ('timeout', timeout)):
            check_within(name, value, '[0, inf) s')
        self.cameras = tuple(cameras)
        self.paired = 0
        self.restarts = 0
        self.jumps = 0
        self.tolerance, self._timeout = round(tolerance * 1e9), round(timeout * 1e9)
        self._queues: dict[str, _Queue] = {
            name: _Queue(deque(), deque(maxlen=_INTERVALS)) for name in cameras
        }
        self._newest: int | None = None
        # Time from the latest unpaired image to another camera's [s]; NaN without.
        self.nearest_gap = math.nan

    def add(self, camera: str, stamp: int, image: np.ndarray) -> list[ImageSet]:
        """Add an image and return the sets that are complete, in the order of time."""
        queue = self._queues[camera]
        if not queue.is_in_line(stamp):
            if not queue.goes_on(stamp):
                queue.leave_out()
            queue.doubtful.append((stamp, image))
            return self._jumped(camera)
        if queue.last is not None and stamp <= queue.last:
            queue.disordered += 1
            return []
        queue.leave_out()
        if queue.repeats(image):
            queue.note(stamp)
            queue.repeated += 1
        else:
            queue.append(stamp, image)
        return self.flush(patient=True)

    def finish(self) -> list[ImageSet]:
        """Return all waiting images at the end, including those with doubtful stamps."""
        for queue in self._queues.values():
            if queue.last is not None and queue.doubtful and queue.doubtful[0][0] > queue.last:
                for stamp, image in queue.doubtful:
                    queue.append(stamp, image)
                queue.doubtful.clear()
        return self.flush()

    def flush(self, *, patient: bool = False) -> list[ImageSet]:
        """Return all waiting images; if ``patient``, those that need not wait any longer."""
        sets = []
        while (ready := self._next(patient)) is not None:
            sets.append(ready)
        return sets

    def clear(self) -> None:
        """Clear waiting images and times."""
        for queue in self._queues.values():
            queue.waiting.clear()
            queue.leave_out()
            queue.intervals.clear()
            queue.last = queue.pixels = None
        self._newest = None

    def restart(self) -> None:
        """Begin anew, as time went back."""
        self.restarts += 1
        self.clear()

    @property
    def waiting(self) -> int:
        """Number of waiting images."""
        return sum(queue.queued for queue in self._queues.values())

    def counts(self, what: str) -> dict[str, int]:
        """Return a counter of each camera."""
        return {name: getattr(queue, what) for name, queue in self._queues.items()}

    @property
    def notes(self) -> list[str]:
        """Images that are not used, or not for positions, by camera, and why, with a remedy."""
        unused = 'they are not used'
        kinds = {
            'repeated': f'repeat the previous one, pixel by pixel, with later stamps: {unused}',
            'disordered': f'have stamps that are not later than the previous one: {unused}',
            'misdated': f'have stamps far from that of the previous one: {unused}',
            'late': 'come after later ones of other cameras: they are tracked, but no positions'
            ' are written',
        }
        return [
            f'{count} images of {name} {kind}; check its driver, and how the images were recorded'
            for what, kind in kinds.items()
            for name, count in self.counts(what).items()
            if count
        ]

    # --- time that jumps ---------------------------------------------------------------------

    def _jumped(self, camera: str) -> list[ImageSet]:
        """Return complete sets after an image of a camera that is out of line."""
        newest = self._queues[camera].doubtful[-1][0]
        # Those of this camera, and of others that agree.
        sure = [
            queue
            for name, queue in self._queues.items()
            if queue.doubtful and (name == camera or abs(queue.doubtful[-1][0] - newest) < _JUMP)
        ]
        # A common trigger may be stamped wrongly once: one image of each camera is not enough.
        if sum(len(queue.doubtful) for queue in sure) < max(_CERTAIN, len(sure) + 1):
            return []
        goes_back = any(queue.doubtful[0][0] < (queue.last or 0) for queue in sure)
        taken = [queue.doubtful for queue in sure]
        for queue in sure:
            queue.doubtful = []
        if goes_back:
            self.restart()
        else:
            self.jumps += 1
        for queue, images in zip(sure, taken, strict=True):
            for stamp, image in images:
                queue.append(stamp, image)
        return self.flush(patient=True)

    # --- what goes next ----------------------------------------------------------------------

    def _next(self, patient: bool) -> ImageSet | None:
        """Return the next set; None if there is none, or if it has to wait."""
        there = [name for name, queue in self._queues.items() if queue.waiting]
        if not there:
            return None
        # For equal stamps, the first camera's.
        first = min(there, key=lambda name: self._queues[name].waiting[0].stamp)
        joined = {first}
        for other in self.cameras:
            if other != first:
                joins = self._joins(first, other, patient)
                if joins is None:
                    return None
                joined |= {other} if joins else set()
        return self._give([name for name in self.cameras if name in joined])

    def _joins(self, first: str, other: str, patient: bool) -> bool | None:
        """Return whether a camera's next image belongs to that of ``first``; None: unknown."""
        mine, others = self._queues[first], self._queues[other]
        head = mine.waiting[0]
        if not others.waiting:
            passed = others.last is not None and others.last - head.stamp > self.tolerance
            if passed or others.absent or not patient:
                return False
            if mine.waiting[-1].stamp - head.stamp > self._timeout or self._is_full():
                others.absent = True
                return False
            return None
        gap = others.waiting[0].stamp - head.stamp
        if gap > self.tolerance:
            return False
        # No later image can be nearer, or is likely to arrive within half an interval.
        if gap == 0 or 2 * gap <= head.interval:
            return True
        if len(mine.waiting) > 1:
            return not abs(mine.waiting[1].stamp - others.waiting[0].stamp) < gap
        overdue = others.waiting[-1].stamp - head.stamp > self._timeout or self._is_full()
        return True if overdue or not patient else None

    def _is_full(self) -> bool:
        """Return whether waiting images exceed their room."""
        waiting = (one for queue in self._queues.values() for one in queue.waiting)
        return sum(one.image.nbytes for one in waiting) > ROOM

    def _give(self, cameras: Sequence[str]) -> ImageSet:
        """Remove and return the first images of these cameras."""
        taken = {name: self._queues[name].waiting.popleft() for name in cameras}
        stamps = {name: one.stamp for name, one in taken.items()}
        stamp = next(iter(stamps.values()))
        late = self._newest is not None and stamp <= self._newest
        self._newest = stamp if self._newest is None else max(stamp, self._newest)
        for name, queue in self._queues.items():
            queue.missed = 0 if name in cameras else queue.missed + 1
        for name in cameras:
            queue = self._queues[name]
            queue.late += int(late)
            queue.alone_since_pair = queue.alone_since_pair + 1 if len(cameras) == 1 else 0
        if len(cameras) > 1:
            self.paired += 1
        elif len(self.cameras) > 1:
            self._note_alone(cameras[0], stamp)
        return ImageSet(stamps, {name: one.image for name, one in taken.items()}, late)

    def _note_alone(self, camera: str, stamp: int) -> None:
        """Count an image without a partner, and update the nearest gap."""
        self._queues[camera].alone += 1
        others = [queue for name, queue in self._queues.items() if name != camera]
        known = [one.stamp for queue in others for one in queue.waiting]
        known += [one.last for one in others if not one.waiting and one.last is not None]
        self.nearest_gap = 1e-9 * min((at - stamp for at in known), key=abs, default=math.nan)
