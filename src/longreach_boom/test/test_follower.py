"""What the controller follows: trajectories, a pose to hold, or nothing."""

import math

import numpy as np
import pytest

from longreach_boom.follower import BoomFollower, Measurement
from longreach_boom.model import constants_of
from longreach_boom.scenario import Scenario
from longreach_boom.state import piston_positions
from longreach_dynamics.errors import InputError
from longreach_machine.scenarios import ValveCommand
from longreach_machine.trajectories import CubicTrajectory, Trajectory, Waypoint
from longreach_machine.trajectory_following import Order, resumed

T = 0.005
SITE = (70.0, -50.0, -35.0, -30.0)
THERE = (65.0, -45.0, -30.0, -20.0)
DRIVE = Scenario(duration=9.0, pose='site', trajectory=(Waypoint(1.0, SITE), Waypoint(5.0, THERE)))
VALVES = Scenario(
    duration=9.0, pose='site', valve_commands=(ValveCommand(0.01, (0.5, 0.0, 0.0, -0.5)),)
)


def measurement(boom, angles_deg=SITE):
    angles = np.radians(angles_deg)
    pistons = piston_positions(angles, constants_of(boom))
    return Measurement(angles, pistons, np.full(4, 1.5e7), np.full(4, 5e6))


def reference(state, time):
    return np.degrees(state.trajectory.at(time).angles)


def test_a_scenarios_trajectory_is_followed_by_the_controller(boom):
    follower = BoomFollower(boom, DRIVE, T)
    measured = measurement(boom)
    state = follower.begin(measured.angles)
    controller, trajectory = follower.controller, Trajectory.of(DRIVE.trajectory)
    memory = controller.initial_state()
    for k in range(590, 620):
        state, command = follower.cycle(state, k * T, measured)
        memory, spools = controller.cycle(memory, *measured[1:4], reference=trajectory.at(k * T))
        assert command == tuple(spools)
        assert any(command)


def test_without_a_scenario_it_holds_the_first_pose(boom):
    follower = BoomFollower(boom, None, T)
    state = follower.begin(np.radians(SITE))
    state, command = follower.cycle(state, 0.0, measurement(boom))
    assert not any(command)
    # Pushed away, it comes back.
    away = measurement(boom, (71.0, -50.0, -36.0, -30.0))
    state, command = follower.cycle(state, T, away)
    assert command[0] < 0.0 < command[2]
    assert reference(state, 100.0) == pytest.approx(SITE)


def test_a_scenario_without_a_trajectory_has_the_valves(boom):
    away = measurement(boom, THERE)
    hold = BoomFollower(boom, Scenario(duration=1.0, pose='site'), T)
    state = hold.begin(away.angles)
    assert hold.cycle(state, 0.5, away)[1] == (0.0,) * 4
    follower = BoomFollower(boom, VALVES, T)
    state = follower.begin(away.angles)
    assert follower.cycle(state, 0.005, away)[1] == (0.0,) * 4
    assert follower.cycle(state, 0.010, away)[1] == (0.5, 0.0, 0.0, -0.5)


def test_valves_of_a_scenario_change_on_cycles_only(boom):
    off = VALVES.replace(valve_commands=(ValveCommand(0.012, (0.0,) * 4),))
    error = r'valve_commands\[0\]\.time = 0\.012 s, allowed: whole steps of 0\.005 s'
    with pytest.raises(InputError, match=error):
        BoomFollower(boom, off, T)
    BoomFollower(boom, off, 0.001)


def order(**changes):
    """All joints THERE within 4 s."""
    values = {'joints': (0, 1, 2, 3), 'times': [4.0], 'angles': [np.radians(THERE)]}
    return Order(**{**values, **changes})


