"""Designs of sweeps, and their results on disk."""

from __future__ import annotations

import argparse
import csv
import fcntl
import math

import numpy as np
import pytest

from longreach_dynamics.errors import InputError
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
    parser = argparse.ArgumentParser()
    add_design(parser, 'a')
    return lambda *words: parser.parse_args([*map(str, words), '--processes', '1'])


def run(arguments, measure=measure):
    calls.clear()
    return run_sweep('machine', arguments, UNITS, measure, lambda values: values)


def read(file):
    with file.open(newline='') as stream:
        return list(csv.DictReader(stream))


# --- designs --------------------------------------------------------------------------------


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
        (('a',), 'allowed are pairs'),
        (('a', '1:2:2', 'b'), 'allowed are pairs'),
        (('a', '1:2:2', 'a', '1:2:2'), 'allowed: each of them once'),
        (('a', '1:2'), 'allowed without --samples: START:STOP:COUNT'),
        (('a', '1:2:0'), "'1:2:0', allowed: START:STOP:COUNT"),
        (('a', '1:nan:2'), "'1:nan:2', allowed"),
        (('a', '1:2:3:4'), "'1:2:3:4', allowed"),
        (('a', '1:2:1000', 'b', '1:2:1000'), '1000000 runs, allowed: up to 100000'),
    ],
)
def test_wrong_designs_are_refused(arguments, words, message):
    with pytest.raises(InputError, match=message):
        design_of(arguments(*words))


# --- results --------------------------------------------------------------------------------


@pytest.mark.parametrize('ending', ['csv', 'parquet'])
def test_results_have_a_row_for_each_run_also_for_failed_ones(arguments, tmp_path, ending):
    file = tmp_path / f'results.{ending}'
    assert run(arguments('a', '1:3:3', 'b', '10:20:2', '--results', file)) == 1
    assert len(calls) == 6
    if ending == 'csv':
        rows = read(file)
    else:
        parquet = pytest.importorskip('pyarrow.parquet')
        found = parquet.read_table(file)
        assert found.schema.field('product').metadata[b'unit'] == b'm^2'
        rows = found.to_pylist()
    assert [int(row['run']) for row in rows] == list(range(6))
    assert [float(row['product']) for row in rows[:4]] == [10, 20, 20, 40]
    assert math.isnan(float(rows[4]['sum']))
    assert rows[5]['message'] == 'three, "too much" by far'
    assert rows[5]['warnings'] == 'odd; very | odd'
    assert [path.name for path in tmp_path.iterdir()] == [file.name]


@pytest.mark.parametrize('ending', ['csv', 'parquet'])
def test_a_stopped_sweep_goes_on_where_it_stopped(arguments, tmp_path, capsys, ending):
    file = tmp_path / f'results.{ending}'

    def stops(job):
        if len(calls) == 3:
            raise KeyboardInterrupt
        return measure(job)

    words = ('a', '1:3:3', 'b', '10:20:2', '--results', file, '--format', 'json')
    assert run(arguments(*words), stops) == 130
    assert '3 of 6 runs are done' in capsys.readouterr().err
    assert run(arguments(*words)) == 1
    assert len(calls) == 3
    resumed = capsys.readouterr()
    assert '3 of 6 runs are in' in resumed.err
    file.unlink()
    run(arguments(*words))
    assert capsys.readouterr().out == resumed.out


def test_a_finer_grid_uses_the_runs_of_the_coarser_one(arguments, tmp_path):
    file = tmp_path / 'results.csv'
    run(arguments('a', '10:20:3', '--results', file))
    run(arguments('a', '10:20:5', '--results', file))
    assert [job['a'] for job in calls] == [12.5, 17.5]


def test_a_key_is_the_same_in_another_process(arguments, tmp_path):
    words = ('a', '10:20:3', '--results', tmp_path / 'results.csv')
    for count in (3, 0):
        calls.clear()
        # As a declaration in a job: an object whose text has its address.
        jobs = [{'a': 10.0 + 5.0 * k, 'spec': object()} for k in range(3)]
        run_sweep('machine', arguments(*words), UNITS, measure, lambda _, jobs=jobs: jobs)
        assert len(calls) == count


def test_line_that_a_kill_cut_off_is_run_again(arguments, tmp_path):
    file = tmp_path / 'results.csv'
    run(arguments('a', '10:20:3', '--results', file))
    whole = file.read_text()
    file.write_text(whole[:-5])
    run(arguments('a', '10:20:3', '--results', file))
    assert [job['a'] for job in calls] == [20.0]
    assert file.read_text() == whole


def test_runs_of_killed_processes_are_no_results(arguments, tmp_path):
    file = tmp_path / 'results.csv'
    words = ('a', '10:20:3', '--results', file)
    assert run(arguments(*words), lambda job: measure(job)._replace(killed=job['a'] == 15)) == 0
    assert len(read(file)) == 2
    run(arguments(*words))
    assert [job['a'] for job in calls] == [15.0]


def test_files_of_other_sweeps_are_refused_and_kept(arguments, tmp_path):
    file = tmp_path / 'results.csv'
    run(arguments('a', '10:20:3', '--results', file))
    before = file.read_text()
    for words in (('a', '11:20:3'), ('b', '10:20:3'), ('a', '10:20:3', 'b', '1:1:1')):
        with pytest.raises(InputError, match='allowed: the results of this sweep'):
            run(arguments(*words, '--results', file), lambda _: pytest.fail('was run'))
        assert file.read_text() == before


def test_wrong_files_are_refused(arguments, tmp_path):
    text = tmp_path / 'no.parquet'
    text.write_text('no')
    for file, message in (
        (tmp_path / 'a.xlsx', "extension '.xlsx', allowed: .csv, .parquet"),
        (tmp_path, 'extension'),
        (text, 'is no Parquet file'),
        (tmp_path / 'no.parquet' / 'a.csv', 'cannot be'),
    ):
        with pytest.raises(InputError, match=message):
            run(arguments('a', '1:2:2', '--results', file), lambda _: pytest.fail('was run'))
    assert [path.name for path in tmp_path.iterdir()] == ['no.parquet']


def test_two_sweeps_do_not_write_one_file(arguments, tmp_path):
    file = tmp_path / 'results.csv'
    with file.open('a') as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(InputError, match='is being written by another sweep'):
            run(arguments('a', '1:2:2', '--results', file))


@pytest.mark.parametrize('many', [2, 20])
def test_two_parameters_are_drawn(arguments, tmp_path, many):
    file = tmp_path / 'sweep.png'
    assert run(arguments('a', '1:2:2', 'b', f'10:20:{many}', '--plot', file)) == 0
    assert file.read_bytes().startswith(b'\x89PNG')


def test_a_warning_of_many_runs_is_said_once(arguments, capsys):
    run(arguments('a', '3:3:1', 'b', '10:30:3'))
    lines = [line for line in capsys.readouterr().err.splitlines() if line.endswith(': odd')]
    assert lines == ['longreach machine: a = 3, b = 10 and 2 more runs: odd']


def test_a_parameter_that_is_set_and_swept_is_refused(arguments):
    given = arguments('a', '1:2:2')
    given.set = ['a=5']
    with pytest.raises(InputError, match='--set a=5: a is swept'):
        run(given)


def test_parameters_without_an_effect_are_told(arguments, capsys):
    run(arguments('c', '1:2:2'), lambda _: Measured((1.0, math.nan)))
    assert 'all runs have the same results' in capsys.readouterr().err
    run(arguments('a', '1:2:2'))
    assert capsys.readouterr().err == ''
