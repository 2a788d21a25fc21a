"""The harvester as a machine for nodes and simulated runs, in its full and its reduced model."""

from __future__ import annotations

import dataclasses
import itertools
import math
from typing import NamedTuple

import numpy as np
from numba import njit

from longreach_dynamics.errors import InputError
from longreach_dynamics.hydraulics.lines import (
    AREA_1,
    AREA_2,
    DEAD_BAND,
    RELIEF_1,
    RELIEF_2,
    SPOOL_FASTEST,
    SPOOL_RATE,
    STOP_STIFFNESS,
    VAPOUR,
    ports,
    relief_and_make_up,
)
from longreach_dynamics.hydraulics.valves import chamber_pressure, spool_step
from longreach_dynamics.kernels import kernel, read_only
from longreach_dynamics.linkages import piston_and_arm, pistons_and_arms
from longreach_dynamics.machine import (
    BY_SCENARIO,
    ByScenario,
    JointSample,
    step_count,
    step_time,
)
from longreach_dynamics.runs import PartialRunError
from longreach_dynamics.schedules import Schedule, constant_schedule
from longreach_dynamics.valve_pid import new_memory, pid_cycle
from longreach_harvester.control import (
    ControllerParameters,
    cycle_references,
    load_controller,
)
from longreach_harvester.description import moving_joints
from longreach_harvester.model import (
    BOOK,
    DEAD_POINT,
    DONE,
    HEAD,
    LOG,
    NOT_FINITE,
    RAIL,
    UNSOLVED,
    WIDTH,
    Model,
    energies,
    full_step,
    is_closed,
    masses,
    parts_of_step,
    reduced_step,
    switch,
    weights,
)
from longreach_harvester.parameters import JOINTS, HarvesterParameters
from longreach_harvester.scenario import LogEvent, Scenario
from longreach_harvester.sensors import SensorParameters, Sensors

MODELS = ('full', 'reduced')
STEP = 1e-3  # [s]
SAMPLE_TIME = 0.01  # [s], of rows
# What a row holds: y, spools, modes (1: closed), BOOK.
OBSERVED = WIDTH
ROW = WIDTH + 3 + 3 + len(BOOK)
_LONGEST_STEP = 0.02
# Largest product of a step of the full model and a frequency of the machine [rad]: the midpoint
# step lets an undamped oscillation grow by its fourth power over 8 in a step.
_STABILITY = 0.3
# Rounds an instant in steps; in the middle of one always up, whatever its last bits.
_HALF = 0.5 + 1e-6
# A step does not end this close before an edge of the schedule [s].
_CLOSE = 1e-12
# Counters: how often valves opened or closed, the lowest pressure [Pa] and when [s].
_SWITCHINGS, _LOWEST, _LOWEST_AT, _COUNTERS = 0, 1, 2, 3

# References, gains, steps of a cycle.
_NO_CONTROL = (np.empty((0, 3)), np.empty((0, 9)), 0)


class HarvesterState(NamedTuple):
    """State of the harvester. Never changed in place."""

    y: np.ndarray  # (WIDTH,) see model
    closed: np.ndarray  # (3,) of bool, modes of the valves
    book: np.ndarray  # (10,) energies since time 0 [J], see BOOK
    counters: np.ndarray  # (3,) switchings of valves, lowest pressure [Pa], when [s]
    spools: tuple[float, ...]  # positions now
    memory: np.ndarray  # (5, 3) of the controllers, see longreach_dynamics.valve_pid
    commands: tuple[float, ...]  # what the spools follow, which have a lag


@njit
def _spools_at(schedule, k, t, stop, spools, model, u, ends):  # type: ignore[no-untyped-def]
    """
    Write the spools in the middle and at the end of a step; return where it has to end.

    A spool with a lag starts from where it is; the step ends where it crosses its dead band.
    """
    edges, starts, slopes = schedule
    table = model.lines[0]
    middle = 0.5 * (t + stop)
    for i in range(3):
        u[i] = starts[k, i] + slopes[k, i] * (middle - edges[k])
        if table[i, SPOOL_RATE] == np.inf:
            ends[i] = u[i] + 0.5 * (stop - t) * slopes[k, i]
            continue
        before = spools[i]
        lag = (table[i, SPOOL_RATE], table[i, SPOOL_FASTEST])
        ends[i] = spool_step(before, u[i], *lag, stop - t)
        u[i] = 0.5 * (before + ends[i])
        for level in (-table[i, DEAD_BAND], 0.0, table[i, DEAD_BAND]):
            if (before - level) * (ends[i] - level) < 0.0:
                crossing = t + (level - before) / (ends[i] - before) * (stop - t)
                if t + _CLOSE < crossing < stop - _CLOSE:
                    stop = crossing
    return stop


