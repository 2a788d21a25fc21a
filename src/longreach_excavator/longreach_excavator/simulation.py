"""Runs of an excavator as tables: the observed quantities, summaries, and simulations."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

import numpy as np

from longreach_excavator.columns import CARRIED, COLUMNS, OBSERVED, REACTIONS
from longreach_excavator.constants import Constants
from longreach_excavator.kinematics import pin_places
from longreach_excavator.linkage import CYLINDERS
from longreach_excavator.machine import SAMPLE_TIME, STEP, Excavator
from longreach_excavator.motion import HEAD, RATE, SIZE, SOIL, SPOOL, WORK
from longreach_excavator.observation import NOTHING, energy, observe
from longreach_excavator.parameters import CylinderParameters, ExcavatorParameters
from longreach_excavator.scenario import Scenario
from longreach_excavator.soil import resistance_at
from longreach_excavator.terrain import FIRM, places
from longreach_machine.hydraulic_columns import port_columns, port_series
from longreach_machine.machine import late_events, sample_counts
from longreach_machine.runs import Columns, Run, record

# Pressures of both sides; tolerance of the ends of a stroke for rounding [m].
_SIDES, _ROUNDING = ('p_head', 'p_rod'), 1e-6
# The bucket has stalled when it turned by less than this angle [rad] in this time [s].
_STALL_ANGLE, _STALL_TIME = np.radians(0.5), 0.5
# Smallest scale of the energy balance [J].
_SMALL_ENERGY = 1.0
# Cohesions of soils are above [Pa], except 0 of sand.
_LEAST_COHESION = 200.0


def columns_of(machine: Excavator) -> Columns:
    """Return the columns of :func:`series`."""
    return Columns((*COLUMNS, *port_columns(machine.constants.actuators, CYLINDERS)))


def series(
    machine: Excavator,
    times: np.ndarray,
    states: np.ndarray,
    p: Constants | None = None,
    acting: np.ndarray = NOTHING,
) -> np.ndarray:
    """Return the columns of times [s] and states; ``p``, ``acting``: see :func:`observe`."""
    p = p or machine.constants
    seen, energies = np.empty((len(states), len(OBSERVED))), np.empty((len(states), 3))
    observe(states, machine.given_forces(times), acting, p, seen)
    energy(states, p, energies)
    sizes = [OBSERVED.index(f'{name}_x') for name in ('soil', *REACTIONS)]
    vapour = machine.parameters.oil.vapour_pressure
    start = machine.scenario.angles(machine.parameters).sum()
    return np.concatenate(
        [
            times[:, None],
            states[:, :HEAD],
            seen[:, : -len(CARRIED)],
            *(np.hypot(*seen[:, [k, k + 1]].T)[:, None] for k in sizes),
            (start - states[:, :RATE].sum(axis=-1))[:, None],
            # Below the vapour pressure the state counts missing oil.
            np.maximum(states[:, HEAD:SPOOL], vapour),
            states[:, SPOOL:SOIL],
            states[:, WORK:SIZE],
            energies,
            seen[:, -len(CARRIED) :],
            port_series(p.actuators, states[:, HEAD:SOIL]),
        ],
        axis=1,
    )


@dataclasses.dataclass(frozen=True)
class ExcavatorRun(Run[ExcavatorParameters]):
    """A simulated run of an excavator."""

    UNITS: ClassVar = {
        **dict.fromkeys(('cohesion_pa', 'peak_pressures_pa'), 'Pa'),
        **dict.fromkeys(('duration_s', 'time_to_sweep_s'), 's'),
        'sweep_deg': 'deg',
        **dict.fromkeys(('bucket_joint_moved_m', 'soil_dumped_at_m'), 'm'),
        **dict.fromkeys(('soil_cut_m3', 'soil_dumped_m3', 'soil_in_bucket_m3'), 'm^3'),
        **dict.fromkeys(('soil_dumped_kg', 'soil_in_bucket_kg', 'most_in_bucket_kg'), 'kg'),
        **dict.fromkeys(('peak_soil_force_n', 'peak_reactions_n'), 'N'),
    }

    machine: Excavator
    states: np.ndarray  # (rows, SIZE)

    def time_to_sweep(self) -> float | None:
        """Return the time at which the scenario's sweep ends [s]; None if it does not end."""
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
        """Return whether the bucket is driven but rests at the end, at no end of its stroke."""
        times, swept = self.column('time'), self.column('swept')
        begin = times[-1] - _STALL_TIME
        # The interval of rows may be longer.
        last = np.append(swept[times >= begin], np.interp(begin, times, swept))
        bucket = self.parameters.cylinders[CYLINDERS.index('bucket')]
        is_open = abs(self.column('spool_bucket')[-1]) > bucket.valve.dead_band
        return bool(
            self.time_to_sweep() is None
            and (is_open or self.machine.scenario.is_driven)
            and times[-1] >= 2.0 * _STALL_TIME
            and np.ptp(last) < _STALL_ANGLE
            and not self._at_stops(bucket)[-1]
        )

    def bucket_joint(self) -> np.ndarray:
        """Return the displacement of the bucket's joint D since time 0, x + j z [m], (rows,)."""
        place = pin_places(self.parameters, self.states[:, :RATE])[:, 2]
        return np.asarray(place - place[0])

    def stopped(self) -> tuple[str, ...]:
        """Return the names of the cylinders that reached an end of their stroke."""
        return tuple(c.name for c in self.parameters.cylinders if self._at_stops(c).any())

    def _at_stops(self, cylinder: CylinderParameters) -> np.ndarray:
        """Return in which rows a cylinder is beyond an end of its stroke."""
        lengths = self.column(f'length_{cylinder.name}')
        low, high = cylinder.retracted - _ROUNDING, cylinder.extended + _ROUNDING
        return np.asarray((lengths < low) | (lengths > high))

    def energy_error(self) -> float:
        """Return the largest error of the energy balance over the largest energy exchanged."""
        # Work of the cylinders = change of kinetic, potential and spring energy + work on the soil
        # + losses; at least 1 J, as at rest all changes are rounding.
        parts = [self.column(f'energy_{kind}') for kind in ('kinetic', 'potential', 'spring')]
        held = np.sum(parts, axis=0)
        spent = self.column('work_soil') + self.column('work_lost')
        work = np.sum([self.column(f'work_{name}') for name in CYLINDERS], axis=0)
        change = held - held[0]
        scale = max(_SMALL_ENERGY, *(float(np.abs(p).max()) for p in (change, spent, work)))
        return float(np.abs(change + spent - work).max()) / scale

    def swing(self) -> dict[str, Any]:
        """Return how far and how fast the bucket turned, and whether it stalled."""
        return {
            'sweep_deg': float(np.degrees(self.column('swept')[-1])),
            'time_to_sweep_s': self.time_to_sweep(),
            'stalled': self.stalled(),
            'bucket_joint_moved_m': float(np.abs(self.bucket_joint()).max()),
        }

    def soil(self) -> dict[str, Any]:
        """Return what was cut, dumped, and is in the bucket at the end, of a run on terrain."""
        # Volumes are those of undisturbed soil: cut is what is no longer firm, dumped what lies
        # loose on the ground, at the x of its centroid; None for no volume.
        ground = self.machine.constants.ground
        parts = np.split(self.states[[0, -1], SIZE + FIRM :], 2, axis=1)
        firm, loose = (ground.cell * ground.width * (part[1] - part[0]) for part in parts)
        volume, masses = float(loose.sum()), self.column('bucket_mass')
        return {
            'soil_cut_m3': float(-firm.sum()),
            'soil_dumped_m3': volume,
            'soil_dumped_kg': ground.density * volume,
            'soil_dumped_at_m': float(loose @ places(ground)) / volume if volume else None,
            'soil_in_bucket_m3': float(self.column('bucket_volume')[-1]),
            'soil_in_bucket_kg': float(masses[-1]),
            'most_in_bucket_kg': float(masses.max()),
        }

    def summary(self) -> dict[str, Any]:
        """Return the swing, the soil on terrain, largest forces and the energy balance."""
        terrain = self.machine.constants.ground.cells > 0
        return {
            'mode': self.machine.scenario.mode,
            'cohesion_pa': self.parameters.soil.cohesion,
            'duration_s': float(self.column('time')[-1]),
            **(self.swing() if self.machine.scenario.sweep_deg or not terrain else {}),
            **(self.soil() if terrain else {}),
            'peak_soil_force_n': float(self.column('soil_force').max()),
            'peak_reactions_n': {
                name: float(self.column(f'load_{name}').max()) for name in REACTIONS
            },
            'peak_pressures_pa': {
                name: max(float(self.column(f'{side}_{name}').max()) for side in _SIDES)
                if name in self._with_oil()
                else None
                for name in CYLINDERS
            },
            'at_stroke_end': list(self.stopped()),
            'energy_error': self.energy_error(),
        }

    def _with_oil(self) -> list[str]:
        """Return the names of the cylinders whose force is not prescribed."""
        given = self.machine.given_forces(np.zeros(1))[0]
        return [name for name, force in zip(CYLINDERS, given, strict=True) if np.isnan(force)]

    def warnings(self) -> tuple[str, ...]:
        """Return warnings about cavitation, missing stops, depth: swing, units, and events."""
        vapour, cohesion = self.parameters.oil.vapour_pressure, self.parameters.soil.cohesion
        found = [
            f'{name} ran out of oil for some time (cavitation): its pressure stood at the vapour'
            ' pressure'
            for name in self._with_oil()
            if self.stack([f'{side}_{name}' for side in _SIDES]).min() <= vapour
        ]
        if self.machine.scenario.mode == 'thesis':
            found += [
                f'{name} passed an end of its stroke, where mode: thesis has no stop'
                for name in self.stopped()
            ]
        found += self._swing_warning()
        if self.machine.scenario.soil and 0.0 < cohesion < _LEAST_COHESION:
            found += [f'the cohesion is {cohesion:g} Pa, in Pa, not kPa; soils have 0 to 1e5 Pa']
        return (*found, *super().warnings())

    def _swing_warning(self) -> tuple[str, ...]:
        """Return a warning if depth: swing is used although the bucket's joint has moved."""
        moved = self.bucket_joint()
        doubt = self.machine.scenario.doubt_of_swing(float(np.abs(moved).max()))
        if not doubt:
            return ()
        depth = self.column('depth')
        k = int(depth.argmax())
        counted, below = resistance_at(
            self.parameters.soil, np.array([depth[k], depth[k] - moved[k].imag])
        )
        more = f'{100.0 * (counted / below - 1.0):+.0f} %' if below > 0.0 else 'all'
        text = (
            f'{doubt}; at the deepest, t = {self.column("time")[k]:.3g} s, the law differs by'
            f' {more} from that at the depth below the surface'
        )
        return (text,)


