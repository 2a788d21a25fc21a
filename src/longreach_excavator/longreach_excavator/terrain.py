"""
Terrain that is excavated, pushed, carried and dumped: heights along x, and the bucket's fill.

The terrain is a strip as wide as the bucket, divided into cells of equal length along x. Each cell
has a height of firm soil and a height of loose soil on top. All volumes are those of undisturbed
soil; swell is neglected. Volume is conserved: firm + loose + bucket is constant up to rounding.
Forces and changes of the ground: :mod:`longreach_excavator.excavation`.
"""

from __future__ import annotations

import functools
import itertools
import math
from typing import NamedTuple

import numpy as np

from longreach_dynamics.planar_chain import (
    CENTER,
    CENTER_IM,
    FIRST,
    FIRST_IM,
    INERTIA,
    LENGTH,
    MASS,
    SECOND,
)
from longreach_excavator.soil import SoilParameters

# Corners of the bucket's shell over its length DN, from the lip of the mouth to the last one
# before the tooth.
SHELL = (
    0.14 - 0.02j, 0.14 + 0.30j, 0.30 + 0.46j, 0.55 + 0.50j, 0.78 + 0.38j, 0.95 + 0.11j,
)  # fmt: skip
# Longest piece of the shell for the contact force, over DN.
PIECE = 0.05
# Longest reach of a piece of the shell over its distance from the tooth, near which it has little
# clearance to the cut.
_NEAR = 0.3
# Number of intervals of attitude in the table of the volumes that the bucket holds.
_ATTITUDES = 144
# Indices in the terrain's part of the state, which follows that of motion: volume in the bucket
# [m^3], then heights of firm soil and of loose soil [m].
VOLUME, FIRM = 0, 1


class Ground(NamedTuple):
    """Constants of the terrain and of the bucket's volume; the bucket's frame has DN as x axis."""

    cells: int  # 0: no terrain
    start: float  # x of the centre of the first cell [m]
    cell: float  # length of a cell [m]
    width: float  # of bucket and ground [m]
    density: float  # [kg/m^3]
    weight: float  # per volume [N/m^3]
    cohesion: float  # of firm soil [Pa]
    friction: float  # angle of internal friction of firm soil [rad]
    repose: float  # angle of repose, and of friction of loose soil [rad]
    slope: float  # tangent of the angle of repose
    rebound: float  # penetration at which the full pressure acts, K [m]
    edge: float  # thickness [m]
    loose_share: float  # of the loose soil's height that counts as depth
    cut: complex  # cutting direction t, unit vector in the bucket's frame
    shell: np.ndarray  # (pieces, 6): centre from N [m], outward unit normal, area [m^2], reach [m]
    inside: float  # full volume of the bucket [m^3]
    held: np.ndarray  # (_ATTITUDES + 1,) volume held [m^3] at attitudes from 0 to 2 pi
    lip: complex  # lip of the mouth in the bucket's frame, from D [m]
    tooth: float  # D to N [m]
    middle: complex  # centroid of the full volume in the bucket's frame, from D [m]
    gyration: float  # square of the radius of gyration of the full volume [m^2]
    bucket: np.ndarray  # (4,) of the empty bucket: mass [kg], centre [m], inertia [kg m^2]
    base: np.ndarray  # (4, 3) FIRST, FIRST_IM, SECOND, LENGTH of the links with an empty bucket


# Of a run without terrain.
NO_GROUND = Ground(
    0, 0.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0j, np.zeros((0, 6)), 0.0,
    np.zeros(1), 0j, 0.0, 0j, 0.0, np.zeros(4), np.zeros((4, 3)),
)  # fmt: skip


def ground_of(
    soil: SoilParameters,
    gravity: float,
    length: float,
    table: np.ndarray,
    span: tuple[float, float],
) -> Ground:
    """Return the terrain over a span of x, for a bucket of a length [m] in a chain's table."""
    terrain, tool = soil.terrain, soil.earthmoving
    inside, middle, gyration, held = bucket_volumes(terrain.repose_deg)
    turn = math.radians(soil.phi_1_deg)
    count = math.ceil((span[1] - span[0]) / terrain.cell)
    return Ground(
        count,
        span[0] + 0.5 * terrain.cell,
        terrain.cell,
        tool.width,
        tool.unit_weight / (gravity or 9.81),  # without gravity as on Earth
        tool.unit_weight if gravity else 0.0,
        soil.cohesion,
        math.radians(tool.internal_friction_deg),
        math.radians(terrain.repose_deg),
        math.tan(math.radians(terrain.repose_deg)),
        soil.shear_displacement,
        terrain.edge,
        terrain.loose_share,
        -complex(math.cos(turn), math.sin(turn)),
        _pieces(length, tool.width, soil.shear_displacement),
        inside * length**2 * tool.width,
        held * length**2 * tool.width,
        SHELL[0] * length,
        length,
        middle * length,
        gyration * length**2,
        np.array([table[MASS, 2], table[CENTER, 2], table[CENTER_IM, 2], table[INERTIA, 2]]),
        table[[FIRST, FIRST_IM, SECOND, LENGTH]].copy(),
    )


