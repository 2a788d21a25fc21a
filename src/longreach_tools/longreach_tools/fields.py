"""
Numbers in messages, by name.

A *field* is written like the access in Python, with names of entries in brackets:

``car_position``               a number or a flag (0 or 1)
``wrench.force.x``             of a message in the message
``position[car_joint]``        of an array, where the message, or one around it, has a list
                               ``name``, ``names`` or ``joint_names``
``estimates[tip].in_plane.x``  of a list of messages that have a name
``center[0]``                  of other arrays and lists: by index

Headers are no fields. A time or a duration is one field, in seconds. A *signal* is a topic and a
field, ``/crane/joint_states.position[car_joint]``; topics contain no dots. Messages may be those
of rclpy, or of a recording.
"""

from __future__ import annotations

import array
import difflib
import functools
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from longreach_dynamics.errors import InputError

LONGEST = 16
"""Arrays without names that are longer are not split into fields."""

_LABELS = ('name', 'names', 'joint_names')
_LABEL = re.compile(r'[^\[\]]+')
_STEP = re.compile(r'\.([A-Za-z]\w*)|\[([^\[\]]+)\]')
_SEQUENCES = (list, tuple, array.array, np.ndarray)
_NUMBERS = (bool, int, float, np.number, np.bool_)
_TIME = ('sec', 'nanosec')


class Signal(NamedTuple):
    """A topic, and a field of its messages; an empty field stands for all."""

    topic: str
    field: str

    def __str__(self) -> str:
        return f'{self.topic}.{self.field}' if self.field else self.topic


def parse_signal(text: str) -> Signal:
    """Return topic and field of ``TOPIC.field``, or of ``TOPIC`` alone."""
    topic, dot, field = text.partition('.')
    if not topic or (dot and not field) or (field and _steps(field) is None):
        raise InputError(
            f'signal {text!r}, allowed: TOPIC or TOPIC.field, such as'
            ' /crane/joint_states.position[car_joint]'
        )
    return Signal(topic, field)


def numeric_fields(message: Any, long: set[str] | None = None) -> dict[str, float]:
    """
    Return all numbers of a message by their fields, in the order of its definition.

    Arrays and lists without names that have more than :data:`LONGEST` entries are left out; the
    fields of such arrays are added to ``long``.
    """
    found: dict[str, float] = {}
    for field, value, labels in _leaves(message, '', ()):
        if labels is None:
            found[field] = float(value)
        elif labels or len(value) <= LONGEST:
            for label, number in zip(labels or range(len(value)), value, strict=True):
                found[f'{field}[{label}]'] = float(number)
        elif long is not None:
            long.add(field)
    return found


def numeric_arrays(message: Any) -> dict[str, np.ndarray]:
    """Return the arrays of numbers that :func:`numeric_fields` leaves out, by their fields."""
    return {
        field: np.asarray(value)
        for field, value, labels in _leaves(message, '', ())
        if labels is not None and not labels and len(value) > LONGEST
    }


def read_field(message: Any, field: str) -> float | None:
    """Return one field of a message; None for an entry that this message does not have."""
    steps = _steps(field)
    if steps is None:
        raise InputError(f'field {field!r}, allowed: such as position[car_joint] or force.x')
    value: Any = message
    labels: tuple[str, ...] = ()
    for attribute, label in steps:
        if attribute:
            fields = _fields(value.__class__)
            if attribute not in fields:
                raise _no_field(message, field)
            labels = _labels_of(value) or labels
            value = getattr(value, attribute)
            continue
        if not isinstance(value, _SEQUENCES):
            raise _no_field(message, field)
        own = _entry_labels(value, labels)
        # A name may be a number, and entries may come and go: not an index of another entry.
        if own or not label.isdecimal():
            place = own.index(label) if label in own else len(value)
        else:
            place = int(label)
        if place >= len(value):
            return None
        value = value[place]
    number = _number(value)
    if number is None:
        raise _no_field(message, field)
    return number


