"""
Parameters of a boom: beams, cylinders, linkages, valves, oil, and the model of bending.

The values are in config/boom.yaml. Symbols are those of Henikl, Kemmetmueller, Bader, Kugi,
"Modelling, simulation and identification of a mobile concrete pump" (2015).
"""

from __future__ import annotations

import dataclasses
import functools
import math
import re
from pathlib import Path
from typing import NamedTuple

import numpy as np

from longreach_dynamics.beams import BASIS_SETS, Beam
from longreach_dynamics.errors import InputError, check_among, check_count, check_within, named
from longreach_dynamics.hydraulics import Cylinder, OilParameters
from longreach_dynamics.linkages import Linkage
from longreach_dynamics.parameters import Parameters, choice, load, quantity
from longreach_dynamics.resources import data_directory
from longreach_machine.control import PistonControllerParameters
from longreach_machine.poses import JointedMachine, Pose

# These names are used for links, joints and columns.
_NAME = re.compile(r'[A-Za-z0-9_.-]{1,60}')
ROTATIONS = ('exact', 'printed')
DAMPINGS = ('distributed', 'kelvin_voigt')
STRAINS = ('moment', 'curvature')


@dataclasses.dataclass(frozen=True)
class Distribution(Parameters):
    """
    A quantity along a beam: a power law from root to tip, or a table with linear interpolation.

    The power law is root (1 + (r - 1) x / L)^exponent with r = (tip / root)^(1 / exponent).
    """

    root: float | None = quantity('value at x = 0', '', above=0.0, default=None)
    tip: float | None = quantity('value at x = L', '', above=0.0, default=None)
    exponent: float = quantity('exponent; 1: linear', above=0.0, default=1.0)
    table: tuple[tuple[float, float], ...] = quantity(
        'pairs [x in m, value], from x = 0 to x = L, in place of root and tip', '', default=()
    )

    def check(self) -> None:
        """Raise InputError unless either a power law or a valid table is given."""
        law = (self.root is not None, self.tip is not None)
        if self.table and any(law):
            raise InputError('root, tip and table are given, allowed: root and tip, or a table')
        if not self.table and not all(law):
            raise InputError('root and tip, or a table, are missing')
        if not self.table:
            return
        if len(self.table) < 2:
            raise InputError(f'table has {len(self.table)} row, allowed: at least 2')
        for index, (place, value) in enumerate(self.table):
            if value <= 0.0:
                raise InputError(f'table[{index}] has the value {value}, allowed: above 0')
            if index and place <= self.table[index - 1][0]:
                raise InputError(
                    f'table[{index}] has x = {place} m, allowed: above'
                    f' {self.table[index - 1][0]} m of the row before; sort the rows'
                )

    def at(self, x: np.ndarray, length: float) -> np.ndarray:
        """Return the values at positions ``x`` [m] along a beam of the given length [m]."""
        if self.table:
            places, values = np.array(self.table).T
            return np.asarray(np.interp(x, places, values))
        assert self.root is not None
        assert self.tip is not None
        ratio = (self.tip / self.root) ** (1.0 / self.exponent)
        return np.asarray(
            self.root * (1.0 + (ratio - 1.0) * np.asarray(x) / length) ** self.exponent
        )


@dataclasses.dataclass(frozen=True)
class StrainGauge(Parameters):
    """A strain gauge with the reading k_SG w'' + b_SG, Henikl 2015, (28)."""

    position: float = quantity('position along the beam, x_SG', 'm', at_least=0.0)
    gain: float = quantity('distance from the neutral line, k_SG', 'm', above=0.0)
    bias: float = quantity('bias, b_SG', '1', default=0.0)


@dataclasses.dataclass(frozen=True)
class BeamParameters(Parameters):
    """One beam and the joint at its root."""

    relations = ('support < length',)

    name: str = quantity('name', '')
    length: float = quantity('length, L', 'm', above=0.0, at_most=1e3)
    mass_per_length: Distribution = quantity('mass per length, sigma(x)', 'kg/m')
    second_moment: Distribution = quantity('second moment of area, I(x)', 'm^4')
    joint_damping: float = quantity('viscous damping of the joint, d_phi', 'N m s', at_least=0.0)
    beam_damping: float = quantity(
        'damping of the deflection, d_w, for damping: distributed', 'N s/m^2', at_least=0.0
    )
    loss_time: float = quantity(
        'ratio of damping to stiffness, for damping: kelvin_voigt', 's', at_least=0.0
    )
    strain_gauge: StrainGauge = quantity('strain gauge')
    support: float = quantity(
        'position of the cylinder that supports it, x_m; 0: clamped at the root',
        'm',
        at_least=0.0,
        default=0.0,
    )

    def check(self) -> None:
        """Raise InputError when positions lie outside the beam."""
        for name in ('mass_per_length', 'second_moment'):
            table = getattr(self, name).table
            if table and (table[0][0] != 0.0 or abs(table[-1][0] - self.length) > 1e-9):
                raise InputError(
                    f'{name}.table spans [{table[0][0]:g}, {table[-1][0]:g}] m,'
                    f' allowed: [0, {self.length:g}] m, the whole beam'
                )
        if self.strain_gauge.position > self.length:
            raise InputError(
                f'strain_gauge.position = {self.strain_gauge.position} m,'
                f' allowed: [0, {self.length:g}] m'
            )

    @property
    def section(self) -> Section:
        """Return what its bending lines depend on, beside Young's modulus."""
        return Section(self.length, self.mass_per_length, self.second_moment, self.support)


