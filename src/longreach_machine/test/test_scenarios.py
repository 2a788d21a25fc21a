"""Valve commands of scenarios."""

from types import SimpleNamespace

import pytest

from longreach_dynamics.errors import InputError
from longreach_machine.poses import Pose
from longreach_machine.scenarios import ValveCommand, first_pose, spools_at

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
