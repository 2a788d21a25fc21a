"""What the command line says to nodes that run."""

from __future__ import annotations

import time

import rclpy
from rclpy.context import Context
from rclpy.duration import Duration
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.publisher import Publisher
from std_msgs.msg import Float64

from longreach_dynamics.errors import LongreachError
from longreach_node.qos import SET_POINT

__all__ = ['send_set_point']


def send_set_point(position: float, namespace: str, timeout: float) -> str:
    """
    Send a set point to the controller of a namespace and return the topic.

    Parameters
    ----------
    position : float
        Desired position of the car [m].
    namespace : str
    timeout : float
        Longest wait for a controller [s].

    Raises
    ------
    LongreachError
        When no controller listens within that time, or it does not take the message.
    """
    context = Context()
    rclpy.init(args=[], context=context)
    try:
        node = Node('set_point', namespace=namespace, context=context)
        publisher = node.create_publisher(Float64, 'set_point', SET_POINT)
        executor = SingleThreadedExecutor(context=context)
        executor.add_node(node)
        deadline = time.monotonic() + timeout
        while not _controller_listens(node, publisher):
            if time.monotonic() > deadline:
                raise LongreachError(
                    f'no controller listens to {publisher.topic_name} after {timeout:g} s;'
                    ' start one with longreach launch crane, in the same ROS_DOMAIN_ID, or name'
                    ' its --namespace'
                )
            executor.spin_once(timeout_sec=0.05)
        publisher.publish(Float64(data=position))
        if not publisher.wait_for_all_acked(Duration(seconds=timeout)):
            raise LongreachError(
                f'{publisher.topic_name}: the controller did not take the message'
            )
        return str(publisher.topic_name)
    finally:
        rclpy.shutdown(context=context)


def _controller_listens(node: Node, publisher: Publisher) -> bool:
    """Tell whether a controller, and not only a recorder, is connected to a publisher."""
    listeners = node.get_subscriptions_info_by_topic(publisher.topic_name)
    known = any(listener.node_name == 'controller' for listener in listeners)
    return known and int(publisher.get_subscription_count()) >= len(listeners)
