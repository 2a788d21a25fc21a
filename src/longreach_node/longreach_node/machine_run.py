"""A machine on its way through a simulation, sample by sample; no node, and no clock."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from longreach_dynamics.machine import Machine, step_time
from longreach_node.simulator_parameters import SimulatorParameters

State = TypeVar('State')
Command = TypeVar('Command')


class MachineRun(Generic[State, Command]):
    """
    State, command and sample count of a machine.

    Parameters
    ----------
    machine : Machine
    settings : SimulatorParameters
    initial_command : Command
        Acts before the first command.
    safe_command : Command
        Acts after ``command_timeout``.

    Attributes
    ----------
    state : State
    command : Command
        Acts from the present sample to the next.
    sample : int
        Number of the present sample; the initial state is sample 0.
    answered : bool
        Whether a command to the present sample was accepted; used in lockstep.
    """

    def __init__(
        self,
        machine: Machine[State, Command],
        settings: SimulatorParameters,
        initial_command: Command,
        safe_command: Command,
    ) -> None:
        self.machine = machine
        self.settings = settings
        self.initial_command = initial_command
        self.safe_command = safe_command
        self.sample = 0
        self.reset()

    def reset(self, state: bool = True, time: bool = True) -> None:
        """Go back to the initial state, or to time 0, or to both; without a command."""
        if state:
            self.state = self.machine.initial_state()
        if time:
            self.sample = 0
        self.command = self.initial_command
        self.answered = False
        # When the command in force was taken, and the latest sample that was answered.
        self._command_sample = self._answered_sample = self.sample

    @property
    def time(self) -> float:
        """Simulation time [s]."""
        return step_time(self.sample * self.settings.steps_per_sample, self.settings.step)

    @property
    def at_end(self) -> bool:
        """Whether the present sample is the last one."""
        settings = self.settings
        return bool(settings.duration) and self.time >= settings.duration - 0.5 * settings.step

    def number_of(self, nanoseconds: int) -> int:
        """Return the number of the sample with a stamp."""
        return round(nanoseconds * 1e-9 * self.settings.publish_rate)

    def accept(self, command: Command, nanoseconds: int, started: bool = True) -> str:
        """
        Take a command, or return why it is not accepted.

        Parameters
        ----------
        command : Command
        nanoseconds : int
            Stamp of the sample that it answers. In lockstep only the first answer to the present
            sample is accepted. Otherwise a stamp of zero, as of a message sent by hand or of an
            answer to the first sample, means now, and refused are commands for a sample that was
            not published yet (such as an answer from before a reset, or one with the wall clock's
            time), or older than one that was taken.
        started : bool
            Whether the present sample was published.

        Returns
        -------
        str
            Why the command is refused; empty when it is accepted.
        """
        lockstep = self.settings.lockstep
        sample = self.number_of(nanoseconds)
        if nanoseconds == 0 and not lockstep:
            sample = self.sample
        now = f'the simulation is at {self.time:.6f} s'
        if sample > self.sample:
            return f'{now}. Stamp a command with the time of the sample that it answers' + (
                '' if lockstep else ', or with 0 for now'
            )
        if lockstep:
            if sample != self.sample or not started:
                return f'{now}, and only the answer to the present sample counts in lockstep'
            if self.answered:
                return f'{now}, and this sample was answered before'
            self.answered = True
        elif sample < self._answered_sample:
            latest = self._answered_sample / self.settings.publish_rate
            return f'{now}, and a command for the sample of {latest:.6f} s was taken before'
        self.command = command
        self._command_sample = sample
        # One that means now may have been on its way for long: it makes no other one old.
        if nanoseconds:
            self._answered_sample = sample
        return ''

    def expire_command(self) -> float:
        """
        Let the safe command act when no command has come within ``command_timeout``.

        Returns
        -------
        float
            For how long none has come [s], at the moment when the safe command takes over; 0
            otherwise.
        """
        settings = self.settings
        if settings.lockstep or not settings.command_timeout:
            return 0.0
        silent = (self.sample - self._command_sample) / settings.publish_rate
        commanded = self.command not in (self.safe_command, self.initial_command)
        if not commanded or silent <= settings.command_timeout:
            return 0.0
        self.command = self.safe_command
        return silent

    def advance(self, goes_on: Callable[[], bool] = lambda: True) -> bool:
        """
        Advance to the next sample.

        Parameters
        ----------
        goes_on : callable
            Asked before each step; when it returns False, the steps that are left are not made.

        Returns
        -------
        bool
            Whether the sample was reached.
        """
        settings = self.settings
        first = self.sample * settings.steps_per_sample
        for count in range(first, first + settings.steps_per_sample):
            if not goes_on():
                return False
            self.state = self.machine.advance(
                self.state, self.command, step_time(count, settings.step), settings.step
            )
        self.sample += 1
        self.answered = False
        return True
