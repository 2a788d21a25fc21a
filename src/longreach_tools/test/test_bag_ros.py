"""Recording and playing over real ROS: few processes, and a deadline for every wait."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import pytest
from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticArray
from longreach_msgs.msg import CraneCommand, CraneSensors
from rclpy.qos import QoSProfile
from rclpy.serialization import deserialize_message, serialize_message
from rosgraph_msgs.msg import Clock
from std_msgs.msg import Float64, Header, Int32, String

from longreach_dynamics.errors import InputError, LongreachError
from longreach_node.stamps import nanoseconds_of, stamp_of
from longreach_tools.bag import BagWriter, open_bag, read_bag, recover
from longreach_tools.bag._play import PlayOptions, play
from longreach_tools.bag._record import Recorder, RecordOptions, record
from longreach_tools.bag._stamps import stamp_reader
from longreach_tools.bag._subscriptions import RecordedTopic, Subscriptions
from longreach_tools.bag._topics import MachineTypes, publisher_profile, quiet_node, recorded
from longreach_tools.fields import Signal
from longreach_tools.signals import read_signals

DEADLINE = 90.0
LATCHED = QoSProfile(depth=1, durability=1)
BEST_EFFORT = QoSProfile(depth=5, reliability=2)
# A publisher is matched before its subscriber is; until then its history keeps the messages.
DEEP = QoSProfile(depth=1000)


@pytest.fixture(autouse=True)
def own_domain(monkeypatch):
    monkeypatch.setenv('ROS_DOMAIN_ID', os.environ['LONGREACH_TEST_QUIET_DOMAIN'])
    monkeypatch.setattr('longreach_tools.bag._play.WAIT_LIMIT', DEADLINE)


@pytest.fixture
def node(own_domain):
    with quiet_node('tester') as made:
        yield made


def wait_for(condition, what):
    limit = time.monotonic() + DEADLINE
    while not (result := condition()):
        assert time.monotonic() < limit, f'waited in vain for {what}'
        time.sleep(0.01)
    return result


def matched(publisher, count=1):
    wait_for(lambda: publisher.get_subscription_count() >= count, publisher.topic_name)


class Recording:
    """A recorder in a thread of this process."""

    def __init__(self, output, **options):
        self.lines = []
        self.result = None
        self._stop = threading.Event()
        self._options = RecordOptions(output, **options)
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self):
        self.result = record(self._options, self._stop.is_set, self.lines.append)

    def report(self):
        """Return the names of the topics that the user was told about."""
        return {line.partition(':')[0] for line in self.lines}

    def stop(self):
        self._stop.set()
        self._thread.join(DEADLINE)
        assert self.result is not None, 'the recorder did not end'
        return {topic.name: topic for topic in self.result.topics}


def sensors(k):
    header = Header(stamp=stamp_of(k * 10_000_000), frame_id='track')
    return CraneSensors(header=header, car_position=float(k))


def contents(path, topic):
    return [(time, message) for _, time, message in read_bag(path, [topic])]


def test_record_header_stamps_gaps_qos_and_late_topics(tmp_path, node):
    bag = tmp_path / 'bag'
    first = node.create_publisher(CraneSensors, '/crane/sensors', DEEP)
    latched = node.create_publisher(Float64, '/crane/set_point', LATCHED)
    latched.publish(Float64(data=2.5))
    node.create_publisher(String, '/crane/_hidden', 10)
    weak = node.create_publisher(String, '/crane/weak', BEST_EFFORT)
    recording = Recording(bag, stamps='header')
    matched(first)
    matched(latched)
    matched(weak)
    late = None
    for k in range(200):
        if k not in (50, 51, 120):
            first.publish(sensors(k))
        if k == 100:
            late = node.create_publisher(CraneCommand, '/crane/late', DEEP)
            matched(late)
        if late:
            late.publish(CraneCommand(header=sensors(k).header, force=float(-k)))
        time.sleep(0.001)
    topics = recording.stop()

    assert set(topics) == {f'/crane/{name}' for name in ('sensors', 'set_point', 'late', 'weak')}
    report = topics['/crane/sensors'].stamps
    assert (topics['/crane/sensors'].count, topics['/crane/sensors'].lost) == (197, 0)
    assert (report.gaps, report.missing, report.largest_gap_s) == (2, 3, pytest.approx(0.03))
    assert topics['/crane/late'].count == 100

    messages = contents(bag, '/crane/sensors')
    assert [m.car_position for _, m in messages] == [
        float(k) for k in range(200) if k not in (50, 51, 120)
    ]
    assert all(t == round(m.car_position * 10_000_000) for t, m in messages)
    assert [(t, m.data) for t, m in contents(bag, '/crane/set_point')] == [(0, 2.5)]
    assert [m.force for _, m in contents(bag, '/crane/late')] == [-k for k in range(100, 200)]
    with open_bag(bag) as opened:
        qos = {name: topic.qos for name, topic in opened.topics.items()}
        profiles = {name: publisher_profile(offers, 5) for name, offers in qos.items()}
    assert len(qos['/crane/sensors']) == 1
    assert qos['/crane/set_point'][0].durability.name == 'TRANSIENT_LOCAL'
    assert qos['/crane/set_point'][0].deadline.sec == 9223372036
    assert profiles['/crane/set_point'].durability.name == 'TRANSIENT_LOCAL'
    assert profiles['/crane/set_point'].reliability.name == 'RELIABLE'
    assert profiles['/crane/late'].reliability.name == 'RELIABLE'
    assert profiles['/crane/weak'].reliability.name == 'BEST_EFFORT'


def test_two_types_on_a_topic_and_unknown_types_are_said_once(tmp_path, node):
    good = node.create_publisher(Int32, '/good', 10)
    node.create_publisher(Int32, '/twice', 10)
    recording = Recording(tmp_path / 'bag')
    with quiet_node('other') as other:
        other.create_publisher(Float64, '/twice', 10)
        matched(good)
        good.publish(Int32(data=1))
        wait_for(lambda: '/twice' in recording.report(), 'the report of /twice')
        recording.stop()
    about = [line for line in recording.lines if line.startswith('/twice')]
    assert len(about) == 1
    assert 'several types' in about[0]
    assert 'several types' in recording.result.skipped['/twice']
    assert [m.data for _, m in contents(tmp_path / 'bag', '/good')] == [1]


@pytest.mark.parametrize(
    ('durability', 'late', 'again', 'numbers'),
    [
        (1, 5, 0, range(20)),
        (2, 5, 0, range(5, 20)),
        # The new subscription gets only a part of what is kept, or nothing.
        (1, 0, 6, range(20)),
        (1, 0, 20, range(20)),
    ],
)
def test_what_a_publisher_keeps_is_heard_from_the_first_message_on(
    node, durability, late, again, numbers
):
    """The topic is known from its subscriber, as that of commands to a waiting plant."""
    listener = Listener(node, '/n', Float64)
    subscriptions = Subscriptions(node, lambda name: name == '/n', lambda _: None)
    wait_for(lambda: subscriptions.discover() or subscriptions.topics, 'the topic')
    publisher = node.create_publisher(Float64, '/n', QoSProfile(depth=100, durability=durability))
    matched(publisher, 2)
    for k in range(20):
        publisher.publish(Float64(data=float(k)))
    wait_for(lambda: listener.take() and len(listener.received) == 20, 'all messages')

    def lose(count):
        """Read the next messages, as if they had not come."""
        lost, handle = [], subscriptions.topics['/n'].subscription.handle

        def have_come():
            while len(lost) < count and (message := handle.take_message(Float64, True)):
                lost.append(message)
            return len(lost) == count

        with handle:
            wait_for(have_come, 'the next messages')

    # The subscription did not match before these.
    lose(late)
    assert subscriptions.take() == []
    subscriptions.follow_publishers()
    lose(again)
    taken = []
    if again < 20:
        wait_for(lambda: taken.extend(subscriptions.take()) or len(taken) >= len(numbers), 'all')
    taken.extend(subscriptions.take(last=True))
    assert [deserialize_message(data, Float64).data for *_, data in taken] == list(numbers)


def test_a_best_effort_publisher_that_comes_later_is_heard(tmp_path, node):
    reliable = node.create_publisher(Int32, '/x', 10)
    recording = Recording(tmp_path / 'bag', topics=('/x', '/never'))
    matched(reliable)
    weak = node.create_publisher(Int32, '/x', BEST_EFFORT)
    matched(weak)

    def arrived():
        weak.publish(Int32(data=7))
        with open_bag(tmp_path / 'bag') as bag:
            return bag.message_count

    wait_for(arrived, 'a best-effort message in the file')
    recording.stop()
    assert {m.data for _, m in contents(tmp_path / 'bag', '/x')} == {7}
    assert recording.result.unseen == ['/never']
    brief = RecordOptions(tmp_path / 'brief', duration=0.1)
    assert record(brief, lambda: False, print).unseen == []


def make_bag(path, count=40):
    """Write numbers on /n every 10 ms and, latched, one text, with the recorded clock."""
    types, rows = MachineTypes(), [('/text', 0, String(data='hello'))]
    for k in range(count):
        clock = Clock(clock=Time(sec=777, nanosec=k))
        rows += [('/clock', k * 10_000_000, clock), ('/n', k * 10_000_000, Int32(data=k))]
    plan = [('/n', 'std_msgs/msg/Int32', DEEP),
            ('/text', 'std_msgs/msg/String', LATCHED),
            ('/clock', 'rosgraph_msgs/msg/Clock', DEEP)]  # fmt: skip
    with BagWriter(path) as writer:
        connections = {
            topic: writer.add_topic(topic, name, *types.definition(name), [recorded(profile)])
            for topic, name, profile in plan
        }
        for topic, time_, message in rows:
            writer.write(connections[topic], time_, serialize_message(message))
    return path


class Listener:
    """Collects what is published, without callbacks."""

    def __init__(self, node, topic, message, qos=None):
        qos = qos or QoSProfile(depth=5000)
        self._subscription = node.create_subscription(message, topic, lambda _: None, qos)
        self._message = message
        self.received = []

    def take(self):
        with self._subscription.handle:
            while (
                item := self._subscription.handle.take_message(self._message, False)
            ) is not None:
                self.received.append(item[0])
        return self.received


def test_play_again_with_clock_and_offset(tmp_path, node):
    bag = make_bag(tmp_path / 'bag')
    numbers = Listener(node, '/n', Int32)
    clock = Listener(node, '/clock', Clock)
    options = PlayOptions(
        rate=10.0,
        loop=True,
        clock_rate=50.0,
        start_offset=0.1,
        duration=0.2,
        topics=('/n', '/clock'),
        subscribers=1,
    )
    lines = []
    published = play(bag, options, lambda: len(numbers.take()) >= 42, lines.append)
    assert published >= 2 * (21 + 11) - 1
    wait_for(lambda: len(numbers.take()) + len(clock.take()) == published, 'all messages')
    assert [m.data for m in numbers.received][:42] == 2 * list(range(10, 31))
    ticks = [100_000_000 + k * 20_000_000 for k in range(11)]
    assert [nanoseconds_of(m.clock) for m in clock.received][:21] == (2 * ticks)[:21]
    assert not [line for line in lines if 'not all subscribers' in line]


def test_play_all_at_once_with_recorded_clock_and_qos(tmp_path, node):
    bag = make_bag(tmp_path / 'bag', 3000)
    numbers = Listener(node, '/n', Int32)
    clock = Listener(node, '/clock', Clock)
    # Only an offer of transient local matches this one.
    text = Listener(node, '/text', String, LATCHED)
    options = PlayOptions(rate=0.0, subscribers=1)
    assert play(bag, options, lambda: False, lambda _: None) == 6001
    wait_for(lambda: len(numbers.take()) == 3000 and len(clock.take()) == 3000, 'all messages')
    assert [m.data for m in numbers.received] == list(range(3000))
    assert {m.clock.sec for m in clock.received} == {777}
    assert [m.data for m in text.take()] == ['hello']


def test_play_stops_when_asked_and_names_missing_subscribers(tmp_path, monkeypatch):
    bag = make_bag(tmp_path / 'bag')
    begin = time.monotonic()
    asked = []

    def stop():
        asked.append(time.monotonic())
        return len(asked) > 20

    assert play(bag, PlayOptions(rate=0.001), stop, lambda _: None) < 43
    assert time.monotonic() - begin < DEADLINE
    monkeypatch.setattr('longreach_tools.bag._play.WAIT_LIMIT', 0.1)
    with pytest.raises(LongreachError, match=r'fewer than 2 subscribers of /clock, /n, /text'):
        play(bag, PlayOptions(subscribers=2), lambda: False, lambda _: None)


def command(tmp_path, *arguments):
    return subprocess.Popen(
        [sys.executable, '-c', 'from longreach_tools.cli import console; console()', 'bag']
        + [str(argument) for argument in arguments],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.slow
def test_signals_to_recorders_and_a_player(tmp_path, node):
    """Three recorders of one stream and a player: killed, terminated, interrupted twice."""
    publisher = node.create_publisher(CraneSensors, '/crane/sensors', DEEP)
    outputs = {name: tmp_path / name for name in ('killed', 'term', 'twice')}
    processes = {
        name: command(
            tmp_path, 'record', '-o', output, '--format', 'json', '--stamps', 'header',
        )
        for name, output in outputs.items()
    }  # fmt: skip
    bag = make_bag(tmp_path / 'played')
    processes['player'] = command(tmp_path, 'play', bag, '--loop', '--topics', '/n')
    try:
        matched(publisher, 3)
        published = 0

        def has(count):
            nonlocal published
            publisher.publish(sensors(published))
            published += 1
            return stored(outputs['killed']) >= count

        wait_for(lambda: has(50), 'messages in the file')
        processes['killed'].kill()
        processes['term'].send_signal(signal.SIGTERM)
        processes['player'].send_signal(signal.SIGINT)
        processes['twice'].send_signal(signal.SIGINT)
        processes['twice'].send_signal(signal.SIGINT)
        ends = {name: process.communicate(timeout=DEADLINE) for name, process in processes.items()}
    finally:
        for process in processes.values():
            process.kill()
    for name in ('term', 'twice', 'player'):
        assert processes[name].returncode == 0, ends[name]
        assert 'Traceback' not in ends[name][1]
    for name in ('term', 'twice'):
        result = json.loads(ends[name][0])
        counts = {topic['name']: topic['count'] for topic in result['topics']}
        assert counts['/crane/sensors'] == published
        positions = [m.car_position for _, m in contents(outputs[name], '/crane/sensors')]
        assert positions == [float(k) for k in range(published)]
    with pytest.warns(UserWarning, match='not closed'):
        positions = [m.car_position for _, m in contents(outputs['killed'], '/crane/sensors')]
    assert len(positions) >= 50
    assert positions == [float(k) for k in range(len(positions))]
    recover(outputs['killed'], tmp_path / 'again')
    again = contents(tmp_path / 'again', '/crane/sensors')
    assert [m.car_position for _, m in again] == positions


def stored(path):
    """Return how many sensor samples a recording that is being written has on disk."""
    try:
        with open_bag(path) as bag:
            topic = bag.topics.get('/crane/sensors')
            return topic.count if topic else 0
    except (InputError, OSError):
        return 0  # not yet there


def fake_topic(types, name, typename):
    definition = types.definition(typename)
    reader = stamp_reader(typename, types.store)
    return RecordedTopic(name, typename, *definition, SimpleNamespace, reader)


def test_recorder_puts_causes_before_effects(tmp_path):
    types = MachineTypes()
    cause = fake_topic(types, '/cause', 'std_msgs/msg/Int32')
    effect = fake_topic(types, '/effect', 'std_msgs/msg/Int32')
    data = b'\x00\x01\x00\x00\x05\x00\x00\x00'
    with BagWriter(tmp_path / 'bag') as writer:
        recorder = Recorder(writer, 'receive', lambda _: None)
        # The queue of the causes was empty when it was visited, that of the effects not.
        recorder.add([(11, effect, 1000, data)])
        recorder.write_in_order()
        recorder.add([(10, cause, 1000, data), (21, effect, 1001, data)])
        recorder.write_in_order()
        recorder.add([(20, cause, 1001, data)])
        recorder.finish([cause, effect])
    with open_bag(tmp_path / 'bag') as bag:
        assert [name for name, _, _ in bag.messages()] == ['/cause', '/effect'] * 2
    assert (cause.count, effect.count) == (2, 2)


def test_a_recording_with_the_times_of_headers_keeps_the_order_of_two_runs(tmp_path):
    types = MachineTypes()
    topic = fake_topic(types, '/sensors', 'longreach_msgs/msg/CraneSensors')
    shared = fake_topic(types, '/diagnostics', 'diagnostic_msgs/msg/DiagnosticArray')
    stamps = (0, 1, 2, 0, 1)
    with BagWriter(tmp_path / 'bag') as writer:
        recorder = Recorder(writer, 'header', lambda _: None)
        for number, stamp in enumerate(stamps):
            message = CraneSensors(car_position=float(number))
            message.header.stamp.sec = stamp
            array = serialize_message(DiagnosticArray(header=message.header))
            # What several nodes publish may be the first that begins anew.
            recorder.add([(2 * number, shared, 1000, array)])
            recorder.add([(2 * number + 1, topic, 1000, serialize_message(message))])
        recorder.finish([topic, shared])
    found = contents(tmp_path / 'bag', '/sensors')
    assert [message.car_position for _, message in found] == [0.0, 1.0, 2.0, 3.0, 4.0]
    read = read_signals(tmp_path / 'bag', [Signal('sensors', 'car_position')])
    assert read.topics['/sensors'].values['car_position'].tolist() == [3.0, 4.0]


@pytest.mark.parametrize(
    ('answers', 'times'),
    [
        # First answers that are heard late: the sensors are at 0.4 s.
        ([0, 1, 2, 5], [0, 1, 2, 5]),
        # A command for now, and one for the sample behind it.
        ([0, 5], [4, 5]),
        ([0], [4]),
    ],
)
def test_a_zero_that_is_heard_late_is_the_beginning_if_the_next_stamp_is_near_it(
    tmp_path, answers, times
):
    types = MachineTypes()
    sensors = fake_topic(types, '/sensors', 'longreach_msgs/msg/CraneSensors')
    answer = fake_topic(types, '/answer', 'longreach_msgs/msg/CraneSensors')
    heard = [(sensors, k) for k in range(5)]
    heard += [(answer, k) for k in answers] + [(sensors, k) for k in (5, 6)]
    with BagWriter(tmp_path / 'bag') as writer:
        recorder = Recorder(writer, 'header', lambda _: None)
        for number, (topic, stamp) in enumerate(heard):
            message = CraneSensors()
            message.header.stamp.nanosec = stamp * 100_000_000
            recorder.add([(number, topic, 1000, serialize_message(message))])
        recorder.finish([sensors, answer])
    for name, stamps in (('/answer', times), ('/sensors', range(7))):
        found = [time for time, _ in contents(tmp_path / 'bag', name)]
        assert found == [stamp * 100_000_000 for stamp in stamps]


def test_a_publisher_with_another_definition_is_not_recorded():
    publisher = SimpleNamespace(
        topic_type='std_msgs/msg/Int32',
        topic_type_hash='RIHS01_' + 64 * '0',
        qos_profile=publisher_profile((), 1),
        node_name='old',
    )
    node = SimpleNamespace(
        get_topic_names_and_types=lambda: [('/x', ['std_msgs/msg/Int32'])],
        get_publishers_info_by_topic=lambda _: [publisher],
    )
    lines = []
    subscriptions = Subscriptions(node, lambda _: True, lines.append)
    subscriptions.discover()
    subscriptions.discover()
    assert subscriptions.topics == {}
    assert lines == ['/x: not recorded: ' + subscriptions.skipped['/x']]
    assert 'publisher old has another definition of std_msgs/msg/Int32' in lines[0]


def test_losses_are_counted_by_the_publishers_numbers():
    topic = fake_topic(MachineTypes(), '/x', 'std_msgs/msg/Int32')
    for number in (5, 6, 9, 10, 1, 2, 4):  # the publisher was restarted after 10
        topic.note_number(number)
    assert topic.lost == 3
    topic.note_publishers(('one', 'another'))
    assert topic.lost == 0
    topic.lost_by_event = 2
    assert topic.lost == 2


@pytest.mark.parametrize(
    ('topics', 'wanted', 'others'),
    [
        ((), ['/crane/sensors'], ['/rosout', '/parameter_events', '/crane/_hidden', '/_a/b']),
        (('/a', '/rosout'), ['/a', '/rosout'], ['/b', '/a/b']),
        (('/a/*/image_raw',), ['/a/top/image_raw'], ['/a/top/camera_info']),
    ],
)
def test_choice_of_topics(tmp_path, topics, wanted, others):
    chosen = RecordOptions(tmp_path / 'x', topics)
    assert [name for name in wanted + others if chosen.wants(name)] == wanted
