"""
Plant and controller together, in one process and one thread.

In lockstep they must give what the library's own simulation gives, to the last bit.
"""

import numpy as np
import pytest
import yaml
from longreach_msgs.msg import CraneCommand, CraneStatus
from sensor_msgs.msg import JointState

from longreach_crane.controller_node import ControllerNode
from longreach_crane.plant_node import PlantNode
from longreach_crane.scenario import load_scenario
from longreach_crane.simulation import simulate
from longreach_node.stamps import nanoseconds_of
from longreach_node.testing import bench, setting

# Goes into the brake by the rule, out of it, and beyond the limit: everything within 12 s.
SCENARIO = """
duration: 12.0
set_points:
  - {time: 6.0, car_position: 4.6}
disturbances:
  - {time: 8.0, duration: 1.0, force: 150.0}
  - {time: 8.5, duration: 1.0, force: 200.0}
"""


COLUMNS = [0, 1, 2, 3, 4, 5, 7, 8, 9]


def table(words, cycles):
    """Return what both nodes publish as the library's columns without the load's position."""
    with bench(*words, *setting(lockstep=True), *setting('plant', real_time_factor=0.0)) as b:
        joints = b.listen(JointState, 'joint_states')
        commands = b.listen(CraneCommand, 'command')
        statuses = b.listen(CraneStatus, 'status')
        b.add(ControllerNode)
        plant = b.add(PlantNode)
        b.until(plant.done.done, 'end')
        b.until(lambda: len(commands) == len(statuses) == len(joints) == cycles + 1)
    return np.array(
        [
            (
                round(nanoseconds_of(j.header.stamp) * 1e-9, 9),
                j.effort[0],
                *(j.position[0], j.velocity[0], j.position[1], j.velocity[1]),
                *(c.force, c.brake, s.emergency_mode),
            )
            for j, c, s in zip(joints, commands, statuses, strict=True)
        ]
    )


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(
    ('variant', 'arguments'),
    [
        ({}, {}),
        ({'output': 'next_cycle', 'brake': 'rigid'}, {}),
        ({'matrices': 'as_printed', 'model': 'linear'}, {}),
        ({}, {'step': 0.0025}),
    ],
)
def test_lockstep_equals_the_library(machinery, tmp_path, variant, arguments):
    file = tmp_path / 'scenario.yaml'
    file.write_text(SCENARIO)
    words = setting(scenario=file) + setting('plant', duration=12.0, **arguments)
    for node, names in (('plant', ('brake', 'model')), ('controller', ('output', 'matrices'))):
        words += setting(node, **{name: variant[name] for name in names if name in variant})
    found = table(words, 1200)
    given = {name: value for name, value in variant.items() if name in ('matrices', 'output')}
    expected = simulate(
        machinery.replace(controller=machinery.controller.replace(**given)),
        load_scenario(file, 0.01),
        variant.get('model', 'nonlinear'),
        variant.get('brake', 'viscous'),
    )
    names = [event.name for event in expected.events]
    assert 'emergency' in names
    if not variant:
        assert names[0] == 'brake_engaged'
    # With four steps a cycle the same to the tolerance of the integration.
    tolerance = 1e-8 if arguments else 0.0
    np.testing.assert_allclose(found, expected.table[:, COLUMNS], rtol=0.0, atol=tolerance)


def test_another_crane_with_another_cycle(machinery, tmp_path):
    crane, file = tmp_path / 'crane.yaml', tmp_path / 'scenario.yaml'
    other = machinery.replace(
        crane=machinery.crane.replace(car_mass=20.0, cable_length=3.0, maximum_position=3.0),
        controller=machinery.controller.replace(sample_time=0.02, output='next_cycle'),
    )
    crane.write_text(yaml.safe_dump(other.as_mapping()))
    file.write_text('duration: 4.0\nset_points: [{time: 0.5, car_position: 1.0}]\n')
    words = setting(scenario=file, file=crane)
    words += setting('plant', step=0.02, publish_rate=50.0, duration=4.0)
    expected = simulate(other, load_scenario(file, 0.02))
    np.testing.assert_array_equal(table(words, 200), expected.table[:, COLUMNS])
