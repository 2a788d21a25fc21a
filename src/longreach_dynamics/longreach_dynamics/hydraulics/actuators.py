"""
The hydraulic actuators of a machine: N cylinders with their valves, fed by one supply.

Their part of a machine's state is 3 N numbers from index ``at`` on: pressures of the head sides
p_1 (N), of the rod sides p_2 (N) [Pa], spool positions s_v (N). Each chamber holds oil and is open
to up to five things:

- the directional valve with its dead band, whose spool follows the command with a lag, Henikl
  2015, (24), and a bounded speed; the hose between them adds its widening to the compliance of the
  chamber, and its resistance to that of the opening, as two orifices in a row;
- a counterbalance valve between hose and chamber: its check valve lets oil in without resistance,
  its poppet lets oil out as one more orifice in the row. The poppet opens with the sum of load
  pressure and, by the pilot ratio, pressure of the other line, against its spring: the static
  balance of forces, without the inertia of the poppet and with a spring chamber that is drained;
- an end cushion: within its length the directional valve takes oil from a chamber through the gap
  around a spear, one more orifice in the row; oil enters through a check valve;
- a relief valve to the tank, which opens with the pressure beyond its setting;
- a make-up valve from the tank or a charge line, which opens with the pressure that is missing;
- the piston;
- a leakage to the tank, proportional to the pressure.

A pump of limited flow feeds all valves through one rail of negligible volume. Its pressure is the
one at which the flows through all open valves add up to what the pump gives, see
:class:`longreach_dynamics.hydraulics.PumpParameters`; so each valve that opens takes from the
others. All of these laws are continuous, and so are their first derivatives, but for the
directional valve's dead band, the check valves at no flow, and
:func:`longreach_dynamics.hydraulics.chamber_pressure`.

Arguments of compiled functions, besides those of :mod:`longreach_dynamics.hydraulics.valves`:

    y, at              state, and where its part of the actuators begins
    dy                 derivative of the state, to be filled
    i                  index of the cylinder
    table              constants (N, COLUMNS), see STROKE and following
    rail               pressure from :func:`rail_pressure` [Pa]
    command            commanded spool position
    load, pilot        pressures of a chamber and of the other line [Pa]
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from longreach_dynamics.hydraulics.parameters import Cylinder, OilParameters, port_row
from longreach_dynamics.hydraulics.valves import (
    behind_hose,
    chamber_pressure,
    oil_share,
    pilot_opening,
    port_flow,
    pressure_rates,
    pump_flow,
    signed_root,
    spool_rate,
    valve_flows,
    valve_opening,
)
from longreach_dynamics.kernels import read_only

# Columns of the table of cylinders, one row for each. The oil's numbers stand in every row: one
# array is all that compiled code passes on, because numba counts references to each array in a
# tuple at each use, which took a fifth of the time of a step.
# The first LINKAGE columns are the machine's: how a joint moves the piston, as
# :func:`longreach_dynamics.linkages.piston_and_arm` reads it, or in its own way.
LINKAGE = 5
STROKE, HEAD_AREA, ROD_AREA, HEAD_VOLUME, ROD_VOLUME = range(LINKAGE, 10)
VISCOUS, COULOMB, STATIC = range(10, 13)
HEAD_OPENING, ROD_OPENING, HOSE_LOSS, DEAD_BAND, SPOOL_RATE = range(13, 18)
HEAD_RELIEF, ROD_RELIEF, RELIEF_OVERRIDE, RELIEF_AREA = range(18, 22)
MAKE_UP_PRESSURE, MAKE_UP_OVERRIDE, MAKE_UP_AREA, MAKE_UP_SUPPLY = range(22, 26)
HEAD_HOLDING, ROD_HOLDING, PILOT_RATIO, HOLDING_OVERRIDE, HOLDING_AREA = range(26, 31)
BULK_MODULUS, SUPPLY, TANK, VAPOUR, FLOW_COEFFICIENT, LAMINAR = range(31, 37)
PUMP_FLOW, PUMP_BAND, RETRACTING, SPOOL_FASTEST = range(37, 41)
CUSHION_LENGTH, CUSHION_AREA, LEAKAGE, COLUMNS = range(41, 45)

# Rounds of the search for the pressure of the rail. Newton's method needs about six; beside a
# chamber of that pressure it may go round, and from some round on halving gains a bit in each.
_MOST_ROUNDS, _HALVED = 100, 45


class Column:
    """A column of a table (N, ..), such as that of :class:`Actuators`, as an attribute (N,)."""

    def __init__(self, index: int, table: str = 'table') -> None:
        self._index, self._table = index, table

    def __get__(self, constants: tuple[Any, ...], _: object = None) -> np.ndarray:
        return np.asarray(getattr(constants, self._table)[:, self._index])


class _Common:
    """A number that is the same in all rows of the table as an attribute."""

    def __init__(self, index: int) -> None:
        self._index = index

    def __get__(self, actuators: Actuators, _: object = None) -> float:
        return float(actuators.table[0, self._index])


class _Table(NamedTuple):
    """The hydraulics of a machine in numbers."""

    table: np.ndarray  # (N, COLUMNS), see STROKE and following


class Actuators(_Table):
    """The hydraulics of a machine: a table for compiled code; others, of all cylinders (N,)."""

    __slots__ = ()

    stroke = Column(STROKE)  # [m]
    head_area = Column(HEAD_AREA)  # A_1 [m^2]
    rod_area = Column(ROD_AREA)  # ring area A_2 [m^2]
    head_volume = Column(HEAD_VOLUME)  # V_01 at s_p = 0, with beta C of the hose [m^3]
    rod_volume = Column(ROD_VOLUME)  # V_02
    head_opening = Column(HEAD_OPENING)  # at full spool [m^2]
    rod_opening = Column(ROD_OPENING)
    dead_band = Column(DEAD_BAND)  # spool position up to which a valve is closed
    viscous = Column(VISCOUS)  # friction r_V [N s/m]
    coulomb = Column(COULOMB)  # r_C [N]
    static = Column(STATIC)  # r_S [N]; 0: this piston never sticks
    bulk_modulus = _Common(BULK_MODULUS)  # beta [Pa]
    supply = _Common(SUPPLY)  # p_s [Pa]
    tank = _Common(TANK)  # p_t [Pa]
    vapour = _Common(VAPOUR)  # [Pa]
    flow_coefficient = _Common(FLOW_COEFFICIENT)  # alpha sqrt(2 / rho) [(m^3/kg)^(1/2)]
    laminar = _Common(LAMINAR)  # pressure difference below which a valve flows in proportion [Pa]

    @property
    def linkage(self) -> np.ndarray:
        """The machine's own columns (N, LINKAGE); a copy."""
        return np.ascontiguousarray(self.table[:, :LINKAGE])

    def at_edge(self, valves: np.ndarray) -> Actuators:
        """Return these actuators with spools of valves (N,) counted from the dead band's edge."""
        table = self.table.copy()
        table[valves, HEAD_OPENING : ROD_OPENING + 1] /= 1.0 - table[valves, DEAD_BAND, None]
        table[valves, DEAD_BAND] = 0.0
        return read_only(Actuators(table))


