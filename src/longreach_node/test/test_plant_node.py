"""The plant node with a toy machine: a number that grows by its command in every second."""

import time
from types import SimpleNamespace
from typing import Any

import pytest
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import Vector3Stamped
from rclpy.node import Node
from rclpy.parameter import Parameter
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from simulation_rig import CYCLE, SAFE, Integrator
from std_msgs.msg import Header
from std_srvs.srv import Trigger

from longreach_dynamics.errors import InputError, LongreachError
from longreach_node import diagnostics, plant_node, qos
from longreach_node.graph import FinishBarrier, duplicates
from longreach_node.plant_node import PlantNode
from longreach_node.simulator_parameters import (
    CycleParameters,
    DrawnParameters,
    SimulatorParameters,
)
from longreach_node.stamps import nanoseconds_of, stamp_of
from longreach_node.testing import bench, setting


class Remembering(Integrator):
    def __init__(self):
        self.calls = []

    def advance(self, state, command, time_, duration):
        self.calls.append((command, time_, duration))
        return super().advance(state, command, time_, duration)


class ToySpec:
    """What a plant asks of its machine's declaration."""

    name, root_frame, by_hand, loads = 'toy', 'world', 'toy:=false', ''

    def load(self, file, options):
        return None

    def rest(self, parameters):
        return None

    def describe(self, parameters, prefix):
        return ''


class Toy(PlantNode[float, float]):
    """Answers come on ``command`` as the x of a vector."""

    spec: Any = ToySpec()
    settings_type = DrawnParameters
    command_type, command_topic = Vector3Stamped, 'command'
    machine: Remembering

    def make_machine(self, scenario, settings):
        return Remembering()

    def safe_command(self):
        return SAFE

    first_command = safe_command

    def add_topics(self, settings):
        self._out = self.create_publisher(Vector3Stamped, 'sample', qos.STREAM)

    def answered(self):
        return [self._out]

    def waits(self, scenario):
        return True

    def publish_own(self, header):
        message = Vector3Stamped(header=header)
        message.vector.x = self.state
        self._out.publish(message)

    def command_of(self, message):
        return message.vector.x


class World:
    """The other side of the loop: hears samples, and answers them when told to."""

    def __init__(self, b, answer=True):
        self.bench = b
        self.answers = answer
        self.force = 1.0
        self.samples = []
        self.commands = b.driver.create_publisher(Vector3Stamped, 'command', qos.STREAM)
        b.driver.create_subscription(Vector3Stamped, 'sample', self._on_sample, qos.STREAM)
        self.clock = b.listen(Clock, '/clock', qos.CLOCK)
        self.joints = b.listen(JointState, 'joint_states')
        self.toy = b.add(Toy)

    def _on_sample(self, message):
        nanoseconds = nanoseconds_of(message.header.stamp)
        self.samples.append((nanoseconds, message.vector.x))
        if self.answers:
            self.send(self.force, nanoseconds)

    def send(self, force, nanoseconds):
        message = Vector3Stamped(header=Header(stamp=stamp_of(nanoseconds)))
        message.vector.x = force
        self.commands.publish(message)

    @property
    def cycles(self):
        return [nanoseconds // CYCLE for nanoseconds, _ in self.samples]

    def service(self, name):
        return self.bench.call(Trigger, f'plant/{name}')

    def heard(self, count):
        self.bench.until(lambda: len(self.samples) >= count, f'sample number {count}')


LOCKSTEP = setting('plant', lockstep=True, real_time_factor=0.0)
FREE = setting('plant', real_time_factor=0.0)


# --- parameters --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ('values', 'error'),
    [
        ({'publish_rate': 30.0}, r'1 / \(publish_rate step\) = 3.33333, allowed: whole numbers'),
        ({'real_time_factor': 1e-300}, r'real_time_factor = 1e-300, allowed: 0, or'),
        (
            {'step': 1e-9},
            r'1 / \(publish_rate step\) = 1e\+07, allowed: whole numbers from 1 to 10000',
        ),
        ({'duration': 0.005}, r'duration times publish_rate = 0.5, allowed: whole numbers'),
        ({'duration': 1e308}, r'duration times publish_rate = inf, allowed: whole numbers'),
    ],
)
def test_refusals(values, error):
    with pytest.raises(InputError, match=error):
        SimulatorParameters(**values)


