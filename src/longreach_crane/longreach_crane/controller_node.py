"""
The digital controller as a node: takes ``sensors``, gives ``command`` and ``status``.

Cycles are counted by the stamps of the samples, so that a stream which is played back gives the
same commands again. A gap in the stamps is filled with cycles on the observer's prediction. Unless
``lockstep`` is set the node also watches the clock: when a sample is late it goes on with
predictions by itself, and after ``sensor_timeout`` of silence the diagnosis closes the brake.
"""

from __future__ import annotations

import dataclasses
import math
import time

from longreach_msgs.msg import CraneCommand, CraneSensors, CraneStatus
from rclpy.node import Node
from std_msgs.msg import Float64
from std_srvs.srv import Trigger

from longreach_crane.control import Controller
from longreach_crane.conversions import (
    command_to_message,
    sample_from_message,
    status_to_message,
)
from longreach_crane.cycles import Arrival, Kind, classify
from longreach_crane.diagnosis import Emergency, Sample, is_permitted, is_valid
from longreach_crane.parameters import MATRICES, OUTPUTS, load_machinery
from longreach_crane.scenario import Scenario, load_scenario
from longreach_dynamics.parameters import Parameters, choice, quantity
from longreach_node import diagnostics, qos
from longreach_node.clock import LivingClock
from longreach_node.parameters import declare
from longreach_node.stamps import nanoseconds_of, seconds_to_nanoseconds, stamp_of

__all__ = ['ControllerNode', 'ControllerNodeParameters']

# In lockstep, a sample that comes again this long after the answer [s of wall time] is no doubled
# message but a plant that has not heard the answer.
_ASKED_AGAIN = 0.25

_LONGEST_PREDICTION = 60.0  # [s]


@dataclasses.dataclass(frozen=True)
class ControllerNodeParameters(Parameters):
    """Parameters of the controller node."""

    file: str = quantity('crane file; empty for C13R', '', default='')
    scenario: str = quantity(
        'scenario file, for set points and diagnosis; empty for none', '', default=''
    )
    matrices: str = choice(
        "of observer and regulator; as_in_file: the crane file's",
        ('as_in_file', *MATRICES),
        default='as_in_file',
    )
    output: str = choice(
        "when a force acts; as_in_file: the crane file's",
        ('as_in_file', *OUTPUTS),
        default='as_in_file',
    )
    lockstep: bool = quantity('only stamps count, the clock does not', default=False)
    late_after: float = quantity(
        'cycles without a sample before the observer goes on alone', at_least=0.5, default=2.0
    )


