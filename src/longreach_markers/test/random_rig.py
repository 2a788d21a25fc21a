"""Cameras of each model, and rigs that are drawn at random: two cameras, and a boom's plane."""

import numpy as np

from longreach_markers.camera.geometry import Plane, Pose
from longreach_markers.camera.model import Camera

CAMERAS = [
    Camera('plain', 2452, 2054, 4800.0, 4810.0, 1231.0, 1019.0),
    Camera(
        *('wide', 2452, 2054, 2600.0, 2590.0, 1200.0, 1040.0),
        *('plumb_bob', (-0.2, 0.09, 0.002, -0.001, -0.02)),
    ),
    Camera(
        *('rational', 2452, 2054, 2100.0, 2100.0, 1226.0, 1027.0),
        *('rational_polynomial', (1.2, 0.4, 0.001, -0.002, 0.01, 1.5, 0.6, 0.05)),
    ),
    Camera(
        *('fisheye', 2452, 2054, 1500.0, 1500.0, 1226.0, 1027.0),
        *('equidistant', (0.01, -0.002, 0.001, -0.0005)),
    ),
]
# Errors of a good set-up: 0.1 mrad and 3 mm of poses, 0.3 mrad and 2 mm of the plane.
POSE_COVARIANCE = np.diag([1e-8, 1.5e-8, 0.5e-8, 9e-6, 4e-6, 9e-6])
POSE_COVARIANCE[0, 4] = POSE_COVARIANCE[4, 0] = 1e-7
PLANE_COVARIANCE = np.array([[9e-8, 2e-8, 1e-8], [2e-8, 4e-8, -2e-8], [1e-8, -2e-8, 4e-6]])


def random_rig(seed):
    """Two cameras some 20 m off a boom's plane, the plane, and a point on it in front of both."""
    random = np.random.default_rng(seed)
    normal = np.array([0.0, 1.0, 0.0]) + 0.1 * random.normal(size=3)
    normal /= np.linalg.norm(normal)
    middle = np.array([10.0, 0.0, 5.0]) + random.normal(size=3)
    plane = Plane(normal, float(normal @ middle), PLANE_COVARIANCE, middle)
    point = middle + random.uniform(-3.0, 3.0, 2) @ plane.axes
    places = np.array([[4.0, -20.0, 2.0], [16.0, -22.0, 1.0]]) + random.normal(size=(2, 3))
    up = np.array([0.0, 0.0, 1.0]) + 0.2 * random.normal(size=3)
    looking = [
        Pose.from_look_at(place, middle + 0.5 * random.normal(size=3), up) for place in places
    ]
    first, second = (Pose(p.rotation, p.translation, POSE_COVARIANCE) for p in looking)
    return (first, second), plane, point


def pixel_of(camera, pose, point):
    return camera.project(pose.to_camera(point))
