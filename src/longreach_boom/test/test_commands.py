"""``longreach boom``: what it prints, writes and refuses."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from longreach_boom.parameters import default_file, load_boom
from longreach_boom.results import columns_of
from longreach_boom.scenario import HangingLoad, Scenario
from longreach_boom.simulation import simulate
from longreach_tools import machine_command
from longreach_tools.testing import Outcome

PNG = b'\x89PNG'


def read(file: Path) -> tuple[list[str], np.ndarray]:
    with file.open() as stream:
        head, *rows = csv.reader(stream)
    return head, np.array(rows, dtype=float)


# --- modes ----------------------------------------------------------------------------------


def test_modes_as_json(capsys):
    found = Outcome(capsys, 'boom', 'modes', '--pose', '0,0,0,0', '--format', 'json').json
    assert set(found) == {
        'frequencies_hz',
        'damping_ratios',
        'finite_element_hz',
        'relative_error',
    }
    assert all(len(values) == 6 for values in found.values())
    assert found['frequencies_hz'] == sorted(found['frequencies_hz'])
    for f, fe, error in zip(
        found['frequencies_hz'], found['finite_element_hz'], found['relative_error'], strict=True
    ):
        assert error == pytest.approx(f / fe - 1.0)


def test_modes_take_degrees_basis_rotation_pistons_and_count(capsys):
    words = ['modes', '--pose', '70,-50,-35,-30', '--degrees', '--count', 2, '--format', 'json']
    plain = Outcome(capsys, 'boom', *words).json
    named = Outcome(
        capsys, 'boom', 'modes', '--pose', 'site', '--count', 2, '--format', 'json'
    ).json
    np.testing.assert_allclose(plain['frequencies_hz'], named['frequencies_hz'], rtol=1e-9)
    seen = [plain['frequencies_hz'][0]]
    for more in (['--basis', 'printed'], ['--rotation', 'printed'], ['--pistons', 'free']):
        seen.append(Outcome(capsys, 'boom', *words, *more).json['frequencies_hz'][0])
    assert len(set(seen)) == 4
    assert len(plain['frequencies_hz']) == 2


def test_negative_first_angle_can_be_given(capsys):
    words = ('modes', '--count', 1, '--format', 'json')
    joined = Outcome(capsys, 'boom', *words, '--pose=-0.05,-.5,0,0').json
    apart = Outcome(capsys, 'boom', *words, '--pose', '-0.05,-.5,0,0').json
    assert joined == apart
    assert joined['frequencies_hz'][0] > 0.0


# --- statics --------------------------------------------------------------------------------


def test_the_tip_of_the_bent_boom_is_where_it_shall_be(capsys):
    words = ('statics', '--tip', '20,8', '--load', 200, '--format', 'json')
    found = Outcome(capsys, 'boom', *words).json
    assert found['tip'] == pytest.approx([20.0, 8.0], abs=2e-5)
    load_boom().check_pose(np.array(found['angles']))
    far = Outcome(capsys, 'boom', 'statics', '--tip', '50,8')
    assert far.code == 2
    assert 'allowed: places within the limits of the joints' in far.err


def test_statics_show_forces_and_pressures(capsys):
    found = Outcome(capsys, 'boom', 'statics', '--load', 90, '--format', 'json').json
    boom = load_boom()
    # What the notes of the boom file's author expect of it, sprawled with 90 kg.
    assert all(0.56 < share < 0.70 for share in found['force_share'])
    for i, cylinder in enumerate(boom.cylinders):
        force = found['head_pressure'][i] * cylinder.head_area
        force -= found['rod_pressure'][i] * cylinder.rod_area
        assert force == pytest.approx(found['force'][i], rel=1e-12)
    assert found['beyond_supply'] == []
    heavy = Outcome(capsys, 'boom', 'statics', '--load', 1500)
    assert 'needs more than the supply pressure' in heavy.out


def test_statics_say_which_relief_valves_do_not_hold(capsys):
    words = ('statics', '--load', 250)
    # Sprawled with 250 kg, cylinder_3 has 314 bar: below the supply, above its relief valve.
    found = Outcome(capsys, 'boom', *words, '--format', 'json').json
    assert found['beyond_supply'] == ['cylinder_4']
    assert found['beyond_relief'] == ['cylinder_3', 'cylinder_4']
    text = Outcome(capsys, 'boom', *words).out
    assert 'cylinder_3 carries more than its relief valve holds' in text


def test_sweep_over_the_first_joint(capsys, tmp_path):
    file, picture = tmp_path / 'sweep.csv', tmp_path / 'sweep.png'
    words = ('statics', '--sweep=-5:85:7', '--degrees', '--csv', file, '--plot', picture)
    rows = Outcome(capsys, 'boom', *words, '--format', 'json').json['rows']
    head, table = read(file)
    assert head[:4] == ['phi_1', 'tip_x', 'tip_z', 'force_1']
    np.testing.assert_allclose(np.degrees(table[:, 0]), np.linspace(-5.0, 85.0, 7))
    np.testing.assert_allclose(table[:, 3], [row['force'][0] for row in rows])
    assert picture.read_bytes().startswith(PNG)
    # Gravity's moment falls as the boom rises.
    assert table[0, 3 + 4] < table[-1, 3 + 4] < 0.0


# --- release --------------------------------------------------------------------------------


def test_release_writes_the_librarys_run(capsys, tmp_path):
    file, picture = tmp_path / 'run.csv', tmp_path / 'run.png'
    words = ('release', '--load', 90, '--pose', 'site', '--duration', 2, '--friction', 'on')
    summary = Outcome(
        capsys, 'boom', *words, '--csv', file, '--plot', picture, '--format', 'json'
    ).json
    head, table = read(file)
    boom = load_boom()
    assert head[: 3 + 6 * 4] == list(columns_of(boom).names)[: 3 + 6 * 4]
    assert head[:4] == ['time', 'tip_x', 'tip_z', 'phi_1']
    assert picture.read_bytes().startswith(PNG)
    scenario = Scenario(duration=2.0, pose='site', loads=(HangingLoad(mass=90.0),), release=(0.0,))
    np.testing.assert_allclose(table, simulate(boom, scenario).table, rtol=1e-12, atol=1e-12)
    assert summary['tip_end'] == pytest.approx(table[-1, 1:3])
    assert summary['tip_highest'] - summary['tip_start'][1] > 0.5


def test_friction_off_lets_all_pistons_slide(capsys, tmp_path):
    modes = {}
    for friction in ('on', 'off'):
        file = tmp_path / f'{friction}.csv'
        words = ('release', '--duration', 1, '--friction', friction, '--csv', file)
        assert Outcome(capsys, 'boom', *words).code == 0
        head, table = read(file)
        modes[friction] = table[:, [head.index(f'mode_{i}') for i in range(1, 5)]]
    assert (modes['on'] == 0).any()
    assert (modes['off'] != 0).all()


def test_load_hangs_where_it_is_told_to(capsys):
    words = ('release', '--duration', 0.1, '--format', 'json')
    tip = Outcome(capsys, 'boom', *words).json['tip_start']
    inner = Outcome(capsys, 'boom', *words, '--load-beam', 'beam_2', '--load-position', 3).json
    assert inner['tip_start'][1] > tip[1]
    none = Outcome(capsys, 'boom', *words, '--load', 0).json
    assert none['tip_start'] == pytest.approx(none['tip_end'], abs=1e-12)


def test_sweep_of_a_parameter(capsys, tmp_path):
    file = tmp_path / 'sweep.csv'
    words = ('sweep', 'oil.bulk_modulus', '0.7e9:1.4e9:2', '--duration', 2, '--processes', 1)
    found = Outcome(capsys, 'boom', *words, '--csv', file, '--format', 'json').json
    head, table = read(file)
    assert head[:3] == ['oil.bulk_modulus', 'tip_highest', 'tip_lowest']
    assert table[0, 1] > table[1, 1]
    assert found['rows'][0]['tip_highest'] == table[0, 1]


def test_basis_reports_the_error_of_the_fit(capsys, tmp_path):
    picture = tmp_path / 'basis.png'
    words = ('basis', '--basis', 'printed', '--plot', picture, '--format', 'json')
    beams = Outcome(capsys, 'boom', *words).json['beams']
    assert 1e-4 < beams[0]['fit_error'] < 1e-3
    assert all(beam['fit_error'] < 1e-4 for beam in beams[1:])
    assert picture.read_bytes().startswith(PNG)


def test_mode_shapes_are_drawn(capsys, tmp_path):
    picture = tmp_path / 'modes.png'
    assert Outcome(capsys, 'boom', 'modes', '--plot', picture).code == 0
    assert picture.read_bytes().startswith(PNG)


def test_urdf_is_printed(capsys):
    text = Outcome(capsys, 'boom', 'urdf').out
    assert '<robot name="boom">' in text
    assert text.endswith('</robot>\n')


# --- what is refused ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ('words', 'text'),
    [
        (('modes', '--pose', '0,0,0'), 'pose has 3 angles, allowed: 4'),
        (('modes', '--pose', '0,0,0,nan'), '--pose 0,0,0,nan, allowed: sprawled, site, upright'),
        (('modes', '--pose', 'flat'), '--pose flat, allowed: sprawled, site, upright'),
        (('modes', '--pose', '2,0,0,0'), 'angle of joint beam_1 = 114.592 deg'),
        (('modes', '--pose', '70,-50,-35,-30'), 'add --degrees'),
        (('statics', '--sweep', '0:1:99999999999'), 'allowed: 1 to 100000'),
        (('modes', '--count', '0'), 'allowed: 1 to'),
        (('modes', '--elements', '100000'), 'allowed: 1 to 200'),
        (('modes', '--functions', '9'), 'functions = 9'),
        (('statics', '--csv', 'x.csv'), 'add --sweep'),
        (('statics', '--sweep', '1:2'), 'START:STOP:COUNT'),
        (('statics', '--load=-3'), 'allowed: 0 or more'),
        (('release', '--duration', 'inf'), 'allowed: finite numbers'),
        (('release', '--duration', '0.0003'), 'whole steps'),
        (('release', '--step', '0.005', '--pose', 'upright'), 'step = 0.005 s, allowed for this'),
        (('release', '--load-beam', 'beam_9'), "beam = 'beam_9', allowed: beam_1"),
        (('release', '--load-position', '99'), 'position = 99.0 m, allowed: [0, 9] m'),
        (('sweep', 'oil.colour', '1:2:2'), 'oil.colour is unknown'),
        (('sweep', 'oil.density', '0:1:2'), 'density = 0.0, allowed: [500, 2000] kg/m^3'),
        (('run', 'no_such.yaml'), 'no_such.yaml cannot be read'),
        (('release', '--file', 'no_such.yaml'), 'no_such.yaml cannot be read'),
    ],
)
def test_bad_input_is_refused_in_one_line(capsys, words, text):
    Outcome(capsys, 'boom', *words).refused(text)


def test_a_run_too_long_for_its_tables_is_refused(capsys, tmp_path):
    file = tmp_path / 'long.yaml'
    file.write_text('duration: 1.0e+6\npose: site\n')
    Outcome(capsys, 'boom', 'run', file, '--sample-time', '0.1').refused(
        'duration = 1e+06 s with sample_time = 0.1 s gives 10000000 rows of'
    )


def test_nothing_half_written_stays(capsys, tmp_path):
    # A directory cannot be made in place of a file.
    (tmp_path / 'file').write_text('kept')
    path = tmp_path / 'file' / 'x.csv'
    Outcome(capsys, 'boom', 'release', '--duration', 0.1, '--csv', path).refused(
        'cannot be written'
    )
    assert [(one.name, one.read_text()) for one in tmp_path.iterdir()] == [('file', 'kept')]


def test_one_changed_number_changes_the_run(capsys, tmp_path):
    file = tmp_path / 'mine.yaml'
    text = default_file().read_text()
    assert 'bulk_modulus: 1.4e+9' in text
    file.write_text(text.replace('bulk_modulus: 1.4e+9', 'bulk_modulus: 0.7e+9'))
    words = ('release', '--duration', 2, '--format', 'json')
    lift = [
        summary['tip_highest']
        for summary in (
            Outcome(capsys, 'boom', *words).json,
            Outcome(capsys, 'boom', *words, '--file', file).json,
        )
    ]
    assert lift[1] > lift[0] + 0.05


def test_first_pose_of_the_file_is_the_usual_one(capsys, tmp_path):
    file = tmp_path / 'mine.yaml'
    text = default_file().read_text()
    start, rest = text.split('poses:\n')
    file.write_text(
        start + 'poses:\n  - {name: low, angles_deg: [20, 0, 0, 0]}\n\n#' + rest.split('\n#')[1]
    )
    words = ('--file', file, '--format', 'json')
    assert Outcome(capsys, 'boom', 'statics', *words).json['angles'][0] == pytest.approx(
        np.radians(20.0)
    )
    lift = Outcome(capsys, 'boom', 'release', '--duration', 0.1, *words).json
    assert lift['tip_start'][0] > 30.0


def test_sweep_over_a_scenario(capsys, tmp_path):
    scenario = tmp_path / 'turn.yaml'
    scenario.write_text(
        'duration: 3.0\npose: site\ntrajectory:\n'
        '  - {time: 2.0, angles_deg: [69.5, -50, -35, -30]}\n'
    )
    words = ('sweep', 'controller.proportional_gain', '0.5:4:2', '--processes', 1)
    rows = Outcome(capsys, 'boom', *words, '--scenario', scenario, '--format', 'json').json['rows']
    errors = [row['largest_joint_error'] for row in rows]
    assert 0.0 < errors[1] < np.radians(1.0)
    assert errors[0] != errors[1]


def test_trajectory_is_drawn_with_its_reference(capsys, tmp_path):
    scenario, picture = tmp_path / 'turn.yaml', tmp_path / 'turn.png'
    scenario.write_text(
        'duration: 3.0\npose: site\ntrajectory:\n'
        '  - {time: 2.0, angles_deg: [69.5, -50, -35, -30]}\n'
    )
    summary = Outcome(capsys, 'boom', 'run', scenario, '--plot', picture, '--format', 'json').json
    assert max(summary['joint_error']) < np.radians(1.0)
    assert picture.read_bytes().startswith(PNG)


def test_boom_that_its_pumps_could_not_lift_is_told(capsys):
    done = Outcome(capsys, 'boom', 'release', '--load', 900, '--duration', 0.1)
    assert done.code == 0
    assert 'needs more than the supply pressure' in done.err


def test_a_run_that_diverges_is_written_as_far_as_it_went(capsys, tmp_path):
    scenario, file, picture = (tmp_path / name for name in ('crushed.yaml', 'a.csv', 'a.png'))
    scenario.write_text(
        'duration: 2.0\npose: site\nattach:\n  - {time: 0.1, mass: 1.0e+6, beam: beam_4}\n'
    )
    done = Outcome(
        capsys,
        'boom',
        *('run', scenario, '--csv', file, '--plot', picture, '--format', 'json'),
    )
    found = json.loads(done.out)
    head, table = read(file)
    assert done.code == 1
    assert found['status'] == 'failed'
    assert found['message'].startswith('the boom runs away in the step at t = ')
    assert found['duration'] == table[-1, 0] > 0.1
    assert found['units']['tip_highest'] == 'm'
    assert len(head) == table.shape[1]
    assert picture.read_bytes().startswith(PNG)
    assert found['message'] in done.err.splitlines()[-1]


def test_a_sweep_keeps_the_runs_that_are_done_and_draws_them(capsys, tmp_path):
    file, picture = tmp_path / 'sweep.csv', tmp_path / 'sweep.png'
    words = ('sweep', 'youngs_modulus', '1e9:2.06e11:2', '--duration', 0.5, '--processes', 1)
    done = Outcome(capsys, 'boom', *words, '--csv', file, '--plot', picture, '--format', 'json')
    failed, complete = json.loads(done.out)['rows']
    assert done.code == 1
    assert failed['tip_highest'] is None
    assert failed['message'] in done.err
    assert done.err.startswith('longreach boom: youngs_modulus = 1e+09: ')
    assert complete['message'] == ''
    head, table = read(file)
    assert np.isnan(table[0, 1:]).all()
    assert table[1, head.index('tip_highest')] == complete['tip_highest']
    assert picture.read_bytes().startswith(PNG)


@pytest.mark.parametrize('finished', [0, 1])
def test_an_interrupted_sweep_keeps_the_runs_that_are_done(
    capsys, tmp_path, monkeypatch, finished
):
    file, picture = tmp_path / 'sweep.csv', tmp_path / 'sweep.png'
    run, count = machine_command._measure, 0

    def interrupted(job):
        nonlocal count
        count += 1
        if count > finished:
            raise KeyboardInterrupt
        return run(job)

    monkeypatch.setattr(machine_command, '_measure', interrupted)
    words = ('sweep', 'oil.bulk_modulus', '0.7e9:1.4e9:3', '--duration', 0.5, '--processes', 1)
    done = Outcome(capsys, 'boom', *words, '--csv', file, '--plot', picture)
    assert done.code == 130
    assert done.err.endswith(f'longreach boom: interrupted: {finished} of 3 runs are done\n')
    assert file.exists() == picture.exists() == bool(finished)
    if finished:
        assert 'complete' in done.out
        head, table = read(file)
        assert head[0] == 'oil.bulk_modulus'
        assert table[:, 0].tolist() == [0.7e9]
        assert picture.read_bytes().startswith(PNG)


def test_sweep_without_a_controller_has_no_joint_error(capsys):
    words = ('sweep', 'oil.bulk_modulus', '1e9:1.2e9:2', '--duration', 0.1, '--processes', 1)
    rows = Outcome(capsys, 'boom', *words, '--format', 'json').json['rows']
    assert [row['largest_joint_error'] for row in rows] == [None, None]


def test_sweep_of_angles_beyond_a_turn_asks_for_degrees(capsys):
    Outcome(capsys, 'boom', 'statics', '--sweep', '-5:85:19').refused('add --degrees')
