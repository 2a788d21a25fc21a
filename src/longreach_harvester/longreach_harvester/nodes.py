"""The package's nodes as console scripts."""

from __future__ import annotations

from longreach_node.entry import node_entry

controller = node_entry('longreach_harvester.controller_node:ControllerNode')
operator = node_entry('longreach_harvester.operator_node:OperatorNode')
plant = node_entry('longreach_harvester.plant_node:PlantNode')
