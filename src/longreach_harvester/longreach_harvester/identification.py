"""
What the harvester offers to identification: a run from rest by the recorded spools.

A valve's coefficients are C_R(u) = C_R / s(u)^2, of which C_R is identified; its table of openings
s(u) stays that of the file. Pressures at the start are those of the scenario's defaults.
"""

from __future__ import annotations

from collections.abc import Mapping
from operator import attrgetter

import numpy as np

from longreach_harvester.machine import SAMPLE_TIME, Harvester
from longreach_harvester.parameters import JOINTS, HarvesterParameters, load_harvester
from longreach_harvester.scenario import Scenario, SpoolKnots
from longreach_harvester.simulation import COLUMNS, HarvesterRun, simulate
from longreach_identification.machine import (
    FreeParameter,
    Recording,
    SpoolIdentification,
    SpoolRun,
)

_VALVES = {
    f'valve_resistance_{joint}': f'{actuator}.valve.resistance'
    for joint, actuator in zip(
        JOINTS, ('swing_motor', 'boom_cylinder', 'stick_cylinder'), strict=True
    )
}
_RESISTANCE = ('valves', 'Pa s^2/m^6', 1e8, 1e16, 'C_R at full spool')
_MASSES = {f'{body}_mass': f'{body}.mass' for body in ('boom', 'stick', 'head')}
_LEAST = {'boom_mass': 0.1, 'stick_mass': 0.1, 'head_mass': 0.0}  # [kg]
# Spools are straight lines between knots, which follow a recording to within this share of the
# stroke: each knot costs a step.
_KNOT = 1e-3
# By which stops that yield, and errors of sensors, let a pose be beyond a stroke [rad].
_BEYOND = 0.05


class HarvesterIdentification(SpoolIdentification):
    """The harvester as a :class:`longreach_identification.machine.Identifiable`."""

    name = 'harvester'
    load = staticmethod(load_harvester)
    compared = ('q_*', 'p_*')
    free = (
        *(FreeParameter(name, *_RESISTANCE) for name in _VALVES),
        *(FreeParameter(name, 'masses', 'kg', least, 1e6) for name, least in _LEAST.items()),
    )
    places = _VALVES | _MASSES
    actuators, angles = JOINTS, tuple(f'q_{joint}' for joint in JOINTS)
    columns, shown = COLUMNS, ('q_*', 'spool_*', 'p_1_*', 'p_2_*')

    def with_values(
        self, machine: HarvesterParameters, values: Mapping[str, float]
    ) -> HarvesterParameters:
        """Return the harvester with some changed; InputError for values not allowed."""
        changed: HarvesterParameters = super().with_values(machine, values)
        for name in _VALVES.keys() & values.keys():
            place = self.places[name]
            if (other := attrgetter(f'{place}_2')(machine)) is not None:
                # Both orifices of a spool change in the same ratio.
                ratio = values[name] / attrgetter(place)(machine)
                changed = changed.with_value(f'{place}_2', ratio * other)
        return changed

    def experiment(self, machine: HarvesterParameters, recording: Recording) -> SpoolRun:
        """Return the run that a recording shows, from its first spool on; InputError."""
        shown, spools, start, end = self.recorded(recording)
        angles = np.array([np.interp(start, *angle[:2]) for angle in shown])
        knots = {}
        for joint, (times, values, _) in zip(JOINTS, spools, strict=True):
            use = times >= start
            rows = np.stack([times[use] - start, np.clip(values[use], -1.0, 1.0)], axis=1)
            knots[joint] = tuple((float(t), float(s)) for t, s in _knots(rows))
        duration = np.floor((end - start) / SAMPLE_TIME) * SAMPLE_TIME
        scenario = Scenario(
            duration=float(duration),
            angles=_within_strokes(machine, angles),
            spools=SpoolKnots(**knots),
        )
        return SpoolRun(scenario, start, end)

    def run(self, machine: HarvesterParameters, scenario: Scenario) -> HarvesterRun:
        """Return the run of a scenario."""
        # With its lines: without them masses fit their oscillations, and were wrong by half.
        return simulate(Harvester(machine, scenario))

    def turned(
        self, machine: HarvesterParameters, scenario: Scenario, changes: np.ndarray
    ) -> Scenario:
        """Return the scenario with changes of the pose (3,) [rad]."""
        angles = _within_strokes(machine, np.array(scenario.angles) + changes)
        return scenario.replace(angles=angles)


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
