"""Markers as arrays: each type, deletion, and triangles made of right-angled ones."""

import dataclasses

import numpy as np
import viser.transforms

from longreach_dynamics.markers import Marker, Markers
from longreach_view.drawing import (
    ARROW,
    CYLINDER,
    LINE_LIST,
    LINE_STRIP,
    TRIANGLE_LIST,
    Drawing,
    right_triangles,
)


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


def test_figures_of_all_types_with_colours_and_poses():
    half, line = np.sqrt(0.5), [(0, 0, 0), (1, 0, 0)]
    blue = [(0, 0, 0), (0, 0, 0), (0, 0, 1)]
    (figures,) = drawn(
        marker(ARROW, line, name='arrow', place=(0, 0, 5)),
        marker(LINE_STRIP, [*line, (2, 0, 1)], name='strip'),
        marker(LINE_LIST, line, name='list', turn=(half, 0, 0, half)),
        marker(TRIANGLE_LIST, [*line, (0, 0, 1)], name='faces', colors=blue),
        marker(CYLINDER, name='body', place=(1, 2, 3)),
        marker(9, name='text'),
        marker(10, name='mesh'),
    ).figures()
    assert figures.frame == 'crane/track'
    np.testing.assert_allclose(figures.arrows, [[[0, 0, 5], [1, 0, 5]]])
    assert figures.arrow_colors.tolist() == [[255, 0, 0]]
    np.testing.assert_allclose(figures.lines[:2, 1], [[1, 0, 0], [2, 0, 1]])
    np.testing.assert_allclose(figures.lines[2, 1], [0, 1, 0], atol=1e-12)
    assert figures.line_width == 1.0
    assert figures.triangle_colors.tolist() == [[0, 0, 85]]
    assert figures.bodies['body_0'].position.tolist() == [1, 2, 3]
    assert figures.skipped == (10,)
    assert figures.texts['text_0'][0] == 'tip'


def test_markers_stay_until_they_are_deleted():
    names = [('a', 0), ('b1', 2), ('b', 12)]
    drawing = drawn(*(marker(CYLINDER, name=name, number=number) for name, number in names))
    drawing.add(Markers([marker(CYLINDER, name='a', action=2)]))
    (figures,) = drawing.figures()
    assert list(figures.bodies) == ['b1_2', 'b_12']
    drawing.add(Markers([marker(CYLINDER, action=3)]))
    assert drawing.figures() == []


def test_triangles_of_one_colour_are_no_stress():
    corners = np.eye(3)
    assert not drawn(marker(TRIANGLE_LIST, corners), marker(CYLINDER)).shows_stress()
    assert drawn(marker(TRIANGLE_LIST, corners, colors=np.eye(3))).shows_stress()


def test_a_marker_that_is_not_finite_is_not_drawn():
    (figures,) = drawn(
        marker(LINE_STRIP, [(0, 0, 0), (np.nan, 0, 0)], name='bad'),
        marker(CYLINDER, name='worse', place=(np.inf, 0, 0)),
        marker(CYLINDER, name='good'),
    ).figures()
    assert list(figures.bodies) == ['good_0']
    assert len(figures.lines) == 0


def test_lines_are_as_thin_as_the_thinnest():
    line = [(0, 0, 0), (1, 0, 0)]
    thin, nothing = (
        dataclasses.replace(marker(LINE_STRIP, line, name=name), scale=np.array([width, 0, 0]))
        for name, width in (('thin', 0.002), ('nothing', 0.0))
    )
    (figures,) = drawn(marker(LINE_LIST, line), thin, nothing).figures()
    assert figures.line_width == 0.002
    (figures,) = drawn(nothing).figures()
    assert figures.line_width == 0.0
