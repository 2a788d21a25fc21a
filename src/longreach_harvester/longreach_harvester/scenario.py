"""What a run of the harvester begins with, and how its spools move."""

from __future__ import annotations

import dataclasses
import functools

from longreach_dynamics.errors import InputError, check_one
from longreach_dynamics.hydraulics.lines import OrificeParameters
from longreach_dynamics.parameters import Parameters, quantity
from longreach_harvester.kinematics import TipSegment
from longreach_harvester.parameters import JOINTS, HarvesterParameters
from longreach_machine.schedules import Knots, Schedule, check_knots, schedule_of

_CLOSED = ((0.0, 0.0),)


@dataclasses.dataclass(frozen=True)
class SpoolKnots(Parameters):
    """Spool positions, straight lines between knots; two knots at one time are a jump."""

    swing: tuple[tuple[float, float], ...] = quantity('time [s], spool', default=_CLOSED)
    boom: tuple[tuple[float, float], ...] = quantity('time [s], spool', default=_CLOSED)
    stick: tuple[tuple[float, float], ...] = quantity('time [s], spool', default=_CLOSED)

    def check(self) -> None:
        """Raise InputError for knots that are not in order, or beyond the stroke of a spool."""
        for name in JOINTS:
            check_knots(getattr(self, name), f'spools.{name}')

    def of_joints(self) -> tuple[Knots, ...]:
        """Return the knots in the order of JOINTS."""
        return self.swing, self.boom, self.stick


@dataclasses.dataclass(frozen=True)
class Sine(Parameters):
    """A sine: from the angle of time 0, at rest, to twice the amplitude beyond it and back."""

    amplitude: float = quantity('amplitude', 'rad', at_least=-3.0, at_most=3.0)
    period: float = quantity('period', 's', at_least=0.1, at_most=1e6)


@dataclasses.dataclass(frozen=True)
class Sines(Parameters):
    """Which joints follow a sine under their controllers; the valves of the others are closed."""

    swing: Sine | None = quantity('sine', '', default=None)
    boom: Sine | None = quantity('sine', '', default=None)
    stick: Sine | None = quantity('sine', '', default=None)

    def of_joints(self) -> tuple[Sine | None, ...]:
        """Return the sines in the order of JOINTS."""
        return self.swing, self.boom, self.stick


@dataclasses.dataclass(frozen=True)
class LogEvent(Parameters):
    """A log that the grapple takes."""

    time: float = quantity('when', 's', at_least=0.0, at_most=1e6)
    mass: float = quantity('mass', 'kg', above=0.0, at_most=1e5)


@dataclasses.dataclass(frozen=True)
class Scenario(Parameters):
    """Contents of a scenario file: the machine begins at rest, its weight in the head sides."""

    duration: float = quantity('length of the simulation', 's', above=0.0, at_most=1e6)
    angles: tuple[float, ...] = quantity('swing, boom, stick at time 0', 'rad', length=3)
    swing_pressure: float = quantity(
        'in both lines of the motor at time 0', 'Pa', at_least=0.0, at_most=1e8, default=1e7
    )
    rod_pressure: float = quantity(
        'in the rod sides at time 0', 'Pa', at_least=0.0, at_most=1e8, default=7e6
    )
    spools: SpoolKnots = quantity('of the three valves; left out: closed', default=SpoolKnots())
    sines: Sines = quantity('joints under controllers, in place of spools', default=Sines())
    tip: tuple[TipSegment, ...] = quantity(
        'path of the tip under controllers, in place of spools', default=()
    )
    log: float = quantity(
        'mass of the log in the grapple at time 0; 0: none',
        'kg',
        at_least=0.0,
        at_most=1e5,
        default=0.0,
    )
    attach: tuple[LogEvent, ...] = quantity('logs that the grapple takes', default=())
    release: tuple[float, ...] = quantity(
        'times at which it lets go', 's', at_least=0.0, at_most=1e6, default=()
    )

    def check(self) -> None:
        """Raise InputError for spools that are given beside controllers."""
        moved, swung = self.spools != SpoolKnots(), self.sines != Sines()
        check_one(0, spools=moved, sines=swung, tip=self.tip)
        held = self.log > 0.0
        for time, mass in self.log_changes():
            if held == (mass > 0.0):
                what = 'takes a log and holds one' if held else 'lets go and holds no log'
                raise InputError(
                    f'at {time:g} s the grapple {what}, allowed: attach and release in turns'
                )
            held = mass > 0.0

    def log_changes(self) -> tuple[tuple[float, float], ...]:
        """Return time [s] and mass [kg] of what the grapple then holds, in order of time."""
        found = [(time, 0.0) for time in self.release]
        return tuple(sorted(found + [(event.time, event.mass) for event in self.attach]))

    @property
    def has_logs(self) -> bool:
        """Whether the grapple ever holds a log."""
        return bool(self.log or self.log_changes())

    @property
    def is_controlled(self) -> bool:
        """Whether controllers move the spools."""
        return bool(self.tip) or any(sine is not None for sine in self.sines.of_joints())

    def schedule(self, harvester: HarvesterParameters) -> Schedule:
        """Return the spools in intervals in which neither modes nor sources change."""
        return _schedule(self.spools, *(actuator.valve for actuator in harvester.actuators))


@functools.lru_cache(maxsize=16)
def _schedule(spools: SpoolKnots, *valves: OrificeParameters) -> Schedule:
    """Return the same, which most runs of a sweep have in common."""
    return schedule_of(spools.of_joints(), [valve.switching_spools() for valve in valves])


def resting_scenario() -> Scenario:
    """Return a harvester at rest in the pose of the standard scenarios, all valves closed."""
    return Scenario(duration=1.0, angles=(0.0, 0.55, -1.2))
