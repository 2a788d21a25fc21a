"""Actuators with relief, make-up and counterbalance valves, hoses and a pump of limited flow."""

import math

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from longreach_dynamics.errors import InputError
from longreach_dynamics.hydraulics import (
    CounterbalanceParameters,
    Cylinder,
    HoseParameters,
    MakeUpParameters,
    OilParameters,
    PumpParameters,
    ReliefParameters,
    ValveParameters,
    actuator_rates,
    actuators_of,
    holding_pressures,
    oil_stiffness,
    port_flows,
    port_rates,
    rail_pressure,
    spool_flows,
    spool_positions,
)
from longreach_dynamics.hydraulics.actuators import (
    CUSHION_AREA,
    CUSHION_LENGTH,
    HEAD_RELIEF,
    ROD_RELIEF,
)

OIL = OilParameters(
    supply_pressure=300e5,
    tank_pressure=5e5,
    preload=40e5,
    vapour_pressure=0.0,
    bulk_modulus=1.4e9,
    density=860.0,
    contraction=0.65,
    laminar_pressure=1e5,
)
CYLINDER = Cylinder(
    name='one',
    bore=0.12,
    rod=0.08,
    stroke=1.0,
    dead_length=0.05,
    line_volume=2e-3,
    valve=ValveParameters(area=2e-5, area_ratio=0.7, dead_band=0.05, time_constant=0.05),
)
RELIEF = ReliefParameters(head=340e5, rod=320e5, override=30e5, area=2e-5)
MAKE_UP = MakeUpParameters(cracking=0.2e5, override=3e5, area=2.5e-5)
COUNTERBALANCE = CounterbalanceParameters(
    pilot_ratio=4.0, override=100e5, area=3e-5, head=300e5, rod=250e5
)
HOSE = HoseParameters(length=3.0, diameter=0.025, friction_factor=0.04, stiffness=8e8)
PUMP = PumpParameters(flow=1e-3, band=10e5)


def actuators(*cylinders, oil=OIL):
    """Return the actuators of cylinders without friction."""
    return actuators_of(cylinders, oil, np.zeros((len(cylinders), 1)), [0.0] * len(cylinders))


def state(*rows):
    """Return a state of (p_1, p_2, spool) of each cylinder."""
    return np.array(rows).T.ravel()


def rates(a, y, velocity=0.0, i=0):
    """Return the derivative of a state with pistons at 0.4 m."""
    dy = np.zeros(y.size)
    rail = rail_pressure(y, 0, a.table)
    actuator_rates(y, 0, i, 0.4, velocity, y[2 * len(a.table) + i], rail, a.table, dy)
    return dy


def fed(a, y, rail):
    """Return what each valve takes from the rail [m^3/s]."""
    N = len(a.table)
    flows = [spool_flows(y, 0, i, rail, a.table)[:2] for i in range(N)]
    return np.array([q1 if y[2 * N + i] >= 0.0 else -q2 for i, (q1, q2) in enumerate(flows)])


def test_spools_with_a_bounded_speed():
    slow = CYLINDER.replace(valve=CYLINDER.valve.replace(rate=2.0))
    for cylinder, most in ((CYLINDER, np.inf), (slow, 2.0)):
        a = actuators(cylinder)
        for command in (0.9, -0.9, 0.01):
            y, dy = np.array([1e7, 5e6, 0.0]), np.zeros(3)
            actuator_rates(y, 0, 0, 0.1, 0.0, command, OIL.supply_pressure, a.table, dy)
            free = command / cylinder.valve.time_constant
            assert dy[2] == pytest.approx(np.clip(free, -most, most))


def test_make_up_that_could_never_open_is_refused():
    poor = OIL.replace(tank_pressure=1e5, vapour_pressure=0.1e5)
    with pytest.raises(InputError, match=r'one: make_up\.cracking = 90000 Pa, allowed: below .*'):
        actuators(CYLINDER.replace(make_up=MAKE_UP.replace(cracking=0.9e5)), oil=poor)

    charged = MAKE_UP.replace(supply=2e5, cracking=2e5)
    with pytest.raises(InputError, match=r'below make_up\.supply - vapour_pressure = 190000 Pa'):
        actuators(CYLINDER.replace(make_up=charged), oil=poor)


def test_relief_that_would_let_oil_in_is_refused():
    low = RELIEF.replace(rod=OIL.tank_pressure - 1.0)
    with pytest.raises(InputError, match=r'one: relief has .* Pa, allowed: at least tank_'):
        actuators(CYLINDER.replace(relief=low))


