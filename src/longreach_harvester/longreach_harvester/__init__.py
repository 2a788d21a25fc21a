"""
Simulation of a forestry machine: Papadopoulos and Gonthier (2002), corrected.

``parameters``             bodies, motor, cylinders, lines, valves
``model``                  equations of the full and of the reduced model
``machine``, ``scenario``  the harvester as a machine; spools and initial state of a run
``kinematics``, ``control``  the tip and its paths; controllers
``simulation``             runs as tables
``commands``, ``figures``  the command ``longreach harvester``
"""

from __future__ import annotations

from longreach_dynamics.exports import attach

__getattr__, __all__ = attach(__name__, __file__)
