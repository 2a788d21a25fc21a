"""Designs of sweeps, and their results on disk."""

from __future__ import annotations

import fcntl
import json
import math
import os
import shutil
from unittest import mock

import numpy as np
import pytest
from matplotlib.axes import Axes
from pyarrow import parquet

from longreach_dynamics.errors import InputError
from longreach_tools import sweeps
from longreach_tools.cli import _Parser
from longreach_tools.sweeps import Measured, add_design, design_of, run_sweep

UNITS = {'sum': 'm', 'product': 'm^2'}
calls = []


def measure(job):
    calls.append(job)
    a, b = job['a'], job.get('b', 1.0)
    if a == 3.0:
        return Measured((math.nan, math.nan), 'three, "too much"\nby far', ('odd; very', 'odd'))
    return Measured((a + b, a * b))


@pytest.fixture
def arguments():
    parser = _Parser()
    add_design(parser, 'a')
    return lambda *words: parser.parse_args([*map(str, words), '--processes', '1'])


def run(arguments, measure=measure, job_of=dict, series=None):
    calls.clear()
    return run_sweep('machine', arguments, *design_of(arguments), UNITS, job_of, measure, series)


def read(folder):
    return parquet.read_table(folder).to_pylist()


def test_grid_has_all_combinations(arguments):
    names, values = design_of(arguments('a', '1:3:3', 'b', '10:20:2'))
    assert names == ('a', 'b')
    assert values.tolist() == [[1, 10], [1, 20], [2, 10], [2, 20], [3, 10], [3, 20]]


def test_latin_hypercube_has_one_point_in_each_part_of_each_range(arguments):
    words = ('a', '-1:1', 'b', '1e9:2e9', '--samples', 50, '--seed', 7)
    _, values = design_of(arguments(*words))
    parts = np.floor((values - [-1.0, 1e9]) / [2.0, 1e9] * 50).astype(int)
    for column in parts.T:
        assert sorted(column) == list(range(50))
    assert (parts[:, 0] != parts[:, 1]).any()
    np.testing.assert_array_equal(values, design_of(arguments(*words))[1])
    assert (values != design_of(arguments(*words[:-1], 8))[1]).all()


@pytest.mark.parametrize(
    ('words', 'message'),
    [
        (('a', '1:2:2', 'b'), 'allowed are pairs'),
        (('a', '1:2:2', 'a', '1:2:2'), 'allowed: each of them once'),
        (('a', '1:2'), 'allowed without --samples: START:STOP:COUNT'),
        (('a', '1:2:3', '--samples', 2), '1:2:3, allowed with --samples: START:STOP$'),
        (('a', '1:2:2', '--seed', 0), '--seed, allowed with --samples'),
        (('a', '1:2:0'), "'1:2:0', allowed: START:STOP:COUNT"),
        (('a', '-1e308:1e308:3'), "'-1e308:1e308:3', allowed: START:STOP:COUNT"),
        (('a', '2:2:3'), '2:2:3, allowed: different values'),
        (('a', '2:2', '--samples', 2), '2:2, allowed: different values'),
        (('a', '1:2:5000', 'b', '1:2:5000'), '25000000 runs, allowed: up to 10000000'),
    ],
)
def test_wrong_designs_are_refused(arguments, words, message):
    with pytest.raises(InputError, match=message):
        design_of(arguments(*words))


def test_results_have_a_row_for_each_run_also_for_failed_ones(arguments, tmp_path, capsys):
    folder = tmp_path / 'results.parquet'
    assert run(arguments('a', '1:3:3', 'b', '10:20:2', '--results', folder)) == 1
    assert len(calls) == 6
    assert parquet.read_table(folder).schema.field('product').metadata[b'unit'] == b'm^2'
    rows = read(folder)
    assert [(row['a'], row['b'], row['product']) for row in rows[:4]] == [
        (1.0, 10.0, 10.0), (1.0, 20.0, 20.0), (2.0, 10.0, 20.0), (2.0, 20.0, 40.0),
    ]  # fmt: skip
    assert math.isnan(rows[4]['sum'])
    assert rows[5]['message'] == 'three, "too much"\nby far'
    assert rows[5]['warnings'] == 'odd; very | odd'
    # What several runs have in common is said once.
    assert capsys.readouterr().err.count(': a = 3, b = 10 and 1 more runs: odd\n') == 1
    assert [path.name for path in folder.iterdir()] == ['part-000000.parquet']


