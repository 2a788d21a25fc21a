"""
Scene of simulated cameras: markers and their motion, look of the pictures, occluders.

Positions are in the world frame [m]. A marker is a ring or a disc in the middle of a square card
of opposite brightness; its position is the centre of its circles. Grey levels are those of an
8-bit image without shading and with gain 1.

Between samples, markers move on cubic Hermite polynomials, which match positions and velocities of
the samples; the error is of fourth order in the time between them.
"""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import cv2
import numpy as np

from longreach_dynamics.errors import InputError
from longreach_dynamics.parameters import Parameters, choice, load, quantity
from longreach_dynamics.resources import data_directory
from longreach_dynamics.tables import Table, read_table

__all__ = [
    'CameraLook',
    'Frame',
    'FrameTimes',
    'MarkerPath',
    'Occluder',
    'Scene',
    'SimulatedMarker',
    'backdrop',
    'frames_of',
    'load_look',
    'scene_of',
]

# Largest cells of the coarsest and of the finest texture [px].
_COARSE, _FINE = 512, 4
# Half size of clutter [px].
_CLUTTER = (4.0, 90.0)
_SECOND = 1_000_000_000  # [ns]
# Allowed image rates, and upper bound of the offset [s].
_RATES, _LATEST = (1e-6, 1e6), 1e12
# Number of intervals between samples from which the usual one is determined.
_USUAL = 25


@dataclasses.dataclass(frozen=True)
class SimulatedMarker(Parameters):
    """A circular marker; the defaults are those of a marker on the boom."""

    name: str = quantity('name of the marker', '')
    radius: float = quantity('radius of the outer edge', 'm', above=0.0)
    inner: float = quantity(
        'inner over outer radius; 0: a disc',
        at_least=0.0,
        below=1.0,
        default=0.5,
    )
    bright: bool = quantity('whether ring or disc is brighter than its card', default=False)
    offset: float = quantity(
        'offset of the centre from the given position, along the normal', 'm', default=0.0
    )
    normal: tuple[float, ...] = quantity(
        "normal of the marker's plane, of either sign and any length; y for the boom",
        length=3,
        default=(0.0, 1.0, 0.0),
    )

    def check(self) -> None:
        """Raise InputError for a zero normal."""
        if not math.hypot(*self.normal) > 1e-9:
            raise InputError(
                f'normal = {list(self.normal)}, allowed: a vector that is not 0 (marker'
                f' {self.name})'
            )


@dataclasses.dataclass(frozen=True)
class Occluder(Parameters):
    """
    Object of one grey level in front of all markers during some time.

    Its edges are straight in the image (no lens distortion), without motion blur.
    """

    start: tuple[float, ...] = quantity('start of the line, px or m')
    end: tuple[float, ...] = quantity('end of the line, px or m')
    kind: str = choice(
        'a bar along the line, or everything to the right of the line',
        ('bar', 'half_plane'),
        default='bar',
    )
    frame: str = choice(
        'image: u, v [px], width [px]; world: x, y, z [m], width [m]',
        ('image', 'world'),
        default='image',
    )
    camera: str = quantity('camera in which it is visible; empty for all', '', default='')
    width: float = quantity('width of a bar, px or m', at_least=0.0, default=0.0)
    velocity: tuple[float, ...] = quantity(
        'velocity of both ends, px/s or m/s; start and end are their positions at the time'
        ' appears',
        default=(),
    )
    grey: float = quantity('grey level', 'grey levels', at_least=0.0, at_most=255.0, default=60.0)
    appears: float = quantity('time at which it appears', 's', default=0.0)
    vanishes: float | None = quantity(
        'time at which it vanishes; none for never', 's', default=None
    )

    def check(self) -> None:
        """Raise InputError for inconsistent sizes."""
        size = 2 if self.frame == 'image' else 3
        for name in ('start', 'end', 'velocity'):
            count = len(getattr(self, name))
            if count != size and (count or name != 'velocity'):
                raise InputError(f'{name} has {count} values, allowed in the {self.frame}: {size}')
        if self.start == self.end:
            raise InputError(f'start and end are both {list(self.start)}, allowed: two points')
        if self.kind == 'bar' and not self.width:
            raise InputError('width = 0.0, allowed for a bar: (0, inf)')

    def at(self, time: float) -> tuple[np.ndarray, np.ndarray] | None:
        """Return both ends at a time [s], in px or m; None while it is not visible."""
        if time < self.appears or (self.vanishes is not None and time >= self.vanishes):
            return None
        way = np.array(self.velocity or (0.0,) * len(self.start)) * (time - self.appears)
        return np.array(self.start) + way, np.array(self.end) + way


