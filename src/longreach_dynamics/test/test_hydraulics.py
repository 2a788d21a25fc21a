"""Valves and cylinders against their printed equations, and against conservation of oil."""

import math

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from longreach_dynamics.hydraulics import (
    oil_share,
    pressure_rates,
    signed_root,
    valve_flows,
    valve_opening,
)

SUPPLY, TANK, LAMINAR = 330e5, 5e5, 1e4
BETA, DENSITY, CONTRACTION = 1.4e9, 860.0, 0.65
COEFFICIENT = CONTRACTION * math.sqrt(2.0 / DENSITY)
AREA = 8e-6
A1, A2 = 0.0201, 0.0123
V1, V2 = 1.2e-3, 2.2e-2


def flows(spool, p1, p2):
    opening = valve_opening(spool, 0.05, AREA)
    q1, q2 = valve_flows(spool, p1, p2, SUPPLY, TANK, opening, 0.5 * opening, COEFFICIENT, LAMINAR)
    return float(q1), float(q2)


@pytest.mark.parametrize('sign', [1.0, -1.0])
def test_root_is_that_of_large_differences_and_laminar_for_small_ones(sign):
    for difference in (1e6, 1e7, 3e7):
        # (1 + (s/d)^2)^(-1/4)
        tolerance = 0.26 * (LAMINAR / difference) ** 2
        found = sign * signed_root(sign * difference, LAMINAR)
        assert found == pytest.approx(math.sqrt(difference), rel=tolerance)
        assert found < math.sqrt(difference)
    assert signed_root(0.0, LAMINAR) == 0.0
    for difference in (1e-3, 1.0, 100.0):
        found = sign * signed_root(sign * difference, LAMINAR)
        assert found == pytest.approx(difference / math.sqrt(LAMINAR), rel=1e-4)


def test_opening_has_a_dead_band_and_an_end():
    for spool in (0.0, 0.03, 0.05, -0.05):
        assert valve_opening(spool, 0.05, AREA) == 0.0
    assert valve_opening(0.525, 0.05, AREA) == pytest.approx(0.5 * AREA, rel=1e-14)
    assert valve_opening(-0.525, 0.05, AREA) == pytest.approx(0.5 * AREA, rel=1e-14)
    for spool in (1.0, -1.0, 1.5, -7.0):
        assert valve_opening(spool, 0.05, AREA) == pytest.approx(AREA, rel=1e-14)
    # Continuous at the edge of the band.
    assert valve_opening(0.05 + 1e-9, 0.05, AREA) < 1e-8 * AREA
    assert valve_opening(0.3, 0.0, AREA) == pytest.approx(0.3 * AREA, rel=1e-14)


def test_flows_are_those_of_the_orifice():
    opening = AREA * (0.6 - 0.05) / 0.95
    q1, q2 = flows(0.6, 200e5, 60e5)
    expected = CONTRACTION * opening * math.sqrt(2.0 / DENSITY * (SUPPLY - 200e5))
    assert q1 == pytest.approx(expected, rel=1e-6)
    expected = CONTRACTION * 0.5 * opening * math.sqrt(2.0 / DENSITY * (60e5 - TANK))
    assert q2 == pytest.approx(expected, rel=1e-5)
    # Run in: chamber 1 to the tank, the supply to chamber 2, both flows negative.
    q1, q2 = flows(-0.6, 200e5, 60e5)
    expected = CONTRACTION * opening * math.sqrt(2.0 / DENSITY * (200e5 - TANK))
    assert q1 == pytest.approx(-expected, rel=1e-6)
    expected = CONTRACTION * 0.5 * opening * math.sqrt(2.0 / DENSITY * (SUPPLY - 60e5))
    assert q2 == pytest.approx(-expected, rel=1e-6)


def test_closed_chambers_follow_the_volume():
    # p = beta ln(V_oil / V): in closed chambers it depends on the position alone.
    def position(t):
        return 0.5 + 1e-3 * math.sin(3.0 * t)

    def rates(t, p):
        velocity = 3e-3 * math.cos(3.0 * t)
        return tuple(pressure_rates(position(t), velocity, 0.0, 0.0, A1, A2, V1, V2, BETA))

    run = solve_ivp(rates, (0.0, 5.0), [150e5, 40e5], rtol=1e-10, atol=1e-2)
    end = position(5.0)
    head = 150e5 + BETA * math.log((V1 + A1 * 0.5) / (V1 + A1 * end))
    rod = 40e5 + BETA * math.log((V2 - A2 * 0.5) / (V2 - A2 * end))
    assert abs(head - 150e5) > 1e4
    np.testing.assert_allclose(run.y[:, -1], [head, rod], rtol=1e-8)


def opened_and_closed(inflow):
    """Pull the head side open and close it again; return its pressure and its volume [m^3]."""

    def position(t):
        return 0.5 + 0.2 * math.sin(math.pi * t)

    def rates(t, p):
        velocity = 0.2 * math.pi * math.cos(math.pi * t)
        q1 = inflow / oil_share(p[0], 0.0, BETA)
        return tuple(pressure_rates(position(t), velocity, q1, 0.0, A1, A2, V1, V2, BETA))

    run = solve_ivp(rates, (0.0, 1.0), [5e5, 5e5], rtol=1e-11, atol=1e-3)
    return run.y[0], V1 + A1 * np.array([position(t) for t in run.t])


def test_a_chamber_forgets_no_oil_when_it_cavitates():
    # Closed: p runs far below zero, a measure of what is missing, and comes back to where it was.
    pressure, volume = opened_and_closed(0.0)
    assert pressure.min() < -1e8
    oil = volume * np.exp(pressure / BETA)
    np.testing.assert_allclose(oil, oil[0], rtol=1e-9)
    assert pressure[-1] == pytest.approx(5e5, abs=10.0)
    # The valve lets it in at the vapour pressure, where 2e-5 m^3 are 2e-5 m^3.
    pressure, volume = opened_and_closed(2e-5)
    oil = volume * np.exp(pressure / BETA)
    assert oil[-1] - oil[0] == pytest.approx(2e-5, rel=0.02)
