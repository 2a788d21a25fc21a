"""Between pixels and those of a camera without distortion."""

from __future__ import annotations

import numpy as np

from longreach_markers.camera.model import Camera
from longreach_markers.camera.undistortion import image_of, shape_to_pinhole, to_pinhole

CAMERA = Camera(
    'c', 800, 600, 500.0, 510.0, 400.0, 290.0, 'plumb_bob', (-0.2, 0.05, 1e-3, -2e-3, 0.01)
)


def test_image_of_a_pinhole_pixel_is_the_distorted_one():
    pinhole = np.array([620.0, 130.0])
    pixel, jacobian = image_of(CAMERA.packed, pinhole)
    rays = (pinhole - [400.0, 290.0]) / [500.0, 510.0]
    np.testing.assert_allclose(pixel, CAMERA.distort(rays), atol=1e-10)
    step = 1e-4 * np.eye(2)
    slopes = [
        (image_of(CAMERA.packed, pinhole + one)[0] - image_of(CAMERA.packed, pinhole - one)[0])
        / 2e-4
        for one in step
    ]
    np.testing.assert_allclose(jacobian, np.transpose(slopes), atol=1e-8)


def test_the_pinhole_pixel_of_a_pixel_is_where_it_comes_from():
    pixel, _ = image_of(CAMERA.packed, np.array([620.0, 130.0]))
    np.testing.assert_allclose(to_pinhole(CAMERA.packed, *pixel), [620.0, 130.0], atol=1e-8)


def test_an_ellipse_is_undistorted_as_its_points_are():
    pinhole = np.array([620.0, 130.0])
    (u, v), jacobian = image_of(CAMERA.packed, pinhole)
    a11, a12, a22 = shape_to_pinhole(CAMERA.packed, u, v, 9.0, 1.0, 7.0)
    # Through the lens again it is the same set: A A^T, whatever turns the unit circle.
    back = jacobian @ np.array([[a11, a12], [a12, a22]])
    there = np.array([[9.0, 1.0], [1.0, 7.0]])
    np.testing.assert_allclose(back @ back.T, there @ there.T, rtol=1e-4)
