"""The operator's station of the harvester as a node: ``joy`` in, ``valve_command`` out."""

from __future__ import annotations

from longreach_harvester.control import load_controller
from longreach_harvester.parameters import HarvesterParameters
from longreach_harvester.spec import HARVESTER
from longreach_harvester.teleoperation import Teleoperation, load_teleoperation
from longreach_node.operator_node import OperatorNode as Base
from longreach_node.operator_node import OperatorParameters


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
