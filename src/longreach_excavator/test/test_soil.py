"""Soil laws against published figures, wedges in balance, and the shear law's closed form."""

import math

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from longreach_dynamics.errors import InputError
from longreach_excavator.parameters import load_excavator
from longreach_excavator.soil import (
    bearing_pressure,
    coefficients,
    mobilisation_rate,
    resistance,
    resistance_at,
    wedge_angle,
    wedge_factors,
)

SOIL = load_excavator().soil
BLADE = SOIL.earthmoving
# Calculated with 30 digits; the notes have 51, 76, 86 and 102 kN.
DEEPEST = 0.606113709104885
PEAKS = {10e3: 50868.3961105061, 15e3: 76302.5941657592, 17e3: 86476.2733878604}
PEAKS[20e3] = 101736.792221012
K = 0.02

# Rake angle, internal friction, blade friction [deg]: the whole range, and where formulas meet.
ANGLES = [
    (45.0, 29.0, 20.0),
    (10.0, 35.0, 20.0),
    (10.0, 1.0, 0.5),
    (20.0, 5.0, 5.0),
    (30.0, 30.0, 10.0),  # rake angle and internal friction equal
    (60.0, 1e-3, 5e-4),
    (60.0, 60.0, 40.0),
    (90.0, 40.0, 40.0),
    (90.0, 30.0, 0.0),
    (120.0, 25.0, 10.0),
    (150.0, 10.0, 10.0),
    (150.0, 0.001, 0.0),
    (75.0, 0.0, 0.0),
]


def blade(rake, internal, friction):
    return BLADE.replace(
        rake_angle_deg=rake, internal_friction_deg=internal, blade_friction_deg=friction
    )


@pytest.mark.parametrize(('cohesion', 'peak'), PEAKS.items())
def test_peaks_of_the_thesis(cohesion, peak):
    soil = SOIL.replace(cohesion=cohesion)
    assert resistance(DEEPEST, *coefficients(soil)) == pytest.approx(peak, rel=1e-12)


def test_printed_millimetres_mean_a_giganewton():
    printed = resistance(1e3 * DEEPEST, *coefficients(SOIL))
    assert printed == pytest.approx(970.28e6, rel=1e-5)
    with pytest.raises(InputError, match=r'sweep_radius = 1448\.0, allowed: \(0, 10\] m'):
        SOIL.replace(sweep_radius=1448.0)


@pytest.mark.parametrize('law', ['zelenin', 'earthmoving'])
def test_resistance_of_arrays_is_the_compiled_one(law):
    soil = SOIL.replace(law=law)
    depths = np.array([[-1e-9, -0.4, 0.0, 1e-9], [-7.0, 0.2, 0.7, 3.0]])
    expected = [[resistance(h, *coefficients(soil)) for h in row] for row in depths]
    np.testing.assert_allclose(resistance_at(soil, depths), expected, rtol=1e-14)
    assert resistance_at(soil, np.array(0.5)).shape == ()


def wedge_force(tool, beta, depth, cohesion):
    """Return the blade's force per width on a wedge, by points and normals, not by formulas."""
    rake = math.radians(tool.rake_angle_deg)
    internal = math.radians(tool.internal_friction_deg)
    friction = math.radians(tool.blade_friction_deg)
    tip = np.zeros(2)
    behind = np.array([-depth / math.tan(rake), depth])
    ahead = np.array([depth / math.tan(beta), depth])
    area = 0.5 * ((behind - tip)[1] * (ahead - tip)[0] - (behind - tip)[0] * (ahead - tip)[1])
    load = tool.unit_weight * area + tool.surcharge * float(np.linalg.norm(ahead - behind))

    def unit_and_normal(side):
        unit = side / np.linalg.norm(side)
        normal = np.array([-unit[1], unit[0]])
        inwards = (behind + ahead) / 3.0
        return unit, normal if normal @ inwards > 0.0 else -normal

    # The wedge climbs the failure plane, and the blade: both drag it down.
    up_blade, from_blade = unit_and_normal(behind)
    up_plane, from_plane = unit_and_normal(ahead)
    by_blade = math.cos(friction) * from_blade - math.sin(friction) * up_blade
    by_soil = math.cos(internal) * from_plane - math.sin(internal) * up_plane
    known = np.array([0.0, -load])
    known -= tool.adhesion * np.linalg.norm(behind) * up_blade
    known -= cohesion * np.linalg.norm(ahead) * up_plane
    force, _ = np.linalg.solve(np.column_stack([by_blade, by_soil]), -known)
    return float(force)