def simulate(
    parameters: ExcavatorParameters,
    scenario: Scenario,
    step: float = STEP,
    sample_time: float = SAMPLE_TIME,
    tolerance: float = 0.0,
) -> ExcavatorRun:
    """
    Simulate a scenario.

    A run whose state does not stay finite ends with the last valid row; its message states the
    reason. In modes printed and thesis a run ends with the sweep: the forces were measured during
    digging and are not valid afterwards.

    Parameters
    ----------
    parameters : ExcavatorParameters
    scenario : Scenario
    step : float
        Length of a step [s].
    sample_time : float
        Interval of rows [s], a whole number of steps.
    tolerance : float
        See :class:`Excavator`.

    Raises
    ------
    InputError
        When scenario, excavator and steps are inconsistent.
    """
    machine = Excavator(parameters, scenario, step, tolerance)
    state, columns = machine.initial_state(), columns_of(machine)
    width = len(columns) + state.y.size
    every, samples = sample_counts(scenario.duration, sample_time, step, width)
    ends = scenario.is_driven and scenario.sweep_deg > 0.0
    ended = machine.has_swept if ends else None
    first = (state.y,)
    times, (rows,), _, message = record(machine, state, first, samples, every, ended=ended)
    table = series(machine, times, rows)
    late = late_events(scenario, 'valve_commands')
    return ExcavatorRun(
        machine.parameters, columns, table, machine, rows, message=message, late=late
    )
