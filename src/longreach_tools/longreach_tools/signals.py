"""
Signals of a recording over time: numbers of its messages by topic and field.

Time is that of the stamps in the messages' headers. Messages without stamp get the time at which
they were recorded, converted to the clock of the stamps where the two differ. Where simulation
time began anew, as at a reset of the plant, the signals of all topics are those since then.
"""

from __future__ import annotations

import functools
import math
import types
import warnings
from array import array
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from longreach_dynamics.errors import InputError
from longreach_machine import MachineSpec
from longreach_machine.runs import Column, Columns, Run
from longreach_tools.bag import Bag, absolute_name, open_bag
from longreach_tools.bag._reading import messages_of, stamp_readers, store_of
from longreach_tools.bag._stamps import BEGINNING, is_wall_clock, stamp_reader
from longreach_tools.bag._stamps import NANOSECONDS as NANOSECONDS
from longreach_tools.fields import LONGEST, Signal, near_names, numeric_fields, read_field

if TYPE_CHECKING:
    from rosbags.typesys.store import Typestore


class TopicData(NamedTuple):
    """Samples of a topic in the order of time."""

    time: np.ndarray  # (samples,) of int64 [ns]
    values: dict[str, np.ndarray]  # (samples,) by field; NaN where a message does not have it
    # Of fields that some messages do not have: which have it (samples,).
    lacking: Mapping[str, np.ndarray] = types.MappingProxyType({})

    def samples(self, field: str) -> tuple[np.ndarray, np.ndarray]:
        """Return stamps [ns] and values of the messages that have a field, both (n,)."""
        has = self.lacking.get(field, slice(None))
        return self.time[has], self.values[field][has]

    def at(self, time: np.ndarray) -> TopicData:
        """Return the samples at some of the stamps; of equal ones the last."""
        if np.array_equal(time, self.time):
            return self
        rows = np.searchsorted(self.time, time, side='right') - 1
        return TopicData(time, {name: values[rows] for name, values in self.values.items()})


class Restart(NamedTuple):
    """Where simulation time last began anew; by default nowhere."""

    before: int = -1  # bag time of the last message before [ns]
    after: int = 0  # bag time of the first message after it [ns]
    stamp: int = 0  # between the stamps of the two [ns]

    def keeps(self, time: Any, stamp: Any) -> Any:
        """Return whether messages with a bag time and a stamp [ns] are those since then."""
        return (time >= self.after) | ((time >= self.before) & (stamp < self.stamp))


class Recording(NamedTuple):
    """Signals by topic, since time last began anew."""

    topics: dict[str, TopicData]
    notes: tuple[str, ...]  # what was assumed about times, and what cannot be read
    restart: Restart


class _Reader:
    """Collects fields of a topic; one that is no number stands for all below it, '' for all."""

    def __init__(self, bag: Bag, name: str, wanted: Iterable[str], store: Typestore) -> None:
        self.typename = bag.topics[name].typename
        self._bag, self._name = bag, name
        self._stamp = stamp_reader(self.typename, store)
        self.bag_time, self.stamps = array('q'), array('q')
        # What a field of the request is: unknown until a message has it.
        self._is_number: dict[str, bool | None] = dict.fromkeys(wanted)
        self._known: dict[str, None] = {}
        self._long: set[str] = set()
        # Rows and numbers by field.
        self._found: dict[str, tuple[array[int], array[float]]] = {
            field: (array('q'), array('d')) for field in self._is_number
        }

    def add(self, time: int, message: Any, data: bytes) -> None:
        """Add a message with its time of recording [ns] and its CDR bytes."""
        stamp = self._stamp(data) if self._stamp else None
        row = len(self.bag_time)
        self.bag_time.append(time)
        self.stamps.append(-1 if stamp is None else stamp)
        everything: dict[str, float] | None = None
        for field, is_number in self._is_number.items():
            if is_number is not False and field:
                try:
                    number = read_field(message, field)
                except InputError:
                    pass
                else:
                    self._is_number[field] = True
                    if number is not None:
                        self._add(field, row, number)
                    continue
            if everything is None:
                everything = numeric_fields(message, self._long)
                self._known |= dict.fromkeys(everything)
            for name in [name for name in everything if is_below(name, field)]:
                self._is_number[field] = False
                self._add(name, row, everything[name])

    def _add(self, field: str, row: int, number: float) -> None:
        """Add a number of the message of a row."""
        rows, numbers = self._found.setdefault(field, (array('q'), array('d')))
        if not rows or rows[-1] != row:
            rows.append(row)
            numbers.append(number)

    def shortened(self) -> list[str]:
        """Return the arrays that are found in some messages, and are too long in others."""
        return sorted(
            one for one in self._long if any(is_below(name, one) for name in self._found)
        )

    def data(self, time: np.ndarray, begin: int) -> TopicData:
        """Return the numbers by field from message ``begin`` on; times (messages,) [ns]."""
        for field, is_number in self._is_number.items():
            if is_number is None:
                has = near_names(field, self._known) if self._known else ''
                what = f'no numeric field {field}' if field else 'no numeric field'
                raise InputError(
                    f'{self._bag.path}: {self._name} ({self.typename}) has {what}'
                    + (f'; similar: {has}' if has else '')
                )
        order = begin + np.argsort(time[begin:], kind='stable')
        result: dict[str, np.ndarray] = {}
        lacking: dict[str, np.ndarray] = {}
        for wanted, is_number in self._is_number.items():
            for field, (rows, numbers) in self._found.items():
                if field == wanted if is_number else is_below(field, wanted):
                    values = np.full(len(time), math.nan)
                    values[np.array(rows)] = numbers
                    if is_number or not np.isnan(values).all():
                        result[field] = values[order]
                        present = np.isin(order, np.array(rows))
                        if not present.all():
                            lacking[field] = present
        return TopicData(time[order], result, lacking)


