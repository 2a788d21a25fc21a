"""Intrinsics from checkerboards: known cameras come back, and doubtful ones are told."""

import functools
import math
import re

import cv2
import numpy as np
import pytest

from longreach_dynamics.errors import InputError
from longreach_markers.camera.model import Camera
from longreach_markers.setup import calibration, intrinsics
from longreach_markers.setup.calibration import calibrate
from longreach_markers.setup.checkerboards import (
    Board,
    BoardView,
    find_corners,
    find_views,
    list_pictures,
)

BOARD = Board(9, 6, 0.03)
SIZE = (1224, 1024)
CAMERAS = {
    'plumb_bob': Camera(
        'c', *SIZE, 1350.0, 1352.0, 618.0, 507.0, 'plumb_bob', (-0.12, 0.09, 4e-4, -3e-4, -0.02)
    ),
    'rational_polynomial': Camera(
        *('c', *SIZE, 900.0, 901.0, 600.0, 520.0, 'rational_polynomial'),
        (0.3, -0.05, 2e-4, 1e-4, 0.002, 0.55, 0.02, 0.001),
    ),
    'equidistant': Camera(
        'c', *SIZE, 480.0, 480.5, 610.0, 515.0, 'equidistant', (0.02, -0.005, 0.003, -0.001)
    ),
}


# One that bends more.
SMALLER = CAMERAS['plumb_bob'].replace(
    fx=1100.0, fy=1101.0, distortion=(-0.21, 0.09, 7e-4, -4e-4, 0.01)
)
# As wide as a rational lens may be whose corners plumb_bob does not follow by itself.
WIDE = Camera(
    *('wide', *SIZE, 908.0, 909.0, 602.0, 523.0, 'rational_polynomial'),
    (0.35, 0.02, 5e-4, 3e-4, 0.001, 0.62, 0.05, 0.002),
)


def poses(camera, count, rng, tilt=40.0, fill=1.0, scale=(0.35, 0.75), margin=3.0):
    """Board poses in front of a camera, its middle spread over a share of the image."""
    found, middle, image = [], BOARD.points.mean(axis=0), np.array([camera.width, camera.height])
    while len(found) < count:
        at = 0.5 * image + fill * 0.42 * (2.0 * rng.random(2) - 1.0) * image
        ray = np.append(camera.undistort(at), 1.0)
        depth = camera.fx * 0.03 * 8 / (rng.uniform(*scale) * camera.width)
        angles = np.radians(tilt) * (2.0 * rng.random(2) - 1.0)
        R = cv2.Rodrigues(np.array([*angles, rng.uniform(-0.4, 0.4)]))[0]
        t = depth * ray - R @ middle
        pixels = camera.project(BOARD.points @ R.T + t, strict=False)
        inside = (pixels > margin) & (pixels < image - 1.0 - margin)
        if np.isfinite(pixels).all() and inside.all():
            found.append((R, t, pixels))
    return found


def views_of(camera, count=20, noise=0.05, seed=1, **options):
    rng = np.random.default_rng(seed)
    return [
        BoardView(f'{k}.png', pixels + noise * rng.standard_normal(pixels.shape))
        for k, (_, _, pixels) in enumerate(poses(camera, count, rng, **options))
    ]


def numbers(camera):
    return np.array([camera.fx, camera.fy, camera.cx, camera.cy, *camera.distortion])


# --- the estimate ---------------------------------------------------------------------------


@pytest.mark.parametrize('model', CAMERAS)
def test_perfect_corners_give_the_camera_back(model):
    truth = CAMERAS[model]
    found = calibrate(views_of(truth, noise=0.0), BOARD, SIZE, model, 'left')
    # OpenCV takes float32 pixels; the eight terms of the rational model stand in for each other.
    assert found.rms < 2e-3
    assert found.camera.name == 'left'
    assert (found.camera.width, found.camera.height) == SIZE
    np.testing.assert_allclose(numbers(found.camera)[:4], numbers(truth)[:4], atol=0.2)
    x, y = np.meshgrid(np.linspace(-0.35, 0.35, 9), np.linspace(-0.3, 0.3, 9))
    rays = np.stack([x, y], axis=-1)
    np.testing.assert_allclose(found.camera.distort(rays), truth.distort(rays), atol=0.05)


