"""
A flexible boom with hydraulic cylinders: the concrete pump of Henikl et al. (2015).

``parameters``, ``model``, ``motion``   the boom and its equations of motion, friction included
``statics``, ``modes``                  equilibrium; natural modes and finite elements
``scenario``, ``machine``, ``simulation``
                                        simulated runs, and the boom as they step it
``state``, ``results``                  state and command; runs as tables
``control``                             a joint position controller
``sensors``, ``measured_runs``          sensor readings with noise and drift; recordings of runs
``identification``, ``identification_statics``, ``load_experiments``
                                        what identification needs
``description``, ``visuals``            the boom for RViz
``plant_node``, ``controller_node``, ``sensors_node``
                                        the same over ROS
``spec``, ``commands``, ``figures``     ``longreach boom``
"""

from __future__ import annotations

from longreach_dynamics.exports import attach

__getattr__, __all__ = attach(__name__, __file__)
