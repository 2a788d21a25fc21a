"""
What the excavator offers to identification, see :mod:`longreach_identification.machine`.

A recording has the spool positions, by which the excavator digs again. It begins when the bucket's
edge touches the soil; the soil is level with it. ``longreach excavator cohesion`` searches the
whole range of one cohesion and also accepts a final pose alone.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from longreach_dynamics.errors import InputError, LongreachError
from longreach_dynamics.runs import Source
from longreach_dynamics.scenarios import ValveCommand
from longreach_excavator.cohesion import BOUNDS, roughly
from longreach_excavator.columns import COLUMNS
from longreach_excavator.linkage import CYLINDERS
from longreach_excavator.machine import SAMPLE_TIME, STEP
from longreach_excavator.measurements import Measurements
from longreach_excavator.parameters import ExcavatorParameters, load_excavator
from longreach_excavator.scenario import FIXED_DEPTHS, Scenario
from longreach_excavator.simulation import simulate
from longreach_identification.machine import (
    FreeParameter,
    Identifiable,
    MeasuredSignal,
    Recording,
    Signal,
)

_FREE = (
    FreeParameter('cohesion', 'soil', 'Pa', *BOUNDS, 'C or c'),
    FreeParameter('bucket_mass', 'masses', 'kg', 1.0, 1e5, 'of the bucket'),
    FreeParameter('supply_pressure', 'oil', 'Pa', 1e6, 1e8, 'of the pump'),
)
_PATHS = {
    'cohesion': 'soil.cohesion',
    'bucket_mass': 'bucket.mass',
    'supply_pressure': 'oil.supply_pressure',
}
_SIGNALS = ('theta_*', 'length_*', 'force_lk', 'force_pk', 'p_head_*', 'p_rod_*', 'spool_*')
_JOINTS = ('theta_2', 'theta_3', 'theta_4')
_RODS = ('force_lk', 'force_pk')
# Standard deviation of measured joint angles [rad].
_POSE = 5e-3
# Limits of the largest spool position in a recording, which percent exceed.
_SPOOLS = (0.0, 1.05)
# A spool that moved by less than this share of its stroke has not moved.
_STILL = 1e-3
# Shortest time constant of a spool in a file [s].
_AT_ONCE = 5e-3


class Dig(NamedTuple):
    """A run of the excavator by recorded spools."""

    scenario: Scenario
    start: float  # time of the recording at time 0 of the scenario [s]
    end: float  # [s]


@dataclasses.dataclass(frozen=True)
class ExcavatorIdentification(Identifiable):
    """
    The excavator, for ``longreach identify``.

    ``depth`` is that of the soil's law, see ``Scenario``: swing, as if the bucket's joint were at
    rest (Ozunlu 2009, (4.1)), or surface.
    """

    depth: str = 'swing'
    name = 'excavator'
    compared = (*_JOINTS, *_RODS, 'length_*', 'p_*')

    def __post_init__(self) -> None:
        """Check the depth."""
        if self.depth not in FIXED_DEPTHS:
            raise InputError(f'depth = {self.depth!r}, allowed: {" | ".join(FIXED_DEPTHS)}')

    def load(self, file: str | None = None) -> ExcavatorParameters:
        """Return the parameters in an excavator file, by default the installed one."""
        return load_excavator(file)

    def free_parameters(self, machine: ExcavatorParameters) -> tuple[FreeParameter, ...]:  # noqa: ARG002
        """Return all parameters that can be free."""
        return _FREE

    def values(self, machine: ExcavatorParameters) -> dict[str, float]:
        """Return the values of all of them."""
        return {name: attrgetter(path)(machine) for name, path in _PATHS.items()}

    def with_values(
        self, machine: ExcavatorParameters, values: Mapping[str, float]
    ) -> ExcavatorParameters:
        """Return the excavator with some changed; InputError for values not allowed."""
        self.check_names(machine, values)
        for name, value in values.items():
            machine = machine.with_value(_PATHS[name], value)
        return machine

    def signals(self, machine: ExcavatorParameters) -> tuple[MeasuredSignal, ...]:  # noqa: ARG002
        """Return the signals, named as columns of runs; tensions of rods are in CSV files only."""
        return tuple(
            MeasuredSignal(
                column.name,
                column.unit,
                (column.source,) if isinstance(column.source, Source) else (),
                sizes=_SPOOLS if column.family == 'spool_*' else (0.0, math.inf),
            )
            for column in COLUMNS
            if (column.family or column.name) in _SIGNALS
        )

    def experiment(self, machine: ExcavatorParameters, recording: Recording) -> Dig:
        """Return the digging that a recording shows, from its first spool on; InputError."""
        needed = [*_JOINTS, *(f'spool_{name}' for name in CYLINDERS)]
        missing = [name for name in needed if name not in recording.signals]
        if missing:
            raise InputError(
                f'{recording.name} lacks {", ".join(missing)}; found:'
                f' {", ".join(recording.signals)}'
            )
        signals = [recording.signals[name] for name in needed]
        start = max(float(signal.times[0]) for signal in signals)
        end = min(float(signal.times[-1]) for signal in signals)
        samples = math.floor((end - start) / SAMPLE_TIME + 1e-6)
        if samples < 1:
            raise InputError(
                f'{recording.name} has {end - start:.3g} s with joints and spools, allowed: at'
                f' least {SAMPLE_TIME:g} s'
            )
        pose = tuple(
            math.degrees(np.interp(start, signal.times, signal.values))
            for signal in signals[: len(_JOINTS)]
        )
        scenario = Scenario(
            duration=round(samples * SAMPLE_TIME, 12),
            pose_deg=pose,
            depth=self.depth,
            valve_commands=_commands(start, signals[len(_JOINTS) :]),
        )
        scenario.check_with(machine, STEP)
        return Dig(scenario, start, end)

    def predict(
        self,
        machine: ExcavatorParameters,
        experiment: Dig,
        times: Mapping[str, np.ndarray],
    ) -> dict[str, np.ndarray]:
        """Return columns of the run at given times; LongreachError when the run fails."""
        run = simulate(_followed(machine), experiment.scenario)
        if run.message:
            raise LongreachError(run.message)
        allowed = [s.name for s in self.signals(machine) if not s.name.startswith('spool')]
        rows = run.column('time') + experiment.start
        for name in times:
            if name not in allowed:
                raise InputError(f'signal {name!r}, allowed: {", ".join(allowed)}')
        return {name: np.interp(at, rows, run.column(name)) for name, at in times.items()}

    def corrections(self, machine: ExcavatorParameters, experiment: Dig) -> dict[str, float]:  # noqa: ARG002
        """Return errors of the first joint angles [rad], each of a single noisy sample."""
        return {f'pose_{name}': _POSE for name in CYLINDERS}

    def corrected(
        self,
        machine: ExcavatorParameters,  # noqa: ARG002
        experiment: Dig,
        values: Mapping[str, float],
    ) -> Dig:
        """Return the experiment from a corrected pose."""
        pose = tuple(
            angle + math.degrees(values[f'pose_{name}'])
            for angle, name in zip(experiment.scenario.pose_deg, CYLINDERS, strict=True)
        )
        return experiment._replace(scenario=experiment.scenario.replace(pose_deg=pose))

    def start_values(
        self, machine: ExcavatorParameters, experiment: Dig, recording: Recording
    ) -> dict[str, float]:
        """Return the best of some cohesions over the whole range."""
        times = recording.signals[_JOINTS[0]].times
        times = times[(times >= experiment.start) & (times <= experiment.end)]
        known = {
            name: _between(times, recording.signals[name])
            for name in (*_JOINTS, *_RODS)
            if name in recording.signals
        }
        # A signal that does not move says nothing.
        known = {name: values for name, values in known.items() if np.std(values) > 0.0}
        if not known:
            return {'cohesion': machine.soil.cohesion}
        values = np.stack(list(known.values()), axis=1)
        data = Measurements(tuple(known), values, times - experiment.start, recording.name)
        scenario, spread = experiment.scenario, np.std(values, axis=0)
        return {'cohesion': roughly(_followed(machine), scenario, data, spread)}


def _between(times: np.ndarray, signal: Signal) -> np.ndarray:
    """Return a signal (rows,) at other times, across gaps; 0 where it has no value."""
    there = np.isfinite(signal.values)
    if not there.any():
        return np.zeros(len(times))
    return np.asarray(np.interp(times, signal.times[there], signal.values[there]))


def _followed(machine: ExcavatorParameters) -> ExcavatorParameters:
    """Return the excavator with spools at once where told: recorded are positions of spools."""
    return machine.replace(
        cylinders=tuple(
            cylinder.replace(valve=cylinder.valve.replace(time_constant=_AT_ONCE, rate=None))
            for cylinder in machine.cylinders
        )
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
