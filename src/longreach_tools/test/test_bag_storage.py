import contextlib
import importlib
import random
import re
import resource
import shutil
import sqlite3
import struct
from pathlib import PurePosixPath
from types import SimpleNamespace

import numpy as np
import pytest
from rosbags.highlevel import AnyReader
from rosbags.interfaces import QosDurability
from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin, Writer
from rosbags.rosbag2.storage_mcap import McapWriter

from longreach_dynamics.errors import InputError, LongreachError
from longreach_tools import cli
from longreach_tools.bag import BagWriter, bag_typestore, open_bag, read_bag, recover
from longreach_tools.bag._mcap import IntactMcap, fault_at_end
from longreach_tools.bag._play import PlayOptions, _Player, timeline
from longreach_tools.bag._report import inspect_bag
from longreach_tools.bag._topics import (
    MachineTypes,
    absolute_name,
    checked_name,
    publisher_profile,
    recorded,
)
from longreach_tools.testing import Outcome

SENSORS = 'longreach_msgs/msg/CraneSensors'
JOINTS = 'sensor_msgs/msg/JointState'
OWN = 'own_msgs/msg/Own'
FIVE = b'\x00\x01\x00\x00\x05\x00\x00\x00'
STEP = 10_000_000
STORAGES = ['mcap', 'sqlite3']


def write_messages(writer, count, *, flush_every=None, qos=()):
    """Write sensors and joint states of ``count`` cycles, step 10 ms."""
    types, kinds = MachineTypes(), {'/crane/sensors': SENSORS, '/crane/joint_states': JOINTS}
    connections = {
        topic: writer.add_topic(topic, typename, *types.definition(typename), qos)
        for topic, typename in kinds.items()
    }
    made = types.store.types
    for k in range(count):
        stamp = made['builtin_interfaces/msg/Time'](*divmod(k * STEP, 1_000_000_000))
        header = made['std_msgs/msg/Header'](stamp, 'track')
        sensors = made[SENSORS](header, float(k), False, True)
        values = (np.array([k / 2]), np.array([]), np.array([1.0, 2.0]))
        joints = made[JOINTS](header, ['car_joint'], *values)
        for (topic, typename), message in zip(kinds.items(), (sensors, joints), strict=True):
            data = bytes(types.store.serialize_cdr(message, typename))
            writer.write(connections[topic], k * STEP, data)
        if flush_every and k % flush_every == flush_every - 1:
            writer.flush()


class OthersWriter:
    """Writes what other programs record."""

    def __init__(self, path, storage='sqlite3', compression='none'):
        self._writer = Writer(path, version=9, storage_plugin=StoragePlugin[storage.upper()])
        mode = CompressionMode[compression.upper()]
        self._writer.set_compression(mode, CompressionFormat.ZSTD)
        self._writer.open()
        self.write = self._writer.write

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._writer.__exit__(*error)

    def add_topic(self, name, typename, definition, type_hash, qos):
        words = {'msgdef': definition, 'rihs01': type_hash, 'offered_qos_profiles': qos}
        return self._writer.add_connection(name, typename, **words)

    def flush(self):
        self._writer.storage.conn.commit()


def new_writer(path, storage='mcap', **options):
    return BagWriter(path, **options) if storage == 'mcap' else OthersWriter(path)


def make_bag(path, count=100, **options):
    written = {k: options.pop(k) for k in ('flush_every', 'qos') if k in options}
    with new_writer(path, **options) as writer:
        write_messages(writer, count, **written)
    return path


def bag_of(path, typename, *messages, definition=None):
    """Write messages, as bytes, to one topic, 1 ns apart."""
    with BagWriter(path) as writer:
        definition = definition or MachineTypes().definition(typename)
        connection = writer.add_topic('/x', typename, *definition, ())
        for time, data in enumerate(messages):
            writer.write(connection, time, data)
    return path


def leave_unclosed(path, count=100, **options):
    """Make what a recorder leaves that fails after its last flush, or is killed."""
    with contextlib.suppress(ZeroDivisionError), new_writer(path, **options) as writer:
        write_messages(writer, count, flush_every=10)
        writer.flush()
        raise ZeroDivisionError
    assert not (path / 'metadata.yaml').exists()
    return path


def positions(path, topics=('/crane/sensors',)):
    return [message.car_position for _, _, message in read_bag(path, list(topics))]


