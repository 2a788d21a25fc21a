"""Scenarios: what they say about every cycle, and how mistakes in their files are refused."""

import pytest

from longreach_crane.parameters import load_machinery
from longreach_crane.scenario import Scenario, SetPoint, load_scenario
from longreach_crane.simulation import simulate
from longreach_crane.spec import CRANE
from longreach_dynamics.errors import InputError

T = 0.01
TASK_C = CRANE.find_scenario('task_c').read_text()


def test_set_points_hold_from_their_cycle_on(task_c):
    expected = {0: 3.0, 1599: 3.0, 1600: -0.5, 3599: -0.5, 3600: 3.8, 6000: 3.8}
    for cycle, position in expected.items():
        assert task_c.set_point(cycle, T) == position
    late = Scenario(duration=1.0, set_points=(SetPoint(0.07, -1.0),))
    # 7 * 0.01 is 0.07 only after rounding.
    assert [late.set_point(cycle, T) for cycle in (0, 6, 7)] == [0.0, 0.0, -1.0]


@pytest.mark.parametrize(
    ('old', 'new', 'message'),
    [
        ('{time: 16.0', '{time: 16.003', r'yaml: set_points\[1\]\.time = 16\.003 s, allowed: who'),
        ('time: 42.0', 'time: 42.001', r'yaml: disturbances\[0\]\.time = 42\.001 s, allowed: who'),
        ('time: 46.0, duration: 1.0', 'time: 46.0, duration: 1.005',
         r'yaml: disturbances\[1\]\.duration = 1\.005 s, allowed: who'),
        ('{time: 16.0', '{time: 0.0', r'set_points\[1\]\.time = 0\.0 s, allowed: after'),
    ],
)  # fmt: skip
def test_mistakes_are_refused_by_path(old, new, message, tmp_path):
    file = tmp_path / 'scenario.yaml'
    file.write_text(TASK_C.replace(old, new, 1))
    with pytest.raises(InputError, match=message):
        load_scenario(file, T)


def test_a_run_may_have_another_duration_than_the_file(tmp_path):
    file = tmp_path / 'scenario.yaml'
    file.write_text(TASK_C.replace('duration: 60.0', 'duration: 60.005', 1))
    scenario, machinery = load_scenario(file, T), load_machinery()
    assert simulate(machinery, scenario.replace(duration=T)).table[-1, 0] == T
    with pytest.raises(InputError, match=r'duration = 60\.005 s, allowed: whole steps'):
        simulate(machinery, scenario)
