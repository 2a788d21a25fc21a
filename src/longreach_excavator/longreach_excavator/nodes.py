"""The package's nodes as console scripts."""

from __future__ import annotations

from longreach_node.entry import node_entry

operator = node_entry('longreach_excavator.operator_node:OperatorNode')
plant = node_entry('longreach_excavator.plant_node:PlantNode')
