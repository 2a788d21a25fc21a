"""The declaration of a machine, and what is made of it without ROS; see the README."""

from __future__ import annotations

from longreach_dynamics.exports import attach

__getattr__, __all__ = attach(__name__, __file__)
