"""Sticks and velocities as spools, against flows of the plant by bisection and in the loop."""

import math

import numpy as np
import pytest

from longreach_dynamics.hydraulics import HoseParameters, valve_flows, valve_opening
from longreach_excavator.kinematics import pin_places
from longreach_excavator.machine import CLOSED, Excavator
from longreach_excavator.motion import HEAD, RATE, ROD, SPOOL
from longreach_excavator.scenario import Scenario
from longreach_excavator.teleoperation import (
    Measurement,
    Teleoperation,
    load_teleoperation,
    opening_for_velocity,
)
from longreach_machine.teleoperation import (
    PATTERNS,
    OperatorState,
    Order,
    spool_of_opening,
    stick_curve,
)

SAMPLE = 0.01  # [s]
BOOM, ARM, BUCKET = 0, 1, 2
# Axes of the installed file.
LEFT_SIDEWAYS, LEFT_FORE_AFT, RIGHT_SIDEWAYS, RIGHT_FORE_AFT = 0, 1, 3, 4


@pytest.fixture
def parameters():
    return load_teleoperation()


@pytest.fixture
def station(parameters, excavator):
    return Teleoperation(parameters, excavator)


def deflected(axis, value):
    axes = [0.0] * 6
    axes[axis] = value
    return axes


def measured(state, time):
    y = state.y
    return Measurement(time, y[:RATE], y[RATE:HEAD], y[HEAD:ROD], y[ROD:SPOOL])


def drive(station, order, pose=(20.0, -80.0, -20.0), seconds=2.0, plant=None, soil=False):
    """Return the states (samples, SIZE) of an excavator that obeys an order."""
    scenario = Scenario(duration=60.0, pose_deg=pose, soil=soil)
    machine = Excavator(plant or station.excavator, scenario)
    state = machine.initial_state()
    at_levers = station.take(OperatorState(), order, 0.0)
    rows = []
    for k in range(round(seconds / SAMPLE)):
        at_levers, command = station.cycle(at_levers, measured(state, k * SAMPLE), 0.0)
        state = machine.advance(state, command, k * SAMPLE, SAMPLE)
        rows.append(state.y)
    return np.array(rows)


@pytest.mark.parametrize('pattern', PATTERNS)
@pytest.mark.parametrize('joint', [BOOM, ARM, BUCKET])
def test_forward_lowers_the_boom_and_sends_the_arm_out_and_left_curls(station, joint, pattern):
    station = Teleoperation(station.parameters.replace(pattern=pattern), station.excavator)
    right, left = (BOOM, ARM) if pattern == 'iso' else (ARM, BOOM)
    axis = {right: RIGHT_FORE_AFT, left: LEFT_FORE_AFT, BUCKET: RIGHT_SIDEWAYS}[joint]
    rows = drive(station, station.order_of_sticks(deflected(axis, 0.8)), seconds=1.0)
    turned = rows[-1, :RATE] - rows[0, :RATE]
    # The arm goes out with theta_3 growing; boom and bucket turn down.
    way = 1.0 if joint == ARM else -1.0
    assert way * turned[joint] > 0.05
    assert np.abs(np.delete(turned, joint)).max() < 0.01


@pytest.mark.parametrize('pattern', PATTERNS)
def test_the_swing_is_seen_and_moves_nothing(station, pattern):
    station = Teleoperation(station.parameters.replace(pattern=pattern), station.excavator)
    axes = deflected(LEFT_SIDEWAYS, -1.0)
    assert not station.order_of_sticks(axes).moves
    assert station.parameters.asked(axes)['swing'] == -1.0
    for other in (deflected(LEFT_SIDEWAYS, 0.05), deflected(RIGHT_FORE_AFT, 1.0)):
        assert station.parameters.asked(other)['swing'] == 0.0


