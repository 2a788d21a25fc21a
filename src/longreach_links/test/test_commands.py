"""The command ``longreach links``: what it prints, writes and refuses."""

import numpy as np
import pytest
from sensor_msgs.msg import JointState

from longreach_machine.machine import BY_SCENARIO, by_scenario, closed_loop
from longreach_node.frames import header_at
from longreach_symbolic.arm import designed_arm
from longreach_symbolic.links import default_file, load_links
from longreach_symbolic.machine import FlexibleLinks
from longreach_symbolic.scenario import load_scenario
from longreach_tools.testing import Outcome, write_bag

SHORT = 'duration: 0.5\ntrajectory: [{time: 0.0, angles_deg: [40, -30]}]\nstraight: true\n'


@pytest.fixture
def short(tmp_path):
    file = tmp_path / 'short.yaml'
    file.write_text(SHORT)
    return file


def test_run_prints_its_results(capsys, short):
    found = Outcome(capsys, 'links', 'run', short, '--format', 'json').json
    assert found['status'] == 'complete'
    assert found['largest_deflection'] > 0.005


def recording(directory, file, changed=0.0):
    """Write a bag of a run, with an error in the last sample."""
    links, rows = load_links(), []
    machine = FlexibleLinks(links, designed_arm(links), load_scenario(file, links))
    for k, cycle in enumerate(closed_loop(machine, by_scenario, 100, 0.005)):
        sample = machine.joint_sample(cycle.state, BY_SCENARIO)
        positions = np.array(sample.positions)
        positions[0] += changed * (k == 100)
        stamp = k * 5_000_000
        message = JointState(
            header=header_at(stamp, 'links_base'), name=sample.names, position=positions.tolist(),
            velocity=sample.velocities, effort=sample.efforts,
        )  # fmt: skip
        rows.append(('joint_states', stamp, message))
    return write_bag(directory, 'links', rows)


def test_compare_finds_a_difference(capsys, tmp_path, short):
    words = ('--scenario', short, '--format', 'json')
    same = Outcome(capsys, 'links', 'compare', recording(tmp_path / 'a', short), *words).json
    assert same['same']
    assert same['differences']['samples_compared'] == 101
    bag = recording(tmp_path / 'b', short, 1e-6)
    assert Outcome(capsys, 'links', 'compare', bag, *words).code == 1


def test_an_unstable_arm_is_refused(capsys, tmp_path):
    arm = tmp_path / 'arm.yaml'
    arm.write_text('drives: [{gain: 125, rate_gain: 25}]\nsample_time: 0.001\n')
    done = Outcome(capsys, 'links', 'run', 'circle', '--arm', arm)
    done.refused('the digital control loop is unstable')


def test_stability_is_tabulated(capsys):
    arm = default_file().parent / 'two_links_arm.yaml'
    words = ('stability', '--arm', arm)
    found = Outcome(capsys, 'links', *words, '--format', 'json').json
    radius = {(row['rotors'], row['scale']): row['radius'] for row in found['rows']}
    assert [value < 1.0 for value in radius[True, 1.0]] == [True, True, True, False, False, False]
    assert [value < 1.0 for value in radius[True, 0.25]] == [True, True, True, True, False, False]
    assert [value < 1.0 for value in radius[False, 1.0]] == [False] * 6
    assert 'of the arm' in Outcome(capsys, 'links', *words).out
