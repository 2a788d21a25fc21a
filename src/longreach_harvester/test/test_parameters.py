"""What a harvester file may not say: pins, strokes, areas, stops."""

import pytest
from harvesters import STANDARD

from longreach_dynamics.errors import InputError


@pytest.mark.parametrize(
    ('name', 'value', 'what'),
    [
        ('boom_cylinder.linkage.retracted', 3.0, r'pins from 0.85 to 1.75 m apart'),
        ('boom_cylinder.linkage.retracted', 0.8, r'retracted = 0.8 m, allowed: above 0.85 m'),
        ('stick_cylinder.stroke', 0.75, r'stroke = 0.75 m, allowed: .* below 1.9 m'),
        ('boom_cylinder.stroke', 1.2, 'a stroke below retracted'),
        ('boom_cylinder.rod_area', 1.54e-2, 'rod_area = 0.0154 m.2, allowed: below head_area'),
        ('stick_cylinder.head_area', 1e-3, 'rod_area = 0.0057 m.2, allowed: below head_area'),
        ('stops.stiffness', 1e7, r'boom_cylinder: .* below 1.69\d* m .* stops that yield 0.059 m'),
    ],
)
def test_cylinders_that_do_not_fit_are_refused(name, value, what):
    with pytest.raises(InputError, match=what):
        STANDARD.with_value(name, value)


def test_a_rocker_has_a_stroke_within_its_motion():
    rocker = {'kind': 'rocker', 'lever': 0.1, 'shape': 0.0, 'offset': 0.2}
    cylinder = STANDARD.boom_cylinder.replace(linkage=rocker)
    assert cylinder.linkage.angles(cylinder.stroke) == pytest.approx((-2.0, 4.5))
    with pytest.raises(InputError, match=r'stroke = 0\.65 m, allowed by the linkage'):
        cylinder.replace(linkage=rocker | {'lever': 0.05})
