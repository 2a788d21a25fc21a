"""
Markers in images drawn here: where they are found, what is refused and what is bad input.

A pixel is 4 x 4 rays through the camera's model onto the plane of the marker, then blurred.
"""

import dataclasses
import math
from pathlib import Path

import cv2
import matplotlib
import numpy as np
import pytest
from exact_marker import taken
from PIL import Image, ImageDraw, ImageFont

from longreach_dynamics.errors import InputError
from longreach_markers.camera.model import Camera
from longreach_markers.marker import fit
from longreach_markers.marker.detection import LOST, TRACKED, UNCERTAIN, detect, find_markers
from longreach_markers.marker.detection_input import check_image
from longreach_markers.marker.limits import LIMITS

CELLS = 4
WIDTH, HEIGHT = 200, 160
FACING = (0.0, 0.0, -1.0)
CAMERA = Camera('c', WIDTH, HEIGHT, 1500.0, 1510.0, 98.0, 81.0, 'plumb_bob', ())
AT = (103.4, 77.7)


def marker(
    at=AT,
    radius=16.0,
    *,
    inner=0.5,
    levels=(190.0, 50.0, 200.0),
    blur=0.8,
    camera=CAMERA,
    normal=FACING,
    ground=None,
    light=None,
    lid=None,
):
    """
    An exact image (rows, columns) and the projected centre of the circle in it.

    ``at`` is about where that is [px], ``radius`` about how large; ``levels`` are those inside,
    of the band and outside; ``ground`` is drawn upon. ``light`` is a function of the distance
    from there in radii, which falls on the scene before the blur; ``lid`` a disc on top: its
    place and radius [px], and its grey level.
    """
    x, y = camera.undistort(at)
    ray = np.array([x, y, 1.0])
    # A circle of 1 m.
    center = ray * math.sqrt(camera.fx * camera.fy) / radius
    n = np.array(normal, float)
    image = np.full((camera.height, camera.width), levels[2]) if ground is None else ground.copy()
    half = math.ceil(2.2 * radius) + 8
    u0, v0 = max(round(at[0]) - half, 0), max(round(at[1]) - half, 0)
    u1, v1 = min(round(at[0]) + half, camera.width), min(round(at[1]) + half, camera.height)
    cells = [(np.arange((b - a) * CELLS) + 0.5) / CELLS - 0.5 + a for a, b in ((u0, u1), (v0, v1))]
    rays = camera.undistort(np.stack(np.meshgrid(*cells), axis=-1))
    rays = np.concatenate([rays, np.ones((*rays.shape[:2], 1))], axis=-1)
    points = rays * (n @ center / (rays @ n))[..., None] - center
    r = np.linalg.norm(points, axis=-1)
    slope = np.hypot(*np.gradient(r)) + 1e-9
    # The share of a cell that lies within a circle: that of a straight edge.
    band, hole = (np.clip((edge - r) / slope + 0.5, 0.0, 1.0) for edge in (1.0, inner or 1e-9))
    part = np.kron(image[v0:v1, u0:u1], np.ones((CELLS, CELLS)))
    part += (levels[1] - part) * band
    part += (levels[0] - part) * (hole if inner > 0.0 else 0.0)
    if lid is not None:
        (x0, y0), size, grey = lid
        away = np.hypot(cells[0][None, :] - x0, cells[1][:, None] - y0)
        part += (grey - part) * np.clip((size - away) * CELLS + 0.5, 0.0, 1.0)
    if light is not None:
        part *= light((cells[0][None, :] - at[0]) / radius, (cells[1][:, None] - at[1]) / radius)
    part = cv2.GaussianBlur(part, (0, 0), blur * CELLS, borderType=cv2.BORDER_REPLICATE)
    image[v0:v1, u0:u1] = part.reshape(v1 - v0, CELLS, u1 - u0, CELLS).mean(axis=(1, 3))
    return image, camera.project(center)


def near(center, shift=(2.0, -1.5)):
    return np.asarray(np.add(center, shift))


def error(seen, center):
    assert seen.status == TRACKED, seen.reason
    return math.dist(seen.center, center)


def is_right_or_flagged(seen, center, largest=0.1):
    return seen.status != TRACKED or error(seen, center) < largest


