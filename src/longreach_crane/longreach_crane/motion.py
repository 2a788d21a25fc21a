"""
Motion of the crane over one smooth interval, compiled.

It is a separate module because every edit of this file or of model.py recompiles the kernel.
"""

from __future__ import annotations

from longreach_crane.model import FREE, right_hand_side
from longreach_dynamics.kernels import kernel
from longreach_dynamics.stepping import nonstiff_integrator, stiff_integrator

_integrate_nonstiff = nonstiff_integrator(right_hand_side)
_integrate_stiff = stiff_integrator(right_hand_side)
# Radau IIA replaces DOP853 where the rate of friction or motor exceeds this multiple of the
# frequency of the swing.
_STIFF_RATIO = 100.0
# Largest number of evaluations in an interval, and the increase per second of its length [1/s].
_BUDGET, _BUDGET_RATE = 200_000, 50_000.0


@kernel
def advance_motion(time, duration, x, inputs, constants, relative, absolute):  # type: ignore[no-untyped-def]
    """
    Integrate over one smooth interval; arguments are not checked.

    Parameters
    ----------
    time, duration : float
        Start and length of the interval [s].
    x : ndarray, shape (5,)
        State at its start: f_c [N], x_c [m], x_c' [m/s], alpha [rad], alpha' [rad/s].
    inputs : Inputs
        Constant inputs.
    constants : Constants
        Constants of the crane.
    relative, absolute : float
        Tolerances of the local error, ``absolute`` in the units of the state.

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
