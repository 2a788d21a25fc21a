"""
Design of the digital controller: observer and regulator matrices for any crane.

The method of C13R, LQR and pole placement in continuous time and one explicit Euler step per
cycle, yields the printed matrices. For a longer cycle or another crane that loop may be unstable.
Here the exact discretisation of the linear model is used, so that the separation principle holds
and the loop is stable for every crane and cycle time, up to rounding: a loop that rounding makes
unstable is refused. Input is the desired force, the position of the car the only measurement.

SciPy is imported where it is used: without it a controller with the printed matrices starts half a
second earlier.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from longreach_crane.model import linear_model, swing_frequency
from longreach_crane.parameters import ControllerParameters, CraneParameters, DesignParameters
from longreach_dynamics.errors import InputError
from longreach_machine.control import held_input

# The crane and the cycle for which C13R prints its matrices: the parameters that enter them.
_C13R = {
    'car_mass': 10.0,
    'load_mass': 100.0,
    'cable_length': 5.0,
    'gravity': 9.81,
    'car_friction': 0.5,
    'load_friction': 0.001,
    'motor_rate': 4.0,
    'sample_time': 0.01,
}


class ControllerMatrices(NamedTuple):
    """Observer q := (M - d c^T) q + x_c d + f b, regulator u = V w - h^T q; c selects x_c."""

    M: np.ndarray  # (5, 5), of the state (f_c, x_c, x_c', alpha, alpha')
    b: np.ndarray  # (5,)
    d: np.ndarray  # (5,)
    h: np.ndarray  # (5,)
    V: float  # [N/m]


def printed_matrices(corrected: bool = True) -> ControllerMatrices:
    """
    Return the matrices that C13R prints for its crane and T = 0.01 s.

    ``corrected`` sets M(4, 5), printed as 0, to T. As printed, the observer treats the angle as
    constant: the car misses set points by centimetres and the brake never closes.
    """
    T = _C13R['sample_time']
    M = np.array(
        [
            [0.96, 0.0, 0.0, 0.0, 0.0],
            [0.0, 1.0, 0.01, 0.0, 0.0],
            [0.001, 0.0, 0.9995, 0.981, 0.0],
            [0.0, 0.0, 0.0, 1.0, T if corrected else 0.0],
            [-0.0002, 0.0, 0.0001, -0.2158, 1.0],
        ]
    )
    b = np.array([0.04, 0.0, 0.0, 0.0, 0.0])
    d = np.array([34.5724, 0.2395, 2.0322, 0.0164, -0.1979])
    h = np.array([2.9, 109.5, 286.0, 1790.6, 44.5])
    return ControllerMatrices(M, b, d, h, 109.5)


def design_sampled_regulator(
    crane: CraneParameters, sample_time: float, state_weights: np.ndarray, effort_weight: float
) -> np.ndarray:
    """
    Return h (5,) of the linear-quadratic regulator u = -h^T x, the force held for T [s].

    ``state_weights`` are Q (5, 5) or its diagonal, ``effort_weight`` is R. Cost and motion over a
    cycle are integrated exactly (C. F. Van Loan, IEEE Trans. Automatic Control 23, 1978).
    InputError when the weights leave a state uncontrolled, or rounding does.
    """
    from scipy import linalg

    A, b, _ = linear_model(crane)
    Q = np.asarray(state_weights, dtype=float)
    F = np.zeros((6, 6))
    F[:5, :5], F[:5, 5] = A, b
    W = linalg.block_diag(np.diag(Q) if Q.ndim == 1 else Q, effort_weight)
    blocks = np.block([[-F.T, W], [np.zeros((6, 6)), F]])
    # Blocks grow with exp(rate T), and rounding with them: a part of a long cycle, then doubled.
    halvings = max(0, math.frexp(sample_time * np.abs(linalg.eigvals(A)).max())[1])
    exponential = linalg.expm(sample_time / 2**halvings * blocks)
    motion = exponential[6:, 6:]
    cost = motion.T @ exponential[:6, 6:]
    for _ in range(halvings):
        cost += motion.T @ cost @ motion
        cost = 0.5 * (cost + cost.T)
        motion = motion @ motion
    Phi, gamma = motion[:5, :5], motion[:5, 5:]
    try:
        X = linalg.solve_discrete_are(Phi, gamma, cost[:5, :5], cost[5:, 5:], s=cost[:5, 5:])
    except ValueError as error:  # also LinAlgError
        raise _not_stabilising(Q, effort_weight) from error
    h = np.linalg.solve(cost[5:, 5:] + gamma.T @ X @ gamma, gamma.T @ X @ Phi + cost[:5, 5:].T)[0]
    if np.abs(linalg.eigvals(Phi - gamma * h)).max() >= 1.0 - 1e-9:
        raise _not_stabilising(Q, effort_weight)
    return np.asarray(h)


def design_sampled_observer(
    crane: CraneParameters, sample_time: float, poles: np.ndarray, output: str = 'same_cycle'
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """
    Return M (5, 5), b (5,), d (5,) of an observer with the exact discretisation over T [s].

    ``poles`` (5,) are in continuous time [1/s], all different, complex ones in pairs; exp(T pole)
    is placed, InputError where that fails. With ``same_cycle`` the state after the update belongs
    to the sampling instant; with ``next_cycle`` to the next one, at which the force computed from
    it acts.
    """
    Phi, gamma = _motion_over_a_cycle(crane, sample_time)
    c = np.array([0.0, 1.0, 0.0, 0.0, 0.0])
    z = np.exp(sample_time * np.asarray(poles, dtype=complex))
    if output == 'next_cycle':
        return Phi, gamma, _placed(Phi, c, z)
    # The measurement corrects the prediction for the instant of the measurement.
    d = _placed(Phi, c @ Phi, z)
    return Phi - np.outer(d, c @ Phi - c), gamma - d * (c @ gamma), d


def design_controller(
    crane: CraneParameters, controller: ControllerParameters, design: DesignParameters
) -> ControllerMatrices:
    """Design observer and regulator; InputError where rounding makes the loop unstable, too."""
    T = controller.sample_time
    scale = swing_frequency(crane)
    poles = scale * np.array([complex(*pole) for pole in design.observer_poles])
    M, b, d = design_sampled_observer(crane, T, poles, controller.output)
    h = design_sampled_regulator(crane, T, np.array(design.state_weights), design.effort_weight)
    # x = (0, x_c, 0, 0, 0) is an equilibrium, so u = 0 is required at x_c = w: V = h_2.
    matrices = ControllerMatrices(M, b, d, h, float(h[1]))
    largest = np.abs(closed_loop_poles(crane, T, matrices, controller.output)).max()
    if not largest < 1.0:
        raise InputError(
            f'the loop designed for sample_time = {T:g} s has a pole of magnitude {largest:.6g},'
            ' allowed: less than 1; for this crane rounding spoils the design: take another'
            ' sample_time, or other observer_poles'
        )
    return matrices


def _motion_over_a_cycle(
    crane: CraneParameters, sample_time: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return Phi (5, 5) and gamma (5,): x(t + T) = Phi x(t) + gamma f, with the force held."""
    A, b, _ = linear_model(crane)
    Phi, gamma = held_input(A, b[:, None], sample_time)
    return Phi, gamma[:, 0]


