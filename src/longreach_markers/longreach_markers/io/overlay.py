"""
Annotated images, as in Henikl 2015, figure 9: search window, ellipse, centre, name.

Green: tracked, orange: uncertain, red: lost. Pictures are in BGR order, as in OpenCV.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence

import cv2
import numpy as np

from longreach_dynamics.errors import InputError
from longreach_markers.marker.detection import LOST, TRACKED, UNCERTAIN, Observation

COLOURS = {TRACKED: (80, 220, 60), UNCERTAIN: (0, 165, 255), LOST: (60, 60, 255)}
"""BGR colour of each status."""

# Largest scale of a picture relative to its image.
_LARGEST = 16.0
# Fractional bits of OpenCV's drawing coordinates.
_SHIFT = 4
# Half size of the cross at the centre in radii, and its minimum [px of the picture].
_CROSS, _LEAST_CROSS = 0.35, 4.0
_ANGLES = np.linspace(0.0, 2.0 * np.pi, 73)[:-1]
_FONT = cv2.FONT_HERSHEY_SIMPLEX
_DARK = (20, 20, 20)
_LIGHT = (235, 235, 235)
# Half size of a magnified window in radii.
_AROUND = 2.2


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
        window = (windows or {}).get(name)
        _draw_marker(picture, name, observation, scale, window)
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
    """Draw one marker."""
    colour = COLOURS[observation.status]
    # Pixel centres have integer coordinates.
    center = (observation.center + 0.5) * scale - 0.5
    if not np.isfinite(center).all():
        return
    if window is not None:
        u, v, half = window
        corners = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]]) * half + (u, v)
        _polygon(picture, (corners + 0.5) * scale - 0.5, colour, 1)
    _draw_shape(picture, observation, scale, 1 if max(picture.shape) < 1500 else 2)
    text = name if observation.status == TRACKED else f'{name}: {observation.reason}'
    radius = observation.radius * scale
    _write(picture, text, (float(center[0] + radius + 4.0), float(center[1] - radius)), colour)


def _draw_shape(
    picture: np.ndarray, observation: Observation, scale: float, thickness: int
) -> None:
    """Draw ellipse and centre of a marker, or a cross if it is lost."""
    colour = COLOURS[observation.status]
    center = (observation.center + 0.5) * scale - 0.5
    radius = observation.radius * scale
    if observation.status == LOST:
        # At its expected position, with its previous size.
        _lines(picture, center + _diagonals(max(_LEAST_CROSS, _CROSS * radius)), colour, thickness)
    else:
        rim = (observation.ellipse.points(_ANGLES) + 0.5) * scale - 0.5
        _polygon(picture, rim, colour, thickness)
        arm = max(_LEAST_CROSS, _CROSS * radius)
        across = np.array([[[-arm, 0.0], [arm, 0.0]], [[0.0, -arm], [0.0, arm]]])
        _lines(picture, center + across, colour, 1)


def _diagonals(arm: float) -> np.ndarray:
    """Return the two lines of a diagonal cross, shape (2, 2, 2)."""
    signs = np.array([[[-1.0, -1.0], [1.0, 1.0]], [[-1.0, 1.0], [1.0, -1.0]]])
    return np.asarray(arm * signs)


def _fixed(points: np.ndarray) -> np.ndarray:
    """Return pixels in OpenCV's fixed-point format; points far outside are clipped."""
    near = np.clip(points, -2e4, 2e4)
    return np.asarray(np.rint(near * (1 << _SHIFT)), dtype=np.int32)


def _polygon(
    picture: np.ndarray, points: np.ndarray, colour: tuple[int, int, int], thickness: int
) -> None:
    """Draw a closed line."""
    cv2.polylines(picture, [_fixed(points)], True, colour, thickness, cv2.LINE_AA, _SHIFT)


def _lines(
    picture: np.ndarray, points: np.ndarray, colour: tuple[int, int, int], thickness: int
) -> None:
    """Draw lines (n, 2, 2)."""
    lines = list(_fixed(points))
    cv2.polylines(picture, lines, False, colour, thickness, cv2.LINE_AA, _SHIFT)


def _text_size(picture: np.ndarray) -> float:
    """Return a text height [px] that is legible in the whole picture."""
    return max(9.0, float(max(picture.shape)) / 110.0)


def _write(
    picture: np.ndarray,
    text: str,
    at: tuple[float, float],
    colour: tuple[int, int, int],
) -> None:
    """Write a text with its lower left corner at a pixel, moved inside the picture."""
    size = _text_size(picture) / 22.0
    (width, height), below = cv2.getTextSize(text, _FONT, size, 1)
    u = round(min(max(at[0], 2.0), max(2.0, picture.shape[1] - width - 2.0)))
    v = round(min(max(at[1], height + 2.0), picture.shape[0] - below - 2.0))
    for colour_, thickness in ((_DARK, 3), (colour, 1)):
        cv2.putText(picture, text, (u, v), _FONT, size, colour_, thickness, cv2.LINE_AA)


def magnify(
    image: np.ndarray, observations: Mapping[str, Observation], size: int = 200
) -> np.ndarray:
    """Return magnified surroundings of all markers in one row."""
    tiles = [_magnified(image, name, one, size) for name, one in observations.items()]
    return np.hstack(tiles) if tiles else np.zeros((size, 0, 3), dtype=np.uint8)


def _magnified(image: np.ndarray, name: str, observation: Observation, size: int) -> np.ndarray:
    """Return the surroundings of a marker, shape (size, size, 3)."""
    half = math.ceil(_AROUND * observation.radius)
    if not np.isfinite(observation.center).all() or half < 1:
        return np.zeros((size, size, 3), dtype=np.uint8)
    side = 2 * half + 1
    u, v = (int(value) - half for value in np.rint(observation.center))
    crop = np.zeros((side, side), dtype=np.uint8)
    height, width = image.shape
    rows = slice(max(0, v), min(height, v + side))
    columns = slice(max(0, u), min(width, u + side))
    if rows.start < rows.stop and columns.start < columns.stop:
        crop[rows.start - v : rows.stop - v, columns.start - u : columns.stop - u] = image[
            rows, columns
        ]
    tile = cv2.resize(crop, (size, size), interpolation=cv2.INTER_NEAREST)
    moved = dataclasses.replace(
        observation,
        center=observation.center - (u, v),
        ellipse=dataclasses.replace(
            observation.ellipse, center=observation.ellipse.center - (u, v)
        ),
    )
    picture = np.asarray(cv2.cvtColor(tile, cv2.COLOR_GRAY2BGR))
    _draw_shape(picture, moved, size / side, 1)
    _write(picture, name, (4.0, size - 6.0), COLOURS[observation.status])
    return picture


def side_by_side(pictures: Sequence[np.ndarray]) -> np.ndarray:
    """Join pictures (height, width, 3) from left to right; lower ones are padded with black."""
    if not pictures:
        raise InputError('no picture, allowed: one or more')
    height = max(picture.shape[0] for picture in pictures)
    padded = [
        cv2.copyMakeBorder(
            picture, 0, height - picture.shape[0], 0, 0, cv2.BORDER_CONSTANT, value=(0, 0, 0)
        )
        for picture in pictures
    ]
    return np.asarray(np.hstack(padded))
