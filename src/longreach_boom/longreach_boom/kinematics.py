"""
Kinematics of the boom: frames of the bent beams, points on them, cylinders that swing.

Points of the plane are complex numbers x + j z, see :mod:`longreach_boom.model`. All functions
accept one state or many: Python numbers, which are fastest, or arrays.
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from longreach_boom.model import boom_bases, constants_of
from longreach_boom.parameters import BoomParameters
from longreach_boom.state import truck_of

# Joint between the tip of the last beam and the end hose, which hangs down.
HOSE_JOINT = 'end_hose_joint'
# Joints of a truck on springs: vertical, and about its centre of mass.
TRUCK_JOINTS = ('truck_heave', 'truck_pitch')


class Frame(NamedTuple):
    """The frame of a beam: z_i and d_i of Henikl 2015, (1) to (5), and their rates; complex."""

    turn: Any
    turn_rate: Any  # [1/s]
    origin: Any  # [m]
    origin_rate: Any  # [m/s]


_FIXED = Frame(1.0 + 0.0j, 0.0j, 0.0j, 0.0j)


def truck_frame(boom: BoomParameters, truck: Any) -> Frame:
    """Return the frame of the truck at heave [m], pitch [rad] and their rates."""
    if boom.truck is None:
        return _FIXED
    heave, pitch, heave_rate, pitch_rate = truck
    centre = complex(boom.truck.x, boom.truck.z)
    turn = (np.exp if isinstance(pitch, np.ndarray) else cmath.exp)(1j * pitch)
    turn_rate = 1j * pitch_rate * turn
    origin = centre + 1j * heave - turn * centre
    return Frame(turn, turn_rate, origin, 1j * heave_rate - turn_rate * centre)


def beam_frames(
    lengths: Sequence[float],
    printed: bool,
    angles: Sequence[Any],
    rates: Sequence[Any],
    bending: Sequence[tuple[Any, Any, Any, Any]],
    root: Frame = _FIXED,
) -> list[Frame]:
    """Return the frames of K beams, followed by the frame of the tip; Henikl 2015, (1) to (5)."""
    # Of each beam: length [m], angle of its joint [rad] and rate [rad/s], and of its tip
    # deflection [m], its rate, slope [rad] and its rate. ``root`` carries the first beam.
    frames = []
    z, z_rate, d, d_rate = root
    for length, angle, rate, bent in zip(lengths, angles, rates, bending, strict=True):
        exp = np.exp if isinstance(angle, np.ndarray) else cmath.exp
        w, w_rate, slope, slope_rate = bent
        turn = exp(1j * angle)
        z_rate = (z_rate + 1j * rate * z) * turn
        z = z * turn
        frames.append(Frame(z, z_rate, d, d_rate))
        u = length + 1j * w
        d_rate = d_rate + z_rate * u + z * (1j * w_rate)
        d = d + z * u
        bend = 1.0 + 1j * slope if printed else exp(1j * slope)
        bend_rate = 1j * slope_rate if printed else 1j * slope_rate * bend
        z_rate = z_rate * bend + z * bend_rate
        z = z * bend
    return [*frames, Frame(z, z_rate, d, d_rate)]


def bent_at(
    eta: list[float], eta_slope: list[float], q: list[float], v: list[float], beam: int, N: int
) -> tuple[float, float, float, float]:
    """Return deflection, rate, slope and its rate; Python numbers are faster for so few."""
    w = w_rate = slope = slope_rate = 0.0
    for e, (here, here_slope) in enumerate(zip(eta, eta_slope, strict=True)):
        k = N * (1 + e) + beam
        w += here * q[k]
        w_rate += here * v[k]
        slope += here_slope * q[k]
        slope_rate += here_slope * v[k]
    return w, w_rate, slope, slope_rate


class BentBoom(NamedTuple):
    """A state as Python numbers, with the frames that follow from it."""

    q: list[float]
    v: list[float]
    root: Frame  # of the truck
    frames: list[Frame]  # of the beams, and of the tip


def frames_of(boom: BoomParameters, y: np.ndarray) -> BentBoom:
    """Return the frames of a state y, see :mod:`longreach_boom.motion`."""
    constants, N = constants_of(boom), boom.size
    n = N * (1 + constants.functions)
    q, v = y[:n].tolist(), y[n : 2 * n].tolist()
    root = truck_frame(boom, truck_of(y, boom).tolist())
    shapes = zip(constants.tip.tolist(), constants.tip_slope.tolist(), strict=True)
    bending = [bent_at(*shape, q, v, i, N) for i, shape in enumerate(shapes)]
    lengths = constants.length.tolist()
    frames = beam_frames(lengths, constants.printed, q[:N], v[:N], bending, root)
    return BentBoom(q, v, root, frames)


def place_on_beam(frame: Frame, x: Any, offset: float, w: Any, slope: Any) -> Any:
    """Return a point x along a beam [m] and at an offset along its normal, complex [m]."""
    return frame.origin + frame.turn * (x + 1j * w + offset * (1j - slope))


def velocity_on_beam(frame: Frame, x: Any, offset: float, bent: tuple[Any, Any, Any, Any]) -> Any:
    """Return its velocity [m/s]; ``bent``: deflection, its rate, slope and its rate at x."""
    w, w_rate, slope, slope_rate = bent
    u = x + 1j * w + offset * (1j - slope)
    u_rate = 1j * w_rate - offset * slope_rate
    return frame.origin_rate + frame.turn_rate * u + frame.turn * u_rate


class PointMotion(NamedTuple):
    """Motion of a point of the boom, for states of shape (..., n)."""

    position: np.ndarray  # (..., 2) x and z [m]
    velocity: np.ndarray  # (..., 2) [m/s]
    inclination: np.ndarray  # (...) angle of the bent beam to the x axis [rad]


def point_motion(
    boom: BoomParameters,
    q: np.ndarray,
    v: np.ndarray,
    beam: int,
    x: float,
    offset: float = 0.0,
    truck: np.ndarray | None = None,
) -> PointMotion:
    """Return the motion of the point of :func:`place_on_beam`; Henikl 2015, (1) to (5), (39)."""
    N = boom.size
    bases, q, v = boom_bases(boom), np.asarray(q), np.asarray(v)

    def bent(i: int, place: float) -> tuple[Any, Any, Any, Any]:
        """Return deflection, its rate, slope and its rate at a position along a beam."""
        h, h_rate = q[..., N + i :: N], v[..., N + i :: N]
        eta, eta_slope = bases[i].at_place(place), bases[i].at_place(place, 1)
        return h @ eta, h_rate @ eta, h @ eta_slope, h_rate @ eta_slope

    lengths = [basis.beam.length for basis in bases[: beam + 1]]
    bending = [bent(i, length) for i, length in enumerate(lengths)]
    angles = [np.asarray(q[..., i]) for i in range(beam + 1)]
    rates = [v[..., i] for i in range(beam + 1)]
    truck = np.zeros(4) if truck is None else truck
    root = truck_frame(boom, np.moveaxis(truck, -1, 0))
    frames = beam_frames(lengths, boom.ritz.rotation == 'printed', angles, rates, bending, root)
    here = bent(beam, x)
    place = place_on_beam(frames[beam], x, offset, here[0], here[2])
    velocity = velocity_on_beam(frames[beam], x, offset, here)
    inclination = truck[..., 1]
    for i in range(beam + 1):
        inclination = inclination + angles[i] + (here if i == beam else bending[i])[2]
    return PointMotion(
        np.stack([place.real, place.imag], axis=-1),
        np.stack([velocity.real, velocity.imag], axis=-1),
        inclination,
    )


def tip_angles(boom: BoomParameters, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return angles to the truck and slopes of the tips (N,) [rad]; of rates theirs."""
    N = boom.size
    slopes = np.sum(constants_of(boom).tip_slope * np.reshape(q[N:], (-1, N)).T, axis=1)
    return np.cumsum(q[:N] + slopes), slopes


