"""
Flexible links as a machine: motors, a digital controller, a scenario; stepped by compiled code.

Equations with the rotors of the motors and damping of the links: :mod:`longreach_symbolic.arm`.
The controller of each motor is

    tau = tau_r + K (gamma_r - gamma) + D (gamma_r' - gamma')

once per cycle. The scenario says where the chords shall be; gamma_r is where the motors are when
the links rest there, bent by their weight, and tau_r moves links that are bent so along. Brakes of
the motors let their angles come to rest within ``BRAKE_TIME``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numba import njit

from longreach_dynamics.errors import InputError, LongreachError
from longreach_dynamics.kernels import read_only
from longreach_dynamics.linear_algebra import lu, lu_solve
from longreach_dynamics.stepping import nonstiff_integrator, raise_for
from longreach_machine.machine import BY_SCENARIO, ByScenario, JointSample, step_count, step_time
from longreach_symbolic.arm import Arm, check_stable, elastic_stiffness
from longreach_symbolic.generated import compiled, kernels_of, parameter_values
from longreach_symbolic.links import Links
from longreach_symbolic.motion import Constants, accelerator, force_matrix
from longreach_symbolic.scenario import Scenario

Torques = tuple[float, ...]
"""Command: torques of the motors [N m]."""

BRAKES: Torques = ()
"""Command: the brakes of all motors close."""

BRAKE_TIME = 0.01
"""Time constant of the motors' rates when brakes close [s]."""

# Of the local error of a step; coordinates are in rad and m.
_RELATIVE, _ABSOLUTE = 1e-9, 1e-11
# First step of the integration over the interval.
_FIRST = 0.1
# Interval of the differences by which references are derived [s].
_APART = 1e-3
# Poses of a scenario at which the loop must be stable.
_POSES = 5


class State(NamedTuple):
    """State of the links. Never changed in place."""

    x: np.ndarray  # (2 n,): q and q'
    torques: np.ndarray  # (N,) that acted last [N m]


def resting_pose(equations: Callable[..., None]) -> Callable[..., bool]:
    """Return the compiled function ``rest(q, torque, constants)`` that finds how links rest."""
    # It takes joint angles q[:N], fills q[N:] and the holding torques (N,); False: there are none.

    @njit
    def rest(q, torque, constants):  # type: ignore[no-untyped-def]
        n, count = constants.force.shape
        rates, velocity, static = np.zeros(n), np.empty(n), np.empty(n)
        mass = np.empty((n, n))
        size = n - count
        matrix, offset = np.empty((size, size)), np.empty(size)
        for column in range(-1, size):
            q[count:] = 0.0
            if column >= 0:
                q[count + column] = 1.0
            equations(q, rates, constants.values, mass, velocity, static)
            for row in range(size):
                left = static[count + row]
                for i in range(count):
                    left -= constants.force[count + row, i] * static[i]
                if column < 0:
                    offset[row] = left
                else:
                    matrix[row, column] = left - offset[row]
        pivots = np.empty(size, np.int64)
        if not lu(matrix, pivots):
            return False
        q[count:] = -offset
        lu_solve(matrix, pivots, q[count:])
        equations(q, rates, constants.values, mass, velocity, static)
        torque[:] = static[:count]
        return True

    return rest  # type: ignore[no-any-return]


def stepper(equations: Callable[..., None]) -> Callable[..., tuple[np.ndarray, int]]:
    """Return ``step(x, torque, stopping, ..)``, which gives state and integrator's status."""
    accelerate = accelerator(equations)

    @njit
    def right_hand_side(_, x, inputs, constants, dx):  # type: ignore[no-untyped-def]
        torque, stopping = inputs
        n = len(constants.force)
        accelerate(x, torque, stopping, constants, dx[n:])
        dx[:n] = x[n:]

    integrate = nonstiff_integrator(right_hand_side)

    @njit
    def step(x, torque, stopping, duration, constants):  # type: ignore[no-untyped-def]
        first = _FIRST * duration
        inputs = (torque, stopping)
        after, _, _, status = integrate(
            0.0, duration, x, inputs, constants, _RELATIVE, _ABSOLUTE, first
        )
        if stopping > 0.0:
            accelerate(after, torque, stopping, constants, np.empty(len(constants.force)))
        return after, status

    return step  # type: ignore[no-any-return]