def test_time_series_are_a_part_of_the_results(arguments, tmp_path):
    folder = tmp_path / 'results'
    words = ('a', '1:2:2', '--series', 'height')

    def with_series(job):
        return measure(job)._replace(series=(np.arange(2.0), job['a'] * np.ones(2)))

    with pytest.raises(InputError, match='--series needs --results DIR'):
        run(arguments(*words), with_series, series={'time': 's', 'height': 'm'})
    given = arguments(*words, '--results', folder)
    run(given, with_series, series={'time': 's', 'height': 'm'})
    assert [row['height'] for row in read(folder)] == [[1.0, 1.0], [2.0, 2.0]]
    assert parquet.read_table(folder).schema.field('height').metadata[b'unit'] == b'm'
    with pytest.raises(InputError, match='has the columns'):
        run(arguments('a', '1:2:2', '--results', folder))


def test_a_stopped_sweep_goes_on_where_it_stopped(arguments, tmp_path, capsys):
    folder = tmp_path / 'results'

    def stops(job):
        if len(calls) == 3:
            raise KeyboardInterrupt
        return measure(job)

    words = ('a', '1:3:3', 'b', '10:20:2', '--results', folder, '--format', 'json')
    assert run(arguments(*words), stops) == 130
    assert '3 of 6 runs are done' in capsys.readouterr().err
    assert run(arguments(*words)) == 1
    assert len(calls) == 3
    resumed = capsys.readouterr()
    assert '3 of 6 runs are in' in resumed.err
    assert len(read(folder)) == 6
    shutil.rmtree(folder)
    run(arguments(*words))
    assert capsys.readouterr().out == resumed.out


def test_a_finer_grid_uses_the_runs_of_the_coarser_one(arguments, tmp_path):
    run(arguments('a', '-10:10:3', '--results', tmp_path))
    # A file of another name is read and kept.
    (tmp_path / 'part-000000.parquet').rename(tmp_path / 'part-mine.parquet')
    run(arguments('a', '-10:10:5', '--results', tmp_path))
    assert [job['a'] for job in calls] == [-5.0, 5.0]
    assert sorted(row['a'] for row in read(tmp_path)) == [-10.0, -5.0, 0.0, 5.0, 10.0]
    # linspace gives 8.399999999999999 and 8.4.
    coarse, fine = (design_of(arguments('a', f'3:12:{count}'))[1] for count in (6, 16))
    assert coarse[3] == 8.4
    assert set(coarse.ravel()) <= set(fine.ravel())
    tiny = design_of(arguments('a', '0:1e-300:3'))[1]
    np.testing.assert_allclose(tiny.ravel(), [0.0, 5e-301, 1e-300], 1e-12)


def test_runs_of_other_files_are_not_mixed(arguments, tmp_path):
    content = ['before']

    def changes(job):
        content[0] = 'after'
        return measure(job)

    for more in ((), ('--results', tmp_path / 'new')):
        with pytest.raises(InputError, match='have changed during the sweep'):
            run(arguments('a', '1:2:2', *more), changes, lambda v: {**v, 'file': content[0]})
        content[0] = 'before'
    assert not list(tmp_path.glob('new/*'))


def test_a_key_is_the_same_in_another_process(arguments, tmp_path):
    def job_of(values):
        # As a declaration in a job: an object whose text has its address.
        return {**values, 'spec': object()}

    for count in (3, 0):
        run(arguments('a', '10:20:3', '--results', tmp_path), job_of=job_of)
        assert len(calls) == count


def test_runs_are_written_before_the_end(arguments, tmp_path, monkeypatch):
    monkeypatch.setattr(sweeps, '_ROWS', 2)

    def look(job):
        assert len(list(tmp_path.iterdir())) == len(calls) // 2
        return measure(job)

    run(arguments('a', '10:20:5', '--results', tmp_path), look)
    assert [row['a'] for row in read(tmp_path)] == [10.0, 12.5, 15.0, 17.5, 20.0]


def test_runs_of_killed_processes_are_no_results(arguments, tmp_path):
    words = ('a', '10:20:3', '--results', tmp_path)
    assert run(arguments(*words), lambda job: measure(job)._replace(killed=job['a'] == 15)) == 0
    assert len(read(tmp_path)) == 2
    run(arguments(*words))
    assert [job['a'] for job in calls] == [15.0]


