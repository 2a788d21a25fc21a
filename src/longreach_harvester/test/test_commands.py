"""``longreach harvester``: what it prints, writes and refuses."""

import csv

import numpy as np
import pytest

from longreach_harvester.parameters import default_file
from longreach_tools.testing import Outcome

PNG = b'\x89PNG'
SHORT = """
duration: 1.0
angles: [0.0, 0.55, -1.2]
spools: {stick: [[0, 0], [0.2, 0.3], [0.5, 0.3], [0.5, 0.0]]}
"""


@pytest.fixture
def short(tmp_path):
    file = tmp_path / 'short.yaml'
    file.write_text(SHORT)
    return file


def test_run_prints_and_writes_its_results(capsys, short, tmp_path):
    table, picture = tmp_path / 'run.csv', tmp_path / 'run.png'
    found = Outcome(
        capsys, 'harvester', 'run', short, '--step', 0.00025, '--format', 'json',
        '--csv', table, '--plot', picture,
    ).json  # fmt: skip
    assert {'final', 'lowest', 'highest', 'wall_time', 'real_time_factor'} <= set(found)
    assert found['switchings'] == 2
    assert found['energy_error'] < 1e-5
    assert found['status'] == 'complete'
    assert picture.read_bytes().startswith(PNG)
    with table.open() as stream:
        head, *rows = csv.reader(stream)
    rows = np.array(rows, dtype=float)
    assert head[:4] == ['time', 'q_swing', 'q_boom', 'q_stick']
    assert rows[-1, head.index('q_stick')] == found['final']['q_stick']
    assert rows[-1, 0] == 1.0


def test_the_tip_has_an_error(capsys):
    error = Outcome(capsys, 'harvester', 'run', 'tip', '--format', 'json').json['tip_error']
    assert 1e-3 < error < 0.2


def test_run_for_people(capsys, short):
    text = Outcome(capsys, 'harvester', 'run', short).out
    assert 'q_stick' in text
    assert 'real_time_factor' in text


def final(capsys, *words):
    return Outcome(capsys, 'harvester', 'run', *words, '--format', 'json').json['final']


def test_options_choose_the_model(capsys, short):
    angles = [
        final(capsys, short, *words)['q_stick']
        for words in ((), ('--model', 'reduced'), ('--switching', 'off'), ('--as-printed',))
    ]
    assert len(set(angles[:3])) == 3
    # With the tank at 0 the printed sign shows only for negative spools; no vapour pressure.
    assert angles[3] == pytest.approx(angles[0], abs=2e-3)
    assert np.ptp(angles) < 0.05


def test_as_printed_the_stick_hangs(capsys):
    """The return line pushes against the supply: 0.5 rad above where it shall be."""
    corrected = final(capsys, 'open_loop')['q_stick']
    printed = final(capsys, 'open_loop', '--as-printed')['q_stick']
    assert printed == pytest.approx(-0.53, abs=0.01)
    assert corrected < -1.0


def test_another_machine_file(capsys, short, tmp_path):
    file = tmp_path / 'mine.yaml'
    file.write_text(default_file().read_text().replace('mass: 850.0', 'mass: 1500.0'))
    assert final(capsys, short, '--file', file) != final(capsys, short)


@pytest.mark.parametrize(
    ('text', 'what'),
    [
        (SHORT.replace('0.5, 0.0', '0.4, 0.0'), 'spools.stick'),
        (SHORT.replace('stick', 'arm'), 'arm is unknown'),
        (SHORT.replace('0.55', '5.5'), 'boom = 5.5'),
        (SHORT.replace('1.0', '1.00001'), 'duration'),
        (SHORT + 'sines: {boom: {amplitude: 0.1, period: 4}}', 'allowed: one'),
        (
            SHORT.split('spools')[0] + 'tip: [{kind: line, duration: 1, to: [9, 0, 0]}]',
            'tip[0]',
        ),
        (
            SHORT.split('spools')[0] + 'tip: [{kind: circle, duration: 1, to: [5, 0, 0]}]',
            'centre and normal',
        ),
    ],
)
def test_wrong_scenarios_are_refused(capsys, tmp_path, text, what):
    file = tmp_path / 'wrong.yaml'
    file.write_text(text)
    Outcome(capsys, 'harvester', 'run', file).refused(what)


def test_steps_that_are_too_long_are_refused(capsys, short):
    Outcome(capsys, 'harvester', 'run', short, '--step', 0.005).refused('at most 0.00')


# --- controlled runs, poses -----------------------------------------------------------------


