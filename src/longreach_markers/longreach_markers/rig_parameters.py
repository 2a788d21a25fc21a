"""What a rig file holds: parameters of the tracker, markers, bodies, cameras, plane."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from longreach_dynamics.errors import InputError, check_distinct
from longreach_dynamics.parameters import Parameters, load_yaml, quantity
from longreach_markers.marker.limits import LIMITS, DetectionLimits

# Names of markers are in columns and frames; those of cameras and bodies also in topics.
_NAME = re.compile(r'[A-Za-z0-9_-]{1,60}')
CAMERA_NAME = re.compile(r'[A-Za-z][A-Za-z0-9_]{0,59}')
# The first two cameras by convention, and the largest number of cameras: of the bits in
# MarkerEstimate.cameras.
FIRST, MOST_CAMERAS = ('left', 'right'), 8
# Bounds of lengths [m] and variances; their squares stay finite.
_FARTHEST, _LARGEST_VARIANCE = 1e8, 1e16
# Bound of delays of stamps [s].
LONGEST_DELAY = 10.0
# Bound of the time between rows [s].
LONGEST_LINE = 1e-3
# Number of markers that determine a pose, and their least RMS distance from one line [m].
LEAST_MARKERS, _LEAST_HEIGHT = 3, 1e-3
# Bounds in the image [px/s^2, px], from far below the noise to the largest sensors.
_ACCELERATIONS, _WINDOWS = (1e-3, 1e8), (1e-3, 1e5)
PLACES, _LENGTHS = (-_FARTHEST, _FARTHEST), (0.0, _FARTHEST)
_VARIANCES = -_LARGEST_VARIANCE, _LARGEST_VARIANCE
_DELAYS, _LINES = (-LONGEST_DELAY, LONGEST_DELAY), (-LONGEST_LINE, LONGEST_LINE)


def bounded(
    description: str,
    unit: str,
    bounds: tuple[float, float],
    default: Any = dataclasses.MISSING,
    **more: Any,
) -> Any:
    """Return a field within bounds."""
    low, high = bounds
    return quantity(description, unit, at_least=low, at_most=high, default=default, **more)


# Of a tracker that runs, too.
_live = functools.partial(bounded, read_only=False)


@dataclasses.dataclass(frozen=True)
class TrackingParameters(Parameters):
    """Parameters of the tracker; pixels are those of the cameras' full resolution."""

    relations = ('least_window <= window',)

    acceleration: float = _live(
        'standard deviation of accelerations in the image', 'px/s^2', _ACCELERATIONS, 500.0
    )
    gate: float = _live(
        'largest distance from the prediction, in standard deviations', '1', (1.0, 20.0), 3.0
    )
    least_window: float = _live(
        'least half-width of the search window around the prediction', 'px', _WINDOWS, 4.0
    )
    window: float = _live(
        'largest half-width of the search window, after the marker was lost', 'px', _WINDOWS, 60.0
    )
    start_window: float = _live(
        'largest distance of a marker from its given position at the start', 'px', _WINDOWS, 40.0
    )
    fade: float = _live(
        "time until a lost marker's velocity decays, and time constant", 's', (0.001, 3600.0), 0.4
    )
    least_rim: float = _live(
        'least visible share of the rim to initialise a marker', '1', (0.0, 1.0), 0.6
    )
    gap: float = _live('largest time between the images of a set', 's', (0.0, 10.0), 0.05)
    out_of_plane: float = _live(
        'distance from the plane that is flagged, beside its deviation', 'm', _LENGTHS, 0.05
    )
    ray_gap: float = _live(
        'reprojection error that is flagged, beyond 5 standard deviations', 'px', _WINDOWS, 0.1
    )
    hint: float = bounded(
        'radius of the search where another camera expects a lost marker', 'px', _WINDOWS, 16.0
    )
    together: float = bounded(
        "largest distance in the plane of two cameras' sightings of one ring", 'm', _LENGTHS, 0.5
    )

    def scaled(self, factor: float) -> TrackingParameters:
        """Return the parameters for images resized by a factor."""
        least, most = _ACCELERATIONS

        # The width of edges does not change: windows do not shrink below the least one.
        def resized(window: float) -> float:
            return min(max(window * factor, self.least_window), _WINDOWS[1])

        return self.replace(
            acceleration=min(max(self.acceleration * factor, least), most),
            window=resized(self.window),
            start_window=resized(self.start_window),
        )


