"""
The crane of ARGESIM benchmark C13R.

``parameters``, ``model``, ``machine``  the crane and its equations of motion
``control``                             its digital controller, with sensors and diagnosis
``design``                              controllers for other cranes
``scenario``, ``simulation``, ``c13r``  simulated runs of crane and controller
``plant_node``, ``controller_node``     the same over ROS
``commands``                            ``longreach crane``
"""

from __future__ import annotations

from longreach_dynamics.exports import attach

__getattr__, __all__ = attach(__name__, __file__)
