"""
Images of two cameras that belong together, by their stamps.

Each camera's images come in their own order, but not in one order with the other's. Those of one
instant are a pair at once; of cameras that are not synchronous, each image goes with the nearest
one of the other camera, not farther than a tolerance. What is given out depends on stamps alone,
as long as no camera lags behind the other by more than the timeout: a recording gives the same
pairs again, whatever the load of the machine.

A stamp that is far from the camera's one before is wrong, or time has jumped; the next images
tell which. Where they go on from the old time it was wrong, and its image is left out. Where three
go on from the new one, none is left out: a jump ahead is a pause, one back a restart.
"""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections import deque
from collections.abc import Sequence
from typing import Generic, NamedTuple, TypeVar

from longreach_dynamics.errors import InputError

__all__ = ['TIMEOUT', 'ImagePairs', 'ImageSet']

TIMEOUT = 0.5
"""A camera whose images are so much later than the other's has stopped, by default [s]."""

Picture = TypeVar('Picture')
Other = TypeVar('Other')

# A stamp that is so much before the camera's latest, or after it, is out of line [ns]; of a slow
# camera one that is so many times between images after it.
_JUMP, _SLOW = 1_000_000_000, 4
# Images in a row that make a new time certain.
_CERTAIN = 3
# The time between two images is known from so many.
_INTERVALS = 8


class ImageSet(NamedTuple, Generic[Picture]):
    """Images of one instant, of one camera or two, by the cameras' names."""

    stamps: dict[str, int]  # [ns]
    images: dict[str, Picture]
    late: bool  # one of this time, or later, was given out before

    @property
    def stamp(self) -> int:
        """The stamp of the first camera that is there [ns]."""
        return next(iter(self.stamps.values()))

    @property
    def times(self) -> dict[str, float]:
        """The stamps in seconds."""
        return {camera: stamp * 1e-9 for camera, stamp in self.stamps.items()}

    def with_images(self, images: dict[str, Other]) -> ImageSet[Other]:
        """Return the same set with other images, by the same names."""
        return ImageSet(self.stamps, images, self.late)


class _Waiting(NamedTuple, Generic[Picture]):
    """An image that waits."""

    stamp: int  # [ns]
    interval: int  # the shortest time between images up to it [ns]; 0 for not known
    image: Picture


@dataclasses.dataclass
class _Queue(Generic[Picture]):
    """What waits of one camera, and what is known about it."""

    waiting: deque[_Waiting[Picture]]
    intervals: deque[int]  # [ns]
    last: int | None = None  # stamp of the latest image [ns]
    absent: bool = False  # the other one's images need not wait for it
    alone: int = 0  # images given out without the other camera's
    alone_since_pair: int = 0
    dropped: int = 0  # images that never came, by the time between the others
    disordered: int = 0  # images that were no later than the one before, left out
    standing: int = 0  # of those, since the latest one that was taken
    late: int = 0
    left_out: int = 0  # images with wrong stamps
    # Stamps out of line and their images, one later than the other, until it is known what they
    # are.
    doubtful: list[tuple[int, Picture]] = dataclasses.field(default_factory=list)

    @property
    def queued(self) -> int:
        """How many images wait."""
        return len(self.waiting)

    @property
    def misdated(self) -> int:
        """How many images were left out, or will be, because their stamps are out of line."""
        return self.left_out + len(self.doubtful)

    @property
    def usual_interval(self) -> int:
        """The time between most images, whatever a few of them do [ns]; 0 for not known."""
        return statistics.median_high(self.intervals) if self.intervals else 0

    def is_in_line(self, stamp: int) -> bool:
        """Tell whether a stamp is near the latest one."""
        if self.last is None:
            return True
        ahead = max(_JUMP, _SLOW * self.usual_interval)
        return -_JUMP < stamp - self.last <= ahead

    def clear(self) -> None:
        """Forget images and times."""
        self.waiting.clear()
        self.intervals.clear()
        self.last = None

    def goes_on(self, stamp: int) -> bool:
        """Tell whether a stamp out of line comes after doubtful ones, all early or all late."""
        if self.last is None or not self.doubtful:
            return False
        latest, _ = self.doubtful[-1]
        return latest < stamp and (latest < self.last) == (stamp < self.last)

    def leave_out(self) -> None:
        """Leave out what is doubtful."""
        self.left_out += len(self.doubtful)
        self.doubtful.clear()

    def append(self, stamp: int, image: Picture) -> None:
        """Take an image that is later than the one before."""
        if self.last is not None:
            interval = stamp - self.last
            # One alone may be wrong; time that jumps tells nothing of lost images.
            if len(self.intervals) > 1 and self.is_in_line(stamp):
                self.dropped += max(0, round(interval / self.usual_interval) - 1)
            self.intervals.append(interval)
        self.last = stamp
        self.absent = False
        self.standing = 0
        self.waiting.append(_Waiting(stamp, min(self.intervals, default=0), image))


