"""A bar of known length: measured length, what explains its error, and what is warned about."""

import dataclasses

import numpy as np
import pytest
from known_rig import LENS, POSES, moved_pose
from small_rig import seen_at

from longreach_dynamics.errors import InputError
from longreach_markers.camera.geometry import Plane
from longreach_markers.camera.triangulation import triangulate
from longreach_markers.rig import MarkerOnRig, MountedCamera, Rig
from longreach_markers.setup.known_distance import KnownDistance
from longreach_markers.tracking.frames import Estimate, RigFrame

LENGTH = 2.0
TURN, SHIFT = 2e-4, 2e-3  # standard deviations of poses [rad], [m]
COVARIANCE = np.diag([TURN**2] * 3 + [SHIFT**2] * 3)
NAMES, SIDES = ('one', 'two'), ('left', 'right')


def rig(poses=POSES):
    cameras = {
        side: MountedCamera(LENS, dataclasses.replace(pose, covariance=COVARIANCE))
        for side, pose in poses.items()
    }
    markers = tuple(MarkerOnRig(name=name, radius=0.15) for name in NAMES)
    return Rig(cameras, Plane(np.array([0.0, 1.0, 0.0]), 0.0), markers)


def measured(believed, pixel=0.0, seed=0, length=LENGTH, **status):
    """Carry a bar through the true cameras' view, and measure it with believed poses."""
    status = {'status': 'TRACKED', 'reason': '', **status}
    rng = np.random.default_rng(seed)
    check = KnownDistance(believed, NAMES, LENGTH, 1e-4)
    poses = [one.pose for one in believed.cameras.values()]
    covariances = np.stack([np.eye(2) * max(pixel, 1e-3) ** 2] * 2)
    for k in range(80):
        angle = 0.1 * k
        half = 0.5 * length * np.array([np.cos(angle), 0.0, np.sin(angle)])
        middle = np.array([14.0 + 4.0 * np.sin(0.2 * k), 0.0, 5.0 + 3.0 * np.cos(0.3 * k)])
        estimates = {}
        for name, place in zip(NAMES, (middle - half, middle + half), strict=True):
            pixels = np.array([LENS.project(p.to_camera(place)) for p in POSES.values()])
            pixels += pixel * rng.standard_normal((2, 2))
            found = triangulate((LENS, LENS), poses, pixels, covariances)
            estimates[name] = Estimate(name, cameras=SIDES, triangulated=found, **status)
        seen = {side: dict.fromkeys(NAMES, seen_at(1.0, 1.0)) for side in believed.cameras}
        check.add(RigFrame(0.1 * k, 0.0, seen, estimates))
    return check.result()


def test_noise_of_pixels_explains_the_scatter():
    cameras = {side: MountedCamera(LENS, pose) for side, pose in POSES.items()}
    found = measured(dataclasses.replace(rig(), cameras=cameras), pixel=0.1)
    assert found.pairs == 80
    assert abs(found.error) < 4.0 * found.mean_explained
    assert found.scatter == pytest.approx(found.scatter_explained, rel=0.35)
    assert found.warnings == ()


@pytest.mark.parametrize(('is_off_plane', 'pairs'), [(True, 80), (False, 0)])
def test_a_bar_may_leave_the_plane(is_off_plane, pairs):
    status = {'status': 'UNCERTAIN', 'reason': 'why', 'is_off_plane': is_off_plane}
    assert measured(rig(), **status).pairs == pairs


@pytest.mark.slow
def test_errors_of_poses_are_explained_by_their_covariance():
    rng = np.random.default_rng(5)
    ratios = []
    for _ in range(12):
        turned = {
            side: moved_pose(pose, np.repeat([TURN, SHIFT], 3) * rng.standard_normal(6))
            for side, pose in POSES.items()
        }
        found = measured(rig(turned))
        ratios.append(found.error / found.mean_explained)
    assert 0.5 < np.std(ratios) < 1.6
    assert np.max(np.abs(ratios)) < 3.5


def test_a_wrong_length_and_too_few_pairs_are_told():
    assert 'too short' in measured(rig(), length=LENGTH - 0.05).warnings[0]
    none = KnownDistance(rig(), NAMES, LENGTH, 1e-4).result()
    assert 'in 0 image sets' in none.warnings[0]
    assert none.fields()['mean'] is None


@pytest.mark.parametrize(
    ('names', 'length', 'deviation', 'text'),
    [
        (('one', 'none'), 1.0, 1e-3, "marker = 'none', allowed: one . two"),
        (('one', 'one'), 1.0, 1e-3, 'one is given twice'),
        (('one', 'two'), 0.0, 1e-3, 'length = 0 m, allowed'),
        (('one', 'two'), 1.0, float('nan'), 'deviation = nan m'),
    ],
)
def test_what_is_refused(names, length, deviation, text):
    with pytest.raises(InputError, match=text):
        KnownDistance(rig(), names, length, deviation)
