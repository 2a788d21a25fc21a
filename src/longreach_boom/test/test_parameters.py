"""The boom file: its numbers, what follows from them, and what is refused."""

import functools
import math
import operator
import re

import numpy as np
import pytest
from scipy.integrate import quad

from longreach_boom.parameters import BoomParameters, Distribution, load_boom
from longreach_dynamics.errors import InputError
from longreach_dynamics.parameters import from_mapping

BAR = 1e5


def test_openings_fit_the_areas(boom):
    for cylinder in boom.cylinders:
        ratio = cylinder.rod_area / cylinder.head_area
        assert cylinder.valve.area_ratio == pytest.approx(ratio, abs=1e-3)


def test_papers_boom_has_directional_valves_alone(boom, paper_boom):
    for cylinder, area in zip(paper_boom.cylinders, (1.2e-5, 8e-6, 5e-6, 2.5e-6), strict=True):
        assert (cylinder.relief, cylinder.make_up, cylinder.counterbalance) == (None,) * 3
        valve = cylinder.valve
        assert (valve.area, valve.area_ratio, valve.retracting) == (area, 1.0, 1.0)
    assert paper_boom.oil.tank_pressure == pytest.approx(5.0 * BAR)
    oil = paper_boom.oil.replace(tank_pressure=boom.oil.tank_pressure)
    assert paper_boom.replace(oil=oil, cylinders=boom.cylinders) == boom


def test_power_law():
    law = Distribution(root=6.9e-4, tip=2.3e-4, exponent=3.0)
    x = np.linspace(0.0, 9.6, 25)
    ratio = (2.3 / 6.9) ** (1.0 / 3.0)
    expected = 6.9e-4 * (1.0 + (ratio - 1.0) * x / 9.6) ** 3
    np.testing.assert_allclose(law.at(x, 9.6), expected, rtol=1e-14)
    np.testing.assert_allclose(law.at(x[[0, -1]], 9.6), [6.9e-4, 2.3e-4], rtol=1e-14)
    straight = Distribution(root=280.0, tip=190.0)
    np.testing.assert_allclose(straight.at(x, 9.6), 280.0 - 90.0 * x / 9.6, rtol=1e-14)


def test_beam_knows_sections_and_kinks(boom):
    beam = boom.beams[1].replace(
        mass_per_length={'table': [[0, 190], [3.3, 150], [8.6, 120]]},
        second_moment={'table': [[0, 2e-4], [5.1, 1e-4], [8.6, 1e-4]]},
    )
    made = beam.section.beam(2.06e11)
    assert (made.length, made.support) == (8.6, 0.0)
    assert {3.3, 5.1} <= set(made.grid.tolist())
    x, _ = made.gauss()
    mass = 3.3 * 170.0 + 5.3 * 135.0
    assert made.integral(made.mass_per_length(x)) == pytest.approx(mass, rel=1e-13)
    assert made.bending_stiffness(np.array([8.0])) == pytest.approx(2.06e7, rel=1e-14)
    tapered = load_boom().beams[0].section.beam(2.06e11)
    expected, _ = quad(lambda s: 2.06e11 * 6.9e-4 * (1.0 - 0.30663873 * s / 9.6) ** 3, 0.0, 9.6)
    x, _ = tapered.gauss()
    assert tapered.integral(tapered.bending_stiffness(x)) == pytest.approx(expected, rel=1e-6)


def test_poses_must_fit_the_strokes(boom):
    ends = np.array([c.linkage.angles(c.stroke) for c in boom.cylinders])
    for column in (0, 1):
        boom.check_pose(ends[:, column])
        for joint in range(4):
            beyond = ends[:, column].copy()
            beyond[joint] += 1e-3 if column else -1e-3
            low, high = (f'{value:.4f}' for value in np.degrees(ends[joint]))
            error = (
                rf'joint beam_{joint + 1} = .* deg, allowed by the stroke of cylinder_{joint + 1}'
            )
            with pytest.raises(InputError, match=rf'{error}: \[{low}, {high}\] deg'):
                boom.check_pose(beyond)
    with pytest.raises(InputError, match='pose has 3 values, allowed: 4'):
        boom.check_pose(np.zeros(3))
    with pytest.raises(InputError, match='angle of joint beam_2 = nan deg'):
        boom.check_pose(np.array([0.0, math.nan, 0.0, 0.0]))


