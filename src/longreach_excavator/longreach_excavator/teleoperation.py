"""
Teleoperation: conversion of joystick deflections or joint velocities to spool positions.

As on a real machine, joysticks command valve openings: the deflection beyond the dead zone, shaped
by an expo curve, is the relative opening of the valve. The two common control patterns:

    stick   direction    iso      sae      motion for forward or left
    left    fore-aft     arm      boom     arm out; boom down
    left    sideways     swing    swing    none: the model is planar
    right   fore-aft     boom     arm      boom down; arm out
    right   sideways     bucket   bucket   curl in

Velocities are commanded by feedforward through the valve's flow equation (Henikl 2015, (24)). With
the load F = p_1 A_1 - p_2 A_2, supply pressure p_s, tank pressure p_t, opening areas a and r a to
head and rod side, and steady flows q_1 = A_1 v, q_2 = A_2 v,

    v > 0:  p_1 = p_s - (A_1 v / c a)^2,  p_2 = p_t + (A_2 v / c r a)^2
            ->  (c a / v)^2 = (A_1^3 + A_2^3 / r^2) / (p_s A_1 - p_t A_2 - F)

and for v < 0 the same with p_t and p_s exchanged and the sign of the divisor reversed. The load is
known before the motion begins; the single pressures are not. Where a load drives its cylinder
faster than the supply can fill the chamber, that chamber cavitates, and only the metering orifice
of the other chamber limits the velocity.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from longreach_dynamics.errors import InputError
from longreach_dynamics.hydraulics import OilParameters
from longreach_dynamics.parameters import Parameters, choice, load, quantity
from longreach_dynamics.resources import data_directory
from longreach_excavator.parameters import CylinderParameters, ExcavatorParameters
from longreach_excavator.state import CLOSED, ExcavatorCommand

__all__ = [
    'PATTERNS',
    'Measurement',
    'Order',
    'StickAxis',
    'Teleoperation',
    'TeleoperationParameters',
    'TeleoperationState',
    'default_file',
    'load_teleoperation',
    'opening_for_velocity',
    'spool_of_opening',
    'stick_curve',
]

# For boom, arm, bucket: stick axis, and sign of the piston's motion for forward or left.
_SIDEWAYS = ('right_sideways', 1.0)
_PATTERNS = {
    'iso': (('right_fore_aft', -1.0), ('left_fore_aft', -1.0), _SIDEWAYS),
    'sae': (('left_fore_aft', -1.0), ('right_fore_aft', -1.0), _SIDEWAYS),
}
PATTERNS = tuple(_PATTERNS)
_AXES = ('left_fore_aft', 'left_sideways', 'right_fore_aft', 'right_sideways')


@dataclasses.dataclass(frozen=True)
class StickAxis(Parameters):
    """Index and sign of a stick's direction in the axes of sensor_msgs/Joy."""

    axis: int = quantity('index in the axes, from 0', '', at_least=0, at_most=63)
    sign: int = quantity('sign of the value for forward or left', '', at_least=-1, at_most=1)

    def check(self) -> None:
        """Raise InputError for a sign of 0."""
        if not self.sign:
            raise InputError('sign = 0, allowed: -1 | 1')


@dataclasses.dataclass(frozen=True)
class TeleoperationParameters(Parameters):
    """Parameters of a teleoperation file."""

    pattern: str = choice('control pattern: which stick moves which joint', PATTERNS)
    left_fore_aft: StickAxis = quantity('left stick, forward')
    left_sideways: StickAxis = quantity('left stick, to the left')
    right_fore_aft: StickAxis = quantity('right stick, forward')
    right_sideways: StickAxis = quantity('right stick, to the left')
    dead_zone: float = quantity(
        'deflection below which a stick counts as centred', at_least=0.0, at_most=0.9
    )
    expo: float = quantity(
        'shape of the curve: 0 linear, 1 cubic',
        at_least=0.0,
        at_most=1.0,
    )
    deadman: int | None = quantity(
        'index of the button that must be held down; none: no such button',
        '',
        at_least=0,
        at_most=63,
    )
    timeout: float = quantity(
        'time without a command after which the valves close', 's', above=0.0, at_most=60.0
    )
    load_time: float = quantity(
        'time constant of the low-pass filter of the loads', 's', at_least=0.0, at_most=10.0
    )
    feedback: float = quantity(
        'gain of the velocity error added to a commanded velocity', at_least=0.0, at_most=10.0
    )

    def check(self) -> None:
        """Raise InputError when two directions use the same axis."""
        taken: dict[int, str] = {}
        for name in _AXES:
            axis = getattr(self, name).axis
            if axis in taken:
                raise InputError(
                    f'{name}.axis = {axis} is also used by {taken[axis]}, allowed: an unused axis'
                )
            taken[axis] = name