def test_the_curve_of_a_stick():
    values = np.linspace(0.0, 1.0, 101)
    for dead_zone in (0.0, 0.1, 0.5):
        straight = np.clip((values - dead_zone) / (1.0 - dead_zone), 0.0, None)
        for expo, power in ((0.0, 1.0), (1.0, 3.0)):
            found = [stick_curve(x, dead_zone, expo) for x in values]
            np.testing.assert_allclose(found, straight**power, atol=1e-15)
        bent = np.array([stick_curve(x, dead_zone, 0.6) for x in values])
        assert (np.diff(bent) >= 0.0).all()
        assert [stick_curve(-x, dead_zone, 0.6) for x in values] == (-bent).tolist()
        assert stick_curve(1.0, dead_zone, 0.6) == 1.0
        # Some drivers show a little more than 1.
        assert stick_curve(-1.3, dead_zone, 0.6) == -1.0


def test_without_its_button_nothing_moves(parameters, excavator):
    station = Teleoperation(parameters.replace(deadman=2), excavator)
    axes = deflected(RIGHT_FORE_AFT, 1.0)
    assert not station.order_of_sticks(axes, [1, 1, 0, 1]).moves
    assert station.order_of_sticks(axes, [0, 0, 1]).moves


def test_the_spool_opens_the_valve_by_what_was_asked():
    for share in np.linspace(-1.0, 1.0, 41):
        for dead_band in (0.0, 0.05, 0.3):
            spool = spool_of_opening(share, dead_band)
            opened = math.copysign(valve_opening(spool, dead_band, 2.0), spool)
            assert abs(spool) <= 1.0
            assert opened == pytest.approx(2.0 * share, abs=1e-12)
    assert spool_of_opening(0.0, 0.3) == 0.0


def stationary_velocity(opening, load, cylinder, excavator):
    """
    Return the velocity [m/s] at which a valve carries a load, and whether a chamber is empty.

    The load gives the rod pressure to each head pressure; with it, the flow in falls and that out
    grows, so that their balance is found by bisection. A chamber that would be below the vapour's
    pressure stays there, and the flow out of the other one alone counts.
    """
    oil = excavator.oil
    head, rod, valve = cylinder.head_area, cylinder.rod_area, cylinder.valve
    full = valve.area * (valve.retracting if opening < 0.0 else 1.0)
    openings = abs(opening) * full, abs(opening) * full * valve.area_ratio
    # Valve and hose in series: their pressure drops add.
    loss = cylinder.hose.loss(oil.contraction) if cylinder.hose else 0.0
    areas = [(area**-2 + loss) ** -0.5 for area in openings]
    coefficient = oil.contraction * math.sqrt(2.0 / oil.density)

    def speeds(p1):
        p2 = (p1 * head - load) / rod
        q1, q2 = valve_flows(
            opening, p1, p2, oil.supply_pressure, oil.tank_pressure, *areas, coefficient, 1e-3
        )
        return q1 / head, q2 / rod

    # Above these pressures neither head nor rod side is empty.
    low, high = max(oil.vapour_pressure, (load + oil.vapour_pressure * rod) / head), 1e10
    into, out = speeds(low) if opening > 0.0 else speeds(low)[::-1]
    if abs(into) < abs(out):
        return out, True
    for _ in range(200):
        middle = 0.5 * (low + high)
        v1, v2 = speeds(middle)
        low, high = (middle, high) if v1 > v2 else (low, middle)
    return speeds(low)[0], False


@pytest.mark.slow
def test_openings_give_their_velocities_under_any_load(random_excavator):
    random = np.random.default_rng(3)
    kinds = []
    for _ in range(60):
        excavator = random_excavator(random)
        oil = excavator.oil
        for known in excavator.cylinders:
            valve = known.valve.replace(retracting=random.uniform(0.3, 1.0))
            hose = HoseParameters(random.uniform(2.0, 12.0), 0.012, 0.03, 1e9)
            cylinder = known.replace(valve=valve, hose=hose if random.random() < 0.5 else None)
            strongest = oil.supply_pressure * cylinder.head_area
            load, velocity = random.uniform(-3.0, 3.0) * strongest, random.uniform(-0.2, 0.2)
            opening = opening_for_velocity(velocity, load, cylinder, oil)
            if abs(opening) == 1.0:
                continue
            found, empty = stationary_velocity(opening, load, cylinder, excavator)
            assert found == pytest.approx(velocity, rel=1e-6)
            kinds.append((velocity > 0.0, empty))
    assert min(kinds.count((way, empty)) for way in (True, False) for empty in (True, False)) > 5


