"""
A forestry machine's vibration of 3.3 Hz, named by a linear model and damped by pressure feedback.

    python3 docs/tutorials/harvester_damping.py

The boom is raised for half a second and stopped. With closed valves it swings on; with a valve
that lets each cylinder yield to the swing of its own force it stops within a period.
"""

import numpy as np

from longreach_dynamics.hydraulics.lines import AREA_1, AREA_2, DEAD_BAND
from longreach_harvester.linear import smooth_model
from longreach_harvester.machine import Harvester
from longreach_harvester.spec import HARVESTER
from longreach_machine import linearize

CYCLE = 0.01  # [s]
SLOW = 0.03  # share by which the weight is followed in a cycle
GAIN = 1e-6  # opening per force [1/N]


def rates(machine: Harvester, gain: float) -> np.ndarray:
    """Return the rates of the boom's joint [rad/s] in each cycle of 5 s from the stop on."""
    table = machine.constants.lines[0][1:]
    band = table[:, DEAD_BAND]
    state, weight, found = machine.initial_state(), None, []
    for k in range(600):
        # Of boom and stick: P_1 A_1 - P_2 A_2.
        force = table[:, AREA_1] * state.y[7:9] - table[:, AREA_2] * state.y[10:12]
        weight = force if weight is None else weight + SLOW * (force - weight)
        opening = -gain * (force - weight)
        spools = np.sign(opening) * (band + (1.0 - band) * np.abs(opening))
        spools[np.abs(opening) < 1e-3] = 0.0
        if 50 <= k < 100:
            spools = np.array([0.25, 0.0])
        spools = np.clip(spools, -1.0, 1.0).tolist()
        state = machine.advance(state, (0.0, *spools), k * CYCLE, CYCLE)
        found.append(state.y[4])
    return np.array(found[100:])


def machine_of_scenario() -> Harvester:
    """Return the installed harvester in its first pose."""
    options = HARVESTER.options()
    parameters = HARVESTER.load(None, options)
    file = HARVESTER.find_scenario('open_loop')
    return Harvester(parameters, HARVESTER.load_scenario(file, parameters, options))


if __name__ == '__main__':
    harvester = machine_of_scenario()
    model = linearize(smooth_model(harvester, harvester.initial_state(), free=False), outputs=[])
    for pole in (pole for pole in model.poles() if pole.value.imag > 0.0):
        print(f'{pole.frequency:6.2f} Hz, damping {pole.damping:.4f}, largest in {pole.state}')
    for gain in (0.0, GAIN):
        late = rates(harvester, gain)[300:]
        print(f'gain {gain:g}: the boom swings with {0.5 * np.ptp(late):.4f} rad/s after 3 s')
