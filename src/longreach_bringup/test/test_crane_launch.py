"""The shipped launch file of the crane, started as a user would, from the outside."""

import os
import signal

import numpy as np
import pytest
from longreach_msgs.msg import CraneStatus
from sensor_msgs.msg import JointState

from longreach_dynamics.errors import InputError
from longreach_node.stamps import nanoseconds_of
from longreach_node.testing import bench
from longreach_tools.bag import read_bag
from longreach_tools.testing import contents, launch, longreach

FAST = ('real_time_factor:=0.0',)
# Brake by its rule, released, and beyond the limit, within a few seconds.
SCENARIO = """
duration: 7.0
set_points:
  - {time: 3.5, car_position: 4.8}
disturbances:
  - {time: 4.0, duration: 1.5, force: 400.0}
"""


def recorded(bag, topic):
    """Return the messages of a topic in a bag that is still being written, or not yet begun."""
    try:
        return [message for _, _, message in read_bag(bag, [topic])]
    except InputError:
        return []


def run_to_the_end(directory, *arguments):
    with launch('crane', directory, *arguments) as running:
        assert running.wait() == 0, running.text()


@pytest.fixture(scope='module')
def directory(tmp_path_factory):
    """A place for bags, with the scenario file in it."""
    place = tmp_path_factory.mktemp('launch')
    (place / 'scenario.yaml').write_text(SCENARIO)
    return place


@pytest.fixture(scope='module')
def short_bag(directory):
    """A short run in lockstep, with another variant of crane and controller."""
    run_to_the_end(directory, *short_run(directory), 'record:=first')
    return directory / 'first'


def short_run(directory):
    return [
        *FAST,
        f'scenario_file:={directory / "scenario.yaml"}',
        *('duration:=7.0', 'brake:=rigid', 'output:=next_cycle'),
    ]


@pytest.mark.slow
def test_the_same_run_gives_the_same_bag(directory, short_bag):
    run_to_the_end(directory, *short_run(directory), 'record:=second')
    first, second = contents(short_bag), contents(directory / 'second')
    assert first.keys() == second.keys()
    for topic in first.keys() - {'/diagnostics'}:
        assert first[topic] == second[topic], topic
    # Two nodes report here: each in its own order, but not in one order with the other.
    assert sorted(first['/diagnostics']) == sorted(second['/diagnostics'])


@pytest.mark.slow
def test_played_sensors_give_the_recorded_commands(directory, short_bag):
    words = [word for word in short_run(directory) if word.split(':=')[0] != 'duration']
    with launch('crane', directory, *words, 'plant:=false', 'record:=replayed') as running:
        played = longreach(
            *('bag', 'play', short_bag, '--topics', '/crane/sensors'),
            *('--rate', '5', '--wait-for-subscribers', '2'),
        )
        assert played.returncode == 0, played.stderr
        # The player leaves when everybody has everything; the controller still answers then.
        running.until(
            lambda: len(recorded(directory / 'replayed', '/crane/command')) == 701, 'end'
        )
        running.process.send_signal(signal.SIGINT)
        assert running.wait() == 0
    first, replayed = contents(short_bag), contents(directory / 'replayed')
    for name in ('sensors', 'command', 'status'):
        assert replayed[f'/crane/{name}'] == first[f'/crane/{name}'], name


@pytest.mark.slow
def test_a_killed_controller_is_replaced_while_the_crane_stands(directory):
    with launch('crane', directory, 'scenario:=task_c', 'record:=killed') as running, bench() as b:
        statuses = b.listen(CraneStatus, '/crane/status')
        joints = b.listen(JointState, '/crane/joint_states')
        # Not as the observer believes: the first commands may not have reached the plant.
        b.until(lambda: joints and joints[-1].velocity[0] > 0.1, 'a car on its way')
        # On a busy machine the recorder may begin after that.

        def kept():
            return [one.set_point for one in recorded(directory / 'killed', '/crane/status')]

        running.until(lambda: len(kept()) > 1, 'a recording')
        first = running.pid('controller-2')
        os.kill(first, signal.SIGKILL)
        running.says('no command for')
        running.until(lambda: running.pid('controller-2') != first, 'second controller')
        # It hears what it is told, and the plant listens to it.
        done = longreach('crane', 'set-point', '-1.0')
        assert (done.returncode, done.stderr) == (0, '')
        b.until(lambda: statuses and statuses[-1].set_point == -1.0, 'set point -1 m')
        b.until(lambda: statuses[-1].car_velocity < -0.05, 'a car on its way back')
        assert not statuses[-1].emergency_mode
        # Nor may it have found the second controller yet.
        running.until(lambda: -1.0 in kept(), 'a recording of the second controller')
        running.process.send_signal(signal.SIGINT)
        assert running.wait() == 0
    moved, observed = {}, {}
    for topic, _, message in read_bag(directory / 'killed'):
        if topic == '/crane/joint_states':
            moved[nanoseconds_of(message.header.stamp)] = message
        elif topic == '/crane/status':
            observed[nanoseconds_of(message.header.stamp)] = message
    cycles = sorted(observed)
    told = min(stamp for stamp in cycles if observed[stamp].set_point == -1.0)
    gap = int(np.argmax(np.diff([stamp for stamp in cycles if stamp <= told])))
    alone, taken_over = cycles[gap], cycles[gap + 1]
    # The second one begins where the car is, and takes nothing for missed.
    begun = observed[taken_over]
    assert begun.car_position == pytest.approx(moved[taken_over].position[0], abs=0.05)
    assert begun.missed_samples == 0
    # In between the car stood on its brake.
    speeds = [abs(m.velocity[0]) for stamp, m in moved.items() if alone < stamp < told]
    assert min(speeds) < 1e-2 < abs(moved[alone].velocity[0])


def test_a_killed_plant_ends_everything(directory):
    words = ('scenario:=task_b', 'namespace:=north')
    with launch('crane', directory, *words) as running, bench() as b:
        statuses = b.listen(CraneStatus, '/north/status')
        b.until(lambda: len(statuses) > 5, 'a running loop')
        os.kill(running.pid('plant-1'), signal.SIGKILL)
        assert running.wait() == 128 + signal.SIGKILL


def test_told_to_end_it_leaves_a_closed_bag_and_nobody(directory):
    # By SIGTERM; other runs end by SIGINT.
    words = (*FAST, 'scenario:=task_c', 'record:=told')
    with launch('crane', directory, *words) as running, bench() as b:
        statuses = b.listen(CraneStatus, '/crane/status')
        b.until(lambda: len(statuses) > 200, 'a running loop')
        running.process.send_signal(signal.SIGTERM)
        assert running.wait() == 0, running.text()
    for name, messages in contents(directory / 'told').items():
        if name not in ('/diagnostics', '/crane/robot_description'):
            stamps = [stamp for stamp, _ in messages]
            assert stamps, name
            assert set(np.diff(stamps).tolist()) == {10_000_000}, name
