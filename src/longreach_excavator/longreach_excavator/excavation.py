"""
Forces of the ground on the bucket, and what the bucket does to it; see terrain.

Forces on the bucket, with the mobilisation s of :mod:`longreach_excavator.soil` at the tooth:

- Cutting force at the tooth: F(h) max(0, s . t) against the cutting direction t = -e^(j phi_1) of
  the bucket: only in soil, and only where the edge has advanced, so that there is no suction. h is
  the depth below the firm soil ahead of the tooth plus a fraction of the height of the loose soil.
- Bearing of the edge in firm soil: Q max(0, s . z) against z, the direction of DN. Q is the
  bearing capacity of a strip as wide as the edge is thick.
- Contact force on the outside of the shell, which is smooth: a pressure q min(d / K, 1) (1 + c v),
  at most q and never negative, with the penetration d normal to the surface and the outward
  velocity v. q is the bearing capacity, in loose soil with the friction of the angle of repose and
  without cohesion. Its depth is that below the surface beside the bucket, on the side to which the
  face looks.
- Weight and inertia of the soil in the bucket, a body with the centroid and the radius of gyration
  of the bucket's full volume. Its mass is constant within a step.

After each step the terrain is updated:

- When the tooth has moved in the cutting direction, the soil above its path in the cells that it
  has passed goes into the bucket.
- The bucket holds the volume below the angle of repose at its attitude; while the tooth is in the
  soil, the soil closes the mouth and the bucket holds its full volume. Excess soil falls: in front
  of the tooth while it cuts, otherwise below the lower end of the mouth.
- Loose soil slides until no slope is steeper than the angle of repose; firm soil does not slide.
- Soil in the way of the shell, but for K of elastic rebound, goes aside as loose soil: a heave
  beside an imprint, a prism in front of a bucket that pushes.

Symbols of the kernels: ``state``, the terrain's part of the state, see VOLUME and FIRM; ``place``,
``tooth`` and ``point``, positions in the world, x + j z [m]; ``velocity`` of the tooth [m/s];
``z4``, the unit vector along DN; forces [N], moments [N m], powers [W], heights and depths [m].

Soil that enters the bucket or is pushed is accelerated without a reaction on the bucket. At
0.5 m/s and 0.6 m of depth that force is 0.3 kN, 0.3 % of the resistance. The centroid of the soil
in a partly filled bucket is up to 0.3 m from that of the full volume.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from longreach_dynamics.planar_chain import (
    CENTER,
    CENTER_IM,
    FIRST,
    FIRST_IM,
    INERTIA,
    MASS,
    SECOND,
)
from longreach_excavator.soil import bearing_pressure
from longreach_excavator.terrain import FIRM, PIECE, VOLUME

# Damping of the pressure on the shell, c [s/m].
_LOSS = 2.0
# A face looks to one side where its normal leans by more than this, else to both.
_LEAN = 1.0 / 6.0
# Depth of the tooth at and below which the soil closes the mouth of the bucket [m].
_CLOSED = 0.2
# Soil that leaves the bucket spreads over this length to each side; while the tooth cuts, so far
# ahead of it [m].
_SPREAD = 0.2
# The depth is that below the surface this far ahead of the tooth, where the tooth has not yet
# lowered it: a length, and at least a number of cells.
_AHEAD, _CELLS_AHEAD = 0.075, 1.5


@njit
def _height(x, first, ground, state):  # type: ignore[no-untyped-def]
    """Return a height [m] at x, linear between cells; ``first``: FIRM, or FIRM + cells: loose."""
    place = (x - ground.start) / ground.cell
    if place <= 0.0:
        return state[first]
    if place >= ground.cells - 1:
        return state[first + ground.cells - 1]
    k = int(place)
    share = place - k
    return (1.0 - share) * state[first + k] + share * state[first + k + 1]


@njit
def _top(x, ground, state):  # type: ignore[no-untyped-def]
    """Return the height of the surface at x [m]."""
    return _height(x, FIRM, ground, state) + _height(x, FIRM + ground.cells, ground, state)


@njit
def _beside(x, loose, tooth, ground, state):  # type: ignore[no-untyped-def]
    """Return the height of the soil at x, with (1) or without (0) the loose soil."""
    n = ground.cells
    own = math.floor((tooth.real - ground.start) / ground.cell + 0.5)
    near = 0 < own < n - 1 and abs(x - tooth.real) < 1.5 * ground.cell
    # A tooth in the soil is a point of the surface in place of its cell, which is cut in part.
    if near and state[FIRM + own] + loose * state[FIRM + n + own] > tooth.imag:
        k = own + 1 if x > tooth.real else own - 1
        share = (x - tooth.real) / (ground.start + k * ground.cell - tooth.real)
        if share < 1.0:
            return tooth.imag + share * (
                state[FIRM + k] + loose * state[FIRM + n + k] - tooth.imag
            )
    height = _height(x, FIRM, ground, state)
    return height + loose * _height(x, FIRM + n, ground, state) if loose else height


@njit
def _ahead(ground):  # type: ignore[no-untyped-def]
    """Return how far from the bucket the surface is not yet changed by it [m]."""
    return max(_AHEAD, _CELLS_AHEAD * ground.cell)


@njit
def depth_ahead(place, forward, ground, state):  # type: ignore[no-untyped-def]
    """Return the effective depth of the tooth below the surface ahead of it; negative above."""
    # ``forward`` is the x component of the cutting direction: nearer for a steep cut.
    x = place.real + _ahead(ground) * min(max(2.0 * forward, -1.0), 1.0)
    firm = _height(x, FIRM, ground, state)
    loose = _height(x, FIRM + ground.cells, ground, state)
    below = firm - place.imag
    if below >= 0.0:
        return below + ground.loose_share * loose
    above = below + loose
    return ground.loose_share * above if above > 0.0 else above


@njit
def _penetration(point, outward, loose, tooth, ground, state):  # type: ignore[no-untyped-def]
    """
    Return the penetration of a point of the shell into the soil; at most 0 outside.

    It is the distance to the straight line through two points of the surface: above the point, and
    where the surface has the height of the point, in the direction opposite to the normal, of
    which ``outward`` is the x component. ``loose``: 0 for firm soil alone, else 1.
    """
    below = _beside(point.real, loose, tooth, ground, state) - point.imag
    if below <= 0.0:
        return below
    step = -ground.cell if outward > 0.0 else ground.cell
    x, last = point.real, below
    # A surface point farther away than twice the depth would change the result little.
    count = int(2.0 * below / ground.cell) + 1
    for _ in range(count):
        x += step
        here = _beside(x, loose, tooth, ground, state) - point.imag
        if here <= 0.0:
            side = abs(x - point.real) + ground.cell * here / (last - here)
            return below * side / math.sqrt(below * below + side * side)
        last = here
    return below


@njit
def _falls(x, height, reach, ground, state):  # type: ignore[no-untyped-def]
    """Return the slope [rad] at which the surface falls from a height over a reach from x [m]."""
    fall = (height - _top(x + reach, ground, state)) / abs(reach)
    return math.atan(min(max(fall, 0.0), ground.slope))


@njit
def _to_right(lean):  # type: ignore[no-untyped-def]
    """Return the share of the right side for a face whose normal has the x component ``lean``."""
    return min(max(0.5 + 0.5 * lean / _LEAN, 0.0), 1.0)


@njit
def bearing_of_edge(tooth, z4, ground, state):  # type: ignore[no-untyped-def]
    """Return the largest force [N] of firm soil on the edge against the direction z4 of DN."""
    below = _height(tooth.real, FIRM, ground, state) - tooth.imag
    if below <= 0.0:
        return 0.0
    ahead, right = _ahead(ground), _to_right(z4.real)
    beside = right * _top(tooth.real + ahead, ground, state)
    beside += (1.0 - right) * _top(tooth.real - ahead, ground, state)
    pressure = bearing_pressure(
        ground.cohesion,
        ground.friction,
        math.atan2(abs(z4.real), -z4.imag),
        0.0,
        ground.weight * max(beside - tooth.imag, 0.0),
        0.5 * ground.weight * ground.edge,
    )
    return pressure * ground.edge * ground.width * min(below / ground.rebound, 1.0)


@njit
def contact_of_shell(place, velocity, rate, z4, ground, state):  # type: ignore[no-untyped-def]
    """Return force, moment about the tooth, power, stiffness and damping [N s/m] of the shell."""
    fx, fz, moment, power, stiffness, damping = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    left, right, low = np.inf, -np.inf, np.inf
    for k in range(ground.shell.shape[0]):
        point = place + z4 * complex(ground.shell[k, 0], ground.shell[k, 1])
        point += ground.shell[k, 5] * (z4 * complex(ground.shell[k, 2], ground.shell[k, 3])).real
        if _beside(point.real, 1.0, place, ground, state) > point.imag:
            left, right = min(left, point.real), max(right, point.real)
            low = min(low, point.imag)
    if right < left:
        return fx, fz, moment, power, stiffness, damping
    # Where the surface leaves the bucket on both sides.
    ahead, friction = _ahead(ground), ground.friction
    left_top, right_top = _top(left - ahead, ground, state), _top(right + ahead, ground, state)
    left_slope = _falls(left - ahead, left_top, -max(left_top - low, ahead), ground, state)
    right_slope = _falls(right + ahead, right_top, max(right_top - low, ahead), ground, state)
    footing = 0.5 * ground.weight * (right - left + PIECE * ground.tooth)
    for k in range(ground.shell.shape[0]):
        arm = z4 * complex(ground.shell[k, 0], ground.shell[k, 1])
        normal = z4 * complex(ground.shell[k, 2], ground.shell[k, 3])
        # A steep face leaves no soil behind it that could rebound: it is in contact before.
        point = place + arm + ground.shell[k, 5] * normal.real
        depth = _penetration(point, normal.real, 1.0, place, ground, state)
        if depth <= 0.0:
            continue
        share, tilt = _to_right(normal.real), math.atan2(abs(normal.real), -normal.imag)
        above = share * right_top + (1.0 - share) * left_top - point.imag
        above = ground.weight * max(above, 0.0)
        slope = share * right_slope + (1.0 - share) * left_slope
        most = bearing_pressure(0.0, ground.repose, tilt, slope, above, footing)
        pressure = most * min(depth / ground.rebound, 1.0)
        depth = _penetration(point, normal.real, 0.0, place, ground, state)
        if depth > 0.0:
            firm = bearing_pressure(ground.cohesion, friction, tilt, 0.0, above, footing)
            part = min(depth / ground.rebound, 1.0)
            pressure += part * (firm - pressure)
            most += part * (firm - most)
        moving = velocity + complex(-arm.imag, arm.real) * rate
        speed = moving.real * normal.real + moving.imag * normal.imag
        push = ground.shell[k, 4] * min(pressure * (1.0 + _LOSS * speed), most)
        if push <= 0.0:
            continue
        px, pz = -push * normal.real, max(-push * normal.imag, 0.0)
        fx += px
        fz += pz
        moment += arm.real * pz - arm.imag * px
        power -= px * moving.real + pz * moving.imag
        stiffness += ground.shell[k, 4] * most / ground.rebound
        damping += ground.shell[k, 4] * _LOSS * pressure
    return fx, fz, moment, power, stiffness, damping


@njit
def carry(ground, state, chain):  # type: ignore[no-untyped-def]
    """Add the mass of the soil in the bucket to the chain's link table, in place."""
    soil = ground.density * state[VOLUME]
    empty, inertia = ground.bucket[0], ground.bucket[3]
    own = complex(ground.bucket[1], ground.bucket[2])
    mass = empty + soil
    first = empty * own + soil * ground.middle
    center = first / mass
    inertia += empty * abs(own - center) ** 2
    inertia += soil * (ground.gyration + abs(ground.middle - center) ** 2)
    chain[MASS, 2] = mass
    chain[CENTER, 2], chain[CENTER_IM, 2] = center.real, center.imag
    chain[INERTIA, 2] = inertia
    chain[FIRST, 2], chain[FIRST_IM, 2] = first.real, first.imag
    chain[SECOND, 2] = inertia + mass * abs(center) ** 2
    for i in range(2):
        length = ground.base[3, i]
        chain[FIRST, i] = ground.base[0, i] + soil * length
        chain[SECOND, i] = ground.base[2, i] + soil * length * length