@pytest.mark.parametrize('options', [{}, {'storage': 'sqlite3'}, {'compress': True}], ids=str)
def test_round_trip(tmp_path, options):
    bag = make_bag(tmp_path / 'bag', **options)
    (file,) = (one for one in bag.iterdir() if one.suffix != '.yaml')
    with open_bag(file) as opened:
        assert (opened.problem, opened.message_count) == ('', 200)
    messages = list(read_bag(bag))
    names = ['/crane/sensors', '/crane/joint_states']
    expected = [(name, time) for time in (0, STEP) for name in names]
    assert [(topic, time) for topic, time, _ in messages[:4]] == expected
    assert positions(bag) == [float(k) for k in range(100)]
    _, time, joints = messages[-1]
    assert time == 99 * STEP
    assert joints.name == ['car_joint']
    np.testing.assert_array_equal(joints.position, [49.5])
    np.testing.assert_array_equal(joints.effort, [1.0, 2.0])
    # So does rosbags, which checks the type hashes, too.
    with AnyReader([bag]) as reader:
        assert reader.message_count == 200
        assert {c.msgtype for c in reader.connections} == {SENSORS, JOINTS}
        connection, _, data = next(reader.messages())
        assert reader.deserialize(data, connection.msgtype).header.frame_id == 'track'


def test_no_ros_installation_is_needed_to_read(tmp_path, monkeypatch):
    bag = make_bag(tmp_path / 'bag', 3)
    assert {SENSORS, JOINTS} <= bag_typestore().types.keys()
    monkeypatch.setenv('AMENT_PREFIX_PATH', '')
    assert positions(bag) == [0.0, 1.0, 2.0]
    assert SENSORS in bag_typestore(bag).types
    assert SENSORS not in bag_typestore().types


def test_empty_recording(tmp_path):
    bag = make_bag(tmp_path / 'bag', 0)
    assert list(read_bag(bag)) == []
    report = inspect_bag(bag)
    assert (report.as_dict['messages'], report.problem, report.as_dict['start_ns']) == (0, '', 0)
    assert len(report.as_dict['topics']) == 2


def test_a_recording_can_be_read_from_its_beginning_on(tmp_path):
    with BagWriter(tmp_path / 'bag'):
        with open_bag(tmp_path / 'bag') as opened:
            assert (opened.problem, opened.message_count) == ('not closed', 0)
            assert list(opened.messages(list(opened.topics))) == []
        with pytest.raises(InputError, match='no readable message'):
            recover(tmp_path / 'bag', tmp_path / 'new')


@pytest.mark.parametrize('options', [{}, {'compress': True}, {'storage': 'sqlite3'}], ids=str)
def test_unclosed_bag_is_read_and_recovered(tmp_path, options):
    bag = leave_unclosed(tmp_path / 'bag', **options)
    with open_bag(bag) as opened:
        assert opened.problem == 'not closed'
        assert opened.message_count == 200
        assert (opened.start_time, opened.end_time) == (0, 99 * STEP)
    with pytest.warns(UserWarning, match='not closed; 200 messages recovered'):
        assert positions(bag) == [float(k) for k in range(100)]
    assert recover(bag, tmp_path / 'new') == 200
    assert inspect_bag(tmp_path / 'new').problem == ''
    assert positions(tmp_path / 'new') == [float(k) for k in range(100)]


def test_uncommitted_sqlite_transaction_is_rolled_back_in_a_copy(tmp_path):
    bag = leave_unclosed(tmp_path / 'bag', 50, storage='sqlite3')
    database = bag / 'bag.db3'
    connection = sqlite3.connect(database)
    connection.execute('PRAGMA cache_size=1')  # spills into the file, as a long transaction does
    connection.executemany(
        'INSERT INTO messages(topic_id, timestamp, data) VALUES(1, ?, ?)',
        ((k, bytes(2000)) for k in range(200)),
    )
    for suffix in ('', '-journal'):
        shutil.copy(f'{database}{suffix}', f'{tmp_path}/saved{suffix}')
    connection.rollback()
    connection.close()
    for suffix in ('', '-journal'):
        shutil.copy(f'{tmp_path}/saved{suffix}', f'{database}{suffix}')
    before = database.read_bytes()
    with pytest.warns(UserWarning, match='100 messages'):
        assert positions(bag) == [float(k) for k in range(50)]
    assert database.read_bytes() == before


def test_mcap_cut_anywhere_gives_the_messages_before_the_cut(tmp_path):
    bag = leave_unclosed(tmp_path / 'bag', 60)
    file = bag / 'bag_0.mcap'
    whole = file.read_bytes()
    counts, refused = [], []
    for size in [*range(0, len(whole), 211), len(whole)]:
        file.write_bytes(whole[:size])
        try:
            with open_bag(bag) as opened:
                messages = list(opened.messages())
                assert len(messages) == opened.message_count
        except InputError:
            refused.append(size)
            continue
        assert messages == sorted(messages, key=lambda message: message[1])
        counts.append(len(messages))
    assert refused == [0]
    assert counts == sorted(counts)
    assert counts[0] == 0
    assert counts[-1] == 120
    # What is cut off is at most a chunk.
    assert sorted({*counts}) == list(range(0, 121, 20))


