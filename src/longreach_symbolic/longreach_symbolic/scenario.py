"""
Scenarios of flexible links: a circle that the end of the last link draws, or joint angles.

    duration: 20.0                  # [s]
    circle: {centre: [0.7363, 0.3736], radius: 0.11, period: 10.0}

Both say where the chords of the links shall be; how the links then bend under their weight, and
where the motors stand, follows from that.
"""

from __future__ import annotations

import cmath
import dataclasses
import functools
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from scipy.optimize import brentq

from longreach_dynamics.errors import InputError, check_count, check_one
from longreach_dynamics.parameters import Parameters, choice, load, quantity
from longreach_machine.trajectories import Trajectory, Waypoint
from longreach_symbolic.links import Links

# Bends at which the distance of the end is tabulated, to find where it stops to fall.
_BENDS = 400


@dataclasses.dataclass(frozen=True)
class Circle(Parameters):
    """A circle of the end in the vertical plane; lengths in multiples of all links' length."""

    # The links form a polygon with equal angles between each and the next. A single link, whose
    # end is always as far from its base, follows the direction of the circle's point.

    centre: tuple[float, float] = quantity(
        'x and z of the centre, in lengths of all links', length=2, at_least=-1.0, at_most=1.0
    )
    radius: float = quantity('radius, in lengths of all links', above=0.0, at_most=1.0)
    period: float = quantity('time of a turn', 's', above=0.0, at_most=1e6)
    start: float = quantity(
        'time in which the end gets its speed', 's', above=0.0, at_most=1e6, default=1.0
    )
    bend: str = choice('which way the joints after the first bend', ('up', 'down'), default='up')

    def check_lengths(self, lengths: Sequence[float]) -> None:
        """Raise InputError where links of these lengths [m] cannot follow."""
        away = abs(complex(*self.centre))
        if away <= self.radius:
            raise InputError(
                f'circle.radius = {self.radius:g}, allowed: below {away:g}, so that the base is'
                ' outside of the circle'
            )
        nearest = _most_bent(tuple(lengths))[1] / sum(lengths)
        near, far = away - self.radius, away + self.radius
        if len(lengths) > 1 and not nearest < near < far < 1.0:
            raise InputError(
                f'the circle is {near:.4g} to {far:.4g} lengths of all links from the base,'
                f' allowed: between {nearest:.4g} and 1'
            )

    def place(self, time: float) -> complex:
        """Return where the end shall be, x + i z in lengths of all links; at rest before 0."""
        begun = min(max(time / self.start, 0.0), 1.0)
        # The integral of a speed that grows as 3 u^2 - 2 u^3.
        way = self.start * (begun**3 - 0.5 * begun**4) + max(time - self.start, 0.0)
        return complex(*self.centre) + cmath.rect(self.radius, 2.0 * math.pi * way / self.period)

    def angles(self, time: float, lengths: Sequence[float]) -> np.ndarray:
        """Return the joint angles (N,) of rigid links of these lengths [m] at a time [s]."""
        place, centre = self.place(time), complex(*self.centre)
        # By the angle from the centre, which has no jump.
        direction = cmath.phase(centre) + cmath.phase(place / centre)
        bend = 0.0
        if len(lengths) > 1:
            wanted = abs(place) * sum(lengths)
            most, _ = _most_bent(tuple(lengths))
            bend = brentq(lambda b: abs(_polygon(lengths, b)) - wanted, 0.0, most, xtol=1e-15)
            bend *= -1.0 if self.bend == 'up' else 1.0
        # By the angle from the links' mean direction, which has no jump either.
        mean = 0.5 * bend * (len(lengths) - 1)
        away = cmath.phase(_polygon(lengths, bend) * cmath.rect(1.0, -mean))
        first = direction - mean - away
        return np.array([first] + [bend] * (len(lengths) - 1))


def _polygon(lengths: Sequence[float], bend: float) -> complex:
    """Return the end of links with equal angles between them, the first one along x [m]."""
    turn = cmath.rect(1.0, bend)
    end = 0j
    for length in reversed(lengths):
        end = length + turn * end
    return end


@functools.lru_cache(maxsize=16)
def _most_bent(lengths: tuple[float, ...]) -> tuple[float, float]:
    """Return up to which bend [rad] the distance of the end falls, and that distance [m]."""
    bends = np.linspace(0.0, 2.0 * math.pi / max(len(lengths), 2), _BENDS)
    distances = np.array([abs(_polygon(lengths, bend)) for bend in bends])
    rising = np.flatnonzero(np.diff(distances) >= 0.0)
    last = int(rising[0]) if rising.size else _BENDS - 1
    return float(bends[last]), float(distances[last])


@dataclasses.dataclass(frozen=True)
class Scenario(Parameters):
    """Contents of a scenario file."""

    duration: float = quantity('length of the simulation', 's', above=0.0, at_most=1e6)
    circle: Circle | None = quantity('path of the end of the last link', '', default=None)
    trajectory: tuple[Waypoint, ...] = quantity(
        'joint angles of the chords, in place of a circle', default=()
    )
    straight: bool = quantity(
        'whether the links are straight at time 0, and begin to swing; false: at rest, bent by'
        ' their weight',
        default=False,
    )

    def check(self) -> None:
        """Raise InputError unless there is either a circle or a trajectory."""
        check_one(circle=self.circle, trajectory=self.trajectory)
        if self.trajectory:
            # Kept with the object: its arrays are checked and made once.
            object.__setattr__(self, '_trajectory', Trajectory.of(self.trajectory))

    def check_links(self, links: Links) -> None:
        """Raise InputError when the links cannot do it."""
        lengths = [link.length for link in links.links]
        if self.circle is not None:
            self.circle.check_lengths(lengths)
        else:
            angles = self.trajectory[0].angles_deg
            check_count('waypoint of the trajectory', angles, len(lengths), 'one for each link')

    def angles(self, time: float, links: Links) -> np.ndarray:
        """Return the desired joint angles (N,) of the chords at a time [s], [rad]."""
        if self.circle is not None:
            return self.circle.angles(time, [link.length for link in links.links])
        trajectory: Trajectory = self.__dict__['_trajectory']
        return trajectory.at(time).angles


def resting_scenario(links: Links) -> Scenario:
    """Return links at rest in one line, 45 degrees above the horizontal."""
    angles = (45.0, *(0.0,) * (len(links.links) - 1))
    return Scenario(duration=1.0, trajectory=(Waypoint(time=0.0, angles_deg=angles),))


def load_scenario(file: str | Path, links: Links) -> Scenario:
    """Read a scenario of links."""
    return load(Scenario, file, check=lambda scenario: scenario.check_links(links))
