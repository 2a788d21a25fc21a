"""Status of one component in /diagnostics."""

from __future__ import annotations

from collections.abc import Mapping

from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.node import Node

from longreach_node.qos import DIAGNOSTICS

OK, WARN, ERROR = DiagnosticStatus.OK, DiagnosticStatus.WARN, DiagnosticStatus.ERROR
LEVELS = {'ok': OK, 'warn': WARN, 'error': ERROR}


class Diagnostics:
    """
    Publisher of one component's state on /diagnostics.

    Parameters
    ----------
    node : Node
        Its full name is the component's name.
    hardware : str
        ``hardware_id`` of the status.
    part : str
        Name of a part, where a node reports on several.
    """

    def __init__(self, node: Node, hardware: str, part: str = '') -> None:
        self._name = node.get_fully_qualified_name().lstrip('/') + (f': {part}' if part else '')
        self._hardware = hardware
        self.publisher = node.create_publisher(DiagnosticArray, '/diagnostics', DIAGNOSTICS)

    def publish(self, stamp: Time, level: bytes, text: str, values: Mapping[str, object]) -> None:
        """Publish level (OK, WARN, ERROR of this module), a sentence, and values by name."""
        status = DiagnosticStatus(
            level=level,
            name=self._name,
            message=text,
            hardware_id=self._hardware,
            values=[KeyValue(key=key, value=str(value)) for key, value in values.items()],
        )
        array = DiagnosticArray(status=[status])
        array.header.stamp = stamp
        self.publisher.publish(array)
