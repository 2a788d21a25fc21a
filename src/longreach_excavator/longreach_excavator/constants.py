"""Constants of an excavator for the kernels of motion, from its file and the scenario's ground."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from longreach_dynamics.hydraulics import Actuators, actuators_of
from longreach_dynamics.hydraulics.actuators import (
    HEAD_AREA,
    HEAD_VOLUME,
    LINKAGE,
    ROD_AREA,
    ROD_VOLUME,
    STROKE,
)
from longreach_dynamics.kernels import read_only
from longreach_excavator.linkage import Pins
from longreach_excavator.parameters import ExcavatorParameters, SealParameters
from longreach_excavator.soil import coefficients
from longreach_excavator.terrain import NO_GROUND, Ground, ground_of

# Columns of the table of actuators: length of the retracted cylinder [m]; angles [rad] and lever
# [m] of the lugs; travel of the seals [m].
RETRACTED, LOWEST, HIGHEST, LUG, TRAVEL = range(LINKAGE)


class Medium(NamedTuple):
    """Numbers of the stops and the ground."""

    stop_stiffness: float  # [N/m]
    stop_loss: float  # [s/m]
    surface: float  # of the soil, z [m]; -inf: none, or terrain
    joint: float  # fixed height of D for the depth of the edge [m]; NaN: the actual height
    radius: float  # distance from D of the point whose depth counts [m]
    shear: float  # shear displacement K [m]
    linear: float  # of the resistance, see soil.coefficients
    quadratic: float
    power: float
    exponent: float
    along: complex  # direction of the force in the bucket's frame, mode thesis; NaN: against s
    moment: float  # moment of the soil on the bucket, mode thesis [N m]


class Constants(NamedTuple):
    """Constants for compiled code."""

    chain: np.ndarray  # PlanarChain.table(); copied where it is also work space
    actuators: Actuators
    pins: Pins
    medium: Medium
    ground: Ground


def constants_of(
    excavator: ExcavatorParameters,
    surface: float,
    joint: float = math.nan,
    *,
    fixed_direction: bool = False,
    terrain: tuple[float, float] | None = None,
    held: Mapping[int, float] | None = None,
) -> Constants:
    """
    Return the constants of an excavator for compiled code.

    ``surface``: height of the soil [m], -inf: none; ``joint``: fixed height of D for the depth of
    the edge [m], NaN: the actual one; ``fixed_direction``: the soil's force has the thesis'
    direction phi_1 in the bucket and the moment M_45, and there are no stops; ``terrain``:
    interval in x of ground that is cut and carried, flat at first [m]; ``held``: lengths of locked
    cylinders by index [m].
    """
    soil = excavator.soil
    turn = math.radians(soil.phi_1_deg) if fixed_direction else math.nan
    driven = excavator.cylinders
    seals = [c.seals or SealParameters(coulomb=0.0, travel=0.1) for c in driven]
    own = np.column_stack([excavator.lugs(), [s.travel for s in seals]])
    actuators = actuators_of(
        driven,
        excavator.oil,
        np.column_stack([[c.retracted for c in driven], own]),
        viscous=[c.viscous for c in driven],
        coulomb=[s.coulomb for s in seals],
        leakage=[c.leakage for c in driven],
    )
    for k, length in (held or {}).items():
        row = actuators.table[k]
        position = length - row[RETRACTED]
        row[RETRACTED], row[STROKE] = length, 0.0
        # The chambers keep the volumes that they have there.
        row[HEAD_VOLUME] += row[HEAD_AREA] * position
        row[ROD_VOLUME] -= row[ROD_AREA] * position
    medium = Medium(
        0.0 if fixed_direction else excavator.stops.stiffness,
        excavator.stops.loss,
        surface if terrain is None else -math.inf,
        joint,
        excavator.soil.sweep_radius,
        excavator.soil.shear_displacement,
        *coefficients(excavator.soil),
        complex(math.cos(turn), math.sin(turn)),
        soil.m_45,
    )
    table = excavator.chain().table()
    ground = NO_GROUND
    if terrain is not None:
        ground = ground_of(soil, excavator.gravity, excavator.bucket.length, table, terrain)
    return read_only(Constants(table, actuators, excavator.pins(), medium, ground))