def jpeg(image, quality):
    data = cv2.imencode('.jpg', image, [cv2.IMWRITE_JPEG_QUALITY, quality])[1]
    return cv2.imdecode(data, cv2.IMREAD_GRAYSCALE)


# --- where it is ----------------------------------------------------------------------------


@pytest.mark.parametrize('inner', [0.0, 0.4, 0.5, 0.7])
@pytest.mark.parametrize('bright', [False, True])
def test_discs_and_rings_dark_and_bright(inner, bright):
    levels = (60.0, 190.0, 40.0) if bright else (190.0, 50.0, 200.0)
    exact, center = marker(inner=inner, levels=levels)
    seen = detect(taken(exact), near(center), 17.0)
    assert error(seen, center) < 0.03
    assert seen.bright == bright
    assert seen.reason == ''
    assert seen.inner == pytest.approx(inner, abs=0.01)
    assert seen.radius == pytest.approx(16.05, abs=0.08)
    assert seen.rim_support > 0.95
    assert seen.residual == pytest.approx(2.0, rel=0.2)
    np.testing.assert_allclose(seen.ellipse.center, seen.center)


@pytest.mark.parametrize('radius', [4.5, 6.0, 8.0, 12.0, 30.0, 100.0])
@pytest.mark.parametrize('inner', [0.0, 0.5])
def test_sizes(radius, inner):
    size = 2 * math.ceil(1.6 * radius) + 60
    camera = Camera('c', size, size, 3000.0, 3000.0, 0.5 * size, 0.5 * size, 'plumb_bob', ())
    exact, center = marker(
        (0.5 * size + 0.3, 0.5 * size - 0.4), radius, inner=inner, camera=camera
    )
    seen = detect(taken(exact), near(center), radius, camera=camera, normal_cam=FACING)
    assert error(seen, center) < 0.05
    assert seen.radius == pytest.approx(radius, rel=0.02)
    assert (seen.inner > 0.0) == (inner > 0.0)


def test_centre_of_the_circle_is_not_that_of_the_ellipse():
    # Near and large, so that the two are far apart.
    normal = (0.6, -0.3, -0.74)
    camera = Camera('c', WIDTH, HEIGHT, 300.0, 300.0, 98.0, 81.0, 'plumb_bob', ())
    exact, center = marker(radius=25.0, camera=camera, normal=normal)
    seen = detect(taken(exact), near(center), 25.0, camera=camera, normal_cam=normal)
    assert error(seen, center) < 0.03
    assert np.linalg.norm(seen.ellipse.center - center) > 0.3
    alone = detect(taken(exact), near(center), 25.0)
    np.testing.assert_allclose(alone.center, seen.ellipse.center, atol=0.05)
    # The other sense of the normal is the same plane.
    turned = -5.0 * np.array(normal)
    other = detect(taken(exact), near(center), 25.0, camera=camera, normal_cam=turned)
    np.testing.assert_allclose(other.center, seen.center, atol=1e-9)


@pytest.mark.parametrize(
    ('model', 'distortion', 'focal'),
    [
        ('plumb_bob', (-0.35, 0.12, 1e-3, -1e-3, 0.0), 700.0),
        ('rational_polynomial', (0.3, 0.1, 1e-3, -1e-3, 0.02, 0.5, 0.05, 0.01), 800.0),
        ('equidistant', (0.05, -0.01, 0.003, 0.0), 350.0),
    ],
)
@pytest.mark.parametrize('at', [(500.3, 380.2), (720.6, 290.1), (770.2, 420.7)])
def test_all_models_of_distortion(model, distortion, focal, at):
    camera = Camera('c', 1000, 750, focal, 1.01 * focal, 500.0, 375.0, model, distortion)
    for normal in (FACING, (0.3, 0.2, -1.0)):
        exact, center = marker(at, 16.0, camera=camera, normal=normal)
        seen = detect(taken(exact), near(center), 16.0, camera=camera, normal_cam=normal)
        assert error(seen, center) < 0.04


