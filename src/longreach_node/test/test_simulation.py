"""Pacing, lockstep and the simulation, with a node that notes what it is told."""

import pytest
from simulation_rig import CYCLE, INITIAL, SAFE, Rig, Wall

from longreach_dynamics.errors import LongreachError
from longreach_node import simulation as module
from longreach_node.diagnostics import HOLD, Incidents
from longreach_node.simulation import BACKLOG, SHORTEST_PERIOD


@pytest.fixture
def wall(monkeypatch):
    wall = Wall()
    monkeypatch.setattr(module, 'time', wall)
    return wall


# --- incidents ---------------------------------------------------------------------------------


def test_incidents_are_counted_for_good_and_recent_for_a_while():
    incidents = Incidents(('overruns', 'refusals'))
    assert incidents.recent(0.0) == ''
    assert [incidents.add('overruns', t) for t in (1.0, 2.0)] == [1, 2]
    assert incidents.add('refusals', 5.0) == 1
    assert incidents.recent(6.0) == '2 overruns, 1 refusals'
    assert incidents.recent(2.0 + HOLD + 0.1) == '1 refusals'
    assert incidents.counts == {'overruns': 2, 'refusals': 1}


# --- commands ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ('lockstep', 'stamps', 'refusal'),
    [
        (False, [3 * CYCLE], ''),
        (False, [0], ''),
        (False, [2 * CYCLE], ''),
        (False, [4 * CYCLE], 'the simulation is at 0.030000 s. Stamp a command with the time of'),
        (False, [1_795_358_721 * 10**9], 'or with 0 for now'),
        (False, [3 * CYCLE, 2 * CYCLE], 'a command for the sample of 0.030000 s was taken before'),
        # The answer to the first sample has stamp 0, too: those to later ones are not older.
        (False, [0, 2 * CYCLE], ''),
        (True, [3 * CYCLE], ''),
        (True, [2 * CYCLE], 'only the answer to the present sample counts in lockstep'),
        (True, [0], 'only the answer to the present sample counts in lockstep'),
        (True, [3 * CYCLE, 3 * CYCLE], 'this sample was answered before'),
        (True, [5 * CYCLE], 'the simulation is at 0.030000 s'),
    ],
)
def test_which_commands_are_accepted(wall, lockstep, stamps, refusal):
    simulation = Rig(wall, lockstep=lockstep).simulation
    for _ in range(3):
        simulation.go_on()
    *before, last = stamps
    assert [simulation.accept(3.0, stamp) for stamp in before] == [''] * len(before)
    reason = simulation.accept(4.0, last)
    assert reason == '' if not refusal else refusal in reason
    assert simulation.command == (4.0 if not refusal else 3.0 if before else INITIAL)


def test_a_silent_sender_is_followed_by_the_safe_command(wall):
    rig = Rig(wall, command_timeout=0.02)
    for _ in range(4):
        rig.simulation.go_on()
    # Nobody has commanded, who could fall silent.
    assert rig.simulation.command == INITIAL
    assert rig.simulation.accept(4.0, 4 * CYCLE) == ''
    for _ in range(3):
        rig.simulation.go_on()
    assert (rig.log, rig.simulation.command) == ([], 4.0)
    rig.simulation.go_on()
    assert rig.log == ['no command for 0.03 s (command_timeout = 0.02 s): -1.0 acts']
    assert rig.simulation.command == SAFE
    # The limit can be set at run time.
    rig.simulation.accept(4.0, 0)
    rig.simulation.set_speed(rig.simulation.settings.replace(command_timeout=0.0))
    for _ in range(20):
        rig.simulation.go_on()
    assert rig.simulation.command == 4.0


# --- time --------------------------------------------------------------------------------------


def test_real_time(wall):
    rig = Rig(wall, duration=0.2)
    assert (rig.samples, rig.period) == ([0], 0.01)
    rig.tick(0.0351)
    assert rig.samples == [0, 1, 2, 3]
    rig.tick(0.001)
    assert rig.samples == [0, 1, 2, 3]
    rig.tick(0.15)
    rig.tick(0.05)
    assert rig.samples == list(range(21))
    rig.node.flush.assert_called_once_with()
    rig.node.on_end.assert_called_once_with()
    assert rig.simulation.finished