def near_names(name: str, known: Iterable[str], most: int = 5) -> str:
    """Return the known names most similar to one that is not, for an error message."""
    known = list(known)
    by_lower = {one.lower(): one for one in known}
    close = [by_lower[one] for one in difflib.get_close_matches(name.lower(), by_lower, most, 0.5)]
    containing = [one for one in known if name.lower() in one.lower() and one not in close]
    return ', '.join((close + containing)[:most] or known[:most])


def _no_field(message: Any, field: str) -> InputError:
    """Return the error for a field that a message does not have."""
    similar = near_names(field, numeric_fields(message)) or 'none, it has no numbers'
    return InputError(f'{field}: no numeric field of {type(message).__name__}; similar: {similar}')


@functools.lru_cache(maxsize=4096)
def _steps(field: str) -> tuple[tuple[str, str], ...] | None:
    """Return the accesses of a field, (attribute, '') or ('', entry); None for other text."""
    place = 0
    steps: list[tuple[str, str]] = []
    # The first access has no dot before its name.
    text = f'.{field}'
    while place < len(text):
        step = _STEP.match(text, place)
        if step is None or (not steps and not step[1]):
            return None
        steps.append((step[1] or '', step[2] or ''))
        place = step.end()
    return tuple(steps)


@functools.cache
def _fields(kind: Any) -> tuple[str, ...]:
    """Return the names of the fields of a class without header; empty for other classes."""
    # Classes of rclpy have a method; those of recordings are dataclasses with constants as well.
    if hasattr(kind, 'get_fields_and_field_types'):
        names = tuple(kind.get_fields_and_field_types())
    else:
        known = getattr(kind, '__dataclass_fields__', {}).values()
        names = tuple(one.name for one in known if not str(one.type).startswith('ClassVar'))
    return tuple(name for name in names if name != 'header')


def _number(value: Any) -> float | None:
    """Return a number, a flag, a byte, or a time in seconds; None for anything else."""
    if isinstance(value, _NUMBERS):
        return float(value)
    if isinstance(value, bytes) and len(value) == 1:
        return float(value[0])
    if _fields(value.__class__) == _TIME:
        return float(value.sec) + 1e-9 * float(value.nanosec)
    return None


def _labels_of(message: Any) -> tuple[str, ...]:
    """Return the names that a message gives to the entries of its arrays; empty without."""
    for field in _LABELS:
        if field in _fields(message.__class__):
            value = getattr(message, field)
            if isinstance(value, list) and value and isinstance(value[0], str):
                return _usable(tuple(value))
    return ()


@functools.lru_cache(maxsize=256)
def _usable(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return names that can be written in brackets and are unique; otherwise empty."""
    usable = len(set(names)) == len(names) and all(map(_LABEL.fullmatch, names))
    return names if usable else ()


def _entry_labels(values: Any, labels: tuple[str, ...]) -> tuple[str, ...]:
    """Return names of the entries of an array or list, empty without."""
    # Points of a trajectory follow each other, also when they are as many as its joints.
    if len(labels) == len(values) and not hasattr(next(iter(values), None), 'time_from_start'):
        return labels
    if isinstance(values, list):
        for field in ('name', 'child_frame_id'):
            names = [getattr(entry, field, None) for entry in values]
            if names and all(isinstance(name, str) for name in names):
                return _usable(tuple(names))
    return ()


def _leaves(
    message: Any, prefix: str, labels: tuple[str, ...]
) -> Iterator[tuple[str, Any, tuple[str, ...] | None]]:
    """Yield field, value and names of entries (or None) of each number of a message."""
    labels = _labels_of(message) or labels
    for name in _fields(message.__class__):
        value, field = getattr(message, name), prefix + name
        number = _number(value)
        if number is not None:
            yield field, number, None
        elif isinstance(value, _SEQUENCES):
            if not len(value):
                continue
            own = _entry_labels(value, labels)
            if _number(value[0]) is not None:
                yield field, value, own
            elif _fields(value[0].__class__) and (own or len(value) <= LONGEST):
                for label, entry in zip(own or range(len(value)), value, strict=True):
                    yield from _leaves(entry, f'{field}[{label}].', labels)
        elif _fields(value.__class__):
            yield from _leaves(value, f'{field}.', labels)