def test_make_up_from_a_charge_line():
    # The tank's pressure does not matter, neither for the flow nor for its slope.
    charged = MAKE_UP.replace(supply=30e5)
    a = actuators(CYLINDER.replace(make_up=charged))
    assert port_flows(29.9e5, HEAD_RELIEF, 0, a.table) == 0.0
    tank = actuators(CYLINDER.replace(make_up=MAKE_UP), oil=OIL.replace(tank_pressure=30e5))
    for p in np.linspace(0.0, 29e5, 30):
        flow = port_flows(p, HEAD_RELIEF, 0, a.table)
        assert flow == port_flows(p, HEAD_RELIEF, 0, tank.table) > 0.0
    assert port_rates(a)[0] == port_rates(tank)[0]


def test_valves_that_stay_closed_change_no_bit():
    random = np.random.default_rng(4)
    none = actuators(CYLINDER)
    closed = actuators(CYLINDER.replace(relief=RELIEF, make_up=MAKE_UP))
    for _ in range(50):
        y = np.array([*random.uniform(6e5, 300e5, 2), random.uniform(-1.0, 1.0)])
        assert np.array_equal(rates(none, y, 0.1), rates(closed, y, 0.1))


@pytest.mark.parametrize('speed', [1e-3, 0.01, 0.03])
def test_relief_holds_the_pressure_within_its_override(speed):
    # A piston that is pushed in against a closed valve; 0.03 m/s are 20 L/min.
    a = actuators(CYLINDER.replace(relief=RELIEF, make_up=MAKE_UP))
    run = solve_ivp(
        lambda _, y: rates(a, y, -speed), (0.0, 2.0 / speed), [50e5, 50e5, 0.0], 'Radau'
    )
    end = run.y[0, -1]
    assert RELIEF.head < end < RELIEF.head + RELIEF.override
    # All that the piston drives out flows through the valve.
    flow = port_flows(end, HEAD_RELIEF, 0, a.table)
    assert flow == pytest.approx(-speed * CYLINDER.head_area, rel=1e-3)
    # The other side, which grows, is fed by the make-up valve.
    lowest = OIL.tank_pressure - MAKE_UP.cracking - MAKE_UP.override
    assert lowest < run.y[1, -1] < OIL.tank_pressure


def test_port_rates_bound_the_slopes_of_the_flows():
    a = actuators(CYLINDER.replace(relief=RELIEF, make_up=MAKE_UP))
    volume = min(CYLINDER.head_volume, CYLINDER.dead_length * CYLINDER.rod_area + 2e-3)
    pressures = np.concatenate([np.linspace(0.0, 6e5, 3000), np.linspace(300e5, 450e5, 3000)])
    flows = np.array([port_flows(p, HEAD_RELIEF, 0, a.table) for p in pressures])
    steepest = np.abs(np.diff(flows) / np.diff(pressures)).max() * OIL.bulk_modulus / volume
    assert steepest <= port_rates(a)[0] <= 1.3 * steepest
    assert port_rates(actuators(CYLINDER))[0] == 0.0


def test_all_valves_only_take_power():
    random = np.random.default_rng(9)
    full = CYLINDER.replace(
        relief=RELIEF, make_up=MAKE_UP, hose=HOSE, counterbalance=COUNTERBALANCE
    )
    a = actuators(full, full, oil=OIL.replace(pump=PUMP))
    for _ in range(300):
        y = state(*((*random.uniform(0.0, 400e5, 2), random.uniform(-1.0, 1.0)) for _ in 'ab'))
        rail, tank = rail_pressure(y, 0, a.table), OIL.tank_pressure
        for i in range(2):
            q1, q2, p1, p2 = spool_flows(y, 0, i, rail, a.table)
            port_1, port_2 = (rail, tank) if y[4 + i] >= 0.0 else (tank, rail)
            assert min(q1 * (port_1 - p1), q2 * (p2 - port_2)) >= 0.0
            for p, relief in ((p1, HEAD_RELIEF), (p2, ROD_RELIEF)):
                assert port_flows(p, relief, i, a.table) * (tank - p) >= 0.0
        # Between the constant supply pressure and the rail the pump loses, too.
        assert fed(a, y, rail).sum() * (OIL.supply_pressure - rail) >= 0.0