class Section(NamedTuple):
    """The part of a beam on which its bending lines depend."""

    length: float
    mass_per_length: Distribution
    second_moment: Distribution
    support: float

    def beam(self, youngs_modulus: float) -> Beam:
        """Return the beam for :mod:`longreach_dynamics`, with Young's modulus [Pa]."""
        tables = (*self.mass_per_length.table, *self.second_moment.table)
        return Beam(
            self.length,
            lambda x: self.mass_per_length.at(x, self.length),
            lambda x: youngs_modulus * self.second_moment.at(x, self.length),
            self.support,
            # By rounding, a table may end slightly beyond the beam.
            tuple(sorted({min(place, self.length) for place, _ in tables})),
        )


@dataclasses.dataclass(frozen=True)
class FrictionParameters(Parameters):
    """Friction of a piston, Henikl 2015, (25) to (27) and figure 7."""

    relations = ('static >= coulomb',)

    viscous: float = quantity('viscous friction, r_V', 'N s/m', at_least=0.0, at_most=1e8)
    coulomb: float = quantity('Coulomb friction, r_C', 'N', at_least=0.0, at_most=1e7)
    static: float = quantity('static friction, r_S', 'N', at_least=0.0, at_most=1e7)


@dataclasses.dataclass(frozen=True)
class CushionParameters(Parameters):
    """
    Cushions at both ends of a stroke: a spear throttles what leaves a chamber.

    Over the last part of the stroke oil leaves through the gap around the spear alone, whose
    resistance is in proportion to its length.
    """

    length: float = quantity('part of the stroke at each end', 'm', at_least=1e-3, at_most=10.0)
    area: float = quantity(
        'opening that is left at the end of the stroke', 'm^2', at_least=1e-10, at_most=1e-2
    )


@dataclasses.dataclass(frozen=True)
class CylinderParameters(Cylinder):
    """A cylinder with its linkage and the friction of its piston."""

    linkage: Linkage = quantity('linkage to the joint')
    friction: FrictionParameters = quantity('friction of the piston')
    cushion: CushionParameters | None = quantity(
        'cushions at the ends of the stroke; left out: none', '', default=None, kw_only=True
    )

    def check(self) -> None:
        """Raise InputError when rod and piston, or stroke and linkage, are not compatible."""
        super().check()
        with named(f'stroke = {self.stroke} m does not fit: '):
            self.linkage.angles(self.stroke)
        if self.cushion and self.cushion.length > self.stroke:
            length = f'cushion.length = {self.cushion.length} m'
            raise InputError(f'{length}, allowed: up to stroke = {self.stroke} m')


@dataclasses.dataclass(frozen=True)
class TruckParameters(Parameters):
    """
    Truck as a rigid body on a vertical and a rotational spring at its centre of mass.

    The springs are at rest under the truck's own weight: they carry only what the boom adds.
    """

    x: float = quantity('its centre of mass, forward of joint 1', 'm', at_least=-50.0, at_most=50)
    z: float = quantity('its centre of mass, above joint 1', 'm', at_least=-50.0, at_most=50.0)
    mass: float = quantity('mass', 'kg', above=0.0, at_most=1e7)
    inertia: float = quantity('pitch inertia about its centre', 'kg m^2', above=0.0, at_most=1e9)
    heave_stiffness: float = quantity('vertical stiffness', 'N/m', above=0.0, at_most=1e12)
    heave_damping: float = quantity('vertical damping', 'N s/m', at_least=0.0, at_most=1e10)
    pitch_stiffness: float = quantity('rotational stiffness', 'N m/rad', above=0.0, at_most=1e13)
    pitch_damping: float = quantity('rotational damping', 'N m s', at_least=0.0, at_most=1e11)


@dataclasses.dataclass(frozen=True)
class RitzParameters(Parameters):
    """Model of bending."""

    basis: str = choice('set of Ritz functions', tuple(BASIS_SETS))
    functions: int = quantity('functions for each beam', at_least=1, at_most=5)
    order: int = quantity(
        'order of the fitted polynomial of basis: printed', at_least=2, at_most=9
    )
    rotation: str = choice('rotation at a beam tip', ROTATIONS)
    damping: str = choice('damping of the beams', DAMPINGS)
    strain: str = choice(
        'strain from the bending moment of the outboard part, or from the curvature of the'
        ' functions',
        STRAINS,
        default='moment',
    )


