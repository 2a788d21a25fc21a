"""
The crane's motion over one smooth interval, compiled.

A module of its own, because an edit of this file or of model.py compiles the kernel anew.
"""

from __future__ import annotations

from longreach_crane.model import right_hand_side
from longreach_dynamics.kernels import kernel
from longreach_dynamics.stepping import nonstiff_integrator, stiff_integrator

__all__ = ['advance_motion']

_integrate_nonstiff = nonstiff_integrator(right_hand_side)
_integrate_stiff = stiff_integrator(right_hand_side)


@kernel
def advance_motion(time, duration, x, inputs, constants, stiff, relative, absolute):  # type: ignore[no-untyped-def]
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
    stiff : bool
        Take Radau IIA instead of DOP853.
    relative, absolute : float
        Tolerances of the local error.

    Returns
    -------
    state, evaluations, next_step, status
        As described in :mod:`longreach_dynamics.stepping`.
    """
    first_step = min(duration, 0.02)
    if stiff:
        return _integrate_stiff(
            time, duration, x, inputs, constants, relative, absolute, first_step
        )
    return _integrate_nonstiff(
        time, duration, x, inputs, constants, relative, absolute, first_step
    )
