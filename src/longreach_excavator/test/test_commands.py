"""``longreach excavator``: what it prints, writes and refuses."""

import numpy as np
import pytest

from longreach_dynamics.resources import share_directory
from longreach_dynamics.tables import read_table
from longreach_excavator.parameters import default_file
from longreach_tools.output import write_csv
from longreach_tools.testing import Outcome

PNG = b'\x89PNG'
THESIS = ('--file', default_file('thesis'))


@pytest.mark.parametrize(
    'words',
    [
        ('run', 'dig_17kpa', '--duration', 0.1),
        ('dig', '--cohesion', 17000, '--duration', 0.1),
        ('forces', '--cohesion', 17000),
        ('linearize', '--time', 0.1),
        ('fmu', '--out', 'dig.fmu'),
        ('sweep', 'scenario.duration', '0.05:0.1:2', '--processes', 1),
    ],
)
def test_a_value_that_the_scenario_sets_is_said(capsys, tmp_path, monkeypatch, words):
    monkeypatch.chdir(tmp_path)
    done = Outcome(capsys, 'excavator', *words, '--set', 'soil.cohesion=40000')
    assert done.err.count('--set soil.cohesion has no effect: the scenario sets it\n') == 1
    if words[0] == 'run':
        done = Outcome(capsys, 'excavator', *words, '--set', 'soil.law=zelenin')
        assert 'no effect' not in done.err


def test_a_cohesion_in_kilopascals_is_warned_of(capsys):
    done = Outcome(capsys, 'excavator', 'dig', '--cohesion', 17, '--duration', 0.1)
    assert 'the cohesion is 17 Pa, in Pa, not kPa' in done.err


def test_forces_says_what_dig_says(capsys):
    words = ('--depth', 'swing', '--cohesion', 17000)
    dug = Outcome(capsys, 'excavator', 'dig', *words, '--duration', 6)
    done = Outcome(capsys, 'excavator', 'forces', *words)
    assert (done.code, done.err) == (0, dug.err)
    assert "assumes the bucket's joint D at rest" in done.err
    heavy = ('--set', 'gravity=100', '--set', 'boom.mass=1000000')
    Outcome(capsys, 'excavator', 'forces', *heavy).refused('runs away in the step at', code=1)


def test_printed_forces_have_a_row_for_each_step(capsys, tmp_path):
    words = ('dig', '--mode', 'printed', '--csv', tmp_path / 'dug.csv')
    assert Outcome(capsys, 'excavator', *words).code == 0
    assert read_table(tmp_path / 'dug.csv')['time'][1] == 1e-3


def test_more_flow_is_faster_and_less_is_slower(capsys):
    words = ('excavator', 'dig', *THESIS, '--duration', 15, '--format', 'json', '--flow')
    times = [Outcome(capsys, *words, flow).json['time_to_sweep_s'] for flow in (100, 200, 400)]
    assert times[0] > 1.5 * times[1] > 2.25 * times[2]


def test_the_installed_scenarios_are_the_digging(capsys):
    scenarios = share_directory('longreach_bringup') / 'config/scenarios'
    for name, cohesion in (('17', 17000), ('20', 20000)):
        words = ('run', scenarios / f'excavator_dig_{name}kpa.yaml', '--format', 'json')
        run = Outcome(capsys, 'excavator', *words).json
        del run['scenario']
        words = ('dig', '--cohesion', cohesion, '--duration', 8, '--format', 'json')
        assert run == Outcome(capsys, 'excavator', *words).json


@pytest.mark.parametrize('duration', [0.3, 0.005])
def test_a_bucket_that_turns_upwards_or_hardly_is_drawn(capsys, tmp_path, duration):
    scenario, picture = tmp_path / 'up.yaml', tmp_path / 'up.png'
    commands = 'valve_commands: [{time: 0.0, spools: [0.5, 0, 0]}]'
    scenario.write_text(f'{{duration: {duration}, pose: dig, soil: false, {commands}}}')
    assert Outcome(capsys, 'excavator', 'run', scenario, '--plot', picture).code == 0
    assert picture.read_bytes().startswith(PNG)


