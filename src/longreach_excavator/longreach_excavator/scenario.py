"""
Scenarios of an excavator: initial pose, soil and commands over time, read from YAML.

    duration: 7.0                   # [s]
    pose: dig                       # a pose of the excavator file, or pose_deg: [20, -95, 39.45]
    depth: swing                    # surface, terrain, or swing as printed in (4.1)
    cohesion: 1.7e+4                # of the soil [Pa], overrides the excavator file
    sweep_deg: 108.9                # rotation of the bucket after which all valves close
    valve_commands:                 # spool positions of boom, arm, bucket, held until the next
      - {time: 0.0, spools: [0.0, 0.0, 1.0]}

With ``mode: printed`` the forces of the cylinders are prescribed: the thesis' trend lines, or
those of a CSV file. ``mode: thesis`` is the same without the extensions of the thesis' model:
pistons have no friction, and the soil's force has the direction phi_1 in the bucket and its full
magnitude from the start. Cylinders named in ``loose`` exert no force; those named in ``held`` are
locked.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np

from longreach_dynamics.errors import InputError, check_one, named
from longreach_dynamics.parameters import Parameters, choice, load, quantity
from longreach_excavator.forces import GivenForces, printed_forces, read_forces
from longreach_excavator.kinematics import pin_places
from longreach_excavator.linkage import CYLINDERS
from longreach_excavator.parameters import ExcavatorParameters
from longreach_excavator.terrain import SHELL
from longreach_machine.machine import check_order
from longreach_machine.scenarios import (
    ValveCommand,
    check_times,
    check_valve_commands,
    first_pose,
)

MODES = ('hydraulic', 'printed', 'thesis')
FIXED_DEPTHS = ('surface', 'swing')
DEPTHS = (*FIXED_DEPTHS, 'terrain')
# Rotation of the thesis' bucket in the soil (4.3) [deg].
SWEEP_DEG = 108.9
# Number of angles per joint for the reach of the tooth; margins of the ground beyond where it cuts
# and where soil falls from it [m].
_POSES, _BEYOND, _HEAP = 25, 1.0, 0.5
# Displacement of the bucket's joint up to which depth: swing assumes it at rest [m].
_STANDING = 0.02
# Of a surface that was rounded [m].
_ROUNDING = 1e-3


@dataclasses.dataclass(frozen=True)
class Scenario(Parameters):
    """Contents of a scenario file."""

    duration: float = quantity('length of the simulation', 's', above=0.0, at_most=1e6)
    pose: str = quantity('pose of the excavator file at time 0', '', default='')
    pose_deg: tuple[float, ...] = quantity('joint angles at time 0', 'deg', default=())
    mode: str = choice(
        'hydraulic: oil and valves; printed: prescribed forces; thesis: the same without friction,'
        " and with the soil's force in the direction phi_1",
        MODES,
        default='hydraulic',
    )
    forces: str = quantity(
        'CSV file of prescribed forces or pressures; empty: the trend lines (5.8) to (5.10)',
        '',
        default='',
    )
    loose: tuple[str, ...] = quantity('cylinders that exert no force', '', default=())
    held: tuple[str, ...] = quantity(
        'cylinders that stops on both sides lock at their length at time 0', '', default=()
    )
    soil: bool = quantity('whether there is soil', default=True)
    surface: float | None = quantity(
        "height of the soil over the boom's foot; none: that of the bucket's edge at time 0, with"
        ' depth: terrain that of its lowest point',
        'm',
        at_least=-100.0,
        at_most=100.0,
        default=None,
    )
    depth: str = choice(
        "depth of the bucket's edge, surface: below the soil's surface; swing: as in (4.1), as if"
        " the bucket's joint were at rest; terrain: of the tooth below ground that is cut,"
        ' carried and dumped',
        DEPTHS,
        default='surface',
    )
    cohesion: float | None = quantity(
        'cohesion of the soil; none: from the excavator file',
        'Pa',
        at_least=0.0,
        at_most=1e6,
        default=None,
    )
    sweep_deg: float = quantity(
        'rotation of the bucket after which all valves close; 0: none',
        'deg',
        at_least=0.0,
        at_most=360.0,
        default=0.0,
    )
    valve_commands: tuple[ValveCommand, ...] = quantity('spool positions', default=())

    def check(self) -> None:
        """Raise InputError when values contradict each other."""
        check_one(pose=self.pose, pose_deg=self.pose_deg)
        if self.is_driven and (self.valve_commands or self.loose or self.held):
            raise InputError('valve_commands, loose and held belong to mode: hydraulic')
        if not self.is_driven and self.forces:
            raise InputError('forces belongs to mode: printed or thesis')
        if self.mode == 'thesis' and self.soil and self.depth != 'swing':
            raise InputError(f'depth = {self.depth!r}, allowed with mode: thesis: swing')
        for key in ('loose', 'held'):
            names = getattr(self, key)
            for name in names:
                if name not in CYLINDERS or names.count(name) > 1:
                    raise InputError(
                        f'{key} has {name!r}, allowed, each once: {" | ".join(CYLINDERS)}'
                    )
        check_order([item.time for item in self.valve_commands], 'valve_commands')

    @property
    def is_driven(self) -> bool:
        """Whether the forces of the cylinders are prescribed."""
        return self.mode != 'hydraulic'

    def angles(self, excavator: ExcavatorParameters) -> np.ndarray:
        """Return the joint angles at time 0 [rad], shape (3,)."""
        return excavator.pose(self.pose) if self.pose else np.radians(self.pose_deg)

    def excavator(self, excavator: ExcavatorParameters) -> ExcavatorParameters:
        """Return the excavator with this cohesion, in mode thesis without friction."""
        if self.mode == 'thesis':
            smooth = tuple(c.replace(viscous=0.0, seals=None) for c in excavator.cylinders)
            excavator = excavator.replace(cylinders=smooth)
        if self.cohesion is None:
            return excavator
        return excavator.replace(soil=excavator.soil.replace(cohesion=self.cohesion))

    def surface_height(self, excavator: ExcavatorParameters) -> float:
        """Return the height of the soil, z [m]; -inf for none."""
        if not self.soil:
            return -np.inf
        if self.surface is not None:
            return self.surface
        if self.depth == 'terrain':
            return self._lowest_point(excavator)
        edge = excavator.soil.sweep_radius * np.sin(self.angles(excavator).sum())
        return float(self._joint_height(excavator) + edge)

    def _lowest_point(self, excavator: ExcavatorParameters) -> float:
        """Return the height of the lowest point of the bucket at time 0, z [m]."""
        turn, length = self.angles(excavator).sum(), excavator.bucket.length
        shell = (np.array(SHELL) * np.exp(1j * turn)).imag.min()
        return float(self._joint_height(excavator) + min(length * np.sin(turn), length * shell))

    def held_lengths(self, excavator: ExcavatorParameters) -> dict[int, float]:
        """Return index and length [m] of each cylinder that is held."""
        lengths = excavator.linkage().lengths(self.angles(excavator))
        return {k: float(lengths[k]) for k in map(CYLINDERS.index, self.held)}

    def counted_joint(self, excavator: ExcavatorParameters) -> float:
        """Return the fixed height of the bucket's joint for the depth, z [m]; NaN: actual."""
        return self._joint_height(excavator) if self.depth == 'swing' else np.nan

    def doubt_of_swing(self, moved: float) -> str:
        """Return a warning if depth: swing does not hold, as the bucket's joint moved [m]."""
        if not self.soil or self.depth != 'swing' or moved <= _STANDING:
            return ''
        remedy = 'take depth: surface (dig --depth surface), or lock boom and arm (held)'
        if self.is_driven:
            remedy = 'take mode: hydraulic and lock boom and arm (held)'
        return (
            f"depth: swing assumes the bucket's joint D at rest, but it moved {moved:.3g} m"
            f' (allowed without this message: {_STANDING:g} m); {remedy}'
        )

    def terrain_span(self, excavator: ExcavatorParameters) -> tuple[float, float] | None:
        """Return the interval in x of the ground, all that is in reach [m]; None: no terrain."""
        if not self.soil or self.depth != 'terrain':
            return None
        axes = [np.linspace(low, high, _POSES) for low, high in excavator.joint_limits()]
        poses = np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, len(axes))
        tooth = pin_places(excavator, poses)[:, -1]
        surface = self.surface_height(excavator)
        below = tooth.real[tooth.imag < surface]
        if not below.size:
            raise InputError(
                f'surface = {surface:g} m is out of reach, allowed with depth: terrain: above'
                f' {tooth.imag.min():.4g} m'
            )
        # Soil is dumped from above, which in a pit is farther than the tooth reaches the ground.
        low = min(below.min() - _BEYOND, tooth.real.min() - _HEAP)
        return float(low), float(max(below.max() + _BEYOND, tooth.real.max() + _HEAP))

    def _joint_height(self, excavator: ExcavatorParameters) -> float:
        """Return the height of the bucket's joint at time 0, z [m]."""
        turned = np.cumsum(self.angles(excavator))
        return float(np.sin(turned[:2]) @ [excavator.boom.length, excavator.arm.length])

    def given_forces(self, excavator: ExcavatorParameters) -> GivenForces | None:
        """Return the forces of modes printed and thesis; None for hydraulic."""
        if not self.is_driven:
            return None
        given = read_forces(self.forces, excavator) if self.forces else printed_forces()
        if given.end < self.duration - 1e-9:
            if not self.forces:
                raise InputError(
                    f'duration = {self.duration:g} s, allowed with the trend lines (5.8) to'
                    f' (5.10): up to {given.end:g} s'
                )
            raise InputError(
                f'{self.forces} ends at {given.end:g} s, allowed: at duration ='
                f' {self.duration:g} s or later'
            )
        return given

    def check_with(self, excavator: ExcavatorParameters, step: float) -> None:
        """Raise InputError where soil, pose, times or lists do not fit machine or step [s]."""
        if self.mode == 'thesis' and self.soil and excavator.soil.law != 'zelenin':
            raise InputError(
                f'law = {excavator.soil.law!r} of the soil, allowed with mode: thesis: zelenin'
            )
        self.excavator(excavator).check_pose(self.angles(excavator))
        if self.soil and self.depth == 'terrain' and self.surface is not None:
            lowest = self._lowest_point(excavator)
            if self.surface > lowest + _ROUNDING:
                raise InputError(
                    f'surface = {self.surface:g} m, allowed with this pose and depth: terrain: up'
                    f' to {lowest:.4f} m, where the ground touches the bucket; begin above the'
                    ' ground and press the bucket into it, or leave surface out'
                )
        check_times([self.duration], step, 'duration')
        check_valve_commands(self.valve_commands, len(CYLINDERS), step)


