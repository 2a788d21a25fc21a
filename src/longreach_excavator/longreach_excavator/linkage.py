"""
Linkage of boom, arm and bucket cylinders: pins A to P of the thesis (Ozunlu 2009, appendix A).

The machine stands in its x-z plane, x forward, z up, the boom's foot A at the origin. theta_2 is
the angle from x to the boom's line AC, theta_3 from there to the arm's CD, theta_4 from there to
the bucket's DN, N the tooth; all positive upwards, so digging turns the bucket negatively.

    cylinder   from        to                    extends when
    boom       E, chassis  B, boom               theta_2 grows
    arm        I, boom     F, arm                theta_3 falls
    bucket     J, arm      K, lever LK, rod PK   theta_4 falls

Positions are complex numbers x + j z in the frame of a link: x axis along the link's line, origin
at the inboard joint; e^(j theta) rotates them into the axes of the inboard link. The printed (A.1)
to (A.8) solve the same triangles by the law of cosines, with errors that docs/excavator.md lists;
vectors need no choice between the branches of the arc cosine.

K is the corner of two circles about L and P. It lies to the left of L -> P, on the arm's outer
side, in all poses between the dead points, where the lever or the rod points along another link:

- LK along KJ: the cylinder has no lever arm, d length / d theta_4 = 0;
- LK along PK: the four-bar is stretched, and would open.

Kernels do not check their arguments, as the methods of :class:`Linkage` do. Their symbols: theta,
q [rad]; vectors of cylinder (along), lever and rod [m], of which the magnitudes are the lengths;
levers (arm, arms) d length / d theta [m].
"""

from __future__ import annotations

import cmath
import dataclasses
import math
from typing import NamedTuple

import numpy as np
from numba import njit

from longreach_dynamics.errors import InputError
from longreach_dynamics.kernels import kernel
from longreach_dynamics.tables import numbers_of

CYLINDERS = ('boom', 'arm', 'bucket')
# Smallest lever arm d length / d theta_4 of a usable linkage [m].
_SMALLEST_LEVER = 1e-3


class Pins(NamedTuple):
    """Positions of the pins in the frames of their links [m]."""

    e: complex  # chassis
    b: complex  # boom
    i: complex
    c: float
    f: complex  # arm
    j: complex
    l: complex  # noqa: E741 - the thesis' letter
    d: float
    p: complex  # bucket
    n: float
    lk: float  # lever and rod
    pk: float


@kernel
def boom_cylinder(theta, pins):  # type: ignore[no-untyped-def]
    """Return the boom cylinder E -> B in the chassis' axes, and its lever; (A.1)."""
    arm = pins.b * complex(math.cos(theta), math.sin(theta))
    along = arm - pins.e
    return along, (along.imag * arm.real - along.real * arm.imag) / abs(along)


@kernel
def arm_cylinder(theta, pins):  # type: ignore[no-untyped-def]
    """Return the arm cylinder I -> F in the boom's frame, and its lever; (A.4)."""
    arm = pins.f * complex(math.cos(theta), math.sin(theta))
    along = pins.c + arm - pins.i
    return along, (along.imag * arm.real - along.real * arm.imag) / abs(along)


@kernel
def lever_pin(theta, pins):  # type: ignore[no-untyped-def]
    """Return L -> K and P -> K, NaN where the four-bar is open, and d angle of LK / d theta_4."""
    arm = pins.p * complex(math.cos(theta), math.sin(theta))
    base = pins.d + arm - pins.l
    length = abs(base)
    share = (pins.lk * pins.lk - pins.pk * pins.pk + length * length) / (2.0 * length)
    height = pins.lk * pins.lk - share * share
    height = math.sqrt(height) if height > 0.0 else math.nan
    lever = base / length * complex(share, height)
    rod = lever - base
    # The rod is rigid: K and P have the same velocity along it.
    moved = rod.imag * arm.real - rod.real * arm.imag
    turning = moved / (rod.imag * lever.real - rod.real * lever.imag)
    return lever, rod, turning


@kernel
def bucket_cylinder(theta, pins):  # type: ignore[no-untyped-def]
    """Return J -> K, L -> K and P -> K in the arm's frame, and the cylinder's lever; (A.8)."""
    lever, rod, turning = lever_pin(theta, pins)
    along = pins.l + lever - pins.j
    moved = (along.imag * lever.real - along.real * lever.imag) / abs(along)
    return along, lever, rod, moved * turning