def test_openings_end_at_the_valves_own(excavator):
    cylinder, oil = excavator.cylinders[BOOM], excavator.oil
    stalls = 2.0 * oil.supply_pressure * cylinder.head_area
    assert opening_for_velocity(0.05, stalls, cylinder, oil) == 1.0
    assert opening_for_velocity(-0.05, -stalls, cylinder, oil) == -1.0
    assert opening_for_velocity(50.0, 0.0, cylinder, oil) == 1.0
    assert opening_for_velocity(-50.0, 0.0, cylinder, oil) == -1.0
    # Of a message, where any finite number may be.
    for hose in (None, HoseParameters(5.0, 0.012, 0.03, 1e9)):
        assert opening_for_velocity(1e200, 0.0, cylinder.replace(hose=hose), oil) == 1.0
    assert opening_for_velocity(0.0, 1e5, cylinder, oil) == 0.0


@pytest.mark.parametrize('pose', [(20.0, -80.0, -20.0), (0.0, -110.0, -60.0)])
@pytest.mark.parametrize('rate', [0.05, -0.05, 0.2, -0.2])
@pytest.mark.parametrize('joint', [BOOM, ARM, BUCKET])
def test_joints_turn_as_fast_as_they_are_told(station, joint, rate, pose):
    """Without feedback, loaded by gravity: within a tenth after the first half second."""
    assert station.parameters.feedback == 0.0
    rates = [0.0, 0.0, 0.0]
    rates[joint] = rate
    rows = drive(station, Order(rates=tuple(rates)), pose)
    angles = rows[:, :RATE]
    mean = (angles[-1] - angles[50]) / ((len(rows) - 51) * SAMPLE)
    # Slow ones vibrate with the oil's spring; their mean is what counts.
    assert mean[joint] == pytest.approx(rate, rel=0.05)
    if abs(rate) > 0.1:
        np.testing.assert_allclose(rows[100:, RATE + joint], rate, rtol=0.1)
    assert np.abs(np.delete(mean, joint)).max() < 0.02 * abs(rate)


def test_feedback_mends_what_the_valves_law_does_not_know(parameters, excavator):
    # A station that believes in larger valves, and opens them too little.
    areas = {f'cylinders.{c.name}.valve.area': 1.5 * c.valve.area for c in excavator.cylinders}
    wrong = excavator.with_values(areas)
    errors = []
    for feedback in (0.0, 1.0):
        station = Teleoperation(parameters.replace(feedback=feedback), wrong)
        order = Order(rates=(0.0, -0.2, 0.0))
        rows = drive(station, order, seconds=1.5, plant=excavator, soil=True)
        errors.append(abs(rows[-1, RATE + ARM] + 0.2))
    assert errors[0] > 0.05
    assert errors[1] < 0.6 * errors[0]


def test_a_joint_that_shall_stand_closes_its_valve_even_with_feedback(parameters, excavator):
    station = Teleoperation(parameters.replace(feedback=5.0), excavator)
    moving = Measurement(
        0.0, np.radians([20.0, -80.0, -20.0]), np.full(3, 0.3), np.full(3, 1e7), np.full(3, 5e6)
    )
    state = station.take(OperatorState(), Order(rates=(0.1, 0.0, 0.0)), 0.0)
    _, command = station.cycle(state, moving, 0.0)
    assert command.spools[ARM] == command.spools[BUCKET] == 0.0
    assert command.spools[BOOM] != 0.0


@pytest.mark.parametrize(
    ('axis', 'way'), [(LEFT_FORE_AFT, (1.0, 0.0)), (RIGHT_FORE_AFT, (0.0, -1.0))]
)
def test_under_tip_control_joint_d_moves_straight(parameters, excavator, axis, way):
    station = Teleoperation(parameters.replace(control='tip', tip_speed=0.4), excavator)
    for sign in (1.0, -1.0):
        rows = drive(station, station.order_of_sticks(deflected(axis, sign)), seconds=2.0)
        angles = np.cumsum(rows[:, :2], axis=1)
        lengths = np.array([excavator.boom.length, excavator.arm.length])
        places = np.stack([np.cos(angles) @ lengths, np.sin(angles) @ lengths], axis=-1)
        velocity = (places[-1] - places[50]) / ((len(rows) - 51) * SAMPLE)
        # By feedforward alone, as velocities of the joints are.
        np.testing.assert_allclose(velocity, 0.4 * sign * np.array(way), atol=0.03)
        assert abs(rows[-1, 2] - rows[0, 2]) < 0.02, 'the bucket keeps its joint angle'


