"""Parameters of a harvester: bodies, motor, cylinders, lines, valves."""

from __future__ import annotations

import dataclasses
import functools
from pathlib import Path

import numpy as np

from longreach_dynamics.errors import InputError, named
from longreach_dynamics.hydraulics.lines import (
    LinedCylinder,
    LinedMotor,
    Lines,
    PortOilParameters,
    lines_of,
)
from longreach_dynamics.hydraulics.parameters import PumpParameters, StopParameters
from longreach_dynamics.parameters import Parameters, load, quantity
from longreach_dynamics.resources import data_directory
from longreach_harvester.bodies import Bodies

JOINTS = ('swing', 'boom', 'stick')
# Of a head that hangs: in the plane of the machine, and out of it.
HEAD_JOINTS = ('head_pitch', 'head_roll')
_ROUNDING = 1e-9
_ACROSS = 'moment of inertia about both transverse axes through the centre of gravity'


@dataclasses.dataclass(frozen=True)
class SwingParameters(Parameters):
    """What turns about the vertical, without boom and stick."""

    inertia: float = quantity(
        'moment of inertia about the vertical', 'kg m^2', at_least=1.0, at_most=1e8
    )
    offset: float = quantity(
        'pivot of the boom in front of the swing axis', 'm', at_least=-10.0, at_most=10.0
    )
    viscous: float = quantity('viscous friction of the joint', 'N m s/rad', at_least=0.0)


@dataclasses.dataclass(frozen=True)
class BeamParameters(Parameters):
    """Boom or stick: a rigid body whose centre of gravity is on the line of its pins."""

    length: float = quantity('length', 'm', at_least=0.01, at_most=100.0)
    mass: float = quantity('mass', 'kg', at_least=0.1, at_most=1e6)
    centre: float = quantity(
        'centre of gravity from the inner pin', 'm', at_least=0.0, at_most=100.0
    )
    transverse_inertia: float = quantity(_ACROSS, 'kg m^2', at_least=0.0, at_most=1e8)
    axial_inertia: float = quantity(
        'moment of inertia about its own axis', 'kg m^2', at_least=0.0, at_most=1e8
    )


@dataclasses.dataclass(frozen=True)
class PendulumParameters(Parameters):
    """How a head hangs from the stick: a body of revolution on two passive axes."""

    centre: float = quantity('centre of gravity from the axes', 'm', at_least=0.01, at_most=10.0)
    transverse_inertia: float = quantity(_ACROSS, 'kg m^2', at_least=0.0, at_most=1e6)
    axial_inertia: float = quantity(
        'moment of inertia about its own axis', 'kg m^2', above=0.0, at_most=1e6
    )
    damping: float = quantity(
        'torque per rate of each axis', 'N m s/rad', at_least=0.0, at_most=1e6
    )
    grapple: float = quantity('log from the axes', 'm', at_least=0.0, at_most=10.0)


@dataclasses.dataclass(frozen=True)
class HeadParameters(Parameters):
    """The harvester head: a point mass at the end of the stick, or a body that hangs there."""

    mass: float = quantity('mass', 'kg', at_least=0.0, at_most=1e6)
    pendulum: PendulumParameters | None = quantity(
        'how it hangs; left out: a point mass', '', default=None
    )

    def check(self) -> None:
        """Raise InputError for a pendulum without mass."""
        if self.pendulum and not self.mass > 0.0:
            raise InputError('mass = 0 kg, allowed for a pendulum: above 0')

    def loaded(self, log: float) -> tuple[float, float, float]:
        """Return mass [kg], centre of gravity [m] and transverse inertia [kg m^2] with a log."""
        mass, hangs = self.mass + log, self.pendulum
        if not hangs:
            return mass, 0.0, 0.0
        centre = (self.mass * hangs.centre + log * hangs.grapple) / mass
        inertia = hangs.transverse_inertia + self.mass * (hangs.centre - centre) ** 2
        return mass, centre, inertia + log * (hangs.grapple - centre) ** 2


