"""The rig file: what it holds, what it refuses, and the one that is installed."""

import dataclasses
import math
import re

import numpy as np
import pytest

from longreach_dynamics.errors import InputError
from longreach_dynamics.resources import share_directory
from longreach_markers.camera.files import write_camera
from longreach_markers.camera.geometry import Plane, Pose
from longreach_markers.camera.model import Camera
from longreach_markers.rig import MarkerOnRig, MountedCamera, Rig, TrackingParameters, load_rig
from longreach_markers.rig_parameters import GivenPixel

CAMERA = Camera('any', 640, 480, 500.0, 501.0, 318.0, 241.0, 'plumb_bob', (-0.1, 0.01, 0.0, 0.0))
TEXT = """
cameras:
  left:
    calibration: cameras/any.yaml
    position: [0.0, -5.0, 1.0]
    orientation: [-0.7071067811865476, 0.0, 0.0, 0.7071067811865476]
plane: {normal: [0.0, 1.0, 0.0], offset: 0.0}
markers:
  - {name: tip, radius: 0.1, position: [0.5, 0.0, 1.0]}
"""


@pytest.fixture
def write(tmp_path):
    (tmp_path / 'cameras').mkdir()
    write_camera(CAMERA, tmp_path / 'cameras' / 'any.yaml')

    def make(old='', new=''):
        assert old in TEXT
        file = tmp_path / 'rig.yaml'
        file.write_text(TEXT.replace(old, new))
        return file

    return make


def small_rig(**changes):
    root = np.random.default_rng(1).standard_normal((6, 6))
    left, right = (Pose.from_look_at((x, -5.0, 1.0), (0.0, 0.0, 1.0)) for x in (-1.0, 1.0))
    left = dataclasses.replace(left, covariance=1e-8 * root @ root.T)
    values = {
        'cameras': {'left': MountedCamera(CAMERA, left), 'right': MountedCamera(CAMERA, right)},
        'plane': Plane(
            *(np.array([0.0, 1.0, 0.0]), 0.25),
            *(np.diag([1e-6, 2e-6, 4e-6]), np.array([1.0, 0.25, 2.0])),
        ),
        'markers': (
            MarkerOnRig('ring', 0.1, position=(0.0, 0.25, 1.0), left=(10.0, 20.0, 8.0)),
            MarkerOnRig('disc', 0.2, 0.0, True, 0.03),
        ),
        'tracking': TrackingParameters(acceleration=300.0, window=80.0),
    }
    return Rig(**{**values, **changes})


@pytest.mark.parametrize(
    ('old', 'new', 'message'),
    [
        ('[-0.7071067811865476', '[-0.9', r'cameras\.left: orientation .* has norm'),
        ('0.0, -5.0, 1.0', '0.0, -5.0', r'cameras\.left\.position has 2 values, allowed: 3'),
        ('  left:', '  1st:', r'cameras\.1st is unknown'),
        ('0.0, 1.0, 0.0], offset', '0.0, 2.0, 0.0], offset', 'normal = .* has length 2'),
        ('plane: {normal: [0.0, 1.0, 0.0], offset: 0.0}', '', 'plane is missing: .*vision pose'),
        ('offset: 0.0', 'offset: -5.0', 'plane of tip passes through the camera left'),
        ('[0.5, 0.0, 1.0]', '[0.5, -7.0, 1.0]', 'tip at .* m lies 2 m behind the camera left'),
        ('name: tip', 'name: the tip', "name = 'the tip', allowed: letters"),
        ('radius: 0.1', 'radius: 0.0', 'radius = 0.0, allowed'),
        ('radius: 0.1', 'radius: 0.1, inner: 0.95', r'inner = 0.95, allowed: \[0, 0.9\]'),
        ('radius: 0.1', 'radius: 0.1, left: [3, 4, 0]', r'left\[2\] = 0 px, allowed: above 0'),
        ('markers:', 'markers: []\nmore:', 'more is unknown'),
        ('markers:\n  - {', 'markers: []\n# {', 'markers is empty, allowed: one or more'),
        ('markers:', 'markers:\n  - {name: tip, radius: 0.2}', "the name 'tip' twice, allowed"),
        ('offset: 0.0}', 'offset: 0.0}\ntracking: {gate: 0.5}', 'gate = 0.5, allowed'),
        ('offset: 0.0}', 'offset: 0.0}\ntracking: {window: 2}', 'least_window = 4 px, allowed'),
    ],
)
def test_bad_file_is_refused(write, old, new, message):
    with pytest.raises(InputError, match=message):
        load_rig(write(old, new))


