"""
Cylinders and proportional valves: parameters, and compiled functions of numbers.

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

import dataclasses
import math

import numpy as np
from numba import njit

from longreach_dynamics.errors import InputError
from longreach_dynamics.parameters import Parameters, quantity

__all__ = [
    'Cylinder',
    'OilParameters',
    'ValveParameters',
    'chamber_pressure',
    'holding_pressures',
    'oil_share',
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


@dataclasses.dataclass(frozen=True)
class OilParameters(Parameters):
    """Oil and supply."""

    supply_pressure: float = quantity('supply pressure, p_s', 'Pa', at_least=1e5, at_most=1e8)
    tank_pressure: float = quantity('tank pressure, p_t', 'Pa', at_least=0.0, at_most=1e7)
    preload: float = quantity(
        'pressure of the relieved side at rest', 'Pa', above=0.0, at_most=1e8
    )
    vapour_pressure: float = quantity(
        'pressure below which no chamber falls', 'Pa', at_least=0.0, at_most=1e6
    )
    bulk_modulus: float = quantity('bulk modulus, beta', 'Pa', at_least=1e8, at_most=1e10)
    density: float = quantity('density, rho', 'kg/m^3', at_least=500.0, at_most=2000.0)
    contraction: float = quantity('contraction coefficient, alpha', at_least=0.1, at_most=1.0)
    laminar_pressure: float = quantity(
        'pressure difference below which a valve flows in proportion',
        'Pa',
        at_least=10.0,
        at_most=1e7,
    )

    def check(self) -> None:
        """Raise InputError when the pressures are not in their order."""
        if not self.tank_pressure < self.supply_pressure:
            raise InputError(
                f'tank_pressure = {self.tank_pressure:g} Pa, allowed: below supply_pressure ='
                f' {self.supply_pressure:g} Pa'
            )
        if not self.vapour_pressure <= self.tank_pressure:
            raise InputError(
                f'vapour_pressure = {self.vapour_pressure:g} Pa, allowed: at most tank_pressure ='
                f' {self.tank_pressure:g} Pa'
            )
        if not self.tank_pressure <= self.preload <= self.supply_pressure:
            raise InputError(
                f'preload = {self.preload:g} Pa, allowed: from tank_pressure ='
                f' {self.tank_pressure:g} to supply_pressure = {self.supply_pressure:g} Pa'
            )


@dataclasses.dataclass(frozen=True)
class ValveParameters(Parameters):
    """A proportional directional valve."""

    area: float = quantity('opening at full spool, A_v', 'm^2', at_least=1e-9, at_most=1e-2)
    area_ratio: float = quantity('rod-to-head opening-area ratio', at_least=0.01, at_most=100.0)
    dead_band: float = quantity(
        'spool position up to which it is closed', at_least=0.0, at_most=0.9
    )
    time_constant: float = quantity('time constant of the spool', 's', at_least=5e-3, at_most=10.0)


@dataclasses.dataclass(frozen=True)
class Cylinder(Parameters):
    """A cylinder with its valve; a machine adds how it moves a joint."""

    name: str = quantity('name', '')
    bore: float = quantity('diameter of the piston', 'm', at_least=1e-3, at_most=10.0)
    rod: float = quantity('diameter of the rod', 'm', above=0.0, at_most=10.0)
    stroke: float = quantity('stroke, from s_p = 0', 'm', at_least=1e-3, at_most=100.0)
    dead_length: float = quantity(
        'length that stays filled at each end', 'm', at_least=0.0, at_most=10.0
    )
    line_volume: float = quantity(
        'volume of the line to each chamber', 'm^3', at_least=1e-9, at_most=1.0
    )
    valve: ValveParameters = quantity('valve')

    def check(self) -> None:
        """Raise InputError when rod and piston do not fit."""
        if self.rod >= self.bore:
            raise InputError(f'rod = {self.rod} m, allowed: below bore = {self.bore} m')

    @property
    def head_area(self) -> float:
        """Piston area A_1 [m^2]."""
        return math.pi / 4.0 * self.bore**2

    @property
    def rod_area(self) -> float:
        """Ring area A_2 [m^2]."""
        return math.pi / 4.0 * (self.bore**2 - self.rod**2)

    @property
    def head_volume(self) -> float:
        """Volume V_01 of the head side at s_p = 0 [m^3]."""
        return self.dead_length * self.head_area + self.line_volume

    @property
    def rod_volume(self) -> float:
        """Volume V_02 of the rod side at s_p = 0 [m^3]."""
        return (self.stroke + self.dead_length) * self.rod_area + self.line_volume


def holding_pressures(
    forces: np.ndarray, head_areas: np.ndarray, rod_areas: np.ndarray, oil: OilParameters
) -> tuple[np.ndarray, np.ndarray]:
    """
    Return pressures of head and rod sides [Pa] that give cylinder forces [N], without friction.

    The rod side has the preload. A pulling cylinder relieves the head side, which then keeps the
    tank pressure.

    Parameters
    ----------
    forces, head_areas, rod_areas : ndarray, shape (N,)
        [N], positive pushes the piston out; A_1, A_2 [m^2].
    oil : OilParameters
    """
    rod = np.full(np.shape(forces), oil.preload)
    head = (forces + rod * rod_areas) / head_areas
    pulled = head < oil.tank_pressure
    head = np.where(pulled, oil.tank_pressure, head)
    rod = np.where(pulled, (head * head_areas - forces) / rod_areas, rod)
    return head, rod