@njit
def _cut(before, after, ground, state):  # type: ignore[no-untyped-def]
    """Remove the soil above the path of the tooth, in place, and return its volume [m^3]."""
    way = after.real - before.real
    if way == 0.0:
        return 0.0
    n, forward = ground.cells, 1 if way > 0.0 else -1
    rise = (after.imag - before.imag) / abs(way)
    taken = 0.0
    low, high = min(before.real, after.real), max(before.real, after.real)
    begin = ground.start - 0.5 * ground.cell
    first = max(math.floor((low - begin) / ground.cell), 0)
    last = min(math.floor((high - begin) / ground.cell), n - 1)
    for i in range(first, last + 1):
        left = begin + i * ground.cell
        passed = min(high, left + ground.cell) - max(low, left)
        if passed <= 0.0:
            continue
        height = state[FIRM + i] + state[FIRM + n + i]
        k = min(max(i + forward, 0), n - 1)
        ahead = max(height, state[FIRM + k] + state[FIRM + n + k])
        remains = height - after.imag
        out = max(ahead - after.imag, 0.0) * passed / ground.cell
        leaves = high >= left + ground.cell if forward > 0 else low <= left
        if leaves:
            # The tooth has left the cell: all soil above the path at the cell's centre goes.
            slant = min(max(0.5 * rise * ground.cell, -ground.cell), ground.cell)
            out = max(remains + slant, 0.0)
        else:
            out = min(out, max(remains, 0.0))
        loose = min(out, state[FIRM + n + i])
        state[FIRM + n + i] -= loose
        state[FIRM + i] -= out - loose
        taken += out
    return taken * ground.cell * ground.width


