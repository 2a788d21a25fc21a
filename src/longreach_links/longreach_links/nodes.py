"""The package's nodes as console scripts."""

from __future__ import annotations

from longreach_node.entry import node_entry

controller = node_entry('longreach_links.controller_node:ControllerNode')
plant = node_entry('longreach_links.plant_node:PlantNode')
