"""A flexible boom with hydraulic cylinders: the concrete pump of Henikl et al. (2015)."""

from __future__ import annotations

from longreach_dynamics.exports import attach

__getattr__, __all__ = attach(__name__, __file__)
