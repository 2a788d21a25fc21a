"""What the nodes of a machine publish is the library's run to the last bit, in every machine."""

from __future__ import annotations

import importlib
from importlib.metadata import entry_points

import numpy as np
import pytest
from sensor_msgs.msg import JointState, Joy

from longreach_dynamics.parameters import field_types
from longreach_machine import MACHINE_GROUP
from longreach_machine.machine import step_time
from longreach_machine.runs import compare_runs
from longreach_machine.teleoperation import OperatorState, Order
from longreach_node import qos
from longreach_node.stamps import nanoseconds_of
from longreach_node.testing import bench, setting
from longreach_tools.signals import read_run
from longreach_tools.testing import write_bag

pytest.importorskip('rosbags.rosbag2')
pytestmark = pytest.mark.usefixtures('patient')

# Into the brake by the rule, out of it, and beyond the limit.
CRANE = """
set_points: [{time: 6.0, car_position: 4.6}]
disturbances: [{time: 8.0, duration: 1.0, force: 150.0}, {time: 8.5, duration: 1.0, force: 200.0}]
"""
# Another machine with another cycle.
OTHER = """
crane: {car_mass: 20.0, cable_length: 3.0, maximum_position: 3.0}
controller: {sample_time: 0.02, output: next_cycle}
"""
# Loads, valves and forces that change within a sample.
LOADED = """
pose: site
loads: [{mass: 90.0}]
release: [0.052]
forces: [{start: 0.0, end: 0.202, z: -500.0}]
gusts: [{start: 0.0, end: 1.0, speed: 15.0}]
valve_commands:
  - {time: 0.102, spools: [0.5, 0.0, 0.0, -0.5]}
  - {time: 0.3, spools: [-0.5, 0.2, 0.0, 0.0]}
"""
WAVE = """
pose: site
loads: [{mass: 90.0}]
release: [0.102]
trajectory:
  - {time: 0.1, angles_deg: [70, -50, -35, -30]}
  - {time: 1.4, angles_deg: [69.5, -49, -34, -28]}
"""
# Oil, a cylinder without oil, soil.
LOOSE = """
pose: dig
loose: [arm]
valve_commands:
  - {time: 0.0, spools: [0.0, 0.0, 1.0]}
  - {time: 0.303, spools: [0.4, 0.0, -0.5]}
"""
TERRAIN = 'pose: dig\ndepth: terrain\nvalve_commands: [{time: 0.0, spools: [0.0, 0.0, 1.0]}]\n'
SWING = """
straight: true
trajectory: [{time: 0.0, angles_deg: [40.0, -30.0]}, {time: 0.4, angles_deg: [55.0, -50.0]}]
"""
RIGID = {'output': 'next_cycle', 'brake': 'rigid'}
AXES, RATES = [0.5, -0.8, 0.0, 0.0, 0.6], (0.15, 0.1, -0.2)
LINEAR = {'matrices': 'as_printed', 'model': 'linear'}