@njit
def _drop(x, volume, ground, state):  # type: ignore[no-untyped-def]
    """Add a volume of loose soil [m^3] around x, in a triangular profile, in place."""
    n = ground.cells
    height, below = volume / (ground.cell * ground.width), 0.0
    edge = (x - _SPREAD - ground.start) / ground.cell + 0.5
    # Where the profile is narrower than a cell, too: the share of each cell is an integral.
    for k in range(math.floor(edge), math.floor(edge + 2.0 * _SPREAD / ground.cell) + 1):
        end = min(max((k + 1 - edge) * ground.cell / _SPREAD - 1.0, -1.0), 1.0)
        share = 0.5 + end - 0.5 * end * abs(end)
        state[FIRM + n + min(max(k, 0), n - 1)] += height * (share - below)
        below = share


@njit
def _slide(ground, state):  # type: ignore[no-untyped-def]
    """Move loose soil down to the angle of repose, in place, in one pass in each direction."""
    n, steepest = ground.cells, ground.slope * ground.cell
    for way in range(2):
        for j in range(n - 1):
            i = j if way == 0 else n - 2 - j
            fall = state[FIRM + i] + state[FIRM + n + i]
            fall -= state[FIRM + i + 1] + state[FIRM + n + i + 1]
            if fall > steepest and state[FIRM + n + i] > 0.0:
                moved = min(0.5 * (fall - steepest), state[FIRM + n + i])
                state[FIRM + n + i] -= moved
                state[FIRM + n + i + 1] += moved
            elif fall < -steepest and state[FIRM + n + i + 1] > 0.0:
                moved = min(0.5 * (-fall - steepest), state[FIRM + n + i + 1])
                state[FIRM + n + i + 1] -= moved
                state[FIRM + n + i] += moved