@njit
def cylinders(q, pins, lengths, arms):  # type: ignore[no-untyped-def]
    """Compute lengths and levers (3,) at joint angles q."""
    along, arms[0] = boom_cylinder(q[0], pins)
    lengths[0] = abs(along)
    along, arms[1] = arm_cylinder(q[1], pins)
    lengths[1] = abs(along)
    along, _, _, arms[2] = bucket_cylinder(q[2], pins)
    lengths[2] = abs(along)


@njit
def rod_forces(force, along, lever, rod):  # type: ignore[no-untyped-def]
    """Return the tensions of LK and PK [N] that balance the bucket cylinder at K; (B.1), (B.2)."""
    push = force * along / abs(along)
    lever_way, rod_way = lever / abs(lever), rod / abs(rod)
    # Tension pulls K back: push = T_LK lever_way + T_PK rod_way.
    across = lever_way.real * rod_way.imag - lever_way.imag * rod_way.real
    tension = (push.real * rod_way.imag - push.imag * rod_way.real) / across
    other = (lever_way.real * push.imag - lever_way.imag * push.real) / across
    return tension, other


@kernel
def _tables(q, pins, lengths, arms):  # type: ignore[no-untyped-def]
    """Compute lengths and levers (rows, 3) of poses (rows, 3)."""
    for row in range(q.shape[0]):
        cylinders(q[row], pins, lengths[row], arms[row])


class RodForces(NamedTuple):
    """Tensions of the bucket's connecting rods [N]; in the thesis F_LK and F_PK."""

    lk: np.ndarray
    pk: np.ndarray