def is_below(field: str, above: str) -> bool:
    """Return whether a field is part of another."""
    return not above or field.startswith((f'{above}.', f'{above}['))


def signals_of(column: Column, space: str) -> list[Signal]:
    """Return the signals of which a machine's column is made, in a namespace."""
    if not column.sources:
        raise ValueError(f'{column.name} is not in any message')
    found = []
    for one in column.sources:
        # The name of an entry follows the first part of the field.
        head, dot, tail = one.field.partition('.')
        entry = f'[{one.name}]' if one.name else ''
        found.append(Signal(absolute_name(one.topic, space), f'{head}{entry}{dot}{tail}'))
    return found


def column_of(
    topics: Mapping[str, TopicData], column: Column, space: str
) -> tuple[np.ndarray, np.ndarray]:
    """Return times [ns] and values of a column, at the times that all its topics have (n,)."""
    signals = signals_of(column, space)
    time = common_times([topics[one.topic] for one in signals])
    found = [topics[one.topic].at(time).values.get(one.field) for one in signals]
    table = np.stack([np.full(len(time), math.nan) if v is None else v for v in found], axis=1)
    return time, np.asarray(column.of(table), dtype=float)


def common_times(topics: Iterable[TopicData]) -> np.ndarray:
    """Return the times [ns] that all topics have (n,)."""
    times = {id(one): one.time for one in topics}
    # One topic may repeat a stamp.
    return np.unique(functools.reduce(np.intersect1d, times.values()))


def find_topic(bag: Bag, name: str) -> str:
    """Return the full name of a topic of a recording, given in full or by its last part."""
    if absolute_name(name) in bag.topics:
        return absolute_name(name)
    ends = [topic for topic in bag.topics if topic.endswith(f'/{name}')]
    if len(ends) == 1:
        return ends[0]
    if ends:
        raise InputError(f'{bag.path}: several topics {name}: {", ".join(ends)}; give one in full')
    similar = near_names(name, bag.topics) or 'none, it is an empty recording'
    raise InputError(
        f'{bag.path}: no topic {absolute_name(name)}; similar: {similar}; '
        f'longreach plot {bag.path} --list shows all'
    )


