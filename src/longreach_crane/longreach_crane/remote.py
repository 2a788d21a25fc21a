"""Commands of the command line to running nodes."""

from __future__ import annotations

from std_msgs.msg import Float64

from longreach_node.qos import SET_POINT
from longreach_node.remote import remote


def send_set_point(position: float, namespace: str, timeout: float) -> str:
    """Send a car position [m] to the controller of a namespace; return the topic."""
    with remote('set_point', namespace, timeout, 'longreach launch crane') as far:
        publisher = far.publisher(Float64, 'set_point', SET_POINT, 'controller')
        far.deliver(publisher, Float64(data=position))
        return str(publisher.topic_name)
