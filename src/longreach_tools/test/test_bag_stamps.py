import json
import struct
from array import array

import pytest

from longreach_dynamics.errors import InputError
from longreach_tools.bag._stamps import HeaderClock, is_wall_clock, stamp_reader, stamp_report
from longreach_tools.bag._subscriptions import RecordedTopic
from longreach_tools.bag._topics import MachineTypes, definition_file

SECOND = 1_000_000_000
WALL = 1_700_000_000 * SECOND


@pytest.fixture(scope='module')
def types():
    return MachineTypes()


@pytest.mark.parametrize('order', '<>')
@pytest.mark.parametrize(
    ('typename', 'listed'),
    [
        ('longreach_msgs/msg/CraneCommand', 0),
        ('rosgraph_msgs/msg/Clock', 0),
        ('std_msgs/msg/Header', 0),
        ('tf2_msgs/msg/TFMessage', 1),
    ],
)
def test_stamp_is_read_from_the_bytes(types, typename, listed, order):
    types.require(typename)
    begin = bytes((0, order == '<', 0, 0))
    count, time = struct.pack(f'{order}I', 1) * listed, struct.pack(f'{order}iI', 7, 250_000_000)
    read = stamp_reader(typename, types.store)
    assert read(begin + count + time) == 7 * SECOND + 250_000_000
    # None is in an empty list.
    assert not listed or read(begin + bytes(4) + time) is None


def test_types_without_a_stamp_and_short_messages(types):
    for name in ('std_msgs/msg/Float64', 'geometry_msgs/msg/Pose', 'std_msgs/msg/Empty'):
        assert stamp_reader(name, types.store) is None
    assert stamp_reader('std_msgs/msg/Header', types.store)(b'\x00\x01\x00\x00\x01') is None


def test_type_hash_is_that_of_the_generated_code(types):
    _, type_hash = types.definition('longreach_msgs/msg/CraneStatus')
    file = definition_file('longreach_msgs/msg/CraneStatus').with_suffix('.json')
    hashes = {
        one['type_name']: one['hash_string'] for one in json.loads(file.read_text())['type_hashes']
    }
    assert type_hash == hashes['longreach_msgs/msg/CraneStatus']


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


@pytest.mark.parametrize(
    ('typename', 'publishers', 'shared'),
    [
        ('sensor_msgs/msg/JointState', 1, False),
        ('sensor_msgs/msg/JointState', 2, True),
        ('diagnostic_msgs/msg/DiagnosticArray', 1, True),
        ('tf2_msgs/msg/TFMessage', 1, True),
        ('longreach_msgs/msg/MarkerObservations', 1, True),
    ],
)
def test_repeated_stamps_of_a_shared_topic_are_no_fault(typename, publishers, shared):
    topic = RecordedTopic('/x', typename, '', '', object, None)
    topic.note_publishers((None,) * publishers)
    topic.arrived.extend([5, 5, 5])
    assert topic.stamps.duplicates == (0 if shared else 2)


