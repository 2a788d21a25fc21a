"""
Controllers of the boom's vibrations: what they measure, what they are asked, what they command.

A controller is a class that is made for a :class:`Situation` and called once in each cycle; one of
your own takes ten lines, see docs/damping.md.
"""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np

from longreach_control.plant import Plant, Situation
from longreach_dynamics.errors import InputError
from longreach_dynamics.hydraulics import oil_stiffness, spool_positions

# How fast the oil of a cylinder is brought to what is wanted [1/s].
_HOLDING = 0.5


class Measured(NamedTuple):
    """Readings of the sensors in one cycle."""

    pistons: np.ndarray  # (N,) encoders, s_p [m]
    head_pressures: np.ndarray  # (N,) p_1 [Pa]
    rod_pressures: np.ndarray  # (N,) p_2 [Pa]
    rates: np.ndarray  # (N,) gyroscopes at the beams' tips, positive lifts [rad/s]


class Wanted(NamedTuple):
    """What an operator or a trajectory asks for."""

    pistons: np.ndarray  # (N,) s_p [m]
    velocities: np.ndarray  # (N,) [m/s]


class DampingController:
    """
    Base of controllers of vibrations: position control of the oil, and the inverse of the valves.

    ``situation`` is what it may know.
    """

    smallest = 5e-5
    """Velocity below which a valve stays closed, to spare it [m/s]."""
    behind: np.ndarray | float = 0.0
    """By how much it leaves the pistons behind what is wanted at present, (N,) [m]."""

    def __init__(self, situation: Situation) -> None:
        self.situation = situation
        self.plant = Plant.of(situation)
        self.commanded = np.zeros(situation.boom.size)
        self._start: tuple[np.ndarray, np.ndarray] | None = None

    def velocities(self, measured: Measured, wanted: Wanted) -> np.ndarray:
        """Return the velocities v of the pistons [m/s], (N,); to be overridden."""
        return self.holding(measured, wanted)

    def renewed(self) -> Self | None:
        """Return it for a boom in motion that is wanted where it is; None: make another one."""
        return None

    def cycle(self, measured: Measured, wanted: Wanted) -> np.ndarray:
        """Run a cycle; return the commanded spools (N,) in [-1, 1], until the next one."""
        v = self.velocities(measured, wanted)
        if np.shape(v) != self.commanded.shape:
            raise InputError(f'velocities returns {v!r}, allowed: {self.commanded.size} numbers')
        v = self.within_reach(measured, v)
        v[np.abs(v) < self.smallest] = 0.0
        self.commanded = v
        spools = self._spools(measured, v)
        # Opened against pressures that are too high, a valve would let the load down. A velocity
        # that is no number stays one, for the caller to refuse.
        spools = np.where(np.isfinite(spools), np.clip(spools, -1.0, 1.0), 0.0)
        return np.where(np.isfinite(v), spools, np.nan)

    def _spools(self, measured: Measured, velocities: np.ndarray) -> np.ndarray:
        """Return the spools (N,) for velocities of the pistons [m/s]; beyond 1 where too fast."""
        actuators = self.plant.actuators
        pistons = np.clip(measured.pistons, 0.0, actuators.stroke)
        return spool_positions(
            actuators, velocities, pistons, measured.head_pressures, measured.rod_pressures
        )

    def within_reach(self, measured: Measured, velocities: np.ndarray) -> np.ndarray:
        """Return velocities (N,) [m/s] as far as pistons and fully open valves can have them."""
        most = self.situation.boom.controller.maximum_velocity
        v = np.clip(velocities, -most, most)
        return np.asarray(v / np.maximum(self.openings(measured, v), 1.0))

    def openings(self, measured: Measured, velocities: np.ndarray) -> np.ndarray:
        """Return the shares (N,) of their full opening that valves need for velocities [m/s]."""
        band = self.plant.actuators.dead_band
        return np.asarray((np.abs(self._spools(measured, velocities)) - band) / (1.0 - band))

    def forces(self, measured: Measured) -> np.ndarray:
        """Return p_1 A_1 - p_2 A_2 (N,) [N]."""
        a = self.plant.actuators
        return np.asarray(
            measured.head_pressures * a.head_area - measured.rod_pressures * a.rod_area
        )

    def oil(self, measured: Measured, wanted: Wanted) -> tuple[np.ndarray, np.ndarray]:
        """
        Return s and its wanted value, both from the first cycle on (N,) [m].

        s = s_p + F / k is what the oil let in would move the piston without load.
        """
        stiffness = sum(oil_stiffness(self.plant.actuators, measured.pistons))
        now = measured.pistons + self.forces(measured) / stiffness
        if self._start is None:
            self._start = now, wanted.pistons.copy()
        return now - self._start[0], wanted.pistons - self._start[1]

    def holding(self, measured: Measured, wanted: Wanted) -> np.ndarray:
        """Return velocities that bring the oil to what is wanted, without regard to vibration."""
        now, then = self.oil(measured, wanted)
        return np.asarray(wanted.velocities + _HOLDING * (then - now))