class ImagePairs(Generic[Picture]):
    """
    Pairs of images.

    Parameters
    ----------
    cameras : sequence of str
        Names of one camera or two; the time of a pair is the first one's.
    tolerance : float
        Largest time between the images of a pair [s].
    timeout : float
        When a camera's images are so much [s] later than one of them that waits for the other
        camera, it is given out alone. From then on none waits, until the other camera's images
        come again.

    Raises
    ------
    InputError
        For another number of cameras, or times that are negative or not finite.
    """

    def __init__(self, cameras: Sequence[str], tolerance: float, timeout: float) -> None:
        if not 1 <= len(set(cameras)) == len(cameras) <= 2:
            raise InputError(f'cameras = {list(cameras)}, allowed: one name, or two')
        for name, value in (('tolerance', tolerance), ('timeout', timeout)):
            if not 0.0 <= value < math.inf:
                raise InputError(f'{name} = {value} s, allowed: [0, inf) s')
        self.cameras = tuple(cameras)
        self.paired = 0
        self.restarts = 0
        self.jumps = 0
        self._tolerance, self._timeout = round(tolerance * 1e9), round(timeout * 1e9)
        self._queues: dict[str, _Queue[Picture]] = {
            name: _Queue(deque(), deque(maxlen=_INTERVALS)) for name in cameras
        }
        self._newest: int | None = None
        self._nearest_gap = math.nan

    def add(self, camera: str, stamp: int, image: Picture) -> list[ImageSet[Picture]]:
        """
        Take an image and return what can be given out, in the order of time.

        Parameters
        ----------
        camera : str
        stamp : int
            [ns]. One that is more than a second (of a slow camera, four times between images)
            after the camera's latest, or a second or more before it, is out of line. Such images
            wait for those that follow: they are left out when the camera goes on in line, and
            ``misdated`` counts them. Three in a row, of either camera near each other, are taken:
            time has jumped. If it went back it began anew: what waits is forgotten, and
            ``restarts`` counts it. ``jumps`` counts those ahead; they add nothing to ``dropped``.
        image : object
            Kept, not copied.
        """
        queue = self._queues[camera]
        if not queue.is_in_line(stamp):
            if not queue.goes_on(stamp):
                queue.leave_out()
            queue.doubtful.append((stamp, image))
            return self._jumped(camera)
        if queue.last is not None and stamp <= queue.last:
            queue.disordered += 1
            queue.standing += 1
            return []
        queue.leave_out()
        queue.append(stamp, image)
        return self._given_out()

    def finish(self) -> list[ImageSet[Picture]]:
        """Return all that waits at the end, with what may only be later than expected."""
        for queue in self._queues.values():
            if queue.last is not None and queue.doubtful and queue.doubtful[0][0] > queue.last:
                for stamp, image in queue.doubtful:
                    queue.append(stamp, image)
                queue.doubtful.clear()
        return self.flush()

    def flush(self) -> list[ImageSet[Picture]]:
        """Return all that waits: nothing more comes, or not soon."""
        sets = []
        while (ready := self._next(patient=False)) is not None:
            sets.append(ready)
        return sets

    def clear(self) -> None:
        """Forget what waits, and what time it was."""
        for queue in self._queues.values():
            queue.clear()
            queue.leave_out()
        self._newest = None

    @property
    def waiting(self) -> int:
        """How many images wait."""
        return sum(queue.queued for queue in self._queues.values())

    @property
    def nearest_gap(self) -> float:
        """
        Time from the latest image given out alone to the other camera's nearest one [s].

        NaN while the other camera has none.
        """
        return self._nearest_gap

    def counts(self, what: str) -> dict[str, int]:
        """
        Return a count of each camera.

        Parameters
        ----------
        what : str
            ``alone``, ``alone_since_pair``, ``queued``, ``dropped``, ``disordered``,
            ``standing``, ``misdated`` or ``late``.
        """
        return {name: getattr(queue, what) for name, queue in self._queues.items()}

    # --- time that jumps ---------------------------------------------------------------------

    def _jumped(self, camera: str) -> list[ImageSet[Picture]]:
        """Return what can be given out after an image of a camera that is out of line."""
        newest = self._queues[camera].doubtful[-1][0]
        # The camera's own ones, and the other's if these tell the same time.
        sure = {
            name: queue
            for name, queue in self._queues.items()
            if queue.doubtful and (name == camera or abs(queue.doubtful[-1][0] - newest) < _JUMP)
        }
        if sum(len(queue.doubtful) for queue in sure.values()) < _CERTAIN:
            return []
        taken = {name: queue.doubtful.copy() for name, queue in sure.items()}
        for queue in sure.values():
            queue.doubtful.clear()
        if any(taken[name][0][0] < (queue.last or 0) for name, queue in sure.items()):
            self.restarts += 1
            self.clear()
        else:
            self.jumps += 1
        for name, queue in sure.items():
            for stamp, image in taken[name]:
                queue.append(stamp, image)
        return self._given_out()

    # --- what goes next ----------------------------------------------------------------------

    def _given_out(self) -> list[ImageSet[Picture]]:
        """Return what need not wait any longer."""
        sets = []
        while (ready := self._next(patient=True)) is not None:
            sets.append(ready)
        return sets

    def _next(self, patient: bool) -> ImageSet[Picture] | None:
        """Return the next set; None when nothing waits, or has to wait."""
        there = [name for name, queue in self._queues.items() if queue.waiting]
        if not there:
            return None
        if len(self.cameras) == 1:
            return self._give(there)
        # Of equal stamps the first camera's.
        first = min(there, key=lambda name: self._queues[name].waiting[0].stamp)
        if len(there) == 2:
            return self._next_of_two(first, patient)
        (other,) = set(self.cameras) - {first}
        mine, others = self._queues[first], self._queues[other]
        stamp = mine.waiting[0].stamp
        passed = others.last is not None and others.last - stamp > self._tolerance
        if passed or others.absent or not patient:
            return self._give([first])
        if mine.waiting[-1].stamp - stamp > self._timeout:
            others.absent = True
            return self._give([first])
        return None

    def _next_of_two(self, first: str, patient: bool) -> ImageSet[Picture] | None:
        """Return the next set where both have images, ``first`` the earlier one."""
        (other,) = set(self.cameras) - {first}
        mine, others = self._queues[first], self._queues[other]
        head, others_stamp = mine.waiting[0], others.waiting[0].stamp
        gap = others_stamp - head.stamp
        if gap > self._tolerance:
            return self._give([first])
        # Nothing can be nearer, or is likely to be before half of the time to the next image.
        if gap == 0 or 2 * gap <= head.interval:
            return self._give(self.cameras)
        if len(mine.waiting) > 1:
            nearer = abs(mine.waiting[1].stamp - others_stamp) < gap
            return self._give([first] if nearer else self.cameras)
        overdue = others.waiting[-1].stamp - head.stamp > self._timeout
        return self._give(self.cameras) if overdue or not patient else None

    def _give(self, cameras: Sequence[str]) -> ImageSet[Picture]:
        """Take the first images of these cameras out of their queues."""
        taken = {name: self._queues[name].waiting.popleft() for name in cameras}
        stamps = {name: one.stamp for name, one in taken.items()}
        stamp = next(iter(stamps.values()))
        late = self._newest is not None and stamp <= self._newest
        self._newest = stamp if self._newest is None else max(stamp, self._newest)
        for name in cameras:
            queue = self._queues[name]
            queue.late += int(late)
            queue.alone_since_pair = queue.alone_since_pair + 1 if len(cameras) == 1 else 0
        if len(cameras) == 2:
            self.paired += 1
        elif len(self.cameras) == 2:
            self._note_alone(cameras[0], stamp)
        return ImageSet(stamps, {name: one.image for name, one in taken.items()}, late)

    def _note_alone(self, camera: str, stamp: int) -> None:
        """Count an image without a partner, and note what comes nearest to one."""
        self._queues[camera].alone += 1
        (other,) = set(self.cameras) - {camera}
        queue = self._queues[other]
        known = [one.stamp for one in queue.waiting] or (
            [] if queue.last is None else [queue.last]
        )
        gaps = [(at - stamp) * 1e-9 for at in known]
        self._nearest_gap = min(gaps, key=abs) if gaps else math.nan
