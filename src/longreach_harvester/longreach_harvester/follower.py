"""
The controllers of the harvester with what they follow.

A trajectory that is sent takes precedence over the sines or the path of the scenario. Without a
scenario the harvester holds the pose of its first sample.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import numpy as np

from longreach_dynamics.errors import InputError
from longreach_dynamics.valve_pid import new_memory, pid_cycle
from longreach_harvester.control import ControllerParameters, cycle_references, rate_limits
from longreach_harvester.parameters import JOINTS, HarvesterParameters
from longreach_harvester.scenario import Scenario
from longreach_machine.machine import Spools
from longreach_machine.trajectories import CubicTrajectory, Reference, Trajectory
from longreach_machine.trajectory_following import TrajectoryFollower


class Measurement(NamedTuple):
    """What the controllers know of the harvester in one cycle."""

    angles: np.ndarray  # (3,) [rad]


@dataclasses.dataclass(frozen=True, eq=False)
class _Plan(CubicTrajectory):
    """The references of a scenario; joints that are ``left`` alone have none, valves close."""

    left: tuple[bool, ...] = ()

    def at(self, time: float) -> Reference:
        """Return the reference at a time [s], NaN for joints that are left alone."""
        angles, rates = super().at(time)
        angles = np.where(self.left, np.nan, angles)
        return Reference(angles, rates)


@dataclasses.dataclass(frozen=True)
class HarvesterFollower(TrajectoryFollower[Measurement, Spools]):
    """The controllers, whose interval cycles have, with what they follow."""

    machine: HarvesterParameters
    controller: ControllerParameters
    scenario: Scenario | None = None

    def __post_init__(self) -> None:
        """Check the scenario and make its plan."""
        object.__setattr__(self, 'joints', JOINTS)
        object.__setattr__(self, 'sample_time', self.controller.sample_time)
        object.__setattr__(self, '_table', self.controller.table(self.machine))
        object.__setattr__(self, '_plan', self._planned())

    def _planned(self) -> Trajectory | None:
        """Return what the scenario lets the joints follow."""
        if self.scenario is None:
            return None
        if not self.scenario.is_controlled:
            raise InputError(
                'the scenario moves spools, or nothing, allowed with the controller: sines or a'
                ' path of the tip, or no scenario, to hold the pose; the plant moves spools by'
                ' itself'
            )
        times, angles = cycle_references(self.machine, self.scenario, self.controller)
        left = np.isnan(angles).any(axis=0)
        angles = np.where(left, self.scenario.angles, angles)
        rates = np.zeros_like(angles)
        if len(times) > 1:
            rates = np.gradient(angles, times, axis=0)
        # The references end there, and so do those of the library.
        rates[-1] = 0.0
        return _Plan(times, angles, rates, tuple(left.tolist()))

    def initial_memory(self, start: Reference | None = None) -> np.ndarray:
        """Return the memory of the controllers before their first cycle."""
        memory = new_memory(len(JOINTS))
        if start is not None:
            # No error, and the reference of the cycle before.
            memory[1], memory[2] = 0.0, start.angles - self.sample_time * start.rates
        return memory

    def rate_limits(self, angles: np.ndarray) -> np.ndarray:
        """Return lowest and highest rates [rad/s] at angles (M, 3), (M, 3, 2)."""
        return rate_limits(self.machine, self.controller, angles)

    def planned(self, angles: np.ndarray) -> Trajectory:
        """Return what the scenario says; without one the harvester holds its pose."""
        known: Trajectory | None = self.__dict__['_plan']
        return Trajectory(np.zeros(1), np.array([angles])) if known is None else known

    def control(
        self, memory: np.ndarray, measured: Measurement, reference: Reference
    ) -> tuple[np.ndarray, Spools]:
        """Return memory and spools after a cycle."""
        memory, spools = memory.copy(), np.zeros(len(JOINTS))
        table = self.__dict__['_table']
        pid_cycle(measured.angles, reference.angles, memory, table, self.sample_time, spools)
        return memory, tuple(spools.tolist())

    def warm_up(self) -> None:
        """Compile the functions of a cycle."""
        angles = np.zeros(len(JOINTS))
        self.control(self.initial_memory(), Measurement(angles), Reference(angles, angles))