def joint_names(links: Links) -> tuple[str, ...]:
    """Return the names in a sample: chords, motors, deflections."""
    numbers = range(1, len(links.links) + 1)
    return (
        *(f'joint_{i}' for i in numbers),
        *(f'motor_{i}' for i in numbers),
        *(f'f_{i}_{k}' for i in numbers for k in range(1, links.modes + 1)),
    )


class Controller:
    """The digital controllers of all motors, and what they follow."""

    def __init__(self, links: Links, arm: Arm, scenario: Scenario) -> None:
        self.links, self.arm, self.scenario = links, arm.on(links), scenario
        scenario.check_links(links)
        self._force = force = force_matrix(links)
        self.constants = read_only(
            Constants(
                parameter_values(links),
                force.copy(),
                force.copy(),
                (force * self.arm.column('rotor_inertia')) @ force.T,
                self.arm.damping * elastic_stiffness(links),
            )
        )
        self._equations = compiled(links).equations
        self.kernels = kernels_of(compiled(links), __name__, rest='resting_pose', step='stepper')
        self._gains = tuple(self.arm.column(name) for name in ('gain', 'rate_gain'))
        times = np.linspace(0.0, scenario.duration, _POSES)
        check_stable(links, self.arm, [self.rest(time)[0] for time in times])

    def rest(self, time: float) -> tuple[np.ndarray, np.ndarray]:
        """Return q (n,) of links that rest where the scenario wants them, and torques."""
        try:
            return self.rest_at(self.planned_angles(time))
        except LongreachError as error:
            raise LongreachError(f'at {time:g} s: {error}') from error

    def planned_angles(self, time: float) -> np.ndarray:
        """Return the joint angles (N,) that the scenario wants at a time [s], [rad]."""
        return self.scenario.angles(time, self.links)

    def rest_at(self, angles: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return q (n,) of links that rest with these joint angles (N,) [rad], and torques."""
        q, torques = np.zeros(self.links.size), np.empty(len(self.links.links))
        q[: len(torques)] = angles
        if not self.kernels.rest(q, torques, self.constants) or not np.isfinite(q).all():
            raise LongreachError(
                'the links cannot rest in their pose; give stiffer or lighter links'
            )
        return q, torques

    def motors(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return motor angles [rad] and rates [rad/s] of a state x (2 n,)."""
        n = self.links.size
        return x[:n] @ self._force, x[n:] @ self._force

    def rates(self, x: np.ndarray, torques: np.ndarray, forces: np.ndarray) -> np.ndarray:
        """Return the derivative of x (2 n,) under torques (N,) and forces on q (n,), no brakes."""
        n, c = self.links.size, self.constants
        mass, velocity, static = np.empty((n, n)), np.empty(n), np.empty(n)
        self._equations(x[:n], x[n:], c.values, mass, velocity, static)
        forces = forces + c.force @ torques - velocity - static - c.damping @ x[n:]
        return np.concatenate([x[n:], np.linalg.solve(mass + c.rotors, forces)])

    def torques(self, angles: np.ndarray, rates: np.ndarray, cycle: int) -> Torques:
        """Return the torques of a cycle of the scenario for motor angles and rates (N,)."""
        return self.torques_towards(self.planned_angles, angles, rates, self.time(cycle))

    def torques_towards(
        self,
        wanted: Callable[[float], np.ndarray],
        angles: np.ndarray,
        rates: np.ndarray,
        time: float,
    ) -> Torques:
        """Return the torques at a time [s]; ``wanted`` returns joint angles (N,) [rad] near it."""
        # Feed-forward torques move links that are bent as at rest along the way: forces on the
        # joint angles, where the force map is the identity. ``angles``, ``rates``: of the motors.
        behind, q, ahead = (
            self.rest_at(wanted(time + shift))[0] for shift in (-_APART, 0, _APART)
        )
        wanted_rates = (ahead - behind) / (2.0 * _APART)
        n, count = self._force.shape
        mass, velocity, static = np.empty((n, n)), np.empty(n), np.empty(n)
        self._equations(q, wanted_rates, self.constants.values, mass, velocity, static)
        forces = (mass + self.constants.rotors) @ (ahead - 2.0 * q + behind) / _APART**2
        torques = (forces + velocity + static)[:count]
        gain, rate_gain = self._gains
        errors = q @ self._force - angles
        found = torques + gain * errors + rate_gain * (wanted_rates @ self._force - rates)
        return tuple(found.tolist())

    def time(self, cycle: int) -> float:
        """Return the time of a cycle [s]."""
        return step_time(cycle, self.arm.sample_time)


@dataclasses.dataclass(frozen=True)
class FlexibleLinks:
    """
    Flexible links with motors as a :class:`longreach_machine.machine.Machine`.

    A command is :data:`Torques`, which stay constant, :data:`BRAKES`, or BY_SCENARIO: the
    controllers act by themselves, cycle by cycle.

    Parameters
    ----------
    links : Links
    arm : Arm
    scenario : Scenario

    Raises
    ------
    InputError
        When the three do not fit together, or the loop is unstable.
    """

    links: Links
    arm: Arm
    scenario: Scenario
    controller: Controller = dataclasses.field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Make the controllers, which check all."""
        object.__setattr__(self, 'controller', Controller(self.links, self.arm, self.scenario))

    @property
    def step(self) -> float:
        """Interval of samples and cycles [s]."""
        return self.arm.sample_time

    def initial_state(self) -> State:
        """Return the links at rest, or straight, where the scenario begins."""
        q, torques = self.controller.rest(0.0)
        if self.scenario.straight:
            q[len(torques) :] = 0.0
        return State(np.concatenate((q, np.zeros_like(q))), torques)

    def advance(
        self, state: State, command: Torques | ByScenario, time: float, duration: float
    ) -> State:
        """
        Return the state ``duration`` [s] after ``time`` [s].

        Raises
        ------
        InputError
            For another number of torques than of motors, and for BY_SCENARIO when time or duration
            are no whole cycles.
        IntegrationError
            When the state becomes non-finite.
        LongreachError
            When a deflection exceeds the length of its link.
        """
        if command is not BY_SCENARIO:
            return self._advance(state, command, time, duration)
        first = step_count(time, self.step, 'time')
        for cycle in range(first, first + step_count(duration, self.step, 'duration')):
            torques = self.controller.torques(*self.controller.motors(state.x), cycle)
            state = self._advance(state, torques, self.controller.time(cycle), self.step)
        return state

    def _advance(self, state: State, torques: Torques, time: float, duration: float) -> State:
        """Return the state after a time under constant torques, or braked."""
        controller, count = self.controller, len(self.links.links)
        if torques and len(torques) != count:
            raise InputError(f'command has {len(torques)} torques, allowed: {count}, or BRAKES')
        acting = np.array(torques or (0.0,) * count)
        x, status = controller.kernels.step(
            state.x, acting, 0.0 if torques else BRAKE_TIME, duration, controller.constants
        )
        raise_for(status, time, state.x)
        deflections = self.links.largest_deflections(x[count : self.links.size])
        for i, (link, found) in enumerate(zip(self.links.links, deflections, strict=True), 1):
            if found > link.length:
                raise LongreachError(
                    f'after t = {time:g} s link {i} is bent by more than its length, which the'
                    ' equations do not describe; give smaller torques, or stiffer links'
                )
        return State(x, acting)

    def joint_sample(self, state: State, command: Torques | ByScenario) -> JointSample:  # noqa: ARG002
        """Return chords, motors with the torques that acted until now, deflections [m]."""
        n, count = self.links.size, len(self.links.links)
        q, rates = state.x[:n].tolist(), state.x[n:].tolist()
        angles, angle_rates = (values.tolist() for values in self.controller.motors(state.x))
        none = (0.0,) * count
        return JointSample(
            joint_names(self.links),
            (*q[:count], *angles, *q[count:]),
            (*rates[:count], *angle_rates, *rates[count:]),
            (*none, *state.torques.tolist(), *(0.0,) * (n - count)),
        )
