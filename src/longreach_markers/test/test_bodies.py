"""Poses of rigid bodies: motions are found, covariances are true, bad input is said."""

import dataclasses

import cv2
import numpy as np
import pytest
import yaml
from known_rig import moved_pose, pose_error
from small_rig import write_rig

from longreach_dynamics.errors import InputError
from longreach_markers.camera.geometry import Plane, Pose
from longreach_markers.camera.model import Camera
from longreach_markers.camera.triangulation import locate_in_plane, triangulate
from longreach_markers.marker.detection import LOST, TRACKED, UNCERTAIN
from longreach_markers.rig import Body, MarkerOnBody, MarkerOnRig, MountedCamera, Rig, load_rig
from longreach_markers.tracking.bodies import locate_body
from longreach_markers.tracking.frames import Estimate

CAMERA = Camera('any', 1600, 1200, 1500.0, 1500.0, 799.5, 599.5, 'plumb_bob', (-0.1, 0.02, 0, 0))
# Not of one plane, so that no direction is a special one.
POINTS = {'a': (0.0, 0.0, 0.0), 'b': (0.8, 0.0, 0.1), 'c': (0.3, 0.0, 0.6), 'd': (-0.2, 0.1, 0.4)}
# Standard deviations of pixels [px]; of rotation [rad] and position [m] of a camera; of the two
# tilts [rad] and the shift [m] of the plane.
PIXEL, POSE, PLANE = 0.05, np.repeat([4e-4, 3e-3], 3), np.array([1e-3, 1e-3, 2e-3])


def body(names='abcd', deviation=1e-3, **moved):
    points = POINTS | moved
    return Body('tip', tuple(MarkerOnBody(name, points[name]) for name in names), deviation)


def rig(own=None, exact=False):
    covariance = None if exact else np.diag(POSE**2)
    cameras = {}
    for side, x in (('left', -2.5), ('right', 2.5)):
        pose = Pose.from_look_at((x, -12.0, 1.0), (0.0, 0.0, 1.0))
        cameras[side] = MountedCamera(CAMERA, Pose(pose.rotation, pose.translation, covariance))
    plane = Plane(np.array([0.0, 1.0, 0.0]), 0.0, None if exact else np.diag(PLANE**2))
    markers = tuple(MarkerOnRig(name, 0.1) for name in POINTS)
    return Rig(cameras, plane, markers, bodies=(own or body(),))


def estimate_of(name, location, cameras=('left', 'right'), *, in_plane=False, **more):
    places = {'in_plane' if in_plane else 'triangulated': location}
    return Estimate(name, TRACKED, '', cameras, **places, **more)


class Draw:
    """What cameras with drawn errors see of a body at a known pose."""

    def __init__(self, seed, own, turned, moved):
        self._rng = np.random.default_rng(seed)
        self.rig, self.body = own, own.bodies[0]
        self.rotation, self.translation = cv2.Rodrigues(turned)[0], moved
        # The truth is beside what the rig says.
        self._poses = {}
        for name, mounted in own.cameras.items():
            off = POSE * self._rng.standard_normal(6)
            if mounted.pose.covariance is None:
                off = np.zeros(6)
            self._poses[name] = moved_pose(mounted.pose, off)
        self._on_body = {
            marker.name: marker.position + self.body.deviation * self._rng.standard_normal(3)
            for marker in self.body.markers
        }

    def estimates(self, pixel=PIXEL):
        found = {}
        believed = [one.pose for one in self.rig.cameras.values()]
        for name, point in self._on_body.items():
            place = self.rotation @ point + self.translation
            pixels = np.array(
                [CAMERA.project(pose.to_camera(place)) for pose in self._poses.values()]
            )
            pixels += pixel * self._rng.standard_normal((2, 2))
            covariances = np.array(2 * [PIXEL**2 * np.eye(2)])
            location = triangulate((CAMERA, CAMERA), believed, pixels, covariances)
            found[name] = estimate_of(name, location)
        return found

    def error(self, found):
        assert found.pose is not None
        return pose_error(found.pose, Pose(self.rotation, self.translation))


def squared(error, covariance):
    assert covariance is not None
    return float(error @ np.linalg.solve(covariance, error)) / len(error)