@pytest.mark.slow
@pytest.mark.parametrize('model', ['plumb_bob', 'equidistant'])
def test_stated_deviations_are_those_of_repetitions(model):
    truth = CAMERAS[model]
    squared = []
    for seed in range(12):
        found = calibrate(views_of(truth, 12, 0.1, seed), BOARD, SIZE, model)
        error = numbers(found.camera) - numbers(truth)
        squared.append(error @ np.linalg.solve(found.covariance, error) / len(error))
        assert list(found.deviations)[:4] == ['fx', 'fy', 'cx', 'cy']
    # The mean of some hundred squared normal numbers.
    assert 0.5 < np.mean(squared) < 1.7


def test_deviations_are_those_of_opencv():
    views = views_of(CAMERAS['plumb_bob'], 15, 0.1)
    found = calibrate(views, BOARD, SIZE)
    points = [BOARD.points.astype(np.float32)] * len(views)
    corners = [view.corners.astype(np.float32) for view in views]
    out = cv2.calibrateCameraExtended(points, corners, SIZE, None, None)
    np.testing.assert_allclose(list(found.deviations.values()), out[5].ravel()[:9], rtol=0.02)
    np.testing.assert_allclose(found.errors, out[7].ravel(), rtol=1e-3)
    assert found.rms == pytest.approx(out[0], rel=1e-3)


@pytest.mark.slow
def test_ray_deviation_is_that_of_repetitions():
    truth = CAMERAS['plumb_bob']
    told, squares = [], []
    for seed in range(12):
        found = calibrate(views_of(truth, 12, 0.1, seed), BOARD, SIZE)
        told.append(found.ray_deviation)
        # What a turn of the camera takes up does not count.
        squares.append(ray_errors(found, truth) ** 2 / 2.0)
    seen = np.sqrt(np.mean(squares, axis=0))
    assert 0.6 < np.median(seen / np.mean(told, axis=0)) < 1.6


# --- trust ----------------------------------------------------------------------------------


def test_good_pictures_give_no_warning():
    for model in CAMERAS:
        # Eight coefficients take better pictures.
        noise = 0.015 if model == 'rational_polynomial' else 0.05
        views = views_of(CAMERAS[model], 60, noise, seed=3, fill=1.2, scale=(0.25, 0.7))
        found = calibrate(views, BOARD, SIZE, model)
        assert found.warnings == (), model
        assert found.outliers == ()
        assert found.coverage.area > 0.6
        assert found.coverage.missing == ()


def flat_or_not(bend=0.0, stretch=1.0, camera=CAMERAS['plumb_bob']):
    """Calibrate by pictures of a board that is bent [m], and wider by a factor."""
    rng = np.random.default_rng(3)
    shape, half = BOARD.points.copy(), 0.12
    shape[:, 2] = bend * ((shape[:, 0] - half) / half) ** 2
    shape[:, 0] *= stretch
    views = [
        BoardView(str(k), pixels + 0.05 * rng.standard_normal(pixels.shape))
        for k, (R, t, _) in enumerate(poses(camera, 30, rng, fill=1.1, scale=(0.25, 0.7)))
        if np.isfinite(pixels := camera.project(shape @ R.T + t, strict=False)).all()
    ]
    return calibrate(views, BOARD, SIZE)


def test_a_board_that_is_not_flat_is_told():
    truth = CAMERAS['plumb_bob']
    found = flat_or_not(bend=2e-4)
    assert abs(found.camera.fx - truth.fx) > 5.0 * found.deviations['fx']
    told = [text for text in found.warnings if 'the board is not flat' in text]
    # In the middle and at the ends, of a parabola of 0.2 mm about its mean plane.
    (off,) = (float(re.search(r'up to ([\d.]+) mm', text)[1]) for text in told)
    assert 0.1 < off < 0.2
    found = flat_or_not()
    assert abs(found.camera.fx - truth.fx) < 4.0 * found.deviations['fx']
    assert not any('flat' in text or 'square' in text for text in found.warnings)


