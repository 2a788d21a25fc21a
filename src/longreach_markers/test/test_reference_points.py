"""Files of reference points: what is wrong in them is refused, with its place."""

from __future__ import annotations

import math
import re

import pytest
import yaml
from known_rig import change, mapping, points_with

from longreach_dynamics.errors import InputError
from longreach_dynamics.parameters import from_mapping
from longreach_markers.setup.reference_points import Reference, load_reference, read_cameras


@pytest.mark.parametrize(
    ('values', 'text'),
    [
        (change(cameras={}), 'cameras: left and right are missing'),
        (points_with(1, name='p1'), "points has the name 'p1', allowed: no two alike"),
        (points_with(1, name='left'), "points has the name 'left'"),
        (points_with(1, position=[1.0, 2.0]), 'points[1].position has 2 values, allowed: 3'),
        (points_with(1, position=[1.0, math.nan, 0.0]), 'points[1].position[1] = nan'),
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
        (change(pixel_deviation=-1.0), 'pixel_deviation = -1.0'),
        (
            change(cameras={'left': {'calibration': 'left.yaml'}}),
            'points[0] has a pixel for right, but cameras has no right',
        ),
    ],
)
def test_what_cannot_be_used_is_refused(values, text):
    with pytest.raises(InputError, match=re.escape(text)):
        from_mapping(Reference, values)


def test_files_are_named_in_errors(tmp_path):
    file = tmp_path / 'reference.yaml'
    file.write_text(yaml.safe_dump(points_with(2, deviation=-1.0)))
    with pytest.raises(InputError, match=r'reference\.yaml: points\[2\]\.deviation = -1\.0'):
        load_reference(file)
    file.write_text(yaml.safe_dump(mapping()))
    with pytest.raises(InputError, match=r'left\.yaml cannot be read'):
        read_cameras(load_reference(file), tmp_path)