@pytest.mark.parametrize(
    ('counterbalance', 'highest'),
    [(None, 290e5), (COUNTERBALANCE, 290e5), (COUNTERBALANCE, 400e5)],
)
def test_valves_take_what_the_pump_gives(counterbalance, highest):
    random = np.random.default_rng(12)
    cylinder = CYLINDER.replace(counterbalance=counterbalance)
    a = actuators(*[cylinder] * 3, oil=OIL.replace(pump=PUMP))
    for _ in range(200):
        y = state(*((*random.uniform(5e5, highest, 2), random.uniform(-1.0, 1.0)) for _ in 'abc'))
        rail = rail_pressure(y, 0, a.table)
        behind = (OIL.supply_pressure - rail) / PUMP.band
        given = PUMP.flow * behind / math.sqrt(1.0 + behind * behind)
        taken = fed(a, y, rail).sum()
        assert taken == pytest.approx(given, rel=1e-9, abs=1e-12)
        assert taken < PUMP.flow


def test_the_rail_is_found_beside_a_chamber_of_its_pressure():
    """Newton's method goes round there, from one side of the chamber's pressure to the other."""
    random, pump = np.random.default_rng(1), PUMP.replace(flow=5e-4, band=1e5)
    cylinder = CYLINDER.replace(valve=CYLINDER.valve.replace(area=1e-4))
    a = actuators(*[cylinder] * 3, oil=OIL.replace(pump=pump, laminar_pressure=3e3))
    for _ in range(1000):
        y = state(*((*random.uniform(5e5, 290e5, 2), random.uniform(-1.0, 1.0)) for _ in 'abc'))
        y[0] = y[3] = rail_pressure(y, 0, a.table) + random.normal() * 3e3
        rail = rail_pressure(y, 0, a.table)
        behind = (OIL.supply_pressure - rail) / pump.band
        given = pump.flow * behind / math.sqrt(1.0 + behind * behind)
        assert fed(a, y, rail).sum() == pytest.approx(given, rel=1e-6, abs=1e-9)


def test_hose_is_an_orifice_behind_the_valve():
    hosed, rigid = (actuators(CYLINDER.replace(hose=hose)) for hose in (HOSE, None))
    for spool in (0.2, 1.0, -1.0):
        y = state((100e5, 60e5, spool))
        q1, _, _, _ = spool_flows(y, 0, 0, 300e5, hosed.table)
        bare, _, _, _ = spool_flows(y, 0, 0, 300e5, rigid.table)
        assert 0.9 * abs(bare) < abs(q1) < abs(bare)
        # Darcy and Weisbach, and the valve at what is left of the pressure.
        drop = 0.04 * 3.0 / 0.025 * 860.0 / 2.0 * (q1 / HOSE.bore_area) ** 2
        across = (300e5 - 100e5 if spool > 0.0 else 100e5 - 5e5) - drop
        share = (abs(spool) - 0.05) / 0.95
        expected = 0.65 * 2e-5 * share * math.sqrt(2.0 / 860.0 * across)
        assert abs(q1) == pytest.approx(expected, rel=1e-4)


def test_hose_widens():
    hosed, rigid = (actuators(CYLINDER.replace(hose=hose)) for hose in (HOSE, None))
    y = state((100e5, 60e5, 0.0))
    volume = CYLINDER.head_volume + 0.4 * CYLINDER.head_area
    soft, hard = rates(hosed, y, 0.1)[0], rates(rigid, y, 0.1)[0]
    assert hard == pytest.approx(-0.1 * CYLINDER.head_area * 1.4e9 / volume, rel=1e-12)
    compliance = volume / 1.4e9 + HOSE.volume / HOSE.stiffness
    assert soft == pytest.approx(-0.1 * CYLINDER.head_area / compliance, rel=1e-12)


def drained(load, pilot, spool=-1.0):
    """Return the flow out of a head side with a counterbalance valve [m^3/s]."""
    a = actuators(CYLINDER.replace(counterbalance=COUNTERBALANCE))
    y = state((load, pilot, spool))
    return -float(spool_flows(y, 0, 0, OIL.supply_pressure, a.table)[0])


def test_counterbalance_valve_holds_until_load_and_pilot_open_it():
    # 300 bar above the tank; a pilot counts four times.
    assert drained(304e5, 5e5) == 0.0
    assert drained(306e5, 5e5) > 0.0
    assert drained(200e5, 5e5 + 26e5) == 0.0
    assert drained(200e5, 5e5 + 27e5) > 0.0
    # 100 bar more and it is fully open: two orifices in a row.
    wide = drained(200e5, 100e5)
    behind = 1.0 / math.hypot(1.0 / 2e-5, 1.0 / 3e-5)
    assert wide == pytest.approx(0.65 * behind * math.sqrt(2.0 / 860.0 * 195e5), rel=1e-4)
    # The closed directional valve closes, whatever the pressures.
    assert drained(400e5, 100e5, 0.0) == 0.0


