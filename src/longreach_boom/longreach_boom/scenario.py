"""
Scenarios of a boom: pose, loads and commands over time, read from YAML; README has an example.

Attaching a load does not change the velocity of the boom. The concrete in the line hangs on the
beams from time 0 on, whether it is pumped or not. Equations: :mod:`longreach_boom.disturbances`.
"""

from __future__ import annotations

import dataclasses
import itertools
from pathlib import Path

import numpy as np

from longreach_boom.disturbances import Gust, Pumping, TipForce
from longreach_boom.model import Load
from longreach_boom.parameters import BoomParameters
from longreach_boom.state import rate_limits
from longreach_dynamics.errors import InputError, check_one
from longreach_dynamics.parameters import Parameters, load, quantity
from longreach_machine.machine import check_order
from longreach_machine.scenarios import ValveCommand, check_times, check_valve_commands
from longreach_machine.trajectories import Trajectory, Waypoint

# Largest distance between the start of a trajectory and the pose [deg].
_JUMP_DEG = 0.5


@dataclasses.dataclass(frozen=True)
class HangingLoad(Parameters):
    """A point mass that hangs on the boom."""

    mass: float = quantity('mass', 'kg', above=0.0, at_most=1e6)
    beam: str = quantity('name of the beam; empty: the last', '', default='')
    position: float | None = quantity(
        'position along the beam; none: at its tip', 'm', at_least=0.0, default=None
    )

    def on(self, boom: BoomParameters, what: str = 'load') -> Load:
        """Return the load for the model; an InputError starts with ``what``."""
        name = self.beam or boom.beams[-1].name
        index = boom.beam_at(name, self.position or 0.0, what)
        length = boom.beams[index].length
        return Load(self.mass, index, length if self.position is None else self.position)


@dataclasses.dataclass(frozen=True)
class Attachment(HangingLoad):
    """A load that is attached at a time."""

    time: float = quantity('time of attachment', 's', at_least=0.0, at_most=1e6, kw_only=True)


