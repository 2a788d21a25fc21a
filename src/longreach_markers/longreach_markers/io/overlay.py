"""
Annotated images, as in Henikl 2015, figure 9: search window, ellipse, centre, name.

Green: tracked, orange: uncertain, red: lost. Pictures are in BGR order, as in OpenCV.
"""

from __future__ import annotations

from collections.abc import Mapping

import cv2
import numpy as np

from longreach_dynamics.errors import InputError
from longreach_markers.marker.detection import LOST, TRACKED, UNCERTAIN, Observation
from longreach_markers.rig import MountedCamera

COLOURS = {TRACKED: (80, 220, 60), UNCERTAIN: (0, 165, 255), LOST: (60, 60, 255)}
"""BGR colour of each status."""

# Largest scale of a picture relative to its image.
_LARGEST = 16.0
# Fractional bits of OpenCV's drawing coordinates.
_SHIFT = 4
# Half size of the cross at the centre in radii, and its minimum [px of the picture].
_CROSS, _LEAST_CROSS = 0.35, 4.0
# Lines (n, points, 2) of half size 1.
_SQUARE = np.array([[[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]]])
_DIAGONAL = np.array([[[-1.0, -1.0], [1.0, 1.0]], [[1.0, -1.0], [-1.0, 1.0]]])
_UPRIGHT = np.array([[[-1.0, 0.0], [1.0, 0.0]], [[0.0, -1.0], [0.0, 1.0]]])
_ANGLES = np.linspace(0.0, 2.0 * np.pi, 73)[:-1]
_FONT = cv2.FONT_HERSHEY_SIMPLEX
_DARK, _LIGHT = (20, 20, 20), (235, 235, 235)


def draw(
    image: np.ndarray,
    observations: Mapping[str, Observation],
    scale: float = 1.0,
    windows: Mapping[str, tuple[float, float, float]] | None = None,
    caption: str = '',
) -> np.ndarray:
    """
    Draw observations onto an image.

    Parameters
    ----------
    image : ndarray of uint8, shape (height, width)
    observations : mapping of Observation
        By name of the marker.
    scale : float
        Of the picture, relative to the image.
    windows : mapping of (u, v, half width), optional
        Search windows in the image [px].
    caption : str

    Returns
    -------
    ndarray of uint8, shape (scale height, scale width, 3)
        Blue, green, red.

    Raises
    ------
    InputError
        For another kind of image, and a scale that leaves no pixel or exceeds 16.
    """
    if image.ndim != 2 or image.dtype != np.uint8 or not image.size:
        raise InputError(
            f'image is an array of {image.dtype} of shape {image.shape}, allowed: uint8 of shape'
            ' (rows, columns)'
        )
    if not (0.0 < scale <= _LARGEST and round(min(image.shape) * scale)):
        raise InputError(
            f'scale = {scale:g}, allowed: (0, {_LARGEST:g}], with a pixel left at least'
        )
    height, width = (round(side * scale) for side in image.shape)
    if scale != 1.0:
        way = cv2.INTER_AREA if scale < 1.0 else cv2.INTER_LINEAR
        image = np.asarray(cv2.resize(image, (width, height), interpolation=way))
    picture = np.asarray(cv2.cvtColor(image, cv2.COLOR_GRAY2BGR))
    for name, observation in observations.items():
        if np.isfinite(observation.center).all():
            _draw_marker(picture, name, observation, scale, (windows or {}).get(name))
    if caption:
        _write(picture, caption, (8.0, 8.0 + _text_size(picture)), _LIGHT)
    return picture


def _draw_marker(
    picture: np.ndarray,
    name: str,
    observation: Observation,
    scale: float,
    window: tuple[float, float, float] | None,
) -> None:
    """Draw window, ellipse, centre and name of a marker; of a lost one, a diagonal cross."""
    colour, thickness = COLOURS[observation.status], 1 if max(picture.shape) < 1500 else 2

    def lines(points: np.ndarray, is_closed: bool, thickness: int) -> None:
        # Pixel centres have integer coordinates; points far outside are clipped.
        near = np.clip((points + 0.5) * scale - 0.5, -2e4, 2e4)
        fixed = list(np.rint(near * (1 << _SHIFT)).astype(np.int32))
        cv2.polylines(picture, fixed, is_closed, colour, thickness, cv2.LINE_AA, _SHIFT)

    center, radius = observation.center, observation.radius
    if window is not None:
        u, v, half = window
        lines(_SQUARE * half + (u, v), True, 1)
    arm = max(_LEAST_CROSS / scale, _CROSS * radius)
    if observation.status == LOST:
        # At its expected position, with its previous size.
        lines(center + arm * _DIAGONAL, False, thickness)
    else:
        lines(observation.ellipse.points(_ANGLES)[None], True, thickness)
        lines(center + arm * _UPRIGHT, False, 1)
    text = name if observation.status == TRACKED else f'{name}: {observation.reason}'
    u, v = ((center + 0.5) * scale - 0.5).tolist()
    _write(picture, text, (u + radius * scale + 4.0, v - radius * scale), colour)


def _text_size(picture: np.ndarray) -> float:
    """Return a text height [px] that is legible in the whole picture."""
    return max(9.0, float(max(picture.shape)) / 110.0)


def _write(
    picture: np.ndarray, text: str, at: tuple[float, float], colour: tuple[int, int, int]
) -> None:
    """Write a text with its lower left corner at a pixel, moved inside the picture."""
    size = _text_size(picture) / 22.0
    (width, height), below = cv2.getTextSize(text, _FONT, size, 1)
    u = round(min(max(at[0], 2.0), max(2.0, picture.shape[1] - width - 2.0)))
    v = round(min(max(at[1], height + 2.0), picture.shape[0] - below - 2.0))
    for colour_, thickness in ((_DARK, 3), (colour, 1)):
        cv2.putText(picture, text, (u, v), _FONT, size, colour_, thickness, cv2.LINE_AA)


def draw_cameras(
    cameras: Mapping[str, MountedCamera],
    images: Mapping[str, np.ndarray],
    times: Mapping[str, float],
    observations: Mapping[str, Mapping[str, Observation]],
    width: float,
    windows: Mapping[str, Mapping[str, tuple[float, float, float]]] | None = None,
) -> np.ndarray:
    """Draw the images of all cameras side by side, each up to a width [px]; black without one."""
    pictures = []
    for name, mounted in cameras.items():
        camera = mounted.camera
        image, caption = images.get(name), f'{name}: no image'
        if image is None:
            image = np.zeros((camera.height, camera.width), dtype=np.uint8)
        else:
            caption = f'{name} {times[name]:.3f} s'
        seen, scale = observations.get(name, {}), min(1.0, width / camera.width)
        pictures.append(draw(image, seen, scale, (windows or {}).get(name), caption))
    # Lower ones are padded with black.
    height = max(picture.shape[0] for picture in pictures)
    missing = [((0, height - picture.shape[0]), (0, 0), (0, 0)) for picture in pictures]
    return np.hstack([np.pad(*one) for one in zip(pictures, missing, strict=True)])
