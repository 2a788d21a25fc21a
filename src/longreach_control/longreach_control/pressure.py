"""
Pressure feedback: each cylinder yields to the swing of its own force.

v_i = -c_i F~_i makes of the spring k_i of the oil a spring with a damper in series, of stiffness
k j w / (j w + c k). F~ is F behind a high-pass below the first mode, so that weight is carried,
and a low-pass of second order, so that the delay does not excite the modes above. The phase of
both and of the delay at the first mode is taken back by a lead. A piston that sticks gives its
force back to the valve and does not move, so that vibrations within static friction are not
damped. Sources: Krus and Palmberg, Damping of mobile systems in machines with high inertia loads,
Proc. JFPS Fluid Power 1988; Robotics 11 (2022) 34 for a loader crane.
"""

from __future__ import annotations

import math

import numpy as np

from longreach_control.controller import DampingController, Measured, Wanted
from longreach_control.plant import Situation

# Corners of high-pass and low-pass over the frequency of the first mode.
_HIGH, _LOW = 0.25, 4.0
# c k over w.
_SHARE = 2.0


class PressureFeedback(DampingController):
    """Yield to the swing of the forces."""

    def __init__(self, situation: Situation) -> None:
        super().__init__(situation)
        frequencies, _ = self.plant.modes()
        self.omega = 2.0 * math.pi * frequencies[0]
        T = situation.sample_time
        self._slow = -math.expm1(-_HIGH * self.omega * T)
        self._fast = -math.expm1(-_LOW * self.omega * T)
        # Phase lag at the first mode of delay, spool and both low-passes, less the lead of the
        # high-pass.
        lag = self.omega * (situation.delay + 0.5 * T + self.plant.valve_time)
        lag += 2.0 * math.atan(1.0 / _LOW) - math.atan(_HIGH)
        # cos(lag) F~ + sin(lag) F~' / w turns the phase of a sine at w forwards by lag.
        self._turn = math.cos(lag), math.sin(lag) / self.omega
        self._memory: np.ndarray | None = None

    def velocities(self, measured: Measured, wanted: Wanted) -> np.ndarray:
        """Return velocities that hold and yield."""
        force = self.forces(measured)
        if self._memory is None:
            self._memory = np.array([force, np.zeros_like(force), np.zeros_like(force)])
        slow, once, twice = self._memory
        slow = slow + self._slow * (force - slow)
        once = once + self._fast * (force - slow - once)
        swing = twice + self._fast * (once - twice)
        rate = (swing - twice) / self.situation.sample_time
        self._memory = np.array([slow, once, swing])
        straight, turned = self._turn
        yielding = _SHARE * self.omega / self.plant.oil * (straight * swing + turned * rate)
        return np.asarray(self.holding(measured, wanted) - yielding)