@dataclasses.dataclass(frozen=True)
class HarvesterParameters(Parameters):
    """The contents of a harvester file."""

    relations = ('tank_pressure < supply_pressure',)

    gravity: float = quantity('gravity', 'm/s^2', at_least=0.0, at_most=100.0)
    swing: SwingParameters = quantity('slewing platform')
    boom: BeamParameters = quantity('boom')
    stick: BeamParameters = quantity('stick')
    head: HeadParameters = quantity('harvester head')
    supply_pressure: float = quantity('supply pressure', 'Pa', at_least=1e5, at_most=1e8)
    tank_pressure: float = quantity('tank pressure', 'Pa', at_least=0.0, at_most=1e7)
    swing_motor: LinedMotor = quantity('motor of the swing joint')
    boom_cylinder: LinedCylinder = quantity('cylinder of the boom')
    stick_cylinder: LinedCylinder = quantity('cylinder of the stick')
    stops: StopParameters = quantity('ends of the strokes')
    oil: PortOilParameters | None = quantity(
        'in relief and make-up valves; left out without them', '', default=None
    )
    pump: PumpParameters | None = quantity(
        'pump of limited flow for all; left out: the supply pressure is constant', '', default=None
    )

    def check(self) -> None:
        """Raise InputError for stops that yield too far."""
        for name in JOINTS[1:]:
            cylinder: LinedCylinder = getattr(self, f'{name}_cylinder')
            # By a moving machine twice as far as by a resting one.
            most = 2.0 * self.supply_pressure * cylinder.head_area
            with named(f'{name}_cylinder: '):
                cylinder.check_stroke(most / self.stops.stiffness)

    @property
    def actuators(self) -> tuple[LinedMotor, LinedCylinder, LinedCylinder]:
        """Actuators in the order of JOINTS."""
        return self.swing_motor, self.boom_cylinder, self.stick_cylinder

    def joint_limits(self) -> np.ndarray:
        """Return the lower and upper limits of the joints [rad], (3, 2): those of strokes."""
        return self._joint_limits.copy()

    @functools.cached_property
    def _joint_limits(self) -> np.ndarray:
        cylinders = self.boom_cylinder, self.stick_cylinder
        ends = [cylinder.linkage.angles(cylinder.stroke) for cylinder in cylinders]
        return np.array([(-np.inf, np.inf), *ends])

    def check_pose(self, angles: np.ndarray) -> None:
        """Raise InputError for joint angles (3,) [rad] beyond the strokes."""
        if np.shape(angles) != (len(JOINTS),):
            raise InputError(f'{np.size(angles)} angles, allowed: {len(JOINTS)}')
        limits = zip(JOINTS, angles, self._joint_limits.tolist(), strict=True)
        for name, angle, (low, high) in limits:
            # Ends of strokes, which a path may touch, are known to rounding.
            if not low - _ROUNDING <= angle <= high + _ROUNDING:
                raise InputError(
                    f'{name} = {angle:.6g} rad, allowed by the stroke of {name}_cylinder:'
                    f' [{low:.6g}, {high:.6g}] rad'
                )

    @property
    def hangs(self) -> bool:
        """Whether the head is a pendulum."""
        return self.head.pendulum is not None

    @property
    def has_ports(self) -> bool:
        """Whether there are relief or make-up valves."""
        return any(a.relief or a.make_up for a in self.actuators)

    def bodies(self, log: float = 0.0, *, hanging: bool = True) -> Bodies:
        """Return the constants of motion with a log [kg]; not ``hanging``: the head is a point."""
        b, s = self.boom, self.stick
        mass, centre, inertia = self.head.loaded(log)
        pendulum = self.head.pendulum if hanging else None
        head = 0.0 if pendulum else mass
        bodies = Bodies(
            gravity=self.gravity,
            offset=self.swing.offset,
            length=b.length,
            swing=self.swing.inertia,
            boom_mass=b.mass,
            boom_centre=b.centre,
            boom_across=b.transverse_inertia,
            boom_along=b.axial_inertia,
            stick_mass=s.mass + head,
            stick_moment=s.mass * s.centre + head * s.length,
            stick_second=s.mass * s.centre**2 + head * s.length**2,
            stick_across=s.transverse_inertia,
            stick_along=s.axial_inertia,
            stick_length=s.length,
        )
        if pendulum is None:
            return bodies
        return bodies._replace(
            head_mass=mass,
            head_centre=centre,
            head_across=inertia,
            head_along=pendulum.axial_inertia,
            head_damping=pendulum.damping,
        )

    def lines(self) -> Lines:
        """Return the table of the actuators and their lines."""
        friction = (self.swing.viscous, None, None)
        pressures = (self.supply_pressure, self.tank_pressure)
        return lines_of(self.actuators, *pressures, friction, self.oil, self.pump, self.stops)


def default_file(name: str = 'harvester.yaml') -> Path:
    """Return an installed file, by default that of the standard machine."""
    return data_directory('longreach_harvester') / 'config' / name


def load_harvester(file: str | Path | None = None) -> HarvesterParameters:
    """Read a harvester file, the standard machine by default; raises the errors of ``load``."""
    return load(HarvesterParameters, file or default_file())
