"""
Parameters of an excavator: links, pins, cylinders, oil, soil, and named poses.

The values are in config/excavator.yaml. Symbols are those of Ozunlu, "Dynamic modeling of an
excavator during digging and simulating the motion" (METU, 2009): Lab is the distance from pin A to
pin B, beta_2 the angle IAC, lambda_2 the angle from a link's line to its centre of gravity.
"""

from __future__ import annotations

import cmath
import dataclasses
import functools
import math
from pathlib import Path
from typing import Any

import numpy as np

from longreach_dynamics.errors import InputError, check_count, check_distinct, named
from longreach_dynamics.hydraulics import Cylinder, OilParameters, StopParameters
from longreach_dynamics.parameters import Parameters, load, quantity
from longreach_dynamics.planar_chain import PlanarChain
from longreach_dynamics.resources import data_directory
from longreach_excavator.linkage import CYLINDERS, Linkage, Pins
from longreach_excavator.soil import SoilParameters
from longreach_machine.poses import JointedMachine, Pose

# Number of points along a stroke at which the linkage is evaluated.
_PLACES = 201
# Place of a lug between the end of the stroke (0) and the dead point of the linkage (1).
_BEYOND = 0.1


def _angle(description: str) -> Any:
    """Return a field for an angle between lines of a link."""
    return quantity(description, 'deg', at_least=-360.0, at_most=360.0)


def _length(description: str) -> Any:
    """Return a field for a distance between pins."""
    return quantity(description, 'm', above=0.0, at_most=100.0)


@dataclasses.dataclass(frozen=True)
class LinkParameters(Parameters):
    """Length, mass, centre of gravity and inertia of a link."""

    length: float = _length('joint to joint, L2, L3; of the bucket to the tooth, L4')
    mass: float = quantity('mass', 'kg', above=0.0, at_most=1e6)
    center: float = quantity('centre of gravity: distance from the joint, Lg', 'm', at_least=0.0)
    center_deg: float = _angle("centre of gravity: angle from the link's line, lambda")
    inertia: float = quantity('moment of inertia about the centre of gravity', 'kg m^2', above=0.0)

    def check(self) -> None:
        """Raise InputError for a mass far outside of the link."""
        if self.center > 10.0 * self.length:
            raise InputError(
                f'center = {self.center} m, allowed: up to 10 times length = {self.length} m'
            )
        widest = self.mass * self.length**2
        if self.inertia > 10.0 * widest:
            raise InputError(
                f'inertia = {self.inertia:g} kg m^2, allowed: up to 10 times mass length^2 ='
                f' {widest:g} kg m^2'
            )


@dataclasses.dataclass(frozen=True)
class ChassisParameters(Parameters):
    """The chassis: pin of the boom cylinder and height of the boom's foot."""

    lhe: float = quantity(
        'pin E in front of the foot pin A, Lhe', 'm', at_least=-10.0, at_most=10.0
    )
    lah: float = quantity('pin E below the foot pin A, Lah', 'm', at_least=-10.0, at_most=10.0)
    foot_height: float = quantity('foot pin A above the ground', 'm', at_least=0.0, at_most=100.0)


@dataclasses.dataclass(frozen=True)
class BoomParameters(LinkParameters):
    """The boom, from A to C."""

    lab: float = _length('A to the boom cylinder, Lab')
    lai: float = _length('A to the arm cylinder, Lai')
    beta_2_deg: float = _angle('angle from AC to AI')
    beta_3_deg: float = _angle('angle from AI to AB')


@dataclasses.dataclass(frozen=True)
class ArmParameters(LinkParameters):
    """The arm, from C to D."""

    lcf: float = _length('C to the arm cylinder, Lcf')
    lcj: float = _length('C to the bucket cylinder, Lcj')
    lcl: float = _length('C to the lever, Lcl')
    beta_5_deg: float = _angle('angle from CD to CL')
    beta_6_deg: float = _angle('angle from CL to CJ')
    beta_7_deg: float = _angle('angle from CJ to CF')


@dataclasses.dataclass(frozen=True)
class BucketParameters(LinkParameters):
    """The bucket, from D to the tooth N, with the lever LK and the rod PK of its linkage."""

    ldp: float = _length('D to the rod, Ldp')
    beta_8_deg: float = _angle('angle from DN to DP')
    llk: float = _length('lever, Llk')
    lpk: float = _length('rod, Lpk')


