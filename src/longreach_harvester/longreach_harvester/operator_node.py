"""The operator's station of the harvester as a node: ``joy`` in, ``valve_command`` out."""

from __future__ import annotations

from longreach_msgs.msg import HydraulicState, ValveCommand
from sensor_msgs.msg import JointState
from std_msgs.msg import Header

from longreach_harvester.control import load_controller
from longreach_harvester.parameters import JOINTS, HarvesterParameters
from longreach_harvester.spec import HARVESTER
from longreach_harvester.teleoperation import Measurement, Teleoperation, load_teleoperation
from longreach_node.hydraulic_messages import finite_values
from longreach_node.operator_node import OperatorNode as Base
from longreach_node.operator_node import OperatorParameters
from longreach_node.stamps import nanoseconds_of


class OperatorNode(Base):
    """Sticks become spools."""

    spec = HARVESTER

    def make_station(
        self, machine: HarvesterParameters, settings: OperatorParameters
    ) -> Teleoperation:
        """Return the station, with the installed controllers."""
        parameters = load_teleoperation(settings.teleoperation or None)
        chosen = parameters.controlling(settings.control)
        station = Teleoperation(chosen, machine, load_controller())
        station.warm_up()
        return station

    @staticmethod
    def measurement_of(joints: JointState, hydraulics: HydraulicState) -> Measurement:  # noqa: ARG004
        """Return a sample; InputError when a joint is missing or not finite."""
        angles = finite_values('joint_states', joints.name, joints.position, JOINTS)
        return Measurement(nanoseconds_of(joints.header.stamp) * 1e-9, angles)

    @staticmethod
    def message_of(command: tuple[float, ...], header: Header) -> ValveCommand:
        """Return spools as a message."""
        return ValveCommand(header=header, name=JOINTS, spool=command)
