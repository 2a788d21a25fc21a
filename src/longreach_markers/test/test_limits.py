"""Thresholds of the detection: what each is based on, and that detection and rig obey them."""

import dataclasses
import re
from pathlib import Path

import numpy as np
import pytest
from exact_marker import SIZE, draw, taken
from independent_views import digitised, view
from small_rig import START, small_rig, write_rig

from longreach_dynamics.errors import InputError
from longreach_dynamics.parameters import rule_of
from longreach_markers.camera.model import Camera
from longreach_markers.io.image_sources import Picture
from longreach_markers.marker.detection import LOST, TRACKED, UNCERTAIN, detect
from longreach_markers.marker.limits import LIMITS, DetectionLimits
from longreach_markers.rig import load_rig
from longreach_markers.tracking.follower import Follower, follow

FIELDS = dataclasses.fields(DetectionLimits)


def test_each_limit_has_a_unit_and_a_basis():
    text = (Path(__file__).parents[3] / 'docs/vision.md').read_text()
    basis = dict(re.findall(r'^\| `(\w+)` \| (.+) \|$', text, re.MULTILINE))
    sources = '\n'.join(
        file.read_text() for file in Path(__file__).parents[2].glob('longreach_*/test/test_*.py')
    )
    for field in FIELDS:
        assert rule_of(field).unit
        for name in re.findall(r'test_\w+', basis[field.name]):
            assert f'def {name}(' in sources, name


def seen(hidden=0.0, **limits):
    """What is found of a dark ring, of whose width a share is hidden from the right."""
    image = draw(shape=20.0 * np.eye(2), levels=(180.0, 50.0, 180.0))
    if hidden:
        image[:, round(56.3 - 40.0 * hidden) :] = 110.0
    image = taken(image, 1.5, seed=1)
    camera = Camera('any', SIZE, SIZE, 2000.0, 2000.0, 36.0, 36.0)
    look = {'camera': camera, 'normal_cam': (0.0, 0.0, 1.0), 'limits': LIMITS.replace(**limits)}
    return detect(image, (36.0, 36.0), 20.0, **look)


def test_detection_obeys_its_limits():
    plain = seen()
    assert (plain.status, plain.rim_support) == (TRACKED, 1.0)
    for limits, reason in (
        ({'largest_deviation': 1e-4}, 'standard deviation of'),
        ({'softest': 0.1}, 'edges are blurred by'),
        ({'brightest': 100.0}, 'glare'),
        ({'unexplained': 0.0, 'unexplained_grey': 0.01, 'noise_tolerance': 0.1}, 'residual of'),
    ):
        found = seen(**limits)
        assert found.status == UNCERTAIN
        assert reason in found.reason
    assert seen(least_contrast=1e3).status == LOST
    one, two = (seen(inflation=k * LIMITS.inflation, floor=0.0).covariance for k in (1.0, 2.0))
    assert two == pytest.approx(2.0 * one)
    with pytest.raises(InputError, match=r'radius = 20 px; allowed: \[4, 15\] px'):
        seen(largest=15.0)
    # The plane is seen at 80 deg less the angle of the ray.
    look = {'camera': Camera('any', 100, 100, 200.0, 200.0, 50.0, 50.0), 'normal_cam': (0, 0, 1)}
    limits = LIMITS.replace(elevation=np.radians(80.0))
    with pytest.raises(InputError, match='allowed: at least 80 deg'):
        detect(np.zeros((100, 100), np.uint8), (99.0, 50.0), 20.0, limits=limits, **look)


def test_less_of_the_rim_may_be_enough():
    half = seen(0.45)
    assert half.status == TRACKED
    share = half.rim_support
    assert 0.4 < share < 0.75
    strict = seen(0.45, trusted_rim=share + 0.05)
    assert strict.status == UNCERTAIN
    assert strict.reason.endswith('% of the rim fits')
    assert seen(0.45, trusted_rim=share + 0.1, least_rim=share + 0.05).status == LOST


def test_a_rig_file_has_limits(tmp_path):
    file = tmp_path / 'rig.yaml'
    write_rig(small_rig(), file)
    text = file.read_text()
    file.write_text(f'{text}detection: {{softest: 0.2, fastest: 0.3}}\n')
    rig = load_rig(file)
    assert rig.detection == LIMITS.replace(softest=0.2, fastest=0.3)
    assert rig.scaled(0.9).detection == rig.detection
    rng = np.random.default_rng(1)
    pictures = [
        Picture(side, 0, digitised(view(rig, side, lambda _: START), rng), side)
        for side in rig.cameras
    ]
    ((_, frame, _),) = follow(Follower(rig), pictures)
    assert {one.status for one in frame.estimates.values()} == {UNCERTAIN}
    file.write_text(f'{text}detection: {{softest: 4.0}}\n')
    with pytest.raises(InputError, match=r'softest = 4, allowed: at most fastest = 3\.2'):
        load_rig(file)
