"""Numerics shared by the machines of Longreach, free of ROS; the README lists the modules."""

from __future__ import annotations

from longreach_dynamics.exports import attach

__getattr__, __all__ = attach(__name__, __file__)