def read_signals(path: str | Path, signals: Sequence[Signal]) -> Recording:
    """Read signals of a recording."""
    with open_bag(path) as bag:
        if not bag.message_count:
            raise InputError(f'{path}: no messages: an empty recording')
        wanted: dict[str, list[str]] = {}
        for signal in signals:
            wanted.setdefault(find_topic(bag, signal.topic), []).append(signal.field)
        for name in wanted:
            if not bag.topics[name].count:
                raise InputError(f'{path}: {name} was recorded without a message')
        stores = store_of(bag, list(wanted))
        readers = {n: _Reader(bag, n, fields, stores[n]) for n, fields in wanted.items()}
        for name, time, message, data in messages_of(bag, stores):
            readers[name].add(time, message, data)
        notes = [f'{path}: {bag.problem}; {bag.message_count} messages read'] * bool(bag.problem)
        clock = _clock_of(bag, readers)
        times = _times(readers, clock, notes)
        received = {n: np.frombuffer(r.bag_time, dtype=np.int64) for n, r in readers.items()}
        alone = [name for name in readers if not bag.topics[name].is_shared]
        restart = last_restart([clock, *((received[name], times[name]) for name in alone)])
        topics, left_out, gone = {}, 0, ''
        for name, reader in readers.items():
            kept = restart.keeps(received[name], times[name])
            begin = int(kept.argmax()) if kept.any() else len(kept)
            topics[name] = reader.data(times[name], begin)
            left_out += begin
            if begin == len(kept):
                gone += f'; {name} has none since'
            late = int((np.diff(times[name][begin:]) < 0).sum())
            notes += [
                f'{name}: messages with more than {LONGEST} entries of {array} are left out; give'
                f' the entries, such as {array}[0]'
                for array in reader.shortened()
            ]
            if late and name in alone and not is_wall_clock(times[name].max()):
                notes.append(f'{name}: {late} of {len(kept)} messages were late; sorted by stamp')
        if left_out:
            notes.append(f'{path}: time began anew; {left_out} messages before are left out{gone}')
        return Recording(topics, tuple(notes), restart)


def read_run(
    spec: MachineSpec[Any, Any, Any],
    bag: str | Path,
    namespace: str,
    machine: Any,
    columns: Columns | None = None,
) -> Run[Any]:
    """Return a recorded run of a machine, without columns that it may lack and lacks."""
    columns = (columns or spec.columns(machine)).recorded
    with open_bag(bag) as recording:
        lacking = {absolute_name(topic, namespace) for topic in spec.optional_topics}
        lacking -= {*recording.topics}
    columns = Columns(
        (columns[0], *(c for c in columns[1:] if signals_of(c, namespace)[0].topic not in lacking))
    )
    table = read_columns(bag, namespace, columns, spec.name)
    return spec.recorded_run(machine, columns, table)


def read_columns(
    bag: str | Path, namespace: str, columns: Sequence[Column], machine: str
) -> np.ndarray:
    """Return a table of columns, first time [s], at stamps of all topics; InputError: none."""
    wanted = [signal for column in columns[1:] for signal in signals_of(column, namespace)]
    recording = read_signals(bag, list(dict.fromkeys(wanted)))
    for note in recording.notes:
        warnings.warn(note, stacklevel=2)
    for topic, field in wanted:
        if field in recording.topics[topic].lacking:
            raise InputError(
                f'{bag}: {topic} has not always {field}; give the {machine} file of the run'
            )
    time = common_times(recording.topics.values())
    if not len(time):
        counts = ', '.join(f'{name}: {len(one.time)}' for name, one in recording.topics.items())
        raise InputError(
            f'{bag} has no run of the {machine} in namespace /{namespace.strip("/")}: messages'
            f' with equal stamps on all topics are required; found {counts}'
        )
    for name, one in recording.topics.items():
        if repeated := len(one.time) - len(np.unique(one.time)):
            text = f'{repeated} messages of {name} repeat a stamp; of equal ones the last counts'
            warnings.warn(text, stacklevel=2)
    rows = {name: one.at(time) for name, one in recording.topics.items()}
    found = [column_of(rows, column, namespace)[1] for column in columns[1:]]
    return np.column_stack([time / 1e9, *found])


def last_restart(topics: Iterable[tuple[np.ndarray, np.ndarray]]) -> Restart:
    """Return where time last began anew, as topics show by their bag times and stamps [ns]."""
    given, found = list(topics), []
    begin = min((int(stamps.min()) for _, stamps in given if len(stamps)), default=0)
    for time, stamps in given:
        for row in restarts(stamps, begin)[-1:].tolist():
            middle = (stamps[row] + stamps[row - 1]) // 2
            found.append(Restart(int(time[row - 1]), int(time[row]), int(middle)))
    if not found:
        return Restart()
    # A topic with few messages shows it late.
    last = max(found)
    after = min((one.after for one in found if one.after >= last.before), default=last.after)
    return last._replace(after=max(after, last.before + 1))