@dataclasses.dataclass(frozen=True)
class Scenario(Parameters):
    """Contents of a scenario file."""

    duration: float = quantity('length of the simulation', 's', above=0.0, at_most=1e6)
    pose: str = quantity('pose of the boom file at time 0', '', default='')
    pose_deg: tuple[float, ...] = quantity('joint angles at time 0', 'deg', default=())
    friction: bool = quantity('friction of the pistons', default=True)
    loads: tuple[HangingLoad, ...] = quantity('loads at time 0', default=())
    release: tuple[float, ...] = quantity(
        'times at which all loads are released', 's', at_least=0.0, at_most=1e6, default=()
    )
    attach: tuple[Attachment, ...] = quantity('loads that are attached', default=())
    valve_commands: tuple[ValveCommand, ...] = quantity('spool positions', default=())
    trajectory: tuple[Waypoint, ...] = quantity('joint angles to follow', default=())
    forces: tuple[TipForce, ...] = quantity('external forces', default=())
    pumping: tuple[Pumping, ...] = quantity('pumping of concrete', default=())
    gusts: tuple[Gust, ...] = quantity('gusts of wind', default=())

    def check(self) -> None:
        """Raise InputError for contradictory entries."""
        check_one(pose=self.pose, pose_deg=self.pose_deg)
        check_one(0, valve_commands=self.valve_commands, trajectory=self.trajectory)
        pumping = sorted(self.pumping, key=lambda item: item.start)
        for before, after in itertools.pairwise(pumping):
            if after.start < before.end:
                raise InputError(
                    f'pumping begins at {after.start:g} s while another lasts until'
                    f' {before.end:g} s, allowed: one at a time'
                )
        for name in ('valve_commands', 'trajectory'):
            check_order([item.time for item in getattr(self, name)], name)

    def angles(self, boom: BoomParameters) -> np.ndarray:
        """Return the joint angles at time 0 [rad], shape (N,)."""
        return boom.pose(self.pose) if self.pose else np.radians(self.pose_deg)

    def concrete(self, boom: BoomParameters) -> tuple[Load, ...]:
        """Return the concrete in the line, which no release drops."""
        # Three points of Gauss give mass, moment and inertia of a uniform line exactly.
        nodes, weights = np.polynomial.legendre.leggauss(3)
        full = max((item.mass_per_length for item in self.pumping), default=0.0)
        return tuple(
            Load(full * 0.5 * weight * beam.length, index, 0.5 * (1.0 + node) * beam.length)
            for index, beam in enumerate(boom.beams)
            for node, weight in zip(nodes.tolist(), weights.tolist(), strict=True)
            if full
        )

    def initial_loads(self, boom: BoomParameters) -> tuple[Load, ...]:
        """Return the loads at time 0."""
        hanging = tuple(item.on(boom, f'loads[{i}]') for i, item in enumerate(self.loads))
        return (*hanging, *self.concrete(boom))

    @property
    def disturbances(self) -> tuple[TipForce | Pumping | Gust, ...]:
        """External forces of all kinds."""
        return self.forces + self.pumping + self.gusts

    def load_changes(self, boom: BoomParameters) -> tuple[tuple[float, Load | None], ...]:
        """Return (time [s], attached load, or None for a release), sorted by time."""
        changes: list[tuple[float, Load | None]] = [(time, None) for time in self.release]
        for index, item in enumerate(self.attach):
            changes.append((item.time, item.on(boom, f'attach[{index}]')))
        return tuple(sorted(changes, key=lambda change: change[0]))

    def carried(self, boom: BoomParameters) -> list[tuple[float, tuple[Load, ...]]]:
        """Return (time [s], loads from then on), from time 0 on."""
        found = [(0.0, self.initial_loads(boom))]
        for time, change in self.load_changes(boom):
            after = self.concrete(boom) if change is None else (*found[-1][1], change)
            found.append((time, after))
        return found

    def waypoints(self, boom: BoomParameters) -> tuple[Waypoint, ...]:
        """Return the trajectory from the pose at time 0 on."""
        if not self.trajectory or self.trajectory[0].time == 0.0:
            return self.trajectory
        start = Waypoint(time=0.0, angles_deg=tuple(np.degrees(self.angles(boom)).tolist()))
        return (start, *self.trajectory)

    def check_with(self, boom: BoomParameters, step: float | None = None) -> None:
        """Raise InputError when the scenario does not fit a boom, or its times a step [s]."""
        boom.check_pose(self.angles(boom))
        self.initial_loads(boom)
        check_times([self.duration], step, 'duration')
        self.load_changes(boom)
        check_times(self.release, step, 'release[{}]')
        check_times([item.time for item in self.attach], step, 'attach[{}].time')
        check_valve_commands(self.valve_commands, boom.size, step)
        for index, force in enumerate(self.forces):
            boom.beam_at(force.beam or boom.beams[-1].name, 0.0, f'forces[{index}]')
        if self.trajectory:
            points = self.waypoints(boom)
            trajectory, before = Trajectory.of(points), len(points) - len(self.trajectory)
            trajectory.check_with(boom, before)
            joints = [beam.name for beam in boom.beams]
            trajectory.check_rates(joints, lambda angles: rate_limits(boom, angles), before)
        if self.trajectory and self.trajectory[0].time == 0.0:
            first = np.array(self.trajectory[0].angles_deg)
            pose = np.degrees(self.angles(boom))
            if np.abs(first - pose).max() > _JUMP_DEG:
                raise InputError(
                    f'trajectory[0] is {first.round(3).tolist()} deg at time 0, allowed there:'
                    f' within {_JUMP_DEG} deg of the pose, {pose.round(3).tolist()} deg; give it a'
                    ' later time for a smooth path from the pose'
                )


def load_scenario(file: str | Path, boom: BoomParameters, step: float | None = None) -> Scenario:
    """
    Read a scenario file and check it against a boom, and against a step [s] if one is given.

    InputError has file, key, value and allowed values.
    """
    return load(Scenario, file, check=lambda scenario: scenario.check_with(boom, step))
