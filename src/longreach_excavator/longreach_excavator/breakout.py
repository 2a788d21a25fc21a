"""
Poses at rest, and breakout forces: of the tooth while one cylinder exerts its full force.

Boom and the other joints stand in a pose; the cylinder of arm or bucket is moved over its stroke,
with the supply pressure in its head side and the tank's in its rod side, in balance with the
weight of the links and a force at the tooth N. The force is across the line from the joint that
turns, D or C, to N. The other cylinders are assumed to hold any load.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from longreach_dynamics.errors import check_among
from longreach_dynamics.hydraulics import holding_pressures
from longreach_excavator.inverse import InverseResult, Motion, inverse
from longreach_excavator.kinematics import pin_places
from longreach_excavator.linkage import CYLINDERS
from longreach_excavator.parameters import ExcavatorParameters

BREAKOUTS = ('bucket', 'arm')
PINS = 'acdefijklp'
"""Joints and pins of the summary."""
# Points of the stroke; margin at its ends, as a share: rounding must not put a pose outside.
_PLACES, _INSIDE = 121, 1e-6


@dataclasses.dataclass(frozen=True)
class Breakout:
    """Breakout forces over a stroke of the cylinder of arm or bucket."""

    cylinder: str  # one of BREAKOUTS
    stroke: np.ndarray  # (rows,) piston position from the retracted end [m]
    # (rows,) of the tooth on the ground [N]; below 0 where the cylinder cannot carry the weight.
    force: np.ndarray
    loads: InverseResult  # its times are 0, 1, 2, ..

    @property
    def best(self) -> int:
        """Row of the largest force."""
        return int(self.force.argmax())

    def summary(self) -> dict[str, Any]:
        """Return the largest breakout force, its piston position, and the pin loads there."""
        k, column = self.best, self.loads.column
        return {
            'force_n': float(self.force[k]),
            'piston_m': float(self.stroke[k]),
            'pins_n': {p: float(column(f'pin_{p}')[k]) for p in PINS},
            'holding_n': {name: float(column(f'pin_force_{name}')[k]) for name in CYLINDERS},
        }


def breakout(excavator: ExcavatorParameters, cylinder: str, pose: np.ndarray) -> Breakout:
    """Return breakout forces of arm or bucket over the stroke, the others in a pose (3,) [rad]."""
    check_among('cylinder', cylinder, BREAKOUTS)
    excavator.check_pose(pose)
    k = CYLINDERS.index(cylinder)
    driven, linkage, chain = excavator.cylinders[k], excavator.linkage(), excavator.chain()
    stroke = np.linspace(_INSIDE, 1.0 - _INSIDE, _PLACES) * driven.stroke
    angles = np.tile(pose, (_PLACES, 1))
    angles[:, k] = [linkage.angle(k, driven.retracted + s) for s in stroke]
    places = pin_places(excavator, angles)
    arm = places[:, -1] - places[:, k]
    weight = np.array([chain.bias(q, np.zeros(len(q)))[k] for q in angles])
    oil = excavator.oil
    push = oil.supply_pressure * driven.head_area - oil.tank_pressure * driven.rod_area
    # A cylinder that runs out turns its joint down; the ground turns it up.
    force = (weight - linkage.levers(angles)[:, k] * push) / np.abs(arm)
    on_tooth = force * 1j * arm / np.abs(arm)
    still = np.zeros_like(angles)
    motion = Motion(
        np.arange(float(_PLACES)),
        angles,
        still,
        still,
        np.column_stack([on_tooth.real, on_tooth.imag]),
        f'breakout of the {cylinder}',
    )
    # Nothing moves from one place to the next: seals have no friction.
    resting = excavator.replace(
        cylinders=tuple(c.replace(seals=None) for c in excavator.cylinders)
    )
    return Breakout(cylinder, stroke, force, inverse(resting, motion))


def standing(excavator: ExcavatorParameters, q: np.ndarray) -> dict[str, Any]:
    """Return a pose at rest (3,) [rad] as plain numbers; InputError outside the strokes."""
    excavator.check_pose(q)
    linkage, tooth = excavator.linkage(), pin_places(excavator, q)[-1]
    lengths, forces = linkage.lengths(q), excavator.holding_forces(q)
    head, rod = holding_pressures(forces, excavator.cylinders, excavator.oil)
    return {
        'theta_deg': np.degrees(q).tolist(),
        'range_deg': np.degrees(excavator.joint_limits()).tolist(),
        'length_m': lengths.tolist(),
        'piston_m': (lengths - [c.retracted for c in excavator.cylinders]).tolist(),
        'lever_m': linkage.levers(q).tolist(),
        'force_n': forces.tolist(),
        'p_head_pa': head.tolist(),
        'p_rod_pa': rod.tolist(),
        'tip_m': [float(tooth.real), float(tooth.imag)],
    }
