"""
Nodes of the crane: the plant, and the digital controller that answers its samples.

Plant: ``command`` in, ``sensors`` and ``joint_states`` out. Controller: ``sensors`` in,
``command`` and ``status`` out.

Cycles of the controller are counted by the stamps of the samples, so that a recorded stream
results in the same commands when it is played back. For missing stamps, cycles run with
predictions of the observer. Unless ``lockstep`` is set, the node also monitors the clock: when a
sample is late, it continues with predictions, and after ``sensor_timeout`` the diagnosis closes
the brake and latches the emergency mode. When the publisher of the samples no longer exists, as at
the end of a simulation, log and diagnostics report this together with the emergency mode, and not
as an error.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from longreach_msgs.msg import CraneCommand, CraneSensors, CraneStatus
from rclpy.publisher import Publisher
from std_msgs.msg import Float64, Header
from std_srvs.srv import Trigger

from longreach_crane.control import Controller, Emergency, Sample, is_permitted, sense
from longreach_crane.machine import Command, Crane, CraneState
from longreach_crane.model import CAR_POSITION
from longreach_crane.parameters import Machinery
from longreach_crane.spec import CRANE, ControlOptions, PlantOptions
from longreach_dynamics.errors import InputError, check_within
from longreach_dynamics.parameters import quantity
from longreach_node import qos
from longreach_node.clock import LivingClock, steady_clock
from longreach_node.cycle_node import CycleNode, Level
from longreach_node.frames import frame_name, header_at
from longreach_node.parameters import declare
from longreach_node.plant_node import PlantNode as Base
from longreach_node.remote import remote
from longreach_node.simulator_parameters import CycleParameters, MachineParameters


@dataclasses.dataclass(frozen=True)
class PlantParameters(CycleParameters, MachineParameters, PlantOptions):
    """Parameters of the plant node."""


class PlantNode(Base[CraneState, Command]):
    """Simulation of the crane as a node; without a controller its brake is closed."""

    spec, settings_type = CRANE, PlantParameters
    command_type, command_topic = CraneCommand, 'command'
    described: Machinery

    def safe_command(self) -> Command:
        """Return the command that closes the brake."""
        return Command(0.0, True)

    first_command = safe_command

    def sampled(self, machine: Crane, settings: PlantParameters) -> PlantParameters:  # noqa: ARG002
        """Return the settings: a sample is a control cycle."""
        return settings.following(self.described.controller.sample_time)

    def add_topics(self, settings: PlantParameters) -> None:
        """Create the publisher of sensors."""
        self._sensors = self.add_output(CraneSensors, 'sensors', settings)

    def answered(self) -> list[Publisher]:
        """Return the publisher of sensors."""
        return [self._sensors]

    def waits(self, scenario: Any) -> bool:  # noqa: ARG002
        """Return that the first sample waits for the controller."""
        return True

    def publish_own(self, header: Header) -> None:
        """Publish the readings of the sensors."""
        sample = sense(self.state.x[CAR_POSITION], self.described.crane)
        self._sensors.publish(CraneSensors(header=header, **sample._asdict()))

    def command_of(self, message: CraneCommand) -> Command:
        """Return the command of a message; refuse one beyond the maximum force."""
        most = self.described.controller.maximum_force
        allowed = f'[{-most}, {most}] N; the maximum_force of the crane file'
        check_within('force', message.force, allowed)
        return Command(message.force, message.brake)


# A prediction comes to rest at the set point, and earlier in emergency mode [s].
_LONGEST_PREDICTION = 60.0
# Largest number of missed samples in the status message, an uint32.
_MOST_MISSED = 2**32 - 1
_SECOND = 1_000_000_000  # [ns]


@dataclasses.dataclass(frozen=True)
class ControllerNodeParameters(MachineParameters, ControlOptions):
    """Parameters of the controller node."""

    lockstep: bool = quantity('use only the stamps of samples, not the clock', default=False)
    late_after: float = quantity(
        'cycles without a sample before the observer continues with predictions',
        at_least=0.5,
        default=2.0,
        read_only=False,
    )


class ControllerNode(CycleNode[CraneCommand]):
    """Observer, regulator, brake rule and diagnosis of the crane."""

    command_type, command_topic = CraneCommand, 'command'
    sample_type, hydraulics, whole_cycles = CraneSensors, False, True

    def __init__(self) -> None:
        super().__init__('controller')
        settings = declare(self, ControllerNodeParameters, self._on_settings)
        self._frame = frame_name(self, settings, CRANE.root_frame)
        machinery, scenario = settings.read(CRANE)
        self._scenario = CRANE.rest(machinery) if scenario is None else scenario
        self._controller = Controller.of(machinery, self._scenario.diagnosis)
        self._on_settings(settings)
        T = machinery.controller.sample_time
        self._sample_time, self._period = T, round(T * 1e9)
        self._begin()
        self._status = self.create_publisher(CraneStatus, 'status', qos.stream(settings.lockstep))
        what = f'{settings.file or "C13R"}, {settings.scenario or "no scenario"}'
        self.listen(f'{what}, sample time {T:g} s', T, settings.lockstep, 'sensors')
        self.create_subscription(Float64, 'set_point', self._on_set_point, qos.SET_POINT)
        self.create_service(Trigger, '~/reset', self._on_reset)
        self._watch_clock: LivingClock | None = None
        if not settings.lockstep:
            self._watch_clock = LivingClock(self, machinery.controller.sensor_timeout)
            self.create_timer(T, self._on_tick, clock=steady_clock())

    def _on_settings(self, settings: ControllerNodeParameters) -> None:
        """Apply parameters that were set at run time."""
        self._late_after = settings.late_after

    def _begin(self) -> None:
        """Return to the state before the first cycle."""
        self._state = self._controller.initial_state()
        self._cycle, self._sampled = -1, 0.0
        self._suspicious = self._deserted = False
        self._override: float | None = None

    # --- samples -----------------------------------------------------------------------------

    def run_cycle(self, stamp: int, joints: CraneSensors, hydraulics: Any) -> CraneCommand:  # noqa: ARG002
        """Return the command to a sample, after the missed cycles before it."""
        sample = Sample(joints.car_position, joints.below_minimum, joints.above_maximum)
        latest, missed = self._samples.latest, 0
        if latest is None:
            in_mid_run = stamp >= self._period and self._watch_clock is not None
            if in_mid_run and not sample.is_valid:
                raise InputError('it has no finite position: waiting for one')
            # From zero at the start of a run, else from the sample's position.
            self._cycle = round(stamp / self._period) - 1
            if self._cycle >= 0 and sample.is_valid:
                observer = self._controller.initial_state(sample.car_position).observer
                self._state = self._state._replace(observer=observer)
        else:
            missed = round((stamp - latest) / self._period) - 1
            self._predict(missed, latest)
        if not sample.is_valid:
            self._samples.invalid(stamp, InputError('no finite position: predicted'))
        self._suspicious = self._deserted = False
        self._sampled = self._now()
        return self._run_one(sample, stamp, missed)

    def forget(self) -> None:
        """Begin anew; the emergency mode stays until ~/reset."""
        emergency = self._state.emergency
        self._begin()
        if emergency is not Emergency.NONE:
            self._state = self._state._replace(emergency=emergency, command=Command(0.0, True))

    def _predict(self, missed: int, latest: int) -> None:
        """Run missed cycles, up to a limit after which predictions are constant."""
        most = round(_LONGEST_PREDICTION / self._sample_time)
        for count in range(missed):
            if count >= most or self._state.emergency is not Emergency.NONE:
                self._cycle += missed - count
                return
            self._advance(None, latest + (count + 1) * self._period)

    def _advance(self, sample: Sample | None, stamp: int) -> None:
        """Run one cycle of the controller; report when it enters the emergency mode."""
        before = self._state.emergency
        self._cycle += 1
        self._state = self._controller.cycle(self._state, sample, self._set_point())
        if before is not Emergency.NONE or self._state.emergency is Emergency.NONE:
            return
        text = f'{self.state_text()}; the brake stays closed until ~/reset'
        log = self.get_logger()
        (log.error if self.state_level() == 'error' else log.info)(text)
        self._report(stamp)

    def _run_one(self, sample: Sample | None, stamp: int, missed: int = 0) -> CraneCommand:
        """Return the command of a cycle after publishing its status."""
        self._advance(sample, stamp)
        header, counts, state = header_at(stamp, self._frame), self._samples.counts, self._state
        names = ('motor_force', 'car_position', 'car_velocity', 'angle', 'angular_velocity')
        self._status.publish(
            CraneStatus(
                header=header,
                set_point=self._set_point(),
                **dict(zip(names, state.observer.tolist(), strict=True)),
                steady_time=self._controller.steady_time(state),
                brake=state.command.brake,
                emergency_mode=bool(state.emergency),
                emergency_reason=int(state.emergency),
                missed_samples=min(counts['missed'] + counts['invalid'] + missed, _MOST_MISSED),
            )
        )
        return CraneCommand(header=header, force=state.command.force, brake=state.command.brake)

    def _set_point(self) -> float:
        """Return the desired position in this cycle [m]: the received one, or the scenario's."""
        if self._override is not None:
            return self._override
        wanted: float = self._scenario.set_point(self._cycle, self._sample_time)
        return wanted

    # --- silence -----------------------------------------------------------------------------

    def _on_tick(self) -> None:
        """Run cycles without the samples that are late."""
        now = self._now()
        if self._samples.latest is None or not self._is_late(now):
            return
        if not self._suspicious:
            # They may be in the queue behind this call: decide at the next tick.
            self._suspicious = True
            return
        self._deserted = self._topics[0].get_publisher_count() == 0
        self.warn(f'no sample after the one of {self._samples.latest * 1e-9:.6f} s: predicting')
        # After a jump of the clock, at most the cycles of one second.
        for _ in range(round(1.0 / self._sample_time) + 1):
            if not self._is_late(now):
                return
            self._samples.counts['missed'] += 1
            before = self._samples.latest
            stamp = before + self._period
            command = self._run_one(None, stamp)
            self._sampled += self._sample_time
            self.put_out(stamp, command, report=before // _SECOND < stamp // _SECOND)
        self._sampled = now

    def _is_late(self, now: float) -> bool:
        """Return whether the next sample is late."""
        allowed: float = (1.0 + self._late_after) * self._sample_time
        return now - self._sampled > allowed

    def _now(self) -> float:
        """Return the time for the detection of late samples [s]."""
        return 0.0 if self._watch_clock is None else self._watch_clock.now()

    # --- diagnostics -------------------------------------------------------------------------

    def state_text(self) -> str:
        """Return what the controller does."""
        if self._state.emergency is Emergency.NONE:
            return 'controlling'
        text = f'emergency mode: {self._state.emergency.name.lower().replace("_", " ")}'
        return text + ', the publisher of samples has ended' * self._deserted

    def state_level(self) -> Level:
        """Return error in emergency mode, warn if that is the end of the plant."""
        if self._state.emergency is Emergency.NONE:
            return 'ok'
        is_end = self._deserted and self._state.emergency is Emergency.SENSOR_TIMEOUT
        return 'warn' if is_end else 'error'

    def state_values(self) -> dict[str, object]:
        """Return whether the brake is closed."""
        return {'brake': self._state.command.brake}

    # --- by hand -----------------------------------------------------------------------------

    def _on_set_point(self, message: Float64) -> None:
        """Take a set point [m]; it holds until the next one."""
        position, crane = message.data, self._controller.crane
        if not math.isfinite(position):
            self.warn(f'set point {position} m ignored, allowed: finite values')
            return
        self._override = position
        # A stream of set points does not fill the log.
        text = f'set point by hand: {position:g} m'
        self.get_logger().info(text, throttle_duration_sec=1.0)
        if self._state.emergency is not Emergency.NONE:
            self.warn('in emergency mode it has no effect; call ~/reset first')
        elif not is_permitted(position, crane):
            self.warn(
                f'it lies beyond a limit, [{crane.minimum_position:g},'
                f' {crane.maximum_position:g}] m: the car will be stopped there'
            )

    def _on_reset(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        """Reset the controller, also from the emergency mode."""
        self._begin()
        self._samples.clear()
        response.success = True
        response.message = 'the next sample is the first'
        return response


def send_set_point(position: float, namespace: str, timeout: float) -> str:
    """Send a car position [m] to the controller of a namespace; return the topic."""
    with remote('set_point', namespace, timeout, 'longreach launch crane') as far:
        publisher = far.publisher(Float64, 'set_point', qos.SET_POINT, 'controller')
        far.deliver(publisher, Float64(data=position))
        return str(publisher.topic_name)