def actuators_of(
    cylinders: Sequence[Cylinder],
    oil: OilParameters,
    linkage: np.ndarray,
    viscous: Sequence[float],
    coulomb: Sequence[float] | None = None,
    static: Sequence[float] | None = None,
    leakage: Sequence[float] | None = None,
) -> Actuators:
    """
    Return the table of a machine's N cylinders; its array may be written on; InputError.

    ``linkage`` (N, up to LINKAGE) are the machine's own columns. Of each piston: viscous, Coulomb
    and static friction, and ``leakage`` from each chamber to the tank [m^3/(s Pa)]; None: none.
    """
    N = len(cylinders)
    table = np.zeros((N, COLUMNS))
    table[:, : linkage.shape[1]] = linkage
    table[:, VISCOUS] = viscous
    table[:, COULOMB] = np.zeros(N) if coulomb is None else coulomb
    table[:, STATIC] = np.zeros(N) if static is None else static
    table[:, LEAKAGE] = np.zeros(N) if leakage is None else leakage
    for row, c in zip(table, cylinders, strict=True):
        row[STROKE] = c.stroke
        row[HEAD_AREA], row[ROD_AREA] = c.head_area, c.rod_area
        row[HEAD_VOLUME], row[ROD_VOLUME] = c.head_volume, c.rod_volume
        row[HEAD_OPENING] = c.valve.area
        row[ROD_OPENING] = c.valve.area * c.valve.area_ratio
        row[RETRACTING] = c.valve.retracting
        row[DEAD_BAND] = c.valve.dead_band
        row[SPOOL_RATE] = 1.0 / c.valve.time_constant
        row[SPOOL_FASTEST] = c.valve.rate or math.inf
        if c.hose:
            # V / beta + C = (V + beta C) / beta.
            row[[HEAD_VOLUME, ROD_VOLUME]] += oil.bulk_modulus * c.hose.compliance
            row[HOSE_LOSS] = c.hose.loss(oil.contraction)
        names = c.name, 'tank_pressure', 'vapour_pressure'
        row[HEAD_RELIEF : MAKE_UP_SUPPLY + 1] = port_row(
            c.relief, c.make_up, oil.tank_pressure, oil.vapour_pressure, names
        )
        if c.counterbalance:
            # A setting of 0: no valve.
            row[HEAD_HOLDING] = c.counterbalance.head or 0.0
            row[ROD_HOLDING] = c.counterbalance.rod or 0.0
            row[PILOT_RATIO] = c.counterbalance.pilot_ratio
            row[HOLDING_OVERRIDE] = c.counterbalance.override
            row[HOLDING_AREA] = c.counterbalance.area
    table[:, BULK_MODULUS], table[:, SUPPLY] = oil.bulk_modulus, oil.supply_pressure
    table[:, TANK], table[:, VAPOUR] = oil.tank_pressure, oil.vapour_pressure
    table[:, FLOW_COEFFICIENT] = oil.contraction * math.sqrt(2.0 / oil.density)
    table[:, LAMINAR] = oil.laminar_pressure
    table[:, PUMP_FLOW] = oil.pump.flow if oil.pump else math.inf
    table[:, PUMP_BAND] = oil.pump.band if oil.pump else 1.0
    return Actuators(table)


