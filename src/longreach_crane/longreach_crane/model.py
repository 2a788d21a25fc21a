"""
Equations of motion of the crane, nonlinear and linear, and their compiled integration.

C13R section 1. The state x (5,) is (f_c, x_c, x_c', alpha, alpha') throughout:

    f_c      motor force on the car [N]        x_c     car position along the track [m]
    f_d      horizontal force on the load [N]  alpha   angle of the cable from the vertical [rad],
    x_l      load position [m]                         positive with the load at larger x

x_l = x_c + r sin(alpha), in the linear model x_c + r alpha. The brake has two models: ``viscous``,
the paper's, replaces d_c by a very large value; ``rigid`` fixes the car. Errors in the printed
equations of the paper are listed in docs/crane.md.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from longreach_crane.parameters import CraneParameters
from longreach_dynamics.kernels import kernel
from longreach_dynamics.stepping import nonstiff_integrator, stiff_integrator

MOTOR_FORCE, CAR_POSITION, CAR_VELOCITY, ANGLE, ANGULAR_VELOCITY = range(5)
# Mode of the car. A closed viscous brake leaves it FREE, with high friction.
FREE, HELD = 0, 1
# Radau IIA replaces DOP853 where the rate of friction or motor exceeds this multiple of the
# frequency of the swing.
_STIFF_RATIO = 100.0
# Largest number of evaluations in an interval, and the increase per second of its length [1/s].
_BUDGET, _BUDGET_RATE = 200_000, 50_000.0


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
    """Write the time derivative of x to dx; in mass-matrix form with p = (x_c, alpha)."""
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


_integrate_nonstiff = nonstiff_integrator(right_hand_side)
_integrate_stiff = stiff_integrator(right_hand_side)


@kernel
def advance_motion(time, duration, x, inputs, constants, relative, absolute):  # type: ignore[no-untyped-def]
    """Integrate over a smooth interval [s]; returns state, evaluations, next step, status."""
    p = constants
    fastest = max(p.d_l / p.m_l, p.motor_rate)
    if inputs.car == FREE:
        fastest = max(fastest, inputs.friction / p.m_c)
    first_step = min(duration, 0.02)
    budget = _BUDGET + int(_BUDGET_RATE * duration)
    if fastest > _STIFF_RATIO * p.swing:
        return _integrate_stiff(
            time, duration, x, inputs, constants, relative, absolute, first_step, budget
        )
    return _integrate_nonstiff(
        time, duration, x, inputs, constants, relative, absolute, first_step, budget
    )


def stop_car(state: np.ndarray, constants: Constants) -> np.ndarray:
    """
    Return the state right after a rigid brake has stopped the car.

    The impulse acts at the suspension of the cable, so the angular momentum of the load about it
    is conserved: alpha' increases by x_c' cos(alpha) / r. Without this the swing is far too small.
    """
    after = state.copy()
    cosine = 1.0 if constants.linear else math.cos(state[ANGLE])
    after[ANGULAR_VELOCITY] += state[CAR_VELOCITY] * cosine / constants.r
    after[CAR_VELOCITY] = 0.0
    return after


def load_position(state: np.ndarray, constants: Constants) -> np.ndarray | float:
    """Return x_l [m] of one state (5,) or of many (.., 5)."""
    angle = state[..., ANGLE]
    offset = angle if constants.linear else np.sin(angle)
    return state[..., CAR_POSITION] + constants.r * offset


def linear_model(crane: CraneParameters) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return A (5, 5), b (5,), e (5,) of x' = A x + b f_c^Desired + e f_d at zero, brake open."""
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
