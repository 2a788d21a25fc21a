"""Names of frames: those of two machines on one graph differ."""

from __future__ import annotations

import pytest
from rclpy.node import Node

from longreach_dynamics.errors import InputError
from longreach_node.frames import FrameParameters, frame_name, header_at
from longreach_node.parameters import declare
from longreach_node.stamps import nanoseconds_of
from longreach_node.testing import bench


@pytest.mark.parametrize(
    ('namespace', 'words', 'name'),
    [
        ('/north', (), 'north/track'),
        ('/site/north', (), 'site/north/track'),
        ('/', (), 'track'),
        ('/north', ('frame_prefix:=""',), 'track'),
        ('/north', ('frame_prefix:=south_',), 'south_track'),
        # As launch files give it when the namespace begins with a slash; tf2 refuses the slash.
        ('/north', ('frame_prefix:=/north/',), 'north/track'),
        ('/north', ('frame_prefix:="{namespace}_"',), 'north_track'),
    ],
)
def test_frames_begin_with_the_prefix(namespace: str, words: tuple[str, ...], name: str) -> None:
    given = [word for text in words for word in ('-p', text)]
    with bench('-r', f'__ns:={namespace}', *given) as b:
        node = b.add(lambda: Node('node'))
        assert frame_name(node, declare(node, FrameParameters), 'track') == name


def test_a_prefix_with_white_space_is_refused() -> None:
    with pytest.raises(InputError, match=r"frame_prefix = 'a b', allowed: a text without white"):
        FrameParameters(frame_prefix='a b')


def test_a_header_has_time_and_frame() -> None:
    header = header_at(1_500_000_000, 'north/track')
    assert (nanoseconds_of(header.stamp), header.frame_id) == (1_500_000_000, 'north/track')