@njit
def _openings(spool, i, table):  # type: ignore[no-untyped-def]
    """Return the openings to the head and rod side [m^2], with what the hoses take from them."""
    share = table[i, RETRACTING] if spool < 0.0 else 1.0
    opening_1 = valve_opening(spool, table[i, DEAD_BAND], share * table[i, HEAD_OPENING])
    opening_2 = valve_opening(spool, table[i, DEAD_BAND], share * table[i, ROD_OPENING])
    loss = table[i, HOSE_LOSS]
    if loss > 0.0:
        opening_1, opening_2 = behind_hose(opening_1, loss), behind_hose(opening_2, loss)
    return opening_1, opening_2


# Inlined: as a function call it took 4 % of the time of a step.
@njit(inline='always')
def poppet_opening(load, pilot, setting, i, table):  # type: ignore[no-untyped-def]
    """Return the opening of a counterbalance valve's poppet; pilot: pressure of the other line."""
    tank = table[i, TANK]
    excess = load - tank + table[i, PILOT_RATIO] * (pilot - tank) - setting
    return pilot_opening(excess, table[i, HOLDING_OVERRIDE], table[i, HOLDING_AREA])


@njit
def _behind_poppet(opening, load, pilot, setting, i, table):  # type: ignore[no-untyped-def]
    """Return the opening out of a chamber behind its counterbalance valve; setting 0: none."""
    # Oil from the tank enters through the check valve.
    if setting == 0.0 or load <= table[i, TANK] or opening == 0.0:
        return opening
    poppet = poppet_opening(load, pilot, setting, i, table)
    return opening * poppet / math.sqrt(opening * opening + poppet * poppet)


@njit
def _holding(spool, i, table):  # type: ignore[no-untyped-def]
    """Return the setting of the counterbalance valve of the side that is fed [Pa]; 0.0: none."""
    return table[i, HEAD_HOLDING] if spool >= 0.0 else table[i, ROD_HOLDING]