@dataclasses.dataclass(frozen=True)
class Marker(Parameters):
    """A marker for cameras, on a beam or on the truck."""

    name: str = quantity('name', '')
    beam: str = quantity('name of its beam; empty: fixed to the truck', '', default='')
    position: float = quantity('position along the beam, or x from joint 1', 'm', default=0.0)
    offset: float = quantity(
        'offset along the normal of the beam, or z from joint 1', 'm', default=0.0
    )


@dataclasses.dataclass(frozen=True)
class BoomParameters(JointedMachine, Parameters):
    """Contents of a boom file."""

    __hash__ = JointedMachine.__hash__

    gravity: float = quantity('gravity, g', 'm/s^2', at_least=0.0, at_most=100.0)
    youngs_modulus: float = quantity("Young's modulus, E", 'Pa', above=0.0)
    ritz: RitzParameters = quantity('model of bending')
    oil: OilParameters = quantity('oil and supply')
    beams: tuple[BeamParameters, ...] = quantity('beams, from the truck outwards')
    cylinders: tuple[CylinderParameters, ...] = quantity('cylinders, one for each beam')
    controller: PistonControllerParameters = quantity('joint position controller')
    poses: tuple[Pose, ...] = quantity('named poses', default=())
    markers: tuple[Marker, ...] = quantity('markers for cameras', default=())
    truck: TruckParameters | None = quantity('truck on springs; none: it is fixed', default=None)

    def check(self) -> None:
        """Raise InputError when numbers of beams, names or poses are inconsistent."""
        if not self.beams:
            raise InputError('beams is empty, allowed: at least one')
        check_count('cylinders', self.cylinders, len(self.beams), 'one for each beam')
        for what in ('beams', 'cylinders', 'poses', 'markers'):
            names = [item.name for item in getattr(self, what)]
            for name in names:
                if not _NAME.fullmatch(name):
                    raise InputError(
                        f'{what} has the name {name!r}, allowed: letters, digits, _, - and .'
                    )
                if names.count(name) > 1:
                    raise InputError(f'{what} has the name {name!r} twice, allowed: no two alike')
        for index, pose in enumerate(self.poses):
            with named(f'poses[{index}] ({pose.name}): '):
                self.check_pose(np.radians(pose.angles_deg))
        for index, marker in enumerate(self.markers):
            if marker.beam:
                self.beam_at(marker.beam, marker.position, f'markers[{index}]')

    @property
    def size(self) -> int:
        """Number of beams, N."""
        return len(self.beams)

    def beam_index(self, name: str) -> int:
        """Return the index of a beam; raises InputError for an unknown one."""
        names = [beam.name for beam in self.beams]
        check_among('beam', name, names)
        return names.index(name)

    def beam_at(self, beam: str, position: float, what: str) -> int:
        """Return a beam's index after checking a position [m]; errors start with ``what``."""
        with named(f'{what}: '):
            index = self.beam_index(beam)
        length = self.beams[index].length
        check_within(f'{what}: position', position, f'[0, {length}] m')
        return index

    def joint_limits(self) -> np.ndarray:
        """Return the lower and upper angles [rad] at the ends of the strokes, shape (N, 2)."""
        return self._joint_limits.copy()

    @functools.cached_property
    def _joint_limits(self) -> np.ndarray:
        """Return the cached array of :meth:`joint_limits`."""
        return np.array([c.linkage.angles(c.stroke) for c in self.cylinders])

    def check_pose(self, angles: np.ndarray) -> None:
        """Raise InputError for joint angles (N,) [rad] that are not finite or beyond a stroke."""
        check_count('pose', angles, self.size)
        for i, (low, high) in enumerate(self._joint_limits.tolist()):
            # Rounding may move a pose at an end of the stroke slightly beyond it.
            if not low - 1e-9 <= angles[i] <= high + 1e-9:
                raise InputError(
                    f'angle of joint {self.beams[i].name} = {math.degrees(angles[i]):.6g} deg,'
                    f' allowed by the stroke of {self.cylinders[i].name}:'
                    f' [{math.degrees(low):.4f}, {math.degrees(high):.4f}] deg'
                )


def default_file() -> Path:
    """Return the boom file that is installed with this package: a pump boom of 36 m."""
    return data_directory('longreach_boom') / 'config' / 'boom.yaml'


def load_boom(file: str | Path | None = None) -> BoomParameters:
    """Read a boom file, the installed one by default; raises the errors of ``load``."""
    return load(BoomParameters, file or default_file())