@pytest.mark.parametrize(
    ('pose', 'velocity', 'stops'),
    [
        ((40.0, -40.0, 0.0), 0.3, ARM),
        ((58.0, -100.0, 0.0), 0.5j, BOOM),
        ((35.0, -55.0, 0.0), 0.5, ARM),  # its valve is fully open before
        ((-14.0, -80.0, 54.0), 0.1 - 0.8j, ARM),  # the boom's is
    ],
)
def test_the_tip_keeps_its_line_where_a_valve_or_a_stroke_ends(station, pose, velocity, stops):
    excavator, tip = station.excavator, (velocity.real, 0.0, velocity.imag)
    rows = drive(station, Order((0.0, 0.0, 0.0), tip=tip), pose, seconds=4.0)
    place = pin_places(excavator, rows[:, :RATE])[:, 2]
    along = (place - place[0]) * abs(velocity) / velocity
    # The machine swings on its oil when it starts and stops.
    assert np.abs(along.imag).max() < 0.15
    assert along[-50:].real.mean() > along.real.max() - 0.1
    rest = rows[-50:, stops].mean()
    assert np.abs(excavator.joint_limits()[stops] - rest).min() < 0.03


def test_under_tip_control_the_bucket_has_its_valve(parameters, excavator):
    station = Teleoperation(parameters.replace(control='tip'), excavator)
    order = station.order_of_sticks(deflected(RIGHT_SIDEWAYS, 1.0))
    assert order == Order((0.0, 0.0, 1.0), tip=(0.0, 0.0, 0.0))
    state = station.take(OperatorState(), order, 0.0)
    assert station.cycle(state, resting(excavator, 0.0), 0.0)[1].spools == (0.0, 0.0, 1.0)


def resting(excavator, time):
    machine = Excavator(excavator, Scenario(duration=1.0, pose='dig'))
    return measured(machine.initial_state(), time)


def test_nobody_is_engaged_before_the_first_motion(station, excavator):
    state, sample = OperatorState(), resting(excavator, 0.0)
    assert station.cycle(state, sample, 0.0)[1] is None
    # A joystick that lies there says so many times a second.
    centred = station.order_of_sticks([0.0] * 6)
    for order in (centred, Order(rates=(0.0, 0.0, 0.0))):
        state = station.take(state, order, 0.1)
        assert station.cycle(state, sample, 0.1)[1] is None
    state = station.take(state, Order(spools=(0.5, 0.0, 0.0)), 0.3)
    assert station.cycle(state, sample, 0.3)[1].spools == (0.5, 0.0, 0.0)
    # From then on the middle means stop.
    state = station.take(state, centred, 0.4)
    assert station.cycle(state, sample, 0.4)[1] == CLOSED


def test_loads_are_filtered(parameters, excavator):
    station = Teleoperation(parameters.replace(load_time=0.2), excavator)
    head = np.array([c.head_area for c in excavator.cylinders])

    def at(time, pressure):
        return resting(excavator, time)._replace(
            head_pressures=np.full(3, pressure), rod_pressures=np.zeros(3)
        )

    state, _ = station.cycle(OperatorState(), at(1.0, 1e7), 0.0)
    np.testing.assert_allclose(state.memory, 1e7 * head, rtol=1e-14)
    for k in range(1, 21):
        state, _ = station.cycle(state, at(1.0 + 0.01 * k, 2e7), 0.0)
    # One time constant of small steps.
    share = (np.array(state.memory) / head - 1e7) / 1e7
    np.testing.assert_allclose(share, 1.0 - math.exp(-1.0), atol=0.02)
    # Time that begins anew begins with what is there.
    state, _ = station.cycle(state, at(0.0, 3e7), 0.0)
    np.testing.assert_allclose(state.memory, 3e7 * head, rtol=1e-14)
