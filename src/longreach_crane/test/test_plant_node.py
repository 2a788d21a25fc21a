"""The crane as a node: its commands, and what it refuses."""

import math

from longreach_msgs.msg import CraneCommand, CraneSensors

from longreach_crane.machine import Command
from longreach_crane.nodes import PlantNode
from longreach_node.testing import bench, setting


def test_forces_of_the_motor_act_before_and_after_a_command_the_brake():
    with bench(*setting(start_paused=True, command_timeout=0.05, start_timeout=0.0)) as b:
        sensors = b.listen(CraneSensors, 'sensors')
        plant = b.add(PlantNode)
        b.until(lambda: sensors, 'first sample')
        hand = b.publisher(CraneCommand, 'command')
        assert plant.command == Command(0.0, True)
        for force in (160.1, math.nan, -160.0):
            hand.publish(CraneCommand(force=force))
        b.until(lambda: plant.command == Command(-160.0, False), 'command')
        assert plant.simulation.incidents.counts['ignored commands'] == 2
        while plant.sample < 6:
            assert not plant.simulation.step_once()
        assert plant.command == Command(-160.0, False)
        assert not plant.simulation.step_once()
        # 0.06 s after the sample that the command answered.
        assert plant.command == Command(0.0, True)
