"""Simulated runs of flexible links: tables of what is observed, one row for each cycle."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

import numpy as np

from longreach_machine.machine import late_events
from longreach_machine.runs import Column, Columns, Derived, Run, Source, each, sampled
from longreach_symbolic.links import Links, chord_ends
from longreach_symbolic.machine import FlexibleLinks, joint_names


def columns_of(links: Links) -> Columns:
    """Return the columns of a run of links."""
    count, names = len(links.links), joint_names(links)
    chords, motors, deflections = names[:count], names[count : 2 * count], names[2 * count :]
    angles = tuple(_sources('position', chords))

    def end(axis: int) -> Derived:
        return Derived(angles, lambda theta: chord_ends(links, theta)[:, -1, axis])

    def of(
        family: str, entries: tuple[str, ...], unit: str, field: str, meaning: str
    ) -> list[Column]:
        keys = [name.partition('_')[2] for name in entries]
        return each(family, keys, unit, meaning, _sources(field, entries))

    bends = 'coordinates of deflections, of link and function'
    return Columns(
        (
            Column('time', 's', 'of the sample'),
            *of('theta_*', chords, 'rad', 'position', 'angles between chords'),
            *of('motor_*', motors, 'rad', 'position', 'motor angles'),
            *of('f_*', deflections, 'm', 'position', bends),
            *of('theta_rate_*', chords, 'rad/s', 'velocity', 'rates of the angles'),
            *of('motor_rate_*', motors, 'rad/s', 'velocity', 'rates of the motors'),
            *of('f_rate_*', deflections, 'm/s', 'velocity', 'their rates'),
            *of('torque_*', motors, 'N m', 'effort', 'torques of the motors until the sample'),
            Column('tip_x', 'm', 'end of the last link, forward', end(0)),
            Column('tip_z', 'm', 'end of the last link, up', end(1)),
            Column('wanted_x', 'm', 'where it shall be'),
            Column('wanted_z', 'm', 'where it shall be'),
            Column('tip_error', 'm', 'distance between the two'),
        )
    )


def _sources(field: str, entries: tuple[str, ...]) -> list[Source]:
    """Return where recordings hold a field of some entries."""
    return [Source('joint_states', field, name) for name in entries]


@dataclasses.dataclass(frozen=True)
class LinksRun(Run[Links]):
    """A run of flexible links."""

    UNITS: ClassVar[dict[str, str]] = {
        'duration': 's',
        'tip_error': 'm',
        'tip_error_rms': 'm',
        'final_tip': 'm',
        'largest_torque': 'N m',
        'largest_deflection': 'm',
    }

    def summary(self) -> dict[str, Any]:
        """Return the main results."""
        found = super().summary()
        if not len(self.table):
            return found
        if 'tip_error' in self.columns.names:
            error = self.column('tip_error')
            found['tip_error'] = float(error.max())
            found['tip_error_rms'] = float(np.sqrt(np.mean(error**2)))
        found['final_tip'] = self.stack(['tip_x', 'tip_z'])[-1].tolist()
        torques, f = (
            self.stack([column.name for column in self.columns if column.family == family])
            for family in ('torque_*', 'f_*')
        )
        found['largest_torque'] = float(np.abs(torques).max())
        found['largest_deflection'] = float(self.parameters.largest_deflections(f).max())
        return found


def simulate(machine: FlexibleLinks) -> LinksRun:
    """Simulate links under their controllers; a run that could not go on has a message."""
    columns, scenario = columns_of(machine.links), machine.scenario
    table, message = sampled(machine, columns, scenario.duration)
    wanted = np.array([scenario.angles(time, machine.links) for time in table[:, 0]])
    aims = chord_ends(machine.links, wanted)[:, -1]
    away = np.hypot(*(table[:, -2:] - aims).T)
    late = late_events(scenario, paths=('trajectory',))
    found = np.column_stack((table, aims, away))
    return LinksRun(machine.links, columns, found, message=message, late=late)