@dataclasses.dataclass(frozen=True)
class SealParameters(Parameters):
    """Friction of the seals of a cylinder, or of several side by side (Dahl 1968)."""

    coulomb: float = quantity(
        'friction of sliding seals, total of the cylinders side by side',
        'N',
        at_least=0.0,
        at_most=1e6,
    )
    travel: float = quantity(
        'travel over which it builds up from rest or after a reversal',
        'm',
        at_least=1e-4,
        at_most=0.1,
    )


@dataclasses.dataclass(frozen=True)
class CylinderParameters(Cylinder):
    """A cylinder, or several side by side, with the friction of its piston."""

    retracted: float = _length('length from pin to pin, retracted')
    count: int = quantity('cylinders side by side', at_least=1, at_most=4)
    viscous: float = quantity(
        'viscous friction, total of the cylinders side by side', 'N s/m', at_least=0.0, at_most=1e6
    )
    seals: SealParameters | None = quantity(
        'friction of the seals; left out: none', '', default=None, kw_only=True
    )
    leakage: float = quantity(
        'from each chamber to the tank per pressure, through the clearance of the spool',
        'm^3/(s Pa)',
        at_least=0.0,
        at_most=1e-9,
        default=0.0,
        kw_only=True,
    )

    @property
    def head_area(self) -> float:
        """Total piston area A_1 of the cylinders side by side [m^2]."""
        return self.count * super().head_area

    @property
    def rod_area(self) -> float:
        """Total ring area A_2 of the cylinders side by side [m^2]."""
        return self.count * super().rod_area

    @property
    def extended(self) -> float:
        """Length from pin to pin, extended [m]."""
        return self.retracted + self.stroke


