"""Crane file and scenarios: C13R's numbers, what they say about every cycle, what is refused."""

import pytest
import yaml

from longreach_crane.parameters import CraneParameters, default_file, load_machinery
from longreach_crane.scenario import Scenario, SetPoint, load_scenario
from longreach_crane.simulation import simulate
from longreach_crane.spec import CRANE
from longreach_dynamics.errors import InputError

T = 0.01
TASK_C = CRANE.find_scenario('task_c')
POLES = [[-1.0, 0.0], [-2.0, 0.0], [-3.0, 1.0], [-3.0, -1.0]]


def test_the_installed_file_is_table_1_and_table_3(machinery):
    assert machinery.crane == CraneParameters(
        car_mass=10.0,
        load_mass=100.0,
        cable_length=5.0,
        gravity=9.81,
        car_friction=0.5,
        brake_friction=1e5,
        load_friction=0.001,
        motor_rate=4.0,
        minimum_position=-5.0,
        maximum_position=5.0,
    )
    controller = machinery.controller
    assert (controller.sample_time, controller.maximum_force) == (0.01, 160.0)
    assert (controller.brake_condition, controller.steady_time) == (0.01, 3.0)
    assert (controller.matrices, controller.output) == ('auto', 'same_cycle')


@pytest.mark.parametrize(
    ('section', 'key', 'value', 'message'),
    [
        ('crane', 'car_mass', 0, r'crane\.car_mass = 0, allowed: \[0\.001, 1e\+09\] kg'),
        ('crane', 'minimum_position', 5.0, r'crane: minimum_position = 5.* m, allowed: below'),
        ('design', 'observer_poles', [[0.0, 0.0], *POLES], r'allowed: a negative real part'),
        ('design', 'observer_poles', [[-1.0, 2.0], *POLES], r'conjugate \[-1\.0, -2\.0\]; add'),
        ('set_points', 1, {'time': 16.003}, r'set_points\[1\]\.time = 16\.003 s, allowed: who'),
        ('set_points', 1, {'time': 0.0}, r'set_points\[1\]\.time = 0\.0 s, allowed: after'),
        ('disturbances', 0, {'time': 42.001}, r'\[0\]\.time = 42\.001 s, allowed: whole'),
        ('disturbances', 1, {'duration': 1.005}, r'\[1\]\.duration = 1\.005 s, allowed: whole'),
    ],
)
def test_refusals(section, key, value, message, tmp_path):
    is_crane = section in ('crane', 'design')
    content = yaml.safe_load((default_file() if is_crane else TASK_C).read_text())
    content[section][key] = value if is_crane else content[section][key] | value
    file = tmp_path / 'mine.yaml'
    file.write_text(yaml.safe_dump(content))
    with pytest.raises(InputError, match=rf'mine\.yaml: .*{message}'):
        load_machinery(file) if is_crane else load_scenario(file, T)


def test_set_points_hold_from_their_cycle_on(task_c):
    expected = {0: 3.0, 1599: 3.0, 1600: -0.5, 3599: -0.5, 3600: 3.8, 6000: 3.8}
    for cycle, position in expected.items():
        assert task_c.set_point(cycle, T) == position
    late = Scenario(duration=1.0, set_points=(SetPoint(0.07, -1.0),))
    # 7 * 0.01 is 0.07 only after rounding.
    assert [late.set_point(cycle, T) for cycle in (0, 6, 7)] == [0.0, 0.0, -1.0]


def test_a_run_may_have_another_duration_than_the_file(machinery, task_c):
    scenario = task_c.replace(duration=60.005)
    scenario.check_cycles(T)
    assert simulate(machinery, scenario.replace(duration=T)).table[-1, 0] == T
    with pytest.raises(InputError, match=r'duration = 60\.005 s, allowed: whole steps'):
        simulate(machinery, scenario)