def test_samples_that_are_no_control_cycles_are_refused():
    error = r'publish_rate = 30\.0 Hz, allowed with .* 0\.01 s .*: 100 Hz, or 0'
    with pytest.raises(InputError, match=error):
        CycleParameters(publish_rate=30.0).following(0.01)
    same = CycleParameters(publish_rate=100.0, step=0.002).following(0.01)
    assert (same.step, CycleParameters().following(0.01).publish_rate) == (0.002, 100.0)


def test_steps_per_sample():
    assert SimulatorParameters().steps_per_sample == 1
    assert SimulatorParameters(step=0.001, publish_rate=50.0).steps_per_sample == 20
    # 1 / (3 * (1 / 3)) is not exactly 1 in floating point.
    assert SimulatorParameters(step=1.0 / 3.0, publish_rate=3.0).steps_per_sample == 1
    # One less digit than a double has is still a whole number of cycles.
    assert SimulatorParameters(duration=0.57).duration == 0.57


# --- lockstep ----------------------------------------------------------------------------------


def test_lockstep_counts_steps_and_ends():
    with bench(*LOCKSTEP, *setting('plant', step=0.0025, duration=0.5)) as b:
        world = World(b)
        b.until(world.toy.done.done, 'end')
        b.until(lambda: len(world.samples) == 51 and len(world.joints) == 51)
        b.until(lambda: world.clock and nanoseconds_of(world.clock[-1].clock) == 50 * CYCLE)
        calls = world.toy.machine.calls
    times = [nanoseconds_of(message.clock) for message in world.clock]
    assert times == sorted(times)
    assert {t % CYCLE for t in times} == {0}
    assert world.cycles == list(range(51))
    assert [joint.header.stamp for joint in world.joints] == [
        stamp_of(nanoseconds) for nanoseconds, _ in world.samples
    ]
    assert world.joints[-1].header.frame_id == 'world'
    # Four steps a sample, each with the answer to the sample before and a time without rounding.
    assert len(calls) == 200
    assert calls == [(1.0, round(k * 0.0025, 12), 0.0025) for k in range(200)]
    assert world.samples[-1][1] == pytest.approx(0.5)


@pytest.mark.parametrize('missing', ['subscriber of /sample', 'publisher of /command'])
def test_lockstep_does_not_begin_alone(missing):
    with bench(*LOCKSTEP, *setting('plant', start_timeout=0.1)) as b:
        if missing.startswith('publisher'):
            b.listen(Vector3Stamped, 'sample')
        toy = b.add(Toy)
        with pytest.raises(
            LongreachError,
            match=f'lockstep cannot begin: after .* s there is no {missing}. Start the controller',
        ):
            b.until(lambda: False)
        assert toy.sample == 0
        assert toy.machine.calls == []


def test_it_waits_for_the_recorder():
    with bench(*LOCKSTEP, *setting('plant', listeners=1, duration=0.05)) as b:
        world = World(b)
        b.settle()
        # joint_states has one listener, /diagnostics and the second one of samples are missing.
        assert world.samples == []
        diagnosed = b.listen(DiagnosticArray, '/diagnostics', qos.DIAGNOSTICS)
        b.settle()
        assert world.samples == []
        recorded = b.listen(Vector3Stamped, 'sample')
        b.until(lambda: len(recorded) == 6 and len(diagnosed) == 1)
        assert world.cycles == list(range(6))


# --- free running ------------------------------------------------------------------------------


@pytest.mark.parametrize('factor', [0.0, 50.0])
def test_it_waits_for_watchers_at_both_ends(factor):
    with bench(*setting('plant', duration=0.5, real_time_factor=factor)) as b:
        world = World(b, answer=False)
        world.toy.watchers = [(world.toy._out, 'watcher')]
        b.settle()
        # The driver listens, too, but is somebody else.
        assert not world.samples
        watcher = b.add(lambda: Node('watcher'))
        seen = []
        watcher.create_subscription(Vector3Stamped, 'sample', seen.append, qos.STREAM)
        b.until(lambda: len(seen) == 51, 'all samples')
        b.settle()
        assert not world.toy.done.done()
        assert world.toy.simulation.incidents.counts['overruns'] == 0
        b.remove(watcher)
        b.until(world.toy.done.done, 'the end')
        assert world.cycles == list(range(51))


