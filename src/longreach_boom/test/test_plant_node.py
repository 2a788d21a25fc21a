"""The boom as a node: what it publishes, commands, loads, and what it refuses."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from geometry_msgs.msg import InertiaStamped
from longreach_msgs.msg import (
    HydraulicState,
    InclinationState,
    MarkerPositions,
    StrainState,
    ValveCommand,
)
from longreach_msgs.srv import AttachLoad
from rclpy.parameter import Parameter
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Header
from std_srvs.srv import Trigger

from longreach_boom.machine import Boom
from longreach_boom.model import Load
from longreach_boom.nodes import PlantNode
from longreach_boom.scenario import Scenario, load_scenario
from longreach_boom.sensors import Sensors, default_file, load_sensors
from longreach_boom.sensors_node import SensorTopics
from longreach_boom.simulation import simulate
from longreach_boom.state import BoomState, StateParts, flows_of
from longreach_boom.visuals import marker_positions
from longreach_node import qos
from longreach_node.stamps import nanoseconds_of, stamp_of
from longreach_node.testing import bench, setting

SAMPLE = 5_000_000  # [ns]
SCENARIO = """
duration: 0.5
pose: site
loads: [{mass: 90.0}]
release: [0.05]
valve_commands:
  - {time: 0.102, spools: [0.5, 0.0, 0.0, -0.5]}
  - {time: 0.3, spools: [-0.5, 0.2, 0.0, 0.0]}
