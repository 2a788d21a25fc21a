"""Lines with inertia: the closed form of an orifice's flow, ports of motors, tables."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from longreach_dynamics.errors import InputError
from longreach_dynamics.hydraulics.lines import (
    LinedMotor,
    LineParameters,
    OrificeParameters,
    lines_of,
    orifice_resistances,
    orifice_step,
    ports,
    residual_flow,
    sources,
)

INERTANCE = 3e7


def integrated(flow, drop, resistance, duration):
    """Return flow and volume by a general integrator."""
    scale = 1e-3

    def rates(_, y):
        q = scale * y[0]
        return [(drop - resistance * q * abs(q)) / INERTANCE / scale, y[0]]

    done = solve_ivp(
        rates, (0, duration), [flow / scale, 0], rtol=1e-12, atol=1e-13, method='LSODA'
    )
    return done.y[:, -1] * scale


@pytest.mark.parametrize('flow', [0.0, 2e-3, -2e-3, 1e-6])
@pytest.mark.parametrize('drop', [1e7, -1e7, 3e4, 0.0])
@pytest.mark.parametrize('resistance', [3e11, 1e15])
def test_flow_through_an_orifice_is_that_of_its_equation(flow, drop, resistance):
    for duration in (1e-4, 2e-3, 2e-2):
        found = orifice_step(flow, drop, resistance, INERTANCE, duration)
        assert found == pytest.approx(
            integrated(flow, drop, resistance, duration), rel=1e-8, abs=1e-13
        )


def test_flow_that_turns_round_within_a_step():
    before, after = -1e-3, orifice_step(-1e-3, 1e7, 3e11, INERTANCE, 0.02)[0]
    assert before < 0 < after


def test_two_half_steps_are_one_step():
    half, volume = orifice_step(-1e-3, 2e7, 5e11, INERTANCE, 2e-3)
    end, rest = orifice_step(half, 2e7, 5e11, INERTANCE, 2e-3)
    assert (end, volume + rest) == pytest.approx(
        orifice_step(-1e-3, 2e7, 5e11, INERTANCE, 4e-3), rel=1e-12
    )


def test_long_steps_and_great_resistances_end_at_the_residual_flow():
    for drop in (1e7, -1e7):
        flow, _ = orifice_step(1e-3, drop, 2e17, INERTANCE, 10.0)
        assert flow == pytest.approx(residual_flow(drop, 2e17), rel=1e-12)
    assert orifice_step(0.0, 0.0, 2e17, INERTANCE, 1.0) == (0.0, 0.0)
    assert np.isfinite(orifice_step(-1e-3, 1e-320, 2e17, INERTANCE, 1.0)).all()


def motor(**valve):
    values = {'resistance': 8e11, 'dead_band': 0.05, 'least': 2e-3, 'residual_time': 0.01}
    return LinedMotor(
        displacement=8e-5,
        gear=120.0,
        leakage_across=5e12,
        leakage_tank=2e13,
        line=LineParameters(inertance=3e7, capacitance=2.1e-12, resistance=1e9),
        valve=OrificeParameters(**values | valve),
    )


def test_ports_of_a_motor_balance_flows():
    tank = 4e5
    row = lines_of([motor()], 1.9e7, tank, [3000.0]).table
    p1, p2, speed = 1.2e7, 3e6, 0.31
    e, f, into, out = ports(p1, p2, speed, 0, row)
    assert into == pytest.approx((p1 - e) / 1e9, rel=1e-6)
    assert out == pytest.approx((f - p2) / 1e9, rel=1e-6)
    displaced, across = motor().volume * speed, (e - f) / 5e12
    assert into == pytest.approx(displaced + across + (e - tank) / 2e13, rel=1e-9)
    assert out == pytest.approx(displaced + across - (f - tank) / 2e13, rel=1e-9)


def test_sources_change_sides_with_the_spool():
    table = lines_of([motor()], 1.9e7, 1e5, [0.0]).table
    assert sources(0.1, 0, table) == (1.9e7, 1e5)
    assert sources(-0.1, 0, table) == (1e5, 1.9e7)


def test_resistances_follow_the_table_of_openings():
    straight = lines_of([motor()], 1.9e7, 0.0, [0.0])
    assert orifice_resistances(0.5, 0, straight)[0] == pytest.approx(8e11 / (0.45 / 0.95) ** 2)
    assert orifice_resistances(0.02, 0, straight)[1] == pytest.approx(8e11 / 2e-3**2)
    bent = motor(openings=((0, 0), (0.5, 0.1), (1, 1)), resistance_2=1e12)
    # Beside an actuator with a shorter table.
    both = lines_of([motor(), bent], 1.9e7, 0.0, [0.0, 0.0])
    for x, s in ((0.25, 0.05), (0.5, 0.1), (0.75, 0.55), (1.0, 1.0)):
        found = orifice_resistances(-(0.05 + 0.95 * x), 1, both)
        assert found == pytest.approx((8e11 / s**2, 1e12 / s**2))
    assert orifice_resistances(0.5, 0, both) == orifice_resistances(0.5, 0, straight)


@pytest.mark.parametrize('openings', [(), ((0, 0),), ((0, 0), (0.5, 1)), ((0, 1), (1, 0.5))])
def test_impossible_openings_are_refused(openings):
    with pytest.raises(InputError, match='openings'):
        motor(openings=openings)
