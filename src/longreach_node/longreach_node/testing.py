"""
Test bench for nodes: the nodes under test and a driver node in one thread and process.

Nothing sleeps: a test spins until a condition holds, and fails after a deadline with the name of
the condition. Set ROS_DOMAIN_ID and ROS_AUTOMATIC_DISCOVERY_RANGE before, to keep other nodes out.
"""

from __future__ import annotations

import contextlib
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar

import rclpy
from rclpy.node import Node

from longreach_node import qos
from longreach_node.executor import node_executor

N = TypeVar('N', bound=Node)
P = ParamSpec('P')
R = TypeVar('R')


class Bench:
    """Nodes in one executor, a node ``driver`` for the other side, and the longest wait [s]."""

    def __init__(self, deadline: float) -> None:
        self._deadline = deadline
        self._executor = node_executor()
        self._nodes: list[Node] = []
        self._threads = ThreadPoolExecutor()
        self.driver = self.add(lambda: Node('driver'))

    def add(self, factory: Callable[[], N]) -> N:
        """Create a node and add it to the executor."""
        try:
            node = factory()
        except BaseException as error:
            # Its participant would outlive this bench, and Fast DDS hangs now and then when one of
            # two participants in a process ends (eProsima/Fast-DDS issue 6513).
            for frame, _ in traceback.walk_tb(error.__traceback__):
                half = frame.f_locals.get('self')
                if isinstance(half, Node) and half not in self._nodes:
                    Node.destroy_node(half)
            raise
        self._nodes.append(node)
        self._executor.add_node(node)
        return node

    def remove(self, node: Node) -> None:
        """Remove and destroy a node, as when its process ends."""
        self._nodes.remove(node)
        self._executor.remove_node(node)
        node.destroy_node()

    def listen(self, kind: type, topic: str, profile: Any = qos.STREAM) -> list[Any]:
        """Return a list that all messages of a topic are appended to."""
        messages: list[Any] = []
        self.driver.create_subscription(kind, topic, messages.append, profile)
        return messages

    def publisher(self, kind: type, topic: str, profile: Any = qos.STREAM) -> Any:
        """Return a publisher of the driver that has found its subscriber."""
        publisher = self.driver.create_publisher(kind, topic, profile)
        self.until(lambda: publisher.get_subscription_count() > 0, f'subscriber of {topic}')
        return publisher

    def call(self, kind: Any, name: str, request: Any = None) -> Any:
        """Call a service and return its response."""
        client = self.driver.create_client(kind, name)
        self.until(client.service_is_ready, f'service {name}')
        future = client.call_async(kind.Request() if request is None else request)
        self.until(future.done, f'response of {name}')
        self.driver.destroy_client(client)
        return future.result()

    def until(self, condition: Callable[[], object], what: str = '') -> None:
        """Spin all nodes until a condition holds; AssertionError after the deadline."""
        end = time.monotonic() + self._deadline
        while not condition():
            assert time.monotonic() < end, f'within {self._deadline:g} s: no {what or condition}'
            self._executor.spin_once(timeout_sec=0.02)

    def begin(
        self, function: Callable[P, R], *arguments: P.args, **keywords: P.kwargs
    ) -> Future[R]:
        """Start a function that waits for the nodes, in a thread of its own."""
        return self._threads.submit(function, *arguments, **keywords)

    def end(self, begun: Future[R]) -> R:
        """Spin until a function has ended, and return its result or raise its error."""
        self.until(begun.done, 'end of the function')
        return begun.result()

    def settle(self, rounds: int = 20) -> None:
        """Process all pending callbacks: for tests that nothing happens."""
        for _ in range(rounds):
            self._executor.spin_once(timeout_sec=0.005)

    def close(self) -> None:
        """Destroy all nodes."""
        for node in reversed(self._nodes):
            self._executor.remove_node(node)
            node.destroy_node()
        self._executor.shutdown()
        self._threads.shutdown()


def setting(*nodes: str, **parameters: object) -> list[str]:
    """Return ROS arguments that give parameters to some nodes, or to all."""
    booleans = {True: 'true', False: 'false'}
    texts = {n: booleans[v] if isinstance(v, bool) else v for n, v in parameters.items()}
    given = [f'{name}:={text}' for name, text in texts.items()]
    given = [f'{node}:{one}' for node in nodes for one in given] or given
    return [word for one in given for word in ('-p', one)]


@contextlib.contextmanager
def bench(*arguments: str, deadline: float = 60.0) -> Iterator[Bench]:
    """Create a bench with ROS arguments for all nodes, such as :func:`setting`."""
    rclpy.init(args=['--ros-args', *arguments])
    tests = Bench(deadline)
    try:
        yield tests
    finally:
        tests.close()
        rclpy.shutdown()
