"""Cameras: projection and its inverse against OpenCV, refusals, calibration files of ROS."""

import math

import cv2
import numpy as np
import pytest

from longreach_dynamics.errors import InputError
from longreach_markers.camera.files import read_camera, write_camera
from longreach_markers.camera.model import Camera, distort_point, projection_jacobian

WIDTH, HEIGHT = 2452, 2054
# From mild to wild; all are one-to-one within the image.
DISTORTIONS = [
    ('plumb_bob', 4800.0, ()),
    ('plumb_bob', 4800.0, (-0.12, 0.09, 0.001, -0.0005)),
    ('plumb_bob', 4800.0, (-0.12, 0.09, 0.001, -0.0005, 0.01)),
    ('plumb_bob', 3000.0, (-0.35, 0.2, -0.003, 0.002, -0.05)),
    ('plumb_bob', 1800.0, (0.3, -0.05, 0.0, 0.0, 0.01)),
    ('plumb_bob', 2000.0, (-0.3, 0.12, 0.004, 0.004, -0.01)),
    ('rational_polynomial', 1800.0, (1.2, 0.4, 0.001, -0.002, 0.01, 1.5, 0.6, 0.05)),
    ('rational_polynomial', 1200.0, (4.0, 2.0, 0.0, 0.0, 0.08, 4.4, 3.4, 0.5)),
    ('equidistant', 1500.0, (0.01, -0.002, 0.001, -0.0005)),
    ('equidistant', 1100.0, (-0.02, 0.004, -0.003, 0.0004)),
    ('equidistant', 2500.0, (0.3, 0.1, -0.05, 0.01)),
]


def camera_with(model, focal, distortion):
    size = WIDTH, HEIGHT
    return Camera('left', *size, focal, 1.003 * focal, 1231.7, 1018.2, model, distortion)


def pixels_of(camera, count=2000, seed=1):
    """Pixels all over the image, its corners and the principal point included."""
    random = np.random.default_rng(seed)
    right, bottom = camera.width - 0.5, camera.height - 0.5
    corners = [(-0.5, -0.5), (right, -0.5), (-0.5, bottom), (right, bottom)]
    inside = random.uniform((-0.5, -0.5), (right, bottom), (count, 2))
    return np.concatenate([inside, corners, [(camera.cx, camera.cy)]])


def opencv_pixels(camera, points):
    still, coefficients = np.zeros(3), np.array(camera.distortion or (0.0,) * 4)
    if camera.model == 'equidistant':
        shown, _ = cv2.fisheye.projectPoints(
            points[:, None], still, still, camera.matrix, coefficients
        )
    else:
        shown, _ = cv2.projectPoints(points[:, None], still, still, camera.matrix, coefficients)
    return np.asarray(shown)[:, 0]


@pytest.fixture(params=DISTORTIONS, ids=[f'{m}-{f:g}-{len(d)}' for m, f, d in DISTORTIONS])
def camera(request):
    return camera_with(*request.param)


def test_every_pixel_of_the_image_has_a_ray_that_projects_to_it(camera):
    pixels = pixels_of(camera)
    rays = camera.undistort(pixels)
    np.testing.assert_allclose(camera.distort(rays), pixels, rtol=0.0, atol=2e-9)


def test_projection_is_opencvs(camera):
    rays = camera.undistort(pixels_of(camera))
    depths = np.random.default_rng(2).uniform(0.1, 60.0, (len(rays), 1))
    points = np.column_stack([rays, np.ones(len(rays))]) * depths
    np.testing.assert_allclose(
        camera.project(points), opencv_pixels(camera, points), rtol=0.0, atol=1e-8
    )


def test_jacobian_is_the_derivative(camera):
    packed, h = camera.packed, 1e-6
    for x, y in camera.undistort(pixels_of(camera, 40)):
        exact = np.reshape(projection_jacobian(packed, x, y), (2, 2))
        by_x = np.subtract(distort_point(packed, x + h, y), distort_point(packed, x - h, y))
        by_y = np.subtract(distort_point(packed, x, y + h), distort_point(packed, x, y - h))
        difference = np.column_stack([by_x, by_y]) / (2.0 * h)
        np.testing.assert_allclose(exact, difference, rtol=0.0, atol=1e-6 * camera.fx)


def test_a_model_that_folds_has_one_ray_for_a_pixel_and_none_beyond():
    # r - 0.3 r^3 + 0.02 r^5 rises up to r = 1.139.
    camera = camera_with('plumb_bob', 2600.0, (-0.3, 0.02, 0.0, 0.0))
    limit = math.sqrt((0.9 - math.sqrt(0.81 - 0.4)) / 0.2)
    inner, outer = 0.999 * limit, 1.001 * limit
    pixel = camera.distort((inner, 0.0))
    np.testing.assert_allclose(camera.undistort(pixel), (inner, 0.0), atol=1e-9)
    with pytest.raises(InputError, match=r'have no pixel of camera left.* < 1\.139'):
        camera.distort((outer, 0.0))
    with pytest.raises(InputError, match='has no pixel, allowed: z > 0'):
        camera.project((10.0 * outer, 0.0, 10.0))
    # OpenCV shows it within the image, which is the trap.
    assert opencv_pixels(camera, np.array([[1.8, 0.0, 1.0]]))[0, 0] < camera.width
    with pytest.raises(InputError, match='has no ray'):
        camera.undistort(np.add(pixel, (50.0, 0.0)))


