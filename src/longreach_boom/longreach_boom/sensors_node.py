"""Topics of the sensors of a boom, a part of the plant node."""

from __future__ import annotations

from typing import Any

import numpy as np
from longreach_msgs.msg import HydraulicState, InclinationState, StrainState
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Header

from longreach_boom.parameters import BoomParameters
from longreach_boom.sensors import SensorParameters, Sensors, load_sensors
from longreach_boom.state import BoomState
from longreach_node.hydraulic_messages import hydraulic_state
from longreach_node.plant_node import PlantNode

_KINDS = {
    'inclination': InclinationState,
    'pressure': HydraulicState,
    'encoder': JointState,
    'strain': StrainState,
}


class SensorTopics:
    """
    Publishers of the sensor readings of a boom, below ``sensors/``.

    ``settings`` of the plant name the sensor file (empty: no sensors) and the sample rate;
    ``friction`` says whether pistons have it. InputError for a file that cannot be read or does
    not match boom and sample rate.
    """

    def __init__(
        self, node: PlantNode[Any, Any], boom: BoomParameters, settings: Any, friction: bool
    ) -> None:
        self._boom, self._rate, self._friction = boom, settings.publish_rate, friction
        self._parameters = load_sensors(settings.sensors) if settings.sensors else None
        self._sensors: Sensors | None = None
        if self._parameters is not None:
            self._sensors = self._made(self._parameters)
            self._outputs = {
                name: node.add_output(kind, f'sensors/{name}', settings)
                for name, kind in _KINDS.items()
            }
        self._beams = [beam.name for beam in boom.beams]
        p = self._parameters
        self._inertial = [
            node.add_output(Imu, f'sensors/imu/{beam}', settings)
            for beam in self._beams
            if p is not None and (p.gyroscope or p.accelerometer)
        ]
        self._cylinders = [cylinder.name for cylinder in boom.cylinders]

    def set_noise(self, factor: float) -> None:
        """Multiply the noise of the sensor file by a factor from now on."""
        if self._parameters is None:
            return
        names = (*_KINDS, 'gyroscope', 'accelerometer')
        given = {name: kind for name in names if (kind := getattr(self._parameters, name))}
        scaled = {name: kind.replace(noise=factor * kind.noise) for name, kind in given.items()}
        self._sensors = self._made(self._parameters.replace(**scaled))

    def _made(self, parameters: SensorParameters) -> Sensors:
        """Return the sensors of the boom with the given parameters."""
        return Sensors(self._boom, parameters, self._rate, self._friction)

    def publish(self, state: BoomState, sample: int, header: Header) -> None:
        """Publish the readings of the sensors that are due at a sample."""
        if self._sensors is None:
            return
        beams, cylinders, outputs = self._beams, self._cylinders, self._outputs
        root, tip, head, rod, encoders, strains, rates, felt = self._sensors.read(state, sample)
        if root is not None and tip is not None:
            outputs['inclination'].publish(
                InclinationState(header=header, name=beams, root=root.tolist(), tip=tip.tolist())
            )
        if head is not None and rod is not None:
            outputs['pressure'].publish(hydraulic_state(cylinders, head, rod, header))
        if encoders is not None:
            message = JointState(header=header, name=cylinders, position=encoders.tolist())
            outputs['encoder'].publish(message)
        if strains is not None:
            message = StrainState(header=header, name=beams, strain=strains.tolist())
            outputs['strain'].publish(message)
        if rates is not None or felt is not None:
            self._publish_inertial(rates, felt, header)

    def _publish_inertial(
        self, rates: np.ndarray | None, felt: np.ndarray | None, header: Header
    ) -> None:
        """Publish the inertial sensors of each beam; x along it, z across, y to the left."""
        for i, (beam, output) in enumerate(zip(self._beams, self._inertial, strict=True)):
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
                message.linear_acceleration.z = float(felt[len(self._beams) + i])
            output.publish(message)
