"""Recorded runs beside those of the library, and what commands print of runs."""

import argparse
import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
from geometry_msgs.msg import WrenchStamped
from longreach_msgs.msg import CraneStatus
from sensor_msgs.msg import JointState

from longreach_dynamics.errors import InputError
from longreach_machine.runs import Column, Columns, Derived, Run, Source
from longreach_tools.comparison import report_comparison, report_run
from longreach_tools.signals import read_columns
from longreach_tools.testing import write_bag

COLUMNS = Columns((Column('time', 's'), Column('position', 'm'), Column('force', 'N')))
EXPECTED = np.array([[0.0, 1.0, 10.0], [0.1, 2.0, 20.0], [0.2, 3.0, 30.0]])
OTHER = 'the recording is not this run of the library. Name it'


def run_of(table, **changes):
    return Run(None, COLUMNS, table, **changes)


def arguments(**values):
    usual = {'bag': Path('a/bag'), 'format': 'json', 'csv': None, 'plot': None}
    return argparse.Namespace(**{**usual, **values})


@pytest.mark.parametrize(
    ('force', 'rows', 'said'),
    [
        (30.0, 3, ''),
        (30.0 + 9e-10, 3, ''),
        (30.0 + 2e-9, 3, OTHER),
        (np.inf, 3, OTHER),
        (30.0, [0, 2], '1 samples are missing, the others agree'),
    ],
)
def test_exit_code_of_a_comparison(capsys, force, rows, said):
    table = EXPECTED.copy()
    table[2, 2] = force
    recorded = run_of(table[:rows] if isinstance(rows, int) else table[rows])
    text = arguments(format='table')
    code = report_comparison(text, 'crane', recorded, run_of(EXPECTED), 'Name it')
    out, err = capsys.readouterr()
    assert code == bool(said)
    assert err == (f'longreach crane compare: {said}\n' if said else '')
    assert ('is this run' in out) is not bool(said)


def test_a_recording_that_ends_early_is_told_up_to_where(capsys):
    text = arguments(format='table')
    assert report_comparison(text, 'crane', run_of(EXPECTED[:2]), run_of(EXPECTED), '') == 0
    said = "run of the library up to 0.1 s; the library's run goes on to 0.2 s\n"
    assert capsys.readouterr().out.endswith(said)
    assert report_comparison(arguments(), 'crane', run_of(EXPECTED), run_of(EXPECTED[:2]), '') == 0
    assert json.loads(capsys.readouterr().out)['compared_until'] == 0.1


def test_a_comparison_for_programs(capsys, tmp_path):
    file = tmp_path / 'recorded.csv'
    recorded = run_of(EXPECTED + np.array([0.0, 0.5, 0.0]))
    # JSON knows no such number.
    recorded.table[1, 2] = np.nan
    code = report_comparison(arguments(csv=file), 'crane', recorded, run_of(EXPECTED), 'Name it')
    found = json.loads(capsys.readouterr().out)
    assert (code, found['same']) == (1, False)
    assert found['differences']['position'] == 0.5
    assert found['differences']['force'] is None
    assert file.read_text().splitlines()[:2] == ['time,position,force', '0,1.5,10']


def test_a_run_that_failed_is_compared_up_to_there(capsys):
    failed = run_of(EXPECTED[:2], message='too fast; take a shorter step')
    assert report_comparison(arguments(), 'crane', run_of(EXPECTED), failed, 'Name it') == 1
    out, err = capsys.readouterr()
    assert (json.loads(out)['same'], json.loads(out)['compared_until']) == (True, 0.1)
    assert err == (
        "longreach crane compare: the library's run failed at 0.1 s: too fast; take a shorter"
        ' step\n'
    )


class Worried(Run[None]):
    def warnings(self):
        return ('it creaks',)