def hit(file, at, block):
    """Overwrite a block of a file."""
    data = bytearray(file.read_bytes())
    data[at : at + len(block)] = block
    file.write_bytes(data)


# Where, as a share of the file, and what.
DAMAGE = {
    'zeros': (0.5, bytes(512)),
    'ones': (0.3, b'\xff' * 512),
    'text': (0.7, b'damaged ' * 64),
    'length': (0.5, b'\x05' + (3000).to_bytes(8, 'little') + b'\x01'),
    'begin': (0.0005, b'\xa5' * 512),
    'end': (0.99, b'\xa5' * 200),
}


def intact(file):
    """Open a file by its intact chunks."""
    reader = IntactMcap(file)
    reader.open()
    return reader


def without_checksums(bag):
    """Take the checksums out of an uncompressed file, as other programs write it."""
    file = bag / 'bag_0.mcap'
    data = file.read_bytes()
    end = data.rindex(b'\x0f\x04' + bytes(7))
    for offset in [chunk.chunk_start_offset + 33 for chunk in intact(file).chunks] + [
        end + 9,
        len(data) - 12,
    ]:
        hit(file, offset, bytes(4))
    return bag


@pytest.mark.parametrize('options', [{}, {'compress': True}], ids=str)
def test_ten_of_ten_flipped_bits_are_reported_and_not_used(tmp_path, capsys, options):
    bag = make_bag(tmp_path / 'bag', 100, flush_every=5, **options)
    with open_bag(bag) as opened:
        written = list(opened.messages())
    file = bag / 'bag_0.mcap'
    whole = file.read_bytes()
    generator = random.Random(7)
    for number in range(10):
        data = bytearray(whole)
        data[generator.randrange(8, len(data))] ^= 1 << generator.randrange(8)
        file.write_bytes(data)
        assert cli.main(['bag', 'info', str(bag)]) == 1
        assert 'damaged: ' in capsys.readouterr().out
        # What is read by its index does not contain the damage, or is refused.
        with contextlib.suppress(InputError), open_bag(bag) as opened:
            assert list(opened.messages()) == written
        assert recover(bag, tmp_path / f'new{number}') >= 190
        with open_bag(tmp_path / f'new{number}') as opened:
            assert set(opened.messages()) <= set(written)


def test_a_message_of_a_damaged_chunk_is_refused_and_info_says_where_it_is(tmp_path):
    bag = make_bag(tmp_path / 'bag', 60, flush_every=20)
    file = bag / 'bag_0.mcap'
    hit(file, intact(file).chunks[1].chunk_start_offset + 99, b'\xff')
    with pytest.raises(InputError, match='Chunk checksum mismatch; to save what is left'):
        list(read_bag(bag))
    assert re.fullmatch(
        r'damaged: bag_0.mcap: 1 of 3 chunks, the first at byte \d+ \(0.2 s to 0.39 s\);'
        r' 40 of 120 messages lost \(/crane/sensors 20, /crane/joint_states 20\)',
        inspect_bag(bag).problem,
    )


@pytest.mark.parametrize(
    ('storage', 'stripped', 'text'),
    [
        ('mcap', False, 'checks    checksums of messages'),
        ('mcap', True, 'no checksums of messages'),
        ('sqlite3', False, 'no checksums: sqlite3 has none'),
    ],
)
def test_info_and_recover_say_which_checksums_there_are(tmp_path, capsys, storage, stripped, text):
    bag = make_bag(tmp_path / 'bag', 5, storage=storage)
    if stripped:
        without_checksums(bag)
    assert cli.main(['bag', 'info', str(bag)]) == 0
    assert text in capsys.readouterr().out
    assert recover(bag, tmp_path / 'new', say=print) == 10
    assert (text in capsys.readouterr().out) is text.startswith('no checksums')


@pytest.mark.parametrize('damage', DAMAGE.values(), ids=DAMAGE)
@pytest.mark.parametrize('options', [{}, {'compress': True}, {'stripped': True}], ids=str)
def test_a_damaged_block_of_an_mcap_file_costs_only_what_it_hits(
    tmp_path, capsys, damage, options
):
    compress, stripped = options.get('compress', False), options.get('stripped', False)
    bag = make_bag(tmp_path / 'bag', 400, flush_every=20, compress=compress)
    if stripped:
        without_checksums(bag)
    with open_bag(bag) as opened:
        written = set(opened.messages())
    file = bag / 'bag_0.mcap'
    place, block = damage
    hit(file, max(int(place * file.stat().st_size), 8), block)
    if stripped and damage == DAMAGE['begin']:
        # Only a summary with a checksum leads to what is behind the first record.
        assert '800 of 800 messages lost' in inspect_bag(bag).problem
        return
    report = inspect_bag(bag)
    lost = 800 - report.as_dict['messages']
    if lost:
        assert f'{lost} of 800 messages lost (/' in report.problem
        # A chunk of which only the head is hit can be found by the index.
        with contextlib.suppress(InputError):
            assert len(list(read_bag(bag))) == 800
    assert cli.main(['bag', 'recover', str(bag), '--output', str(tmp_path / 'new')]) == 0
    assert (f'{lost} of 800 messages lost' in capsys.readouterr().err) is bool(lost)
    with open_bag(tmp_path / 'new') as opened:
        recovered = list(opened.messages())
    assert 700 < len(recovered) <= report.as_dict['messages']
    # Without checksums, numbers that the block has hit cannot be told from those written.
    assert len(set(recovered) - written) <= 8 * stripped


