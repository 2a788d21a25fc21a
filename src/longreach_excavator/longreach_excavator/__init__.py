"""
Simulation of a digging excavator: the model of Ozunlu's thesis (2009), corrected, with hydraulics.

``parameters``, ``linkage``, ``soil``   the machine, its cylinder linkages, the soil's resistance
``constants``, ``motion``, ``terrain``  equations of motion, ground that is cut and carried
``excavation``, ``observation``         its forces and changes; reactions and energies of a state
``simulation``, ``results``, ``columns``
                                        simulated runs and their tables
``scenario``, ``forces``                commands and prescribed forces of a run
``statics``, ``inverse``                a pose at rest, inverse dynamics
``measurements``, ``cohesion``, ``identification``
                                        the cohesion of a soil from measurements
``breakout``, ``step_study``            breakout forces, several cohesions and step sizes
``teleoperation``                       joysticks and joint velocities as valve commands
``description``, ``visuals``            the robot description and markers for RViz
``plant_node``, ``operator_node``, ``conversions``, ``nodes``
                                        ROS 2 nodes and message conversions
``spec``, ``commands``, ``figures``     what the command ``longreach excavator`` is made of
"""

from __future__ import annotations

from longreach_dynamics.exports import attach

__getattr__, __all__ = attach(__name__, __file__)
