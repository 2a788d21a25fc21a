"""
Actuators behind lines with inertia: hoses as linear graphs have them.

Each of N actuators, cylinders and motors, has two lines. From the source to the actuator a line is
an orifice of the directional valve and an inertance I in a row, a capacitance C to the ground, and
a resistance R to the actuator's port:

    I Q_1' = P_S1 - C_R Q_1 |Q_1| - P_1        C P_1' = Q_1 - (flow into port 1)
    I Q_2' = P_2 - C_R Q_2 |Q_2| - P_S2        C P_2' = (flow out of port 2) - Q_2

P_1, P_2 [Pa] are the pressures of the capacitances, Q_1 [m^3/s] flows into line 1 and Q_2 out of
line 2. A spool position u > 0 makes P_S1 the supply pressure and P_S2 the tank pressure, any other
the reverse. C_R(u) is that of a table of openings; the valve is closed for |u| up to its dead
band.

Below the vapour pressure, 0 Pa here, the state P of a capacitance is the volume of oil that it
lacks, -P C, and the pressure is :func:`longreach_dynamics.hydraulics.valves.chamber_pressure`,
as in :mod:`longreach_dynamics.hydraulics.actuators`: oil is conserved. Callers of the functions
below give pressures, not states, but to :func:`port_step`.

Of a cylinder, R is quadratic: the ports have the pressures P_1 - R q |q| and P_2 + R q |q| of the
flows q = A s'. Of a motor, R is linear, and there are leakages between the ports and from each to
the tank: the pressures of both ports follow from two linear equations.

A closed valve separates the lines from the sources: no oil flows through it. Q is then the state
of Papadopoulos and Gonthier (2002), (14), (15): it follows, with a time constant, the flow that
the source would drive through the greatest resistance, so that it is continuous when the valve
opens and closes.

Beyond the paper, and left out where a file does not have them:

- relief and make-up valves at each capacitance, which let oil out and in by its pressure;
- a pump of limited flow that feeds all open valves through one rail without volume, see
  :class:`longreach_dynamics.hydraulics.PumpParameters`: P_S of the sides that are fed is its
  pressure at the sum of their flows;
- a lag and a bounded speed of the spools.

Compiled functions take one actuator i of a table as :func:`lines_of` makes it. Their arguments:

    p, p1, p2          pressures of capacitances [Pa]
    flow, flows        Q at the beginning [m^3/s]; of rail_step from the rail into lines (N,)
    drop               pressure difference over orifice and inertance [Pa]
    resistance(s)      C_R of orifices [Pa s^2/m^6], above 0
    inertance          I [kg/m^4]
    duration           [s]
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numba import njit

from longreach_dynamics.errors import InputError
from longreach_dynamics.hydraulics.parameters import (
    MakeUpParameters,
    PumpParameters,
    ReliefParameters,
    StopParameters,
    port_row,
)
from longreach_dynamics.hydraulics.valves import chamber_pressure, port_flow, pump_flow
from longreach_dynamics.linkages import Linkage
from longreach_dynamics.parameters import Parameters, quantity

# Columns of the table, one row for each actuator; the first LINKAGE are those of a linkage.
_LINKAGE = 5
MOTOR, AREA_1, AREA_2, VISCOUS, INERTANCE, CAPACITANCE, RESISTANCE = range(_LINKAGE, 12)
LEAK_ACROSS, LEAK_TANK, ORIFICE_1, ORIFICE_2, DEAD_BAND, LEAST, RESIDUAL_TIME = range(12, 19)
SUPPLY, TANK, RELIEF_1, RELIEF_2, _RELIEF_OVERRIDE, RELIEF_AREA = range(19, 25)
_CRACKING, _MAKE_UP_OVERRIDE, MAKE_UP_AREA, _FEED, _COEFFICIENT, _LAMINAR = range(25, 31)
PUMP_FLOW, PUMP_BAND, SPOOL_RATE, SPOOL_FASTEST = range(31, 35)
STROKE, STOP_STIFFNESS, STOP_LOSS, _COLUMNS = range(35, 39)

# Pressure below which no line falls [Pa].
VAPOUR = 0.0

# Pressure over which the slope of a relief valve is taken [Pa].
_SLIGHT = 1e3
# Rounds of the search for the pressure of a rail, usually three; after how many of them it takes
# the slope between its last two places, as flows turn round, and after how many it halves its
# bracket; and its last change [Pa].
_MOST_ROUNDS, _SECANT, _HALVED, _NEAR = 100, 8, 20, 10.0


@dataclasses.dataclass(frozen=True)
class LineParameters(Parameters):
    """A line between a valve and an actuator; both lines of an actuator are equal."""

    inertance: float = quantity('inertance, I', 'kg/m^4', at_least=1e3, at_most=1e12)
    capacitance: float = quantity(
        'volume per pressure of line and chamber, C', 'm^3/Pa', at_least=1e-15, at_most=1e-6
    )
    resistance: float = quantity(
        'pressure per flow [Pa s/m^3] of a motor; per flow squared [Pa s^2/m^6] of a cylinder',
        '',
        at_least=0.0,
        at_most=1e16,
    )


@dataclasses.dataclass(frozen=True)
class OrificeParameters(Parameters):
    """A directional valve as two orifices, dp = C_R Q |Q| with C_R = resistance / s^2."""

    resistance: float = quantity(
        'C_R of both orifices at full spool', 'Pa s^2/m^6', at_least=1e6, at_most=1e18
    )
    dead_band: float = quantity(
        'spool position up to which it is closed', at_least=0.0, at_most=0.9
    )
    least: float = quantity('smallest opening s of the open valve', at_least=1e-9, at_most=1.0)
    residual_time: float = quantity(
        'time constant of the flow state of the closed valve', 's', above=0.0, at_most=10.0
    )
    resistance_2: float | None = quantity(
        'C_R of orifice 2, if it is another',
        'Pa s^2/m^6',
        at_least=1e6,
        at_most=1e18,
        default=None,
    )
    openings: tuple[tuple[float, float], ...] = quantity(
        'pairs of x = (|u| - dead_band) / (1 - dead_band) and s, linear in between; left out: s ='
        ' x',
        at_least=0.0,
        at_most=1.0,
        default=((0.0, 0.0), (1.0, 1.0)),
    )
    time_constant: float | None = quantity(
        'lag of the spool behind its command; left out: none',
        's',
        at_least=1e-4,
        at_most=10.0,
        default=None,
    )
    rate: float | None = quantity(
        'largest speed of the spool, full strokes per second; left out: no bound',
        '1/s',
        at_least=0.1,
        at_most=1e4,
        default=None,
    )

    def check(self) -> None:
        """Raise InputError for openings that are no rising table from 0 to 1, or half a lag."""
        if self.rate is not None and self.time_constant is None:
            raise InputError(
                f'rate = {self.rate:g} 1/s without time_constant, allowed: with it, such as 0.01 s'
            )
        pairs = list(itertools.pairwise(self.openings))
        rising = all(x0 < x1 and s0 <= s1 for (x0, s0), (x1, s1) in pairs)
        if not (pairs and rising and self.openings[0][0] == 0.0 and self.openings[-1][0] == 1.0):
            raise InputError(
                f'openings = {self.openings}, allowed: 2 or more pairs, x rising from 0 to 1, s'
                ' not falling'
            )

    def switching_spools(self) -> tuple[float, ...]:
        """Return spool positions at which the valve opens, or C_R has a kink."""
        x, s = np.array(self.openings).T
        if self.least > s[0]:
            x = np.append(x, np.interp(self.least, s, x))
        opened = self.dead_band + (1.0 - self.dead_band) * np.unique(x)
        return (*(-opened[::-1]).tolist(), 0.0, *opened.tolist())


@dataclasses.dataclass(frozen=True)
class PortOilParameters(Parameters):
    """Oil in relief and make-up valves, which are given by their openings."""

    density: float = quantity('density, rho', 'kg/m^3', at_least=500.0, at_most=2000.0)
    contraction: float = quantity('contraction coefficient, alpha', at_least=0.1, at_most=1.0)
    laminar_pressure: float = quantity(
        'pressure difference below which a valve flows in proportion',
        'Pa',
        at_least=10.0,
        at_most=1e7,
    )


@dataclasses.dataclass(frozen=True)
class LinedCylinder(Parameters):
    """A cylinder behind two lines."""

    relations = ('rod_area < head_area',)

    head_area: float = quantity('area of the head side, A_1', 'm^2', at_least=1e-6, at_most=10.0)
    rod_area: float = quantity('area of the rod side, A_2', 'm^2', at_least=1e-6, at_most=10.0)
    stroke: float = quantity('stroke, from the cylinder run in', 'm', at_least=1e-3, at_most=100.0)
    viscous: float = quantity('viscous friction of the piston', 'N s/m', at_least=0.0)
    linkage: Linkage = quantity('between piston and joint')
    line: LineParameters = quantity('lines')
    valve: OrificeParameters = quantity('valve')
    relief: ReliefParameters | None = quantity(
        'relief valves of both lines; left out: none', '', default=None
    )
    make_up: MakeUpParameters | None = quantity(
        'make-up valves of both lines; left out: none', '', default=None
    )

    def check(self) -> None:
        """Raise InputError for a stroke that pins do not allow."""
        self.check_stroke(0.0)

    def check_stroke(self, yields: float) -> None:
        """Raise InputError for a linkage whose dead points are not beyond stops that yield [m]."""
        linkage, behind = self.linkage, f', with stops that yield {yields:.2g} m' if yields else ''
        low, high = (linkage.position(angle) for angle in linkage.angles_of_rise())
        if linkage.kind == 'triangle':
            retracted = float(linkage.row()[4])
            pins = f'pins from {retracted + low:g} to {retracted + high:g} m apart'
            if not -low - yields > 0.0:
                raise InputError(
                    f'retracted = {retracted:g} m, allowed: above {retracted + low + yields:g} m'
                    f' by {pins}{behind}'
                )
            if not self.stroke < min(high - yields, retracted):
                raise InputError(
                    f'retracted = {retracted:g} m with stroke = {self.stroke:g} m, allowed: a'
                    f' stroke below retracted, and both together below'
                    f' {retracted + high - yields:g} m by {pins}{behind}'
                )
        elif not (low < -yields and self.stroke + yields < high):
            raise InputError(
                f'stroke = {self.stroke:g} m, allowed by the linkage, whose piston is from'
                f' {low:g} to {high:g} m: within that, from 0 on{behind}'
            )


@dataclasses.dataclass(frozen=True)
class LinedMotor(Parameters):
    """A hydraulic motor with a gear behind two lines."""

    displacement: float = quantity(
        'displacement per revolution of the motor', 'm^3', at_least=1e-9, at_most=1.0
    )
    gear: float = quantity(
        'turns of the motor for a turn of the joint', at_least=1e-3, at_most=1e6
    )
    leakage_across: float = quantity('pressure per flow between the ports', 'Pa s/m^3', above=0.0)
    leakage_tank: float = quantity(
        'pressure per flow from each port to the tank', 'Pa s/m^3', above=0.0
    )
    line: LineParameters = quantity('lines')
    valve: OrificeParameters = quantity('valve')
    relief: ReliefParameters | None = quantity(
        'relief valves of both lines; left out: none', '', default=None
    )
    make_up: MakeUpParameters | None = quantity(
        'make-up valves of both lines; left out: none', '', default=None
    )

    @property
    def volume(self) -> float:
        """Volume per angle of the joint, N D_m [m^3/rad]."""
        return self.displacement / (2.0 * math.pi) * self.gear


class Lines(NamedTuple):
    """Actuators and their lines in numbers; see :func:`lines_of`."""

    table: np.ndarray  # (N, columns), see AREA_1 and following
    openings: np.ndarray  # (N, 2, points): x, s


def lines_of(
    actuators: Sequence[LinedCylinder | LinedMotor],
    supply: float,
    tank: float,
    viscous: Sequence[float | None],
    oil: PortOilParameters | None = None,
    pump: PumpParameters | None = None,
    stops: StopParameters | None = None,
) -> Lines:
    """
    Return the table of a machine's actuators; without ``pump`` the supply is constant.

    ``viscous``: friction at the joint of each motor [N m s/rad], None for cylinders. Relief and
    make-up valves need ``oil``.
    """
    N = len(actuators)
    table = np.zeros((N, _COLUMNS))
    points = max(len(a.valve.openings) for a in actuators)
    openings = np.ones((N, 2, points))
    table[:, SUPPLY], table[:, TANK] = supply, tank
    for i, (a, friction) in enumerate(zip(actuators, viscous, strict=True)):
        row, line, valve = table[i], a.line, a.valve
        if isinstance(a, LinedMotor):
            row[:_LINKAGE] = Linkage('rocker', lever=1.0, shape=0.0, offset=0.0).row()
            row[MOTOR], row[AREA_1], row[AREA_2] = 1.0, a.volume, a.volume
            row[LEAK_ACROSS], row[LEAK_TANK] = a.leakage_across, a.leakage_tank
            row[VISCOUS] = friction
        else:
            row[:_LINKAGE] = a.linkage.row()
            row[AREA_1], row[AREA_2], row[VISCOUS] = a.head_area, a.rod_area, a.viscous
            row[STROKE] = a.stroke
            if stops is not None:
                row[STOP_STIFFNESS], row[STOP_LOSS] = stops.stiffness, stops.loss
        row[INERTANCE], row[CAPACITANCE] = line.inertance, line.capacitance
        row[RESISTANCE] = line.resistance
        row[ORIFICE_1], row[ORIFICE_2] = valve.resistance, valve.resistance_2 or valve.resistance
        row[DEAD_BAND], row[LEAST] = valve.dead_band, valve.least
        row[RESIDUAL_TIME] = valve.residual_time
        row[SPOOL_RATE] = 1.0 / valve.time_constant if valve.time_constant else math.inf
        row[SPOOL_FASTEST] = valve.rate or math.inf
        kind = 'motor' if isinstance(a, LinedMotor) else 'cylinder'
        if (a.relief or a.make_up) and oil is None:
            raise InputError(
                f'{kind} {i + 1} has relief or make-up valves, allowed with oil: density,'
                ' contraction, laminar_pressure'
            )
        row[RELIEF_1 : _FEED + 1] = port_row(
            a.relief, a.make_up, tank, VAPOUR, (f'{kind} {i + 1}', 'tank_pressure', '0')
        )
        openings[i, :, : len(valve.openings)] = np.array(valve.openings).T
        # What is behind the end of a shorter table is never reached.
        openings[i, 0, len(valve.openings) :] = 2.0
    if oil is not None:
        table[:, _COEFFICIENT] = oil.contraction * math.sqrt(2.0 / oil.density)
        table[:, _LAMINAR] = oil.laminar_pressure
    table[:, PUMP_FLOW] = pump.flow if pump else math.inf
    table[:, PUMP_BAND] = pump.band if pump else 1.0
    return Lines(table, openings)


@njit
def sources(spool, rail, tank):  # type: ignore[no-untyped-def]
    """Return P_S1 and P_S2 [Pa] of a spool position."""
    if spool > 0.0:
        return rail, tank
    return tank, rail


@njit
def relief_and_make_up(p, side, i, table):  # type: ignore[no-untyped-def]
    """Return the flow through relief and make-up valve into a line; side: RELIEF_1 or RELIEF_2."""
    coefficient, laminar = table[i, _COEFFICIENT], table[i, _LAMINAR]
    return port_flow(p, side, RELIEF_1, table[i, TANK], coefficient, laminar, i, table)


@njit
def port_step(p, side, i, table, duration, counted=0.0):  # type: ignore[no-untyped-def]
    """Let oil through relief and make-up valve of a closed line for a time [s]; return P."""
    # C P' = flow - counted, by the exponential Rosenbrock-Euler method (order 2, stable);
    # ``counted``: the flow that the rest of a split step has. Returned are also the energy of the
    # oil from tank and charge line, and what the valves lose [J].
    C = table[i, CAPACITANCE]
    before = chamber_pressure(p, VAPOUR)
    flow = relief_and_make_up(before, side, i, table)
    if flow == 0.0 and counted == 0.0:
        return p, 0.0, 0.0
    slope = 0.0
    if p >= VAPOUR:
        slope = (relief_and_make_up(p + _SLIGHT, side, i, table) - flow) / _SLIGHT
    x = slope * duration / C
    share = math.expm1(x) / x if x < -1e-6 else 1.0 + 0.5 * x
    after = p + share * duration / C * (flow - counted)
    if flow < 0.0:
        after = max(after, table[i, side])
    elif flow > 0.0:
        after = min(after, table[i, _CRACKING])
    source = table[i, TANK] if flow < 0.0 or counted < 0.0 else table[i, _FEED]
    given, end = source * (C * (after - p) + counted * duration), chamber_pressure(after, VAPOUR)
    own = 0.5 * (end + before) * (C * (end - before) + counted * duration)
    return after, given, given - own


@njit
def rail_of(flow, table):  # type: ignore[no-untyped-def]
    """Return the pressure of the rail for a flow of the pump, and how fast it falls with it."""
    supply, most, band = table[0, SUPPLY], table[0, PUMP_FLOW], table[0, PUMP_BAND]
    x = flow / most
    root = math.sqrt(1.0 - x * x)
    return supply - band * x / root, band / (most * root * root * root)


@njit
def rail_step(rail, flows, pressures, resistances, duration, table):  # type: ignore[no-untyped-def]
    """Return the pressure of the rail over a time [s], from a first guess; NaN: none was found."""
    # With it the pump gives what the orifices take, a mean of their mean and their final flows
    # with the weights of exponential fitting, which has no overshoot near the pump's largest flow.
    # C_R = 0.0: the valve is closed.
    supply, most, band = table[0, SUPPLY], table[0, PUMP_FLOW], table[0, PUMP_BAND]
    response = 0.0
    for i in range(flows.size):
        if resistances[i] > 0.0:
            response += orifice_response(flows[i], resistances[i], table[i, INERTANCE], duration)
    if response == 0.0:
        return supply
    _, slope = pump_flow(rail, supply, most, band)
    stiff = 2.0 * response / slope
    last = stiff / (6.0 + stiff)
    low, high = -np.inf, np.inf
    place, known = np.nan, np.nan
    for n in range(_MOST_ROUNDS):
        given, slope = pump_flow(rail, supply, most, band)
        excess = -given
        for i in range(flows.size):
            if resistances[i] > 0.0:
                end, volume = orifice_step(
                    flows[i], rail - pressures[i], resistances[i], table[i, INERTANCE], duration
                )
                excess += last * end + (1.0 - last) * volume / duration
        if excess > 0.0:
            high = rail
        else:
            low = rail
        slope += (1.0 + last) * response
        if n >= _SECANT and (excess - known) * (rail - place) > 0.0:
            slope = (excess - known) / (rail - place)
        place, known = rail, excess
        better = rail - excess / slope
        if abs(better - rail) <= _NEAR:
            return better
        # Where secants go round in a bracket, every other round halves it.
        halved = n >= _HALVED and n % 2 and high - low < np.inf
        rail = better if low < better < high and not halved else 0.5 * (low + high)
        if halved and high - low <= _NEAR:
            return rail
    return np.nan


@njit
def orifice_resistances(spool, i, lines):  # type: ignore[no-untyped-def]
    """Return C_R of both orifices [Pa s^2/m^6] of an open valve; of a closed one the greatest."""
    table, openings = lines
    band, s = table[i, DEAD_BAND], table[i, LEAST]
    x = (min(abs(spool), 1.0) - band) / (1.0 - band)
    if x > 0.0:
        k = 1
        while x > openings[i, 0, k]:
            k += 1
        x0, x1 = openings[i, 0, k - 1], openings[i, 0, k]
        s0, s1 = openings[i, 1, k - 1], openings[i, 1, k]
        s = max(s, s0 + (x - x0) / (x1 - x0) * (s1 - s0))
    share = 1.0 / (s * s)
    return table[i, ORIFICE_1] * share, table[i, ORIFICE_2] * share


@njit
def residual_flow(drop, resistance):  # type: ignore[no-untyped-def]
    """Return the flow that a pressure difference [Pa] drives through C_R, (14) [m^3/s]."""
    return math.copysign(math.sqrt(abs(drop) / resistance), drop)


@njit
def orifice_step(flow, drop, resistance, inertance, duration):  # type: ignore[no-untyped-def]
    """Return Q of I Q' = dp - C_R Q |Q| after a time, exact at constant dp, and the volume."""
    # With the sign of dp taken out, dp is positive or 0.
    sign = 1.0 if drop > 0.0 or (drop == 0.0 and flow >= 0.0) else -1.0
    Q, rate = sign * flow, resistance / inertance
    steady = math.sqrt(abs(drop) / resistance)
    if steady * rate * duration < 1e-9:
        # Hardly any dp: 1 / Q grows in proportion to time.
        slowing = rate * duration * abs(Q)
        after = Q / (1.0 + slowing) + duration * abs(drop) / inertance
        return sign * after, sign * math.copysign(math.log1p(slowing) / rate, Q)
    volume = 0.0
    if Q < 0.0:
        # Against dp: Q = -steady tan(..) until it stands still.
        standing = math.atan2(-Q, steady) / (steady * rate)
        lasts = min(standing, duration)
        turn = math.tan(lasts * steady * rate)
        # cos(..) - (Q / steady) sin(..) by which the flow has fallen.
        volume = -math.log((steady - Q * turn) / (steady * math.sqrt(1.0 + turn * turn))) / rate
        if standing >= duration:
            return sign * steady * (Q + steady * turn) / (steady - Q * turn), sign * volume
        Q, duration = 0.0, duration - standing
    decay = math.exp(-2.0 * steady * rate * duration)
    turn = (1.0 - decay) / (1.0 + decay)
    grown = 0.5 * ((1.0 + Q / steady) + (1.0 - Q / steady) * decay)
    volume += steady * duration + math.log(grown) / rate
    return sign * steady * (Q + steady * turn) / (steady + Q * turn), sign * volume


