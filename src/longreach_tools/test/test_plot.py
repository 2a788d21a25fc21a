"""Figures of recordings: what is read, how it is drawn, and what is refused."""

import dataclasses
import math
import re
import warnings
from functools import partial
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from geometry_msgs.msg import Inertia, InertiaStamped
from longreach_msgs.msg import (
    CraneCommand,
    CraneSensors,
    CraneStatus,
    MarkerEstimate,
    MarkerEstimates,
    Terrain,
)
from sensor_msgs.msg import JointState, Joy
from std_msgs.msg import Float64, Float64MultiArray, String

from longreach_dynamics.errors import InputError
from longreach_dynamics.resources import data_directory
from longreach_tools.fields import Signal, parse_signal
from longreach_tools.plot._build import Window, build, build_preset
from longreach_tools.plot._draw import agreement
from longreach_tools.plot._picture import Curve, Panel, Picture, decimate, group, isolated
from longreach_tools.signals import read_signals
from longreach_tools.testing import Outcome, write_bag

NANOSECONDS = 1_000_000_000
WALL = 1_700_000_000 * NANOSECONDS


def stamped(message, time):
    message.header.stamp.sec, message.header.stamp.nanosec = divmod(time, NANOSECONDS)
    return message


def crane_rows(count=50, start=0):
    """Return messages of a crane: car and cable swing, the brake closes at half time."""
    rows = []
    for k in range(count):
        time = start + k * NANOSECONDS // 100
        car = math.sin(0.1 * k)
        joints = JointState(name=['car_joint', 'cable_joint'], position=[car, 0.1 * car])
        joints.velocity, joints.effort = [float(k <= count // 2), 0.1], [5.0, 0.0]
        messages = {
            'joint_states': joints,
            'sensors': CraneSensors(car_position=car),
            'command': CraneCommand(force=2.0, brake=k >= count // 2),
            'status': CraneStatus(set_point=1.5, emergency_mode=k == count - 1),
        }
        rows += [(name, time, stamped(one, time)) for name, one in messages.items()]
    return rows


@pytest.fixture
def crane(tmp_path):
    return write_bag(tmp_path / 'run', 'crane', crane_rows())


def texts(svg):
    """Return the comments of an SVG figure, which are its texts."""
    return ' '.join(re.findall(r'<!-- (.*?) -->', svg.read_text()))


def events(found):
    return [(one['time'], one['event']) for one in found['events']]


def csv(file):
    head = file.read_text().splitlines()[0].split(',')
    return head, np.genfromtxt(file, delimiter=',', skip_header=1)


def test_figure_has_units_events_and_names_of_entries(crane, tmp_path, capsys):
    out = tmp_path / 'new' / 'a.svg'
    words = ('joint_states.position', '/crane/sensors.car_position')
    found = Outcome(capsys, 'plot', crane, *words, '--out', out, '--format', 'json').json
    ElementTree.parse(out)
    shown = texts(out)
    for text in ('[m]', '[deg]', 'cable_joint', 'car_position', 'time [s]', 'brake', 'emergency'):
        assert text in shown
    assert 'car_joint sticks' in shown
    assert [(one['signal'], one['unit'], one['samples']) for one in found['signals']] == [
        ('/crane/joint_states.position[car_joint]', 'm', 50),
        ('/crane/sensors.car_position', 'm', 50),
        ('/crane/joint_states.position[cable_joint]', 'rad', 50),
    ]
    assert events(found) == [(0.25, 'brake'), (0.49, 'emergency')]
    assert found['signals'][1]['max'] == pytest.approx(math.sin(1.6), abs=1e-12)


def test_release_of_a_load_is_an_event(tmp_path, capsys):
    rows = [('x', k * NANOSECONDS, stamped(CraneSensors(), k * NANOSECONDS)) for k in range(9)]
    for second, mass in ((0, 90.0), (5, 0.0), (7, 20.0)):
        load = InertiaStamped(inertia=Inertia(m=mass))
        rows.append(('load', second * NANOSECONDS, stamped(load, second * NANOSECONDS)))
    bag = write_bag(tmp_path / 'run', 'boom', rows)
    out = tmp_path / 'a.svg'
    found = Outcome(capsys, 'plot', bag, 'x.car_position', '--out', out, '--format', 'json').json
    assert events(found) == [(5.0, 'load released'), (7.0, 'load attached')]
    assert 'load released' in texts(out)
    picture, _ = build(bag, [Signal('load', 'inertia.m'), Signal('x', 'car_position')], Window())
    assert [panel.curves[0].steps for panel in picture.panels] == [True, False]


def test_table_has_all_samples_in_full_precision(crane, tmp_path, capsys):
    out = tmp_path / 'a.csv'
    window = ('--from', '0.1', '--to', '0.2')
    done = Outcome(capsys, 'plot', crane, 'sensors', '--out', out, *window)
    assert done.code == 0
    head, table = csv(out)
    fields = ('car_position', 'below_minimum', 'above_maximum')
    assert head == ['time', *(f'/crane/sensors.{field}' for field in fields)]
    assert table[:, 0].tolist() == [k / 100 for k in range(10, 21)]
    assert table[:, 1].tolist() == [math.sin(0.1 * k) for k in range(10, 21)]


def test_two_runs_are_compared_at_common_times(tmp_path, capsys):
    first = write_bag(tmp_path / 'one', 'crane', crane_rows())
    # Starts 0.2 s later, between the samples of the first one.
    rows = [
        ('sensors', time, stamped(CraneSensors(car_position=2.0 * time / 1e9), time))
        for time in (205_000_000 + k * 10_000_000 for k in range(60))
    ]
    second = write_bag(tmp_path / 'two', 'crane', rows)
    out = tmp_path / 'a.csv'
    words = ('sensors.car_position', '--against', second, '--out', out, '--format', 'json')
    (found,) = Outcome(capsys, 'plot', first, *words).json['signals']
    head, table = csv(out)
    name = '/crane/sensors.car_position'
    assert head == ['time', name, f'{name} of two', f'difference of {name}']
    at_first = np.isfinite(table[:, 1])
    expected = [math.sin(0.1 * k) - 0.02 * k if k > 20 else math.nan for k in range(50)]
    assert table[at_first, 3] == pytest.approx(np.array(expected), abs=1e-12, nan_ok=True)
    assert found['overlap'] == 29 / 50
    known = np.array(expected)[21:]
    assert found['largest_difference'] == pytest.approx(np.abs(known).max(), rel=1e-9)
    assert found['rms_difference'] == pytest.approx(np.sqrt(np.mean(known**2)), rel=1e-9)
    # Between two samples of the second one.
    window = ('--from', '0.248', '--to', '0.252')
    (found,) = Outcome(capsys, 'plot', first, *words, *window).json['signals']
    assert found['largest_difference'] == pytest.approx(abs(expected[25]), rel=1e-9)
    picture = tmp_path / 'a.svg'
    assert Outcome(capsys, 'plot', first, *words[:3], '--out', picture).code == 0
    assert 'difference' in texts(picture)
    assert 'two' in texts(picture)


def test_a_gap_in_the_second_run_is_not_bridged():
    time = np.arange(10.0)
    other = Curve('b', '', '', np.array([0.0, 1.0, 2.0, 8.0, 9.0]), np.zeros(5))
    less = Curve('a', '', '', time, time).less(other)
    assert np.flatnonzero(np.isnan(less.values)).tolist() == [3, 4, 5, 6, 7]
    unknown = dataclasses.replace(less, values=np.full(10, np.nan))
    assert [*agreement(unknown).values()] == [0.0, None, None]
    steps = Curve('c', '', '', time, np.ones(10), steps=True)
    half = Curve('d', '', '', time + 0.5, (time > 4.0).astype(float), steps=True)
    assert steps.less(half).values[1:].tolist() == [1.0, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0]


def test_a_second_run_may_lack_an_entry(tmp_path):
    bags = [
        write_bag(
            tmp_path / ''.join(names),
            'a',
            [
                ('j', k + 1, stamped(JointState(name=names, position=[1.0] * n), k + 1))
                for k in (0, 1)
            ],
        )
        for n, names in ((2, ['x', 'y']), (1, ['x']))
    ]
    picture, _ = build(bags[0], [Signal('j', 'position')], Window(), bags[1])
    (panel,) = picture.panels
    assert [one.values.tolist() for one in panel.differences] == [
        [0.0] * 2,
        pytest.approx([math.nan] * 2, nan_ok=True),
    ]


def test_no_line_is_drawn_across_a_gap():
    time = np.array([0.0, 1.0, 2.0, 8.0, 9.0])
    line = Curve('a', 'a', 'm', time, np.ones(5))
    flag = dataclasses.replace(line, steps=True)
    held = dataclasses.replace(flag, time=np.array([0.0, 3.0, 3.1, 3.2, 8.0]))
    picture = Picture('', '', [Panel('a\n[m]', [line, flag, held])], (), (), ('one',)).readable()
    for drawn in picture.panels[0].curves[:2]:
        assert drawn.time.tolist() == [0.0, 1.0, 2.0, 3.0, 8.0, 9.0]
        assert np.flatnonzero(np.isnan(drawn.values)).tolist() == [3]
    assert picture.panels[0].curves[2].time.tolist() == [*held.time, 9.0]


def test_samples_of_one_time_have_rows_of_their_own(tmp_path, capsys):
    rows = [
        ('position', time, Float64(data=value)) for time, value in ((1, 1.0), (1, 2.0), (2, 3.0))
    ]
    out = tmp_path / 'a.csv'
    bag = write_bag(tmp_path / 'bag', 'crane', rows)
    assert Outcome(capsys, 'plot', bag, 'position.data', '--out', out).code == 0
    assert csv(out)[1][:, 1].tolist() == [1.0, 2.0, 3.0]


def test_wall_time_is_shown_from_the_first_sample(tmp_path, capsys):
    bags = [
        # The first message has events only, and no sample.
        write_bag(tmp_path / name, 'crane', crane_rows(start=start)[2:])
        for name, start in (('one', WALL), ('two', WALL + 3600 * NANOSECONDS))
    ]
    out = tmp_path / 'a.svg'
    assert Outcome(capsys, 'plot', bags[0], 'sensors.car_position', '--out', out).code == 0
    assert 'time from 2023-11-14 22:13:20 UTC [s]' in texts(out)
    words = ('sensors.car_position', '--against', bags[1], '--out', out, '--format', 'json')
    found = Outcome(capsys, 'plot', bags[0], *words).json
    assert (found['signals'][0]['overlap'], found['signals'][0]['largest_difference']) == (1, 0)
    assert 'from their first samples on' in found['notes'][0]


def test_time_is_that_of_the_stamps_and_messages_without_one_follow(tmp_path):
    # A simulation of 1 s, recorded from 10 s of wall time on, at half speed.
    rows = [
        ('sensors', WALL + 2 * time, stamped(CraneSensors(), time))
        for time in range(0, NANOSECONDS + 1, NANOSECONDS // 10)
    ]
    rows.append(('set_point', WALL + NANOSECONDS, Float64(data=2.0)))
    bag = write_bag(tmp_path / 'run', 'crane', sorted(rows, key=lambda row: row[1]))
    read = read_signals(bag, [Signal('set_point', 'data'), Signal('sensors', 'car_position')])
    assert read.topics['/crane/set_point'].time.tolist() == [NANOSECONDS // 2]
    assert read.topics['/crane/sensors'].time[-1] == NANOSECONDS
    (note,) = read.notes
    assert note.startswith('/crane/set_point: no stamp; the time of recording is used (converted')


@pytest.mark.parametrize(
    ('stamps', 'times', 'note'),
    [
        # Never set.
        ([0, 0, 0], [WALL, WALL + 1, WALL + 2], 'no stamp; the time of recording is used (kept)'),
        # A sample that was published twice.
        ([0, 0, 100, 200], [0, 0, 100, 200], ''),
        # A late one is no reset.
        ([*range(70), 71, 72, 70, *range(73, 80)], [*range(80)], '1 of 80 messages were late; so'),
    ],
    ids=['never', 'twice', 'late'],
)
def test_stamps_that_do_not_increase(tmp_path, stamps, times, note):
    rows = [('sensors', WALL + k, stamped(CraneSensors(), one)) for k, one in enumerate(stamps)]
    read = read_signals(write_bag(tmp_path / 'run', 'crane', rows), [Signal('sensors', '')])
    assert read.topics['/crane/sensors'].time.tolist() == times
    assert [note in one for one in read.notes] == [True] * bool(note)


def test_a_topic_that_is_received_late_begins_where_its_stamps_do(tmp_path):
    """As fast as possible a recorder gets the first message of a topic when others are ahead."""
    rows = [
        ('sensors', WALL + k, stamped(CraneSensors(), k * NANOSECONDS // 50)) for k in range(200)
    ]
    rows += [
        ('status', WALL + 60 + k, stamped(CraneStatus(), k * NANOSECONDS // 100))
        for k in range(100)
    ]
    bag = write_bag(tmp_path / 'run', 'crane', sorted(rows, key=lambda row: row[1]))
    read = read_signals(bag, [Signal('status', '')])
    assert read.notes == ()
    assert read.topics['/crane/status'].time[:2].tolist() == [0, NANOSECONDS // 100]


@pytest.mark.parametrize(('space', 'other'), [('site/south', 'site/north'), ('', 'north')])
def test_events_are_those_of_the_machine_that_is_drawn(tmp_path, capsys, space, other):
    rows = []
    for topic, time, message in crane_rows():
        rows.append((f'{other}/{topic}', time, message))
        if topic == 'joint_states':
            rows.append((f'{space}/{topic}', time, message))
    rows += [
        (f'{space}/status', k * NANOSECONDS // 10, stamped(status, k))
        for k, status in enumerate([CraneStatus(), CraneStatus(brake=True)])
    ]
    bag = write_bag(tmp_path / 'run', '', sorted(rows, key=lambda row: row[1]))
    words = ('--out', tmp_path / 'a.svg', '--format', 'json')
    assert events(
        Outcome(
            capsys, 'plot', bag, f'/{space}/joint_states.position'.replace('//', '/'), *words
        ).json
    ) == [(1e-9, 'brake')]


def test_zeros_within_a_simulation_and_wall_clocks_are_no_times_of_it(tmp_path):
    rows = [('sensors', WALL + k, stamped(CraneSensors(), k * NANOSECONDS)) for k in range(9)]
    # Commands by hand, between stamped ones and alone, and a joystick.
    for topic, kind, stamps in (
        ('command', CraneCommand, (2, 0, 3, 0)),
        ('forces', CraneCommand, (0,)),
        ('joy', partial(Joy, axes=[1.0]), (1_700_000_000, 1_700_000_009)),
    ):
        rows += [(topic, WALL + 5, stamped(kind(), stamp * NANOSECONDS)) for stamp in stamps]
    bag = write_bag(tmp_path / 'run', 'crane', sorted(rows, key=lambda row: row[1]))
    names = ('sensors', 'command', 'forces', 'joy')
    read = read_signals(bag, [Signal(name, '') for name in names])
    times = [(one.time / NANOSECONDS).tolist() for one in read.topics.values()]
    assert times == [[*range(9)], [2, 3, 5, 5], [5], [5, 5]]
    assert sum('no stamp; the time of recording' in note for note in read.notes) == 3
    assert len(read.notes) == 4  # Two late commands.


def test_a_reset_of_another_machine_with_a_clock_of_its_own_cuts_nothing(tmp_path):
    rows = [('boom/load', WALL + k, stamped(InertiaStamped(), k)) for k in range(50)]
    rows += [('crane/sensors', WALL + k, stamped(CraneSensors(), k % 30 // 2)) for k in range(60)]
    bag = write_bag(tmp_path / 'run', 'farm', sorted(rows, key=lambda row: row[1]))
    read = read_signals(bag, [Signal('/farm/boom/load', 'inertia.m')])
    assert len(read.topics['/farm/boom/load'].time) == 50
    assert not read.notes


def test_a_reset_cuts_topics_that_do_not_show_it(tmp_path):
    rows = [
        ('sensors', WALL + 100 * number + k, stamped(CraneSensors(), k))
        for number in range(2)
        for k in range(50)
    ]
    # Without a stamp.
    rows += [('point', WALL + k, Float64(data=float(k))) for k in (40, 130)]
    # Published right after the reset, before a sample shows it, or long before or after.
    times = {'load': (WALL + 20, 20), 'mass': (WALL + 60, 1), 'late': (WALL + 130, 30)}
    for topic, (time, stamp) in times.items():
        rows += [(topic, WALL, stamped(InertiaStamped(), 0))]
        rows += [(topic, time, stamped(InertiaStamped(), stamp))]
    bag = write_bag(tmp_path / 'run', 'boom', sorted(rows, key=lambda row: row[1]))
    read = read_signals(bag, [Signal(topic, '') for topic in (*times, 'point')])
    found = {name[6:]: one.time.tolist() for name, one in read.topics.items()}
    assert found == {'load': [], 'mass': [1], 'late': [30], 'point': [30]}
    assert read.topics['/boom/point'].values['data'].tolist() == [130.0]
    assert read.notes[-1] == (
        f'{bag}: time began anew; 5 messages before are left out; /boom/load has none since'
    )
    with pytest.raises(InputError, match='no message of /boom/load since time began anew'):
        build(bag, [Signal('load', 'inertia.m')], Window())


def test_entries_that_come_and_go_are_gaps(tmp_path):
    rows = []
    for k, names in enumerate((['tip'], ['truck'], ['truck', 'tip'])):
        message = MarkerEstimates(estimates=[MarkerEstimate(name=name) for name in names])
        for one in message.estimates:
            one.in_plane.x = float(k)
        rows.append(('markers', k + 1, stamped(message, k + 1)))
    bag = write_bag(tmp_path / 'run', 'vision', rows)
    read = read_signals(bag, [Signal('markers', 'estimates[tip].in_plane.x')])
    (values,) = read.topics['/vision/markers'].values.values()
    assert np.isnan(values).tolist() == [False, True, False]
    assert values[2] == 2.0
    everything = read_signals(bag, [Signal('markers', 'estimates')]).topics['/vision/markers']
    assert 'estimates[truck].status' in everything.values


def test_messages_that_are_left_out_because_they_are_long_are_said(tmp_path):
    rows = [('x', n, Float64MultiArray(data=[1.0] * n)) for n in (2, 17)]
    bag = write_bag(tmp_path / 'run', 'a', rows)
    _, note = read_signals(bag, [Signal('x', '')]).notes
    assert note.startswith('/a/x: messages with more than 16 entries of data are left out; give')


def test_joints_of_several_publishers_are_lines_and_isolated_samples_are_dots(tmp_path, capsys):
    rows = []
    for k in range(20):
        names = ['car_joint'] if k % 2 else ['cable_joint']
        state = JointState(name=names, position=[math.nan if k in (4, 8) else 0.1 * k])
        rows.append(('joint_states', k + 1, stamped(state, k + 1)))
    bag = write_bag(tmp_path / 'run', 'crane', rows)
    svg, page = tmp_path / 'a.svg', tmp_path / 'a.html'
    words = ('joint_states.position', '--format', 'json', '--out')
    found = Outcome(capsys, 'plot', bag, *words, svg).json['signals']
    assert [(one['samples'], one['unknown']) for one in found] == [(10, 2), (10, 0)]
    assert isolated(np.array([1.0, math.nan, 3.0, 4.0, math.nan, 5.0])) == [0, 5]
    # The sample between the two that are not known.
    assert len(re.findall('<use [^>]*stroke: #1f77b4', svg.read_text())) == 2
    pytest.importorskip('plotly', reason='pages are drawn by plotly')
    assert Outcome(capsys, 'plot', bag, *words, page).code == 0
    assert '"lines+markers"' in page.read_text()


def test_joints_of_one_name_have_the_unit_of_their_own_machine(tmp_path, capsys):
    rows = []
    for space, kind in (('a', 'prismatic'), ('b', 'revolute')):
        text = f"""<robot name="{space}"><link name="base"/><link name="car"/>
            <joint name="move" type="{kind}"><parent link="base"/><child link="car"/>
            <limit lower="0" upper="1" effort="1" velocity="1"/></joint></robot>"""
        state = JointState(name=['move'], position=[1.0])
        rows += [(f'{space}/robot_description', 0, String(data=text))]
        rows += [(f'{space}/{topic}', 1, stamped(state, 1)) for topic in ('joint_states', 'goal')]
    # Only the installed harvester has this joint.
    piston = JointState(name=['stick_cylinder'], position=[1.0])
    rows += [('c/joint_states', 1, stamped(piston, 1))]
    bag = write_bag(tmp_path / 'run', 'site', rows)
    found = Outcome(capsys, 'plot', bag, '--list', '--format', 'json').json['topics']
    units = {one['name'][6:]: one['fields'][0]['unit'] for one in found if one['fields']}
    topics = [f'{space}/{topic}' for space in 'ab' for topic in ('goal', 'joint_states')]
    expected = [*zip(topics, ('m', 'm', 'rad', 'rad'), strict=True), ('c/joint_states', 'm')]
    assert sorted(units.items()) == expected


def test_list_gives_units_counts_and_ranges(tmp_path, capsys):
    ground = stamped(Terrain(start=2.0, firm=[float(k) for k in range(40)], bucket_mass=7.0), 5)
    rows = [*crane_rows(), ('terrain', 5, ground), ('name', 6, String(data='x'))]
    bag = write_bag(tmp_path / 'run', 'crane', rows)
    found = Outcome(capsys, 'plot', bag, '--list', '--format', 'json').json
    topics = {one['name']: one for one in found['topics']}
    fields = {one['field']: one for one in topics['/crane/joint_states']['fields']}
    car = fields['position[car_joint]']
    assert (car['unit'], car['count'], car['min']) == ('m', 50, pytest.approx(-1.0, abs=1e-2))
    assert fields['effort[cable_joint]']['unit'] == 'N m'
    fields = {one['field']: one for one in topics['/crane/terrain']['fields']}
    assert [*fields['firm[0..39]'].values()] == ['firm[0..39]', 'm', 1, 0.0, 39.0]
    assert fields['bucket_mass']['unit'] == 'kg'
    assert topics['/crane/name']['fields'] == []
    assert topics['/crane/name']['time'] is None
    assert all(one['restarts'] == 0 for one in topics.values())
    text = Outcome(capsys, 'plot', bag, '--list').out
    assert re.search(r'^  car_position +m +50 +-0\.99\d+ +0\.99\d+$', text, re.MULTILINE)
    assert re.search(r'/crane/name .* \(time of recording: no stamp\)', text)


def test_list_has_the_times_of_plot(tmp_path, capsys):
    """Stamps that were never set are no times, and time that begins anew is named."""
    rows = [('never', WALL + k * NANOSECONDS, CraneSensors()) for k in range(3)]
    for k, stamp in enumerate((0, 1, 2, 3, 0, 1, 2)):
        message = stamped(CraneSensors(), stamp * NANOSECONDS)
        rows.append(('sensors', WALL + k * NANOSECONDS, message))
    bag = write_bag(tmp_path / 'run', 'crane', sorted(rows, key=lambda row: row[1]))
    found = Outcome(capsys, 'plot', bag, '--list', '--format', 'json').json['topics']
    never, sensors = sorted(found, key=lambda one: one['name'])
    assert (never['time'], never['first_s']) == (None, WALL / NANOSECONDS)
    shown = [sensors[key] for key in ('time', 'first_s', 'last_s', 'restarts')]
    assert shown == ['stamp', 0, 3, 1]
    assert 'to 3 s, time begins anew' in Outcome(capsys, 'plot', bag, '--list').out


def test_page_is_interactive_and_one_file(crane, tmp_path, capsys):
    pytest.importorskip('plotly', reason='pages are drawn by plotly')
    out = tmp_path / 'a.html'
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        done = Outcome(capsys, 'plot', crane, 'joint_states.position', '--out', out)
    assert done.code == 0, done.err
    text = out.read_text()
    assert not re.search(r'<(script|link|img)[^>]+(src|href)=', text)
    assert '[deg]' in text
    assert 'cable_joint' in text
    assert 'Plotly.newPlot' in text
    assert Outcome(capsys, 'plot', crane, '--preset', 'crane', '--out', out).code == 0
    text = out.read_text()
    for part in ('"name":"cable"', '"dash":"dash"', '"text":"brake"'):
        assert part in text


def test_peaks_survive_in_a_long_recording():
    values = np.zeros(4500)
    values[1234], values[3210], values[100] = 7.0, -3.0, np.nan
    kept = decimate(values, 400)
    assert len(kept) <= 400
    assert {1234, 3210, 100, 0, 4499} <= set(kept.tolist())
    assert np.array_equal(decimate(values, 5000), np.arange(4500))


def test_people_read_degrees_and_large_forces_in_kilonewtons():
    time = np.arange(3.0)
    given = {'rad': [0.0, 0.1, 0.2], 'N': [0.0, 5.0, 2e4], 'Pa': [0.0, 1e3, 2e3], 'm': [0, 1, 2]}
    panels = [
        Panel(f'some\n[{unit}]', [Curve('a', 'a', unit, time, np.array(values, float))])
        for unit, values in given.items()
    ]
    shown = Picture('', '', panels, (), (), ('run',)).readable().panels
    assert [one.label for one in shown] == ['some\n[deg]', 'some\n[kN]', 'some\n[Pa]', 'some\n[m]']
    assert [one.curves[0].unit for one in shown] == ['deg', 'kN', 'Pa', 'm']
    assert shown[0].curves[0].values[-1] == pytest.approx(np.degrees(0.2))
    assert shown[1].curves[0].values.tolist() == [0.0, 0.005, 20.0]
    # Tables keep SI units.
    assert panels[1].curves[0].values[-1] == 2e4


def test_signals_of_one_unit_share_a_panel_and_short_labels():
    names = ['/a/j.position[x]', '/a/s.height', '/b/j.position[x]', '/a/c.brake']
    names += ['/a/h.spool[x]', '/a/h.spool[y]']
    kinds = [*[('m', False)] * 3, ('', True), *[('1', False)] * 2]
    rows = [(parse_signal(name), *kind) for name, kind in zip(names, kinds, strict=True)]
    shared, flags, spools = group(rows)
    assert shared == ('position, height\n[m]', [*enumerate(names[:3])])
    assert flags == ('brake', [(3, 'brake')])
    assert spools == ('spool', [(4, 'x'), (5, 'y')])


REFUSED = {
    'topic': (['sensor.car_position', '--out', 'a.png'], 'no topic /sensor; similar: /crane/s'),
    'field': (['sensors.car_postion', '--out', 'a.png'], 'car_postion; similar: car_position'),
    'entry': (
        ['joint_states.position[cabel_joint]', '--out', 'a.png'],
        'no message of /crane/joint_states has position[cabel_joint]; similar: position[cable_j',
    ),
    'text': (['name', '--out', 'a.png'], '(std_msgs/msg/String) has no numeric field'),
    'suffix': (['sensors', '--out', 'a.xyz'], "a.xyz has the extension 'xyz', allowed: "),
    'no output': (['sensors'], 'no --out; give a file: .png, .svg, .html or .csv'),
    'nothing': (['--out', 'a.png'], 'none of TOPIC.field, --preset, --list given, allowed: one'),
    'both': (['sensors', '--preset', 'crane', '--out', 'a.png'], 'TOPIC.field and --preset given'),
    'list': (['sensors', '--list'], 'TOPIC.field and --list given, allowed: one of them'),
    'drawn': (['--list', '--from', '1', '--out', 'a'], '--out and --from, allowed without --list'),
    'preset': (['--preset', 'lorry', '--out', 'a.png'], "--preset = 'lorry', allowed: "),
    'machine': (['--preset', 'boom', '--out', 'a.png'], 'no boom in namespace /boom'),
    'order': (['sensors', '--out', 'a.png', '--from', '2', '--to', '1'], 'allowed: from < to'),
    'window': (['sensors', '--out', 'a.png', '--from', '9'], 'samples are at 0 to 0.49 s'),
    'namespace': (['sensors', '--out', 'a.png', '--namespace', 'x'], '--namespace, allowed with'),
}


@pytest.mark.parametrize('name', REFUSED)
def test_bad_input_is_one_line_and_leaves_nothing(name, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_bag(Path('run'), 'crane', [*crane_rows(), ('name', 6, String(data='x'))])
    words, text = REFUSED[name]
    before = sorted(Path().rglob('*'))
    Outcome(capsys, 'plot', 'run', *words).refused(text)
    assert sorted(Path().rglob('*')) == before


def test_empty_recordings_are_refused(tmp_path, capsys):
    empty = write_bag(tmp_path / 'empty', 'crane', [])
    out = tmp_path / 'a.png'
    for words in (['--list'], ['sensors', '--out', out]):
        Outcome(capsys, 'plot', empty, *words).refused('an empty recording')


def test_a_recording_that_was_not_closed_is_read_and_said(crane, tmp_path, capsys):
    (crane / 'metadata.yaml').unlink()
    done = Outcome(capsys, 'plot', crane, 'sensors', '--out', tmp_path / 'a.png')
    assert done.code == 0
    assert 'not closed' in done.err


def test_preset_draws_the_columns_of_a_machine(crane, tmp_path, capsys):
    out = tmp_path / 'a.svg'
    words = ('--preset', 'crane', '--out', out, '--format', 'json')
    found = Outcome(capsys, 'plot', crane, *words).json
    names = {one['signal']: one['unit'] for one in found['signals']}
    lengths = dict.fromkeys(('load_position', 'car_position', 'set_point'), 'm')
    assert names == {**lengths, 'angle': 'rad', 'command': 'N', 'motor_force': 'N'}
    for text in ('load', 'set point', 'cable', '[deg]'):
        assert text in texts(out)
    # In the strip and at the line of the event.
    assert len(re.findall('<!-- emergency -->', out.read_text())) == 2
    (note,) = found['notes']
    assert note.startswith('load_position: by the installed parameters of the crane; ')
    file = data_directory('longreach_crane') / 'config' / 'crane.yaml'
    assert not Outcome(capsys, 'plot', crane, *words, '--file', file).json['notes']


def test_beams_that_the_installed_boom_has_not_are_named(tmp_path, capsys):
    parts = [f'beam_{k}_{what}' for k in range(1, 6) for what in ('joint', 'deflection', 'slope')]
    names = [*parts, *(f'cylinder_{k}' for k in range(1, 6)), 'end_hose_joint']
    state = JointState(name=names, position=[0.1] * len(names), effort=[1.0] * len(names))
    bag = write_bag(tmp_path / 'run', 'boom', [('joint_states', 1, stamped(state, 1))])
    done = Outcome(capsys, 'plot', bag, '--preset', 'boom', '--out', tmp_path / 'a.csv')
    lines = [line for line in done.err.splitlines() if 'left out, because' in line]
    expected = 'beam_5_joint, beam_5_deflection, beam_5_slope, cylinder_5 left out, because the'
    assert [expected in line for line in lines] == [True]


def test_preset_of_cameras_needs_no_truth(tmp_path, capsys):
    rows = []
    for k in range(20):
        message = MarkerEstimates()
        for name in ('tip', 'truck'):
            one = MarkerEstimate(name=name, status=2 if k == 9 and name == 'tip' else 0)
            one.in_plane.x = 5.0 + 1e-3 * k
            one.in_plane_covariance[0], one.in_plane_covariance[8] = 4e-6, 9e-6
            one.out_of_plane = 2e-3
            message.estimates.append(one)
        time = NANOSECONDS + (k + (k > 9)) * 50_000_000
        rows.append(('markers', time, stamped(message, time)))
    bag = write_bag(tmp_path / 'run', 'vision', rows)
    out = tmp_path / 'a.svg'
    words = ('--preset', 'vision', '--out', out, '--format', 'json')
    found = {one['signal']: one for one in Outcome(capsys, 'plot', bag, *words).json['signals']}
    # Tables are in SI units; the figure is in mm, and positions are from their starts on.
    assert found['tip_x']['max'] == pytest.approx(5.019)
    assert found['tip_deviation_z']['mean'] == pytest.approx(0.003)
    assert found['truck_out']['mean'] == pytest.approx(0.002)
    assert found['interval']['max'] == pytest.approx(0.1)
    picture, _ = build_preset('vision', bag, 'vision', None, Window(1.2))
    shown = {one.name: one for panel in picture.readable().panels for one in panel.curves}
    assert (shown['tip_x'].unit, shown['interval'].unit) == ('mm', 'ms')
    assert shown['tip_x'].values[[0, -1]] == pytest.approx([4.0, 19.0])
    assert shown['interval'].values.max() == pytest.approx(100.0)
    assert 'tip not tracked' in texts(out)
    assert 'truck not tracked' not in texts(out)
