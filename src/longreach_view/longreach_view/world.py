"""What is known of machines: namespaces with joint states, descriptions, estimates of markers."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from longreach_dynamics.errors import InputError
from longreach_machine.description import Robot, parse_description
from longreach_view.drawing import TYPES, Drawing

# Without a sample for this long a machine is stale [s of wall time].
STALE = 1.0
# A sample that is older than the last one by at most this has come late [s].
_LATE = 0.5
# Over this time speed and rate are measured [s of wall time].
_SPEED_WINDOW = 2.0
# Values of a signal that are kept live: the most seconds of a chart, 60, at 1000 Hz.
_CAPACITY = 60_000
# Flags of messages, each with what is said when it becomes true.
_FLAGS = {'brake': 'brake closed', 'emergency_mode': 'emergency'}
# Last positions of a marker, and events of a machine, that are kept.
_TRACK, EVENTS = 300, 1000
# Of topics that are not plotted, names of numbers are looked for this often [s].
_LOOK = 1.0

# Stamps from here on are dates, as in recordings; they are shown since the first one [s].
_DATE = 1e9

# Published once or seldom, perhaps before its machine is known.
_ONCE = ('InertiaStamped', 'PoseStamped')


def begins_anew(time: float, last: float) -> bool:
    """Return whether a stamp before the last one [s] is one after a reset; others come late."""
    return time < last and (time < last - _LATE or time < 0.5 * last)


def is_of_the_present(typename: str, stamp: float | None) -> bool:
    """Return whether a stamp of 0 [s] means now, as the definition of the type says."""
    return stamp == 0.0 and typename.endswith('/ValveCommand')


Fields = Callable[[Any], Mapping[str, float]]


class Sample(NamedTuple):
    """A message of a topic."""

    topic: str
    typename: str
    message: Any
    stamp: float | None  # [s], None for a type without a stamp
    lost: int = 0  # messages of the topic lost so far
    begins: bool = False  # whether it is the first one of its topic after a reset


class Line(NamedTuple):
    """A number that is plotted, ``/topic.field``, or what follows from fields of a topic."""

    signal: str
    label: str
    wanted: bool = False  # a set point
    fields: tuple[str, ...] = ()
    function: Callable[[np.ndarray], np.ndarray] | None = None  # (1, fields) -> (1,)


class Series:
    """The latest values of a signal over time."""

    def __init__(self, capacity: int) -> None:
        self._data = np.empty((2, 2 * capacity))
        self._capacity, self._begin, self._end = capacity, 0, 0
        self.is_held = False  # a value holds until the next one, however late that is

    def append(self, time: float, value: float) -> None:
        """Add a value, but not one that comes late; a reset begins the series anew."""
        if begins_anew(time, self.last):
            self._begin = self._end = 0
        elif time < self.last:
            return
        if self._end == self._data.shape[1]:
            kept = self._data[:, self._end - self._capacity :].copy()
            self._data[:, : self._capacity] = kept
            self._begin, self._end = 0, self._capacity
        self._data[:, self._end] = time, value
        self._end += 1
        self._begin = max(self._begin, self._end - self._capacity)

    def window(self, begin: float, end: float) -> np.ndarray:
        """Return times and values in [begin, end], shape (2, K)."""
        held = self._data[:, self._begin : self._end]
        low, high = np.searchsorted(held[0], [begin, np.nextafter(end, math.inf)])
        return held[:, low:high]

    @property
    def last(self) -> float:
        """Time of the last value, -inf without one."""
        return float(self._data[0, self._end - 1]) if self._end > self._begin else -math.inf


class Estimate(NamedTuple):
    """A measured position of a marker [m], its covariance [m^2], and whether it is trusted."""

    position: np.ndarray
    covariance: np.ndarray
    tracked: bool


class Mounting(NamedTuple):
    """Pose of a camera's optical frame: the frame in which it is, position [m], (w, x, y, z)."""

    frame: str
    position: np.ndarray
    rotation: np.ndarray


class Lens(NamedTuple):
    """Field of view of a camera: height [rad], and width over height in pixels."""

    angle: float
    aspect: float


