"""
Equations of motion of the crane, nonlinear and linear.

Symbols of C13R: car position x_c [m] along the track, angle alpha [rad] of the cable from the
vertical, positive with the load at larger x, motor force f_c [N] on the car, disturbance f_d [N]
on the load, horizontal. The state is (f_c, x_c, x_c', alpha, alpha') throughout; load position
x_l = x_c + r sin(alpha), in the linear model x_c + r alpha.

The brake has two models: ``viscous``, the paper's, replaces d_c by a very large value; ``rigid``
fixes the car. Stopping the car instantaneously causes an impulse at the suspension of the cable,
see :func:`stop_car`.

Errors in the printed equations of the paper are listed in docs/crane.md.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from longreach_crane.parameters import CraneParameters

MOTOR_FORCE, CAR_POSITION, CAR_VELOCITY, ANGLE, ANGULAR_VELOCITY = range(5)
# Mode of the car. A closed viscous brake leaves it FREE, with high friction.
FREE, HELD = 0, 1


def swing_frequency(crane: CraneParameters) -> float:
    """Return the frequency of the swing with the car free, without friction [rad/s]."""
    return math.sqrt(crane.gravity / crane.cable_length * (1.0 + crane.load_mass / crane.car_mass))


class Constants(NamedTuple):
    """Constants of :class:`CraneParameters` for compiled code."""

    m_c: float
    m_l: float
    r: float
    g: float
    d_c: float
    d_brake: float
    d_l: float
    motor_rate: float
    swing: float  # frequency with the car free [rad/s]
    linear: bool

    @classmethod
    def of(cls, crane: CraneParameters, linear: bool = False) -> Constants:
        """Return the constants of a crane for its nonlinear or its linear model."""
        return cls(
            m_c=crane.car_mass,
            m_l=crane.load_mass,
            r=crane.cable_length,
            g=crane.gravity,
            d_c=crane.car_friction,
            d_brake=crane.brake_friction,
            d_l=crane.load_friction,
            motor_rate=crane.motor_rate,
            swing=swing_frequency(crane),
            linear=linear,
        )


class Inputs(NamedTuple):
    """Inputs that are constant over one interval of the simulation."""

    desired_force: float  # f_c^Desired [N]
    disturbance: float  # f_d [N]
    friction: float  # of the car [kg/s]: d_c, or the brake's
    car: int  # FREE or HELD


@njit
def right_hand_side(t, x, u, p, dx):  # type: ignore[no-untyped-def]  # noqa: ARG001
    """
    Compute the time derivative of the state.

    C13R section 1, in mass-matrix form: with p = (x_c, alpha) the matrix is
    [[m_c + m_l, m_l r cos alpha], [m_l r cos alpha, m_l r^2]].

    Parameters
    ----------
    t : float
        Time [s]; not used, the model is autonomous.
    x : ndarray, shape (5,)
        State: f_c [N], x_c [m], x_c' [m/s], alpha [rad], alpha' [rad/s].
    u : Inputs
        Constant inputs.
    p : Constants
        Constants of the crane.
    dx : ndarray, shape (5,)
        Output: time derivative of ``x``.
    """
    v, alpha, omega = x[2], x[3], x[4]
    sine = alpha if p.linear else math.sin(alpha)
    cosine = 1.0 if p.linear else math.cos(alpha)
    dx[0] = p.motor_rate * (u.desired_force - x[0])
    dx[1] = v
    dx[3] = omega
    if u.car == 1:
        # HELD: the load is a pendulum with a fixed suspension.
        dx[1] = 0.0
        dx[2] = 0.0
        dx[4] = (-p.g * sine + u.disturbance / p.m_l * cosine) / p.r - p.d_l / p.m_l * omega
        return
    # Generalised forces on car and cable. The linear model omits second-order terms.
    centrifugal = 0.0 if p.linear else p.m_l * p.r * sine * omega * omega
    load_drag = p.d_l * (v + p.r * cosine * omega)
    on_car = x[0] + u.disturbance - u.friction * v + centrifugal - load_drag
    on_cable = (
        -p.m_l * p.g * sine + u.disturbance * cosine - p.d_l * (cosine * v + p.r * omega)
    ) * p.r
    # Cramer's rule for the mass matrix.
    m11 = p.m_c + p.m_l
    m12 = p.m_l * p.r * cosine
    m22 = p.m_l * p.r * p.r
    determinant = p.m_l * p.r * p.r * (p.m_c + p.m_l * (1.0 - cosine * cosine))
    dx[2] = (m22 * on_car - m12 * on_cable) / determinant
    dx[4] = (m11 * on_cable - m12 * on_car) / determinant


def stop_car(state: np.ndarray, constants: Constants) -> np.ndarray:
    """
    Return the state right after a rigid brake has stopped the car.

    The impulse acts at the suspension of the cable, so the angular momentum of the load about it
    is conserved: alpha' increases by x_c' cos(alpha) / r. Without this term the swing after a stop
    is far too small.

    Parameters
    ----------
    state : ndarray, shape (5,)
    constants : Constants
    """
    after = state.copy()
    cosine = 1.0 if constants.linear else math.cos(state[ANGLE])
    after[ANGULAR_VELOCITY] += state[CAR_VELOCITY] * cosine / constants.r
    after[CAR_VELOCITY] = 0.0
    return after


def load_position(state: np.ndarray, constants: Constants) -> np.ndarray | float:
    """
    Return the load's position x_l [m] of one state (5,) or of many (..., 5).

    C13R section 1: x_c + r sin(alpha); x_c + r alpha in the linear model.
    """
    angle = state[..., ANGLE]
    offset = angle if constants.linear else np.sin(angle)
    return state[..., CAR_POSITION] + constants.r * offset


def suspension_and_load(
    car_position: float, angle: float, constants: Constants
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return the ends of the cable as (x, z) [m] in the frame of the track, z up."""
    load = (
        car_position + constants.r * math.sin(angle),
        -constants.r * math.cos(angle),
    )
    return (car_position, 0.0), load