def test_without_lockstep_it_starts_alone_after_a_while():
    with bench(
        *FREE, *setting('plant', start_timeout=0.05, duration=0.3, command_timeout=0.0)
    ) as b:
        toy = b.add(Toy)
        b.until(toy.done.done, 'end')
        assert toy.sample == 30
        assert toy.state == pytest.approx(0.3 * SAFE)


# --- services ----------------------------------------------------------------------------------


def test_pause_step_resume_reset():
    with bench(*LOCKSTEP) as b:
        world = World(b)
        toy = world.toy
        world.heard(3)
        assert not world.service('step').success
        assert world.service('pause').success
        b.settle()
        here, ticks = toy.sample, len(world.clock)
        # Time stands still, and is repeated for those who follow it.
        b.until(lambda: len(world.clock) >= ticks + 3, 'repeated /clock')
        assert world.clock[-1].clock == stamp_of(here * CYCLE)
        assert world.service('step').message == f'at {toy.time:g} s'
        assert world.service('reset').success
        assert world.service('resume').success
        b.until(lambda: len(world.samples) >= here + 6, 'samples after reset')
        assert world.cycles[: here + 6] == [*range(here + 2), 0, 1, 2, 3]


def test_after_the_end_time_goes_on_by_a_reset_only():
    with bench(*FREE, *setting('plant', duration=0.05, start_timeout=0.0, companions=1)) as b:
        world = World(b, answer=False)
        b.until(lambda: world.toy.simulation.finished, 'the end')
        answers = [world.service(name) for name in ('pause', 'resume', 'step')]
        assert {answer.message for answer in answers} == {'the simulation has ended'}
        assert not any(answer.success for answer in answers)
        assert world.service('reset').success
        b.until(lambda: world.toy.simulation.finished, 'the end once more')


# --- nothing silent ----------------------------------------------------------------------------


def test_the_plant_makes_simulation_time_itself():
    # Its timers must not wait for the clock that it publishes.
    with bench(*setting('plant', duration=0.1, use_sim_time=True)) as b:
        world = World(b)
        b.until(world.toy.done.done, 'end')
        b.until(lambda: len(world.samples) == 11)


def test_a_command_from_another_time_is_reported_for_a_while(monkeypatch, capfd):
    stamp = 1_795_358_721 * 10**9
    with bench(*setting('plant', start_paused=True)) as b:
        world = World(b, answer=False)
        reports = b.listen(DiagnosticArray, '/diagnostics', qos.DIAGNOSTICS)
        world.heard(1)
        for _ in range(3):
            world.send(9.0, stamp)
        b.until(lambda: world.toy.simulation.incidents.counts['ignored commands'] == 3, 'commands')
        for _ in range(100):
            world.toy.simulation.step_once()
        b.until(lambda: len(reports) == 2, 'a report')
        assert reports[-1].status[0].level == diagnostics.WARN
        assert reports[-1].status[0].message == '3 ignored commands'
        monkeypatch.setattr(diagnostics, 'HOLD', 0.0)
        for _ in range(100):
            world.toy.simulation.step_once()
        b.until(lambda: len(reports) == 3, 'a report')
        assert reports[-1].status[0].level == diagnostics.OK
        assert reports[-1].status[0].message == 'running'
        values = {value.key: value.value for value in reports[-1].status[0].values}
        assert values['ignored commands'] == '3'
    # Throttled: three came within a second.
    said = ''.join(capfd.readouterr())
    assert said.count('command on /command ignored (1 so far): its stamp is 1795358721') == 1


def test_a_second_publisher_of_the_clock_is_named(monkeypatch, capfd):
    monkeypatch.setattr(plant_node, '_GRAPH_PERIOD', 0.02)
    with bench(*setting('plant', publish_rate=50.0, step=0.02)) as b:
        world = World(b)
        reports = b.listen(DiagnosticArray, '/diagnostics', qos.DIAGNOSTICS)
        world.heard(2)
        other = b.add(lambda: Node('other', namespace='crane'))
        other.create_publisher(Clock, '/clock', qos.CLOCK)
        text = '/clock is also published by /crane/other, allowed: one node of a graph'
        b.until(lambda: reports and text in reports[-1].status[0].message, 'report')
        assert reports[-1].status[0].level == diagnostics.WARN
        # A plant without a clock does not care.
        assert duplicates(world.toy, '') == ''
        b.remove(other)
        b.until(lambda: reports[-1].status[0].level == diagnostics.OK, 'end of the warning')
    assert ''.join(capfd.readouterr()).count(text) == 1