"""
FAST = setting('plant', real_time_factor=0.0)
# Messages of sensors, with their fields.
KINDS = {
    'inclination': (InclinationState, ('root', 'tip')),
    'pressure': (HydraulicState, ('head_pressure', 'rod_pressure')),
    'encoder': (JointState, ('position',)),
    'strain': (StrainState, ('strain',)),
}


class Rig:
    """A plant, and all that listens to it."""

    def __init__(self, b):
        self.bench = b
        self.joints = b.listen(JointState, 'joint_states')
        self.hydraulics = b.listen(HydraulicState, 'hydraulics')
        self.strain = b.listen(StrainState, 'strain')
        self.markers = b.listen(MarkerPositions, 'marker_truth')
        self.commands = b.driver.create_publisher(ValveCommand, 'valve_command', 10)
        self.plant = b.add(PlantNode)
        b.until(lambda: self.hydraulics and self.joints, 'first sample')

    def send(self, *spools, sample=None):
        sample = len(self.hydraulics) - 1 if sample is None else sample
        header = Header(stamp=stamp_of(sample * SAMPLE))
        self.commands.publish(ValveCommand(header=header, spool=spools))

    def run_to_the_end(self, count):
        self.bench.until(self.plant.done.done, 'end')
        topics = (self.joints, self.hydraulics, self.strain, self.markers)
        self.bench.until(lambda: all(len(t) == count for t in topics), f'{count} of each')

    def attach(self, **fields):
        fields = {'mass': 90.0, 'position': math.nan, **fields}
        request = AttachLoad.Request(**fields)
        return self.bench.call(AttachLoad, 'plant/attach_load', request)


@pytest.fixture
def scenario(tmp_path):
    file = tmp_path / 'scenario.yaml'
    file.write_text(SCENARIO)
    return file


@pytest.fixture
def standing(tmp_path):
    """A boom that nobody drives, paused, in its first sample."""
    file = tmp_path / 'rest.yaml'
    file.write_text('duration: 1.0\npose: site\n')
    paused = setting(start_paused=True, command_timeout=0.05, scenario=file)
    with bench(*FAST, *paused) as b:
        yield Rig(b)


@pytest.fixture
def expected(boom, scenario):
    return simulate(boom, load_scenario(scenario, boom, 1e-3))


def test_flows_markers_and_loads_are_the_librarys(boom, scenario, expected):
    with bench(*FAST, *setting('plant', scenario=scenario, duration=0.5)) as b:
        changes = b.listen(InertiaStamped, 'load', qos.CHANGES)
        rig = Rig(b)
        rig.run_to_the_end(101)
    assert loads_of(changes) == [(0, 90.0), (11, 0.0)]
    machine = Boom(boom, load_scenario(scenario, boom, 1e-3))
    head, rod = flows_of(StateParts.of(expected.states, boom), machine.constants(()))
    state = machine.initial_state()
    for k in range(101):
        state = state._replace(y=expected.states[k])
        assert list(rig.hydraulics[k].head_flow) == head[k].tolist()
        assert list(rig.hydraulics[k].rod_flow) == rod[k].tolist()
        motion = marker_positions(boom, state)
        assert rig.markers[k].name == list(motion.names)
        assert [[p.x, p.y, p.z] for p in rig.markers[k].position] == motion.positions.tolist()
        assert [[p.x, p.y, p.z] for p in rig.markers[k].velocity] == motion.velocities.tolist()
        assert nanoseconds_of(rig.markers[k].header.stamp) == k * SAMPLE
    assert rig.markers[0].header.frame_id == 'boom_base'


def advance(rig, samples):
    """Let a paused plant advance."""
    for _ in range(samples):
        assert not rig.plant.simulation.step_once()


@pytest.mark.parametrize('senders', [1, 2])
def test_two_senders_are_told(standing, senders, capfd):
    b = standing.bench
    others = [b.publisher(ValveCommand, 'valve_command') for _ in range(senders - 1)]
    b.until(lambda: standing.plant._commands.get_publisher_count() == senders, 'senders')
    for _ in range(3):
        standing.send(0.1, 0.0, 0.0, 0.0)
    command = (0.1, 0.0, 0.0, 0.0)
    b.until(lambda: standing.plant.command == command, 'command')
    b.settle()
    said = ''.join(capfd.readouterr())
    assert said.count('2 senders command the boom on /valve_command') == len(others)


def loads_of(changes):
    """Return numbers of samples and masses [kg]."""
    return [(nanoseconds_of(c.header.stamp) // SAMPLE, c.inertia.m) for c in changes]


def test_loads_come_and_go(boom, standing):
    plant = standing.plant
    # A listener that comes late gets all changes.
    changes = []
    machine = Boom(boom, plant.machine.scenario)
    state = plant.state
    response = standing.attach(position=100.0)
    assert not response.success
    assert 'position = 100 m, allowed: [0, 9.0] m' in response.message
    response = standing.attach(mass=120.0, beam='beam_3', position=4.0)
    assert (response.success, response.message) == (True, '120 kg on beam_3 at 4 m from 0 s on')
    assert standing.attach().success
    state = machine.attach(machine.attach(state, Load(120.0, 2, 4.0)), Load(90.0, 3, 9.0))
    advance(standing, 3)
    state = machine.advance(state, (0.0,) * 4, 0.0, 0.015)
    np.testing.assert_array_equal(plant.state.y, state.y)
    response = standing.bench.call(Trigger, 'plant/release_load')
    assert (response.success, response.message) == (True, '210 kg released at 0.015 s')
    advance(standing, 1)
    state = machine.advance(machine.release(state), (0.0,) * 4, 0.015, 0.005)
    np.testing.assert_array_equal(plant.state.y, state.y)
    response = standing.bench.call(Trigger, 'plant/release_load')
    assert not response.success
    assert 'the boom holds nothing, allowed: a load; attach' in response.message
    standing.bench.driver.create_subscription(InertiaStamped, 'load', changes.append, qos.CHANGES)
    standing.bench.until(lambda: len(changes) == 4, 'changes of the load')
    assert loads_of(changes) == [(0, 0.0), (0, 120.0), (0, 210.0), (3, 0.0)]
    assert changes[0].header.frame_id == 'boom_base'
    assert math.isnan(changes[0].inertia.com.x)


@pytest.mark.parametrize('name', ['default', 'typical'])
def test_sensors_show_what_the_library_says(boom, scenario, expected, name):
    with bench(*FAST, *setting('plant', scenario=scenario, duration=0.5, sensors=name)) as b:
        shown = {key: b.listen(kind, f'sensors/{key}') for key, (kind, _) in KINDS.items()}
        rig = Rig(b)
        rig.run_to_the_end(101)
        last = stamp_of(100 * SAMPLE)
        b.until(lambda: all(m[-1].header.stamp == last for m in shown.values()))
    sensors = Sensors(boom, load_sensors(name), 200.0)
    state = Boom(boom, load_scenario(scenario, boom, 1e-3)).initial_state()
    counts = dict.fromkeys(KINDS, 0)
    modes = expected.columns_like('mode').astype(np.int64)
    for k in range(101):
        # The load comes off at 0.05 s.
        loads = state.loads if k <= 10 else ()
        readings = sensors.read(BoomState(expected.states[k], modes[k], loads), k)
        for key in readings.keys() & KINDS:
            message = shown[key][counts[key]]
            counts[key] += 1
            assert nanoseconds_of(message.header.stamp) == k * SAMPLE
            values = [value for field in KINDS[key][1] for value in getattr(message, field)]
            assert values == readings[key].tolist(), (key, k)
    assert {key: len(messages) for key, messages in shown.items()} == counts


def test_noise_of_the_sensors_can_be_set_at_run_time():
    given = setting(start_paused=True, sensors='typical', sensor_noise=0.0)
    with bench(*FAST, *given) as b:
        plant = b.add(PlantNode)
        b.until(lambda: plant.simulation.started, 'start')
        usual = Sensors(plant.described, load_sensors('typical'), 200.0)
        truth = plant._sensors._sensors.read(plant.state, 0)['pressure']
        plant.set_parameters([Parameter('sensor_noise', value=1.0)])
        noisy = plant._sensors._sensors.read(plant.state, 0)['pressure']
        np.testing.assert_array_equal(noisy, usual.read(plant.state, 0)['pressure'])
        plant.set_parameters([Parameter('sensor_noise', value=3.0)])
        more = plant._sensors._sensors.read(plant.state, 0)['pressure']
        # Rounded to the steps of the sensor.
        assert np.abs(more - truth).max() > 2.0 * np.abs(noisy - truth).max() > 0.0
        (result,) = plant.set_parameters([Parameter('sensor_noise', value=-1.0)])
        assert not result.successful


def test_messages_are_on_their_way_for_a_while(boom, tmp_path):
    """By the delay give or take the jitter, in their order; a reset forgets those on their way."""
    file = tmp_path / 'sensors.yaml'
    text = default_file().read_text().replace('strain: {rate: null', 'strain: {rate: 100.0')
    file.write_text(text + 'delay: 0.05\njitter: 0.02\n')
    settings = SimpleNamespace(sensors=str(file), publish_rate=200.0)
    came, strains = [], []
    now, deaf = [0], []

    def take(message):
        if isinstance(message, StrainState):
            strains.append(now[0])
        came.append((now[0], round(200.0 * nanoseconds_of(message.header.stamp) / 1e9)))

    node = SimpleNamespace(
        add_output=lambda kind, *_: SimpleNamespace(publish=take, kind=kind),
        is_needed=lambda output: output.kind not in deaf,
    )
    topics = SensorTopics(node, boom, settings, friction=True)
    state = Boom(boom, Scenario(duration=1.0, pose='site')).initial_state()

    def run(first, last):
        for now[0] in range(first, last):
            header = Header(stamp=stamp_of(now[0] * 5_000_000))
            topics.publish(state, now[0], header)

    run(0, 100)
    arrived, read = np.array(came).T
    assert (np.diff(read) >= 0).all()
    waited = arrived - read
    assert waited.min() < 9 < 11 < waited.max()
    assert waited.min() >= 6
    assert waited.max() <= 14
    before = list(came)
    came.clear()
    run(0, 100)
    assert came == before
    # Whoever else listens.
    first = strains[: len(strains) // 2]
    strains.clear()
    deaf += [HydraulicState, JointState, InclinationState, Imu]
    run(0, 100)
    assert strains == first