def energy(state: np.ndarray, constants: Constants) -> float:
    """
    Return kinetic plus potential energy of car and load [J], zero at rest with the cable vertical.

    For the linear model, the quadratic form that it conserves without forces and friction.
    """
    v, alpha, omega = state[CAR_VELOCITY], state[ANGLE], state[ANGULAR_VELOCITY]
    p = constants
    cosine = 1.0 if p.linear else math.cos(alpha)
    height = p.r * alpha**2 / 2.0 if p.linear else p.r * (1.0 - cosine)
    kinetic = (p.m_c + p.m_l) * v**2 / 2 + p.m_l * p.r * (cosine * v * omega + p.r * omega**2 / 2)
    return float(kinetic + p.m_l * p.g * height)


def momentum(state: np.ndarray, constants: Constants) -> float:
    """
    Return P = (m_c + m_l) x_c' + m_l r cos(alpha) alpha' plus d_c x_c + d_l x_l [N s].

    In both models its time derivative is exactly f_c + f_d while the brake is open. It serves to
    verify simulations over long times.
    """
    p = constants
    cosine = 1.0 if p.linear else math.cos(state[ANGLE])
    linear_momentum = (p.m_c + p.m_l) * state[CAR_VELOCITY]
    linear_momentum += p.m_l * p.r * cosine * state[ANGULAR_VELOCITY]
    drag = p.d_c * state[CAR_POSITION] + p.d_l * load_position(state, p)
    return float(linear_momentum + drag)


def linear_model(crane: CraneParameters) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """
    Return A (5, 5), b (5,) and e (5,) of x' = A x + b f_c^Desired + e f_d, brake open.

    C13R sections 1 and 2; it is the linearisation of the nonlinear model at zero.
    """
    p = crane
    A = np.zeros((5, 5))
    A[0, 0] = -p.motor_rate
    A[1, 2] = A[3, 4] = 1.0
    A[2, 0] = 1.0 / p.car_mass
    A[2, 2] = -p.car_friction / p.car_mass
    A[2, 3] = p.gravity * p.load_mass / p.car_mass
    A[4, 0] = -1.0 / (p.car_mass * p.cable_length)
    A[4, 2] = (p.car_friction / p.car_mass - p.load_friction / p.load_mass) / p.cable_length
    A[4, 3] = -p.gravity * (1.0 + p.load_mass / p.car_mass) / p.cable_length
    A[4, 4] = -p.load_friction / p.load_mass
    b = np.array([p.motor_rate, 0.0, 0.0, 0.0, 0.0])
    e = np.array([0.0, 0.0, 0.0, 0.0, 1.0 / (p.load_mass * p.cable_length)])
    return A, b, e