@pytest.mark.parametrize('number', ['-1.0e+300', '1.0e+17', '.inf'])
@pytest.mark.parametrize(
    ('key', 'old', 'new'),
    [
        *(
            (f'tracking.{field.name}', '0.0}', f'0.0}}\ntracking: {{{field.name}: @}}')
            for field in dataclasses.fields(TrackingParameters)
        ),
        ('cameras.left.position', '[0.0, -5.0, 1.0]', '[0.0, @, 1.0]'),
        ('cameras.left.covariance', '    pos', f'    covariance: [{"@, " * 36}]\n    pos'),
        ('plane.offset', 'offset: 0.0', 'offset: @'),
        ('plane.centroid', 'offset: 0.0', 'offset: 0.0, centroid: [@, 0, 0]'),
        ('plane.covariance', 'offset: 0.0', f'offset: 0.0, covariance: [{"@, " * 9}]'),
        ('markers[0].position', '[0.5, 0.0, 1.0]', '[0.5, 0.0, @]'),
        ('markers[0].offset', 'radius: 0.1', 'radius: 0.1, offset: @'),
    ],
)
def test_numbers_that_are_too_large_for_their_squares(write, key, old, new, number):
    with pytest.raises(InputError, match=re.escape(f'rig.yaml: {key}') + '.* = .*allowed'):
        load_rig(write(old, new.replace('@', number)))


@pytest.mark.parametrize('factor', [1e-6, 1e6])
@pytest.mark.parametrize('end', [0, 1])
def test_bounds_of_the_tracker_hold_at_every_scale(factor, end):
    windows = dict.fromkeys(('least_window', 'window', 'start_window'), (1e-3, 1e5)[end])
    tracking = TrackingParameters(acceleration=(1e-3, 1e8)[end], **windows)
    scaled = tracking.scaled(factor)
    assert scaled.least_window <= scaled.window
    assert scaled.least_window <= scaled.start_window


def beside(mounted, away):
    pose = Pose(mounted.pose.rotation, mounted.pose.translation + np.array([away, 0, 0]))
    return dataclasses.replace(mounted, pose=pose)


def test_one_to_eight_cameras_have_names():
    two = small_rig().cameras
    more = {f'c{k}': beside(two['left'], 0.1 * k) for k in range(1, 8)}
    # left and right come first, whatever the order of the mapping; the others keep theirs.
    turned = {'top': more['c1'], 'right': two['right'], 'left': two['left']}
    assert list(small_rig(cameras=turned).cameras) == ['left', 'right', 'top']
    assert list(small_rig(cameras=more).cameras) == list(more)
    assert list(small_rig(cameras={'top': two['left']}).cameras) == ['top']
    for cameras in ({}, {**more, **two}):
        with pytest.raises(InputError, match='allowed: 1 to 8 cameras'):
            small_rig(cameras=cameras)
    for name in ('', '1st', 'a-b', 'a/b', 'a' * 61):
        with pytest.raises(InputError, match='allowed: a letter, then letters, digits and _'):
            small_rig(cameras={name: two['left']})


def test_a_rig_file_has_any_cameras(write):
    file = write('  left:', '  right: ~\n  top:')
    rig = load_rig(file)
    assert list(rig.cameras) == ['top']
    # A camera more is one line, here on top of another file.
    turn = 'orientation: [-0.7071067811865476, 0.0, 0.0, 0.7071067811865476]'
    line = f'{{calibration: cameras/any.yaml, position: [1.0, -5.0, 1.0], {turn}}}'
    more = file.with_name('more.yaml')
    more.write_text(f'base: rig.yaml\ncameras:\n  left: {line}\n')
    assert list(load_rig(more).cameras) == ['left', 'top']