def _pieces(length: float, width: float, rebound: float) -> np.ndarray:
    """Return the rows of ``Ground.shell`` for a bucket's length and width, and K [m]."""
    corners = np.array([*SHELL, 1.0]) * length
    rows = []
    for first, last in itertools.pairwise(corners):
        along = last - first
        count = math.ceil(abs(along) / (PIECE * length))
        # From the lip to the tooth the outside is on the left.
        normal = 1j * along / abs(along)
        for k in range(count):
            place = first + (k + 0.5) / count * along - length
            area, reach = abs(along) / count * width, min(rebound, _NEAR * abs(place))
            rows.append((place.real, place.imag, normal.real, normal.imag, area, reach))
    return np.array(rows)


@functools.lru_cache(maxsize=16)
def bucket_volumes(repose_deg: float) -> tuple[float, complex, float, np.ndarray]:
    """Return full volume, its centroid and squared radius of gyration, and the volumes held."""
    # Of a bucket of length and width 1. Full: up to the line from lip to tooth; held: heaped to
    # the angle of repose, at attitudes (angles of DN above the horizontal) from 0 to 2 pi.
    pitch = 0.01
    x, z = np.meshgrid(
        np.arange(-0.2, 1.2, pitch) + 0.5 * pitch, np.arange(-0.7, 0.7, pitch) + 0.5 * pitch
    )
    points, slope = (x + 1j * z).ravel(), math.tan(math.radians(repose_deg))
    corners = np.array([*SHELL, 1.0])
    within = np.zeros(points.size, dtype=bool)
    for first, last in zip(corners, np.roll(corners, -1), strict=True):
        crosses = (first.imag > points.imag) != (last.imag > points.imag)
        rise = last.imag - first.imag or 1.0
        at = first.real + (points.imag - first.imag) / rise * (last.real - first.real)
        within ^= crosses & (points.real < at)
    body = points[within]
    middle = complex(body.mean())
    held = np.empty(_ATTITUDES + 1)
    for k in range(_ATTITUDES + 1):
        turn = np.exp(2j * np.pi * k / _ATTITUDES)
        lip, tooth, turned = corners[0] * turn, turn, points * turn
        # Outward normal of the mouth. When it points downwards more steeply than the angle of
        # repose, the bucket is empty.
        looks = -1j * (tooth - lip) / abs(tooth - lip)
        above = np.minimum(lip.real, tooth.real) <= turned.real
        above &= turned.real <= np.maximum(lip.real, tooth.real)
        above &= ((turned - tooth) * np.conj(looks)).real > 0.0
        inside = within | (above & (looks.imag > 0.0))
        for end in (lip, tooth):
            inside &= turned.imag <= end.imag + slope * np.abs(turned.real - end.real)
        held[k] = inside.sum() * pitch**2 if looks.imag > -math.sin(math.atan(slope)) else 0.0
    held.flags.writeable = False
    gyration = float(np.mean(np.abs(body - middle) ** 2))
    return within.sum() * pitch**2, middle, gyration, held


def flat_ground(ground: Ground, surface: float) -> np.ndarray:
    """Return the terrain's state with flat firm soil at a height [m] and an empty bucket."""
    state = np.zeros(FIRM + 2 * ground.cells)
    state[FIRM : FIRM + ground.cells] = surface
    return state


def heights(state: np.ndarray) -> np.ndarray:
    """Return the surface heights (..., cells) [m] of terrain states (..., size)."""
    count = (state.shape[-1] - FIRM) // 2
    return np.asarray(state[..., FIRM : FIRM + count] + state[..., FIRM + count :])


def places(ground: Ground) -> np.ndarray:
    """Return x of the centres of the cells (cells,) [m]."""
    return np.asarray(ground.start + ground.cell * np.arange(ground.cells))
