"""
The operator's station of the excavator: sticks or joint velocities become spool positions.

Sticks, patterns and tip control are those of :mod:`longreach_dynamics.teleoperation`; the tip is
the joint D between arm and bucket, and the model does not swing.

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
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from longreach_dynamics.hydraulics import OilParameters
from longreach_dynamics.parameters import load, quantity
from longreach_dynamics.resources import data_directory
from longreach_dynamics.teleoperation import (
    OperatorState,
    Station,
    SticksParameters,
    spool_of_opening,
    tip_rates,
)
from longreach_excavator.parameters import CylinderParameters, ExcavatorParameters
from longreach_excavator.state import CLOSED, ExcavatorCommand


@dataclasses.dataclass(frozen=True, kw_only=True)
class TeleoperationParameters(SticksParameters):
    """Parameters of a teleoperation file."""

    load_time: float = quantity(
        'time constant of the low-pass filter of the loads', 's', at_least=0.0, at_most=10.0
    )
    feedback: float = quantity(
        'gain of the velocity error added to a commanded velocity', at_least=0.0, at_most=10.0
    )


class Measurement(NamedTuple):
    """Measured quantities of the excavator at one sample."""

    time: float  # [s]
    angles: np.ndarray  # (3,) theta_2..4 [rad]
    rates: np.ndarray  # (3,) [rad/s]
    head_pressures: np.ndarray  # (3,) p_1 [Pa]
    rod_pressures: np.ndarray  # (3,) p_2 [Pa]


def load_teleoperation(file: str | Path | None = None) -> TeleoperationParameters:
    """Read a teleoperation file, by default the installed one; raises as ``load`` does."""
    installed = data_directory('longreach_excavator') / 'config' / 'teleoperation.yaml'
    return load(TeleoperationParameters, file or installed)


def opening_for_velocity(
    velocity: float, load: float, cylinder: CylinderParameters, oil: OilParameters
) -> float:
    """
    Return the opening of a valve, in [-1, 1], for a piston velocity [m/s] under a load [N].

    Henikl 2015, (24), without its laminar term, with the hoses behind the valve, solved for the
    opening, as above; 1 or -1 where the velocity cannot be reached. The load is p_1 A_1 - p_2 A_2.
    """
    if velocity == 0.0:
        return 0.0
    head, rod = cylinder.head_area, cylinder.rod_area
    supply, tank, ratio = oil.supply_pressure, oil.tank_pressure, cylinder.valve.area_ratio
    flow = oil.contraction * math.sqrt(2.0 / oil.density)
    area = cylinder.valve.area * (1.0 if velocity > 0.0 else cylinder.valve.retracting)
    loss = cylinder.hose.loss(oil.contraction) if cylinder.hose else 0.0
    throttled = head**3 + rod**3 / ratio**2
    if velocity > 0.0:
        driving = supply * head - tank * rod - load
        # Pressure drop across the rod side's orifice when the head side cavitates.
        drop = (oil.vapour_pressure * head - load) / rod - tank
        pushed, behind = rod, ratio * area
    else:
        driving = load + supply * rod - tank * head
        drop = (load + oil.vapour_pressure * rod) / head - tank
        pushed, behind = head, area
    opening = 1.0
    # Products: a power of a number too large is an exception.
    left = flow**2 * driving - loss * (head**3 + rod**3) * (velocity * velocity)
    if left > 0.0:
        opening = abs(velocity) / area * math.sqrt(throttled / left)
    if drop > 0.0:
        needed = pushed * abs(velocity) / (flow * math.sqrt(drop))
        if loss * (needed * needed) < 1.0:
            opening = min(opening, needed / (behind * math.sqrt(1.0 - loss * (needed * needed))))
    return math.copysign(min(opening, 1.0), velocity)


@dataclasses.dataclass(frozen=True)
class Teleoperation(Station[Measurement, ExcavatorCommand]):
    """The operator's station of an excavator; its memory are the filtered loads, (3,) [N]."""

    parameters: TeleoperationParameters
    excavator: ExcavatorParameters
    closed: ExcavatorCommand = CLOSED

    def asks_for_swing(self, axes: Sequence[float]) -> bool:
        """Return whether a stick commands the swing, which the planar model does not have."""
        p = self.parameters
        return abs(p.deflection(axes, 'left_sideways')) > p.dead_zone

    def spools_of(self, asked: Mapping[str, float]) -> tuple[float, ...]:
        """Return the spool positions; extending the arm's cylinder brings the arm in."""
        return self._spools((asked['boom'], -asked['arm'], asked['tool']))

    def _spools(self, openings: Sequence[float]) -> tuple[float, ...]:
        """Return the spool positions for relative openings."""
        pairs = zip(openings, self.excavator.cylinders, strict=True)
        return tuple(spool_of_opening(share, c.valve.dead_band) for share, c in pairs)

    def obey(
        self, state: OperatorState, measured: Measurement
    ) -> tuple[tuple[float, ...], ExcavatorCommand]:
        """Return loads and command; InputError for angles that the linkage cannot reach."""
        order = state.order
        if order.tip:
            e, angles = self.excavator, measured.angles[:2].tolist()
            rates = tip_rates((e.boom.length, e.arm.length), 0.0, angles, order.tip)[1:]
            spools = self.spools_for((*rates.tolist(), 0.0), measured, state)
            # The bucket by its valve, as without tip control.
            return state.memory, ExcavatorCommand((*spools[:2], order.spools[2]))
        if order.rates:
            spools = self.spools_for(order.rates, measured, state)
            return state.memory, ExcavatorCommand(spools)
        return state.memory, ExcavatorCommand(order.spools)

    def spools_for(
        self, rates: Sequence[float], measured: Measurement, state: OperatorState
    ) -> tuple[float, ...]:
        """Return the spool positions for rates of theta_2..4 [rad/s]; 0 closes the valve."""
        levers = self.excavator.linkage().levers(measured.angles).tolist()
        openings = []
        for k, cylinder in enumerate(self.excavator.cylinders):
            rate = rates[k]
            if rate:
                rate += self.parameters.feedback * (rate - float(measured.rates[k]))
            openings.append(
                opening_for_velocity(
                    levers[k] * rate, state.memory[k], cylinder, self.excavator.oil
                )
            )
        return self._spools(openings)

    def observe(self, state: OperatorState, measured: Measurement) -> tuple[float, ...]:
        """Return the filtered forces of the cylinders [N]."""
        pairs = zip(
            self.excavator.cylinders,
            measured.head_pressures.tolist(),
            measured.rod_pressures.tolist(),
            strict=True,
        )
        present = [p1 * c.head_area - p2 * c.rod_area for c, p1, p2 in pairs]
        passed = measured.time - state.time
        if not state.memory or passed <= 0.0:
            return tuple(present)
        share = passed / (self.parameters.load_time + passed)
        return tuple(
            old + share * (new - old) for old, new in zip(state.memory, present, strict=True)
        )
