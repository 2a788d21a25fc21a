"""Statics of an excavator: forces and pressures of its cylinders in a pose at rest."""

from __future__ import annotations

from typing import Any

import numpy as np

from longreach_dynamics.hydraulics import holding_pressures
from longreach_excavator.kinematics import pin_places
from longreach_excavator.parameters import ExcavatorParameters


def holding_forces(excavator: ExcavatorParameters, q: np.ndarray) -> np.ndarray:
    """
    Return the forces of the cylinders that hold the links' weight [N], positive extends.

    Parameters
    ----------
    excavator : ExcavatorParameters
    q : ndarray, shape (3,)
        Pose [rad].

    Raises
    ------
    InputError
        For a pose at or past a dead point.
    """
    weight = excavator.chain().bias(q, np.zeros(len(q)))
    return np.asarray(weight / excavator.linkage().levers(q))


def pressures(excavator: ExcavatorParameters, forces: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """
    Return pressures of head and rod sides (3,) [Pa] that give forces of the cylinders (3,) [N].

    See :func:`longreach_dynamics.hydraulics.holding_pressures`.
    """
    heads, rods = np.array([[c.head_area, c.rod_area] for c in excavator.cylinders]).T
    filled = [
        c.make_up.supply - c.make_up.cracking if c.make_up and c.make_up.supply else 0.0
        for c in excavator.cylinders
    ]
    return holding_pressures(forces, heads, rods, excavator.oil, np.array(filled))


def standing(excavator: ExcavatorParameters, q: np.ndarray) -> dict[str, Any]:
    """
    Return a pose at rest as plain numbers.

    Angles and their limits by the strokes [deg], lengths of the cylinders, piston positions,
    levers d length / d theta [m], forces of the cylinders [N] and their pressures [Pa], position
    of the tooth [m].

    Raises
    ------
    InputError
        For a pose outside the strokes.
    """
    excavator.check_pose(q)
    linkage, tooth = excavator.linkage(), pin_places(excavator, q)[-1]
    lengths, forces = linkage.lengths(q), holding_forces(excavator, q)
    head, rod = pressures(excavator, forces)
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
