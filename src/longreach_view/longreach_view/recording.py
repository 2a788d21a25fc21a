"""Recordings as the source of a view: one, or two of which the second is drawn as a ghost."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from operator import itemgetter
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np

from longreach_dynamics.errors import InputError
from longreach_machine.markers import KIND, read_markers
from longreach_tools.bag import bag_typestore, open_bag, read_bag
from longreach_tools.fields import numeric_fields
from longreach_view.drawing import array_of
from longreach_view.loop import Source
from longreach_view.page import Replay, Request
from longreach_view.world import Sample, World, begins_anew, is_of_the_present

_IMAGE = 'sensor_msgs/msg/Image'
# Before a time that is jumped to, messages of this long are shown in charts [s].
_LEAD = 60.0
# The same for the picture of each camera; longest time for reading pictures in one go [s].
_LATEST, _READING = 1.0, 0.1
# Machines whose stamps differ by more have clocks of their own [s of wall time, or simulated].
_APART = 1.0
# Share of messages that are on time.
_PROMPT = 0.95


class Recording:
    """
    The messages of a recording in the order of time; pictures stay in the file.

    Times are the machines' stamps, which go on after a reset; the bag's where stamps are apart.
    """

    def __init__(self, path: Path) -> None:
        with open_bag(path) as bag:
            types = {name: topic.typename for name, topic in bag.topics.items()}
        names = [name for name, kind in types.items() if kind not in (_IMAGE, KIND)]
        if not any(name.endswith('/joint_states') for name in names) and not any(
            kind.endswith('/MarkerEstimates') for kind in types.values()
        ):
            raise InputError(
                f'{path} has no machine: no joint_states and no estimates of markers; found:'
                f' {", ".join(sorted(types)) or "no topics"}'
            )
        # Times of the machines' stamps by those of the bag, where they go on.
        clock: dict[float, float] = {}
        now, moves, last = -math.inf, [0.0], dict[str, float]()
        # Of each topic the last stamp; times of recording and stamps, which go on after resets.
        latest: dict[str, float] = {}
        stamps: dict[str, list[tuple[float, float]]] = {}
        recorded: list[float] = []
        self.samples: list[Sample] = []
        # What is published once holds from the beginning on.
        self.descriptions: list[Sample] = []
        drawn = _drawings(path, [name for name, kind in types.items() if kind == KIND])
        # At equal times drawings are last: they are of machines.
        merged = heapq.merge(read_bag(path, names), drawn, key=itemgetter(1))
        for name, nanoseconds, message in merged:
            stamp = getattr(getattr(message, 'header', None), 'stamp', None)
            time = None if stamp is None else stamp.sec + 1e-9 * stamp.nanosec
            if is_of_the_present(types[name], time):
                time = None
            begins = False
            if time is not None:
                begins = begins_anew(time, latest.get(name, -math.inf))
                latest[name] = time
                # Nodes that answer late may still be before the reset.
                near = last.get(name, now)
                moved = min((time + move for move in moves), key=lambda t: abs(t - near))
                if name.endswith('/joint_states') or types[name].endswith('/MarkerEstimates'):
                    if begins and moved < near:
                        moved = now
                        moves.append(moved - time)
                    last[name] = moved
                    stamps.setdefault(name, []).append((1e-9 * nanoseconds, moved))
                    if moved > now:
                        now = clock[1e-9 * nanoseconds] = moved
                time = moved
            sample = Sample(name, types[name], message, time, begins=begins)
            if name.endswith('/robot_description'):
                self.descriptions.append(sample)
            else:
                recorded.append(1e-9 * nanoseconds)
                self.samples.append(sample)
        if not recorded:
            raise InputError(f'{path} has no messages of a machine')
        self.resets = len(moves) - 1
        clock = clock or {recorded[0]: recorded[0]}
        self.apart = _are_apart(stamps.values())
        if self.apart:
            self.resets, clock = 0, {recorded[0]: 0.0}
            self.samples = [
                sample if sample.stamp is None else sample._replace(stamp=time - recorded[0])
                for sample, time in zip(self.samples, recorded, strict=True)
            ]
        self._clock = np.array(list(clock)), np.array(list(clock.values()))
        self.times = _converted(np.array(recorded), *self._clock)
        self.begin, self.end = float(self.times[0]), float(self.times[-1])
        self.path, self.machines = path, {name.strip('/').rpartition('/')[0] for name in stamps}
        self.images = tuple(sorted(name for name, kind in types.items() if kind == _IMAGE))

    def between(self, after: float, until: float) -> list[Sample]:
        """Return the messages with after < time since the beginning <= until [s]."""
        low, high = np.searchsorted(self.times, self.begin + np.array([after, until]), 'right')
        return self.samples[low:high]

    def pictures(self, begin: float) -> Iterator[tuple[float, str, Callable[[], Any]]]:
        """Yield time since the beginning [s], topic and reading function of each later picture."""
        store = bag_typestore(self.path)
        recorded, stamps = self._clock
        start = max(0, round(1e9 * float(_converted(self.begin + begin, stamps, recorded))))
        with open_bag(self.path) as bag:
            for topic, nanoseconds, data in bag.messages(self.images, start):
                time = float(_converted(1e-9 * nanoseconds, *self._clock)) - self.begin
                yield time, topic, partial(store.deserialize_cdr, data, _IMAGE)


def _are_apart(machines: Collection[Sequence[tuple[float, float]]]) -> bool:
    """Return whether stamps of machines differ, from (time of the bag, stamp) of each [s]."""
    if len(machines) < 2:
        return False
    clock, *others = (np.array(one).T for one in sorted(machines, key=len, reverse=True))
    speed = np.maximum(np.diff(clock[1]), 0.0).sum() / max(np.ptp(clock[0]), 1e-9)
    for times, stamps in others:
        inside = (times >= clock[0, 0]) & (times <= clock[0, -1])
        away = np.abs(stamps - np.interp(times, *clock))[inside]
        # Machines that ran one after the other have nothing in common. Some messages are late.
        if not away.size or np.quantile(away, _PROMPT) > _APART * max(1.0, speed):
            return True
    return False


def _converted(times: Any, clock: np.ndarray, other: np.ndarray) -> Any:
    """Return times of a clock as those of another; before and after they run alike."""
    outside = np.minimum(times - clock[0], 0.0) + np.maximum(times - clock[-1], 0.0)
    return np.interp(times, clock, other) + outside


def _drawings(path: Path, names: Sequence[str]) -> Iterator[tuple[str, int, Any]]:
    """Yield topic, time [ns] and markers of each drawing."""
    if names:
        with open_bag(path) as bag:
            for name, nanoseconds, data in bag.messages(names):
                yield name, nanoseconds, read_markers(data)


class BagSource(Source):
    """Recordings played back: one, or two from their beginning; a jump shows ``lead`` [s] more."""

    def __init__(self, paths: Sequence[Path], lead: float = _LEAD) -> None:
        self._lead = lead
        self._recordings = [Recording(path) for path in paths]
        self.length = max(r.end - r.begin for r in self._recordings)
        first = self._recordings[0]
        # As it is shown.
        self.begin = World(numeric_fields).since(first.begin)
        if not self.length > 0.0:
            raise InputError(f'{paths[0]} has messages of one moment only; nothing can be played')
        self.count = max(len(recording.times) for recording in self._recordings)
        self._ghost = World(numeric_fields, self.count) if len(paths) > 1 else None
        self._time = -math.inf
        self._speed, self._playing, self._loop = 1.0, True, True
        self._last: float | None = None
        self._seek: float | None = 0.0
        self._charted: frozenset[str] = frozenset()
        self._pictures: Iterator[tuple[float, str, Callable[[], Any]]] | None = None
        self._next: tuple[float, str, Callable[[], Any]] | None = None

    def poll(self, world: World, now: float) -> Sequence[Sample]:
        """Return the messages up to the present time of the replay."""
        elapsed = 0.0 if self._last is None else now - self._last
        self._last = now
        if self._seek is None and self._playing:
            time = self._time + self._speed * elapsed
            if time > self.length:
                if not self._loop:
                    time, self._playing = self.length, False
                else:
                    self._seek = 0.0
        else:
            time = self._time
        if world.series.keys() != self._charted:
            # Charts that are new have what came before, too.
            self._charted = frozenset(world.series)
            self._seek = time if self._seek is None else self._seek
        if self._seek is not None:
            time, self._seek = self._seek, None
            self._jump(world, time)
            return []
        found = self._recordings[0].between(self._time, time)
        if self._ghost is not None:
            for sample in self._recordings[1].between(self._time, time):
                self._ghost.take(sample, now)
        self._tell(world, time)
        return found

    def _tell(self, world: World, time: float) -> list[tuple[Recording, World]]:
        """Tell the worlds what time it is in them; return them with their recordings."""
        self._time = time
        worlds = [world] if self._ghost is None else [world, self._ghost]
        for recording, shown in zip(self._recordings, worlds, strict=True):
            shown.present = shown.since(recording.begin) + time
        return list(zip(self._recordings, worlds, strict=True))

    def _jump(self, world: World, time: float) -> None:
        """Show a time, with the charts of what came before."""
        for recording, shown in self._tell(world, time):
            shown.forget()
            for sample in recording.descriptions:
                shown.take(sample, 0.0)
            earlier = recording.between(-math.inf, time)
            lead = recording.begin + time - self._lead
            first = int(np.searchsorted(recording.times, lead))
            # Of what is older the latest of each topic, and drawings, which add up.
            latest = {sample.topic: k for k, sample in enumerate(earlier[:first])}
            for k, sample in enumerate(earlier):
                if k >= first or latest[sample.topic] == k or sample.typename == KIND:
                    shown.take(sample, 0.0)
        self._pictures = None

    def handle(self, request: Request, *_: Any) -> None:
        """Play, pause, seek, change speed or loop."""
        if request.name == 'seek':
            self._seek = float(np.clip(request.value, 0.0, self.length))
        elif request.name == 'play':
            if not self._playing and self._time >= self.length:
                self._seek = 0.0
            self._playing = not self._playing
        elif request.name == 'speed':
            self._speed = float(request.value)
        elif request.name == 'loop':
            self._loop = bool(request.value)

    def replay(self) -> Replay:
        """Return where it is."""
        return Replay(max(self._time, 0.0), self._playing)

    def ghost(self) -> World | None:
        """Return the machines of the second recording."""
        return self._ghost

    def pictures(self) -> dict[str, np.ndarray]:
        """Return new pictures up to the present, read from the first recording."""
        recording, latest = self._recordings[0], {}
        if not recording.images or not math.isfinite(self._time):
            return {}
        if self._pictures is None:
            self._pictures = recording.pictures(self._time - _LATEST)
            self._next = next(self._pictures, None)
        # At a great speed not all of them can be read.
        limit = monotonic() + _READING
        while self._next is not None and self._next[0] <= self._time:
            latest[self._next[1]] = self._next[2]
            self._next = next(self._pictures, None)
            if monotonic() > limit:
                break
        found = {topic.lstrip('/'): array_of(read()) for topic, read in latest.items()}
        return {topic: picture for topic, picture in found.items() if picture is not None}

    def notes(self) -> Sequence[str]:
        """Return what the page says besides."""
        notes = []
        if self._ghost is not None:
            first, second = (recording.machines for recording in self._recordings)
            notes.append('The second recording: ghost, dashed or pale lines.')
            if not first & second:
                notes.append(
                    f'The second recording has none of the machines {sorted(first)}, but'
                    f' {sorted(second)}: nothing is compared. Record both in one namespace.'
                )
        for recording in self._recordings:
            if recording.apart:
                notes.append(
                    f'Machines in {recording.path} have clocks of their own; times are those of'
                    ' recording.'
                )
            if recording.resets:
                notes.append(
                    f'Resets in {recording.path}: {recording.resets}; the runs are shown one after'
                    ' the other, and times go on.'
                )
        return notes
