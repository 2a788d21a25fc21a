"""Publishers that wait for their listeners: nothing lost, order kept."""

from __future__ import annotations

from typing import Any

import pytest
from rclpy.node import Node
from std_msgs.msg import Float64, String

from longreach_node import outbox, qos
from longreach_node.outbox import Outbox
from longreach_node.testing import Bench, bench


def held(b: Bench, patience: float, numbers: int, texts: int) -> tuple[Outbox, Any, Any]:
    node = b.add(lambda: Node('toy'))
    box = Outbox(node, patience)
    first = box.hold(node.create_publisher(Float64, 'numbers', qos.STREAM), numbers)
    second = box.hold(node.create_publisher(String, 'texts', qos.STREAM), texts)
    return box, first, second


def subscribe(b: Bench, log: list[Any], kind: Any, topic: str) -> None:
    b.driver.create_subscription(kind, topic, lambda m: log.append(m.data), qos.STREAM)


def test_nothing_is_lost_and_the_order_is_kept() -> None:
    with bench() as b:
        box, numbers, texts = held(b, 100.0, 1, 1)
        for count in range(50):
            numbers.publish(Float64(data=float(count)))
            texts.publish(String(data=str(count)))
        first: list[Any] = []
        subscribe(b, first, Float64, 'numbers')
        b.until(lambda: numbers.is_connected())
        b.settle()
        # One of the two has nobody yet: neither is sent, or their order would be lost.
        assert first == []
        second: list[Any] = []
        subscribe(b, second, String, 'texts')
        numbers.publish(Float64(data=50.0))
        b.until(lambda: len(first) == 51 and len(second) == 50)
        # From then on without a detour.
        numbers.publish(Float64(data=51.0))
        b.until(lambda: len(first) == 52)
        assert first == [float(count) for count in range(52)]
        assert second == [str(count) for count in range(50)]
        assert box._held == []


def test_with_nobody_to_wait_for_it_sends_at_once() -> None:
    with bench() as b:
        log: list[Any] = []
        subscribe(b, log, Float64, 'numbers')
        box, numbers, _ = held(b, 100.0, 0, 0)
        b.until(lambda: numbers.publisher.get_subscription_count() == 1)
        numbers.publish(Float64(data=1.0))
        assert box._held == []
        b.until(lambda: log == [1.0])


def test_as_many_listeners_as_needed() -> None:
    with bench() as b:
        _, numbers, _ = held(b, 100.0, 2, 0)
        log: list[Any] = []
        subscribe(b, log, Float64, 'numbers')
        b.until(lambda: numbers.publisher.get_subscription_count() == 1)
        numbers.publish(Float64(data=1.0))
        b.settle()
        assert log == []
        subscribe(b, log, Float64, 'numbers')
        b.until(lambda: log == [1.0, 1.0])


def test_patience_ends_and_counts_from_the_first_message(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Wall:
        seconds = 0.0

        def monotonic(self) -> float:
            return self.seconds

    wall = Wall()
    monkeypatch.setattr(outbox, 'time', wall)
    with bench() as b:
        box, numbers, _ = held(b, 5.0, 1, 1)
        log: list[Any] = []
        subscribe(b, log, Float64, 'numbers')
        b.until(lambda: numbers.is_connected())
        # A node that has nothing to say for long is not late.
        wall.seconds = 60.0
        numbers.publish(Float64(data=1.0))
        b.settle()
        wall.seconds = 64.9
        numbers.publish(Float64(data=2.0))
        b.settle()
        assert log == []
        wall.seconds = 65.1
        b.until(lambda: log == [1.0, 2.0])
        assert box._held == []
