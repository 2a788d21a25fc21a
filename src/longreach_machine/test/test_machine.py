"""Time in steps: what every machine counts with."""

import pytest

from longreach_dynamics.errors import InputError
from longreach_machine.machine import (
    JointSample,
    closed_loop,
    sample_counts,
    step_count,
    step_time,
)

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

    def initial_state(self):
        return 0

    def advance(self, state, command, time, duration):
        if state == 3:
            raise ArithmeticError(f'at {time:g} s')
        return state + command

    def joint_sample(self, state, command):
        return JointSample((), (), (), ())


def test_a_closed_loop_answers_each_instant_and_ends_with_the_machines_error():
    def answer(memory, cycle, state):
        assert state == cycle
        return (memory or 0) + 10, 1

    loop = list(closed_loop(Counter(), answer, 2, 0.1))
    assert [tuple(cycle) for cycle in loop] == [(0.0, 0, 10, 1), (0.1, 1, 20, 1), (0.2, 2, 30, 1)]
    cycles = closed_loop(Counter(), answer, 9, 0.1)
    assert [next(cycles).state for _ in range(4)] == [0, 1, 2, 3]
    with pytest.raises(ArithmeticError, match=r'at 0\.3 s'):
        next(cycles)
