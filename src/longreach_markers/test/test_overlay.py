"""What is drawn where, in which colour."""

import dataclasses

import numpy as np
import pytest
from small_rig import seen_at, small_rig

from longreach_dynamics.errors import InputError
from longreach_markers.io.overlay import COLOURS, draw, draw_cameras

GREY = np.full((240, 320), 90, dtype=np.uint8)


def coloured(picture):
    v, u = np.nonzero(np.ptp(picture.astype(int), axis=2) > 40)
    return np.column_stack([u, v])


def test_nothing_found_is_the_image():
    picture = draw(GREY, {})
    assert picture.shape == (240, 320, 3)
    assert (picture == 90).all()


@pytest.mark.parametrize('scale', [1.0, 0.5, 2.0])
def test_ellipse_and_centre_are_where_they_were_seen(scale):
    before = GREY.copy()
    seen = seen_at(150.0, 120.0, radius=30.0)
    picture = draw(GREY, {'one': seen}, scale)
    np.testing.assert_array_equal(GREY, before)
    assert picture.shape == (240 * scale, 320 * scale, 3)
    green = np.array(COLOURS['TRACKED'])
    rim = (seen.ellipse.points(np.linspace(0.0, 6.0, 50)) + 0.5) * scale - 0.5
    for u, v in np.rint(rim).astype(int):
        around = picture[v - 1 : v + 2, u - 1 : u + 2].reshape(-1, 3).astype(int)
        assert np.abs(around - green).sum(axis=1).min() < 150
    u, v = np.rint((seen.center + 0.5) * scale - 0.5).astype(int)
    assert (picture[v, u].astype(int) - green == 0).all() or np.ptp(picture[v, u]) > 100
    # Halfway between the cross and the rim nothing is drawn.
    away = np.rint((seen.center + (0.0, 17.0) + 0.5) * scale - 0.5).astype(int)
    assert (picture[away[1], away[0]] == 90).all()


def test_colours_tell_the_status():
    for status, colour in COLOURS.items():
        picture = draw(GREY, {'x': seen_at(160.0, 120.0, status, 40.0)})
        drawn = coloured(picture)
        assert len(drawn) > 20
        found = picture[drawn[:, 1], drawn[:, 0]].astype(float)
        strongest = found[np.ptp(found, axis=1).argmax()]
        wanted = np.array(colour, float)
        cosine = (strongest - 90) @ (wanted - 90)
        assert cosine / np.linalg.norm(strongest - 90) / np.linalg.norm(wanted - 90) > 0.95


def test_a_lost_marker_has_a_cross_and_no_rim():
    seen = seen_at(160.0, 120.0, 'LOST', 40.0)
    drawn = coloured(draw(GREY, {'': seen}, caption=''))
    near = drawn[np.linalg.norm(drawn - (160, 120), axis=1) < 45.0]
    # Both lines of the cross, and nothing on the axes between them.
    assert len(near) > 20
    assert np.abs(np.abs(near[:, 0] - 160) - np.abs(near[:, 1] - 120)).max() <= 2


def test_windows_are_squares():
    picture = draw(GREY, {'one': seen_at(150.0, 120.0)}, windows={'one': (150.0, 120.0, 40.0)})
    for u, v in ((110, 120), (190, 120), (150, 80), (150, 160)):
        assert np.ptp(picture[v, u].astype(int)) > 100


def test_what_lies_outside_does_no_harm():
    far = {'a': seen_at(-900.0, 1e6), 'b': seen_at(315.0, 2.0), 'c': seen_at(1e9, -1e9, 'LOST')}
    picture = draw(GREY, far, caption='left 1.000 s')
    assert picture.shape == (240, 320, 3)


def test_what_no_image_covers_is_black():
    cameras, image = small_rig().cameras, np.full((280, 400), 90, np.uint8)
    lower = cameras['right'].camera.replace(height=280)
    cameras['right'] = dataclasses.replace(cameras['right'], camera=lower)
    picture = draw_cameras(cameras, {'right': image}, {'right': 0.1}, {}, 200.0)
    assert picture.shape == (150, 400, 3)
    assert not picture[75:, :200].any()
    assert (picture[75:140, 200:] == 90).all()
    assert not picture[140:].any()


def test_what_is_no_image():
    with pytest.raises(InputError, match=r'uint16 of shape \(4, 4\), allowed: uint8'):
        draw(np.zeros((4, 4), np.uint16), {})
    for scale in (1e-3, 17.0, float('nan')):
        with pytest.raises(InputError, match='scale = '):
            draw(GREY, {}, scale)
