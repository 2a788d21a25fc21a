"""
The boom in a posture as a linear plant from oil to vibration, for the design of controllers.

A closed cylinder is a spring: with s_i, the piston travel for which oil was let in, the force on
the piston is F_i = k_i (s_i - s_p,i), whatever the load. The valve moves s, s' = v, where v is the
velocity at which the piston would move without load; pressures and position tell s at any time,
s = s_p + F / k. So s is controlled like a position, without friction and without drift, while the
boom vibrates on the springs:

    M q'' + D q' + K q = J k (s - J^T q) + J d + T w

with lever arms J, unknown forces d on the pistons (friction, errors of pressures) and an unknown
vertical force w at the tip (payload). M, D, K and T are those of the linear model of
:mod:`longreach_boom.linear` with pistons that slide.
"""

from __future__ import annotations

import dataclasses
import itertools
from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_discrete_are

from longreach_boom.kinematics import point_motion
from longreach_boom.linear import smooth_model
from longreach_boom.model import Load, constants_of
from longreach_boom.parameters import BoomParameters
from longreach_boom.state import BoomState
from longreach_boom.statics import Equilibrium, equilibrium
from longreach_dynamics.errors import InputError, check_within
from longreach_dynamics.hydraulics import Actuators, oil_stiffness
from longreach_dynamics.hydraulics.friction import OUTWARDS
from longreach_dynamics.linkages import pistons_and_arms
from longreach_machine import linearize

# Time in which unknown forces on the pistons fade in the observer's model [s].
FADING = 4.0
# Weights, that of the tip's velocity being 1: of oil [1/s^2], of the valves' velocities, and of
# the tip's position, over the square of the first mode's angular frequency.
BETA, RHO, POSITION = 5.0, 60.0, 1.5
# Velocities that are held for longer than this [s] cost more: pistons would stick and slide.
_HOLD = 0.02
# Where friction can hold the tip farther from its rest than this [m], its position counts less:
# pistons would oscillate between sticking and sliding.
_HELD = 6e-3


@dataclasses.dataclass(frozen=True)
class Situation:
    """
    What a controller of vibrations knows of its boom, and of the ``loads`` that hang on it.

    It works about the posture ``angles`` (N,) [rad], in cycles of the length ``sample_time`` [s];
    ``delay`` [s] is the time from a measurement to the effect of the command on the valve.
    InputError for a sample time or a delay out of range.
    """

    boom: BoomParameters
    angles: np.ndarray
    loads: tuple[Load, ...] = ()
    sample_time: float = 0.01
    delay: float = 0.05

    def __post_init__(self) -> None:
        """Check the numbers."""
        check_within('sample_time', self.sample_time, '(0, 0.1] s')
        check_within('delay', self.delay, '[0, 1] s')

    @property
    def delay_cycles(self) -> int:
        """The delay in whole cycles."""
        return round(self.delay / self.sample_time)

    @property
    def effort(self) -> np.ndarray:
        """The weights of the valves' velocities, R (N, N)."""
        return RHO * max(1.0, self.sample_time / _HOLD) ** 2 * np.eye(self.boom.size)


class States(NamedTuple):
    """Where the parts of a state (q, q', s, s', d, w) are; those after it are inputs under way."""

    q: slice
    rate: slice
    oil: slice
    flow: slice
    forces: slice
    payload: slice
    moved: int  # how many controllers can move: all before the unknown forces
    size: int