def test_a_run_that_failed_is_handed_out(capsys, tmp_path):
    run = Worried(None, COLUMNS, EXPECTED, message='too fast; take a shorter step')
    drawn = []
    places = {'csv': tmp_path / 'a.csv', 'plot': tmp_path / 'a.png'}
    code = report_run(arguments(**places), 'crane', run, lambda *given: drawn.append(given))
    out, err = capsys.readouterr()
    assert code == 1
    assert drawn == [(places['plot'], run)]
    assert len(places['csv'].read_text().splitlines()) == 4
    said = ('it creaks', 'too fast; take a shorter step')
    assert err.splitlines() == [f'longreach crane: {line}' for line in said]
    told = {'status': 'failed', 'message': 'too fast; take a shorter step'}
    assert json.loads(out) == {'duration': 0.2, 'units': {'duration': 's'}, **told}
    complete = dataclasses.replace(run, message='')
    assert report_run(arguments(format='table'), 'crane', complete) == 0
    assert 'duration' in capsys.readouterr().out


FORCE, SPEED = Source('pins', 'wrench.force.x'), Source('joints', 'velocity', 'j')
RECORDED = (
    Column('time', 's'),
    Column('speed', 'm/s', source=SPEED),
    Column('force', 'N', source=FORCE),
    Column('brake', source=Source('state', 'brake')),
    Column('power', 'W', source=Derived((FORCE, SPEED), lambda v: v[:, 0] * v[:, 1])),
)


def recorded(path, times, names):
    """Write a bag with messages at some times [ns], of which joints have these names."""
    rows = []
    for time in times['joints']:
        # Names come in another order in each message.
        names = names[::-1]
        speeds = [time * (3.0 if name == 'j' else 1.0) for name in names]
        rows.append(('joints', time, JointState(name=names, velocity=speeds)))
    rows += [('pins', time, WrenchStamped()) for time in times['pins']]
    rows += [('state', time, CraneStatus(brake=True)) for time in times['state']]
    for topic, time, message in rows:
        message.header.stamp.nanosec = time
        if topic == 'pins':
            message.wrench.force.x = 2.0
    return write_bag(path, 'north', rows)


def test_columns_are_read_by_their_sources_where_all_topics_have_a_message(tmp_path):
    times = {'joints': [5, 6, 7, 8], 'pins': [5, 6, 8], 'state': [4, 5, 6, 8]}
    table = read_columns(recorded(tmp_path / 'bag', times, ['i', 'j']), 'north', RECORDED, 'crane')
    expected = [[t / 1e9, 3.0 * t, 2.0, 1.0, 6.0 * t] for t in (5, 6, 8)]
    np.testing.assert_array_equal(table, expected)


@pytest.mark.parametrize('columns', [RECORDED, RECORDED[:2]], ids=['topics', 'topic'])
def test_of_samples_with_one_stamp_the_last_counts(tmp_path, columns):
    rows = [
        (topic, stamp, message)
        for stamp, speed in ((5, 1.0), (5, 2.0), (6, 3.0))
        for topic, message in (
            ('joints', JointState(name=['j'], velocity=[speed])),
            ('pins', WrenchStamped()),
            ('state', CraneStatus()),
        )
    ]
    for _, stamp, message in rows:
        message.header.stamp.nanosec = stamp
    bag = write_bag(tmp_path / 'bag', 'north', rows)
    with pytest.warns(UserWarning, match='1 messages of /north/[a-z]+ repeat a stamp; of'):
        table = read_columns(bag, 'north', columns, 'crane')
    assert table[:, :2].tolist() == [[5e-9, 2.0], [6e-9, 3.0]]


@pytest.mark.parametrize(
    ('pins', 'names', 'error'),
    [
        ([6], ['i', 'j'], r'no run of the crane in namespace /north: .*found /north/joints: 1, '),
        ([5], ['i', 'k'], r'/north/joints has not always velocity\[j\]; give the crane file'),
    ],
)
def test_a_recording_of_something_else_is_refused(tmp_path, pins, names, error):
    bag = recorded(tmp_path / 'bag', {'joints': [5], 'pins': pins, 'state': [5]}, names)
    with pytest.raises(InputError, match=error):
        read_columns(bag, 'north', RECORDED, 'crane')
