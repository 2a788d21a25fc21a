"""``longreach identify``: recordings in, parameters, machine file and report out."""

import json
import re
from functools import cache

import numpy as np
import pytest

from longreach_boom.identification import BOOM
from longreach_boom.machine import STEP
from longreach_boom.measured_runs import readings
from longreach_boom.model import Load
from longreach_boom.parameters import default_file, load_boom
from longreach_boom.scenario import HangingLoad, Scenario, load_scenario
from longreach_boom.sensors import load_sensors
from longreach_boom.statics import static_row
from longreach_identification import planning, statics
from longreach_identification.search import INTERRUPTED
from longreach_tools import cli
from longreach_tools.output import write_csv

RATE, MOVE, REST = 10.0, 4.0, 11.0
POSES = (
    (70, -50, -35, -30),
    (58, -15, -60, -70),
    (46, 12, -70, 20),
    (34, -20, -15, 22),
    (46, -75, 10, -60),
    (60, -60, -75, -10),
    (72, -20, -20, 24),
    (50, -50, -40, -40),
)
TRUTH = {'mass_scale_2': 0.93, 'mass_scale_4': 1.06, 'youngs_modulus': 1.95e11}


def planted():
    start = load_boom()
    values = {**BOOM.values(start), **TRUTH}
    return BOOM.with_values(start, values)


def write_poses(file, boom, mass=0.0):
    """Write what sensors would show of poses at rest, with friction left after each motion."""
    rng = np.random.default_rng(2 + int(mass))
    loads = (Load(mass, boom.size - 1, boom.beams[-1].length),) if mass else ()
    rows, before = [], None
    for angles in POSES:
        rest = static_row(boom, np.radians(angles), loads)
        now = {
            f'piston_{i + 1}': c.linkage.position(float(np.radians(angles[i])))
            for i, c in enumerate(boom.cylinders)
        }
        for i, c in enumerate(boom.cylinders):
            moved = 1.0 if before is None else now[f'piston_{i + 1}'] - before[f'piston_{i + 1}']
            left = np.sign(moved) * c.friction.coulomb * rng.uniform(0.4, 0.6)
            now[f'p_head_{i + 1}'] = rest['head_pressure'][i] + left / c.head_area
            now[f'p_rod_{i + 1}'] = rest['rod_pressure'][i]
            now[f'strain_{i + 1}'] = rest['strain'][i]
        for share in np.arange(1, round(MOVE * RATE) + 1) / (MOVE * RATE):
            rows.append({k: (1 - share) * (before or now)[k] + share * now[k] for k in now})
        rows += [now] * round(REST * RATE)
        before = now
    columns = ['time', *rows[0]]
    table = np.array([[k / RATE, *row.values()] for k, row in enumerate(rows)])
    table[:, 1:] += 1e-7 * np.abs(table[:, 1:]) * rng.standard_normal(table[:, 1:].shape)
    write_csv(file, columns, table)
    return file


@pytest.fixture(scope='module')
def poses(tmp_path_factory):
    folder = tmp_path_factory.mktemp('poses')
    write_poses(folder / 'loaded.csv', planted(), 90.0)
    return write_poses(folder / 'poses.csv', planted())


def run(*words):
    return cli.main(['identify', *map(str, words)])


@pytest.mark.slow
def test_poses_give_masses_a_file_and_a_report(poses, tmp_path, capsys):
    found, report = tmp_path / 'found.yaml', tmp_path / 'report.html'
    words = ('boom', '--static', poses, poses.with_name('loaded.csv'), '--format', 'json')
    words += ('--payload', 'poses.csv=0', '--payload', 'loaded.csv=90')
    assert run(*words, '--out', found, '--report', report) == 0
    out, err = capsys.readouterr()
    result = json.loads(out, parse_constant=pytest.fail)
    for name, truth in {**TRUTH, 'mass_scale_1': 1.0, 'mass_scale_3': 1.0}.items():
        entry = result['parameters'][name]
        error = abs(entry['value'] - truth)
        assert error < 0.03 * truth
        assert error < 4.0 * entry['standard_error']
    assert result['parameters']['youngs_modulus']['start'] == load_boom().youngs_modulus
    assert {'static_force_1', 'static_strain_4'} <= set(result['fit'])
    assert all(f'longreach identify: {text}' in err for text in result['warnings'])
    assert result['warnings'] == []
    assert 'longreach identify: note: force_1, force_2, force_3, force_4: not used in 2 of' in err
    boom = load_boom(found)
    assert boom.youngs_modulus == result['parameters']['youngs_modulus']['value']
    # Dimensions move within what is known of them, friction is not known from poses at rest.
    for cylinder, before in zip(boom.cylinders, load_boom().cylinders, strict=True):
        assert cylinder.friction == before.friction
        assert cylinder.bore == pytest.approx(before.bore, rel=0.01)
    head = found.read_text().partition('\n\n')[0]
    assert 'from poses.csv, loaded.csv.' in head
    assert re.search(r'# mass_scale_4 = 1\.0\d+ \+- [\d.e-]+, before 1', head)
    page = report.read_text()
    assert page.count('<svg') >= 2
    assert 'http' not in re.sub(r'http://www\.w3\.org/\S*', '', page)
    for text in ('Poses at rest', 'mass_scale_2', 'standard error', 'RMS before'):
        assert text in page