def test_a_board_that_the_printer_has_stretched_is_told():
    found = flat_or_not(stretch=1.005, camera=CAMERAS['plumb_bob'].replace(fy=1350.0))
    assert found.camera.fx / found.camera.fy > 1.0 + 4.0 * found.deviations['fx'] / 1350.0
    assert any('the printer has stretched the board' in text for text in found.warnings)


@pytest.mark.parametrize(
    ('model', 'name', 'value', 'text'),
    [
        ('rational_polynomial', '_STEPS', 3, 'the estimate has not converged: the next step'),
        ('plumb_bob', '_ITERATIONS', (cv2.TERM_CRITERIA_COUNT, 2, 0.0), 'the next step would'),
        ('equidistant', '_ITERATIONS', (cv2.TERM_CRITERIA_COUNT, 1, 0.0), 'the next step would'),
    ],
)
def test_least_squares_that_have_not_converged_are_told(monkeypatch, model, name, value, text):
    views = views_of(CAMERAS[model], 12)
    assert 'converged' not in ' '.join(calibrate(views, BOARD, SIZE, model).warnings)
    monkeypatch.setattr(intrinsics, name, value)
    assert text in ' '.join(calibrate(views, BOARD, SIZE, model).warnings)


def test_a_richer_model_that_has_not_converged_is_told(monkeypatch):
    views = views_of(WIDE, 26, seed=2, fill=1.1, scale=(0.25, 0.6))
    assert 'converged' not in ' '.join(calibrate(views, BOARD, SIZE).warnings)
    for steps in (0, 1):
        monkeypatch.setattr(intrinsics, '_STEPS', steps)
        text = ' '.join(calibrate(views, BOARD, SIZE).warnings)
        assert 'rational_polynomial was fitted to the same corners' in text
    monkeypatch.setattr(calibration, 'enriched', lambda *_: None)
    assert 'has not converged' in ' '.join(calibrate(views, BOARD, SIZE).warnings)


def grid(found):
    """Pixels at which deviations and differences are stated."""
    rows, columns = found.ray_deviation.shape
    u, v = np.linspace(0.0, SIZE[0] - 1.0, columns), np.linspace(0.0, SIZE[1] - 1.0, rows)
    return np.stack(np.meshgrid(u, v), axis=-1)


def ray_errors(found, truth):
    """What pixels of a camera are off those of the true one, less a turn [px]."""
    pixels = grid(found)
    x, y = np.moveaxis(found.camera.undistort(pixels), -1, 0)
    off = truth.distort(np.stack([x, y], axis=-1)) - pixels
    moved = [
        # Of turns about the three axes, to first order.
        np.stack([-x * y, -1.0 - y * y], axis=-1),
        np.stack([1.0 + x * x, x * y], axis=-1),
        np.stack([-y, x], axis=-1),
    ]
    J = truth.fx * np.stack([field.ravel() for field in moved], axis=1)
    rest = off.ravel() - J @ np.linalg.lstsq(J, off.ravel(), rcond=None)[0]
    return np.linalg.norm(rest.reshape(off.shape), axis=-1)


def test_lens_that_plumb_bob_does_not_follow_beyond_the_boards_is_told():
    for seed in (2, 4, 6):
        views = views_of(WIDE, 26, seed=seed, fill=1.1, scale=(0.25, 0.6))
        found = calibrate(views, BOARD, SIZE)
        # All looks well, but where no board was.
        assert found.rms < 0.08
        wrong = ray_errors(found, WIDE)
        assert wrong.max() > 1.0
        told = [text for text in found.warnings if text.startswith('rational_polynomial fits')]
        assert len(told) == 1, found.warnings
        u, v = map(int, re.search(r'puts pixel \((\d+), (\d+)\)', told[0]).groups())
        assert 'where no board was: the pictures do not determine the lens there' in told[0]
        nearest = np.argmin(np.linalg.norm(grid(found).reshape(-1, 2) - (u, v), axis=1))
        assert wrong.ravel()[nearest] > 1.0
        assert found.difference.max() > 0.3 * wrong.max()


