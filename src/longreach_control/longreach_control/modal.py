"""
Modal feedback: a linear-quadratic regulator of the tip's motion, with an observer.

The observer is Kalman's filter of the plant with the delay, from encoders, forces and gyroscopes.
Beside the state it finds unknown forces on the pistons, which is where friction and errors of
pressures go, an unknown vertical force at the tip, which is an error of the payload, and the
biases of the gyroscopes. The regulator minimises

    int |tip velocity|^2 + c |tip - rest|^2 + beta |s - s_w|^2 + rho |v|^2 dt

about the rest that follows from these forces with the oil s_w that is wanted, so that it damps,
does not drift and does not fight the load. Without the second term a tip that friction holds away
from its rest creeps back for seconds. Commands of the operator are answered without that term,
because the boom is to stop soon, not at a position: a model of the boom without disturbances
follows them so, and the regulator keeps the boom at the model. Sources: Kwakernaak and Sivan,
Linear Optimal Control Systems, 1972, for both; Henikl, Kemmetmueller, Kugi, Automation in
Construction 2016, for the measurements of such booms.
"""

from __future__ import annotations

import copy
import math
from typing import Self

import numpy as np
from scipy.linalg import solve_discrete_are

from longreach_control.controller import DampingController, Measured, Wanted
from longreach_control.plant import POSITION, Situation, delayed, regulator
from longreach_machine.control import held_input

# How fast what was asked for is caught up with [1/s].
_CATCHING = 1.0
# Standard deviations of the noise of readings: encoders [m], forces [N], gyroscopes [rad/s].
_READINGS = 2e-5, 2e3, 3e-3
# Growth in the root of a second of what is unknown: velocity of the oil [m/s], forces on the
# pistons [N], force at the tip [N], biases of the gyroscopes [rad/s], accelerations [1/s]. Forces
# that are found late leave the tip away from its rest for seconds; where friction can hold it far
# away, forces that are found too soon move its rest along with its vibration (Plant.share). An
# error of the payload also acts by its inertia, as an impulse at the tip [N s]: without it the
# observer trusts modes that are those of another load, and keeps them swinging after a release.
_OIL, _FORCE, _PAYLOAD, _BIAS, _OTHER, _INERTIA = 2e-3, 1.5e4, 300.0, 1e-5, 1e-4, 15.0
# Standard deviation of the biases at first [rad/s].
_UNKNOWN = 2e-3


class Observer:
    """State of the plant, unknown forces and biases of the gyroscopes, from readings."""

    def __init__(self, controller: DampingController) -> None:
        plant, situation = controller.plant, controller.situation
        N, T, at = len(plant.oil), situation.sample_time, plant.states
        self._controller = controller
        self.A, self.B = delayed(*held_input(*plant.state_space(), T), situation.delay_cycles)
        # Biases come last.
        self._whole = whole = len(self.A)
        total = whole + N
        F, G = np.eye(total), np.zeros((total, N))
        F[:whole, :whole], G[:whole] = self.A, self.B
        C = np.zeros((3 * N, total))
        C[:N, at.q] = plant.arms
        C[N : 2 * N, at.q] = -plant.oil[:, None] * plant.arms
        C[N : 2 * N, at.oil] = np.diag(plant.oil)
        C[2 * N :, at.rate], C[2 * N :, whole:] = plant.inclination, np.eye(N)
        noise = np.full(total, 1e-12)
        for part, growth in (
            (at.rate, _OTHER),
            (at.oil, _OIL),
            (at.forces, _FORCE * plant.share),
            (at.payload, _PAYLOAD * plant.share),
            (slice(whole, total), _BIAS),
        ):
            noise[part] += growth**2 * T
        spread = np.repeat(_READINGS, N) ** 2
        self._F, self._G, self._C = F, G, C
        self._W, self._V = np.diag(noise), np.diag(spread)
        self._W[at.rate, at.rate] += _INERTIA**2 * T * plant.tip_force @ plant.tip_force.T
        # Stationary, but for the biases, of which nothing is known at first: the gain changes for
        # some 100 s, so that it is computed in every cycle.
        self._P = solve_discrete_are(F.T, C.T, self._W, self._V)
        self._P[whole:], self._P[:, whole:] = 0.0, 0.0
        self._P[whole:, whole:] = _UNKNOWN**2 * np.eye(N)
        self._x = np.zeros(total)
        self._rest: np.ndarray | None = None

    def update(self, measured: Measured) -> np.ndarray:
        """Return the state (q, q', s, s', d, w, commands under way) after a reading."""
        force = self._controller.forces(measured)
        if self._rest is None:
            # Where it starts counts as rest, so that constant errors of sensors do not matter.
            self._rest = np.concatenate([measured.pistons, force])
        seen = np.concatenate([measured.pistons, force]) - self._rest
        y = np.concatenate([seen, measured.rates])
        C, P = self._C, self._P
        gain = np.linalg.solve(C @ P @ C.T + self._V, C @ P).T
        self._x = self._x + gain @ (y - C @ self._x)
        left = np.eye(len(P)) - gain @ C
        # In Joseph's form, which rounding does not make indefinite.
        self._P = left @ P @ left.T + gain @ self._V @ gain.T
        return self._x[: self._whole]

    def predict(self, v: np.ndarray) -> None:
        """Go on by a cycle with the velocities that were commanded."""
        F = self._F
        self._x = F @ self._x + self._G @ v
        self._P = F @ self._P @ F.T + self._W


