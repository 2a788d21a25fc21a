"""Stamps, named qualities of service, and diagnostics."""

from __future__ import annotations

import pytest
from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from std_msgs.msg import Float64

from longreach_node import diagnostics, qos
from longreach_node.stamps import nanoseconds_of, seconds_to_nanoseconds, stamp_of
from longreach_node.testing import bench


@pytest.mark.parametrize(
    ('seconds', 'nanoseconds', 'stamp'),
    [
        (0.0, 0, (0, 0)),
        (0.01, 10_000_000, (0, 10_000_000)),
        # As doubles, 0.29 and 0.57 lie below what they mean.
        (0.29, 290_000_000, (0, 290_000_000)),
        (59.57, 59_570_000_000, (59, 570_000_000)),
        (1e9 + 0.5, 1_000_000_000_500_000_000, (1_000_000_000, 500_000_000)),
    ],
)
def test_stamps(seconds: float, nanoseconds: int, stamp: tuple[int, int]) -> None:
    assert seconds_to_nanoseconds(seconds) == nanoseconds
    message = stamp_of(nanoseconds)
    assert (message.sec, message.nanosec) == stamp
    assert nanoseconds_of(message) == nanoseconds


def test_every_cycle_of_an_hour_has_its_own_exact_stamp() -> None:
    stamps = [seconds_to_nanoseconds(round(k * 0.01, 12)) for k in range(360_000)]
    assert stamps == [k * 10_000_000 for k in range(360_000)]


def test_only_images_may_be_lost() -> None:
    profiles = {n: p for n, p in vars(qos).items() if isinstance(p, QoSProfile)}
    # Drivers of cameras publish as best effort.
    best_effort = ReliabilityPolicy.BEST_EFFORT
    assert [n for n, p in profiles.items() if p.reliability is best_effort] == ['LATEST_IMAGES']
    assert qos.stream(latched=True) == qos.LATCHED_STREAM
    assert qos.drawings(latched=True) == qos.LATCHED_DRAWINGS


def test_a_stream_loses_nothing_to_a_reader_that_sleeps() -> None:
    with bench() as b:
        received = b.listen(Float64, 'numbers')
        publisher = b.publisher(Float64, 'numbers')
        for number in range(900):
            publisher.publish(Float64(data=float(number)))
        b.until(lambda: len(received) == 900)
        assert [message.data for message in received] == list(range(900))


def test_diagnostics() -> None:
    with bench('-r', '__ns:=/crane') as b:
        received = b.listen(DiagnosticArray, '/diagnostics', qos.DIAGNOSTICS)
        node = b.add(lambda: Node('plant'))
        component = diagnostics.Diagnostics(node, 'simulation')
        b.until(lambda: component.publisher.get_subscription_count() == 1)
        component.publish(
            Time(sec=3), diagnostics.WARN, '2 overruns', {'overruns': 2, 'time': 0.5}
        )
        b.until(lambda: received)
    (array,) = received
    (status,) = array.status
    assert array.header.stamp == Time(sec=3)
    assert status.level == diagnostics.WARN
    # Namespaces stay apart: two cranes are two components.
    assert status.name == 'crane/plant'
    assert (status.message, status.hardware_id) == ('2 overruns', 'simulation')
    assert {v.key: v.value for v in status.values} == {'overruns': '2', 'time': '0.5'}