@dataclasses.dataclass(frozen=True)
class GivenPixel(Parameters):
    """Where a marker is in the first image of a camera."""

    camera: str = quantity('name of the camera', '')
    at: tuple[float, ...] = quantity('approximate centre u v and longer semi-axis', 'px', length=3)


@dataclasses.dataclass(frozen=True)
class MarkerOnRig(Parameters):
    """A circular marker to be tracked."""

    name: str = quantity('name', '')
    radius: float = quantity('radius of the outer edge', 'm', above=0.0, at_most=100.0)
    inner: float = bounded('inner over outer radius; 0: a disc', '1', (0.0, 0.9), 0.5)
    bright: bool = quantity(
        'whether ring or disc is brighter than its surroundings', default=False
    )
    offset: float = bounded(
        'distance of its own plane from the plane, along the normal', 'm', PLACES, 0.0
    )
    position: tuple[float, ...] | None = bounded(
        'approximate position at the start, x y z in the world', 'm', PLACES, None, length=3
    )
    left: tuple[float, ...] | None = quantity(
        'approximate centre u v and longer semi-axis in the first left image',
        'px',
        length=3,
        default=None,
    )
    right: tuple[float, ...] | None = quantity(
        'the same in the first right image', 'px', length=3, default=None
    )
    pixels: tuple[GivenPixel, ...] = quantity('the same for other cameras', default=())

    def check(self) -> None:
        """Raise InputError for an invalid name or size."""
        if not _NAME.fullmatch(self.name):
            raise InputError(f'name = {self.name!r}, allowed: letters, digits, _ and -')
        names = [one.camera for one in self.pixels]
        for name in names:
            if name in FIRST or names.count(name) > 1:
                raise InputError(
                    f'pixels has the camera {name!r}, allowed: each once, without'
                    f' {" and ".join(FIRST)}, which are keys of the marker'
                )
        for side in (*FIRST, *names):
            given = self.given(side)
            if given is not None and not given[2] > 0.0:
                raise InputError(f'{side}[2] = {given[2]:g} px, allowed: above 0')

    def given(self, camera: str) -> tuple[float, ...] | None:
        """Return u, v and radius [px] given for a camera's first image, or None."""
        others = {one.camera: one.at for one in self.pixels}
        return {'left': self.left, 'right': self.right, **others}.get(camera)

    def with_given(self, camera: str, at: tuple[float, ...] | None) -> MarkerOnRig:
        """Return the marker with other u, v and radius [px] for a camera; None for none."""
        if camera in FIRST:
            return self.replace(**{camera: at})
        others = tuple(one for one in self.pixels if one.camera != camera)
        return self.replace(pixels=others if at is None else (*others, GivenPixel(camera, at)))

    def scaled(self, factor: float) -> MarkerOnRig:
        """Return the marker for images resized by a factor."""

        def moved(given: tuple[float, ...] | None) -> tuple[float, ...] | None:
            if given is None:
                return None
            u, v, radius = given
            # Pixel centres have integer coordinates.
            return (u + 0.5) * factor - 0.5, (v + 0.5) * factor - 0.5, radius * factor

        others = tuple(one.replace(at=moved(one.at)) for one in self.pixels)
        return self.replace(left=moved(self.left), right=moved(self.right), pixels=others)


@dataclasses.dataclass(frozen=True)
class MarkerOnBody(Parameters):
    """A marker of a rigid body."""

    name: str = quantity('name of a marker of the rig', '')
    position: tuple[float, ...] = bounded(
        'position in the frame of the body', 'm', PLACES, length=3
    )


@dataclasses.dataclass(frozen=True)
class Body(Parameters):
    """A rigid body whose pose is estimated from its markers."""

    name: str = quantity('name, that of its frame', '')
    markers: tuple[MarkerOnBody, ...] = quantity(
        'three or more markers on it, not on one line', ''
    )
    deviation: float = bounded(
        'standard deviation of positions in its frame, each direction', 'm', (1e-06, 10.0), 0.001
    )

    def check(self) -> None:
        """Raise InputError for an invalid name, and markers that do not determine a pose."""
        if not CAMERA_NAME.fullmatch(self.name):
            raise InputError(
                f'name = {self.name!r}, allowed: a letter, then letters, digits and _, up to 60'
            )
        names = [marker.name for marker in self.markers]
        if len(names) < LEAST_MARKERS:
            raise InputError(
                f'{self.name}: markers has {len(names)} entries, allowed: {LEAST_MARKERS} or more'
            )
        check_distinct(f'{self.name}: markers', names)
        height = distance_from_line(np.array([marker.position for marker in self.markers]))
        if not height > _LEAST_HEIGHT:
            raise InputError(
                f'{self.name}: its markers are within {1e3 * height:.2g} mm of one line, allowed:'
                f' above {1e3 * _LEAST_HEIGHT:g} mm; rotation about it would be unknown, add a'
                ' marker beside it'
            )


