"""Several machines on one graph: the shipped launch file, started as a user would."""

from __future__ import annotations

import signal

import pytest

from longreach_dynamics.resources import share_directory
from longreach_node.stamps import nanoseconds_of
from longreach_tools.bag import open_bag, read_bag
from longreach_tools.testing import Outcome, contents, launch, longreach

FAST = ('real_time_factor:=0.0',)
SCENARIOS = share_directory('longreach_bringup') / 'config' / 'scenarios'
# Time between samples [ns].
PERIODS = {
    'crane': 10_000_000, 'north': 10_000_000, 'south': 10_000_000,
    'boom': 5_000_000, 'excavator': 20_000_000,
}  # fmt: skip


def compared(capsys, machine, bag, scenario):
    """Return the differences of a bag, named as the namespace, from the library's run."""
    words = ('--namespace', bag.name, '--scenario', SCENARIOS / f'{scenario}.yaml')
    done = Outcome(capsys, machine, 'compare', bag, *words, '--format', 'json')
    differences: dict[str, float] = done.json['differences']
    return differences


def assert_complete(bag, topics, duration):
    """Check that no sample is missing, and that all frames have the prefix of the namespace."""
    period = PERIODS[bag.name]
    every = [k * period for k in range(round(duration * 1e9 / period) + 1)]
    # Sets, because on a slow machine a plant in lockstep sends its first sample more than once.
    stamps: dict[str, set[int]] = {topic: set() for topic in topics}
    for topic, _, message in read_bag(bag):
        name = topic.removeprefix(f'/{bag.name}/')
        if name in stamps:
            stamps[name].add(nanoseconds_of(message.header.stamp))
            assert message.header.frame_id.startswith(f'{bag.name}/'), topic
    for topic, found in stamps.items():
        assert sorted(found) == every, topic


@pytest.mark.slow
def test_two_cranes_in_lockstep_equal_the_library(tmp_path, capsys):
    words = ('machines:=two_cranes', *FAST, 'duration:=6.0', 'record:=bags')
    with launch('site', tmp_path, *words) as running:
        assert running.wait() == 0, running.text()
        assert '/clock is also published' not in running.text()
    for name, scenario in (('north', 'task_c'), ('south', 'task_b')):
        bag = tmp_path / 'bags' / name
        assert_complete(bag, ('sensors', 'joint_states', 'command', 'status'), 6.0)
        differences = compared(capsys, 'crane', bag, scenario)
        assert differences['cycles_compared'] == 601
        # Whole numbers count cycles: the scenario goes on after 6 s.
        assert {v for v in differences.values() if isinstance(v, float)} == {0.0}


@pytest.mark.slow
def test_crane_boom_and_excavator_in_lockstep_equal_the_library(tmp_path, capsys):
    words = (*FAST, 'duration:=1.0', 'record:=bags', 'clock:=boom')
    with launch('site', tmp_path, *words) as running:
        assert running.wait() == 0, running.text()
        assert '/clock is also published' not in running.text()
    bags = tmp_path / 'bags'
    assert_complete(bags / 'crane', ('sensors', 'joint_states', 'command', 'status'), 1.0)
    assert_complete(bags / 'boom', ('joint_states', 'hydraulics', 'strain', 'valve_command'), 1.0)
    assert_complete(bags / 'excavator', ('joint_states', 'hydraulics', 'reactions'), 1.0)
    for machine, scenario, count in (
        ('crane', 'task_c', 101),
        ('boom', 'boom_load_release', 201),
        ('excavator', 'excavator_dig_17kpa', 51),
    ):
        differences = compared(capsys, machine, bags / machine, scenario)
        assert count in differences.values(), machine
        assert max(v for v in differences.values() if isinstance(v, float)) < 1e-12, machine


@pytest.mark.slow
def test_two_cranes_in_real_time_do_not_disturb_each_other(tmp_path):
    with launch('site', tmp_path, 'machines:=two_cranes', 'record:=bags') as running:
        for name in ('north', 'south'):
            running.says(f'recording /{name}/command')

        def commands(name):
            with open_bag(tmp_path / 'bags' / name) as bag:
                topics = [topic for topic, _, _ in bag.messages(list(bag.topics))]
            return topics.count(f'/{name}/command')

        running.until(lambda: min(map(commands, ('north', 'south'))) > 200, 'two seconds')
        running.process.send_signal(signal.SIGINT)
        assert running.wait() == 0, running.text()
        assert '/clock is also published' not in running.text()
    for name in ('north', 'south'):
        bag = contents(tmp_path / 'bags' / name)
        samples = [stamp for stamp, _ in bag[f'/{name}/sensors']]
        assert samples == [k * PERIODS[name] for k in range(len(samples))]
        # Which are late depends on the machine; none is doubled or out of order, and they answer
        # samples of their own plant.
        answers = [stamp for stamp, _ in bag[f'/{name}/command']]
        assert answers == sorted(set(answers))
        assert {stamp % PERIODS[name] for stamp in answers} == {0}
        assert len(set(answers) & set(samples)) > 100


@pytest.mark.parametrize(
    ('words', 'namespaces', 'clock'),
    [
        ((), ['/crane', '/boom', '/excavator'], '/crane'),
        (('clock:=excavator',), ['/crane', '/boom', '/excavator'], '/excavator'),
        (('machines:=two_cranes',), ['/north', '/south'], '/north'),
        (('machines:=two_cranes', 'clock:=none'), ['/north', '/south'], None),
    ],
)
def test_one_plant_publishes_the_clock(words, namespaces, clock):
    done = longreach('launch', 'site', '--print', *words)
    assert done.returncode == 0, done.stderr
    plants = f'\n{done.stdout}'.split('\nplant-')[1:]
    found = {text.split('__ns:=')[1].split()[0]: 'publish_clock: true' in text for text in plants}
    assert list(found) == namespaces
    assert [name for name, owner in found.items() if owner] == ([clock] if clock else [])
