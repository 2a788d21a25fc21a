"""
Linkages between a cylinder and the joint that it drives: piston position s_p = f(phi).

A linkage is a row of numbers for compiled code, made by a parameter class. The
functions f are strictly increasing between the ends of the stroke (Henikl 2015, (19), (20)).

- triangle: the cylinder spans a triangle with two sides a and b fixed to the two links,
  f = sqrt(a^2 + b^2 - 2 a b cos(phi + delta)) - c, c the length of the cylinder run in.
- rocker: f = r ((1 - k) phi + k sin phi) + s_0, for the small links that let a joint fold by
  nearly half a turn.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import Any

import numpy as np
from numba import njit

from longreach_dynamics.errors import InputError
from longreach_dynamics.kernels import kernel
from longreach_dynamics.parameters import Parameters, choice, quantity

# The numbers of each kind.
_KINDS = {
    'triangle': ('near', 'far', 'offset_angle', 'retracted'),
    'rocker': ('lever', 'shape', 'offset'),
}


@njit
def piston_and_arm(rows, i, angle):  # type: ignore[no-untyped-def]
    """
    Return s_p = f(phi) [m] and df/dphi [m] of a linkage at a joint angle [rad].

    ``rows`` (N, 5 or more) holds linkages as :meth:`Linkage.row` gives them, i is the one meant.
    """
    if rows[i, 0] == 0.0:
        a, b, turned = rows[i, 1], rows[i, 2], angle + rows[i, 3]
        length = math.sqrt(a * a + b * b - 2.0 * a * b * math.cos(turned))
        # Folded flat, with sides of equal length, the triangle has no lever left.
        arm = a * b * math.sin(turned) / length if length != 0.0 else 0.0
        return length - rows[i, 4], arm
    r, k = rows[i, 1], rows[i, 2]
    position = r * ((1.0 - k) * angle + k * math.sin(angle)) + rows[i, 4]
    return position, r * ((1.0 - k) + k * math.cos(angle))


@kernel
def pistons_and_arms(rows, angles):  # type: ignore[no-untyped-def]
    """Return positions and lever arms (M, N) [m] of N linkages' rows at angles (M, N) [rad]."""
    positions, arms = np.empty(angles.shape), np.empty(angles.shape)
    for k in range(angles.shape[0]):
        for i in range(angles.shape[1]):
            positions[k, i], arms[k, i] = piston_and_arm(rows, i, angles[k, i])
    return positions, arms


@dataclasses.dataclass(frozen=True)
class Linkage(Parameters):
    """A linkage between piston and joint; see the module for the two kinds."""

    kind: str = choice('shape of the linkage', tuple(_KINDS))
    near: float | None = quantity('triangle: side a, fixed inboard', 'm', above=0.0, default=None)
    far: float | None = quantity('triangle: side b, fixed outboard', 'm', above=0.0, default=None)
    offset_angle: float | None = quantity(
        'triangle: angle delta between both sides at phi = 0', 'rad', default=None
    )
    retracted: float | None = quantity(
        'triangle: distance of the pins with the cylinder run in', 'm', above=0.0, default=None
    )
    lever: float | None = quantity('rocker: lever r at phi = 0', 'm', above=0.0, default=None)
    shape: float | None = quantity(
        'rocker: share k of the sine', '1', at_least=0.0, below=0.5, default=None
    )
    offset: float | None = quantity('rocker: piston position s_0 at phi = 0', 'm', default=None)

    def check(self) -> None:
        """Raise InputError when a number of the kind is missing, or one of the other given."""
        has = f'kind {self.kind} has {", ".join(_KINDS[self.kind])}'
        for kind, names in _KINDS.items():
            for name in names:
                is_given = getattr(self, name) is not None
                if is_given and kind != self.kind:
                    raise InputError(
                        f'{name} belongs to kind {kind}; {has}; null takes away that of a base'
                    )
                if not is_given and kind == self.kind:
                    raise InputError(f'{name} is missing; {has}')

    def row(self) -> np.ndarray:
        """Return the numbers for compiled code, shape (5,)."""
        numbers: Any
        if self.kind == 'triangle':
            numbers = (0.0, self.near, self.far, self.offset_angle, self.retracted)
        else:
            numbers = (1.0, self.lever, self.shape, 0.0, self.offset)
        return np.array(numbers, dtype=float)

    def position(self, angle: float) -> float:
        """Return the piston position [m] at a joint angle [rad]."""
        return self._piston_and_arm(angle)[0]

    def arm(self, angle: float) -> float:
        """Return the lever arm df/dphi [m] at a joint angle [rad]."""
        return self._piston_and_arm(angle)[1]

    @functools.lru_cache(maxsize=256)  # noqa: B019
    def _piston_and_arm(self, angle: float) -> tuple[float, float]:
        positions, arms = pistons_and_arms(self.row()[None], np.array([[angle]], dtype=float))
        return float(positions[0, 0]), float(arms[0, 0])

    def angle(self, position: float) -> float:
        """Return the joint angle [rad] at a piston position [m], on the rising branch."""
        low, high = self.angles_of_rise()
        lowest, highest = self.position(low), self.position(high)
        if not lowest <= position <= highest:
            raise InputError(
                f'piston position = {position} m, allowed by the linkage:'
                f' [{lowest:.6g}, {highest:.6g}] m'
            )
        if self.kind == 'triangle':
            a, b, length = self.row()[1], self.row()[2], position + self.row()[4]
            cosine = (a * a + b * b - length * length) / (2.0 * a * b)
            return math.acos(min(1.0, max(-1.0, cosine))) - float(self.row()[3])
        # Newton from within a bracket; f is monotone, so this cannot leave it for long.
        angle = 0.5 * (low + high)
        for _ in range(100):
            error = self.position(angle) - position
            low, high = (low, angle) if error > 0.0 else (angle, high)
            step = angle - error / self.arm(angle)
            step = step if low < step < high else 0.5 * (low + high)
            if abs(step - angle) < 1e-15 * max(1.0, abs(angle)):
                break
            angle = step
        return angle

    @functools.lru_cache(maxsize=256)  # noqa: B019
    def angles(self, stroke: float) -> tuple[float, float]:
        """Return the joint angles [rad] at the ends of a stroke [m] that begins at position 0."""
        return self.angle(0.0), self.angle(stroke)

    def angles_of_rise(self) -> tuple[float, float]:
        """Return the angles [rad] between which f rises and the linkage has a lever."""
        if self.kind == 'triangle':
            return -float(self.row()[3]), math.pi - float(self.row()[3])
        return -2.0 * math.pi, 2.0 * math.pi