def test_the_tooth_is_where_it_shall_be(capsys):
    # At the second place a search from the installed pose alone ends elsewhere.
    for target in ('6,-1', '5.7746,3.3506', '6,-1,-80'):
        words = ('pose', '--tip', target, '--degrees', '--format', 'json')
        found = Outcome(capsys, 'excavator', *words).json
        assert found['tip_m'] == pytest.approx(np.fromstring(target, sep=',')[:2], abs=1e-5)
    assert sum(found['theta_deg']) == pytest.approx(-80.0, abs=1e-4)
    far = Outcome(capsys, 'excavator', 'pose', '--tip', '5,-2,-30', '--degrees')
    far.refused('tooth and attitude [m, m, rad] = [5.0, -2.0, -0.523599], allowed')


def test_a_named_pose_is_that_of_its_angles(capsys):
    words = ('pose', '--pose', '20,-95,39.45', '--degrees', '--format', 'json')
    found = Outcome(capsys, 'excavator', *words).json
    named = Outcome(capsys, 'excavator', 'pose', '--pose', 'dig', '--format', 'json').json
    np.testing.assert_allclose(named['force_n'], found['force_n'], rtol=1e-9)
    # Standing in the air, all of the weight's moment about A is the boom cylinder's.
    assert found['force_n'][0] > 0.0


def test_inverse_reads_a_dig(capsys, tmp_path):
    recorded, loads, picture = (tmp_path / name for name in ('dug.csv', 'loads.csv', 'loads.svg'))
    assert Outcome(capsys, 'excavator', 'dig', '--duration', 1, '--csv', recorded).code == 0
    words = ('inverse', '--motion', recorded, '--csv', loads, '--plot', picture)
    found = Outcome(capsys, 'excavator', *words)
    assert 'pin_c' in found.out
    found, expected = (read_table(file)['pin_force_boom'] for file in (loads, recorded))
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-3)
    assert b'<svg' in picture.read_bytes()


def test_inverse_does_not_ask_the_pump_for_what_a_stop_holds(capsys, tmp_path, cycle):
    file = tmp_path / 'cycle.csv'
    write_csv(file, cycle.columns.names, cycle.table)
    words = ('excavator', 'inverse', '--motion', file)
    assert Outcome(capsys, *words).err == ''
    weak = Outcome(capsys, *words, '--set', 'oil.supply_pressure=8e6').err
    assert 'boom needs more than the supply pressure of 8e+06 Pa' in weak
    names = ('time', 'theta_2', 'theta_3', 'theta_4')
    write_csv(file, names, cycle.stack(names))
    assert 'cycle.csv has no force_x, force_z: without soil' in Outcome(capsys, *words).err
    write_csv(file, (*names, 'froce_x'), cycle.stack((*names, 'time')))
    error = Outcome(capsys, *words, '--soil', 'none', '--surface', 0).err
    assert 'cycle.csv: not used: froce_x; used: time, theta_2' in error
    assert '--surface: only for the column depth, as --soil is none' in error


@pytest.mark.slow
def test_cohesion_of_a_dig_is_found_again(capsys, tmp_path):
    recorded, fit, picture = (tmp_path / name for name in ('dug.csv', 'fit.csv', 'fit.png'))
    words = ('dig', '--cohesion', 16000, '--duration', 3, '--csv', recorded, *THESIS)
    assert Outcome(capsys, 'excavator', *words).code == 0
    words = ('cohesion', '--data', recorded, '--csv', fit, '--plot', picture, *THESIS)
    found = Outcome(capsys, 'excavator', *words, '--format', 'json').json
    assert found['cohesion_pa'] == pytest.approx(16e3, rel=1e-5)
    # With the other depth the same forces mean a harder soil: that joint rises.
    assert found['depth'] == 'swing'
    assert 16.5e3 < found['cohesion_with_depth_surface_pa'] < 20e3
    forces = read_table(fit)
    np.testing.assert_allclose(forces['force_lk_measured'], forces['force_lk_fitted'], atol=50.0)
    assert picture.read_bytes().startswith(PNG)