def dig_scenario(
    mode: str = 'hydraulic',
    cohesion: float | None = None,
    duration: float = 7.0,
    forces: str = '',
    pose: str = 'dig',
    depth: str = 'swing',
    held: tuple[str, ...] = (),
) -> Scenario:
    """
    Return the thesis' digging: the bucket alone turns through the soil (4.3).

    Parameters
    ----------
    mode : str
        One of MODES.
    cohesion : float, optional
        Cohesion of the soil [Pa]; by default from the excavator file.
    duration : float
        Length of the simulation [s].
    forces : str
        Modes printed and thesis: a CSV file in place of the trend lines.
    pose : str
        Initial pose; it puts the bucket's edge at the soil's surface.
    depth : str
        One of DEPTHS.
    held : tuple of str
        Cylinders that are locked; (4.1) assumes that boom and arm are.

    Raises
    ------
    InputError
        For values that are not allowed.
    """
    curl = (ValveCommand(time=0.0, spools=(0.0, 0.0, 1.0)),) if mode == 'hydraulic' else ()
    return Scenario(
        duration=duration,
        pose=pose,
        mode=mode,
        forces=forces,
        depth=depth,
        cohesion=cohesion,
        sweep_deg=SWEEP_DEG,
        valve_commands=curl,
        held=held,
    )


def resting_scenario(excavator: ExcavatorParameters) -> Scenario:
    """Return the excavator at rest in its first pose on terrain, so that it can dig."""
    return Scenario(duration=1.0, pose=first_pose(excavator, 'excavator'), depth='terrain')


def load_scenario(file: str | Path, excavator: ExcavatorParameters, step: float) -> Scenario:
    """Read a scenario file and check it; ``forces`` is relative to the directory of the file."""
    scenario = load(Scenario, file)
    if scenario.forces:
        scenario = scenario.replace(forces=str(Path(file).parent / scenario.forces))
    with named(f'{file}: '):
        scenario.check_with(excavator, step)
        scenario.given_forces(excavator)
    return scenario
