"""The operator's station of the harvester as a node: ``joy`` in, ``valve_command`` out."""

from __future__ import annotations

from longreach_harvester.spec import HARVESTER
from longreach_harvester.teleoperation import Teleoperation
from longreach_node.operator_node import OperatorNode as Base


class OperatorNode(Base):
    """Sticks become spools."""

    spec, station_type = HARVESTER, Teleoperation
