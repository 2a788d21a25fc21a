"""The shipped launch file of the excavator, started as a user would, from the outside."""

from __future__ import annotations

import functools
import os
import signal
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from longreach_msgs.msg import HydraulicState, PinForces, Terrain, ValveCommand
from rclpy.serialization import deserialize_message
from sensor_msgs.msg import JointState, Joy

from longreach_dynamics.machine import BY_SCENARIO, step_time
from longreach_dynamics.resources import share_directory
from longreach_excavator.machine import STEP, Excavator
from longreach_excavator.motion import HEAD, SIZE, SOIL, SPOOL
from longreach_excavator.parameters import load_excavator
from longreach_excavator.scenario import load_scenario
from longreach_excavator.state import CLOSED
from longreach_node import qos
from longreach_node.testing import bench
from longreach_tools.testing import DEADLINE, Outcome, contents, launch, longreach

SAMPLE = 20_000_000  # [ns]
PERIOD = 0.02  # [s]
STREAMS = ('joint_states', 'hydraulics', 'reactions', 'soil_force')


DURATIONS = {'dig_20kpa': 1.0, 'free_swing': 2.0, 'dig_17kpa': 4.0, 'cycle': 9.5}


@pytest.fixture(scope='module')
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """A function that returns the bag of a shipped scenario, made once."""

    @functools.cache
    def record(name: str) -> Path:
        directory = tmp_path_factory.mktemp(name)
        words = ('real_time_factor:=0.0', f'duration:={DURATIONS[name]}', 'record:=bag')
        with launch('excavator', directory, f'scenario:={name}', *words) as running:
            assert running.wait() == 0, running.text()
        return directory / 'bag'

    return record


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(('name', 'duration'), DURATIONS.items())
def test_a_bag_equals_the_library(
    recorded: Callable[[str], Path], name: str, duration: float
) -> None:
    bag = contents(recorded(name))
    every = [k * SAMPLE for k in range(round(duration / PERIOD) + 1)]
    for topic in STREAMS:
        assert [stamp for stamp, _ in bag[f'/excavator/{topic}']] == every, topic
    assert [stamp for stamp, _ in bag['/excavator/forces']] == every[::2]
    assert ('/excavator/terrain' in bag) == (name == 'cycle')
    # The operator's station is there, and leaves the scenario alone.
    assert '/excavator/cylinder_command' not in bag
    directory = share_directory('longreach_bringup') / 'config' / 'scenarios'
    excavator = load_excavator()
    machine = Excavator(
        excavator, load_scenario(directory / f'excavator_{name}.yaml', excavator, STEP)
    )
    state = machine.initial_state()
    for k in range(len(every)):
        if k:
            state = machine.advance(state, BY_SCENARIO, step_time(k - 1, PERIOD), PERIOD)
        sample, seen = machine.joint_sample(state, CLOSED), machine.observed(state)
        if name == 'cycle':
            ground = deserialize_message(bag['/excavator/terrain'][k][1], Terrain)
            assert [ground.bucket_volume, *ground.firm, *ground.loose] == state.y[SIZE:].tolist()
        joints, hydraulics, reactions = (
            deserialize_message(bag[f'/excavator/{topic}'][k][1], kind)
            for topic, kind in zip(STREAMS, (JointState, HydraulicState, PinForces), strict=False)
        )
        assert tuple(joints.name) == sample.names
        assert tuple(joints.position) == sample.positions
        assert tuple(joints.velocity) == sample.velocities
        assert tuple(joints.effort) == sample.efforts
        # Below the vapour pressure the state counts missing oil.
        pressures = np.maximum(state.y[HEAD:SPOOL], excavator.oil.vapour_pressure).tolist()
        assert [*hydraulics.head_pressure, *hydraulics.rod_pressure] == pressures
        assert list(hydraulics.spool) == state.y[SPOOL:SOIL].tolist()
        for pin, force in zip(reactions.name, reactions.force, strict=True):
            assert (force.x, force.z) == (seen[f'{pin}_x'], seen[f'{pin}_z'])


@pytest.mark.slow
def test_compare_knows_the_run(
    recorded: Callable[[str], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    scenarios = share_directory('longreach_bringup') / 'config' / 'scenarios'
    calls = {
        name: Outcome(
            capsys,
            'excavator',
            *('compare', recorded('dig_20kpa'), '--format', 'json'),
            *('--scenario', scenarios / f'excavator_{name}.yaml'),
        )
        for name in ('dig_20kpa', 'dig_17kpa')
    }
    assert set(calls['dig_20kpa'].json['differences'].values()) == {0.0, 51}
    assert calls['dig_20kpa'].err == ''
    assert 'is not this run' in calls['dig_17kpa'].err


@pytest.mark.slow
def test_in_real_time_a_person_drives_it(tmp_path: Path) -> None:
    with launch('excavator', tmp_path, 'scenario:=none') as running, bench(deadline=DEADLINE) as b:
        joints: list[JointState] = b.listen(JointState, '/excavator/joint_states')
        commands: list[ValveCommand] = b.listen(ValveCommand, '/excavator/cylinder_command')
        b.until(lambda: len(joints) > 20, 'running excavator')
        sticks = b.publisher(Joy, '/excavator/joy', qos.SET_POINT)
        assert not commands
        begun = joints[-1].position[0]

        def raised() -> bool:
            # Right stick back; a joystick repeats itself.
            sticks.publish(Joy(axes=[0.0, 0.0, 0.0, 0.0, -1.0]))
            return joints[-1].position[0] > begun + 0.05

        b.until(raised, 'motion')
        b.until(lambda: tuple(commands[-1].spool) == CLOSED.spools, 'stop without a joystick')
        running.process.send_signal(signal.SIGINT)
        assert running.wait() == 0, running.text()


@pytest.mark.slow
def test_a_killed_station_is_replaced(tmp_path: Path) -> None:
    with launch('excavator', tmp_path) as running, bench(deadline=DEADLINE) as b:
        joints: list[JointState] = b.listen(JointState, '/excavator/joint_states')
        b.until(lambda: len(joints) > 20, 'running excavator')
        first = running.pid('operator-2')
        os.kill(first, signal.SIGKILL)
        running.until(lambda: running.pid('operator-2') != first, 'second station')
        count = len(joints)
        b.until(lambda: len(joints) > count + 100, 'running excavator')
        running.process.send_signal(signal.SIGTERM)
        assert running.wait() == 0, running.text()


@pytest.mark.parametrize(
    ('argument', 'error'),
    [
        ('scenario:=dance', 'excavator_dance.yaml cannot be read: No such file'),
        ('file:=nowhere.yaml', 'nowhere.yaml cannot be read: No such file'),
    ],
)
def test_a_plant_that_refuses_ends_it_with_its_exit_code(
    tmp_path: Path, argument: str, error: str
) -> None:
    with launch('excavator', tmp_path, argument, 'operator:=false') as running:
        assert running.wait() == 2
        assert error in running.text()


def test_what_is_started_is_what_was_asked_for() -> None:
    done = longreach('launch', 'excavator', '--print', 'record:=bag', 'namespace:=south')
    assert done.returncode == 0, done.stderr
    for text in ('plant', 'operator', '__ns:=/south', 'longreach bag record --out bag'):
        assert text in done.stdout
    for text in ('rviz2', 'joy_node'):
        assert text not in done.stdout
    done = longreach('launch', 'excavator', '--print', 'scenario:=none', 'operator:=false')
    assert done.returncode == 0, done.stderr
    assert "scenario: ''" in done.stdout
    assert 'operator' not in done.stdout
