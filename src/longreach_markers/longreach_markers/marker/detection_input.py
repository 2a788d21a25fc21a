"""Checks of what a detection is given, in the form that the kernels require."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from longreach_dynamics.errors import InputError
from longreach_markers.camera.model import Camera
from longreach_markers.marker.limits import DetectionLimits
from longreach_markers.marker.measurement import circle_shapes


def check_image(image: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return an image for the kernels; InputError unless 2-D, uint8 and not empty."""
    is_array = isinstance(image, np.ndarray)
    if not is_array or image.ndim != 2 or image.dtype != np.uint8 or min(image.shape) < 16:
        what = f'{image.dtype} of shape {image.shape}' if is_array else type(image).__name__
        raise InputError(
            f'an image is an array of uint8, (height, width), of at least 16 x 16; got {what};'
            ' convert it to 8-bit grey'
        )
    # Kernels are compiled for one kind of array: writable and contiguous.
    return np.require(image, requirements=['C', 'W'])


def check_place(at: ArrayLike, image: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Return a pixel as an array; InputError unless it is inside the image."""
    place = np.asarray(at, float)
    if place.shape != (2,) or not np.all(np.isfinite(place)):
        raise InputError(f'a pixel is two numbers u, v; got {at!r}')
    height, width = image.shape
    if not (-0.5 <= place[0] <= width - 0.5 and -0.5 <= place[1] <= height - 0.5):
        raise InputError(
            f'the marker at ({place[0]:g}, {place[1]:g}) lies outside the image of {width} x'
            f' {height} pixels; allowed: u in [-0.5, {width - 0.5}], v in [-0.5, {height - 0.5}]'
        )
    return place


def check_view(
    camera: Camera | None, normal_cam: ArrayLike | None, image: NDArray[np.uint8]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return camera and normal for the kernels: zeros if unknown."""
    normal = np.zeros(3)
    if camera is None:
        if normal_cam is not None:
            raise InputError('a normal without a camera; give the calibration, too')
        return np.zeros(16), normal
    if (camera.height, camera.width) != image.shape:
        raise InputError(
            f'an image of {image.shape[1]} x {image.shape[0]} pixels with a calibration for'
            f' {camera.width} x {camera.height}; use the calibration of this camera and resolution'
        )
    if normal_cam is not None:
        normal = np.asarray(normal_cam, float)
        length = float(np.linalg.norm(normal)) if normal.shape == (3,) else math.nan
        if not (math.isfinite(length) and length > 0.0):
            raise InputError(f'a normal is three finite numbers, not all 0; got {normal_cam!r}')
        normal = normal / length
    return camera.packed, normal


def expected_outlines(
    camera: Camera | None,
    normal: NDArray[np.float64],
    place: NDArray[np.float64],
    limits: DetectionLimits,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return a circle's shape matrices, of 1 px, in pinhole and image; 0 if unknown."""
    if camera is None or not normal.any():
        return np.zeros(3), np.zeros(3)
    x, y = camera.undistort(place).tolist()
    n_u, n_v, n_w = normal.tolist()
    if abs(n_u * x + n_v * y + n_w) < math.sin(limits.elevation) * math.hypot(x, y, 1.0):
        raise InputError(
            f'the plane with the normal {normal.round(4).tolist()} is seen edge-on at'
            f' ({place[0]:g}, {place[1]:g}); allowed: at least'
            f' {math.degrees(limits.elevation):.0f} deg from that'
        )
    return circle_shapes(camera.packed, normal, x, y)
