"""
The rig: cameras, plane, markers, and parameters of the tracker.

All are read from one YAML file. ``longreach vision pose`` writes its cameras and plane; the
markers are listed there with their initial positions, if known.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import math
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from longreach_dynamics.errors import InputError
from longreach_dynamics.parameters import Parameters, load, load_yaml, quantity
from longreach_markers.camera.geometry import Plane, Pose
from longreach_markers.camera.model import Camera, read_calibration
from longreach_markers.marker.limits import LIMITS, DetectionLimits

# Names are used in topics and columns; those of cameras are namespaces.
_NAME = re.compile(r'[A-Za-z0-9_-]{1,60}')
CAMERA_NAME = re.compile(r'[A-Za-z][A-Za-z0-9_]{0,59}')
# The first two cameras by convention, and the largest number of cameras: of the bits in
# MarkerEstimate.cameras.
FIRST, MOST_CAMERAS = ('left', 'right'), 8
# Least distance between camera and plane, below which positions in it cannot be measured, and
# between two cameras, below which one was given twice [m].
_LEAST_DISTANCE, _LEAST_BASELINE = 0.1, 1e-3
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


@dataclasses.dataclass(frozen=True)
class TrackingParameters(Parameters):
    """Parameters of the tracker; pixels are those of the cameras' full resolution."""

    acceleration: float = quantity(
        'standard deviation of the acceleration of a marker in the image',
        'px/s^2',
        at_least=_ACCELERATIONS[0],
        at_most=_ACCELERATIONS[1],
        default=500.0,
        read_only=False,
    )
    gate: float = quantity(
        'largest distance of a detection from the prediction, in standard deviations',
        at_least=1.0,
        at_most=20.0,
        default=3.0,
        read_only=False,
    )
    least_window: float = quantity(
        'least half-width of the search window around the prediction',
        'px',
        at_least=_WINDOWS[0],
        at_most=_WINDOWS[1],
        default=4.0,
        read_only=False,
    )
    window: float = quantity(
        'largest half-width of the search window, after the marker was lost',
        'px',
        at_least=_WINDOWS[0],
        at_most=_WINDOWS[1],
        default=60.0,
        read_only=False,
    )
    start_window: float = quantity(
        'largest distance of a marker from its given position at the start',
        'px',
        at_least=_WINDOWS[0],
        at_most=_WINDOWS[1],
        default=40.0,
        read_only=False,
    )
    fade: float = quantity(
        'time after which the velocity of a lost marker decays, and its time constant',
        's',
        at_least=1e-3,
        at_most=3600.0,
        default=0.4,
        read_only=False,
    )
    least_rim: float = quantity(
        'least visible share of the rim to initialise a marker',
        at_least=0.0,
        at_most=1.0,
        default=0.6,
        read_only=False,
    )
    gap: float = quantity(
        'largest time between two images of a pair',
        's',
        at_least=0.0,
        at_most=10.0,
        default=0.05,
        read_only=False,
    )
    out_of_plane: float = quantity(
        'distance from the plane, beyond its standard deviation, at which a marker is flagged',
        'm',
        at_least=0.0,
        at_most=_FARTHEST,
        default=0.05,
        read_only=False,
    )
    ray_gap: float = quantity(
        'reprojection error at which a marker is flagged, if it exceeds 5 standard deviations',
        'px',
        at_least=_WINDOWS[0],
        at_most=_WINDOWS[1],
        default=0.1,
        read_only=False,
    )
    hint: float = quantity(
        'radius of the search for a lost marker where another camera expects it',
        'px',
        at_least=_WINDOWS[0],
        at_most=_WINDOWS[1],
        default=16.0,
    )
    together: float = quantity(
        'largest distance in the plane between sightings of one marker by two cameras, when rings'
        ' in whole images are named',
        'm',
        at_least=0.0,
        at_most=_FARTHEST,
        default=0.5,
    )

    def check(self) -> None:
        """Raise InputError if the windows are in the wrong order."""
        super().check()
        if not self.least_window <= self.window:
            raise InputError(
                f'least_window = {self.least_window:g} px, allowed: at most window ='
                f' {self.window:g} px'
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
    inner: float = quantity(
        'inner over outer radius; 0: a disc',
        at_least=0.0,
        at_most=0.9,
        default=0.5,
    )
    bright: bool = quantity(
        'whether ring or disc is brighter than its surroundings', default=False
    )
    offset: float = quantity(
        'distance of its own plane from the plane, along the normal',
        'm',
        at_least=-_FARTHEST,
        at_most=_FARTHEST,
        default=0.0,
    )
    position: tuple[float, ...] | None = quantity(
        'approximate position at the start, x y z in the world',
        'm',
        at_least=-_FARTHEST,
        at_most=_FARTHEST,
        length=3,
        default=None,
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
    position: tuple[float, ...] = quantity(
        'position in the frame of the body',
        'm',
        at_least=-_FARTHEST,
        at_most=_FARTHEST,
        length=3,
    )


@dataclasses.dataclass(frozen=True)
class Body(Parameters):
    """A rigid body whose pose is estimated from its markers."""

    name: str = quantity('name, that of its frame', '')
    markers: tuple[MarkerOnBody, ...] = quantity(
        'three or more markers on it, not on one line', ''
    )
    deviation: float = quantity(
        'standard deviation of the positions of its markers in its frame, in each direction',
        'm',
        at_least=1e-6,
        at_most=10.0,
        default=1e-3,
    )

    def check(self) -> None:
        """Raise InputError for an invalid name, and markers that do not determine a pose."""
        if not _NAME.fullmatch(self.name):
            raise InputError(f'name = {self.name!r}, allowed: letters, digits, _ and -')
        names = [marker.name for marker in self.markers]
        if len(names) < LEAST_MARKERS:
            raise InputError(
                f'{self.name}: markers has {len(names)} entries, allowed: {LEAST_MARKERS} or more'
            )
        for name in names:
            if names.count(name) > 1:
                raise InputError(
                    f'{self.name}: markers has the name {name!r} twice, allowed: distinct names'
                )
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
class MountedCamera:
    """
    A camera with its pose and the delay of its stamps.

    Parameters
    ----------
    camera : Camera
    pose : Pose
    delay : float
        Time from the exposure to the stamp of an image [s]: subtracted from its stamps.
    calibration_deviation : float
        Standard deviation of a pixel from errors of the calibration [px].
    line_time : float
        Time between the exposures of successive rows [s]; 0 for a global shutter. The time of an
        image is that of its middle row.
    """

    camera: Camera
    pose: Pose
    delay: float = 0.0
    calibration_deviation: float = 0.0
    line_time: float = 0.0

    def row_delay(self, v: float) -> float:
        """Return the time from the exposure of the middle row to that of a row [s]."""
        return self.line_time * (v - 0.5 * (self.camera.height - 1.0))


@dataclasses.dataclass(frozen=True)
class Rig:
    """
    Cameras, plane and markers.

    Parameters
    ----------
    cameras : dict of MountedCamera
        1 to 8 cameras by name, such as ``left`` and ``right``, which come first.
    plane : Plane
        Plane in which markers without an offset move.
    markers : tuple of MarkerOnRig
    tracking : TrackingParameters
    bodies : tuple of Body
        Rigid groups of markers.
    detection : DetectionLimits

    Raises
    ------
    InputError
        For no camera or more than 8, a name that is not allowed, two cameras or markers at the
            same position, no marker, a duplicate name, a plane through a camera, a marker behind
            a camera, and a body with a marker that is not on the rig.
    """

    cameras: dict[str, MountedCamera]
    plane: Plane
    markers: tuple[MarkerOnRig, ...]
    tracking: TrackingParameters = dataclasses.field(default_factory=TrackingParameters)
    bodies: tuple[Body, ...] = ()
    detection: DetectionLimits = LIMITS

    def __post_init__(self) -> None:
        """Check the consistency of cameras, plane and markers."""
        names = sorted(self.cameras, key=lambda name: (*FIRST, name).index(name))
        if not 1 <= len(names) <= MOST_CAMERAS:
            raise InputError(f'cameras = {names}, allowed: 1 to {MOST_CAMERAS} cameras')
        for name in names:
            if not CAMERA_NAME.fullmatch(name):
                raise InputError(
                    f'camera {name!r}, allowed: a letter, then letters, digits and _, up to 60'
                )
        object.__setattr__(self, 'cameras', {name: self.cameras[name] for name in names})
        object.__setattr__(self, 'markers', tuple(self.markers))
        if not self.markers:
            raise InputError('markers is empty, allowed: one or more')
        names = [marker.name for marker in self.markers]
        for name in names:
            if names.count(name) > 1:
                raise InputError(f'markers has the name {name!r} twice, allowed: distinct names')
        self._check_bodies()
        self._check_apart()
        for side, mounted in self.cameras.items():
            self._check_view(side, mounted)

    def _check_bodies(self) -> None:
        """Raise InputError for bodies with names or markers that are not allowed."""
        object.__setattr__(self, 'bodies', tuple(self.bodies))
        taken = [*self.cameras, *self.names]
        for body in self.bodies:
            if body.name in taken:
                raise InputError(
                    f'bodies has the name {body.name!r}, which a camera, a marker or another body'
                    ' has, allowed: another name'
                )
            taken.append(body.name)
            for marker in body.markers:
                if marker.name not in self.names:
                    raise InputError(
                        f'{body.name} has the marker {marker.name!r}, allowed:'
                        f' {", ".join(self.names)}'
                    )

    def _check_apart(self) -> None:
        """Raise InputError for cameras, or markers, at the same position."""
        for names in itertools.combinations(self.cameras, 2):
            places = [self.cameras[name].pose.translation for name in names]
            if not math.dist(*places) >= _LEAST_BASELINE:
                raise InputError(
                    f'the cameras {" and ".join(names)} are at {places[0].tolist()} m, allowed: at'
                    f' least {_LEAST_BASELINE:g} m apart; check their positions'
                )
        for one, other in itertools.combinations(self.markers, 2):
            if one.position is None or other.position is None or one.offset != other.offset:
                continue
            apart = math.dist(one.position, other.position)
            if not apart > max(one.radius, other.radius):
                raise InputError(
                    f'{one.name} and {other.name} are {apart:.3g} m apart, allowed: above'
                    f' {max(one.radius, other.radius):g} m, the larger radius; correct a position'
                )

    def _check_view(self, side: str, mounted: MountedCamera) -> None:
        """Raise InputError if a camera cannot see the plane or a marker's position."""
        for marker in self.markers:
            plane = self.plane_of(marker)
            away = float(plane.distance(mounted.pose.translation))
            if not abs(away) > _LEAST_DISTANCE:
                raise InputError(
                    f'the plane of {marker.name} passes through the camera {side} (distance'
                    f' {away:.3g} m), allowed: at least {_LEAST_DISTANCE:g} m; check position and'
                    ' plane'
                )
            if marker.position is None:
                continue
            depth = float(mounted.pose.to_camera(marker.position)[2])
            if not depth > 0.0:
                raise InputError(
                    f'{marker.name} at {list(marker.position)} m lies {-depth:.3g} m behind the'
                    f' camera {side}; check orientation (x right, y down, z forward) and position'
                )

    def check_pixels(self) -> None:
        """Raise InputError for a given pixel outside the image, or an invalid radius."""
        for marker in self.markers:
            for side, mounted in self.cameras.items():
                given, camera = marker.given(side), mounted.camera
                if given is not None and not (
                    -0.5 <= given[0] <= camera.width - 0.5
                    and -0.5 <= given[1] <= camera.height - 0.5
                ):
                    raise InputError(
                        f'{marker.name} has the pixel ({given[0]:g}, {given[1]:g}) in {side},'
                        f' allowed: within {camera.width} x {camera.height} px'
                    )
                low, high = self.detection.smallest, self.detection.largest
                if given is not None and not low <= given[2] <= high:
                    raise InputError(
                        f'{marker.name} has the radius {given[2]:g} px in {side}, allowed:'
                        f' [{low:g}, {high:g}] px'
                    )

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the markers."""
        return tuple(marker.name for marker in self.markers)

    @property
    def delays(self) -> dict[str, int]:
        """Times from the exposure to the stamp of an image, by camera [ns]."""
        return {name: round(one.delay * 1e9) for name, one in self.cameras.items()}

    def plane_of(self, marker: MarkerOnRig) -> Plane:
        """Return the plane in which a marker moves."""
        plane = self.plane
        if marker.offset == 0.0:
            return plane
        return Plane(
            plane.normal,
            plane.offset + marker.offset,
            plane.covariance,
            plane.centroid + marker.offset * plane.normal,
        )

    def normal_cam(self, camera: str) -> np.ndarray:
        """Return the plane's normal (3,) in the optical frame of a camera."""
        return np.asarray(self.plane.normal @ self.cameras[camera].pose.rotation)

    def scaled(self, factor: float) -> Rig:
        """Return the rig for images resized by a factor, as :meth:`Camera.scaled`."""
        if factor == 1.0:
            return self
        cameras = {
            side: dataclasses.replace(
                mounted,
                camera=mounted.camera.scaled(factor),
                calibration_deviation=mounted.calibration_deviation * factor,
                line_time=mounted.line_time / factor,
            )
            for side, mounted in self.cameras.items()
        }
        markers = [marker.scaled(factor) for marker in self.markers]
        for k, marker in enumerate(markers):
            for side, mounted in cameras.items():
                given = marker.given(side)
                if given is not None:
                    edges = mounted.camera.width - 0.5, mounted.camera.height - 0.5
                    # The image size is rounded; pixels outside the original image are refused.
                    place = [
                        min(x, edge) if x <= edge + 0.5 else x
                        for x, edge in zip(given[:2], edges, strict=True)
                    ]
                    markers[k] = markers[k].with_given(side, (*place, given[2]))
        return dataclasses.replace(
            self,
            cameras=cameras,
            markers=tuple(markers),
            tracking=self.tracking.scaled(factor),
        )


@dataclasses.dataclass(frozen=True)
class _CameraEntry(Parameters):
    """A camera of a rig file."""

    calibration: str = quantity('calibration file, relative to the folder of this file', '')
    position: tuple[float, ...] = quantity(
        'centre of the camera in the world', 'm', at_least=-_FARTHEST, at_most=_FARTHEST, length=3
    )
    orientation: tuple[float, ...] = quantity('quaternion x y z w of the optical frame', length=4)
    covariance: tuple[float, ...] | None = quantity(
        'covariance, by rows, of rotation vector in the camera [rad] and position in the world'
        ' [m]',
        '',
        at_least=-_LARGEST_VARIANCE,
        at_most=_LARGEST_VARIANCE,
        length=36,
        default=None,
    )
    delay: float = quantity(
        'time from the exposure to the stamp, subtracted from the stamps of its images',
        's',
        at_least=-LONGEST_DELAY,
        at_most=LONGEST_DELAY,
        default=0.0,
    )
    line_time: float = quantity(
        'time between the exposures of successive rows of a rolling shutter; delay is that of the'
        ' middle row',
        's',
        at_least=-LONGEST_LINE,
        at_most=LONGEST_LINE,
        default=0.0,
    )
    calibration_deviation: float = quantity(
        'standard deviation of a pixel from errors of the calibration, common to all images; the'
        ' uncertainty of rays that calibrate prints',
        'px',
        at_least=0.0,
        at_most=_WINDOWS[1],
        default=0.0,
    )


@dataclasses.dataclass(frozen=True)
class _PlaneEntry(Parameters):
    """The plane of a rig file."""

    normal: tuple[float, ...] = quantity('unit normal', length=3)
    offset: float = quantity(
        'distance of the plane from the origin along the normal',
        'm',
        at_least=-_FARTHEST,
        at_most=_FARTHEST,
    )
    centroid: tuple[float, ...] | None = quantity(
        'point of the plane to which the covariance refers',
        'm',
        at_least=-_FARTHEST,
        at_most=_FARTHEST,
        length=3,
        default=None,
    )
    covariance: tuple[float, ...] | None = quantity(
        'covariance, by rows, of rotations about two axes in the plane [rad] and displacement'
        ' along the normal [m]',
        '',
        at_least=-_LARGEST_VARIANCE,
        at_most=_LARGEST_VARIANCE,
        length=9,
        default=None,
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
    entries = [(name, _CameraEntry | None, quantity('camera', '', default=None)) for name in names]
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


def load_rig(path: str | Path) -> Rig:
    """
    Read a rig file and its calibration files.

    Raises
    ------
    InputError
        For missing, unknown or invalid entries, with file and key.
    """
    file = Path(path)
    values: Any = load(rig_file(camera_names(file)), file)
    cameras = {}
    for field in dataclasses.fields(values.cameras):
        entry: _CameraEntry | None = getattr(values.cameras, field.name)
        if entry is None:
            continue
        try:
            camera = read_calibration(file.parent / entry.calibration, field.name)
        except InputError as error:
            raise InputError(f'{file}: cameras.{field.name}.calibration: {error}') from error
        try:
            covariance = _square(entry.covariance, 6)
            pose = Pose.from_quaternion(entry.orientation, entry.position, covariance)
        except InputError as error:
            raise InputError(f'{file}: cameras.{field.name}: {error}') from error
        cameras[field.name] = MountedCamera(
            camera, pose, entry.delay, entry.calibration_deviation, entry.line_time
        )
    plane = values.plane
    try:
        rig = Rig(
            cameras,
            Plane(
                np.array(plane.normal),
                plane.offset,
                _square(plane.covariance, 3),
                None if plane.centroid is None else np.array(plane.centroid),  # type: ignore[arg-type]
            ),
            values.markers,
            values.tracking,
            values.bodies,
            values.detection,
        )
        rig.check_pixels()
    except InputError as error:
        raise InputError(f'{file}: {error}') from error
    return rig


def _square(values: tuple[float, ...] | None, size: int) -> np.ndarray | None:
    """Return a matrix (size, size) from its rows."""
    return None if values is None else np.array(values).reshape(size, size)