@njit
def rail_pressure(y, at, table):  # type: ignore[no-untyped-def]
    """Return the pressure with which the pump feeds all valves [Pa]."""
    supply, flow, band = table[0, SUPPLY], table[0, PUMP_FLOW], table[0, PUMP_BAND]
    if flow == np.inf:
        return supply
    coefficient, laminar = table[0, FLOW_COEFFICIENT], table[0, LAMINAR]
    N = table.shape[0]
    low, high, opened = supply, supply, False
    for i in range(N):
        spool = y[at + 2 * N + i]
        fed = chamber_pressure(y[at + i] if spool >= 0.0 else y[at + N + i], table[i, VAPOUR])
        closed = fed > supply and _holding(spool, i, table) > 0.0
        if abs(spool) > table[i, DEAD_BAND] and not closed:
            low, high, opened = min(low, fed), max(high, fed), True
    if not opened:
        return supply
    # The flow into the valves less that of the pump increases with the pressure.
    rail = supply
    for n in range(_MOST_ROUNDS):
        given, slope = pump_flow(rail, supply, flow, band)
        excess = -given
        for i in range(N):
            spool = y[at + 2 * N + i]
            opening_1, opening_2 = _openings(spool, i, table)
            opening = opening_1 if spool >= 0.0 else opening_2
            if opening > 0.0:
                fed = chamber_pressure(
                    y[at + i] if spool >= 0.0 else y[at + N + i], table[i, VAPOUR]
                )
                drop = rail - fed
                if drop < 0.0 and _holding(spool, i, table) > 0.0:
                    continue
                square = drop * drop + laminar * laminar
                wide = coefficient * opening
                excess += wide * signed_root(drop, laminar)
                slope += wide * (1.0 - 0.5 * drop * drop / square) / math.sqrt(math.sqrt(square))
        if excess > 0.0:
            high = rail
        else:
            low = rail
        better = rail - excess / slope
        # 3e-8 Pa at 300 bar, near what floating point resolves. Asked first, because at the end
        # a step of Newton may lead to the edge of the interval.
        if abs(better - rail) <= 1e-15 * supply:
            break
        rail = better if low < better < high and n < _HALVED else 0.5 * (low + high)
    return rail


@njit
def _behind_cushion(opening, way, i, table):  # type: ignore[no-untyped-def]
    """Return the opening of a port whose cushion the piston has entered by ``way`` [m]."""
    # The gap's resistance grows in proportion to its length: CUSHION_AREA at the end.
    if not way > 0.0 or opening == 0.0:
        return opening
    gap = table[i, CUSHION_AREA] * table[i, CUSHION_LENGTH] / way
    return opening * gap / math.sqrt(opening * opening + gap * gap)


@njit
def spool_flows(y, at, i, rail, table, position=np.nan):  # type: ignore[no-untyped-def]
    """Return q1, q2 through the directional valve, p1, p2; position NaN: outside cushions."""
    N = table.shape[0]
    p1 = chamber_pressure(y[at + i], table[i, VAPOUR])
    p2 = chamber_pressure(y[at + N + i], table[i, VAPOUR])
    spool = y[at + 2 * N + i]
    opening_1, opening_2 = _openings(spool, i, table)
    if table[i, HOLDING_AREA] > 0.0:
        # The line that is fed has the pressure of its chamber, or that of the rail behind a check
        # valve that is closed.
        if spool >= 0.0:
            pilot, setting = min(p1, rail), table[i, ROD_HOLDING]
            opening_2 = _behind_poppet(opening_2, p2, pilot, setting, i, table)
            if table[i, HEAD_HOLDING] > 0.0 and p1 > rail:
                opening_1 = 0.0
        else:
            pilot, setting = min(p2, rail), table[i, HEAD_HOLDING]
            opening_1 = _behind_poppet(opening_1, p1, pilot, setting, i, table)
            if table[i, ROD_HOLDING] > 0.0 and p2 > rail:
                opening_2 = 0.0
    if table[i, CUSHION_AREA] > 0.0:
        # Oil enters a cushion freely, through its check valve.
        length = table[i, CUSHION_LENGTH]
        if spool >= 0.0 and p2 > table[i, TANK]:
            way = position - (table[i, STROKE] - length)
            opening_2 = _behind_cushion(opening_2, way, i, table)
        elif spool < 0.0 and p1 > table[i, TANK]:
            opening_1 = _behind_cushion(opening_1, length - position, i, table)
    coefficient, laminar = table[i, FLOW_COEFFICIENT], table[i, LAMINAR]
    q1, q2 = valve_flows(
        spool, p1, p2, rail, table[i, TANK], opening_1, opening_2, coefficient, laminar
    )
    return q1, q2, p1, p2