def test_a_long_delay_is_dropped(wall):
    rig = Rig(wall, real_time_factor=2.0)
    rig.tick(0.99 * BACKLOG)
    assert rig.log == []
    assert rig.samples == list(range(40))
    rig.tick(1.05 * BACKLOG)
    assert rig.samples[-1] == 39
    assert rig.simulation.incidents.counts['overruns'] == 1
    assert rig.log[0].startswith('overrun 1: 0.205 s behind real time, dropped from the schedule')
    rig.tick(0.0051)
    assert rig.samples[-1] == 40


def test_samples_that_are_far_apart_are_no_delay_and_time_is_repeated(wall):
    rig = Rig(wall, real_time_factor=0.02)
    assert (rig.samples, rig.period) == ([0], 0.05)
    for _ in range(25):
        rig.tick(0.0501)
    assert (rig.samples, rig.log) == ([0, 1, 2], [])
    assert rig.node.publish_paused.call_count == 25


@pytest.mark.parametrize(('step', 'most'), [(0.05, 6), (0.0045, 25)])
def test_a_machine_that_is_too_slow_or_catches_up_slowly_ends_its_turn(wall, step, most):
    wall.step = step
    rig = Rig(wall)
    rig.tick(0.1)
    assert len(rig.samples) <= most
    assert rig.simulation.incidents.counts['overruns'] == 1


def test_as_fast_as_possible_others_get_their_turn(wall):
    wall.step = 6e-4
    rig = Rig(wall, real_time_factor=0.0)
    rig.tick()
    assert rig.samples == [0, 1, 2]
    for _ in range(250):
        rig.tick()
    rig.node.flush.assert_called_once_with()


@pytest.mark.parametrize('factor', [0.0, 1000.0])
def test_lockstep_waits_for_each_answer(wall, factor):
    rig = Rig(wall, lockstep=True, real_time_factor=factor)
    for _ in range(3):
        rig.tick(0.1)
    assert rig.samples == [0]
    assert rig.simulation.accept(2.0, 0) == ''
    rig.tick(0.1)
    assert rig.samples == [0, 1]
    assert rig.simulation.accept(3.0, 0) != ''
    assert rig.simulation.accept(3.0, CYCLE) == ''
    rig.tick(0.1)
    assert rig.simulation.state == pytest.approx(0.05)
    assert rig.period == (0.05 if factor == 0.0 else 1e-3)
    # Another state at the same time is the next sample, and the answer to the last one is late.
    rig.simulation.reset(time=False)
    assert rig.samples == [0, 1, 2, 3]
    assert rig.simulation.accept(4.0, 2 * CYCLE) == ''
    assert (rig.simulation.state, rig.simulation.command) == (0.0, INITIAL)
    assert rig.simulation.accept(4.0, 3 * CYCLE) == ''


@pytest.mark.parametrize(('sample', 'limit', 'repeated'), [(0, 6, 5), (1, 5, 1)])
def test_lockstep_ends_when_no_answer_comes(wall, sample, limit, repeated):
    rig = Rig(wall, lockstep=True, lockstep_timeout=5.0, start_timeout=1.0)
    if sample:
        rig.simulation.accept(1.0, 0)
        rig.tick(0.1)
    # A turn of 9 s counts as 0.1 s: a node that did not run did not listen either.
    for turn in (9.0, *[0.1] * (10 * limit - 2), 0.05):
        rig.tick(turn)
    assert rig.node.publish_again.call_count == repeated
    error = rf'no command on /command with the stamp 0\.0{sample}0* s within {limit} s'
    with pytest.raises(LongreachError, match=error):
        rig.tick(0.1)


def test_a_pause_is_no_lockstep_timeout(wall):
    rig = Rig(wall, lockstep=True, lockstep_timeout=0.5, start_timeout=0.0)
    rig.simulation.pause()
    assert rig.simulation.step_once() == 'the command to the sample of 0 s has not come yet'
    for _ in range(10):
        rig.tick(0.1)
    rig.simulation.resume()
    rig.tick(0.1)
    assert rig.simulation.accept(1.0, 0) == ''
    rig.tick(0.1)
    assert rig.samples == [0, 1]


def test_the_second_answer_to_a_sample_that_was_published_again_is_no_incident(wall):
    rig = Rig(wall, lockstep=True)
    for _ in range(11):
        rig.tick(0.1)
    assert rig.node.publish_again.call_count == 1
    assert [rig.simulation.accept(1.0, 0) for _ in range(2)] == ['', '']
    rig.tick(0.1)
    # Late, after the next sample.
    assert rig.simulation.accept(1.0, 0) == ''
    assert rig.samples == [0, 1]
    # To one that was published once it is.
    assert rig.simulation.accept(1.0, CYCLE) == ''
    assert rig.simulation.accept(1.0, CYCLE) != ''