def _placed(A: np.ndarray, c: np.ndarray, poles: np.ndarray) -> np.ndarray:
    """Return the gain d (5,) that gives A - d c^T these eigenvalues."""
    from scipy import signal

    try:
        return np.asarray(signal.place_poles(A.T, c[:, np.newaxis], poles).gain_matrix[0])
    except ValueError as error:
        raise InputError(
            f'observer_poles: {np.round(poles, 6).tolist()} cannot be placed: {error};'
            ' allowed with one measurement: five different poles; over a long sample_time all are'
            ' about 0'
        ) from error


def _not_stabilising(Q: np.ndarray, effort_weight: float) -> InputError:
    """Return the error for weights that leave a state uncontrolled."""
    weights = (np.diag(Q) if Q.ndim == 2 else Q).tolist()
    return InputError(
        f'state_weights = {weights} with effort_weight = {effort_weight} give no stabilising'
        ' regulator; weigh the car position with more than 0, or take another sample_time'
    )


def closed_loop_poles(
    crane: CraneParameters,
    sample_time: float,
    matrices: ControllerMatrices,
    output: str = 'same_cycle',
) -> np.ndarray:
    """Return the eigenvalues (10,) of crane, observer and regulator over a cycle, brake open."""
    Phi, gamma = _motion_over_a_cycle(crane, sample_time)
    M, b, d, h, _ = matrices
    c = np.array([0.0, 1.0, 0.0, 0.0, 0.0])
    # The input of the observer is the force -h^T q, for both values of output.
    observer = M - np.outer(d, c) - np.outer(b, h)
    measured = np.outer(d, c)
    if output == 'next_cycle':
        loop = np.block([[Phi, -np.outer(gamma, h)], [measured, observer]])
    else:
        # The force from the updated observer state acts over the cycle.
        moved = [Phi - np.outer(gamma, h @ measured), -np.outer(gamma, h @ observer)]
        loop = np.block([moved, [measured, observer]])
    return np.asarray(np.linalg.eigvals(loop))


def changes_from_c13r(
    crane: CraneParameters, sample_time: float
) -> dict[str, tuple[float, float]]:
    """Return {name: (value, value of C13R)} of all parameters that differ from C13R."""
    values = {**vars(crane), 'sample_time': sample_time}
    return {name: (values[name], usual) for name, usual in _C13R.items() if values[name] != usual}


def controller_matrices(
    crane: CraneParameters, controller: ControllerParameters, design: DesignParameters
) -> ControllerMatrices:
    """Return the matrices that ``controller.matrices`` names; ``auto``: printed ones for C13R."""
    kind = controller.matrices
    if kind == 'auto':
        changed = changes_from_c13r(crane, controller.sample_time)
        kind = 'designed' if changed else 'corrected'
    if kind == 'designed':
        return design_controller(crane, controller, design)
    return printed_matrices(corrected=kind == 'corrected')
