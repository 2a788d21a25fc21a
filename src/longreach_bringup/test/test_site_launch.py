"""Several machines on one graph: the shipped launch file, started as a user would."""

from __future__ import annotations

import signal

import pytest

from longreach_dynamics.resources import share_directory
from longreach_node.stamps import nanoseconds_of
from longreach_tools.bag import open_bag, read_bag
from longreach_tools.testing import Outcome, contents, launch, longreach

SCENARIOS = share_directory('longreach_bringup') / 'config' / 'scenarios'
# Time between samples [ns], and what is published with each.
PERIODS = {'crane': 10_000_000, 'boom': 5_000_000, 'excavator': 20_000_000}
STREAMS = {
    'crane': ('sensors', 'joint_states', 'command', 'status'),
    'boom': ('joint_states', 'hydraulics', 'strain', 'valve_command'),
    'excavator': ('joint_states', 'hydraulics', 'reactions'),
}
# By namespace machine and scenario.
CRANES = {'north': ('crane', 'task_c'), 'south': ('crane', 'task_b')}
MACHINES = {
    'crane': ('crane', 'task_c'),
    'boom': ('boom', 'boom_load_release'),
    'excavator': ('excavator', 'excavator_dig_17kpa'),
}


def assert_complete(bag, machine, duration):
    """Check that all samples are there, in frames with the namespace; return their number."""
    period = PERIODS[machine]
    every = [k * period for k in range(round(duration * 1e9 / period) + 1)]
    # Sets, because on a slow machine a plant in lockstep sends its first sample more than once.
    stamps: dict[str, set[int]] = {topic: set() for topic in STREAMS[machine]}
    for topic, _, message in read_bag(bag):
        name = topic.removeprefix(f'/{bag.name}/')
        if name in stamps:
            stamps[name].add(nanoseconds_of(message.header.stamp))
            assert message.header.frame_id.startswith(f'{bag.name}/'), topic
    for topic, found in stamps.items():
        assert sorted(found) == every, topic
    return len(every)


@pytest.mark.slow
@pytest.mark.parametrize(
    ('words', 'duration', 'machines'),
    [(('machines:=two_cranes',), 6.0, CRANES), (('clock:=boom',), 1.0, MACHINES)],
    ids=['cranes', 'machines'],
)
def test_machines_in_lockstep_equal_the_library(tmp_path, capsys, words, duration, machines):
    words = (*words, 'real_time_factor:=0.0', f'duration:={duration}', 'record:=bags')
    with launch('site', tmp_path, *words) as running:
        assert running.wait() == 0, running.text()
        assert '/clock is also published' not in running.text()
    for name, (machine, scenario) in machines.items():
        bag = tmp_path / 'bags' / name
        count = assert_complete(bag, machine, duration)
        called = ('--namespace', name, '--scenario', SCENARIOS / f'{scenario}.yaml')
        done = Outcome(capsys, machine, 'compare', bag, *called, '--format', 'json')
        differences = done.json['differences']
        # Whole numbers count samples: the scenario goes on after the end.
        assert count in differences.values(), name
        largest = max(v for v in differences.values() if isinstance(v, float))
        # Tips of the boom are put together anew, in another order than the library's.
        assert largest <= (1e-12 if machine == 'boom' else 0.0), name


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
        assert samples == [k * PERIODS['crane'] for k in range(len(samples))]
        # Which are late depends on the machine; none is doubled or out of order, and they answer
        # samples of their own plant.
        answers = [stamp for stamp, _ in bag[f'/{name}/command']]
        assert answers == sorted(set(answers))
        assert {stamp % PERIODS['crane'] for stamp in answers} == {0}
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