def test_pause_step_resume_reset(wall):
    rig = Rig(wall)
    assert 'is paused; call ~/pause' in rig.simulation.step_once()
    rig.simulation.pause()
    for _ in range(4):
        rig.tick(0.06)
    assert (rig.samples, rig.node.publish_paused.call_count) == ([0], 4)
    assert rig.simulation.step_once() == ''
    assert rig.samples == [0, 1]
    rig.simulation.resume()
    rig.tick(0.0101)
    assert rig.samples == [0, 1, 2]
    rig.simulation.reset()
    rig.tick(0.0101)
    assert rig.samples == [0, 1, 2, 0, 1]


@pytest.mark.parametrize('lockstep', [False, True])
@pytest.mark.parametrize('factor', [0.0, 1.0])
def test_many_steps(wall, lockstep, factor):
    left = []
    rig = Rig(wall, start_paused=True, lockstep=lockstep, real_time_factor=factor)
    rig.simulation.step_many(3, lambda *rest: left.append(rest))
    for k in range(5):
        if lockstep:
            rig.simulation.accept(1.0, k * CYCLE)
        wall.step = 1e-3
        rig.tick()
    assert rig.samples == [0, 1, 2, 3]
    assert left == [(0, '')]
    assert rig.simulation.paused


@pytest.mark.parametrize('one', [True, False])
def test_a_machine_that_fails_ends_its_steps_or_its_node(wall, monkeypatch, one):
    def diverge(*_):
        raise LongreachError('x diverges')

    rig = Rig(wall, start_paused=True)
    monkeypatch.setattr(rig.simulation.machine, 'advance', diverge)
    if one:
        # Whoever asked for it is told.
        assert rig.simulation.step_once() == 'x diverges'
    else:
        rig.simulation.step_many(10, lambda *_: None)
        rig.tick()
    assert rig.simulation.quitting
    assert str(rig.simulation.error) == 'x diverges'
    # Without a request the node fails at once.
    rig.simulation.resume()
    with pytest.raises(LongreachError, match='x diverges'):
        rig.tick(0.1)


def test_no_single_step_after_the_end(wall):
    rig = Rig(wall, start_paused=True, duration=0.01)
    assert rig.simulation.step_once() == ''
    assert rig.simulation.step_once() == 'the simulation has ended'
    rig.node.on_end.assert_called_once_with()
    assert rig.simulation.step_once() == 'the simulation has ended'


def test_many_steps_do_not_wait_for_a_slow_schedule(wall):
    rig = Rig(wall, start_paused=True, real_time_factor=0.01)
    assert rig.period == 0.05
    wall.step = 5e-3
    rig.simulation.step_many(2, lambda *_: None)
    assert rig.period == SHORTEST_PERIOD
    rig.tick()
    rig.tick()
    assert (rig.samples, rig.period) == ([0, 1, 2], 0.05)


@pytest.mark.parametrize(('state', 'clock'), [(True, True), (True, False), (False, True)])
def test_equal_steps_after_a_reset(wall, state, clock):
    simulation = Rig(wall).simulation

    def seven():
        assert simulation.command == INITIAL
        assert simulation.accept(0.1, simulation.sample * CYCLE) == ''
        for _ in range(7):
            simulation.go_on()
        return simulation.state

    first = seven()
    simulation.reset(state, clock)
    assert (simulation.state, simulation.sample) == (0.0 if state else first, 0 if clock else 7)
    assert (seven() == first) == state


def test_a_process_that_ends_makes_no_more_steps(wall):
    rig = Rig(wall, step=1e-6, publish_rate=100.0)
    rig.node.is_shut_down.return_value = True
    rig.tick(0.02)
    assert rig.samples == [0]
    assert rig.simulation.state == 0.0


def test_the_speed_changes_at_run_time(wall):
    rig = Rig(wall)
    rig.tick(0.0101)
    rig.simulation.set_speed(rig.simulation.settings.replace(real_time_factor=10.0))
    assert rig.period == 1e-3
    rig.tick(0.0101)
    assert rig.samples == list(range(12))