def test_two_plants_of_one_name_are_reported_by_both(capfd):
    with bench(*setting('plant', start_paused=True, start_timeout=0.0, publish_clock=False)) as b:
        first, second = b.add(Toy), b.add(Toy)
        b.until(lambda: first._duplicates and second._duplicates, 'warnings')
    said = ''.join(capfd.readouterr())
    assert said.count('another node has the name /plant; start it in its own namespace') == 2


def test_it_says_what_it_runs_and_waits_for(capfd):
    with bench(*LOCKSTEP, *setting('plant', duration=0.05)) as b:
        b.listen(Vector3Stamped, 'sample')
        toy = b.add(Toy)
        begun = time.monotonic()
        b.until(lambda: 'publisher' in toy._start._reported, 'what is missing')
        # At once, not only when the patience of 10 s ends.
        assert not toy.simulation.started
        assert time.monotonic() - begun < toy.settings.start_timeout
        other = b.driver.create_publisher(Vector3Stamped, 'command', qos.STREAM)
        b.until(lambda: toy.simulation.started, 'start')
        b.driver.destroy_publisher(other)
    said = ''.join(capfd.readouterr())
    assert (
        '[plant]: Remembering, step 0.01 s, 100 samples/s, real_time_factor 0 (as fast as'
        ' possible), lockstep, until 0.05 s' in said
    )
    assert 'waiting for a publisher of /command, for 10 s at most (start_timeout)' in said
    assert 'started after' in said


# --- parameters at run time --------------------------------------------------------------------


def test_parameters_at_run_time():
    with bench(*setting('plant', start_paused=True)) as b:
        toy = World(b).toy
        before = toy.settings
        assert toy.set_parameters([Parameter('command_timeout', value=0.05)])[0].successful
        assert toy.simulation.settings == before.replace(command_timeout=0.05)


def test_a_message_without_subscribers_is_not_made():
    made = []
    with bench(*setting('plant', start_paused=True, start_timeout=0.0)) as b:
        toy = b.add(Toy)
        toy.publish_joints = lambda _: made.append(1)
        b.until(lambda: toy.simulation.started, 'start')
        assert not made
        b.listen(JointState, 'joint_states')
        b.until(lambda: toy.is_needed(toy._joints), 'a subscriber')
        assert toy.simulation.step_once() == ''
        assert made


def test_it_ends_when_the_last_response_is_sent():
    with bench(*setting('plant', start_paused=True, start_timeout=0.0)) as b:
        toy = b.add(Toy)
        toy.standard = SimpleNamespace(answering=1)
        toy.simulation.quit()
        b.settle()
        assert not toy.done.done()
        toy.standard.answering = 0
        b.until(toy.done.done, 'end')


@pytest.mark.slow
def test_what_is_kept_for_late_listeners_has_no_gap_in_real_time():
    with bench(*setting('plant', start_paused=True, real_time_factor=0.0)) as b:
        toy = b.add(Toy)
        b.until(lambda: toy.simulation.started, 'start')
        assert toy.set_parameters([Parameter('real_time_factor', value=1.0)])[0].successful
        assert toy.simulation.step_once() == ''
        late = b.listen(JointState, 'joint_states', qos.LATCHED_STREAM)
        b.until(lambda: len(late) == 2, 'both samples')


# --- several simulations -----------------------------------------------------------------------


def test_each_waits_for_the_others_however_late_they_come():
    with bench() as b:
        first = FinishBarrier(b.add(lambda: Node('plant', namespace='first')), 2)
        second = FinishBarrier(b.add(lambda: Node('plant', namespace='second')), 2)
        assert (first.missing(), second.missing()) == (2, 2)
        first.arrive()
        # Its own end does not count, nor does an end that is published twice.
        first.arrive()
        b.until(lambda: second.missing() == 1, 'word of the first')
        b.settle()
        assert first.missing() == 2
        second.arrive()
        third = FinishBarrier(b.add(lambda: Node('plant', namespace='third')), 2)
        b.until(lambda: third.missing() == 0, 'word of those that finished before')
        assert first.missing() == 1
        third.arrive()
        b.until(lambda: first.missing() == second.missing() == 0, 'word of the third')