@pytest.mark.parametrize('turned', [(0, 0, 0), (0.3, -0.2, 0.1), (0, np.pi, 0), (2.0, 1.0, -1.5)])
def test_a_known_motion_is_found(turned):
    own = rig(body(deviation=1e-6), exact=True)
    draw = Draw(1, own, np.array(turned, float), np.array([0.4, 0.5, 1.2]))
    found = locate_body(draw.body, own, draw.estimates(pixel=0.0))
    assert found.reason == ''
    assert found.markers == ('a', 'b', 'c', 'd')
    assert np.abs(draw.error(found)).max() < 1e-5


@pytest.mark.parametrize('names', ['abcd', 'abc'])
def test_the_covariance_is_true(names):
    """Over many rigs with errors as the covariances say, also for the part from the pixels."""
    totals, noises, chi_squares, freedom = [], [], [], 0
    own = rig(body(names))
    for seed in range(150):
        draw = Draw(seed, own, np.array([0.2, -0.4, 0.3]), np.array([0.5, 0.1, 1.0]))
        one, other = (locate_body(draw.body, own, draw.estimates()) for _ in range(2))
        assert not one.reason
        assert not other.reason
        totals.append(squared(draw.error(one), one.pose.covariance))
        # Two images of one rig differ by noise alone.
        noises.append(squared(draw.error(one) - draw.error(other), one.noise + other.noise))
        chi_squares.append(one.chi_square)
        freedom = one.freedom
    # Standard error of a mean of 150 chi-squares with 6 degrees of freedom: 0.047.
    assert 0.85 < np.mean(totals) < 1.15
    assert 0.85 < np.mean(noises) < 1.15
    assert freedom == 3 * len(names) - 6
    assert np.mean(chi_squares) == pytest.approx(freedom, rel=0.25)


def test_the_systematic_part_is_that_of_all_markers_together():
    """A shift of the camera shifts the body by as much: it does not average out over markers."""
    shift = 5e-3
    covariance = np.diag([0.0] * 3 + [shift**2] * 3)
    own = rig(body(deviation=1e-6), exact=True)
    left = own.cameras['left']
    pose = dataclasses.replace(left.pose, covariance=covariance)
    own = dataclasses.replace(own, cameras={'left': dataclasses.replace(left, pose=pose)})
    estimates = {}
    for name, point in POINTS.items():
        place = np.array(point) * [1.0, 0.0, 1.0]
        pixel = CAMERA.project(pose.to_camera(place))
        location = locate_in_plane(CAMERA, pose, own.plane, pixel, 1e-6 * np.eye(2))
        estimates[name] = estimate_of(name, location, ('left',), in_plane=True)
    flat = body(deviation=1e-6, d=(-0.2, 0.0, 0.4))
    found = locate_body(flat, own, estimates)
    assert not found.reason
    deviations = np.sqrt(np.diag(found.systematic))
    assert deviations[3] == pytest.approx(shift, rel=0.05)
    assert deviations[5] == pytest.approx(shift, rel=0.05)
    assert deviations[1] < 1e-3 * shift / 0.8


def test_errors_of_calibrations_are_neither_left_out_nor_averaged():
    own = rig(exact=True)
    off = dataclasses.replace
    cameras = {name: off(one, calibration_deviation=0.2) for name, one in own.cameras.items()}
    draw = Draw(3, own, np.zeros(3), np.array([0.0, 0.0, 1.0]))
    alone, spread = draw.estimates(), {}
    for name, one in alone.items():
        more = 1e-6 * np.eye(3)
        covariance = one.triangulated.covariance + more
        location = one.triangulated._replace(covariance=covariance, systematic=more)
        spread[name] = off(one, triangulated=location)
    exact = locate_body(draw.body, own, alone)
    found = locate_body(draw.body, off(own, cameras=cameras), spread)
    added = found.systematic[3:, 3:] - exact.systematic[3:, 3:]
    assert np.linalg.eigvalsh(added)[0] > 1e-6


