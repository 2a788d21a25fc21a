"""
The boom as a machine for nodes and runs.

Commands are constant between samples, and loads change at steps, so a run is a sequence of calls
of one compiled kernel that takes steps of equal length. Results do not depend on how the sequence
is divided into calls: a run over ROS equals the run of the library bit for bit.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math

import numpy as np

from longreach_boom.kinematics import (
    HOSE_JOINT,
    TRUCK_JOINTS,
    swing_angles,
    swing_joints,
    swing_ratios,
    swinging_cylinders,
    tip_angles,
)
from longreach_boom.model import Constants, Load, constants_of
from longreach_boom.modes import fastest_rate
from longreach_boom.motion import INDEFINITE, RUNAWAY, UNSETTLED, advance_motion
from longreach_boom.parameters import BoomParameters
from longreach_boom.scenario import Scenario
from longreach_boom.state import (
    BoomState,
    StateParts,
    flows_of,
    hydraulic_forces,
    truck_of,
)
from longreach_boom.statics import equilibrium
from longreach_dynamics.errors import InputError, check_count, check_within
from longreach_dynamics.hydraulics import STABILITY, counterbalance_rates, port_rates, spool_rates
from longreach_dynamics.hydraulics.friction import OUTWARDS, STUCK
from longreach_dynamics.linkages import pistons_and_arms
from longreach_machine.machine import (
    BY_SCENARIO,
    ByScenario,
    HydraulicSample,
    JointSample,
    Spools,
    step_time,
)
from longreach_machine.runs import PartialRunError
from longreach_machine.scenarios import spools_at

STEP = 1e-3  # [s]
# Instead of a step [s]: use the result of longest_step.
AUTOMATIC = 0.0
# Allowed steps [s]; longer ones are too long for the spools and for the cycle of a controller.
_SHORTEST, _LONGEST = 1e-6, 5e-3
SAMPLE_TIME = 5e-3  # [s], of the controller, of rows and of messages
# Where the flow through an open valve is almost zero, an explicit step that is too long for its
# laminar range makes the chamber pressure oscillate about the supply or tank pressure. The step is
# chosen so that the amplitude is at most this share of the supply pressure, where the slope of the
# orifice allows a stable step.
_SWING = 0.02
# Part of a step by which rounding may miss a whole number of them.
_WHOLE = 1e-6
# Largest number of steps in a sample.
_MOST_PARTS = 100
# Forces of disturbances are constant over so long [s], a number of steps.
_HOLD = 5e-3
# Steps are divided while relief or make-up valves are open, see motion.py: into so many parts or
# some more, which bounds the time that a run takes.
_DIVIDED = 32.0
# For each status of advance_motion: what the boom does, the reason, and the remedy.
_FAILURES = {
    RUNAWAY: (
        'runs away',
        'a number is not finite, or a beam bends by more than 1 rad: no small deflection',
        'Lighten the load, take a shorter step, or look for parameters of impossible size',
    ),
    INDEFINITE: (
        'cannot be accelerated',
        'its mass matrix is not positive definite',
        'Look for masses that are 0 or differ by many powers of ten, or take a shorter step',
    ),
    UNSETTLED: (
        'does not settle',
        'impulses that stop pistons keep reversing others',
        'Take a shorter step, or raise the static friction',
    ),
}


@dataclasses.dataclass(frozen=True)
class Boom:
    """
    The boom as a :class:`longreach_machine.machine.Machine`, with a step [s].

    A command are the spools, or BY_SCENARIO: the spools of the scenario's
    ``valve_commands`` at their times. Raises InputError when the scenario does not fit the boom or
    the step.
    """

    parameters: BoomParameters
    scenario: Scenario
    step: float = STEP

    def __post_init__(self) -> None:
        """Check the scenario."""
        check_within('step', self.step, f'[{_SHORTEST:g}, {_LONGEST:g}] s')
        self.scenario.check_with(self.parameters, self.step)

    @functools.cached_property
    def _load_changes(self) -> list[tuple[int, Load | None]]:
        """Return (step, load or None for a release), in order of time."""
        changes = self.scenario.load_changes(self.parameters)
        return [(round(time / self.step), load) for time, load in changes]

    def constants(self, loads: tuple[Load, ...]) -> Constants:
        """Return the numbers of the boom with loads, for compiled code."""
        return constants_of(self.parameters, loads, self.scenario.friction)

    def initial_state(self) -> BoomState:
        """Return the boom at rest with its loads; InputError for a step that is too long."""
        boom, loads = self.parameters, self.scenario.initial_loads(self.parameters)
        rest = equilibrium(boom, self.scenario.angles(boom), loads)
        y = rest.state(np.zeros(boom.size))
        self._check_step(rest.coordinates, rest.forces, loads)
        static = self.constants(loads).actuators.static
        modes = np.where(static > 0.0, STUCK, OUTWARDS).astype(np.int64)
        return BoomState(y, modes, loads)

    def _check_step(self, q: np.ndarray, forces: np.ndarray, loads: tuple[Load, ...]) -> None:
        """Raise InputError when the step is too long for the boom's fastest motion."""
        fastest = _fastest(q, forces, self.constants(loads))
        if self.step * fastest > STABILITY:
            raise InputError(
                f'step = {self.step:g} s, allowed for this boom in this pose: at most'
                f' {STABILITY / fastest:.2g} s, because its fastest motion is at'
                f' {fastest / (2.0 * math.pi):.4g} Hz, caused by short, light or stiff beams,'
                ' or by large valves with a small oil volume'
            )

    def attach(self, state: BoomState, load: Load) -> BoomState:
        """Return the state with one more load attached to the boom."""
        return state._replace(loads=(*state.loads, load))

    @functools.cached_property
    def concrete(self) -> tuple[Load, ...]:
        """The concrete in the line, which stays when loads are released."""
        return self.scenario.concrete(self.parameters)

    def release(self, state: BoomState) -> BoomState:
        """Return the state without the loads that hang on the boom."""
        return state._replace(loads=self.concrete)

    def advance(
        self, state: BoomState, command: Spools | ByScenario, time: float, duration: float
    ) -> BoomState:
        """Return the state ``duration`` [s], whole steps, after ``time`` [s]; IntegrationError."""
        steps = round(duration / self.step)
        if steps < 0 or abs(duration / self.step - steps) > _WHOLE:
            raise InputError(f'duration = {duration} s, allowed: whole steps of {self.step} s')
        return self.advance_recorded(state, command, round(time / self.step), steps, 0)[0]

    def advance_recorded(
        self, state: BoomState, command: Spools | ByScenario, first: int, steps: int, every: int
    ) -> tuple[BoomState, np.ndarray, np.ndarray, np.ndarray]:
        """
        Advance; return the state, and y, modes and forces of every ``every``-th step (0: none).

        Forces (rows, N, 2) are those of disturbances over the step that ends at a row.
        """
        last = first + steps
        rows = (last // every - first // every) if every else 0
        table = np.empty((rows, state.y.size))
        mode_table = np.empty((rows, state.modes.size), dtype=np.int64)
        force_table = np.zeros((rows, self.parameters.size, 2))
        y, modes, loads = state.y.copy(), state.modes.copy(), state.loads
        cuts = {at for at, _ in self._load_changes}
        if command is BY_SCENARIO:
            cuts |= {round(entry.time / self.step) for entry in self.scenario.valve_commands}
        forces = state.forces
        if self.scenario.disturbances:
            cuts |= set(range(first - first % self._hold, last, self._hold))
        edges = [first, *sorted(at for at in cuts if first < at < last), last]
        row = 0
        # A load change takes effect with the step that starts at its time.
        for begin, end in itertools.pairwise(edges if steps else ()):
            for at, load in self._load_changes:
                if at == begin:
                    loads = self.concrete if load is None else (*loads, load)
            commanded = self._command_at(command, begin)
            constants = self.constants(loads)
            if self.scenario.disturbances:
                # Those of the whole hold, so that the division into calls has no effect.
                if forces is None or begin % self._hold == 0:
                    forces = self.forces_at(begin, y)
                constants = constants.pulled(forces)
                force_table[row:] = forces
            taken, status = advance_motion(
                y,
                modes,
                np.array(commanded, dtype=float),
                constants,
                self.step,
                begin,
                end - begin,
                every,
                table[row:],
                mode_table[row:],
            )
            if taken < end - begin:
                kept = (begin + taken) // every - first // every if every else 0
                failed = BoomState(y, modes, loads)
                text = self._failure(status, begin + taken, failed, commanded)
                tables = table, mode_table, force_table
                raise PartialRunError(text, *(table[:kept] for table in tables))
            row = (end // every - first // every) if every else 0
        return BoomState(y, modes, loads, forces), table, mode_table, force_table

    @property
    def _hold(self) -> int:
        """Number of steps over which forces of disturbances are constant."""
        return max(1, round(_HOLD / self.step))

    def forces_at(self, step: int, y: np.ndarray) -> np.ndarray:
        """Return the forces of disturbances at the tips (N, 2) [N] over the steps of a hold."""
        middle = (step - step % self._hold + 0.5 * self._hold) * self.step
        tips, slopes = tip_angles(self.parameters, StateParts.of(y, self.parameters).q)
        # Of the beams' roots.
        angles = truck_of(y, self.parameters)[1] + tips - slopes
        hold, found = self._hold * self.step, np.zeros((self.parameters.size, 2))
        for item in self.scenario.disturbances:
            if item.share(middle, hold):
                found += item.forces(self.parameters, middle, hold, angles)
        return found

    def _command_at(self, command: Spools | ByScenario, step: int) -> Spools:
        """Return the spools from a step on, checked for compiled code; raises InputError."""
        N = self.parameters.size
        if command is BY_SCENARIO:
            time = step_time(step, self.step)
            command = spools_at(self.scenario.valve_commands, time, N)
        check_count('command', command, N)
        if not all(abs(spool) <= 1.0 for spool in command):
            raise InputError(f'spools = {tuple(command)}, allowed: [-1, 1]')
        return command

    def _failure(self, status: int, count: int, state: BoomState, command: Spools) -> str:
        """Return the error message for a failed step."""
        time, (y, modes, loads, _) = step_time(count, self.step), state
        what, reason, remedy = _FAILURES[status]
        return (
            f'the boom {what} in the step at t = {time:g} s: {reason}. To see it'
            f' again: Boom.advance(BoomState(np.array({y.tolist()}), np.array({modes.tolist()}),'
            f' {tuple(loads)}), {tuple(command)}, {time:g}, {self.step}). {remedy}'
        )

    def joint_sample(self, state: BoomState, command: object) -> JointSample:  # noqa: ARG002
        """Return the joints of the description: [rad] or [m], with torques [N m] or forces [N]."""
        boom, constants = self.parameters, self.constants(state.loads)
        parts, N = StateParts.of(state.y, boom), boom.size
        angles, rates = parts.q[:N], parts.v[:N]
        pistons, arms = (rows[0] for rows in pistons_and_arms(constants.linkage, angles[None]))
        forces = hydraulic_forces(parts, constants)
        functions = (constants.tip, constants.tip_slope)
        bent, bending = (
            [float(shape[i] @ part[N + i :: N]) for shape in functions for i in range(N)]
            for part in (parts.q, parts.v)
        )
        swinging = swinging_cylinders(boom)
        names = [
            *(f'{beam.name}_joint' for beam in boom.beams),
            *(cylinder.name for cylinder in boom.cylinders),
            *(f'{beam.name}_{what}' for what in ('deflection', 'slope') for beam in boom.beams),
            *swing_joints(boom),
        ]
        positions = [*angles.tolist(), *pistons.tolist(), *bent]
        positions += swing_angles(boom, angles).tolist()
        velocities = [*rates.tolist(), *(arms * rates).tolist(), *bending]
        velocities += (swing_ratios(boom, angles) * parts.v[swinging]).tolist()
        # The end hose hangs down: it turns back all angles and slopes before it.
        before = [*range(N), *range(3 * N, 4 * N)]
        if boom.truck is not None:
            truck = truck_of(state.y, boom)
            names += TRUCK_JOINTS
            positions += truck[:2].tolist()
            velocities += truck[2:].tolist()
            before.append(len(positions) - 1)
        names.append(HOSE_JOINT)
        positions.append(-sum(positions[k] for k in before))
        velocities.append(-sum(velocities[k] for k in before))
        efforts = [*(forces * arms).tolist(), *forces.tolist()]
        efforts += [0.0] * (len(names) - len(efforts))
        return JointSample(tuple(names), tuple(positions), tuple(velocities), tuple(efforts))

    def hydraulic_sample(self, state: BoomState, command: object) -> HydraulicSample:  # noqa: ARG002
        """Return pressures, flows and spools."""
        parts = StateParts.of(state.y, self.parameters)
        names = [cylinder.name for cylinder in self.parameters.cylinders]
        flows = flows_of(parts, self.constants(()))
        pressures = parts.head_pressures, parts.rod_pressures
        return HydraulicSample.of(names, *pressures, *flows, parts.spools)


def _fastest(q: np.ndarray, forces: np.ndarray, constants: Constants) -> float:
    """Return the fastest rate of motion and valves [1/s] about rest; see modes.fastest_rate."""
    actuators = constants.actuators
    laminar = min(actuators.laminar / (_SWING * actuators.supply), 1.0)
    spools = spool_rates(actuators) * math.sqrt(laminar)
    holding, ports = counterbalance_rates(actuators), port_rates(actuators) / _DIVIDED
    return float(max(fastest_rate(q, forces, constants), *holding, *ports, *spools))


def longest_step(
    parameters: BoomParameters, scenario: Scenario, sample_time: float = SAMPLE_TIME
) -> float:
    """Return the longest step [s] stable in all poses with all loads that divides a sample [s]."""
    scenario.check_with(parameters)
    carried = {(), *(loads for _, loads in scenario.carried(parameters))}
    poses = [scenario.angles(parameters)]
    poses += [np.radians(point.angles_deg) for point in scenario.waypoints(parameters)]
    fastest = 0.0
    for loads in carried:
        constants = constants_of(parameters, loads, scenario.friction)
        for pose in poses:
            rest = equilibrium(parameters, pose, loads)
            fastest = max(fastest, _fastest(rest.coordinates, rest.forces, constants))
    reason = ''
    for count in range(1, _MOST_PARTS + 1):
        step = sample_time / count
        if step > min(_LONGEST, STABILITY / fastest):
            continue
        try:
            scenario.check_with(parameters, step)
        except InputError as error:
            reason = f'; of the last one: {error}'
            continue
        return step
    raise InputError(
        f'sample_time = {sample_time:g} s has no whole part that is at most'
        f' {STABILITY / fastest:.2g} s, as this boom needs, and fits the scenario{reason}; give a'
        ' step'
    )