@pytest.mark.parametrize(
    ('stamps', 'period', 'found', 'sentence'),
    [
        ([0.01 * k for k in range(100)], 0.01, {}, ''),
        (
            [0.01 * k for k in range(1000) if k not in (10, 500, 501, 502)],
            0.01,
            {'gaps': 2, 'missing': 4, 'largest_gap_s': 0.04},
            '2 gaps in the stamps, largest 0.04 s (period 0.01 s), about 4 lost or not sent',
        ),
        ([0.0, 1.0, 2.0, 3.0, 4.4, 5.4], 1.0, {}, ''),
        ([0.0, 1.0, 2.0, 3.0, 4.6, 5.6], 1.0,
         {'gaps': 1, 'missing': 1, 'largest_gap_s': 1.6}, '1 gap in'),
        (
            [0.0, 0.1, 0.2, 0.2, 0.3, 0.1, 0.2, 0.3],
            0.1,
            {'backwards': 1, 'duplicates': 1},
            'stamps went backwards 1 times; 1 repeated stamps',
        ),
        # Messages for now.
        ([0.0, 0.1, 0.0, 0.2, 0.0, 0.0, 0.3], 0.1, {}, ''),
        ([], None, {}, ''),
        ([0.0, 1.0, 9.0], None, {}, ''),
        # Published on changes only.
        ([0.0, 3.2, 3.3, 7.0, 9.5, 20.0], None, {}, ''),
        # With jitter.
        ([1.7e9 + 0.01 * k + 4e-4 * ((k * 7919) % 11 - 5) for k in range(5000)], 0.01, {}, ''),
    ],
)  # fmt: skip
def test_statistics_of_stamps(stamps, period, found, sentence):
    report = stamp_report(array('q', [round(stamp * SECOND) for stamp in stamps]))
    assert report.period_s == (period if period is None else pytest.approx(period, rel=0.1))
    nothing = {'gaps': 0, 'missing': 0, 'largest_gap_s': 0.0, 'backwards': 0, 'duplicates': 0}
    assert report._asdict() == pytest.approx({'period_s': report.period_s, **nothing, **found})
    assert report.sentence().startswith(sentence)
    assert bool(report.sentence()) is bool(found)


@pytest.mark.parametrize(
    ('stamps', 'times', 'waiting'),
    [
        # Messages without stamp take the latest one.
        ((5, None, 6, None), [5, 5, 6, 6], 5),
        # The start of a simulation is a time.
        ((None, 0, SECOND), [None, None, SECOND], 0),
        # A header that was not filled in is none on the wall clock.
        ((0, WALL, 0), [None, WALL, WALL], WALL),
        ((None,), [None], None),
        ((None, 0), [None, None], 0),
        # A command for now, and a joystick with the wall clock, are no times of a simulation.
        ((0, SECOND, 0, WALL, None), [None, SECOND, SECOND, SECOND, SECOND], 0),
        # The first answer comes after the second sample.
        ((0, 5, 0, 6), [None, 5, 0, 6], 0),
        # A simulation that begins later goes on from there.
        ((WALL, 1, WALL + 9, 3), [WALL, WALL, WALL, WALL + 2], WALL),
    ],
)  # fmt: skip
def test_bag_times_from_stamps(stamps, times, waiting):
    clock = HeaderClock()
    assert [clock.assign(stamp) for stamp in stamps] == times
    assert clock.waiting_time == waiting
    assert is_wall_clock(WALL)
    assert not is_wall_clock(60 * SECOND)


def test_bag_times_go_on_when_simulation_time_begins_anew():
    clock = HeaderClock()
    stamps = (1, 5, 9, 0, 0, 1, None, 2)
    # The first stamp that returns is of a topic that several nodes share.
    earliest = (0, 0, 5, 0, 9, 9, 0, 10)
    times = [clock.assign(*one) for one in zip(stamps, earliest, strict=True)]
    assert times == [1, 5, 9, 0, 9, 10, 10, 11]
    # Late messages of one topic keep their order; others are not shifted.
    assert [clock.assign(*one) for one in ((4, 11), (3, 13), (5, 13))] == [13, 13, 14]
    # A command for now, and an answer to the sample before.
    assert [clock.assign(*one) for one in ((0, 14), (4, 14), (6, 14))] == [14, 14, 15]
    # Of two machines one begins anew.
    clock, bag_times = HeaderClock(), {'north': 0, 'south': 0}
    samples = [(one, stamp) for stamp in (1, 2, 3) for one in bag_times]
    samples += [
        (one, stamp + back) for stamp in (1, 2) for one, back in (('north', 0), ('south', 3))
    ]
    for name, stamp in samples:
        bag_times[name] = clock.assign(stamp * SECOND, bag_times[name])
    assert bag_times == {'north': 4 * SECOND, 'south': 5 * SECOND}
    # On the wall clock a stamp that goes back is that of an older sample.
    clock = HeaderClock()
    assert [clock.assign(WALL), clock.assign(WALL - 1, WALL)] == [WALL, WALL - 1]