class Measurement(NamedTuple):
    """Measured quantities of the excavator at one sample."""

    time: float  # [s]
    angles: np.ndarray  # (3,) theta_2..4 [rad]
    rates: np.ndarray  # (3,) [rad/s]
    head_pressures: np.ndarray  # (3,) p_1 [Pa]
    rod_pressures: np.ndarray  # (3,) p_2 [Pa]


class Order(NamedTuple):
    """Command of the operator: spool positions, or joint velocities."""

    spools: tuple[float, ...] = ()  # of boom, arm, bucket, in [-1, 1]
    rates: tuple[float, ...] = ()  # of theta_2..4 [rad/s]

    @property
    def moves(self) -> bool:
        """Whether any value is not 0."""
        return any((*self.spools, *self.rates))


class TeleoperationState(NamedTuple):
    """State of the operator's station; immutable."""

    order: Order = Order()
    given: float = -math.inf  # time of the order [s], by the clock of Teleoperation.take
    engaged: bool = False  # a motion has been commanded
    loads: tuple[float, ...] = ()  # filtered forces of the cylinders [N]
    time: float = 0.0  # of the previous sample [s]


def default_file() -> Path:
    """Return the path of the teleoperation file installed with this package."""
    return data_directory('longreach_excavator') / 'config' / 'teleoperation.yaml'


def load_teleoperation(file: str | Path | None = None) -> TeleoperationParameters:
    """Read a teleoperation file, by default the installed one; raises as ``load`` does."""
    return load(TeleoperationParameters, file or default_file())


def stick_curve(deflection: float, dead_zone: float, expo: float) -> float:
    """
    Return the relative opening for a stick's deflection, in [-1, 1].

    0 within the dead zone; outside, x from 0 at its edge to 1 gives (1 - expo) x + expo x^3.
    Deflections beyond 1, which some drivers send, count as 1.
    """
    x = (min(abs(deflection), 1.0) - dead_zone) / (1.0 - dead_zone)
    if x <= 0.0:
        return 0.0
    return math.copysign((1.0 - expo) * x + expo * x**3, deflection)


def spool_of_opening(opening: float, dead_band: float) -> float:
    """
    Return the spool position for a relative opening in [-1, 1], beyond the dead band.

    The inverse of :func:`longreach_dynamics.hydraulics.valve_opening`; 0 for 0.
    """
    if opening == 0.0:
        return 0.0
    return math.copysign(min(dead_band + (1.0 - dead_band) * abs(opening), 1.0), opening)


def opening_for_velocity(
    velocity: float, load: float, cylinder: CylinderParameters, oil: OilParameters
) -> float:
    """
    Return the relative opening of a valve, in [-1, 1], for a piston velocity.

    Steady flow as in the module's docstring: Henikl 2015, (24), without its laminar term, solved
    for the opening.

    Parameters
    ----------
    velocity : float
        [m/s], positive extends the cylinder.
    load : float
        Force of the oil on the piston, p_1 A_1 - p_2 A_2 [N].
    cylinder : CylinderParameters
    oil : OilParameters

    Returns
    -------
    float
        1 or -1 where the velocity cannot be reached.
    """
    if velocity == 0.0:
        return 0.0
    head, rod = cylinder.head_area, cylinder.rod_area
    supply, tank, ratio = oil.supply_pressure, oil.tank_pressure, cylinder.valve.area_ratio
    full = oil.contraction * math.sqrt(2.0 / oil.density) * cylinder.valve.area
    throttled = head**3 + rod**3 / ratio**2
    if velocity > 0.0:
        driving = supply * head - tank * rod - load
        # Pressure drop across the rod side's orifice when the head side cavitates.
        drop = (oil.vapour_pressure * head - load) / rod - tank
        behind = rod / ratio
    else:
        driving = load + supply * rod - tank * head
        drop = (load + oil.vapour_pressure * rod) / head - tank
        behind = head
    opening = abs(velocity) / full * math.sqrt(throttled / driving) if driving > 0.0 else 1.0
    if drop > 0.0:
        opening = min(opening, behind * abs(velocity) / (full * math.sqrt(drop)))
    return math.copysign(min(opening, 1.0), velocity)


