"""
Elements of hydraulic circuits: orifices, valves and chambers, compiled functions of numbers.

Head side 1 (extends the cylinder), rod side 2. Pressures are absolute [Pa], flows [m^3/s] positive
into chamber 1 and out of chamber 2. Spool positions are relative to the spool's travel, in
[-1, 1]; a positive one connects the supply with chamber 1. Source: Henikl 2015, (23), (24).

Cavitation: (23) conserves oil; it is the derivative of p = beta ln(V_oil / V). Below the vapour
pressure p_v the state p represents the missing volume of oil, V - V_oil = V (1 - exp((p - p_v) /
beta)), and flows are related to the volume of oil, see :func:`oil_share`. The pressure on the
piston is :func:`chamber_pressure`, at least p_v. Oil is thus conserved, and all functions are
continuous.
"""

from __future__ import annotations

import math

from numba import njit


@njit
def signed_root(difference, smallest):  # type: ignore[no-untyped-def]
    """
    Return sign(d) sqrt(|d|) [Pa^(1/2)] with a finite slope at zero: d / (d^2 + s^2)^(1/4).

    Parameters
    ----------
    difference : float
        Pressure difference d [Pa].
    smallest : float
        Pressure difference s below which the flow is about laminar [Pa], above 0.
    """
    return difference / math.sqrt(math.sqrt(difference * difference + smallest * smallest))


@njit
def valve_opening(spool, dead_band, area):  # type: ignore[no-untyped-def]
    """
    Return the opening area of a valve [m^2]; 0 while the spool is within the dead band.

    Parameters
    ----------
    spool : float
        Spool position, -1 to 1.
    dead_band : float
        Spool position at which the valve begins to open, below 1.
    area : float
        Opening area at full spool travel [m^2].
    """
    beyond = (abs(spool) - dead_band) / (1.0 - dead_band)
    return area * min(beyond, 1.0) if beyond > 0.0 else 0.0


@njit
def behind_hose(opening, loss):  # type: ignore[no-untyped-def]
    """
    Return the equivalent opening area [m^2] of a valve and a hose in series.

    Parameters
    ----------
    opening : float
        Opening area of the valve [m^2].
    loss : float
        1 / A^2 of the orifice with the pressure drop of the hose [1/m^4]; 0: no hose.
    """
    return opening / math.sqrt(1.0 + loss * opening * opening)


@njit
def pilot_opening(excess, override, area):  # type: ignore[no-untyped-def]
    """
    Return the opening area [m^2] of a pressure-operated valve, such as a relief valve.

    Parameters
    ----------
    excess : float
        Pressure above that at which it begins to open [Pa].
    override : float
        Excess at which it is fully open [Pa].
    area : float
        Opening area when fully open [m^2].

    Returns
    -------
    float
        area x^2 (3 - 2 x) with x = excess / override, limited to [0, area]; continuously
        differentiable.
    """
    share = excess / override
    if share <= 0.0:
        return 0.0
    return area if share >= 1.0 else area * share * share * (3.0 - 2.0 * share)


# Inlined: as a function call it would cost more than its few operations.
@njit(inline='always')
def port_flow(  # type: ignore[no-untyped-def]
    p,
    setting,
    override,
    area,
    cracking,
    make_up_override,
    make_up_area,
    feed,
    tank,
    coefficient,
    laminar,
):
    """
    Return the flow through relief and make-up valve into a chamber [m^3/s].

    Parameters
    ----------
    p : float
        Pressure of the chamber [Pa].
    setting, override : float
        Of the relief valve: where it begins to open, and the excess at which it is open [Pa].
    area : float
        Opening of the relief valve [m^2]; 0: none.
    cracking, make_up_override : float
        Of the make-up valve: pressure below which it opens, and how far below it is open [Pa].
    make_up_area : float
        Opening of the make-up valve [m^2]; 0: none.
    feed, tank : float
        Pressures behind make-up and relief valve [Pa].
    coefficient : float
        alpha sqrt(2 / rho) [m^(3/2) kg^(-1/2)].
    laminar : float
        See :func:`signed_root` [Pa].
    """
    flow = 0.0
    if area > 0.0 and p > setting:
        opening = pilot_opening(p - setting, override, area)
        flow -= coefficient * opening * signed_root(p - tank, laminar)
    if make_up_area > 0.0 and p < cracking:
        opening = pilot_opening(cracking - p, make_up_override, make_up_area)
        flow += coefficient * opening * signed_root(feed - p, laminar)
    return flow


