"""Markers for RViz from joint states."""

from __future__ import annotations

import math

import pytest
from sensor_msgs.msg import JointState
from std_msgs.msg import Header
from visualization_msgs.msg import MarkerArray

from longreach_crane.markers_node import MarkersNode
from longreach_node import qos
from longreach_node.stamps import nanoseconds_of, stamp_of
from longreach_node.testing import Bench, bench

CYCLE = 10_000_000  # [ns]


class Rig:
    def __init__(self, b: Bench) -> None:
        self.bench = b
        self.arrays: list[MarkerArray] = b.listen(MarkerArray, 'markers', qos.VISUAL)
        self.node = b.add(MarkersNode)
        self.joints = b.publisher(JointState, 'joint_states')

    def send(self, cycle: int, position: float, angle: float) -> None:
        self.joints.publish(
            JointState(
                header=Header(stamp=stamp_of(cycle * CYCLE)),
                name=['car_joint', 'cable_joint'],
                position=[position, angle],
            )
        )

    def arrive(self, count: int) -> None:
        self.bench.until(lambda: len(self.arrays) >= count, f'marker array {count}')


def test_traces_of_car_and_load() -> None:
    with bench('-r', '__ns:=/north') as b:
        rig = Rig(b)
        rig.send(0, 1.0, 0.0)
        rig.arrive(1)
        rig.send(10, 2.0, math.pi / 6)
        rig.arrive(2)
    # The robot description draws the cable.
    car, load = rig.arrays[-1].markers
    assert [m.ns for m in (car, load)] == ['car_trace', 'load_trace']
    assert [(p.x, p.z) for p in car.points] == [(1.0, 0.0), (2.0, 0.0)]
    # A positive angle has the load at larger x.
    bottom = load.points[1]
    assert (bottom.x, bottom.z) == pytest.approx((2.0 + 2.5, -5.0 * math.cos(math.pi / 6)))
    assert load.points[0].z == pytest.approx(-5.0)
    assert nanoseconds_of(car.header.stamp) == 10 * CYCLE
    assert car.header.frame_id == 'north/track'


def test_the_rate_is_kept_and_a_trace_ends() -> None:
    with bench('-p', 'markers:rate:=10.0', '-p', 'markers:trace:=0.5') as b:
        rig = Rig(b)
        for cycle in range(101):
            rig.send(cycle, 0.01 * cycle, 0.0)
            if cycle % 10 == 0:
                rig.arrive(cycle // 10 + 1)
    stamps = [nanoseconds_of(a.markers[0].header.stamp) for a in rig.arrays]
    assert stamps == [k * 10 * CYCLE for k in range(11)]
    assert [p.x for p in rig.arrays[-1].markers[0].points] == pytest.approx(
        [0.6, 0.7, 0.8, 0.9, 1.0]
    )


def test_when_time_begins_anew_the_traces_do() -> None:
    with bench() as b:
        rig = Rig(b)
        for count, cycle in enumerate((0, 10, 20, 0)):
            rig.send(cycle, float(count), 0.0)
            rig.arrive(count + 1)
    assert [p.x for p in rig.arrays[-2].markers[0].points] == [0.0, 1.0, 2.0]
    assert [p.x for p in rig.arrays[-1].markers[0].points] == [3.0]