def swinging_cylinders(boom: BoomParameters) -> list[int]:
    """Return the indices of the cylinders that swing."""
    return [i for i, c in enumerate(boom.cylinders) if c.linkage.kind == 'triangle']


def swing_joints(boom: BoomParameters) -> tuple[str, ...]:
    """Return the names of the joints about which cylinders of kind triangle swing."""
    return tuple(f'{boom.cylinders[i].name}_swing' for i in swinging_cylinders(boom))


def swing_angles(boom: BoomParameters, angles: np.ndarray) -> np.ndarray:
    """Return angles (..., K) of :func:`swing_joints` at joint angles (..., N) [rad]."""
    a, b, offset, turned = _sides(boom, angles)
    # From the pin the joint is seen at pi - delta; less the triangle's angle there.
    return np.asarray(math.pi - offset - np.arctan2(b * np.sin(turned), a - b * np.cos(turned)))


def swing_ratios(boom: BoomParameters, angles: np.ndarray) -> np.ndarray:
    """Return the derivatives of :func:`swing_angles` by the joints' own angles, shape (..., K)."""
    a, b, _, turned = _sides(boom, angles)
    square = a * a + b * b - 2.0 * a * b * np.cos(turned)
    return np.asarray((b * b - a * b * np.cos(turned)) / square)


def _sides(
    boom: BoomParameters, angles: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the sides a and b (K,) [m], delta (K,) and phi + delta (..., K) of the triangles."""
    chosen = swinging_cylinders(boom)
    rows = np.reshape([boom.cylinders[i].linkage.row() for i in chosen], (-1, 5))
    offset = rows[:, 3]
    return rows[:, 1], rows[:, 2], offset, np.asarray(angles)[..., chosen] + offset
