"""The crane file: C13R's numbers, and what is refused."""

import pytest
import yaml

from longreach_crane.parameters import CraneParameters, default_file, load_machinery
from longreach_dynamics.errors import InputError

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
        ('crane', 'minimum_position', 5.0, r'crane: minimum_position = 5 m, allowed: below'),
        ('design', 'observer_poles', [[0.0, 0.0], *POLES], r'allowed: a negative real part'),
        ('design', 'observer_poles', [[-1.0, 2.0], *POLES], r'conjugate \[-1\.0, -2\.0\]; add'),
    ],
)
def test_refusals(section, key, value, message, tmp_path):
    content = yaml.safe_load(default_file().read_text())
    content[section][key] = value
    file = tmp_path / 'my_crane.yaml'
    file.write_text(yaml.safe_dump(content))
    with pytest.raises(InputError, match=rf'my_crane\.yaml: .*{message}'):
        load_machinery(file)
