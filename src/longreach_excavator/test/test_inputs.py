"""What the installed file, scenarios and files of forces say, and a pose at rest."""

import math

import numpy as np
import pytest

from longreach_excavator.breakout import standing
from longreach_excavator.forces import FORCE_COLUMNS, PRESSURE_COLUMNS, printed_forces, read_forces
from longreach_excavator.inverse import Motion, inverse
from longreach_excavator.machine import STEP
from longreach_excavator.scenario import load_scenario

FORCES = 'time,force_boom,force_arm,force_bucket\n-1,0,0,0\n0,10,20,30\n2,30,0,-50\n'


def write(tmp_path, text, name='forces.csv'):
    file = tmp_path / name
    file.write_text(text)
    return file


def test_installed_excavator(excavator):
    # beta_1, Lci, beta_4, Lld, which follow from the others.
    pins = excavator.pins()
    assert math.degrees(math.atan2(-pins.e.imag, pins.e.real)) == pytest.approx(53.5, abs=0.05)
    assert abs(pins.i - pins.c) == pytest.approx(2.516, abs=2e-3)
    assert 180.0 - np.angle(pins.i - pins.c, deg=True) == pytest.approx(27.26, abs=0.05)
    assert abs(pins.l - pins.d) == pytest.approx(0.436, abs=2e-3)
    # A link's radius of gyration is well below its length: the inertia is about the centre.
    for link in (excavator.boom, excavator.arm, excavator.bucket):
        assert 0.2 < math.sqrt(link.inertia / link.mass) / link.length < 0.4
    # The thesis' 290 kN are within what pump and bore can do; 200 L/min pass the valve.
    oil, bucket = excavator.oil, excavator.cylinders[2]
    assert bucket.head_area * oil.supply_pressure > 290e3
    speed = oil.contraction * math.sqrt(2.0 / oil.density * oil.supply_pressure)
    assert bucket.valve.area * speed * 6e4 == pytest.approx(200.0, rel=0.02)


def test_forces_are_found_beside_the_scenario(tmp_path, excavator, monkeypatch):
    forces = write(tmp_path, FORCES)
    (tmp_path / 'elsewhere').mkdir()
    monkeypatch.chdir(tmp_path / 'elsewhere')
    for name in ('forces.csv', forces):
        text = f'duration: 0.2\npose: dig\nmode: printed\nforces: {name}\n'
        file = write(tmp_path, text, 'scenario.yaml')
        given = load_scenario(file, excavator, STEP).given_forces(excavator)
        assert given.at(np.array([0.5])).tolist() == [[15.0, 15.0, 10.0]]


def test_trend_lines_at_hand_computed_times():
    # (5.8) to (5.10): at 0 s the constants, at 1 s the sums, at 2 s by Horner's rule.
    boom = 432.22 - 8025.2 + 55726.0 - 174147.0 + 203089.0 - 82794.0 + 304693.0
    arm = 55.87 - 740.01 + 990.47 + 21511.0 - 124023.0 + 261122.0 + 143365.0
    bucket = -33.321 + 695.16 - 5343.7 + 20582.0 - 45741.0 + 51376.0 - 305709.0
    found = printed_forces().at(np.array([0.0, 1.0]))
    # The thesis counts boom and bucket in tension.
    expected = [[-304693.0, 143365.0, 305709.0], [-boom, arm, -bucket]]
    np.testing.assert_allclose(found, expected, rtol=1e-13)
    two = (((((55.87 * 2 - 740.01) * 2 + 990.47) * 2 + 21511) * 2 - 124023) * 2 + 261122) * 2
    assert printed_forces().at(np.array(2.0))[1] == pytest.approx(two + 143365, rel=1e-13)


def test_trend_lines_are_forces_of_a_machine_of_20_t(excavator):
    # Within the six seconds of the measurement: no more than its pressures can give.
    forces = printed_forces().at(np.linspace(0.0, 6.0, 61))
    highest = 350e5
    for k, cylinder in enumerate(excavator.cylinders):
        assert forces[:, k].max() < cylinder.head_area * highest
        assert forces[:, k].min() > -cylinder.rod_area * highest
    # The boom's rod is pulled, arm and bucket push: the tooth is pressed into the soil.
    assert np.all(forces[:20, 0] < 0.0)
    assert np.all(forces[:20, 1:] > 0.0)
    # "290 kN" when the bucket is at its deepest.
    assert np.median(forces[10:51, 2]) == pytest.approx(290e3, rel=0.05)


@pytest.mark.parametrize('more', [(), FORCE_COLUMNS])
def test_pressures_become_forces_without_forces(tmp_path, excavator, more):
    pressures = np.random.default_rng(2).uniform(0.0, 300e5, (4, 6))
    head = ','.join(('time', *PRESSURE_COLUMNS, *more))
    given_forces = [1.0, 2.0, 3.0][: len(more)]
    rows = [(0.1 * k, *row, *given_forces) for k, row in enumerate(pressures.tolist())]
    text = '\n'.join([head, *(','.join(map(repr, row)) for row in rows)])
    found = read_forces(write(tmp_path, text), excavator).at(0.1 * np.arange(4))
    for k, cylinder in enumerate(excavator.cylinders):
        # (5.1) to (5.5), of all cylinders side by side.
        piston = cylinder.count * math.pi / 4.0 * cylinder.bore**2
        ring = cylinder.count * math.pi / 4.0 * (cylinder.bore**2 - cylinder.rod**2)
        expected = pressures[:, k] * piston - pressures[:, 3 + k] * ring
        np.testing.assert_allclose(found[:, k], k + 1.0 if more else expected, rtol=1e-12)


def test_forces_and_pressures_at_rest_are_those_of_a_motion_that_stands_still(standard):
    still = np.zeros((1, 3))
    for q in np.random.default_rng(0).uniform(*standard.joint_limits().T, (3, 3)):
        found = inverse(standard, Motion(np.zeros(1), q[None], still, still))
        forces = [found.column(f'pin_force_{c.name}')[0] for c in standard.cylinders]
        np.testing.assert_allclose(standard.holding_forces(q), forces, rtol=1e-9)
        row = standing(standard, q)
        heads, rods = np.array([(c.head_area, c.rod_area) for c in standard.cylinders]).T
        pushes = heads * row['p_head_pa'] - rods * row['p_rod_pa']
        np.testing.assert_allclose([row['force_n'], pushes], [forces, forces], rtol=1e-9)
