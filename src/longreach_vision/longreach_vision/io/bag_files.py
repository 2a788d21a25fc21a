"""Reading and writing of recordings without ROS: images, tracks as of the node, truth."""

from __future__ import annotations

import bisect
import contextlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from longreach_dynamics.errors import InputError, LongreachError, named
from longreach_markers import BitDepth, Picture, RigFrame, image_to_gray
from longreach_tools.bag import (
    BagWriter,
    absolute_name,
    bag_typestore,
    checked_name,
    open_bag,
    read_bag,
)
from longreach_tools.output import writing_directory
from longreach_vision.io.track_table import (
    BODY,
    CAMERAS,
    ESTIMATES,
    OBSERVATIONS,
    Messages,
    Tracks,
    message_row,
)
from longreach_vision.simulator.marker_path import MarkerPath, markers_from_message

_TRUTH = 'longreach_msgs/msg/MarkerPositions'
_IMAGES = 'sensor_msgs/msg/Image', 'sensor_msgs/msg/CompressedImage'
_SECOND = 1_000_000_000  # [ns]
# Largest error of a recorded difference of stamps, which was one of times in seconds [ns].
_ROUNDED = 1_000


def _nanoseconds(message: Any) -> int:
    stamp = message.header.stamp
    return int(stamp.sec) * _SECOND + int(stamp.nanosec)


# --- writing ---------------------------------------------------------------------------------


@contextlib.contextmanager
def writing_tracks(
    path: str | Path,
    namespace: str = 'vision',
    frame_id: str = 'world',
    cameras: Sequence[str] = CAMERAS,
    bodies: Sequence[str] = (),
) -> Iterator[Callable[..., None]]:
    """
    Yield the function that adds results, with stamps by camera [ns], to a new recording.

    Cameras are in the order of their bits in the messages; ``frame_id`` is the frame of the world.
    """
    store, prefix = bag_typestore(), f'{namespace.strip("/")}/'.lstrip('/')
    if ESTIMATES not in store.types:
        raise InputError(
            f'message type {ESTIMATES}: no definition found; source the workspace that has package'
            ' longreach_msgs'
        )
    make = Messages(store.types.__getitem__, cameras)
    kinds = {'observations': OBSERVATIONS, 'markers': ESTIMATES}
    kinds |= {f'{body}/pose': BODY for body in bodies}
    names = {name: checked_name(absolute_name(name, namespace)) for name in kinds}
    with writing_directory(path) as unfinished, _written(path, unfinished) as writer:
        topics = {}
        for name, kind in kinds.items():
            text, _ = store.generate_msgdef(kind, ros_version=2)
            # No QoS was offered: players take theirs, reliable and volatile.
            topics[name] = writer.add_topic(names[name], kind, text, store.hash_rihs01(kind), [])

        def put(name: str, message: Any, stamp: int) -> None:
            data = bytes(store.serialize_cdr(message, message.__msgtype__))
            # A delay in the rig may lead to a stamp before 0, which a log time cannot be.
            writer.write(topics[name], max(stamp, 0), data)

        def write(frame: RigFrame, stamps: Mapping[str, int], late: bool = False) -> None:
            for camera, found in frame.observations.items():
                at = stamps[camera], f'{prefix}{camera}_camera_optical'
                put('observations', make.observations(found, camera, *at), at[0])
            if late:
                return
            at = stamps[next(iter(frame.observations))], frame_id
            put('markers', make.estimates(frame, *at), at[0])
            for name, body in frame.bodies.items():
                if body.pose is not None:
                    put(f'{name}/pose', make.body(body.pose, *at), at[0])

        yield write


@contextlib.contextmanager
def _written(path: str | Path, unfinished: Path) -> Iterator[BagWriter]:
    try:
        with BagWriter(unfinished) as writer:
            yield writer
    except LongreachError as error:
        # Its own errors name the temporary directory.
        if str(unfinished) not in str(error):
            raise
        text = f'{path} cannot be written: {error.__cause__}; make room'
        raise LongreachError(text) from error


