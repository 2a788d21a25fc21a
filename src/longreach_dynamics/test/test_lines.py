"""Lines with inertia: the closed form of an orifice's flow, ports of motors, tables."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from longreach_dynamics.errors import InputError
from longreach_dynamics.hydraulics.lines import (
    PUMP_FLOW,
    RELIEF_1,
    VAPOUR,
    LinedMotor,
    LineParameters,
    OrificeParameters,
    PortOilParameters,
    lines_of,
    orifice_resistances,
    orifice_step,
    port_step,
    ports,
    rail_of,
    rail_step,
    relief_and_make_up,
    residual_flow,
)
from longreach_dynamics.hydraulics.parameters import (
    MakeUpParameters,
    PumpParameters,
    ReliefParameters,
)
from longreach_dynamics.hydraulics.valves import pump_flow, spool_rate, spool_step

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


def test_long_steps_and_great_resistances_end_at_the_residual_flow():
    for drop in (1e7, -1e7):
        flow, _ = orifice_step(1e-3, drop, 2e17, INERTANCE, 10.0)
        assert flow == pytest.approx(residual_flow(drop, 2e17), rel=1e-12)
    assert orifice_step(0.0, 0.0, 2e17, INERTANCE, 1.0) == (0.0, 0.0)
    assert np.isfinite(orifice_step(-1e-3, 1e-320, 2e17, INERTANCE, 1.0)).all()
    # Next to no flow: nothing slows it down.
    volume = orifice_step(1e-14, 0.0, 3e11, INERTANCE, 1e-3)[1]
    assert volume == pytest.approx(1e-17, rel=1e-12, abs=0.0)


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


OIL = PortOilParameters(density=870.0, contraction=0.7, laminar_pressure=1e4)
RELIEF = ReliefParameters(head=17e6, rod=18e6, override=2e6, area=2e-5)
MAKE_UP = MakeUpParameters(cracking=5e4, override=3e5, area=5e-5, supply=8e5)
PUMP = PumpParameters(flow=1.5e-3, band=1e6)


def equipped(count=1, **parts):
    actuator = motor().replace(**{'relief': RELIEF, 'make_up': MAKE_UP, **parts})
    return lines_of([actuator] * count, 1.9e7, 1e5, [0.0] * count, OIL, PUMP).table


@pytest.mark.parametrize('pressure', [18.2e6, 25e6, 4e5, -3e6, 1e7])
def test_relief_and_make_up_valves_empty_and_fill_a_line(pressure):
    table, duration = equipped(), 2e-3
    done = solve_ivp(
        lambda _, p: relief_and_make_up(max(p[0], VAPOUR), RELIEF_1, 0, table) / 2.1e-12,
        (0, duration), [pressure], rtol=1e-10, atol=1e-2, method='LSODA',
    )  # fmt: skip
    errors = []
    for steps in (8, 32):
        p, given, lost = pressure, 0.0, 0.0
        for _ in range(steps):
            p, more, less = port_step(p, RELIEF_1, 0, table, duration / steps)
            given, lost = given + more, lost + less
        errors.append(abs(p - done.y[0, -1]))
        stored = 0.5 * 2.1e-12 * (max(p, VAPOUR) ** 2 - max(pressure, VAPOUR) ** 2)
        assert given - lost == pytest.approx(stored, rel=1e-12, abs=1e-12)
        assert lost >= 0.0
    assert errors[1] < 2e3
    # Of order 2, but for the slope, which is that over 1 kPa.
    assert errors[1] <= errors[0] / 8 + 20.0


def test_the_rail_has_the_pressure_of_the_pump_at_its_flow():
    table = equipped(3)
    for flow in (0.0, 4e-4, -4e-4, 1.4e-3):
        pressure, steep = rail_of(flow, table)
        given, slope = pump_flow(pressure, 1.9e7, PUMP.flow, PUMP.band)
        assert given == pytest.approx(flow, abs=1e-12)
        assert steep * slope == pytest.approx(1.0)
    assert rail_of(PUMP.flow / np.sqrt(2), table)[0] == pytest.approx(1.8e7)


@pytest.mark.parametrize('spread', [1.0, 0.3])
def test_valves_that_share_a_pump_take_what_it_gives(spread):
    """Against a general integrator, from flows that are far below to near the largest flow."""
    table = equipped(3)
    pressures, resistances = np.array([1e6, 5e6, 9e6]), np.array([3e11, 6e11, 0.0])
    flows = spread * np.array([7e-4, 7e-4, 0.0])

    def rates(_, q):
        rail, _ = rail_of(q[:2].sum() * 1e-3, table)
        q = 1e-3 * q
        return (rail - pressures - resistances * q * np.abs(q)) / INERTANCE * 1e3 * [1, 1, 0]

    done = solve_ivp(
        rates, (0, 4e-3), 1e3 * flows, rtol=1e-10, atol=1e-10, method='Radau'
    )  # fmt: skip
    errors = []
    for steps in (8, 32):
        q, rail, h = flows.copy(), 1.9e7, 4e-3 / steps
        for _ in range(steps):
            rail = rail_step(rail, q, pressures, resistances, h, table)
            for i in range(2):
                q[i], _ = orifice_step(q[i], rail - pressures[i], resistances[i], INERTANCE, h)
        errors.append(np.abs(q - 1e-3 * done.y[:, -1]).max())
    assert errors[1] < 2e-6
    assert errors[1] < errors[0] / 3
    assert q[:2].sum() < PUMP.flow


def test_the_rail_is_found_where_flows_turn_round():
    table = equipped(3)
    table[:, PUMP_FLOW] = 1.5e-3
    flows, pressures = np.array([5.2e-5, 7.6e-4, 2.6e-5]), np.array([4.1e6, 6.4e5, 1.56e7])
    resistances = np.array([9e11, 1.67e12, 1.03e14])
    for guess in (7.5e6, 1.7e7, 1.9e7):
        assert 1.65e7 < rail_step(guess, flows, pressures, resistances, 5e-4, table) < 1.8e7


@pytest.mark.parametrize(('start', 'command'), [(0.0, 0.9), (0.5, -0.8), (0.1, 0.15), (0.2, 0.2)])
def test_spools_move_as_their_rate_says(start, command):
    inverse, fastest = 50.0, 10.0
    for duration in (1e-3, 0.03, 0.3):
        done = solve_ivp(
            lambda _, s: spool_rate(s[0], command, inverse, fastest),
            (0, duration), [start], rtol=1e-10, atol=1e-12, max_step=1e-3,
        )  # fmt: skip
        found = spool_step(start, command, inverse, fastest, duration)
        assert found == pytest.approx(done.y[0, -1], abs=1e-7)
    free = spool_step(0.0, 1.0, inverse, np.inf, 0.02)
    assert free == pytest.approx(1.0 - np.exp(-1.0))


def test_valves_that_cannot_work_are_refused():
    with pytest.raises(InputError, match='allowed with oil'):
        lines_of([motor().replace(relief=RELIEF)], 1.9e7, 0.0, [0.0])
    with pytest.raises(InputError, match='time_constant'):
        motor(rate=5.0)
    with pytest.raises(InputError, match='least'):
        motor(least=1e-200)
