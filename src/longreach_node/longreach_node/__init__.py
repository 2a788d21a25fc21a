"""
Common parts of the nodes, and of commands that communicate with nodes.

Simulator: ``simulator`` (the node that drives any Machine), ``simulation`` (when it advances; no
node), ``simulator_parameters``, ``standard_interface`` (simulation_interfaces),
``graph`` (connections, waits for other nodes).

Bases of nodes: ``plant_node``, ``cycle_node`` (with ``samples``), ``trajectory_controller``,
``operator_node``, which read a machine's declaration; ``follow_trajectory`` is the action
FollowJointTrajectory.

Process and graph: ``entry``, ``executor``, ``middleware``, ``parameters``, ``qos``, ``frames``,
``clock``, ``stamps``, ``diagnostics``.

Commands: ``remote``, ``remote_drive``, ``keyboard``. Tests: ``testing``.
"""

from __future__ import annotations

from longreach_dynamics.exports import attach

__getattr__, __all__ = attach(__name__, __file__)
