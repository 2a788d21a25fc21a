"""
What the harvester offers to identification, see :mod:`longreach_identification.machine`.

A recording has the positions of the spools, by which the harvester is simulated from rest. A
valve's coefficients are C_R(u) = C_R / s(u)^2, of which C_R is identified; its table of openings
s(u) stays that of the file. Pressures at the start are those of the scenario's defaults.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from longreach_dynamics.errors import InputError, LongreachError
from longreach_dynamics.runs import Source
from longreach_harvester.machine import SAMPLE_TIME, Harvester
from longreach_harvester.parameters import JOINTS, HarvesterParameters, load_harvester
from longreach_harvester.scenario import Scenario, SpoolKnots
from longreach_harvester.simulation import simulate
from longreach_identification.machine import FreeParameter, Identifiable, MeasuredSignal, Recording

# Where the harvester has what can be free.
_VALVES = {
    f'valve_resistance_{joint}': f'{actuator}.valve.resistance'
    for joint, actuator in zip(
        JOINTS, ('swing_motor', 'boom_cylinder', 'stick_cylinder'), strict=True
    )
}
_MASSES = {f'{body}_mass': f'{body}.mass' for body in ('boom', 'stick', 'head')}
_PLACES = _VALVES | _MASSES
# Spools are straight lines between knots, which follow a recording to within this share of the
# stroke: each knot costs a step.
_KNOT = 1e-3
# Largest spool position in a recording, which percent exceed.
_LARGEST_SPOOL = 1.05
# Standard deviation of measured joint angles [rad].
_POSE = 5e-3
# By which stops that yield, and errors of sensors, let a pose be beyond a stroke [rad].
_BEYOND = 0.05
# Reduced model: without lines, whose oscillations are not those of valves.
_MODEL, _STEP = 'reduced', 5e-3


class SpoolRun(NamedTuple):
    """A run of the harvester by recorded spools."""

    scenario: Scenario
    start: float  # time of the recording at time 0 of the scenario [s]
    end: float  # [s]


class HarvesterIdentification(Identifiable):
    """The harvester as a :class:`longreach_identification.machine.Identifiable`."""

    name = 'harvester'
    compared = ('q_*', 'p_*')

    def load(self, file: str | None = None) -> HarvesterParameters:
        """Return the parameters in a harvester file, by default the installed one."""
        return load_harvester(file)

    def free_parameters(self, machine: HarvesterParameters) -> tuple[FreeParameter, ...]:  # noqa: ARG002
        """Return all parameters that can be free."""
        valve = ('valves', 'Pa s^2/m^6', 1e8, 1e16, 'C_R at full spool')
        least = {'head_mass': 0.0}
        return (
            *(FreeParameter(name, *valve) for name in _VALVES),
            *(FreeParameter(n, 'masses', 'kg', least.get(n, 0.1), 1e6) for n in _MASSES),
        )

    def values(self, machine: HarvesterParameters) -> dict[str, float]:
        """Return the values of all of them."""
        return {name: float(attrgetter(place)(machine)) for name, place in _PLACES.items()}

    def with_values(
        self, machine: HarvesterParameters, values: Mapping[str, float]
    ) -> HarvesterParameters:
        """Return the harvester with some changed; InputError for values not allowed."""
        self.check_names(machine, values)
        changed = machine
        for name, value in values.items():
            place = _PLACES[name]
            changed = changed.with_value(place, value)
            other = f'{place}_2'
            if name in _VALVES and attrgetter(other)(machine) is not None:
                # Both orifices of a spool change in the same ratio.
                ratio = value / attrgetter(place)(machine)
                changed = changed.with_value(other, ratio * attrgetter(other)(machine))
        return changed

    def signals(self, machine: HarvesterParameters) -> tuple[MeasuredSignal, ...]:  # noqa: ARG002
        """Return the signals of a harvester; ``spool_*`` are its inputs."""
        kinds = (
            ('q', 'rad', 'joint_states', 'position', math.inf),
            ('spool', '1', 'hydraulics', 'spool', _LARGEST_SPOOL),
            ('p_1', 'Pa', 'hydraulics', 'head_pressure', math.inf),
            ('p_2', 'Pa', 'hydraulics', 'rod_pressure', math.inf),
        )
        return tuple(
            MeasuredSignal(
                f'{kind}_{joint}', unit, (Source(topic, field, joint),), '', (0.0, most)
            )
            for kind, unit, topic, field, most in kinds
            for joint in JOINTS
        )

    def experiment(self, machine: HarvesterParameters, recording: Recording) -> SpoolRun:
        """Return the run that a recording shows, from its first spool on; InputError."""
        needed = [f'{kind}_{joint}' for kind in ('spool', 'q') for joint in JOINTS]
        missing = [name for name in needed if name not in recording.signals]
        if missing:
            raise InputError(
                f'{recording.name} lacks {", ".join(missing)}; found:'
                f' {", ".join(recording.signals)}'
            )
        signals = {name: recording.signals[name] for name in needed}
        start = max(float(signal.times[0]) for signal in signals.values())
        end = min(float(signal.times[-1]) for signal in signals.values())
        angles = np.array([np.interp(start, *signals[f'q_{j}'][:2]) for j in JOINTS])
        knots = {}
        for joint in JOINTS:
            times, values, _ = signals[f'spool_{joint}']
            use = (times >= start) & np.isfinite(values)
            rows = np.stack([times[use] - start, np.clip(values[use], -1.0, 1.0)], axis=1)
            knots[joint] = tuple((float(t), float(s)) for t, s in _knots(rows))
        duration = np.floor((end - start) / SAMPLE_TIME) * SAMPLE_TIME
        scenario = Scenario(
            duration=float(duration),
            angles=_within_strokes(machine, angles),
            spools=SpoolKnots(**knots),
        )
        return SpoolRun(scenario, start, end)

    def predict(
        self,
        machine: HarvesterParameters,
        experiment: SpoolRun,
        times: Mapping[str, np.ndarray],
    ) -> dict[str, np.ndarray]:
        """Return angles and pressures at given times; LongreachError when the run fails."""
        run = simulate(Harvester(machine, experiment.scenario, _STEP, _MODEL))
        if run.message:
            raise LongreachError(run.message)
        allowed = [s.name for s in self.signals(machine) if not s.name.startswith('spool')]
        found = {}
        for name, at in times.items():
            if name not in allowed:
                raise InputError(f'signal {name!r}, allowed: {", ".join(allowed)}')
            rows = run.column('time') + experiment.start
            found[name] = np.interp(at, rows, run.column(name))
        return found

    def corrections(self, machine: HarvesterParameters, experiment: SpoolRun) -> dict[str, float]:  # noqa: ARG002
        """Return errors of the first joint angles [rad], each of a single noisy sample."""
        return {f'pose_{joint}': _POSE for joint in JOINTS}

    def corrected(
        self,
        machine: HarvesterParameters,
        experiment: SpoolRun,
        values: Mapping[str, float],
    ) -> SpoolRun:
        """Return the experiment from a corrected pose."""
        changes = np.array([values[f'pose_{joint}'] for joint in JOINTS])
        angles = _within_strokes(machine, np.array(experiment.scenario.angles) + changes)
        return experiment._replace(scenario=experiment.scenario.replace(angles=angles))


def _within_strokes(machine: HarvesterParameters, angles: np.ndarray) -> tuple[float, ...]:
    """Return angles [rad] within the strokes; InputError when they are beyond by no mere error."""
    nearest = np.clip(angles, *machine.joint_limits().T)
    if np.abs(angles - nearest).max() > _BEYOND:
        machine.check_pose(angles)
    return tuple(nearest.tolist())


def _knots(rows: np.ndarray) -> np.ndarray:
    """Return the rows (time, value) between which straight lines stay within ``_KNOT``."""
    kept = [0, len(rows) - 1]
    left = [(0, len(rows) - 1)]
    while left:
        first, last = left.pop()
        part = rows[first : last + 1]
        line = np.interp(part[:, 0], part[[0, -1], 0], part[[0, -1], 1])
        far = int(np.argmax(np.abs(part[:, 1] - line)))
        if abs(part[far, 1] - line[far]) > _KNOT:
            kept.append(first + far)
            left += [(first, first + far), (first + far, last)]
    return rows[np.unique(kept)]


HARVESTER = HarvesterIdentification()