class ControllerNode(Node):
    """Observer, regulator, brake rule and diagnosis of the crane."""

    def __init__(self) -> None:
        super().__init__('controller')
        self._settings = declare(self, ControllerNodeParameters)
        machinery = load_machinery(self._settings.file or None)
        machinery = machinery.with_variants(self._settings.matrices, self._settings.output)
        self._rules = machinery.controller
        self._scenario = Scenario(duration=1.0)
        if self._settings.scenario:
            self._scenario = load_scenario(self._settings.scenario, self._rules.sample_time)
        self._controller = Controller.of(machinery, self._scenario.diagnosis)
        self._period = seconds_to_nanoseconds(self._rules.sample_time)
        self._counts = dict.fromkeys(('missed', 'late', 'duplicate', 'invalid'), 0)
        self._begin()
        self._diagnostics = diagnostics.Diagnostics(self, 'controller')
        stream = qos.stream(self._settings.lockstep)
        self._status = self.create_publisher(CraneStatus, 'status', stream)
        self._commands = self.create_publisher(CraneCommand, 'command', stream)
        self.create_subscription(CraneSensors, 'sensors', self._on_sensors, qos.STREAM)
        self.create_subscription(Float64, 'set_point', self._on_set_point, qos.SET_POINT)
        self.create_service(Trigger, '~/reset', self._on_reset)
        if not self._settings.lockstep:
            self._watch = LivingClock(self, self._rules.sensor_timeout)
            self._watch.create_timer(self._rules.sample_time, self._on_tick)

    def _begin(self) -> None:
        """Forget everything: the next sample is the first."""
        self._state = self._controller.initial_state()
        self._cycle = -1
        self._stamp = 0
        self._heard = 0.0
        self._suspicious = False
        self._answered = 0.0
        self._override: float | None = None

    def _on_sensors(self, message: CraneSensors) -> None:
        """Run the cycle of a sample, and those that were missed before it."""
        stamp, sample = nanoseconds_of(message.header.stamp), sample_from_message(message)
        arrival = self._arrival(stamp, sample)
        if arrival.kind is not Kind.NEW:
            return
        self._counts['missed'] += arrival.missed
        self._predict(arrival.missed)
        if not is_valid(sample):
            self._counts['invalid'] += 1
            self._warn(f'sample of {stamp * 1e-9:.6f} s without a finite position is not used')
        self._run_cycle(sample, stamp)
        self._heard = self._now()
        self._suspicious = False
        self._publish()

    def _arrival(self, stamp: int, sample: Sample) -> Arrival:
        """Tell what a sample is, count and report what is not the next one."""
        T = self._rules.sample_time
        if self._cycle < 0:
            if stamp >= self._period and not is_valid(sample) and not self._settings.lockstep:
                # In mid-run the first sample tells where the car is: wait for one that does.
                return Arrival(Kind.LATE)
            self._take_over(stamp, sample)
            return Arrival(Kind.NEW)
        arrival = classify(stamp, self._stamp, T, self._rules.sensor_timeout)
        where = f'{stamp * 1e-9:.6f} s, after {self._stamp * 1e-9:.6f} s'
        if arrival.kind is Kind.NEW and arrival.missed:
            self._warn(f'{arrival.missed} samples missing before the one of {where}')
        elif self._is_restart(arrival.kind, stamp):
            self.get_logger().info(f'time began anew: sample of {where}')
            self._begin()
            self._take_over(stamp, sample)
            return Arrival(Kind.NEW)
        elif arrival.kind is not Kind.NEW:
            self._counts['duplicate' if arrival.kind is Kind.DUPLICATE else 'late'] += 1
            doubled = arrival.kind is Kind.DUPLICATE
            if doubled and self._settings.lockstep and self._is_asked_again():
                self._answer()
                return arrival
            hint = '; in emergency mode only ~/reset begins anew'
            self._warn(
                f'{arrival.kind.value} sample of {where}, is not used'
                + (hint if arrival.kind is Kind.RESTART else '')
            )
        return arrival

    def _is_restart(self, kind: Kind, stamp: int) -> bool:
        """Tell whether a sample means that time began anew; never in emergency mode."""
        if self._state.emergency is not Emergency.NONE:
            return False
        # In lockstep a plant that was reset soon after its start insists on its first sample.
        insists = self._settings.lockstep and stamp == 0 and self._is_asked_again()
        return kind is Kind.RESTART or (kind is Kind.LATE and insists)

    def _is_asked_again(self) -> bool:
        """Tell whether a sample that comes now is a question, and no stray message."""
        return time.monotonic() - self._answered > _ASKED_AGAIN

    def _take_over(self, stamp: int, sample: Sample) -> None:
        """Begin with a sample: from zero with the run, from the measured position in mid-run."""
        self._cycle = round(stamp / self._period) - 1
        if self._cycle >= 0 and is_valid(sample):
            self._state = self._controller.initial_state(sample.car_position)

    def _predict(self, missed: int) -> None:
        """Run the cycles that were missed, as far as they still change anything."""
        # A prediction comes to rest at the set point, and sooner than that in emergency mode.
        most = round(_LONGEST_PREDICTION / self._rules.sample_time)
        for count in range(missed):
            if count >= most or self._state.emergency is not Emergency.NONE:
                self._cycle += missed - count
                return
            self._run_cycle(None, self._stamp + self._period)

    def _run_cycle(self, sample: Sample | None, stamp: int) -> None:
        """Run one cycle of the controller and say when it entered the emergency mode."""
        before = self._state.emergency
        self._cycle += 1
        self._stamp = stamp
        self._state = self._controller.cycle(self._state, sample, self._set_point())
        if before is Emergency.NONE and self._state.emergency is not Emergency.NONE:
            reason = self._state.emergency.name.lower().replace('_', ' ')
            self.get_logger().error(f'emergency mode: {reason}; the brake stays closed')
            self._report()

    def _set_point(self) -> float:
        """Return the desired position in this cycle [m]: sent by hand, or the scenario's."""
        if self._override is not None:
            return self._override
        return self._scenario.set_point(self._cycle, self._rules.sample_time)

    def _publish(self) -> None:
        """Publish command and status of this cycle."""
        stamp = stamp_of(self._stamp)
        # As many as the message can count.
        missed = min(self._counts['missed'] + self._counts['invalid'], 2**32 - 1)
        self._status.publish(
            status_to_message(self._state, self._controller, self._set_point(), missed, stamp)
        )
        if self._cycle % round(1.0 / self._rules.sample_time) == 0:
            self._report()
        # Last: in lockstep the plant goes on as soon as it has this.
        self._answer()

    def _answer(self) -> None:
        """Publish the command of this cycle."""
        self._answered = time.monotonic()
        stamp = stamp_of(self._stamp)
        self._commands.publish(command_to_message(self._state.command, stamp))

    def _report(self) -> None:
        """Publish diagnostics."""
        level, text = diagnostics.OK, 'controlling'
        if any(self._counts.values()):
            level, text = diagnostics.WARN, 'samples were missed, late, doubled or not valid'
        if self._state.emergency is not Emergency.NONE:
            level, text = diagnostics.ERROR, f'emergency mode: {self._state.emergency.name}'
        values = {**self._counts, 'brake': self._state.command.brake}
        self._diagnostics.publish(stamp_of(self._stamp), level, text, values)

    def _now(self) -> float:
        """Return the time by which silence is measured [s]."""
        return 0.0 if self._settings.lockstep else self._watch.now()

    def _on_tick(self) -> None:
        """Go on without the samples that are late."""
        if self._cycle < 0 or not self._is_late():
            return
        if not self._suspicious:
            # They may wait in the queue, behind this callback: decide on the next tick.
            self._suspicious = True
            return
        self._warn(f'no sample after the one of {self._stamp * 1e-9:.6f} s: predicting')
        # Not without end, after a jump of the clock: a second's worth, then it counts as now.
        for _ in range(round(1.0 / self._rules.sample_time) + 1):
            if not self._is_late():
                return
            self._counts['missed'] += 1
            self._run_cycle(None, self._stamp + self._period)
            self._heard += self._rules.sample_time
            self._publish()
        self._heard = self._now()

    def _is_late(self) -> bool:
        """Tell whether the next sample is overdue."""
        patience = (1.0 + self._settings.late_after) * self._rules.sample_time
        return self._now() - self._heard > patience

    def _on_set_point(self, message: Float64) -> None:
        """Take a set point sent by hand; it holds until the next one."""
        if not math.isfinite(message.data):
            self._warn(f'set point {message.data} m ignored, allowed: finite values')
            return
        self._override = message.data
        self.get_logger().info(f'set point by hand: {message.data:g} m')
        if self._state.emergency is not Emergency.NONE:
            self.get_logger().warn('in emergency mode it has no effect; call ~/reset first')
        elif not is_permitted(message.data, self._controller.crane):
            self.get_logger().warn('it lies beyond a limit: the car will be stopped there')

    def _on_reset(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        """Begin anew, also from the emergency mode."""
        self._begin()
        response.success = True
        response.message = 'the next sample is the first'
        return response

    def _warn(self, text: str) -> None:
        """Warn, but not about every sample of a bad stream."""
        self.get_logger().warn(text, throttle_duration_sec=1.0)
