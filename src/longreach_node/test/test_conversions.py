"""Commands to valves, and values by name."""

import math

import numpy as np
import pytest
from longreach_msgs.msg import ValveCommand

from longreach_dynamics.errors import InputError
from longreach_node.hydraulic_messages import (
    finite_values,
    spools_from_message,
    values_from_command,
)

NAMES = ['a', 'b', 'c']


def test_a_command_by_names_in_any_order_closes_the_others():
    message = ValveCommand(name=['c', 'a'], spool=[0.3, -0.1])
    assert spools_from_message(message, NAMES, 'valve_command') == (-0.1, 0.0, 0.3)
    message = ValveCommand(spool=[0.1, 0.2, 0.3])
    assert spools_from_message(message, NAMES, 'valve_command') == (0.1, 0.2, 0.3)
    message = ValveCommand(name=['b'], force=[5.0])
    assert values_from_command(message, NAMES, 'valve_command', True) == ({}, {'b': 5.0})


@pytest.mark.parametrize(
    ('fields', 'error'),
    [
        ({'spool': [0.0] * 2}, 'has 2 values, allowed: 3'),
        ({'name': ['a'], 'spool': [0.0, 0.0]}, 'has 2 values, allowed: 1'),
        ({'name': ['d'], 'spool': [0.0]}, r"the name 'd', allowed, each once: a \| b"),
        ({'name': ['a', 'a'], 'spool': [0.0] * 2}, "the name 'a', allowed, each once"),
        ({'spool': [0.0, math.nan, 0.0]}, r'for b = nan, allowed: \[-1, 1\]'),
        ({'spool': [0.0, 0.0, -1.01]}, r'for c = -1\.01, allowed: \[-1, 1\]'),
        ({'force': [0.0] * 3}, '3 forces, allowed: spool positions only'),
    ],
)
def test_commands_that_cannot_be(fields, error):
    with pytest.raises(InputError, match=error):
        spools_from_message(ValveCommand(**fields), NAMES, 'valve_command')


def test_values_by_name_are_finite_and_complete():
    found = finite_values('joint_states', ['b', 'x', 'a'], [2.0, math.nan, 1.0], ['a', 'b'])
    np.testing.assert_array_equal(found, [1.0, 2.0])
    with pytest.raises(InputError, match='joint_states has no value for c'):
        finite_values('joint_states', ['a'], [1.0], ['c'])
    with pytest.raises(InputError, match='joint_states has nan for a, allowed: finite'):
        finite_values('joint_states', ['a'], [math.nan], ['a'])
