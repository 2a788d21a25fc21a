"""The operator's station as a node: bad orders, and the closed loop with the plant."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from sensor_msgs.msg import JointState, Joy

from longreach_dynamics.machine import step_time
from longreach_dynamics.teleoperation import OperatorState, Order
from longreach_excavator.machine import Excavator
from longreach_excavator.motion import HEAD, RATE, ROD, SPOOL
from longreach_excavator.operator_node import OperatorNode
from longreach_excavator.parameters import ExcavatorParameters
from longreach_excavator.plant_node import PlantNode
from longreach_excavator.scenario import resting_scenario
from longreach_excavator.teleoperation import (
    Measurement,
    Teleoperation,
    default_file,
    load_teleoperation,
)
from longreach_node import qos, samples
from longreach_node.testing import bench

SAMPLE = 10_000_000  # [ns]
PERIOD = 0.01  # [s]


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let messages wait: this machine may stand still for longer than is usual."""
    monkeypatch.setattr(samples, 'STALE', math.inf)


@pytest.mark.parametrize(
    ('order', 'text'),
    [
        (Joy(axes=[0.0, 0.0]), 'ignored: joy has 2 axes, allowed with'),
        (Joy(axes=[1.0, 0.0, 0.0, 0.0, 0.0]), 'this excavator does not swing'),
        (JointState(name=['swing_joint'], velocity=[0.1]), "the joint 'swing_joint', allowed"),
        (JointState(velocity=[0.1, math.nan, 0.0]), 'for arm_joint = nan rad/s, allowed: finite'),
    ],
)
def test_orders_that_cannot_be_are_ignored_and_said(
    capfd: pytest.CaptureFixture[str], order: Joy | JointState, text: str
) -> None:
    with bench() as b:
        node = b.add(OperatorNode)
        (node.on_joy if isinstance(order, Joy) else node._on_joint_velocity)(order)
        assert not node._state.engaged
    assert text in ''.join(capfd.readouterr())


def test_in_lockstep_with_the_plant_it_is_the_librarys_closed_loop(
    tmp_path: Path, standard: ExcavatorParameters
) -> None:
    file = tmp_path / 'teleoperation.yaml'
    file.write_text(default_file().read_text().replace('timeout: 0.5', 'timeout: 60.0'))
    words = [f'operator:teleoperation:={file}']
    words += ['plant:real_time_factor:=0.0', 'plant:lockstep:=true', 'plant:duration:=0.5']
    words += [f'plant:publish_rate:={1.0 / PERIOD}']
    rates = (0.15, 0.1, -0.2)
    with bench(*(word for parameter in words for word in ('-p', parameter))) as b:
        operator = b.add(OperatorNode)
        # Before the order, which would grow old while a plant compiles its kernels. The sample of
        # time 0 is not answered before somebody has asked for motion; the plant repeats it.
        plant = b.add(PlantNode)
        publisher = b.publisher(JointState, 'joint_velocity', qos.SET_POINT)
        publisher.publish(JointState(velocity=rates))
        b.until(lambda: operator._state.engaged, 'order')
        b.until(plant.done.done, 'end')
    machine = Excavator(standard, resting_scenario(standard))
    state, station = machine.initial_state(), Teleoperation(load_teleoperation(file), standard)
    at_levers = station.take(OperatorState(), Order(rates=rates), 0.0)
    for k in range(50):
        y = state.y
        sample = Measurement(k * SAMPLE * 1e-9, y[:RATE], y[RATE:HEAD], y[HEAD:ROD], y[ROD:SPOOL])
        at_levers, command = station.cycle(at_levers, sample, 0.0)
        assert command is not None
        state = machine.advance(state, command, step_time(k, PERIOD), PERIOD)
    np.testing.assert_array_equal(plant.state.y, state.y)
    assert np.abs(state.y[RATE:HEAD]).min() > 0.05
