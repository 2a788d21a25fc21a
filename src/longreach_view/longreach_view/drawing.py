"""Markers of MarkerArrays, in their frames [m], and images, as what a page draws (0 to 255)."""

from __future__ import annotations

from typing import Any

import numpy as np
from viser.transforms import SO3

from longreach_machine.markers import Marker, Markers

ARROW, CUBE, SPHERE, CYLINDER, LINE_STRIP, LINE_LIST, TEXT, TRIANGLE_LIST = 0, 1, 2, 3, 4, 5, 9, 11
TYPES = (ARROW, CUBE, SPHERE, CYLINDER, LINE_STRIP, LINE_LIST, TEXT, TRIANGLE_LIST)
# Of images: channels by encoding, and their greatest width on a page [pixels].
_CHANNELS = {'mono8': 1, '8UC1': 1, 'bgr8': 3, 'rgb8': 3, '8UC3': 3}
_WIDEST = 960


class Drawing:
    """The markers of a topic that are shown; ``version`` changes with them."""

    def __init__(self) -> None:
        self._markers: dict[tuple[str, int], Marker] = {}
        self.version = 0

    def add(self, message: Markers) -> None:
        """Apply a MarkerArray."""
        message.apply_to(self._markers)
        self.version += 1

    def clear(self) -> None:
        """Remove all markers."""
        self._markers.clear()
        self.version += 1

    def markers(self) -> list[Marker]:
        """Return the markers, without those that have no place: a page cannot draw them."""
        return [
            m
            for m in self._markers.values()
            if all(np.isfinite(part).all() for part in (m.position, m.rotation, m.scale, m.points))
        ]

    def frames(self) -> set[str]:
        """Return the frames of the markers."""
        return {marker.frame for marker in self._markers.values()}

    def bent(self) -> frozenset[str]:
        """Return the names of what is drawn by triangles: links that are bent bear them."""
        return frozenset(name for (name, _), m in self._markers.items() if m.kind == TRIANGLE_LIST)


def rotation_of(marker: Marker) -> np.ndarray:
    """Return the rotation w, x, y, z of a marker; one of length 0 means none."""
    length = float(np.linalg.norm(marker.rotation))
    return marker.rotation / length if length > 0.0 else np.array([1.0, 0.0, 0.0, 0.0])


def reach(marker: Marker) -> np.ndarray:
    """Return the points (N, 3) around which there must be room for a marker; none for arrows."""
    if marker.kind == ARROW:
        return np.zeros((0, 3))
    if marker.kind == TEXT:
        return marker.position[None]
    if marker.kind in (CUBE, SPHERE, CYLINDER):
        half = 0.5 * np.abs(SO3(rotation_of(marker)).as_matrix()) @ marker.scale
        return np.stack([marker.position - half, marker.position + half])
    return marker.placed_points()


def segments(marker: Marker) -> tuple[np.ndarray, np.ndarray]:
    """Return ends (N, 2, 3) and colours (N, 2, 3) of the lines of a marker, or of its arrow."""
    points, colors = marker.placed_points(), marker.colors
    if len(colors) != len(points):
        colors = np.tile(marker.color, (len(points), 1))
    if marker.kind == LINE_STRIP:
        points, colors = (np.repeat(ends, 2, axis=0)[1:-1] for ends in (points, colors))
    count = len(points) // 2 * 2
    return points[:count].reshape(-1, 2, 3), bytes_of(colors[:count].reshape(-1, 2, 4))


def bytes_of(colors: np.ndarray) -> np.ndarray:
    """Return red, green and blue, 0 to 255, of colours (..., 4)."""
    scaled: np.ndarray = np.rint(255.0 * np.clip(colors[..., :3], 0.0, 1.0)).astype(np.uint8)
    return scaled


def right_triangles(triangles: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """
    Return two right-angled triangles for each (N, 3, 3): copies of one that only need be moved.

    Positions (2 N, 3), rotations (2 N, 4) and scales (2 N, 3) of (0, 0, 0), (1, 0, 0), (0, 1, 0).
    """
    # The altitude on the longest side divides it.
    sides = np.linalg.norm(np.roll(triangles, -1, axis=1) - triangles, axis=2)
    longest = np.argmax(sides, axis=1)
    rows = np.arange(len(triangles))
    start, end = triangles[rows, longest], triangles[rows, (longest + 1) % 3]
    apex = triangles[rows, (longest + 2) % 3]
    along = end - start
    square = np.maximum(np.einsum('ij,ij->i', along, along), 1e-30)
    share = np.einsum('ij,ij->i', apex - start, along) / square
    foot = start + share[:, None] * along
    corners = np.stack([start, end], axis=1).reshape(-1, 3)
    foot, apex = np.repeat(foot, 2, axis=0), np.repeat(apex, 2, axis=0)
    x, y = corners - foot, apex - foot
    scales = np.ones((len(x), 3))
    scales[:, 0], scales[:, 1] = np.linalg.norm(x, axis=1), np.linalg.norm(y, axis=1)
    x, y = x / np.maximum(scales[:, :1], 1e-12), y / np.maximum(scales[:, 1:2], 1e-12)
    flat = (scales[:, 0] < 1e-9) | (scales[:, 1] < 1e-9)
    x[flat], y[flat] = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0)
    matrices = np.stack([x, y, np.cross(x, y)], axis=2)
    rotations = SO3.from_matrix(matrices).wxyz
    return foot, rotations, scales


def array_of(message: Any) -> np.ndarray | None:
    """Return an image as red, green, blue (height, width, 3) of fewer pixels, or None."""
    channels = _CHANNELS.get(message.encoding)
    height, width, step = int(message.height), int(message.width), int(message.step)
    if channels is None or step < width * channels or len(message.data) < height * step:
        return None
    data = np.frombuffer(message.data, np.uint8, height * step).reshape(height, step)
    image = data[:, : width * channels].reshape(height, width, channels)
    every = max(1, -(-width // _WIDEST))
    image = image[::every, ::every]
    if message.encoding in ('bgr8', '8UC3'):
        image = image[..., ::-1]
    return np.ascontiguousarray(np.broadcast_to(image, (*image.shape[:2], 3)))
