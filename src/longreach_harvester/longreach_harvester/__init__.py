"""
Simulation of a forestry machine: Papadopoulos and Gonthier (2002), corrected.

``parameters``, ``scenario``          the machine's file; initial state and spools of a run
``bodies``, ``model``, ``reduced``    equations of the full and of the reduced model
``stepping``, ``machine``             steps in compiled code; the harvester as a machine
``kinematics``, ``control``           the tip and its paths; controllers
``simulation``                        runs as tables
``spec``, ``commands``                the command ``longreach harvester``
"""

from __future__ import annotations

from longreach_dynamics.exports import attach

__getattr__, __all__ = attach(__name__, __file__)
