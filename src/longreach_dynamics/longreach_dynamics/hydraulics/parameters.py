"""
Parameters of oil, pump, valves, hoses and cylinders.

Relief, make-up and counterbalance valves, hoses and the limit of the pump are left out where a
file does not have them: then chambers are closed by their directional valves alone, lines are
rigid and without resistance, and the supply pressure is constant.
"""

from __future__ import annotations

import dataclasses
import math

from longreach_dynamics.errors import InputError
from longreach_dynamics.parameters import Parameters, quantity

# Some absolute pressure of a machine exceeds it [Pa]: tanks are at atmospheric pressure, 1e5 Pa.
_PRESSED = 5e4


@dataclasses.dataclass(frozen=True)
class PumpParameters(Parameters):
    """A pump for all cylinders; at the flow Q = x flow it holds p_s - band x / sqrt(1 - x^2)."""

    flow: float = quantity(
        'largest flow, which the pump approaches but does not exceed',
        'm^3/s',
        at_least=1e-6,
        at_most=1.0,
    )
    band: float = quantity(
        'pressure below the supply pressure at 71 % of the largest flow',
        'Pa',
        at_least=1e4,
        at_most=1e7,
    )


@dataclasses.dataclass(frozen=True)
class OilParameters(Parameters):
    """Oil and supply."""

    relations = (
        'tank_pressure < supply_pressure',
        'vapour_pressure <= tank_pressure',
        'preload >= tank_pressure',
        'preload <= supply_pressure',
    )

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
    pump: PumpParameters | None = quantity(
        'pump of limited flow; left out: the supply pressure is constant', '', default=None
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
    retracting: float = quantity(
        'both openings at full spool while the piston retracts, over those while it extends',
        at_least=0.01,
        at_most=1.0,
        default=1.0,
    )
    rate: float | None = quantity(
        'largest speed of the spool, full strokes per second; left out: no bound',
        '1/s',
        at_least=0.1,
        at_most=1e4,
        default=None,
    )


@dataclasses.dataclass(frozen=True)
class StopParameters(Parameters):
    """The ends of the strokes: springs with damping (Hunt and Crossley 1975)."""

    stiffness: float = quantity('stiffness', 'N/m', at_least=1e6, at_most=1e9)
    loss: float = quantity(
        'damping force per spring force and velocity', 's/m', at_least=0.0, at_most=10.0
    )


@dataclasses.dataclass(frozen=True)
class ReliefParameters(Parameters):
    """Relief valves of both chambers, which let oil out to the tank."""

    head: float = quantity(
        'pressure above which that of the head side opens', 'Pa', at_least=1e5, at_most=1e8
    )
    rod: float = quantity(
        'pressure above which that of the rod side opens', 'Pa', at_least=1e5, at_most=1e8
    )
    override: float = quantity(
        'pressure above the setting at which they are fully open', 'Pa', at_least=1e5, at_most=1e8
    )
    area: float = quantity('opening of each when fully open', 'm^2', at_least=1e-8, at_most=1e-2)


@dataclasses.dataclass(frozen=True)
class MakeUpParameters(Parameters):
    """Make-up (anti-cavitation) valves of both chambers, from the tank or a charge line."""

    cracking: float = quantity(
        'pressure below that of their supply at which they open', 'Pa', at_least=0.0, at_most=1e6
    )
    override: float = quantity(
        'pressure below that at which they are fully open', 'Pa', at_least=1e3, at_most=5e6
    )
    area: float = quantity('opening of each when fully open', 'm^2', at_least=1e-8, at_most=1e-2)
    supply: float | None = quantity(
        'pressure of the charge line that feeds them; left out: they are fed from the tank',
        'Pa',
        at_least=0.0,
        at_most=1e7,
        default=None,
    )


def check_pressed(what: str, highest: float) -> None:
    """Raise InputError, begun with ``what``, for a highest pressure [Pa] in bar, or in MPa."""
    if highest < _PRESSED:
        raise InputError(
            f'{what}: no pressure is above {highest:g} Pa, allowed: at least one of'
            f' {_PRESSED:g} Pa; pressures are in Pa, absolute; is their unit right?'
        )


def port_row(
    relief: ReliefParameters | None,
    make_up: MakeUpParameters | None,
    tank: float,
    least: float,
    names: tuple[str, str, str],
) -> tuple[float, ...]:
    """Return relief and make-up valves as 8 numbers; areas of 0: none."""
    # Settings of head and rod side, override, area; pressure below which make-up valves open,
    # override, area, pressure of their supply.
    row = [0.0] * 8
    if relief:
        row[:4] = relief.head, relief.rod, relief.override, relief.area
        if min(relief.head, relief.rod) < tank:
            raise InputError(
                f'{names[0]}: relief has {min(relief.head, relief.rod):g} Pa, allowed: at least'
                f' {names[1]} = {tank:g} Pa, from where oil would come in through it'
            )
    if make_up:
        supply = tank if make_up.supply is None else make_up.supply
        most = supply - least
        if make_up.cracking >= most:
            of = names[1] if make_up.supply is None else 'make_up.supply'
            raise InputError(
                f'{names[0]}: make_up.cracking = {make_up.cracking:g} Pa, allowed: below'
                f' {of} - {names[2]} = {most:g} Pa; no chamber falls so far that it would open'
            )
        row[4:] = supply - make_up.cracking, make_up.override, make_up.area, supply
    return tuple(row)


@dataclasses.dataclass(frozen=True)
class CounterbalanceParameters(Parameters):
    """Counterbalance (load-holding) valves at a cylinder's ports, with vented spring chambers."""

    # A poppet opens by (p_load - p_t) + pilot_ratio (p_pilot - p_t) - setting; a check valve lets
    # oil in. A setting is usually about 1.3 times the highest load pressure.

    pilot_ratio: float = quantity(
        'effect of the pilot pressure over that of the load pressure', at_least=0.0, at_most=20.0
    )
    override: float = quantity(
        'pressure beyond the setting at which they are fully open', 'Pa', at_least=1e5, at_most=1e8
    )
    area: float = quantity('opening of each when fully open', 'm^2', at_least=1e-8, at_most=1e-2)
    head: float | None = quantity(
        'load pressure above the tank pressure at which that of the head side opens without a'
        ' pilot; left out: this side has none',
        'Pa',
        at_least=1e5,
        at_most=1e8,
        default=None,
    )
    rod: float | None = quantity(
        'that of the rod side; left out: this side has none',
        'Pa',
        at_least=1e5,
        at_most=1e8,
        default=None,
    )

    def check(self) -> None:
        """Raise InputError when neither side has a valve."""
        if self.head is None and self.rod is None:
            raise InputError('counterbalance: head and rod are missing, allowed: one or both')


@dataclasses.dataclass(frozen=True)
class HoseParameters(Parameters):
    """A hose between the valve and each chamber; its volume is part of the line's."""

    length: float = quantity('length', 'm', at_least=0.01, at_most=1e3)
    diameter: float = quantity('inner diameter', 'm', at_least=1e-3, at_most=1.0)
    friction_factor: float = quantity(
        'Darcy friction factor, with fittings', '1', at_least=0.0, at_most=10.0
    )
    stiffness: float = quantity(
        'pressure per share of the volume by which it widens', 'Pa', at_least=1e7, at_most=1e12
    )

    @property
    def bore_area(self) -> float:
        """Inner cross-section [m^2]."""
        return math.pi / 4.0 * self.diameter**2

    @property
    def volume(self) -> float:
        """Volume [m^3]."""
        return self.bore_area * self.length

    @property
    def compliance(self) -> float:
        """Volume by which it widens per pressure [m^3/Pa]."""
        return self.volume / self.stiffness

    def loss(self, contraction: float) -> float:
        """Return 1 / A^2 [1/m^4] of the orifice whose pressure drop is that of the hose."""
        return (
            self.friction_factor
            * self.length
            / self.diameter
            * (contraction / self.bore_area) ** 2
        )


@dataclasses.dataclass(frozen=True)
class Cylinder(Parameters):
    """A cylinder with its valve; a machine adds how it moves a joint."""

    relations = ('rod < bore',)

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
    relief: ReliefParameters | None = quantity(
        'relief valves; left out: none', '', default=None, kw_only=True
    )
    make_up: MakeUpParameters | None = quantity(
        'make-up valves; left out: none', '', default=None, kw_only=True
    )
    counterbalance: CounterbalanceParameters | None = quantity(
        'counterbalance valves; left out: none', '', default=None, kw_only=True
    )
    hose: HoseParameters | None = quantity(
        'hose to each chamber; left out: rigid lines without resistance',
        '',
        default=None,
        kw_only=True,
    )

    def check(self) -> None:
        """Raise InputError for a hose that is larger than the line."""
        if self.hose and self.hose.volume > self.line_volume:
            raise InputError(
                f'hose has the volume {self.hose.volume:.4g} m^3, allowed: up to line_volume ='
                f' {self.line_volume:g} m^3, of which it is a part'
            )

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