@dataclasses.dataclass(frozen=True)
class Linkage:
    """The linkage of an excavator; InputError for what it reaches only past a dead point."""

    pins: Pins

    def __post_init__(self) -> None:
        """Compute the range of each joint between its dead points."""
        p = self.pins
        # The triangles AEB and CIF degenerate at both ends of half a turn.
        boom = -cmath.phase(p.b / p.e)
        arm = cmath.phase((p.i - p.c) / p.f)
        object.__setattr__(
            self, '_ranges', ((boom, boom + math.pi), (arm - math.pi, arm), self._bucket_range())
        )

    def _bucket_range(self) -> tuple[float, float]:
        """Return the interval of theta_4 [rad] at or next to 0 that has no dead point."""
        turn = np.linspace(-2.0 * math.pi, 2.0 * math.pi, 7201)
        good = np.array([self._drives_bucket(angle) for angle in turn])
        runs = np.split(np.arange(turn.size), np.flatnonzero(np.diff(good.astype(int))) + 1)
        inside = [run for run in runs if good[run[0]] and run[0] > 0 and run[-1] < turn.size - 1]
        if not inside:
            raise InputError(
                'the bucket linkage closes nowhere with a lever for its cylinder; look at llk,'
                ' lpk, ldp, lcl and lcj'
            )
        longest = max(len(run) for run in inside)
        run = min(
            (run for run in inside if len(run) > longest // 2),
            key=lambda run: abs(turn[run]).min(),
        )
        return (
            self._last_good(float(turn[run[0]]), float(turn[run[0] - 1])),
            self._last_good(float(turn[run[-1]]), float(turn[run[-1] + 1])),
        )

    def _drives_bucket(self, angle: float) -> bool:
        """Return whether the cylinder has a lever arm at an angle [rad] on this branch."""
        p = self.pins
        try:
            along, lever, _, arm = bucket_cylinder(angle, p)
        except ZeroDivisionError:  # P on L, or K on J
            return False
        P = p.d + p.p * cmath.exp(1j * angle)
        left = ((along - lever).conjugate() * along).imag
        right = ((p.l + lever - p.d).conjugate() * (P - p.d)).imag
        return bool(arm < -_SMALLEST_LEVER and left > 0.0 and right < 0.0)

    def _last_good(self, good: float, bad: float) -> float:
        """Return the last angle [rad] before a dead point, by bisection."""
        for _ in range(60):
            middle = 0.5 * (good + bad)
            good, bad = (middle, bad) if self._drives_bucket(middle) else (good, middle)
        return good

    def ranges(self) -> tuple[tuple[float, float], ...]:
        """Return the open interval of each joint [rad] between its dead points."""
        known: tuple[tuple[float, float], ...] = self.__dict__['_ranges']
        return known

    def lengths(self, q: np.ndarray) -> np.ndarray:
        """Return the lengths of the cylinders (..., 3) [m] at joint angles (..., 3) [rad]."""
        return self._evaluate(q)[0]

    def levers(self, q: np.ndarray) -> np.ndarray:
        """Return d length / d theta [m], shape (..., 3): the diagonal of a Jacobian."""
        return self._evaluate(q)[1]

    def rod_forces(self, q: np.ndarray, force: np.ndarray) -> RodForces:
        """Return the tensions of LK and PK [N] by the bucket cylinder's force (...) [N]."""
        self._evaluate(q)
        tensions = np.vectorize(
            lambda angle, push: rod_forces(push, *bucket_cylinder(angle, self.pins)[:3]),
            otypes=[float, float],
        )
        return RodForces(*tensions(np.asarray(q)[..., 2], force))

    def angles(self, lengths: np.ndarray) -> np.ndarray:
        """Return the joint angles (3,) [rad] at lengths of the cylinders (3,) [m]."""
        values = numbers_of('lengths', lengths, (3,))
        return np.array([self.angle(k, float(values[k])) for k in range(3)])

    def angle(self, cylinder: int, length: float) -> float:
        """Return the angle of one joint [rad] at a length of its cylinder [m]."""
        p = self.pins
        low, high = sorted(self.lengths(np.transpose(self.ranges()))[:, cylinder].tolist())
        # The lengths at the ends are subject to rounding.
        if not low - 1e-12 <= length <= high + 1e-12:
            raise InputError(
                f'length of the {CYLINDERS[cylinder]} cylinder = {length:.6g} m, allowed between'
                f' the dead points of its linkage: [{low:.6g}, {high:.6g}] m'
            )
        if cylinder == 0:
            opening = _opening(abs(p.e), abs(p.b), length)
            angle = cmath.phase(p.e) - cmath.phase(p.b) + opening
        elif cylinder == 1:
            base = p.i - p.c
            opening = _opening(abs(base), abs(p.f), length)
            angle = cmath.phase(base) - cmath.phase(p.f) - opening
        else:
            # K to the left of J -> L, and P to the right of D -> K.
            K = _corner(p.j, p.l, length, p.lk, 1.0)
            P = _corner(complex(p.d), K, abs(p.p), p.pk, -1.0)
            angle = cmath.phase((P - p.d) / p.p)
        # The angle is determined up to whole turns.
        middle = 0.5 * sum(self.ranges()[cylinder])
        return middle + math.remainder(angle - middle, 2.0 * math.pi)

    def _evaluate(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return lengths and levers of checked poses."""
        poses = np.asarray(q, dtype=float)
        if poses.ndim < 1 or poses.shape[-1] != 3:
            raise InputError(f'a pose has shape {poses.shape}, allowed: (..., 3)')
        for k, (low, high) in enumerate(self.ranges()):
            angles = poses[..., k]
            # Rounding may put an end of the range beyond it.
            bad = ~((angles >= low - 1e-9) & (angles <= high + 1e-9))
            if bad.any():
                raise InputError(
                    f'theta_{k + 2} = {math.degrees(angles[bad].flat[0]):.6g} deg, allowed between'
                    f' the dead points of the {CYLINDERS[k]} linkage:'
                    f' [{math.degrees(low):.4f}, {math.degrees(high):.4f}] deg'
                )
        flat = np.ascontiguousarray(poses.reshape(-1, 3))
        lengths, arms = np.empty(flat.shape), np.empty(flat.shape)
        _tables(flat, self.pins, lengths, arms)
        return lengths.reshape(poses.shape), arms.reshape(poses.shape)


def _opening(near: float, far: float, across: float) -> float:
    """Return the angle [rad] between two sides of a triangle from its three sides [m]."""
    cosine = (near * near + far * far - across * across) / (2.0 * near * far)
    return math.acos(min(1.0, max(-1.0, cosine)))


def _corner(first: complex, second: complex, near: float, far: float, side: float) -> complex:
    """Return the point at distances [m] from two points, left (1) or right (-1) of their line."""
    base = second - first
    length = abs(base)
    share = (near * near - far * far + length * length) / (2.0 * length)
    height = math.sqrt(max(near * near - share * share, 0.0))
    return first + base / length * complex(share, side * height)
