"""
Motion of the crane over one smooth interval, compiled.

It is a separate module because every edit of this file or of model.py recompiles the kernels.
"""

from __future__ import annotations

import numpy as np

from longreach_crane.model import FREE, Constants, Inputs, right_hand_side
from longreach_dynamics.kernels import kernel
from longreach_dynamics.stepping import Integrator, nonstiff_integrator, stiff_integrator

__all__ = ['advance_motion']

_integrate_nonstiff = nonstiff_integrator(right_hand_side)
_integrate_stiff = stiff_integrator(right_hand_side)
# Radau IIA replaces DOP853 where the rate of friction or motor exceeds this multiple of the
# frequency of the swing.
_STIFF_RATIO = 100.0
# Longest first step [s].
_FIRST_STEP = 0.02
# Largest number of evaluations in an interval, and the increase per second of its length [1/s].
_BUDGET, _BUDGET_RATE = 200_000, 50_000.0


def advance_motion(
    time: float,
    duration: float,
    x: np.ndarray,
    inputs: Inputs,
    constants: Constants,
    relative: float,
    absolute: float,
) -> tuple[np.ndarray, int, float, int]:
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
    stiff = fastest > _STIFF_RATIO * p.swing
    # Two kernels: the stiff one needs SciPy's linear algebra, whose import takes longer than
    # most runs.
    advance: Integrator = _advance_stiff if stiff else _advance_nonstiff
    return advance(time, duration, x, inputs, constants, relative, absolute)


@kernel
def _advance_nonstiff(time, duration, x, inputs, constants, relative, absolute):  # type: ignore[no-untyped-def]
    """Integrate by DOP853; arguments as for advance_motion."""
    return _integrate_nonstiff(
        time,
        duration,
        x,
        inputs,
        constants,
        relative,
        absolute,
        min(duration, _FIRST_STEP),
        _BUDGET + int(_BUDGET_RATE * duration),
    )


@kernel
def _advance_stiff(time, duration, x, inputs, constants, relative, absolute):  # type: ignore[no-untyped-def]
    """Integrate by Radau IIA; arguments as for advance_motion."""
    return _integrate_stiff(
        time,
        duration,
        x,
        inputs,
        constants,
        relative,
        absolute,
        min(duration, _FIRST_STEP),
        _BUDGET + int(_BUDGET_RATE * duration),
    )