def test_many_runs_are_counted(arguments, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(sweeps, '_MOST_SHOWN', 5)
    words = ('a', '1:3:3', 'b', '10:30:3', '--format', 'json')
    for more in ((), ('--results', tmp_path / 'a', '--csv', tmp_path / 'a.csv')):
        with pytest.raises(InputError, match='9 runs, allowed: up to 5, or --results DIR without'):
            run(arguments(*words, *more))
    for count in (9, 0):
        assert run(arguments(*words, '--results', tmp_path)) == 1
        assert len(calls) == count
        found = capsys.readouterr()
        assert json.loads(found.out) == {'runs': 9, 'failed': 3}
        assert 'a = 3, b = 10 and 2 more runs: odd' in found.err


def test_folders_of_other_sweeps_are_refused_and_kept(arguments, tmp_path):
    run(arguments('a', '10:20:3', '--results', tmp_path))
    before = read(tmp_path)
    (tmp_path / 'other').mkdir()
    for words, job_of in (
        (('b', '10:20:3'), dict),
        (('a', '10:20:3', 'b', '1:1:1'), dict),
        (('a', '10:20:3'), lambda values: {**values, 'mass': 1.0}),
    ):
        with pytest.raises(InputError, match='allowed: the results of this sweep'):
            run(arguments(*words, '--results', tmp_path), lambda _: pytest.fail('was run'), job_of)
    (tmp_path / 'other').rmdir()
    assert read(tmp_path) == before


@pytest.mark.parametrize('more', [('--csv', 'a.csv'), ('--results', 'a')])
def test_results_have_names_and_numbers_of_their_own(arguments, tmp_path, monkeypatch, more):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="column of the sweep has the name 'sum' twice"):
        run(arguments('sum', '1:2:2', *more))
    with pytest.raises(InputError, match='measure returns 1 values, allowed: one for each of the'):
        run(arguments('a', '1:2:2', *more), lambda _: Measured((1.0,)))
    assert not list(tmp_path.iterdir())


def test_wrong_folders_are_refused(arguments, tmp_path):
    text = tmp_path / 'part-000000.parquet'
    text.write_text('no')
    for folder, message in (
        (tmp_path / 'a.csv', 'a.csv, allowed: a folder, such as out/a.parquet'),
        (text, 'allowed: a folder'),
        (tmp_path, 'is no Parquet file'),
        (text / 'a', 'cannot be written'),
    ):
        with pytest.raises(InputError, match=message):
            run(arguments('a', '1:2:2', '--results', folder), lambda _: pytest.fail('was run'))
    assert [path.name for path in tmp_path.iterdir()] == [text.name]


def test_values_at_the_ends_are_checked_before_the_first_run(arguments, capsys):
    def job_of(values):
        if values['a'] == allowed:
            raise InputError(f'a = {values["a"]!r}')
        return dict(values)

    for allowed in (1.0, 3.0):
        with pytest.raises(InputError, match=f'a = {allowed}'):
            run(arguments('a', '1:3:3'), job_of=job_of)
        assert not calls
    allowed = 2.0
    assert run(arguments('a', '1:3:3'), job_of=job_of) == 1
    assert 'a = 2: a = 2.0' in capsys.readouterr().err


def test_of_many_parameters_not_all_combinations_of_ends_are_checked(arguments):
    made = []

    def job_of(values):
        made.append(values)
        return {'a': 1.0}

    ranges = [word for k in range(30) for word in (f'p{k}', '0:1')]
    run(arguments(*ranges, '--samples', 2), job_of=job_of)
    assert 2 < len(made) < 2000


def test_two_sweeps_do_not_write_one_folder(arguments, tmp_path):
    handle = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    with pytest.raises(InputError, match='is being written by another process'):
        run(arguments('a', '1:2:2', '--results', tmp_path))
    os.close(handle)
    assert tmp_path.exists()


@pytest.mark.parametrize('many', [2, 20])
def test_two_parameters_are_drawn(arguments, tmp_path, many):
    file = tmp_path / 'sweep.png'
    assert run(arguments('a', '1:2:2', 'b', f'10:20:{many}', '--plot', file)) == 0
    assert file.read_bytes().startswith(b'\x89PNG')


def test_points_of_a_latin_hypercube_are_joined_in_their_order(arguments, tmp_path):
    with mock.patch.object(Axes, 'plot') as plot:
        run(arguments('a', '0:2', '--samples', 9, '--plot', tmp_path / 'sweep.png'))
    (x, _), _ = plot.call_args_list[0]
    assert len(x) == 9
    assert (np.diff(x) > 0.0).all()


@pytest.mark.parametrize(
    ('words', 'told'),
    [
        (('c', '1:2:2'), 'c'),
        (('c', '1:2:2', 'a', '1:2:2', 'd', '1:2:3'), 'cd'),
        (('c', '1:2:2', 'a', '1:1:1'), 'c'),
        (('c', '1:2', 'd', '1:2', '--samples', 5), 'cd'),
        (('c', '1:2', 'a', '1:2', '--samples', 5), ''),
        (('a', '1:2:2', 'b', '1:2:2'), ''),
        (('a', '3:3:1', 'c', '1:2:2'), ''),
    ],
)
def test_parameters_without_an_effect_are_told(arguments, capsys, words, told):
    def without(job):
        return measure({'a': 1.0, **job})._replace(warnings=())

    run(arguments(*words), without)
    lines = [line for line in capsys.readouterr().err.splitlines() if ': the results are' in line]
    assert ''.join(line[0] for line in lines) == told
