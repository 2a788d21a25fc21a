from __future__ import annotations

import struct

import pytest

from longreach_dynamics.errors import InputError
from longreach_tools.bag._mcap import _Fields, _UnreadableError
from longreach_tools.bag._stamps import HeaderClock, StampStatistics, is_wall_clock, stamp_reader
from longreach_tools.bag._subscriptions import RecordedTopic
from longreach_tools.bag._topics import MachineTypes, message_class

SECOND = 1_000_000_000
WALL = 1_700_000_000 * SECOND


@pytest.fixture(scope='module')
def types():
    return MachineTypes()


def serialised(types, typename, message, *, little_endian=True):
    return bytes(types.store.serialize_cdr(message, typename, little_endian=little_endian))


def header(types, sec, nanosec, frame='track'):
    time = types.store.types['builtin_interfaces/msg/Time'](sec, nanosec)
    return types.store.types['std_msgs/msg/Header'](time, frame)


@pytest.mark.parametrize('little_endian', [True, False])
def test_stamp_of_a_header_is_read_from_the_bytes(types, little_endian):
    types.require('longreach_msgs/msg/CraneCommand')
    read = stamp_reader('longreach_msgs/msg/CraneCommand', types.store)
    cls = types.store.types['longreach_msgs/msg/CraneCommand']
    message = cls(header(types, 7, 250_000_000), 3.0, True)
    data = serialised(
        types, 'longreach_msgs/msg/CraneCommand', message, little_endian=little_endian
    )
    assert read(data) == 7 * SECOND + 250_000_000


def test_stamp_of_clock_header_and_transforms(types):
    clock = types.store.types['rosgraph_msgs/msg/Clock']
    time = types.store.types['builtin_interfaces/msg/Time']
    read = stamp_reader('rosgraph_msgs/msg/Clock', types.store)
    assert read(serialised(types, 'rosgraph_msgs/msg/Clock', clock(time(1, 5)))) == SECOND + 5

    read = stamp_reader('std_msgs/msg/Header', types.store)
    assert read(serialised(types, 'std_msgs/msg/Header', header(types, 2, 1))) == 2 * SECOND + 1

    read = stamp_reader('tf2_msgs/msg/TFMessage', types.store)
    store = types.store.types
    vector, quaternion = (
        store['geometry_msgs/msg/Vector3'](0.0, 0.0, 0.0),
        store['geometry_msgs/msg/Quaternion'](0.0, 0.0, 0.0, 1.0),
    )
    transform = store['geometry_msgs/msg/Transform'](vector, quaternion)
    stamped = store['geometry_msgs/msg/TransformStamped'](header(types, 9, 3), 'car', transform)
    filled = store['tf2_msgs/msg/TFMessage']([stamped])
    empty = store['tf2_msgs/msg/TFMessage']([])
    assert read(serialised(types, 'tf2_msgs/msg/TFMessage', filled)) == 9 * SECOND + 3
    assert read(serialised(types, 'tf2_msgs/msg/TFMessage', empty)) is None


def test_types_without_a_stamp_and_short_messages(types):
    for name in ('std_msgs/msg/Float64', 'geometry_msgs/msg/Pose', 'std_msgs/msg/Empty'):
        assert stamp_reader(name, types.store) is None
    assert stamp_reader('std_msgs/msg/Header', types.store)(b'\x00\x01\x00\x00\x01') is None


def test_unknown_types_are_refused_by_name(types):
    with pytest.raises(InputError, match=r'no_such_msgs/msg/Thing: no definition found.*no_such'):
        types.require('no_such_msgs/msg/Thing')
    with pytest.raises(InputError, match='package no_such_msgs is not installed'):
        message_class('no_such_msgs/msg/Thing')
    with pytest.raises(InputError, match='installed package std_msgs has no such message'):
        message_class('std_msgs/msg/Thing')


def test_own_types_are_found_nested_in_prefixes(tmp_path, monkeypatch):
    folder = tmp_path / 'share' / 'own_msgs' / 'msg'
    folder.mkdir(parents=True)
    (folder / 'Outer.msg').write_text('Inner[] parts\nstd_msgs/Header header\n')
    (folder / 'Inner.msg').write_text('float64 x 1.5 # default\nuint8 ONE=1\n')
    (folder / 'Broken.msg').write_text('float64 = = x\n')
    monkeypatch.setenv('AMENT_PREFIX_PATH', str(tmp_path))
    types = MachineTypes()
    text, type_hash = types.definition('own_msgs/msg/Outer')
    assert 'MSG: own_msgs/Inner' in text
    assert type_hash.startswith('RIHS01_')
    with pytest.raises(InputError, match=r'Broken\.msg: not a message definition'):
        types.require('own_msgs/msg/Broken')
    types.require_all()
    assert 'own_msgs/msg/Inner' in types.store.fielddefs