def test_lens_that_plumb_bob_does_not_follow_among_the_boards_is_told():
    odd = WIDE.replace(fx=750.0, fy=750.0, cx=610.0, cy=510.0)
    found = calibrate(views_of(odd, 40, seed=3, fill=1.2, scale=(0.25, 0.7)), BOARD, SIZE)
    assert any('in the covered area: plumb_bob does not fit the lens' in w for w in found.warnings)
    # It is no picture's fault.
    assert found.outliers == ()
    assert len(found.views) == 40


@pytest.mark.slow_after(1)
@pytest.mark.parametrize('camera', [CAMERAS['plumb_bob'], SMALLER], ids=['mild', 'strong'])
def test_lens_that_is_what_its_model_says_is_not_doubted(camera):
    for seed in range(8):
        views = views_of(camera, 24, seed=seed, fill=1.2, scale=(0.25, 0.7))
        found = calibrate(views, BOARD, SIZE)
        assert np.isfinite(found.difference).all()
        assert not any('rational_polynomial' in text for text in found.warnings), seed
    assert 0.6 < found.coverage.area < 0.85


@pytest.mark.parametrize('seed', [2, 5, 6])
def test_rational_lens_comes_back_though_its_coefficients_do_not(seed):
    views = views_of(WIDE, 26, seed=seed, fill=1.1, scale=(0.25, 0.6))
    found = calibrate(views, BOARD, SIZE, 'rational_polynomial')
    # No coefficient runs away, and what is stated of rays is true, corners of the image included.
    assert np.abs(found.camera.distortion).max() < 3.0
    assert found.rms < 0.08
    wrong, told = ray_errors(found, WIDE), math.sqrt(2.0) * found.ray_deviation
    assert np.max(wrong / told) < 4.0
    assert np.median(told) < 0.15
    assert np.median(wrong) < 0.1
    uncertain = any('rays are uncertain' in text for text in found.warnings)
    assert uncertain == (told.max() > math.sqrt(2.0) * 0.5)
    assert uncertain or wrong.max() < 0.5
    assert np.isnan(found.difference).all()


@pytest.mark.parametrize(
    ('options', 'text'),
    [
        ({'count': 5}, 'only 5 pictures show the board: take 15 to 30'),
        ({'tilt': 5.0}, '0 of 20 pictures show the board tilted by more than 20 deg'),
        ({'fill': 0.1, 'scale': (0.2, 0.3)}, '% of the image: hold the board where'),
        ({'fill': 0.1, 'scale': (0.2, 0.3)}, 'upper left, upper right, lower left, lower right'),
        ({'fill': 0.1, 'scale': (0.2, 0.3)}, 'rays are uncertain by up to'),
        ({'scale': (0.5, 0.5), 'tilt': 25.0}, 'all boards are about as far away'),
        ({'noise': 1.0}, 'is large: look for a board that is not flat'),
        ({'tilt': 5.0, 'noise': 0.3}, 'the focal length is uncertain by'),
        ({'tilt': (0.0, 45.0)}, 'about the horizontal axis over'),
    ],
)
def test_doubtful_pictures_are_told_with_what_to_do(options, text):
    found = calibrate(views_of(CAMERAS['plumb_bob'], **options), BOARD, SIZE)
    assert any(text in warning for warning in found.warnings), found.warnings


@pytest.mark.parametrize('count', [8, 20])
def test_pictures_of_another_camera_are_named_and_left_out(count):
    truth = CAMERAS['plumb_bob']
    views = views_of(truth, count)
    clean = calibrate(views, BOARD, SIZE)
    zoomed = truth.replace(fx=1.1 * truth.fx, fy=1.1 * truth.fy)
    views[3] = BoardView('other.png', views_of(zoomed, 1, seed=5)[0].corners)
    found = calibrate(views, BOARD, SIZE)
    assert found.outliers == ('other.png',)
    assert any('other.png does not fit the others, and was left out' in w for w in found.warnings)
    assert abs(found.camera.fx - truth.fx) < 4.0 * found.deviations['fx']
    assert found.rms < 1.2 * clean.rms