# --- reading ---------------------------------------------------------------------------------


def is_bag(file: Path) -> bool:
    """Return whether a path is a recording: a storage file, or a folder with one."""
    files = [one.name for one in file.iterdir()] if file.is_dir() else [file.name]
    return any(name == 'metadata.yaml' or name.endswith(('.mcap', '.db3')) for name in files)


def _messages(bag: str | Path, topics: Sequence[str], kind: str) -> Iterator[tuple[str, Any]]:
    for topic, _, message in read_bag(bag, topics):
        if message.__msgtype__ != kind:
            raise InputError(f'{bag}: {topic} has {message.__msgtype__}, allowed: {kind}')
        yield topic, message


def _only_topic(bag: str | Path, kind: str) -> str:
    with open_bag(bag) as opened:
        names = [name for name, one in opened.topics.items() if one.typename == kind and one.count]
    if len(names) != 1:
        raise InputError(
            f'{bag}: topics of {kind}: {", ".join(names) or "none"}, allowed: one; record true'
            ' positions of the markers, or name the topic (--truth-topic)'
        )
    return names[0]


def read_tracks(
    bag: str | Path, namespace: str = 'vision', cameras: Sequence[str] = CAMERAS
) -> Tracks:
    """Read tracks, one row for each message on ``markers``; cameras if they were recorded, too."""
    topic = absolute_name('markers', namespace)
    estimates = [message for _, message in _messages(bag, [topic], ESTIMATES)]
    if not estimates:
        raise InputError(f'{bag}: no message on {topic}; was it tracked?')
    names = tuple(dict.fromkeys(one.name for message in estimates for one in message.estimates))
    seen = _Observed(bag, absolute_name('observations', namespace), tuple(cameras))
    most = max((one.cameras for message in estimates for one in message.estimates), default=0)
    if most >= 1 << len(cameras):
        raise _other_cameras(bag, 'more cameras', cameras)
    rows = []
    reasons: dict[str, list[str]] = {name: [] for name in names}
    for message in estimates:
        stamp = _nanoseconds(message)
        observed = seen.of(stamp, float(message.stamp_gap))
        rows.append(message_row(stamp * 1e-9, names, message, observed))
        told = {one.name: one.reason for one in message.estimates}
        for name in names:
            reasons[name].append(told.get(name, ''))
    return Tracks(names, tuple(cameras), np.array(rows), reasons)


def _other_cameras(bag: str | Path, what: str, cameras: Sequence[str]) -> InputError:
    return InputError(
        f'{bag} has tracks by {what}, allowed by the rig: {", ".join(cameras)}; give the rig that'
        ' was used (--config)'
    )


class _Observed:
    """Observations of a recording by camera and stamp."""

    def __init__(self, bag: str | Path, topic: str, cameras: tuple[str, ...]) -> None:
        self._cameras = cameras
        self._messages: dict[str, dict[int | None, Any]] = {name: {} for name in cameras}
        with open_bag(bag) as opened:
            is_there = topic in opened.topics
        for _, message in _messages(bag, [topic], OBSERVATIONS) if is_there else ():
            if message.camera not in self._messages:
                raise _other_cameras(bag, f'the camera {message.camera}', cameras)
            self._messages[message.camera][_nanoseconds(message)] = message
        self._stamps: dict[str, list[Any]] = {
            name: sorted(found) for name, found in self._messages.items()
        }

    def of(self, stamp: int, gap: float) -> list[Any]:
        """Return the observations of each camera; None where unknown."""
        apart = round(gap * _SECOND) if math.isfinite(gap) else 0
        first, *others = self._cameras
        stamps: dict[str, int | None] = {first: stamp}
        for name in others:
            # Only the largest difference of the stamps of a set is recorded.
            near = (stamp + apart,) * 2 if len(others) == 1 else (stamp - apart, stamp + apart)
            stamps[name] = self._only_one(name, *sorted(near))
        return [self._messages[name].get(at) for name, at in stamps.items()]

    def _only_one(self, camera: str, first: int, last: int) -> int | None:
        """Return the stamp of a camera's image between two times [ns]; None if unclear."""
        stamps = self._stamps[camera]
        begin = bisect.bisect_left(stamps, first - _ROUNDED)
        end = bisect.bisect_right(stamps, last + _ROUNDED)
        return stamps[begin] if end - begin == 1 else None


