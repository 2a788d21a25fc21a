"""Several machines on one graph: the shipped launch file, started as a user would."""

from __future__ import annotations

import signal

import pytest

from longreach_dynamics.resources import share_directory
from longreach_tools.bag import open_bag, read_bag
from longreach_tools.testing import Outcome, contents, launch, longreach

SCENARIOS = share_directory('longreach_bringup') / 'config' / 'scenarios'
# Time between samples of a crane [ns].
PERIOD = 10_000_000
# By namespace machine and scenario.
CRANES = {'north': ('crane', 'task_c'), 'south': ('crane', 'task_b')}
MACHINES = {
    'crane': ('crane', 'task_c'),
    'boom': ('boom', 'boom_load_release'),
    'excavator': ('excavator', 'excavator_dig_17kpa'),
}


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
        called = ('--namespace', name, '--scenario', SCENARIOS / f'{scenario}.yaml')
        found = Outcome(capsys, machine, 'compare', bag, *called, '--format', 'json').json
        # All samples are there; the scenario goes on after the end.
        assert (found['same'], found['compared_until']) == (True, duration), name
        largest = max(v for v in found['differences'].values() if isinstance(v, float))
        # Tips of the boom are put together anew, in another order than the library's.
        assert largest <= (1e-12 if machine == 'boom' else 0.0), name
        headers = [message.header for _, _, message in read_bag(bag) if hasattr(message, 'header')]
        assert {one.frame_id.partition('/')[0] for one in headers} - {''} == {name}


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
        assert samples == [k * PERIOD for k in range(len(samples))]
        # Which are late depends on the machine; none is doubled or out of order, and they answer
        # samples of their own plant.
        answers = [stamp for stamp, _ in bag[f'/{name}/command']]
        assert answers == sorted(set(answers))
        assert {stamp % PERIOD for stamp in answers} == {0}
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
