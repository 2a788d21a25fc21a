"""
Images of messages as arrays, and back.

What an encoding means is written down here once more, pixel by pixel, as sensor_msgs defines it:
``memory`` makes the bytes of a message from a picture in red, green, blue.
"""

import array
import dataclasses
import struct
import sys

import cv2
import numpy as np
import pytest
from small_rig import seen_at, small_rig

from longreach_dynamics.errors import InputError
from longreach_markers.io.images import (
    ENCODINGS,
    ImageFields,
    bgr_of,
    gray_of,
    gray_of_compressed,
    to_array,
    to_gray,
)
from longreach_markers.io.overlay import COLOURS, draw, draw_cameras

HEIGHT, WIDTH = 6, 8

# Where red, green, blue and opacity stand in a pixel.
CHANNELS = ('rgb', 'bgr', 'rgba', 'bgra')
# The colours of a mosaic's first two rows, from the upper left pixel on.
MOSAICS = {
    'bayer_rggb': ('rg', 'gb'),
    'bayer_bggr': ('bg', 'gr'),
    'bayer_gbrg': ('gb', 'rg'),
    'bayer_grbg': ('gr', 'bg'),
}


def picture(deep=False):
    """Red, green, blue of a picture without two alike pixels."""
    random = np.random.default_rng(7)
    top = 65535 if deep else 255
    return random.integers(0, top, (HEIGHT, WIDTH, 3), endpoint=True)


def gray(rgb):
    return rgb @ np.array([0.299, 0.587, 0.114])


def memory(rgb, encoding, big=False, padding=0):
    """The message of a picture; padding is filled with what must not be seen."""
    kind = encoding.rstrip('0123456789')
    deep = encoding.endswith('16')
    number = ('>' if big else '<') + ('H' if deep else 'B')
    rows = []
    for v in range(rgb.shape[0]):
        row = b''
        for u in range(rgb.shape[1]):
            colours = dict(zip('rgba', (*map(int, rgb[v, u]), 77), strict=True))
            places = MOSAICS[kind][v % 2][u % 2] if kind in MOSAICS else kind
            row += b''.join(struct.pack(number, colours[place]) for place in places)
        rows.append(row + bytes(range(200, 200 + padding)))
    height, width = rgb.shape[:2]
    return ImageFields(height, width, encoding, big, len(rows[0]), b''.join(rows))


@pytest.mark.parametrize('padding', [0, 5, 6])
@pytest.mark.parametrize('big', [False, True])
@pytest.mark.parametrize('encoding', [f'{kind}{bits}' for kind in CHANNELS for bits in (8, 16)])
def test_colours(encoding, big, padding):
    deep = encoding.endswith('16')
    rgb = picture(deep)
    fields = memory(rgb, encoding, big, padding)
    scale = 255.0 / 65535.0 if deep else 1.0
    shown = to_gray(fields)
    assert (shown.dtype, shown.shape) == (np.uint8, (HEIGHT, WIDTH))
    assert np.abs(shown - gray(rgb) * scale).max() < 1.0
    assert shown.flags.c_contiguous


@pytest.mark.parametrize('big', [False, True])
@pytest.mark.parametrize('encoding', [f'{kind}{bits}' for kind in MOSAICS for bits in (8, 16)])
def test_mosaics(encoding, big):
    # Of one colour everywhere, interpolation is exact, and each pattern has an own memory.
    deep = encoding.endswith('16')
    colour = np.array([60000, 30000, 9000] if deep else [240, 100, 30])
    fields = memory(np.broadcast_to(colour, (HEIGHT, WIDTH, 3)), encoding, big, padding=3)
    scale = 255.0 / 65535.0 if deep else 1.0
    assert np.abs(to_gray(fields) - gray(colour) * scale).max() < 1.5


def test_a_mosaic_of_two_colours_keeps_its_sides():
    rgb = np.zeros((HEIGHT, WIDTH, 3), int)
    rgb[:, :4], rgb[:, 4:] = (200, 100, 50), (20, 40, 80)
    shown = to_gray(memory(rgb, 'bayer_grbg8'))
    assert shown[2, [1, 6]] == pytest.approx(gray(rgb[2, [1, 6]]), abs=1.0)