def test_counterbalance_valve_lets_oil_in_only():
    held, plain = (
        actuators(CYLINDER.replace(counterbalance=c)).table for c in (COUNTERBALANCE, None)
    )
    for p1, spool in ((100e5, 0.4), (290e5, 1.0)):
        y = state((p1, 40e5, spool))
        assert spool_flows(y, 0, 0, 300e5, held)[0] == spool_flows(y, 0, 0, 300e5, plain)[0] > 0.0
    # A load above the supply pressure flows back to the pump but for the check valve.
    y = state((320e5, 40e5, 0.5))
    assert spool_flows(y, 0, 0, 300e5, plain)[0] < 0.0
    assert spool_flows(y, 0, 0, 300e5, held)[0] == 0.0
    # And oil from the tank enters a chamber below the tank pressure.
    y = state((2e5, 40e5, -0.5))
    assert spool_flows(y, 0, 0, 300e5, held)[0] == spool_flows(y, 0, 0, 300e5, plain)[0] > 0.0


@pytest.mark.parametrize('side', ['head', 'rod'])
def test_a_side_may_have_no_counterbalance_valve(side):
    one = COUNTERBALANCE.replace(**{side: None})
    table = actuators(CYLINDER.replace(counterbalance=one)).table
    # Without a pilot, it alone lets oil out.
    for spool, k, name in ((-1.0, 0, 'head'), (1.0, 1, 'rod')):
        y = state((200e5, 10e5, spool) if spool < 0.0 else (10e5, 200e5, spool))
        flow = spool_flows(y, 0, 0, 300e5, table)[k]
        assert (flow != 0.0) == (name == side)


@pytest.mark.parametrize('area_ratio', [0.7, 1.0])
def test_both_openings_are_smaller_while_the_piston_retracts(area_ratio):
    valve = CYLINDER.valve.replace(area_ratio=area_ratio)
    a = actuators(CYLINDER.replace(valve=valve))
    less = actuators(CYLINDER.replace(valve=valve.replace(retracting=0.6)))
    for spool, share in ((0.7, 1.0), (-0.7, 0.6)):
        y = state((100e5, 60e5, spool))
        full, small = (spool_flows(y, 0, 0, 300e5, x.table)[:2] for x in (a, less))
        assert small == pytest.approx([share * q for q in full], rel=1e-12)


def lowered(cylinder):
    """Return p_1, p_2 [Pa] and velocity [m/s] of 20 t, 180 kN, lowered by half a spool for 3 s."""
    a = actuators(cylinder)

    def derivative(_, y):
        dy = np.zeros(5)
        force = actuator_rates(y, 0, 0, y[3], y[4], -0.5, OIL.supply_pressure, a.table, dy)
        # What friction there is, is viscous.
        dy[3], dy[4] = y[4], (force - 180e3 - 2e4 * y[4]) / 20e3
        return dy

    start = [180e3 / cylinder.head_area + 40e5 * cylinder.rod_area / cylinder.head_area]
    y = np.array([*start, 40e5, 0.0, 0.7, 0.0])
    run = solve_ivp(derivative, (0.0, 3.0), y, 'Radau', rtol=1e-7, atol=1e-6)
    return run.y[[0, 1, 4]].T


# The valve lets the load out faster than it feeds the rod side. A poppet that then controls the
# speed wants a low pilot ratio: with a higher one the load swings.
OVERRUN = CYLINDER.replace(valve=CYLINDER.valve.replace(area=4e-5, area_ratio=0.2))
SLOW = COUNTERBALANCE.replace(pilot_ratio=1.0)


def test_counterbalance_valve_lowers_a_load_as_fast_as_the_other_side_is_fed():
    plain = lowered(OVERRUN)
    held = lowered(OVERRUN.replace(counterbalance=SLOW))
    # Without it the load runs ahead of the oil, and the rod side cavitates.
    assert plain[:, 1].min() < 0.0
    assert held[:, 1].min() > 39e5
    # At the end what is fed is what the speed needs.
    p1, p2, velocity = held[-1]
    share = (0.5 - 0.05) / 0.95 * 0.2 * 4e-5
    fed = 0.65 * share * math.sqrt(2.0 / 860.0 * (OIL.supply_pressure - p2))
    assert -velocity * CYLINDER.rod_area == pytest.approx(fed, rel=0.02)
    assert abs(plain[-1, 2]) > 1.5 * abs(velocity)
    assert p1 < 250e5


