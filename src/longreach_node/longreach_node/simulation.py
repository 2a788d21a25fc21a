"""
A machine's way through time, sample by sample; without a node.

:class:`Simulation` holds state and command and decides when the machine advances, with a schedule
of wall times [s] from any origin, which are arguments. What is published is the business of its
node.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, TypeVar

from longreach_dynamics.errors import LongreachError
from longreach_machine.machine import Machine, step_time
from longreach_node.diagnostics import Incidents
from longreach_node.simulator_parameters import SimulatorParameters
from longreach_node.stamps import seconds_to_nanoseconds

if TYPE_CHECKING:
    from longreach_node.plant_node import PlantNode

State = TypeVar('State')
Command = TypeVar('Command')

# Kinds of incidents.
OVERRUNS, REFUSED = 'overruns', 'ignored commands'
# Shortest time between two warnings of overruns, all of which are counted [s].
_OVERRUNS_AFTER = 10.0

# In lockstep, how often to look at the deadline, and the longest turn of a node that counts [s].
_LOCKSTEP_PERIOD, _LONGEST_TURN = 0.05, 0.1
# While paused, and between samples that are far apart, /clock is repeated this often [s of wall
# time].
PAUSED_PERIOD = 0.05
# As fast as possible, listeners are waited for after so many samples, half of what publishers keep
# for them: a recorder that the scheduler has set aside must not miss any.
_FLUSH_EVERY = 500
# Longest delay for which the simulation catches up.
BACKLOG = 0.2
# As fast as possible: longest uninterrupted time before other callbacks run.
_FAST_TURN = 2e-3
# The shortest period of a node's timer.
SHORTEST_PERIOD = 1e-3
# The sample is published again when no answer came for this long: the first one, which the other
# side may not have been able to hear yet, and later ones.
_REPEAT_FIRST, _REPEAT = 1.0, 3.0


class Simulation(Generic[State, Command]):
    """
    State and command of a machine, and when it advances.

    The command acts from the present sample to the next; ``sample`` counts from 0, the initial
    state. ``paused`` may be set; ``quitting`` asks the node to end, with ``error`` if it is set.
    """

    def __init__(
        self,
        machine: Machine[State, Command],
        settings: SimulatorParameters,
        initial_command: Command,
        safe_command: Command,
        node: PlantNode[State, Command],
    ) -> None:
        self.machine, self.settings = machine, settings
        self._initial_command, self._safe_command = initial_command, safe_command
        self._node = node
        self.incidents = Incidents((OVERRUNS, REFUSED))
        self.paused = settings.start_paused
        self.started = self.finished = self.quitting = False
        self.error: LongreachError | None = None
        # Of the schedule: the wall time at which a sample was due.
        self._origin, self._origin_sample = 0.0, 0
        # Of the wait for an answer: when it was looked for, and how long since it began, and since
        # the sample was published last.
        self._turned = self._listened = self._listened_since_repeat = 0.0
        self._clock_published = 0.0
        self._repeated_sample = -1
        self._steps_left = 0
        self._on_steps_done: Callable[[int, str], None] | None = None
        self.sample = 0
        self._restore(state=True, time=True)

    def _restore(self, state: bool, time: bool) -> None:
        """Go back to the initial state, or to time 0, or to both; without a command."""
        if state:
            self.state = self.machine.initial_state()
        if time:
            self.sample = 0
        self.command = self._initial_command
        # Whether a command to the present sample was accepted; used in lockstep.
        self._answered = False
        # When the command in force was taken, and the latest sample that was answered.
        self._command_sample = self._answered_sample = self.sample

    # --- what there is -------------------------------------------------------------------------

    @property
    def time(self) -> float:
        """Simulation time [s]."""
        return step_time(self.sample * self.settings.steps_per_sample, self.settings.step)

    @property
    def nanoseconds(self) -> int:
        """Simulation time [ns], which stamps hold."""
        return seconds_to_nanoseconds(self.time)

    @property
    def stepping(self) -> bool:
        """Whether samples of :meth:`step_many` are left."""
        return self._steps_left > 0

    @property
    def ended(self) -> bool:
        """Whether nothing can be asked of it any more."""
        return self.finished or self.quitting

    @property
    def _stands_still(self) -> bool:
        """Whether time must not go on."""
        return self.finished or (self.paused and not self._steps_left)

    @property
    def _is_driven_by_answers(self) -> bool:
        """Whether each answer lets the next sample follow at once."""
        return self.settings.lockstep and self.settings.real_time_factor == 0.0

    def _due(self, now: float) -> int:
        """Return by how many samples the schedule is ahead of the present one; 1 at factor 0."""
        settings = self.settings
        if settings.real_time_factor == 0.0:
            return 1
        elapsed = (now - self._origin) * settings.real_time_factor
        return self._origin_sample + int(elapsed * settings.publish_rate) - self.sample

    def _delay(self, now: float) -> float:
        """Return how far the next sample, if it is due, is behind real time [s]; factor > 0."""
        settings = self.settings
        return (self._due(now) - 1) / (settings.publish_rate * settings.real_time_factor)

    # --- commands ------------------------------------------------------------------------------

    def accept(self, command: Command, nanoseconds: int) -> str:
        """Take a command, with the stamp of the sample it answers, or return why it is ignored."""
        sample = round(nanoseconds * 1e-9 * self.settings.publish_rate)
        refusal = self._take(command, sample, nanoseconds)
        if refusal and sample == self._repeated_sample:
            # The second answer to a sample that was published twice.
            return ''
        if not refusal and self._is_driven_by_answers:
            self.go_on()
        return refusal

    def _take(self, command: Command, sample: int, nanoseconds: int) -> str:
        """Take the answer to a sample, or return why it is refused."""
        lockstep = self.settings.lockstep
        if nanoseconds == 0 and not lockstep:
            # It means now.
            sample = self.sample
        now = f'the simulation is at {self.time:.6f} s'
        if sample > self.sample:
            return f'{now}. Stamp a command with the time of the sample that it answers' + (
                '' if lockstep else ', or with 0 for now'
            )
        if lockstep:
            if sample != self.sample or not self.started:
                return f'{now}, and only the answer to the present sample counts in lockstep'
            if self._answered:
                return f'{now}, and this sample was answered before'
            self._answered = True
        elif sample < self._answered_sample:
            latest = self._answered_sample / self.settings.publish_rate
            return f'{now}, and a command for the sample of {latest:.6f} s was taken before'
        self.command = command
        self._command_sample = sample
        # One that means now may have been on its way for long: it makes no other one old.
        if nanoseconds:
            self._answered_sample = sample
        return ''

    def _expire_command(self) -> None:
        """Let the safe command act when no command has come within ``command_timeout``."""
        settings = self.settings
        if settings.lockstep or not settings.command_timeout:
            return
        silent = (self.sample - self._command_sample) / settings.publish_rate
        commanded = self.command not in (self._safe_command, self._initial_command)
        if not commanded or silent <= settings.command_timeout:
            return
        self.command = self._safe_command
        self._node.warn(
            f'no command for {silent:.2f} s (command_timeout ='
            f' {settings.command_timeout:g} s): {self._safe_command} acts'
        )

    # --- time ----------------------------------------------------------------------------------

    def start(self) -> None:
        """Publish the first sample and let time begin."""
        self.started = True
        self._publish()
        self._restart_schedule()

    def tick(self, now: float) -> None:
        """Advance as far as the way of running allows, at the present wall time [s]."""
        waits = self.paused and not self._steps_left
        if (waits or not self.settings.lockstep) and now - self._clock_published > PAUSED_PERIOD:
            # Nodes that follow /clock see that the simulation still runs.
            self._clock_published = now
            self._node.publish_paused(self.nanoseconds)
        if waits:
            return
        if self.settings.lockstep and not self._answered:
            self._check_deadline(now)
        elif self.settings.lockstep:
            if self._steps_left or self._due(now) > 0:
                self.go_on()
        else:
            self._advance(now)

    def _advance(self, begun: float) -> None:
        """Advance while samples are due, as far as one turn may."""
        now, unpaced = begun, self._steps_left > 0
        is_fast = self.settings.real_time_factor == 0.0
        while unpaced or self._due(now) > 0:
            if not (unpaced or is_fast) and max(self._delay(now), now - begun) > BACKLOG:
                count, delay = self.incidents.add(OVERRUNS, now), self._delay(now)
                self._node.warn(
                    f'overrun {count}: {delay:.3f} s behind real time, dropped from the schedule;'
                    ' use a lower real_time_factor or a larger step',
                    interval=_OVERRUNS_AFTER,
                )
                self._origin, self._origin_sample = now, self.sample
                return
            self.go_on()
            now = time.monotonic()
            if is_fast and self.sample % _FLUSH_EVERY == 0:
                self._node.flush()
            if self._stands_still or self._node.is_shut_down():
                return
            if (unpaced or is_fast) and now - begun >= _FAST_TURN:
                return

    def _check_deadline(self, now: float) -> None:
        """Publish a sample again whose answer does not come, or raise when it is overdue."""
        # A node that did not run did not listen either.
        turn = min(now - self._turned, _LONGEST_TURN)
        self._turned = now
        self._listened += turn
        self._listened_since_repeat += turn
        if self._listened_since_repeat > (_REPEAT if self.sample else _REPEAT_FIRST):
            self._listened_since_repeat = 0.0
            self._repeated_sample = self.sample
            self._node.publish_again(self.nanoseconds)
        limit = self.settings.lockstep_timeout
        if not self.sample:
            limit += self.settings.start_timeout
        if self._listened > limit:
            raise LongreachError(
                f'no command on {self._node.command_topics()} with the stamp {self.time:.9f} s'
                f' within {limit:g} s (lockstep_timeout). Does the controller still run, and with'
                ' the same sample time?'
            )

    def _listen_anew(self, now: float) -> None:
        """Begin to wait: a sample was published, or a pause has ended."""
        self._turned = now
        self._listened = self._listened_since_repeat = 0.0

    def go_on(self) -> None:
        """Advance to the next sample and publish it, or end after the last one."""
        if self._stands_still:
            return
        settings = self.settings
        if settings.duration and self.time >= settings.duration - 0.5 * settings.step:
            self.finished = True
            self.stop_steps('the simulation has ended')
            self._node.flush()
            self._node.on_end()
            return
        self._expire_command()
        try:
            reached = self._make_steps()
        except LongreachError as error:
            if not self.stepping:
                raise
            # The request gets its response before the node ends.
            self.stop_steps(str(error))
            self.error = error
            self.quit()
            return
        if not reached:
            return
        if self._steps_left:
            self._steps_left -= 1
        self._publish()
        if self._on_steps_done is not None and not self._steps_left:
            self.stop_steps('')

    def _make_steps(self) -> bool:
        """Make the steps to the next sample; return whether the process let it be reached."""
        settings = self.settings
        first = self.sample * settings.steps_per_sample
        for count in range(first, first + settings.steps_per_sample):
            if self._node.is_shut_down():
                return False
            self.state = self.machine.advance(
                self.state, self.command, step_time(count, settings.step), settings.step
            )
        self.sample += 1
        self._answered = False
        return True

    def _publish(self) -> None:
        """Publish the present sample."""
        self._clock_published = time.monotonic()
        self._listen_anew(self._clock_published)
        self._node.publish_sample(self.nanoseconds)

    def _restart_schedule(self) -> None:
        """Let simulation time and wall time meet here and now."""
        now = time.monotonic()
        self._origin, self._origin_sample = now, self.sample
        self._listen_anew(now)
        self._set_period()

    def _set_period(self) -> None:
        """Set how often to look whether a sample is due; or at the deadline, if answers drive."""
        settings, period = self.settings, SHORTEST_PERIOD
        if self._is_driven_by_answers:
            period = _LOCKSTEP_PERIOD
        elif not self.stepping and settings.real_time_factor > 0.0:
            period = 1.0 / (settings.publish_rate * settings.real_time_factor)
            # Between samples that are far apart the time is published again.
            period = max(SHORTEST_PERIOD, period / math.ceil(period / PAUSED_PERIOD))
        self._node.set_period(period)

    def _begin_anew(self) -> None:
        """Restart the schedule, and a loop in lockstep whose answer has come."""
        if not self.started:
            return
        self._restart_schedule()
        if self._is_driven_by_answers and self._answered:
            self.go_on()

    # --- from outside --------------------------------------------------------------------------

    def set_speed(self, settings: SimulatorParameters) -> None:
        """Follow new settings: real_time_factor and time-outs."""
        self.settings = settings
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
        if self.settings.lockstep and not self._answered:
            return f'the command to the sample of {self.time:g} s has not come yet'
        self._steps_left += 1
        self.go_on()
        # The last sample was the present one.
        return str(self.error or ('the simulation has ended' if self.finished else ''))

    def step_many(self, count: int, on_done: Callable[[int, str], None]) -> None:
        """Advance a paused simulation; ``on_done`` gets how many samples were not, and why."""
        self.stop_steps('other steps were requested')
        self._steps_left = count
        self._on_steps_done = on_done
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
        if self.settings.lockstep and not time:
            # A controller takes the second sample of a stamp for the first one, which it has
            # answered, or will yet: that answer is for another state.
            self._repeated_sample = self.sample
            self.sample += 1
        self._restore(state, time)
        self.finished = False
        if self.started:
            self._publish()
            self._restart_schedule()

    def quit(self) -> None:
        """Let the node end soon, without waiting for other nodes."""
        self.quitting = True
        self._node.set_period(PAUSED_PERIOD)