def test_large_markers_through_a_wide_lens():
    # The start has to go from the ellipse's centre to the circle's, which is far.
    camera = Camera('c', 500, 420, 550.0, 550.0, 220.0, 230.0, 'plumb_bob', (-0.3, 0.1, 0, 0, 0))
    normal = (0.3, 0.2, -1.0)
    for at in ((290.0, 180.0), (220.0, 230.0)):
        exact, center = marker(at, 70.0, camera=camera, normal=normal)
        seen = detect(taken(exact), near(center), 74.0, camera=camera, normal_cam=normal)
        assert error(seen, center) < 0.03


# --- which one ------------------------------------------------------------------------------


def test_a_wide_search_judges_an_ellipse_by_what_is_around_it():
    # Half of the window is without noise; at the place of the search, a circle is another ellipse.
    camera = Camera('any', 320, 240, 300.0, 300.0, 160.0, 120.0)
    normal = (0.3, 0.2, -0.93)
    exact, center = marker((250.0, 120.0), radius=14.0, camera=camera, normal=normal)
    image = taken(exact, noise=4.0)
    image[:, :215] = 110
    view = {'camera': camera, 'normal_cam': normal}
    near_by = detect(image, near(center), 14.0, **view)
    expected = dataclasses.replace(near_by, reason='any')
    far = detect(image, center - (58.0, 0.0), 14.0, search=60.0, expected=expected, **view)
    assert near_by.status == far.status == TRACKED
    assert np.hypot(*(far.center - near_by.center)) < 1e-3
    assert far.covariance == pytest.approx(near_by.covariance, rel=0.1)


def test_excluded_places_are_not_looked_at():
    exact, left = marker((70.2, 80.4))
    exact, right = marker((112.9, 78.8), ground=exact)
    image = taken(exact)
    seen = detect(image, left, 16.0, search=60.0, exclude=[(*left, 10.0)])
    assert error(seen, right) < 0.03
    both = [(*left, 10.0), (*right, 10.0)]
    assert detect(image, left, 16.0, search=60.0, exclude=both).status == LOST


def test_what_was_expected_is_kept_when_it_is_lost():
    exact, center = marker()
    before = detect(taken(exact), center, 16.0)
    empty = np.full((HEIGHT, WIDTH), 120, np.uint8)
    seen = detect(empty, (50.0, 60.0), 16.0, expected=before)
    assert seen.status == LOST
    assert seen.reason == 'no ellipse of this size here'
    np.testing.assert_array_equal(seen.center, [50.0, 60.0])
    np.testing.assert_array_equal(seen.shape, before.shape)
    assert (seen.inner, seen.bright) == (before.inner, before.bright)
    assert seen.ellipse.angle == before.ellipse.angle
    assert seen.rim_support == 0.0
    assert np.isnan(seen.residual)
    assert np.isnan(seen.covariance).all()


def test_beyond_the_search_nothing_is_found():
    exact, center = marker()
    image = taken(exact)
    assert detect(image, near(center, (10.0, 0.0)), 16.0, search=8.0).status == LOST
    assert detect(image, near(center, (10.0, 0.0)), 16.0, search=12.0).status == TRACKED
    # A search as wide as the image and wider.
    for search in (150.0, 1e9, 1e300):
        assert error(detect(image, near(center), 16.0, search=search), center) < 0.03


