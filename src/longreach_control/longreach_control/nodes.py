"""The package's nodes as console scripts."""

from __future__ import annotations

from longreach_node.entry import node_entry

damping = node_entry('longreach_control.damping_node:DampingNode')
