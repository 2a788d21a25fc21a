"""
Inverse dynamics: loads of cylinders, rods and pins in a prescribed motion.

Angles, rates and accelerations are known, and the force on the tooth. Recursive Newton-Euler gives
the torques of the joints; a torque over d length / d theta is the force of the cylinder; with
cylinders and rods as forces on the links, the same recursion gives the forces in the joints. No
integration and no oil is involved: each row is independent of the others, except for the soil's
law, whose resistance builds up with the travel of the tooth.

    pin          joins                      its force acts on
    A  C  D      the links                  boom, arm, bucket, from the inboard link
    E  B         the boom cylinder          chassis, boom
    I  F         the arm cylinder           boom, arm
    J            the bucket cylinder        arm
    K            the same, lever and rod    K, from the cylinder; lever and rod hold it
    L  P         lever LK, rod PK           arm, bucket

Forces are in the world's axes. The forces at the pins of each link are also given in the link's
axes: along its line, away from the inboard joint, and across, to the left of the line, which is up
when the link points forward. These are the forces on the link: their sum and the weight accelerate
it.

Rates and accelerations that a file lacks are computed with cubic splines: through its rates if it
has them, else through its angles. For rows h seconds apart and a motion of frequency w
[rad/s], the relative error of rates from angles, and of accelerations from rates, is
(w h)^4 / 180; that of accelerations from angles is (w h)^2 / 12. These splines interpolate each
row and so need exact angles: errors of standard deviation s become 6 s / h^2 in the
accelerations, 9.2 s / h^2 in the first and the last row.

Measured angles need a cutoff f. A smoothing spline then has the gain 1 / (1 + (w / W)^4) at the
frequency w, W = 2 pi f, without delay, like a Butterworth filter of second order applied forwards
and backwards; s becomes 0.30 s W^2 sqrt(W h). At both ends the spline is linear: accelerations
within about 1 / (2 f) of them are unreliable.
"""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any

import numpy as np

from longreach_dynamics.errors import InputError, check_among, check_within
from longreach_dynamics.hydraulics.actuators import COULOMB, VISCOUS
from longreach_dynamics.kernels import kernel, read_only
from longreach_dynamics.planar_chain import FORCE, FORCE_IM, add_wrench, newton_euler, place_links
from longreach_dynamics.tables import Table, read_table
from longreach_excavator.constants import TRAVEL, constants_of
from longreach_excavator.excavation import carry
from longreach_excavator.linkage import CYLINDERS, cylinders
from longreach_excavator.measurements import check_rising, in_radians
from longreach_excavator.motion import HEAD, RATE, SIZE, room_for, tooth_motion
from longreach_excavator.observation import load_links
from longreach_excavator.parameters import ExcavatorParameters, load_excavator
from longreach_excavator.scenario import FIXED_DEPTHS
from longreach_excavator.terrain import FIRM, VOLUME, ground_of
from longreach_machine.runs import Column, Columns, Run

# Source of the force on the tooth: columns of the motion, the law of the excavator's soil, none.
SOIL_SOURCES = ('file', 'law', 'none')
# Further loads of the soil on the bucket, with depth: terrain or mode: thesis.
LOAD_COLUMNS = ('soil_moment', 'bucket_mass')

_JOINTS = (2, 3, 4)
_ANGLES, _RATES, _ACCELERATIONS = (
    tuple(f'{kind}_{k}' for k in _JOINTS) for kind in ('theta', 'omega', 'alpha')
)
READ = ('time', *_ANGLES, *_RATES, *_ACCELERATIONS, 'force_x', 'force_z', *LOAD_COLUMNS)
_PINS = 'abcdefijklp'
# The pins of each link; the sign is 1 where the pin's force acts on this link, and -1 where it is
# the reaction. N is the tooth.
_LINK_PINS = {
    'boom': (('a', 1.0), ('b', 1.0), ('i', 1.0), ('c', -1.0)),
    'arm': (('c', 1.0), ('f', 1.0), ('j', 1.0), ('l', 1.0), ('d', -1.0)),
    'bucket': (('d', 1.0), ('p', 1.0), ('n', 1.0)),
}

