"""
Places of the harvester: the tip from joint angles and back, paths of the tip, cylinders.

The base frame has its origin on the swing axis at the height of the boom's pivot, x forward, z up.
The stick hangs: of both solutions for a tip, the one with a negative stick angle.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from longreach_dynamics.errors import InputError, named
from longreach_dynamics.hydraulics.lines import LinedCylinder
from longreach_dynamics.parameters import Parameters, choice, quantity
from longreach_harvester.parameters import HarvesterParameters

# Nearer to the swing axis than this the swing angle is not defined [m].
_NEAR_AXIS = 1e-3
_SMALL = 1e-9


@dataclasses.dataclass(frozen=True)
class TipSegment(Parameters):
    """A line or an arc of a circle that the tip follows from rest to rest, with least jerk."""

    kind: str = choice('shape', ('line', 'circle'))
    duration: float = quantity('time it takes', 's', at_least=0.1, at_most=1e6)
    to: tuple[float, ...] = quantity('line: where it ends, x, y, z', 'm', default=())
    centre: tuple[float, ...] = quantity('circle: its centre, x, y, z', 'm', default=())
    normal: tuple[float, ...] = quantity('circle: axis, right-handed', '1', default=())
    turn: float = quantity('circle: angle of the arc', 'rad', default=2.0 * math.pi)

    def check(self) -> None:
        """Raise InputError when what the kind needs is missing, or no vector."""
        needed, other = (self.to,), (self.centre, self.normal)
        if self.kind == 'circle':
            needed, other = other, needed  # type: ignore[assignment]
        if any(len(vector) != 3 for vector in needed) or any(other):
            names = {'line': 'to: x, y, z', 'circle': 'centre and normal'}
            raise InputError(
                f'{self.kind} has {"to" if self.to else "no to"},'
                f' {"centre" if self.centre else "no centre"},'
                f' {"normal" if self.normal else "no normal"}, allowed: {names[self.kind]}'
            )
        if self.kind == 'line' and self.turn != 2.0 * math.pi:
            raise InputError(f'turn = {self.turn:g} rad, allowed for a line: none')
        if self.normal and not math.hypot(*self.normal) > 0.0:
            raise InputError(f'normal = {self.normal}, allowed: not 0')

    def points(self, start: np.ndarray, shares: np.ndarray) -> np.ndarray:
        """Return places for shares of the way, (K, 3) [m]."""
        if self.kind == 'line':
            return np.asarray(start + shares[:, None] * (np.array(self.to) - start))
        axis = np.array(self.normal) / math.hypot(*self.normal)
        arm = start - np.array(self.centre)
        along = axis * (arm @ axis)
        angle = (self.turn * shares)[:, None]
        turned = np.cos(angle) * (arm - along) + np.sin(angle) * np.cross(axis, arm)
        return np.asarray(np.array(self.centre) + along + turned)


def tip_at(p: HarvesterParameters, angles: np.ndarray) -> np.ndarray:
    """Return the tip of the stick, (..., 3) [m], for joint angles (..., 3) [rad]."""
    swing, boom, stick = np.moveaxis(np.asarray(angles, dtype=float), -1, 0)
    reach = p.swing.offset + p.boom.length * np.cos(boom) + p.stick.length * np.cos(boom + stick)
    height = p.boom.length * np.sin(boom) + p.stick.length * np.sin(boom + stick)
    return np.stack([reach * np.cos(swing), reach * np.sin(swing), height], axis=-1)


def angles_at(p: HarvesterParameters, tip: Sequence[float] | np.ndarray) -> np.ndarray:
    """Return the joint angles (3,) [rad] with the tip at a place (x, y, z) [m]."""
    x, y, z = (float(value) for value in tip)
    distance = math.hypot(x, y)
    place = f'tip = ({x:g}, {y:g}, {z:g}) m'
    if distance < _NEAR_AXIS:
        raise InputError(f'{place} is on the swing axis, allowed: {_NEAR_AXIS:g} m or more off it')
    a, b = p.boom.length, p.stick.length
    reach = distance - p.swing.offset
    square = reach * reach + z * z
    cosine = (square - a * a - b * b) / (2.0 * a * b)
    if not -1.0 - _SMALL <= cosine <= 1.0 + _SMALL:
        raise InputError(
            f'{place} is {math.sqrt(square):.4g} m from the boom pivot, allowed:'
            f' [{abs(a - b):.4g}, {a + b:.4g}] m'
        )
    stick = -math.acos(min(1.0, max(-1.0, cosine)))
    boom = math.atan2(z, reach) - math.atan2(b * math.sin(stick), a + b * math.cos(stick))
    angles = np.array([math.atan2(y, x), boom, stick])
    with named(f'{place} needs '):
        p.check_pose(angles)
    return angles


def tip_path(
    p: HarvesterParameters, start: np.ndarray, segments: Sequence[TipSegment], times: np.ndarray
) -> np.ndarray:
    """Return joint angles (times, 3) [rad] of a path of the tip, at whose end it rests."""
    found = np.tile(np.asarray(start, dtype=float), (times.size, 1))
    place, begin = tip_at(p, start), 0.0
    if segments and np.abs(angles_at(p, place) - start)[1:].max() > 1e-6:
        raise InputError(
            f'angles = {start.tolist()} rad, allowed for a path of the tip: a negative stick, and'
            ' the tip before the swing axis; begin in another pose'
        )
    for index, segment in enumerate(segments):
        inside = times >= begin
        s = np.clip((times[inside] - begin) / segment.duration, 0.0, 1.0)
        shares = s**3 * (10.0 + s * (6.0 * s - 15.0))
        # A segment that no sample is in is checked at its end.
        points = segment.points(place, np.append(shares, 1.0))
        with named(f'tip[{index}]: '):
            angles = np.array([angles_at(p, point) for point in points])
        found[inside] = angles[:-1]
        place, begin = points[-1], begin + segment.duration
    # The swing goes on beyond half a turn.
    found[:, 0] = np.unwrap(found[:, 0])
    found[:, 0] += 2.0 * np.pi * np.round((start[0] - found[0, 0]) / (2.0 * np.pi))
    return found


class CylinderPlace(NamedTuple):
    """A cylinder in the plane of the machine, in the frame of the link that its barrel is on."""

    barrel: complex  # pin of the barrel from the joint [m]
    angle: float  # of the cylinder [rad]
    length: float  # from pin to pin [m]


def cylinder_place(cylinder: LinedCylinder, angle: float, rod_angle: float) -> CylinderPlace:
    """Return where a cylinder, with a linkage of kind triangle, is at a joint angle [rad]."""
    _, near, far, offset, _ = cylinder.linkage.row().tolist()
    barrel = near * complex(math.cos(rod_angle - offset), math.sin(rod_angle - offset))
    span = far * complex(math.cos(angle + rod_angle), math.sin(angle + rod_angle)) - barrel
    return CylinderPlace(barrel, math.atan2(span.imag, span.real), abs(span))
