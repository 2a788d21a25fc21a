"""The node as a console script; what it needs is imported when it can be interrupted."""

from longreach_node.entry import node_entry

plant = node_entry('longreach_pendulum.plant_node:PlantNode')
