"""The command ``longreach view``: what it refuses, and that it ends in order."""

from __future__ import annotations

import contextlib
import itertools
import math
import os
import re
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest
from longreach_msgs.msg import ValveCommand
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger
from test_replay import crane_bag

from longreach_dynamics.parameters import load_yaml
from longreach_dynamics.resources import share_directory
from longreach_node.testing import bench
from longreach_tools.cli import _Parser
from longreach_tools.fields import numeric_fields
from longreach_tools.launch import find_launch_file
from longreach_tools.testing import DEADLINE, Outcome
from longreach_view import commands, launch_files
from longreach_view.page import Request
from longreach_view.view_node import LiveSource
from longreach_view.world import Machine, Sample, World

COMMAND = [sys.executable, '-c', 'from longreach_tools.cli import console; console()', 'view']


@pytest.fixture
def view(capsys):
    return lambda *words: Outcome(capsys, 'view', *words)


@pytest.mark.parametrize(
    ('words', 'message'),
    [
        (('--port', '70000'), '70000, allowed: 0 to 65535'),
        (('--host', '0.0.0.0', '--port', '0', 'nothing', 'else'), 'nothing: no such recording'),
        (('--token', 'short'), '8 or more letters'),
        (('--token', 'ä' * 8), '8 or more letters'),
        (('--demo', 'crane'), '--demo together with crane'),
    ],
)
def test_bad_input_is_refused(view, words, message):
    view(*words).refused(message)


def test_a_public_address_without_a_token_is_refused(view, tmp_path):
    bag = crane_bag(tmp_path / 'a', 0.5)
    view(bag, '--host', '0.0.0.0', '--port', '0', '--no-token').refused('0.0.0.0 is visible')


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM])
def test_it_prints_its_address_and_ends_on_a_signal(tmp_path, number):
    bag = crane_bag(tmp_path / 'a', 0.5)
    words = [*COMMAND, str(bag), '--port', '0']
    pipes = {'stdout': subprocess.PIPE, 'stderr': subprocess.PIPE, 'text': True}
    with subprocess.Popen(words, env=os.environ, **pipes) as process:
        address = process.stdout.readline()
        process.send_signal(number)
        out, err = process.communicate(timeout=DEADLINE)
    assert re.match(r'http://127\.0\.0\.1:\d+/\?token=[\w-]{20,}  \(Ctrl-C ends it\)', address)
    assert (process.returncode, out) == (0, '')
    assert 'Traceback' not in err


def test_what_has_ended_is_said_as_long_as_it_is_so(monkeypatch):
    code = itertools.count(-9, 0)
    ended = SimpleNamespace(pid=1, poll=lambda: next(code))
    monkeypatch.setattr(launch_files, '_launch', lambda _: ended)
    started = launch_files.Started([['crane']])
    for _ in range(2):
        assert started.follow() == ['longreach launch crane has ended with exit code -9']
    world = World(numeric_fields)
    with contextlib.closing(LiveSource()) as source, bench() as plant:
        publisher = plant.driver.create_publisher(JointState, '/crane/joint_states', 1)
        plant.listen(JointState, '/boom/joint_states')

        def notes():
            source.poll(world, time.monotonic())
            return source.notes()

        found = source._subscriptions.topics
        both = {'/crane/joint_states', '/boom/joint_states'}
        plant.until(lambda: notes() == [] and both <= {*found}, 'none has ended')
        plant.driver.destroy_publisher(publisher)
        plant.until(notes, 'its end')
        said = '/crane/joint_states: its publisher has ended; this is what it sent last'
        assert notes() == [said]


def test_a_restart_offers_what_the_launch_file_declares_its_own_scenario_first(
    monkeypatch, tmp_path
):
    begun, codes, signals = [], [0], []
    running = SimpleNamespace(poll=lambda: codes[-1], send_signal=signals.append)
    monkeypatch.setattr(
        launch_files, '_launch', lambda words: begun.append(list(words)) or running
    )
    boom = launch_files.Started([['boom', 'record:=bag']])
    own, *others = boom.scenarios()
    assert own == 'load_release'
    assert {'hold', 'wave'} <= {*others}
    assert others == sorted(others)
    assert boom.numbers() == []
    excavator = launch_files.Started([['excavator', 'scenario:=free_swing', 'cohesion:=9e3']])
    assert excavator.scenarios()[0] == 'free_swing'
    assert [(one.name, one.default) for one in excavator.numbers()] == [('cohesion', '9e3')]
    (tmp_path / 'bag_2').mkdir()
    again = launch_files.Started([['boom', f'record:={tmp_path}/bag', 'scenario:=hold']])
    codes.append(None)
    again.restart({'scenario': 'wave'})
    assert signals == [signal.SIGINT]
    assert again.follow() == ['longreach launch boom ends, and starts again then']
    assert begun[-1][-1] == 'scenario:=hold', 'the page does not wait for its end'
    codes.append(0)
    again.follow()
    assert begun[-1] == ['boom', f'record:={tmp_path}/bag_3', 'scenario:=wave']
    mine = launch_files.Started([['boom', 'scenario_file:=/a/b.yaml', 'controller:=false']])
    assert mine.scenarios()[:2] == ['/a/b.yaml', 'hold']
    for chosen, word in (('hold', 'scenario:=hold'), ('/a/b.yaml', 'scenario_file:=/a/b.yaml')):
        mine.restart({'scenario': chosen})
        mine.follow()
        assert begun[-1] == ['boom', 'controller:=false', word]
    assert launch_files.Started([['harvester', 'scenario:=none']]).scenarios()[0] == 'none'
    several = launch_files.Started([['boom'], ['crane']])
    assert (several.scenarios(), several.numbers()) == ([], [])
    path = find_launch_file('crane', os.environ)
    assert launch_files.Started([[str(path)]]).scenarios() == ['task_c', 'task_b']