def test_damage_that_looks_like_the_end_of_an_mcap_file_costs_only_what_it_hits(tmp_path):
    file = make_bag(tmp_path / 'bag', 400, flush_every=20) / 'bag_0.mcap'
    chunk = intact(file).chunks[3]
    # In place of the chunk's head: records that end the messages, but for their length.
    hit(file, chunk.chunk_start_offset, (b'\x0f' + bytes(8)) * 5)
    found = intact(file)
    assert found.metadata.message_count == 760
    assert f'1 of 20 chunks, the first at byte {chunk.chunk_start_offset}' in found.damage


@pytest.mark.parametrize('compress', [False, True])
def test_a_damaged_time_range_of_a_chunk_is_noticed(tmp_path, compress):
    file = make_bag(tmp_path / 'bag', 400, flush_every=20, compress=compress) / 'bag_0.mcap'
    chunk = intact(file).chunks[3]
    hit(file, chunk.chunk_start_offset + 17, chunk.message_start_time.to_bytes(8, 'little'))
    found = intact(file)
    assert found.metadata.message_count == 800
    assert found.damage == 'bag_0.mcap: bytes outside of its chunks'


@pytest.mark.parametrize('kind', [2, 4, 7, 14, 15, 255])
def test_a_broken_record_ends_what_is_read_of_an_unclosed_file(tmp_path, capsys, kind):
    bag = leave_unclosed(tmp_path / 'bag', 400)
    file = bag / 'bag_0.mcap'
    begin = intact(file).chunks[30].chunk_start_offset
    hit(file, begin, bytes([kind]))
    lost = file.stat().st_size - begin
    assert cli.main(['bag', 'recover', str(bag), '--out', str(tmp_path / 'new')]) == 0
    problem = f'not closed; damaged: bag_0.mcap: the last {lost} bytes'
    assert capsys.readouterr().err.startswith(f'{bag}: {problem}\n')
    assert positions(tmp_path / 'new') == [float(k) for k in range(300)]


@pytest.mark.parametrize('page', [3, 8, 20])
def test_a_damaged_sqlite_file_is_for_sqlite_to_recover(tmp_path, capsys, page):
    bag = make_bag(tmp_path / 'bag', 400, storage='sqlite3')
    hit(bag / 'bag.db3', page * 4096, bytes(4096))
    with pytest.raises(InputError, match=r'to save what is left: longreach bag recover'):
        list(read_bag(bag))
    for words in (['info', bag], ['recover', bag, '--out', tmp_path / 'new']):
        assert cli.main(['bag', *map(str, words)]) == 1
        said = f'sqlite3 {bag}/bag.db3 .recover | sqlite3 NEW.db3\n'
        assert capsys.readouterr().err.endswith(said)
    assert not (tmp_path / 'new').exists()


def test_a_message_with_damaged_content_is_left_out_and_said(tmp_path, capsys):
    bag = without_checksums(make_bag(tmp_path / 'bag', 100))
    file = bag / 'bag_0.mcap'
    data = file.read_bytes()
    name = data.index(b'car_joint')
    # The length of names, which the structure of the file does not show.
    for place in (name, data.index(b'car_joint', name + 2000)):
        hit(file, place - 4, b'\xff' * 4)
    assert cli.main(['bag', 'recover', str(bag), '--output', str(tmp_path / 'new')]) == 0
    assert '2 more messages of /crane/joint_states are damaged' in capsys.readouterr().err
    assert inspect_bag(tmp_path / 'new').problem == ''


def test_files_are_numbered_as_by_rosbag2_and_older_names_are_read(tmp_path):
    bag = make_bag(tmp_path / 'bag', 5)
    assert {path.name for path in bag.iterdir()} == {'bag_0.mcap', 'metadata.yaml'}
    metadata = bag / 'metadata.yaml'
    text = metadata.read_text()
    assert text.count('bag_0.mcap') == 2
    metadata.write_text(text.replace('bag_0.', 'bag.'))
    (bag / 'bag_0.mcap').rename(bag / 'bag.mcap')
    assert positions(bag) == [0.0, 1.0, 2.0, 3.0, 4.0]