@njit
def _push_aside(place, z4, ground, state):  # type: ignore[no-untyped-def]
    """
    Move the soil in the way of the shell to its sides as loose soil, in place.

    A cell below the shell keeps what is below it and the rebound. One that it covers in part has
    the height of the higher of the next cells in the other part.
    """
    n, pieces = ground.cells, ground.shell.shape[0]
    deep = False
    for k in range(pieces):
        point = place + z4 * complex(ground.shell[k, 0], ground.shell[k, 1])
        deep |= _top(point.real, ground, state) > point.imag
    if not deep:
        return
    cells = np.zeros((3, n))
    covered, floor, lean = cells[0], cells[1], cells[2]
    begin = ground.start - 0.5 * ground.cell
    for k in range(pieces):
        normal = z4 * complex(ground.shell[k, 2], ground.shell[k, 3])
        if normal.imag >= 0.0:
            continue
        middle = place + z4 * complex(ground.shell[k, 0], ground.shell[k, 1])
        half = -0.5 * ground.shell[k, 4] / ground.width * normal.imag
        low = (middle.real - half - begin) / ground.cell
        high = (middle.real + half - begin) / ground.cell
        for i in range(max(math.floor(low), 0), min(math.floor(high), n - 1) + 1):
            first, last = max(low, float(i)), min(high, i + 1.0)
            x = begin + 0.5 * (first + last) * ground.cell - middle.real
            below = middle.imag - x * normal.real / normal.imag - ground.rebound * normal.imag
            covered[i] += last - first
            floor[i] += (last - first) * below
            lean[i] += (last - first) * normal.real
    left, right, leftmost, rightmost = 0.0, 0.0, n - 1, 0
    for i in range(n):
        if covered[i] <= 0.0:
            continue
        height, below = state[FIRM + i] + state[FIRM + n + i], floor[i] / covered[i]
        if height <= below:
            continue
        if covered[i] < 0.999:
            other = below
            for k in (max(i - 1, 0), min(i + 1, n - 1)):
                other = max(other, state[FIRM + k] + state[FIRM + n + k])
            below += (1.0 - covered[i]) * (other - below)
        out = height - below
        if out <= 0.0:
            continue
        loose = min(out, state[FIRM + n + i])
        state[FIRM + n + i] -= loose
        state[FIRM + i] -= out - loose
        share = _to_right(lean[i] / covered[i])
        left, right = left + (1.0 - share) * out, right + share * out
        leftmost, rightmost = min(leftmost, i), i
    state[FIRM + n + max(leftmost - 1, 0)] += left
    state[FIRM + n + min(rightmost + 1, n - 1)] += right