def restarts(stamps: np.ndarray, begin: int) -> np.ndarray:
    """Return where simulation time [ns] began anew, from ``begin``; late messages are no such."""
    if not len(stamps) or is_wall_clock(stamps.max()):
        return np.empty(0, dtype=int)
    since = stamps - begin
    return np.flatnonzero(since[1:] < since[:-1] / 2) + 1


def never_set(stamps: np.ndarray, clock: np.ndarray) -> np.ndarray:
    """
    Return which stamps [ns] were never set: zeros within a run.

    One begins where ``clock`` [ns] or the stamps after a zero begin, and where stamps return.
    """
    zeros, others = np.flatnonzero(stamps == 0), np.flatnonzero(stamps)
    values = np.concatenate(([0], stamps[others], [0]))
    row = np.searchsorted(others, zeros)
    before, after = values[row], values[row + 1]
    now = clock[zeros]
    # Of a topic that is received late only its own stamps show where it begins.
    begins = (now < BEGINNING) | (
        (before == 0) & (after > 0) & (after < np.maximum(BEGINNING, now / 2))
    )
    if is_wall_clock(int(stamps.max(initial=0))) or (len(zeros) > 1 and not len(others)):
        begins[:] = False
    result = np.zeros(len(stamps), bool)
    result[zeros] = ~np.where((before > 0) & (after > 0), after <= before / 2, begins)
    return result


def _times(
    readers: dict[str, _Reader], clock: tuple[np.ndarray, np.ndarray], notes: list[str]
) -> dict[str, np.ndarray]:
    """Return the times of all messages [ns] by topic; add a note where they are not stamps."""
    times = {}
    before, after = clock
    for name, reader in readers.items():
        stamps = np.frombuffer(reader.stamps, dtype=np.int64).copy()
        received = np.frombuffer(reader.bag_time, dtype=np.int64)
        now = received
        if len(after):
            # Relative to the first, because float has too few digits for wall time in ns.
            moved = np.interp(received - before[0], before - before[0], after - after[0])
            now = np.rint(moved).astype(np.int64) + after[0]
        without = (stamps < 0) | never_set(stamps, now)
        if len(after):
            # Such as of a joystick that knows nothing of the simulation.
            without |= is_wall_clock(stamps) != is_wall_clock(int(after[-1]))
        if without.any():
            how = 'kept'
            if len(after) and (
                is_wall_clock(int(received[0])) != is_wall_clock(int(after[-1]))
                or len(restarts(after, int(after.min())))
            ):
                how, received = 'converted to the clock of the stamps', now
            stamps[without] = received[without]
            count = int(without.sum())
            few = '' if count == len(stamps) else f'{count} of {len(stamps)} messages of '
            notes.append(f'{few}{name}: no stamp; the time of recording is used ({how})')
        times[name] = stamps
    return times


def _clock_of(bag: Bag, readers: dict[str, _Reader]) -> tuple[np.ndarray, np.ndarray]:
    """Return times of recording and stamps [ns] of the topic with most stamps, both (samples,)."""
    # One of the machines that are read, where they have any: others may have another clock.
    spaces = tuple({f'{name.rpartition("/")[0]}/' for name in readers})
    stores = store_of(bag, list(bag.topics), missing_is_error=False, repair=True)
    stamped = stamp_readers(bag, stores)
    table = np.empty((0, 2), dtype=np.int64)
    if stamped:
        # Not one of images, which would all be read from the disk.
        best = max(
            (bag.topics[name] for name in stamped),
            key=lambda one: (
                not one.is_shared,
                one.name.startswith(spaces),
                not one.typename.endswith('Image'),
                one.count,
            ),
        ).name
        if best in readers:
            table = np.column_stack((readers[best].bag_time, readers[best].stamps))
        else:
            pairs = [(time, stamped[best](data)) for _, time, data in bag.messages([best])]
            found = [(time, -1 if stamp is None else stamp) for time, stamp in pairs]
            table = np.array(found, dtype=np.int64).reshape(-1, 2)
        table = table[table[:, 1] >= 0]
    table = table[~never_set(table[:, 1], np.zeros(len(table)))]
    return table[:, 0], table[:, 1]