def distance_from_line(points: np.ndarray) -> float:
    """Return the RMS distance of points (n, 3) from the straight line that fits them best [m]."""
    spread = np.linalg.svd(points - points.mean(axis=0), compute_uv=False)
    return math.hypot(*spread[1:]) / math.sqrt(len(points))


@dataclasses.dataclass(frozen=True)
class CameraEntry(Parameters):
    """A camera of a rig file."""

    calibration: str = quantity('calibration file, relative to the folder of this file', '')
    position: tuple[float, ...] = bounded(
        'centre of the camera in the world', 'm', PLACES, length=3
    )
    orientation: tuple[float, ...] = quantity('quaternion x y z w of the optical frame', length=4)
    covariance: tuple[float, ...] | None = bounded(
        'covariance, by rows, of rotation vector in the camera [rad] and position in the world'
        ' [m]',
        '',
        _VARIANCES,
        None,
        length=36,
    )
    delay: float = bounded(
        'time from the exposure to the stamp, subtracted from stamps', 's', _DELAYS, 0.0
    )
    line_time: float = bounded(
        'time between rows of a rolling shutter; delay is of the middle row', 's', _LINES, 0.0
    )
    calibration_deviation: float = bounded(
        'uncertainty of rays from the calibration, as calibrate prints it',
        'px',
        (0.0, _WINDOWS[1]),
        0.0,
    )


@dataclasses.dataclass(frozen=True)
class _PlaneEntry(Parameters):
    """The plane of a rig file."""

    normal: tuple[float, ...] = quantity('unit normal', length=3)
    offset: float = bounded('distance of the plane from the origin along the normal', 'm', PLACES)
    centroid: tuple[float, ...] | None = bounded(
        'point of the plane to which the covariance refers', 'm', PLACES, None, length=3
    )
    covariance: tuple[float, ...] | None = bounded(
        'covariance, by rows, of rotations about two axes in the plane [rad] and displacement'
        ' along the normal [m]',
        '',
        _VARIANCES,
        None,
        length=9,
    )


@dataclasses.dataclass(frozen=True)
class _RigFile(Parameters):
    """A rig file; :func:`rig_file` adds the names of its cameras."""

    cameras: Parameters = quantity('cameras by name')
    plane: _PlaneEntry = quantity(
        'the plane in which markers move; longreach vision pose estimates it from three or more'
        ' reference points with in_plane',
        '',
    )
    markers: tuple[MarkerOnRig, ...] = quantity('markers, in the order of all output')
    tracking: TrackingParameters = quantity(
        'parameters of the tracker', default=TrackingParameters()
    )
    bodies: tuple[Body, ...] = quantity('rigid groups of markers, with a pose each', default=())
    detection: DetectionLimits = quantity('thresholds of the detection', default=LIMITS)


def rig_file(names: Iterable[str]) -> type[Parameters]:
    """Return the class of a rig file whose cameras have these names."""
    entries = [(name, CameraEntry | None, quantity('camera', '', default=None)) for name in names]
    cameras = dataclasses.make_dataclass('_Cameras', entries, bases=(Parameters,), frozen=True)
    whole = [('cameras', cameras, quantity('cameras by name'))]
    return dataclasses.make_dataclass('_RigFile', whole, bases=(_RigFile,), frozen=True)


def camera_names(file: Path) -> list[str]:
    """Return the cameras of a rig or reference file and its base; what is wrong comes later."""
    values = load_yaml(file)
    named: list[str] = []
    with contextlib.suppress(InputError):
        base = values.get('base')
        both = ([load_yaml(file.parent / base)] if isinstance(base, str) else []) + [values]
        for one in both:
            cameras = one.get('cameras')
            named += cameras if isinstance(cameras, dict) else []
    return [name for name in dict.fromkeys(named) if CAMERA_NAME.fullmatch(str(name))]
