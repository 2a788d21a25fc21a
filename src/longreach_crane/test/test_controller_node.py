"""The controller as a node, fed sample by sample: it must answer what the library does."""

import math
from types import SimpleNamespace

import pytest
from diagnostic_msgs.msg import DiagnosticArray
from longreach_msgs.msg import CraneCommand, CraneSensors, CraneStatus
from rosgraph_msgs.msg import Clock
from std_msgs.msg import Float64, Header
from std_srvs.srv import Trigger

from longreach_crane.control import Controller, Emergency, Sample
from longreach_crane.nodes import ControllerNode
from longreach_node import clock as clock_module
from longreach_node import diagnostics, qos
from longreach_node.stamps import nanoseconds_of, stamp_of
from longreach_node.testing import bench, setting

CYCLE = 10_000_000  # [ns]
LOCKSTEP = setting(lockstep=True)
SCENARIO = """
duration: 20.0
set_points:
  - {time: 0.0, car_position: 2.0}
  - {time: 0.2, car_position: -1.0}
"""


def position(cycle):
    """A car that moves; not a solution of anything, which the controller cannot know."""
    return 0.3 * math.sin(0.05 * cycle) + 0.001 * cycle


def sample(cycle):
    return Sample(position(cycle), False, False)


class Rig:
    """A controller node, and everything around it."""

    def __init__(self, b):
        self.bench = b
        self.commands = b.listen(CraneCommand, 'command')
        self.statuses = b.listen(CraneStatus, 'status')
        self.reports = b.listen(DiagnosticArray, '/diagnostics', qos.DIAGNOSTICS)
        self.node = b.add(ControllerNode)
        self.sensors = b.publisher(CraneSensors, 'sensors')
        b.until(lambda: b.driver.count_publishers('command') == 1)
        b.until(lambda: self.node.count_subscribers('status') == 1)

    def send(self, cycle, value=None, jitter=0):
        value = sample(cycle) if value is None else value
        header = Header(stamp=stamp_of(cycle * CYCLE + jitter))
        self.sensors.publish(CraneSensors(header=header, **value._asdict()))

    def answers(self, count):
        """Wait for so many commands, and make sure that there are no more."""
        b = self.bench
        b.until(lambda: len(self.commands) >= count, f'command number {count}')
        b.until(lambda: len(self.statuses) >= count, f'status number {count}')
        b.settle(10)
        assert len(self.commands) == len(self.statuses) == count
        return [(nanoseconds_of(c.header.stamp), c.force, c.brake) for c in self.commands]

    def reset(self):
        assert self.bench.call(Trigger, 'controller/reset').success

    def by_hand(self, value):
        publisher = self.bench.publisher(Float64, 'set_point', qos.SET_POINT)
        publisher.publish(Float64(data=value))
        self.bench.settle()


@pytest.fixture
def scenario(tmp_path):
    file = tmp_path / 'scenario.yaml'
    file.write_text(SCENARIO)
    return file


@pytest.fixture
def rig():
    with bench(*LOCKSTEP) as b:
        yield Rig(b)


def cycles_of(machinery, samples, set_points=None, start=0.0):
    """Return the library's state after each cycle."""
    controller = Controller.of(machinery)
    states = [controller.initial_state(start)]
    for value, wanted in zip(samples, set_points or [0.0] * len(samples), strict=True):
        states.append(controller.cycle(states[-1], value, wanted))
    return states[1:]


def told(states, cycles):
    """Return the commands of some cycles as (stamp, force, brake)."""
    return [(cycle * CYCLE, *states[cycle].command) for cycle in cycles]


def test_status_is_the_state_of_the_same_cycle(machinery, rig):
    still = Sample(0.0, False, False)
    for cycle in range(310):
        rig.send(cycle, still)
    rig.answers(310)
    states = cycles_of(machinery, [still] * 310)
    for cycle, (message, state) in enumerate(zip(rig.statuses, states, strict=True)):
        assert message.header.stamp == stamp_of(cycle * CYCLE)
        q = (message.motor_force, message.car_position, message.car_velocity, message.angle)
        assert (*q, message.angular_velocity) == tuple(state.observer)
        assert message.steady_time == pytest.approx(0.01 * cycle)
        assert message.brake == state.command.brake
    # At rest at the set point from the first cycle on: the brake closes after 3 s.
    assert [m.brake for m in rig.statuses].index(True) == 301
    assert not any(m.emergency_mode or m.emergency_reason for m in rig.statuses)
    for emergency in Emergency:
        assert getattr(CraneStatus, f'REASON_{emergency.name}') == emergency