@pytest.mark.parametrize('scenario', [None, DRIVE, VALVES])
def test_an_order_goes_from_here_to_there(boom, scenario):
    follower = BoomFollower(boom, scenario, T)
    here = np.radians(SITE)
    state = follower.follow(follower.begin(here), order(), 0.5)
    assert reference(state, 0.5) == pytest.approx(SITE)
    assert reference(state, 2.5) == pytest.approx(np.add(SITE, THERE) / 2.0)
    assert reference(state, 4.5) == pytest.approx(THERE)
    assert reference(state, 99.0) == pytest.approx(THERE)


def test_an_order_in_mid_way_begins_at_the_reference_not_at_the_boom(boom):
    follower = BoomFollower(boom, DRIVE, T)
    state = follower.begin(np.radians(SITE))
    before = reference(state, 3.0)
    rates = state.reference(3.0).rates
    # The boom lags behind: the trajectory begins as the one before.
    lagging = np.radians(np.subtract(before, 4.0))
    state = follower.follow(state._replace(angles=lagging), order(), 3.0)
    assert reference(state, 3.0) == pytest.approx(before)
    np.testing.assert_allclose(state.reference(3.0).rates, rates)
    assert reference(state, 7.0) == pytest.approx(THERE)


@pytest.mark.parametrize(
    ('changes', 'error'),
    [
        (
            {'times': [0.0, 4.0], 'angles': [np.radians(THERE), np.radians(SITE)]},
            r'begins with joint beam_1 at 65 deg, allowed at time 0: within 0\.5',
        ),
        ({'times': [-1.0]}, 'waypoint 0 of the trajectory has the time -1 s, allowed: from 0 s'),
        ({'angles': [np.radians((170.0, 0.0, 0.0, 0.0))]}, 'waypoint 0 .* joint beam_1 = 170 deg'),
        ({'angles': [[1.0]]}, '1 angles in a point, allowed: 4'),
        (
            {'times': [4.0, 5.0], 'angles': [np.radians(THERE), np.radians(SITE)]},
            r'waypoint 1 .* on the way there beam_1 has 9\.375 deg/s, allowed there: 4\.\d+ deg/s',
        ),
        (
            {
                'times': [4.0, 9.0],
                'angles': [np.radians(THERE)] * 2,
                'rates': [[-0.1] * 4, [0] * 4],
            },
            'waypoint 0 .* beam_1 has -5.73 deg/s, allowed there: -2.*plan at least',
        ),
    ],
)
def test_orders_that_cannot_be(boom, changes, error):
    follower = BoomFollower(boom, None, T)
    here = np.radians(SITE)
    with pytest.raises(InputError, match=error):
        follower.follow(follower.begin(here), order(**changes), 0.0)


TWO_WAYS = (Waypoint(1.0, SITE), Waypoint(5.0, THERE), Waypoint(9.0, SITE))


def planned_rates(trajectory):
    """Return the largest rate of each joint [rad/s], shape (N,)."""
    times = np.arange(0.0, trajectory.duration, 0.01)
    return np.abs([trajectory.at(time).rates for time in times]).max(axis=0)


def test_a_boom_on_its_way_is_taken_over_in_time(boom):
    follower = BoomFollower(boom, DRIVE, T)
    on_time = follower.begin(np.radians(SITE))
    here = on_time.trajectory.at(3.0).angles + math.radians(0.4)
    state = follower.begin(here, 3.0)
    np.testing.assert_array_equal(state.trajectory.angles, on_time.trajectory.angles)


@pytest.mark.parametrize('now', [3.0, 6.0, 60.0])
def test_a_boom_left_behind_goes_on_late_within_the_planned_rates(boom, now):
    follower = BoomFollower(boom, DRIVE, T)
    planned = Trajectory.of(DRIVE.trajectory)
    stopped = planned.at(2.0).angles
    state = follower.begin(stopped, now)
    late = state.trajectory
    np.testing.assert_allclose(late.at(now).angles, stopped)
    np.testing.assert_allclose(late.at(1e3).angles, np.radians(THERE))
    assert (planned_rates(late) <= planned_rates(planned) * (1.0 + 1e-9)).all()
    # The command is no more than that of a boom on its way.
    measured = measurement(boom, np.degrees(stopped))
    assert follower.cycle(state, now, measured)[1] == (0.0,) * 4


