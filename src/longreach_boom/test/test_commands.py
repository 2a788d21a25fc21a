"""``longreach boom``: what it prints, writes and refuses."""

import numpy as np
import pytest
import yaml

from longreach_boom.parameters import load_boom
from longreach_boom.scenario import HangingLoad, Scenario
from longreach_boom.simulation import simulate
from longreach_dynamics.tables import read_table
from longreach_tools.testing import Outcome

PNG = b'\x89PNG'


def test_modes_take_degrees_basis_rotation_pistons_and_count(capsys):
    words = ['modes', '--pose', '70,-50,-35,-30', '--degrees', '--count', 2, '--format', 'json']
    plain = Outcome(capsys, 'boom', *words).json
    words[2:4] = ['site']
    named = Outcome(capsys, 'boom', *words).json
    np.testing.assert_allclose(plain['frequencies_hz'], named['frequencies_hz'], rtol=1e-9)
    seen = [plain['frequencies_hz'][0]]
    for more in (
        ['--set', 'ritz.basis=printed'],
        ['--set', 'ritz.rotation=printed'],
        ['--pistons', 'free'],
    ):
        seen.append(Outcome(capsys, 'boom', *words, *more).json['frequencies_hz'][0])
    assert len(set(seen)) == 4
    (f, second), fe = plain['frequencies_hz'], plain['finite_element_hz']
    assert f < second
    np.testing.assert_allclose(plain['relative_error'], [f / fe[0] - 1.0, second / fe[1] - 1.0])
    assert len(plain['damping_ratios']) == 2


def test_the_tip_of_the_bent_boom_is_where_it_shall_be(capsys):
    words = ('statics', '--tip', '20,8', '--load', 200, '--format', 'json')
    found = Outcome(capsys, 'boom', *words).json
    assert found['tip'] == pytest.approx([20.0, 8.0], abs=2e-5)
    load_boom().check_pose(np.array(found['angles']))
    far = Outcome(capsys, 'boom', 'statics', '--tip', '50,8')
    assert far.code == 2
    assert 'allowed: places within the limits of the joints' in far.err


def test_measure_writes_what_sensors_show_until_a_given_time(capsys, tmp_path):
    file = tmp_path / 'measured.csv'
    words = ('hold', '--duration', 0.5, '--rate', 10, '--sensors', 'default', '--csv', file)
    assert Outcome(capsys, 'boom', 'measure', *words).code == 0
    table = read_table(file)
    load = HangingLoad(mass=90.0)
    run = simulate(load_boom(), Scenario(duration=0.5, pose='site', loads=(load,)))
    assert table['time'].tolist() == [0.0, 0.1, 0.2, 0.3, 0.4, 0.5]
    assert table['piston_1'] == pytest.approx(run.column('piston_1')[::20], abs=1e-12)


def test_measure_takes_the_seed_of_the_sensor_file(capsys, tmp_path):
    file, shown = tmp_path / 'measured.csv', []
    for words in ((), ('--seed', 1), ('--seed', 0)):
        words = ('measure', 'hold', '--duration', 0.1, '--csv', file, *words)
        done = Outcome(capsys, 'boom', *words)
        assert 'gyroscope and accelerometer of --sensors typical: not in the table' in done.err
        shown.append(read_table(file)['p_head_1'])
    np.testing.assert_array_equal(shown[0], shown[1])
    assert np.any(shown[0] != shown[2])


def test_statics_name_what_the_supply_cannot_carry(capsys):
    found = Outcome(capsys, 'boom', 'statics', '--load', 90, '--format', 'json').json
    assert found['beyond_supply'] == []
    heavy = Outcome(capsys, 'boom', 'statics', '--load', 1500)
    assert 'needs more than the supply pressure' in heavy.out


def test_sweep_over_the_first_joint(capsys, tmp_path):
    file, picture = tmp_path / 'sweep.csv', tmp_path / 'sweep.png'
    words = ('statics', '--sweep=-5:85:7', '--degrees', '--csv', file, '--plot', picture)
    rows = Outcome(capsys, 'boom', *words, '--format', 'json').json['rows']
    table = read_table(file, None)
    assert list(table)[:4] == ['phi_1', 'tip_x', 'tip_z', 'force_1']
    np.testing.assert_allclose(np.degrees(table['phi_1']), np.linspace(-5.0, 85.0, 7))
    np.testing.assert_allclose(table['force_1'], [row['force'][0] for row in rows])
    assert picture.read_bytes().startswith(PNG)
    # Gravity's moment falls as the boom rises.
    assert table['strain_1'][0] < table['strain_1'][-1] < 0.0


def test_release_is_the_librarys_run(capsys):
    words = ('release', '--load', 90, '--pose', 'site', '--duration', 2, '--friction', 'off')
    summary = Outcome(capsys, 'boom', *words, '--format', 'json').json
    load = (HangingLoad(mass=90.0),)
    scenario = Scenario(duration=2.0, pose='site', friction=False, loads=load, release=(0.0,))
    expected = simulate(load_boom(), scenario).summary()
    for name in ('tip_start', 'tip_end', 'piston_travel'):
        assert summary[name] == pytest.approx(expected[name], rel=1e-12)
    assert summary['tip_highest'] - summary['tip_start'][1] > 0.5


@pytest.mark.parametrize(
    ('words', 'text'),
    [
        (('modes', '--pose', '0,0,0,nan'), '--pose 0,0,0,nan, allowed: sprawled, site, upright'),
        (('modes', '--count', '1000'), '--count 1000, allowed for this model: 1 to 8'),
        (('modes', '--pose', '70,-50,-35,-30'), 'add --degrees'),
        (('statics', '--csv', 'x.csv'), 'add --sweep'),
        (('release', '--tip', '9,9', '--set', 'scenario.pose=site'), 'option that gives pose, h'),
        (('release', '--load', 0, '--set', 'scenario.loads.0.mass=5'), 'gives loads, here 0.0;'),
        (('release', '--friction', 'off', '--set', 'scenario.friction=on'), 'friction, here off'),
    ],
)
def test_bad_input_is_refused_in_one_line(capsys, words, text):
    Outcome(capsys, 'boom', *words).refused(text)


def test_first_pose_of_the_file_is_the_usual_one(capsys, tmp_path):
    file = tmp_path / 'mine.yaml'
    poses = [{'name': 'low', 'angles_deg': [20, 0, 0, 0]}]
    file.write_text(yaml.safe_dump(load_boom().as_mapping() | {'poses': poses}))
    words = ('--file', file, '--format', 'json')
    found = Outcome(capsys, 'boom', 'statics', *words).json['angles']
    assert found[0] == pytest.approx(np.radians(20.0))
    lift = Outcome(capsys, 'boom', 'release', '--duration', 0.1, '--load', 0, *words).json
    # Without a load nothing moves.
    assert lift['tip_start'] == pytest.approx(lift['tip_end'], abs=1e-12)
    assert lift['tip_start'][0] > 30.0
