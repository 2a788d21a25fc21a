"""Recordings as a source: what is shown at which time, and what cannot be played."""

from __future__ import annotations

import math

import numpy as np
import pytest
from geometry_msgs.msg import Inertia, InertiaStamped
from longreach_msgs.msg import ValveCommand
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import Image, JointState
from std_msgs.msg import Header, String

from longreach_crane.description import robot_description
from longreach_crane.parameters import load_machinery
from longreach_dynamics.errors import InputError
from longreach_node.stamps import stamp_of
from longreach_tools.fields import numeric_fields
from longreach_tools.testing import write_bag
from longreach_view.charts import chart_of, lines_of
from longreach_view.page import Request
from longreach_view.recording import BagSource, Recording
from longreach_view.world import World

POSITION = '/crane/joint_states.position[car_joint]'
STEP = 0.1


def at(time):
    """Return the header of a message with a stamp [s]."""
    return Header(stamp=stamp_of(round(1e9 * time)))


def crane_bag(path, speed, begin=5.0, duration=10.0, shown=lambda time: time, lost=range(0)):
    """Write a bag of a crane's car with a constant speed [m/s]; its description comes late."""
    text = String(data=robot_description(load_machinery().crane, 'crane/'))
    rows = []
    for k in range(round(duration / STEP) + 1):
        time = round(1e9 * (begin + STEP * k))
        joints = JointState(header=at(shown(begin + STEP * k)), name=['car_joint', 'cable_joint'])
        joints.position, joints.velocity = [speed * STEP * k, 0.0], [0.0, 0.0]
        joints.effort = joints.velocity
        rows += [('joint_states', time, joints)] * (k not in lost)
        if k == 50:
            rows.append(('robot_description', time, text))
    return write_bag(path, 'crane', rows)


def play(source, world, now):
    for sample in source.poll(world, now):
        world.take(sample, now)


@pytest.fixture
def world():
    known = World(numeric_fields)
    known.plot(chart_of(POSITION).lines)
    return known


def test_a_recording_plays_at_its_speed_from_its_beginning(tmp_path, world):
    source = BagSource([crane_bag(tmp_path / 'a', 0.5)])
    assert source.length == pytest.approx(10.0)
    play(source, world, 100.0)
    machine = world.machines['crane']
    assert machine.kind == 'crane', 'the description holds from the beginning on'
    assert machine.positions['car_joint'] == 0.0
    play(source, world, 102.05)
    assert machine.positions['car_joint'] == pytest.approx(0.5 * 2.0)
    source.handle(Request('', 'speed', 2.0))
    play(source, world, 103.05)
    assert machine.positions['car_joint'] == pytest.approx(0.5 * 4.0)
    assert source.replay().time == pytest.approx(4.05)


def test_a_jump_shows_that_time_and_the_chart_before_it(tmp_path, world):
    source = BagSource([crane_bag(tmp_path / 'a', 0.5)])
    play(source, world, 0.0)
    for to in (7.0, 3.0):
        source.handle(Request('', 'seek', to))
        play(source, world, 0.0)
        assert world.machines['crane'].positions['car_joint'] == pytest.approx(0.5 * to)
        times, values = world.series[POSITION].window(-math.inf, math.inf)
        assert (times[0], times[-1]) == (5.0, pytest.approx(5.0 + to))
        assert values[-1] == pytest.approx(0.5 * to)


@pytest.mark.parametrize(
    ('shown', 'begin', 'length', 'resets'),
    [
        (lambda time: 2.0 * time, 10.0, 20.0, 0),
        (lambda time: time if time < 9.95 else time - 5.0, 5.0, 9.9, 1),
        (lambda time: time - 5.0 if time < 5.35 else time - 5.4, 0.0, 9.9, 1),
        (lambda time: 9.85 if abs(time - 10.0) < 0.01 else time, 5.0, 10.0, 0),
        (lambda time: 1.7e9 + time, 0.0, 10.0, 0),
    ],
    ids=['faster than the bag', 'reset', 'early reset', 'one sample late', 'dates'],
)
def test_times_are_those_of_the_stamps(tmp_path, world, shown, begin, length, resets):
    source = BagSource([crane_bag(tmp_path / 'a', 0.5, shown=shown)])
    assert (source.begin, source.length) == pytest.approx((begin, length))
    source.handle(Request('', 'seek', source.length))
    play(source, world, 0.0)
    times, values = world.series[POSITION].window(-math.inf, math.inf)
    assert len(times) >= 100
    assert times[[0, -1]] == pytest.approx([begin, begin + length])
    assert values[[0, -1]] == pytest.approx([0.0, 5.0])
    assert [note.partition(';')[0] for note in source.notes()] == resets * [
        f'Resets in {tmp_path / "a"}: 1'
    ]


