"""Actuators with relief and make-up valves, hoses and a pump of limited flow."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from longreach_dynamics.errors import InputError
from longreach_dynamics.hydraulics import (
    Actuators,
    Cylinder,
    HoseParameters,
    MakeUpParameters,
    OilParameters,
    PumpParameters,
    ReliefParameters,
    ValveParameters,
    actuator_rates,
    actuators_of,
    oil_stiffness,
    pilot_opening,
    port_flows,
    port_rates,
    rail_pressure,
    spool_flows,
    spool_positions,
)
from longreach_dynamics.hydraulics.actuators import HEAD_RELIEF

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
HOSE = HoseParameters(length=3.0, diameter=0.025, friction_factor=0.04, stiffness=8e8)
PUMP = PumpParameters(flow=1e-3, band=10e5)


def actuators(*cylinders: Cylinder, oil: OilParameters = OIL) -> Actuators:
    """Return the actuators of cylinders without friction."""
    return actuators_of(cylinders, oil, np.zeros((len(cylinders), 1)), [0.0] * len(cylinders))


def state(*rows: tuple[float, float, float]) -> np.ndarray:
    """Return a state of (p_1, p_2, spool) of each cylinder."""
    return np.array(rows).T.ravel()


def rates(a: Actuators, y: np.ndarray, velocity: float = 0.0, i: int = 0) -> np.ndarray:
    """Return the derivative of a state with pistons at 0.4 m."""
    dy = np.zeros(y.size)
    rail = rail_pressure(y, 0, a.table)
    actuator_rates(y, 0, i, 0.4, velocity, y[2 * len(a.table) + i], rail, a.table, dy)
    return dy


# Relief and make-up valves.


def test_valves_that_pressures_open_have_no_kink() -> None:
    excess = np.linspace(-1.0, 3.0, 4001)
    opening = np.array([pilot_opening(x, 2.0, 5.0) for x in excess])
    assert np.all(opening[excess <= 0.0] == 0.0)
    assert np.all(opening[excess >= 2.0] == 5.0)
    slope = np.diff(opening) / 1e-3
    assert slope.min() >= 0.0
    assert np.abs(np.diff(slope)).max() < 0.02


@pytest.mark.parametrize(('p', 'sign'), [(2e5, 1), (-1e5, 1), (4.9e5, 0), (100e5, 0), (350e5, -1)])
def test_relief_lets_out_and_make_up_lets_in(p: float, sign: int) -> None:
    a = actuators(CYLINDER.replace(relief=RELIEF, make_up=MAKE_UP))
    assert np.sign(port_flows(p, HEAD_RELIEF, 0, a.table)) == sign


def test_make_up_that_could_never_open_is_refused() -> None:
    poor = OIL.replace(tank_pressure=1e5, vapour_pressure=0.1e5)
    with pytest.raises(InputError, match=r'one: make_up\.cracking = 90000 Pa, allowed: below .*'):
        actuators(CYLINDER.replace(make_up=MAKE_UP.replace(cracking=0.9e5)), oil=poor)


def test_valves_that_stay_closed_change_no_bit() -> None:
    random = np.random.default_rng(4)
    none = actuators(CYLINDER)
    closed = actuators(CYLINDER.replace(relief=RELIEF, make_up=MAKE_UP))
    for _ in range(50):
        y = np.array([*random.uniform(6e5, 300e5, 2), random.uniform(-1.0, 1.0)])
        assert np.array_equal(rates(none, y, 0.1), rates(closed, y, 0.1))


@pytest.mark.parametrize('speed', [1e-3, 0.01, 0.03])
def test_relief_holds_the_pressure_within_its_override(speed: float) -> None:
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


def test_port_rates_bound_the_slopes_of_the_flows() -> None:
    a = actuators(CYLINDER.replace(relief=RELIEF, make_up=MAKE_UP))
    volume = min(CYLINDER.head_volume, CYLINDER.dead_length * CYLINDER.rod_area + 2e-3)
    pressures = np.concatenate([np.linspace(0.0, 6e5, 3000), np.linspace(300e5, 450e5, 3000)])
    flows = np.array([port_flows(p, HEAD_RELIEF, 0, a.table) for p in pressures])
    steepest = np.abs(np.diff(flows) / np.diff(pressures)).max() * OIL.bulk_modulus / volume
    assert steepest <= port_rates(a)[0] <= 1.3 * steepest
    assert port_rates(actuators(CYLINDER))[0] == 0.0


def test_all_valves_only_take_power() -> None:
    random = np.random.default_rng(9)
    full = CYLINDER.replace(relief=RELIEF, make_up=MAKE_UP, hose=HOSE)
    a = actuators(full, full, oil=OIL.replace(pump=PUMP))
    for _ in range(300):
        y = state(*((*random.uniform(0.0, 400e5, 2), random.uniform(-1.0, 1.0)) for _ in 'ab'))
        rail, fed, lost = rail_pressure(y, 0, a.table), 0.0, 0.0
        for i in range(2):
            q1, q2, p1, p2 = spool_flows(y, 0, i, rail, a.table)
            port_1, port_2 = (
                (rail, OIL.tank_pressure)
                if y[4 + i] >= 0.0
                else (
                    OIL.tank_pressure,
                    rail,
                )
            )
            parts = [q1 * (port_1 - p1), q2 * (p2 - port_2)]
            for p in (p1, p2):
                parts.append(port_flows(p, HEAD_RELIEF, i, a.table) * (OIL.tank_pressure - p))
            assert min(parts) >= 0.0
            fed += q1 if y[4 + i] >= 0.0 else -q2
            lost += sum(parts)
        # Between the constant supply pressure and the rail the pump loses, too.
        assert fed * (OIL.supply_pressure - rail) >= 0.0


# The pump.


def fed(a: Actuators, y: np.ndarray, rail: float) -> np.ndarray:
    """Return what each valve takes from the rail [m^3/s]."""
    N = len(a.table)
    flows = [spool_flows(y, 0, i, rail, a.table)[:2] for i in range(N)]
    return np.array([q1 if y[2 * N + i] >= 0.0 else -q2 for i, (q1, q2) in enumerate(flows)])


def test_valves_take_what_the_pump_gives() -> None:
    random = np.random.default_rng(12)
    a = actuators(*[CYLINDER] * 3, oil=OIL.replace(pump=PUMP))
    for _ in range(200):
        y = state(*((*random.uniform(5e5, 290e5, 2), random.uniform(-1.0, 1.0)) for _ in 'abc'))
        rail = rail_pressure(y, 0, a.table)
        behind = (OIL.supply_pressure - rail) / PUMP.band
        given = PUMP.flow * behind / math.sqrt(1.0 + behind * behind)
        taken = fed(a, y, rail).sum()
        assert taken == pytest.approx(given, rel=1e-9, abs=1e-12)
        assert taken < PUMP.flow


def test_limited_pump_slows_all_that_move() -> None:
    y = state((100e5, 50e5, 0.8), (150e5, 40e5, 0.5), (60e5, 120e5, -0.6))
    free, limited = (
        actuators(*[CYLINDER] * 3),
        actuators(*[CYLINDER] * 3, oil=OIL.replace(pump=PUMP)),
    )
    unlimited = fed(free, y, rail_pressure(y, 0, free.table))
    shared = fed(limited, y, rail_pressure(y, 0, limited.table))
    assert np.all(unlimited > 0.0)
    assert unlimited.sum() > 1.5 * PUMP.flow
    assert np.all(shared < unlimited)
    # One valve alone gets more than beside others.
    alone = state((100e5, 50e5, 0.8), (150e5, 40e5, 0.0), (60e5, 120e5, 0.0))
    assert fed(limited, alone, rail_pressure(alone, 0, limited.table))[0] > shared[0]


def test_large_pump_is_a_constant_pressure() -> None:
    y = state((100e5, 50e5, 0.8), (150e5, 40e5, -0.5))
    large = OIL.replace(pump=PumpParameters(flow=1.0, band=1e4))
    assert rail_pressure(y, 0, actuators(CYLINDER, CYLINDER).table) == OIL.supply_pressure
    rail = rail_pressure(y, 0, actuators(CYLINDER, CYLINDER, oil=large).table)
    assert rail == pytest.approx(OIL.supply_pressure, abs=100.0)
    closed = state((100e5, 50e5, 0.03), (150e5, 40e5, 0.0))
    assert rail_pressure(closed, 0, actuators(CYLINDER, CYLINDER, oil=large).table) == 300e5


# Hoses.


def test_hose_is_an_orifice_behind_the_valve() -> None:
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


def test_hose_widens() -> None:
    hosed, rigid = (actuators(CYLINDER.replace(hose=hose)) for hose in (HOSE, None))
    y = state((100e5, 60e5, 0.0))
    volume = CYLINDER.head_volume + 0.4 * CYLINDER.head_area
    soft, hard = rates(hosed, y, 0.1)[0], rates(rigid, y, 0.1)[0]
    assert hard == pytest.approx(-0.1 * CYLINDER.head_area * 1.4e9 / volume, rel=1e-12)
    compliance = volume / 1.4e9 + HOSE.volume / HOSE.stiffness
    assert soft == pytest.approx(-0.1 * CYLINDER.head_area / compliance, rel=1e-12)


def test_hose_fits_into_its_line() -> None:
    long = dataclasses.replace(HOSE, length=30.0)
    with pytest.raises(InputError, match=r'hose has the volume .*, allowed: up to line_volume'):
        CYLINDER.replace(hose=long)


# The inverse.


@pytest.mark.parametrize('hose', [None, HOSE])
def test_spools_give_the_velocity_that_is_asked_for(hose: HoseParameters | None) -> None:
    a = actuators(CYLINDER.replace(hose=hose))
    pistons, head, rod = np.array([0.4]), np.array([100e5]), np.array([60e5])
    k1, k2 = oil_stiffness(a, pistons)
    for velocity in (1e-3, 0.03, -0.05):
        spool = spool_positions(a, np.array([velocity]), pistons, head, rod)[0]
        assert abs(spool) < 1.0
        dy = rates(a, state((100e5, 60e5, spool)), velocity)
        # The force stays.
        change = dy[0] * CYLINDER.head_area - dy[1] * CYLINDER.rod_area
        assert abs(change) < 1e-9 * abs(velocity) * (k1 + k2)[0]
