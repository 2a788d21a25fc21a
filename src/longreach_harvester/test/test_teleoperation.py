"""Sticks as spools, joint by joint and by the tip, with the machine in the loop."""

import numpy as np
import pytest
from harvesters import ANGLES, STANDARD, scenario

from longreach_harvester.kinematics import tip_at
from longreach_harvester.machine import Harvester
from longreach_harvester.teleoperation import Measurement, Teleoperation, load_teleoperation
from longreach_machine.teleoperation import OperatorState, Order

PERIOD = 0.01  # [s]
SWING, BOOM, STICK = 0, 1, 2
CLOSED = (0.0, 0.0, 0.0)


def station(**changes):
    return Teleoperation(load_teleoperation().replace(**changes), STANDARD)


def deflected(**axes):
    """Return the axes of the installed file."""
    places = {'left_sideways': 0, 'left_fore_aft': 1, 'right_sideways': 3, 'right_fore_aft': 4}
    values = [0.0] * 6
    for name, value in axes.items():
        values[places[name]] = value
    return values


def drive(seat, sticks, machine=None):
    """Return angles (samples, 3) and spools of a machine; sticks: pairs of end [s] and axes."""
    machine = machine or Harvester(STANDARD, scenario())
    state, levers, rows = machine.initial_state(), OperatorState(), []
    for k in range(round(sticks[-1][0] / PERIOD)):
        time = k * PERIOD
        axes = next(axes for end, axes in sticks if time < end - 1e-9)
        levers = seat.take(levers, seat.order_of_sticks(axes), time)
        levers, command = seat.cycle(levers, Measurement(time, state.y[:3]), time)
        state = machine.advance(state, command or CLOSED, time, PERIOD)
        rows.append(np.r_[state.y[:3], command or CLOSED])
    rows = np.array(rows)
    return rows[:, :3], rows[:, 3:]


@pytest.mark.parametrize(
    ('axis', 'joint', 'way'),
    [('left_sideways', SWING, 1.0), ('left_fore_aft', STICK, 1.0), ('right_fore_aft', BOOM, -1.0)],
)
def test_forward_lowers_the_boom_and_sends_the_stick_out_and_left_swings_left(axis, joint, way):
    seat = station()
    for sign in (1.0, -1.0):
        expected = [0.0, 0.0, 0.0]
        expected[joint] = sign * way
        assert seat.order_of_sticks(deflected(**{axis: sign})).spools == tuple(expected)
    angles, _ = drive(seat, [(0.5, deflected(**{axis: 0.4}))])
    turned = angles[-1] - ANGLES
    assert way * turned[joint] > 0.005
    others = np.delete(turned, joint)
    assert np.abs(others).max() < 0.5 * abs(turned[joint]), 'locked, but for their oil'
    assert not seat.order_of_sticks(deflected(right_sideways=1.0)).moves, 'no valve of a tool'


@pytest.mark.parametrize(
    ('axes', 'way'),
    [
        ({'left_fore_aft': -1.0}, (-1.0, 0.0, 0.0)),
        ({'right_fore_aft': 1.0}, (0.0, 0.0, -1.0)),
        ({'left_sideways': 1.0}, (0.0, 1.0, 0.0)),
    ],
)
def test_under_tip_control_the_tip_moves_straight(axes, way):
    seat = station(control='tip', tip_speed=0.25)
    angles, _ = drive(seat, [(4.0, deflected(**axes))])
    tip = tip_at(STANDARD, angles)
    # Around the axis of the swing: along the arc.
    out = np.hypot(tip[:, 0], tip[:, 1])
    path = np.stack([out, out[0] * np.unwrap(np.arctan2(tip[:, 1], tip[:, 0])), tip[:, 2]], axis=1)
    moved = path[-1] - path[150]
    np.testing.assert_allclose(moved / 2.49, 0.25 * np.array(way), atol=0.03)
    off = path - path[0] - np.outer((path - path[0]) @ way, way)
    assert np.abs(off).max() < 0.1, 'the boom swings on its oil'


def test_centred_sticks_close_the_valves_and_the_references_begin_anew():
    seat = station(control='tip')
    out = deflected(left_fore_aft=-1.0)
    _, spools = drive(seat, [(0.5, out), (0.6, [0.0] * 6), (0.7, out)])
    assert spools[10:49, 1:].all()
    assert not spools[50:59].any()
    # Just beyond their dead bands of 0.05, as at first.
    assert np.abs(spools[[0, 60]]).max() < 0.055 < np.abs(spools[49]).max()


def test_a_tip_that_cannot_go_on_stops_at_the_end_of_the_reach():
    seat = station(control='tip', tip_speed=0.8)
    machine = Harvester(STANDARD, scenario(angles=(0.0, 0.1, -0.4)))
    angles, _ = drive(seat, [(4.0, deflected(left_fore_aft=1.0))], machine)
    # The end stops yield by less than that.
    low, high = STANDARD.joint_limits().T + np.array([[-0.01], [0.01]])
    assert (angles > low).all()
    assert (angles < high).all()
    assert np.hypot(*tip_at(STANDARD, angles[-1])[[0, 1]]) > 7.2


def test_old_orders_end_and_leave_nothing_behind():
    seat = station(control='tip', timeout=0.2)
    state = seat.take(OperatorState(), Order(CLOSED, tip=(-0.3, 0.0, 0.0)), 10.0)
    sample = Measurement(1.0, np.array(ANGLES))
    state, command = seat.cycle(state, sample, 10.1)
    state, command = seat.cycle(state, sample._replace(time=1.01), 10.1)
    assert command != CLOSED
    state, command = seat.cycle(state, sample._replace(time=1.02), 10.3)
    assert command == CLOSED
    assert seat.cycle(state, sample._replace(time=1.03), 10.3)[0].memory is None
