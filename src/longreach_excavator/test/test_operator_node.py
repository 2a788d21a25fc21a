"""
The operator's station as a node: fed sample by sample, and in a closed loop with the plant.

What it must answer is said by the library: Teleoperation cycle by cycle.
"""

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
from longreach_excavator.parameters import ExcavatorParameters
from longreach_excavator.plant_node import PlantNode
from longreach_excavator.scenario import resting_scenario
from longreach_excavator.state import CLOSED
from longreach_excavator.teleoperation import (
    Measurement,
    Teleoperation,
    default_file,
    load_teleoperation,
)
from longreach_node import diagnostics, qos, samples
from longreach_node.stamps import nanoseconds_of, stamp_of
from longreach_node.testing import Bench, bench

SAMPLE = 10_000_000  # [ns]
PERIOD = 0.01  # [s]
FORWARD = [0.0, 0.0, 0.0, 0.0, 1.0]
MIDDLE = [0.0] * 5
JOINTS = [f'{name}_joint' for name in CYLINDERS]


def file_with(directory: Path, **values: object) -> Path:
    """Write the installed teleoperation file with other values."""
    lines = default_file().read_text().splitlines()
    for name, value in values.items():
        (place,) = (k for k, line in enumerate(lines) if line.startswith(f'{name}:'))
        lines[place] = f'{name}: {value}'
    file = directory / 'teleoperation.yaml'
    file.write_text('\n'.join(lines))
    return file


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


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let messages wait: this machine may stand still for longer than is usual."""
    monkeypatch.setattr(samples, 'STALE', math.inf)


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    """A station whose orders do not grow old."""
    file = file_with(tmp_path, timeout=60.0)
    with bench('-p', f'operator:teleoperation:={file}') as b:
        yield Rig(b)


@pytest.fixture(scope='module')
def excavator(standard: ExcavatorParameters) -> ExcavatorParameters:
    """What nodes run by default."""
    return standard


@pytest.fixture
def station(excavator: ExcavatorParameters) -> Teleoperation:
    return Teleoperation(load_teleoperation().replace(timeout=60.0), excavator)


def test_until_somebody_moves_a_stick_the_scenario_acts(rig: Rig) -> None:
    rig.sticks(MIDDLE)
    rig.send(0, 1, 2)
    assert rig.answers(0) == []
    rig.sticks(FORWARD)
    rig.send(3, 4)
    assert rig.answers(2) == [(3, (-1.0, 0.0, 0.0)), (4, (-1.0, 0.0, 0.0))]
    rig.sticks(MIDDLE)
    rig.send(5)
    assert rig.answers(3)[-1] == (5, CLOSED.spools)
    assert rig.commands[0].name == list(CYLINDERS)
    assert rig.commands[0].header.frame_id == 'excavator_base'
    assert not len(rig.commands[0].force)


def test_velocities_give_the_librarys_commands(rig: Rig, station: Teleoperation) -> None:
    rates = (0.1, -0.2, 0.05)
    rig.turn(*rates)
    rig.send(*range(30))
    told = rig.answers(30)
    state = station.take(OperatorState(), Order(rates=rates), 0.0)
    for k in range(30):
        state, command = station.cycle(state, measured(k), 0.0)
        assert command is not None
        assert told[k] == (k, command.spools)
    assert len(set(told)) == 30


def test_the_file_says_which_stick_does_what(tmp_path: Path) -> None:
    file = file_with(tmp_path, timeout=60.0, pattern='sae')
    with bench('-p', f'operator:teleoperation:={file}') as b:
        rig = Rig(b)
        rig.sticks(FORWARD)
        rig.send(0)
        assert rig.answers(1) == [(0, (0.0, -1.0, 0.0))]


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


def test_what_cannot_be_is_ignored_and_said(rig: Rig, capfd: pytest.CaptureFixture[str]) -> None:
    rig.sticks(FORWARD)
    rig.joy.publish(Joy(axes=[0.0, 0.0]))
    rig.rates.publish(JointState(name=['swing_joint'], velocity=[0.1]))
    rig.bench.settle()
    rig.send(0)
    assert rig.answers(1) == [(0, (-1.0, 0.0, 0.0))]
    assert 'ignored: joy has 2 axes, allowed with' in ''.join(capfd.readouterr())


def test_bad_rates_are_said(rig: Rig, capfd: pytest.CaptureFixture[str]) -> None:
    rig.rates.publish(JointState(velocity=[0.1, math.nan, 0.0]))
    rig.bench.settle()
    said = ''.join(capfd.readouterr())
    assert 'ignored: joint_velocity for arm_joint = nan rad/s, allowed: finite' in said
    assert not rig.node._state.engaged


def test_the_swing_is_mentioned_once(rig: Rig, capfd: pytest.CaptureFixture[str]) -> None:
    for _ in range(5):
        rig.sticks([1.0, 0.0, 0.0, 0.0, 0.0])
    assert ''.join(capfd.readouterr()).count('does not swing') == 1
    assert not rig.node._state.engaged


def test_bad_samples_are_not_used(rig: Rig, capfd: pytest.CaptureFixture[str]) -> None:
    rig.sticks(FORWARD)
    rig.send_joints(0)
    rig.send_hydraulics(0, head=math.nan)
    rig.send(1)
    assert [k for k, _ in rig.answers(1)] == [1]
    said = ''.join(capfd.readouterr())
    assert 'sample of 0.000000 s is not used: hydraulics has nan for boom' in said
    # A second later it stands in the diagnostics.
    rig.send(100)
    rig.bench.until(lambda: rig.reports, 'report')
    status = rig.reports[-1].status[0]
    assert status.level == diagnostics.WARN
    counts = {pair.key: pair.value for pair in status.values}
    assert (counts['unpaired'], counts['invalid']) == ('0', '1')


def test_in_lockstep_with_the_plant_it_is_the_librarys_closed_loop(
    tmp_path: Path, excavator: ExcavatorParameters, station: Teleoperation
) -> None:
    words = [f'operator:teleoperation:={file_with(tmp_path, timeout=60.0)}']
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
    machine = Excavator(excavator, resting_scenario(excavator))
    state = machine.initial_state()
    at_levers = station.take(OperatorState(), Order(rates=rates), 0.0)
    for k in range(50):
        y = state.y
        sample = Measurement(k * SAMPLE * 1e-9, y[:RATE], y[RATE:HEAD], y[HEAD:ROD], y[ROD:SPOOL])
        at_levers, command = station.cycle(at_levers, sample, 0.0)
        assert command is not None
        state = machine.advance(state, command, step_time(k, PERIOD), PERIOD)
    np.testing.assert_array_equal(plant.state.y, state.y)
    assert np.abs(state.y[RATE:HEAD]).min() > 0.05