@pytest.mark.parametrize('compression', ['message', 'file'])
@pytest.mark.parametrize('storage', STORAGES)
def test_what_others_compress_is_unpacked(tmp_path, storage, compression):
    plain, packed = make_bag(tmp_path / 'plain', 20), tmp_path / 'packed'
    with OthersWriter(packed, storage, compression) as writer:
        write_messages(writer, 20)
    assert positions(packed) == positions(plain)
    assert recover(packed, tmp_path / 'new') == 40
    assert positions(tmp_path / 'new') == positions(plain)
    (file,) = (one for one in packed.iterdir() if one.suffix != '.yaml')
    assert positions(file) == positions(plain)


@pytest.mark.parametrize('storage', STORAGES)
def test_a_bag_after_ros2_bag_reindex_is_read_and_recovered(tmp_path, storage):
    offered = recorded(publisher_profile((), 5))
    bag = make_bag(tmp_path / 'bag', 5, storage=storage, qos=[offered])
    metadata = bag / 'metadata.yaml'
    text = metadata.read_text()
    assert ('ros_distro: jazzy' in text) is (storage == 'mcap')
    assert text.count('depth: 5') == 2
    metadata.write_text(text.replace('depth: 5', 'depth: 10').replace('RIHS01_', 'RIHS01_0'))
    assert positions(bag) == [0.0, 1.0, 2.0, 3.0, 4.0]
    with open_bag(bag) as opened:
        assert [topic.qos for topic in opened.topics.values()] == [(offered,)] * 2
    assert recover(bag, tmp_path / 'new') == 10


def test_recover_goes_by_the_files_and_not_by_the_metadata(tmp_path):
    bag = make_bag(tmp_path / 'bag', 5)
    (other,) = make_bag(tmp_path / 'other', 3).glob('other_0.*')
    other.rename(bag / other.name.replace('other_0', 'bag_1'))
    text = 'names the files bag_0.mcap, but there are bag_0.mcap, bag_1.mcap; remove'
    with pytest.raises(InputError, match=text):
        read_bag(bag)
    assert text in inspect_bag(bag).problem
    metadata = bag / 'metadata.yaml'
    metadata.write_text(metadata.read_text().replace(SENSORS, JOINTS))
    assert recover(bag, tmp_path / 'new') == 16
    with open_bag(tmp_path / 'new') as opened:
        assert opened.topics['/crane/sensors'].typename == SENSORS


def test_a_file_without_chunks_has_no_checksums(tmp_path, capsys):
    whole = make_bag(tmp_path / 'bag', 5) / 'bag_0.mcap'
    (chunk,) = intact(whole).chunks
    data, begin = whole.read_bytes(), chunk.chunk_start_offset + 49
    records, end = [], begin + chunk.uncompressed_size
    while begin < end:
        size = 9 + int.from_bytes(data[begin + 1 : begin + 9], 'little')
        records.append(data[begin : begin + size])
        begin += size
    # Messages, kind 5, need not be in the order of time.
    records.sort(key=lambda record: (record[0], -int.from_bytes(record[15:23], 'little')))
    file = tmp_path / 'loose.mcap'
    end = b'\x0f\x04' + bytes(11) + b'\x02\x14' + bytes(27) + data[:8]
    file.write_bytes(data[: chunk.chunk_start_offset] + b''.join(records) + end)
    assert positions(file) == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert cli.main(['bag', 'info', str(file)]) == 0
    assert 'no checksums of messages' in capsys.readouterr().out
    assert recover(file, tmp_path / 'new') == 10
    with open_bag(file) as opened:
        assert len(list(opened.messages(start=3 * STEP))) == 4
    # Of one that was not closed, all but its last message, the first by time.
    file.write_bytes(file.read_bytes()[: -len(end) - 1])
    assert cli.main(['bag', 'info', str(file)]) == 1
    assert 'not closed; damaged: loose.mcap: the last' in capsys.readouterr().out
    assert recover(file, tmp_path / 'left') == 9


def test_a_file_without_indexes_of_messages_is_read(tmp_path, monkeypatch):
    close_chunk = McapWriter.close_chunk

    def without_index(writer):
        writer.chunk.msgs.clear()
        close_chunk(writer)

    monkeypatch.setattr(McapWriter, 'close_chunk', without_index)
    with OthersWriter(tmp_path / 'bag', 'mcap') as writer:
        write_messages(writer, 5)
    assert positions(tmp_path / 'bag') == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert inspect_bag(tmp_path / 'bag').problem == ''
    (file,) = (tmp_path / 'bag').glob('*.mcap')
    hit(file, intact(file).chunks[0].chunk_start_offset + 60, bytes(4))
    with pytest.raises(InputError, match='1 of 1 chunks'):
        open_bag(file)