def test_coverage_measures_what_was_shown():
    camera = CAMERAS['plumb_bob']
    views = []
    for tilt in (0.0, 0.3, -0.3, 0.5):
        R = cv2.Rodrigues(np.array([tilt, 0.0, 0.0]))[0]
        points = (BOARD.points - BOARD.points.mean(axis=0)) @ R.T + (0.0, 0.0, 0.6)
        views.append(BoardView(str(tilt), camera.project(points)))
    coverage = calibrate(views, BOARD, SIZE).coverage
    np.testing.assert_allclose(np.sort(coverage.tilts), (0.0, 0.3, 0.3, 0.5), atol=2e-2)
    np.testing.assert_allclose(coverage.distances, 0.6, rtol=2e-2)
    assert coverage.turns[0] == pytest.approx(0.0, abs=2e-2)
    assert coverage.turns[1] == pytest.approx(0.8, abs=2e-2)
    low, high = views[0].corners.min(axis=0), views[0].corners.max(axis=0)
    assert coverage.area == pytest.approx(np.prod((high - low) / SIZE), rel=0.1)


# --- pictures -------------------------------------------------------------------------------


class Studio:
    """Pictures of a board, a ray of OpenCV for each of 3 x 3 parts of a pixel."""

    def __init__(self, camera):
        self.size = (camera.width, camera.height)
        part = (np.arange(3) - 1.0) / 3.0
        u = (np.arange(camera.width)[:, None] + part).ravel()
        v = (np.arange(camera.height)[:, None] + part).ravel()
        pixels = np.stack(np.meshgrid(u, v), axis=-1).reshape(-1, 1, 2)
        K, k = camera.matrix, np.array(camera.distortion)
        if camera.model == 'equidistant':
            rays = cv2.fisheye.undistortPoints(pixels, K, k)
        else:
            stop = (cv2.TERM_CRITERIA_COUNT, 40, 0.0)
            rays = cv2.undistortPointsIter(pixels, K, k, None, None, stop)
        self.rays = rays.reshape(-1, 2)

    def picture(self, R, t, rng, board=BOARD):
        # A ray d meets the board where R' (s d - t) has z = 0.
        H = np.linalg.inv(np.column_stack([R[:, :2], t]))
        x, y, w = H @ np.column_stack([self.rays, np.ones(len(self.rays))]).T
        column, row = np.floor(x / w / board.square) + 1, np.floor(y / w / board.square) + 1
        on = (column >= 0) & (column <= board.columns) & (row >= 0) & (row <= board.rows)
        dark = on & ((column + row) % 2 == 0)
        grey = np.where(dark, 30.0, 215.0)
        height, width = self.size[1], self.size[0]
        fine = grey.reshape(height, 3, width, 3).mean(axis=(1, 3))
        fine = cv2.GaussianBlur(fine, (0, 0), 0.7) + 2.0 * rng.standard_normal(fine.shape)
        return np.clip(np.rint(fine), 0, 255).astype(np.uint8)


SMALL = Camera(
    'small', 640, 512, 640.0, 641.0, 322.0, 250.0, 'plumb_bob', (-0.15, 0.1, 5e-4, -4e-4, 0.0)
)


@functools.cache
def rendered(camera, count):
    """Pictures of a whole board with a margin, and its corners."""
    rng, studio = np.random.default_rng(2), Studio(camera)
    found = poses(camera, count, rng, fill=0.8, scale=(0.44, 0.8), margin=30.0)
    return [(studio.picture(R, t, rng), pixels) for R, t, pixels in found]


