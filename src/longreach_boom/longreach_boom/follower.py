"""
The controller of the boom with its reference trajectory.

With a scenario without a trajectory, the valves follow its valve commands, or stay closed when it
has none. Without a scenario the controller holds the initial pose of the boom.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import numpy as np

from longreach_boom.model import constants_of
from longreach_boom.parameters import BoomParameters
from longreach_boom.scenario import Scenario
from longreach_boom.state import rate_limits
from longreach_machine.control import ControllerState, JointController
from longreach_machine.machine import Spools, step_count
from longreach_machine.scenarios import spools_at
from longreach_machine.trajectories import Reference, Trajectory
from longreach_machine.trajectory_following import TrajectoryFollower

# Oil pressure for the call that compiles the kernels [Pa].
_PRESSURE = 1e7


class Measurement(NamedTuple):
    """Measurements of the controller in one cycle."""

    angles: np.ndarray  # (N,) phi [rad]
    pistons: np.ndarray  # (N,) s_p [m]
    head_pressures: np.ndarray  # (N,) p_1 [Pa]
    rod_pressures: np.ndarray  # (N,) p_2 [Pa]
    tip_rates: np.ndarray | None = None  # (N,) of the beams' tips [rad/s]; None: not measured


@dataclasses.dataclass(frozen=True)
class BoomFollower(TrajectoryFollower[Measurement, Spools]):
    """The controller with its reference; InputError for valve commands that are on no cycles."""

    machine: BoomParameters
    scenario: Scenario | None
    sample_time: float
    controller: JointController = dataclasses.field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Check the scenario and create the controller."""
        if self.scenario is not None:
            for index, entry in enumerate(self.scenario.valve_commands):
                what = f'with a controller, valve_commands[{index}].time'
                step_count(entry.time, self.sample_time, what)
        machine, actuators = self.machine, constants_of(self.machine).actuators
        controller = JointController(machine.controller, actuators, self.sample_time)
        object.__setattr__(self, 'controller', controller)
        object.__setattr__(self, 'joints', [beam.name for beam in self.machine.beams])

    def warm_up(self) -> None:
        """Compile the functions of a cycle, or load them from the cache."""
        cylinders, angles = self.machine.cylinders, self.machine.joint_limits().mean(axis=1)
        pistons = [c.linkage.position(a) for c, a in zip(cylinders, angles, strict=True)]
        pressures = np.full(len(cylinders), _PRESSURE)
        measured = Measurement(angles, np.array(pistons), pressures, pressures)
        self.control(self.initial_memory(), measured, Reference(angles, np.zeros(len(angles))))

    def initial_memory(self, start: Reference | None = None) -> ControllerState:  # noqa: ARG002
        """Return the state of the joint controller before its first cycle."""
        return self.controller.initial_state()

    def rate_limits(self, angles: np.ndarray) -> np.ndarray:
        """Return lowest and highest rates [rad/s] at angles (M, N), (M, N, 2)."""
        return rate_limits(self.machine, angles)

    def planned(self, angles: np.ndarray) -> Trajectory | None:
        """Return the scenario's trajectory; without a scenario the boom holds its pose."""
        if self.scenario is None:
            return Trajectory(np.zeros(1), np.array([angles]))
        if self.scenario.trajectory:
            return Trajectory.of(self.scenario.waypoints(self.machine))
        return None

    def control(
        self, memory: ControllerState, measured: Measurement, reference: Reference
    ) -> tuple[ControllerState, Spools]:
        """Return state and command of the joint controller after a cycle."""
        memory, spools = self.controller.cycle(memory, *measured[1:4], reference)
        return memory, tuple(spools.tolist())

    def open_loop(self, time: float) -> Spools:
        """Return the scenario's command to the valves at a time [s]."""
        assert self.scenario is not None
        return spools_at(self.scenario.valve_commands, time, self.machine.size)
