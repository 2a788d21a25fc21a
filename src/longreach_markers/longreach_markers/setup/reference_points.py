"""
Input file for the localisation of cameras: reference points, pixels, distances.

See config/reference_example.yaml.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from pathlib import Path

from longreach_dynamics.errors import InputError
from longreach_dynamics.parameters import Parameters, load, quantity
from longreach_markers.camera.files import read_camera
from longreach_markers.camera.model import Camera
from longreach_markers.rig import FIRST, MOST_CAMERAS, camera_names
from longreach_markers.rig_parameters import PLACES, bounded

# No measurement is more accurate [m].
_FINEST = 1e-9


@dataclasses.dataclass(frozen=True)
class CameraEntry(Parameters):
    """A camera to be localised."""

    calibration: str = quantity('calibration file, relative to the folder of this file', '')
    position: tuple[float, ...] | None = bounded(
        'approximate position in the world, x y z, to resolve an ambiguity',
        'm',
        PLACES,
        None,
        length=3,
    )
    position_deviation: float = bounded(
        'standard deviation of the position', 'm', (_FINEST, 1e3), 0.3
    )


@dataclasses.dataclass(frozen=True)
class CameraPair(Parameters):
    """Cameras by name; :func:`reference_file` adds others."""

    left: CameraEntry | None = quantity('left camera', '', default=None)
    right: CameraEntry | None = quantity('right camera', '', default=None)

    def check(self) -> None:
        """Raise InputError if there is no camera."""
        count = sum(getattr(self, one.name) is not None for one in dataclasses.fields(self))
        if not count:
            raise InputError('left and right are missing, allowed: one of them or both')
        if count > MOST_CAMERAS:
            raise InputError(f'{count} cameras, allowed: up to {MOST_CAMERAS}')


@dataclasses.dataclass(frozen=True)
class ReferencePoint(Parameters):
    """A point with measured coordinates, and pixels by camera."""

    name: str = quantity('name', '')
    position: tuple[float, ...] = bounded('x y z in the world', 'm', PLACES, length=3)
    deviation: float = bounded('standard deviation of each coordinate', 'm', (_FINEST, 10.0), 0.01)
    left: tuple[float, ...] | None = quantity(
        'u v in the left image, including distortion', 'px', length=2, default=None
    )
    right: tuple[float, ...] | None = quantity(
        'u v in the right image, including distortion', 'px', length=2, default=None
    )
    in_plane: bool = quantity('whether the point lies in the plane of the boom', '', default=False)


@dataclasses.dataclass(frozen=True)
class Distance(Parameters):
    """A distance measured by laser."""

    between: tuple[str, ...] = quantity(
        'names of two points, or of a camera and a point', length=2
    )
    distance: float = quantity('distance', 'm', above=0.0, at_most=1e4)
    deviation: float = bounded('standard deviation', 'm', (_FINEST, 10.0), 0.005)


@dataclasses.dataclass(frozen=True)
class Reference(Parameters):
    """Measurements for the localisation of the cameras."""

    cameras: CameraPair = quantity('cameras', '')
    points: tuple[ReferencePoint, ...] = quantity('reference points', '')
    distances: tuple[Distance, ...] = quantity('measured distances', '', default=())
    pixel_deviation: float = bounded(
        'standard deviation of a pixel coordinate; 0.3 to 1 if read by eye',
        'px',
        (1e-6, 100.0),
        0.05,
    )
    tip: tuple[float, ...] = bounded(
        'position at which the error of a marker is predicted, x y z',
        'm',
        PLACES,
        (25.1, 0.0, 1.7),
        length=3,
        source='tip of longreach_boom/config/boom.yaml, pose site',
    )

    def check(self) -> None:
        """Raise InputError for names that are duplicate or unknown."""
        names = [point.name for point in self.points]
        for name in names:
            if not name or name in self._known or names.count(name) > 1:
                raise InputError(
                    f'points has the name {name!r}, allowed: no two alike, none of'
                    f' {", ".join(self._known)}'
                )
        for index, distance in enumerate(self.distances):
            for name in distance.between:
                if name not in names and name not in self.sides:
                    raise InputError(
                        f'distances[{index}].between has {name!r}, allowed:'
                        f' {", ".join((*self.sides, *names))}'
                    )
            if distance.between[0] == distance.between[1]:
                raise InputError(f'distances[{index}].between has {distance.between[0]!r} twice')
        for index, point in enumerate(self.points):
            for side in self._known:
                if getattr(point, side) is not None and side not in self.sides:
                    raise InputError(
                        f'points[{index}] has a pixel for {side}, but cameras has no {side}'
                    )

    @property
    def sides(self) -> tuple[str, ...]:
        """Names of the cameras, left and right first."""
        return tuple(side for side in self._known if getattr(self.cameras, side) is not None)

    @property
    def _known(self) -> tuple[str, ...]:
        """Names of cameras that a point may have pixels of."""
        return tuple(one.name for one in dataclasses.fields(self.cameras))


def reference_file(names: Iterable[str]) -> type[Reference]:
    """Return the class of a file of reference points that cameras of these names see."""
    others = [name for name in names if name not in FIRST]
    for name in others:
        if name in {one.name for one in dataclasses.fields(ReferencePoint)}:
            raise InputError(f'cameras has {name!r}, which is a key of points, allowed: others')
    entries = [(name, CameraEntry | None, quantity('camera', '', default=None)) for name in others]
    pixels = [
        (
            name,
            tuple[float, ...] | None,
            quantity('u v in its image', 'px', length=2, default=None),
        )
        for name in others
    ]
    cameras = dataclasses.make_dataclass('_Cameras', entries, bases=(CameraPair,), frozen=True)
    point = dataclasses.make_dataclass('_Point', pixels, bases=(ReferencePoint,), frozen=True)
    whole = [
        ('cameras', cameras, quantity('cameras', '')),
        ('points', tuple[point, ...], quantity('reference points', '')),  # type: ignore[valid-type]
    ]
    return dataclasses.make_dataclass('_Reference', whole, bases=(Reference,), frozen=True)


def load_reference(file: str | Path) -> Reference:
    """
    Read a file of reference points.

    Raises
    ------
    InputError
        For invalid values, with file, key, value and allowed range.
    """
    return load(reference_file(camera_names(Path(file))), file)


def read_cameras(reference: Reference, folder: str | Path) -> dict[str, Camera]:
    """Return the cameras of a reference by side; calibration files are relative to a folder."""
    return {
        side: read_camera(Path(folder) / getattr(reference.cameras, side).calibration)
        for side in reference.sides
    }