def test_a_way_back_to_a_passing_rate_is_as_gentle_as_planned():
    times, angles = np.array([0.0, 4.0, 8.0]), np.array([[0.0, 0.0], [1.0, 0.5], [2.0, 0.0]])
    rates = np.array([[0.0, 0.0], [0.3, -0.1], [0.0, 0.0]])
    planned = CubicTrajectory(times, angles, rates=rates)
    for here in (planned.at(3.7).angles, angles[1], angles[1] + 0.2):
        late = resumed(planned, 3.8, here)
        assert (late.peak_accelerations() <= planned.peak_accelerations() * (1.0 + 1e-9)).all()
        assert (late.peak_rates() <= planned.peak_rates() * (1.0 + 1e-9)).all()
        np.testing.assert_allclose(late.at(3.8), [here, np.zeros(2)], atol=1e-12)


def test_waypoints_that_the_boom_has_not_reached_are_not_left_out(boom):
    planned = Trajectory.of(TWO_WAYS)
    # Beside the first way, away from both ends, while the second was due.
    beside = planned.at(2.5).angles + np.radians((0.0, 0.0, 0.0, 2.0))
    late = resumed(planned, 4.5, beside)
    np.testing.assert_allclose(late.angles, [beside, np.radians(THERE), np.radians(SITE)])
    assert late.times[2] - late.times[1] == pytest.approx(4.0)
    assert late.times[1] >= 5.0


def test_a_joint_that_hardly_moves_does_not_hold_up_the_others():
    """A second way back, of a plan in which a joint moves by an error of the first one."""
    planned = Trajectory(np.array([0.0, 4.0]), np.array([[0.0, 1e-5], [1.0, 0.0]]))
    late = resumed(planned, 2.0, np.array([0.5, -1e-3]))
    assert late.duration < 5.0
    assert (late.peak_rates() <= planned.peak_rates().max() * (1.0 + 1e-9)).all()
    # Nor all: where nothing is to move, they move by errors only.
    still = Trajectory(np.array([0.0, 1.0]), np.array([[0.0, 0.0], [1e-6, 1e-7]]))
    assert 1.0 < resumed(still, 3.0, np.radians([1.0, -1.0])).duration < 10.0


def test_a_pose_to_hold_is_reached_slowly(boom):
    hold = Trajectory(np.zeros(1), np.radians([SITE]))
    late = resumed(hold, 100.0, np.radians(THERE))
    np.testing.assert_allclose(late.at(1e3).angles, np.radians(SITE))
    rates = np.abs([late.at(t).rates for t in np.arange(100.0, 120.0, 0.01)]).max()
    assert rates == pytest.approx(math.radians(2.0), rel=1e-4)


def test_a_gap_between_cycles_is_a_take_over(boom):
    follower = BoomFollower(boom, DRIVE, T)
    measured = measurement(boom)
    state, _ = follower.answer(None, 0.0, measured)
    state, _ = follower.answer(state, 0.2, measured)
    before = state.trajectory
    state, _ = follower.answer(state, 4.0, measured)
    assert before.duration == 5.0
    assert state.trajectory.duration > 6.0
    np.testing.assert_allclose(state.trajectory.at(4.0).angles, np.radians(SITE))


def answered(follower, state, first, path):
    """Answer samples from number ``first`` on, of a boom on a path [deg]; return the spools."""
    spools = []
    for k, angles in enumerate(path, start=first):
        measured = measurement(follower.machine, angles)
        state, command = follower.answer(state, k * T, measured)
        spools.append(command)
    return state, spools


