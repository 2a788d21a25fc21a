"""Runs of an excavator as tables: what is to be seen in each row, and in all of them together."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from longreach_dynamics.errors import InputError
from longreach_excavator.linkage import CYLINDERS
from longreach_excavator.motion import (
    HEAD,
    OBSERVED,
    RATE,
    SOIL,
    SPOOL,
    WORK,
    energy,
    observe,
)
from longreach_excavator.parameters import ExcavatorParameters
from longreach_excavator.scenario import Scenario

if TYPE_CHECKING:
    from longreach_excavator.machine import Excavator

__all__ = ['COLUMNS', 'REACTIONS', 'Result', 'series', 'swept_angle']

# Joints whose reactions a run is asked for first.
REACTIONS = ('boom_chassis', 'arm_boom', 'bucket_arm')

COLUMNS = (
    'time',
    *(f'theta_{k}' for k in (2, 3, 4)),
    *(f'omega_{k}' for k in (2, 3, 4)),
    *OBSERVED,
    'soil_force',
    'swept',
    *(f'{side}_{name}' for side in ('p_head', 'p_rod', 'spool') for name in CYLINDERS),
    *(f'work_{name}' for name in CYLINDERS),
    'work_soil',
    'work_lost',
    *(f'energy_{kind}' for kind in ('kinetic', 'potential', 'spring')),
)

# Pressures of both sides; a pose at the end of a stroke is there but for so much [m].
_SIDES, _ROUNDING = ('p_head', 'p_rod'), 1e-6
# The bucket has stalled when it turned by less than so much [rad] in so long [s].
_STALL_ANGLE, _STALL_TIME = np.radians(0.5), 0.5
# Nothing that matters has moved if its energy is below this [J].
_SMALL_ENERGY = 1.0


def swept_angle(
    excavator: ExcavatorParameters, scenario: Scenario, states: np.ndarray
) -> np.ndarray:
    """
    Return by how much the bucket has turned downwards against the world since time 0 [rad].

    Parameters
    ----------
    excavator : ExcavatorParameters
    scenario : Scenario
    states : ndarray, shape (..., SIZE)
    """
    start = scenario.angles(excavator).sum()
    return np.asarray(start - states[..., :RATE].sum(axis=-1))


def series(machine: Excavator, times: np.ndarray, states: np.ndarray) -> np.ndarray:
    """
    Return a table of what is to be seen of a run that followed the scenario.

    Parameters
    ----------
    machine : Excavator
    times : ndarray, shape (rows,)
        [s].
    states : ndarray, shape (rows, SIZE)

    Returns
    -------
    ndarray, shape (rows, len(COLUMNS))
        [s], [rad], [rad/s], those of :func:`longreach_excavator.motion.observe`, resistance of the
        soil [N], turning of the bucket since time 0 [rad], pressures [Pa], spool positions, work
        and energy [J].
    """
    seen, energies = np.empty((len(states), len(OBSERVED))), np.empty((len(states), 3))
    observe(states, machine.given_forces(times), machine.constants, seen)
    energy(states, machine.constants, energies)
    soil = [OBSERVED.index('soil_x'), OBSERVED.index('soil_z')]
    vapour = machine.parameters.oil.vapour_pressure
    return np.concatenate(
        [
            times[:, None],
            states[:, :HEAD],
            seen,
            np.hypot(*seen[:, soil].T)[:, None],
            swept_angle(machine.parameters, machine.scenario, states)[:, None],
            # Below the vapour pressure the state counts missing oil.
            np.maximum(states[:, HEAD:SPOOL], vapour),
            states[:, SPOOL:SOIL],
            states[:, WORK:],
            energies,
        ],
        axis=1,
    )


@dataclasses.dataclass(frozen=True)
class Result:
    """
    A run.

    Parameters
    ----------
    machine : Excavator
    table : ndarray, shape (rows, len(COLUMNS))
        See :func:`series`.
    states : ndarray, shape (rows, SIZE)
    """

    machine: Excavator
    table: np.ndarray
    states: np.ndarray

    def column(self, name: str) -> np.ndarray:
        """Return one column by its name, shape (rows,); InputError for a name that is none."""
        if name not in COLUMNS:
            raise InputError(f'column = {name!r}, allowed: {", ".join(COLUMNS)}')
        return self.table[:, COLUMNS.index(name)]

    def magnitude(self, name: str) -> np.ndarray:
        """Return the size of a force [N] that has columns ``name_x`` and ``name_z``."""
        return np.asarray(np.hypot(self.column(f'{name}_x'), self.column(f'{name}_z')))

    def time_to_sweep(self) -> float | None:
        """Return when the bucket has turned by the scenario's sweep [s]; None if it does not."""
        sweep = np.radians(self.machine.scenario.sweep_deg)
        swept, times = self.column('swept'), self.column('time')
        beyond = np.flatnonzero(swept >= sweep)
        if not sweep or not beyond.size:
            return None
        k = int(beyond[0])
        if k == 0:
            return float(times[0])
        return float(np.interp(sweep, swept[k - 1 : k + 1], times[k - 1 : k + 1]))

    def stalled(self) -> bool:
        """Tell whether the bucket is pushed and stands at the end, before it has swept."""
        times, swept = self.column('time'), self.column('swept')
        begin = times[-1] - _STALL_TIME
        # Rows may be farther apart than that.
        last = np.append(swept[times >= begin], np.interp(begin, times, swept))
        return bool(
            self.time_to_sweep() is None
            and self._pushes()
            and times[-1] >= 2.0 * _STALL_TIME
            and np.ptp(last) < _STALL_ANGLE
        )

    def _pushes(self) -> bool:
        """Tell whether the bucket's valve is open at the end, or its force given."""
        bucket = self.machine.parameters.cylinders[CYLINDERS.index('bucket')]
        spool = float(self.column('spool_bucket')[-1])
        given = self.machine.scenario.mode == 'printed'
        return given or spool > bucket.valve.dead_band

    def stopped(self) -> tuple[str, ...]:
        """Return the cylinders that met an end of their stroke."""
        return tuple(
            c.name
            for c in self.machine.parameters.cylinders
            if self.column(f'length_{c.name}').min() < c.retracted - _ROUNDING
            or self.column(f'length_{c.name}').max() > c.extended + _ROUNDING
        )

    def energy_error(self) -> float:
        """
        Return the largest error of the energy balance over the largest energy that was moved.

        Work of the cylinders = change of kinetic, potential and spring energy + work on the soil +
        losses. Less than 1 J counts as 1 J: of a machine at rest nothing but rounding moves.
        """
        parts = [self.column(f'energy_{kind}') for kind in ('kinetic', 'potential', 'spring')]
        held = np.sum(parts, axis=0)
        spent = self.column('work_soil') + self.column('work_lost')
        work = np.sum([self.column(f'work_{name}') for name in CYLINDERS], axis=0)
        change = held - held[0]
        scale = max(_SMALL_ENERGY, *(float(np.abs(p).max()) for p in (change, spent, work)))
        return float(np.abs(change + spent - work).max()) / scale

    def summary(self) -> dict[str, Any]:
        """Return sweep, stall, largest forces and the energy balance as plain numbers."""
        return {
            'mode': self.machine.scenario.mode,
            'cohesion_pa': self.machine.parameters.soil.cohesion,
            'duration_s': float(self.column('time')[-1]),
            'sweep_deg': float(np.degrees(self.column('swept')[-1])),
            'time_to_sweep_s': self.time_to_sweep(),
            'stalled': self.stalled(),
            'peak_soil_force_n': float(self.column('soil_force').max()),
            'peak_reactions_n': {name: float(self.magnitude(name).max()) for name in REACTIONS},
            'peak_pressures_pa': {
                name: max(float(self.column(f'{side}_{name}').max()) for side in _SIDES)
                for name in CYLINDERS
            },
            'at_stroke_end': list(self.stopped()),
            'energy_error': self.energy_error(),
        }