def test_messages_about_a_reset_are_of_the_nearest_run(tmp_path):
    """The times of the bag, and the stamps, of joint states, and of what else is known."""
    rows = [('joint_states', k * 10**9, JointState(header=at(k % 5))) for k in range(10)]
    loads = ((2, 2.0), (5, 3.99), (8, 3.0))
    rows += [('load', time * 10**9, InertiaStamped(header=at(stamp))) for time, stamp in loads]
    samples = Recording(write_bag(tmp_path / 'a', 'crane', rows)).samples
    # The second run begins where the first one has ended, at 4 s.
    assert [s.stamp for s in samples if s.topic == '/crane/load'] == pytest.approx([2, 3.99, 7])


def test_what_is_carried_after_a_reset_is_no_event(tmp_path, world):
    rows = [('joint_states', k * 10**8, JointState(header=at(0.1 * (k % 15)))) for k in range(30)]
    loads = ((1, 0.0, 500.0), (101, 1.0, 0.0), (151, 0.0, 500.0), (251, 1.0, 0.0))
    for recorded, stamp, mass in loads:
        load = InertiaStamped(header=at(stamp), inertia=Inertia(m=mass))
        rows.append(('load', recorded * 10**7, load))
    source = BagSource([write_bag(tmp_path / 'a', 'crane', rows)])
    source.handle(Request('', 'seek', source.length))
    play(source, world, 0.0)
    events = world.machines['crane'].events
    assert list(events) == [(pytest.approx(t), 'load released') for t in (1.0, 2.4)]


def test_commands_for_now_are_plotted_when_they_came_also_after_a_reset(tmp_path):
    name, rows = '/crane/valve_command.spool[boom]', []
    for k in range(60):
        time = round(1e9 * (5.0 + STEP * k))
        joints = JointState(header=at(STEP * (k % 30)), name=['car_joint'], position=[0.0])
        rows.append(('joint_states', time, joints))
        rows.append(('valve_command', time + 1, ValveCommand(name=['boom'], spool=[0.01 * k])))
    world, source = World(numeric_fields), BagSource([write_bag(tmp_path / 'a', 'crane', rows)])
    world.plot(chart_of(name).lines)
    source.handle(Request('', 'seek', source.length))
    play(source, world, 0.0)
    times, spools = world.series[name].window(-math.inf, math.inf)
    np.testing.assert_allclose(times[30:], 2.9 + STEP * np.arange(30), atol=1e-6)
    np.testing.assert_allclose(spools, 0.01 * np.arange(60))


def test_machines_that_run_one_after_the_other_are_shown_so(tmp_path):
    rows = []
    for name, begin in (('north', 0), ('south', 8)):
        for k in range(50):
            message = JointState(header=at(0.1 * k), name=['a'], position=[0.0])
            rows.append((f'{name}/joint_states', begin * 10**9 + 10**8 * k, message))
    assert BagSource([write_bag(tmp_path / 'a', 'farm', rows)]).length == pytest.approx(12.9)


@pytest.mark.parametrize(('away', 'since'), [(0.5, 0), (44.0, 0), (44.0, 90)])
def test_machines_with_clocks_of_their_own_are_shown_by_the_bags_times(tmp_path, away, since):
    rows = []
    for k in range(100):
        for name, ahead in (('north', 0.0), ('south', away if k >= since else 0.0)):
            header = at(6.0 + ahead + 0.05 * k)
            message = JointState(header=header, name=['a'], position=[float(k)])
            rows.append((f'{name}/joint_states', 3_000_000_000 + 10_000_000 * k, message))
    source = BagSource([write_bag(tmp_path / 'a', 'farm', rows)])
    apart = away > 1.0
    assert len(source.notes()) == apart
    assert source.begin == (0.0 if apart else 6.5)
    assert source.length == pytest.approx(0.99 if apart else 4.95)
    if apart:
        for sample in source.poll(World(numeric_fields), 0.0):
            assert sample.stamp == pytest.approx(0.01 * sample.message.position[0])


def test_pause_loop_and_end(tmp_path, world):
    source = BagSource([crane_bag(tmp_path / 'a', 0.5)])
    play(source, world, 0.0)
    source.handle(Request('', 'play'))
    play(source, world, 4.0)
    assert source.replay().time == 0.0
    source.handle(Request('', 'play'))
    play(source, world, 15.0)
    play(source, world, 15.0)
    assert source.replay() == (0.0, True), 'it begins again'
    source.handle(Request('', 'loop', False))
    play(source, world, 30.0)
    assert source.replay() == (pytest.approx(10.0), False), 'it stops at its end'
    source.handle(Request('', 'play'))
    play(source, world, 31.0)
    assert source.replay() == (0.0, True)