# Columns that the kernel writes, in its order.
_WRITTEN = {
    **dict.fromkeys((f'torque_{k}' for k in _JOINTS), 'N m'),
    **dict.fromkeys((f'length_{name}' for name in CYLINDERS), 'm'),
    **dict.fromkeys((f'velocity_{name}' for name in CYLINDERS), 'm/s'),
    **dict.fromkeys((f'force_{name}' for name in CYLINDERS), 'N'),
    **dict.fromkeys((f'pin_force_{name}' for name in CYLINDERS), 'N'),
    **dict.fromkeys((f'power_{name}' for name in CYLINDERS), 'W'),
    **dict.fromkeys(('force_lk', 'force_pk'), 'N'),
    **dict.fromkeys((f'pin_{pin}_{axis}' for pin in _PINS for axis in 'xz'), 'N'),
    **dict.fromkeys(('soil_x', 'soil_z'), 'N'),
    **dict.fromkeys(('depth', 'tip_x', 'tip_z'), 'm'),
}
_ALL = {
    'time': 's',
    **dict.fromkeys(_ANGLES, 'rad'),
    **dict.fromkeys(_RATES, 'rad/s'),
    **dict.fromkeys(_ACCELERATIONS, 'rad/s^2'),
    **_WRITTEN,
    **dict.fromkeys((f'pin_{pin}' for pin in _PINS), 'N'),
    'soil_force': 'N',
    **{
        f'{link}_{pin}_{way}': 'N'
        for link, pins in _LINK_PINS.items()
        for pin, _ in pins
        for way in ('along', 'across')
    },
}
COLUMNS = Columns(Column(name, unit) for name, unit in _ALL.items())
# Columns whose extremes are reported.
_LOADS = tuple(name for name, unit in _ALL.items() if unit in ('N', 'N m', 'W', 'm/s'))

_FEWEST_ROWS = 4
_FEWEST_SMOOTHED = 5
# Larger values mean wrong units or times, SI.
_LARGEST = {
    'times': 1e12,
    'angles': 1e3,
    'rates': 1e3,
    'accelerations': 1e6,
    'tooth_forces': 1e8,
    'loads': 1e8,
}
# Stops are elastic, and measured angles have errors: a pose may exceed a stroke by this [rad].
_BEYOND = math.radians(1.0)


@dataclasses.dataclass(frozen=True)
class Motion:
    """A prescribed motion; InputError for impossible sizes or times that do not increase."""

    times: np.ndarray  # (rows,) [s]
    angles: np.ndarray  # (rows, 3) theta_2..4 [rad]
    rates: np.ndarray  # (rows, 3) [rad/s]
    accelerations: np.ndarray  # (rows, 3) [rad/s^2]
    tooth_forces: np.ndarray | None = None  # (rows, 2) on the tooth, x and z in the world [N]
    name: str = 'motion'  # in error messages
    # (rows, 2) moment of the soil about the tooth [N m], mass of the soil in the bucket [kg].
    loads: np.ndarray | None = None

    def __post_init__(self) -> None:
        """Check the sizes, and store the arrays contiguous, as compiled code needs them."""
        for field, most in _LARGEST.items():
            if getattr(self, field) is None:
                continue
            values = np.ascontiguousarray(getattr(self, field), dtype=float)
            wide = {'times': (), 'tooth_forces': (2,), 'loads': (2,)}.get(field, (3,))
            wanted = (max(np.size(self.times), 1), *wide)
            if values.shape != wanted:
                raise InputError(
                    f'{self.name}: {field} has shape {values.shape}, allowed: {wanted}'
                )
            largest = float(np.abs(values).max())
            # Written so that NaN is refused.
            if not largest <= most:
                raise InputError(
                    f'{self.name}: {field} go to {largest:g}, allowed: up to {most:g}; look at'
                    ' units and times'
                )
            object.__setattr__(self, field, values)
        if self.loads is not None and (lightest := self.loads[:, 1].min()) < 0.0:
            raise InputError(f'{self.name}: bucket_mass = {lightest:g} kg, allowed: 0 or more')
        check_rising(self.name, self.times)