@dataclass
class Machine:
    """A machine; ``name`` is its namespace without slashes at the ends."""

    name: str
    robot: Robot | None = None
    problem: str = ''  # why it cannot be drawn
    version: int = 0  # changes with the robot description
    positions: dict[str, float] = field(default_factory=dict)  # of joints [rad or m]
    time: float = math.nan  # stamp of the last sample [s]
    heard: float = -math.inf  # when it came [s of wall time]
    halted: float = math.inf  # when it was paused or stepped here [s of wall time]; inf: it runs
    speed: float = math.nan  # simulation time over wall time
    flags: dict[str, bool] = field(default_factory=dict)
    load: float = math.nan  # mass of what it carries [kg], since [s]
    load_time: float = -math.inf
    # The last ones, (time [s], text): brake, emergency mode, loads.
    events: deque[tuple[float, str]] = field(default_factory=lambda: deque(maxlen=EVENTS))
    drawings: dict[str, Drawing] = field(default_factory=dict)  # by topic
    # Of markers by name, and their last positions, in a frame.
    estimates: dict[str, Estimate] = field(default_factory=dict)
    tracks: dict[str, deque[np.ndarray]] = field(default_factory=dict)
    estimate_frame: str = ''
    # Of cameras, by their namespaces.
    mountings: dict[str, Mounting] = field(default_factory=dict)
    lenses: dict[str, Lens] = field(default_factory=dict)
    losses: dict[str, int] = field(default_factory=dict)  # by topic
    latest: dict[str, Any] = field(default_factory=dict)  # messages by topic
    _times: deque[tuple[float, float]] = field(default_factory=deque)
    _text: str = ''

    @property
    def kind(self) -> str:
        """The name of the robot description, ``vision`` for estimates of markers, else empty."""
        if self.robot is not None:
            return self.robot.name
        return 'vision' if self.estimate_frame else ''

    @property
    def lost(self) -> int:
        """Number of lost messages."""
        return sum(self.losses.values())

    def describe(self, text: str) -> None:
        """Take a robot description; one that cannot be read is named in ``problem``."""
        if text == self._text:
            return
        self._text, self.version = text, self.version + 1
        try:
            self.robot, self.problem = parse_description(text), ''
        except InputError as error:
            self.robot, self.problem = None, str(error)
            return
        if self.robot.skipped:
            self.problem = f'without the meshes of {", ".join(self.robot.skipped)}'

    def note(self, stamp: float, now: float) -> None:
        """Note when a sample with a stamp came."""
        self.heard = now
        if stamp < self.time and not begins_anew(stamp, self.time):
            return
        if stamp < self.time:
            self._times.clear()
            for track in self.tracks.values():
                track.clear()
            while self.events and self.events[-1][0] > stamp:
                self.events.pop()
        self.time = stamp
        self._times.append((now, stamp))
        while now - self._times[0][0] > _SPEED_WINDOW:
            self._times.popleft()
        (began, first), (ended, last) = self._times[0], self._times[-1]
        if ended - began > 0.1 * _SPEED_WINDOW:
            self.speed = (last - first) / (ended - began)

    def mark(self, stamp: float | None, text: str) -> None:
        """Note an event; one without a stamp is of the present."""
        time = self.time if stamp is None else stamp
        if math.isfinite(time):
            while self.events and self.events[-1][0] > time + _LATE:
                self.events.pop()
            self.events.append((time, text))

    def still(self) -> None:
        """Forget the speed, when no samples come any more."""
        self._times.clear()
        self.speed = math.nan


