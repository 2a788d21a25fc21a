"""
Design of the digital controller: observer and regulator matrices for any crane.

The observer is C13R's: the linear model of crane and motor with the motor's desired force as input
and the car's position as the only measurement, discretised by one explicit Euler step per cycle.

SciPy is imported where it is used: a controller that runs the printed matrices starts half a
second sooner without it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from longreach_crane.model import linear_model
from longreach_crane.parameters import ControllerParameters, CraneParameters, DesignParameters
from longreach_dynamics.errors import InputError

__all__ = [
    'ControllerMatrices',
    'closed_loop_poles',
    'controller_matrices',
    'design_controller',
    'design_observer',
    'design_regulator',
    'printed_matrices',
]

# The crane for which C13R prints its matrices (table 1), without what does not enter them.
_C13R = {
    'car_mass': 10.0,
    'load_mass': 100.0,
    'cable_length': 5.0,
    'gravity': 9.81,
    'car_friction': 0.5,
    'load_friction': 0.001,
    'motor_rate': 4.0,
}
_C13R_SAMPLE_TIME = 0.01


class ControllerMatrices(NamedTuple):
    """
    Observer q := (M - d c^T) q + x_c d + f b, and regulator u = V w - h^T q (C13R section 2).

    State order (f_c, x_c, x_c', alpha, alpha'); c picks the car's position.
    """

    M: np.ndarray  # (5, 5)
    b: np.ndarray  # (5,)
    d: np.ndarray  # (5,)
    h: np.ndarray  # (5,)
    V: float  # [N/m]


def printed_matrices(corrected: bool = True) -> ControllerMatrices:
    """
    Return the matrices that C13R prints for its crane and T = 0.01 s.

    Parameters
    ----------
    corrected : bool
        Set M(4, 5), printed as 0, to T = 0.01. As printed, the observer takes the angle for
        constant: set points are missed by centimetres and the brake never closes.
    """
    T = _C13R_SAMPLE_TIME
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


def design_regulator(
    crane: CraneParameters, state_weights: np.ndarray, effort_weight: float
) -> np.ndarray:
    """
    Return h (5,) of the linear-quadratic regulator u = -h^T x for the continuous linear model.

    Parameters
    ----------
    crane : CraneParameters
    state_weights : array_like, shape (5,) or (5, 5)
        Q, or its diagonal.
    effort_weight : float
        R, the weight of the desired force squared.

    Raises
    ------
    InputError
        When the weights leave a state uncontrolled, so that there is no stabilising solution.
    """
    from scipy import linalg

    A, b, _ = linear_model(crane)
    Q = np.asarray(state_weights, dtype=float)
    Q = np.diag(Q) if Q.ndim == 1 else Q
    try:
        X = linalg.solve_continuous_are(A, b[:, np.newaxis], Q, [[effort_weight]])
    except np.linalg.LinAlgError as error:
        raise InputError(
            f'state_weights = {np.diag(Q).tolist()} with effort_weight = {effort_weight} give no'
            ' stabilising regulator; weigh the car position with more than 0'
        ) from error
    return np.asarray(b @ X / effort_weight)


def design_observer(
    crane: CraneParameters, sample_time: float, poles: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """
    Return M (5, 5), b (5,) and d (5,) of the observer in discrete time.

    Parameters
    ----------
    crane : CraneParameters
    sample_time : float
        T [s].
    poles : array_like of complex, shape (5,)
        Poles of the continuous observer [1/s]; complex ones in conjugate pairs, all different.

    Raises
    ------
    InputError
        When explicit Euler with this sample time makes an unstable observer of stable poles.
    """
    from scipy import signal

    poles = np.asarray(poles, dtype=complex)
    discrete = np.abs(1.0 + sample_time * poles)
    if np.any(discrete >= 1.0):
        worst = poles[np.argmax(discrete)]
        raise InputError(
            f'observer_poles has {worst:.4g} 1/s: with sample_time = {sample_time} s explicit'
            f' Euler moves it to {discrete.max():.4g}, outside the unit circle;'
            ' allowed: |1 + sample_time pole| < 1. Take slower poles or a shorter sample time'
        )
    A, b, _ = linear_model(crane)
    c = np.array([0.0, 1.0, 0.0, 0.0, 0.0])
    try:
        gain = signal.place_poles(A.T, c[:, np.newaxis], poles).gain_matrix[0]
    except ValueError as error:
        raise InputError(
            f'observer_poles = {poles.tolist()} cannot be placed: {error}; allowed with one'
            ' measurement: five different poles'
        ) from error
    return np.eye(5) + sample_time * A, sample_time * b, sample_time * gain


def design_controller(
    crane: CraneParameters, sample_time: float, design: DesignParameters
) -> ControllerMatrices:
    """
    Design observer and regulator for a crane; V gives a static gain of 1 from set point to car.

    Raises
    ------
    InputError
        When weights or poles do not lead to a stable loop at this sample time.
    """
    poles = np.array([complex(real, imaginary) for real, imaginary in design.observer_poles])
    M, b, d = design_observer(crane, sample_time, poles)
    h = design_regulator(crane, np.array(design.state_weights), design.effort_weight)
    # With x = (0, x_c, 0, 0, 0) everything rests, so u = 0 must hold at x_c = w: V = h_2.
    matrices = ControllerMatrices(M, b, d, h, float(h[1]))
    radius = float(np.abs(closed_loop_poles(crane, sample_time, matrices)).max())
    if radius >= 1.0:
        raise InputError(
            f'sample_time = {sample_time} s: the closed loop has an eigenvalue of size'
            f' {radius:.4f}, allowed: below 1. Take a shorter sample time, slower observer poles'
            ' or a larger effort weight'
        )
    return matrices


def closed_loop_poles(
    crane: CraneParameters, sample_time: float, matrices: ControllerMatrices
) -> np.ndarray:
    """
    Return the eigenvalues of crane, observer and regulator over one cycle, shape (10,).

    The linear crane with the brake open, discretised exactly for a force that is held over a cycle
    (same-cycle output, no saturation). The loop is stable when all lie inside the unit circle.
    """
    from scipy import linalg

    A, b, _ = linear_model(crane)
    augmented = np.zeros((6, 6))
    augmented[:5, :5], augmented[:5, 5] = A, b
    exact = linalg.expm(sample_time * augmented)
    Phi, gamma = exact[:5, :5], exact[:5, 5]
    M, b_o, d, h, _ = matrices
    c = np.array([0.0, 1.0, 0.0, 0.0, 0.0])
    # The force before was -h^T q, hence q' = (M - d c^T - b h^T) q + d c^T x; the new one acts
    # over the cycle: x' = Phi x - gamma h^T q'.
    observer = M - np.outer(d, c) - np.outer(b_o, h)
    measured = np.outer(d, c)
    loop = np.block(
        [
            [Phi - np.outer(gamma, h @ measured), -np.outer(gamma, h @ observer)],
            [measured, observer],
        ]
    )
    return np.asarray(np.linalg.eigvals(loop))


def controller_matrices(
    crane: CraneParameters, controller: ControllerParameters, design: DesignParameters
) -> ControllerMatrices:
    """
    Return the matrices that ``controller.matrices`` names.

    ``auto`` takes the printed ones, corrected, for the crane they were made for, and designs new
    ones for any other crane or cycle time.
    """
    kind = controller.matrices
    if kind == 'auto':
        same = controller.sample_time == _C13R_SAMPLE_TIME and all(
            getattr(crane, name) == value for name, value in _C13R.items()
        )
        kind = 'corrected' if same else 'designed'
    if kind == 'designed':
        return design_controller(crane, controller.sample_time, design)
    return printed_matrices(corrected=kind == 'corrected')
