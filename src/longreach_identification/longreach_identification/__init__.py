"""Identification of parameters of machines from recordings, with standard errors."""

from __future__ import annotations

from longreach_dynamics.exports import attach

__getattr__, __all__ = attach(__name__, __file__)