class World:
    """All machines, and of each plotted signal the latest ``capacity`` numbers of ``fields``."""

    def __init__(self, fields: Fields, capacity: int = _CAPACITY) -> None:
        self._fields, self._capacity = fields, capacity
        self.machines: dict[str, Machine] = {}
        self.clock = math.nan
        # Of a replay, as stamps are shown [s]; live it is the stamp of what came last.
        self.present = math.nan
        self._epoch = math.nan
        self.clock_heard = -math.inf
        self._clock_moved = -math.inf
        # Of each topic the names of its numbers, as keys, and when they were looked for.
        self.catalogue: dict[str, dict[str, None]] = {}
        self._looked: dict[str, float] = {}
        self.series: dict[str, Series] = {}
        self._plotted: dict[str, list[Line]] = {}
        self._waiting: deque[Sample] = deque(maxlen=EVENTS)

    # --- messages ----------------------------------------------------------------------------

    def since(self, stamp: float) -> float:
        """Return a stamp as it is shown [s]: dates count from the first one."""
        if not stamp >= _DATE:
            return stamp
        if math.isnan(self._epoch):
            self._epoch = stamp
        return stamp - self._epoch

    def take(self, sample: Sample, now: float) -> None:
        """Take a message that came at wall time ``now`` [s]."""
        if sample.stamp is not None:
            sample = sample._replace(stamp=self.since(sample.stamp))
        topic, message = sample.topic, sample.message
        name, _, last = topic.strip('/').rpartition('/')
        kind = sample.typename.rpartition('/')[2]
        if kind == 'Clock':
            time = message.clock.sec + 1e-9 * message.clock.nanosec
            if time != self.clock:
                self._clock_moved = now
            self.clock, self.clock_heard = time, now
            return
        is_machine = last in ('joint_states', 'robot_description') or kind == 'MarkerEstimates'
        if is_machine and name not in self.machines:
            self.machines[name] = Machine(name)
            # What came before its machine was known.
            waiting, self._waiting = self._waiting, deque(maxlen=EVENTS)
            for earlier in waiting:
                self.take(earlier, now)
        machine = self._owner(name)
        if is_of_the_present(sample.typename, sample.stamp):
            sample = sample._replace(stamp=None)
        if machine is not None:
            if kind != 'MarkerArray':
                # Of drawings only the latest counts.
                machine.losses[topic] = sample.lost
            self._take_for(machine, sample, last, kind, now)
        elif kind in _ONCE:
            self._waiting.append(sample)
        self._plot(topic, message, sample.stamp, machine)

    def owner_of(self, signal: str) -> Machine | None:
        """Return the machine to which a signal belongs, or None."""
        return self._owner(_parent(signal.partition('.')[0]))

    def _owner(self, name: str) -> Machine | None:
        """Return the machine in whose namespace a topic is, or None."""
        while name not in self.machines:
            name, mark, _ = name.rpartition('/')
            if not mark:
                return self.machines.get(name)
        return self.machines[name]

    def _take_for(
        self, machine: Machine, sample: Sample, last: str, kind: str, now: float
    ) -> None:
        """Take a message of a machine."""
        message = machine.latest[sample.topic] = sample.message
        if last == 'robot_description' and kind == 'String':
            machine.describe(message.data)
        elif last == 'joint_states' and kind == 'JointState':
            if sample.stamp is not None:
                machine.note(sample.stamp, now)
            found = zip(message.name, message.position, strict=False)
            machine.positions = {name: float(p) for name, p in found if math.isfinite(p)}
        elif kind == 'MarkerArray':
            machine.drawings.setdefault(sample.topic, Drawing()).add(message)
            unknown = sorted({m.kind for m in message.markers} - set(TYPES))
            if unknown:
                machine.problem = f'{sample.topic}: markers of types {unknown} are not shown'
        elif kind == 'MarkerEstimates':
            if sample.stamp is not None and machine.robot is None:
                machine.note(sample.stamp, now)
            self._take_estimates(machine, message)
        elif last == 'pose' and kind == 'PoseStamped':
            place, turn = message.pose.position, message.pose.orientation
            machine.mountings[_parent(sample.topic)] = Mounting(
                message.header.frame_id,
                np.array([place.x, place.y, place.z]),
                np.array([turn.w, turn.x, turn.y, turn.z]),
            )
        elif last == 'camera_info' and kind == 'CameraInfo' and message.k[4] > 0.0:
            angle = 2.0 * math.atan2(0.5 * message.height, message.k[4])
            machine.lenses[_parent(sample.topic)] = Lens(angle, message.width / message.height)
        elif last == 'load' and kind == 'InertiaStamped':
            before, machine.load = machine.load, float(message.inertia.m)
            since, machine.load_time = machine.load_time, sample.stamp or 0.0
            is_first = math.isnan(before) or sample.begins or machine.load_time < since
            if before != machine.load and not is_first:
                change = 'attached' if machine.load > before else 'released'
                machine.mark(sample.stamp, f'load {change}')
        for flag, text in _FLAGS.items():
            value = getattr(message, flag, None)
            # As Python's bool, or as numpy's.
            if kind != 'MarkerArray' and value is not None and str(value) in ('True', 'False'):
                before = machine.flags.get(flag, True)
                machine.flags[flag] = bool(value)
                if value and not before:
                    machine.mark(sample.stamp, text)

    @staticmethod
    def _take_estimates(machine: Machine, message: Any) -> None:
        """Take positions of markers."""
        machine.estimate_frame = message.header.frame_id
        machine.estimates = {}
        for estimate in message.estimates:
            point = estimate.in_plane
            position = np.array([point.x, point.y, point.z])
            covariance = np.array(estimate.in_plane_covariance).reshape(3, 3)
            if not (np.isfinite(position).all() and np.isfinite(covariance).all()):
                continue
            tracked = estimate.status == 0
            machine.estimates[estimate.name] = Estimate(position, covariance, tracked)
            machine.tracks.setdefault(estimate.name, deque(maxlen=_TRACK)).append(position)

    # --- signals -----------------------------------------------------------------------------

    def _plot(
        self, topic: str, message: Any, stamp: float | None, machine: Machine | None
    ) -> None:
        """Keep the values of signals, and the names of all numbers of a topic."""
        is_held = stamp is None
        if stamp is None:
            # Such as a set point, which has no header: it holds from now on.
            stamp = machine.time if machine is not None else self.clock
        looked = self._looked.get(topic)
        if (
            looked is not None
            and not self.is_plotted(topic)
            and not abs(stamp - looked) >= _LOOK  # NaN: without a time once only
        ):
            return
        self._looked[topic] = stamp
        values = self._fields(message)
        # Names may come later, such as those of markers.
        self.catalogue.setdefault(topic, {}).update(dict.fromkeys(values))
        for line in self._plotted.get(topic, ()) if math.isfinite(stamp) else ():
            value = values.get(line.signal.partition('.')[2])
            if line.function is not None:
                row = [[values.get(name, math.nan) for name in line.fields]]
                value = float(line.function(np.array(row))[0])
            if value is not None:
                series = self.series[line.signal]
                series.is_held |= is_held
                series.append(stamp, value)

    def is_plotted(self, topic: str) -> bool:
        """Return whether a signal of a topic is plotted."""
        return topic in self._plotted

    def plot(self, lines: Iterable[Line]) -> None:
        """Keep the values of these lines, and of no others."""
        before, self.series, self._plotted = self.series, {}, {}
        for line in lines:
            if line.signal not in self.series:
                # Topics have no points in their names.
                self._plotted.setdefault(line.signal.partition('.')[0], []).append(line)
                self.series[line.signal] = before.get(line.signal) or Series(self._capacity)

    def signals(self) -> list[str]:
        """Return the names of all signals that were seen."""
        return [f'{topic}.{name}' for topic, found in self.catalogue.items() for name in found]

    # --- state -------------------------------------------------------------------------------

    def is_paused(self, machine: Machine, now: float) -> bool:
        """Return whether a machine was paused here, or is silent while /clock stands still."""
        if machine.heard < machine.halted + STALE and machine.halted < math.inf:
            return True
        stands = now - self.clock_heard < STALE < now - self._clock_moved
        return stands and now - machine.heard > STALE

    def forget(self) -> None:
        """Forget what moved, as before a jump in a recording; descriptions and charts stay."""
        for signal in self.series:
            self.series[signal] = Series(self._capacity)
        for machine in self.machines.values():
            machine.time, machine.positions = math.nan, {}
            machine.still()
            machine.flags.clear()
            machine.load, machine.load_time = math.nan, -math.inf
            machine.events.clear()
            machine.estimates.clear()
            machine.tracks.clear()
            for drawing in machine.drawings.values():
                drawing.clear()


def _parent(topic: str) -> str:
    """Return the namespace of a topic."""
    return topic.strip('/').rpartition('/')[0]
