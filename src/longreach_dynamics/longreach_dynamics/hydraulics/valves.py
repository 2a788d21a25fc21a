"""
Elements of hydraulic circuits: orifices, valves and chambers, compiled functions of numbers.

Head side 1 (extends the cylinder), rod side 2. Source: Henikl 2015, (23), (24). Arguments:

    p1, p2, pressure   pressures, absolute [Pa]; states of chambers where vapour stands beside
    supply, tank, rail, feed, vapour      pressures [Pa]
    q1, q2             flows into chamber 1, out of chamber 2 [m^3/s]
    spool              position in [-1, 1]; a positive one connects the supply with chamber 1
    dead_band          spool position up to which a valve is closed, below 1
    area, opening_*    openings [m^2]; area: when fully open
    coefficient        alpha sqrt(2 / rho) [m^(3/2) kg^(-1/2)]
    smallest, laminar  pressure difference below which the flow is about laminar [Pa], above 0
    override, excess   pressure beyond that at which a valve is open, and at present [Pa]
    position, velocity of the piston [m], [m/s]
    area_*, volume_*   areas of the sides [m^2], their volumes at position 0 [m^3]
    bulk_modulus       [Pa]

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
    """Return sign(d) sqrt(|d|) with a finite slope at zero: d / (d^2 + s^2)^(1/4)."""
    return difference / math.sqrt(math.sqrt(difference * difference + smallest * smallest))


@njit
def valve_opening(spool, dead_band, area):  # type: ignore[no-untyped-def]
    """Return the opening of a valve of ``area``; 0 while the spool is within the dead band."""
    beyond = (abs(spool) - dead_band) / (1.0 - dead_band)
    return area * min(beyond, 1.0) if beyond > 0.0 else 0.0


@njit
def behind_hose(opening, loss):  # type: ignore[no-untyped-def]
    """Return the opening of a valve and a hose of 1 / A^2 = ``loss`` in series."""
    return opening / math.sqrt(1.0 + loss * opening * opening)


@njit
def pilot_opening(excess, override, area):  # type: ignore[no-untyped-def]
    """Return the opening by excess pressure: area x^2 (3 - 2 x), x = excess / override."""
    share = excess / override
    if share <= 0.0:
        return 0.0
    return area if share >= 1.0 else area * share * share * (3.0 - 2.0 * share)


# Inlined: as a function call it would cost more than its few operations.
@njit(inline='always')
def port_flow(p, setting, valves, tank, coefficient, laminar, i, table):  # type: ignore[no-untyped-def]
    """Return the flow through relief and make-up valve into a chamber, of row i of a table."""
    # ``setting`` and ``valves``: the column of the relief valve's setting, and the first of
    # port_row.
    flow, area, make_up_area = 0.0, table[i, valves + 3], table[i, valves + 6]
    if area > 0.0 and p > table[i, setting]:
        opening = pilot_opening(p - table[i, setting], table[i, valves + 2], area)
        flow -= coefficient * opening * signed_root(p - tank, laminar)
    if make_up_area > 0.0 and p < table[i, valves + 4]:
        missing = table[i, valves + 4] - p
        opening = pilot_opening(missing, table[i, valves + 5], make_up_area)
        flow += coefficient * opening * signed_root(table[i, valves + 7] - p, laminar)
    return flow


@njit
def pump_flow(rail, supply, most, band):  # type: ignore[no-untyped-def]
    """Return the flow of a pump against a rail, and its fall [m^3/(s Pa)]; see PumpParameters."""
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
    """Return flows q1 into the head side and q2 out of the rod side; Henikl 2015, (24)."""
    # For a negative spool position both are negative; the printed equation omits the signs.
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
    """Return the time derivatives of both chamber pressures [Pa/s]; Henikl 2015, (23)."""
    rate_1 = bulk_modulus / (volume_1 + area_1 * position) * (q1 - area_1 * velocity)
    rate_2 = bulk_modulus / (volume_2 - area_2 * position) * (area_2 * velocity - q2)
    return rate_1, rate_2


@njit
def oil_share(pressure, vapour, bulk_modulus):  # type: ignore[no-untyped-def]
    """Return V_oil / V of a chamber: 1, or less below the vapour pressure."""
    # While a chamber cavitates, (23) holds with q / V_oil: pass q / oil_share to pressure_rates.
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
