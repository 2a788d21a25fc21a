"""Recordings from CSV files and bags, and what is said of those that are of no use."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from geometry_msgs.msg import InertiaStamped
from longreach_msgs.msg import HydraulicState, MarkerEstimate, MarkerEstimates, StrainState
from std_msgs.msg import Header

from longreach_dynamics.errors import InputError
from longreach_identification.bag_files import read_recording
from longreach_identification.machine import MeasuredSignal, Recording
from longreach_identification.recordings import (
    check_finite,
    check_recordings,
    column_map,
    read_csv,
    require,
    signal,
)
from longreach_machine.runs import Source
from longreach_tools.testing import write_bag

pytest.importorskip('rosbags.rosbag2')

PRESSURES = [
    Source(topic, 'head_pressure', 'lift') for topic in ('sensors/pressure', 'hydraulics')
]
STRAINS = [Source(topic, 'strain', 'arm') for topic in ('sensors/strain', 'strain')]
SIGNALS = (
    MeasuredSignal('p_head_1', 'Pa', tuple(PRESSURES)),
    MeasuredSignal('strain_1', '1', tuple(STRAINS)),
    MeasuredSignal(
        'marker_tip_x',
        'm',
        (Source('markers', 'estimates.in_plane.x', 'tip'),),
        'estimates.in_plane_noise_covariance[0]',
    ),
)
TIMES = np.arange(20) * 0.01


def csv(path: Path, head: str, rows: Callable[[int], str], count: int = 20) -> Path:
    path.write_text('\n'.join([head, *(rows(k) for k in range(count))]) + '\n')
    return path


def test_own_names(tmp_path: Path) -> None:
    file = csv(
        tmp_path / 'a.csv', 'time,p_head_1,comment,strain_1', lambda k: f'{k},{k}e5,good,{k}e-6'
    )
    found = read_csv(file, SIGNALS, events=[(3.0, 'release')], conditions={'load': 9.0})
    assert (found.name, list(found.signals)) == ('a.csv', ['p_head_1', 'strain_1'])
    np.testing.assert_array_equal(found.signals['p_head_1'].values, np.arange(20) * 1e5)
    assert np.isnan(found.signals['strain_1'].deviation).all()
    assert found.events == ((3.0, 'release'),)
    assert found.conditions == {'load': 9.0}


def test_column_map(tmp_path: Path) -> None:
    file = csv(tmp_path / 'a.csv', 't;up [bar]: A;s:1', lambda k: f'{10 * k};{k};{"" if k else 4}')
    columns = column_map(['time=t:ms', 'p_head_1=up [bar]: A:barg', 'strain_1=s:1:1e-6'], SIGNALS)
    found = read_csv(file, SIGNALS, columns).signals
    np.testing.assert_allclose(found['p_head_1'].times, TIMES, rtol=1e-12)
    np.testing.assert_allclose(found['p_head_1'].values[:2], [101325.0, 201325.0])
    assert found['strain_1'].values[0] == pytest.approx(4e-6)
    assert np.isnan(found['strain_1'].values[1:]).all()
    assert column_map(['strain_1=s:1:'], SIGNALS)['strain_1'].name == 's:1'


@pytest.mark.parametrize(
    ('entries', 'match'),
    [
        (['p_head_1'], "column map 'p_head_1', allowed: SIGNAL=COLUMN"),
        (['p_head_9=a'], r"signal = 'p_head_9', allowed: time \| p_head_1"),
        (['p_head_1=a', 'p_head_1=b'], 'p_head_1 is given twice'),
        (['p_head_1=a:Bar'], "unit 'Bar', allowed: a factor, Pa, bar, barg"),
        (['strain_1=a:deg'], "unit 'deg', allowed: a factor, 1, um/m, mm/m, percent;"),
        (['p_head_1=a:0'], "unit '0', allowed"),
    ],
)
def test_column_maps_that_are_none(entries: list[str], match: str) -> None:
    with pytest.raises(InputError, match=match):
        column_map(entries, SIGNALS)


def test_files_that_are_none(tmp_path: Path) -> None:
    other = csv(tmp_path / 'a.csv', 'time,p1', lambda k: f'{k},{k}')
    with pytest.raises(InputError, match=r'no signal of the machine.*give a column map'):
        read_csv(other, SIGNALS)
    with pytest.raises(InputError, match='lacks p2; found: time'):
        read_csv(other, SIGNALS, column_map(['p_head_1=p2'], SIGNALS))
    larger = csv(tmp_path / 'b.csv', 'time,p_head_1,p_head_2', lambda k: f'{k},{k}e5,{k}e5')
    with pytest.raises(InputError, match=r'b\.csv has p_head_2, of which this machine'):
        read_csv(larger, SIGNALS)
    both = csv(tmp_path / 'c.csv', 'time,p_head_1,strain_1', lambda k: f'{k},{k}e5,0')
    with pytest.raises(InputError, match='column strain_1 is for p_head_1 and strain_1, allowed'):
        read_csv(both, SIGNALS, column_map(['p_head_1=strain_1'], SIGNALS))
    # The column of a signal that is read from another one.
    swapped = column_map(['p_head_1=strain_1', 'strain_1=p_head_1'], SIGNALS)
    assert read_csv(both, SIGNALS, swapped).signals['strain_1'].values[1] == 1e5
    other = csv(tmp_path / 'd.csv', 'time,p_head_1,p', lambda k: f'{k},{k}e5,{k}')
    mapped = read_csv(other, SIGNALS, column_map(['p_head_1=p'], SIGNALS))
    assert mapped.signals['p_head_1'].values[1] == 1.0


def header_at(stamp: int) -> Header:
    header = Header()
    header.stamp.sec, header.stamp.nanosec = divmod(stamp, 1_000_000_000)
    return header


def messages(start: int = 0) -> list[tuple[str, int, Any]]:
    """Return sensors, their truth, and markers from ``start`` [ns] on."""
    rows: list[tuple[str, int, Any]] = []
    for k in range(20):
        stamp = start + k * 10_000_000
        header = header_at(stamp)
        for topic, error in (('hydraulics', 0.0), ('sensors/pressure', 7.0)):
            state = HydraulicState(header=header, name=['other', 'lift'])
            state.head_pressure = [0.0, k + error]
            # rclpy pads empty lists at the end by more than rosbags takes.
            state.rod_pressure = state.spool = state.head_flow = state.rod_flow = [0.0, 0.0]
            rows.append((topic, stamp, state))
        rows.append(('strain', stamp, StrainState(header=header, name=['arm'], strain=[k * 1e-6])))
        estimate = MarkerEstimate(name='tip', status=2 if k == 5 else 0)
        estimate.in_plane.x = float(k) if k != 6 else np.nan
        estimate.in_plane_noise_covariance = [4e-8, *[0.0] * 8]
        rows.append(('markers', stamp, MarkerEstimates(header=header, estimates=[estimate])))
    return rows


@pytest.mark.parametrize('start', [0, 1_700_000_000_123_456_789])
def test_a_bag_with_sensors_truth_and_markers(tmp_path: Path, start: int) -> None:
    found = read_recording(write_bag(tmp_path / 'bag', 'a/b', messages(start)), SIGNALS).signals
    assert list(found) == ['p_head_1', 'strain_1', 'marker_tip_x']
    # Readings of sensors come before what the plant knows, and each signal has its own times.
    np.testing.assert_array_equal(found['p_head_1'].values, np.arange(20) + 7.0)
    np.testing.assert_allclose(found['p_head_1'].times, TIMES, atol=1e-12)
    assert np.isnan(found['p_head_1'].deviation).all()
    tip = found['marker_tip_x']
    np.testing.assert_array_equal(tip.values, [k for k in range(20) if k not in (5, 6)])
    np.testing.assert_allclose(tip.deviation, 2e-4)


def test_names_that_are_not_in_the_messages(tmp_path: Path) -> None:
    bag = write_bag(tmp_path / 'bag', 'a/b', messages())
    # A name of digits is no index.
    source = Source('markers', 'estimates.in_plane.x', '0')
    signals = (*SIGNALS, MeasuredSignal('marker_0_x', 'm', (source,)))
    assert 'marker_0_x' not in read_recording(bag, signals).signals
    wrong = (MeasuredSignal('p', 'Pa', (Source('hydraulics', 'head_pressure', 'tilt'),)),)
    with pytest.raises(InputError, match=r'lacks tilt; found: other, lift; give the machine'):
        read_recording(bag, wrong)


@pytest.mark.parametrize('again', [5.0, 3.0])
@pytest.mark.parametrize('start', [0, 1_700_000_000_123_456_789])
def test_loads_tell_events_and_payload_on_the_clock_of_the_signals(
    tmp_path: Path, start: int, again: float
) -> None:
    rows = messages(start)
    for k, mass in ((0, 5.0), (8, 0.0), (12, again)):
        stamp = start + k * 10_000_000
        load = InertiaStamped(header=header_at(stamp))
        load.inertia.m = mass
        rows.append(('load', stamp, load))
    bag = write_bag(tmp_path / 'bag', 'a', sorted(rows, key=lambda row: row[1]))
    if again != 5.0:
        with pytest.raises(InputError, match='has 0, 3, 5 kg, allowed: one mass and none'):
            read_recording(bag, SIGNALS)
        return
    found = read_recording(bag, SIGNALS)
    assert [what for _, what in found.events] == ['release', 'attach']
    np.testing.assert_allclose([time for time, _ in found.events], [0.08, 0.12], atol=1e-9)
    assert found.conditions == {'payload': 5.0}
    told = read_recording(bag, SIGNALS, None, [(0.1, 'release')], {'payload': 4.0})
    assert told.events == ((0.1, 'release'),)
    assert told.conditions == {'payload': 4.0}


def test_namespaces(tmp_path: Path) -> None:
    rows = [('one/' + topic, time, message) for topic, time, message in messages()]
    rows += [('two/' + topic, time, message) for topic, time, message in messages()]
    bag = write_bag(tmp_path / 'bag', 'site', rows)
    with pytest.raises(InputError, match=r'2 times: /site/one/.*give the namespace'):
        read_recording(bag, SIGNALS)
    assert len(read_recording(bag, SIGNALS, 'site/two').signals) == 3
    with pytest.raises(InputError, match='no signal of the machine, allowed: a topic that ends'):
        read_recording(bag, SIGNALS, 'site')


def test_a_clock_that_jumps_or_stands_in_a_bag(tmp_path: Path) -> None:
    # In the order of recording, as a simulation that was reset.
    rows = [(topic, k, message) for k, (topic, _, message) in enumerate(messages() + messages())]
    found = read_recording(write_bag(tmp_path / 'bag', 'a', rows), SIGNALS)
    with pytest.raises(InputError, match=r'p_head_1 in bag jumps back 1 times, first from 0.19 s'):
        check_recordings([found], SIGNALS)
    for _, _, message in rows:
        message.header.stamp.nanosec = 0
    found = read_recording(write_bag(tmp_path / 'stands', 'a', rows[:80]), SIGNALS)
    with pytest.raises(InputError, match='p_head_1 in stands stands in 19 rows'):
        check_recordings([found], SIGNALS)


def recording(values: np.ndarray, times: np.ndarray = TIMES) -> Recording:
    return Recording('test', {'p_head_1': signal(times, values)})


def test_what_is_missing_and_what_would_help() -> None:
    shown = recording(np.zeros(20))
    wanted = [['p_head_*'], ['strain_*', 'p_head_1']]
    assert require(shown, wanted, SIGNALS) == ['p_head_*', 'p_head_1']
    with pytest.raises(InputError) as caught:
        require(shown, [['strain_*', 'marker_*']], SIGNALS)
    assert str(caught.value) == (
        'test lacks strain_1 (topic sensors/strain or strain; in a CSV file: columns); or instead'
        ' marker_tip_x (topic markers; in a CSV file: columns); found: p_head_1'
    )


def test_values_that_are_missing() -> None:
    values = np.zeros(20)
    check_finite(recording(values), ['p_*'])
    values[[4, 9]] = np.nan
    check_finite(recording(values), ['strain_*'])
    with pytest.raises(InputError, match=r'not finite in 2 of 20 rows, from 0.04 s to 0.09 s'):
        check_finite(recording(values), ['p_*'])


def made(
    name: str = 'a', times: np.ndarray = TIMES, factor: float = 1.0, first: int = 0
) -> Recording:
    values = factor * (2e7 + 1e5 * np.sin(TIMES))
    return Recording(name, {'p': signal(times[first:], values[first:])})


@pytest.mark.parametrize(
    ('recordings', 'text'),
    [
        ([made(factor=1e-5)], 'p in a goes from 200 to 200.* Pa, .* once 100000 or more'),
        ([made(factor=-1.0)], r'goes from -2.* Pa, .* its sign\?.* --column p=COLUMN:UNIT'),
        ([made(factor=1e5)], 'is its unit right'),
        ([made(factor=np.nan)], 'p in a has no finite value'),
        ([made(times=TIMES[::-1])], 'the clock of p in a jumps back'),
        ([made(), made('b')], 'a and b have the same values'),
        ([made(first=5), made('b')], 'a and b have the same values'),
    ],
)
def test_what_no_recording_may_have(recordings: list[Recording], text: str) -> None:
    pressure = MeasuredSignal('p', 'Pa', (), limits=(-2e5, 1e8), least=1e5)
    check_recordings([made(), made('b', factor=1.01)], [pressure])
    with pytest.raises(InputError, match=text):
        check_recordings(recordings, [pressure])
