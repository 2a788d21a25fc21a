"""The harvester as a machine for nodes and simulated runs, in its full and its reduced model."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from typing import NamedTuple

import numpy as np

from longreach_dynamics.errors import InputError, check_among, check_within, named
from longreach_dynamics.hydraulics.lines import (
    AREA_1,
    AREA_2,
    SPOOL_RATE,
    STOP_STIFFNESS,
    VAPOUR,
    VISCOUS,
)
from longreach_dynamics.kernels import read_only
from longreach_dynamics.linkages import pistons_and_arms
from longreach_dynamics.valve_pid import new_memory, pid_cycle
from longreach_harvester.bodies import HEAD, PRESSURE_1, hanging_terms, masses, weights
from longreach_harvester.control import ControllerParameters, cycle_references, load_controller
from longreach_harvester.description import moving_joints
from longreach_harvester.model import (
    BALANCE,
    DEAD_POINT,
    DONE,
    FLOW_1,
    LOG,
    PRESSURE_2,
    RAIL,
    SIZE,
    UNSOLVED,
    WIDTH,
    Model,
)
from longreach_harvester.parameters import JOINTS, HarvesterParameters
from longreach_harvester.scenario import LogEvent, Scenario
from longreach_harvester.sensors import SensorParameters, Sensors
from longreach_harvester.stepping import ROW, advance, energies_of, forces_of
from longreach_machine.machine import (
    BY_SCENARIO,
    ByScenario,
    HydraulicSample,
    JointSample,
    Spools,
    step_count,
    step_time,
)
from longreach_machine.runs import PartialRunError
from longreach_machine.schedules import Schedule, constant_schedule

MODELS = ('full', 'reduced')
STEP = 1e-3  # [s]
SAMPLE_TIME = 0.01  # [s], of rows
_LONGEST_STEP = 0.02
# Largest product of a step of the full model and a frequency of the machine [rad]: the midpoint
# step lets an undamped oscillation grow by its fourth power over 8 in a step. With the rate of a
# decay by friction the product is at most 1: from 2 on that would grow.
_STABILITY = 0.3
# Rounds an instant in steps; in the middle of one always up, whatever its last bits.
_HALF = 0.5 + 1e-6
# References, gains, steps of a cycle.
_NO_CONTROL = (np.empty((0, 3)), np.empty((0, 9)), 0)


class HarvesterState(NamedTuple):
    """State of the harvester. Never changed in place."""

    y: np.ndarray  # (WIDTH,) see model
    closed: np.ndarray  # (3,) of bool, modes of the valves
    balance: np.ndarray  # (10,) energies since time 0 [J], see BALANCE
    counters: np.ndarray  # (3,) switchings of valves, lowest pressure [Pa], when [s]
    spools: tuple[float, ...]  # positions now
    memory: np.ndarray  # (5, 3) of the controllers, see longreach_dynamics.valve_pid
    commands: tuple[float, ...]  # what the spools follow, which have a lag


@dataclasses.dataclass(frozen=True)
class Harvester:
    """
    The harvester as a machine; implements :class:`longreach_machine.machine.Machine`.

    Commands are spool positions of swing, boom and stick in [-1, 1], or :data:`BY_SCENARIO`.

    Parameters
    ----------
    parameters : HarvesterParameters
    scenario : Scenario
    step : float
        Length of a step [s]; steps are cut where a spool has a knot or crosses its dead band.
    model : str
        One of MODELS.
    switching : bool
        Closed valves let no oil through; else what the greatest resistance lets through.
    as_printed : bool
        +P_S2 in the return lines, as (A6a) of the paper has it.
    controller : ControllerParameters, optional
        Of a scenario under control; None: the installed file.
    sensors : SensorParameters, optional
        Of the angles that these controllers get; None: the true ones.

    Raises
    ------
    InputError
        For a pose that linkages or initial pressures do not allow, and a step that is too long.
    """

    parameters: HarvesterParameters
    scenario: Scenario
    step: float = STEP
    model: str = 'full'
    switching: bool = True
    as_printed: bool = False
    controller: ControllerParameters | None = None
    sensors: SensorParameters | None = None

    def __post_init__(self) -> None:
        """Check options, logs, control, pose, pressures and step."""
        check_among('model', self.model, MODELS)
        check_within('step', self.step, f'[1e-06, {_LONGEST_STEP:g}] s')
        self._check_beyond()
        _ = self._changes, self._readings, self._initial
        if self.model == 'full':
            self._check_step()

    def _check_beyond(self) -> None:
        """Raise InputError for components that a model does not have."""
        p = self.parameters
        parts = {
            'pump': p.pump is not None,
            'relief': any(a.relief for a in p.actuators),
            'make_up': any(a.make_up for a in p.actuators),
        }
        given = ', '.join(name for name, there in parts.items() if there)
        if given and self.model == 'reduced':
            raise InputError(
                f'model = reduced does not have {given} of this harvester, because the'
                ' pressures of its open valves follow from the motion at once, without oil that'
                ' could be let out or in; allowed: model = full, or a file without them'
            )
        if given and self.as_printed:
            raise InputError(
                f'as_printed = true does not have {given} of this harvester, allowed:'
                ' a file without them, such as the standard machine'
            )

    @functools.cached_property
    def constants(self) -> Model:
        """Constants for compiled code, with the log of time 0."""
        lines = read_only(self.parameters.lines())
        return Model(
            bodies=self.parameters.bodies(self.scenario.log),
            lines=(lines.table, lines.openings),
            switching=self.switching,
            reduced=self.model == 'reduced',
            as_printed=self.as_printed,
            vapour=-math.inf if self.as_printed else VAPOUR,
            pump=self.parameters.pump is not None,
            ports=self.parameters.has_ports,
            lags=bool(np.isfinite(lines.table[:, SPOOL_RATE]).any()),
        )

    def with_log(self, mass: float) -> Model:
        """Return the constants for compiled code with a log in the grapple [kg]."""
        return self.constants._replace(bodies=self.parameters.bodies(mass))

    @functools.cached_property
    def _schedule(self) -> Schedule:
        return self.scenario.schedule(self.parameters)

    @functools.cached_property
    def _changes(self) -> list[tuple[int, float]]:
        """Steps from time 0 and mass [kg] of what the grapple then holds."""
        what = 'time of attach or release'
        return [
            (step_count(time, self.step, what), mass) for time, mass in self.scenario.log_changes()
        ]

    @functools.cached_property
    def _control(self) -> tuple[np.ndarray, np.ndarray, int]:
        """References of the cycles, gains, and steps of a cycle; 0: no control."""
        if not self.scenario.is_controlled:
            return _NO_CONTROL
        controller = self.controller or load_controller()
        cycle = step_count(controller.sample_time, self.step, 'sample_time of the controller')
        _, wanted = cycle_references(self.parameters, self.scenario, controller)
        return wanted, controller.table(self.parameters), cycle

    @functools.cached_property
    def _readings(self) -> Sensors | None:
        """Sensors of a scenario under control."""
        cycle = self._control[2]
        if self.sensors is None or not cycle:
            return None
        return Sensors(self.parameters, self.sensors, 1.0 / (cycle * self.step))

    @functools.cached_property
    def _arms(self) -> np.ndarray:
        """Lever arms at time 0, (3,) [1, m, m]."""
        angles = np.array(self.scenario.angles)
        with named('angles: '):
            self.parameters.check_pose(angles)
        _, *cylinders = self.parameters.actuators
        arms = [c.linkage.arm(angle) for c, angle in zip(cylinders, angles[1:], strict=True)]
        return np.array([1.0, *arms])

    @functools.cached_property
    def _initial(self) -> HarvesterState:
        scenario, table, arms = self.scenario, self.constants.lines[0], self._arms
        y = np.zeros(WIDTH)
        y[:3] = scenario.angles
        if self.parameters.hangs:
            y[HEAD] = -0.5 * math.pi - y[1] - y[2]
        y[RAIL], y[LOG] = self.parameters.supply_pressure, scenario.log
        y[[PRESSURE_1, PRESSURE_2]] = scenario.swing_pressure
        y[PRESSURE_2 + 1 : FLOW_1] = scenario.rod_pressure
        bodies = self.parameters.bodies(scenario.log, hanging=False)
        held = np.array(weights(y, bodies)) / arms[1:]
        y[7:9] = (held + table[1:, AREA_2] * y[10:12]) / table[1:, AREA_1]
        for name, pressure in zip(JOINTS[1:], y[7:9], strict=True):
            if pressure < 0.0:
                raise InputError(
                    f'rod_pressure = {scenario.rod_pressure:g} Pa leaves the head side of the'
                    f' {name} at {pressure:.4g} Pa, allowed: at least 0; give a higher one'
                )
        closed = np.full(3, self.switching)
        counters = np.array([0.0, y[PRESSURE_1:FLOW_1].min(), 0.0])
        spools = tuple(self._schedule.starts[0].tolist())
        memory = new_memory(len(JOINTS))
        return HarvesterState(y, closed, np.zeros(len(BALANCE)), counters, spools, memory, spools)

    def _check_step(self) -> None:
        """Raise InputError when the step is too long for oil and bodies at time 0."""
        table, y = self.constants.lines[0], self._initial.y
        # Without a head that hangs, which pulls at the stick by its weight, not by its inertia.
        M11, M22, M23, M33 = masses(y, self.constants.bodies)
        mass = np.array([[M11, 0.0, 0.0], [0.0, M22, M23], [0.0, M23, M33]])
        C = np.array([a.line.capacitance for a in self.parameters.actuators])
        I = np.array([a.line.inertance for a in self.parameters.actuators])  # noqa: E741
        stiffness = (table[:, AREA_1] ** 2 + table[:, AREA_2] ** 2) / C + table[:, STOP_STIFFNESS]
        stiffness *= self._arms**2
        squares = np.linalg.eigvals(np.linalg.solve(mass, np.diag(stiffness))).real
        fastest = math.sqrt(max(squares.max(), (1.0 / (I * C)).max()))
        rubbed, b = table[:, VISCOUS] * self._arms**2, self.constants.bodies
        if b.head_mass > 0.0:
            mass, rubbed = np.empty((5, 5)), np.append(rubbed, [b.head_damping] * 2)
            hanging_terms(y, b, mass, np.empty(5))
        rate = np.linalg.eigvals(np.linalg.solve(mass, np.diag(rubbed))).real.max()
        fastest = max(fastest, _STABILITY * rate)
        if self.step * fastest > _STABILITY:
            raise InputError(
                f'step = {self.step:g} s, allowed for this harvester: at most'
                # Less, as it is rounded.
                f' {0.95 * _STABILITY / fastest:.2g} s; small capacitances and inertances, and'
                ' large viscous friction, need short steps, or model = reduced'
            )

    def initial_state(self) -> HarvesterState:
        """Return the harvester at rest in the scenario's pose, without flow."""
        return self._initial

    def attach(self, state: HarvesterState, mass: float) -> HarvesterState:
        """
        Return the state with a log [kg] in the grapple, which moves with it from now on.

        InputError for a mass that is not allowed, or when the grapple holds a log.
        """
        LogEvent(time=0.0, mass=mass)
        if state.y[LOG] > 0.0:
            raise InputError(
                f'the grapple holds a log of {state.y[LOG]:g} kg, allowed: one; release it first'
            )
        return self._holding(state, mass)

    def release(self, state: HarvesterState) -> HarvesterState:
        """Return the state without a log; InputError when there is none."""
        if not state.y[LOG] > 0.0:
            raise InputError('the grapple holds no log, allowed: one; attach one first')
        return self._holding(state, 0.0)

    def _holding(self, state: HarvesterState, mass: float) -> HarvesterState:
        """Return the state with another mass in the grapple, and its energy entered; 0: none."""
        y, balance = state.y.copy(), state.balance.copy()
        y[LOG] = mass
        rows, found = np.zeros((2, ROW)), np.empty((2, 5))
        rows[0, :WIDTH], rows[1, :WIDTH] = state.y, y
        for row, held in ((0, state.y[LOG]), (1, mass)):
            energies_of(rows[row : row + 1], self.with_log(held), found[row : row + 1])
        balance[BALANCE.index('log')] += (found[1, :2] - found[0, :2]).sum()
        return state._replace(y=y, balance=balance)

    def advance(
        self, state: HarvesterState, command: Spools | ByScenario, time: float, duration: float
    ) -> HarvesterState:
        """
        Return the state ``duration`` [s] after ``time`` [s]; both instants are rounded to steps.

        InputError for a command that is not allowed; IntegrationError when the state does not stay
        finite, or a linkage passes its dead point.
        """
        # Samples need not be whole steps: the instants are rounded, not their distance.
        first, last = (int(at / self.step + _HALF) for at in (time, time + duration))
        return self.advance_recorded(state, command, first, last - first, 0)[0]

    def advance_recorded(
        self,
        state: HarvesterState,
        command: Spools | ByScenario,
        first: int,
        steps: int,
        every: int,
    ) -> tuple[HarvesterState, np.ndarray]:
        """
        Take ``steps`` steps from the ``first`` on; return the state and rows (rows, ROW).

        Rows hold y, spools, modes and BALANCE after every ``every``-th step, counted from time 0;
        0: no rows. InputError for a command that is not allowed; PartialRunError with what
        happened in a step that failed, and the rows up to there.
        """
        schedule, control = self._schedule_of(command), _NO_CONTROL
        if command is BY_SCENARIO and self._readings is not None:
            return self._advance_measured(self._readings, state, first, steps, every)
        if command is BY_SCENARIO and self.scenario.is_controlled:
            # The cycles write on it.
            schedule, control = constant_schedule(state.commands), self._control
        last = first + steps
        rows = np.empty((last // every - first // every if every else 0, ROW))
        edges = [first, *(count for count, _ in self._changes if first < count < last), last]
        # A log changes with the step that starts at its time.
        for begin, end in itertools.pairwise(edges if steps else ()):
            for count, mass in self._changes:
                if count == begin:
                    state = self._holding(state, mass)
            y, closed, balance, counters = (array.copy() for array in state[:4])
            spools, memory = np.array(state.spools), state.memory.copy()
            commands = np.array(state.commands)
            arrays = (y, closed, balance, counters, spools, memory, commands)
            model = self.with_log(float(y[LOG]))
            filled = begin // every - first // every if every else 0
            run = (self.step, begin, end - begin, every, rows[filled:])
            taken, status = advance(arrays, schedule, control, model, *run)
            positions = tuple(spools.tolist()), memory, tuple(commands.tolist())
            state = HarvesterState(y, closed, balance, counters, *positions)
            if status != DONE:
                time = step_time(begin + taken, self.step)
                kept = (begin + taken) // every - first // every if every else 0
                raise PartialRunError(self._failure(status, time, y), rows[:kept], state=state)
        return state, rows

    def _advance_measured(
        self, sensors: Sensors, state: HarvesterState, first: int, steps: int, every: int
    ) -> tuple[HarvesterState, np.ndarray]:
        """Advance and record under controllers that get the readings of sensors."""
        wanted, gains, cycle = self._control
        tables, n = [np.empty((0, ROW))], first
        while n < first + steps:
            if n % cycle == 0:
                k = n // cycle
                angles = sensors.read(state.y[:3], k).angles
                memory, spools = state.memory.copy(), np.zeros(len(JOINTS))
                reference = wanted[min(k, len(wanted) - 1)]
                pid_cycle(angles, reference, memory, gains, cycle * self.step, spools)
                state = state._replace(commands=tuple(spools.tolist()), memory=memory)
            count = min(cycle - n % cycle, first + steps - n)
            try:
                state, rows = self.advance_recorded(state, state.commands, n, count, every)
            except PartialRunError as error:
                table = np.vstack([*tables, *error.recorded])
                raise PartialRunError(str(error), table, state=error.state) from error
            tables.append(rows)
            n += count
        return state, np.vstack(tables)

    def _schedule_of(self, command: Spools | ByScenario) -> Schedule:
        if isinstance(command, ByScenario):
            return self._schedule
        # Written so that NaN is refused.
        if len(command) != len(JOINTS) or not all(abs(spool) <= 1.0 for spool in command):
            raise InputError(f'spools = {tuple(command)}, allowed: {len(JOINTS)} in [-1, 1]')
        return constant_schedule(command)

    def _failure(self, status: int, time: float, y: np.ndarray) -> str:
        """Return the message of a step that failed."""
        reason = 'a number is not finite; take a shorter step, or look for parameters of'
        reason += ' impossible size'
        if status == DEAD_POINT:
            boom, stick = y[1:3]
            reason = (
                f'a linkage passes its dead point at boom = {boom:.4g}, stick = {stick:.4g} rad;'
                ' let the spools move less, or give stiffer stops'
            )
        elif status == UNSOLVED and np.all(np.isfinite(y)):
            reason = 'its implicit equation has no solution by iteration; take a shorter step'
        return f'the harvester cannot go on in the step at t = {time:g} s: {reason}'

    def joint_sample(self, state: HarvesterState, command: object) -> JointSample:  # noqa: ARG002
        """Return joints with torques, and cylinders with forces, of the robot description."""
        forces = np.empty((1, 3))
        forces_of(state.y[None], self.constants, forces)
        _, arms = pistons_and_arms(self.constants.lines[0], state.y[None, :3])
        return moving_joints(self.parameters, state.y, forces[0] * arms[0], forces[0])

    def hydraulic_sample(self, state: HarvesterState, command: object) -> HydraulicSample:  # noqa: ARG002
        """Return pressures of the capacitances, flows of the orifices and spools."""
        p1, p2, q1, q2 = np.split(state.y[PRESSURE_1:SIZE], 4)
        p1, p2 = np.maximum((p1, p2), self.constants.vapour)
        return HydraulicSample.of(JOINTS, p1, p2, q1, q2, np.array(state.spools))