@pytest.mark.parametrize('gap', [1, 49])
def test_dropped_samples_are_predicted(machinery, rig, gap):
    sent = [*range(5), *range(5 + gap, 30 + gap)]
    # Distances of 6 and 14 ms are one cycle each; answers copy the stamp.
    jitter = [(-1) ** cycle * 2_000_000 for cycle in sent]
    for cycle, more in zip(sent, jitter, strict=True):
        rig.send(cycle, jitter=more)
    answers = rig.answers(len(sent))
    samples = [sample(cycle) if cycle in sent else None for cycle in range(30 + gap)]
    states = cycles_of(machinery, samples)
    wanted = zip(told(states, sent), jitter, strict=True)
    assert answers == [(stamp + more, *command) for (stamp, *command), more in wanted]
    assert [m.missed_samples for m in rig.statuses] == [0] * 5 + [gap] * 25


def test_a_stamp_in_the_far_future_ends_in_emergency_and_not_in_a_hang(rig):
    rig.send(0)
    # From simulation time to the time of day.
    rig.send(170_000_000_000)
    answers = rig.answers(2)
    assert answers[-1] == (170_000_000_000 * CYCLE, 0.0, True)
    assert rig.statuses[-1].emergency_reason == CraneStatus.REASON_SENSOR_TIMEOUT
    # As many as the field can count.
    assert rig.statuses[-1].missed_samples == 2**32 - 1


def test_what_is_no_number_never_reaches_the_observer(machinery, rig):
    bad = range(10, 15)
    for cycle in range(30):
        rig.send(cycle, Sample(math.nan, False, False) if cycle in bad else None)
    answers = rig.answers(30)
    states = cycles_of(machinery, [None if cycle in bad else sample(cycle) for cycle in range(30)])
    assert answers == told(states, range(30))
    assert all(math.isfinite(m.car_position) for m in rig.statuses)
    # "Samples that were due and did not come (or were not valid)".
    assert rig.statuses[9].missed_samples == 0
    assert rig.statuses[-1].missed_samples == 5


def test_taking_over_in_mid_run_begins_at_the_measured_position(machinery, rig):
    there = Sample(3.25, False, False)
    rig.send(1000, there)
    rig.send(1001, there)
    answers = rig.answers(2)
    states = cycles_of(machinery, [there] * 2, start=3.25)
    assert [a[1:] for a in answers] == [tuple(s.command) for s in states]
    assert [m.car_position for m in rig.statuses] == [s.observer[1] for s in states]
    assert [m.car_velocity for m in rig.statuses] == [s.observer[2] for s in states]
    assert rig.statuses[-1].missed_samples == 0


def test_the_emergency_mode_outlives_a_restart_but_not_a_reset(machinery, rig):
    for cycle in range(100):
        rig.send(cycle, Sample(6.0, False, True) if cycle == 50 else None)
    rig.send(0)
    answers = rig.answers(101)
    assert answers[-1] == (0, 0.0, True)
    assert rig.statuses[-1].emergency_reason == CraneStatus.REASON_POSITION_LIMIT
    rig.reset()
    rig.send(0)
    rig.send(1)
    states = cycles_of(machinery, [sample(0), sample(1)])
    assert rig.answers(103)[-2:] == told(states, range(2))
    assert not rig.statuses[-1].emergency_mode


def test_a_set_point_by_hand_holds_until_the_next(machinery, scenario):
    with bench(*LOCKSTEP, *setting(scenario=scenario)) as b:
        rig = Rig(b)
        rig.send(0)
        rig.answers(1)
        rig.by_hand(-4.0)
        rig.send(1)
        rig.answers(2)
        for nonsense in (math.nan, math.inf):
            rig.by_hand(nonsense)
        # The scenario's next set point does not end it.
        for cycle in range(2, 25):
            rig.send(cycle)
        rig.answers(25)
        rig.by_hand(1.5)
        rig.send(25)
        answers = rig.answers(26)
        set_points = [2.0] + [-4.0] * 24 + [1.5]
        assert [m.set_point for m in rig.statuses] == set_points
        states = cycles_of(machinery, [*map(sample, range(26))], set_points)
        assert answers == told(states, range(26))
        # A reset forgets it.
        rig.reset()
        rig.send(0)
        rig.answers(27)
        assert rig.statuses[-1].set_point == 2.0