@pytest.mark.parametrize(
    ('words', 'text'),
    [
        ((), 'there is no recording; give --static or --release'),
        (('--static', 'none.csv'), 'none.csv cannot be read'),
        (('--static', '{poses}', '--parameters', 'friction'), 'poses at rest tell'),
        (('--static', '{poses}', '--payload', 'other.csv=3'), "= 'other.csv', allowed: poses.csv"),
        (('--static', '{poses}', '--payload', 'poses.csv=x'), 'allowed: RECORDING=NUMBER'),
        (
            ('--static', '{poses}', '--payload', 'poses.csv=3', '--payload', 'poses.csv=5'),
            '--payload gives poses.csv two values, allowed: one',
        ),
        (('--static', '{poses}', '--payload', 'poses.csv=9e4'), 'poses.csv: payload = 90000 kg:'),
        (('--static', '{poses}', '{poses}'), "'poses.csv' twice"),
        (('--release', '{poses}'), 'no event release or attach'),
        (('--release', '{poses}', '--signals', 'sound'), "'sound', allowed: pressures"),
        (
            ('--release', '{poses}', '--event', 'poses.csv=1', '--signals', 'strain,markers'),
            '--signals markers: no recording of --release has marker_*; it has ',
        ),
        (('--static', '{poses}', '--column', 'p=1'), "signal = 'p', allowed"),
        (('--static', '{poses}', '--out', '{poses}'), 'poses.csv'),
        (('--static', '{poses}', '--profile', 'mass'), "'mass', allowed: mass_scale_1"),
        (('--static', '{poses}', '--robust'), '--robust is for recordings of motion'),
        (('--static', '{poses}', '--validation', 'x'), "--validation = 'x', allowed: none"),
        (('--static', '{poses}', '--column', 'piston_1=piston_1:1e3'), 'is its unit right'),
        (('--static', '{poses}', '--column', 'piston_2=piston_2:-1'), 'piston_2 in poses.csv '),
    ],
)
def test_what_is_refused(poses, capsys, words, text):
    before = poses.read_bytes()
    assert run('boom', *(word.format(poses=poses) for word in words)) == 2
    out, err = capsys.readouterr()
    assert text in err
    assert err.count('\n') == 1
    assert not out
    assert poses.read_bytes() == before


def test_a_payload_that_is_not_told_is_named(poses, capsys):
    words = ('--static', poses, poses.with_name('loaded.csv'), '--payload', 'loaded.csv=0')
    assert run('boom', *words, '--format', 'json') == 0
    out, err = capsys.readouterr()
    # The load is 90 kg.
    assert 'force_4 scatters by ' in err
    told = 'poses.csv does not tell its payload, which is taken as 0 kg'
    assert told in err
    assert any(told in text for text in json.loads(out)['warnings'])


@pytest.mark.slow
def test_a_plan_names_experiments_and_writes_them(monkeypatch, tmp_path, capsys):
    # Both plans simulate the same poses at rest, which tell the same.
    once_each = staticmethod(cache(BOOM.possible_at_rest))
    monkeypatch.setattr(type(BOOM), 'possible_at_rest', once_each)
    told, tell = [], planning.identify_statics

    def once(*of):
        told.append(told[0] if told else tell(*of))
        return told[0]

    monkeypatch.setattr(planning, 'identify_statics', once)
    words = ('plan', '--pose=70,-50,-35,-30', '--masses', '5', '--count', '2', '--processes', 1)
    assert run(*words, '--out', tmp_path, '--format', 'json') == 0
    plan = json.loads(capsys.readouterr().out)
    first, second = (choice['standard_errors'] for choice in plan['choices'])
    assert run(*words, '--signals', 'strain', '--format', 'json') == 0
    fewer = json.loads(capsys.readouterr().out)['choices'][0]['standard_errors']
    assert fewer['youngs_modulus'] > first['youngs_modulus']
    assert 0.0 < second['youngs_modulus'] < first['youngs_modulus'] < 1e10
    scenario = load_scenario(tmp_path / 'plan_1.yaml', load_boom(), STEP)
    assert scenario.loads[0].mass == 5.0
    assert scenario.pose_deg == (70.0, -50.0, -35.0, -30.0)


