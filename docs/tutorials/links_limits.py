"""
Flexible links whose motors have limits: predictive control beside the joint controllers.

    python3 docs/tutorials/links_limits.py

Two links are to be raised by 30 degrees at once. Their motors have little more torque than holding
the links takes. The joint controllers, cut off at the limits, overshoot; the predictive one
minimises the distance from the target over a horizon, within the limits. Its model is the linear
one of the links at the target.
"""

import numpy as np
import osqp
from scipy import sparse
from scipy.linalg import solve_discrete_are

from longreach_links.linear import smooth_model
from longreach_machine import linearize
from longreach_machine.control import Horizon
from longreach_symbolic.arm import arm_of
from longreach_symbolic.links import load_links
from longreach_symbolic.machine import FlexibleLinks, State
from longreach_symbolic.scenario import resting_scenario

CYCLE, DURATION = 0.005, 3.0  # [s]
EVERY, HORIZON = 4, 30  # cycles of a step, and steps, of the prediction
START, TARGET = np.radians([15.0, 0.0]), np.radians([45.0, 0.0])
SPARE = 1.3  # torque of the motors over that which holds the links


class Predictive:
    """Torques that bring links to rest at a target, within limits; measured is the whole state."""

    def __init__(self, machine: FlexibleLinks, target: State, limits: np.ndarray) -> None:
        self._target, self._limits = target, limits
        inputs, outputs = ['torque_1', 'torque_2'], ['joint_1', 'joint_2']
        model = linearize(smooth_model(machine, target), inputs, outputs)
        A, B = model.discretize(EVERY * CYCLE)
        n, m = B.shape
        # Angles from the target [rad], speeds of all coordinates, torques.
        rates = np.diag(np.repeat([0.0, 1e-2], n // 2))
        Q, R = model.C.T @ model.C + rates, 1e-4 * np.eye(m)
        ahead = Horizon.of(A, B, Q, R, solve_discrete_are(A, B, Q, R), HORIZON)
        self._gradient = ahead.g
        self._solver = osqp.OSQP()
        low, high = (np.tile(side - target.torques, HORIZON) for side in (-limits, limits))
        self._solver.setup(
            sparse.csc_matrix(np.triu(ahead.H)),
            np.zeros(len(ahead.H)),
            sparse.eye(len(ahead.H), format='csc'),
            low,
            high,
            verbose=False,
            eps_abs=1e-6,
            eps_rel=1e-6,
        )

    def torques(self, state: State) -> np.ndarray:
        """Return the torques of a cycle [N m]."""
        self._solver.update(q=self._gradient @ (state.x - self._target.x))
        found = self._solver.solve(raise_error=False).x[: len(self._limits)]
        return np.clip(self._target.torques + found, -self._limits, self._limits)


def run(predictive: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return angles of the chords [rad] and torques [N m] in each cycle, a row each."""
    links = load_links()
    machine = FlexibleLinks(links, arm_of(links), resting_scenario(links))
    control = machine.controller
    first, last = (
        State(np.concatenate([q, np.zeros_like(q)]), torques)
        for q, torques in (control.rest_at(START), control.rest_at(TARGET))
    )
    limits = SPARE * np.maximum(first.torques, last.torques)
    mine = Predictive(machine, last, limits)
    state, angles, torques = first, [], []
    for k in range(round(DURATION / CYCLE)):
        if predictive and k % EVERY == 0:
            given = mine.torques(state)
        elif not predictive:
            wanted = control.torques_towards(lambda _: TARGET, *control.motors(state.x), 0.0)
            given = np.clip(wanted, -limits, limits)
        angles.append(state.x[: len(TARGET)])
        torques.append(given)
        state = machine.advance(state, tuple(given.tolist()), k * CYCLE, CYCLE)
    return np.array(angles), np.array(torques)


if __name__ == '__main__':
    for predictive in (False, True):
        angles, torques = run(predictive)
        off = np.degrees(angles - TARGET)
        late = np.flatnonzero(np.abs(off).max(axis=1) > 1.0)[-1]
        print(
            f'{"predictive" if predictive else "joint control"}: overshoot {off.max():.1f} deg,'
            f' within 1 deg after {CYCLE * (late + 1):.2f} s, at most {torques.max():.1f} N m'
        )
