"""
A flexible boom with hydraulic cylinders: the concrete pump of Henikl et al. (2015).

``parameters``, ``model``, ``motion``   the boom and its equations of motion, friction included
``statics``, ``modes``                  equilibrium; natural modes and finite elements
``scenario``, ``simulation``, ``sweep`` simulated runs, one or many
``state``, ``results``                  state and command; runs as tables
``control``                             a joint position controller
``sensors``                             sensor readings with noise and drift
``reference``                           a reference simulation for tests and benchmarks
``description``, ``visuals``            the boom for RViz
``plant_node``, ``controller_node``, ``conversions``, ``nodes``
                                        the same over ROS
``commands``, ``figures``, ``recording``
                                        ``longreach boom``
"""

from __future__ import annotations

from longreach_dynamics.exports import attach

__getattr__, __all__ = attach(__name__, __file__)
