"""The digital controller by cycles; with zeros as matrices and V = 1 it puts out the set point."""

import dataclasses
import math

import numpy as np
import pytest

from longreach_crane.control import Controller, Emergency, Sample, sense
from longreach_crane.design import ControllerMatrices

CENTRE = Sample(0.0, False, False)
BEYOND = Sample(5.5, False, True)
DIRECT = ControllerMatrices(np.zeros((5, 5)), np.zeros(5), np.zeros(5), np.zeros(5), 1.0)


def controller(machinery, diagnosis=True, **changes):
    parameters = machinery.controller.replace(**changes)
    return Controller(machinery.crane, parameters, DIRECT, diagnosis)


def run(control, set_points, sample=CENTRE, state=None):
    """Return the state after each cycle."""
    states = []
    state = control.initial_state() if state is None else state
    for set_point in set_points:
        state = control.cycle(state, sample, set_point)
        states.append(state)
    return states


def first_braked(states):
    return next((i for i, state in enumerate(states) if state.command.brake), None)


@pytest.mark.parametrize(
    ('steady_time', 'sample_time', 'closes'), [(0.0, 0.01, 1), (0.025, 0.01, 3), (0.3, 0.1, 4)]
)
def test_steady_time_in_cycles(steady_time, sample_time, closes, machinery):
    control = controller(machinery, steady_time=steady_time, sample_time=sample_time)
    assert first_braked(run(control, [0.0] * 10)) == closes


@pytest.mark.parametrize('force', [0.01, -0.01, 0.5])
def test_a_force_that_is_not_below_the_condition_starts_the_time_anew(force, machinery):
    states = run(controller(machinery), [0.0] * 301 + [force] + [0.0] * 303)
    assert states[301].steady_cycles == 0
    assert first_braked(states) == 302 + 301


@pytest.mark.parametrize('output', ['same_cycle', 'next_cycle'])
@pytest.mark.parametrize('missing', [None, Sample(math.nan, False, False)])
def test_without_a_sample_the_observer_feeds_on_its_prediction(output, missing, machinery):
    control = Controller.of(
        machinery.replace(controller=machinery.controller.replace(output=output))
    )
    state = run(control, [1.0] * 50, Sample(0.3, False, False))[-1]
    without = control.cycle(state, missing, 1.0)
    fed = control.cycle(state, Sample(float(state.observer[1]), False, False), 1.0)
    assert np.array_equal(without.observer, fed.observer)
    assert without.command == fed.command
    assert (without.silent_cycles, fed.silent_cycles) == (1, 0)
    assert without.emergency is Emergency.NONE


def test_the_first_reason_for_an_emergency_stays(machinery):
    control = controller(machinery)
    state = control.cycle(control.initial_state(), BEYOND, 0.0)
    assert run(control, [0.0] * 60, None, state)[-1].emergency is Emergency.POSITION_LIMIT


@pytest.mark.parametrize(
    ('position', 'below', 'above'),
    [
        (5.0, False, False),
        (math.nextafter(5.0, 6.0), False, True),
        (-5.0, False, False),
        (math.nextafter(-5.0, -6.0), True, False),
        (math.nan, False, False),
    ],
)
def test_switches_close_strictly_beyond_the_limits(position, below, above, crane):
    sample = sense(position, crane)
    assert sample[1:] == (below, above)
    assert sample.is_valid == math.isfinite(position)
    shifted = crane.replace(minimum_position=6.0, maximum_position=8.0)
    assert sense(position, shifted)[1:] == (math.isfinite(position), False)


@pytest.mark.parametrize(
    ('sample', 'emergency'),
    [
        (Sample(5.0, False, False), Emergency.NONE),
        (Sample(0.0, True, False), Emergency.POSITION_LIMIT),
        (Sample(math.nan, False, True), Emergency.POSITION_LIMIT),
        (Sample(-5.1, False, False), Emergency.POSITION_LIMIT),
        (Sample(5.1, False, False), Emergency.POSITION_LIMIT),
        (Sample(math.nan, False, False), Emergency.NONE),
    ],
)
def test_a_switch_or_the_position_alone_suffices(sample, emergency, machinery):
    controller = Controller.of(machinery)
    assert controller.cycle(controller.initial_state(), sample, 0.0).emergency is emergency


@pytest.mark.parametrize(('timeout', 'last_silent'), [(0.5, 50), (0.05, 5), (0.005, 0)])
@pytest.mark.parametrize('sample', [None, Sample(math.inf, False, False)])
def test_silence_is_an_emergency_when_longer_than_the_timeout(
    timeout, last_silent, sample, machinery
):
    rules = machinery.controller.replace(sensor_timeout=timeout)
    controller = Controller.of(dataclasses.replace(machinery, controller=rules))
    state, silent = controller.initial_state(), 0
    while state.emergency is Emergency.NONE:
        state, silent = controller.cycle(state, sample, 0.0), silent + 1
    assert (state.emergency, silent) == (Emergency.SENSOR_TIMEOUT, last_silent + 1)
