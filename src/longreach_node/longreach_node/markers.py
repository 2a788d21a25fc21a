"""Markers for viewers that the plants share: arrows of forces, lines."""

from __future__ import annotations

import math
from collections.abc import Sequence

from geometry_msgs.msg import Point, Vector3
from std_msgs.msg import ColorRGBA, Header
from visualization_msgs.msg import Marker

RED, BLUE = ColorRGBA(r=0.84, g=0.12, b=0.12, a=1.0), ColorRGBA(r=0.16, g=0.42, b=0.78, a=1.0)
BROWN = ColorRGBA(r=0.45, g=0.31, b=0.18, a=1.0)
WHITE = ColorRGBA(r=1.0, g=1.0, b=1.0, a=1.0)
GREY = ColorRGBA(r=0.55, g=0.55, b=0.58, a=1.0)
SHORTEST = 0.02
"""Shorter arrows are not drawn [m]."""
# Shaft and head of arrows, lines [m].
_SHAFT, _HEAD, _LINE = 0.05, 0.12, 0.05


def arrow_marker(
    name: str,
    start: Sequence[float],
    vector: Sequence[float],
    color: ColorRGBA,
    header: Header,
) -> Marker:
    """Return an arrow x, y, z [m] as a marker; one that is too short to see is removed."""
    marker = _marker(name, Marker.ARROW, color, header)
    if math.hypot(*vector) < SHORTEST:
        marker.action = Marker.DELETE
    marker.scale = Vector3(x=_SHAFT, y=_HEAD)
    end = [a + b for a, b in zip(start, vector, strict=True)]
    marker.points = [_point(start), _point(end)]
    return marker


def line_marker(
    name: str,
    points: Sequence[Sequence[float]],
    color: ColorRGBA,
    header: Header,
    width: float = _LINE,
) -> Marker:
    """Return a line through points x, y, z [m] as a marker, of a width [m]."""
    marker = _marker(name, Marker.LINE_STRIP, color, header)
    marker.scale.x = width
    marker.points = [_point(point) for point in points]
    return marker


def sphere_marker(
    name: str, centre: Sequence[float], radius: float, color: ColorRGBA, header: Header
) -> Marker:
    """Return a sphere about x, y, z [m] as a marker."""
    marker = _marker(name, Marker.SPHERE, color, header)
    marker.pose.position = _point(centre)
    marker.scale = Vector3(x=2.0 * radius, y=2.0 * radius, z=2.0 * radius)
    return marker


def triangles_marker(
    name: str,
    corners: Sequence[Sequence[float]],
    color: ColorRGBA,
    header: Header,
    colors: Sequence[ColorRGBA] = (),
) -> Marker:
    """Return triangles, three corners x, y, z [m] after three, which may have their colors."""
    marker = _marker(name, Marker.TRIANGLE_LIST, color, header)
    marker.scale = Vector3(x=1.0, y=1.0, z=1.0)
    marker.points, marker.colors = [_point(corner) for corner in corners], colors
    return marker


def _marker(name: str, kind: int, color: ColorRGBA, header: Header) -> Marker:
    """Return a marker to be filled."""
    marker = Marker(header=header, ns=name, type=kind, action=Marker.ADD, color=color)
    marker.pose.orientation.w = 1.0
    return marker


def _point(place: Sequence[float]) -> Point:
    """Return a place [m]."""
    x, y, z = place
    return Point(x=float(x), y=float(y), z=float(z))
