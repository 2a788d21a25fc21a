"""A damping controller in place of the joint controller of a boom's nodes."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from longreach_boom.follower import BoomFollower, Measurement
from longreach_boom.model import Load
from longreach_boom.scenario import Scenario
from longreach_boom.state import BoomCommand
from longreach_control.benchmark import CONTROLLERS
from longreach_control.controller import Measured, Wanted
from longreach_control.plant import Plant, Situation
from longreach_dynamics.errors import InputError
from longreach_dynamics.hydraulics import spool_positions
from longreach_dynamics.linkages import pistons_and_arms
from longreach_dynamics.trajectories import Reference


@dataclasses.dataclass(frozen=True)
class DampingFollower(BoomFollower):
    """
    Follow trajectories with vibrations damped, see :class:`BoomFollower`.

    The controller is made in the first cycle, for the posture that is measured there and with the
    loads of the scenario at time 0; it serves motions of some ten degrees about it. ``method`` is
    one of CONTROLLERS, ``delay`` in seconds.
    """

    method: str = 'modal'
    delay: float = 0.0

    def initial_memory(self, start: Reference | None = None) -> Any:  # noqa: ARG002
        """Return the memory before the first cycle: there is no controller yet."""
        return None

    def control(
        self, memory: Any, measured: Measurement, reference: Reference
    ) -> tuple[Any, BoomCommand]:
        """Return the controller and its command after a cycle."""
        if memory is None:
            loads: tuple[Load, ...] = ()
            if isinstance(self.scenario, Scenario):
                loads = self.scenario.initial_loads(self.machine)
            memory = CONTROLLERS[self.method](
                Situation(self.machine, measured.angles, loads, self.sample_time, self.delay)
            )
        rates = measured.tip_rates
        if rates is None:
            raise InputError('the rates of the beams are not measured; damping needs gyroscopes')
        linkage = memory.plant.actuators.linkage
        (pistons,), (arms,) = pistons_and_arms(linkage, np.asarray(reference.angles)[None])
        _, s_p, p_1, p_2, _ = measured
        wanted = Wanted(pistons, arms * np.asarray(reference.rates))
        spools = memory.cycle(Measured(s_p, p_1, p_2, rates), wanted)
        return memory, BoomCommand(tuple(spools.tolist()))

    def warm_up(self) -> None:
        """Compile the functions of a cycle, or load them from the cache."""
        boom = self.machine
        angles = boom.pose(boom.poses[0].name)
        plant = Plant.of(Situation(boom, angles))
        spool_positions(
            plant.actuators, np.ones(boom.size), np.ones(boom.size), *np.full((2, boom.size), 1e7)
        )