def read_truth(bag: str | Path, topic: str = '') -> MarkerPath:
    """Read the true motion of markers from a recording."""
    topic = topic or _only_topic(bag, _TRUTH)
    samples: dict[int, tuple[np.ndarray, np.ndarray]] = {}
    names: tuple[str, ...] = ()
    latest = -math.inf
    for _, message in _messages(bag, [topic], _TRUTH):
        names = names or tuple(message.name)
        if not names:
            raise InputError(f'{bag}: {topic}: a message has no markers, allowed: one or more')
        if tuple(message.name) != names:
            raise InputError(
                f'{bag}: {topic} has markers {", ".join(message.name)} after'
                f' {", ".join(names)}, allowed: the same in all messages'
            )
        stamp = _nanoseconds(message)
        if stamp < latest:
            raise InputError(f'{bag}: time on {topic} goes back; record a run without a reset')
        latest = stamp
        with named(f'{bag}: {topic}: '):
            samples[stamp] = markers_from_message(message, names)
    if not samples:
        raise InputError(f'{bag}: no message on {topic}, allowed: one or more')
    with named(f'{bag}: {topic}: '):
        return MarkerPath(
            names,
            np.array(list(samples)) / _SECOND,
            *(np.array(values) for values in zip(*samples.values(), strict=True)),
        )


class BagImages:
    """Images of a recording, in its order, from topics by camera, or compressed ones below."""

    def __init__(self, bag: str | Path, topics: Mapping[str, str]) -> None:
        self._bag = bag
        self._depths = {camera: BitDepth() for camera in topics}
        self._counts = dict.fromkeys(topics, 0)
        # Why images are left out, by their names.
        self.damaged: dict[str, str] = {}
        self.files: tuple[Path, ...] = ()
        self._cameras: dict[str, str] = {}
        with open_bag(bag) as opened:
            for camera, topic in topics.items():
                there = [one for one in (topic, f'{topic}/compressed') if one in opened.topics]
                # A topic may be there without messages.
                filled = [one for one in there if opened.topics[one].count]
                self._cameras[(filled or there or [topic])[0]] = camera

    @property
    def notes(self) -> list[str]:
        """What a user should know about the images read so far."""
        if not self.damaged:
            return []
        warning = (
            f'{len(self.damaged)} of {sum(self._counts.values())} images of'
            f' {self._bag} cannot be decoded and are left out; the first:'
            f' {next(iter(self.damaged.values()))}'
        )
        return [warning]

    def __iter__(self) -> Iterator[Picture]:
        for topic, _, message in read_bag(self._bag, list(self._cameras)):
            camera = self._cameras[topic]
            name = f'{self._bag}: image {self._counts[camera]} on {topic}'
            self._counts[camera] += 1
            kind = message.__msgtype__
            try:
                if kind not in _IMAGES:
                    allowed = ', '.join(_IMAGES)
                    raise InputError(f'{topic} has {kind}, allowed: {allowed}')
                image = image_to_gray(message, self._depths[camera])
            except InputError as error:
                if kind != _IMAGES[1]:
                    raise InputError(f'{name}: {error}') from error
                self.damaged[name] = f'{name}: {error}'
                continue
            yield Picture(camera, _nanoseconds(message), image, name)
        if self.damaged and len(self.damaged) == sum(self._counts.values()):
            raise InputError(next(iter(self.damaged.values())))