def largest_angle(tool):
    total = tool.rake_angle_deg + tool.internal_friction_deg + tool.blade_friction_deg
    return math.radians(180.0 - total)


@pytest.mark.parametrize('angles', ANGLES)
@pytest.mark.parametrize('share', [0.1, 0.5, 0.9])
def test_factors_balance_the_wedge(angles, share):
    tool = blade(*angles).replace(unit_weight=20e3, adhesion=7e3, surcharge=11e3)
    beta = share * largest_angle(tool)
    loads = [20e3 * 0.8**2, 13e3 * 0.8, 11e3 * 0.8, 7e3 * 0.8]
    expected = wedge_force(tool, beta, 0.8, 13e3)
    terms = np.array(wedge_factors(tool, beta)) * loads
    scale = float(np.sum(np.abs(terms)))
    assert np.sum(terms) == pytest.approx(expected, abs=1e-11 * scale)
    # Each term alone: what the balance loses without that load.
    without_cohesion = wedge_force(tool, beta, 0.8, 0.0)
    assert expected - without_cohesion == pytest.approx(terms[1], abs=1e-11 * scale)
    for name, term in (('surcharge', terms[2]), ('adhesion', terms[3])):
        rest = wedge_force(tool.replace(**{name: 0.0}), beta, 0.8, 13e3)
        assert expected - rest == pytest.approx(term, abs=1e-11 * scale)


@pytest.mark.parametrize('angles', ANGLES)
def test_no_other_wedge_has_a_smaller_weight_factor(angles):
    tool = blade(*angles).replace(adhesion=0.0, surcharge=0.0)
    top = largest_angle(tool)
    beta = wedge_angle(tool)
    assert 0.0 < beta < top
    least = wedge_force(tool, beta, 1.0, 0.0) / tool.unit_weight
    assert wedge_factors(tool)[0] == pytest.approx(least, rel=1e-10)
    grid = np.linspace(0.0, top, 2001)[1:-1]
    forces = np.array([wedge_force(tool, float(b), 1.0, 0.0) for b in grid]) / tool.unit_weight
    assert least <= np.min(forces) * (1.0 + 1e-10)
    # The grid comes close: it is this minimum, and the only one.
    assert np.min(forces) == pytest.approx(least, rel=1e-3)
    if tool.internal_friction_deg > 0.1:
        assert abs(grid[np.argmin(forces)] - beta) <= 1.01 * (grid[1] - grid[0])
        assert np.sum(np.diff(np.sign(np.diff(forces))) != 0) == 1


def test_every_allowed_blade_has_a_wedge():
    random = np.random.default_rng(1964)
    refused = 0
    for _ in range(2000):
        rake, internal = random.uniform(10.0, 150.0), random.uniform(0.0, 60.0)
        friction = internal * random.choice([0.0, random.uniform(), 1.0])
        try:
            tool = blade(rake, internal, friction)
        except InputError:
            refused += 1
            assert rake + internal + friction > 165.0
            continue
        beta = wedge_angle(tool)
        assert 0.0 < beta < largest_angle(tool)
        here = wedge_factors(tool, beta)
        assert np.all(np.isfinite(here))
        assert here[0] > 0.0
        for other in (0.999 * beta, min(1.001 * beta, 0.5 * (beta + largest_angle(tool)))):
            assert here[0] <= wedge_factors(tool, other)[0] * (1.0 + 1e-12)
    assert 0 < refused < 500


@pytest.mark.parametrize(
    ('internal', 'friction', 'pressure'),
    # Vertical wall, level ground, as textbooks of foundation engineering tabulate it.
    [(30.0, 0.0, 3.0), (35.0, 0.0, 3.690), (30.0, 15.0, 4.977), (30.0, 20.0, 6.105)],
)
def test_vertical_blade_has_the_tabulated_earth_pressure(internal, friction, pressure):
    factors = wedge_factors(blade(90.0, internal, friction))
    assert 2.0 * factors[0] == pytest.approx(pressure, abs=6e-4)


