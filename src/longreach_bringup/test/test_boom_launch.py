"""The shipped launch file of the boom, started as a user would, from the outside."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from longreach_msgs.msg import ValveCommand
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from longreach_boom.parameters import load_boom
from longreach_boom.scenario import load_scenario
from longreach_boom.simulation import simulate
from longreach_boom.spec import BOOM
from longreach_dynamics.resources import share_directory
from longreach_dynamics.runs import compare_runs
from longreach_node import qos
from longreach_node.testing import bench
from longreach_tools.recording import read_run
from longreach_tools.testing import DEADLINE, contents, launch, longreach

SAMPLE = 5_000_000  # [ns]
STREAMS = ('joint_states', 'hydraulics', 'strain', 'marker_truth')


def differences(bag: Path, name: str, duration: float) -> dict[str, float]:
    """Compare a bag with the library's simulation of a shipped scenario."""
    boom = load_boom()
    directory = share_directory('longreach_bringup') / 'config' / 'scenarios'
    scenario = load_scenario(directory / f'boom_{name}.yaml', boom, 1e-3)
    found = compare_runs(read_run(BOOM, bag, 'boom', boom), simulate(boom, scenario))
    assert found.pop('samples_compared') == round(duration * 200.0) + 1
    found.pop('samples_missing')
    return found


# Alone as fast as it can, with a controller that leaves the valves closed, and under control.
@pytest.mark.slow_after(1)
@pytest.mark.parametrize(
    ('name', 'duration', 'words'),
    [
        ('load_release', 1.5, ('lockstep:=true',)),
        ('wave', 3.0, ('lockstep:=true', 'sensors:=typical')),
        ('load_release', 5.0, ('controller:=false',)),
    ],
)
def test_a_bag_equals_the_library(
    tmp_path: Path, name: str, duration: float, words: tuple[str, ...]
) -> None:
    fast = ('real_time_factor:=0.0', f'duration:={duration}', 'record:=bag')
    with launch('boom', tmp_path, f'scenario:={name}', *fast, *words) as running:
        assert running.wait() == 0, running.text()
    found = differences(tmp_path / 'bag', name, duration)
    # Put together anew from joint angles, in another order than the library's.
    assert max(found.pop(name) for name in tuple(found) if name.startswith('tip_')) < 1e-13
    assert set(found.values()) == {0.0}
    every = [k * SAMPLE for k in range(round(duration * 200.0) + 1)]
    bag = contents(tmp_path / 'bag')
    # On a slow machine the plant asks again: then samples are there more than once.
    topics = {topic: sorted({stamp for stamp, _ in messages}) for topic, messages in bag.items()}
    for topic in STREAMS:
        assert topics[f'/boom/{topic}'] == every, topic
    # Drawings are as many as the rate allows, none is lost.
    assert topics['/boom/shape'] == every[::7]
    # The load that is released at 0 s is gone in the next sample.
    changes = [0, SAMPLE] if name == 'load_release' else [0]
    assert topics['/boom/load'] == changes
    assert topics.get('/boom/valve_command', []) == (every if 'lockstep:=true' in words else [])
    assert ('/boom/sensors/encoder' in topics) == ('sensors:=typical' in words)


@pytest.mark.slow
def test_in_real_time_a_trajectory_by_hand_moves_it(tmp_path: Path) -> None:
    with launch('boom', tmp_path, 'scenario:=hold') as running, bench(deadline=DEADLINE) as b:
        joints: list[JointState] = b.listen(JointState, '/boom/joint_states')
        b.until(lambda: len(joints) > 20, 'running boom')
        publisher = b.publisher(JointTrajectory, '/boom/trajectory', qos.SET_POINT)
        begun = joints[-1].position[0]
        point = JointTrajectoryPoint(positions=[begun - 0.02])
        point.time_from_start.sec = 2
        wanted = JointTrajectory(joint_names=['beam_1_joint'], points=[point])

        def moved() -> bool:
            # Again: a controller that has not begun does not take it.
            if len(joints) % 600 == 1:
                publisher.publish(wanted)
            return joints[-1].position[0] < begun - 0.01

        publisher.publish(wanted)
        b.until(moved, 'motion')
        running.process.send_signal(signal.SIGINT)
        assert running.wait() == 0, running.text()


def test_a_killed_controller_is_replaced(tmp_path: Path) -> None:
    with launch('boom', tmp_path, 'scenario:=wave') as running, bench(deadline=DEADLINE) as b:
        joints: list[JointState] = b.listen(JointState, '/boom/joint_states')
        commands: list[ValveCommand] = b.listen(ValveCommand, '/boom/valve_command')
        b.until(lambda: len(joints) > 300, 'running boom')
        # Nothing lapses where nothing was commanded yet.
        b.until(lambda: commands and any(commands[-1].spool), 'open valve')
        first = running.pid('controller-2')
        os.kill(first, signal.SIGKILL)
        running.says('no command for')
        running.until(lambda: running.pid('controller-2') != first, 'second controller')
        count = len(joints)
        b.until(lambda: len(joints) > count + 200, 'running boom')
        running.process.send_signal(signal.SIGTERM)
        assert running.wait() == 0, running.text()


@pytest.mark.parametrize(
    ('argument', 'error'),
    [
        ('scenario:=dance', 'boom_dance.yaml cannot be read: No such file'),
        ('sensors:=nowhere.yaml', 'nowhere.yaml cannot be read: No such file'),
    ],
)
def test_a_plant_that_refuses_ends_it_with_its_exit_code(
    tmp_path: Path, argument: str, error: str
) -> None:
    with launch('boom', tmp_path, argument, 'controller:=false') as running:
        assert running.wait() == 2
        assert error in running.text()


def test_without_ros_viewers_the_other_nodes_are_the_same() -> None:
    done = longreach('launch', 'boom', '--print', 'record:=bag', 'namespace:=south')
    assert done.returncode == 0, done.stderr
    for text in ('plant', 'controller', '__ns:=/south', 'longreach bag record --out bag'):
        assert text in done.stdout
    assert 'rviz2' not in done.stdout
