"""
The excavator as a machine for nodes and simulated runs.

Commands are constant between samples; forces that a scenario prescribes are sampled at the start,
in the middle and at the end of each step. A run is a sequence of calls of one compiled kernel that
takes steps of equal length; the result does not depend on how the steps are divided among calls.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from typing import NamedTuple

import numpy as np

from longreach_dynamics.errors import InputError, check_count, check_within
from longreach_dynamics.hydraulics import (
    STABILITY,
    holding_pressures,
    port_rates,
    smallest_volumes,
    spool_rates,
)
from longreach_excavator.columns import OBSERVED
from longreach_excavator.constants import TRAVEL, Constants, constants_of
from longreach_excavator.forces import STRONGEST, GivenForces
from longreach_excavator.kinematics import moving_joints
from longreach_excavator.linkage import CYLINDERS
from longreach_excavator.motion import (
    HEAD,
    RATE,
    ROD,
    SIZE,
    SOIL,
    SPOOL,
    advance_adaptive,
    advance_motion,
)
from longreach_excavator.observation import NOTHING, observe
from longreach_excavator.parameters import ExcavatorParameters
from longreach_excavator.scenario import Scenario
from longreach_excavator.terrain import flat_ground
from longreach_machine.machine import (
    BY_SCENARIO,
    ByScenario,
    HydraulicSample,
    JointSample,
    step_time,
)
from longreach_machine.runs import PartialRunError
from longreach_machine.scenarios import spools_at

STEP = 1e-3  # [s]
SAMPLE_TIME = 5e-3  # [s], of rows
# Interval at which a scenario checks the end of the sweep, to close the valves [s].
CYCLE = 0.01
_NO_FORCE = (None,) * len(CYLINDERS)


class ExcavatorCommand(NamedTuple):
    """Command of the cylinders: for each a spool position, or a force in place of its oil."""

    spools: tuple[float, ...]  # in [-1, 1], positive extends
    forces: tuple[float | None, ...] = _NO_FORCE  # [N], positive extends; None: force of its oil


class ExcavatorState(NamedTuple):
    """State of an excavator; never changed in place."""

    y: np.ndarray  # (SIZE,), longer with terrain, see longreach_excavator.motion
    forces: tuple[float | None, ...] = _NO_FORCE  # last prescribed [N]; None: oil
    swept: bool = False  # the bucket has turned by the scenario's sweep


Command = ExcavatorCommand | ByScenario
CLOSED = ExcavatorCommand((0.0,) * len(CYLINDERS))
"""All valves closed."""


@dataclasses.dataclass(frozen=True)
class Excavator:
    """
    The excavator as a :class:`longreach_machine.machine.Machine`.

    It also accepts the command BY_SCENARIO: the commands of the scenario. ``parameters`` are those
    of the file with what the scenario overrides. With a ``tolerance`` of 0 steps are Runge-Kutta
    steps of order 4, as in the thesis; else adaptive steps of order 8 within each step, with this
    local error, relative and absolute in SI units. InputError for a scenario or step that does not
    fit.
    """

    excavator: dataclasses.InitVar[ExcavatorParameters]
    scenario: Scenario
    step: float = STEP
    tolerance: float = 0.0
    parameters: ExcavatorParameters = dataclasses.field(init=False)
    constants: Constants = dataclasses.field(init=False, repr=False, compare=False)
    _given: GivenForces | None = dataclasses.field(init=False, repr=False, compare=False)
    # Attitude of the bucket at which the sweep ends [rad].
    _end: float = dataclasses.field(init=False, repr=False, compare=False)

    def __post_init__(self, excavator: ExcavatorParameters) -> None:
        """Check the scenario, apply its overrides, and read its forces."""
        check_within('step', self.step, '[1e-06, 0.01] s')
        if self.tolerance and not 1e-13 <= self.tolerance <= 1e-3:
            raise InputError(f'tolerance = {self.tolerance}, allowed: 0, or [1e-13, 0.001]')
        self.scenario.check_with(excavator, self.step)
        excavator = self.scenario.excavator(excavator)
        object.__setattr__(self, 'parameters', excavator)
        constants = constants_of(
            excavator,
            self.scenario.surface_height(excavator),
            self.scenario.counted_joint(excavator),
            fixed_direction=self.scenario.mode == 'thesis',
            terrain=self.scenario.terrain_span(excavator),
            held=self.scenario.held_lengths(excavator),
        )
        object.__setattr__(self, 'constants', constants)
        object.__setattr__(self, '_given', self.scenario.given_forces(excavator))
        sweep = math.radians(self.scenario.sweep_deg) or math.inf
        object.__setattr__(self, '_end', self.scenario.angles(excavator).sum() - sweep)

    @property
    def _cycle(self) -> int:
        """Number of steps between checks of the sweep's end."""
        return max(1, round(CYCLE / self.step))

    def initial_state(self) -> ExcavatorState:
        """Return the machine at rest in its pose; InputError when the step is too long for it."""
        excavator = self.parameters
        q = self.scenario.angles(excavator)
        ground = self.constants.ground
        y = np.zeros(SIZE)
        if ground.cells:
            y = np.append(y, flat_ground(ground, self.scenario.surface_height(excavator)))
        y[:RATE] = q
        y[HEAD:ROD], y[ROD:SPOOL] = holding_pressures(
            excavator.holding_forces(q), excavator.cylinders, excavator.oil
        )
        self._check_step(q)
        forces = self.scenario_command(0.0, swept=False).forces
        return ExcavatorState(y, forces)

    def _check_step(self, q: np.ndarray) -> None:
        """Raise InputError when the step is too long for the largest stiffness and damping."""
        if self.scenario.mode == 'thesis':
            # It has neither oil nor friction nor stops.
            return
        excavator, actuators = self.parameters, self.constants.actuators
        levers = np.abs(excavator.linkage().levers(q))
        head, rod = smallest_volumes(actuators)
        areas = np.maximum(actuators.head_area**2 / head, actuators.rod_area**2 / rod)
        stiff = actuators.bulk_modulus * areas + excavator.stops.stiffness
        stiff += actuators.coulomb / actuators.linkage[:, TRAVEL]
        fastest = float(np.max(spool_rates(actuators) + port_rates(actuators)))
        mass = excavator.chain().mass_matrix(q)
        rates = np.linalg.eigvals(np.linalg.solve(mass, np.diag(stiff * levers**2)))
        fastest = max(fastest, math.sqrt(float(np.abs(rates).max())))
        damping = actuators.viscous * levers**2
        rates = np.linalg.eigvals(np.linalg.solve(mass, np.diag(damping)))
        fastest = max(fastest, float(np.abs(rates).max()))
        if self.step * fastest > STABILITY:
            raise InputError(
                f'step = {self.step:g} s, allowed for this excavator: at most'
                f' {STABILITY / fastest:.2g} s; oil in small volumes, wide valves, stiff stops,'
                ' viscous pistons and light links need short steps'
            )

    def scenario_command(self, time: float, swept: bool) -> ExcavatorCommand:
        """Return the scenario's command at a time [s]; closed valves after the sweep."""
        if self._given is not None:
            forces = self._given.at(np.array(time)).tolist()
            return ExcavatorCommand(CLOSED.spools, tuple(forces))
        commands = () if swept else self.scenario.valve_commands
        spools = spools_at(commands, time, len(CYLINDERS))
        return self._with_loose(ExcavatorCommand(spools))

    def _with_loose(self, command: ExcavatorCommand) -> ExcavatorCommand:
        """Return a command in which cylinders that are loose have no oil, whoever gave it."""
        pairs = zip(CYLINDERS, command.forces, strict=True)
        forces = tuple(0.0 if name in self.scenario.loose else F for name, F in pairs)
        return command._replace(forces=forces)

    def advance(
        self, state: ExcavatorState, command: Command, time: float, duration: float
    ) -> ExcavatorState:
        """Return the state ``duration`` [s] after ``time`` [s], both rounded to whole steps."""
        steps = round(duration / self.step)
        return self.advance_recorded(state, command, round(time / self.step), steps, 0)[0]

    def advance_recorded(
        self, state: ExcavatorState, command: Command, first: int, steps: int, every: int
    ) -> tuple[ExcavatorState, np.ndarray]:
        """Take steps; return the state, and y after each ``every``-th, counted from time 0."""
        if steps < 0:
            raise InputError(f'duration is {steps} steps, allowed: 0 or more')
        last = first + steps
        rows = (last // every - first // every) if every else 0
        table = np.empty((rows, state.y.size))
        cycle = self._cycle
        for begin, end in self._pieces(command, first, last):
            swept, forces = state.swept, None
            if isinstance(command, ExcavatorCommand):
                commanded = command
            else:
                # Only at the scenario's cycles, so that the division into calls has no effect.
                looks = begin % cycle == 0 and self._given is None
                swept = swept or (looks and self.has_swept(state))
                commanded = self.scenario_command(step_time(begin, self.step), swept)
                if self._given is not None:
                    # At the ends and in the middle of each step, see advance_motion.
                    halves = np.arange(2 * begin, 2 * end + 1)
                    forces = self._given.at(halves * (0.5 * self.step))
            _check_command(commanded)
            commanded = self._with_loose(commanded)
            y = self._with_oil(state, commanded)
            prescribed = commanded.forces
            if forces is None:
                forces = _array(prescribed)
            else:
                prescribed = tuple(forces[-1].tolist())
            row = (begin // every - first // every) if every else 0
            spools = np.array(commanded.spools, dtype=float)
            counts = (begin, end - begin, every)
            run = (y, spools, forces, self.constants, self.step, *counts, table[row:])
            adaptive = self.tolerance > 0.0
            taken = advance_adaptive(*run, self.tolerance) if adaptive else advance_motion(*run)
            if taken < end - begin:
                kept = row + ((begin + taken) // every - begin // every if every else 0)
                raise PartialRunError(self._failure(begin + taken, y, commanded), table[:kept])
            state = ExcavatorState(y, prescribed, swept)
        return state, table

    def _pieces(self, command: Command, first: int, last: int) -> list[tuple[int, int]]:
        """Return the intervals of steps with a constant command."""
        if command is not BY_SCENARIO or self._given is not None:
            return [(first, last)] if last > first else []
        cuts = {round(entry.time / self.step) for entry in self.scenario.valve_commands}
        if self.scenario.sweep_deg:
            cuts |= set(range(first - first % self._cycle + self._cycle, last, self._cycle))
        edges = [first, *sorted(cut for cut in cuts if first < cut < last), last]
        return [(begin, end) for begin, end in itertools.pairwise(edges) if end > begin]

    def has_swept(self, state: ExcavatorState) -> bool:
        """Return whether the bucket has turned by the scenario's sweep."""
        return bool(state.y[:RATE].sum() <= self._end)

    def given_forces(self, times: np.ndarray) -> np.ndarray:
        """Return the scenario's forces (rows, 3) or (1, 3) [N] at times (rows,) [s]; NaN: oil."""
        if self._given is not None:
            return self._given.at(times)
        return _array(self.scenario_command(0.0, swept=False).forces)

    def _with_oil(self, state: ExcavatorState, command: ExcavatorCommand) -> np.ndarray:
        """Return a copy of y with oil pressures for cylinders whose prescribed force has ended."""
        y = state.y.copy()
        for k, (before, now) in enumerate(zip(state.forces, command.forces, strict=True)):
            if now is None and before is not None:
                forces = np.array([0.0 if F is None else F for F in state.forces])
                p = self.parameters
                head, rod = holding_pressures(forces, p.cylinders, p.oil)
                y[HEAD + k], y[ROD + k], y[SPOOL + k] = head[k], rod[k], 0.0
            elif now is not None:
                # A closed valve takes no oil from the pump.
                y[SPOOL + k] = 0.0
        return y

    def _failure(self, count: int, y: np.ndarray, command: ExcavatorCommand) -> str:
        """Return the error message of a step that failed."""
        time = step_time(count, self.step)
        reason = 'a number is not finite'
        ahead = y[:RATE] + 2.0 * self.step * y[RATE:HEAD]
        for k, (low, high) in enumerate(self.parameters.linkage().ranges()):
            if not low < ahead[k] < high:
                reason = (
                    f'the {CYLINDERS[k]} linkage passes its dead point, theta_{k + 2} ='
                    f' {math.degrees(low if ahead[k] <= low else high):.4g} deg'
                )
        return (
            f'the excavator runs away in the step at t = {time:g} s: {reason}. To see it again:'
            f' Excavator.advance(ExcavatorState(np.array({y[:SIZE].tolist()})), {command},'
            f' {time:g}, {self.step:g}). Take a shorter step, or look for forces and parameters of'
            ' impossible size'
        )

    def observed(self, state: ExcavatorState) -> dict[str, float]:
        """Return the quantities of columns.OBSERVED of one state, by name."""
        rows = np.empty((1, len(OBSERVED)))
        observe(state.y[None], _array(state.forces), NOTHING, self.constants, rows)
        return dict(zip(OBSERVED, rows[0].tolist(), strict=True))

    def joint_sample(self, state: ExcavatorState, command: object) -> JointSample:  # noqa: ARG002
        """Return the joints of the robot description, see :func:`moving_joints`."""
        return moving_joints(self.parameters, state.y, self.observed(state))

    def hydraulic_sample(self, state: ExcavatorState, command: object) -> HydraulicSample:  # noqa: ARG002
        """Return pressures, flows and spools."""
        y, observed = state.y, self.observed(state)
        # Below the vapour pressure the state counts missing oil.
        head, rod = np.maximum(np.split(y[HEAD:SPOOL], 2), self.parameters.oil.vapour_pressure)
        into, out = (
            np.array([observed[f'{side}_flow_{name}'] for name in CYLINDERS])
            for side in ('head', 'rod')
        )
        return HydraulicSample.of(CYLINDERS, head, rod, into, out, y[SPOOL:SOIL])


def _array(forces: tuple[float | None, ...]) -> np.ndarray:
    """Return forces [N] as an array for compiled code, shape (1, 3); NaN for None."""
    return np.array([forces], dtype=float)


def _check_command(command: ExcavatorCommand) -> None:
    """Raise InputError for a command of wrong size or range; compiled code does not check it."""
    n = len(CYLINDERS)
    check_count('spools of the command', command.spools, n)
    check_count('forces of the command', command.forces, n)
    if not all(abs(spool) <= 1.0 for spool in command.spools):
        raise InputError(f'spools = {tuple(command.spools)}, allowed: [-1, 1]')
    # Written so that NaN is rejected.
    if not all(force is None or abs(force) <= STRONGEST for force in command.forces):
        raise InputError(
            f'forces = {tuple(command.forces)}, allowed: up to {STRONGEST:g} N, or None for a'
            ' cylinder with oil'
        )