# Where rake angle and internal friction are equal the solution reads 0 / 0.
@pytest.mark.parametrize('angles', [angles for angles in ANGLES if angles[0] != angles[1]])
def test_weight_factor_is_coulombs(angles):
    # Mueller-Breslau's solution; the angle of the wall is measured on the side away from the soil.
    wall, internal, friction = np.radians([180.0 - angles[0], angles[1], angles[2]])
    ratio = math.sin(internal + friction) * math.sin(internal)
    ratio /= math.sin(wall - friction) * math.sin(wall)
    shape = math.sin(wall + internal) / (math.sin(wall) * (1.0 - math.sqrt(ratio)))
    expected = shape**2 / math.sin(wall - friction)
    assert 2.0 * wedge_factors(blade(*angles))[0] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize('rake', [10.0, 45.0, 90.0, 140.0])
def test_soil_without_friction_takes_the_wedge_of_least_cohesion(rake):
    tool = blade(rake, 0.0, 0.0)
    beta = wedge_angle(tool)
    assert beta == pytest.approx(math.radians(180.0 - rake) / 2.0, rel=1e-12)
    least = wedge_factors(tool)[1]
    for other in np.linspace(0.05, 0.95, 19) * largest_angle(tool):
        assert least <= wedge_factors(tool, float(other))[1] * (1.0 + 1e-12)
    # The limit is that of soils with less and less friction.
    assert wedge_angle(blade(rake, 1e-7, 0.0)) == pytest.approx(beta, rel=1e-6)


@pytest.mark.parametrize('internal', [5.0, 15.0, 35.0])
@pytest.mark.parametrize(
    ('rake', 'roughness', 'excess'),
    [(45.0, 0.0, 1.0), (20.0, 0.0, 1.0), (45.0, 1.0, 1.2), (20.0, 1.0, 1.8)],
)
def test_wedge_of_least_weight_is_near_that_of_least_cohesion(internal, rake, roughness, excess):
    tool = blade(rake, internal, roughness * internal)
    grid = np.linspace(0.02, 0.98, 200) * largest_angle(tool)
    least = min(wedge_factors(tool, float(beta))[1] for beta in grid)
    assert 0.999 * least < wedge_factors(tool)[1] <= excess * least


def step(state, velocities, duration):
    """Return the mobilisation after one fourth-order Runge-Kutta step; a velocity per stage."""

    def rate(s, v):
        return np.array(mobilisation_rate(*v, *s, K))

    k1 = rate(state, velocities[0])
    k2 = rate(state + 0.5 * duration * k1, velocities[1])
    k3 = rate(state + 0.5 * duration * k2, velocities[2])
    k4 = rate(state + duration * k3, velocities[3])
    return np.asarray(state + duration / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4))


def test_mobilisation_is_janosi_and_hanamotos_curve_whatever_the_speed():
    direction = np.array([0.6, -0.8])

    def travel(t):
        return 0.1 * t + 0.03 * math.sin(3.0 * t)

    def rates(t, s):
        velocity = direction * (0.1 + 0.09 * math.cos(3.0 * t))
        return np.array(mobilisation_rate(*velocity, *s, K))

    times = np.linspace(0.0, 1.0, 21)
    solution = solve_ivp(rates, (0.0, 1.0), np.zeros(2), t_eval=times, rtol=1e-10, atol=1e-12)
    expected = [1.0 - math.exp(-travel(t) / K) for t in times]
    np.testing.assert_allclose(solution.y, np.outer(direction, expected), atol=1e-9)


def test_mobilisation_lags_on_a_circle():
    # Steady turning of radius r: s lags by atan(K / r) and has the length 1 / sqrt(1 + (K/r)^2).
    radius, state = 0.1, np.zeros(2)
    for count in range(4000):
        angles = [(count + part) * 1e-3 / radius for part in (0.0, 0.5, 0.5, 1.0)]
        velocities = tuple((math.cos(angle), math.sin(angle)) for angle in angles)
        state = step(state, velocities, 1e-3)
    steady = np.exp(1j * 4000 * 1e-3 / radius) / (1.0 + 1j * K / radius)
    assert state == pytest.approx([steady.real, steady.imag], abs=1e-8)