@njit
def _holds(attitude, depth, ground):  # type: ignore[no-untyped-def]
    """Return the volume that the bucket holds at an attitude [rad] and depth of the tooth."""
    place = attitude / (2.0 * math.pi)
    place = (place - math.floor(place)) * (ground.held.shape[0] - 1)
    k = min(int(place), ground.held.shape[0] - 2)
    share = place - k
    held = (1.0 - share) * ground.held[k] + share * ground.held[k + 1]
    closed = min(max(depth / _CLOSED, 0.0), 1.0)
    return held + closed * max(ground.inside - held, 0.0)


@njit
def move_soil(joint, before, after, z4, attitude, ground, state):  # type: ignore[no-untyped-def]
    """Update the terrain after a step, in place, by D and DN after it, and both places of N."""
    cut = ground.cut * z4
    moved = after - before
    if moved.real * cut.real + moved.imag * cut.imag > 0.0:
        state[VOLUME] += _cut(before, after, ground, state)
    depth = depth_ahead(after, cut.real, ground, state)
    excess = state[VOLUME] - _holds(attitude, depth, ground)
    if excess > 0.0:
        if depth > 0.0:
            x = after.real + (_SPREAD if cut.real > 0.0 else -_SPREAD)
        else:
            lip = joint + ground.lip * z4
            x = after.real if after.imag < lip.imag else lip.real
        state[VOLUME] -= excess
        _drop(x, excess, ground, state)
    _slide(ground, state)
    _push_aside(after, z4, ground, state)
