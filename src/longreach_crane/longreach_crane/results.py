"""Runs of the crane as tables."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from longreach_crane.diagnosis import Emergency
from longreach_crane.state import Command

__all__ = ['COLUMNS', 'Decision', 'Event', 'Result', 'events_of']

COLUMNS = (
    'time',
    'motor_force',
    'car_position',
    'car_velocity',
    'angle',
    'angular_velocity',
    'load_position',
    'command',
    'brake',
    'emergency',
)


class Event(NamedTuple):
    """Something that happened at a time [s]."""

    time: float
    name: str


class Decision(NamedTuple):
    """What the controller decided in one cycle."""

    time: float  # [s]
    command: Command
    emergency: Emergency


@dataclasses.dataclass(frozen=True)
class Result:
    """
    A simulation with the controller in the loop.

    Parameters
    ----------
    table : ndarray, shape (cycles + 1, 10)
        One row per control cycle at the instant of sampling, columns as in :data:`COLUMNS`;
        ``command``, ``brake`` and ``emergency`` are what was decided in that cycle.
    events : tuple of Event
        brake_engaged, brake_released, emergency, at the cycle that decided so.
    crossings : tuple of Event
        minimum_position, maximum_position: when the car passed a limit, in either direction,
        located between the cycles.
    evaluations : int
        Of the right-hand side.
    """

    table: np.ndarray
    events: tuple[Event, ...]
    crossings: tuple[Event, ...]
    evaluations: int

    def column(self, name: str) -> np.ndarray:
        """Return one column by its name, shape (cycles + 1,)."""
        return self.table[:, COLUMNS.index(name)]

    def summary(self) -> dict[str, Any]:
        """Return events, extrema over the cycles and final values as plain numbers."""
        last = dict(zip(COLUMNS, self.table[-1].tolist(), strict=True))
        return {
            'events': [event._asdict() for event in self.events],
            'crossings': [event._asdict() for event in self.crossings],
            'extrema': {
                'max_abs_angle': float(np.abs(self.column('angle')).max()),
                'max_car_position': float(self.column('car_position').max()),
                'min_car_position': float(self.column('car_position').min()),
            },
            'final': {
                name: last[name]
                for name in (
                    'time',
                    'car_position',
                    'car_velocity',
                    'angle',
                    'angular_velocity',
                    'load_position',
                )
            },
        }


def events_of(decisions: Iterable[Decision]) -> tuple[Event, ...]:
    """
    Return what changed from each cycle's decision to the next.

    Parameters
    ----------
    decisions : iterable of Decision
        In the order of time.
    """
    events = []
    before = Decision(0.0, Command(), Emergency.NONE)
    for now in decisions:
        if now.emergency and not before.emergency:
            events.append(Event(now.time, 'emergency'))
        if now.command.brake and not before.command.brake:
            events.append(Event(now.time, 'brake_engaged'))
        if before.command.brake and not now.command.brake:
            events.append(Event(now.time, 'brake_released'))
        before = now
    return tuple(events)
