"""Topics of the sensors of a boom, a part of the plant node."""

from __future__ import annotations

from longreach_msgs.msg import HydraulicState, InclinationState, StrainState
from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.qos import QoSProfile
from sensor_msgs.msg import JointState
from std_msgs.msg import Header

from longreach_boom import conversions
from longreach_boom.parameters import BoomParameters
from longreach_boom.sensors import SensorParameters, Sensors, load_sensors
from longreach_boom.state import BoomState
from longreach_node.hydraulic_messages import hydraulic_state


class SensorTopics:
    """
    Publishers of the sensor readings of a boom, below ``sensors/``.

    Parameters
    ----------
    node : Node
    boom : BoomParameters
    file : str
        Sensor file; default or typical for an installed one; empty for no sensors.
    sample_rate : float
        Sample rate of the plant [Hz].
    stream : QoSProfile
    friction : bool
        Whether the pistons of the plant have friction.

    Raises
    ------
    InputError
        For a file that cannot be read or does not match boom and sample rate.
    """

    def __init__(
        self,
        node: Node,
        boom: BoomParameters,
        file: str,
        sample_rate: float,
        stream: QoSProfile,
        friction: bool = True,
    ) -> None:
        self.publishers: list[Publisher] = []
        self._sensors: Sensors | None = None
        if not file:
            return
        self._parameters = load_sensors(file)
        self._boom, self._sample_rate, self._friction = boom, sample_rate, friction
        self._sensors = self._made(self._parameters)
        self._beams = [beam.name for beam in boom.beams]
        self._cylinders = [cylinder.name for cylinder in boom.cylinders]
        kinds = {
            'inclination': InclinationState,
            'pressure': HydraulicState,
            'encoder': JointState,
            'strain': StrainState,
        }
        self.publishers = [
            node.create_publisher(kind, f'sensors/{name}', stream) for name, kind in kinds.items()
        ]
        self._inclination, self._pressure, self._encoder, self._strain = self.publishers

    def set_noise(self, factor: float) -> None:
        """Multiply the noise of the sensor file by a factor from now on."""
        if self._sensors is None:
            return
        kinds = ('inclination', 'pressure', 'encoder', 'strain')
        given = {name: getattr(self._parameters, name) for name in kinds}
        scaled = {name: kind.replace(noise=factor * kind.noise) for name, kind in given.items()}
        self._sensors = self._made(self._parameters.replace(**scaled))

    def _made(self, parameters: SensorParameters) -> Sensors:
        """Return the sensors of the boom with the given parameters."""
        return Sensors(self._boom, parameters, self._sample_rate, self._friction)

    def publish(self, state: BoomState, sample: int, header: Header) -> None:
        """Publish the readings of the sensors that are due at a sample."""
        if self._sensors is None:
            return
        shown = self._sensors.read(state, sample)
        beams, cylinders = self._beams, self._cylinders
        if shown.inclination_root is not None and shown.inclination_tip is not None:
            self._inclination.publish(
                conversions.inclination_to_message(
                    beams, shown.inclination_root, shown.inclination_tip, header
                )
            )
        if shown.head_pressures is not None and shown.rod_pressures is not None:
            self._pressure.publish(
                hydraulic_state(cylinders, shown.head_pressures, shown.rod_pressures, header)
            )
        if shown.encoders is not None:
            self._encoder.publish(
                conversions.encoders_to_message(cylinders, shown.encoders, header)
            )
        if shown.strains is not None:
            self._strain.publish(conversions.strains_to_message(beams, shown.strains, header))
