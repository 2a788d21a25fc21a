"""A warning when a topic has nothing to say."""

from __future__ import annotations

import pytest
from rclpy.node import Node
from std_msgs.msg import Float64

from longreach_node import qos, silence
from longreach_node.testing import bench


class Wall:
    """Stands for the module ``time``."""

    seconds = 1000.0

    def monotonic(self) -> float:
        return self.seconds


def test_each_silence_is_said_once(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    wall = Wall()
    monkeypatch.setattr(silence, 'time', wall)
    with bench() as b:
        node = b.add(lambda: Node('listener'))
        topic = node.create_subscription(Float64, 'values', lambda _: watch.heard(), qos.STREAM)
        watch = silence.SilenceWatch(node, topic)
        said = []

        def after(seconds: float) -> str:
            wall.seconds += seconds
            watch._check()
            said.append(''.join(capfd.readouterr()))
            return said[-1]

        assert after(4.9) == ''
        assert 'nothing on /values for 5 s: no publisher; is the plant running' in after(0.2)
        assert after(60.0) == ''
        publisher = b.publisher(Float64, 'values')
        publisher.publish(Float64())
        b.until(lambda: watch._begun, 'message')
        assert 'first message on /values' in after(0.0)
        assert '1 publisher(s); is the simulation paused' in after(5.1)
        publisher.publish(Float64())
        b.until(lambda: not watch._warned, 'message')
        assert '/values again, after 5.1 s of silence' in after(0.0)