def read_motion(file: str | Path, cutoff: float | None = None) -> Motion:
    """Read a motion from a CSV file, see README; with a ``cutoff`` [Hz] angles are filtered."""
    return motion_from(read_table(file), cutoff)


def motion_from(table: Table, cutoff: float | None = None) -> Motion:
    """Return the motion in a table, see :func:`read_motion`."""
    name = str(table.file)
    times = table.stack(['time'])[:, 0]
    table = in_radians(table, (*_ANGLES, *_RATES, *_ACCELERATIONS))
    angles = table.stack(_ANGLES)
    rates, accelerations = (
        table.stack(names) if any(name in table for name in names) else None
        for names in (_RATES, _ACCELERATIONS)
    )
    if cutoff is not None:
        angles, rates, accelerations = _smoothed(name, times, angles, cutoff)
    if rates is None or accelerations is None:
        _check_rows(name, len(times), _FEWEST_ROWS)
        known, order = (angles, 2) if rates is None else (rates, 1)
        from scipy.interpolate import CubicSpline  # not for every command

        spline = CubicSpline(times, known)
        rates = spline(times, 1) if rates is None else rates
        accelerations = spline(times, order) if accelerations is None else accelerations
    # The force on the tooth: of measurements, and of `dig --csv`.
    pairs = (('force_x', 'force_z'), ('soil_x', 'soil_z'))
    tooth = [table.stack(pair) for pair in pairs if any(part in table for part in pair)]
    loads = None
    if any(column in table for column in LOAD_COLUMNS):
        zero = np.zeros_like(times)
        loads = np.stack([table.get(column, zero) for column in LOAD_COLUMNS], axis=1)
    return Motion(times, angles, rates, accelerations, tooth[0] if tooth else None, name, loads)


def _check_rows(name: str, rows: int, fewest: int) -> None:
    """Raise InputError when there are too few rows for a spline."""
    if rows < fewest:
        raise InputError(
            f'{name} has {rows} rows, allowed: at least {fewest}, to make rates and accelerations'
            f' from; or columns {_RATES[0]} to {_RATES[-1]} and {_ACCELERATIONS[0]} to'
            f' {_ACCELERATIONS[-1]}, and no cutoff'
        )


