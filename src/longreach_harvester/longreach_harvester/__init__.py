"""Simulation of a forestry machine: Papadopoulos and Gonthier (2002), corrected."""

from __future__ import annotations

from longreach_dynamics.exports import attach

__getattr__, __all__ = attach(__name__, __file__)
