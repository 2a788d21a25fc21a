"""Markers for RViz: the traces of car and load."""

from __future__ import annotations

import dataclasses
import math
from collections import deque

from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import MarkerArray

from longreach_crane.description import ROOT_FRAME
from longreach_crane.parameters import load_machinery
from longreach_dynamics.parameters import quantity
from longreach_node import qos
from longreach_node.frames import FrameParameters, frame_name, header_at
from longreach_node.markers import line_marker
from longreach_node.parameters import declare
from longreach_node.stamps import nanoseconds_of

# Of the traces of car and load; their width [m].
_COLORS = (ColorRGBA(r=0.15, g=0.40, b=0.85, a=1.0), ColorRGBA(r=0.95, g=0.55, b=0.10, a=1.0))
_WIDTH = 0.02


@dataclasses.dataclass(frozen=True)
class MarkersParameters(FrameParameters):
    """Parameters of the markers node."""

    file: str = quantity('crane file; empty for C13R', '', default='')
    rate: float = quantity(
        'markers per second of simulation', 'Hz', above=0.0, at_most=1e3, default=30.0
    )
    trace: float = quantity(
        'length of the traces', 's', at_least=0.0, at_most=3600.0, default=10.0
    )


class MarkersNode(Node):
    """Publishes ``markers`` for ``joint_states``."""

    def __init__(self) -> None:
        super().__init__('markers')
        self._settings = settings = declare(self, MarkersParameters)
        self._frame = frame_name(self, settings, ROOT_FRAME)
        self._length = load_machinery(settings.file or None).crane.cable_length
        points = max(2, round(settings.trace * settings.rate))
        # Both ends of the cable, x, y, z [m].
        self._ends: deque[tuple[tuple[float, ...], ...]] = deque(maxlen=points)
        self._latest = -1
        self._publisher = self.create_publisher(MarkerArray, 'markers', qos.VISUAL)
        self.create_subscription(JointState, 'joint_states', self._on_joints, qos.STREAM)

    def _on_joints(self, message: JointState) -> None:
        """Publish the markers of a sample, when one is due."""
        if len(message.position) < 2:
            return
        now = nanoseconds_of(message.header.stamp)
        if now < self._latest:
            self._ends.clear()
        elif self._latest >= 0 and now - self._latest < 1e9 / self._settings.rate - 1e6:
            return
        self._latest = now
        x, angle = message.position[:2]
        r = self._length
        self._ends.append(((x, 0.0, 0.0), (x + r * math.sin(angle), 0.0, -r * math.cos(angle))))
        header = header_at(now, self._frame)
        traces = zip(
            ('car_trace', 'load_trace'), zip(*self._ends, strict=True), _COLORS, strict=True
        )
        markers = [line_marker(*trace, header, _WIDTH) for trace in traces]
        self._publisher.publish(MarkerArray(markers=markers))
