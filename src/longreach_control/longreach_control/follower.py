"""A damping controller in place of the joint controller of a boom's nodes."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from longreach_boom.follower import BoomFollower, Measurement
from longreach_boom.model import Load
from longreach_boom.scenario import Scenario
from longreach_control.benchmark import CONTROLLERS
from longreach_control.controller import Measured, Wanted
from longreach_control.plant import Plant, Situation
from longreach_control.tip import TipControl
from longreach_dynamics.errors import InputError
from longreach_dynamics.hydraulics import spool_positions
from longreach_dynamics.linkages import pistons_and_arms
from longreach_machine.machine import Spools
from longreach_machine.trajectories import Reference, Trajectory
from longreach_machine.trajectory_following import FAR, FARTHEST, FollowerState

# A controller is made anew so far from its posture [rad], at rest for so long [s].
_MOVED, _STILL = 0.15, 2.0
# A boom that stands has no faster joint [rad/s].
_STANDING = math.radians(0.3)
# A boom whose pistons seem to be so many times faster than they can was put elsewhere.
_JUMPED = 3.0


@dataclasses.dataclass(frozen=True)
class DampingFollower(BoomFollower):
    """Follow trajectories with vibrations damped, by one of CONTROLLERS and a ``delay`` [s]."""

    # The controller is made in the first cycle, for the posture that is measured there and with
    # the loads of the scenario at time 0; it serves motions of some ten degrees about it.

    method: str = 'modal'
    delay: float = 0.0

    def planned(self, angles: np.ndarray) -> Trajectory | None:
        """Return the scenario's trajectory; without one, nor valve commands, the pose is held."""
        if self.scenario is not None and self.scenario.valve_commands:
            return None
        return super().planned(angles) or Trajectory(np.zeros(1), np.array([angles]))

    def initial_memory(self, start: Reference | None = None) -> Any:  # noqa: ARG002
        """Return the memory before the first cycle: there is no controller yet."""
        return None

    def renewed(self, memory: Any, start: Reference) -> Any:
        """Return the controller that goes on, or None, to make one in the next cycle."""
        if memory is None:
            return None
        _, (arms,) = pistons_and_arms(memory.plant.actuators.linkage, start.angles[None])
        fastest = np.abs(arms * start.rates).max()
        has_jumped = fastest > _JUMPED * self.machine.controller.maximum_velocity
        return None if has_jumped else memory.renewed()

    def control(
        self, memory: Any, measured: Measurement, reference: Reference
    ) -> tuple[Any, Spools]:
        """Return the controller and its command after a cycle."""
        if memory is None:
            memory = CONTROLLERS[self.method](self.situation(measured))
        linkage = memory.plant.actuators.linkage
        (pistons,), (arms,) = pistons_and_arms(linkage, np.asarray(reference.angles)[None])
        wanted = Wanted(pistons, arms * np.asarray(reference.rates))
        spools = memory.cycle(readings_of(measured), wanted)
        return memory, tuple(spools.tolist())

    def expected(self, state: FollowerState, time: float) -> np.ndarray:
        """Return the reference's angles, less what the controller leaves behind (N,) [rad]."""
        angles = super().expected(state, time)
        if state.memory is None:
            return angles
        _, (arms,) = pistons_and_arms(state.memory.plant.actuators.linkage, angles[None])
        return np.asarray(angles - state.memory.behind / arms)

    def situation(self, measured: Measurement) -> Situation:
        """Return what a controller knows that begins in the measured posture."""
        loads: tuple[Load, ...] = ()
        if isinstance(self.scenario, Scenario):
            loads = self.scenario.initial_loads(self.machine)
        # A joint at its end is slightly beyond it, as is one whose encoder is not quite right.
        ends = np.clip(measured.angles, *self.machine.joint_limits().T)
        near = np.abs(ends - measured.angles) <= FAR
        angles = np.where(near, ends, measured.angles)
        return Situation(self.machine, angles, loads, self.sample_time, self.delay)

    def warm_up(self) -> None:
        """Compile the functions of a cycle, or load them from the cache."""
        # Without weight a boom can rest anywhere.
        boom = self.machine.replace(gravity=0.0)
        plant = Plant.of(Situation(boom, boom.joint_limits().mean(axis=1)))
        spool_positions(
            plant.actuators, np.ones(boom.size), np.ones(boom.size), *np.full((2, boom.size), 1e7)
        )


@dataclasses.dataclass(frozen=True)
class TipFollower(DampingFollower):
    """The ``joystick`` gives the velocity of the tip (2,) [m/s], see :class:`.tip.TipControl`."""

    # The controller is made anew where the boom has come to rest in another posture, or stands and
    # is far from where it is to be.

    joystick: Callable[[], np.ndarray] = lambda: np.zeros(2)

    def planned(self, angles: np.ndarray) -> None:
        """Return no trajectory."""

    def cycle(
        self,
        state: FollowerState,
        time: float,  # noqa: ARG002
        measured: Measurement,
    ) -> tuple[FollowerState, Spools]:
        """Return the state after a cycle, and its command."""
        control, before, stuck = state.memory, 0.0, False
        if control is not None:
            before = np.abs(control.ahead).max()
            stuck = before > FAR and np.abs(state.rates).max() < _STANDING
            moved = np.abs(measured.angles - control.situation.angles).max() > _MOVED
            if stuck or (control.still > _STILL and moved):
                control = None
        if control is None:
            control = TipControl(self.situation(measured))
        spools = control.drive(readings_of(measured), self.joystick())
        left_behind = stuck or before < FARTHEST <= np.abs(control.ahead).max()
        count = state.resumptions + bool(left_behind)
        state = state._replace(memory=control, resumptions=count)
        return state, tuple(spools.tolist())

    def follow(self, *_: Any, **__: Any) -> FollowerState:
        """Refuse a trajectory."""
        raise InputError('an operator moves the tip with tip_velocity; start without damping:=tip')

    stream = follow


def readings_of(measured: Measurement) -> Measured:
    """Return the readings of a measurement; InputError without gyroscopes."""
    _, s_p, p_1, p_2, rates = measured
    if rates is None:
        raise InputError('the rates of the beams are not measured; damping needs gyroscopes')
    return Measured(s_p, p_1, p_2, rates)