def test_pixels_are_given_for_any_camera():
    marker = MarkerOnRig('one', 0.1, left=(10.0, 20.0, 5.0)).with_given('top', (30.0, 40.0, 6.0))
    assert marker.given('left') == (10.0, 20.0, 5.0)
    assert marker.given('top') == (30.0, 40.0, 6.0)
    assert marker.given('right') is None
    assert marker.scaled(0.5).given('top') == (14.75, 19.75, 3.0)
    assert marker.with_given('top', None).pixels == ()
    assert marker.with_given('left', None).left is None
    for pixels in ([('left', (1, 2, 3))], [('top', (1, 2, 3))] * 2):
        with pytest.raises(InputError, match='each once, without left and right'):
            marker.replace(pixels=tuple(GivenPixel(*one) for one in pixels))
    with pytest.raises(InputError, match=r'top\[2\] = 0 px'):
        marker.with_given('top', (1.0, 2.0, 0.0))


def test_plane_of_a_marker_lies_beside_the_plane():
    rig = small_rig()
    disc = rig.plane_of(rig.markers[1])
    assert disc.offset == pytest.approx(0.28)
    assert disc.centroid == pytest.approx([1.0, 0.28, 2.0])
    assert np.array_equal(disc.covariance, rig.plane.covariance)
    assert rig.plane_of(rig.markers[0]) is rig.plane


def test_scaled_rig_sees_the_same():
    rig = small_rig()
    half = rig.scaled(0.5)
    point = (0.3, 0.25, 1.2)
    for side, mounted in rig.cameras.items():
        u, v = mounted.camera.project(mounted.pose.to_camera(point))
        small = half.cameras[side].camera.project(mounted.pose.to_camera(point))
        assert small == pytest.approx([(u + 0.5) / 2 - 0.5, (v + 0.5) / 2 - 0.5])
    assert half.markers[0].left == pytest.approx((4.75, 9.75, 4.0))
    assert half.tracking.acceleration == 150.0
    assert half.tracking.window == 40.0
    assert half.tracking.least_window == rig.tracking.least_window
    assert rig.scaled(1.0) is rig


def test_installed_rig_sees_the_boom():
    rig = load_rig(share_directory('longreach_vision') / 'config' / 'rig_boom.yaml')
    assert rig.names == ('truck', 'marker_1', 'marker_2', 'marker_3', 'marker_4')
    assert list(rig.cameras) == ['left', 'right']
    for mounted in rig.cameras.values():
        camera, pose = mounted.camera, mounted.pose
        assert (camera.width, camera.height) == (2452, 2054)
        size = np.array([camera.width, camera.height])
        # The tip in the scenario wave.
        pixels = camera.project(pose.to_camera([(20.6, 0.0, -2.3), (29.7, 0.0, 12.8)]))
        assert ((pixels > 60.0) & (pixels < size - 60.0)).all()
        for marker in rig.markers:
            # It may swing by a metre, and the truck stands still.
            swing = 0.0 if marker.name == 'truck' else 1.0
            ways = swing * np.array([(1, 0, 0), (-1, 0, 0), (0, 0, 1), (0, 0, -1)])
            pixels = camera.project(pose.to_camera(marker.position + ways))
            assert ((pixels > 25.0) & (pixels < size - 25.0)).all()
            radius = camera.fx * marker.radius / pose.to_camera(marker.position)[2]
            assert 10.0 < radius < 25.0


def test_installed_rig_has_the_markers_of_the_boom():
    parameters = pytest.importorskip('longreach_boom.parameters')
    rig = load_rig(share_directory('longreach_vision') / 'config' / 'rig_boom.yaml')
    boom = parameters.load_boom()
    assert rig.names == tuple(marker.name for marker in boom.markers)
    # The lengths of the beams lie between them.
    ends = [np.array(marker.position) for marker in rig.markers[1:]]
    for beam, one, other in zip(boom.beams[1:], ends, ends[1:], strict=False):
        assert math.dist(one, other) == pytest.approx(beam.length, abs=0.1)


def test_a_missing_calibration_names_camera_and_command(write, tmp_path):
    file = write('cameras/any.yaml', 'left.yaml')
    text = (
        f'{file}: cameras.left.calibration: {tmp_path}/left.yaml, the calib.* calibrate PICTURES'
    )
    with pytest.raises(InputError, match=f'^{text} --board 7x5 --square 0.04 --name left'):
        load_rig(file)
