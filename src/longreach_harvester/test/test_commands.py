"""``longreach harvester``: what it prints and writes."""

import numpy as np
import pytest

from longreach_dynamics.tables import read_table
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


@pytest.fixture
def result(capsys):
    """Return what gives the JSON that a subcommand prints."""
    return lambda *words: Outcome(capsys, 'harvester', *words, '--format', 'json').json


def test_run_prints_its_results(result, short):
    found = result('run', short, '--step', 0.00025, '--step-error')
    assert {'final', 'lowest', 'highest', 'wall_time', 'real_time_factor'} <= set(found)
    assert found['switchings'] == 2
    assert found['energy_error'] < 1e-5
    fine = result('run', short, '--step', 0.00002)['final']['q_stick']
    assert abs(found['final']['q_stick'] - fine) < found['step_error']['q_stick'] < 1e-3


def test_options_choose_the_model_and_the_file(result, short, tmp_path):
    file = tmp_path / 'mine.yaml'
    file.write_text(default_file().read_text().replace('mass: 850.0', 'mass: 1500.0'))
    choices = ((), ('--model', 'reduced'), ('--switching', 'off'), ('--file', file))
    angles = [
        result('run', short, *words)['final']['q_stick'] for words in (*choices, ('--as-printed',))
    ]
    assert len(set(angles[:4])) == 4
    # With the tank at 0 the printed sign shows only for negative spools; no vapour pressure.
    assert angles[4] == pytest.approx(angles[0], abs=2e-3)
    assert np.ptp(np.delete(angles, 3)) < 0.05


def test_as_printed_the_stick_hangs(result):
    """The return line pushes against the supply: 0.5 rad above where it shall be."""
    corrected, printed = (
        result('run', 'open_loop', *words)['final']['q_stick'] for words in ((), ('--as-printed',))
    )
    assert printed == pytest.approx(-0.53, abs=0.01)
    assert corrected < -1.0


def test_compare_models_gives_the_warnings_of_both_runs_once(capsys):
    words = ('compare-models', 'open_loop', '--set', 'scenario.duration=1.0')
    err = Outcome(capsys, 'harvester', *words).err
    assert err.count('after the end of the run, not reached') == 1


def test_compare_models_draws_the_figures_of_the_paper(result, tmp_path):
    file, picture = tmp_path / 'both.csv', tmp_path / 'both.png'
    words = ('compare-models', '--set', 'scenario.duration=10.0')
    found = result(*words, '--csv', file, '--plot', picture)
    assert found['largest_difference']['q_stick'] < 2e-3
    assert found['largest_difference']['q_boom'] < 1e-3
    assert set(found['real_time_factor']) == {'full', 'reduced'}
    assert picture.read_bytes().startswith(PNG)
    columns = read_table(file)
    assert columns['time'][-1] == 10.0
    difference = np.abs(columns['q_stick_full'] - columns['q_stick_reduced']).max()
    assert difference == pytest.approx(found['largest_difference']['q_stick'])


def test_pose_of_a_tip_and_of_angles_agree(capsys, result):
    by_tip = result('pose', '--tip', '5,1,0')
    angles = ','.join(map(str, np.degrees(by_tip['angles'])))
    again = result('pose', '--pose', angles, '--degrees')
    assert [by_tip['tip'], again['tip']] == pytest.approx(np.array([[5, 1, 0]] * 2))
    boom, stick = by_tip['cylinders']
    assert boom['force'] > stick['force'] > 0
    text = Outcome(capsys, 'harvester', 'pose', '--tip', '5,1,0').out
    assert 'swing: 0.1974 rad; tip: x = 5' in text
    text = Outcome(capsys, 'harvester', 'pose', '--tip', '5,1,0', '--degrees').out
    assert 'swing: 11.3099 deg; tip: x = 5' in text
    assert 'angle [deg]' in text
    assert result('pose', '--degrees') == result('pose')


def test_pose_has_lengths_of_cylinders_between_pins_only(result):
    """By the law of cosines; a rocker has no pins."""
    rocker = '{kind: rocker, lever: 0.4, shape: 0.1, offset: 0.5}'
    words = ('pose', '--pose', '0,0.5,-1', '--set', f'stick_cylinder.linkage={rocker}')
    boom, stick = (one['length'] for one in result(*words)['cylinders'])
    expected = np.sqrt(1.3**2 + 0.45**2 - 2.0 * 1.3 * 0.45 * np.cos(0.5 + 1.2))
    assert boom == pytest.approx(expected)
    assert stick is None
