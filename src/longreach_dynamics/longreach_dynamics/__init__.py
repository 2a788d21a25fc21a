"""
Numerics shared by the machines of Longreach, free of ROS.

``errors``           the two errors that are raised on purpose
``parameters``       parameter objects with units and bounds, and the YAML files they come from
``machine``          the protocol that the simulator node drives
``kernels``          compiled functions with a cache that notices every change
``stepping``         adaptive integration of smooth intervals, stiff and not
``trajectory_following`` what a joint controller follows: trajectories, streams, a pose
``trajectory_goals`` whether a trajectory is followed within tolerances
``linear_algebra``   small dense systems inside compiled code
``beams``            bending lines of beams of varying section, and Ritz functions
``finite_elements``  natural frequencies and sag of chains of beams, a second opinion
``planar_chain``     serial chains of rigid links in the plane, recursive Newton-Euler
``kinematics``       joints to tip of a rigid chain, and back within limits
``linkages``         from a cylinder's piston to the joint that it drives, and back
``hydraulics``       cylinders and proportional valves
``trajectories``     joint angles over time: least jerk, or rates in waypoints
``control``          PID, valve inversion, a position controller for pistons
``sensors``          bias, drift, noise, quantisation and rates of sensors
``urdf``             robot descriptions: links, shapes, masses, joints
``resources``        where installed files are found
"""

from __future__ import annotations

from longreach_dynamics.exports import attach

__getattr__, __all__ = attach(__name__, __file__)