@pytest.mark.parametrize('streamed', [False, True])
def test_the_reference_does_not_run_on_while_no_command_arrives(boom, streamed):
    follower = BoomFollower(boom, DRIVE, T)
    state = follower.begin(np.radians(SITE))
    if streamed:
        state = follower.stream(state, 0.0, {3: math.radians(5.0)})
    # The plant's samples come, but the boom stands still: no command reaches it.
    farthest, left_behind = 0.0, []
    for k in range(1, 2000):
        state, _ = answered(follower, state, k, [SITE])
        here = state.reference(k * T).angles
        farthest = max(farthest, float(np.degrees(np.abs(here - np.radians(SITE)).max())))
        left_behind.append(state.resumptions)
    # As fast as the reference may be, 10 deg/s, for half a second beyond 3 deg.
    assert farthest <= 3.0 + 10.0 * (0.5 + T)
    assert 1 <= left_behind[-1] <= 10.0 / 0.5
    if not streamed:
        late = state.trajectory
        assert (planned_rates(late) <= planned_rates(Trajectory.of(DRIVE.trajectory)) + 1e-9).all()
        np.testing.assert_allclose(late.at(1e3).angles, np.radians(THERE))


def test_a_boom_that_follows_slowly_is_not_taken_over(boom):
    follower = BoomFollower(boom, DRIVE, T)
    state = follower.begin(np.radians(SITE))
    # Half as fast as planned: more than 3 deg away for seconds, but on its way.
    trajectory = Trajectory.of(DRIVE.trajectory)
    way = [0.5 * (np.degrees(trajectory.at(k * T).angles) + SITE) for k in range(1, 900)]
    state, spools = answered(follower, state, 1, way)
    errors = np.abs(np.subtract(way[-1], THERE))
    assert errors.max() > 3.0
    assert state.resumptions == 0
    assert any(spools[-1])


def test_a_short_push_is_no_boom_left_behind(boom):
    follower = BoomFollower(boom, None, T)
    state = follower.begin(np.radians(SITE))
    pushed = tuple(np.add(SITE, (0.0, 0.0, 0.0, 4.0)))
    state, _ = answered(follower, state, 1, [pushed] * 90 + [SITE] + [pushed] * 90)
    assert state.resumptions == 0
    state, _ = answered(follower, state, 182, [pushed] * 20)
    assert state.resumptions == 1
    # It goes back slowly.
    np.testing.assert_allclose(reference(state, 1e3), SITE)


def test_an_order_with_rates_passes_its_points(boom):
    follower = BoomFollower(boom, None, T)
    here = np.radians(SITE)
    middle = 0.5 * (here + np.radians(THERE))
    rates = [(np.radians(THERE) - here) / 4.0, np.zeros(4)]
    passing = order(times=[2.0, 4.0], angles=[middle, np.radians(THERE)], rates=rates)
    state = follower.follow(follower.begin(here), passing, 1.0)
    np.testing.assert_allclose(state.trajectory.at(3.0).angles, middle)
    np.testing.assert_allclose(state.trajectory.at(3.0).rates, rates[0])
    # Taken over in mid-run it stays smooth, and no faster.
    late = resumed(state.trajectory, 4.0, here)
    assert np.abs(late.at(4.0).rates).max() == 0.0
    np.testing.assert_allclose(late.at(1e3).angles, np.radians(THERE))


