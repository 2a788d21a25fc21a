"""Simulations that end together."""

from __future__ import annotations

from rclpy.node import Node

from longreach_node.companions import Companions
from longreach_node.testing import bench


def test_each_waits_for_the_others_however_late_they_come() -> None:
    with bench() as b:
        first = Companions(b.add(lambda: Node('plant', namespace='first')), 2)
        second = Companions(b.add(lambda: Node('plant', namespace='second')), 2)
        assert (first.missing(), second.missing()) == (2, 2)
        first.tell()
        # Its own end does not count, nor does an end that is told twice.
        first.tell()
        b.until(lambda: second.missing() == 1, 'word of the first')
        b.settle()
        assert first.missing() == 2
        second.tell()
        third = Companions(b.add(lambda: Node('plant', namespace='third')), 2)
        b.until(lambda: third.missing() == 0, 'word of those that finished before')
        assert first.missing() == 1
        third.tell()
        b.until(lambda: first.missing() == second.missing() == 0, 'word of the third')


def test_alone_it_waits_for_nobody() -> None:
    with bench() as b:
        node = b.add(lambda: Node('plant'))
        alone = Companions(node, 0)
        alone.tell()
        assert alone.missing() == 0
        assert '/finished_simulations' not in dict(node.get_topic_names_and_types())
