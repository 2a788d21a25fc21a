"""
The rig: cameras, plane, markers, and parameters of the tracker.

All are read from one YAML file. ``longreach vision pose`` writes its cameras and plane; the
markers are listed there with their initial positions, if known.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from longreach_dynamics.errors import InputError, check_among, check_distinct, named
from longreach_dynamics.parameters import load
from longreach_markers.camera.files import read_camera
from longreach_markers.camera.geometry import Plane, Pose
from longreach_markers.camera.model import Camera
from longreach_markers.marker.limits import LIMITS, DetectionLimits
from longreach_markers.rig_parameters import CAMERA_NAME, CameraEntry
from longreach_markers.rig_parameters import FIRST as FIRST
from longreach_markers.rig_parameters import MOST_CAMERAS as MOST_CAMERAS
from longreach_markers.rig_parameters import Body as Body
from longreach_markers.rig_parameters import MarkerOnBody as MarkerOnBody
from longreach_markers.rig_parameters import MarkerOnRig as MarkerOnRig
from longreach_markers.rig_parameters import TrackingParameters as TrackingParameters
from longreach_markers.rig_parameters import camera_names as camera_names
from longreach_markers.rig_parameters import rig_file as rig_file

# Least distance between camera and plane, below which positions in it cannot be measured, and
# between two cameras, below which one was given twice [m].
_LEAST_DISTANCE, _LEAST_BASELINE = 0.1, 1e-3


def check_cameras(names: Sequence[str]) -> None:
    """Raise InputError for no camera or more than 8, and for a name that is not allowed."""
    if not 1 <= len(names) <= MOST_CAMERAS:
        raise InputError(f'cameras = {list(names)}, allowed: 1 to {MOST_CAMERAS} cameras')
    for name in names:
        if not CAMERA_NAME.fullmatch(name):
            raise InputError(
                f'camera {name!r}, allowed: a letter, then letters, digits and _, up to 60'
            )


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

    def scaled(self, factor: float) -> MountedCamera:
        """Return the camera for images resized by a factor."""
        return dataclasses.replace(
            self,
            camera=self.camera.scaled(factor),
            calibration_deviation=self.calibration_deviation * factor,
            line_time=self.line_time / factor,
        )


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
        names = sorted(self.cameras, key=lambda name: (*FIRST, name).index(name))
        check_cameras(names)
        object.__setattr__(self, 'cameras', {name: self.cameras[name] for name in names})
        object.__setattr__(self, 'markers', tuple(self.markers))
        object.__setattr__(self, 'bodies', tuple(self.bodies))
        if not self.markers:
            raise InputError('markers is empty, allowed: one or more')
        self._check_names()
        self._check_apart()
        for side, mounted in self.cameras.items():
            self._check_view(side, mounted)

    def _check_names(self) -> None:
        check_distinct('markers', self.names)
        taken = [*self.cameras, *self.names]
        for body in self.bodies:
            if body.name in taken:
                raise InputError(
                    f'bodies has the name {body.name!r}, which a camera, a marker or another body'
                    ' has, allowed: another name'
                )
            taken.append(body.name)
            for marker in body.markers:
                check_among(f'marker of {body.name}', marker.name, self.names)

    def _check_apart(self) -> None:
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

    def check_image(self, name: str, image: np.ndarray, scale: float | None = None) -> None:
        """Raise InputError for an image of another size than its camera's, at a scale if given."""
        (height, width), camera = image.shape, self.cameras[name].camera
        if (height, width) == (camera.height, camera.width):
            return
        ratio = width / camera.width
        remedy = 'calibrate the camera at the image size in use'
        # A resized image has the same aspect ratio.
        is_resized = abs(height / ratio - camera.height) < 2.0
        change = f'multiply the scale by {ratio:.6g}'
        if scale is not None:
            change = f'set scale to {scale * ratio:.6g}'
        if is_resized and (scale is None or scale * ratio <= 1.0):
            remedy = f'if images were resized, {change}, otherwise {remedy}'
        raise InputError(
            f'image has {width} x {height} px, allowed by the rig for {name}: {camera.width} x'
            f' {camera.height} px; {remedy}'
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
        cameras = {side: mounted.scaled(factor) for side, mounted in self.cameras.items()}
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
            self, cameras=cameras, markers=tuple(markers), tracking=self.tracking.scaled(factor)
        )


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
        entry: CameraEntry | None = getattr(values.cameras, field.name)
        if entry is None:
            continue
        with named(f'{file}: cameras.{field.name}.calibration: '):
            camera = read_camera(file.parent / entry.calibration, field.name)
        with named(f'{file}: cameras.{field.name}: '):
            covariance = _square(entry.covariance, 6)
            pose = Pose.from_quaternion(entry.orientation, entry.position, covariance)
        cameras[field.name] = MountedCamera(
            camera, pose, entry.delay, entry.calibration_deviation, entry.line_time
        )
    flat = values.plane
    with named(f'{file}: '):
        plane = Plane(flat.normal, flat.offset, _square(flat.covariance, 3), flat.centroid)
        rig = Rig(cameras, plane, values.markers, values.tracking, values.bodies, values.detection)
        rig.check_pixels()
    return rig


def _square(values: tuple[float, ...] | None, size: int) -> np.ndarray | None:
    return None if values is None else np.array(values).reshape(size, size)
