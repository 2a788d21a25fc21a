"""
Elements of hydraulic circuits: orifices, valves and chambers, compiled functions of numbers.

Head side 1 (pushes the piston out), rod side 2. Pressures are absolute [Pa], flows [m^3/s]
positive into chamber 1 and out of chamber 2, spool positions a share of the spool's travel in
[-1, 1]; a positive one connects the supply with chamber 1. Source: Henikl 2015, (23), (24).

Cavitation: (23) conserves oil; it is the derivative of p = beta ln(V_oil / V). Where it leads
below the vapour pressure, p goes on as a measure of how much oil is missing, V - V_oil = V (1 -
exp((p - p_v) / beta)), to which an inflow counts by the volume of oil, see :func:`oil_share`. The
piston feels :func:`chamber_pressure`, which stops at the vapour pressure. So oil is neither lost
nor made, and nothing is discontinuous.
"""

from __future__ import annotations

import math

from numba import njit

__all__ = [
    'behind_hose',
    'chamber_pressure',
    'oil_share',
    'pilot_opening',
    'pressure_rates',
    'signed_root',
    'valve_flows',
    'valve_opening',
]


@njit
def signed_root(difference, smallest):  # type: ignore[no-untyped-def]
    """
    Return sign(d) sqrt(|d|) of a pressure difference [Pa], with a finite slope at zero.

    Below about ``smallest`` [Pa] the flow is laminar: d / (d^2 + smallest^2)^(1/4).
    """
    return difference / math.sqrt(math.sqrt(difference * difference + smallest * smallest))


@njit
def valve_opening(spool, dead_band, area):  # type: ignore[no-untyped-def]
    """Return the opening area [m^2] of a valve; none while the spool is within the dead band."""
    beyond = (abs(spool) - dead_band) / (1.0 - dead_band)
    return area * min(beyond, 1.0) if beyond > 0.0 else 0.0


@njit
def behind_hose(opening, loss):  # type: ignore[no-untyped-def]
    """
    Return the opening area [m^2] of a valve and a hose in a row.

    Parameters
    ----------
    opening : float
        Of the valve [m^2].
    loss : float
        1 / A^2 of the orifice that has the pressure drop of the hose [1/m^4].
    """
    return opening / math.sqrt(1.0 + loss * opening * opening)


@njit
def pilot_opening(excess, override, area):  # type: ignore[no-untyped-def]
    """
    Return the opening area [m^2] of a valve that a pressure opens: a relief or a check valve.

    Parameters
    ----------
    excess : float
        Pressure beyond that at which it begins to open [Pa].
    override : float
        Excess at which it is fully open [Pa].
    area : float
        Opening when fully open [m^2].

    Returns
    -------
    float
        area x^2 (3 - 2 x) with x = excess / override: no jump and no kink at either end.
    """
    share = excess / override
    if share <= 0.0:
        return 0.0
    return area if share >= 1.0 else area * share * share * (3.0 - 2.0 * share)


@njit
def valve_flows(spool, p1, p2, supply, tank, opening_1, opening_2, coefficient, smallest):  # type: ignore[no-untyped-def]
    """
    Return the flows q1 into the head side and q2 out of the rod side [m^3/s]; Henikl 2015, (24).

    For a negative spool position both are negative, which the printed equation leaves out.
    ``coefficient`` is alpha sqrt(2 / rho).
    """
    if opening_1 == 0.0 and opening_2 == 0.0:
        return 0.0, 0.0
    if spool >= 0.0:
        q1 = coefficient * opening_1 * signed_root(supply - p1, smallest)
        q2 = coefficient * opening_2 * signed_root(p2 - tank, smallest)
    else:
        q1 = -coefficient * opening_1 * signed_root(p1 - tank, smallest)
        q2 = -coefficient * opening_2 * signed_root(supply - p2, smallest)
    return q1, q2


@njit
def pressure_rates(position, velocity, q1, q2, area_1, area_2, volume_1, volume_2, bulk_modulus):  # type: ignore[no-untyped-def]
    """
    Return the time derivatives of both chamber pressures [Pa/s]; Henikl 2015, (23).

    ``volume_1`` and ``volume_2`` are the volumes V_01, V_02 with the piston at position 0.
    """
    rate_1 = bulk_modulus / (volume_1 + area_1 * position) * (q1 - area_1 * velocity)
    rate_2 = bulk_modulus / (volume_2 - area_2 * position) * (area_2 * velocity - q2)
    return rate_1, rate_2


@njit
def oil_share(pressure, vapour, bulk_modulus):  # type: ignore[no-untyped-def]
    """
    Return V_oil / V of a chamber: 1, or less below the vapour pressure [Pa].

    There q / V_oil in place of q / V in (23) fills it again; hand ``q / oil_share`` to
    :func:`pressure_rates`.
    """
    if pressure >= vapour:
        return 1.0
    exponent = (pressure - vapour) / bulk_modulus
    # No machine empties a chamber so far; a state that diverges must not divide by zero.
    if exponent < -50.0:
        exponent = -50.0
    return math.exp(exponent)


@njit
def chamber_pressure(pressure, vapour):  # type: ignore[no-untyped-def]
    """Return the pressure that the piston feels [Pa]: never below that of the vapour."""
    return max(pressure, vapour)
