"""Motion of markers on cubic Hermite polynomials between samples, and the times of its images."""

from __future__ import annotations

import math
import statistics
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from longreach_dynamics.errors import InputError, check_among, check_distinct
from longreach_dynamics.tables import Table, read_table

_SECOND = 1_000_000_000  # [ns]
# Number of intervals between samples from which the usual one is determined.
_USUAL = 25


def markers_from_message(message: Any, names: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Return positions (n, 3) [m] and velocities (n, 3) [m/s]; NaN for missing markers."""
    given = list(message.name)
    if not len(given) == len(message.position) == len(message.velocity):
        raise InputError(
            f'the message has {len(given)} names, {len(message.position)} positions and'
            f' {len(message.velocity)} velocities, allowed: as many of each'
        )
    rows = {
        name: (at.x, at.y, at.z, v.x, v.y, v.z)
        for name, at, v in zip(given, message.position, message.velocity, strict=True)
    }
    check_distinct('the message', given)
    for name, row in rows.items():
        if not all(map(math.isfinite, row)):
            raise InputError(f'the message has {list(row)} for {name}, allowed: finite numbers')
    unknown = (math.nan,) * 6
    table = np.array([rows.get(name, unknown) for name in names]).reshape(-1, 6)
    return table[:, :3], table[:, 3:]


def _between(
    span: float, share: float, first: tuple[np.ndarray, ...], last: tuple[np.ndarray, ...]
) -> tuple[np.ndarray, np.ndarray]:
    """Return position and velocity on the cubic Hermite polynomial between two samples."""
    s = share
    (p0, v0), (p1, v1) = first, last
    rise = p1 - p0
    position = (
        p0 + s * s * (3.0 - 2.0 * s) * rise + span * s * (1.0 - s) * ((1.0 - s) * v0 - s * v1)
    )
    velocity = (
        6.0 * s * (1.0 - s) * rise / span
        + (1.0 - s) * (1.0 - 3.0 * s) * v0
        + s * (3.0 * s - 2.0) * v1
    )
    return position, velocity


class MarkerPath:
    """Motion of markers: increasing times (K,) [s], positions (K, n, 3) [m], velocities [m/s]."""

    def __init__(
        self,
        names: Sequence[str],
        times: np.ndarray,
        positions: np.ndarray,
        velocities: np.ndarray | None = None,
    ) -> None:
        self.names = tuple(names)
        self.times = np.array(times, dtype=np.float64)
        self._positions = np.array(positions, dtype=np.float64)
        if velocities is None and self.times.size < 2:
            velocities = np.zeros_like(self._positions)
        elif velocities is None:
            # Of parabolas through neighbouring samples.
            order: Literal[1, 2] = 2 if self.times.size > 2 else 1
            velocities = np.gradient(self._positions, self.times, axis=0, edge_order=order)
        self._velocities = np.array(velocities, dtype=np.float64)
        for values in (self.times, self._positions, self._velocities):
            if not np.isfinite(values).all():
                raise InputError('path has values that are not finite, allowed: finite numbers')
        if (np.diff(self.times) <= 0.0).any():
            raise InputError('times of the path do not increase; sort them, and remove duplicates')

    @classmethod
    def from_csv(cls, path: str | Path) -> MarkerPath:
        """Read columns time, NAME.x, NAME.z, also NAME.y, and NAME.vx, .. for all or none."""
        table = read_table(path)
        names = list(dict.fromkeys(c.rpartition('.')[0] for c in table if c != 'time'))
        known = {f'{name}.{what}' for name in names for what in ('x', 'y', 'z', 'vx', 'vy', 'vz')}
        for column in table:
            if column != 'time' and (column not in known or column.startswith('.')):
                raise InputError(
                    f'{table.file}: column {column} is unknown, allowed: time, NAME.x, NAME.y,'
                    ' NAME.z, NAME.vx, NAME.vy, NAME.vz'
                )
        if not names:
            raise InputError(f'{table.file}: no marker, allowed: columns NAME.x and NAME.z')
        moving = any(name.rpartition('.')[2] in ('vx', 'vy', 'vz') for name in table)
        velocities = _vectors(table, names, 'v') if moving else None
        return cls(names, table['time'], _vectors(table, names, ''), velocities)

    def at(self, time: float) -> tuple[np.ndarray, np.ndarray]:
        """Return positions (n, 3) [m] and velocities (n, 3) [m/s] at a time [s]."""
        first, last = self.times[0], self.times[-1]
        # Tolerance for rounding errors of accumulated times.
        slack = 1e-9 + 4.0 * np.spacing(max(abs(first), abs(last)))
        if not first - slack <= time <= last + slack:
            allowed = f'[{first:.13g}, {last:.13g}] s'
            raise InputError(f'time = {time:.13g} s, allowed for this path: {allowed}')
        if self.times.size == 1:
            return self._positions[0].copy(), self._velocities[0].copy()
        k = int(np.clip(np.searchsorted(self.times, time, 'right') - 1, 0, self.times.size - 2))
        span = float(self.times[k + 1] - self.times[k])
        share = min(max((time - float(self.times[k])) / span, 0.0), 1.0)
        return _between(
            span,
            share,
            (self._positions[k], self._velocities[k]),
            (self._positions[k + 1], self._velocities[k + 1]),
        )

    def of(self, names: Sequence[str]) -> MarkerPath:
        """Return the path of some markers, in the given order."""
        for name in names:
            check_among(
                'marker of the path', name, self.names, '; columns are NAME.x, NAME.y, NAME.z'
            )
        index = [self.names.index(name) for name in names]
        return MarkerPath(names, self.times, self._positions[:, index], self._velocities[:, index])

    def moved(self, name: str, offset: np.ndarray) -> MarkerPath:
        """Return the path with the positions of a marker moved by an offset (3,) [m]."""
        positions = self._positions.copy()
        positions[:, self.names.index(name)] += offset
        return MarkerPath(self.names, self.times, positions, self._velocities)


def _vectors(table: Table, names: Sequence[str], what: str) -> np.ndarray:
    zero = np.zeros_like(table['time'])
    columns = []
    for name in names:
        x, y, z = (f'{name}.{what}{axis}' for axis in 'xyz')
        outer = table.stack([x, z])
        columns.append(np.column_stack([outer[:, 0], table.get(y, zero), outer[:, 1]]))
    return np.stack(columns, axis=1)


class Frame(NamedTuple):
    """Positions and velocities of the markers at the time of one image."""

    number: int
    stamp: int  # middle of the exposure [ns]
    positions: np.ndarray  # (n, 3) [m]
    velocities: np.ndarray  # (n, 3) [m/s]


class FrameTimes:
    """Images at k / rate [Hz] + offset [s] between samples of the truth, as these arrive."""

    def __init__(self, rate: float, offset: float = 0.0) -> None:
        self._rate = rate
        self._offset = round(offset * _SECOND)
        self.missed = 0  # missing samples of the truth
        self._latest: tuple[int, np.ndarray, np.ndarray] | None = None
        self._spans: deque[int] = deque(maxlen=_USUAL)

    def stamp(self, number: int) -> int:
        """Return the time of an image [ns]."""
        return round(number * _SECOND / self._rate) + self._offset

    def number_after(self, stamp: int) -> int:
        """Return the number of the first image after a time [ns]."""
        number = max(0, math.floor((stamp - self._offset) * self._rate / _SECOND))
        while self.stamp(number) <= stamp:
            number += 1
        return number

    def add(self, stamp: int, positions: np.ndarray, velocities: np.ndarray) -> list[Frame]:
        """Add a sample and return the images up to it; an older one resets the time."""
        latest, self._latest = self._latest, (stamp, positions, velocities)
        if latest is not None and stamp < latest[0]:
            self._spans.clear()
            latest = None
        if latest is None:
            number = self.number_after(stamp - 1)
            exact = self.stamp(number) == stamp
            return [Frame(number, stamp, positions, velocities)] if exact else []
        span = stamp - latest[0]
        if span == 0:
            return []
        self._spans.append(span)
        # The median is not affected by a single short interval.
        self.missed += max(0, round(span / statistics.median_high(self._spans)) - 1)
        frames = []
        number = self.number_after(latest[0])
        while self.stamp(number) <= stamp:
            share = (self.stamp(number) - latest[0]) / span
            motion = _between(span / _SECOND, share, latest[1:], (positions, velocities))
            frames.append(Frame(number, self.stamp(number), *motion))
            number += 1
        return frames
