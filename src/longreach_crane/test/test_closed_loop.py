"""
Plant and controller together, in one process and one thread.

In lockstep they must give what the library's own simulation gives, to the last bit.
"""

from pathlib import Path

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


class Loop:
    """Plant and controller of the crane."""

    def __init__(self, b):
        self.bench = b
        self.joints = b.listen(JointState, 'joint_states')
        self.commands = b.listen(CraneCommand, 'command')
        self.statuses = b.listen(CraneStatus, 'status')
        self.controller = b.add(ControllerNode)
        self.plant = b.add(PlantNode)

    def table(self):
        """Return what was published as the library's columns without the load's position."""
        return np.array(
            [
                (
                    nanoseconds_of(j.header.stamp) * 1e-9,
                    j.effort[0],
                    *(j.position[0], j.velocity[0], j.position[1], j.velocity[1]),
                    *(c.force, c.brake, s.emergency_mode),
                )
                for j, c, s in zip(self.joints, self.commands, self.statuses, strict=True)
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
    words = setting(lockstep=True, scenario=file)
    words += setting('plant', real_time_factor=0.0, duration=12.0, **arguments)
    for node, names in (('plant', ('brake', 'model')), ('controller', ('output', 'matrices'))):
        words += setting(node, **{name: variant[name] for name in names if name in variant})
    with bench(*words) as b:
        loop = Loop(b)
        b.until(loop.plant.done.done, 'end')
        b.until(lambda: len(loop.commands) == len(loop.statuses) == len(loop.joints) == 1201)
    expected = simulate(
        machinery.with_variants(variant.get('matrices'), variant.get('output')),
        load_scenario(file, 0.01),
        variant.get('model', 'nonlinear'),
        variant.get('brake', 'viscous'),
    )
    columns = [0, 1, 2, 3, 4, 5, 7, 8, 9]
    names = [event.name for event in expected.events]
    assert 'emergency' in names
    if not variant:
        assert names[0] == 'brake_engaged'
    if arguments:
        # Four steps a cycle: the same to the tolerance of the integration.
        assert loop.table() == pytest.approx(expected.table[:, columns], abs=1e-8)
    else:
        np.testing.assert_array_equal(loop.table()[:, 1:], expected.table[:, columns[1:]])


def test_another_crane_with_another_cycle(machinery, tmp_path):
    crane, file = tmp_path / 'crane.yaml', tmp_path / 'scenario.yaml'
    other = machinery.replace(
        crane=machinery.crane.replace(car_mass=20.0, cable_length=3.0, maximum_position=3.0),
        controller=machinery.controller.replace(sample_time=0.02, output='next_cycle'),
    )
    crane.write_text(yaml.safe_dump(other.as_mapping()))
    file.write_text('duration: 4.0\nset_points: [{time: 0.5, car_position: 1.0}]\n')
    words = setting(lockstep=True, scenario=file, file=crane)
    words += setting('plant', step=0.02, publish_rate=50.0, duration=4.0, real_time_factor=0.0)
    with bench(*words) as b:
        loop = Loop(b)
        b.until(loop.plant.done.done, 'end')
        b.until(lambda: len(loop.commands) == len(loop.statuses) == len(loop.joints) == 201)
    expected = simulate(other, load_scenario(file, 0.02))
    np.testing.assert_array_equal(loop.table()[:, 1:], expected.table[:, [1, 2, 3, 4, 5, 7, 8, 9]])


def test_without_its_controller_the_plant_brakes_and_a_new_one_takes_over(tmp_path):
    file = tmp_path / 'scenario.yaml'
    file.write_text('duration: 60.0\nset_points: [{time: 0.0, car_position: 2.0}]\n')
    words = setting(scenario=file) + setting('controller', use_sim_time=True)
    words += setting('plant', command_timeout=0.2, start_timeout=0.0)
    with bench(*words) as b:
        loop = Loop(b)
        b.until(lambda: loop.plant.sample > 50 and loop.plant.command.force != 0.0, 'a moving car')
        assert not loop.plant.command.brake
        b.remove(loop.controller)
        b.until(lambda: loop.plant.command.brake, 'brake after the command time-out')
        here = loop.plant.state.x[1]
        assert here > 0.05
        count = len(loop.statuses)
        b.add(ControllerNode)
        b.until(lambda: len(loop.statuses) > count, 'a status of the new controller')
        first = loop.statuses[count]
        # It begins where the car is, not at zero, and counts from there.
        assert first.car_position == pytest.approx(loop.plant.state.x[1], abs=0.05)
        assert first.missed_samples == 0
        b.until(lambda: not loop.plant.command.brake, 'brake released')
        b.until(lambda: loop.plant.state.x[1] > here + 0.05, 'the car on its way')
        assert not loop.statuses[-1].emergency_mode


def test_without_its_plant_the_controller_brakes(tmp_path: Path) -> None:
    words = setting('controller', use_sim_time=True)
    with bench(*words, *setting('plant', start_timeout=0.0)) as b:
        loop = Loop(b)
        b.until(lambda: len(loop.statuses) > 10, 'a running loop')
        b.remove(loop.plant)
        # Neither samples nor /clock come: the wall's time leads to the emergency mode.
        b.until(lambda: loop.statuses[-1].emergency_mode, 'emergency mode')
        assert loop.statuses[-1].emergency_reason == CraneStatus.REASON_SENSOR_TIMEOUT
        b.until(lambda: loop.commands[-1].brake)
        assert loop.commands[-1].force == 0.0
        predictions = loop.statuses[-1].missed_samples
        assert predictions >= 51
