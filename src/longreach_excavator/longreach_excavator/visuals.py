"""
What is drawn of an excavator: forces, the terrain, soil in the bucket.

Places and vectors are x + j z in the frame ``excavator_base``.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import numpy as np

from longreach_excavator.columns import REACTIONS
from longreach_excavator.kinematics import pin_places
from longreach_excavator.motion import RATE, SIZE
from longreach_excavator.parameters import ExcavatorParameters
from longreach_excavator.terrain import VOLUME, Ground, heights, places

# Length of an arrow over its force [m/N]: 1 m for 50 kN.
FORCE_SCALE = 1.0 / 50e3
# Ends of the line of the soil's surface: near end over the boom's length, far end over the reach
# of the stretched machine.
_NEAR, _BEYOND = 0.35, 1.1
# Of the drawn ground: half its width and its depth [m], and most points of its surface.
_HALF_WIDTH, _DEPTH, _MOST_PLACES = 1.0, 0.5, 60


def bucket_load(ground: Ground, y: np.ndarray, tooth: complex) -> tuple[complex, float]:
    """Return centre and diameter [m] of a cylinder with the volume of the soil in the bucket."""
    middle = tooth + (ground.middle - ground.tooth) * np.exp(1j * y[:RATE].sum())
    return complex(middle), float(2.0 * np.sqrt(y[SIZE + VOLUME] / (np.pi * ground.width)))


def ground_line(ground: Ground, y: np.ndarray) -> np.ndarray:
    """Return the surface of the terrain in a state ``y``, (cells, 2), x and z [m]."""
    return np.column_stack([places(ground), heights(y[SIZE:])])


def force_arrows(
    excavator: ExcavatorParameters, y: np.ndarray, observed: Mapping[str, float]
) -> dict[str, tuple[complex, complex]]:
    """Return starts and vectors [m] of arrows: reactions in A, C and D, the soil on the tooth."""
    names = (*REACTIONS, 'soil')
    starts = pin_places(excavator, y[:RATE]).tolist()
    return {
        name: (start, FORCE_SCALE * complex(observed[f'{name}_x'], observed[f'{name}_z']))
        for name, start in zip(names, starts, strict=True)
    }


def soil_line(excavator: ExcavatorParameters, surface: float) -> np.ndarray:
    """Return the line of flat soil (2, 2) [m], beyond the reach; (0, 2) for none, at -inf."""
    if surface == -np.inf:
        return np.empty((0, 2))
    reach = excavator.boom.length + excavator.arm.length + excavator.bucket.length
    return np.array([[_NEAR * excavator.boom.length, surface], [_BEYOND * reach, surface]])


def soil_body(line: np.ndarray) -> np.ndarray:
    """Return the triangles (3 corners each, 3) [m] of the ground below a line (points, 2)."""
    line = line[np.unique(np.linspace(0, len(line) - 1, _MOST_PLACES).round().astype(int))]
    x, z = line.T
    deep = np.full_like(z, z.min() - _DEPTH)
    edges = [
        np.column_stack([x, np.full_like(x, side * _HALF_WIDTH), height])
        for side, height in ((1.0, deep), (1.0, z), (-1.0, z), (-1.0, deep))
    ]
    found = []
    for one, other in itertools.pairwise(edges):
        # Far side, surface and near side.
        found += [one[:-1], one[1:], other[1:], one[:-1], other[1:], other[:-1]]
    return np.reshape(np.stack(found, axis=1), (-1, 3))
