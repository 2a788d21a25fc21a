"""
Hydraulic cylinders with proportional valves.

``parameters``   oil, pump, valves, hoses, cylinders, as files have them
``valves``       elements of circuits: orifices, openings, chambers
``actuators``    the cylinders of a machine: one table, flows, time derivatives
``friction``     sliding, sticking, ends of the stroke
``lines``        actuators behind lines with inertance, capacitance and resistance; motors
``inverse``      holding pressures, spool positions for velocities, check of the step length

Compiled functions take single elements or all actuators of a machine. For other circuits call the
functions of ``valves`` or ``lines`` for each element, with pressures and flows in the state.
"""

from __future__ import annotations

from longreach_dynamics.exports import attach

__getattr__, __all__ = attach(__name__, __file__)