def _smoothed(
    name: str, times: np.ndarray, angles: np.ndarray, cutoff: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return angles, rates and accelerations of smoothing splines."""
    from scipy.interpolate import make_smoothing_spline  # not for every command

    _check_rows(name, len(times), _FEWEST_SMOOTHED)
    spacing = float(times[-1] - times[0]) / (len(times) - 1)
    lowest, highest = 1.0 / float(times[-1] - times[0]), 0.5 / spacing
    if not lowest <= cutoff <= highest:
        raise InputError(
            f'cutoff = {cutoff:g} Hz, allowed for the rows of {name}: [{lowest:.4g},'
            f' {highest:.4g}] Hz, once in their time to once in two rows'
        )
    # Time in rows, so that the spline's numbers are of one size. It minimises the squared errors
    # plus lambda times the squared second derivative, each integrated: share 1 / (1 + lambda w^4).
    place = (times - times[0]) / spacing
    penalty = (2.0 * math.pi * cutoff * spacing) ** -4
    weights = np.gradient(place)
    found = np.empty((3, *angles.shape))
    for k in range(angles.shape[1]):
        spline = make_smoothing_spline(place, angles[:, k], w=weights, lam=penalty)
        for order in range(3):
            found[order, :, k] = spline(place, order) / spacing**order
    return found[0], found[1], found[2]


@kernel
def _invert(times, motion, tooth, loads, law, p, rows):  # type: ignore[no-untyped-def]
    """Compute the loads of a motion, one row of _WRITTEN for each row of it."""
    # motion: angles, rates, accelerations; tooth: force [N]; loads: moment [N m], soil [kg].
    room = room_for(p, np.zeros(SIZE + FIRM))
    table, pins, medium = p.actuators.table, p.pins, p.medium
    chain, lengths, arms, torque = room.chain, room.lengths, room.levers, room.torque
    pushes, places, seals = np.empty(3), np.empty(3), np.zeros(3)
    way, speed, mobilised = complex(0.0, 0.0), 0.0, complex(0.0, 0.0)
    for k in range(motion.shape[0]):
        y, row = motion[k], rows[k]
        if p.ground.cells > 0:
            room.ground[VOLUME] = loads[k, 1] / p.ground.density
            carry(p.ground, room.ground, chain)
        place_links(y[:RATE], y[RATE:HEAD], chain)
        place, velocity, depth, push = tooth_motion(y, pins, medium, chain)
        # s' = (v - |v| s) / K over the travel between rows, with a direction that turns evenly.
        before, last = way, speed
        speed = abs(velocity)
        if speed > 0.0:
            way = velocity / speed
        if last == 0.0:
            before = way
        if k == 0:
            mobilised = way
        else:
            travel = 0.5 * (speed + last) * (times[k] - times[k - 1]) / medium.shear
            if travel > 0.0:
                kept = math.exp(-travel)
                lag = -math.expm1(-travel) / travel
                mobilised = way - lag * (way - before) + kept * (mobilised - before)
        soil = -push * mobilised if law else complex(tooth[k, 0], tooth[k, 1])
        add_wrench(2, pins.n, 0.0, soil.real, soil.imag, loads[k, 0], chain)
        torque[:] = y[HEAD:]
        newton_euler(torque, chain)
        cylinders(y, pins, lengths, arms)
        for i in range(3):
            piston = arms[i] * y[RATE + i]
            pushes[i] = torque[i] / arms[i]
            # The seals shear as the piston has moved since the last row.
            moved = lengths[i] - places[i] if k > 0 else 0.0
            sliding = math.copysign(1.0, moved)
            seals[i] = sliding + math.exp(-abs(moved) / table[i, TRAVEL]) * (seals[i] - sliding)
            places[i] = lengths[i]
            force = pushes[i] + table[i, VISCOUS] * piston + table[i, COULOMB] * seals[i]
            row[i], row[3 + i], row[6 + i] = torque[i], lengths[i], piston
            row[9 + i], row[12 + i], row[15 + i] = force, pushes[i], force * piston
        # Once more with the cylinders as forces on the links: now the joints carry no torque.
        boom, arm, bucket, lk, pk, row[18], row[19] = load_links(y, pushes, chain, pins)
        torque[:] = y[HEAD:]
        newton_euler(torque, chain)
        joints = (
            complex(chain[FORCE, 0], chain[FORCE_IM, 0]),
            complex(chain[FORCE, 1], chain[FORCE_IM, 1]),
            complex(chain[FORCE, 2], chain[FORCE_IM, 2]),
        )
        felt = (joints[0], boom, joints[1], joints[2], -boom, arm, -arm, -bucket, bucket, lk, pk)
        for i in range(11):
            row[20 + 2 * i], row[21 + 2 * i] = felt[i].real, felt[i].imag
        row[42], row[43], row[44] = soil.real, soil.imag, depth
        row[45], row[46] = place.real, place.imag


@dataclasses.dataclass(frozen=True)
class InverseResult(Run[ExcavatorParameters]):
    """The loads of a motion; forces with the friction of pistons, ``pin_force_`` without."""

    motion: Motion

    def extremes(self) -> dict[str, dict[str, Any]]:
        """Return lowest and highest value of each load, power and velocity, with their times."""
        times, found = self.motion.times, {}
        for name in _LOADS:
            values = self.column(name)
            low, high = int(values.argmin()), int(values.argmax())
            found[name] = {
                'unit': self.columns.unit(name),
                'lowest': float(values[low]),
                'lowest_time': float(times[low]),
                'highest': float(values[high]),
                'highest_time': float(times[high]),
            }
        return found

    def summary(self) -> dict[str, Any]:
        """Return extent and extremes of the motion as plain numbers, by name."""
        times = self.motion.times
        return {
            'rows': len(times),
            'begin_s': float(times[0]),
            'end_s': float(times[-1]),
            'extremes': self.extremes(),
        }


def inverse(
    excavator: ExcavatorParameters,
    motion: Motion,
    soil: str = 'file',
    surface: float | None = None,
    depth: str = 'surface',
) -> InverseResult:
    """
    Return the loads of a prescribed motion; InputError for a pose that a cylinder cannot reach.

    ``soil`` is the source of the force on the tooth. file: columns of the motion, with the soil's
    moment and the soil in the bucket, 0 if it has none; law: the excavator's soil, against the
    motion of the tooth, in the first row fully mobilised if the tooth moves and zero if it is at
    rest, and an empty bucket; none: no force, empty bucket. ``surface``: height of the soil [m],
    by default that of the bucket's edge in the first row. ``depth``: one of FIXED_DEPTHS; swing
    computes it with the bucket's joint at its height in the first row.
    """
    check_among('soil', soil, SOIL_SOURCES)
    check_among('depth', depth, FIXED_DEPTHS)
    _check_poses(excavator, motion)
    rows = len(motion.times)
    turned = np.cumsum(motion.angles[0])
    joint = float(np.sin(turned[:2]) @ [excavator.boom.length, excavator.arm.length])
    if surface is None:
        surface = joint + excavator.soil.sweep_radius * math.sin(turned[2])
    check_within('surface', surface, '[-100, 100] m')
    constants = constants_of(excavator, surface, joint if depth == 'swing' else math.nan)
    tooth, loads = np.zeros((rows, 2)), np.zeros((rows, 2))
    if soil == 'file' and motion.tooth_forces is not None:
        tooth = motion.tooth_forces
    if soil == 'file' and motion.loads is not None:
        loads = motion.loads
    if loads[:, 1].any():
        # Only the bucket's part of the terrain's constants is used.
        chain, length = constants.chain, excavator.bucket.length
        ground = ground_of(excavator.soil, excavator.gravity, length, chain, (0.0, 1.0))
        constants = read_only(constants._replace(ground=ground))
    moving = np.concatenate([motion.angles, motion.rates, motion.accelerations], axis=1)
    written = np.empty((rows, len(_WRITTEN)))
    _invert(motion.times, moving, tooth, loads, soil == 'law', constants, written)
    k = list(_WRITTEN).index('pin_a_x')
    # In the pins and on the tooth, (rows, 12).
    forces = written[:, k : k + 24 : 2] + 1j * written[:, k + 1 : k + 24 : 2]
    felt = dict(zip((*_PINS, 'n'), forces.T, strict=True))
    ways = np.exp(-1j * np.cumsum(motion.angles, axis=1))
    in_links = [
        sign * way * felt[pin]
        for way, pins in zip(ways.T, _LINK_PINS.values(), strict=True)
        for pin, sign in pins
    ]
    own = [part for force in in_links for part in (force.real, force.imag)]
    parts = (motion.times, moving, written, np.abs(forces), *own)
    return InverseResult(excavator, COLUMNS, np.column_stack(parts), motion)


def _check_poses(excavator: ExcavatorParameters, motion: Motion) -> None:
    """Raise InputError for the first row that a cylinder cannot reach."""
    strokes = excavator.joint_limits()
    ways = np.array(excavator.linkage().ranges())
    low = np.maximum(strokes[:, 0] - _BEYOND, ways[:, 0])
    high = np.minimum(strokes[:, 1] + _BEYOND, ways[:, 1])
    bad = np.argwhere((motion.angles < low) | (motion.angles > high))
    if bad.size:
        row, k = bad[0]
        first, last = np.degrees(strokes[k])
        raise InputError(
            f'{motion.name}: theta_{k + 2} ({CYLINDERS[k]}) in row {row + 1} (time ='
            f' {motion.times[row]:g} s) = {math.degrees(motion.angles[row, k]):.6g} deg, allowed'
            f' by the stroke of its cylinder: [{first:.4f}, {last:.4f}] deg'
        )


def warm_up() -> None:
    """Compile the kernel, or load it from the cache."""
    excavator = load_excavator()
    pose, still = np.radians([excavator.poses[0].angles_deg]), np.zeros((1, 3))
    inverse(excavator, Motion(np.zeros(1), pose, still, still))