@pytest.mark.slow
@pytest.mark.parametrize(
    'font',
    ['DejaVuSans', 'DejaVuSans-Bold', 'DejaVuSerif', 'DejaVuSerif-Bold', 'DejaVuSansMono-Bold',
     'STIXGeneral', 'STIXGeneralBol', 'cmb10'],
)  # fmt: skip
def test_letters_of_a_font_are_no_rings(font):
    file = Path(matplotlib.get_data_path()) / 'fonts' / 'ttf' / f'{font}.ttf'
    text, cells = 'OQ0oCGD@8968bdpqea', 8
    for size in (24, 40, 64, 100):
        pitch = round(1.6 * size)
        page = Image.new('L', (len(text) * pitch * cells, round(1.3 * size) * cells), 180)
        draw, letters = ImageDraw.Draw(page), ImageFont.truetype(str(file), size * cells)
        for k, letter in enumerate(text):
            draw.text(((k + 0.2) * pitch * cells + k, 0.1 * size * cells), letter, 40, letters)
        exact = cv2.resize(
            np.array(page), None, fx=1 / cells, fy=1 / cells, interpolation=cv2.INTER_AREA
        )
        image = taken(cv2.GaussianBlur(exact.astype(float), (0, 0), 0.8))
        found = [text[int(one.center[0] // pitch)] for one in find_markers(image, strict=True)]
        assert found == [], size


def test_a_strict_search_finds_rings():
    exact, center = marker(radius=14.0)
    image = taken(exact, 4.0)
    # Noise that is independent, and that is correlated.
    for seen in (image, cv2.GaussianBlur(image, (0, 0), 0.7), jpeg(image, 85)):
        (found,) = find_markers(seen, strict=True)
        assert error(found, center) < 0.06


# --- what is not to be trusted --------------------------------------------------------------


def test_an_empty_image_has_no_marker():
    for image in (
        np.zeros((HEIGHT, WIDTH), np.uint8),
        np.full((HEIGHT, WIDTH), 255, np.uint8),
        np.random.default_rng(1).integers(0, 256, (HEIGHT, WIDTH), dtype=np.uint8),
        taken(np.add.outer(np.arange(HEIGHT), np.arange(WIDTH)) / 2.0),
    ):
        assert detect(image, AT, 16.0).status == LOST
        assert find_markers(image) == []


@pytest.mark.parametrize('sides', [3, 4, 5, 6])
def test_polygons_are_no_markers(sides):
    turn = 2.0 * math.pi * np.arange(sides) / sides + 0.2
    corners = AT + 18.0 * np.column_stack([np.cos(turn), np.sin(turn)])
    image = np.full((HEIGHT, WIDTH), 200, np.uint8)
    cv2.fillPoly(image, [np.rint(corners * 16).astype(np.int32)], (50,), cv2.LINE_AA, 4)
    image = cv2.GaussianBlur(image, (0, 0), 0.7)
    assert detect(taken(image.astype(float)), AT, 16.0).status != TRACKED


def test_weak_contrast_is_lost():
    exact, center = marker(levels=(46.0, 42.0, 46.0))
    assert detect(taken(exact), near(center), 16.0).status == LOST
    exact, center = marker(levels=(45.0, 30.0, 45.0))
    assert error(detect(taken(exact, 1.5), near(center), 16.0), center) < 0.1


def test_strong_contrast_and_noise_are_no_glare():
    exact, center = marker(levels=(252.0, 2.0, 252.0))
    assert error(detect(taken(exact, 3.0), near(center), 16.0), center) < 0.03
    exact, center = marker()
    assert error(detect(taken(exact, 15.0), near(center), 16.0), center) < 0.15


def test_glare_and_what_covers_much_are_flagged():
    exact, center = marker()
    u = np.arange(WIDTH)
    glare = exact + 400.0 * np.exp(-(((u - center[0] - 9.0) / 17.0) ** 4))
    assert detect(taken(glare), near(center), 16.0).status != TRACKED
    hidden = exact.copy()
    hidden[:, int(center[0]) - 3 :] = 120.0
    assert detect(taken(hidden), near(center), 16.0).status != TRACKED


def test_blur_that_no_lens_has_is_flagged():
    exact, center = marker(radius=20.0, blur=3.0)
    seen = detect(taken(exact), near(center), 20.0)
    assert seen.status == UNCERTAIN
    assert 'blurred' in seen.reason
    # It is seen all the same.
    np.testing.assert_allclose(seen.center, center, atol=0.1)


def test_a_shape_that_the_plane_cannot_have_is_flagged():
    exact, center = marker(normal=(0.8, 0.0, -1.0), radius=20.0)
    image = taken(exact)
    seen = detect(image, near(center), 20.0, camera=CAMERA, normal_cam=FACING)
    assert seen.status == UNCERTAIN
    assert 'plane' in seen.reason
    right = detect(image, near(center), 20.0, camera=CAMERA, normal_cam=(0.8, 0.0, -1.0))
    assert error(right, center) < 0.03


def test_a_second_outline_beside_a_part_of_the_rim_is_flagged():
    # A hard shadow on one side and a bright side on the other: half of either rim.
    behind, _ = marker((AT[0] + 3.5, AT[1]), inner=0.0, levels=(0.0, 125.0, 200.0))
    exact, center = marker(inner=0.0, levels=(0.0, 50.0, 0.0), ground=behind)
    image = taken(exact)
    assert is_right_or_flagged(detect(image, near(center), 16.0), center, 0.5)


@pytest.mark.parametrize('quality', [50, 75, 95])
@pytest.mark.parametrize('seed', range(4))
def test_compressed_pictures_are_right_or_flagged(quality, seed):
    exact, center = marker(inner=0.5 * (seed % 2))
    seen = detect(jpeg(taken(exact, 3.0, seed), quality), near(center), 16.0)
    assert seen.status != LOST
    np.testing.assert_allclose(seen.center, center, atol=0.2)
    assert quality < 95 or seen.status == TRACKED


@pytest.mark.parametrize('radius', [16.0, 24.0])
def test_a_compressed_marker_is_fitted_once(monkeypatch, radius):
    # Its residuals exceed the noise, but no light and no edge of a shadow can explain them.
    exact, center = marker(radius=radius)
    fits = []
    compiled = fit._fit
    monkeypatch.setattr(fit, '_fit', lambda *a: fits.append(compiled(*a)) or fits[-1])
    image = jpeg(taken(exact, 3.0), 90)
    seen = detect(image, near(center), radius, camera=CAMERA, normal_cam=FACING)
    assert error(seen, center) < 0.02
    assert seen.residual > 2.0 * fits[0][8]
    assert len(fits) == 1


@pytest.mark.parametrize('kind', ['hot pixels', 'gamma', 'interlaced', 'pattern', 'vignetting'])
@pytest.mark.parametrize('seed', range(3))
def test_what_sensors_do_is_borne_or_flagged(kind, seed):
    random = np.random.default_rng(seed)
    exact, center = marker(inner=0.5 * (seed % 2))
    v, u = np.mgrid[:HEIGHT, :WIDTH]
    slack = 0.0
    if kind == 'gamma':
        exact = 255.0 * (exact / 255.0) ** 0.45
    elif kind == 'vignetting':
        exact = exact * np.cos(np.hypot(u, v) / 350.0) ** 4
    elif kind == 'interlaced':
        exact[1::2] = np.roll(exact, 3, axis=1)[1::2]
        slack = 1.5
    elif kind == 'pattern':
        exact[::2, ::2] *= 0.9
    image = taken(exact, 2.0, seed)
    if kind == 'hot pixels':
        image[random.random(image.shape) < 0.005] = 255
    seen = detect(image, near(center), 16.0)
    assert is_right_or_flagged(seen, center, 0.1 + slack)


@pytest.mark.parametrize('seed', range(12))
def test_texture_alone_is_no_marker(seed):
    random = np.random.default_rng(seed)
    v, u = np.mgrid[:HEIGHT, :WIDTH]
    kind = seed % 4
    if kind == 0:
        f = np.hypot(np.fft.fftfreq(HEIGHT)[:, None], np.fft.fftfreq(WIDTH))
        f[0, 0] = 1.0
        image = np.fft.ifft2(np.fft.fft2(random.normal(size=u.shape)) / f**1.3).real
        image = 120.0 + 45.0 * (image - image.mean()) / image.std()
    elif kind == 1:
        turn, side = random.uniform(0.0, math.pi), random.uniform(8.0, 30.0)
        a, b = u * math.cos(turn) + v * math.sin(turn), v * math.cos(turn) - u * math.sin(turn)
        image = np.where((a // side + b // side) % 2 == 0, 50.0, 200.0)
    elif kind == 2:
        image = np.where(
            (v // 12 % 2 * 15 + u) % 30 < 2, 190.0, 90.0 + random.normal(size=u.shape)
        )
        image[v % 12 < 2] = 190.0
    else:
        image = np.full(u.shape, 190.0)
        for _ in range(40):
            a, b = random.integers(-20, 220, (2, 2)).tolist()
            cv2.line(image, a, b, random.uniform(0.0, 250.0), int(random.integers(1, 9)))
    image = taken(cv2.GaussianBlur(image, (0, 0), 0.8), 2.0, seed)
    for at in random.uniform([40.0, 40.0], [160.0, 120.0], (3, 2)):
        assert detect(image, at, random.uniform(8.0, 30.0)).status != TRACKED
    assert find_markers(image) == []


# --- bad input ------------------------------------------------------------------------------

GOOD = np.full((HEIGHT, WIDTH), 90, np.uint8)


@pytest.mark.parametrize(
    ('image', 'said'),
    [
        (np.zeros((60, 60), np.uint16), 'got uint16'),
        (np.zeros((60, 60, 3), np.uint8), r'\(60, 60, 3\)'),
        (np.zeros((15, 60), np.uint8), r'at least 16 x 16; got uint8 of shape \(15, 60\)'),
        ([[1, 2], [3, 4]], 'got list'),
    ],
)
def test_what_is_no_image_is_refused(image, said):
    for call in (check_image, lambda image: detect(image, AT, 16.0), find_markers):
        with pytest.raises(InputError, match=said) as info:
            call(image)
        assert '\n' not in str(info.value)


def test_images_may_be_views_strided_and_read_only():
    exact, center = marker()
    image = taken(exact)
    best = detect(image, near(center), 16.0)
    frozen = image.copy()
    frozen.flags.writeable = False
    wide = np.zeros((HEIGHT, 2 * WIDTH), np.uint8)
    wide[:, ::2] = image
    padded = np.zeros((HEIGHT, WIDTH + 12), np.uint8)
    padded[:, :WIDTH] = image
    buffer = np.frombuffer(image.tobytes(), np.uint8).reshape(image.shape)
    for same in (frozen, wide[:, ::2], padded[:, :WIDTH], np.asfortranarray(image), buffer):
        seen = detect(same, near(center), 16.0)
        np.testing.assert_array_equal(seen.center, best.center)
        assert len(find_markers(same, (8.0, 30.0))) == 1
    assert not frozen.flags.writeable
    # The image is not written to.
    np.testing.assert_array_equal(image, taken(exact))


OUTSIDE = 'lies outside the image of 200 x 160 pixels'
TWO = 'a pixel is two numbers u, v; got'
RADIUS = rf'radius = .* px; allowed: \[{LIMITS.smallest:g}, {LIMITS.largest:g}\] px'
SEARCH = r'search = .* px; allowed: above 0'
NORMAL = 'a normal is three finite numbers, not all 0; got'


@pytest.mark.parametrize(
    ('name', 'values', 'said'),
    [
        ('at', [(math.nan, 10.0), (1.0, 2.0, 3.0), 5.0], TWO),
        ('at', [(-0.6, 10.0), (10.0, HEIGHT - 0.4), (WIDTH + 0.0, 3.0)], OUTSIDE),
        ('radius', [3.9, 401.0, math.nan], RADIUS),
        ('search', [0.0, math.nan, math.inf], SEARCH),
        ('camera', [None], 'a normal without a camera'),
        ('camera', [CAMERA.scaled(0.5)], '200 x 160 pixels with a calibration for 100 x 80'),
        ('normal_cam', [(0.0, 0.0, 0.0), (0.0, math.inf, 1.0), (0.0, 1.0)], NORMAL),
    ],
)
def test_what_cannot_be_detected_is_refused(name, values, said):
    good = {'at': AT, 'radius': 16.0, 'camera': CAMERA, 'normal_cam': FACING}
    for value in values:
        with pytest.raises(InputError, match=said):
            detect(GOOD, **(good | {name: value}))


def test_a_plane_that_is_seen_edge_on_is_refused():
    # 5 degrees, as seen along this ray and not along the axis.
    at, ray = (180.0, CAMERA.cy), math.atan((180.0 - CAMERA.cx) / CAMERA.fx)
    bad, good = (
        (math.cos(ray + math.radians(degrees)), 0.0, -math.sin(ray + math.radians(degrees)))
        for degrees in (4.0, 6.0)
    )
    detect(GOOD, at, 16.0, camera=CAMERA, normal_cam=good)
    with pytest.raises(InputError, match=r'is seen edge-on at \(180, 81\)'):
        detect(GOOD, at, 16.0, camera=CAMERA, normal_cam=bad)