@njit
def pump_flow(rail, supply, most, band):  # type: ignore[no-untyped-def]
    """
    Return the flow of a pressure-controlled pump, and how fast it falls with the pressure.

    Parameters
    ----------
    rail : float
        Pressure that it works against [Pa].
    supply, most, band : float
        Supply pressure [Pa], largest flow [m^3/s] and band [Pa], see
        :class:`longreach_dynamics.hydraulics.PumpParameters`.

    Returns
    -------
    flow, slope : float
        [m^3/s], [m^3/(s Pa)].
    """
    behind = (supply - rail) / band
    root = math.sqrt(1.0 + behind * behind)
    return most * behind / root, most / (band * root * root * root)


@njit
def spool_rate(spool, command, inverse, fastest):  # type: ignore[no-untyped-def]
    """Return the speed of a spool [1/s]: a lag with 1 / time constant, bounded."""
    return min(max(inverse * (command - spool), -fastest), fastest)


@njit
def spool_step(spool, command, inverse, fastest, duration):  # type: ignore[no-untyped-def]
    """Return where a spool is after a time [s] of constant command; exact for spool_rate."""
    behind = command - spool
    limit = fastest / inverse
    if abs(behind) > limit:
        # At its full speed until the lag takes over.
        lasts = min((abs(behind) - limit) / fastest, duration)
        behind -= math.copysign(lasts * fastest, behind)
        duration -= lasts
    return command - behind * math.exp(-inverse * duration)


@njit
def valve_flows(spool, p1, p2, supply, tank, opening_1, opening_2, coefficient, smallest):  # type: ignore[no-untyped-def]
    """
    Return the flows q1 into the head side and q2 out of the rod side [m^3/s]; Henikl 2015, (24).

    For a negative spool position both are negative; the printed equation omits the signs.

    Parameters
    ----------
    spool : float
        Spool position; only its sign is used.
    p1, p2 : float
        Pressures of head and rod side [Pa].
    supply, tank : float
        Pressures of supply and tank [Pa].
    opening_1, opening_2 : float
        Opening areas to head and rod side [m^2].
    coefficient : float
        alpha sqrt(2 / rho) [m^(3/2) kg^(-1/2)].
    smallest : float
        See :func:`signed_root` [Pa].
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

    Parameters
    ----------
    position, velocity : float
        Of the piston [m], [m/s].
    q1, q2 : float
        Flows into the head side and out of the rod side [m^3/s].
    area_1, area_2 : float
        Piston areas of head and rod side [m^2].
    volume_1, volume_2 : float
        Chamber volumes V_01, V_02 with the piston at position 0 [m^3].
    bulk_modulus : float
        [Pa].
    """
    rate_1 = bulk_modulus / (volume_1 + area_1 * position) * (q1 - area_1 * velocity)
    rate_2 = bulk_modulus / (volume_2 - area_2 * position) * (area_2 * velocity - q2)
    return rate_1, rate_2


@njit
def oil_share(pressure, vapour, bulk_modulus):  # type: ignore[no-untyped-def]
    """
    Return V_oil / V of a chamber: 1, or less below the vapour pressure.

    While a chamber cavitates, (23) holds with q / V_oil instead of q / V: pass ``q / oil_share``
    to :func:`pressure_rates`.

    Parameters
    ----------
    pressure : float
        State p of the chamber [Pa].
    vapour : float
        Vapour pressure [Pa].
    bulk_modulus : float
        [Pa].
    """
    if pressure >= vapour:
        return 1.0
    exponent = (pressure - vapour) / bulk_modulus
    # Not reached by any machine; it prevents a division by zero when a state diverges.
    if exponent < -50.0:
        exponent = -50.0
    return math.exp(exponent)


@njit
def chamber_pressure(pressure, vapour):  # type: ignore[no-untyped-def]
    """Return the pressure on the piston for a state p [Pa]: at least the vapour pressure [Pa]."""
    return max(pressure, vapour)