def test_corners_of_a_rendered_board_are_found():
    for image, truth in rendered(SMALL, 10)[:3]:
        corners = find_corners(image, BOARD)
        # From either end.
        squares = [np.mean((one - truth) ** 2) for one in (corners, corners[::-1])]
        assert math.sqrt(min(squares)) < 0.05
    assert find_corners(np.full((200, 300), 128, np.uint8), BOARD) is None


@pytest.mark.slow_after(1)
@pytest.mark.parametrize('model', ['plumb_bob', 'equidistant'])
def test_camera_comes_back_from_pictures(tmp_path, model):
    lens = {'fx': 360.0, 'fy': 361.0, 'model': model, 'distortion': (0.02, -0.01, 0.005, -0.001)}
    truth = SMALL.replace(**lens) if model == 'equidistant' else SMALL
    for k, (image, _) in enumerate(rendered(truth, 10)):
        cv2.imwrite(str(tmp_path / f'{k}.png'), image)
    cv2.imwrite(str(tmp_path / 'empty.png'), np.full((512, 640), 90, np.uint8))
    files = list_pictures([tmp_path])
    assert [file.name for file in files] == [*(f'{k}.png' for k in range(10)), 'empty.png']
    views, empty, size = find_views(files, BOARD)
    assert [view.name for view in views] == [str(file) for file in files[:10]]
    assert empty == [str(tmp_path / 'empty.png')]
    assert size == (640, 512)
    found = calibrate(views, BOARD, size, model)
    assert found.rms < 0.08
    error = numbers(found.camera) - numbers(truth)
    assert error @ np.linalg.solve(found.covariance, error) / len(error) < 4.0
    assert found.deviations['fx'] < 1.0


# --- what is refused ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ('text', 'square', 'part'),
    [
        ('9', 0.03, "board = '9', allowed: inner corners such as 9x6"),
        ('2x6', 0.03, 'board = 2x6, allowed: 3 to 100'),
        ('9x6', 30.0, 'square = 30 m, allowed: (0, 10) m'),
    ],
)
def test_wrong_boards_are_refused(text, square, part):
    with pytest.raises(InputError, match=re.escape(part)):
        Board.parse(text, square)
    assert Board.parse('9x6', 0.03) == BOARD


def test_wrong_views_are_refused():
    views = views_of(CAMERAS['plumb_bob'], 4)
    with pytest.raises(InputError, match='2 pictures with a board, allowed: 3 or more'):
        calibrate(views[:2], BOARD, SIZE)
    with pytest.raises(InputError, match="model = 'pinhole', allowed: plumb_bob"):
        calibrate(views, BOARD, SIZE, 'pinhole')
    with pytest.raises(InputError, match=re.escape('shape (54, 2), allowed: 35 finite')):
        calibrate(views, Board(7, 5, 0.03), SIZE)


@pytest.mark.parametrize('model', CAMERAS)
def test_one_picture_many_times_is_no_calibration(model):
    views = [views_of(CAMERAS[model], 1, tilt=0.0)[0]] * 5
    found = calibrate(views, BOARD, SIZE, model)
    assert len(found.warnings) > 2


def test_bad_pictures_are_refused_by_name(tmp_path):
    good = rendered(SMALL, 10)[0][0]
    whole, other = (tmp_path / f'{name}.png' for name in ('whole', 'other'))
    cv2.imwrite(str(whole), good)
    cv2.imwrite(str(other), good.T)
    (tmp_path / 'empty').mkdir()
    for files, board, text in (
        ([whole, other], BOARD, r'other\.png has 512 x 640 px and .*whole\.png has 640 x'),
        ([whole], BOARD, '1 of 1 pictures show a whole board of 9x6'),
        ([whole], Board(10, 7, 0.03), '0 of 1 pictures .* count inner corners, not squares'),
        ([], BOARD, 'no pictures are given'),
    ):
        with pytest.raises(InputError, match=text):
            find_views(files, board)
    with pytest.raises(InputError, match=r'none\.png does not exist'):
        list_pictures([tmp_path / 'none.png'])
    with pytest.raises(InputError, match='empty holds no pictures'):
        list_pictures([tmp_path / 'empty'])
