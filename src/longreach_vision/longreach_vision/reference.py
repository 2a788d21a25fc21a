"""
The file of what was measured to find the cameras' poses: reference points, pixels, distances.

config/reference_example.yaml is one.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

from longreach_dynamics.errors import InputError
from longreach_dynamics.parameters import Parameters, load, quantity
from longreach_vision.cameras import Camera, read_camera

__all__ = [
    'SIDES',
    'CameraEntry',
    'CameraPair',
    'Distance',
    'Reference',
    'ReferencePoint',
    'load_reference',
    'read_cameras',
]

SIDES = ('left', 'right')

# Coordinates of maps are below the first, no tape or laser is better than the second [m].
_FARTHEST, _FINEST = 1e8, 1e-9


@dataclasses.dataclass(frozen=True)
class CameraEntry(Parameters):
    """A camera whose pose is wanted."""

    calibration: str = quantity('its calibration file, from the folder of this file', '')
    position: tuple[float, ...] | None = quantity(
        'about where it stands in the world, x y z, if the points alone leave a choice',
        'm',
        length=3,
        at_least=-_FARTHEST,
        at_most=_FARTHEST,
        default=None,
    )
    position_deviation: float = quantity(
        'standard deviation of that', 'm', at_least=_FINEST, at_most=1e3, default=0.3
    )


@dataclasses.dataclass(frozen=True)
class CameraPair(Parameters):
    """One camera or two."""

    left: CameraEntry | None = quantity('left camera', '', default=None)
    right: CameraEntry | None = quantity('right camera', '', default=None)

    def check(self) -> None:
        """Raise InputError when there is none."""
        if self.left is None and self.right is None:
            raise InputError('left and right are missing, allowed: one of them or both')


@dataclasses.dataclass(frozen=True)
class ReferencePoint(Parameters):
    """A point whose coordinates were measured, and its pixels."""

    name: str = quantity('name', '')
    position: tuple[float, ...] = quantity(
        'x y z in the world', 'm', length=3, at_least=-_FARTHEST, at_most=_FARTHEST
    )
    deviation: float = quantity(
        'standard deviation of each coordinate', 'm', at_least=_FINEST, at_most=10.0, default=0.01
    )
    left: tuple[float, ...] | None = quantity(
        'u v in the left image, with distortion', 'px', length=2, default=None
    )
    right: tuple[float, ...] | None = quantity(
        'u v in the right image, with distortion', 'px', length=2, default=None
    )
    in_plane: bool = quantity('whether it lies in the plane of the boom', '', default=False)


@dataclasses.dataclass(frozen=True)
class Distance(Parameters):
    """A distance measured with a laser."""

    between: tuple[str, ...] = quantity('names of two points, or left or right and one', length=2)
    distance: float = quantity('distance', 'm', above=0.0, at_most=1e4)
    deviation: float = quantity(
        'standard deviation', 'm', at_least=_FINEST, at_most=10.0, default=0.005
    )


@dataclasses.dataclass(frozen=True)
class Reference(Parameters):
    """What was measured to find the cameras' poses."""

    cameras: CameraPair = quantity('cameras', '')
    points: tuple[ReferencePoint, ...] = quantity('reference points', '')
    distances: tuple[Distance, ...] = quantity('distances between them', '', default=())
    pixel_deviation: float = quantity(
        'standard deviation of a pixel coordinate; of one read by eye 0.3 to 1',
        'px',
        at_least=1e-6,
        at_most=100.0,
        default=0.05,
    )
    tip: tuple[float, ...] = quantity(
        'where the error of a marker is predicted, x y z',
        'm',
        length=3,
        at_least=-_FARTHEST,
        at_most=_FARTHEST,
        default=(25.1, 0.0, 1.7),
        source='tip of longreach_boom/config/boom.yaml, pose site',
    )

    def check(self) -> None:
        """Raise InputError for names that are double or lead nowhere."""
        names = [point.name for point in self.points]
        for name in names:
            if not name or name in SIDES or names.count(name) > 1:
                raise InputError(
                    f'points has the name {name!r}, allowed: no two alike, none of'
                    f' {", ".join(SIDES)}'
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
            for side in SIDES:
                if getattr(point, side) is not None and side not in self.sides:
                    raise InputError(
                        f'points[{index}] has a pixel for {side}, but cameras has no {side}'
                    )

    @property
    def sides(self) -> tuple[str, ...]:
        """Which cameras there are."""
        return tuple(side for side in SIDES if getattr(self.cameras, side) is not None)


def load_reference(file: str | Path) -> Reference:
    """
    Read a file of reference points.

    Raises
    ------
    InputError
        With file, key, value and allowed range.
    """
    return load(Reference, file)


def read_cameras(reference: Reference, folder: str | Path) -> dict[str, Camera]:
    """Return the cameras of a reference by side; their files are found from a folder."""
    return {
        side: read_camera(Path(folder) / getattr(reference.cameras, side).calibration)
        for side in reference.sides
    }