def test_type_hash_is_that_of_the_generated_code(types):
    from longreach_msgs.msg import CraneStatus

    _, type_hash = types.definition('longreach_msgs/msg/CraneStatus')
    import json
    import os
    from pathlib import Path

    files = [
        Path(prefix) / 'share/longreach_msgs/msg/CraneStatus.json'
        for prefix in os.environ['AMENT_PREFIX_PATH'].split(os.pathsep)
    ]
    description = json.loads(next(file for file in files if file.is_file()).read_text())
    hashes = {entry['type_name']: entry['hash_string'] for entry in description['type_hashes']}
    assert type_hash == hashes['longreach_msgs/msg/CraneStatus']
    assert CraneStatus.__name__ == 'CraneStatus'


def report_of(stamps):
    statistics = StampStatistics()
    for stamp in stamps:
        statistics.add(round(stamp * SECOND))
    return statistics.report()


def test_even_stamps_are_clean():
    report = report_of([0.01 * k for k in range(100)])
    assert report.clean
    assert report.period_s == pytest.approx(0.01, rel=1e-12)
    assert report.sentence() == ''


def test_gaps_are_counted_with_the_largest_and_the_missing():
    stamps = [0.01 * k for k in range(1000) if k not in (10, 500, 501, 502)]
    report = report_of(stamps)
    assert (report.gaps, report.missing, report.backwards, report.duplicates) == (2, 4, 0, 0)
    assert report.largest_gap_s == pytest.approx(0.04)
    assert '2 gaps in the stamps, largest 0.04 s' in report.sentence()


def test_a_step_below_one_and_a_half_periods_is_no_gap():
    assert report_of([0.0, 1.0, 2.0, 3.0, 4.4, 5.4]).gaps == 0
    assert report_of([0.0, 1.0, 2.0, 3.0, 4.6, 5.6]).gaps == 1


@pytest.mark.parametrize(
    ('typename', 'publishers', 'shared'),
    [
        ('sensor_msgs/msg/JointState', 1, False),
        ('sensor_msgs/msg/JointState', 2, True),
        ('diagnostic_msgs/msg/DiagnosticArray', 1, True),
        ('tf2_msgs/msg/TFMessage', 1, True),
    ],
)
def test_repeated_stamps_of_a_shared_topic_are_no_fault(typename, publishers, shared):
    topic = RecordedTopic('/x', typename, '', '', object, None)
    topic.note_publishers((None,) * publishers)
    for _ in range(3):
        topic.statistics.add(5)
    assert topic.stamps.clean is shared
    assert topic.stamps.duplicates == (0 if shared else 2)


def test_backward_and_repeated_stamps():
    report = report_of([0.0, 0.1, 0.2, 0.2, 0.3, 0.1, 0.2, 0.3])
    assert (report.backwards, report.duplicates, report.gaps) == (1, 1, 0)
    assert not report.clean
    assert 'backwards 1 times' in report.sentence()


def test_few_stamps_have_no_period():
    assert report_of([]).period_s is None
    assert report_of([0.0, 1.0, 9.0]).gaps == 0


def test_jittered_wall_clock_stamps_have_no_gaps():
    stamps = [1.7e9 + 0.01 * k + 0.002 * ((k * 7919) % 11 - 5) / 5 for k in range(5000)]
    report = report_of(stamps)
    assert report.gaps == 0
    assert report.period_s == pytest.approx(0.01, rel=0.1)


def test_messages_without_stamp_take_the_latest_one():
    clock = HeaderClock()
    assert [clock.assign(s) for s in (5 * SECOND, None, 6 * SECOND, None)] == [
        5 * SECOND,
        5 * SECOND,
        6 * SECOND,
        6 * SECOND,
    ]


def test_the_start_of_a_simulation_is_a_time():
    clock = HeaderClock()
    assert clock.assign(None) is None
    assert clock.assign(0) is None
    assert clock.assign(SECOND) == SECOND
    assert clock.waiting_time == 0
    assert clock.assign(0) == 0  # the simulation was reset


def test_an_unfilled_header_is_no_time_on_the_wall_clock():
    clock = HeaderClock()
    assert clock.assign(0) is None
    assert clock.assign(WALL) == WALL
    assert clock.waiting_time == WALL
    assert clock.assign(0) == WALL


def test_without_stamps_there_is_no_time():
    clock = HeaderClock()
    assert clock.assign(None) is None
    assert clock.waiting_time is None
    clock.assign(0)
    assert clock.waiting_time == 0
    assert is_wall_clock(WALL)
    assert not is_wall_clock(60 * SECOND)


def test_fields_of_a_short_record_are_unreadable():
    fields = _Fields(struct.pack('<I', 9) + b'short')
    with pytest.raises(_UnreadableError):
        fields.text()
