"""Inputs between knots: values, jumps, crossings, errors; valve commands of scenarios."""

from types import SimpleNamespace

import numpy as np
import pytest

from longreach_dynamics.errors import InputError
from longreach_machine.poses import Pose
from longreach_machine.scenarios import ValveCommand, first_pose, spools_at
from longreach_machine.schedules import check_knots, schedule_of


def value(schedule, time, i=0):
    k = np.clip(np.searchsorted(schedule.edges, time) - 1, 0, len(schedule.starts) - 1)
    return schedule.starts[k, i] + schedule.slopes[k, i] * (time - schedule.edges[k])


def test_values_are_those_between_knots():
    knots = [(0.5, 0.2), (1, -0.3), (1, 0.4), (3, 0.4), (4, 0)]
    schedule = schedule_of([knots, [(0.0, -0.1)]], [(-0.05, 0, 0.05), ()])
    for time in (0.1, 0.7, 0.9999, 1.0001, 2, 3.3, 7):
        before = [knot for knot in knots if knot[0] <= 1] if time < 1 else knots[2:]
        assert value(schedule, time) == pytest.approx(
            np.interp(time, *np.array(before).T), abs=1e-12
        )
        assert value(schedule, time, 1) == -0.1


def test_intervals_end_where_levels_are_crossed():
    schedule = schedule_of([[(0, 0), (1, 0.5), (2, -0.5)]], [(-0.05, 0, 0.05)])
    assert schedule.edges[:-1] == pytest.approx([0, 0.1, 1, 1.45, 1.5, 1.55, 2])
    assert (np.diff(schedule.edges) > 0).all()


@pytest.mark.parametrize(
    ('knots', 'what'),
    [
        ([], 'no knots'),
        ([(0, 0), (1, 1.5)], r'\[1\] = 1.5'),
        ([(0, 0), (1, 0), (0.5, 0)], 'sort'),
        ([(-5, 0.8), (0, 0)], r'\[0\]: time = -5 s, allowed: 0 s or later'),
        ([(0, 0), (1, 0), (1, 0.1), (1, 0)], 'three times'),
        ([(0, float('nan'))], 'nan'),
        ([(float('nan'), 0)], 'time = nan s, allowed: 0 s or later, finite'),
        ([(0, 0), (float('inf'), 0)], r'\[1\]: time = inf s'),
    ],
)
def test_wrong_knots_are_named(knots, what):
    with pytest.raises(InputError, match=what):
        check_knots(knots, 'spools.boom')


COMMANDS = (ValveCommand(0.2, (0.5, -1.0)), ValveCommand(0.3, (0.0, 1.0)))


def test_a_command_holds_until_the_next():
    closed = (0.0, 0.0)
    told = [spools_at(COMMANDS, time, 2) for time in (0.0, 0.199, 0.2, 0.299, 0.3, 9.0)]
    assert told == [closed, closed, (0.5, -1.0), (0.5, -1.0), (0.0, 1.0), (0.0, 1.0)]
    # The time of a step may be less by rounding.
    assert spools_at(COMMANDS, 0.3 - 1e-12, 2) == (0.0, 1.0)
    assert spools_at((), 1.0, 2) == closed


def test_the_first_pose_is_that_without_a_scenario():
    machine = SimpleNamespace(poses=(Pose('up', (0.0,)), Pose('down', (1.0,))))
    assert first_pose(machine, 'boom') == 'up'
    with pytest.raises(InputError, match='poses of the boom file is empty'):
        first_pose(SimpleNamespace(poses=()), 'boom')