def pattern(message):
    """Return the regular expression of a text with two dots for what is left out."""
    return '.*'.join(re.escape(part) for part in message.split(' .. '))


TABLE = 'beams.0.mass_per_length'


@pytest.mark.parametrize(
    ('path', 'value', 'message'),
    [
        ('gravity', -9.81, 'gravity = -9.81, allowed: [0, 100] m/s^2'),
        ('ritz.basis', 'eigen', "ritz.basis = 'eigen', allowed: printed | moment"),
        ('oil.supply_pressure', 4e5, 'oil: tank_pressure = 1500000 Pa, allowed: below supply_p'),
        ('oil.preload', 4e5, 'oil: preload = 400000 Pa, allowed: at least tank_pressure = 1'),
        ('beams.1.name', 'beam_1', "beams has the name 'beam_1' twice, allowed: no two"),
        ('beams.1.name', 'a b', "beams has the name 'a b', allowed: letters, digits"),
        ('beams.0.support', 9.6, 'beams[0]: support = 9.6 m, allowed: below length = 9.6 m'),
        ('beams.0.strain_gauge.position', 9.7, '[0]: strain_gauge.position = 9.7 m, .. 9.6]'),
        (TABLE, {'root': 1.0}, 'beams[0].mass_per_length: root and tip, or a table, are miss'),
        (TABLE, {'root': 1.0, 'tip': 1.0, 'table': [[0, 1], [9.6, 1]]}, 'root, tip and table are'),
        (TABLE, {'table': [[0, 280]]}, 'mass_per_length: table has 1 row, allowed: at least 2'),
        (TABLE, {'table': [[0, 280], [5, 0], [9.6, 190]]}, 'table[1] has the value 0.0, allow'),
        (TABLE, {'table': [[0, 2], [7, 1], [5, 1], [9.6, 1]]}, 'x = 5.0 m .. above 7.0 m .. sort'),
        (TABLE, {'table': [[0, 2], [9, 1]]}, 'beams[0]: mass_per_length.table spans [0, 9] m'),
        (TABLE, {'table': [[1, 2], [9.6, 1]]}, 'table spans [1, 9.6] m, allowed: [0, 9.6]'),
        ('cylinders.0.rod', 0.2, 'cylinders[0]: rod = 0.2 m, allowed: below bore = 0.2 m'),
        ('cylinders.0.stroke', 2.0, '[0]: stroke = 2.0 m does not fit: .. [-0.55, 1.55] m'),
        ('cylinders.0.cushion.length', 1.6, '[0]: cushion.length = 1.6 m, allowed: up to stroke'),
        ('cylinders.0.stroke', 1.0, 'poses[1] (site): angle of joint beam_1 = 70 deg, allowed'),
        ('cylinders.0.linkage.lever', 1.0, 'cylinders[0].linkage: lever belongs to kind rocker'),
        ('cylinders.1.friction.static', 5e3, 'friction: static = 5000 N .. coulomb = 6000 N'),
        ('controller.opening_error', 1e-4, 'opening_error = 0.0001 m .. closing_error = 0.0005'),
        ('poses.1.angles_deg', [70, -50, -35], 'poses[1] (site): pose has 3 values, allowed: 4'),
        ('markers.1.beam', 'jib', "markers[1]: beam = 'jib', allowed: beam_1 | beam_2 | beam"),
        ('markers.1.position', 9.7, 'markers[1]: position = 9.7 m, allowed: [0, 9.6] m'),
        ('markers.1.name', 'truck', "markers has the name 'truck' twice, allowed: no two"),
        ('beams', [], 'beams is empty, allowed: at least one'),
        ('cylinders', [], 'cylinders has 0 values, allowed: 4, one for each beam'),
    ],
)  # fmt: skip
def test_refusals(path, value, message, boom):
    content = boom.as_mapping()
    *outer, last = [int(part) if part.isdigit() else part for part in path.split('.')]
    functools.reduce(operator.getitem, outer, content)[last] = value
    with pytest.raises(InputError, match=pattern(message)):
        from_mapping(BoomParameters, content)
