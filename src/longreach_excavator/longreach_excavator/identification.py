"""
What the excavator offers to identification: a run that digs again by the recorded spools.

A recording begins when the bucket's edge touches the soil; the soil is level with it.
"""

from __future__ import annotations

import dataclasses
import math
from types import MappingProxyType

import numpy as np

from longreach_dynamics.errors import InputError, check_among
from longreach_excavator.cohesion import BOUNDS
from longreach_excavator.columns import COLUMNS
from longreach_excavator.forces import check_forces
from longreach_excavator.linkage import CYLINDERS
from longreach_excavator.machine import SAMPLE_TIME, STEP
from longreach_excavator.parameters import ExcavatorParameters, load_excavator
from longreach_excavator.scenario import FIXED_DEPTHS, Scenario
from longreach_excavator.simulation import ExcavatorRun, simulate
from longreach_identification.machine import (
    FreeParameter,
    Recording,
    Signal,
    SpoolIdentification,
    SpoolRun,
    longest_jump,
)
from longreach_machine.machine import step_time
from longreach_machine.scenarios import ValveCommand

_JOINTS = ('theta_2', 'theta_3', 'theta_4')
_RODS = ('force_lk', 'force_pk')
# A spool that moved by less than this share of its stroke has not moved.
_STILL = 1e-3
# Longest interval of rows between which a spool may jump [s], and the least jump: its time is
# known to half of the interval.
_SEEN, _JUMP = 0.06, 0.1
# Shortest time constant of a spool in a file [s].
_AT_ONCE = 5e-3


@dataclasses.dataclass(frozen=True)
class ExcavatorIdentification(SpoolIdentification):
    """The excavator for ``longreach identify``; ``depth`` of the soil's law as in a scenario."""

    depth: str = 'swing'
    name = 'excavator'
    load = staticmethod(load_excavator)
    compared = (*_JOINTS, *_RODS, 'length_*', 'p_*')
    free = (
        FreeParameter('cohesion', 'soil', 'Pa', *BOUNDS, 'C or c'),
        FreeParameter('bucket_mass', 'masses', 'kg', 1.0, 1e5, 'of the bucket'),
        FreeParameter('supply_pressure', 'oil', 'Pa', 1e6, 1e8, 'of the pump'),
    )
    # Over all bounds.
    scanned, scan = 'cohesion', np.geomspace(0.01, 100.0, 49)
    places = MappingProxyType(
        {
            'cohesion': 'soil.cohesion',
            'bucket_mass': 'bucket.mass',
            'supply_pressure': 'oil.supply_pressure',
        }
    )
    actuators, angles = CYLINDERS, _JOINTS
    # Tensions of rods are in CSV files only.
    columns = COLUMNS
    shown = ('theta_*', 'length_*', *_RODS, 'p_head_*', 'p_rod_*', 'spool_*')

    def __post_init__(self) -> None:
        """Check the depth."""
        check_among('depth', self.depth, FIXED_DEPTHS)

    def experiment(self, machine: ExcavatorParameters, recording: Recording) -> SpoolRun:
        """Return the digging that a recording shows, from its first spool on; InputError."""
        angles, spools, start, end = self.recorded(recording)
        for name in (name for name in _RODS if name in recording.signals):
            forces = recording.signals[name].values
            check_forces(f'{recording.name}: {name}', np.nan_to_num(forces), machine)
        samples = math.floor((end - start) / SAMPLE_TIME + 1e-6)
        if samples < 1:
            raise InputError(
                f'{recording.name} has {end - start:.3g} s with joints and spools, allowed: at'
                f' least {SAMPLE_TIME:g} s'
            )
        scenario = Scenario(
            duration=step_time(samples, SAMPLE_TIME),
            pose_deg=tuple(math.degrees(np.interp(start, *angle[:2])) for angle in angles),
            depth=self.depth,
            valve_commands=_commands(start, spools),
        )
        scenario.check_with(machine, STEP)
        return SpoolRun(scenario, start, end, _doubt(recording.name, start, spools))

    def run(self, machine: ExcavatorParameters, scenario: Scenario) -> ExcavatorRun:
        """Return the run of a scenario, whose spools are followed at once."""
        return simulate(_followed(machine), scenario)

    def turned(
        self,
        machine: ExcavatorParameters,  # noqa: ARG002
        scenario: Scenario,
        changes: np.ndarray,
    ) -> Scenario:
        """Return the scenario with changes of the pose (3,) [rad]."""
        pairs = zip(scenario.pose_deg, changes.tolist(), strict=True)
        return scenario.replace(pose_deg=tuple(angle + math.degrees(by) for angle, by in pairs))


def _followed(machine: ExcavatorParameters) -> ExcavatorParameters:
    """Return the excavator with spools without lag, if any: recorded are their positions."""
    return machine.replace(
        cylinders=tuple(
            cylinder.replace(valve=cylinder.valve.replace(time_constant=_AT_ONCE, rate=None))
            for cylinder in machine.cylinders
        )
    )


def _doubt(name: str, start: float, spools: list[Signal]) -> str:
    """Return a warning where it is not known when spools jumped; empty: it is."""
    longest = longest_jump(spools, _JUMP, start)
    if longest <= _SEEN:
        return ''
    return (
        f'spools of {name} jump between rows that are {longest:.2g} s apart, so that the time is'
        ' not known: errors can be several times larger; record spools at 20 Hz or more'
    )


def _commands(start: float, spools: list[Signal]) -> tuple[ValveCommand, ...]:
    """Return commands that follow recorded spools; each acts from halfway to its sample on."""
    times = np.unique(np.concatenate([signal.times for signal in spools]))
    times = times[times >= start]
    values = np.stack([np.interp(times, s.times, np.clip(s.values, -1.0, 1.0)) for s in spools], 1)
    halfway = np.concatenate([[start], 0.5 * (times[1:] + times[:-1]) - _AT_ONCE])
    commands: dict[float, tuple[float, ...]] = {}
    before = np.full(len(spools), np.inf)
    for when, row in zip(halfway, values, strict=True):
        if np.abs(row - before).max() > _STILL:
            before = row
            at = max(round((when - start) / STEP), 0) * STEP
            commands[round(at, 12)] = tuple(row.tolist())
    return tuple(ValveCommand(time=time, spools=spools) for time, spools in commands.items())


EXCAVATOR = ExcavatorIdentification()
EXCAVATOR_SURFACE = ExcavatorIdentification('surface')
