"""
Shapes of a boom to draw, with their stress, and positions of its markers.

Both are evaluated many times per second, so results that depend only on the boom are cached.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np

from longreach_boom.description import WIDTH, half_height
from longreach_boom.kinematics import bent_at, frames_of, place_on_beam, velocity_on_beam
from longreach_boom.model import boom_bases
from longreach_boom.parameters import BoomParameters
from longreach_boom.state import BoomState
from longreach_boom.strain import curvatures
from longreach_dynamics.kernels import read_only

# Yield strength of S355 [Pa], used in older booms; steels of newer booms have twice this value.
YIELD_STRENGTH = 355e6

# Red, green, blue from zero stress to the yield strength.
_SCALE = np.array([[0.16, 0.42, 0.78], [0.25, 0.68, 0.38], [0.96, 0.80, 0.15], [0.84, 0.12, 0.12]])
# The same for a browser.
SCALE_COLOURS = tuple(f'#{bytes(row).hex()}' for row in np.rint(255.0 * _SCALE).astype(np.uint8))


class BeamShape(NamedTuple):
    """A bent beam."""

    name: str
    edges: np.ndarray  # (2, K, 2) x and z of the lower and upper edge, from root to tip [m]
    side: float  # distance of its sides from the plane y = 0, where it is widest [m]
    stress: np.ndarray  # (K,) size of the bending stress at the surface [Pa]


class MarkerMotion(NamedTuple):
    """The markers of a boom file, in the frame ``boom_base``."""

    names: tuple[str, ...]
    positions: np.ndarray  # (K, 3) [m]
    velocities: np.ndarray  # (K, 3) [m/s]


class _Lines(NamedTuple):
    """Tables of a beam at K positions."""

    places: np.ndarray  # (K,) [m]
    eta: np.ndarray  # (F, K)
    eta_slope: np.ndarray  # (F, K)
    heights: np.ndarray  # (K,) distance of the surface from the neutral line [m]


@functools.lru_cache(maxsize=16)
def _lines(boom: BoomParameters, points: int) -> tuple[_Lines, ...]:
    """Return the tables of all beams."""
    lines = []
    for basis, beam in zip(boom_bases(boom), boom.beams, strict=True):
        places = np.linspace(0.0, beam.length, points)
        heights = half_height(beam, places)
        lines.append(_Lines(places, basis.at(places), basis.at(places, 1), heights))
    return read_only(tuple(lines))


def shape_of(
    boom: BoomParameters, state: BoomState, points: int = 24, friction: bool = True
) -> tuple[BeamShape, ...]:
    """Return the bent beams of a boom, with equally spaced points along each, ends included."""
    N, shapes = boom.size, []
    q, _, _, frames = frames_of(boom, state.y)
    tables = _lines(boom, points)
    places = tuple(tuple(lines.places.tolist()) for lines in tables)
    bent = curvatures(boom, state, places, friction).reshape(N, points)
    for i, (beam, frame, lines) in enumerate(zip(boom.beams, frames[:-1], tables, strict=True)):
        h = np.array(q[N + i :: N])
        at = place_on_beam(frame, lines.places, 0.0, h @ lines.eta, 0.0)
        # The printed rotation changes lengths; the height of a section is constant.
        normal = 1j * frame.turn / abs(frame.turn)
        up = normal * np.exp(1j * (h @ lines.eta_slope)) * lines.heights
        shapes.append(
            BeamShape(
                beam.name,
                np.stack([[p.real, p.imag] for p in (at - up, at + up)]).swapaxes(1, 2),
                WIDTH * float(lines.heights.max()),
                np.abs(boom.youngs_modulus * lines.heights * bent[i]),
            )
        )
    return tuple(shapes)


def stress_colours(stress: np.ndarray) -> np.ndarray:
    """Return red, green, blue (..., 3) of stresses (...) [Pa], blue at 0, red from yield on."""
    share = np.abs(stress) / YIELD_STRENGTH
    knots = np.linspace(0.0, 1.0, len(_SCALE))
    return np.stack([np.interp(share, knots, channel) for channel in _SCALE.T], axis=-1)


class _MarkerTable(NamedTuple):
    """Position of a marker, and the Ritz functions at it."""

    beam: int  # index; -1: on the truck
    place: complex  # along the beam and along its normal; on the truck: from joint 1 [m]
    eta: list[float]  # (F,)
    eta_slope: list[float]  # (F,)


@functools.lru_cache(maxsize=16)
def _marker_tables(boom: BoomParameters) -> tuple[tuple[str, ...], tuple[_MarkerTable, ...]]:
    """Return the names and tables of all markers."""
    tables = []
    for marker in boom.markers:
        place = complex(marker.position, marker.offset)
        if not marker.beam:
            tables.append(_MarkerTable(-1, place, [], []))
            continue
        beam = boom.beam_index(marker.beam)
        basis = boom_bases(boom)[beam]
        eta, eta_slope = basis.at(marker.position), basis.at(marker.position, 1)
        tables.append(_MarkerTable(beam, place, eta.tolist(), eta_slope.tolist()))
    return tuple(marker.name for marker in boom.markers), tuple(tables)


def marker_positions(boom: BoomParameters, state: BoomState) -> MarkerMotion:
    """Return positions and velocities of the markers, offsets along the bent beam's normal."""
    N = boom.size
    q, v, root, frames = frames_of(boom, state.y)
    names, tables = _marker_tables(boom)
    positions, velocities = [], []
    for table in tables:
        at = root.origin + root.turn * table.place
        rate = root.origin_rate + root.turn_rate * table.place
        if table.beam >= 0:
            bent = bent_at(table.eta, table.eta_slope, q, v, table.beam, N)
            along, offset = table.place.real, table.place.imag
            at = place_on_beam(frames[table.beam], along, offset, bent[0], bent[2])
            rate = velocity_on_beam(frames[table.beam], along, offset, bent)
        positions.append((at.real, 0.0, at.imag))
        velocities.append((rate.real, 0.0, rate.imag))
    return MarkerMotion(names, np.reshape(positions, (-1, 3)), np.reshape(velocities, (-1, 3)))