@dataclasses.dataclass(frozen=True)
class Plant:
    """Matrices of the plant about a posture at rest, see the module."""

    stiffness: np.ndarray  # (n, n) M^-1 K, without the springs of the oil
    damping: np.ndarray  # (n, n) M^-1 D
    piston: np.ndarray  # (n, N) M^-1 J: accelerations by forces on the pistons
    tip_force: np.ndarray  # (n, 2) accelerations by a force at the tip, x and z
    arms: np.ndarray  # (N, n) J^T: pistons by coordinates
    tip: np.ndarray  # (2, n) displacement of the tip by coordinates, x and z
    inclination: np.ndarray  # (N, n) angles of the beams' tips by coordinates
    oil: np.ndarray  # (N,) stiffness k of the closed cylinders [N/m]
    rest: Equilibrium
    actuators: Actuators
    valve_time: float  # time constant of the slowest spool [s]
    static: np.ndarray  # (N,) static friction of the pistons [N]

    @classmethod
    def of(cls, situation: Situation) -> Plant:
        """Return the plant of a situation; LongreachError where the boom cannot rest."""
        boom, angles = situation.boom, np.asarray(situation.angles, dtype=float)
        if boom.truck is not None:
            raise InputError('a truck on springs is not in this plant, allowed: a fixed truck')
        rest = equilibrium(boom, angles, situation.loads)
        N, n = boom.size, rest.q.size
        constants = constants_of(boom, situation.loads)
        state = BoomState(
            rest.state(np.zeros(N)), np.full(N, OUTWARDS, dtype=np.int64), situation.loads
        )
        smooth = smooth_model(boom, state, free=True)
        model = linearize(smooth, [f'tip_force_x_{N}', f'tip_force_z_{N}'], [])
        rates, pressures = slice(n, 2 * n), slice(2 * n, 2 * n + N)
        (pistons,), (arms,) = pistons_and_arms(constants.linkage, angles[None])
        tip = np.empty((2, n))
        for k, unit in enumerate(np.eye(n)):
            motion = point_motion(boom, rest.q[None], unit[None], N - 1, boom.beams[-1].length)
            tip[:, k] = motion.velocity[0]
        # Angle of a tip: the joints up to it and the slopes of the beams up to it.
        up_to = np.tril(np.ones((N, N)))
        inclination = np.hstack([up_to, *(up_to * slope for slope in constants.tip_slope.T)])
        actuators = constants.actuators
        return cls(
            stiffness=-model.A[rates, :n],
            damping=-model.A[rates, rates],
            piston=model.A[rates, pressures] / actuators.head_area,
            tip_force=model.B[rates],
            arms=np.hstack([np.diag(arms), np.zeros((N, n - N))]),
            tip=tip,
            inclination=inclination,
            oil=np.asarray(sum(oil_stiffness(actuators, pistons))),
            rest=rest,
            actuators=actuators,
            valve_time=max(cylinder.valve.time_constant for cylinder in boom.cylinders),
            static=np.array([cylinder.friction.static for cylinder in boom.cylinders]),
        )

    @property
    def closed(self) -> np.ndarray:
        """M^-1 (K + J k J^T) (n, n), with the springs of closed cylinders."""
        return np.asarray(self.stiffness + self.piston * self.oil @ self.arms)

    def modes(self) -> tuple[np.ndarray, np.ndarray]:
        """Return natural frequencies [Hz] of closed, sliding cylinders, and modes (n, n)."""
        squares, vectors = np.linalg.eig(self.closed)
        order = np.argsort(squares.real)
        return np.sqrt(squares.real[order]) / (2.0 * np.pi), vectors.real[:, order]

    @property
    def share(self) -> float:
        """Factor in (0, 1] on the position's weight and on growths of forces, see _HELD."""
        N = len(self.oil)
        held = float(np.linalg.norm(self.tip @ self.resting()[:, N : 2 * N] * self.static))
        return min(1.0, _HELD / held) ** 3 if held else 1.0

    @property
    def states(self) -> States:
        """Where the parts of :meth:`state_space` are."""
        n, N = self.piston.shape
        ends = np.cumsum([0, n, n, N, N, N, 1]).tolist()
        q, rate, oil, flow, forces, payload = (slice(*pair) for pair in itertools.pairwise(ends))
        return States(q, rate, oil, flow, forces, payload, moved=ends[4], size=ends[-1])

    def resting(self) -> np.ndarray:
        """Return coordinates at rest (n, 2 N + 1) by oil, forces on pistons and at the tip."""
        causes = np.hstack([self.piston * self.oil, self.piston, self.tip_force[:, 1:]])
        return np.asarray(np.linalg.solve(self.closed, causes))

    def cost(self, size: int, position: float = POSITION) -> np.ndarray:
        """Return Q (size, size) of ``|tip'|^2 + position share w_1^2 |tip|^2 + BETA s^2``."""
        at, Q, tip = self.states, 1e-10 * np.eye(size), self.tip.T @ self.tip
        Q[at.rate, at.rate] += tip
        Q[at.q, at.q] += position * self.share * (2.0 * np.pi * self.modes()[0][0]) ** 2 * tip
        Q[at.oil, at.oil] += BETA * np.eye(len(self.oil))
        return Q

    def state_space(self) -> tuple[np.ndarray, np.ndarray]:
        """
        Return A and B of the states (q, q', s, s', d, w) from velocities v of the valves.

        The spool lags v. d fades with :data:`FADING`, so that what lasts is taken for payload.
        """
        n, N = self.piston.shape
        at = self.states
        A, B = np.zeros((at.size, at.size)), np.zeros((at.size, N))
        A[at.q, at.rate] = np.eye(n)
        A[at.rate, at.q], A[at.rate, at.rate] = -self.closed, -self.damping
        A[at.rate, at.oil], A[at.rate, at.forces] = self.piston * self.oil, self.piston
        A[at.rate, at.payload] = self.tip_force[:, 1:]
        A[at.oil, at.flow] = np.eye(N)
        A[at.flow, at.flow], B[at.flow] = -np.eye(N) / self.valve_time, np.eye(N) / self.valve_time
        A[at.forces, at.forces] = -np.eye(N) / FADING
        return A, B


def delayed(A: np.ndarray, B: np.ndarray, cycles: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a sampled model whose inputs act some cycles later; these are further states."""
    if not cycles:
        return A, B
    n, m = B.shape
    size = n + cycles * m
    found, into = np.zeros((size, size)), np.zeros((size, m))
    found[:n, :n], found[:n, n : n + m] = A, B
    found[n:-m, n + m :] = np.eye((cycles - 1) * m)
    into[-m:] = np.eye(m)
    return found, into


def regulator(
    A: np.ndarray, B: np.ndarray, Q: np.ndarray, R: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return K of u = -K x that minimises the sum of x^T Q x + u^T R u, and the cost to go P."""
    P = solve_discrete_are(A, B, Q, R)
    return np.linalg.solve(R + B.T @ P @ B, B.T @ P @ A), P


def relief_settings(boom: BoomParameters) -> np.ndarray:
    """Return the settings of the relief valves [Pa], (2, N): head sides, rod sides; inf: none."""
    valves = [cylinder.relief for cylinder in boom.cylinders]
    return np.array(
        [[getattr(v, side) if v else np.inf for v in valves] for side in ('head', 'rod')]
    )
