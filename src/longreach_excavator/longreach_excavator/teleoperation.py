"""
The operator's station of the excavator: sticks or joint velocities become spool positions.

Sticks, patterns and tip control are those of :mod:`longreach_machine.teleoperation`; the tip is
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
from longreach_excavator.machine import CLOSED, ExcavatorCommand
from longreach_excavator.parameters import CylinderParameters, ExcavatorParameters, default_file
from longreach_machine.teleoperation import (
    OperatorState,
    Station,
    SticksParameters,
    spool_of_opening,
    tip_rates,
)

# The tip stops at this distance of a piston from the end of its stroke [m].
_MARGIN = 0.01


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
    return load(TeleoperationParameters, file or default_file().with_name('teleoperation.yaml'))


def _throttles(
    extends: bool, load: float, cylinder: CylinderParameters, oil: OilParameters
) -> tuple[tuple[float, float, float], ...]:
    """Return D, R, L of D = (R / a^2 + L) v^2, v the velocity at an opening a under a load."""
    head, rod = cylinder.head_area, cylinder.rod_area
    supply, tank, ratio = oil.supply_pressure, oil.tank_pressure, cylinder.valve.area_ratio
    flow = oil.contraction**2 * 2.0 / oil.density
    area = cylinder.valve.area * (1.0 if extends else cylinder.valve.retracting)
    loss = cylinder.hose.loss(oil.contraction) if cylinder.hose else 0.0
    if extends:
        driving = supply * head - tank * rod - load
        # Pressure drop across the rod side's orifice when the head side cavitates.
        drop = (oil.vapour_pressure * head - load) / rod - tank
        pushed, behind = rod, ratio * area
    else:
        driving = load + supply * rod - tank * head
        drop = (load + oil.vapour_pressure * rod) / head - tank
        pushed, behind = head, area
    # With full chambers, and with one that cavitates: the faster one is the motion. D is at most 0
    # where the load does not let the cylinder move; L is of the hoses behind the valve.
    return (
        (flow * driving, (head**3 + rod**3 / ratio**2) / area**2, loss * (head**3 + rod**3)),
        (flow * drop, (pushed / behind) ** 2, loss * pushed**2),
    )


def opening_for_velocity(
    velocity: float, load: float, cylinder: CylinderParameters, oil: OilParameters
) -> float:
    """Return the opening of a valve, in [-1, 1], for a piston velocity [m/s] under a load [N]."""
    # Henikl 2015, (24), without its laminar term, with the hoses behind the valve, solved for the
    # opening, as above; 1 or -1 where the velocity cannot be reached. The load is p_1 A_1 - p_2
    # A_2.
    if velocity == 0.0:
        return 0.0
    opening = 1.0
    for drive, valve, hose in _throttles(velocity > 0.0, load, cylinder, oil):
        # A product: the power of a number too large is an exception.
        left = drive - hose * (velocity * velocity)
        if left > 0.0:
            opening = min(opening, abs(velocity) * math.sqrt(valve / left))
    return math.copysign(opening, velocity)


def _fastest(
    extends: bool, load: float, cylinder: CylinderParameters, oil: OilParameters
) -> float:
    """Return the speed of a piston with its valve open [m/s]; 0 where the load is too large."""
    throttles = _throttles(extends, load, cylinder, oil)
    return max(math.sqrt(max(drive, 0.0) / (valve + hose)) for drive, valve, hose in throttles)


@dataclasses.dataclass(frozen=True)
class Teleoperation(Station[Measurement, ExcavatorCommand]):
    """The operator's station of an excavator; its memory are the filtered loads, (3,) [N]."""

    parameters: TeleoperationParameters
    excavator: ExcavatorParameters
    closed: ExcavatorCommand = CLOSED
    measurement, read = Measurement, staticmethod(load_teleoperation)

    def warm_up(self) -> None:
        """Compile the functions of a cycle."""
        self.excavator.linkage().levers(self.excavator.joint_limits().mean(axis=1))

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
            share = self._possible_share(rates.tolist(), measured, state)
            spools = self.spools_for((*(share * rates).tolist(), 0.0), measured, state)
            # The bucket by its valve, as without tip control.
            return state.memory, ExcavatorCommand((*spools[:2], order.spools[2]))
        if order.rates:
            spools = self.spools_for(order.rates, measured, state)
            return state.memory, ExcavatorCommand(spools)
        return state.memory, ExcavatorCommand(order.spools)

    def _possible_share(
        self, rates: Sequence[float], measured: Measurement, state: OperatorState
    ) -> float:
        """Return the largest share of rates [rad/s] that all joints can follow, at most 1."""
        e, share, linkage = self.excavator, 1.0, self.excavator.linkage()
        lengths = linkage.lengths(measured.angles).tolist()
        levers = linkage.levers(measured.angles).tolist()
        for k, rate in enumerate(rates):
            velocity, cylinder = levers[k] * rate, e.cylinders[k]
            if velocity == 0.0:
                continue
            extends = velocity > 0.0
            left = cylinder.extended - lengths[k] if extends else lengths[k] - cylinder.retracted
            if left < _MARGIN:
                # The other joint alone would move the tip elsewhere.
                return 0.0
            fastest = _fastest(extends, state.memory[k], cylinder, e.oil)
            share = min(share, fastest / abs(velocity))
        return share

    def spools_for(
        self, rates: Sequence[float], measured: Measurement, state: OperatorState
    ) -> tuple[float, ...]:
        """Return the spool positions for rates of theta_2..4 [rad/s]; 0 closes the valve."""
        e, openings = self.excavator, []
        levers = e.linkage().levers(measured.angles).tolist()
        for k, cylinder in enumerate(e.cylinders):
            rate = rates[k]
            if rate:
                rate += self.parameters.feedback * (rate - float(measured.rates[k]))
            velocity = levers[k] * rate
            openings.append(opening_for_velocity(velocity, state.memory[k], cylinder, e.oil))
        return self._spools(openings)

    def observe(self, state: OperatorState, measured: Measurement) -> tuple[float, ...]:
        """Return the filtered forces of the cylinders [N]."""
        heads, rods = measured.head_pressures.tolist(), measured.rod_pressures.tolist()
        parts = zip(self.excavator.cylinders, heads, rods, strict=True)
        present = [p1 * c.head_area - p2 * c.rod_area for c, p1, p2 in parts]
        passed = measured.time - state.time
        if not state.memory or passed <= 0.0:
            return tuple(present)
        share = passed / (self.parameters.load_time + passed)
        return tuple(
            old + share * (new - old) for old, new in zip(state.memory, present, strict=True)
        )