@dataclasses.dataclass(frozen=True)
class CameraLook(Parameters):
    """Look of simulated pictures, common to all cameras of a rig."""

    exposure: float = quantity(
        'exposure time; the stamp of an image is the middle of it',
        's',
        at_least=0.0,
        at_most=1.0,
        default=0.002,
    )
    blur: float = quantity(
        'standard deviation of the blur of lens and focus, in pixels of the rendered image',
        'px',
        at_least=0.0,
        at_most=10.0,
        default=0.8,
    )
    white: float = quantity(
        'grey level of bright parts of markers and cards',
        'grey levels',
        at_least=0.0,
        at_most=1e3,
        default=215.0,
    )
    black: float = quantity(
        'grey level of dark parts', 'grey levels', at_least=0.0, at_most=1e3, default=35.0
    )
    card: float = quantity(
        'half the side of the card over the outer radius of the marker; 0: no card',
        at_least=0.0,
        at_most=10.0,
        default=1.6,
    )
    gain: float = quantity(
        'factor on all grey levels before noise', above=0.0, at_most=1e3, default=1.0
    )
    read_noise: float = quantity(
        'standard deviation of the noise without light',
        'grey levels',
        at_least=0.0,
        at_most=255.0,
        default=1.5,
    )
    shot_noise: float = quantity(
        'noise variance per grey level',
        'grey levels',
        at_least=0.0,
        at_most=255.0,
        default=0.02,
    )
    noise_everywhere: bool = quantity(
        'new noise in the whole image each time; else only around markers, constant elsewhere',
        default=True,
    )
    vignetting: float = quantity(
        'loss of light in the corners', at_least=0.0, at_most=1.0, default=0.15
    )
    shading: tuple[float, ...] = quantity(
        'relative change of the light from left to right, and from top to bottom',
        at_least=-1.9,
        at_most=1.9,
        length=2,
        default=(0.1, 0.05),
    )
    sky: float = quantity(
        'background at the top', 'grey levels', at_least=0.0, at_most=255.0, default=190.0
    )
    ground: float = quantity(
        'background at the bottom', 'grey levels', at_least=0.0, at_most=255.0, default=120.0
    )
    texture: float = quantity(
        "standard deviation of the background's texture",
        'grey levels',
        at_least=0.0,
        at_most=100.0,
        default=8.0,
    )
    clutter: int = quantity(
        'polygons, lines and discs in the background', at_least=0, at_most=10_000, default=60
    )
    seed: int = quantity('seed of background and noise', at_least=0, default=1)
    occluders: tuple[Occluder, ...] = quantity('objects in front of the markers', '', default=())

    def scaled(self, factor: float) -> CameraLook:
        """Return the look for images resized by a factor; scales occluders in the image."""
        if factor == 1.0:
            return self
        return self.replace(
            occluders=tuple(
                occluder
                if occluder.frame == 'world'
                else occluder.replace(
                    # Pixel centres have integer coordinates.
                    start=tuple((value + 0.5) * factor - 0.5 for value in occluder.start),
                    end=tuple((value + 0.5) * factor - 0.5 for value in occluder.end),
                    width=occluder.width * factor,
                    velocity=tuple(value * factor for value in occluder.velocity),
                )
                for occluder in self.occluders
            )
        )


def load_look(path: str | Path | None = None) -> CameraLook:
    """
    Read a look from a YAML file; by default the installed ``simulated_cameras.yaml``.

    Raises
    ------
    InputError
        For a file that cannot be read or has invalid entries, with file and key.
    """
    installed = data_directory('longreach_vision') / 'config' / 'simulated_cameras.yaml'
    return load(CameraLook, path or installed)