@pytest.mark.parametrize('scenario', [None, DRIVE, VALVES])
@pytest.mark.parametrize('streamed', [False, True])
def test_a_stop_begins_where_the_boom_is_and_how_it_moves(boom, scenario, streamed):
    follower, rates = BoomFollower(boom, scenario, T), np.radians([-2.0, 3.0, 0.0, 40.0])
    here = np.array([*np.radians(SITE[:3]), boom.joint_limits()[3, 1] - math.radians(1.0)])
    state = follower.begin(np.radians(SITE))
    if streamed:
        state = follower.stream(state, 2.9, {3: -0.4})
    state = state._replace(angles=here, rates=rates)
    # An order without points is one to stop.
    stopped = follower.follow(state, order(times=[], angles=[]), 3.0)
    path = [stopped.reference(t) for t in np.arange(3.0, 4.0, 0.01)]
    np.testing.assert_allclose(path[0].angles, here)
    np.testing.assert_allclose(path[0].rates[:3], rates[:3])
    assert all((np.abs(at.rates) <= np.abs(rates) + 1e-12).all() for at in path)
    assert not any(at.rates.any() for at in path[51:])
    np.testing.assert_allclose(path[-1].angles[:3], here[:3] + 0.25 * rates[:3])
    # It would have gone on by 10 deg, and comes to rest at the end of the stroke.
    np.testing.assert_allclose(path[-1].angles[3], boom.joint_limits()[3, 1])


@pytest.mark.parametrize(
    ('off_deg', 'tolerance', 'first', 'anew'),
    [
        (4.0, math.radians(5.0), None, False),
        (6.0, math.radians(5.0), None, True),
        (6.0, math.inf, None, False),
        (4.0, math.radians(5.0), 'boom', True),
        (4.0, math.radians(5.0), 'reference', False),
    ],
)
def test_an_order_begins_at_a_boom_that_is_far_from_the_reference(
    boom, off_deg, tolerance, first, anew
):
    follower = BoomFollower(boom, None, T)
    here = np.radians(np.add(SITE, (0.0, 0.0, 0.0, off_deg)))
    rates = np.radians((0.0, 0.0, 0.0, 10.0))
    state = follower.begin(np.radians(SITE))._replace(angles=here, rates=rates)
    begins = {None: [], 'boom': [here], 'reference': [np.radians(SITE)]}[first]
    ordered = order(times=[*[0.0] * len(begins), 8.0], angles=[*begins, np.radians(THERE)])
    state = follower.follow(state, ordered, 1.0, tolerance)
    begin = state.reference(1.0)
    np.testing.assert_allclose(begin.angles, here if anew else np.radians(SITE))
    np.testing.assert_allclose(begin.rates, rates if anew else np.zeros(4))
    # What it moved with is lost within a second, on which it goes no further than 0.15 s times.
    changes = np.diff([state.reference(t).rates for t in np.arange(1, 9, T)], axis=0)
    assert np.abs(changes).max() < 4.1 * T * rates.max() + 1e-3
    np.testing.assert_allclose(state.reference(9.0).angles, np.radians(THERE))


@pytest.mark.parametrize('cycle', [T, 0.1])
def test_a_stream_is_followed_smoothly_and_no_faster_than_allowed(boom, cycle):
    follower = BoomFollower(boom, DRIVE, cycle)
    there = np.radians(np.add(SITE, (-8.0, 0.0, 0.0, 9.0)))
    measured = measurement(boom)
    state = follower.stream(follower.begin(measured.angles), 0.0, {0: there[0], 3: there[3]})
    angles = []
    for k in range(round(9.0 / cycle)):
        state, _ = follower.cycle(state, k * cycle, measured)
        angles.append(state.reference(k * cycle).angles)
    path = np.array(angles)
    # 10 deg/s, or half of what the valve of joint 1 can do without load.
    fastest = np.degrees(np.abs(np.diff(path, axis=0)).max(axis=0)) / cycle
    assert fastest[3] <= 10.0 + 1e-9
    assert 1.2 < fastest[0] <= 0.5 * np.degrees(follower.rate_limits(path)).max()
    np.testing.assert_allclose(path[-1], there, atol=1e-6)
    # A trajectory takes over from there.
    state = follower.follow(state, order(), 9.0, math.inf)
    assert reference(state, 9.0) == pytest.approx(np.degrees(path[-1]))
    with pytest.raises(InputError, match='angle of joint beam_1 = 170 deg'):
        follower.stream(state, 3.0, {0: math.radians(170.0)})