def test_counterbalance_rates_bound_the_slope_over_the_load_pressure():
    one = CYLINDER.replace(counterbalance=COUNTERBALANCE.replace(rod=None))
    pressures = np.linspace(250e5, 420e5, 4000)
    table, rates = actuators(one).table, port_rates(actuators(one))
    flows = [spool_flows(state((p, 5e5, -1.0)), 0, 0, 300e5, table)[0] for p in pressures]
    steepest = np.abs(np.diff(flows) / np.diff(pressures)).max()
    steepest *= OIL.bulk_modulus / CYLINDER.head_volume
    assert steepest <= rates[0] <= 1.3 * steepest


@pytest.mark.parametrize('counterbalance', [None, COUNTERBALANCE])
@pytest.mark.parametrize('hose', [None, HOSE])
def test_spools_give_the_velocity_that_is_asked_for(hose, counterbalance):
    a = actuators(CYLINDER.replace(hose=hose, counterbalance=counterbalance))
    pistons, head, rod = np.array([0.4]), np.array([100e5]), np.array([60e5])
    k1, k2 = oil_stiffness(a, pistons)
    for velocity in (1e-3, 0.03, -0.05):
        spool = spool_positions(a, np.array([velocity]), pistons, head, rod)[0]
        assert abs(spool) < 1.0
        dy = rates(a, state((100e5, 60e5, spool)), velocity)
        # The force stays.
        change = dy[0] * CYLINDER.head_area - dy[1] * CYLINDER.rod_area
        assert abs(change) < 1e-9 * abs(velocity) * (k1 + k2)[0]


@pytest.mark.parametrize('spool', [1.0, -1.0])
def test_cushions_throttle_what_leaves_a_chamber(spool):
    a, y = actuators(CYLINDER), state((150e5, 120e5, spool))
    a.table[0, [CUSHION_LENGTH, CUSHION_AREA]] = 0.1, 1e-6
    plain = spool_flows(y, 0, 0, 300e5, a.table)[:2]
    leaves = 1 if spool > 0.0 else 0
    valve = (a.rod_opening if leaves else a.head_opening)[0]
    for left in (0.1, 0.05, 0.0):
        at = CYLINDER.stroke - left if spool > 0.0 else left
        flows = spool_flows(y, 0, 0, 300e5, a.table, at)
        assert flows[1 - leaves] == plain[1 - leaves]
        # The gap is as wide as its way in is short, in a row with the valve.
        share = 1.0 / math.hypot(1.0, valve * (0.1 - left) / (1e-6 * 0.1))
        assert flows[leaves] == pytest.approx(share * plain[leaves], rel=1e-12)
    # Away from the end it enters through the check valve.
    back = state((150e5, 120e5, -spool))
    assert spool_flows(back, 0, 0, 300e5, a.table, at)[:2] == pytest.approx(
        spool_flows(back, 0, 0, 300e5, a.table)[:2]
    )
    # The inverse includes it: the spool opens further for the same speed.
    velocity, place = np.array([0.01 * spool]), np.array([0.02 if spool < 0.0 else 0.98])
    found = [
        spool * spool_positions(x, velocity, place, np.array([150e5]), np.array([120e5]))[0]
        for x in (actuators(CYLINDER), a)
    ]
    assert found[0] < found[1] < 1.0


def test_holding_pressures_give_the_forces():
    forces = np.array([-3e5, -5e4, -4e4, -3.9e4, 0.0, 1.0, 2e5, 6e5])
    cylinders = [CYLINDER.replace(rod=rod) for rod in np.linspace(0.02, 0.11, 8).tolist()]
    heads, rods = np.array([[c.head_area, c.rod_area] for c in cylinders]).T
    for supply, least in ((None, 5e5), (30e5, 29.8e5), (50e5, 49.8e5)):
        fed = [c.replace(make_up=MAKE_UP.replace(supply=supply)) for c in cylinders]
        head, rod = holding_pressures(forces, fed, OIL)
        np.testing.assert_allclose(head * heads - rod * rods, forces, rtol=1e-12, atol=1e-9)
        # One side is relieved: the rod's has the preload, or the head's has tank pressure; no
        # make-up valve is open.
        pulled = head == least
        preload = max(40e5, least)
        assert np.all(rod[~pulled] == preload)
        assert np.all(head[~pulled] > least)
        assert np.all(rod[pulled] >= preload)
        assert pulled[0]
        assert not pulled[-1]