@dataclasses.dataclass(frozen=True)
class Scene:
    """
    Everything that simulated cameras see.

    Parameters
    ----------
    markers : sequence of SimulatedMarker
        Markers, in the order of their positions.
    look : CameraLook

    Raises
    ------
    InputError
        For duplicate marker names.
    """

    markers: tuple[SimulatedMarker, ...]
    look: CameraLook = dataclasses.field(default_factory=CameraLook)

    def __post_init__(self) -> None:
        """Check the names."""
        object.__setattr__(self, 'markers', tuple(self.markers))
        for index, name in enumerate(self.names):
            if name in self.names[:index]:
                raise InputError(f'the marker name {name!r} is given twice, allowed: once')

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the markers."""
        return tuple(marker.name for marker in self.markers)


def scene_of(rig: Any, look: CameraLook) -> Scene:
    """
    Return the scene of a rig, with markers parallel to its plane.

    Raises
    ------
    InputError
        For an occluder in a camera that the rig does not have.
    """
    for number, occluder in enumerate(look.occluders):
        if occluder.camera and occluder.camera not in rig.cameras:
            raise InputError(
                f'occluders[{number}].camera = {occluder.camera!r}, allowed by the rig:'
                f' {", ".join(rig.cameras)}, or empty for all'
            )
    return Scene(
        tuple(
            SimulatedMarker(
                marker.name,
                marker.radius,
                marker.inner,
                marker.bright,
                marker.offset,
                tuple(float(value) for value in rig.plane.normal),
            )
            for marker in rig.markers
        ),
        look,
    )


def backdrop(look: CameraLook, width: int, height: int) -> np.ndarray:
    """
    Return the background, shape (height, width) [grey levels], without shading, gain and noise.

    A gradient from sky to ground, texture of several sizes, and clutter, determined by the look's
    seed and the size.
    """
    rng = np.random.default_rng((look.seed, width, height))
    fall = np.linspace(look.sky, look.ground, height, dtype=np.float32)
    image = np.repeat(fall[:, None], width, axis=1)
    if look.texture:
        image += look.texture * _texture(rng, width, height)
    for _ in range(look.clutter):
        _draw_clutter(image, rng)
    if look.blur:
        image = cv2.GaussianBlur(image, (0, 0), look.blur).astype(np.float32, copy=False)
    return np.clip(image, 0.0, 255.0)


def _texture(rng: np.random.Generator, width: int, height: int) -> np.ndarray:
    """Return texture with standard deviation 1, shape (height, width)."""
    image = np.zeros((height, width), dtype=np.float32)
    size = _COARSE
    while size >= _FINE:
        grid = rng.standard_normal((height // size + 2, width // size + 2)).astype(np.float32)
        layer = cv2.resize(grid, None, fx=size, fy=size, interpolation=cv2.INTER_LINEAR)
        # Coarse structures are stronger than fine ones, as in natural images.
        image += math.sqrt(size) * layer[:height, :width]
        size //= 2
    deviation = float(image.std())
    return (image - image.mean()) / deviation if deviation else image


def _draw_clutter(image: np.ndarray, rng: np.random.Generator) -> None:
    """Draw a polygon, a line or a disc."""
    height, width = image.shape
    middle = rng.uniform((0.0, 0.0), (width, height))
    size = float(np.exp(rng.uniform(*np.log(_CLUTTER))))
    grey = float(rng.uniform(20.0, 235.0))
    kind = int(rng.integers(3))
    if kind == 0:
        angles = np.sort(rng.uniform(0.0, 2.0 * np.pi, int(rng.integers(3, 7))))
        corners = middle + size * np.column_stack([np.cos(angles), np.sin(angles)])
        cv2.fillPoly(image, [np.rint(corners).astype(np.int32)], (grey,), cv2.LINE_8)
    elif kind == 1:
        ends = np.rint([middle, middle + 4.0 * size * rng.standard_normal(2)]).astype(int)
        thickness = int(rng.integers(1, 8))
        cv2.line(image, ends[0].tolist(), ends[1].tolist(), (grey,), thickness)
    else:
        cv2.circle(image, np.rint(middle).astype(int).tolist(), round(size / 2.0), (grey,), -1)


# --- motion --------------------------------------------------------------------------------------


def _between(
    span: float, share: float, first: tuple[np.ndarray, ...], last: tuple[np.ndarray, ...]
) -> tuple[np.ndarray, np.ndarray]:
    """
    Return position and velocity on the cubic Hermite polynomial between two samples.

    Parameters
    ----------
    span : float
        Time between the samples [s].
    share : float
        Share of that time since the first sample, 0 to 1.
    first, last : tuple of ndarray
        Positions [m] and velocities [m/s] of each sample.
    """
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
    """
    Motion of markers.

    Parameters
    ----------
    names : sequence of str
    times : ndarray, shape (K,)
        Increasing times [s].
    positions : ndarray, shape (K, n, 3)
        Positions [m].
    velocities : ndarray, shape (K, n, 3), optional
        Velocities [m/s]; by default those of parabolas through neighbouring samples.

    Raises
    ------
    InputError
        For inconsistent shapes, values that are not finite, and times that do not increase.
    """

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
        shape = (self.times.size, len(self.names), 3)
        if self.times.ndim != 1 or not self.times.size or self._positions.shape != shape:
            raise InputError(
                f'path has positions of shape {self._positions.shape}, allowed: (times, markers,'
                f' 3) = {shape}, with one time at least'
            )
        if velocities is None:
            velocities = _slopes(self.times, self._positions)
        self._velocities = np.array(velocities, dtype=np.float64)
        if self._velocities.shape != shape:
            raise InputError(
                f'path has velocities of shape {self._velocities.shape}, allowed: {shape}'
            )
        for values in (self.times, self._positions, self._velocities):
            if not np.isfinite(values).all():
                raise InputError('path has values that are not finite, allowed: finite numbers')
        if (np.diff(self.times) <= 0.0).any():
            raise InputError('times of the path do not increase; sort them, and remove duplicates')

    @classmethod
    def from_csv(cls, path: str | Path) -> MarkerPath:
        """
        Read a path from a CSV file with the columns time, NAME.x, NAME.z and, if not 0, NAME.y.

        Velocities are optional: NAME.vx, NAME.vz and, if not 0, NAME.vy, for all markers or none.

        Raises
        ------
        InputError
            For missing, unknown or invalid columns, with file and column.
        """
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
        """
        Return positions (n, 3) [m] and velocities (n, 3) [m/s] at a time [s].

        Raises
        ------
        InputError
            For a time outside the path.
        """
        first, last = self.times[0], self.times[-1]
        # Tolerance for rounding errors of accumulated times.
        slack = 1e-9 * max(1.0, abs(first), abs(last))
        if not first - slack <= time <= last + slack:
            raise InputError(f'time = {time:g} s, allowed for this path: [{first:g}, {last:g}] s')
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
        """
        Return the path of some markers, in the given order.

        Raises
        ------
        InputError
            For a marker that is not in the path.
        """
        for name in names:
            if name not in self.names:
                raise InputError(
                    f'the path has no marker {name!r}, found: {", ".join(self.names)}; columns'
                    ' are named NAME.x, NAME.y, NAME.z'
                )
        index = [self.names.index(name) for name in names]
        return MarkerPath(names, self.times, self._positions[:, index], self._velocities[:, index])


def _slopes(times: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """Return velocities (K, n, 3) of the parabolas through neighbouring samples."""
    if times.size < 2 or (np.diff(times) <= 0.0).any():
        return np.zeros_like(positions)
    order: Literal[1, 2] = 2 if times.size > 2 else 1
    return np.asarray(np.gradient(positions, times, axis=0, edge_order=order))


def _vectors(table: Table, names: Sequence[str], what: str) -> np.ndarray:
    """Return the columns of all markers as vectors (K, n, 3); y may be missing."""
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
    """
    Times of images between samples of the truth, as the samples arrive.

    Image k is at the time k / rate + offset. It is complete with the first sample at or after that
    time, from the two samples around it; there are no images before the first sample.

    Parameters
    ----------
    rate : float
        Images per second [Hz].
    offset : float
        Time of image 0 [s].

    Raises
    ------
    InputError
        For a rate out of range, or an offset that is negative or not finite.
    """

    def __init__(self, rate: float, offset: float = 0.0) -> None:
        if not _RATES[0] <= rate <= _RATES[1]:
            raise InputError(f'rate = {rate:g} Hz, allowed: [{_RATES[0]:g}, {_RATES[1]:g}] Hz')
        if not 0.0 <= offset <= _LATEST:
            raise InputError(f'offset = {offset:g} s, allowed: [0, {_LATEST:g}] s')
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
        """
        Add a sample of the truth and return the images that it completes.

        A sample that is older than the previous one resets the time; one with the same stamp
        replaces the previous one.

        Parameters
        ----------
        stamp : int
            [ns]
        positions, velocities : ndarray, shape (n, 3)
            [m], [m/s]; stored without copying.
        """
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
        self._count(span)
        frames = []
        number = self.number_after(latest[0])
        while self.stamp(number) <= stamp:
            share = (self.stamp(number) - latest[0]) / span
            motion = _between(span / _SECOND, share, latest[1:], (positions, velocities))
            frames.append(Frame(number, self.stamp(number), *motion))
            number += 1
        return frames

    def _count(self, span: int) -> None:
        """Count missing samples in an interval [ns], from the usual interval."""
        self._spans.append(span)
        # The median is not affected by a single short interval.
        self.missed += max(0, round(span / statistics.median_high(self._spans)) - 1)


def frames_of(
    path: MarkerPath, times: Sequence[FrameTimes], duration: float = math.inf
) -> Iterator[tuple[int, Frame]]:
    """
    Yield the images of several cameras along a path, in the order of time.

    Parameters
    ----------
    path : MarkerPath
        Motion of the markers; images start at time 0.
    times : sequence of FrameTimes
        Image times of each camera.
    duration : float, optional
        Time after the start of the path up to which there are images [s].

    Yields
    ------
    index : int
        Index of the camera.
    frame : Frame

    Raises
    ------
    InputError
        For a path that ends before 0 s.
    """
    begin, end = path.times[[0, -1]].tolist()
    if end < 0.0:
        raise InputError(
            f'path of [{begin:g}, {end:g}] s, allowed: times from 0 on; add the same to all of'
            ' them'
        )
    first, last = (round(time * _SECOND) for time in (begin, min(end, begin + duration)))
    number = min(one.number_after(first - 1) for one in times)
    while any(one.stamp(number) <= last for one in times):
        for index, one in enumerate(times):
            stamp = one.stamp(number)
            if first <= stamp <= last:
                yield index, Frame(number, stamp, *path.at(stamp / _SECOND))
        number += 1
