"""Transforms: published where tf2_msgs is installed, and said where it is not."""

from __future__ import annotations

import dataclasses
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from geometry_msgs.msg import TransformStamped
from rclpy.node import Node

from longreach_node import qos
from longreach_node.testing import bench
from longreach_node.transforms import Transforms


@dataclasses.dataclass
class TFMessage:
    """In the place of tf2_msgs/TFMessage, without type support."""

    transforms: list[TransformStamped]


class Recorder:
    """A node without middleware that keeps what is published."""

    def __init__(self) -> None:
        self.sent: dict[str, list[Any]] = {}
        self.profiles: dict[str, Any] = {}

    def create_publisher(self, kind: type, topic: str, profile: Any) -> SimpleNamespace:
        assert kind is TFMessage
        self.sent[topic], self.profiles[topic] = [], profile
        return SimpleNamespace(publish=self.sent[topic].append)


@pytest.fixture
def tf2(monkeypatch: pytest.MonkeyPatch) -> None:
    package, messages = ModuleType('tf2_msgs'), ModuleType('tf2_msgs.msg')
    messages.TFMessage = TFMessage
    monkeypatch.setitem(sys.modules, 'tf2_msgs', package)
    monkeypatch.setitem(sys.modules, 'tf2_msgs.msg', messages)


@pytest.fixture
def no_tf2(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, 'tf2_msgs', None)
    monkeypatch.setitem(sys.modules, 'tf2_msgs.msg', None)


def test_transforms_go_to_their_topics(tf2: None) -> None:
    node = Recorder()
    transforms = Transforms(node)  # type: ignore[arg-type]
    one, two = TransformStamped(child_frame_id='one'), TransformStamped(child_frame_id='two')
    transforms.hold([one, two])
    transforms.send([two])
    transforms.send([])
    assert node.sent == {'/tf_static': [TFMessage([one, two])], '/tf': [TFMessage([two])]}
    # Those of tf2_ros: a listener that comes later gets the static ones.
    assert node.profiles == {'/tf_static': qos.STATIC_TRANSFORMS, '/tf': qos.TRANSFORMS}


def test_without_tf2_it_is_said_once(no_tf2: None, capfd: pytest.CaptureFixture[str]) -> None:
    with bench() as b:
        transforms = Transforms(b.add(lambda: Node('node')))
        transforms.hold([TransformStamped()])
        transforms.send([TransformStamped()])
    assert capfd.readouterr().err.count('tf2_msgs is not installed: no transforms on /tf') == 1


def test_a_listener_gets_them_through_the_middleware() -> None:
    kind = pytest.importorskip('tf2_msgs.msg').TFMessage
    with bench() as b:
        transforms = Transforms(b.add(lambda: Node('node')))
        transforms.hold([TransformStamped(child_frame_id='left')])
        held = b.listen(kind, '/tf_static', qos.STATIC_TRANSFORMS)
        moving = b.listen(kind, '/tf', qos.TRANSFORMS)
        b.until(lambda: b.driver.count_publishers('/tf'), 'publisher of /tf')

        def both() -> bool:
            transforms.send([TransformStamped(child_frame_id='tip')])
            b.settle(1)
            return bool(held and moving)

        b.until(both, 'transforms')
        assert held[0].transforms[0].child_frame_id == 'left'
        assert moving[0].transforms[0].child_frame_id == 'tip'