def test_overlapping_chunks_are_read_in_order_of_time(tmp_path):
    definition = MachineTypes().definition('std_msgs/msg/Int32')
    times = [5, 1, 9, 3, 2, 8, 4, 7, 6, 0]
    writer = BagWriter(tmp_path / 'bag')
    connection = writer.add_topic('/x', 'std_msgs/msg/Int32', *definition, ())
    for time in times:
        writer.write(connection, time, FIVE)
        writer.flush()
    shutil.copytree(tmp_path / 'bag', tmp_path / 'killed')
    writer.close()
    # Of two files without metadata, too.
    shutil.copytree(tmp_path / 'killed', tmp_path / 'two')
    with BagWriter(tmp_path / 'other') as writer:
        writer.write(writer.add_topic('/x', 'std_msgs/msg/Int32', *definition, ()), 3, FIVE)
    shutil.copy(tmp_path / 'other' / 'other_0.mcap', tmp_path / 'two' / 'z_1.mcap')
    # The same with metadata.
    shutil.copytree(tmp_path / 'bag', tmp_path / 'both')
    shutil.copy(tmp_path / 'other' / 'other_0.mcap', tmp_path / 'both')
    metadata = tmp_path / 'both' / 'metadata.yaml'
    text = metadata.read_text().replace('count: 10', 'count: 11')
    metadata.write_text(text.replace('  - bag_0.mcap', '  - bag_0.mcap\n  - other_0.mcap'))
    for name in ('two', 'both'):
        with open_bag(tmp_path / name) as opened:
            assert [time for _, time, _ in opened.messages()] == sorted([*times, 3])
    for bag in ('bag', 'killed'):
        with open_bag(tmp_path / bag) as opened:
            assert [time for _, time, _ in opened.messages()] == sorted(times)
            assert [time for _, time, _ in opened.messages(start=6)] == [6, 7, 8, 9]


def test_a_closed_bag_that_was_cut_off_is_refused_and_can_be_recovered(tmp_path):
    bag = make_bag(tmp_path / 'bag', 100, flush_every=10)
    file = bag / 'bag_0.mcap'
    file.write_bytes(file.read_bytes()[:9000])
    assert fault_at_end(file)
    with pytest.raises(
        InputError, match=r'truncated, its end is missing; .*longreach bag recover'
    ):
        read_bag(bag)
    report = inspect_bag(bag)
    assert 'truncated' in report.problem
    assert 0 < report.as_dict['messages'] < 200
    assert recover(bag, tmp_path / 'new') == report.as_dict['messages']


def database(command):
    """Return the bytes of an SQLite file."""
    with contextlib.closing(sqlite3.connect(':memory:')) as connection:
        connection.execute(command)
        return connection.serialize()


HEADER = b'\x03\x00\x00\x00abc\x00\x00\x00\x00'
OTHER_PROFILE = b'\x89MCAP0\r\n\x01' + len(HEADER).to_bytes(8, 'little') + HEADER


@pytest.mark.parametrize(
    ('name', 'content', 'text'),
    [
        ('readme', b'', r'not a bag: no \.mcap and no \.db3'),
        ('old.bag', b'#ROSBAG V2.0\n', r'not a bag: .*; of ROS 1: rosbags-convert'),
        ('x.mcap', b'#ROSBAG V2.0\n', 'not a bag: .*; of ROS 1: rosbags-convert'),
        ('x.mcap', b'no bag, but a text that is long enough', 'neither an MCAP nor an SQLite'),
        ('x.mcap', b'', 'an empty file'),
        ('x.mcap.zstd', b'(\xb5/\xfd', 'damaged or not a bag of ROS 2: '),
        ('x.db3', database('CREATE TABLE t(a)'), 'damaged or not a bag of .*missing tables'),
        ('x.db3', b'SQLite format 3\x00' + bytes(range(256)) * 20, 'damaged'),
        ('x.mcap', OTHER_PROFILE, 'not a recording of ROS 2'),
    ],
)
def test_foreign_directories(tmp_path, name, content, text):
    path = tmp_path / 'bag'
    path.mkdir()
    (path / name).write_bytes(content)
    with pytest.raises(InputError, match=text):
        read_bag(path)
    with pytest.raises(LongreachError, match=text):
        recover(path, tmp_path / 'new')
    assert not (tmp_path / 'new').exists()


@pytest.mark.parametrize(
    ('old', 'new', 'text'),
    [
        ('bag_0.mcap', 'other.mcap', 'names the files other.mcap, but there are bag_0.mcap'),
        ('message_count: 10', '{', 'not valid YAML'),
        ('rosbag2_bagfile_information', 'something', 'not the metadata of a recording'),
    ],
)
def test_bad_metadata(tmp_path, old, new, text):
    bag = make_bag(tmp_path / 'bag', 5)
    metadata = bag / 'metadata.yaml'
    metadata.write_text(metadata.read_text().replace(old, new))
    with pytest.raises(InputError, match=text):
        open_bag(bag)
    # The messages themselves are whole.
    assert recover(bag, tmp_path / 'new') == 10


