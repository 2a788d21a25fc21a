"""The command ``longreach links``: what it prints, writes and refuses."""

import numpy as np
import pytest
from sensor_msgs.msg import JointState

from longreach_dynamics.machine import BY_SCENARIO
from longreach_links.description import robot_description
from longreach_node.frames import header_at
from longreach_symbolic.arm import designed_arm
from longreach_symbolic.links import default_file, load_links
from longreach_symbolic.machine import FlexibleLinks
from longreach_symbolic.scenario import load_scenario
from longreach_tools.testing import Outcome, write_bag

SHORT = 'duration: 0.5\ntrajectory: [{time: 0.0, angles_deg: [40, -30]}]\nstraight: true\n'
ARM = 'drives: [{gain: 125, rate_gain: 25}]\nsample_time: 0.001\n'


@pytest.fixture
def short(tmp_path):
    file = tmp_path / 'short.yaml'
    file.write_text(SHORT)
    return file


def test_run_prints_its_results(capsys, short):
    found = Outcome(capsys, 'links', 'run', short, '--format', 'json').json
    assert found['status'] == 'complete'
    assert found['largest_deflection'] > 0.005
    assert 'largest_torque' in Outcome(capsys, 'links', 'run', 'circle').out


@pytest.mark.slow
def test_other_links_and_another_arm(capsys, tmp_path):
    links, arm = tmp_path / 'links.yaml', tmp_path / 'arm.yaml'
    links.write_text(default_file().read_text().replace('2.94', '1.0'))
    arm.write_text('drives: [{gain: 20, rate_gain: 10, rotor_inertia: 0.1}]\ndamping: 0.001')
    found = [
        Outcome(capsys, 'links', 'run', 'circle', '--format', 'json', *words).json
        for words in ((), ('--file', links), ('--arm', arm))
    ]
    torques = [one['largest_torque'] for one in found]
    assert torques[1] < 0.7 * torques[0]
    assert found[2]['tip_error'] > 1.5 * found[0]['tip_error']


def test_a_sweep_of_a_quantity_of_the_links(capsys):
    words = ('sweep', 'links.1.lumped_mass', '0.1:0.4:2', '--processes', 1, '--format', 'json')
    found = Outcome(capsys, 'links', *words).json
    torques = [row['largest_torque'] for row in found['rows']]
    assert torques[0] < torques[1]


def test_urdf(capsys):
    out = Outcome(capsys, 'links', 'urdf', '--prefix', 'a/').out
    assert out == robot_description(load_links(), 'a/')


def recording(directory, file, changed=0.0):
    """Write a bag of a run, with an error in the last sample."""
    machine = FlexibleLinks(
        load_links(), designed_arm(load_links()), load_scenario(file, load_links())
    )
    state, rows = machine.initial_state(), []
    for k in range(101):
        sample = machine.joint_sample(state, BY_SCENARIO)
        positions = np.array(sample.positions)
        positions[0] += changed * (k == 100)
        stamp = round(k * 5_000_000)
        message = JointState(
            header=header_at(stamp, 'links_base'), name=sample.names, position=positions.tolist(),
            velocity=sample.velocities, effort=sample.efforts,
        )  # fmt: skip
        rows.append(('joint_states', stamp, message))
        if k < 100:
            state = machine.advance(state, BY_SCENARIO, 0.005 * k, 0.005)
    return write_bag(directory, 'links', rows)


def test_compare_finds_a_difference(capsys, tmp_path, short):
    words = ('--scenario', short, '--format', 'json')
    same = Outcome(capsys, 'links', 'compare', recording(tmp_path / 'a', short), *words).json
    assert same['same']
    assert same['differences']['samples_compared'] == 101
    bag = recording(tmp_path / 'b', short, 1e-6)
    assert Outcome(capsys, 'links', 'compare', bag, *words).code == 1


@pytest.mark.parametrize(
    ('words', 'text'),
    [
        (('run', 'square'), 'allowed: circle, swing'),
        (('run', 'none.yaml'), 'none.yaml'),
        (('run', 'circle', '--arm', '{arm}'), 'the digital control loop is unstable'),
        (('run', 'circle', '--file', '{arm}'), 'arm.yaml'),
        (('run', 'circle', '--file', '{many}'), 'allowed: 1 to 12 links'),
        (('run', 'swing', '--file', '{one}'), 'have 2 angles, allowed: 1'),
        (('run', 'circle', '--plot', 'a.xyz'), "'xyz'"),
        (('sweep', 'links.5.mass', '1:2:2'), 'links.5'),
        (('urdf', '--file', 'none.yaml'), 'none.yaml'),
    ],
)
def test_bad_input_is_one_error(capsys, tmp_path, words, text):
    arm = tmp_path / 'arm.yaml'
    arm.write_text(ARM)
    head, _, entry = default_file().read_text().rpartition('  - length')
    files = {'arm': arm}
    for name, count in (('many', 13), ('one', 1)):
        files[name] = tmp_path / f'{name}.yaml'
        before = head.partition('links:')[0]
        files[name].write_text(f'{before}links:\n' + count * f'  - length{entry}')
    Outcome(capsys, 'links', *(word.format(**files) for word in words)).refused(text)


def test_stability_is_tabulated(capsys):
    arm = default_file().parent / 'two_links_arm.yaml'
    words = ('stability', '--arm', arm, '--times', '0.0001,0.0005,0.002', '--scales', '1,0.25')
    found = Outcome(capsys, 'links', *words, '--format', 'json').json
    radius = {(row['rotors'], row['scale']): row['radius'] for row in found['rows']}
    assert [value < 1.0 for value in radius[True, 1.0]] == [True, True, False]
    assert [value < 1.0 for value in radius[True, 0.25]] == [True, True, True]
    assert [value < 1.0 for value in radius[False, 1.0]] == [False, False, False]
    assert 'of the arm' in Outcome(capsys, 'links', *words).out
