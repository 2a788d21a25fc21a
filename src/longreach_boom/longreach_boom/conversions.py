"""Between the bent boom and messages for viewers."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from geometry_msgs.msg import Point, Vector3
from std_msgs.msg import ColorRGBA, Header
from visualization_msgs.msg import Marker, MarkerArray

from longreach_boom.visuals import BeamShape

# Distance of coloured sides from those of the robot description, which would hide them [m].
_CLEARANCE = 0.02


def shape_to_message(
    shapes: Iterable[BeamShape], colours: Iterable[np.ndarray], header: Header
) -> MarkerArray:
    """Return both sides of bent beams; colours are red, green, blue in 0..1 for each point."""
    markers = []
    for shape, own in zip(shapes, colours, strict=True):
        marker = Marker(header=header, ns=shape.name, type=Marker.TRIANGLE_LIST, action=Marker.ADD)
        marker.pose.orientation.w = 1.0
        marker.scale = Vector3(x=1.0, y=1.0, z=1.0)
        marker.color = ColorRGBA(r=1.0, g=1.0, b=1.0, a=1.0)
        ends = [ColorRGBA(r=r, g=g, b=b, a=1.0) for r, g, b in own.tolist()]
        points, colors = [], []
        for y in (-shape.side - _CLEARANCE, shape.side + _CLEARANCE):
            low, high = ([Point(x=x, y=y, z=z) for x, z in edge] for edge in shape.edges.tolist())
            for k in range(len(ends) - 1):
                points += [low[k], low[k + 1], high[k], high[k], low[k + 1], high[k + 1]]
                colors += [ends[k], ends[k + 1], ends[k], ends[k], ends[k + 1], ends[k + 1]]
        marker.points, marker.colors = points, colors
        markers.append(marker)
    return MarkerArray(markers=markers)
