"""
Simulation of the boom: the machine that nodes drive, and whole runs as tables.

Commands are constant from sample to sample, loads come and go on steps, so a run is a sequence of
calls of one compiled kernel that takes steps of equal length. Cutting the sequence elsewhere
changes nothing: a run over ROS is the library's own to the last bit.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from typing import Any, NamedTuple

import numpy as np
from tqdm import tqdm

from longreach_boom.control import JointController, Trajectory
from longreach_boom.description import (
    swing_angles,
    swing_joints,
    swing_ratios,
    swinging_cylinders,
)
from longreach_boom.model import Constants, Load, boom_bases, constants_of, point_motion
from longreach_boom.modes import fastest_rate
from longreach_boom.motion import OUTWARDS, STUCK, advance_motion
from longreach_boom.parameters import BoomParameters, load_boom
from longreach_boom.scenario import Scenario, step_count
from longreach_boom.statics import equilibrium
from longreach_dynamics.errors import InputError
from longreach_dynamics.linkages import pistons_and_arms
from longreach_dynamics.machine import JointSample, step_time
from longreach_dynamics.stepping import IntegrationError

__all__ = [
    'SAMPLE_TIME',
    'STEP',
    'Boom',
    'BoomCommand',
    'BoomState',
    'Result',
    'StateParts',
    'columns_of',
    'hydraulic_forces',
    'piston_positions',
    'series',
    'simulate',
    'strains',
    'warm_up',
]

STEP = 1e-3  # [s]
SAMPLE_TIME = 5e-3  # [s], of the controller, of rows and of messages
# Classical Runge-Kutta steps are stable up to 2.78 over the fastest rate; poses differ a little.
_STABILITY = 2.3
# Steps in one call of compiled code, a fraction of a second.
_PIECE = 20_000
# A table of so many rows takes some gigabytes.
_MOST_ROWS = 10_000_000


class BoomCommand(NamedTuple):
    """What the valves are told."""

    spools: tuple[float, ...]  # in [-1, 1], positive runs the piston out


class BoomState(NamedTuple):
    """State of a boom: continuous part, modes of the pistons, loads. Never changed in place."""

    y: np.ndarray  # (2 n + 3 N,): q, q', p_1, p_2, s_v; see longreach_boom.motion
    modes: np.ndarray  # (N,) of int64
    loads: tuple[Load, ...] = ()


class StateParts(NamedTuple):
    """The parts of one or many states y (..., 2 n + 3 N)."""

    q: np.ndarray  # (..., n)
    v: np.ndarray  # (..., n)
    head_pressures: np.ndarray  # (..., N) [Pa]
    rod_pressures: np.ndarray  # (..., N) [Pa]
    spools: np.ndarray  # (..., N)

    @classmethod
    def of(cls, y: np.ndarray, boom: BoomParameters) -> StateParts:
        """
        Return the parts of states of a boom.

        A pressure that stands below that of the vapour counts missing oil; what is there, and what
        is given here, is the vapour pressure.
        """
        N = boom.size
        n = N * (1 + boom.ritz.functions)
        vapour = boom.oil.vapour_pressure
        return cls(
            y[..., :n],
            y[..., n : 2 * n],
            np.maximum(y[..., 2 * n : 2 * n + N], vapour),
            np.maximum(y[..., 2 * n + N : 2 * n + 2 * N], vapour),
            y[..., 2 * n + 2 * N :],
        )


@dataclasses.dataclass(frozen=True)
class Boom:
    """
    The boom as a machine: what :class:`longreach_dynamics.machine.Machine` asks for.

    Parameters
    ----------
    parameters : BoomParameters
    scenario : Scenario
        For pose, loads and their changes.
    step : float
        Length of a step [s].

    Raises
    ------
    InputError
        When the scenario does not fit the boom or the step.
    """

    parameters: BoomParameters
    scenario: Scenario
    step: float = STEP

    def __post_init__(self) -> None:
        """Check the scenario."""
        # The spools, and a controller's cycle, want no longer ones; see also _check_step.
        if not 1e-6 <= self.step <= 5e-3:
            raise InputError(f'step = {self.step} s, allowed: [1e-06, 0.005] s')
        self.scenario.check_with(self.parameters, self.step)
        changes = self.scenario.load_changes(self.parameters)
        object.__setattr__(self, '_constants', {})
        object.__setattr__(
            self, '_changes', [(round(time / self.step), load) for time, load in changes]
        )

    def constants(self, loads: tuple[Load, ...]) -> Constants:
        """Return the numbers of the boom with loads, for compiled code."""
        # Looked up in each call of advance: hashing all parameters would take longer than a step.
        known: dict[tuple[Load, ...], Constants] = self.__dict__['_constants']
        if loads not in known:
            known.clear()
            known[loads] = constants_of(self.parameters, loads, self.scenario.friction)
        return known[loads]

    def initial_state(self) -> BoomState:
        """
        Return the boom at rest in the scenario's pose with its loads, valves closed.

        Raises
        ------
        InputError
            When the step is too long for the boom.
        LongreachError
            When there is no equilibrium.
        """
        boom, loads = self.parameters, self.scenario.initial_loads(self.parameters)
        rest = equilibrium(boom, self.scenario.angles(boom), loads)
        zeros = np.zeros(boom.size)
        y = np.concatenate(
            [rest.q, np.zeros(rest.q.size), rest.head_pressures, rest.rod_pressures, zeros]
        )
        self._check_step(rest.q, rest.forces, loads)
        static = self.constants(loads).static
        modes = np.where(static > 0.0, STUCK, OUTWARDS).astype(np.int64)
        return BoomState(y, modes, loads)

    def _check_step(self, q: np.ndarray, forces: np.ndarray, loads: tuple[Load, ...]) -> None:
        """Raise InputError when the step is too long for the boom's fastest motion."""
        fastest = fastest_rate(q, forces, self.constants(loads))
        if self.step * fastest > _STABILITY:
            raise InputError(
                f'step = {self.step:g} s, allowed for this boom in this pose: at most'
                f' {_STABILITY / fastest:.2g} s, because its fastest motion is at'
                f' {fastest / (2.0 * math.pi):.4g} Hz; short, light or stiff beams have such'
            )

    def attach(self, state: BoomState, load: Load) -> BoomState:
        """Return the state with one more load, which moves with the boom from now on."""
        return state._replace(loads=(*state.loads, load))

    def release(self, state: BoomState) -> BoomState:
        """Return the state without loads."""
        return state._replace(loads=())

    def advance(
        self, state: BoomState, command: BoomCommand, time: float, duration: float
    ) -> BoomState:
        """
        Return the state ``duration`` [s] after ``time`` [s], with a constant command.

        Raises
        ------
        IntegrationError
            When the state does not stay finite.
        """
        steps = round(duration / self.step)
        return self.advance_recorded(state, command, round(time / self.step), steps, 0)[0]

    def advance_recorded(
        self, state: BoomState, command: BoomCommand, first: int, steps: int, every: int
    ) -> tuple[BoomState, np.ndarray, np.ndarray]:
        """
        Advance from step ``first`` on, and record.

        Returns
        -------
        state : BoomState
        table : ndarray, shape (rows, 2 n + 3 N)
            The state after every ``every``-th step, counted from step 0; none with 0.
        modes : ndarray of int64, shape (rows, N)

        Raises
        ------
        IntegrationError
            With state, command and time at the beginning of the step that failed.
        """
        self._check_call(command, steps)
        last = first + steps
        rows = (last // every - first // every) if every else 0
        table = np.empty((rows, state.y.size))
        mode_table = np.empty((rows, state.modes.size), dtype=np.int64)
        y, modes, loads = state.y.copy(), state.modes.copy(), state.loads
        spools = np.array(command.spools, dtype=float)
        cuts = {at for at, _ in self._load_changes if first < at < last}
        row = 0
        for begin, end in itertools.pairwise(sorted(cuts | {first, last})):
            for at, load in self._load_changes:
                if at == begin:
                    loads = () if load is None else (*loads, load)
            taken = advance_motion(
                y,
                modes,
                spools,
                self.constants(loads),
                self.step,
                begin,
                end - begin,
                every,
                table[row:],
                mode_table[row:],
            )
            if taken < end - begin:
                self._fail(begin + taken, y, modes, loads, command)
            row = (end // every - first // every) if every else 0
        return BoomState(y, modes, loads), table, mode_table

    def _check_call(self, command: BoomCommand, steps: int) -> None:
        """Raise InputError for what compiled code must not be given."""
        N = self.parameters.size
        if len(command.spools) != N:
            raise InputError(f'command has {len(command.spools)} spools, allowed: {N}')
        if not all(abs(spool) <= 1.0 for spool in command.spools):
            raise InputError(f'spools = {tuple(command.spools)}, allowed: [-1, 1]')
        if steps < 0:
            raise InputError(f'duration is {steps} steps, allowed: 0 or more')

    @property
    def _load_changes(self) -> list[tuple[int, Load | None]]:
        """Return (step, load or None for a release), in their order."""
        changes: list[tuple[int, Load | None]] = self.__dict__['_changes']
        return changes

    def _fail(
        self,
        count: int,
        y: np.ndarray,
        modes: np.ndarray,
        loads: tuple[Load, ...],
        command: BoomCommand,
    ) -> None:
        """Raise the error of a step that did not end with a finite state."""
        time = step_time(count, self.step)
        raise IntegrationError(
            f'the boom runs away in the step at t = {time:g} s: a number is not finite, or a beam'
            ' bends by more than 1 rad, far beyond the small deflections of the model. To see it'
            f' again: Boom.advance(BoomState(np.array({y.tolist()}), np.array({modes.tolist()}),'
            f' {tuple(loads)}), BoomCommand({tuple(command.spools)}),'
            f' {time:g}, {self.step:g}). Lighten the load, take a shorter step, or look for'
            ' parameters of impossible size'
        )

    def joint_sample(self, state: BoomState, command: BoomCommand) -> JointSample:  # noqa: ARG002
        """
        Return joints, pistons, and how each beam's tip is bent.

        Joint angles phi [rad] with the cylinder's torque, piston positions [m] with its force,
        deflections w(L) [m] and slopes w'(L) [rad], swing of cylinders [rad]; see urdf/boom.urdf.
        """
        boom, constants = self.parameters, self.constants(state.loads)
        parts = StateParts.of(state.y, boom)
        N = boom.size
        names: list[str] = []
        positions: list[float] = []
        velocities: list[float] = []
        efforts: list[float] = []
        forces = hydraulic_forces(parts, constants).tolist()
        pistons, arms = pistons_and_arms(constants.linkage, parts.q[None, :N])
        for i, beam in enumerate(boom.beams):
            names.append(f'{beam.name}_joint')
            positions.append(float(parts.q[i]))
            velocities.append(float(parts.v[i]))
            efforts.append(forces[i] * float(arms[0, i]))
        for i, cylinder in enumerate(boom.cylinders):
            names.append(cylinder.name)
            positions.append(float(pistons[0, i]))
            velocities.append(float(arms[0, i] * parts.v[i]))
            efforts.append(forces[i])
        for what, shape in (('deflection', constants.tip), ('slope', constants.tip_slope)):
            for i, beam in enumerate(boom.beams):
                names.append(f'{beam.name}_{what}')
                positions.append(float(shape[i] @ parts.q[N + i :: N]))
                velocities.append(float(shape[i] @ parts.v[N + i :: N]))
                efforts.append(0.0)
        # Barrels of cylinders that swing about their pins.
        swinging = swinging_cylinders(boom)
        angles = parts.q[:N]
        names += swing_joints(boom)
        positions += swing_angles(boom, angles).tolist()
        velocities += (swing_ratios(boom, angles) * parts.v[swinging]).tolist()
        efforts += [0.0] * len(swinging)
        return JointSample(tuple(names), tuple(positions), tuple(velocities), tuple(efforts))


def hydraulic_forces(parts: StateParts, constants: Constants) -> np.ndarray:
    """Return p_1 A_1 - p_2 A_2 [N], shape (..., N)."""
    forces = parts.head_pressures * constants.head_area - parts.rod_pressures * constants.rod_area
    return np.asarray(forces)


def piston_positions(angles: np.ndarray, constants: Constants) -> np.ndarray:
    """Return the piston positions [m] at joint angles (..., N) [rad]."""
    flat = np.ascontiguousarray(np.reshape(angles, (-1, angles.shape[-1])))
    return np.reshape(pistons_and_arms(constants.linkage, flat)[0], angles.shape)


def strains(parts: StateParts, boom: BoomParameters) -> np.ndarray:
    """Return what the strain gauges show, Henikl 2015, (28), shape (..., N)."""
    h = parts.q[..., boom.size :]
    gains, biases = _gauges(boom)
    return np.asarray(h @ gains + biases)


@functools.lru_cache(maxsize=64)
def _gauges(boom: BoomParameters) -> tuple[np.ndarray, np.ndarray]:
    """Return strains of gauges for each h, (N F, N) [1/m], and biases (N,)."""
    N = boom.size
    gains = np.zeros((N * boom.ritz.functions, N))
    for i, (basis, beam) in enumerate(zip(boom_bases(boom), boom.beams, strict=True)):
        gains[i::N, i] = beam.strain_gauge.gain * basis.at(beam.strain_gauge.position, 2)
    return gains, np.array([beam.strain_gauge.bias for beam in boom.beams])


def columns_of(boom: BoomParameters) -> tuple[str, ...]:
    """Return the names of the columns of :func:`series`."""
    names = ('phi', 'piston', 'force', 'strain', 'p_head', 'p_rod', 'spool', 'mode')
    numbered = [f'{name}_{i + 1}' for name in names for i in range(boom.size)]
    return ('time', 'tip_x', 'tip_z', *numbered)


def series(
    boom: BoomParameters, times: np.ndarray, states: np.ndarray, modes: np.ndarray
) -> np.ndarray:
    """
    Return a table of what is to be seen of a run.

    Parameters
    ----------
    boom : BoomParameters
    times : ndarray, shape (rows,)
    states : ndarray, shape (rows, 2 n + 3 N)
    modes : ndarray, shape (rows, N)

    Returns
    -------
    ndarray, shape (rows, 3 + 8 N)
        Columns as in :func:`columns_of`: [s], [m], [rad], [m], p_1 A_1 - p_2 A_2 [N], strain,
        [Pa], spool positions, modes as in :mod:`longreach_boom.motion`.
    """
    constants = constants_of(boom)
    parts = StateParts.of(states, boom)
    last = boom.size - 1
    tip = point_motion(boom, parts.q, parts.v, last, boom.beams[last].length).position
    angles = parts.q[:, : boom.size]
    return np.concatenate(
        [
            times[:, None],
            tip,
            angles,
            piston_positions(angles, constants),
            hydraulic_forces(parts, constants),
            strains(parts, boom),
            parts.head_pressures,
            parts.rod_pressures,
            parts.spools,
            modes,
        ],
        axis=1,
    )


@dataclasses.dataclass(frozen=True)
class Result:
    """
    A run.

    Parameters
    ----------
    boom : BoomParameters
    table : ndarray, shape (rows, 3 + 8 N)
        See :func:`series`.
    states : ndarray, shape (rows, 2 n + 3 N)
    cavitated : tuple of str
        Names of cylinders a chamber of which ran out of oil for some time.
    reference : ndarray, shape (rows, N), optional
        Joint angles of the trajectory that was followed [rad].
    """

    boom: BoomParameters
    table: np.ndarray
    states: np.ndarray
    cavitated: tuple[str, ...]
    reference: np.ndarray | None = None

    def column(self, name: str) -> np.ndarray:
        """Return one column by its name, shape (rows,); InputError for a name that is none."""
        names = columns_of(self.boom)
        if name not in names:
            raise InputError(f'column = {name!r}, allowed: {", ".join(names)}')
        return self.table[:, names.index(name)]

    def summary(self) -> dict[str, Any]:
        """Return the tip's travel, piston motion and pressures as plain numbers."""
        x, z = self.column('tip_x'), self.column('tip_z')
        N = range(1, self.boom.size + 1)
        pistons = [float(np.ptp(self.column(f'piston_{i}'))) for i in N]
        return {
            'duration': float(self.column('time')[-1]),
            'tip_start': [float(x[0]), float(z[0])],
            'tip_end': [float(x[-1]), float(z[-1])],
            'tip_highest': float(z.max()),
            'tip_lowest': float(z.min()),
            'piston_travel': pistons,
            'highest_pressure': float(
                max(self.column(f'{side}_{i}').max() for side in ('p_head', 'p_rod') for i in N)
            ),
            'lowest_pressure': float(
                min(self.column(f'{side}_{i}').min() for side in ('p_head', 'p_rod') for i in N)
            ),
            'cavitated': list(self.cavitated),
            'joint_error': self.joint_error(),
        }

    def joint_error(self) -> list[float]:
        """Return the largest distance of each joint from the trajectory [rad]; empty without."""
        if self.reference is None:
            return []
        angles = np.stack([self.column(f'phi_{i + 1}') for i in range(self.boom.size)], axis=1)
        return [float(error) for error in np.abs(angles - self.reference).max(axis=0)]


def simulate(
    parameters: BoomParameters,
    scenario: Scenario,
    step: float = STEP,
    sample_time: float = SAMPLE_TIME,
    progress: bool = False,
) -> Result:
    """
    Simulate a scenario.

    Parameters
    ----------
    parameters : BoomParameters
    scenario : Scenario
    step : float
        Length of a step [s].
    sample_time : float
        Interval of rows and of the controller's cycles [s], a whole number of steps.
    progress : bool
        Show a bar on stderr, if that is a terminal and the run takes more than a second.

    Raises
    ------
    InputError
        When scenario, boom and steps do not fit together.
    IntegrationError
        When the state does not stay finite.
    """
    boom = Boom(parameters, scenario, step)
    if not sample_time >= 0.5 * step:
        raise InputError(f'sample_time = {sample_time} s, allowed: whole steps of {step:g} s')
    every = step_count(sample_time, step, 'sample_time')
    samples = step_count(scenario.duration, sample_time, 'duration')
    if every < 1 or samples > _MOST_ROWS:
        raise InputError(
            f'duration = {scenario.duration:g} s with sample_time = {sample_time:g} s gives'
            f' {samples} rows, allowed: 1 to {_MOST_ROWS}'
        )
    state = boom.initial_state()
    states, modes = [state.y[None]], [state.modes[None]]
    # tqdm's None means: only on a terminal.
    with tqdm(total=samples, disable=None if progress else True, delay=1.0, unit='row') as bar:
        for command, first, count in _commands(boom, scenario, samples, every, states):
            # In pieces, so that an interruption is heard between them.
            for begin in range(first, first + count, _PIECE):
                piece = min(_PIECE, first + count - begin)
                state, table, mode_table = boom.advance_recorded(
                    state, command, begin, piece, every
                )
                states.append(table)
                modes.append(mode_table)
                bar.update(len(table))
    times = np.array([step_time(k * every, step) for k in range(samples + 1)])
    rows = np.concatenate(states)
    N, n = parameters.size, parameters.size * (1 + parameters.ritz.functions)
    low = rows[:, 2 * n : 2 * n + 2 * N].min(axis=0) < parameters.oil.vapour_pressure
    cavitated = tuple(c.name for i, c in enumerate(parameters.cylinders) if low[i] or low[N + i])
    reference = None
    if scenario.trajectory:
        trajectory = Trajectory.of(scenario.waypoints(parameters))
        reference = np.array([trajectory.at(time).angles for time in times])
    table = series(parameters, times, rows, np.concatenate(modes))
    return Result(parameters, table, rows, cavitated, reference)


def _commands(
    boom: Boom, scenario: Scenario, samples: int, every: int, states: list[np.ndarray]
) -> Any:
    """Yield (command, first step, steps) until the end; ``states`` ends with the present one."""
    N = boom.parameters.size
    if scenario.trajectory:
        trajectory = Trajectory.of(scenario.waypoints(boom.parameters))
        controller = JointController(boom.parameters, every * boom.step)
        memory = controller.initial_state()
        for k in range(samples):
            parts = StateParts.of(states[-1][-1], boom.parameters)
            pistons = piston_positions(parts.q[:N], boom.constants(()))
            reference = trajectory.at(step_time(k * every, boom.step))
            memory, spools = controller.cycle(
                memory, pistons, parts.head_pressures, parts.rod_pressures, reference
            )
            yield BoomCommand(tuple(spools)), k * every, every
        return
    closed = BoomCommand((0.0,) * N)
    last = samples * every
    changes = [(0, closed)]
    changes += [
        (round(c.time / boom.step), BoomCommand(c.spools)) for c in scenario.valve_commands
    ]
    edges = [*(min(at, last) for at, _ in changes), last]
    for (_, command), first, end in zip(changes, edges[:-1], edges[1:], strict=True):
        if end > first:
            yield command, first, end - first


def warm_up() -> None:
    """Compile the kernels, or load them from the cache."""
    parameters = load_boom()
    boom = Boom(parameters, Scenario(duration=1.0, pose=parameters.poses[0].name))
    command = BoomCommand((0.0,) * parameters.size)
    state = boom.initial_state()
    boom.joint_sample(boom.advance(state, command, 0.0, boom.step), command)
