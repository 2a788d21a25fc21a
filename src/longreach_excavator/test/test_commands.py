"""``longreach excavator``: what it prints, writes and refuses."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from longreach_dynamics.resources import share_directory
from longreach_excavator.columns import COLUMNS
from longreach_excavator.parameters import default_file, load_excavator
from longreach_excavator.scenario import dig_scenario
from longreach_excavator.simulation import simulate
from longreach_tools.testing import Outcome

PNG = b'\x89PNG'


THESIS = ('--file', default_file('thesis'))


def read(file: Path) -> tuple[list[str], np.ndarray]:
    with file.open() as stream:
        head, *rows = csv.reader(stream)
    return head, np.array(rows, dtype=float)


def edited(tmp_path: Path, old: str, new: str) -> Path:
    text = default_file().read_text(encoding='utf-8')
    assert text.count(old) >= 1
    file = tmp_path / 'mine.yaml'
    file.write_text(text.replace(old, new, 1), encoding='utf-8')
    return file


# --- dig ------------------------------------------------------------------------------------


def test_dig_as_json(capsys):
    words = ('dig', *THESIS, '--cohesion', 17000, '--format', 'json')
    found = Outcome(capsys, 'excavator', *words).json
    assert {
        'sweep_deg',
        'time_to_sweep_s',
        'stalled',
        'peak_soil_force_n',
        'peak_reactions_n',
    } <= set(found)
    assert set(found['peak_reactions_n']) == {'boom_chassis', 'arm_boom', 'bucket_arm'}
    # The thesis' motion took about six seconds; its soil reached 86 kN.
    assert 5.0 < found['time_to_sweep_s'] < 7.0
    assert 108.9 < found['sweep_deg'] < 114.0
    assert found['peak_soil_force_n'] == pytest.approx(86.47e3, rel=1e-3)
    assert not found['stalled']
    assert found['energy_error'] < 1e-6


def test_a_cohesion_in_kilopascals_is_warned_of(capsys: pytest.CaptureFixture[str]) -> None:
    done = Outcome(capsys, 'excavator', 'dig', '--cohesion', 17, '--duration', 0.1)
    assert 'the cohesion is 17 Pa, in Pa, not kPa' in done.err


def test_dig_stalls_in_harder_soil(capsys):
    found = Outcome(capsys, 'excavator', 'dig', '--cohesion', 20000, '--format', 'json').json
    assert found['stalled']
    assert found['time_to_sweep_s'] is None
    assert found['sweep_deg'] < 60.0
    text = Outcome(capsys, 'excavator', 'dig', '--cohesion', 20000)
    assert 'not reached' in text.out


def test_printed_forces_sweep_at_once(capsys):
    words = ('dig', '--mode', 'printed', '--cohesion', 17000, '--format', 'json')
    found = Outcome(capsys, 'excavator', *words).json
    assert 0.1 < found['time_to_sweep_s'] < 0.2
    assert 108.9 <= found['sweep_deg'] < 111.0
    assert found['energy_error'] < 1e-6


def test_more_flow_is_faster_and_less_is_slower(capsys):
    times = [
        Outcome(
            capsys,
            'excavator',
            'dig',
            *THESIS,
            '--flow',
            flow,
            '--duration',
            15,
            '--format',
            'json',
        ).json['time_to_sweep_s']
        for flow in (100, 200, 400)
    ]
    assert times[0] > 1.5 * times[1] > 2.25 * times[2]


def test_flow_is_that_of_the_file_by_default(capsys):
    words = ('dig', *THESIS, '--format', 'json')
    plain = Outcome(capsys, 'excavator', *words).json
    told = Outcome(capsys, 'excavator', *words, '--flow', 200).json
    assert plain['time_to_sweep_s'] == pytest.approx(told['time_to_sweep_s'], rel=2e-2)


def test_dig_writes_table_and_picture(capsys, tmp_path):
    table, picture = tmp_path / 'dig.csv', tmp_path / 'dig.png'
    outcome = Outcome(
        capsys, 'excavator', 'dig', '--duration', 1, '--csv', table, '--plot', picture
    )
    assert outcome.code == 0, outcome.err
    head, rows = read(table)
    expected = simulate(load_excavator(), dig_scenario(duration=1.0))
    assert tuple(head) == expected.columns.names
    np.testing.assert_array_equal(rows, expected.table)
    assert picture.read_bytes().startswith(PNG)


def test_dig_takes_its_own_forces_back(capsys, tmp_path):
    """Forces of a hydraulic run, given as measured ones, move the machine the same way."""
    table = tmp_path / 'forces.csv'
    words = ('dig', '--cohesion', 15000, '--duration', 2, '--sample-time', 0.001)
    assert Outcome(capsys, 'excavator', *words, '--csv', table).code == 0
    again = tmp_path / 'again.csv'
    words = ('dig', '--mode', 'printed', '--forces', table, *words[1:], '--csv', again)
    assert Outcome(capsys, 'excavator', *words).code == 0
    _, first = read(table)
    _, second = read(again)
    angles = [COLUMNS.place(f'theta_{k}') for k in (2, 3, 4)]
    # Straight lines between the rows are not the forces within a step.
    np.testing.assert_allclose(first[:, angles], second[:, angles], atol=2e-3)


def test_dig_takes_pressures(capsys, tmp_path):
    table = tmp_path / 'run.csv'
    words = ('--cohesion', 15000, '--duration', 1, '--sample-time', 0.001)
    Outcome(capsys, 'excavator', 'dig', *words, '--csv', table)
    head, rows = read(table)
    names = ['time', *(name for name in head if name.startswith(('p_head', 'p_rod')))]
    pressures = tmp_path / 'pressures.csv'
    lines = [','.join(names)]
    lines += [','.join(f'{row[head.index(n)]:.17g}' for n in names) for row in rows]
    pressures.write_text('\n'.join(lines), encoding='utf-8')
    outs = [
        Outcome(
            capsys,
            'excavator',
            *('dig', '--mode', 'printed', '--forces', file, *words, '--format', 'json'),
        ).json
        for file in (table, pressures)
    ]
    assert outs[0]['sweep_deg'] == pytest.approx(outs[1]['sweep_deg'], rel=1e-9)


def test_laws_and_depths_differ(capsys):
    peaks = {
        words: Outcome(
            capsys, 'excavator', 'dig', *words, '--duration', 4, '--format', 'json'
        ).json['peak_soil_force_n']
        for words in ((), ('--law', 'earthmoving'), ('--depth', 'surface'))
    }
    assert len({round(peak) for peak in peaks.values()}) == 3


@pytest.mark.parametrize(
    ('words', 'text'),
    [
        (('--cohesion', -1), '-1, allowed: 0 or more'),
        (('--cohesion', 'nan'), 'nan'),
        (('--cohesion', 2e6), 'cohesion = 2000000.0, allowed: [0, 1e+06]'),
        (('--duration', 0), '0, allowed'),
        (('--mode', 'printed', '--flow', 200), '--flow belongs to --mode hydraulic'),
        (('--forces', 'forces.csv'), 'belongs to mode: printed'),
        (('--mode', 'printed', '--forces', 'no.csv'), 'no.csv cannot be read'),
        (('--pose', 'somewhere'), "pose = 'somewhere', allowed: dig"),
        (('--step', 0.01), 'step = 0.01 s, allowed'),
        (('--step', 0.0007), 'sample_time = 0.005 s, allowed: whole steps'),
        (('--plot', 'x.txt'), "extension 'txt'"),
        (('--flow', 0), '0, allowed'),
        (('--flow', 1e9), '--flow 1e+09 L/min: cylinders.bucket.valve.area = '),
        (('--flow', 5e4), 'wide valves'),
    ],
)
def test_dig_refuses(capsys, tmp_path, monkeypatch, words, text):
    monkeypatch.chdir(tmp_path)
    Outcome(capsys, 'excavator', 'dig', *words).refused(text)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ('old', 'new', 'text'),
    [
        ('mass: 735.0', 'mass: -735.0', 'arm.mass = -735.0, allowed: (0, 1e+06]'),
        ('llk: 0.584', 'llk: 5.84', 'the bucket linkage closes nowhere'),
        ('stroke: 1.022', 'stroke: 3.022', 'cylinders[2] (bucket): retracted = 1.577 m'),
        ('retracted: 1.577', 'retracted: 1.4', 'cylinders[2] (bucket): retracted = 1.4 m'),
        ('rod: 0.095', 'rod: 0.135', 'rod = 0.135 m, allowed: below bore = 0.135 m'),
        ('- name: arm', '- name: stick', "cylinders have the names ('boom', 'stick', 'bucket')"),
        ('law: zelenin', 'law: sand', "soil.law = 'sand'"),
        ('cohesion: 1.7e+4', 'cohesion: wet', "soil.cohesion = 'wet'"),
        ('angles_deg: [20.0, -95.0, 39.45]', 'angles_deg: [20.0, -95.0]', 'pose has 2 angles'),
        ('inertia: 107.0', 'inertia: 0.0', 'bucket.inertia = 0.0, allowed: (0, inf)'),
        ('bulk_modulus: 1.7e+9', 'bulk_modulus: 1.7e+13', 'oil.bulk_modulus'),
    ],
)
def test_impossible_machines_are_refused_by_name_value_and_range(capsys, tmp_path, old, new, text):
    Outcome(capsys, 'excavator', 'dig', '--file', edited(tmp_path, old, new)).refused(text)


def test_the_installed_scenarios_are_the_digging(capsys):
    scenarios = share_directory('longreach_bringup') / 'config/scenarios'
    for name, cohesion in (('17', 17000), ('20', 20000)):
        words = ('run', scenarios / f'excavator_dig_{name}kpa.yaml', '--format', 'json')
        run = Outcome(capsys, 'excavator', *words).json
        del run['scenario']
        words = ('dig', '--cohesion', cohesion, '--duration', 8, '--format', 'json')
        assert run == Outcome(capsys, 'excavator', *words).json


# --- run, pose, urdf ------------------------------------------------------------------------


def test_run_takes_a_scenario(capsys, tmp_path):
    file = tmp_path / 'lift.yaml'
    file.write_text(
        'duration: 2.0\npose: reach\nsoil: false\n'
        'valve_commands:\n  - {time: 0.5, spools: [0.3, 0.0, 0.0]}\n',
        encoding='utf-8',
    )
    table = tmp_path / 'lift.csv'
    outcome = Outcome(capsys, 'excavator', 'run', file, '--csv', table, '--format', 'json')
    assert outcome.json['peak_soil_force_n'] == 0.0
    head, rows = read(table)
    column = dict(zip(head, rows.T, strict=True))
    still = column['time'] <= 0.5
    # Closed spools leak.
    assert np.ptp(column['theta_2'][still]) < 1e-5
    assert column['theta_2'][-1] > column['theta_2'][0] + 0.05


def test_run_names_file_and_key(capsys, tmp_path):
    file = tmp_path / 'bad.yaml'
    file.write_text('duration: 2.0\npose: dig\nloose: [blade]\n', encoding='utf-8')
    Outcome(capsys, 'excavator', 'run', file).refused(f"{file}: loose has 'blade'")


def test_the_tooth_is_where_it_shall_be(capsys):
    words = ('pose', '--tip', '6,-1', '--format', 'json')
    near = Outcome(capsys, 'excavator', *words).json
    assert near['tip_m'] == pytest.approx([6.0, -1.0], abs=1e-5)
    words = ('pose', '--tip', '6,-1,-80', '--degrees', '--format', 'json')
    turned = Outcome(capsys, 'excavator', *words).json
    assert turned['tip_m'] == pytest.approx([6.0, -1.0], abs=1e-5)
    assert sum(turned['theta_deg']) == pytest.approx(-80.0, abs=1e-4)
    far = Outcome(capsys, 'excavator', 'pose', '--tip', '16,-1')
    assert far.code == 2
    assert 'tooth = [16.0, -1.0], allowed: places within the limits' in far.err
    assert 'x,z or x,z,attitude' in Outcome(capsys, 'excavator', 'pose', '--tip', '1').err


def test_pose_in_angles_and_lengths_is_one(capsys):
    words = ('pose', '--pose', '20,-95,39.45', '--degrees', '--format', 'json')
    found = Outcome(capsys, 'excavator', *words).json
    lengths = ','.join(str(length) for length in found['length_m'])
    back = Outcome(capsys, 'excavator', 'pose', '--lengths', lengths, '--format', 'json').json
    np.testing.assert_allclose(back['theta_deg'], [20.0, -95.0, 39.45], atol=1e-9)
    named = Outcome(capsys, 'excavator', 'pose', '--pose', 'dig', '--format', 'json').json
    np.testing.assert_allclose(named['force_n'], found['force_n'], rtol=1e-9)
    # Standing in the air, all of the weight's moment about A is the boom cylinder's.
    assert found['force_n'][0] > 0.0


@pytest.mark.parametrize(
    ('words', 'text'),
    [
        (('--pose', '20,-95,70', '--degrees'), 'theta_4 (bucket) = 70 deg, allowed'),
        (('--pose', '20,-95,39'), 'add --degrees'),
        (('--pose', '1,2'), 'pose has 2 angles, allowed: 3'),
        (('--pose', 'up'), '3 angles separated by commas'),
        (('--lengths', '2.5,2.6,1.5'), 'length of the bucket cylinder = 1.5 m, allowed'),
        (('--lengths', '2.5,2.6,2.7'), 'theta_4 (bucket)'),
        (('--lengths', '2.5,2.6'), 'three finite numbers'),
    ],
)
def test_poses_that_cannot_be_are_refused(capsys, words, text):
    Outcome(capsys, 'excavator', 'pose', *words).refused(text)


def test_urdf_of_another_machine(capsys, tmp_path):
    plain = Outcome(capsys, 'excavator', 'urdf').out
    other = Outcome(capsys, 'excavator', 'urdf', '--file', edited(tmp_path, '2.889', '2.9')).out
    assert plain.startswith('<?xml')
    assert plain.endswith('</robot>\n')
    assert plain != other


# --- inverse, cohesion ----------------------------------------------------------------------


@pytest.fixture
def recorded(capsys, tmp_path):
    file = tmp_path / 'dug.csv'
    words = ('dig', '--cohesion', 16000, '--duration', 3, '--csv', file)
    assert Outcome(capsys, 'excavator', *words).code == 0
    return file


def test_inverse_gives_back_the_forces_of_a_dig(capsys, tmp_path, recorded):
    loads, picture = tmp_path / 'loads.csv', tmp_path / 'loads.svg'
    words = ('inverse', '--motion', recorded, '--csv', loads, '--plot', picture)
    found = Outcome(capsys, 'excavator', *words, '--format', 'json').json
    head, rows = read(recorded)
    names, table = read(loads)
    for name in ('pin_force_boom', 'pin_force_arm', 'pin_force_bucket', 'force_lk'):
        np.testing.assert_allclose(
            table[:, names.index(name)], rows[:, head.index(name)], rtol=1e-9, atol=1e-3
        )
    top = found['extremes']['pin_c']
    reaction = np.hypot(rows[:, head.index('arm_boom_x')], rows[:, head.index('arm_boom_z')])
    assert top['highest'] == pytest.approx(reaction.max(), rel=1e-9)
    assert top['highest_time'] == pytest.approx(rows[reaction.argmax(), 0])
    assert b'<svg' in picture.read_bytes()
    assert 'pin_c' in Outcome(capsys, 'excavator', 'inverse', '--motion', recorded).out


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
    head, rows = read(fit)
    assert head[:3] == ['time', 'force_lk_measured', 'force_lk_fitted']
    np.testing.assert_allclose(rows[:, 1], rows[:, 2], atol=50.0)
    assert picture.read_bytes().startswith(PNG)


@pytest.mark.slow
def test_cohesion_from_a_final_pose(capsys, tmp_path):
    """As in the thesis: where the bucket came to rest tells the cohesion, if it stalled."""
    words = ('dig', '--cohesion', 21000, '--csv', tmp_path / 'stalled.csv')
    Outcome(capsys, 'excavator', *words)
    head, rows = read(tmp_path / 'stalled.csv')
    pose = tmp_path / 'pose.csv'
    end = np.degrees(rows[-1, [head.index(f'theta_{k}') for k in (2, 3, 4)]])
    pose.write_text(
        'theta_2_deg,theta_3_deg,theta_4_deg\n' + ','.join(map(str, end)), encoding='utf-8'
    )
    words = ('cohesion', '--data', pose, '--format', 'json')
    found = Outcome(capsys, 'excavator', *words).json
    assert found['cohesion_pa'] == pytest.approx(21e3, rel=1e-3)
    assert found['stalled']


@pytest.mark.parametrize(
    ('text', 'words', 'part'),
    [
        ('time,theta_2\n0,0.1\n1,0.2\n', ('inverse', '--motion'), 'theta_3'),
        ('time,theta_2,theta_3,theta_4\n', ('inverse', '--motion'), '1 lines'),
        (
            'time,theta_2,theta_3,theta_4\n1,0.3,-1.6,0\n0,0.3,-1.6,0\n',
            ('inverse', '--motion'),
            'sort the rows',
        ),
        ('time,x\n0,1\n1,2\n', ('cohesion', '--data'), 'found the columns time, x'),
        ('time,strain_lk\n0,1e-4\n1,2e-4\n', ('cohesion', '--data'), 'rod_area is missing'),
        ('time,force_lk\n0,a\n1,2\n', ('cohesion', '--data'), "force_lk = 'a'"),
    ],
)
def test_files_that_cannot_be_used_are_refused(capsys, tmp_path, text, words, part):
    file = tmp_path / 'data.csv'
    file.write_text(text, encoding='utf-8')
    Outcome(capsys, 'excavator', *words, file).refused(part)


def test_steps_of_another_order_agree(capsys):
    """The thesis' steps and the stepper of the other machines."""
    words = ('dig', '--cohesion', 17000, '--format', 'json')
    steps = Outcome(capsys, 'excavator', *words).json
    fine = Outcome(capsys, 'excavator', *words, '--tolerance', 1e-10).json
    assert steps['time_to_sweep_s'] == pytest.approx(fine['time_to_sweep_s'], abs=1e-5)
    assert steps['sweep_deg'] == pytest.approx(fine['sweep_deg'], abs=1e-3)
    assert fine['energy_error'] < 1e-12
    Outcome(capsys, 'excavator', *words, '--tolerance', 1).refused('tolerance = 1.0')


def test_sweep_of_the_scenarios_cohesion(capsys):
    words = ('sweep', 'scenario.cohesion', '0:10e3:2', '--processes', 1, '--format', 'json')
    soft, hard = Outcome(capsys, 'excavator', *words).json['rows']
    assert soft['time_to_sweep_s'] < hard['time_to_sweep_s']
    assert soft['peak_soil_force_n'] < hard['peak_soil_force_n']


def test_sweep_of_what_the_scenario_sets_is_told(capsys):
    words = ('sweep', 'soil.cohesion', '1e3:2e3:2', '--processes', 1)
    assert 'all runs have the same results' in Outcome(capsys, 'excavator', *words).err