@dataclasses.dataclass(frozen=True)
class ExcavatorParameters(JointedMachine, Parameters):
    """A whole excavator file."""

    __hash__ = JointedMachine.__hash__

    gravity: float = quantity('gravity, g', 'm/s^2', at_least=0.0, at_most=100.0)
    chassis: ChassisParameters = quantity('chassis')
    boom: BoomParameters = quantity('boom')
    arm: ArmParameters = quantity('arm')
    bucket: BucketParameters = quantity('bucket')
    oil: OilParameters = quantity('oil and supply')
    cylinders: tuple[CylinderParameters, ...] = quantity('cylinders of boom, arm, bucket')
    stops: StopParameters = quantity('ends of the strokes')
    soil: SoilParameters = quantity('soil')
    poses: tuple[Pose, ...] = quantity('named poses', default=())

    def check(self) -> None:
        """Raise InputError when pins, strokes, names or poses do not fit together."""
        names = tuple(cylinder.name for cylinder in self.cylinders)
        if names != CYLINDERS:
            raise InputError(f'cylinders have the names {names}, allowed: {CYLINDERS}')
        if abs(complex(self.chassis.lhe, self.chassis.lah)) < 1e-3:
            raise InputError('chassis: lhe and lah are 0, allowed: a distance from A to E')
        self.linkage()  # Closes, or raises.
        for k, cylinder in enumerate(self.cylinders):
            ends = f'retracted = {cylinder.retracted} m with stroke = {cylinder.stroke} m'
            with named(f'cylinders[{k}] ({cylinder.name}): {ends} does not fit: '):
                _move(self.pins(), k, cylinder.retracted, cylinder.extended)
        check_distinct('poses', [pose.name for pose in self.poses])
        for index, pose in enumerate(self.poses):
            if not pose.name:
                raise InputError(f"poses[{index}].name = '', allowed: a name")
            with named(f'poses[{index}] ({pose.name}): '):
                self.check_pose(np.radians(pose.angles_deg))

    def pins(self) -> Pins:
        """Return the positions of all pins."""
        boom, arm, bucket = self.boom, self.arm, self.bucket
        beta_3 = boom.beta_2_deg + boom.beta_3_deg
        beta_6 = arm.beta_5_deg + arm.beta_6_deg
        beta_7 = beta_6 + arm.beta_7_deg
        return Pins(
            e=complex(self.chassis.lhe, -self.chassis.lah),
            b=_polar(boom.lab, beta_3),
            i=_polar(boom.lai, boom.beta_2_deg),
            c=boom.length,
            f=_polar(arm.lcf, beta_7),
            j=_polar(arm.lcj, beta_6),
            l=_polar(arm.lcl, arm.beta_5_deg),
            d=arm.length,
            p=_polar(bucket.ldp, bucket.beta_8_deg),
            n=bucket.length,
            lk=bucket.llk,
            pk=bucket.lpk,
        )

    def linkage(self) -> Linkage:
        """Return the linkage of the cylinders and joints."""
        return _linkage(self.pins())

    def chain(self) -> PlanarChain:
        """Return boom, arm and bucket as a chain of rigid links."""
        links: tuple[LinkParameters, ...] = (self.boom, self.arm, self.bucket)
        return PlanarChain(
            [link.length for link in links],
            [link.mass for link in links],
            [(link.center, math.radians(link.center_deg)) for link in links],
            [link.inertia for link in links],
            gravity=self.gravity,
        )

    def with_flow(self, cylinder: str, flow: float) -> ExcavatorParameters:
        """Return the excavator whose open valve lets ``flow`` [m^3/s] to the head side."""
        oil = self.oil
        drop = oil.supply_pressure - oil.tank_pressure
        area = flow / (oil.contraction * math.sqrt(2.0 / oil.density * drop))
        return self.with_value(f'cylinders.{cylinder}.valve.area', area)

    def holding_forces(self, q: np.ndarray) -> np.ndarray:
        """Return the forces of the cylinders that hold the weight (3,) [N] in a pose [rad]."""
        return np.asarray(self.chain().bias(q, np.zeros(len(q))) / self.linkage().levers(q))

    def joint_limits(self) -> np.ndarray:
        """Return the angles [rad] at the ends of the strokes, shape (3, 2), the lower first."""
        linkage = self.linkage()
        ends = [
            sorted((linkage.angle(k, c.retracted), linkage.angle(k, c.extended)))
            for k, c in enumerate(self.cylinders)
        ]
        return np.array(ends)

    def lugs(self) -> np.ndarray:
        """Return where lugs of links meet, (3, 3): lower and upper angle [rad], lever [m]."""
        # They lie beyond the stroke by a tenth of the way to the dead point of the linkage, so
        # that no load moves a joint past it. Their lever is the cylinder's largest.
        limits, dead = self.joint_limits(), np.array(self.linkage().ranges())
        poses = np.linspace(limits[:, 0], limits[:, 1], _PLACES)
        levers = np.abs(self.linkage().levers(poses)).max(axis=0)
        return np.column_stack([limits + _BEYOND * (dead - limits), levers])

    def check_pose(self, angles: np.ndarray) -> None:
        """Raise InputError for joint angles (3,) [rad] beyond the strokes, or not finite."""
        check_count('pose', angles, len(CYLINDERS))
        wrong = [
            f'theta_{k + 2} ({CYLINDERS[k]}) = {math.degrees(angles[k]):.6g} deg, allowed by the'
            f' stroke of its cylinder: [{math.degrees(low):.4f}, {math.degrees(high):.4f}] deg'
            for k, (low, high) in enumerate(self.joint_limits().tolist())
            # Tolerance for rounding of poses at an end of the stroke.
            if not low - 1e-9 <= angles[k] <= high + 1e-9
        ]
        if wrong:
            raise InputError('; '.join(wrong))


@functools.lru_cache(maxsize=64)
def _move(pins: Pins, cylinder: int, retracted: float, extended: float) -> None:
    """Raise InputError where a linkage has no solution over the stroke [m]; cached for fits."""
    linkage = _linkage(pins)
    for length in np.linspace(retracted, extended, _PLACES):
        linkage.angle(cylinder, float(length))


@functools.lru_cache(maxsize=64)
def _linkage(pins: Pins) -> Linkage:
    """Return the linkage; cached, as the search for its dead points is slow."""
    return Linkage(pins)


def _polar(distance: float, angle_deg: float) -> complex:
    """Return a position from polar coordinates [m], [deg]."""
    return cmath.rect(distance, math.radians(angle_deg))


def default_file(kind: str = '') -> Path:
    """Return the path of an installed excavator file; kinds: thesis, realistic."""
    name = f'excavator_{kind}.yaml' if kind else 'excavator.yaml'
    return data_directory('longreach_excavator') / 'config' / name


def load_excavator(file: str | Path | None = None) -> ExcavatorParameters:
    """Read an excavator file, the installed one by default; errors are those of ``load``."""
    return load(ExcavatorParameters, file or default_file())
