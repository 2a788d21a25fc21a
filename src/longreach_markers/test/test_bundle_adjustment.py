"""Least squares for poses and points: derivatives."""

import numpy as np
from known_rig import FISHEYE, LENS, POSES, SPREAD

from longreach_markers.setup.bundle_adjustment import State, projected


def test_jacobians_are_those_of_differences():
    rng = np.random.default_rng(4)
    pose = POSES['left']
    for camera in (LENS, FISHEYE):
        pixels, J = projected(camera, pose, SPREAD)
        np.testing.assert_allclose(pixels, camera.project(pose.to_camera(SPREAD)), atol=1e-9)
        step = 1e-6 * rng.standard_normal(6 + SPREAD.size)
        ahead, behind = (State((pose,), SPREAD).moved(sign * step) for sign in (1.0, -1.0))
        change = (
            camera.project(ahead.poses[0].to_camera(ahead.points))
            - camera.project(behind.poses[0].to_camera(behind.points))
        ) / 2.0
        told = J[:, :, :6] @ step[:6]
        told += np.einsum('nij,nj->ni', J[:, :, 6:], step[6:].reshape(-1, 3))
        np.testing.assert_allclose(told, change, rtol=1e-5, atol=1e-8)
