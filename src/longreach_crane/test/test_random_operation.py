"""Whatever is asked of a crane, and whatever its sensors say, it stays within its bounds."""

import math

import numpy as np
import pytest

from longreach_crane.control import Controller, Emergency, is_permitted, sense
from longreach_crane.machine import BRAKES, Crane
from longreach_crane.model import CAR_POSITION
from longreach_crane.parameters import load_machinery
from longreach_crane.scenario import Disturbance, Scenario

# Beyond a limit the car travels no further than this [m].
STOPPING = 0.25
CYCLES = 6000


@pytest.mark.slow_after(4)
@pytest.mark.parametrize('seed', range(40))
def test_a_minute_of_anything(seed):
    random = np.random.default_rng(seed)
    machinery = load_machinery()
    T, p = machinery.controller.sample_time, machinery.crane
    gusts = [
        Disturbance(
            time=int(random.integers(0, CYCLES)) * T,
            duration=int(random.integers(1, 200)) * T,
            force=float(random.normal(scale=200.0)),
        )
        for _ in range(10)
    ]
    scenario = Scenario(duration=CYCLES * T, disturbances=gusts)
    crane = Crane(p, scenario, brake=str(random.choice(BRAKES)))
    controller = Controller.of(machinery)
    state, control = crane.initial_state(), controller.initial_state()
    wanted, change, silence = 0.0, 0, 0
    for cycle in range(CYCLES):
        if cycle == change:
            wanted = float(random.uniform(-6.0, 6.0))
            change = cycle + 1 + int(random.exponential(800.0))
        sample = sense(state.x[CAR_POSITION], p)
        if silence:
            silence -= 1
            sample = None if silence % 2 else sample._replace(car_position=math.nan)
        elif random.random() < 0.002:
            silence = int(random.exponential(20.0))
        control = controller.cycle(control, sample, wanted)
        x = state.x
        assert np.isfinite(x).all()
        assert abs(control.command.force) <= machinery.controller.maximum_force
        low, high = p.minimum_position - STOPPING, p.maximum_position + STOPPING
        assert low < x[CAR_POSITION] < high
        valid = sample is not None and sample.is_valid
        if valid and not is_permitted(sample.car_position, p):
            assert control.emergency is not Emergency.NONE
        if control.emergency is not Emergency.NONE:
            assert control.command == (0.0, True)
            if random.random() < 0.005:
                # An operator resets; a car beyond a limit is brought back by hand.
                if not is_permitted(x[CAR_POSITION], p):
                    state = crane.initial_state()
                control = controller.initial_state(float(state.x[CAR_POSITION]))
        state = crane.advance(state, control.command, cycle * T, T)