@njit
def orifice_response(flow, resistance, inertance, duration):  # type: ignore[no-untyped-def]
    """Return q(T) / p of I q' = p t / T - 2 C_R |Q| q, linear about the flow Q [m^3/(s Pa)]."""
    slope = 2.0 * resistance * abs(flow)
    x = slope * duration / inertance
    if x < 1e-3:
        return 0.5 * duration / inertance * (1.0 - x / 3.0)
    return (1.0 + math.expm1(-x) / x) / slope


@njit
def ports(p1, p2, speed, i, table):  # type: ignore[no-untyped-def]
    """Return pressures of ports 1, 2, flows into port 1, out of 2; speed [m/s] or [rad/s]."""
    q1, q2, R = table[i, AREA_1] * speed, table[i, AREA_2] * speed, table[i, RESISTANCE]
    if table[i, MOTOR] == 0.0:
        return p1 - R * q1 * abs(q1), p2 + R * q2 * abs(q2), q1, q2
    # (p1 - e) = R (q + (e - f) / L + (e - t) / T),  (f - p2) = R (q + (e - f) / L - (f - t) / T)
    # in e + f and e - f.
    across, tank = R / table[i, LEAK_ACROSS], R / table[i, LEAK_TANK]
    sums = (p1 + p2 + 2.0 * tank * table[i, TANK]) / (1.0 + tank)
    difference = (p1 - p2 - 2.0 * R * q1) / (1.0 + 2.0 * across + tank)
    e, f = 0.5 * (sums + difference), 0.5 * (sums - difference)
    between = q1 + difference / table[i, LEAK_ACROSS]
    into = between + (e - table[i, TANK]) / table[i, LEAK_TANK]
    return e, f, into, between - (f - table[i, TANK]) / table[i, LEAK_TANK]
