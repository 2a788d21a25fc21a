"""What is known of machines, from messages as they come."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from geometry_msgs.msg import WrenchStamped
from sensor_msgs.msg import JointState

from longreach_tools.fields import numeric_fields
from longreach_view.chart_files import load_presets, machine_charts
from longreach_view.charts import (
    WANTED,
    Chart,
    chart_of,
    limits_of,
    lines_of,
)
from longreach_view.page import _state_row, lacking_lines, legend_lines
from longreach_view.world import EVENTS, STALE, Line, Machine, Sample, Series, World

POSITION = '/north/joint_states.position[car_joint]'
URDF = (
    '<robot name="crane"><link name="n/track"/><link name="n/car"/><joint name="car_joint"'
    ' type="prismatic"><parent link="n/track"/><child link="n/car"/></joint></robot>'
)


def world_of(*samples):
    """Return a world in which the position of the car is plotted."""
    world = World(lambda message: {'position[car_joint]': message.position[0]})
    world.plot(chart_of(POSITION).lines)
    for sample in samples:
        world.take(sample, 0.0)
    return world


def sample(time, position=0.0, topic='/north/joint_states', lost=0):
    joints = {'name': ['car_joint'], 'position': [position], 'velocity': [0.0], 'effort': [1.0]}
    return Sample(topic, 'sensor_msgs/msg/JointState', SimpleNamespace(**joints), time, lost)


def described(text):
    message = SimpleNamespace(data=text)
    return Sample('/north/robot_description', 'std_msgs/msg/String', message, None)


def test_a_machine_is_found_by_its_joint_states_and_description():
    world = World(lambda _: {})
    world.take(sample(1.0, 2.5, lost=3), 10.0)
    world.take(described(URDF), 10.0)
    machine = world.machines['north']
    assert (machine.kind, machine.positions, machine.lost) == ('crane', {'car_joint': 2.5}, 3)
    assert (machine.time, machine.version) == (1.0, 1)
    world.take(described(URDF), 11.0)
    assert machine.version == 1, 'the same description is not read again'


@pytest.mark.parametrize(('lost', 'kind'), [(0, 'grey'), (3, 'amber')])
def test_lost_messages_are_noticed_but_no_emergency(lost, kind):
    machine = world_of(sample(1.0, lost=lost)).machines['north']
    assert f'class="{kind}">{lost} lost<' in _state_row(machine, '', paused=False)


def test_a_description_that_cannot_be_read_is_named():
    world = World(lambda _: {})
    world.take(described('<robot>'), 0.0)
    assert 'not a URDF' in world.machines['north'].problem
    assert world.machines['north'].robot is None


def test_speed_is_simulation_time_over_wall_time_and_a_reset_begins_anew():
    world = World(lambda _: {})
    for k in range(200):
        world.take(sample(0.02 * k), 0.01 * k)
    machine = world.machines['north']
    assert machine.speed == pytest.approx(2.0)
    assert machine.heard == pytest.approx(1.99)
    world.take(sample(0.0), 2.0)
    world.take(sample(0.5), 2.5)
    assert machine.speed == pytest.approx(1.0)


def test_a_clock_that_stands_still_means_paused_and_a_silent_one_does_not():
    world = World(lambda _: {})

    def tick(time, now):
        clock = SimpleNamespace(clock=SimpleNamespace(sec=time, nanosec=0))
        world.take(Sample('/clock', 'rosgraph_msgs/msg/Clock', clock, None), now)

    quiet, other = Machine('quiet', heard=0.0), Machine('other', heard=1.5)
    tick(1, 0.0)
    assert not world.is_paused(quiet, 0.1)
    tick(1, 1.5)
    assert world.is_paused(quiet, 1.6)
    # With a clock of its own.
    assert not world.is_paused(other, 1.6)
    assert not world.is_paused(quiet, 1.5 + STALE + 0.1)
    tick(2, 3.0)
    assert not world.is_paused(quiet, 3.1)
    # Paused here, and resumed by somebody else.
    quiet.halted = quiet.heard = 3.0
    assert world.is_paused(quiet, 3.1)
    assert world.is_paused(quiet, 9.0)
    quiet.heard = 4.1
    assert not world.is_paused(quiet, 4.2)


def test_a_command_for_now_has_the_time_of_its_machine():
    world = World(lambda message: {'spool[a]': 0.3} if hasattr(message, 'spool') else {})
    world.take(sample(9.0), 0.0)
    world.plot(chart_of('/north/valve_command.spool[a]').lines)
    command = SimpleNamespace(name=['a'], spool=[0.3])
    for stamp in (8.9, 0.0):
        topic = '/north/valve_command'
        world.take(Sample(topic, 'longreach_msgs/msg/ValveCommand', command, stamp), 0.0)
    series = world.series['/north/valve_command.spool[a]']
    assert series.window(0.0, 99.0)[0].tolist() == [8.9, 9.0]


def test_only_chosen_signals_are_kept_and_values_without_stamp_get_the_machines_time():
    world = World(lambda message: {'position[car_joint]': message.position[0]})
    world.take(sample(1.0, 5.0), 0.0)
    assert world.signals() == [POSITION]
    world.plot(chart_of(POSITION).lines)
    for k in range(3):
        world.take(sample(2.0 + k, 10.0 * k), 0.0)
    found = world.series[POSITION].window(-math.inf, math.inf)
    np.testing.assert_array_equal(found, [[2.0, 3.0, 4.0], [0.0, 10.0, 20.0]])
    world = World(lambda message: {'data': message.data})
    world.plot(chart_of('/n/set_point.data').lines)
    world.machines['n'] = Machine('n', time=7.0)
    point = SimpleNamespace(data=3.0)
    world.take(Sample('/n/set_point', 'std_msgs/msg/Float64', point, None), 0.0)
    np.testing.assert_array_equal(world.series['/n/set_point.data'].window(0, 9), [[7.0], [3.0]])


def test_times_that_are_dates_count_from_the_first_one():
    world = world_of(sample(1.7e9), sample(1.7e9 + 2.5, 5.0))
    assert world.machines['north'].time == 2.5
    assert lines_of(chart_of(POSITION), [world], 2.0)[0].tolist() == [0.5, 2.5]


def test_a_series_keeps_the_latest_leaves_out_what_is_late_and_begins_anew_after_a_reset():
    series = Series(capacity=10)
    for k in range(35):
        series.append(float(k), 2.0 * k)
    assert series.window(-math.inf, math.inf)[0].tolist() == list(range(25, 35))
    assert series.window(30.0, 31.0).tolist() == [[30.0, 31.0], [60.0, 62.0]]
    series.append(33.9, 0.0)
    assert series.window(33.0, math.inf).tolist() == [[33.0, 34.0], [66.0, 68.0]]
    series.append(1.0, 0.0)
    assert series.window(-math.inf, math.inf).tolist() == [[1.0], [0.0]]


def test_a_live_chart_has_a_minute_of_a_signal_at_1000_hz():
    series = world_of().series[POSITION]
    for k in range(60_001):
        series.append(0.001 * k, 0.0)
    assert series.window(0.0, 60.0).shape[1] >= 60_000


def test_signals_that_a_first_message_does_not_have_are_found_later():
    world = World(lambda message: dict.fromkeys(message.name, 0.0))
    for time, names in ((0.0, []), (0.1, ['a']), (1.0, ['a', 'b']), (2.0, ['b'])):
        message = SimpleNamespace(name=names, position=[0.0] * len(names))
        world.take(Sample('/n/joint_states', 'sensor_msgs/msg/JointState', message, time), 0.0)
        expected = [f'/n/joint_states.{name}' for name in ('ab' if time >= 1.0 else '')]
        assert world.signals() == expected


def charts_of(kind, names, presets=None):
    """Return the charts of a machine with some joints, their last values, labels and lines."""
    world = World(numeric_fields)
    world.take(described(URDF.replace('crane', kind)), 0.0)
    message = JointState(name=names, position=[0.5] * len(names), effort=[2.0] * len(names))
    state = Sample('/north/joint_states', 'sensor_msgs/msg/JointState', message, 1.0)
    world.take(state, 0.0)
    charts = machine_charts(load_presets() | (presets or {}), world)
    world.plot(line for chart in charts for line in chart.lines)
    world.take(state._replace(stamp=2.0), 0.0)
    last = {signal: series.window(2.0, 2.0)[1].tolist() for signal, series in world.series.items()}
    shown = [(chart.label, [line.label for line in chart.lines]) for chart in charts]
    return charts, last, shown


def test_charts_are_the_panels_of_a_machine_as_far_as_there_are_signals():
    charts, last, shown = charts_of('crane', ['car_joint', 'cable_joint'])
    assert shown == [
        ('north: position [m]', ['car']),
        ('north: angle [deg]', ['cable']),
        ('north: force [N]', ['motor']),
    ]
    assert charts[1].scale == pytest.approx(math.degrees(1.0))
    assert last[POSITION] == [0.5]
    # A beam more than the installed boom has, and from no start.
    beams = [f'beam_{k}_joint' for k in range(1, 6)]
    (_, _, angles) = charts_of('boom', [*beams, *(f'cylinder_{k}' for k in range(1, 6))])[2]
    assert angles == ('north: joint angle [deg]', [*'1234', 'position[beam_5_joint]'])


def test_a_chart_has_what_follows_from_several_numbers_but_not_by_parameters():
    world = World(numeric_fields)
    world.take(described(URDF.replace('crane', 'excavator')), 0.0)
    soil = WrenchStamped()
    soil.wrench.force.x, soil.wrench.force.z = 3.0, 4.0
    force = Sample('/north/soil_force', 'geometry_msgs/msg/WrenchStamped', soil, 1.0)
    world.take(force, 0.0)
    (chart,) = machine_charts(load_presets(), world)
    world.plot(chart.lines)
    world.take(force._replace(stamp=2.0), 0.0)
    assert (chart.label, chart.scale) == ('north: cylinders, soil [kN]', 1e-3)
    assert lines_of(chart, [world], 1.0)[1][-1] == 0.005


def test_charts_of_machines_without_panels_are_those_of_a_file():
    many = list('abcdefg')
    *_, shown = charts_of('unheard_of', many)
    labels = [f'position[{name}]' for name in many]
    assert shown == [('north: Positions (1)', labels[:6]), ('north: Positions (2)', labels[6:])]
    own = {'crane': [{'title': 'A', 'unit': 'N', 'signals': ['joint_states.effort[c*]']}]}
    *_, shown = charts_of('crane', ['car_joint', 'x'], own)
    assert shown == [('north: A [N]', ['effort[car_joint]'])]


def test_drawings_have_the_legend_that_their_machine_declares():
    for kind, legend in (
        ('excavator', ['>north: arrows are forces, 50 kN for 1 m, a square of the ground<']),
        ('boom', ['(90deg,#296bc7,#40ad61,#f5cc26,#d61f1f)"></div><span>355 MPa and above<']),
        ('crane', []),
        ('unheard_of', []),
    ):
        machines = [Machine('north', SimpleNamespace(name=kind), drawings={k: None}) for k in 'ab']
        found = legend_lines(machines)
        assert [text in row for text, row in zip(legend, found, strict=True)] == [True] * len(
            legend
        )
    assert legend_lines([Machine('north', SimpleNamespace(name='boom'))]) == []


def load(time, mass):
    message = SimpleNamespace(position=[0.0], inertia=SimpleNamespace(m=mass))
    return Sample('/north/load', 'geometry_msgs/msg/InertiaStamped', message, time)


def status(time, brake):
    message = SimpleNamespace(position=[0.0], brake=brake)
    return Sample('/north/status', 'longreach_msgs/msg/CraneStatus', message, time)


def test_changes_of_loads_and_brake_are_events_until_time_goes_back():
    # Flags of a recording are those of numpy.
    world = world_of(sample(0.0), load(0.0, 90.0), status(0.0, brake=np.False_))
    machine = world.machines['north']
    assert machine.flags == {'brake': False}
    assert not machine.events, 'what was so from the beginning is no event'
    for one in (load(1.0, 0.0), status(2.0, brake=np.True_), sample(2.5), load(3.0, 20.0)):
        world.take(one, 0.0)
    for late in (status(2.9, brake=False), status(2.9, brake=True), sample(2.4)):
        world.take(late, 0.0)
    expected = [(1.0, 'load released'), (2.0, 'brake closed'), (3.0, 'load attached')]
    expected.append((2.9, 'brake closed'))
    assert list(machine.events) == expected
    world.take(sample(1.5), 0.0)
    assert list(machine.events) == expected[:1]
    # After a reset, also one soon after the beginning: what is carried then is no event.
    for one in (sample(0.0), load(0.0, 0.0), load(0.05, 90.0), sample(0.05), sample(0.0)):
        world.take(one, 0.0)
    world.take(load(0.0, 0.0), 0.0)
    assert machine.time == 0.0
    assert not machine.events
    machine.estimates['tip'] = None
    world.forget()
    world.take(load(0.0, 90.0), 0.0)
    assert not machine.events
    assert not machine.estimates


def test_cameras_have_their_poses_and_fields_of_view_also_when_told_before_their_machine():
    place = SimpleNamespace(x=1.0, y=-25.0, z=2.0)
    turn = SimpleNamespace(x=0.6, y=0.0, z=0.0, w=0.8)
    pose = SimpleNamespace(
        header=SimpleNamespace(frame_id='boom/boom_base'),
        pose=SimpleNamespace(position=place, orientation=turn),
    )
    info = SimpleNamespace(width=200, height=100, k=[50.0, 0, 100, 0, 50.0, 50, 0, 0, 1])
    world = World(lambda _: {})
    world.take(Sample('/vision/left/pose', 'geometry_msgs/msg/PoseStamped', pose, None), 0.0)
    assert not world.machines
    seen = SimpleNamespace(header=SimpleNamespace(frame_id='boom/boom_base'), estimates=[])
    world.take(Sample('/vision/markers', 'longreach_msgs/msg/MarkerEstimates', seen, 1.0), 0.0)
    world.take(Sample('/vision/left/camera_info', 'sensor_msgs/msg/CameraInfo', info, 1.0), 0.0)
    machine = world.machines['vision']
    mounting = machine.mountings['vision/left']
    assert mounting.frame == 'boom/boom_base'
    assert mounting.position.tolist() == [1.0, -25.0, 2.0]
    assert mounting.rotation.tolist() == [0.8, 0.6, 0.0, 0.0]
    assert machine.lenses == {'vision/left': (pytest.approx(math.radians(90.0)), 2.0)}


def test_the_limits_of_a_chart_are_round_fit_and_rest():
    wave = np.append(np.sin(np.linspace(0.0, 7.0, 100)), math.nan)
    limits = limits_of([2.9 * wave, 0.1 * wave])
    assert limits == (-3.0, 3.0)
    assert limits_of([2.0 * wave], limits) == limits, 'they rest while they are filled'
    assert limits_of([3.5 * wave], limits) == (-4.0, 4.0)
    low, high = limits_of([0.02 * wave], limits)
    assert -0.05 < low < -0.02 < 0.02 < high < 0.05
    assert limits_of([1e-5 * wave]) == pytest.approx((-1e-5, 1e-5), rel=0.5)
    assert limits_of([1e-9 * wave]) == limits_of([0.0 * wave]), 'noise is no motion'
    for value in (0.0, 1e5, -3e-4):
        low, high = limits_of([np.full(5, value)])
        assert low < value < high
    assert limits_of([np.full(5, math.nan)], limits) == limits


def test_an_event_is_an_upright_line_in_a_chart():
    samples = [sample(0.01 * k, float(k)) for k in range(2000)]
    world = world_of(samples[0], load(0.0, 90.0), *samples, load(12.345, 0.0))
    times, values, marks = lines_of(chart_of(POSITION), [world], 10.0)
    assert (np.diff(times) > 0.0).all()
    first, second = np.flatnonzero(np.isfinite(marks)).tolist()
    assert (second - first, marks[first], marks[second]) == (1, 0.0, 1.0)
    assert times[[0, -1]].tolist() == pytest.approx([9.99, 19.99])
    assert times[first] == 12.345
    assert times[second] == pytest.approx(12.345, abs=1e-5)
    assert values[first] == 1234.0


def test_motions_of_micrometres_are_in_charts():
    world = world_of(*(sample(float(k), 1e-6 * k) for k in range(3)))
    assert lines_of(chart_of(POSITION), [world], 2.0)[1].tolist() == [0.0, 1e-6, 2e-6]


def test_a_gap_is_none_of_a_line_and_what_is_published_on_changes_holds():
    world, chart = (
        World(lambda message: message),
        Chart('', '', 1.0, (Line('/n/a.x', 'x'), Line('/n/load.m', 'm'))),
    )
    world.machines['n'] = Machine('n', time=0.0)
    world.plot([*chart.lines, *chart_of('/n/set_point.data').lines])
    for k in (*range(300), *range(400, 900)):
        world.series['/n/a.x'].append(0.01 * k, 1.0)
    for time in (0.0, 0.2, 3.0):
        world.series['/n/load.m'].append(time, time)
    for world.machines['n'].time in 0.1 * np.arange(30):
        world.take(Sample('/n/set_point', 'Float64', {'data': 2.0}, None), 0.0)
    times, values, held, _ = lines_of(chart, [world], 8.0)
    assert times[np.isnan(values)][1:] == pytest.approx([3.0], abs=0.011), 'one at the beginning'
    assert held[np.searchsorted(times, [1.0, 2.9, 3.1, 8.9])].tolist() == [0.2, 0.2, 3.0, 3.0]
    # Values before the window hold, too.
    world.present = 8.99
    times, held, _ = lines_of(chart_of('/n/set_point.data'), [world], 2.0)
    assert times.tolist() == [6.99, 8.99]
    assert held.tolist() == [2.0, 2.0]


def test_a_line_with_more_samples_hides_none_of_a_longer_one():
    world = World(lambda message: message)
    chart = Chart('', '', 1.0, (Line('/n/a.x', 'x'), Line('/n/b.x', 'x')))
    world.plot(chart.lines)
    for k in range(13):
        world.series['/n/a.x'].append(0.5 * k, float(k % 2))
    for k in range(31):
        world.series['/n/b.x'].append(0.1 * k, 0.0)
    times, values, *_ = lines_of(chart, [world], 10.0)
    assert values[np.searchsorted(times, [4.0, 4.5, 5.0, 5.5])].tolist() == [0.0, 1.0, 0.0, 1.0]


def test_charts_keep_peaks():
    """Of many samples fewer are drawn, but never without the least and the greatest."""
    values = np.sin(0.01 * np.arange(10000))
    values[[5001, 7003]] = 50.0, -70.0
    values[8000:8040] = math.nan
    world = world_of(*(sample(0.002 * k, value) for k, value in enumerate(values.tolist())))
    times, drawn, _ = lines_of(chart_of(POSITION), [world], 20.0)
    assert len(times) <= 505
    assert (np.diff(times) > 0.0).all()
    assert (np.nanmin(drawn), np.nanmax(drawn)) == (-70.0, 50.0)
    assert times[np.nanargmax(drawn)] == pytest.approx(10.002)
    assert np.isnan(drawn[(times > 16.0) & (times < 16.07)]).all()


def test_joints_that_no_sample_has_are_named():
    world = World(lambda _: {})
    for one in (sample(1.0), described(URDF.replace('car_joint', 'cra_joint'))):
        world.take(one, 0.0)
    for k in range(2 * EVENTS):
        world.take(status(1.0, brake=bool(k % 2)), 0.0)
    lines = lacking_lines(SimpleNamespace(unplaced={}), world.machines['north'])
    assert 'north: joint_states lack cra_joint' in lines[0]
    assert f'north: events before the last {EVENTS} are not shown' in lines[1]


def test_set_points_are_grey_and_others_have_colours_of_their_own():
    lines = [Line('', '', wanted=k == 1) for k in range(3)]
    first, wanted, last = Chart('', '', 1.0, tuple(lines)).colours
    assert wanted == WANTED
    assert len({first, wanted, last}) == 3
