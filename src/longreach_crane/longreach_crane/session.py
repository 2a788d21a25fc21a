"""
Processing of a stream of samples by the controller: cycles, status, diagnostics and log.

For missing stamps, cycles run with predictions of the observer. Outside lockstep the time of
arrival is used as well: when a sample is late, the controller continues with predictions, and
after ``sensor_timeout`` without samples the diagnosis closes the brake and latches the emergency
mode. When the publisher of the samples no longer exists, as at the end of a simulation, the log
and the diagnostics report this together with the emergency mode, and not as an error.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Literal, NamedTuple

from longreach_crane.control import Controller, ControllerState
from longreach_crane.diagnosis import Emergency, Sample, is_permitted, is_valid
from longreach_crane.scenario import Scenario
from longreach_dynamics.cycles import Arrival, Kind, SampleOrder

__all__ = ['Answer', 'Note', 'Output', 'Report', 'Session']

_LONGEST_PREDICTION = 60.0  # [s]
# Largest number of missed samples in the status message, an uint32.
_MOST_MISSED = 2**32 - 1


class Answer(NamedTuple):
    """Output of a cycle to publish: command, and status unless it was published before."""

    stamp: int  # of the cycle [ns]
    state: ControllerState
    set_point: float  # [m]
    missed: int  # samples that were missing or not valid so far
    with_status: bool = True


class Report(NamedTuple):
    """Diagnostics of a cycle."""

    stamp: int  # [ns]
    level: Literal['ok', 'warn', 'error']
    text: str
    values: Mapping[str, object]


class Note(NamedTuple):
    """A line for the log."""

    level: Literal['info', 'warn', 'error']
    text: str


Output = Answer | Report | Note


class Session:
    """
    A controller and the state of its stream of samples.

    Parameters
    ----------
    controller : Controller
    scenario : Scenario
        For its set points.
    late_after : float
        Cycles without a sample before the observer continues with predictions.
    lockstep : bool
        Use only the stamps of samples; :meth:`tick` is not called.

    Attributes
    ----------
    late_after : float
        As above; may be changed at any time.
    state : ControllerState
        After the latest cycle.
    counts : dict of str to int
        Numbers of missed, late, duplicate and invalid samples since the session was created.
    """

    def __init__(
        self,
        controller: Controller,
        scenario: Scenario,
        late_after: float = 2.0,
        lockstep: bool = False,
    ) -> None:
        self.late_after = late_after
        self.counts = dict.fromkeys(('missed', 'late', 'duplicate', 'invalid'), 0)
        self._controller = controller
        self._rules = controller.parameters
        self._scenario = scenario
        self._lockstep = lockstep
        self._period = round(self._rules.sample_time * 1e9)
        self._order: SampleOrder[Sample] = SampleOrder(
            self._rules.sample_time, self._rules.sensor_timeout, lockstep
        )
        self._reported = 0
        self.reset()

    def reset(self) -> None:
        """Reset everything but the counts: the next sample is the first."""
        self.state = self._controller.initial_state()
        self._order.clear()
        self._cycle = -1
        self._heard = 0.0
        self._suspicious = False
        self._ended = False
        self._override: float | None = None

    # --- samples -----------------------------------------------------------------------------

    def take(self, stamp: int, sample: Sample, now: float, wall: float) -> list[Output]:
        """
        Run the cycle of a sample, and the missed cycles before it.

        Parameters
        ----------
        stamp : int
            Stamp of the sample [ns].
        sample : Sample
        now : float
            Time for the detection of late samples [s]; not used in lockstep.
        wall : float
            Wall time [s].
        """
        latest = self._order.latest
        arrival = self._order.arrive(stamp, sample, wall)
        if arrival.kind is Kind.RESTART and self.state.emergency is Emergency.NONE:
            return self._begin_anew(stamp, sample, now, wall)
        if arrival.kind is not Kind.NEW:
            return self._refuse(arrival.kind, stamp, wall)
        outputs: list[Output] = []
        if latest is None:
            in_mid_run = stamp >= self._period and not self._lockstep
            if in_mid_run and not is_valid(sample):
                self.counts['invalid'] += 1
                return [Note('warn', f'{_at(stamp)} has no finite position: waiting for one')]
            self._take_over(stamp, sample)
        else:
            outputs += self._predict_missed(arrival, stamp, latest)
        if not is_valid(sample):
            self.counts['invalid'] += 1
            outputs.append(
                Note('warn', f'{_at(stamp)} without a finite position: prediction used')
            )
        outputs += self._run_cycle(sample, stamp)
        self._heard = now
        self._suspicious = self._ended = False
        return outputs + self._answer(wall)

    def _begin_anew(self, stamp: int, sample: Sample, now: float, wall: float) -> list[Output]:
        """Restart with the sample kept before, if there is one, and this one."""
        assert self._order.latest is not None
        kept, latest = self._order.kept, self._order.latest
        outputs: list[Output] = [
            Note('info', f'time began anew: {_at(stamp)} after that of {latest * 1e-9:.6f} s')
        ]
        self.reset()
        if kept is not None:
            outputs += self.take(kept.stamp, kept.payload, now, wall)
        return outputs + self.take(stamp, sample, now, wall)

    def _refuse(self, kind: Kind, stamp: int, wall: float) -> list[Output]:
        """Count and report a sample that is not the next one, or repeat its answer."""
        if self._order.latest is None:
            self.counts['invalid'] += 1
            return [Note('warn', f'{_at(stamp)} ignored, allowed: stamps from 0 on')]
        if kind is Kind.INVALID:
            self.counts['invalid'] += 1
        elif kind in (Kind.DUPLICATE, Kind.REPEATED):
            self.counts['duplicate'] += 1
            if kind is Kind.REPEATED and self._lockstep:
                return self._answer(wall, with_status=False)
        else:
            self.counts['late'] += 1
        hints = {
            Kind.RESTART: '; in emergency mode only ~/reset begins anew',
            Kind.OLDER: ' unless the next sample continues from it',
            Kind.INVALID: ', allowed: stamps from 0 on',
        }
        text = f'{kind.value} {_at(stamp)}, after {self._order.latest * 1e-9:.6f} s, is not used'
        return [Note('warn', text + hints.get(kind, ''))]

    def _take_over(self, stamp: int, sample: Sample) -> None:
        """Start with a sample: from zero at the start of a run, else from its position."""
        self._cycle = round(stamp / self._period) - 1
        if self._cycle >= 0 and is_valid(sample):
            self.state = self._controller.initial_state(sample.car_position)

    def _predict_missed(self, arrival: Arrival, stamp: int, latest: int) -> list[Output]:
        """Run the missed cycles, up to a limit after which predictions are constant."""
        if not arrival.missed:
            return []
        self.counts['missed'] += arrival.missed
        outputs: list[Output] = [
            Note(
                'warn',
                f'{arrival.missed} samples missing before the one of {stamp * 1e-9:.6f} s,'
                f' after {latest * 1e-9:.6f} s',
            )
        ]
        # A prediction comes to rest at the set point, and earlier in emergency mode.
        most = round(_LONGEST_PREDICTION / self._rules.sample_time)
        for count in range(arrival.missed):
            if count >= most or self.state.emergency is not Emergency.NONE:
                self._cycle += arrival.missed - count
                break
            outputs += self._run_cycle(None, self._next_stamp)
        return outputs

    # --- silence -----------------------------------------------------------------------------

    def tick(self, now: float, wall: float, deserted: Callable[[], bool]) -> list[Output]:
        """
        Run cycles without the samples that are late.

        Parameters
        ----------
        now : float
            Time for the detection of late samples [s].
        wall : float
            Wall time [s].
        deserted : callable
            Returns whether there is no publisher of samples.
        """
        if self._order.latest is None or not self._is_late(now):
            return []
        if not self._suspicious:
            # They may be in the queue behind this call: decide at the next tick.
            self._suspicious = True
            return []
        self._ended = deserted()
        outputs: list[Output] = [
            Note(
                'warn', f'no sample after the one of {self._order.latest * 1e-9:.6f} s: predicting'
            )
        ]
        # After a jump of the clock, at most the cycles of one second.
        for _ in range(round(1.0 / self._rules.sample_time) + 1):
            if not self._is_late(now):
                return outputs
            self.counts['missed'] += 1
            outputs += self._run_cycle(None, self._next_stamp)
            self._heard += self._rules.sample_time
            outputs += self._answer(wall)
        self._heard = now
        return outputs

    def _is_late(self, now: float) -> bool:
        """Return whether the next sample is late."""
        return now - self._heard > (1.0 + self.late_after) * self._rules.sample_time

    # --- cycles ------------------------------------------------------------------------------

    @property
    def _next_stamp(self) -> int:
        """Stamp of the cycle after the latest [ns]."""
        return (self._order.latest or 0) + self._period

    def _run_cycle(self, sample: Sample | None, stamp: int) -> list[Output]:
        """Run one cycle of the controller; report when it enters the emergency mode."""
        before = self.state.emergency
        self._cycle += 1
        self._order.accept(stamp)
        self.state = self._controller.cycle(self.state, sample, self._set_point())
        if before is not Emergency.NONE or self.state.emergency is Emergency.NONE:
            return []
        report = self._report()
        level: Literal['info', 'error'] = 'info' if report.level == 'warn' else 'error'
        return [Note(level, f'{report.text}; the brake stays closed until ~/reset'), report]

    def _set_point(self) -> float:
        """Return the desired position in this cycle [m]: the received one, or the scenario's."""
        if self._override is not None:
            return self._override
        return self._scenario.set_point(self._cycle, self._rules.sample_time)

    def _answer(self, wall: float, with_status: bool = True) -> list[Output]:
        """Return the outputs of the latest cycle, with a report once a second."""
        assert self._order.latest is not None
        self._order.answer(wall)
        missed = min(self.counts['missed'] + self.counts['invalid'], _MOST_MISSED)
        answer = Answer(self._order.latest, self.state, self._set_point(), missed, with_status)
        due = with_status and self._cycle % round(1.0 / self._rules.sample_time) == 0
        return [self._report(), answer] if due else [answer]

    def _report(self) -> Report:
        """Return diagnostics; a warning if a count has increased since the previous report."""
        assert self._order.latest is not None
        total = sum(self.counts.values())
        grown, self._reported = total > self._reported, total
        level: Literal['ok', 'warn', 'error'] = 'ok'
        text = 'controlling'
        if grown:
            level, text = 'warn', 'samples were missed, late, doubled or not valid'
        if self.state.emergency is not Emergency.NONE:
            reason = self.state.emergency.name.lower().replace('_', ' ')
            level, text = 'error', f'emergency mode: {reason}'
            if self._ended:
                text += ', the publisher of samples has ended'
                if self.state.emergency is Emergency.SENSOR_TIMEOUT:
                    level = 'warn'
        values = {**self.counts, 'brake': self.state.command.brake}
        return Report(self._order.latest, level, text, values)

    # --- set points --------------------------------------------------------------------------

    def command_position(self, position: float) -> list[Note]:
        """Use a received set point [m] until the next one."""
        if not math.isfinite(position):
            return [Note('warn', f'set point {position} m ignored, allowed: finite values')]
        self._override = position
        outputs = [Note('info', f'set point by hand: {position:g} m')]
        if self.state.emergency is not Emergency.NONE:
            text = 'in emergency mode it has no effect; call ~/reset first'
            outputs.append(Note('warn', text))
        elif not is_permitted(position, self._controller.crane):
            crane = self._controller.crane
            text = (
                f'it lies beyond a limit, [{crane.minimum_position:g},'
                f' {crane.maximum_position:g}] m: the car will be stopped there'
            )
            outputs.append(Note('warn', text))
        return outputs


def _at(stamp: int) -> str:
    """Return the name of a sample in messages, from its stamp [ns]."""
    return f'sample of {stamp * 1e-9:.6f} s'
