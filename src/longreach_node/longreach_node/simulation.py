"""
A simulation that can be paused, stepped and reset; without a node.

:class:`Simulation` decides when a machine advances:
:class:`~longreach_node.machine_run.MachineRun` holds state and command,
:class:`~longreach_node.pacing.Pacing` the schedule,
:class:`~longreach_node.lockstep.Lockstep` the wait for an answer. A host, the node, publishes.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from longreach_dynamics.errors import LongreachError
from longreach_dynamics.machine import Machine
from longreach_node.incidents import Incidents
from longreach_node.lockstep import Lockstep
from longreach_node.machine_run import MachineRun
from longreach_node.pacing import SHORTEST_PERIOD, Pacing
from longreach_node.simulator_parameters import SimulatorParameters

State = TypeVar('State')
Command = TypeVar('Command')

# Kinds of incidents.
OVERRUNS, REFUSED = 'overruns', 'ignored commands'

# In lockstep, how often to look at the deadline, and the longest turn of a node that counts [s].
_LOCKSTEP_PERIOD, _LONGEST_TURN = 0.05, 0.1
# While paused, /clock is repeated this often [s of wall time].
PAUSED_CLOCK = 0.05
# As fast as possible, listeners are waited for after so many samples, half of what publishers keep
# for them: a recorder that the scheduler has set aside must not miss any.
_UNHEARD = 500


class Host(Protocol):
    """Interface of the node in which a simulation runs."""

    def publish_sample(self) -> None:
        """Publish the present sample; in lockstep an answer to it may come before this returns."""

    def publish_again(self) -> None:
        """Publish the present sample again, because it was not answered."""

    def publish_clock(self) -> None:
        """Publish the present time again."""

    def publish_drawing(self) -> None:
        """Publish the drawing of the present sample, unless that has been done."""

    def flush(self) -> None:
        """Wait until everything that was published has been received, but not for long."""

    def set_period(self, period: float) -> None:
        """Call :meth:`Simulation.tick` every ``period`` seconds of wall time from now on."""

    def has_ended(self) -> bool:
        """Return whether the process was told to end."""

    def warn(self, text: str) -> None:
        """Write a warning to the log, not more often than once per second for each place."""

    def on_end(self) -> None:
        """Take note of the last sample."""

    def fail(self, error: LongreachError) -> None:
        """End with an error, once the requests of steps have their responses."""


class Simulation(Generic[State, Command]):
    """
    A machine's way through time.

    Parameters
    ----------
    machine : Machine
    settings : SimulatorParameters
    initial_command, safe_command : Command
        As of :class:`~longreach_node.machine_run.MachineRun`.
    host : Host
    answered_on : callable
        Returns the topics on which commands come, for an error.

    Attributes
    ----------
    run : MachineRun
    incidents : Incidents
    paused : bool
        Time stands still; may be set.
    started : bool
        The first sample was published.
    finished : bool
        The last sample was published.
    """

    def __init__(
        self,
        machine: Machine[State, Command],
        settings: SimulatorParameters,
        initial_command: Command,
        safe_command: Command,
        host: Host,
        answered_on: Callable[[], str],
    ) -> None:
        self.run = MachineRun(machine, settings, initial_command, safe_command)
        self.incidents = Incidents((OVERRUNS, REFUSED))
        self.paused = settings.start_paused
        self.started = self.finished = False
        self._pacing = Pacing(settings.publish_rate, settings.real_time_factor)
        self._lockstep = Lockstep(
            settings.lockstep_timeout,
            settings.start_timeout,
            max(_LONGEST_TURN, 2.0 * self._pacing.period),
        )
        self._host = host
        self._answered_on = answered_on
        self._told = 0.0
        self._asked_again = -1
        self._steps_left = 0
        self._on_step: Callable[[int], None] | None = None
        self._on_steps_done: Callable[[int, str], None] | None = None

    @property
    def stepping(self) -> bool:
        """Whether samples of :meth:`step_many` are left."""
        return self._steps_left > 0

    @property
    def _stands_still(self) -> bool:
        """Whether time must not go on."""
        return self.finished or (self.paused and not self._steps_left)

    @property
    def _is_driven_by_answers(self) -> bool:
        """Whether each answer lets the next sample follow at once."""
        return self.run.settings.lockstep and self._pacing.factor == 0.0

    # --- time ----------------------------------------------------------------------------------

    def start(self) -> None:
        """Publish the first sample and let time begin."""
        self.started = True
        self._publish()
        self._restart_schedule()

    def accept(self, command: Command, nanoseconds: int) -> str:
        """Take a command, or return why it is ignored; see :meth:`MachineRun.accept`."""
        refusal = self.run.accept(command, nanoseconds, self.started)
        if refusal and self.run.number_of(nanoseconds) == self._asked_again:
            # The second answer to a question that was asked twice.
            return ''
        if not refusal and self._is_driven_by_answers:
            self.go_on()
        return refusal

    def tick(self, now: float) -> None:
        """Advance as far as the way of running allows, at the present wall time [s]."""
        if self.paused and not self._steps_left:
            # Nodes that follow /clock see that the simulation still runs.
            if now - self._told > PAUSED_CLOCK:
                self._told = now
                self._host.publish_clock()
                # It waits in the publisher for a viewer that comes during the pause.
                self._host.publish_drawing()
        elif self.run.settings.lockstep and not self.run.answered:
            self._check_deadline(now)
        elif self.run.settings.lockstep:
            if self._steps_left or self._pacing.due(now, self.run.sample) > 0:
                self.go_on()
        else:
            self._advance(now)

    def _advance(self, begun: float) -> None:
        """Advance while samples are due, as far as one turn may."""
        now, rush = begun, self._steps_left > 0
        while rush or self._pacing.due(now, self.run.sample) > 0:
            if not rush and self._pacing.is_overrun(begun, now, self.run.sample):
                self._drop_delay(now)
                return
            self.go_on()
            now = time.monotonic()
            if self._pacing.factor == 0.0 and self.run.sample % _UNHEARD == 0:
                self._host.flush()
            if self._stands_still or self._host.has_ended():
                return
            if self._pacing.is_turn_over(begun, now, rush):
                return

    def _drop_delay(self, now: float) -> None:
        """Let the schedule begin anew, because the delay is too long."""
        count = self.incidents.add(OVERRUNS, now)
        delay = self._pacing.delay(now, self.run.sample)
        self._host.warn(
            f'overrun {count}: {delay:.3f} s behind real time, dropped from the schedule;'
            ' use a lower real_time_factor or a larger step'
        )
        self._pacing.restart(now, self.run.sample)

    def _check_deadline(self, now: float) -> None:
        """Publish a sample again whose answer does not come, or raise when it is overdue."""
        sample = self.run.sample
        self._lockstep.listen(now)
        if self._lockstep.asks_again(sample):
            self._asked_again = sample
            self._host.publish_again()
        if self._lockstep.is_overdue(sample):
            raise LongreachError(
                f'no command on {self._answered_on()} with the stamp {self.run.time:.9f} s within'
                f' {self._lockstep.limit(sample):g} s (lockstep_timeout). Does the controller'
                ' still run, and with the same sample time?'
            )

    def go_on(self) -> None:
        """Advance to the next sample and publish it, or end after the last one."""
        if self._stands_still:
            return
        if self.run.at_end:
            self.finished = True
            self.stop_steps('the simulation has ended')
            self._host.flush()
            self._host.on_end()
            return
        silent = self.run.expire_command()
        if silent:
            self._host.warn(
                f'no command for {silent:.2f} s (command_timeout ='
                f' {self.run.settings.command_timeout:g} s): {self.run.safe_command} acts'
            )
        try:
            reached = self.run.advance(lambda: not self._host.has_ended())
        except LongreachError as error:
            if not self.stepping:
                raise
            # The request gets its response before the node ends.
            self.stop_steps(str(error))
            self._host.fail(error)
            return
        if not reached:
            return
        if self._steps_left:
            self._steps_left -= 1
        self._publish()
        if self._on_steps_done is not None:
            if self._on_step is not None:
                self._on_step(self._steps_left)
            if not self._steps_left:
                self.stop_steps('')

    def _publish(self) -> None:
        """Publish the present sample."""
        self._lockstep.restart(time.monotonic())
        self._host.publish_sample()

    def _restart_schedule(self) -> None:
        """Let simulation time and wall time meet here and now."""
        now = time.monotonic()
        self._pacing.restart(now, self.run.sample)
        self._lockstep.restart(now)
        self._set_period()

    def _set_period(self) -> None:
        """Set the period of the ticks."""
        if self._is_driven_by_answers:
            # A tick only checks the deadline.
            self._host.set_period(_LOCKSTEP_PERIOD)
        else:
            self._host.set_period(SHORTEST_PERIOD if self.stepping else self._pacing.period)

    def _begin_anew(self) -> None:
        """Restart the schedule, and a loop in lockstep whose answer has come."""
        if not self.started:
            return
        self._restart_schedule()
        if self._is_driven_by_answers and self.run.answered:
            self.go_on()

    # --- from outside --------------------------------------------------------------------------

    def set_speed(self, settings: SimulatorParameters) -> None:
        """Follow new settings: real_time_factor and time-outs."""
        self.run.settings = settings
        self._lockstep.timeout = settings.lockstep_timeout
        self._pacing.factor = settings.real_time_factor
        self._begin_anew()

    def pause(self) -> None:
        """Stop time, also in the middle of :meth:`step_many`."""
        self.stop_steps('the simulation was paused')
        self.paused = True

    def resume(self) -> None:
        """Let time go on from here."""
        self.stop_steps('the simulation was resumed')
        self.paused = False
        self._begin_anew()

    def step_once(self) -> str:
        """Advance a paused simulation by one sample, or return why that is not possible."""
        if not self.paused or not self.started:
            return 'step needs a simulation that has begun and is paused; call ~/pause'
        if self.finished:
            return 'the simulation has ended'
        if self.stepping:
            return f'{self._steps_left} steps of another request are left; ~/pause stops them'
        if self.run.settings.lockstep and not self.run.answered:
            return f'the command to the sample of {self.run.time:g} s has not come yet'
        self._steps_left += 1
        self.go_on()
        return ''

    def step_many(
        self,
        count: int,
        on_done: Callable[[int, str], None],
        on_step: Callable[[int], None] | None = None,
    ) -> None:
        """
        Advance a paused simulation by some samples, as fast as possible.

        Parameters
        ----------
        count : int
        on_done : callable
            Called once, with the number of samples that were not simulated, and why not; 0 and an
            empty text when all were.
        on_step : callable, optional
            Called after each sample with the number of those that are left.
        """
        self.stop_steps('other steps were requested')
        self._steps_left = count
        self._on_step, self._on_steps_done = on_step, on_done
        self._begin_anew()

    def stop_steps(self, reason: str) -> None:
        """Cancel the remaining samples of :meth:`step_many`."""
        left, self._steps_left = self._steps_left, 0
        on_done, self._on_steps_done = self._on_steps_done, None
        if on_done is not None:
            self._set_period()
            on_done(left, reason)

    def reset(self, state: bool = True, time: bool = True) -> None:
        """Go back to the initial state, or to time 0, or to both."""
        self.stop_steps('the simulation was reset')
        self.run.reset(state, time)
        self.finished = False
        if self.started:
            self._publish()
            self._restart_schedule()
