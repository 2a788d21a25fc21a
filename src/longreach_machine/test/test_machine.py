"""Time in steps: what every machine counts with."""

import numpy as np
import pytest

from longreach_dynamics.errors import InputError, LongreachError
from longreach_machine.machine import (
    BY_SCENARIO,
    HydraulicSample,
    JointSample,
    closed_loop,
    sample_counts,
    step_count,
    step_time,
)
from longreach_machine.runs import Column, Columns, Derived, Source, sampled

STEP = 1e-3


@pytest.mark.parametrize(
    ('time', 'step', 'count'),
    [(0.0, STEP, 0), (0.3, 0.1, 3), (0.29, 0.01, 29), (123.457, STEP, 123_457), (4.1, 0.02, 205)],
)
def test_a_step_has_the_time_that_one_would_write(time, step, count):
    assert step_time(count, step) == time
    assert step_count(time, step, 'time') == count


@pytest.mark.parametrize(
    ('time', 'nearest'), [(0.0014, '0.001'), (0.0016, '0.002'), (1e-7, '0.001')]
)
def test_times_between_steps_are_refused(time, nearest):
    message = rf'^release = {time:g} s, allowed: whole steps of 0\.001 s.* {nearest} s$'
    with pytest.raises(InputError, match=message):
        step_count(time, STEP, 'release')


@pytest.mark.parametrize('time', [1e10, float('nan')])
def test_times_that_cannot_be_counted_are_refused(time):
    with pytest.raises(InputError, match=rf'^end = {time} s, allowed: up to 1e\+12 steps of 0'):
        step_count(time, STEP, 'end')


def test_samples_of_a_run():
    assert sample_counts(20.0, 5e-3, STEP, 100) == (5, 4000)
    assert sample_counts(0.3, 0.1, 0.1, 100) == (1, 3)
    # The largest table.
    assert sample_counts(2e4, 1e-2, STEP, 100) == (10, 2_000_000)


@pytest.mark.parametrize(
    ('duration', 'sample_time', 'error'),
    [
        (1.0, 0.0, r'^sample_time = 0\.0 s, allowed: whole steps of 0\.001 s$'),
        (1.0, 1.5e-3, r'^sample_time = 0\.0015 s, allowed: whole steps of 0\.001 s, such as'),
        (1.001, 5e-3, r'^duration = 1\.001 s, allowed: whole steps of 0\.005 s, such as 1 s$'),
        (
            0.0,
            5e-3,
            r'^duration = 0 s with sample_time = 0\.005 s gives 0 rows, allowed: 1 or mor',
        ),
        (2.001e4, 1e-2, r' gives 2001000 rows of 100 numbers, allowed: up to 2000000 rows; take'),
    ],
)
def test_samples_that_do_not_fit(duration, sample_time, error):
    with pytest.raises(InputError, match=error):
        sample_counts(duration, sample_time, STEP, 100)


class Counter:
    """A machine whose state counts commands; it fails after the third."""

    step = 0.1

    def initial_state(self):
        return 0

    def advance(self, state, command, time, duration):
        if state == 3:
            raise LongreachError(f'at {time:g} s')
        return state + (1 if command is BY_SCENARIO else command)

    def joint_sample(self, state, command):
        return JointSample(('a', 'b'), (state, 10 * state), (0.5, 0.25), (0.0, -state))

    def hydraulic_sample(self, state, command):
        return HydraulicSample(('c',), (1e5,), (2e5,), spool=(0.1 * state,))


def test_a_closed_loop_answers_each_instant_and_ends_with_the_machines_error():
    def answer(memory, cycle, state):
        assert state == cycle
        return (memory or 0) + 10, 1

    loop = list(closed_loop(Counter(), answer, 2, 0.1))
    assert [tuple(cycle) for cycle in loop] == [(0.0, 0, 10, 1), (0.1, 1, 20, 1), (0.2, 2, 30, 1)]
    cycles = closed_loop(Counter(), answer, 9, 0.1)
    assert [next(cycles).state for _ in range(4)] == [0, 1, 2, 3]
    with pytest.raises(LongreachError, match=r'at 0\.3 s'):
        next(cycles)


def test_the_table_of_a_run_is_what_messages_would_hold():
    b, effort = (Source('joint_states', field, 'b') for field in ('position', 'effort'))
    columns = Columns(
        (
            Column('time', 's'),
            Column('spool', '1', '', Source('hydraulics', 'spool', 'c')),
            Column('nowhere', 'm'),
            Column('b', 'rad', '', b),
            Column('sum', '', '', Derived((effort, b), lambda values: values.sum(axis=1))),
        )
    )
    table, message = sampled(Counter(), columns, 0.2)
    assert table == pytest.approx(np.array([[0, 0, 0, 0], [0.1, 0.1, 10, 9], [0.2, 0.2, 20, 18]]))
    assert message == ''
    table, message = sampled(Counter(), columns, 9.0)
    assert (len(table), message) == (4, 'at 0.3 s')
    with pytest.raises(InputError, match=r'duration = 0\.25 s, allowed: whole steps of 0\.1 s'):
        sampled(Counter(), columns, 0.25)