@pytest.mark.parametrize(('ratio', 'steady'), [(2.0, True), (2.78, True), (1.0, False)])
def test_runge_kutta_keeps_the_unit_disc(ratio, steady):
    # Up to |v| dt / K = 2.78 with a velocity that holds through a step, up to 1 with any motion.
    random = np.random.default_rng(1901)
    state = np.array([0.0, 1.0])
    largest = 0.0
    for _ in range(5000):
        headings = random.uniform(0.0, 2.0 * math.pi, 4)
        # Turns by half a circle between stages are the worst.
        headings = headings[0] + math.pi * random.integers(0, 2, 4) * random.choice([0, 1])
        speeds = random.choice([random.uniform(), 1.0]) * ratio * K / 1e-3 * np.ones(4)
        if steady:
            headings[:] = headings[0]
        velocities = tuple(
            (float(v * math.cos(a)), float(v * math.sin(a)))
            for v, a in zip(speeds, headings, strict=True)
        )
        state = step(state, velocities, 1e-3)
        largest = max(largest, float(np.hypot(*state)))
    assert 0.9 < largest <= 1.0 + 1e-12


@pytest.mark.parametrize(
    ('friction', 'n_c', 'n_q', 'n_gamma'),
    [
        (0.0, 5.14, 1.0, 0.0),
        (20.0, 14.83, 6.40, 2.95),
        (30.0, 30.14, 18.40, 15.07),
        (40.0, 75.31, 64.20, 79.54),
    ],
)
def test_level_strip_has_the_factors_of_the_textbooks(friction, n_c, n_q, n_gamma):
    """Prandtl's and Reissner's factors, and Hansen's N_gamma (1970)."""
    found = [
        bearing_pressure(*row[:1], math.radians(friction), 0.0, 0.0, *row[1:])
        for row in ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
    ]
    np.testing.assert_allclose(found, (n_c, n_q, n_gamma), rtol=2e-3, atol=1e-9)


@pytest.mark.parametrize('friction', [0.1, 10.0, 29.0, 45.0])
@pytest.mark.parametrize('tilt', [0.0, 30.0, 60.0, 90.0, 120.0])
def test_tilted_strip_is_the_slip_lines_solution(friction, tilt):
    """
    Soil without weight: Rankine's zones at surface and strip, and a fan of slip lines between.

    Along a slip line that turns by d theta the stress p + c cot phi changes by the factor exp(2
    tan phi d theta) (Kotter); the fan turns by pi / 2 less the tilt.
    """
    phi, cohesion, surcharge = math.radians(friction), 5e3, 2e3
    apex = cohesion / math.tan(phi)
    # Mean stress of the passive zone below the surface, whose smallest principal stress is given.
    mean = (surcharge + apex) / (1.0 - math.sin(phi))
    turn = (0.0, math.radians(90.0 - tilt))
    fan = solve_ivp(lambda _, p: 2.0 * math.tan(phi) * p, turn, [mean], rtol=1e-10, atol=1e-6)
    expected = max(fan.y[0, -1] * (1.0 + math.sin(phi)) - apex, 0.0)
    found = bearing_pressure(cohesion, phi, math.radians(tilt), 0.0, surcharge, 0.0)
    assert found == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize('slope', [0.0, 10.0, 25.0, 35.0])
def test_upright_strip_has_rankines_passive_pressure(slope):
    """Of a surface that falls: Mohr's circle through the stress parallel to the surface."""
    phi, fall = math.radians(35.0), math.radians(slope)
    # The largest circle about (m, 0) that touches the envelope and has the point of the slope.
    vertical = math.cos(fall)
    root = math.sqrt(max(math.cos(fall) ** 2 - math.cos(phi) ** 2, 0.0))
    mean = vertical * (math.cos(fall) + root) / math.cos(phi) ** 2
    circle = (vertical * math.cos(fall) - mean) ** 2 + (vertical * math.sin(fall)) ** 2
    assert circle == pytest.approx((mean * math.sin(phi)) ** 2, rel=1e-9)
    opposite = 2.0 * mean * math.cos(fall) - vertical
    found = bearing_pressure(0.0, phi, 0.5 * math.pi, fall, 1.0, 0.0)
    assert found == pytest.approx(opposite, rel=1e-9)
