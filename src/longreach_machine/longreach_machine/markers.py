"""
Markers of a ``visualization_msgs/MarkerArray``, read from its serialised form into arrays.

A drawing has hundreds of points. Message objects for each of them take a hundred times as long,
which a viewer of 30 drawings per second cannot afford.
"""

from __future__ import annotations

import dataclasses
import struct

import numpy as np

from longreach_dynamics.errors import InputError

KIND = 'visualization_msgs/msg/MarkerArray'

_ADD, _DELETE, _DELETE_ALL = 0, 2, 3

# CDR: four bytes say how the rest is written; numbers are aligned from there on.
_BEGIN, _LITTLE, _BIG = 4, b'\x00\x01', b'\x00\x00'


@dataclasses.dataclass(frozen=True, slots=True)
class Marker:
    """A marker."""

    stamp: int  # [ns]
    frame: str
    name: str  # its ``ns``
    number: int  # its ``id``
    kind: int  # its ``type``
    action: int
    position: np.ndarray  # (3,) [m]
    rotation: np.ndarray  # quaternion w, x, y, z as it was sent
    scale: np.ndarray  # (3,)
    color: np.ndarray  # red, green, blue, opacity, 0 to 1
    points: np.ndarray  # (N, 3)
    colors: np.ndarray  # (M, 4) of the points; none, or as many
    text: str

    def placed_points(self) -> np.ndarray:
        """Return the points in the frame (N, 3) [m]; a rotation of length 0 means none."""
        turn = self.rotation / (np.linalg.norm(self.rotation) or 1.0)
        across = 2.0 * np.cross(turn[1:], self.points)
        turned = self.points + turn[0] * across + np.cross(turn[1:], across)
        return np.asarray(turned + self.position)

    def triangles(self) -> tuple[np.ndarray, np.ndarray]:
        """Return corners (N, 3, 3) in the frame [m], and mean colours (N, 4), of triangles."""
        count = len(self.points)
        colors = self.colors if len(self.colors) == count else np.tile(self.color, (count, 1))
        parts = (self.placed_points(), colors)
        corners, colors = (one[: count // 3 * 3].reshape(-1, 3, one.shape[1]) for one in parts)
        return corners, colors.mean(axis=1)


@dataclasses.dataclass(frozen=True, slots=True)
class Markers:
    """The markers of a message."""

    markers: list[Marker]

    def apply_to(self, shown: dict[tuple[str, int], Marker]) -> None:
        """Add, replace and delete markers that are shown, by name and number."""
        for marker in self.markers:
            if marker.action == _DELETE_ALL:
                shown.clear()
            elif marker.action == _DELETE:
                shown.pop((marker.name, marker.number), None)
            elif marker.action == _ADD:
                shown[marker.name, marker.number] = marker


def read_markers(data: bytes) -> Markers:
    """Return the markers of a serialised ``MarkerArray``; InputError when it is none."""
    try:
        cdr = _Cdr(data)
        return Markers([cdr.marker() for _ in range(cdr.count())])
    except (struct.error, ValueError, UnicodeDecodeError) as error:
        raise InputError(f'{len(data)} bytes are no {KIND}: {error}') from error


class _Cdr:
    """Serialised data, read from the beginning to the end."""

    def __init__(self, data: bytes) -> None:
        if data[:2] not in (_LITTLE, _BIG):
            raise ValueError(f'begins with {data[:2].hex()}, allowed: 0000 or 0001, plain CDR')
        self._data, self._at = data, _BEGIN
        self._order = '<' if data[:2] == _LITTLE else '>'

    def _array(self, kind: str, count: int) -> np.ndarray:
        """Return numbers of a kind; each is aligned to its size."""
        dtype = np.dtype(self._order + kind)
        if count:
            self._at += (_BEGIN - self._at) % dtype.itemsize
        values = np.frombuffer(self._data, dtype, count, self._at)
        self._at += values.nbytes
        return values

    def count(self) -> int:
        """Return a number of entries."""
        return int(self._array('u4', 1)[0])

    def _text(self) -> str:
        """Return a text."""
        return self._array('u1', self.count()).tobytes().rstrip(b'\0').decode()

    def _rows(self, kind: str, width: int) -> np.ndarray:
        """Return a sequence of vectors, shape (N, width)."""
        return self._array(kind, self.count() * width).reshape(-1, width)

    def marker(self) -> Marker:
        """Return the next marker: the fields of visualization_msgs/Marker one after the other."""
        seconds, nanoseconds = int(self._array('i4', 1)[0]), self.count()
        frame, name = self._text(), self._text()
        number, kind, action = self._array('i4', 3).tolist()
        position, turn, scale = (self._array('f8', n) for n in (3, 4, 3))
        color = self._array('f4', 4)
        self._array('u4', 2)  # lifetime
        self._array('u1', 1)  # frame_locked
        points, colors = self._rows('f8', 3), self._rows('f4', 4)
        self._text()  # texture_resource
        self._array('u4', 2)  # texture: stamp
        self._text(), self._text(), self._rows('u1', 1)  # frame, format, data
        self._rows('f4', 2)  # uv_coordinates
        text = self._text()
        self._text(), self._text(), self._rows('u1', 1)  # mesh_resource, mesh_file
        self._array('u1', 1)  # mesh_use_embedded_materials
        return Marker(
            1_000_000_000 * seconds + nanoseconds, frame, name, number, kind, action,
            position, turn[[3, 0, 1, 2]], scale, color, points, colors, text,
        )  # fmt: skip
