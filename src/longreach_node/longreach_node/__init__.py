"""
Common parts of the nodes, and of commands that communicate with nodes.

``entry``       start and end of a node's process
``executor``    the executor of the nodes
``middleware``  settings of ROS and Fast DDS before rclpy starts
``parameters``  a parameter object as the parameters of a node
``qos``         the named qualities of service
``simulator``   the node that drives any Machine through time
``simulation``, ``machine_run``, ``pacing``, ``lockstep``, ``incidents``
                its parts that need no node
``simulator_host``, ``discovery``, ``services``, ``simulator_parameters``
                its parts that do
``simulation_interfaces``, ``standard_interface``
                the services that simulators have agreed on
``frames``      names of coordinate frames
``samples``, ``cycle_node``
                nodes that answer samples: their order, and the base of these nodes
``plant_node``, ``trajectory_controller``, ``operator_node``, ``machine_parameters``
                the nodes of a declared machine
``hydraulic_messages``, ``joint_messages``, ``remote_valves``, ``remote_trajectory``
                messages of joints and valves, commands by hand
``follow_trajectory``
                the action FollowJointTrajectory, where control_msgs is installed
``clock``       clocks of timers and time-outs
``stamps``      times as messages, integers and seconds
``diagnostics`` status of one component in /diagnostics
``remote``      a temporary node of a command
``testing``     nodes under test and a driver in one process
"""

from __future__ import annotations

from longreach_dynamics.exports import attach

__getattr__, __all__ = attach(__name__, __file__)
