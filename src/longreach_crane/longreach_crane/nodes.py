"""The package's nodes as console scripts."""

from __future__ import annotations

from longreach_node.entry import node_entry

controller = node_entry('longreach_crane.controller_node:ControllerNode')
plant = node_entry('longreach_crane.plant_node:PlantNode')
