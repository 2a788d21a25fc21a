"""
Markers of ``visualization_msgs/MarkerArray``, and images, as what a page draws.

Supported are arrows between two points, line strips and lists, triangle lists, cubes, spheres,
cylinders and texts. Coordinates are in the frame of the markers [m], colours are 0 to 255.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from viser.transforms import SO3

from longreach_dynamics.markers import Marker, Markers

ARROW, CUBE, SPHERE, CYLINDER, LINE_STRIP, LINE_LIST, TEXT, TRIANGLE_LIST = 0, 1, 2, 3, 4, 5, 9, 11
TYPES = (ARROW, CUBE, SPHERE, CYLINDER, LINE_STRIP, LINE_LIST, TEXT, TRIANGLE_LIST)
_BODIES = {CUBE: 'box', SPHERE: 'sphere', CYLINDER: 'cylinder'}
_UNIT = np.array([1.0, 0.0, 0.0, 0.0])
# Of images: channels by encoding, and their greatest width on a page [pixels].
_CHANNELS = {'mono8': 1, '8UC1': 1, 'bgr8': 3, 'rgb8': 3, '8UC3': 3}
_WIDEST = 960


class Body(NamedTuple):
    """A box, sphere or cylinder: size along its own axes [m], pose, colour."""

    kind: str
    size: tuple[float, float, float]
    position: np.ndarray
    rotation: np.ndarray
    color: tuple[int, int, int]


class Figures(NamedTuple):
    """What is to be drawn in one frame."""

    frame: str
    triangles: np.ndarray  # (N, 3, 3)
    triangle_colors: np.ndarray  # (N, 3)
    lines: np.ndarray  # (N, 2, 3)
    line_colors: np.ndarray  # (N, 2, 3)
    arrows: np.ndarray  # (N, 2, 3)
    arrow_colors: np.ndarray  # (N, 3)
    bodies: dict[str, Body]  # by name of the marker
    texts: dict[str, tuple[str, np.ndarray]]  # by name of the marker: text, place
    skipped: tuple[int, ...]  # types that are not drawn
    line_width: float = 0.0  # of the thinnest line [m]; 0: lines do not say it


class Drawing:
    """The markers of a topic that are shown: later messages add, replace and delete them."""

    def __init__(self) -> None:
        self._markers: dict[tuple[str, int], Marker] = {}

    def add(self, message: Markers) -> None:
        """Apply a MarkerArray."""
        message.apply_to(self._markers)

    def clear(self) -> None:
        """Remove all markers."""
        self._markers.clear()

    def bent(self) -> frozenset[str]:
        """Return the names of what is drawn by triangles: links that are bent bear them."""
        return frozenset(name for (name, _), m in self._markers.items() if m.kind == TRIANGLE_LIST)

    def shows_stress(self) -> bool:
        """Return whether triangles have colours by point, as bent beams have."""
        return any(m.kind == TRIANGLE_LIST and len(m.colors) for m in self._markers.values())

    def figures(self) -> list[Figures]:
        """Return what is to be drawn, frame by frame."""
        by_frame: dict[str, list[Marker]] = {}
        for marker in self._markers.values():
            by_frame.setdefault(marker.frame, []).append(marker)
        return [_figures(frame, markers) for frame, markers in by_frame.items()]


def _figures(frame: str, markers: list[Marker]) -> Figures:
    """Return the figures of the markers of one frame."""
    parts: dict[str, list[np.ndarray]] = {name: [] for name in Figures._fields[1:7]}
    bodies, texts, skipped = {}, {}, set()
    widths: list[float] = []
    for marker in markers:
        numbers = (marker.position, marker.rotation, marker.scale, marker.points)
        if not all(np.isfinite(values).all() for values in numbers):
            # The page cannot draw what has no place.
            continue
        name = f'{marker.name}_{marker.number}'
        own, rotation = _bytes(marker.color), _unit(marker.rotation)
        points = marker.placed_points()
        if marker.kind in _BODIES:
            x, y, z = marker.scale.tolist()
            r, g, b = own.astype(int).tolist()
            bodies[name] = Body(
                _BODIES[marker.kind], (x, y, z), marker.position, rotation, (r, g, b)
            )
        elif marker.kind == TEXT:
            texts[name] = (marker.text, marker.position)
        elif marker.kind == TRIANGLE_LIST:
            corners = points[: len(points) // 3 * 3].reshape(-1, 3, 3)
            colors = _colors(marker, len(points))[: 3 * len(corners)]
            parts['triangles'].append(corners)
            parts['triangle_colors'].append(colors.reshape(-1, 3, 3).mean(axis=1))
        elif marker.kind in (LINE_STRIP, LINE_LIST):
            colors = _colors(marker, len(points))
            widths += [w for w in marker.scale[:1].tolist() if w > 0.0]
            if marker.kind == LINE_STRIP:
                first, second = slice(None, -1), slice(1, None)
            else:
                first, second = slice(0, len(points) // 2 * 2, 2), slice(1, None, 2)
            parts['lines'].append(np.stack([points[first], points[second]], axis=1))
            parts['line_colors'].append(np.stack([colors[first], colors[second]], axis=1))
        elif marker.kind == ARROW and len(points) == 2:
            parts['arrows'].append(points[None])
            parts['arrow_colors'].append(own[None])
        else:
            skipped.add(marker.kind)
    shapes = {'triangles': (0, 3, 3), 'triangle_colors': (0, 3), 'arrow_colors': (0, 3)}
    arrays = {
        name: np.concatenate(found) if found else np.zeros(shapes.get(name, (0, 2, 3)))
        for name, found in parts.items()
    }
    return Figures(
        frame,
        **arrays,
        bodies=bodies,
        texts=texts,
        skipped=tuple(sorted(skipped)),
        line_width=min(widths, default=0.0),
    )


def _bytes(colors: np.ndarray) -> np.ndarray:
    """Return red, green and blue, 0 to 255, of colours (..., 4)."""
    scaled: np.ndarray = np.rint(255.0 * np.clip(colors[..., :3], 0.0, 1.0))
    return scaled


def _colors(marker: Marker, count: int) -> np.ndarray:
    """Return the colours of all points of a marker, (count, 3)."""
    own = len(marker.colors) == count
    return _bytes(marker.colors if own else np.tile(marker.color, (count, 1)))


def _unit(turn: np.ndarray) -> np.ndarray:
    """Return a rotation w, x, y, z of length 1; one of length 0 means none."""
    length = float(np.linalg.norm(turn))
    return turn / length if length > 0.0 else _UNIT


def right_triangles(triangles: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """
    Return two right-angled triangles for each triangle (N, 3, 3): copies of one, scaled and moved.

    Positions (2 N, 3), rotations (2 N, 4) and scales (2 N, 3) of copies of the triangle with the
    corners (0, 0, 0), (1, 0, 0) and (0, 1, 0), which move on a page without new meshes.
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
