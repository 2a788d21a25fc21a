"""
Node of the digital controller: ``sensors`` in, ``command`` and ``status`` out.

Cycles are counted by the stamps of the samples, so that a recorded stream results in the same
commands when it is played back. Unless ``lockstep`` is set, the node also monitors the clock.
Missing, late and duplicate samples are handled in :mod:`longreach_crane.session`.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Sequence

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
from longreach_crane.description import ROOT_FRAME
from longreach_crane.scenario import Scenario
from longreach_crane.session import Answer, Note, Output, Session
from longreach_crane.spec import CRANE, ControlOptions
from longreach_dynamics.parameters import quantity
from longreach_node import diagnostics, qos
from longreach_node.clock import LivingClock
from longreach_node.frames import frame_name, header_at
from longreach_node.machine_parameters import MachineParameters, machine_and_scenario
from longreach_node.parameters import declare
from longreach_node.silence import SilenceWatch
from longreach_node.stamps import nanoseconds_of, stamp_of

__all__ = ['ControllerNode', 'ControllerNodeParameters']

# Shortest time between two lines on set points [s].
_SAID = 1.0


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


class ControllerNode(Node):
    """Observer, regulator, brake rule and diagnosis of the crane."""

    def __init__(self) -> None:
        super().__init__('controller')
        settings = declare(self, ControllerNodeParameters, self._on_settings)
        self._frame = frame_name(self, settings, ROOT_FRAME)
        machinery, scenario = machine_and_scenario(
            CRANE, settings, lambda _: Scenario(duration=1.0)
        )
        rules = machinery.controller
        self._controller = Controller.of(machinery, scenario.diagnosis)
        self._session = Session(self._controller, scenario, settings.late_after, settings.lockstep)
        self._said = -math.inf
        self._diagnostics = diagnostics.Diagnostics(self, 'controller')
        stream = qos.stream(settings.lockstep)
        self._status = self.create_publisher(CraneStatus, 'status', stream)
        self._commands = self.create_publisher(CraneCommand, 'command', stream)
        self._sensors = self.create_subscription(
            CraneSensors, 'sensors', self._on_sensors, qos.STREAM
        )
        self.create_subscription(Float64, 'set_point', self._on_set_point, qos.SET_POINT)
        self.create_service(Trigger, '~/reset', self._on_reset)
        self._watch: LivingClock | None = None
        if not settings.lockstep:
            self._watch = LivingClock(self, rules.sensor_timeout)
            self._watch.create_timer(rules.sample_time, self._on_tick)
        self._silence = SilenceWatch(self, self._sensors)
        self.get_logger().info(
            f'{settings.file or "C13R"}, {settings.scenario or "no scenario"}, sample time'
            f' {rules.sample_time:g} s{", lockstep" * settings.lockstep}: waiting for'
            f' {self._sensors.topic_name}'
        )

    def _on_settings(self, settings: ControllerNodeParameters) -> None:
        """Apply parameters that were set at run time."""
        self._session.late_after = settings.late_after

    def _on_sensors(self, message: CraneSensors) -> None:
        """Run the cycle of a sample, and the missed cycles before it."""
        self._silence.heard()
        stamp, sample = nanoseconds_of(message.header.stamp), sample_from_message(message)
        self._put_out(self._session.take(stamp, sample, self._now(), time.monotonic()))

    def _on_tick(self) -> None:
        """Run cycles without the samples that are late."""
        self._put_out(self._session.tick(self._now(), time.monotonic(), self._is_deserted))

    def _on_set_point(self, message: Float64) -> None:
        """Take a set point sent by hand; it holds until the next one."""
        said, *warnings = self._session.command_position(message.data)
        # A stream of set points does not fill the log.
        if time.monotonic() - self._said > _SAID:
            self._said = time.monotonic()
            self._put_out([said])
        self._put_out(warnings)

    def _on_reset(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        """Reset the controller, also from the emergency mode."""
        self._session.reset()
        response.success = True
        response.message = 'the next sample is the first'
        return response

    def _now(self) -> float:
        """Return the time for the detection of late samples [s]."""
        return 0.0 if self._watch is None else self._watch.now()

    def _is_deserted(self) -> bool:
        """Return whether there is no publisher of samples."""
        return self._sensors.get_publisher_count() == 0

    def _put_out(self, outputs: Sequence[Output]) -> None:
        """Publish and log the outputs of the session, in order."""
        for output in outputs:
            if isinstance(output, Answer):
                self._publish(output)
            elif isinstance(output, Note):
                self._log(output)
            else:
                level = diagnostics.LEVELS[output.level]
                stamp = stamp_of(output.stamp)
                self._diagnostics.publish(stamp, level, output.text, output.values)

    def _publish(self, answer: Answer) -> None:
        """Publish status and command of a cycle."""
        header = header_at(answer.stamp, self._frame)
        if answer.with_status:
            self._status.publish(
                status_to_message(
                    answer.state, self._controller, answer.set_point, answer.missed, header
                )
            )
        # Published last: in lockstep the plant continues as soon as it has received this.
        self._commands.publish(command_to_message(answer.state.command, header))

    def _log(self, note: Note) -> None:
        """Log a note; warnings at most once a second."""
        logger = self.get_logger()
        if note.level == 'warn':
            logger.warning(note.text, throttle_duration_sec=1.0)
        elif note.level == 'error':
            logger.error(note.text)
        else:
            logger.info(note.text)
