"""The shipped launch file of the boom, started as a user would, from the outside."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from longreach_boom.parameters import load_boom
from longreach_boom.recording import compare, read_run
from longreach_boom.scenario import load_scenario
from longreach_boom.simulation import simulate
from longreach_dynamics.resources import share_directory
from longreach_node import qos
from longreach_node.testing import bench
from longreach_tools.bag import open_bag

DEADLINE = 90.0
MARKER = 'LONGREACH_TEST_MARKER'
LONGREACH = [sys.executable, '-c', 'from longreach_tools.cli import console; console()']
SAMPLE = 5_000_000  # [ns]
STREAMS = ('joint_states', 'hydraulics', 'strain', 'marker_truth')


class Launch:
    """A running `longreach launch boom`, its output in a file, its processes known by a mark."""

    def __init__(self, directory: Path, *arguments: object) -> None:
        self.mark = uuid.uuid4().hex
        self.log = directory / f'{self.mark}.log'
        with self.log.open('wb') as log:
            self.process = subprocess.Popen(
                [*LONGREACH, 'launch', 'boom', *map(str, arguments)],
                cwd=directory,
                env={**os.environ, MARKER: self.mark},
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def text(self) -> str:
        return self.log.read_text(errors='replace')

    def until(self, condition: Callable[[], object], what: str) -> None:
        end = time.monotonic() + DEADLINE
        while not condition():
            assert time.monotonic() < end, f'no {what}:\n{self.text()}'
            time.sleep(0.02)

    def pid(self, name: str) -> int:
        """Return the latest process of a name such as plant-1."""
        started = rf'\[{name}\]: process started with pid \[(\d+)\]'
        self.until(lambda: re.search(started, self.text()), f'start of {name}')
        return int(re.findall(started, self.text())[-1])

    def wait(self) -> int:
        """Wait for the end, make sure that nothing is left, and return the exit code."""
        try:
            code = self.process.wait(DEADLINE)
        except subprocess.TimeoutExpired:
            raise AssertionError(f'still running:\n{self.text()}') from None
        assert self.alive() == []
        assert 'Traceback' not in self.text()
        return code

    def alive(self) -> list[int]:
        """Return all processes that carry the mark of this launch."""
        found = []
        for directory in Path('/proc').iterdir():
            with contextlib.suppress(OSError):
                if (
                    directory.name.isdigit()
                    and self.mark.encode() in (directory / 'environ').read_bytes()
                ):
                    found.append(int(directory.name))
        return found

    def close(self) -> None:
        for pid in self.alive():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()


@contextlib.contextmanager
def launch(directory: Path, *arguments: object) -> Iterator[Launch]:
    running = Launch(directory, *arguments)
    try:
        yield running
    finally:
        running.close()


def stamps(bag: Path) -> dict[str, list[int]]:
    """Return the stamps of all messages of a properly closed bag, by topic, in order."""
    found: dict[str, list[int]] = {}
    with open_bag(bag) as opened:
        assert not opened.problem
        for topic, stamp, _ in opened.messages(opened.select(None)):
            found.setdefault(topic, []).append(stamp)
    return found


def differences(bag: Path, name: str, duration: float) -> dict[str, float]:
    """Compare a bag with the library's simulation of a shipped scenario."""
    boom = load_boom()
    directory = share_directory('longreach_bringup') / 'config' / 'scenarios'
    scenario = load_scenario(directory / f'boom_{name}.yaml', boom, 1e-3)
    found = compare(read_run(bag, 'boom', boom), simulate(boom, scenario))
    assert found.pop('samples_compared') == round(duration * 200.0) + 1
    found.pop('samples_missing')
    return found


# Alone as fast as it can, with a controller that leaves the valves closed, and under control.
@pytest.mark.parametrize(
    ('name', 'duration', 'words'),
    [
        ('load_release', 20.0, ('controller:=false',)),
        ('load_release', 3.0, ('lockstep:=true',)),
        ('wave', 6.0, ('lockstep:=true', 'sensors:=typical')),
    ],
)
def test_a_bag_equals_the_library(
    tmp_path: Path, name: str, duration: float, words: tuple[str, ...]
) -> None:
    fast = ('real_time_factor:=0.0', f'duration:={duration}', 'record:=bag')
    with launch(tmp_path, f'scenario:={name}', *fast, *words) as running:
        assert running.wait() == 0, running.text()
    found = differences(tmp_path / 'bag', name, duration)
    # Sums of other order than the library's: the tip, and strains of one state or a table.
    assert max(found.pop('tip_x'), found.pop('tip_z')) < 1e-13
    for i in range(1, 5):
        assert found.pop(f'strain_{i}') < 1e-15
    assert set(found.values()) == {0.0}
    every = [k * SAMPLE for k in range(round(duration * 200.0) + 1)]
    topics = stamps(tmp_path / 'bag')
    for topic in STREAMS:
        assert topics[f'/boom/{topic}'] == every, topic
    assert topics.get('/boom/valve_command', []) == (every if 'lockstep:=true' in words else [])
    assert ('/boom/sensors/encoder' in topics) == ('sensors:=typical' in words)


def test_in_real_time_a_trajectory_by_hand_moves_it(tmp_path: Path) -> None:
    with launch(tmp_path, 'scenario:=hold') as running, bench(deadline=DEADLINE) as b:
        joints: list[JointState] = b.listen(JointState, '/boom/joint_states')
        b.until(lambda: len(joints) > 20, 'running boom')
        publisher = b.publisher(JointTrajectory, '/boom/trajectory', qos.SET_POINT)
        begun = joints[-1].position[0]
        point = JointTrajectoryPoint(positions=[begun - 0.02])
        point.time_from_start.sec = 2
        publisher.publish(JointTrajectory(joint_names=['beam_1_joint'], points=[point]))
        b.until(lambda: joints[-1].position[0] < begun - 0.01, 'motion')
        running.process.send_signal(signal.SIGINT)
        assert running.wait() == 0, running.text()


def test_a_killed_controller_is_replaced(tmp_path: Path) -> None:
    with launch(tmp_path, 'scenario:=wave') as running, bench(deadline=DEADLINE) as b:
        joints: list[JointState] = b.listen(JointState, '/boom/joint_states')
        b.until(lambda: len(joints) > 300, 'moving boom')
        first = running.pid('controller-2')
        os.kill(first, signal.SIGKILL)
        running.until(lambda: 'no command for' in running.text(), 'closed valves')
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
        ('duration:=0.001', 'duration times publish_rate = 0.2, allowed: whole numbers'),
    ],
)
def test_a_plant_that_refuses_ends_it_with_its_exit_code(
    tmp_path: Path, argument: str, error: str
) -> None:
    with launch(tmp_path, argument, 'controller:=false') as running:
        assert running.wait() == 2
        assert error in running.text()


def test_without_ros_viewers_the_other_nodes_are_the_same(tmp_path: Path) -> None:
    done = subprocess.run(
        [*LONGREACH, 'launch', 'boom', '--print', 'record:=bag', 'namespace:=south'],
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for text in ('plant', 'controller', '__ns:=/south', 'longreach bag record --output bag'):
        assert text in done.stdout
    assert 'rviz2' not in done.stdout
