"""What nodes are tested with: parameters, a rig, and the motion of its markers."""

import math

import numpy as np

from longreach_markers.camera.geometry import Plane, Pose
from longreach_markers.camera.model import Camera
from longreach_markers.rig import MarkerOnRig, MountedCamera, Rig

CAMERA = Camera('any', 320, 240, 400.0, 400.0, 159.5, 119.5, 'plumb_bob', (-0.1, 0.02, 0.0, 0.0))
SIDES = ('left', 'right')
NAMES = ('base', 'tip')


def words(node='', **parameters):
    """Return ROS arguments with parameters, for all nodes or ``NODE:``."""
    return [word for name, v in parameters.items() for word in ('-p', f'{node}{name}:={v}')]


def rig(**changes):
    """Return two cameras 9 m before the plane y = 0, and two markers of 11 px in them."""
    return Rig(
        {
            side: MountedCamera(CAMERA, Pose.from_look_at((x, -9.0, 1.0), (0.0, 0.0, 1.0)))
            for side, x in zip(SIDES, (-1.5, 1.5), strict=True)
        },
        Plane(np.array([0.0, 1.0, 0.0]), 0.0),
        (
            MarkerOnRig('base', 0.25, position=(-1.5, 0.0, 0.5)),
            MarkerOnRig('tip', 0.25, position=(1.0, 0.0, 1.5)),
        ),
        **changes,
    )


def motion(time):
    rise = 0.1 * math.sin(2.0 * time)
    places = np.array([[-1.5, 0.0, 0.5], [1.0, 0.0, 1.5 + rise]])
    return places, np.array([[0.0, 0.0, 0.0], [0.0, 0.0, 0.2 * math.cos(2.0 * time)]])
