"""Topics of the sensors of a boom, a part of the plant node."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

import numpy as np
from longreach_msgs.msg import HydraulicState, InclinationState, StrainState
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Header

from longreach_boom.parameters import BoomParameters
from longreach_boom.sensors import KINDS, SensorParameters, Sensors, load_sensors
from longreach_boom.state import BoomState
from longreach_node.plant_node import PlantNode

# Messages, what their names are of, and their fields, for each name one after the other.
_KINDS: dict[str, tuple[type[Any], str, tuple[str, ...]]] = {
    'inclination': (InclinationState, 'beams', ('root', 'tip')),
    'pressure': (HydraulicState, 'cylinders', ('head_pressure', 'rod_pressure')),
    'encoder': (JointState, 'cylinders', ('position',)),
    'strain': (StrainState, 'beams', ('strain',)),
}


class SensorTopics:
    """Publishers of the readings, below ``sensors/``, for the plant's settings."""

    def __init__(
        self, node: PlantNode[Any, Any], boom: BoomParameters, settings: Any, friction: bool
    ) -> None:
        self._node, self._boom = node, boom
        self._rate, self._friction = settings.publish_rate, friction
        self._parameters = given = load_sensors(settings.sensors, boom.size)
        self._sensors = self._made(given)
        self._names = {
            what: [item.name for item in getattr(boom, what)] for what in ('beams', 'cylinders')
        }
        self._outputs = {
            name: node.add_output(kind, f'sensors/{name}', settings)
            for name, (kind, *_) in _KINDS.items()
        }
        self._inertial = [
            node.add_output(Imu, f'sensors/imu/{beam}', settings)
            for beam in self._names['beams']
            if given.gyroscope or given.accelerometer
        ]
        self._latest = self._last = 0
        self._pending: deque[tuple[int, Any, Any]] = deque()

    def set_noise(self, factor: float) -> None:
        """Multiply the noise of the sensor file by a factor from now on."""
        given = {name: kind for name in KINDS if (kind := getattr(self._parameters, name))}
        scaled = {name: kind.replace(noise=factor * kind.noise) for name, kind in given.items()}
        self._sensors = self._made(self._parameters.replace(**scaled))

    def _made(self, parameters: SensorParameters) -> Sensors:
        """Return the sensors of the boom with the given parameters."""
        return Sensors(self._boom, parameters, self._rate, self._friction)

    def publish(self, state: BoomState, sample: int, header: Header) -> None:
        """Publish the readings of the sensors that are due at a sample."""
        if sample < self._latest:
            self._pending.clear()  # the plant was reset
            self._last = 0
        self._latest = sample
        # Also where nobody listens, so that messages come at the same samples in each run.
        due = self._last = max(self._due(sample), self._last)
        needed = self._node.is_needed
        wanted = [name for name, output in self._outputs.items() if needed(output)]
        if any(needed(output) for output in self._inertial):
            wanted += ['gyroscope', 'accelerometer']
        readings = self._sensors.read(state, sample, wanted)
        for output, message in self._messages(readings, header):
            self._pending.append((due, output, message))
        while self._pending and self._pending[0][0] <= sample:
            _, output, message = self._pending.popleft()
            output.publish(message)

    def _due(self, sample: int) -> int:
        """Return the sample at which messages of readings at a sample are published."""
        given = self._parameters
        delay = given.delay
        if given.jitter:
            # As the noise: the same when a run is repeated or paused.
            random = np.random.default_rng([given.seed, sample])
            delay += given.jitter * random.uniform(-1.0, 1.0)
        due: int = sample + round(delay * self._rate)
        return due

    def _messages(
        self, readings: dict[str, np.ndarray], header: Header
    ) -> Iterator[tuple[Any, Any]]:
        """Yield the publishers of readings with their messages."""
        for name, (kind, of, fields) in _KINDS.items():
            if name not in readings:
                continue
            rows = np.reshape(readings[name], (len(fields), -1)).tolist()
            values = dict(zip(fields, rows, strict=True))
            yield self._outputs[name], kind(header=header, name=self._names[of], **values)
        rates, felt = readings.get('gyroscope'), readings.get('accelerometer')
        if rates is not None or felt is not None:
            yield from self._inertial_messages(rates, felt, header)

    def _inertial_messages(
        self, rates: np.ndarray | None, felt: np.ndarray | None, header: Header
    ) -> Iterator[tuple[Any, Any]]:
        """Yield messages of the inertial sensors; x along a beam, z across, y to the left."""
        for i, (beam, output) in enumerate(zip(self._names['beams'], self._inertial, strict=True)):
            frame = f'{header.frame_id.rpartition("/")[0]}/{beam}_tip'.lstrip('/')
            message = Imu(header=Header(stamp=header.stamp, frame_id=frame))
            # Not measured, by the convention of the message.
            message.orientation_covariance[0] = -1.0
            if rates is None:
                message.angular_velocity_covariance[0] = -1.0
            else:
                # Lifting turns about the axis to the right.
                message.angular_velocity.y = -float(rates[i])
            if felt is None:
                message.linear_acceleration_covariance[0] = -1.0
            else:
                message.linear_acceleration.x = float(felt[i])
                message.linear_acceleration.z = float(felt[len(self._inertial) + i])
            yield output, message
