"""A digging excavator: the model of Ozunlu's thesis (2009), corrected, with hydraulics."""

from __future__ import annotations

from longreach_dynamics.exports import attach

__getattr__, __all__ = attach(__name__, __file__)
