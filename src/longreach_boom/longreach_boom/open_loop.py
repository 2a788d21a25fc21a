"""Valves that the scenario moves, open loop, for as long as nobody else commands them."""

from __future__ import annotations

import dataclasses
from itertools import pairwise

from longreach_boom.parameters import BoomParameters
from longreach_boom.scenario import Scenario
from longreach_boom.simulation import Boom
from longreach_boom.state import BoomCommand, BoomState
from longreach_dynamics.errors import InputError
from longreach_dynamics.machine import step_time

__all__ = [
    'BY_SCENARIO',
    'ScenarioBoom',
    'closed_valves',
    'resting_scenario',
    'scenario_command',
]

# Stands for what the scenario says.
BY_SCENARIO = BoomCommand(())


def closed_valves(size: int) -> BoomCommand:
    """Return the command that closes all valves of a boom with so many cylinders."""
    return BoomCommand((0.0,) * size)


def resting_scenario(boom: BoomParameters) -> Scenario:
    """
    Return the scenario of a boom that stands in its first pose, valves closed.

    Raises
    ------
    InputError
        When the boom file has no pose.
    """
    if not boom.poses:
        raise InputError('poses of the boom file is empty, allowed without a scenario: at least 1')
    return Scenario(duration=1.0, pose=boom.poses[0].name)


def scenario_command(scenario: Scenario, size: int, time: float) -> BoomCommand:
    """
    Return what a scenario tells the valves.

    Parameters
    ----------
    scenario : Scenario
    size : int
        Number of cylinders.
    time : float
        [s]; a command holds from its time on until the next.
    """
    command = closed_valves(size)
    for entry in scenario.valve_commands:
        # Times are whole steps, but not to the last bit.
        if entry.time > time + 1e-9:
            break
        command = BoomCommand(entry.spools)
    return command


@dataclasses.dataclass(frozen=True)
class ScenarioBoom(Boom):
    """
    A boom that knows one more command: :data:`BY_SCENARIO`.

    Parameters and errors are those of :class:`longreach_boom.simulation.Boom`.
    """

    def advance(
        self, state: BoomState, command: BoomCommand, time: float, duration: float
    ) -> BoomState:
        """
        Return the state ``duration`` [s] after ``time`` [s].

        The command is constant, or BY_SCENARIO, which changes at the scenario's times.

        Raises
        ------
        IntegrationError
            When the state does not stay finite.
        """
        if command != BY_SCENARIO:
            return super().advance(state, command, time, duration)
        first = round(time / self.step)
        last = first + round(duration / self.step)
        changes = (round(entry.time / self.step) for entry in self.scenario.valve_commands)
        edges = [first, *(at for at in changes if first < at < last), last]
        for begin, end in pairwise(edges):
            at = step_time(begin, self.step)
            told = scenario_command(self.scenario, self.parameters.size, at)
            state = super().advance(state, told, at, step_time(end - begin, self.step))
        return state