@pytest.mark.parametrize('encoding', ['mono8', '8UC1'])
def test_mono_without_padding_is_the_data_itself(encoding):
    data = array.array('B', range(48))
    shown = to_gray(ImageFields(6, 8, encoding, False, 8, data))
    np.testing.assert_array_equal(shown, np.arange(48).reshape(6, 8))
    data[9] = 255
    assert shown[1, 1] == 255


@pytest.mark.parametrize('encoding', ['mono16', '16UC1'])
@pytest.mark.parametrize(('big', 'step'), [(False, 4), (True, 4), (False, 5), (True, 7)])
def test_sixteen_bits(encoding, big, step):
    values = [[0, 257], [65535, 384], [385, 386]]
    order = '>H' if big else '<H'
    rows = [b''.join(struct.pack(order, value) for value in row) for row in values]
    data = b''.join(row + b'\xaa' * (step - 4) for row in rows)
    fields = ImageFields(3, 2, encoding, big, step, data)
    assert to_array(fields).tolist() == values
    assert to_array(fields).dtype.isnative
    # 385 and 386 lie on both sides of one and a half.
    assert to_gray(fields).tolist() == [[0, 1], [255, 1], [1, 2]]


@pytest.mark.parametrize(('bits', 'top'), [(10, 1023), (12, 4095), (14, 16383)])
def test_cameras_of_fewer_bits(bits, top):
    values = np.array([[0, top // 2, top, top + 1, 65535]], np.uint16)
    shown = to_gray(ImageFields(1, 5, 'mono16', sys.byteorder == 'big', 10, values.data), bits)
    assert shown.tolist() == [[0, 127, 255, 255, 255]]


@pytest.mark.parametrize(
    ('encoding', 'brightness'), [('uyvy', 1), ('yuv422', 1), ('yuyv', 0), ('yuv422_yuy2', 0)]
)
def test_yuv(encoding, brightness):
    # Two pixels share their colours; brightness is what is called Y.
    y = [[16, 50, 100, 235], [20, 30, 40, 60]]
    rows = []
    for row in y:
        pixels = [bytes([value, 128] if brightness == 0 else [128, value]) for value in row]
        rows.append(b''.join(pixels) + b'\x07\x07')
    fields = ImageFields(2, 4, encoding, False, 10, b''.join(rows))
    assert to_gray(fields).tolist() == y


@pytest.mark.parametrize('encoding', ENCODINGS)
def test_there_and_back(encoding):
    random = np.random.default_rng(3)
    probe = ImageFields(HEIGHT, WIDTH, encoding, False, 8 * WIDTH, bytes(8 * WIDTH * HEIGHT))
    sent = to_array(probe)
    sent = random.integers(0, np.iinfo(sent.dtype).max, sent.shape, sent.dtype, endpoint=True)
    step = sent.nbytes // HEIGHT
    fields = ImageFields(HEIGHT, WIDTH, encoding, sys.byteorder == 'big', step, sent.data)
    np.testing.assert_array_equal(to_array(fields), sent)


def test_pictures():
    rgb = picture()
    bgr = np.ascontiguousarray(rgb[..., ::-1], np.uint8)
    assert bgr_of(bgr) is bgr
    assert np.abs(gray_of(bgr) - gray(rgb)).max() < 1.0
    with_opacity = np.dstack([bgr, np.zeros((HEIGHT, WIDTH), np.uint8)])
    np.testing.assert_array_equal(bgr_of(with_opacity), bgr)
    np.testing.assert_array_equal(gray_of(with_opacity), gray_of(bgr))
    np.testing.assert_array_equal(bgr_of(bgr[..., 0])[..., 2], bgr[..., 0])
    np.testing.assert_array_equal(gray_of(bgr.astype(np.uint16) * 257), gray_of(bgr))


GOOD = ImageFields(4, 4, 'mono8', False, 4, bytes(16))


@pytest.mark.parametrize(
    ('changes', 'text'),
    [
        ({'encoding': '32FC1'}, r"encoding = '32FC1', allowed: mono8 \| mono16"),
        ({'height': 0}, 'image of 4 x 0 px is empty, allowed: at least 1 x 1'),
        ({'step': 3}, 'step = 3, allowed for 4 px in mono8: at least 4'),
        ({'encoding': 'bgr8'}, 'step = 4, allowed for 4 px in bgr8: at least 12'),
        ({'step': 5}, '16 bytes of data, allowed for 4 rows of 5 bytes: 20; the message is trunc'),
        ({'encoding': 'uyvy', 'width': 3, 'step': 8}, 'width = 3 px, allowed for uyvy: even'),
        ({'encoding': 'bayer_rggb8', 'height': 2}, '4 x 2 px, allowed for bayer_rggb8: at'),
    ],
)
def test_what_no_image_is(changes, text):
    for function in (to_gray, to_array):
        with pytest.raises(InputError, match=text):
            function(GOOD._replace(**changes))


@pytest.mark.parametrize(
    ('function', 'values', 'text'),
    [
        (to_gray, (GOOD, 8), r'bits = 8, allowed: \[9, 16\]'),
        (to_gray, (GOOD, 17), r'bits = 17, allowed: \[9, 16\]'),
        (gray_of, (np.zeros(4, np.uint8),), 'picture is an array of uint8 of shape'),
        (gray_of, (np.zeros((2, 2, 5), np.uint8),), 'picture is an array of uint8 of shape'),
        (gray_of, (np.zeros((0, 2), np.uint8),), 'picture is an array of uint8 of shape'),
        (bgr_of, (np.zeros((2, 2)),), 'picture is an array of float64'),
    ],
)
def test_what_cannot_be_converted(function, values, text):
    with pytest.raises(InputError, match=text):
        function(*values)


# --- compressed images ---------------------------------------------------------------------------


RNG = np.random.default_rng(4)


def smooth(*shape):
    """Return an image that JPEG changes little."""
    image = cv2.GaussianBlur(RNG.integers(0, 256, shape).astype(np.float32), (0, 0), 6.0)
    low, high = image.min(), image.max()
    return ((image - low) / (high - low) * 255.0).astype(np.uint8)


def encoded(image, ending='.png'):
    return bytes(cv2.imencode(ending, image)[1])


@pytest.mark.parametrize('form', ['mono8; jpeg compressed mono8', 'jpeg', ''])
def test_grey_there_and_back(form):
    image = smooth(40, 60)
    found = gray_of_compressed(form, encoded(image, '.jpg'))
    assert (found.shape, found.dtype) == (image.shape, np.uint8)
    assert np.abs(found.astype(int) - image).max() <= 4


def test_sixteen_bits_are_scaled_as_raw_images_are():
    image = RNG.integers(0, 4096, (40, 60), dtype=np.uint16)
    raw = to_gray(ImageFields(40, 60, 'mono16', False, 120, image.data), 12)
    np.testing.assert_array_equal(
        gray_of_compressed('mono16; png compressed ', encoded(image), 12), raw
    )


def test_a_bayer_pattern_is_converted():
    image = RNG.integers(0, 256, (40, 60), dtype=np.uint8)
    raw = to_gray(ImageFields(40, 60, 'bayer_rggb8', False, 60, image.data))
    found = gray_of_compressed('bayer_rggb8; png compressed ', encoded(image))
    np.testing.assert_array_equal(found, raw)
    # Where the publisher has converted it, the picture is grey already.
    found = gray_of_compressed('bayer_rggb8; png compressed mono8', encoded(image))
    np.testing.assert_array_equal(found, image)


def test_depth_images_are_refused():
    with pytest.raises(InputError, match="'16UC1; compressedDepth png', allowed: jpeg"):
        gray_of_compressed('16UC1; compressedDepth png', b'')


# --- overlays ------------------------------------------------------------------------------------


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
