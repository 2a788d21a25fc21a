"""Events: brake, emergency mode, loads, cylinders that stick (at a velocity of exactly 0)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from longreach_tools.bag import Bag
from longreach_tools.bag._reading import store_of
from longreach_tools.fields import Signal
from longreach_tools.signals import TopicData

from ._picture import Mark, Strip, spans
from ._units import JOINT_STATES, Units

# Flags by field of a message, with what a strip says, and whether it is an alarm.
_FLAGS = {
    'brake': ('brake', False),
    'emergency_mode': ('emergency', True),
}
# Shorter rests are not distinguished from a velocity that passes zero.
_LEAST_REST = 3
# More marks in one figure hide the curves.
_MOST_MARKS = 40


class Watched(NamedTuple):
    """A signal of a machine with events: kind flag, rest (velocities of all joints) or load."""

    kind: str
    signal: Signal
    space: str


def machine_space(bag: Bag, topic: str) -> str:
    """Return the namespace of the machine of a topic: the innermost with joint states."""
    own = space = topic.rpartition('/')[0]
    while space and f'{space}/joint_states' not in bag.topics:
        space = space.rpartition('/')[0]
    return space if f'{space}/joint_states' in bag.topics else own


def event_signals(bag: Bag, spaces: Collection[str]) -> list[Watched]:
    """Return the signals of machines in a recording that have events."""
    space_of = {name: machine_space(bag, name) for name, one in bag.topics.items() if one.count}
    names = [name for name, space in space_of.items() if space in spaces]
    found: dict[tuple[str, str], Watched] = {}
    for name, store in store_of(bag, names, missing_is_error=False).items():
        typename, space = bag.topics[name].typename, space_of[name]
        if typename == JOINT_STATES:
            found[name, 'rest'] = Watched('rest', Signal(name, 'velocity'), space)
        elif typename == 'geometry_msgs/msg/InertiaStamped' and name.endswith('/load'):
            found[name, 'load'] = Watched('load', Signal(name, 'inertia.m'), space)
        fields = {field for field, kind in store.fielddefs[typename][1] if _is_flag(kind)}
        for field in sorted(fields & set(_FLAGS)):
            # The same flag is in several topics of a machine; the first decides it.
            found.setdefault((space, field), Watched('flag', Signal(name, field), space))
    return list(found.values())


def _is_flag(kind: Any) -> bool:
    """Return whether a field of a type store is a single bool."""
    from rosbags.interfaces import Nodetype

    return bool(kind[0] == Nodetype.BASE and kind[1][0] == 'bool')


def events_of(
    watched: Sequence[Watched],
    topics: Mapping[str, TopicData],
    seconds: Callable[[np.ndarray], np.ndarray],
    units: Units,
) -> tuple[list[Strip], list[Mark]]:
    """Return strips and marks of the events."""
    strips: list[Strip] = []
    marks: list[Mark] = []
    several = len({one.space for one in watched}) > 1
    for kind, signal, space in watched:
        data = topics.get(signal.topic)
        if data is None:
            continue
        before = f'{space[1:]} ' if several and space else ''
        if kind == 'flag':
            label, alarm = _FLAGS[signal.field]
            time, values = data.samples(signal.field)
            found = spans(seconds(time), values > 0.0)
            strips.append(Strip(before + label, found, alarm, written=True))
            marks += [Mark(begin, before + label) for begin, _ in found]
        elif kind == 'load':
            time, values = data.samples(signal.field)
            changes = np.diff(values)
            for place in np.flatnonzero(changes).tolist():
                what = 'load attached' if changes[place] > 0.0 else 'load released'
                marks.append(Mark(float(seconds(time[place + 1])), before + what))
        else:
            for field in data.values:
                time, values = data.samples(field)
                joint = field.partition('[')[2].rstrip(']')
                of_joint = units.of_joint(signal.topic, joint)
                moves = field.startswith('velocity[') and of_joint and of_joint[0] == 'm'
                # At rest all the time: nothing sticks and nothing slips.
                if moves and not (values == 0.0).all():
                    rests = spans(seconds(time), values == 0.0, _LEAST_REST)
                    strips.append(Strip(f'{before}{joint} sticks', rests))
    marks.sort(key=lambda mark: mark.time)
    return strips, marks if len(marks) <= _MOST_MARKS else []
