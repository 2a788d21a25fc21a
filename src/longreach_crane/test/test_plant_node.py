"""The crane as a node: sensors, commands, and what it refuses."""

import math

import pytest
from longreach_msgs.msg import CraneCommand, CraneSensors
from sensor_msgs.msg import JointState
from std_msgs.msg import Header

from longreach_crane.machine import Command
from longreach_crane.plant_node import PlantNode
from longreach_dynamics.errors import InputError
from longreach_node.stamps import stamp_of
from longreach_node.testing import bench, setting

CYCLE = 10_000_000  # [ns]
LOCKSTEP = setting('plant', lockstep=True, real_time_factor=0.0)


class Rig:
    """A plant, and a driver in the controller's place."""

    def __init__(self, b):
        self.bench = b
        self.sensors = b.listen(CraneSensors, 'sensors')
        self.joints = b.listen(JointState, 'joint_states')
        self.commands = b.driver.create_publisher(CraneCommand, 'command', 10)
        self.plant = b.add(PlantNode)
        b.until(lambda: self.sensors and self.joints, 'first sample')

    def send(self, force, brake=False, cycle=None):
        cycle = len(self.sensors) - 1 if cycle is None else cycle
        header = Header(stamp=stamp_of(cycle * CYCLE))
        self.commands.publish(CraneCommand(header=header, force=force, brake=brake))

    def cycle(self, force, brake=False):
        """Answer the latest sample and wait for the next one."""
        count = len(self.sensors)
        self.send(force, brake)
        self.bench.until(lambda: len(self.sensors) == len(self.joints) == count + 1)


def test_a_force_beyond_that_of_the_motor_is_no_answer():
    with bench(*LOCKSTEP) as b:
        rig = Rig(b)
        rig.send(160.1)
        rig.send(math.nan)
        b.settle()
        assert len(rig.sensors) == 1
        rig.cycle(160.0)
        assert rig.plant.command == Command(160.0, False)


def test_it_stands_on_its_brake_until_a_command_comes_and_after_the_last():
    with bench(*setting(start_paused=True, command_timeout=0.05, start_timeout=0.0)) as b:
        rig = Rig(b)
        plant = rig.plant
        assert plant.command == Command(0.0, True)
        assert not plant.simulation.step_once()
        rig.send(50.0, cycle=1)
        b.until(lambda: plant.command == Command(50.0, False))
        while plant.sample < 7:
            assert not plant.simulation.step_once()
        assert plant.command == Command(50.0, False)
        assert not plant.simulation.step_once()
        # 0.06 s after the sample that the last command answered.
        assert plant.command == Command(0.0, True)


def test_a_rate_that_is_not_that_of_the_control_cycle_is_refused():
    error = r'publish_rate = 30\.0 Hz, allowed with .* 0\.01 s .*: 100 Hz, or 0'
    with bench('-p', 'plant:publish_rate:=30.0') as b, pytest.raises(InputError, match=error):
        b.add(PlantNode)
