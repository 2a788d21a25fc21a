"""The operator's station as a node: bad samples and orders, and the closed loop with the plant."""

import math

import numpy as np
import pytest
from longreach_msgs.msg import HydraulicState, ValveCommand
from sensor_msgs.msg import JointState, Joy
from std_msgs.msg import Header

from longreach_excavator.linkage import CYLINDERS
from longreach_excavator.machine import CLOSED
from longreach_excavator.nodes import OperatorNode
from longreach_excavator.parameters import default_file
from longreach_node import qos
from longreach_node.stamps import nanoseconds_of, stamp_of
from longreach_node.testing import bench, setting

SAMPLE = 10_000_000  # [ns]
pytestmark = pytest.mark.usefixtures('patient')


def ending(directory, timeout):
    """Return the installed teleoperation file with orders that grow old at another time [s]."""
    installed = default_file().with_name('teleoperation.yaml').read_text()
    file = directory / 'teleoperation.yaml'
    file.write_text(installed.replace('timeout: 0.5', f'timeout: {timeout}'))
    return file


class Rig:
    """A station, and a driver in the place of plant and person."""

    def __init__(self, b):
        self.bench = b
        self.commands = b.listen(ValveCommand, 'cylinder_command')
        self.node = b.add(OperatorNode)
        self.joints = b.publisher(JointState, 'joint_states')
        self.hydraulics = b.publisher(HydraulicState, 'hydraulics')
        self.joy = b.publisher(Joy, 'joy', qos.SET_POINT)
        b.until(lambda: b.driver.count_publishers('cylinder_command') == 1)

    def push_forward(self):
        """Push the right stick, and wait until the order has come through."""
        before = self.node._state.given
        self.joy.publish(Joy(axes=[0.0, 0.0, 0.0, 0.0, 1.0]))
        self.bench.until(lambda: self.node._state.given > before, 'order')

    def send(self, k, pressure=1e7):
        header, still = Header(stamp=stamp_of(k * SAMPLE)), [0.0] * 3
        joints, angles = [f'{name}_joint' for name in CYLINDERS], np.radians([20.0, -80.0, -20.0])
        self.joints.publish(
            JointState(header=header, name=joints, position=angles, velocity=still)
        )
        pressures = {'head_pressure': [pressure] * 3, 'rod_pressure': [6e6] * 3}
        self.hydraulics.publish(HydraulicState(header=header, name=CYLINDERS, **pressures))


def test_it_stops_when_nobody_says_anything(tmp_path):
    with bench(*setting('operator', teleoperation=ending(tmp_path, 0.2))) as b:
        rig = Rig(b)
        rig.push_forward()
        count = 0

        def stopped():
            nonlocal count
            # One sample at a time: a flood loses halves of samples.
            if len(rig.commands) == count:
                count += 1
                rig.send(count)
            return bool(rig.commands) and tuple(rig.commands[-1].spool) == CLOSED.spools

        b.until(stopped, 'stop')
        # A new order begins anew.
        rig.push_forward()
        rig.send(count + 1)
        b.until(lambda: rig.commands[-1].spool[0] == -1.0, 'motion')


def test_bad_samples_are_not_used(tmp_path, capfd):
    with bench(*setting('operator', teleoperation=ending(tmp_path, 60.0))) as b:
        rig = Rig(b)
        b.publisher(JointState, 'joint_velocity', qos.SET_POINT)
        for k, pressure in enumerate((math.nan, 1e7)):
            rig.push_forward()
            rig.send(k, pressure)
        b.until(lambda: rig.commands, 'command')
        b.settle(10)
    assert [nanoseconds_of(command.header.stamp) for command in rig.commands] == [SAMPLE]
    said = ''.join(capfd.readouterr())
    assert 'sample of 0.000000 s is not used: hydraulics has nan for boom' in said
    assert said.count('2 senders of orders on /joy, /joint_velocity: the latest') == 1


@pytest.mark.parametrize(
    ('order', 'text'),
    [
        (Joy(axes=[0.0, 0.0]), 'ignored: joy has 2 axes, allowed with'),
        (Joy(axes=[1.0, 0.0, 0.0, 0.0, 0.0]), 'this excavator does not swing'),
        (JointState(velocity=[0.1, math.nan, 0.0]), 'for arm_joint = nan rad/s, allowed: finite'),
    ],
)
def test_orders_that_cannot_be_are_ignored_and_said(capfd, order, text):
    with bench() as b:
        node = b.add(OperatorNode)
        (node.on_joy if isinstance(order, Joy) else node._on_joint_velocity)(order)
        assert not node._state.engaged
    assert text in ''.join(capfd.readouterr())
