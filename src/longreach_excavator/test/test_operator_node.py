"""The operator's station as a node: bad orders, and the closed loop with the plant."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticArray
from longreach_msgs.msg import HydraulicState, ValveCommand
from sensor_msgs.msg import JointState, Joy
from std_msgs.msg import Header

from longreach_dynamics.machine import step_time
from longreach_dynamics.teleoperation import OperatorState, Order
from longreach_excavator.linkage import CYLINDERS
from longreach_excavator.machine import Excavator
from longreach_excavator.motion import HEAD, RATE, ROD, SPOOL
from longreach_excavator.operator_node import OperatorNode
from longreach_excavator.parameters import ExcavatorParameters, default_file
from longreach_excavator.plant_node import PlantNode
from longreach_excavator.scenario import resting_scenario
from longreach_excavator.state import CLOSED
from longreach_excavator.teleoperation import Measurement, Teleoperation, load_teleoperation
from longreach_node import diagnostics, qos
from longreach_node.stamps import nanoseconds_of, stamp_of
from longreach_node.testing import Bench, bench, setting

JOINTS = [f'{name}_joint' for name in CYLINDERS]
INSTALLED = default_file().with_name('teleoperation.yaml')


def measured(k: int) -> Measurement:
    """Return a sample of an excavator that moves; not a solution of anything."""
    angles = np.radians([20.0, -80.0, -20.0]) + 0.02 * math.sin(0.3 * k)
    return Measurement(
        k * SAMPLE * 1e-9,
        angles,
        np.full(3, 0.1 * math.cos(0.2 * k)),
        np.array([1.2e7, 5e6, 6e6]) + 1e5 * k,
        np.array([6e6, 8e6, 6e6]),
    )


FORWARD = [0.0, 0.0, 0.0, 0.0, 1.0]


def file_with(directory: Path, **values: object) -> Path:
    """Write the installed teleoperation file with other values."""
    lines = INSTALLED.read_text().splitlines()
    for name, value in values.items():
        (place,) = (k for k, line in enumerate(lines) if line.startswith(f'{name}:'))
        lines[place] = f'{name}: {value}'
    file = directory / 'teleoperation.yaml'
    file.write_text('\n'.join(lines))
    return file


class Rig:
    """A station, and a driver in the place of plant and person."""

    def __init__(self, b: Bench) -> None:
        self.bench = b
        self.commands: list[ValveCommand] = b.listen(ValveCommand, 'cylinder_command')
        self.reports: list[DiagnosticArray] = b.listen(
            DiagnosticArray, '/diagnostics', qos.DIAGNOSTICS
        )
        self.node = b.add(OperatorNode)
        self.joints = b.publisher(JointState, 'joint_states')
        self.hydraulics = b.publisher(HydraulicState, 'hydraulics')
        self.joy = b.publisher(Joy, 'joy', qos.SET_POINT)
        self.rates = b.publisher(JointState, 'joint_velocity', qos.SET_POINT)
        b.until(lambda: b.driver.count_publishers('cylinder_command') == 1)

    def order(self, publisher: Callable[[], object]) -> None:
        """Let an order come through."""
        before = self.node._state.given
        publisher()
        self.bench.until(lambda: self.node._state.given > before, 'order')

    def sticks(self, axes: list[float]) -> None:
        self.order(lambda: self.joy.publish(Joy(axes=axes)))

    def turn(self, *rates: float) -> None:
        self.order(lambda: self.rates.publish(JointState(velocity=rates)))

    def send_joints(self, k: int) -> None:
        sample = measured(k)
        header = Header(stamp=stamp_of(k * SAMPLE))
        self.joints.publish(
            JointState(header=header, name=JOINTS, position=sample.angles, velocity=sample.rates)
        )

    def send_hydraulics(self, k: int, head: float | None = None) -> None:
        sample = measured(k)
        self.hydraulics.publish(
            HydraulicState(
                header=Header(stamp=stamp_of(k * SAMPLE)),
                name=list(CYLINDERS),
                head_pressure=sample.head_pressures if head is None else [head] * 3,
                rod_pressure=sample.rod_pressures,
            )
        )

    def send(self, *samples: int) -> None:
        for k in samples:
            self.send_joints(k)
            self.send_hydraulics(k)

    def answers(self, count: int) -> list[tuple[int, tuple[float, ...]]]:
        """Wait for so many commands, and make sure that there are no more."""
        self.bench.until(lambda: len(self.commands) >= count, f'command number {count}')
        self.bench.settle(10)
        assert len(self.commands) == count
        return [(nanoseconds_of(c.header.stamp) // SAMPLE, tuple(c.spool)) for c in self.commands]


SAMPLE = 10_000_000  # [ns]
PERIOD = 0.01  # [s]
pytestmark = pytest.mark.usefixtures('patient')


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    """A station whose orders do not grow old."""
    file = file_with(tmp_path, timeout=60.0)
    with bench('-p', f'operator:teleoperation:={file}') as b:
        yield Rig(b)


def test_it_stops_when_nobody_says_anything(tmp_path: Path) -> None:
    file = file_with(tmp_path, timeout=0.2)
    with bench('-p', f'operator:teleoperation:={file}') as b:
        rig = Rig(b)
        rig.sticks(FORWARD)
        count = 0

        def stopped() -> bool:
            nonlocal count
            # One sample at a time: a flood loses halves of samples.
            if len(rig.commands) == count:
                count += 1
                rig.send(count)
            return bool(rig.commands) and tuple(rig.commands[-1].spool) == CLOSED.spools

        b.until(stopped, 'stop')
        # A new order begins anew.
        rig.sticks(FORWARD)
        rig.send(count + 1)
        b.until(lambda: rig.commands[-1].spool[0] == -1.0, 'motion')


def test_bad_samples_are_not_used(rig: Rig, capfd: pytest.CaptureFixture[str]) -> None:
    rig.sticks(FORWARD)
    rig.send_joints(0)
    rig.send_hydraulics(0, head=math.nan)
    rig.send(1)
    assert [k for k, _ in rig.answers(1)] == [1]
    said = ''.join(capfd.readouterr())
    assert 'sample of 0.000000 s is not used: hydraulics has nan for boom' in said
    assert said.count('2 senders of orders on /joy, /joint_velocity: the latest') == 1
    # A second later it stands in the diagnostics.
    rig.send(100)
    rig.bench.until(lambda: rig.reports, 'report')
    status = rig.reports[-1].status[0]
    assert status.level == diagnostics.WARN
    counts = {pair.key: pair.value for pair in status.values}
    assert (counts['unpaired'], counts['invalid']) == ('0', '1')


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
    file.write_text(INSTALLED.read_text().replace('timeout: 0.5', 'timeout: 60.0'))
    words = setting('plant', real_time_factor=0.0, lockstep=True, duration=0.5)
    words += setting('plant', publish_rate=1.0 / PERIOD)
    rates = (0.15, 0.1, -0.2)
    with bench(*words, *setting('operator', teleoperation=file)) as b:
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