def test_unreachable_pixels_and_rays_are_nan_when_asked_for():
    camera = camera_with('plumb_bob', 2600.0, (-0.3, 0.02, 0.0001, 0.0))
    shown = camera.project([[0, 0, 5], [0, 0, -5], [0, 0, 0], [40, 0, 5]], strict=False)
    np.testing.assert_array_equal(np.isnan(shown), [[False] * 2] + [[True] * 2] * 3)
    rays = camera.undistort([[1200.0, 1000.0], [9000.0, 1000.0]], strict=False)
    np.testing.assert_array_equal(np.isnan(rays), [[False] * 2, [True] * 2])


@pytest.mark.parametrize('wrong', [math.nan, math.inf, -math.inf])
def test_numbers_that_are_not_finite_and_points_behind_are_refused(camera, wrong):
    with pytest.raises(InputError, match='has no ray'):
        camera.undistort((wrong, 10.0))
    with pytest.raises(InputError, match='have no pixel'):
        camera.distort((0.0, wrong))
    for point in ((0.0, wrong, 1.0), (0.1, 0.2, math.nan), (0.1, 0.2, 0.0), (0.1, 0.2, -3.0)):
        with pytest.raises(InputError, match=rf'point \({point[0]:g}, .*\) m .* has no pixel'):
            camera.project([(0.3, 0.0, 1.0), point])


def test_wrong_shapes_are_refused(camera):
    with pytest.raises(InputError, match=r'pixels have shape \(4, 3\), allowed: \(..., 2\)'):
        camera.undistort(np.zeros((4, 3)))
    with pytest.raises(InputError, match=r'points have shape \(2,\), allowed: \(..., 3\)'):
        camera.project((1.0, 2.0))


def test_a_fisheye_may_see_sideways_in_the_corners_of_its_image():
    camera = camera_with('equidistant', 700.0, (0.0,) * 4)
    with pytest.raises(InputError, match='has no ray'):
        camera.undistort((0.0, 0.0))
    assert camera.undistort((camera.cx + 700.0 * 1.5, camera.cy))[0] == pytest.approx(
        math.tan(1.5)
    )


FOLDS = 'folds over within the image'


@pytest.mark.parametrize(
    ('changes', 'text'),
    [
        ({'fx': math.nan}, r'fx = nan, allowed: \(0, inf\) px'),
        ({'fx': 8.0, 'fy': 8.0}, r'fx = 8 px, allowed .*: \[122.6, 490400\] px; is it in mm'),
        ({'fx': 2.2e6, 'fy': 2.2e6}, r'fx = 2\.2e\+06 px, allowed for an image of 2452 px'),
        ({'fx': 22034.0}, 'differ by a factor of more than 4'),
        ({'cx': 12000.0}, 'cx = 12000 px, allowed for an image of 2452 px.*another image size'),
        ({'model': 'fisheye'}, r"model = 'fisheye', allowed: plumb_bob \| rational_polynomial"),
        ({'distortion': (0.1,)}, 'has 1 coefficients, allowed for plumb_bob: 0 or 4 or 5'),
        ({'distortion': (0.1, math.nan, 0.0, 0.0)}, r'distortion\[1\] = nan'),
        ({'model': 'rational_polynomial', 'distortion': (0.0,) * 12}, 'leave them out if'),
        ({'model': 'equidistant', 'distortion': ()}, 'has 0 coefficients, allowed for equi'),
        ({'distortion': (-0.35, 0.2, 0.0, 0.0, -9.0)}, FOLDS),
        ({'distortion': (0.0, 0.0, 0.5, 0.0)}, FOLDS),
        ({'model': 'rational_polynomial', 'distortion': (0.0,) * 5 + (4.0, 0.0, 0.0)}, FOLDS),
        ({'model': 'equidistant', 'distortion': (-0.8, 0.0, 0.0, 0.0)}, FOLDS),
    ],
)
def test_impossible_cameras_are_refused(changes, text):
    camera = camera_with('plumb_bob', 2000.0, ())
    with pytest.raises(InputError, match=text):
        camera.replace(**changes)


@pytest.mark.parametrize('factor', [0.25, 0.5, 1.0, 2.0])
def test_scaled_cameras_show_the_same_places(camera, factor):
    scaled = camera.scaled(factor)
    rays = camera.undistort(pixels_of(camera, 50))
    expected = (camera.distort(rays) + 0.5) * factor - 0.5
    np.testing.assert_allclose(scaled.distort(rays), expected, rtol=0.0, atol=1e-9)
    assert (scaled.width, scaled.height) == (round(WIDTH * factor), round(HEIGHT * factor))


