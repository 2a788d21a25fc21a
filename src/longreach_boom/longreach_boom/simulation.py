"""Runs of the boom as tables: the observed quantities, summaries, and simulations."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, ClassVar

import numpy as np

from longreach_boom.follower import BoomFollower, Measurement
from longreach_boom.kinematics import TRUCK_JOINTS, beam_frames, point_motion, truck_frame
from longreach_boom.machine import AUTOMATIC, SAMPLE_TIME, STEP, Boom, longest_step
from longreach_boom.model import constants_of
from longreach_boom.parameters import BoomParameters, load_boom
from longreach_boom.scenario import Scenario
from longreach_boom.state import (
    BoomState,
    StateParts,
    flows_of,
    hydraulic_forces,
    piston_positions,
    truck_of,
)
from longreach_boom.statics import beyond_relief
from longreach_boom.strain import strains
from longreach_machine.hydraulic_columns import port_columns, port_series
from longreach_machine.machine import Spools, late_events, sample_counts, step_time
from longreach_machine.runs import Column, Columns, Derived, Run, each, record, sources
from longreach_machine.trajectories import Trajectory

_MODES = (
    'of the piston: -2 at the end of its retraction, -1 slides inwards, 0 sticks,'
    ' 1 slides outwards, 2 at the end of its extension'
)


def columns_of(boom: BoomParameters, followed: bool = False) -> Columns:
    """Return the columns of :func:`series`, and of a followed trajectory its joint angles."""
    numbers = range(1, boom.size + 1)
    beams, cylinders = ([item.name for item in items] for items in (boom.beams, boom.cylinders))
    joints, oil = sources('joint_states', cylinders), sources('hydraulics', cylinders)
    shapes = [name + what for what in ('_joint', '_deflection', '_slope') for name in beams]
    bent = joints('position', shapes)
    truck = joints('position', TRUCK_JOINTS) if boom.truck else []

    def tip(axis: int, number: int = boom.size) -> Derived:
        return Derived((*bent, *truck), partial(_tip, boom, axis, number))

    def column(family: str, unit: str, meaning: str, sources: Iterable[Any] = ()) -> list[Column]:
        return each(f'{family}_i', numbers, unit, meaning, sources, mark='i')

    last, own = (
        'tip of the last beam, from joint 1 at rest',
        'tip of each beam, from joint 1 at rest',
    )
    found = [
        Column('time', 's', 'of the sample'),
        Column('tip_x', 'm', last, tip(0)),
        Column('tip_z', 'm', last, tip(1)),
        *column('phi', 'rad', 'joint angle', bent[: boom.size]),
        *column('piston', 'm', 'piston position', joints('position')),
        *column('force', 'N', 'p_1 A_1 - p_2 A_2', joints('effort')),
        *column('strain', '1', 'strain gauge', sources('strain', beams)('strain')),
        *column('p_head', 'Pa', 'pressure of the head side, p_1', oil('head_pressure')),
        *column('p_rod', 'Pa', 'pressure of the rod side, p_2', oil('rod_pressure')),
        *column('spool', '1', 'spool position', oil('spool')),
        *column('mode', '', _MODES),
        *column('tip_x', 'm', own, [tip(0, k) for k in numbers]),
        *column('tip_z', 'm', own, [tip(1, k) for k in numbers]),
        *port_columns(constants_of(boom).actuators, numbers, mark='i'),
    ]
    if boom.truck:
        gear = Derived(tuple(truck), partial(_gear, boom))
        found += [
            Column(TRUCK_JOINTS[0], 'm', 'of the truck, upwards', truck[0]),
            Column(TRUCK_JOINTS[1], 'rad', 'of the truck, its front upwards', truck[1]),
            Column('gear_z', 'm', 'slewing gear at joint 1, upwards', gear),
        ]
    if followed:
        found += column('wanted', 'rad', 'joint angle of the trajectory')
    return Columns(found)


def _gear(boom: BoomParameters, values: np.ndarray) -> np.ndarray:
    """Return the height of the slewing gear [m] for heave [m] and pitch [rad] (rows, 2)."""
    still = np.zeros(len(values))
    return np.asarray(truck_frame(boom, [*values.T, still, still]).origin.imag)


def _tip(boom: BoomParameters, axis: int, number: int, values: np.ndarray) -> np.ndarray:
    """Return x (axis 0) or z (1) of the tip of a beam, from 1 on [m]; Henikl 2015, (1) to (5)."""
    # ``values`` (rows, 3 N) are joint angles [rad], deflections [m] and slopes of the beams' tips;
    # with a truck on springs, followed by its heave [m] and pitch [rad].
    angles, deflections, slopes = np.split(values.T[: 3 * boom.size], 3)
    still = np.zeros(len(values))
    tip = beam_frames(
        [beam.length for beam in boom.beams],
        boom.ritz.rotation == 'printed',
        list(angles),
        [still] * boom.size,
        [(w, still, slope, still) for w, slope in zip(deflections, slopes, strict=True)],
        truck_frame(boom, [*values.T[3 * boom.size :], still, still]),
    )[number].origin
    return np.asarray(tip.imag if axis else tip.real)


def series(
    boom: BoomParameters,
    times: np.ndarray,
    states: np.ndarray,
    modes: np.ndarray,
    strain: np.ndarray,
) -> np.ndarray:
    """Return the table of columns from times [s], states, modes and strains of all rows."""
    constants = constants_of(boom)
    parts = StateParts.of(states, boom)
    n = boom.size * (1 + boom.ritz.functions)
    truck = truck_of(states, boom)
    tips = np.stack(
        [
            point_motion(boom, parts.q, parts.v, i, beam.length, truck=truck).position
            for i, beam in enumerate(boom.beams)
        ],
        axis=-1,
    )
    angles = parts.q[:, : boom.size]
    return np.concatenate(
        [
            times[:, None],
            tips[:, :, -1],
            angles,
            piston_positions(angles, constants),
            hydraulic_forces(parts, constants),
            strain,
            parts.head_pressures,
            parts.rod_pressures,
            parts.spools,
            modes,
            tips[:, 0],
            tips[:, 1],
            port_series(constants.actuators, states[:, 2 * n : 2 * n + 3 * boom.size]),
            *([truck[:, :2], _gear(boom, truck[:, :2])[:, None]] if boom.truck else []),
        ],
        axis=1,
    )


@dataclasses.dataclass(frozen=True)
class BoomRun(Run[BoomParameters]):
    """A simulated run with its states (rows, 2 n + 3 N), and the cylinders that cavitated."""

    UNITS: ClassVar = {
        'duration': 's',
        'tip_start': 'm',
        'tip_end': 'm',
        'tip_highest': 'm',
        'tip_lowest': 'm',
        'piston_travel': 'm',
        'highest_pressure': 'Pa',
        'lowest_pressure': 'Pa',
        'joint_error': 'rad',
    }

    states: np.ndarray
    cavitated: tuple[str, ...] = ()

    def columns_like(self, name: str) -> np.ndarray:
        """Return the columns ``name_1`` to ``name_N``, shape (rows, N)."""
        return self.stack([f'{name}_{i + 1}' for i in range(self.parameters.size)])

    def summary(self) -> dict[str, Any]:
        """Return tip positions, piston travel and pressures; all None for a run without rows."""
        if not len(self.table):
            return dict.fromkeys((*self.UNITS, 'cavitated'))
        x, z = self.column('tip_x'), self.column('tip_z')
        pressures = [self.columns_like(side) for side in ('p_head', 'p_rod')]
        return {
            'duration': float(self.column('time')[-1]),
            'tip_start': [float(x[0]), float(z[0])],
            'tip_end': [float(x[-1]), float(z[-1])],
            'tip_highest': float(z.max()),
            'tip_lowest': float(z.min()),
            'piston_travel': np.ptp(self.columns_like('piston'), axis=0).tolist(),
            'highest_pressure': float(np.max(pressures)),
            'lowest_pressure': float(np.min(pressures)),
            'cavitated': list(self.cavitated),
            'joint_error': self.joint_error(),
        }

    def joint_error(self) -> list[float]:
        """Return the largest error of each joint [rad]; empty without a trajectory."""
        if 'wanted_1' not in self.columns.names:
            return []
        errors = np.abs(self.columns_like('phi') - self.columns_like('wanted')).max(axis=0)
        return list(errors.tolist())

    def warnings(self) -> tuple[str, ...]:
        """Return warnings about overloaded cylinders, cavitation, and what does not act."""
        if not len(self.table):
            return ()
        boom = self.parameters
        head, rod = (self.columns_like(side)[0] for side in ('p_head', 'p_rod'))
        over = np.maximum(head, rod) > boom.oil.supply_pressure
        heavy = [c.name for c, needs in zip(boom.cylinders, over, strict=True) if needs]
        return (
            *(
                f'{name} needs more than the supply pressure: its closed valve holds this boom,'
                ' its pump could not have lifted it'
                for name in heavy
            ),
            *(
                f'{name} carries more at rest than its relief valve holds: it gives way'
                for name in beyond_relief(boom, head, rod)
            ),
            *(
                f'{name} ran out of oil for some time (cavitation): its pressure stood at the'
                ' vapour pressure'
                for name in self.cavitated
            ),
            *super().warnings(),
        )


def simulate(
    parameters: BoomParameters,
    scenario: Scenario,
    step: float = STEP,
    sample_time: float = SAMPLE_TIME,
    progress: bool = False,
) -> BoomRun:
    """
    Simulate a scenario in steps of a length [s].

    A ``step`` of AUTOMATIC is that of :func:`longreach_boom.machine.longest_step`. ``sample_time``
    is the interval of rows and of the controller's cycles [s], a whole number of steps;
    ``progress`` shows a bar on stderr, on a terminal and for runs of more than 1 s. If the state
    becomes non-finite, the run ends at the last row before, with a message. InputError when
    scenario, boom and steps are inconsistent.
    """
    if step == AUTOMATIC:
        step = longest_step(parameters, scenario, sample_time)
    boom = Boom(parameters, scenario, step)
    state = boom.initial_state()
    columns = columns_of(parameters, followed=bool(scenario.trajectory))
    width = len(columns) + state.y.size
    every, samples = sample_counts(scenario.duration, sample_time, step, width)
    trajectory, command = following(boom, every * step)
    first = (state.y, state.modes, np.zeros((parameters.size, 2)))
    times, (rows, modes, forces), _, message = record(
        boom, state, first, samples, every, command=command, progress=progress
    )
    N, n = parameters.size, parameters.size * (1 + parameters.ritz.functions)
    low = rows[:, 2 * n : 2 * n + 2 * N].min(axis=0) < parameters.oil.vapour_pressure
    cavitated = tuple(c.name for i, c in enumerate(parameters.cylinders) if low[i] or low[N + i])
    strain = _strains_of(boom, every, rows, modes, forces)
    table = series(parameters, times, rows, modes, strain)
    if trajectory is not None:
        table = np.hstack([table, [trajectory.at(time).angles for time in times]])
    events = 'valve_commands', 'release', 'attach', 'forces', 'pumping', 'gusts'
    late = late_events(scenario, *events, paths=('trajectory',))
    return BoomRun(parameters, columns, table, rows, cavitated, message=message, late=late)


def following(
    boom: Boom, sample_time: float
) -> tuple[Trajectory | None, Callable[[int, BoomState], Spools] | None]:
    """
    Return the trajectory of a scenario, and the controller's commands to samples, in their order.

    None for a scenario without a trajectory.
    """
    if not boom.scenario.trajectory:
        return None, None
    follower = BoomFollower(boom.parameters, boom.scenario, sample_time)
    memory = follower.begin(boom.scenario.angles(boom.parameters))
    N = boom.parameters.size

    def command(sample: int, state: BoomState) -> Spools:
        nonlocal memory
        parts = StateParts.of(state.y, boom.parameters)
        angles = parts.q[:N]
        pistons = piston_positions(angles, boom.constants(()))
        measured = Measurement(angles, pistons, parts.head_pressures, parts.rod_pressures)
        time = step_time(sample, follower.sample_time)
        memory, spools = follower.cycle(memory, time, measured)
        return spools

    return memory.trajectory, command


def _strains_of(
    boom: Boom, every: int, rows: np.ndarray, modes: np.ndarray, forces: np.ndarray
) -> np.ndarray:
    """Return the strains of all rows, each with loads and forces of the step that ends at it."""
    parameters, scenario = boom.parameters, boom.scenario
    carried = scenario.carried(parameters)
    # A change acts from its step on; the row at that time is still without it.
    edges = [round(time / boom.step) // every + 1 for time, _ in carried[1:]]
    pieces = zip([0, *edges], [*edges, len(rows)], carried, strict=True)
    if scenario.disturbances:
        states = [
            BoomState(rows[k], modes[k], loads, forces[k])
            for first, end, (_, loads) in pieces
            for k in range(first, min(end, len(rows)))
        ]
        return np.array([strains(parameters, state, scenario.friction) for state in states])
    parts = [
        BoomState(rows[first:end], modes[first:end], loads) for first, end, (_, loads) in pieces
    ]
    return np.concatenate([strains(parameters, part, scenario.friction) for part in parts])


def warm_up() -> None:
    """Compile the kernels, or load them from the cache."""
    # A boom that differs from all others, so that cache look-ups find a boom by identity.
    parameters = load_boom().replace(gravity=1.0)
    boom = Boom(parameters, Scenario(duration=1.0, pose=parameters.poses[0].name))
    command = (0.0,) * parameters.size
    state = boom.initial_state()
    state = boom.advance(state, command, 0.0, boom.step)
    boom.joint_sample(state, command)
    strains(parameters, state)
    flows_of(StateParts.of(state.y, parameters), boom.constants(()))
