"""Cameras that disagree: a bumped camera is named, and its pose is found again."""

import dataclasses
import math

import numpy as np
import pytest
from independent_views import digitised, view, write_pictures
from known_rig import moved_pose, pose_error
from small_commands import call, printed, refused, with_camera, write_path
from small_rig import seen_at, small_rig, write_rig
from swinging import followed

from longreach_markers import (
    Agreement,
    CameraMonitor,
    Estimate,
    Follower,
    Location,
    MarkerOnRig,
    Pose,
    RigFrame,
    Sightings,
    load_rig,
    refine_pose,
)
from longreach_markers.tracking.frames import typical_chi_square
from longreach_markers.tracking.pose_agreement import agreement_of
from longreach_vision.simulator.marker_path import MarkerPath

PLACES = np.array([(-1.0, 0.0, 0.9), (1.0, 0.0, 1.0), (-0.9, 0.0, -0.4), (0.9, 0.0, -0.3)])
COUNT, BUMP, RATE = 24, 12, 15.0
TURN, SHIFT = 1e-4, 5e-4  # standard deviations of the poses [rad], [m]
PITCH = 2e-3  # [rad], one pixel


def rig_of_four(rig=None):
    """Return cameras with nearly exact poses, and four markers that are spread."""
    rig, spread = rig or small_rig(), np.diag([TURN**2] * 3 + [SHIFT**2] * 3)
    cameras = {
        side: dataclasses.replace(one, pose=Pose(one.pose.rotation, one.pose.translation, spread))
        for side, one in rig.cameras.items()
    }
    markers = tuple(
        MarkerOnRig(name, 0.14, position=tuple(place))
        for name, place in zip('abcd', PLACES.tolist(), strict=True)
    )
    return dataclasses.replace(rig, cameras=cameras, markers=markers)


def bumped(rig, side):
    error = np.array([PITCH, 0.0, 0.0, 0.0, 0.002, 0.001])
    return with_camera(rig, side, pose=moved_pose(rig.cameras[side].pose, error))


def recorded(folder, side, begin, rig=None):
    rig, rng = rig or rig_of_four(), np.random.default_rng(5)
    write_rig(rig, folder / 'rig.yaml')
    still = MarkerPath(tuple('abcd'), np.array([0.0, 9.0]), np.repeat(PLACES[None], 2, axis=0))
    write_path(still, folder / 'path.csv')
    times = [k / RATE for k in range(COUNT)]
    for one in rig.cameras:
        states = [view(rig, one, lambda _: PLACES)] * 2
        if one == side:
            states[1] = view(bumped(rig, one), one, lambda _: PLACES)
        pictures = [digitised(states[k >= begin], rng) for k in range(COUNT)]
        write_pictures(folder / one, pictures, times)
    return tuple(folder / one for one in rig.cameras)


@pytest.mark.slow
@pytest.mark.parametrize('side', ['left', 'right'])
def test_a_camera_that_is_bumped_is_named_and_its_pose_found_again(capsys, tmp_path, side):
    seen, rig = recorded(tmp_path, side, BUMP), tmp_path / 'rig.yaml'
    told = printed(capsys, 'track', *seen, '--rig', rig, '--truth', tmp_path / 'path.csv')
    found = told['agreement']
    assert found['moved'] == side
    assert found['since'] == pytest.approx(BUMP / RATE, abs=1e-6)
    assert found['chi_square'] > 9.0
    assert f'{side} moved at 0.80 s' in told['advice']
    assert f'--camera {side}' in told['advice']
    for one, errors in zip(told['markers'], told['errors'], strict=True):
        # What is wrong by a centimetre is flagged.
        assert (one['tracked'], one['uncertain']) == (BUMP, COUNT - BUMP)
        assert 'standard deviations' in one['reasons'][0]['reason']
        assert errors['in_plane']['largest'] < 5e-4
    refined = printed(capsys, 'pose', '--refine', *seen, '--rig', rig, '--out', rig)
    assert refined['camera'] == side
    assert refined['chi_square']['before'] > 9.0
    assert refined['chi_square']['after'] < 4.0
    assert refined['warnings'] == []
    new = load_rig(rig).cameras[side].pose
    error = pose_error(new, bumped(rig_of_four(), side).cameras[side].pose)
    assert error @ np.linalg.solve(new.covariance, error) < 22.0
    # From the bump on, now.
    for one in ('left', 'right'):
        for file in sorted((tmp_path / one).iterdir())[:BUMP]:
            file.unlink()
    told = printed(capsys, 'track', *seen, '--rig', rig, '--truth', tmp_path / 'path.csv')
    assert told['advice'] == ''
    assert told['agreement']['chi_square'] < 4.0
    for errors in told['errors']:
        assert errors['tracked'] == COUNT - BUMP
        assert errors['in_plane']['largest'] < 1e-3