@pytest.mark.parametrize('factor', [0.0, math.nan, math.inf])
def test_impossible_scales_are_refused(factor):
    with pytest.raises(InputError, match='factor = '):
        camera_with('plumb_bob', 4800.0, ()).scaled(factor)


# As the ROS node camera_calibration writes it.
WRITTEN_BY_ROS = """\
image_width: 640
image_height: 480
camera_name: narrow_stereo
camera_matrix:
  rows: 3
  cols: 3
  data: [438.783367,   0.     , 305.593336,
           0.     , 437.302876, 243.738352,
           0.     ,   0.     ,   1.     ]
distortion_model: plumb_bob
distortion_coefficients:
  rows: 1
  cols: 5
  data: [-0.361976, 0.110510, 0.001014, 0.000505, 0.000000]
rectification_matrix:
  rows: 3
  cols: 3
  data: [0.999978, 0.002789, -0.006046,
         -0.002816, 0.999986, -0.004401,
         0.006034, 0.004417, 0.999972]
projection_matrix:
  rows: 3
  cols: 4
  data: [393.653800,   0.     , 322.797939,   0.     ,
           0.     , 393.653800, 241.090902,   0.     ,
           0.     ,   0.     ,   1.     ,   0.     ]
"""


def file_with(directory, old='', new=''):
    assert old in WRITTEN_BY_ROS
    path = directory / 'camera.yaml'
    path.write_text(WRITTEN_BY_ROS.replace(old, new, 1))
    return path


def test_files_of_ros_are_read(tmp_path):
    numbers = 640, 480, 438.783367, 437.302876, 305.593336, 243.738352
    lens = 'plumb_bob', (-0.361976, 0.11051, 0.001014, 0.000505, 0.0)
    assert read_camera(file_with(tmp_path)) == Camera('narrow_stereo', *numbers, *lens)
    # Old files have no model, and numbers as names.
    path = file_with(tmp_path, 'distortion_model: plumb_bob\n')
    path.write_text(path.read_text().replace('narrow_stereo', '14092'))
    assert read_camera(path) == Camera('14092', *numbers, *lens)


def test_what_is_written_is_read_again_to_the_last_bit(camera, tmp_path):
    random = np.random.default_rng(4)
    exact = camera.replace(
        name='left: "the" camera #1', cx=camera.cx + random.normal(), fx=camera.fx + math.pi / 3e5
    )
    path = tmp_path / 'camera.yaml'
    write_camera(exact, path)
    assert read_camera(path) == exact


def test_opencv_reads_the_same_numbers(tmp_path):
    path = tmp_path / 'camera.yaml'
    write_camera(camera_with(*DISTORTIONS[2]), path)
    text = path.read_text()
    for key in ('rows: 3', 'cols: 4', 'distortion_model: plumb_bob', 'image_width: 2452'):
        assert key in text
    # Rectification and projection are those of an image that is only undistorted.
    assert '[1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0]' in text
    assert '[4800.0, 0.0, 1231.7, 0.0, 0.0,' in text


@pytest.mark.parametrize(
    ('old', 'new', 'text'),
    [
        ('image_width: 640\n', '', 'image_width is missing'),
        ('image_height: 480', 'image_height: 0', r'image_height = 0, allowed: \[1'),
        ('  data: [438.78', '  dota: [438.78', 'camera_matrix = .*allowed: a mapping with rows'),
        ('438.783367', '.nan', r'camera_matrix.data\[0\] = nan, allowed: a finite number'),
        ('438.783367', 'f', r"camera_matrix.data\[0\] = 'f', allowed: a number"),
        ('305.593336', '30559.0', r'camera_matrix.data\[2\] = 30559 px, allowed'),
        ('437.302876, ', '', r'camera_matrix has 3 x 3 and 8 values, allowed: 3 x 3'),
        ('438.783367,   0.     ', '438.783367,   0.5    ', r'\[fx, 0, cx, 0,.*is not calibrated'),
        ('plumb_bob', 'fisheye', "distortion_model = 'fisheye', allowed: plumb_bob"),
        (', 0.000000]', ']', 'distortion_coefficients has 1 x 5 and 4 values'),
        ('-0.361976', '-9.0', r'distortion_coefficients.data = .* folds over within the image'),
    ],
)
def test_errors_of_files_name_file_and_key(tmp_path, old, new, text):
    path = file_with(tmp_path, old, new)
    with pytest.raises(InputError, match=text) as caught:
        read_camera(path)
    assert str(caught.value).startswith(str(path))


def test_files_that_cannot_be_written_are_told(tmp_path):
    with pytest.raises(InputError, match='cannot be written'):
        write_camera(camera_with(*DISTORTIONS[0]), tmp_path / 'none' / 'camera.yaml')
