"""What the controllers of the harvester follow, and their gains."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np

from longreach_dynamics.errors import named
from longreach_dynamics.hydraulics.lines import AREA_1, AREA_2, PUMP_FLOW
from longreach_dynamics.linkages import pistons_and_arms
from longreach_dynamics.parameters import Parameters, load, quantity
from longreach_dynamics.valve_pid import ValvePidParameters, pid_table
from longreach_harvester.kinematics import tip_path
from longreach_harvester.parameters import JOINTS, HarvesterParameters, default_file
from longreach_harvester.scenario import Scenario
from longreach_machine.machine import step_time
from longreach_machine.trajectories import check_speeds


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


def load_controller(file: str | Path | None = None) -> ControllerParameters:
    """Read a controller file, None for the installed one; raises as ``load`` does."""
    return load(ControllerParameters, file or default_file('controller.yaml'))


def rate_limits(
    harvester: HarvesterParameters, controller: ControllerParameters, angles: np.ndarray
) -> np.ndarray:
    """
    Return lowest (negative) and highest rates of swing, boom, stick at angles (M, 3), (M, 3, 2).

    What their valves, opened by the largest voltages of the controllers, let in from the full
    supply pressure, or all that the pump gives, fills the motor or the fed side of the cylinder no
    faster. Flow resistance of the lines and loads make the joints slower.
    """
    table, laws = harvester.lines().table, [getattr(controller, name) for name in JOINTS]
    valves = [actuator.valve for actuator in harvester.actuators]
    shares = [
        np.interp(min(law.limit / law.full_volts, 1.0), *np.array(valve.openings).T)
        for law, valve in zip(laws, valves, strict=True)
    ]
    resistances = np.array([(v.resistance_2 or v.resistance, v.resistance) for v in valves])
    flows = np.array(shares)[:, None] * np.sqrt(harvester.supply_pressure / resistances)
    areas = np.stack([-table[:, AREA_2], table[:, AREA_1]], axis=-1)
    fastest = np.minimum(flows, table[:, PUMP_FLOW, None]) / areas
    _, arms = pistons_and_arms(np.ascontiguousarray(table[:, :5]), np.ascontiguousarray(angles))
    return np.asarray(fastest / arms[..., None])


def cycle_references(
    harvester: HarvesterParameters, scenario: Scenario, controller: ControllerParameters
) -> tuple[np.ndarray, np.ndarray]:
    """Return the cycles' times up to a scenario's end [s], and checked :func:`references`."""
    interval = controller.sample_time
    counts = range(round(scenario.duration / interval) + 1)
    times = np.array([step_time(k, interval) for k in counts])
    angles = references(harvester, scenario, times)
    rates = np.diff(angles, axis=0) / interval
    limits = rate_limits(harvester, controller, angles[1:])

    def where(sample: int, factor: float) -> tuple[str, str]:
        return f'at {times[sample + 1]:g} s', f'take {factor:.3g} times as long'

    check_speeds(JOINTS, rates, limits, where)
    return times, angles


def references(
    harvester: HarvesterParameters, scenario: Scenario, times: np.ndarray
) -> np.ndarray:
    """Return the angles that controllers follow, (times, 3) [rad]; NaN: the valve is closed."""
    if scenario.tip:
        return tip_path(harvester, np.array(scenario.angles), scenario.tip, times)
    found = np.full((times.size, 3), np.nan)
    for i, sine in enumerate(scenario.sines.of_joints()):
        if sine is not None:
            phase = 2.0 * np.pi / sine.period * times
            found[:, i] = scenario.angles[i] + sine.amplitude * (1.0 - np.cos(phase))
            pose = np.array(scenario.angles)
            for k in (found[:, i].argmin(), found[:, i].argmax()):
                pose[i] = found[k, i]
                with named(f'sines: at {times[k]:g} s '):
                    harvester.check_pose(pose)
    return found
