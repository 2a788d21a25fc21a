"""Markers as nodes: each type, deletion, and triangles made of right-angled ones."""

import dataclasses

import numpy as np
import pytest
import viser.transforms

from longreach_machine.markers import Marker, Markers
from longreach_view.drawing import (
    ARROW,
    CYLINDER,
    LINE_LIST,
    LINE_STRIP,
    TRIANGLE_LIST,
    Drawing,
    right_triangles,
)
from longreach_view.nodes import DrawingNodes
from longreach_view.server import open_server, stop_server


@pytest.fixture
def scene():
    server = open_server('127.0.0.1', 0)
    yield server.scene
    stop_server(server)


def marker(
    kind, points=(), *, name='a', number=0, action=0, colors=(), place=(0, 0, 0), turn=(1, 0, 0, 0)
):
    return Marker(
        stamp=0,
        frame='crane/track',
        name=name,
        number=number,
        kind=kind,
        action=action,
        position=np.array(place, dtype=float),
        rotation=np.array(turn),
        scale=np.array([1.0, 2.0, 3.0]),
        color=np.array([1.0, 0.0, 0.0, 1.0]),
        points=np.array(points, dtype=float).reshape(-1, 3),
        colors=np.array([(*color, 1) for color in colors]).reshape(-1, 4),
        text='tip',
    )


def drawn(*markers):
    drawing = Drawing()
    drawing.add(Markers(list(markers)))
    return drawing


def test_right_angled_triangles_cover_any_triangle():
    triangles = np.random.default_rng(1).uniform(-3.0, 3.0, (50, 3, 3))
    positions, rotations, scales = right_triangles(triangles)
    unit = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0]])
    turn = viser.transforms.SO3(rotations).as_matrix()
    copies = positions[:, None] + np.einsum('kij,kcj->kci', turn, unit * scales[:, None])

    def area(t):
        return 0.5 * np.linalg.norm(np.cross(t[:, 1] - t[:, 0], t[:, 2] - t[:, 0]), axis=1)

    np.testing.assert_allclose(area(copies).reshape(-1, 2).sum(axis=1), area(triangles))
    # The acute corners of both copies are the triangle's.
    for triangle, pair in zip(triangles, copies.reshape(-1, 2, 3, 3), strict=True):
        corners = {tuple(np.round(c, 9)) for c in pair[:, 1:].reshape(-1, 3)}
        assert corners == {tuple(np.round(c, 9)) for c in triangle}
    # Also one without area.
    assert all(np.isfinite(part).all() for part in right_triangles(np.zeros((1, 3, 3))))


def shown(scene, drawing):
    """Return the nodes of a drawing by the names of their markers."""
    nodes = DrawingNodes(scene, '/crane/forces', ghost=False)
    nodes.show(drawing, {}, '/root')
    return {path.split()[1]: node for path, node in nodes._nodes.items()}


def test_all_types_with_colours_and_poses(scene):
    half, line = np.sqrt(0.5), [(0, 0, 0), (1, 0, 0)]
    blue = [(0, 0, 0), (0, 0, 0), (0, 0, 1)]
    nodes = shown(
        scene,
        drawn(
            marker(ARROW, line, name='arrow', place=(0, 0, 5)),
            marker(ARROW, name='none'),
            marker(LINE_STRIP, [*line, (2, 0, 1)], name='strip'),
            marker(LINE_LIST, line, name='list', turn=(half, 0, 0, half)),
            marker(TRIANGLE_LIST, [*line, (0, 0, 1)], name='faces', colors=blue),
            marker(CYLINDER, name='body', place=(1, 2, 3)),
            marker(9, name='text'),
        ),
    )
    assert sorted(nodes) == [f'{n}_0' for n in ('arrow', 'body', 'faces', 'list', 'strip', 'text')]
    np.testing.assert_allclose(nodes['arrow_0'].points, [[[0, 0, 5], [1, 0, 5]]])
    assert nodes['arrow_0'].colors.tolist() == [[255, 0, 0]]
    np.testing.assert_allclose(nodes['strip_0'].points[:, 1], [[1, 0, 0], [2, 0, 1]])
    np.testing.assert_allclose(nodes['list_0'].points[0, 1], [0, 1, 0], atol=1e-12)
    assert nodes['list_0'].thickness == 1.0
    assert nodes['faces_0'].batched_colors.tolist() == [[0, 0, 85]] * 2
    assert nodes['body_0'].position.tolist() == [1, 2, 3]
    assert nodes['text_0'].text == 'tip'


def test_markers_move_change_and_go(scene):
    nodes, drawing = DrawingNodes(scene, 'crane/forces', ghost=False), Drawing()
    line = [(0, 0, 0), (1, 0, 0)]
    for points in (line, [*line, *line], [], line):
        drawing.add(Markers([marker(LINE_LIST, points), marker(CYLINDER, name='b')]))
        nodes.show(drawing, {}, '/root')
        found = [len(node.points) for path, node in nodes._nodes.items() if ' a_0 ' in path]
        assert found == [len(points) // 2] * bool(points)
    drawing.clear()
    nodes.show(drawing, {}, '/root')
    assert not [name for name in scene._handle_from_node_name if 'forces' in name]


def test_markers_stay_until_they_are_deleted():
    names = [('a', 0), ('b1', 2), ('b', 12)]
    drawing = drawn(*(marker(CYLINDER, name=name, number=number) for name, number in names))
    drawing.add(Markers([marker(CYLINDER, name='a', action=2)]))
    assert [(m.name, m.number) for m in drawing.markers()] == names[1:]
    drawing.add(Markers([marker(CYLINDER, action=3)]))
    assert drawing.markers() == []


def test_a_marker_that_is_not_finite_is_not_drawn():
    drawing = drawn(
        marker(LINE_STRIP, [(0, 0, 0), (np.nan, 0, 0)], name='bad'),
        marker(CYLINDER, name='worse', place=(np.inf, 0, 0)),
        marker(CYLINDER, name='good'),
    )
    assert [m.name for m in drawing.markers()] == ['good']


def test_lines_without_a_width_are_visible(scene):
    line = [(0, 0, 0), (1, 0, 0)]
    one = dataclasses.replace(marker(LINE_STRIP, line), scale=np.zeros(3))
    assert shown(scene, drawn(one))['a_0'].thickness > 0.0
