"""What the controllers of the harvester follow, and their gains."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np

from longreach_dynamics.machine import step_time
from longreach_dynamics.parameters import Parameters, load, quantity
from longreach_dynamics.resources import data_directory
from longreach_dynamics.valve_pid import ValvePidParameters, pid_table
from longreach_harvester.kinematics import tip_path
from longreach_harvester.parameters import HarvesterParameters
from longreach_harvester.scenario import Scenario

__all__ = [
    'ControllerParameters',
    'controller_file',
    'cycle_times',
    'load_controller',
    'references',
]


@dataclasses.dataclass(frozen=True)
class ControllerParameters(Parameters):
    """The contents of a controller file."""

    sample_time: float = quantity('interval of cycles', 's', at_least=1e-4, at_most=0.1)
    swing: ValvePidParameters = quantity('controller of the swing')
    boom: ValvePidParameters = quantity('controller of the boom')
    stick: ValvePidParameters = quantity('controller of the stick')

    def table(self, harvester: HarvesterParameters) -> np.ndarray:
        """Return the controllers in numbers, with the dead bands of a harvester's valves."""
        bands = [actuator.valve.dead_band for actuator in harvester.actuators]
        return pid_table((self.swing, self.boom, self.stick), bands)


def controller_file() -> Path:
    """Return the installed controller file."""
    return data_directory('longreach_harvester') / 'config' / 'controller.yaml'


def load_controller(file: str | Path | None = None) -> ControllerParameters:
    """
    Read a controller file; None for the installed one.

    Raises
    ------
    InputError
        With file, key, value and what is allowed.
    """
    return load(ControllerParameters, file or controller_file())


def cycle_times(scenario: Scenario, controller: ControllerParameters) -> np.ndarray:
    """Return the times of the cycles up to the end of a scenario [s]."""
    interval = controller.sample_time
    counts = range(round(scenario.duration / interval) + 1)
    return np.array([step_time(k, interval) for k in counts])


def references(
    harvester: HarvesterParameters, scenario: Scenario, times: np.ndarray
) -> np.ndarray:
    """
    Return the angles that controllers follow, (times, 3) [rad]; NaN: the valve is closed.

    Parameters
    ----------
    harvester : HarvesterParameters
    scenario : Scenario
    times : ndarray
        [s].

    Raises
    ------
    InputError
        For a path of the tip that leaves the reach of the machine.
    """
    if scenario.tip:
        return tip_path(harvester, np.array(scenario.angles), scenario.tip, times)
    found = np.full((times.size, 3), np.nan)
    for i, sine in enumerate(scenario.sines.of_joints()):
        if sine is not None:
            phase = 2.0 * np.pi / sine.period * times
            found[:, i] = scenario.angles[i] + sine.amplitude * (1.0 - np.cos(phase))
    return found
