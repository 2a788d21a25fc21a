"""
Disturbances of a boom: forces, pumping, gusts, as forces at the tips of its beams.

A force along a beam is entered at its tip; one that is spread over a beam by halves at its root,
which is the tip of the beam before, and at its tip. Forces are held for 5 ms, at their mean over
that time, a sine at its value in the middle. Beams of the direction e_i, angle theta_i:

- **pumping**, concrete of mass per length m in a line along the beams, of speed v. By the balance
  of momentum its acceleration pushes each beam back by m L_i v', along the beam; the hose at the
  end, which hangs down, pushes upwards by m v^2 + m L_h v'. A pump of two pistons stops the flow
  at each change between them: v = v_0 (1 + cos(2 pi t / gap)) / 2 within the gap. It begins and
  ends at rest, in the middle of a gap. The weight of the concrete is a load of the scenario.
- **gusts**, horizontal, v = v_0 (1 - cos(2 pi t / T)) / 2 (the shape of IEC 61400-1, 6.3.2), which
  act across each beam as on a long inclined cylinder: rho c_d b L_i v_n |v_n| / 2 along the
  normal, with v_n = -v sin(theta_i) (Hoerner, Fluid-Dynamic Drag, 1965, 3-11).
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from longreach_boom.parameters import BoomParameters
from longreach_dynamics.errors import InputError
from longreach_dynamics.parameters import Parameters, quantity

_AIR = 1.25  # density [kg/m^3]


@dataclasses.dataclass(frozen=True)
class _Disturbance(Parameters):
    """Something that acts from a start to an end."""

    relations = ('end > start',)

    start: float = quantity('beginning', 's', at_least=0.0, at_most=1e6)
    end: float = quantity('end', 's', above=0.0, at_most=1e6)

    def share(self, time: float, hold: float) -> float:
        """Return the share of a hold [s] about a time [s] in which it acts."""
        outside = max(self.start - time + 0.5 * hold, 0.0) + max(time + 0.5 * hold - self.end, 0.0)
        return max(1.0 - outside / hold, 0.0)


@dataclasses.dataclass(frozen=True)
class TipForce(_Disturbance):
    """A force at the tip of a beam, constant or a sine of time."""

    x: float = quantity('horizontal part, forwards', 'N', at_least=-1e7, at_most=1e7, default=0.0)
    z: float = quantity('vertical part, upwards', 'N', at_least=-1e7, at_most=1e7, default=0.0)
    beam: str = quantity('name of the beam; empty: the last', '', default='')
    frequency: float = quantity(
        'of the sine that multiplies it, 0 at the start; 0: constant',
        'Hz',
        at_least=0.0,
        at_most=20.0,
        default=0.0,
    )

    def check(self) -> None:
        """Raise InputError for no force."""
        if not (self.x or self.z):
            raise InputError('x and z of a force are 0, allowed: one of them is not')

    def forces(self, boom: BoomParameters, time: float, hold: float, _: np.ndarray) -> np.ndarray:
        """Return the forces at the tips in a hold [s] about a time [s], shape (N, 2) [N]."""
        found = np.zeros((boom.size, 2))
        index = boom.beam_at(self.beam or boom.beams[-1].name, 0.0, 'force')
        phase = 2.0 * math.pi * self.frequency * (time - self.start)
        size = self.share(time, hold) * (math.sin(phase) if self.frequency else 1.0)
        found[index] = np.array([self.x, self.z]) * size
        return found


@dataclasses.dataclass(frozen=True)
class Pumping(_Disturbance):
    """Concrete is pumped through a line along the beams."""

    relations = ('gap < period',)

    period: float = quantity('of the strokes', 's', above=0.0, at_most=100.0)
    gap: float = quantity('time of a change between the pistons', 's', at_least=0.02, at_most=10.0)
    speed: float = quantity('of the concrete within strokes', 'm/s', at_least=0.0, at_most=20.0)
    mass_per_length: float = quantity(
        'of the concrete in the line', 'kg/m', at_least=0.0, at_most=500.0
    )
    hose_length: float = quantity(
        'of the hose at the end, whose weight is to be given as a load',
        'm',
        at_least=0.0,
        at_most=20.0,
        default=4.0,
    )

    def _speed_at(self, time: float) -> float:
        """Return the speed of the concrete at a time [s], in [m/s]."""
        half, speed = 0.5 * self.gap, self.speed * (self.start <= time < self.end)
        # Within a gap that the pump makes, or the last one; the flow is the lesser one.
        for phase in ((time - self.start + half) % self.period, time - self.end + half):
            if 0.0 <= phase < self.gap:
                slower = 0.5 * self.speed * (1.0 + math.cos(2.0 * math.pi * phase / self.gap))
                speed = min(speed, slower)
        return speed

    def forces(
        self, boom: BoomParameters, time: float, hold: float, angles: np.ndarray
    ) -> np.ndarray:
        """Return the forces at the tips in a hold [s] about a time [s], shape (N, 2) [N]."""
        before, speed, after = (self._speed_at(time + k * hold) for k in (-0.5, 0.0, 0.5))
        change = (after - before) / hold
        lengths = np.array([beam.length for beam in boom.beams])
        along = np.stack([np.cos(angles), np.sin(angles)], axis=1)
        found = -self.mass_per_length * change * lengths[:, None] * along
        found[-1, 1] += self.mass_per_length * (speed**2 + self.hose_length * change)
        return np.asarray(found)


@dataclasses.dataclass(frozen=True)
class Gust(_Disturbance):
    """A gust of wind over the whole boom."""

    speed: float = quantity('highest, forwards', 'm/s', at_least=-60.0, at_most=60.0)
    width: float = quantity('of the beams', 'm', above=0.0, at_most=5.0, default=0.4)
    drag: float = quantity('coefficient of drag c_d', at_least=0.0, at_most=5.0, default=2.0)

    def forces(
        self, boom: BoomParameters, time: float, hold: float, angles: np.ndarray
    ) -> np.ndarray:
        """Return the forces at the tips in a hold [s] about a time [s], shape (N, 2) [N]."""
        rate = 2.0 * math.pi / (self.end - self.start)
        ends = (min(max(time + k * hold, self.start), self.end) for k in (-0.5, 0.5))
        # The integral of (1 - cos x)^2.
        begun, done = (
            1.5 * x - 2.0 * math.sin(x) + 0.25 * math.sin(2.0 * x)
            for x in (rate * (end - self.start) for end in ends)
        )
        square = 0.25 * self.speed * abs(self.speed) * (done - begun) / (rate * hold)
        lengths, across = np.array([beam.length for beam in boom.beams]), -np.sin(angles)
        push = 0.5 * _AIR * self.drag * self.width * lengths * square * across * np.abs(across)
        halves = 0.5 * push[:, None] * np.stack([-np.sin(angles), np.cos(angles)], axis=1)
        found = halves.copy()
        found[:-1] += halves[1:]
        return np.asarray(found)
