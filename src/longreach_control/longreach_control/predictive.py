"""
Model predictive control: the cost of the modal feedback over a horizon, within limits.

Every ``EVERY`` cycles a quadratic program finds velocities over a horizon of some 20 ms each that
keep within the fastest piston velocity and the forces at which relief valves open; the first is
commanded. The cost beyond the horizon is that of the regulator, so that without active limits both
agree. Solver: OSQP (Stellato and others, Math. Prog. Comp. 12, 2020), started from the solution
before. Source of the method: Rawlings, Mayne, Diehl, Model Predictive Control, 2017.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from longreach_control.controller import Measured, Wanted
from longreach_control.modal import ModalFeedback
from longreach_control.plant import Situation, regulator, relief_settings
from longreach_machine.control import Horizon

# Cycles between two programs; steps of a horizon. Held for 5 cycles, velocities keep a boom
# swinging whose pistons stick.
EVERY, HORIZON = 2, 16
# Share of the relief pressure that a prediction may reach.
_PRESSURE = 0.95


class PredictiveControl(ModalFeedback):
    """Damp the tip's motion within the limits of flow and pressure."""

    def __init__(self, situation: Situation) -> None:
        super().__init__(situation)
        plant, N, at = self.plant, len(self.plant.oil), self.plant.states
        # Of the regulator's model, with velocities that are held for a step.
        A, B = self.observer.A[np.ix_(self._kept, self._kept)], self.observer.B[self._kept]
        B = sum((np.linalg.matrix_power(A, k) @ B for k in range(EVERY)), np.zeros_like(B))
        A = np.linalg.matrix_power(A, EVERY)
        size = len(A)
        # Sums over longer steps than the regulator's, of both parts of the cost.
        Q, R = plant.cost(size), situation.effort
        _, P = regulator(A, B, Q, R)
        ahead = Horizon.of(A, B, Q, R, P, HORIZON)
        self._g = ahead.g
        force = np.zeros((N, size))
        force[:, at.q] = -plant.oil[:, None] * plant.arms
        force[:, at.oil] = np.diag(plant.oil)
        self._force_free = np.vstack([force @ f for f in ahead.free])
        limits = np.vstack([np.eye(HORIZON * N), *(force @ G for G in ahead.forced)])
        head, rod = _PRESSURE * relief_settings(situation.boom)
        strongest = head * plant.actuators.head_area - plant.rest.forces
        weakest = -rod * plant.actuators.rod_area - plant.rest.forces
        self._strongest, self._weakest = np.tile(strongest, HORIZON), np.tile(weakest, HORIZON)
        self._bound = np.full(HORIZON * N, situation.boom.controller.maximum_velocity)
        import osqp

        self._solver = osqp.OSQP()
        none = np.full(len(limits), np.inf)
        self._solver.setup(
            P=sparse.csc_matrix(np.triu(ahead.H)),
            q=np.zeros(HORIZON * N),
            A=sparse.csc_matrix(limits),
            l=-none,
            u=none,
            verbose=False,
            eps_abs=1e-5,
            eps_rel=1e-4,
            max_iter=400,
        )
        self._count, self._held = 0, np.zeros(N)

    def velocities(self, measured: Measured, wanted: Wanted) -> np.ndarray:
        """Return the first velocities of the latest program."""
        apart, v = self.follow(measured, wanted)
        if self._count % EVERY == 0:
            self._held = self._solve(apart)
        self._count += 1
        return np.asarray(v + self._held)

    def _solve(self, apart: np.ndarray) -> np.ndarray:
        """Return the first velocities of the program from a state apart from its rest."""
        start = apart[self._kept]
        offset, bound = self._force_free @ start, self._bound
        self._solver.update(
            q=self._g @ start,
            l=np.concatenate([-bound, np.minimum(self._weakest - offset, 0.0)]),
            u=np.concatenate([bound, np.maximum(self._strongest - offset, 0.0)]),
        )
        found = self._solver.solve(raise_error=False)
        if found.x is None or not np.isfinite(found.x).all():
            # Without a solution the regulator, whose cost is the same.
            return np.asarray(-self._gain @ apart)
        return np.asarray(found.x[: len(self._held)])
