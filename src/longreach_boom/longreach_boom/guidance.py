"""
What the controller works on: a trajectory, a pose that it holds, or the scenario's open loop.

A trajectory that was sent by hand comes before the scenario's. A scenario without a trajectory
leaves the valves to its own commands, closed when it has none. Without any scenario the controller
holds the pose in which it found the boom.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from longreach_boom.control import JointController
from longreach_boom.parameters import BoomParameters
from longreach_boom.scenario import Scenario, scenario_command
from longreach_boom.state import BoomCommand
from longreach_dynamics.control import ControllerState
from longreach_dynamics.errors import InputError
from longreach_dynamics.machine import step_count
from longreach_dynamics.trajectories import Trajectory

__all__ = ['Guidance', 'GuidanceState', 'Measurement', 'Order']

# A first point at time 0 is where the joint is, but for this [rad].
_JUMP = math.radians(0.5)


class Measurement(NamedTuple):
    """What the controller knows of the boom in one cycle."""

    angles: np.ndarray  # (N,) phi [rad]
    pistons: np.ndarray  # (N,) s_p [m]
    head_pressures: np.ndarray  # (N,) p_1 [Pa]
    rod_pressures: np.ndarray  # (N,) p_2 [Pa]


class Order(NamedTuple):
    """A trajectory that was sent by hand, for some joints or all."""

    joints: tuple[int, ...]  # (J,) indices
    times: Sequence[float]  # (K,) after its start [s]
    angles: Sequence[Sequence[float]]  # (K, J) [rad]
    start: float = 0.0  # [s]; in the past: at once


class GuidanceState(NamedTuple):
    """State of the controller. Never changed in place."""

    memory: ControllerState
    trajectory: Trajectory | None = None  # none: open loop


@dataclasses.dataclass(frozen=True)
class Guidance:
    """
    The controller with what it follows.

    Parameters
    ----------
    parameters : BoomParameters
    scenario : Scenario or None
    sample_time : float
        Interval of cycles [s].

    Raises
    ------
    InputError
        When valve commands of the scenario do not fall on cycles.
    """

    parameters: BoomParameters
    scenario: Scenario | None
    sample_time: float
    controller: JointController = dataclasses.field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Check the scenario and make the controller."""
        if self.scenario is not None:
            for index, entry in enumerate(self.scenario.valve_commands):
                what = f'with a controller, valve_commands[{index}].time'
                step_count(entry.time, self.sample_time, what)
        controller = JointController(self.parameters, self.sample_time)
        object.__setattr__(self, 'controller', controller)

    def begin(self, angles: np.ndarray) -> GuidanceState:
        """Return the state before the first cycle, which finds the boom at joint angles [rad]."""
        memory = self.controller.initial_state()
        if self.scenario is None:
            return GuidanceState(memory, Trajectory(np.zeros(1), np.array([angles])))
        if self.scenario.trajectory:
            return GuidanceState(memory, Trajectory.of(self.scenario.waypoints(self.parameters)))
        return GuidanceState(memory)

    def follow(
        self, state: GuidanceState, order: Order, time: float, angles: np.ndarray
    ) -> GuidanceState:
        """
        Return the state with a trajectory sent by hand, which takes over at once.

        The reference stays where it is until the start, and goes from there to the first point;
        joints that the order leaves out stay. An order without points stops all joints.

        Parameters
        ----------
        state : GuidanceState
        order : Order
        time : float
            Now [s].
        angles : ndarray, shape (N,)
            Measured joint angles [rad], where an open loop begins to follow.

        Raises
        ------
        InputError
            When the order is no trajectory, leaves a stroke, or begins with a jump.
        """
        here = angles if state.trajectory is None else state.trajectory.at(time).angles
        start = max(order.start, time)
        if not len(order.times):
            return state._replace(trajectory=Trajectory(np.array([time]), here[None]))
        wanted = np.asarray(order.angles, dtype=float)
        if wanted.shape != (len(order.times), len(order.joints)):
            raise InputError(
                f'the trajectory has angles of shape {wanted.shape}, allowed:'
                f' {(len(order.times), len(order.joints))}, a row for each time'
            )
        rows = np.tile(here, (len(wanted), 1))
        rows[:, list(order.joints)] = wanted
        if order.times[0] <= 0.0:
            self._check_jump(here, rows[0])
            rows[0] = here
            times = start + np.asarray(order.times, dtype=float)
        else:
            rows = np.vstack([here, rows])
            times = start + np.array([0.0, *order.times])
        trajectory = Trajectory(times, rows)
        trajectory.check_with(self.parameters)
        return state._replace(trajectory=trajectory)

    def _check_jump(self, here: np.ndarray, first: np.ndarray) -> None:
        """Raise InputError when a point at time 0 is not where the reference is."""
        for beam, now, then in zip(self.parameters.beams, here, first, strict=True):
            if not abs(then - now) <= _JUMP:
                raise InputError(
                    f'the trajectory begins with joint {beam.name} at'
                    f' {math.degrees(then):.6g} deg, allowed at time 0: within'
                    f' {math.degrees(_JUMP):g} deg of {math.degrees(now):.6g} deg, where it is;'
                    ' give the first point a later time'
                )

    def cycle(
        self, state: GuidanceState, time: float, measured: Measurement
    ) -> tuple[GuidanceState, BoomCommand]:
        """Return the state after a cycle at a time [s], and its command."""
        if state.trajectory is None:
            assert self.scenario is not None
            return state, scenario_command(self.scenario, self.parameters.size, time)
        memory, spools = self.controller.cycle(
            state.memory,
            measured.pistons,
            measured.head_pressures,
            measured.rod_pressures,
            state.trajectory.at(time),
        )
        return state._replace(memory=memory), BoomCommand(tuple(spools.tolist()))