def test_it_ends_as_a_launch_that_fails():
    words = [*COMMAND, 'boom', 'scenario:=nix', '--port', '0']
    done = subprocess.run(words, capture_output=True, text=True, timeout=DEADLINE, check=False)
    assert done.returncode == 2, done.stderr
    assert 'nix' in done.stderr


def test_launches_after_the_fourth_start_when_those_before_are_heard(monkeypatch):
    begun, ended = [], SimpleNamespace(poll=lambda: None)
    monkeypatch.setattr(launch_files, '_launch', lambda words: begun.append(words[0]) or ended)
    started = launch_files.Started([[name] for name in 'abcdef'])
    for heard, running in (('', 'abcd'), ('abc', 'abcd'), ('abcd', 'abcde'), ('abcd', 'abcde')):
        assert started.follow(heard) == []
        assert ''.join(begun) == running
    # What is never heard delays the others only.
    monkeypatch.setattr(launch_files.time, 'monotonic', lambda: math.inf)
    started.follow('abcd')
    assert ''.join(begun) == 'abcdef'


@pytest.mark.parametrize(
    ('limits', 'begin'),
    [((0.5, 9.5), 0.5), ((-9.0, -1.0), -1.0), ((-5.0, 5.0), 0.0), ((1.0, 1.0), None)],
)
def test_the_slider_of_a_set_point_begins_within_its_limits(limits, begin):
    world = World(numeric_fields)
    joint = SimpleNamespace(kind='prismatic', limits=limits)
    world.machines['crane'] = Machine('crane', robot=SimpleNamespace(joints={'car': joint}))
    with contextlib.closing(LiveSource()) as source:
        source._listened = {'/crane/set_point': 'std_msgs/msg/Float64'}
        found = [one.value for one in source.controls('crane', world)]
        # It is none of a machine around it.
        world.machines[''] = Machine('', robot=SimpleNamespace(joints={'car': joint}))
        assert source.controls('', world) == []
    assert found == ([] if begin is None else [begin])


def test_valves_have_sliders_while_no_other_node_commands_them():
    topic, world = '/boom/valve_command', World(lambda _: {'spool[a]': 0.0})
    state = Sample('/boom/joint_states', 'JointState', JointState(), 0.0)
    for sample in (state, state._replace(topic='/boom/hydraulics', typename='HydraulicState')):
        world.take(sample, 0.0)
    with contextlib.closing(LiveSource()) as source, bench() as plant:
        heard = plant.listen(ValveCommand, topic)

        def sliders():
            source.poll(world, time.monotonic())
            return [one.name for one in source.controls('boom', world)]

        plant.until(lambda: sliders() == [f'{topic} a'], 'a slider')
        other = plant.driver.create_publisher(ValveCommand, topic, 1)
        plant.until(lambda: not sliders(), 'none beside a controller')
        plant.driver.destroy_publisher(other)
        plant.until(sliders, 'a slider again')
        begun = time.monotonic()
        source.handle(Request('boom', f'{topic} a', 0.5), world, begun)
        plant.until(lambda: sliders() and heard and heard[-1].spool[0] == 0.0, 'closed')
        assert time.monotonic() - begun >= 1.0
        assert heard[0].spool[0] == 0.5
        assert source.springs(time.monotonic()) == [f'{topic} a']
        assert source.springs(time.monotonic()) == []
        assert sliders(), 'its own commands are none of another node'


def test_a_recording_needs_no_network(tmp_path):
    parser = _Parser()
    commands.configure(parser)
    for words, offline in (([str(tmp_path)], True), (['crane'], False), ([], False)):
        given = parser.parse_args(words)
        assert given.offline(given) is offline


def test_scenarios_of_the_demonstration_begin_again():
    """Each machine has a scenario that ends; it is reset then, once."""
    directory = share_directory('longreach_bringup') / 'config' / 'scenarios'
    for name, *words in commands.DEMO:
        if name in commands.DURATIONS:
            scenario = words[0].removeprefix('scenario:=')
            file = directory / f'{"" if name == "crane" else name + "_"}{scenario}.yaml'
            assert load_yaml(file)['duration'] == commands.DURATIONS[name]
    world, resets = World(numeric_fields), []

    def reset(_, response):
        resets.append(1)
        response.success = True
        return response

    with contextlib.closing(LiveSource(durations={'crane': 60.0})) as source, bench() as plant:
        plant.driver.create_service(Trigger, '/crane/plant/reset', reset)
        sample = JointState(name=['car_joint'], position=[0.0])
        for seconds, expected in ((59, 0), (61, 1), (62, 1)):
            sample.header.stamp.sec = seconds
            stamped = Sample('/crane/joint_states', 'JointState', sample, float(seconds), 0)
            world.take(stamped, time.monotonic())

            def polled():
                source.poll(world, time.monotonic())
                return '/crane/plant/reset' in source._services

            plant.until(polled, 'service')
            plant.until(lambda n=expected: (polled(), len(resets) >= n)[1], 'reset')
            plant.settle()
            assert len(resets) == expected
        assert 'crane: the scenario begins again' in source.notes()