@pytest.mark.slow_after(8)
@pytest.mark.parametrize(
    ('machine', 'scenario', 'duration', 'controlled', 'options', 'file', 'column', 'least'),
    [
        ('boom', LOADED, 0.5, False, {}, '', 'piston_1', 1e-3),
        ('boom', WAVE, 1.5, True, {}, '', 'spool_4', 0.1),
        ('crane', CRANE, 12.0, True, {}, '', 'emergency', 1.0),
        ('excavator', LOOSE, 0.6, False, {'sample_time': 0.01}, '', 'soil_force', 1e3),
        ('excavator', TERRAIN, 1.0, False, {'sample_time': 0.02}, '', 'bucket_mass', 100.0),
        ('harvester', 'tip', 3.0, True, {'sensors': 'typical'}, '', 'q_stick', 0.05),
        ('links', SWING, 0.4, True, {}, '', 'motor_1', 0.2),
        ('links', SWING, 0.4, False, {}, '', 'motor_1', 0.2),
        ('harvester', 'sine', 3.0, True, {}, '', 'q_stick', 0.05),
        ('harvester', 'tip', 3.0, True, {}, '', 'q_stick', 0.05),
        ('crane', CRANE, 12.0, True, RIGID, '', 'emergency', 1.0),
        ('crane', CRANE, 12.0, True, LINEAR, '', 'emergency', 1.0),
        ('crane', CRANE, 8.0, True, {}, OTHER, 'car_position', 1.0),
    ],
)
def test_nodes_publish_the_librarys_run(
    tmp_path, machine, scenario, duration, controlled, options, file, column, least
):
    """The column moves by ``least`` or more: what is compared is worth it."""
    spec = entry_points(group=MACHINE_GROUP)[machine].load()
    given, own = tmp_path / 'scenario.yaml', tmp_path / 'machine.yaml'
    own.write_text(f'base: {spec.default_file()}\n{file}')
    if '\n' in scenario:
        given.write_text(f'duration: {duration}\n{scenario}')
    else:
        given = spec.find_scenario(scenario)
    chosen = spec.options(**options)
    parameters = spec.load(own, chosen)
    known = spec.load_scenario(given, parameters, chosen).replace(duration=duration)
    expected = spec.simulate(parameters, known, chosen)
    columns = spec.run_columns(parameters, chosen)
    topics = {f'/{source.topic}' for column in columns for source in column.sources}
    modules = ('controller', 'plant') if controlled else ('plant',)
    kinds = [
        getattr(importlib.import_module(f'longreach_{machine}.nodes'), f'{name.title()}Node')
        for name in modules
    ]
    plant_knows = field_types(kinds[-1].settings_type)
    words = setting(*modules, file=own, scenario=given, lockstep=controlled)
    words += setting('plant', real_time_factor=0.0, duration=duration)
    for name, value in options.items():
        if name == 'sample_time':
            words += setting('plant', publish_rate=1.0 / value)
        else:
            words += setting('plant' if name in plant_knows else 'controller', **{name: value})
    if 'sensors' in options:
        words += setting('controller', sensors=True)
    with bench(*words) as b:
        nodes = [b.add(kind) for kind in kinds]
        # Kept by their publishers from the first one on.
        heard = {
            one.topic_name: b.listen(one.msg_type, one.topic_name, qos.LATCHED_STREAM)
            for node in nodes
            for one in node.publishers
            if one.topic_name in topics
        }
        b.until(nodes[-1].done.done, 'end')
        rows = len(expected.table)
        b.until(lambda: {len(one) for one in heard.values()} == {rows}, f'{rows} of each')
    assert {one[0].header.frame_id for one in heard.values()} == {spec.root_frame}
    messages = [
        (topic[1:], nanoseconds_of(message.header.stamp), message)
        for topic, several in heard.items()
        for message in several
    ]
    bag = write_bag(tmp_path / 'bag', machine, messages)
    recorded = read_run(spec, bag, machine, parameters, columns)
    differences = compare_runs(recorded, expected)
    assert differences.pop('samples_compared') == rows
    # Put together anew from joint angles, in another order than the library's.
    tips = [name for name in differences if machine == 'boom' and name.startswith('tip_')]
    assert max((differences.pop(name) for name in tips), default=0.0) < 1e-13
    assert set(differences.values()) == {0.0}
    assert np.ptp(recorded.column(column)) >= least


@pytest.mark.parametrize(
    ('machine', 'control'),
    [('excavator', 'joints'), ('harvester', 'joints'), ('harvester', 'tip')],
)
def test_an_operator_in_lockstep_is_the_librarys_closed_loop(tmp_path, machine, control):
    """By sticks, or velocities of joints, in an order that does not grow old."""

    def of(name):
        return importlib.import_module(f'longreach_{machine}.{name}')

    spec, period = entry_points(group=MACHINE_GROUP)[machine].load(), 0.01
    teleoperation, file = of('teleoperation'), tmp_path / 'teleoperation.yaml'
    installed = spec.default_file().with_name('teleoperation.yaml').read_text()
    file.write_text(installed.replace('timeout: 0.5', 'timeout: 60.0'))
    words = setting('operator', teleoperation=file, control=control)
    words += setting('plant', real_time_factor=0.0, lockstep=True, duration=0.5)
    with bench(*words, *setting('plant', publish_rate=1.0 / period)) as b:
        operator = b.add(of('nodes').OperatorNode)
        # The sample of time 0 is not answered before a stick has moved; the plant repeats it.
        plant = b.add(of('nodes').PlantNode)
        if machine == 'excavator':
            publisher = b.publisher(JointState, 'joint_velocity', qos.SET_POINT)
            publisher.publish(JointState(velocity=RATES))
        else:
            b.publisher(Joy, 'joy', qos.SET_POINT).publish(Joy(axes=AXES))
        b.until(lambda: operator._state.engaged, 'order')
        b.until(plant.done.done, 'end')
    options = spec.options()
    parameters = spec.load(None, options)
    seat = teleoperation.Teleoperation.of(parameters, control, file)
    # A message of sticks has numbers of four bytes.
    sticks = np.array(AXES, dtype=np.float32).tolist()
    by_rates = machine == 'excavator'
    order = Order(rates=RATES) if by_rates else seat.order_of_sticks(sticks)
    levers = seat.take(OperatorState(), order, 0.0)
    simulated, _, _ = spec.cosimulation(parameters, spec.rest(parameters), options)
    state, parts = simulated.initial_state(), len(teleoperation.Measurement._fields) - 1
    for k in range(50):
        y = (state.y[3 * i : 3 * i + 3] for i in range(parts))
        measured = teleoperation.Measurement(k * 10_000_000 * 1e-9, *y)
        levers, command = seat.cycle(levers, measured, 0.0)
        state = simulated.advance(state, command, step_time(k, period), period)
    np.testing.assert_array_equal(plant.state.y, state.y)
    assert np.abs(state.y[:3] - simulated.initial_state().y[:3]).min() > 1e-3