def test_diagnostics(rig):
    b = rig.bench

    def send_and_report(cycles, value=None):
        before, wanted = len(rig.reports), cycles[-1] * CYCLE
        for cycle in cycles:
            rig.send(cycle, value)
        b.until(
            lambda: any(nanoseconds_of(r.header.stamp) == wanted for r in rig.reports[before:]),
            f'report of {wanted} ns',
        )
        (status,) = rig.reports[-1].status
        return status, {v.key: v.value for v in status.values}

    status, values = send_and_report([0])
    assert (status.level, status.message) == (diagnostics.OK, 'controlling')
    assert (status.name, status.hardware_id) == ('controller', 'controller')
    status, values = send_and_report([1, 1, 3, 2, *range(4, 101)])
    assert status.level == diagnostics.WARN
    assert values == {
        'missed': '1', 'late': '1', 'stale': '0', 'unpaired': '0', 'invalid': '0',
        'brake': 'False',
    }  # fmt: skip
    status, values = send_and_report([*range(101, 201)], Sample(6.0, False, True))
    assert status.level == diagnostics.ERROR
    assert status.message == 'emergency mode: position limit'
    assert values['brake'] == 'True'


@pytest.fixture
def wall(monkeypatch):
    """What stands for the module ``time`` in the node's clock."""
    wall = SimpleNamespace(seconds=1000.0)
    wall.monotonic = lambda: wall.seconds
    monkeypatch.setattr(clock_module, 'time', wall)
    return wall


def test_in_silence_it_predicts_and_then_brakes(machinery, wall):
    with bench() as b:
        rig = Rig(b)
        for cycle in range(3):
            rig.send(cycle)
            rig.answers(cycle + 1)
            wall.seconds += 0.01
        # The last one came 0.01 s ago. Two cycles more are not late yet.
        wall.seconds += 0.019
        assert len(rig.answers(3)) == 3
        # 20 cycles of silence, the two latest of which may still come.
        wall.seconds += 0.176
        answers = rig.answers(3 + 18)
        states = cycles_of(machinery, [sample(0), sample(1), sample(2), *[None] * 60])
        assert answers == told(states, range(21))
        assert rig.statuses[-1].missed_samples == 18
        assert not rig.statuses[-1].emergency_mode
        # One of them comes now: it is too late for it.
        rig.send(10)
        assert len(rig.answers(21)) == 21
        # The next in time ends the silence.
        rig.send(21)
        silence = [None] * 18
        states = cycles_of(machinery, [*map(sample, range(3)), *silence, sample(21), *[None] * 60])
        assert rig.answers(22) == told(states, range(22))
        wall.seconds += 0.535
        answers = rig.answers(22 + 51)
        assert answers == told(states, range(73))
        reasons = [m.emergency_reason for m in rig.statuses]
        assert reasons.index(CraneStatus.REASON_SENSOR_TIMEOUT) == 72
        assert answers[-1] == (72 * CYCLE, 0.0, True)


def test_the_end_of_the_plant_closes_the_brake_and_is_no_error(wall, monkeypatch, capfd):
    with bench() as b:
        rig = Rig(b)
        rig.send(0)
        rig.answers(1)
        monkeypatch.setattr(rig.node._topics[0], 'get_publisher_count', lambda: 0)
        wall.seconds += 0.7
        b.until(lambda: rig.commands[-1].brake, 'the brake')
        (status,) = rig.reports[-1].status
    end = 'emergency mode: sensor timeout, the publisher of samples has ended'
    assert (status.level, status.message) == (diagnostics.WARN, end)
    told = capfd.readouterr().err
    assert told.count(f'{end}; the brake stays closed until ~/reset') == 1
    assert 'ERROR' not in told


def test_a_paused_simulation_is_not_silent(wall):
    with bench('-p', 'controller:use_sim_time:=true') as b:
        rig = Rig(b)
        clock = b.publisher(Clock, '/clock', qos.CLOCK)

        def say(nanoseconds):
            heard = rig.node._watch_clock._heard
            wall.seconds += 0.4
            clock.publish(Clock(clock=stamp_of(nanoseconds)))
            b.until(lambda: rig.node._watch_clock._heard > heard, 'time on /clock')

        say(0)
        rig.send(0)
        rig.answers(1)
        for _ in range(5):
            say(0)
        assert len(rig.answers(1)) == 1
        # Time goes on without samples: they are lost.
        say(105_000_000)
        assert len(rig.answers(1 + 8)) == 9
        # The simulation has died, /clock with it: the wall's time leads to the emergency mode.
        wall.seconds += 2.0
        b.until(lambda: rig.statuses[-1].emergency_mode, 'emergency mode')
        assert rig.statuses[-1].emergency_reason == CraneStatus.REASON_SENSOR_TIMEOUT
        assert rig.commands[-1].brake


def test_in_lockstep_no_clock_is_used(wall, rig):
    rig.send(0)
    rig.answers(1)
    wall.seconds += 60.0
    assert len(rig.answers(1)) == 1
    rig.send(1)
    rig.answers(2)
    assert not rig.statuses[-1].emergency_mode
    assert rig.statuses[-1].missed_samples == 0