@dataclasses.dataclass(frozen=True)
class Teleoperation:
    """
    The operator's station of an excavator.

    Parameters
    ----------
    parameters : TeleoperationParameters
    excavator : ExcavatorParameters
    """

    parameters: TeleoperationParameters
    excavator: ExcavatorParameters

    def order_of_sticks(self, axes: Sequence[float], buttons: Sequence[int] = ()) -> Order:
        """
        Return the command of the joysticks; closed valves unless the deadman button is pressed.

        Parameters
        ----------
        axes : sequence of float
            Deflections, -1 to 1.
        buttons : sequence of int
            0: not pressed.

        Raises
        ------
        InputError
            When an axis or the deadman button is missing, or a deflection is not finite.
        """
        p = self.parameters
        if p.deadman is not None and p.deadman >= len(buttons):
            raise InputError(
                f'joy has {len(buttons)} buttons, allowed with deadman = {p.deadman}:'
                f' {p.deadman + 1} or more'
            )
        places = _PATTERNS[p.pattern]
        asked = [way * self._deflection(axes, name) for name, way in places]
        if p.deadman is not None and not buttons[p.deadman]:
            return Order(CLOSED.spools)
        openings = [stick_curve(x, p.dead_zone, p.expo) for x in asked]
        return Order(self._spools(openings))

    def asks_for_swing(self, axes: Sequence[float]) -> bool:
        """
        Return whether a stick commands the swing, which the planar model does not have.

        Raises as :meth:`order_of_sticks` does.
        """
        return abs(self._deflection(axes, 'left_sideways')) > self.parameters.dead_zone

    def _deflection(self, axes: Sequence[float], name: str) -> float:
        """Return the deflection of a stick, positive forward or to the left."""
        stick: StickAxis = getattr(self.parameters, name)
        if stick.axis >= len(axes):
            raise InputError(
                f'joy has {len(axes)} axes, allowed with {name}.axis = {stick.axis}:'
                f' {stick.axis + 1} or more'
            )
        if not math.isfinite(axes[stick.axis]):
            raise InputError(
                f'joy has {axes[stick.axis]} on axis {stick.axis}, allowed: finite numbers'
            )
        return stick.sign * axes[stick.axis]

    def _spools(self, openings: Sequence[float]) -> tuple[float, ...]:
        """Return the spool positions for relative openings."""
        pairs = zip(openings, self.excavator.cylinders, strict=True)
        return tuple(spool_of_opening(share, c.valve.dead_band) for share, c in pairs)

    def take(self, state: TeleoperationState, order: Order, now: float) -> TeleoperationState:
        """
        Return the state with a new order, received at the time ``now`` [s].

        An order without motion does not engage the station: the excavator follows its scenario
        until a joystick is moved for the first time.
        """
        return state._replace(order=order, given=now, engaged=state.engaged or order.moves)

    def cycle(
        self, state: TeleoperationState, measured: Measurement, now: float
    ) -> tuple[TeleoperationState, ExcavatorCommand | None]:
        """
        Return the state after a sample and the command; None before the station is engaged.

        Parameters
        ----------
        state : TeleoperationState
        measured : Measurement
        now : float
            [s], by the clock of :meth:`take`. After ``timeout`` without an order the valves close.

        Raises
        ------
        InputError
            When the linkage cannot reach the measured angles.
        """
        state = state._replace(loads=self._loads(state, measured), time=measured.time)
        if not state.engaged:
            return state, None
        if now - state.given > self.parameters.timeout:
            return state, CLOSED
        if state.order.rates:
            return state, ExcavatorCommand(self.spools_for(state.order.rates, measured, state))
        return state, ExcavatorCommand(state.order.spools)

    def spools_for(
        self, rates: Sequence[float], measured: Measurement, state: TeleoperationState
    ) -> tuple[float, ...]:
        """
        Return the spool positions for joint velocities.

        Parameters
        ----------
        rates : sequence of float
            Of theta_2..4 [rad/s]; 0 closes the valve.
        measured : Measurement
        state : TeleoperationState
            With the filtered loads.

        Raises
        ------
        InputError
            When the linkage cannot reach the measured angles.
        """
        levers = self.excavator.linkage().levers(measured.angles).tolist()
        openings = []
        for k, cylinder in enumerate(self.excavator.cylinders):
            rate = rates[k]
            if rate:
                rate += self.parameters.feedback * (rate - float(measured.rates[k]))
            openings.append(
                opening_for_velocity(
                    levers[k] * rate, state.loads[k], cylinder, self.excavator.oil
                )
            )
        return self._spools(openings)

    def _loads(self, state: TeleoperationState, measured: Measurement) -> tuple[float, ...]:
        """Return the filtered forces of the cylinders [N]."""
        pairs = zip(
            self.excavator.cylinders,
            measured.head_pressures.tolist(),
            measured.rod_pressures.tolist(),
            strict=True,
        )
        present = [p1 * c.head_area - p2 * c.rod_area for c, p1, p2 in pairs]
        passed = measured.time - state.time
        if not state.loads or passed <= 0.0:
            return tuple(present)
        share = passed / (self.parameters.load_time + passed)
        return tuple(
            old + share * (new - old) for old, new in zip(state.loads, present, strict=True)
        )