def test_a_body_out_of_the_plane_is_located_by_two_cameras():
    own = rig()
    draw = Draw(4, own, np.array([0.1, 0.0, 0.2]), np.array([0.0, 0.4, 1.0]))
    off = {'status': UNCERTAIN, 'reason': 'off', 'is_off_plane': True, 'off_plane': 0.4}
    seen = {name: dataclasses.replace(one, **off) for name, one in draw.estimates().items()}
    found = locate_body(draw.body, own, seen)
    assert squared(draw.error(found), found.pose.covariance) < 5.0
    # One that a single camera sees has no position then.
    seen['a'] = estimate_of('a', draw.estimates()['a'].triangulated, ('left',), in_plane=True)
    assert locate_body(draw.body, own, seen).markers == ('b', 'c', 'd')


@pytest.mark.parametrize('hidden', ['d', 'cd'])
def test_a_body_that_is_tilted_to_the_plane_has_no_positions_in_it(hidden):
    """Also where each of its markers is TRACKED, and some of them are seen by one camera."""
    own = rig()
    draw = Draw(4, own, np.zeros(3), np.array([0.0, 0.03, 1.0]))
    seen = draw.estimates()
    seen['a'] = dataclasses.replace(seen['a'], off_plane=-0.03)
    for name in hidden:
        beside = seen[name].triangulated
        place = beside.position + np.array([0.006, -0.03, 0.005])
        beside = beside._replace(position=place)
        seen[name] = estimate_of(name, beside, ('left',), in_plane=True, off_plane=0.02)
    found = locate_body(draw.body, own, seen)
    if hidden == 'd':
        assert squared(draw.error(found), found.pose.covariance) < 3.0
        return
    assert found.reason == (
        '2 of 4 markers triangulated, required: 3, as a was 30 mm out of the plane; not'
        ' triangulated: c, d'
    )


@pytest.mark.parametrize(
    ('moved', 'hidden', 'text'),
    [
        ({}, 'bd', '2 of 4 markers tracked, required: 3; not tracked: b, d'),
        ({'c': (1.6, 0.0, 0.2)}, 'd', 'a, b, c are too near to one line'),
        ({'c': (1.6, 0.0, 0.205)}, 'd', '1.17 mm from one line (RMS), with a deviation of 1 mm'),
    ],
)
def test_what_leaves_the_pose_open_is_said(moved, hidden, text):
    own = rig(body(**moved))
    seen = Draw(6, own, np.zeros(3), np.array([0.0, 0.0, 1.0])).estimates()
    seen |= {name: Estimate(name, LOST, 'hidden') for name in hidden}
    found = locate_body(own.bodies[0], own, seen)
    assert found.pose is None
    assert text in found.reason


def test_a_marker_that_has_moved_on_the_body_is_said():
    own = rig()
    draw = Draw(7, own, np.zeros(3), np.array([0.0, 0.0, 1.0]))
    moved = body('abcd', c=(0.3, 0.0, 0.63))
    found = locate_body(moved, own, draw.estimates())
    assert found.pose is None
    assert 'do not fit' in found.reason
    assert 'c is off by' in found.reason
    assert found.chi_square > 50.0
    assert found.freedom == 6


def entries(**points):
    return [{'name': name, 'position': list(place)} for name, place in points.items()]


@pytest.mark.parametrize(
    ('entry', 'text'),
    [
        ({'markers': entries(a=[0, 0, 0])}, 'has 1 entries, allowed: 3 or more'),
        ({'markers': entries(a=[0, 0, 0], b=[1, 0, 0], c=[2, 0, 0])}, 'of one line'),
        ({'name': 'a'}, "the name 'a', which a camera, a marker or another body"),
        ({'name': 'tip-1'}, "name = 'tip-1', allowed: a letter, then letters, digits and _"),
        ({'deviation': 0.0}, 'deviation = 0.0, allowed'),
        ({'markers': entries(**POINTS, e=[9] * 3)}, "'e', allowed: a . b . c . d"),
        ({'markers': 3 * entries(a=[0, 0, 0])}, "the name 'a' twice"),
    ],
)
def test_a_body_that_cannot_be_is_refused(tmp_path, entry, text):
    file = tmp_path / 'rig.yaml'
    write_rig(rig(), file)
    values = yaml.safe_load(file.read_text())
    values['bodies'][0] |= entry
    file.write_text(yaml.safe_dump(values))
    with pytest.raises(InputError, match=text):
        load_rig(file)
