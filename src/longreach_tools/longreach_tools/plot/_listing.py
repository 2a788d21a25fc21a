"""What is in a recording: every number with its unit, count and range."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from longreach_dynamics.errors import InputError
from longreach_tools.bag import Topic, open_bag
from longreach_tools.bag._reading import messages_of, stamp_readers, store_of
from longreach_tools.bag._stamps import NANOSECONDS
from longreach_tools.fields import numeric_arrays, numeric_fields
from longreach_tools.output import table
from longreach_tools.signals import never_set, restarts

from ._units import JOINT_STATES, Units, describe

# Drawings for viewers: their numbers are listed on request only.
_DRAWINGS = 'visualization_msgs/'


class _Range:
    """Count, least and greatest of the values of a field; unknown ones are not counted."""

    def __init__(self) -> None:
        self.count, self.least, self.greatest, self.longest = 0, math.inf, -math.inf, 0

    def add(self, least: float, greatest: float) -> None:
        """Add a number, or the least and the greatest of an array."""
        if math.isfinite(least):
            self.count += 1
            self.least, self.greatest = min(self.least, least), max(self.greatest, greatest)


def inventory(path: Path) -> dict[str, Any]:
    """Return the topics of a recording with the ranges of their numbers, for JSON."""
    with open_bag(path) as bag:
        if not bag.message_count:
            raise InputError(f'{path}: no messages: an empty recording')
        stores = store_of(bag, list(bag.topics), missing_is_error=False)
        readers = stamp_readers(bag, stores)
        ranges: dict[str, dict[str, _Range]] = {name: {} for name in bag.topics}
        times: dict[str, list[tuple[int, int]]] = {name: [] for name in bag.topics}
        for name, time, message, data in messages_of(bag, stores):
            stamp = readers[name](data) if name in readers else None
            times[name].append((time, -1 if stamp is None else stamp))
            for field, value in numeric_fields(message).items():
                ranges[name].setdefault(field, _Range()).add(value, value)
            for field, values in numeric_arrays(message).items():
                # Names of arrays end in brackets, so that they are not those of numbers.
                found = ranges[name].setdefault(f'{field}[]', _Range())
                found.longest = max(found.longest, values.size)
                known = values[np.isfinite(values.astype(float))]
                if known.size:
                    found.add(float(known.min()), float(known.max()))
        topics = dict(bag.topics)
        problem = bag.problem
    joints = [name for name, topic in topics.items() if topic.typename == JOINT_STATES]
    units = Units(describe(path, joints))
    return {
        'bag': str(path),
        'problem': problem or None,
        'topics': [
            {
                'name': name,
                'type': topic.typename,
                'messages': topic.count,
                **_span(times[name]),
                'readable': name in stores,
                'fields': [_entry(topic, f, r, units) for f, r in ranges[name].items()],
            }
            for name, topic in topics.items()
        ],
    }


def _span(times: list[tuple[int, int]]) -> dict[str, Any]:
    """Return times of messages for JSON, from those of recording and stamps [ns] (-1: none)."""
    if not times:
        return {'time': None, 'first_s': None, 'last_s': None, 'restarts': 0}
    received, stamps = np.array(times).T
    stamped = stamps[(stamps >= 0) & ~never_set(stamps, np.zeros(len(stamps)))]
    found = stamped if stamped.size else received
    return {
        'time': 'stamp' if stamped.size else None,
        'first_s': found.min() / NANOSECONDS,
        'last_s': found.max() / NANOSECONDS,
        'restarts': len(restarts(stamped, stamped.min())) if stamped.size else 0,
    }


def _entry(topic: Topic, field: str, found: _Range, units: Units) -> dict[str, Any]:
    """Return a field for JSON."""
    name = f'{field[:-1]}0..{found.longest - 1}]' if field.endswith('[]') else field
    return {
        'field': name,
        'unit': units.of(topic, field.removesuffix('[]')),
        'count': found.count,
        'min': found.least if found.count else None,
        'max': found.greatest if found.count else None,
    }


def inventory_table(found: dict[str, Any]) -> str:
    """Return an inventory as text: a block for each topic."""
    lines = []
    for topic in found['topics']:
        head = f'{topic["name"]}  {topic["type"]}, {topic["messages"]} messages'
        if topic['first_s'] is not None:
            head += f', {topic["first_s"]:.13g} to {topic["last_s"]:.13g} s'
            head += '' if topic['time'] else ' (time of recording: no stamp)'
        if topic['restarts']:
            head += ', time begins anew: plot takes the last part'
        if not topic['readable']:
            head += ', type not installed'
        lines += ['', head]
        if topic['type'].startswith(_DRAWINGS):
            lines.append('  drawings for viewers; their numbers are listed with --format json')
            continue
        rows = []
        for one in topic['fields']:
            ends = ('-' if one[key] is None else one[key] for key in ('min', 'max'))
            rows.append((f'  {one["field"]}', one['unit'], one['count'], *ends))
        if rows:
            lines.append(table(('  field', 'unit', 'count', 'min', 'max'), rows, left=1))
    return '\n'.join(lines[1:])