@kernel
def _advance(  # type: ignore[no-untyped-def]
    y,
    closed,
    book,
    counters,
    spools,
    memory,
    commands,
    schedule,
    control,
    model,
    step,
    first,
    steps,
    every,
    rows,
):
    """
    Take steps in place, and record; return how many were taken, and how it ended.

    Where ``control`` has cycles, these write the spools of the schedule.

    Steps are cut where the schedule has an edge, so that modes and sources change between two.
    """
    edges, starts, slopes = schedule
    u, now, work = np.zeros(3), np.zeros(3, np.bool_), np.zeros((4, WIDTH))
    ends = np.zeros(3)
    references, gains, cycle = control
    last = starts.shape[0] - 1
    k = 0
    while k < last and edges[k + 1] <= first * step + _CLOSE:
        k += 1
    for n in range(steps):
        t, end = (first + n) * step, (first + n + 1) * step
        if cycle and (first + n) % cycle == 0:
            wanted = references[min((first + n) // cycle, references.shape[0] - 1)]
            pid_cycle(y[:3], wanted, memory, gains, cycle * step, starts[0])
        while t < end:
            while k < last and edges[k + 1] <= t + _CLOSE:
                k += 1
            stop = edges[k + 1] if k < last and edges[k + 1] < end - _CLOSE else end
            if model.lags:
                earlier = _spools_at(schedule, k, t, stop, spools, model, u, ends)
                if earlier < stop:
                    stop = earlier
                    _spools_at(schedule, k, t, stop, spools, model, u, ends)
            h = stop - t
            for i in range(3):
                if not model.lags:
                    u[i] = starts[k, i] + slopes[k, i] * (0.5 * (t + stop) - edges[k])
                    ends[i] = u[i] + 0.5 * h * slopes[k, i]
                now[i] = is_closed(u[i], i, model)
                counters[_SWITCHINGS] += now[i] != closed[i]
            switch(y, closed, now, u, model, book)
            if model.reduced:
                status = reduced_step(y, ends, closed, h, model, work, book)
            else:
                parts = parts_of_step(y, h, model)
                status = full_step(y, u, closed, h / parts, model, work, book)
                for _ in range(parts - 1):
                    if status == DONE:
                        status = full_step(y, u, closed, h / parts, model, work, book)
            if status != DONE:
                return n, status
            if model.lags:
                for i in range(3):
                    spools[i] = ends[i]
            t = stop
        if not math.isfinite(y.sum()):
            return n, NOT_FINITE
        lowest = np.inf
        for i in range(3):
            commands[i] = starts[k, i] + slopes[k, i] * (end - edges[k])
            if model.lines[0][i, SPOOL_RATE] == np.inf:
                spools[i] = commands[i]
            # Without compliance, oil that an opening valve slows down has no lowest pressure.
            if closed[i] or not model.reduced:
                lowest = min(lowest, y[6 + i], y[9 + i])
        if lowest < counters[_LOWEST]:
            counters[_LOWEST], counters[_LOWEST_AT] = lowest, end
        if every and (first + n + 1) % every == 0:
            r = (first + n + 1) // every - first // every - 1
            # Loops, as assignments of slices took as long as a step of the reduced model.
            for i in range(WIDTH):
                rows[r, i] = y[i]
            for i in range(3):
                rows[r, WIDTH + i] = spools[i]
                rows[r, WIDTH + 3 + i] = closed[i]
            for i in range(book.size):
                rows[r, WIDTH + 6 + i] = book[i]
    return steps, DONE


@kernel
def forces_of(rows, model, forces):  # type: ignore[no-untyped-def]
    """Write forces of the actuators at their ports for rows of states, (rows, 3) [N m], [N]."""
    table = model.lines[0]
    for n in range(rows.shape[0]):
        for i in range(3):
            _, arm = piston_and_arm(table, i, rows[n, i])
            speed = arm * rows[n, 3 + i]
            p1 = chamber_pressure(rows[n, 6 + i], model.vapour)
            p2 = chamber_pressure(rows[n, 9 + i], model.vapour)
            port_1, port_2, _, _ = ports(p1, p2, speed, i, table)
            forces[n, i] = table[i, AREA_1] * port_1 - table[i, AREA_2] * port_2


@kernel
def port_flows_of(rows, model, flows):  # type: ignore[no-untyped-def]
    """Write flows of relief and make-up valves into both lines of each actuator, (rows, 6)."""
    table = model.lines[0]
    for n in range(rows.shape[0]):
        for i in range(3):
            p1 = chamber_pressure(rows[n, 6 + i], model.vapour)
            p2 = chamber_pressure(rows[n, 9 + i], model.vapour)
            flows[n, i] = relief_and_make_up(p1, RELIEF_1, i, table)
            flows[n, 3 + i] = relief_and_make_up(p2, RELIEF_2, i, table)


@kernel
def energies_of(rows, model, found):  # type: ignore[no-untyped-def]
    """Write energies of rows in the order of :func:`..model.energies`, (rows, 5) [J]."""
    for n in range(rows.shape[0]):
        closed = rows[n, WIDTH + 3 : WIDTH + 6] != 0.0
        found[n, 0], found[n, 1], found[n, 2], found[n, 3], found[n, 4] = energies(
            rows[n], closed, model
        )


@dataclasses.dataclass(frozen=True)
class Harvester:
    """
    The harvester as a machine; implements :class:`longreach_dynamics.machine.Machine`.

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
        """Check pose, pressures and step."""
        if self.model not in MODELS:
            raise InputError(f'model = {self.model!r}, allowed: {" | ".join(MODELS)}')
        if not 1e-6 <= self.step <= _LONGEST_STEP:
            raise InputError(f'step = {self.step} s, allowed: [1e-06, {_LONGEST_STEP:g}] s')
        self._check_beyond()
        lines = read_only(self.parameters.lines())
        model = Model(
            self.parameters.bodies(self.scenario.log),
            (lines.table, lines.openings),
            self.switching,
            self.model == 'reduced',
            self.as_printed,
            -math.inf if self.as_printed else VAPOUR,
            self.parameters.pump is not None,
            self.parameters.has_ports,
            bool(np.isfinite(lines.table[:, SPOOL_RATE]).any()),
        )
        object.__setattr__(self, '_constants', model)
        changes = self.scenario.log_changes()
        counts = [step_count(time, self.step, 'time of attach or release') for time, _ in changes]
        masses = [mass for _, mass in changes]
        object.__setattr__(self, '_changes', list(zip(counts, masses, strict=True)))
        object.__setattr__(self, '_schedule', self.scenario.schedule(self.parameters))
        object.__setattr__(self, '_control', self._control_of(self.scenario))
        object.__setattr__(self, '_sensors', self._sensors_of())
        object.__setattr__(self, '_initial', self._at_rest(self._arms()))
        if self.model == 'full':
            self._check_step()

    def _check_beyond(self) -> None:
        """Raise InputError for components that a model does not have."""
        p = self.parameters
        given = [
            name
            for name, there in (
                ('pump', p.pump is not None),
                ('relief', any(a.relief for a in p.actuators)),
                ('make_up', any(a.make_up for a in p.actuators)),
            )
            if there
        ]
        if given and self.model == 'reduced':
            raise InputError(
                f'model = reduced does not have {", ".join(given)} of this harvester, because the'
                ' pressures of its open valves follow from the motion at once, without oil that'
                ' could be let out or in; allowed: model = full, or a file without them'
            )
        if given and self.as_printed:
            raise InputError(
                f'as_printed = true does not have {", ".join(given)} of this harvester, allowed:'
                ' a file without them, such as the standard machine'
            )

    def with_log(self, mass: float) -> Model:
        """Return the constants for compiled code with a log in the grapple [kg]."""
        return self.constants._replace(bodies=self.parameters.bodies(mass))

    def attach(self, state: HarvesterState, mass: float) -> HarvesterState:
        """
        Return the state with a log in the grapple, which moves with it from now on.

        The energy of the log is entered as that of logs.

        Parameters
        ----------
        state : HarvesterState
        mass : float
            [kg].

        Raises
        ------
        InputError
            For a mass that is not allowed, or when the grapple holds a log.
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
        """Return the state with another mass in the grapple; 0: none."""
        y, book = state.y.copy(), state.book.copy()
        y[LOG] = mass
        rows, found = np.zeros((2, ROW)), np.empty((2, 5))
        rows[0, :WIDTH], rows[1, :WIDTH] = state.y, y
        for row, held in ((0, state.y[LOG]), (1, mass)):
            energies_of(rows[row : row + 1], self.with_log(held), found[row : row + 1])
        book[BOOK.index('log')] += (found[1, :2] - found[0, :2]).sum()
        return state._replace(y=y, book=book)

    def _control_of(self, scenario: Scenario) -> tuple[np.ndarray, np.ndarray, int]:
        """Return references of the cycles, gains, and steps of a cycle; 0: no control."""
        if not scenario.is_controlled:
            return _NO_CONTROL
        controller = self.controller or load_controller()
        interval = controller.sample_time
        cycle = step_count(interval, self.step, 'sample_time of the controller')
        return (
            cycle_references(self.parameters, scenario, controller)[1],
            controller.table(self.parameters),
            cycle,
        )

    def _sensors_of(self) -> Sensors | None:
        """Return the sensors of a scenario under control."""
        cycle = self.__dict__['_control'][2]
        if self.sensors is None or not cycle:
            return None
        return Sensors(self.parameters, self.sensors, 1.0 / (cycle * self.step))

    @property
    def constants(self) -> Model:
        """Constants for compiled code, with the log of time 0."""
        known: Model = self.__dict__['_constants']
        return known

    def _arms(self) -> np.ndarray:
        """Return the lever arms at time 0, (3,) [1, m, m]."""
        arms = np.ones(3)
        angles = np.array(self.scenario.angles)
        try:
            self.parameters.check_pose(angles)
        except InputError as error:
            raise InputError(f'angles: {error}') from error
        for i, cylinder in enumerate(self.parameters.actuators[1:], 1):
            arms[i] = cylinder.linkage.arm(angles[i])
        return arms

    def _at_rest(self, arms: np.ndarray) -> HarvesterState:
        """Return the state at time 0."""
        scenario, table = self.scenario, self.constants.lines[0]
        y = np.zeros(WIDTH)
        y[:3] = scenario.angles
        if self.parameters.hangs:
            y[HEAD] = -0.5 * math.pi - y[1] - y[2]
        y[RAIL], y[LOG] = self.parameters.supply_pressure, scenario.log
        y[[6, 9]] = scenario.swing_pressure
        y[10:12] = scenario.rod_pressure
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
        schedule: Schedule = self.__dict__['_schedule']
        counters = np.array([0.0, y[6:12].min(), 0.0])
        spools = tuple(schedule.starts[0].tolist())
        memory = new_memory(len(JOINTS))
        return HarvesterState(y, closed, np.zeros(len(BOOK)), counters, spools, memory, spools)

    def _check_step(self) -> None:
        """Raise InputError when the step is too long for oil and bodies at time 0."""
        table, y = self.constants.lines[0], self.initial_state().y
        # Without a head that hangs, which pulls at the stick by its weight, not by its inertia.
        M11, M22, M23, M33 = masses(y, self.constants.bodies)
        mass = np.array([[M11, 0.0, 0.0], [0.0, M22, M23], [0.0, M23, M33]])
        C = np.array([a.line.capacitance for a in self.parameters.actuators])
        I = np.array([a.line.inertance for a in self.parameters.actuators])  # noqa: E741
        stiffness = (table[:, AREA_1] ** 2 + table[:, AREA_2] ** 2) / C + table[:, STOP_STIFFNESS]
        stiffness *= self._arms() ** 2
        squares = np.linalg.eigvals(np.linalg.solve(mass, np.diag(stiffness))).real
        fastest = math.sqrt(max(squares.max(), (1.0 / (I * C)).max()))
        if self.step * fastest > _STABILITY:
            raise InputError(
                f'step = {self.step:g} s, allowed for this harvester: at most'
                f' {_STABILITY / fastest:.2g} s; small capacitances and inertances need short'
                ' steps, or model = reduced'
            )

    def initial_state(self) -> HarvesterState:
        """Return the harvester at rest in the scenario's pose, without flow."""
        state: HarvesterState = self.__dict__['_initial']
        return state

    def advance(
        self,
        state: HarvesterState,
        command: tuple[float, ...] | ByScenario,
        time: float,
        duration: float,
    ) -> HarvesterState:
        """
        Return the state ``duration`` [s] after ``time`` [s]; both instants are rounded to steps.

        Raises
        ------
        InputError
            For a command that is not allowed.
        IntegrationError
            When the state does not stay finite, or a linkage passes its dead point.
        """
        # Samples need not be whole steps: the instants are rounded, not their distance.
        first, last = (int(at / self.step + _HALF) for at in (time, time + duration))
        return self.advance_recorded(state, command, first, last - first, 0)[0]

    def advance_recorded(
        self,
        state: HarvesterState,
        command: tuple[float, ...] | ByScenario,
        first: int,
        steps: int,
        every: int,
    ) -> tuple[HarvesterState, np.ndarray]:
        """
        Advance and record.

        Parameters
        ----------
        state : HarvesterState
        command : tuple of 3 floats, or BY_SCENARIO
        first, steps : int
            Steps from time 0 to ``state``, and steps to take.
        every : int
            Interval of rows in steps; 0: no rows.

        Returns
        -------
        state : HarvesterState
        rows : ndarray, shape (rows, ROW)
            y, spools, modes and BOOK after every ``every``-th step, counted from step 0.

        Raises
        ------
        InputError
            For a command that is not allowed.
        PartialRunError
            With what happened in the step that failed, and the rows up to there.
        """
        schedule, control = self._schedule_of(command), _NO_CONTROL
        if command is BY_SCENARIO and self.__dict__['_sensors'] is not None:
            return self._advance_measured(state, first, steps, every)
        if command is BY_SCENARIO and self.scenario.is_controlled:
            # The cycles write on it.
            schedule, control = constant_schedule(state.commands), self.__dict__['_control']
        last = first + steps
        rows = np.empty((last // every - first // every if every else 0, ROW))
        changes: list[tuple[int, float]] = self.__dict__['_changes']
        edges = [first, *(count for count, _ in changes if first < count < last), last]
        # A log changes with the step that starts at its time.
        for begin, end in itertools.pairwise(edges if steps else ()):
            for count, mass in changes:
                if count == begin:
                    state = self._holding(state, mass)
            y, closed, book, counters = (array.copy() for array in state[:4])
            spools, memory = np.array(state.spools), state.memory.copy()
            commands = np.array(state.commands)
            modes = (y, closed, book, counters, spools, memory, commands)
            model = self.with_log(float(y[LOG]))
            filled = begin // every - first // every if every else 0
            run = (self.step, begin, end - begin, every, rows[filled:])
            taken, status = _advance(*modes, schedule, control, model, *run)
            if status != DONE:
                time = step_time(begin + taken, self.step)
                kept = (begin + taken) // every - first // every if every else 0
                raise PartialRunError(self._failure(status, time, y), rows[:kept])
            positions = tuple(spools.tolist()), memory, tuple(commands.tolist())
            state = HarvesterState(y, closed, book, counters, *positions)
        return state, rows

    def _advance_measured(
        self, state: HarvesterState, first: int, steps: int, every: int
    ) -> tuple[HarvesterState, np.ndarray]:
        """Advance and record under controllers that get the readings of sensors."""
        wanted, gains, cycle = self.__dict__['_control']
        tables, n = [np.empty((0, ROW))], first
        while n < first + steps:
            if n % cycle == 0:
                k = n // cycle
                angles = self.__dict__['_sensors'].read(state.y[:3], k).angles
                memory, spools = state.memory.copy(), np.zeros(len(JOINTS))
                reference = wanted[min(k, len(wanted) - 1)]
                pid_cycle(angles, reference, memory, gains, cycle * self.step, spools)
                state = state._replace(commands=tuple(spools.tolist()), memory=memory)
            count = min(cycle - n % cycle, first + steps - n)
            try:
                state, rows = self.advance_recorded(state, state.commands, n, count, every)
            except PartialRunError as error:
                raise PartialRunError(str(error), np.vstack([*tables, *error.recorded])) from error
            tables.append(rows)
            n += count
        return state, np.vstack(tables)

    def _schedule_of(self, command: tuple[float, ...] | ByScenario) -> Schedule:
        """Return the schedule of a command."""
        if isinstance(command, ByScenario):
            known: Schedule = self.__dict__['_schedule']
            return known
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

    def joint_sample(
        self,
        state: HarvesterState,
        command: tuple[float, ...] | ByScenario,  # noqa: ARG002
    ) -> JointSample:
        """Return joints with torques, and cylinders with forces, of the robot description."""
        forces = np.empty((1, 3))
        forces_of(state.y[None], self.constants, forces)
        _, arms = pistons_and_arms(self.constants.lines[0], state.y[None, :3])
        return moving_joints(self.parameters, state.y, forces[0] * arms[0], forces[0])