@pytest.mark.parametrize(
    ('words', 'text'),
    [
        (('--parameters', 'gauge_bias_1'), '--parameters gauge_bias_1, allowed: at least one'),
        (('--masses', '-3,90'), '--masses = -3 kg, allowed: (0, inf) kg'),
        (('--out', '{folder}'), 'plan_2.yaml is of an earlier plan'),
        (('--out', '{folder}/plan_2.yaml'), 'plan_2.yaml cannot be written: File exists'),
    ],
)
def test_plans_that_are_refused(tmp_path, capsys, words, text):
    (tmp_path / 'plan_2.yaml').touch()
    assert run('plan', *(word.format(folder=tmp_path) for word in words)) == 2
    assert text in capsys.readouterr().err


@pytest.fixture(scope='module')
def release(tmp_path_factory):
    """Return what typical sensors show of the release of a load that all pistons hold."""
    file = tmp_path_factory.mktemp('release') / 'release.csv'
    scenario = Scenario(duration=4.0, pose='site', loads=(HangingLoad(mass=3.0),), release=(1.0,))
    columns = readings(planted(), scenario, load_sensors('typical'), rate=50.0)
    write_csv(file, list(columns), np.stack(list(columns.values()), axis=1))
    return file


RELEASE = ('--payload', 'release.csv=3', '--event', 'release.csv=1', '--processes', '1')


def test_poses_that_were_interrupted_are_no_prior(monkeypatch, poses, release, tmp_path, capsys):
    estimated, found = statics.estimate, tmp_path / 'found.yaml'
    words = ('boom', '--static', poses, '--release', release, '--payload', 'poses.csv=0', *RELEASE)
    words += ('--parameters', 'masses,youngs_modulus', '--out', found)

    def at_once(*_):
        monkeypatch.undo()
        raise KeyboardInterrupt

    monkeypatch.setattr(statics._Linear, '__call__', at_once)
    assert run(*words) == 130
    assert 'before the first step: nothing was found' in capsys.readouterr().err
    assert not found.exists()
    monkeypatch.setattr(statics, 'estimate', lambda p: estimated(p)._replace(status=INTERRUPTED))
    assert run(*words) == 0
    assert 'interrupted at the poses at rest: motion is not' in capsys.readouterr().err
    assert load_boom(found).youngs_modulus != load_boom().youngs_modulus


@pytest.mark.slow
def test_poses_are_the_prior_of_a_release_with_profile(poses, release, tmp_path, capsys):
    other = tmp_path / 'printed.yaml'
    other.write_text(f'base: {default_file()}\nritz: {{basis: printed}}\n')
    words = ('boom', '--static', poses, poses.with_name('loaded.csv'), '--release', release)
    words += ('--payload', 'poses.csv=0', '--payload', 'loaded.csv=90', *RELEASE)
    words += ('--parameters', 'masses,gauges,youngs_modulus', '--duration', '2')
    # What is not estimated has no profile, which does not cost the result.
    words += ('--profile', 'youngs_modulus,bulk_modulus', '--planted', other)
    words += ('--signals', 'strain,inclination', '--report', tmp_path / 'report.html')
    assert run(*words, '--format', 'json') == 0
    out, err = capsys.readouterr()
    assert "no profile of bulk_modulus: profile = 'bulk_modulus', allowed: " in err
    assert 'before (dashed)' in (tmp_path / 'report.html').read_text()
    result = json.loads(out)
    assert {'strain_1', 'inclination_tip_4'} <= set(result['fit'])
    assert 'piston_1' not in result['fit']
    for name, truth in TRUTH.items():
        entry = result['parameters'][name]
        assert abs(entry['value'] - truth) < 0.02 * truth
    at_rest = result['stages']['statics']['parameters']['mass_scale_2']['standard_error']
    # Dimensions are considered in motion and not estimated, so that its rows need not help.
    assert result['parameters']['mass_scale_2']['standard_error'] <= 1.1 * at_rest
    increase = result['profiles']['youngs_modulus']['increase']
    assert min(increase) < 0.5 < increase[0]