def test_info_of_a_bag(tmp_path, capsys):
    bag = str(make_bag(tmp_path / 'bag', 100))
    text = Outcome(capsys, 'bag', 'info', bag).out
    assert 'mcap, closed properly\n' in text
    assert 'every 0.01 s' in text
    report = Outcome(capsys, 'bag', 'info', bag, '--format', 'json').json
    assert (report['messages'], report['closed'], report['duration_s']) == (200, True, 0.99)
    assert [one['name'][7:] for one in report['topics']] == ['joint_states', 'sensors']


@pytest.mark.parametrize(
    ('arguments', 'text'),
    [
        (['info', 'missing'], 'missing: no such bag'),
        (['play', 'bag', '--rate', '-1'], '--rate: -1, allowed: 0 or more'),
        (['play', 'bag', '--clock', '0'], '--clock: 0, allowed: above 0'),
        (['play', 'bag', '--topics', '/nix'], 'no topic /nix; topics here: /crane/joint_states'),
        (['play', 'bag', '--start-offset', '7'], 'start offset 7 s; the bag has 0.04 s'),
        (['record', '-o', 'bag'], 'bag: exists already'),
        (['record', '-d', '-1', '-o', 'new'], '--duration: -1, allowed: above 0'),
    ],
)  # fmt: skip
def test_errors_are_one_line(tmp_path, monkeypatch, capsys, arguments, text):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr('signal.signal', lambda *_: None)
    make_bag(tmp_path / 'bag', 5)
    Outcome(capsys, 'bag', *arguments).refused(text)
    assert [path.name for path in tmp_path.iterdir()] == ['bag']


