"""What the boom offers to identification."""

import numpy as np
import pytest

from longreach_boom.identification import BOOM
from longreach_boom.parameters import Distribution
from longreach_dynamics.errors import InputError


def test_own_values_change_nothing(boom):
    values = BOOM.values(boom)
    assert [free.name for free in BOOM.free_parameters(boom)] == list(values)
    changed = BOOM.with_values(boom, values)
    for name, value in BOOM.values(changed).items():
        assert value == pytest.approx(values[name], rel=1e-14)
    assert BOOM.with_values(boom, {'mass_scale_1': 1.0}) == boom
    for free in BOOM.free_parameters(boom):
        assert free.lowest <= values[free.name] <= free.highest


def test_every_parameter_changes_the_boom(boom):
    kelvin = boom.replace(ritz=boom.ritz.replace(damping='kelvin_voigt'))
    for machine in (boom, kelvin):
        for name, value in BOOM.values(machine).items():
            changed = BOOM.with_values(machine, {name: 0.99 * value or 1e-5})
            assert changed != machine, name
    assert set(BOOM.values(boom)) ^ set(BOOM.values(kelvin)) == {
        'beam_damping_scale',
        'loss_time_scale',
    }


def test_masses_and_gauges(boom):
    table = Distribution(table=((0.0, 100.0), (9.6, 50.0)))
    mixed = boom.replace(beams=(boom.beams[0].replace(mass_per_length=table), *boom.beams[1:]))
    values = {'mass_scale_1': 1.1, 'mass_scale_4': 0.9, 'youngs_modulus': 2e11}
    changed = BOOM.with_values(mixed, {**values, 'gauge_sensitivity_2': 1e-12})
    places = changed.beams[0].mass_per_length.table
    assert [value for _, value in places] == pytest.approx([110.0, 55.0])
    assert changed.beams[3].mass_per_length.root == pytest.approx(54.0)
    # The gain follows from the sensitivity and the new modulus; other gains stay.
    assert changed.beams[1].strain_gauge.gain == pytest.approx(0.2)
    assert changed.beams[0].strain_gauge.gain == boom.beams[0].strain_gauge.gain


@pytest.mark.parametrize(
    ('values', 'match'),
    [
        ({'mass_scale_5': 1.0}, r"parameter = 'mass_scale_5', allowed: mass_scale_1"),
        ({'coulomb_friction_1': 13e3}, 'static = 12000 N, allowed: at least coulomb'),
    ],
)
def test_values_that_are_none(boom, values, match):
    with pytest.raises(InputError, match=match):
        BOOM.with_values(boom, values)


def test_gauges_and_poses_at_an_end_stay_there(boom):
    # Estimates of a shift have both signs, of a lever too.
    beam, length = boom.beams[1], boom.beams[1].length
    for place, values in ((0.0, {'gauge_shift_2': -1e-3}), (length, {'length_scale_2': 0.99})):
        gauge = beam.strain_gauge.replace(position=place)
        beams = (boom.beams[0], beam.replace(strain_gauge=gauge), *boom.beams[2:])
        changed = BOOM.with_values(boom.replace(beams=beams), values).beams[1]
        assert changed.strain_gauge.position == pytest.approx(0.99 * place)
    folded = boom.poses[0].replace(angles_deg=tuple(np.degrees(boom.joint_limits()[:, 1])))
    with_it = boom.replace(poses=(folded, *boom.poses[1:]))
    changed = BOOM.with_values(with_it, {'lever_scale_1': 1.01, 'lever_scale_3': 1.01})
    ends = np.degrees(changed.joint_limits()[:, 1])
    assert changed.poses[0].angles_deg == pytest.approx(ends)
    assert ends[2] < folded.angles_deg[2] - 0.1
    assert changed.poses[1:] == boom.poses[1:]


def test_signals(boom):
    names = [signal.name for signal in BOOM.signals(boom)]
    assert len(names) == len(set(names)) == 6 * boom.size + 2 * len(boom.markers)
    assert {'p_rod_4', 'inclination_tip_1', 'strain_3', 'marker_truck_x'} <= set(names)


def test_planted_values(boom):
    values = {
        'mass_scale_2': 1.1,
        'joint_damping_scale': 1.3,
        'youngs_modulus': 1.9e11,
        'gauge_sensitivity_3': 9e-13,
        'length_scale_3': 1.01,
        'lever_scale_2': 0.99,
        'area_scale_1': 1.02,
        'stiffness_scale_4': 0.97,
        'stiffness_taper_3': 0.02,
        'mass_taper_1': -0.03,
        'gauge_shift_2': 0.01,
    }
    planted = BOOM.planted(boom, BOOM.with_values(boom, values))
    # Gains stay at another modulus, sensitivities do not.
    gains = [beam.strain_gauge.gain for beam in boom.beams]
    kept = {f'gauge_sensitivity_{i}': gain / 1.9e11 for i, gain in enumerate(gains, 1)}
    assert planted == pytest.approx(BOOM.values(boom) | kept | values, rel=1e-12)
    three = boom.replace(
        beams=boom.beams[:3], cylinders=boom.cylinders[:3], poses=(), markers=boom.markers[:2]
    )
    with pytest.raises(InputError, match='the boom has 3 beams, allowed: 4'):
        BOOM.planted(boom, three)
    one = boom.beams[0].replace(joint_damping=1.0)
    with pytest.raises(InputError, match=r'joint_damping is .* to 1 times that of the start file'):
        BOOM.planted(boom, boom.replace(beams=(one, *boom.beams[1:])))
    table = ((0.0, 300.0), (4.0, 200.0), (boom.beams[0].length, 300.0))
    hollow = boom.beams[0].replace(mass_per_length=Distribution(table=table))
    with pytest.raises(InputError, match=r'mass of beam_1, without scale and taper, is 0\.7 to '):
        BOOM.planted(boom, boom.replace(beams=(hollow, *boom.beams[1:])))
