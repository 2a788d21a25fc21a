"""The clock for time-outs: pause, dead simulation, and the wall."""

from pathlib import Path

import pytest
from builtin_interfaces.msg import Time
from rclpy.node import Node
from rclpy.time_source import TimeSource
from rosgraph_msgs.msg import Clock
from simulation_rig import Wall

from longreach_node import clock, qos
from longreach_node.clock import LivingClock, ignore_times_before_zero
from longreach_node.testing import bench


@pytest.fixture
def wall(monkeypatch):
    wall = Wall()
    monkeypatch.setattr(clock, 'time', wall)
    return wall


def say(b, publisher, living, seconds):
    publisher.publish(Clock(clock=Time(sec=seconds)))
    b.until(lambda: living._simulated == seconds, 'time on /clock')


def test_a_pause_is_no_silence(wall):
    with bench('-p', 'toy:use_sim_time:=true') as b:
        living = LivingClock(b.add(lambda: Node('toy')), silence=0.5)
        publisher = b.publisher(Clock, '/clock', qos.CLOCK)
        say(b, publisher, living, 7)
        assert living.now() == 7.0
        # Paused: the same time again and again, while the wall goes on.
        for _ in range(3):
            wall.seconds += 0.4
            seen = living._heard
            publisher.publish(Clock(clock=Time(sec=7)))
            b.until(lambda seen=seen: living._heard > seen, 'repeated time')
            assert living.now() == 7.0
        say(b, publisher, living, 8)
        assert living.now() == 8.0


def test_a_time_before_zero_is_ignored_with_one_warning(monkeypatch, capfd):
    monkeypatch.setattr(TimeSource, 'clock_callback', TimeSource.clock_callback)
    ignore_times_before_zero()
    with bench('-p', 'toy:use_sim_time:=true') as b:
        node = b.add(lambda: Node('toy'))
        living = LivingClock(node, silence=100.0)
        publisher = b.publisher(Clock, '/clock', qos.CLOCK)
        for seconds in (7, -5, -6):
            publisher.publish(Clock(clock=Time(sec=seconds)))
            b.settle()
        say(b, publisher, living, 8)
        b.until(lambda: node.get_clock().now().nanoseconds == 8_000_000_000)
        assert living.now() == pytest.approx(8.0, abs=1e-9)
    assert capfd.readouterr().err.count('on /clock ignored, allowed: 0 s or later') == 1


def test_a_dead_simulation_does_not_stop_time(wall):
    with bench('-p', 'toy:use_sim_time:=true') as b:
        living = LivingClock(b.add(lambda: Node('toy')), silence=0.5)
        # It never began.
        assert living.now() == 0.0
        wall.seconds += 1.5
        assert living.now() == pytest.approx(1.0)
        publisher = b.publisher(Clock, '/clock', qos.CLOCK)
        say(b, publisher, living, 7)
        wall.seconds += 0.5
        assert living.now() == 7.0
        wall.seconds += 2.0
        assert living.now() == pytest.approx(9.0)
        # It lives again, a new run from the start.
        say(b, publisher, living, 1)
        assert living.now() == 1.0


def test_no_timer_of_a_node_follows_simulation_time():
    # It would stand still with use_sim_time and nobody who publishes /clock.
    files = Path(__file__).parents[2].glob('longreach_*/longreach_*/**/*.py')
    lines = [line for file in files for line in file.read_text().splitlines()]
    made = [line for line in lines if '.create_timer(' in line]
    assert len(made) >= 5
    assert [line for line in made if 'clock=steady_clock()' not in line] == []
