"""``longreach crane``: what it prints, writes and refuses."""

import numpy as np
import pytest
from rclpy.node import Node
from std_msgs.msg import Float64

from longreach_node import qos
from longreach_node.testing import bench
from longreach_tools.testing import Outcome


def test_task_a(capsys):
    result = Outcome(capsys, 'crane', 'c13r', '--task', 'a', '--format', 'json').json
    assert [row['disturbance'] for row in result['rows']] == [-750.0, -800.0, -850.0]
    for row in result['rows']:
        assert row['difference'] == row['nonlinear'] - row['linear']
        assert 0.0 < row['error_estimate'] < 1e-9
        # 15 s of 160 N and 3 s of the disturbance, used up by friction.
        limit = (2400.0 + 3.0 * row['disturbance']) / 0.501
        assert row['limit'] == pytest.approx(limit, rel=1e-12)


@pytest.mark.parametrize(
    ('words', 'error'),
    [
        (['c13r', '--task', 'a', '--plot', 'a.png'], '--plot, allowed with --task b | c; task a'),
        (['c13r', '--task', 'a', '--brake=rigid'], '--brake, allowed with --task b | c'),
        (['set-point', 'nan'], 'nan, allowed: finite numbers'),
        (
            ['run', '--matrices', 'designed', '--set', 'controller.matrices=auto'],
            '--set controller.matrices, allowed: without the option that gives it',
        ),
    ],
)
def test_bad_arguments(capsys, words, error):
    Outcome(capsys, 'crane', *words).refused(error)


def test_design_says_which_crane_it_is_for(capsys, tmp_path):
    result = Outcome(capsys, 'crane', 'design', '--format', 'json').json
    assert np.shape(result['M']) == (5, 5)
    assert all(np.shape(result[name]) == (5,) for name in ('b', 'd', 'h'))
    assert np.shape(result['closed_loop_poles']) == (10, 2)
    assert result['changed_from_c13r'] == {}
    assert 0.01 < result['deviation_of_h_from_c13r'] < 0.5
    words = ('--set', 'crane.cable_length=7.5', '--set', 'controller.sample_time=0.02')
    found = Outcome(capsys, 'crane', 'design', *words, '--format', 'json').json
    assert found['changed_from_c13r'] == {
        'cable_length': {'value': 7.5, 'c13r': 5.0},
        'sample_time': {'value': 0.02, 'c13r': 0.01},
    }


@pytest.mark.parametrize('value', ['2.5', '-0.5'])
def test_a_set_point_arrives(capsys, value):
    heard = []
    with bench() as b:
        controller = b.add(lambda: Node('controller'))
        controller.create_subscription(Float64, '/north/set_point', heard.append, qos.SET_POINT)
        # The command spins a context of its own; the message waits in the reader's queue.
        done = Outcome(capsys, 'crane', 'set-point', value, '--namespace', 'north')
        assert done.code == 0, done.err
        assert done.out == f'set point {value} m sent to /north/set_point\n'
        b.until(lambda: heard)
    assert [message.data for message in heard] == [float(value)]
