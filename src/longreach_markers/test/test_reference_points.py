"""Files of reference points: what is wrong in them is refused, with its place."""

import re

import pytest
import yaml
from known_rig import change, mapping, points_with

from longreach_dynamics.errors import InputError
from longreach_dynamics.parameters import from_mapping
from longreach_markers.setup.reference_points import Reference, load_reference, read_cameras

CAMERA = {'calibration': 'any.yaml'}


@pytest.mark.parametrize(
    ('values', 'text'),
    [
        (change(cameras={}), 'cameras: left and right are missing'),
        (change(cameras={'position': CAMERA}), "cameras has 'position', which is a key"),
        (change(cameras={f'c{k}': CAMERA for k in range(9)}), '9 cameras, allowed: up to 8'),
        (change(cameras={'2nd': CAMERA}), 'cameras.2nd is unknown'),
        (points_with(1, name='p1'), "points has the name 'p1', allowed: no two alike"),
        (points_with(1, name='left'), "points has the name 'left'"),
        (points_with(1, position=[1.0, 2.0]), 'points[1].position has 2 values, allowed: 3'),
        (points_with(1, position=[1.0, 1e9, 0.0]), 'points[1].position[1] ='),
        (points_with(1, deviation=0.0), 'points[1].deviation = 0.0, allowed: [1e-09, 10] m'),
        (points_with(1, colour='red'), 'points[1].colour is unknown'),
        (
            change(distances=[{'between': ['p1', 'p99'], 'distance': 1.0}]),
            "distances[0].between has 'p99', allowed: left, right, p1",
        ),
        (
            change(distances=[{'between': ['p1', 'p1'], 'distance': 1.0}]),
            "distances[0].between has 'p1' twice",
        ),
        (change(pixel_deviation=-1.0), 'reference.yaml: pixel_deviation = -1.0'),
        (
            change(cameras={'left': CAMERA}),
            'points[0] has a pixel for right, but cameras has no right',
        ),
    ],
)
def test_what_cannot_be_used_is_refused(tmp_path, values, text):
    file = tmp_path / 'reference.yaml'
    file.write_text(yaml.safe_dump(values))
    with pytest.raises(InputError, match=re.escape(text)):
        load_reference(file)


def test_a_calibration_that_is_missing(tmp_path):
    with pytest.raises(InputError, match=r'left\.yaml cannot be read'):
        read_cameras(from_mapping(Reference, mapping()), tmp_path)
