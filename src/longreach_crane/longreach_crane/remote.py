"""Commands of the command line to running nodes."""

from __future__ import annotations

from std_msgs.msg import Float64

from longreach_node.qos import SET_POINT
from longreach_node.remote import remote

_START = 'longreach launch crane'


def send_set_point(position: float, namespace: str, timeout: float) -> str:
    """
    Send a car position [m] to the controller of a namespace and return the topic.

    LongreachError when no controller subscribes within the timeout [s], or it does not receive it.
    """
    with remote('set_point', namespace, timeout, _START) as far:
        publisher = far.publisher(Float64, 'set_point', SET_POINT, 'controller')
        far.deliver(publisher, Float64(data=position))
        return str(publisher.topic_name)