def test_a_chart_that_is_added_has_what_came_before(tmp_path, world):
    source = BagSource([crane_bag(tmp_path / 'a', 0.5)])
    play(source, world, 0.0)
    source.handle(Request('', 'seek', 6.0))
    play(source, world, 0.0)
    source.handle(Request('', 'play'))
    world.plot(chart_of('/crane/joint_states.position[cable_joint]').lines)
    play(source, world, 0.0)
    times, _ = world.series['/crane/joint_states.position[cable_joint]'].window(0.0, math.inf)
    assert (times[0], times[-1]) == (5.0, pytest.approx(11.0))
    assert source.replay().time == 6.0


def test_recordings_without_a_machine_or_of_one_moment_are_refused(tmp_path):
    with pytest.raises(InputError, match=r'has no machine.*found: /crane/clock'):
        BagSource([write_bag(tmp_path / 'a', 'crane', [('clock', 0, Clock())])])
    with pytest.raises(InputError, match='one moment only'):
        BagSource([crane_bag(tmp_path / 'b', 1.0, duration=0.0)])


def test_two_recordings_begin_together_and_their_charts_have_one_present(tmp_path, world):
    bags = [crane_bag(tmp_path / 'a', 0.5), crane_bag(tmp_path / 'b', -1.0, 900.0, 4.0)]
    source = BagSource(bags)
    play(source, world, 0.0)
    play(source, world, 2.05)
    shown = [one.machines['crane'].positions['car_joint'] for one in (world, source.ghost())]
    assert shown == pytest.approx([1.0, -2.0])
    assert source.length == pytest.approx(10.0)
    source.ghost().plot(chart_of(POSITION).lines)
    source.handle(Request('', 'seek', 6.0))
    play(source, world, 0.0)
    times, first, second, _ = lines_of(chart_of(POSITION), [world, source.ghost()], 5.0)
    # Of the first one, which began at 5 s.
    assert times[[0, -1]].tolist() == pytest.approx([6.0, 11.0])
    at = np.searchsorted(times, 8.0 - 1e-6)
    assert first[at] == pytest.approx(0.5 * 3.0)
    assert second[at] == pytest.approx(-1.0 * 3.0)
    assert first[-1] == pytest.approx(0.5 * 6.0)
    assert math.isnan(second[-1]), 'the second one ended 2 s before'


@pytest.mark.parametrize(('rate', 'second', 'last'), [(0.0, 7, 13), (2.0, 6, 9)])
def test_pictures_of_a_recording_are_those_of_its_present(tmp_path, world, rate, second, last):
    """Stamps that run at a rate of the bag's times; without stamps those of the bag count."""
    rows = []
    for time in range(5, 15):
        picture = Image(height=2, width=2, step=2, encoding='mono8', data=bytes([time] * 4))
        joints = JointState(header=at(rate * time), name=['car_joint'], position=[0.0])
        rows += [
            (topic, time * 10**9, message)
            for topic, message in (('left/image_raw', picture), ('joint_states', joints))
        ]
    source = BagSource([write_bag(tmp_path / 'a', 'crane', rows)])

    def shown():
        return {name: int(picture[0, 0, 0]) for name, picture in source.pictures().items()}

    play(source, world, 0.0)
    assert shown() == {'crane/left/image_raw': 5}
    assert shown() == {}, 'the same picture is not read again'
    play(source, world, 2.05)
    assert shown() == {'crane/left/image_raw': second}
    source.handle(Request('', 'seek', 8.1))
    play(source, world, 2.05)
    assert shown() == {'crane/left/image_raw': last}


def test_recordings_without_a_common_machine_are_said_not_to_be_compared(tmp_path, world):
    rows = [('joint_states', round(1e9 * k), JointState(header=at(k))) for k in range(5, 9)]
    other = write_bag(tmp_path / 'b', 'site/other', rows)
    for second, expected in ((other, 1), (crane_bag(tmp_path / 'c', 0.5), 0)):
        source = BagSource([crane_bag(tmp_path / f'a{expected}', 0.5), second])
        play(source, world, 0.0)
        play(source, world, 1.0)
        said = [note for note in source.notes() if 'nothing is compared' in note]
        assert len(said) == expected, source.notes()