@njit
def port_flows(p, relief, i, table):  # type: ignore[no-untyped-def]
    """Return the flow through relief and make-up valve into a chamber; relief: its column."""
    coefficient, laminar = table[i, FLOW_COEFFICIENT], table[i, LAMINAR]
    return port_flow(p, relief, HEAD_RELIEF, table[i, TANK], coefficient, laminar, i, table)


@njit
def open_port_rate(y, dy, at, i, position, ahead, table):  # type: ignore[no-untyped-def]
    """Return a bound of how fast ports, open now or ``ahead`` [s], change pressures [1/s]."""
    N, fastest = table.shape[0], 0.0
    for side in range(2):
        p = y[at + side * N + i]
        later = p + ahead * dy[at + side * N + i]
        setting, area, slope = table[i, HEAD_RELIEF + side], table[i, RELIEF_AREA], 0.0
        if area > 0.0 and max(p, later) > setting:
            override = table[i, RELIEF_OVERRIDE]
            drop = math.sqrt(setting + override - table[i, TANK])
            slope = area * (1.5 * drop / override + 0.5 / drop)
        cracking, area = table[i, MAKE_UP_PRESSURE], table[i, MAKE_UP_AREA]
        if area > 0.0 and min(p, later) < cracking:
            override = table[i, MAKE_UP_OVERRIDE]
            drop = math.sqrt(table[i, MAKE_UP_SUPPLY] - cracking + override)
            slope = max(slope, area * (1.5 * drop / override + 0.5 / drop))
        volume = table[i, HEAD_VOLUME] + table[i, HEAD_AREA] * position
        if side == 1:
            volume = table[i, ROD_VOLUME] - table[i, ROD_AREA] * position
        fastest = max(fastest, slope / volume)
    return fastest * table[i, FLOW_COEFFICIENT] * table[i, BULK_MODULUS]


@njit
def actuator_force(y, at, i, table):  # type: ignore[no-untyped-def]
    """Return p_1 A_1 - p_2 A_2 of cylinder i [N]; arguments as of :func:`spool_flows`."""
    p1 = chamber_pressure(y[at + i], table[i, VAPOUR])
    p2 = chamber_pressure(y[at + table.shape[0] + i], table[i, VAPOUR])
    return p1 * table[i, HEAD_AREA] - p2 * table[i, ROD_AREA]


# Inlined: where the loop is, numba knows that no index is negative.
@njit(inline='always')
def actuator_rates(y, at, i, position, velocity, command, rail, table, dy):  # type: ignore[no-untyped-def]
    """Write the rates of pressures and spool, Henikl 2015, (23); return p_1 A_1 - p_2 A_2 [N]."""
    N = table.shape[0]
    q1, q2, p1, p2 = spool_flows(y, at, i, rail, table, position)
    if table[i, RELIEF_AREA] > 0.0 or table[i, MAKE_UP_AREA] > 0.0:
        q1 += port_flows(p1, HEAD_RELIEF, i, table)
        q2 -= port_flows(p2, ROD_RELIEF, i, table)
    if table[i, LEAKAGE] > 0.0:
        q1 -= table[i, LEAKAGE] * (p1 - table[i, TANK])
        q2 += table[i, LEAKAGE] * (p2 - table[i, TANK])
    dy[at + i], dy[at + N + i] = pressure_rates(
        position,
        velocity,
        q1 / oil_share(y[at + i], table[i, VAPOUR], table[i, BULK_MODULUS]),
        q2 / oil_share(y[at + N + i], table[i, VAPOUR], table[i, BULK_MODULUS]),
        table[i, HEAD_AREA],
        table[i, ROD_AREA],
        table[i, HEAD_VOLUME],
        table[i, ROD_VOLUME],
        table[i, BULK_MODULUS],
    )
    dy[at + 2 * N + i] = spool_rate(
        y[at + 2 * N + i], command, table[i, SPOOL_RATE], table[i, SPOOL_FASTEST]
    )
    return p1 * table[i, HEAD_AREA] - p2 * table[i, ROD_AREA]