@pytest.mark.parametrize('size', [10, 100_000])
def test_a_full_disk_is_reported_and_the_rest_can_be_recovered(tmp_path, size):
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, old[1]))
    remedy = 'make room$' if size == 10 else 'bag recover'
    try:
        with pytest.raises(LongreachError, match=rf'bag: writing failed: .*; .*{remedy}'):
            make_bag(tmp_path / 'bag', 2000, flush_every=10)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)
    if size == 10:
        assert list(tmp_path.iterdir()) == []
        return
    assert not (tmp_path / 'bag' / 'metadata.yaml').exists()
    resource.setrlimit(resource.RLIMIT_FSIZE, (size // 2, old[1]))
    try:
        with pytest.raises(LongreachError, match=r'new: writing failed: .*; make room$'):
            recover(tmp_path / 'bag', tmp_path / 'new')
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)
    assert recover(tmp_path / 'bag', tmp_path / 'new') > 200
    found = positions(tmp_path / 'new')
    assert found == [float(k) for k in range(len(found))]


def test_definitions_in_idl_are_read(tmp_path):
    text = 'module own_msgs { module msg { struct Own { int32 data; }; }; };\n'
    definition = (f'{"=" * 80}\nIDL: own_msgs/msg/Own\n{text}', 'RIHS01_0')
    bag = bag_of(tmp_path / 'bag', OWN, FIVE, definition=definition)
    assert [message.data for _, _, message in read_bag(bag)] == [5]
    assert inspect_bag(bag).problem == ''


@pytest.mark.parametrize(
    ('typename', 'error'),
    [
        (OWN, '/x: message type own_msgs/msg/Own: not in package own_msgs'),
        (SENSORS, 'is defined differently on this machine than in the bag'),
    ],
)
def test_a_type_of_its_own_is_read_but_not_played(tmp_path, monkeypatch, capsys, typename, error):
    monkeypatch.setattr('signal.signal', lambda *_: None)
    bag = bag_of(tmp_path / 'bag', typename, FIVE, definition=('int32 data\n', 'RIHS01_0'))
    assert [message.data for _, _, message in read_bag(bag)] == [5]
    Outcome(capsys, 'bag', 'play', bag).refused(error)


@pytest.mark.parametrize(
    ('words', 'error'),
    [
        (['bag', 'info', 'bag'], ''),
        (['bag', 'recover', 'bag', '-o', 'new'], 'message type own_msgs/msg/Own: no definition'),
        (['plot', 'bag', '--list'], 'own_msgs/msg/Inner, own_msgs/msg/Own contains itself'),
    ],
)
def test_a_type_that_contains_itself_is_one_line(tmp_path, monkeypatch, capsys, words, error):
    monkeypatch.chdir(tmp_path)
    ruler = '=' * 80
    text = f'own_msgs/Inner inner\n{ruler}\nMSG: own_msgs/Inner\nown_msgs/Own own\n'
    bag_of(tmp_path / 'bag', OWN, FIVE, definition=(text, 'RIHS01_0'))
    done = Outcome(capsys, *words)
    if error:
        done.refused(error)
    else:
        assert (done.code, done.err) == (0, '')


@pytest.mark.parametrize(
    'data', [b'\x00\x01\x00\x00\xff', b'', b'\x00\x01\x00\x00' + b'\xff' * 40], ids=len
)
def test_bytes_that_are_no_message_are_one_line(tmp_path, capsys, data):
    bag = bag_of(tmp_path / 'bag', JOINTS, data)
    Outcome(capsys, 'plot', bag, '--list').refused(f'not a {JOINTS}')


def test_timeline_puts_clock_ticks_before_messages_of_the_same_time(tmp_path):
    with open_bag(make_bag(tmp_path / 'bag', 11)) as bag:
        _, _, messages = timeline(bag, ['/crane/sensors'], PlayOptions(clock_rate=50.0))
        events = list(messages)
    ticks = [struct.unpack('<4xiI', data) for name, _, data in events if name == '/clock']
    assert ticks == [(0, k * 20_000_000) for k in range(6)]
    assert [time for _, time, _ in events] == sorted(time for _, time, _ in events)
    names = ['/clock', '/crane/sensors', '/crane/sensors', '/clock']
    assert [name for name, _, _ in events[:4]] == names


def test_a_later_start_begins_with_what_late_subscribers_get(tmp_path):
    options = PlayOptions(start_offset=0.05)
    for durability, count in (('TRANSIENT_LOCAL', 2), ('VOLATILE', 0)):
        offered = recorded(publisher_profile((), 2))._replace(durability=QosDurability[durability])
        with open_bag(make_bag(tmp_path / durability, 11, qos=[offered])) as bag:
            begin, _, messages = timeline(bag, ['/crane/sensors'], options)
            events = list(messages)
            every = [data for _, _, data in bag.messages(['/crane/sensors'])]
        assert [data for _, _, data in events] == every[5 - count :]
        assert [time for _, time, _ in events[:count]] == [begin] * count


def test_pauses_of_a_recording_are_played(monkeypatch):
    """What comes before the first message and after the last one belongs to each pass."""
    now, sent = [0.0], []
    clock = SimpleNamespace(
        monotonic=lambda: now[0], sleep=lambda seconds: now.__setitem__(0, now[0] + seconds)
    )
    monkeypatch.setattr('longreach_tools.bag._play.time', clock)
    publisher = SimpleNamespace(publish=lambda data: sent.append((round(now[0], 6), data)))
    player = _Player({'/a': publisher}, PlayOptions(rate=2.0, loop=True), lambda: False, print)
    for _ in range(2):
        player.play(0, 10 * 10**9, iter([('/a', 4 * 10**9, b'x')]))
    assert sent == [(2.0, b'x'), (7.0, b'x')]
    assert now[0] == pytest.approx(10.0)


def test_names_and_patterns():
    names = [absolute_name(*words) for words in (('a/b',), ('a', 'crane/'), ('/a', '/crane'))]
    assert names == ['/a/b', '/crane/a', '/a']
    pattern = checked_name('*/image_raw', '/yard', patterns=True)
    found = [
        PurePosixPath(f'/yard/{one}').match(pattern)
        for one in ('left/image_raw', 'image_raw', 'a/left/image_raw')
    ]
    assert found == [True, False, False]
    for name in ('a b', '/1a', '/a//b', 'a/', '', '/a__b', '~/x', '*/a'):
        with pytest.raises(InputError, match=r'topic name .*; allowed: parts of letters'):
            checked_name(name)


def test_messages_as_serialize_message_writes_them_are_read(tmp_path):
    serialization = pytest.importorskip('rclpy.serialization')
    message = importlib.import_module('sensor_msgs.msg').JointState
    rows = [
        message(name=[name], position=[1.0], velocity=velocity, effort=effort)
        for name in ('a', 'abcd')
        for velocity in ([], [2.0])
        for effort in ([], [3.0])
    ]
    bag = bag_of(tmp_path / 'bag', JOINTS, *map(serialization.serialize_message, rows))
    found = [read for _, _, read in read_bag(bag)]
    for row, read in zip(rows, found, strict=True):
        assert row.name == read.name
        for field in ('position', 'velocity', 'effort'):
            assert list(getattr(row, field)) == getattr(read, field).tolist()
    # More behind a message than this padding is an error.
    full = serialization.serialize_message(rows[-1])
    bag = bag_of(tmp_path / 'full', JOINTS, full + bytes(8))
    with pytest.raises(InputError, match=f'/x at 0 ns: not a {JOINTS}: .*size mismatch'):
        list(read_bag(bag))
