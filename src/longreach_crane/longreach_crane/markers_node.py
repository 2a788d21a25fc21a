"""Markers for RViz: the traces of car and load."""

from __future__ import annotations

import dataclasses
from collections import deque

from rclpy.node import Node
from sensor_msgs.msg import JointState
from visualization_msgs.msg import MarkerArray

from longreach_crane.conversions import trace_marker
from longreach_crane.description import ROOT_FRAME
from longreach_crane.model import Constants, suspension_and_load
from longreach_crane.parameters import load_machinery
from longreach_dynamics.parameters import quantity
from longreach_node import qos
from longreach_node.frames import FrameParameters, frame_name, header_at
from longreach_node.parameters import declare
from longreach_node.stamps import nanoseconds_of


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
        self._settings = declare(self, MarkersParameters)
        self._frame = frame_name(self, self._settings, ROOT_FRAME)
        self._constants = Constants.of(load_machinery(self._settings.file or None).crane)
        points = max(2, round(self._settings.trace * self._settings.rate))
        self._suspensions: deque[tuple[float, float]] = deque(maxlen=points)
        self._loads: deque[tuple[float, float]] = deque(maxlen=points)
        self._latest = -1
        self._publisher = self.create_publisher(MarkerArray, 'markers', qos.VISUAL)
        self.create_subscription(JointState, 'joint_states', self._on_joints, qos.STREAM)

    def _on_joints(self, message: JointState) -> None:
        """Publish the markers of a sample, when one is due."""
        if len(message.position) < 2:
            return
        now = nanoseconds_of(message.header.stamp)
        if now < self._latest:
            self._suspensions.clear()
            self._loads.clear()
        elif self._latest >= 0 and now - self._latest < 1e9 / self._settings.rate - 1e6:
            return
        self._latest = now
        position, angle = message.position[:2]
        suspension, load = suspension_and_load(position, angle, self._constants)
        self._suspensions.append(suspension)
        self._loads.append(load)
        header = header_at(now, self._frame)
        self._publisher.publish(
            MarkerArray(
                markers=[
                    trace_marker('car_trace', self._suspensions, (0.15, 0.40, 0.85), header),
                    trace_marker('load_trace', self._loads, (0.95, 0.55, 0.10), header),
                ]
            )
        )