def test_a_camera_bumped_before_cannot_be_told(capsys, tmp_path):
    seen, rig = recorded(tmp_path, 'right', 0), tmp_path / 'rig.yaml'
    told = printed(capsys, 'track', *seen, '--rig', rig, fails='no marker was tracked')
    assert told['agreement']['moved'] == ''
    assert told['agreement']['since'] is None
    assert 'two cameras that did not see the bump do not show' in told['advice']
    assert [one['tracked'] for one in told['markers']] == [0, 0, 0, 0]
    before = rig.read_text()
    refine = 'pose', '--refine', *seen, '--rig', rig
    refused('--camera is missing, required as this recording', *refine)
    copy = tmp_path / 'new' / 'copy.yaml'
    copy.parent.mkdir()
    call(*refine, '--camera', 'right', '--out', copy)
    assert 'right: turned by' in capsys.readouterr().out
    assert rig.read_text() == before
    fresh, old = load_rig(copy), load_rig(rig)
    assert fresh.names == old.names
    assert np.array_equal(*(one.cameras['left'].pose.translation for one in (fresh, old)))
    refused('REFERENCE.yaml is missing', 'pose')
    refused('--rig is missing', 'pose', '--refine', *seen)
    refused('allowed: one of them', 'pose', rig, '--refine', *seen, '--rig', rig)
    words = '--camera', 'left', '--scale', 0.5, '--plane-deviation', 0.1
    text = '--camera and --scale and --plane-deviation, allowed with --refine'
    refused(text, 'pose', rig, *words)
    refused("--marker has the name 'a' twice", 'pose', rig, *2 * ('--marker', 'a=1'))
    # Before anything is tracked.
    other = ('--rig', rig, '--camera', 'other')
    refused('--camera other, allowed by the rig: left, ', 'pose', '--refine', 'a.mcap', *other)


def test_cameras_that_agree(capsys, tmp_path):
    seen, rig = recorded(tmp_path, None, 0), tmp_path / 'rig.yaml'
    told = printed(capsys, 'track', *seen, '--rig', rig)
    assert told['advice'] == ''
    assert told['agreement']['sightings'] == 4 * COUNT
    # The poses are more exact than stated.
    assert told['agreement']['chi_square'] < 3.0
    call('track', *seen, '--rig', rig)
    assert 'agreement of left and right: chi-square' in capsys.readouterr().out


@pytest.mark.parametrize(
    ('scale', 'tone', 'told'),
    [
        (1.0, 1.0, ''),
        # A camera's grey levels, which move the outer edge by 2 %.
        (1.0, 0.45, ''),
        (1.01, 1.0, 'rings look 1.0 % smaller than the rig says'),
        (0.99, 0.45, 'rings look 1.0 % larger than the rig says'),
    ],
)
def test_rings_show_that_all_cameras_are_wrong_by_the_same_scale(scale, tone, told):
    rig, rng = rig_of_four(), np.random.default_rng(5)
    exact = {
        side: 255.0 * (view(rig, side, lambda _: PLACES) / 255.0) ** tone for side in rig.cameras
    }
    for side in rig.cameras:
        camera = rig.cameras[side].camera
        lens = dataclasses.replace(camera, fx=scale * camera.fx, fy=scale * camera.fy)
        rig = with_camera(rig, side, camera=lens)
    judge = CameraMonitor(rig, 0.0)
    for frame in followed(Follower(rig), lambda side, _: digitised(exact[side], rng), 10):
        judge.add(frame)
    while not judge.work(99.0):
        pass
    assert judge.warning.startswith(told)
    assert bool(judge.warning) == bool(told)


def test_a_marker_beside_the_plane_is_so_in_all_images():
    rig, rng, deviation, squares = rig_of_four(), np.random.default_rng(3), 0.01, []
    exact = {
        side: dataclasses.replace(one, pose=Pose(one.pose.rotation, one.pose.translation))
        for side, one in rig.cameras.items()
    }
    rig = dataclasses.replace(rig, cameras=exact)
    for _ in range(6):
        seen, beside = Sightings(rig), deviation * rng.standard_normal(4)
        for k in range(15):
            places = PLACES + 0.1 * np.sin(0.3 * k + np.arange(4.0))[:, None] * [1.0, 0.0, 1.0]
            places[:, 1] += beside
            observations = {}
            for side, one in rig.cameras.items():
                pixels = one.camera.project(one.pose.to_camera(places))
                pixels += 0.02 * rng.standard_normal(pixels.shape)
                observations[side] = {
                    name: dataclasses.replace(seen_at(*uv), covariance=0.02**2 * np.eye(2))
                    for name, uv in zip('abcd', pixels, strict=True)
                }
            at = dict.fromkeys(observations, k / RATE)
            seen.add(RigFrame(k / RATE, 0.0, observations, {}, times=at))
        new = refine_pose(seen, 'right', deviation, -math.inf).pose
        error = pose_error(new, exact['right'].pose)
        squares.append(error @ np.linalg.solve(new.covariance, error) / 6.0)
    # 7 if the distances are independent in each image.
    assert np.mean(squares) < 2.0


def test_gaps_of_both_signs_do_not_cancel():
    # As of a camera that is turned about its axis, with a marker that crosses the image.
    seen, both = Sightings(rig_of_four()), ('left', 'right')
    there = {side: {'a': seen_at(100.0, 150.0)} for side in both}
    for k in range(60):
        gap = 0.5 * (-1.0) ** k
        point = Location(PLACES[0], np.eye(3), chi_square=400.0, gap=gap, gap_noise=0.02)
        one = Estimate('a', 'TRACKED', '', both, pairs={both: point})
        at = dict.fromkeys(both, k / RATE)
        seen.add(RigFrame(k / RATE, 0.0, there, {'a': one}, times=at))
    found = agreement_of(seen, both)
    assert found.gap == 0.5
    assert found.error == pytest.approx(0.5 * math.sqrt(2.0) * 5.02 / 500.0, rel=0.01)
    assert 'miss each other by 0.5 px' in found.warning


def test_the_typical_square_is_that_of_most():
    rng = np.random.default_rng(1)
    squares = rng.standard_normal(4000) ** 2
    assert typical_chi_square(squares) == pytest.approx(1.0, rel=0.1)
    squares[:400] = 1e6
    assert typical_chi_square(squares) < 1.4
    assert math.isnan(typical_chi_square([]))
    unknown = Agreement(('left', 'right'))
    assert unknown.warning == ''
    assert unknown.fields()['chi_square'] is None
