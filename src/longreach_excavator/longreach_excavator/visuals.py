"""
Markers of an excavator for RViz: forces, the terrain, soil in the bucket.

Positions and vectors are x and z in the frame ``excavator_base``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from longreach_dynamics.errors import InputError
from longreach_excavator.kinematics import pin_places
from longreach_excavator.motion import RATE, SIZE
from longreach_excavator.parameters import ExcavatorParameters
from longreach_excavator.state import ExcavatorState
from longreach_excavator.terrain import VOLUME, Ground, heights, places

# Length of an arrow over its force [m/N]: 1 m for 50 kN.
FORCE_SCALE = 1.0 / 50e3
# Ends of the line of the soil's surface: near end over the boom's length, far end over the reach
# of the stretched machine.
_NEAR, _BEYOND = 0.35, 1.1


class Arrow(NamedTuple):
    """A force, drawn from its point of application."""

    name: str  # as in longreach_excavator.columns.OBSERVED
    start: tuple[float, float]  # [m]
    vector: tuple[float, float]  # FORCE_SCALE times the force [m]; zero when there is none


class Load(NamedTuple):
    """Soil in the bucket, drawn as a cylinder of equal volume, normal to the plane."""

    middle: tuple[float, float]  # centre, x and z [m]
    diameter: float  # [m]
    width: float  # [m]


def bucket_load(ground: Ground, y: np.ndarray, tooth: complex) -> Load:
    """Return the cylinder for the soil in the bucket, in a state y with the tooth [m]."""
    middle = tooth + (ground.middle - ground.tooth) * np.exp(1j * y[:RATE].sum())
    diameter = 2.0 * np.sqrt(y[SIZE + VOLUME] / (np.pi * ground.width))
    return Load((float(middle.real), float(middle.imag)), float(diameter), ground.width)


def ground_line(ground: Ground, y: np.ndarray) -> np.ndarray:
    """Return the surface of the terrain in a state ``y``, (cells, 2), x and z [m]."""
    return np.column_stack([places(ground), heights(y[SIZE:])])


def force_arrows(
    excavator: ExcavatorParameters, state: ExcavatorState, observed: Mapping[str, float]
) -> tuple[Arrow, ...]:
    """
    Return the reactions in A, C and D, and the force of the soil on the tooth.

    ``boom_chassis``, ``arm_boom``, ``bucket_arm``: on boom, arm and bucket; ``soil``. Always four.
    """
    names = ('boom_chassis', 'arm_boom', 'bucket_arm', 'soil')
    places = dict(zip(names, pin_places(excavator, state.y[:3]).tolist(), strict=True))
    return tuple(
        Arrow(
            name,
            (place.real, place.imag),
            (FORCE_SCALE * observed[f'{name}_x'], FORCE_SCALE * observed[f'{name}_z']),
        )
        for name, place in places.items()
    )


def soil_line(excavator: ExcavatorParameters, surface: float) -> np.ndarray:
    """
    Return the line of flat soil, x and z (2, 2) [m], from the tracks to beyond the reach.

    (0, 2) for a surface of -inf: no soil; InputError for another that is not finite.
    """
    if surface == -np.inf:
        return np.empty((0, 2))
    if not np.isfinite(surface):
        raise InputError(f'surface = {surface} m, allowed: a finite height, or -inf for no soil')
    reach = excavator.boom.length + excavator.arm.length + excavator.bucket.length
    return np.array([[_NEAR * excavator.boom.length, surface], [_BEYOND * reach, surface]])
