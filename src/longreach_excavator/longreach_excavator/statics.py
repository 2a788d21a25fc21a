"""Statics of an excavator: forces and pressures of its cylinders in a pose at rest."""

from __future__ import annotations

from typing import Any

import numpy as np

from longreach_dynamics.hydraulics import holding_pressures
from longreach_excavator.kinematics import pin_places
from longreach_excavator.parameters import ExcavatorParameters


def holding_forces(excavator: ExcavatorParameters, q: np.ndarray) -> np.ndarray:
    """Return the forces of the cylinders that hold the weight (3,) [N] in a pose (3,) [rad]."""
    weight = excavator.chain().bias(q, np.zeros(len(q)))
    return np.asarray(weight / excavator.linkage().levers(q))


def standing(excavator: ExcavatorParameters, q: np.ndarray) -> dict[str, Any]:
    """Return a pose at rest (3,) [rad] as plain numbers; InputError outside the strokes."""
    excavator.check_pose(q)
    linkage, tooth = excavator.linkage(), pin_places(excavator, q)[-1]
    lengths, forces = linkage.lengths(q), holding_forces(excavator, q)
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