def test_compare_models_draws_the_figures_of_the_paper(capsys, tmp_path):
    table, picture = tmp_path / 'both.csv', tmp_path / 'both.png'
    words = ('--format', 'json', '--csv', table, '--plot', picture)
    found = Outcome(capsys, 'harvester', 'compare-models', *words).json
    assert found['largest_difference']['q_stick'] < 2e-3
    assert found['largest_difference']['q_boom'] < 1e-3
    assert set(found['real_time_factor']) == {'full', 'reduced'}
    assert picture.read_bytes().startswith(PNG)
    with table.open() as stream:
        head, *rows = csv.reader(stream)
    places = [head.index(f'q_stick_{model}') for model in ('full', 'reduced')]
    angles = np.array(rows, dtype=float)[:, places]
    assert np.abs(angles[:, 0] - angles[:, 1]).max() == pytest.approx(
        found['largest_difference']['q_stick']
    )


def test_pose_of_a_tip_and_of_angles_agree(capsys):
    by_tip = Outcome(capsys, 'harvester', 'pose', '--tip', '5,1,0', '--format', 'json').json
    assert by_tip['tip'] == pytest.approx([5, 1, 0])
    angles = ','.join(map(str, np.degrees(by_tip['angles'])))
    words = ('pose', '--angles', angles, '--degrees', '--format', 'json')
    assert Outcome(capsys, 'harvester', *words).json['tip'] == pytest.approx([5, 1, 0])
    boom, stick = by_tip['cylinders']
    assert boom['force'] > stick['force'] > 0
    assert (
        'swing: 0.1974 rad; tip: x = 5'
        in Outcome(capsys, 'harvester', 'pose', '--tip', '5,1,0').out
    )


@pytest.mark.parametrize(
    ('words', 'what'),
    [
        (('--tip', '9,0,0'), 'from the boom pivot'),
        (('--tip', '0,0,1'), 'swing axis'),
        (('--tip', '1,2'), 'X,Y,Z'),
        (('--angles', '0,1'), '--angles has 2'),
        (('--angles', '0,3,0'), 'boom = 3'),
    ],
)
def test_impossible_poses_are_refused(capsys, words, what):
    Outcome(capsys, 'harvester', 'pose', *words).refused(what)


def test_step_error_is_that_of_much_shorter_steps_or_more(capsys, short):
    found = Outcome(capsys, 'harvester', 'run', short, '--step-error', '--format', 'json').json
    fine = final(capsys, short, '--step', 0.00002)
    error = abs(found['final']['q_stick'] - fine['q_stick'])
    assert 0.5 * error < found['step_error']['q_stick'] < 1e-3
    assert error < found['step_error']['q_stick']


def test_drift_of_closed_valves_with_and_without_switching(capsys):
    found = Outcome(capsys, 'harvester', 'drift', '--duration', 60, '--format', 'json').json
    assert max(found['drift']['on'].values()) < 1e-9
    assert max(found['drift']['off'].values()) > 1e-2
    text = Outcome(capsys, 'harvester', 'drift', '--duration', 5).out
    assert 'switching off' in text
    Outcome(capsys, 'harvester', 'drift', '--duration', 0).refused('above 0')


def test_realistic_machine_by_its_file(capsys, short, tmp_path):
    file, csv_file = default_file().parent / 'harvester_realistic.yaml', tmp_path / 'run.csv'
    words = ('run', short, '--file', file)
    found = Outcome(capsys, 'harvester', *words, '--csv', csv_file, '--format', 'json').json
    assert 'q_head_pitch' in found['final']
    assert found['lowest_pressure'] > 0.0
    head = csv_file.read_text().splitlines()[0].split(',')
    assert {'rail_pressure', 'port_1_boom', 'q_head_roll', 'loss_ports'} <= set(head)
    Outcome(capsys, 'harvester', *words, '--model', 'reduced').refused('does not have pump')


@pytest.mark.slow
def test_sweep_of_a_parameter(capsys, short, tmp_path):
    table = tmp_path / 'sweep.csv'
    words = ('sweep', 'head.mass', '600:1000:3', '--scenario', short, '--csv', table)
    found = Outcome(capsys, 'harvester', *words, '--format', 'json').json
    assert [row['head.mass'] for row in found['rows']] == [600, 800, 1000]
    assert len({row['q_stick'] for row in found['rows']}) == 3
    assert np.all(np.diff([row['highest_p_1_boom'] for row in found['rows']]) > 0)
    assert table.read_text().startswith('head.mass,q_swing')
    text = Outcome(capsys, 'harvester', *words).out
    assert 'highest_p_1_boom [Pa]' in text


def test_wrong_sweeps_are_refused(capsys, short):
    words = ('--scenario', short)
    Outcome(capsys, 'harvester', 'sweep', 'head.weight', '1:2:2', *words).refused('head.weight')
    Outcome(capsys, 'harvester', 'sweep', 'head.mass', '-1:2:2', *words).refused('head.mass')
