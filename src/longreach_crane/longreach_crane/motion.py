"""
The crane's motion over one smooth interval, compiled.

A module of its own, because an edit of this file or of model.py compiles the kernel anew.
"""

from __future__ import annotations

from longreach_crane.model import FREE, right_hand_side
from longreach_dynamics.kernels import kernel
from longreach_dynamics.stepping import nonstiff_integrator, stiff_integrator

__all__ = ['advance_motion']

_integrate_nonstiff = nonstiff_integrator(right_hand_side)
_integrate_stiff = stiff_integrator(right_hand_side)
# Radau IIA takes over from DOP853 where friction or motor is so much faster than the swing.
_STIFF_RATIO = 100.0
# Evaluations that an interval may take, and those that each second [1/s] of it adds.
_BUDGET, _BUDGET_RATE = 200_000, 50_000.0


@kernel
def advance_motion(time, duration, x, inputs, constants, relative, absolute):  # type: ignore[no-untyped-def]
    """
    Integrate over one smooth interval; unchecked.

    Parameters
    ----------
    time, duration : float
        Start and length of the interval [s].
    x : ndarray, shape (5,)
        State at its start.
    inputs : Inputs
    constants : Constants
    relative, absolute : float
        Tolerances of the local error.

    Returns
    -------
    state, evaluations, next_step, status
        As described in :mod:`longreach_dynamics.stepping`.
    """
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