class ModalFeedback(DampingController):
    """Linear-quadratic damping of the tip's motion."""

    smallest = 1e-4

    def __init__(self, situation: Situation) -> None:
        super().__init__(situation)
        self.observer = Observer(self)
        A, B, at = self.observer.A, self.observer.B, self.plant.states
        # The unknown forces, which the regulator cannot move, are left out of its design.
        self._kept = kept = [*range(at.moved), *range(at.size, len(A))]
        self._gain, self._stopping = np.zeros((2, B.shape[1], len(A)))
        for gain, position in ((self._gain, POSITION), (self._stopping, 0.0)):
            Q = self.plant.cost(len(kept), position)
            gain[:, kept], _ = regulator(A[np.ix_(kept, kept)], B[kept], Q, situation.effort)
        self._resting = self.plant.resting()
        self._way, self._model = OilReference(self), np.zeros(len(A))

    def velocities(self, measured: Measured, wanted: Wanted) -> np.ndarray:
        """Return velocities that damp and follow."""
        apart, v = self.follow(measured, wanted)
        return np.asarray(v - self._gain @ apart)

    def follow(self, measured: Measured, wanted: Wanted) -> tuple[np.ndarray, np.ndarray]:
        """Return how the state differs from that of the model that follows, and its velocities."""
        at, way = self.plant.states, self._way
        x = self.observer.update(measured)
        _, oil = self.oil(measured, wanted)
        N, unknown = len(oil), x[at.moved : at.size]
        by_oil, by_unknown = self._resting[:, :N], self._resting[:, N:]
        still = np.concatenate(
            [
                by_oil @ way.oil,
                by_oil @ way.flow,
                way.oil,
                way.flow,
                np.zeros(len(unknown)),
                way.pending.ravel(),
            ]
        )
        there = self._model
        ahead = self.within_reach(measured, way.towards(wanted.velocities, oil))
        way.advance(ahead)
        v = self.within_reach(measured, ahead - self._stopping @ (there - still))
        self._model = self.observer.A @ there + self.observer.B @ v
        apart = x - there
        apart[at.q] -= by_unknown @ unknown
        apart[at.moved : at.size] = 0.0
        return apart, v

    def renewed(self) -> Self:
        """Return it with its model where the boom is: one made anew would take motion for rest."""
        after, at = copy.copy(self), self.plant.states
        x = self.observer._x[: len(self._model)].copy()
        x[at.q] -= self._resting[:, len(self.plant.oil) :] @ x[at.moved : at.size]
        x[at.moved : at.size] = 0.0
        after._model, after._way = x, OilReference(self)
        after._way.oil, after._way.flow = x[at.oil], x[at.flow]
        after._way.pending = x[at.size :].reshape(after._way.pending.shape)
        return after

    def cycle(self, measured: Measured, wanted: Wanted) -> np.ndarray:
        """Run a cycle, and tell the observer what was commanded."""
        spools = super().cycle(measured, wanted)
        self.observer.predict(self.commanded)
        return spools


class OilReference:
    """The oil of a boom that follows without vibration: behind the delay and the spools' lag."""

    def __init__(self, controller: DampingController) -> None:
        situation, N = controller.situation, controller.situation.boom.size
        self._time, self._lag = situation.sample_time, controller.plant.valve_time
        self.oil, self.flow = np.zeros(N), np.zeros(N)
        self.pending = np.zeros((situation.delay_cycles, N))

    def towards(self, velocities: np.ndarray, oil: np.ndarray) -> np.ndarray:
        """Return the velocities that bring it to velocities [m/s] and oil [m]."""
        ahead = self.oil + self._lag * self.flow + self._time * self.pending.sum(axis=0)
        return np.asarray(velocities + _CATCHING * (oil - ahead))

    def advance(self, v: np.ndarray) -> None:
        """Go on by a cycle with velocities [m/s]."""
        acting = v
        if len(self.pending):
            acting = self.pending[0]
            self.pending = np.vstack([self.pending[1:], v])
        decay = math.exp(-self._time / self._lag)
        self.oil = (
            self.oil + acting * self._time + (self.flow - acting) * self._lag * (1.0 - decay)
        )
        self.flow = acting + decay * (self.flow - acting)
