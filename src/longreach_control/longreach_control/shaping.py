"""
Input shaping: what an operator asks for is passed on in three parts, whose vibrations cancel.

The extra-insensitive shaper of a lightly damped mode of period P has impulses of (1 + V) / 4,
(1 - V) / 2 and (1 + V) / 4 at 0, P / 2 and P: at the modelled frequency a share V of the vibration
is left, and no more within 20 % around it. Source: Singhose, Seering, Singer, Residual vibration
reduction using vector diagrams to generate shaped inputs, J. Mech. Design 116 (1994). It acts on
commands only: what the wind or a load excites is not damped.
"""

from __future__ import annotations

import math
from collections import deque

import numpy as np

from longreach_control.controller import DampingController, Measured, Wanted
from longreach_control.plant import Situation

# Share of the vibration that is allowed at the modelled frequency.
_LEFT = 0.05


class InputShaping(DampingController):
    """Pass commands on in parts, a half and a whole period later."""

    def __init__(self, situation: Situation) -> None:
        super().__init__(situation)
        frequencies, _ = self.plant.modes()
        half = 0.5 / (frequencies[0] * situation.sample_time)
        self._cycles = (0, math.floor(half + 0.5), math.floor(2.0 * half + 0.5))
        self._shares = (0.25 * (1.0 + _LEFT), 0.5 * (1.0 - _LEFT), 0.25 * (1.0 + _LEFT))
        self._past: deque[Wanted] = deque(maxlen=self._cycles[-1] + 1)

    def velocities(self, measured: Measured, wanted: Wanted) -> np.ndarray:
        """Return velocities towards the shaped command."""
        while len(self._past) < self._past.maxlen:  # type: ignore[operator]
            # Before the first cycle the boom was asked to rest.
            self._past.appendleft(Wanted(wanted.pistons, np.zeros_like(wanted.velocities)))
        self._past.appendleft(wanted)
        parts = zip(self._shares, self._cycles, strict=True)
        pistons, velocities = np.sum([share * np.array(self._past[k]) for share, k in parts], 0)
        self.behind = wanted.pistons - pistons
        return self.holding(measured, Wanted(pistons, velocities))
