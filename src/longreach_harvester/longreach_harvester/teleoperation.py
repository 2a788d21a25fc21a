"""
The operator's station of the harvester: sticks become spools, joint by joint or by the tip.

Sticks and patterns are those of :mod:`longreach_machine.teleoperation`; what is called the arm
there is the stick. Under tip control the joints follow references that move with the velocity of
the tip, under the controllers of :mod:`longreach_harvester.control`. Joints that the order does
not move have closed valves.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from longreach_dynamics.parameters import load
from longreach_dynamics.valve_pid import new_memory, pid_cycle
from longreach_harvester.control import ControllerParameters, load_controller
from longreach_harvester.parameters import JOINTS, HarvesterParameters, default_file
from longreach_machine.teleoperation import (
    OperatorState,
    Station,
    SticksParameters,
    spool_of_opening,
    tip_rates,
)

CLOSED = (0.0,) * len(JOINTS)
# The references of the tip lead a machine that cannot follow by no more than this [rad].
_LEAD = 0.1
# Time from rest to full speed of the tip [s]: a jump makes the machine swing on its oil.
_RAMP = 0.4
# Without a sample for longer than this the references begin anew [s].
_GAP = 0.25
# References keep this distance from the ends of the strokes [rad].
_MARGIN = 0.02


class Measurement(NamedTuple):
    """What the station knows of the harvester at one sample."""

    time: float  # [s]
    angles: np.ndarray  # (3,) [rad]


class _Tip(NamedTuple):
    """What moves the tip: its velocity, references of the joints, memory of the controllers."""

    velocity: np.ndarray  # (3,) outwards, to the left, up [m/s]
    references: np.ndarray  # (3,) [rad]
    controllers: np.ndarray  # (5, 3), see longreach_dynamics.valve_pid


def load_teleoperation(file: str | Path | None = None) -> SticksParameters:
    """Read a teleoperation file, the installed one by default; raises as ``load`` does."""
    return load(SticksParameters, file or default_file('teleoperation.yaml'))


@dataclasses.dataclass(frozen=True)
class Teleoperation(Station[Measurement, tuple[float, ...]]):
    """The operator's station of a harvester; commands are spools, the controller is the tip's."""

    parameters: SticksParameters
    harvester: HarvesterParameters
    controller: ControllerParameters = dataclasses.field(default_factory=load_controller)
    closed: tuple[float, ...] = CLOSED
    measurement, read = Measurement, staticmethod(load_teleoperation)

    def spools_of(self, asked: Mapping[str, float]) -> tuple[float, ...]:
        """Return the spools of swing, boom and stick; there is no valve of a tool."""
        openings = (asked[name] for name in ('swing', 'boom', 'arm'))
        bands = [actuator.valve.dead_band for actuator in self.harvester.actuators]
        pairs = zip(openings, bands, strict=True)
        return tuple(spool_of_opening(share, band) for share, band in pairs)

    def observe(self, state: OperatorState, measured: Measurement) -> _Tip | None:
        """Return what moves the tip; None when the order does not, or after a gap."""
        passed = measured.time - state.time
        if any(state.order.tip) and 0.0 < passed <= _GAP:
            known: _Tip | None = state.memory
            return known
        return None

    def obey(
        self, state: OperatorState, measured: Measurement
    ) -> tuple[_Tip | None, tuple[float, ...]]:
        """Return what moves the tip, and the spools."""
        tip = state.order.tip
        if not any(tip):
            return None, state.order.spools or CLOSED
        memory: _Tip | None = state.memory
        passed = measured.time - state.time
        if memory is None:
            memory = _Tip(np.zeros(3), measured.angles, new_memory(len(JOINTS)))
            passed = self.controller.sample_time
        most = passed * self.parameters.tip_speed / _RAMP
        velocity = memory.velocity + np.clip(np.array(tip) - memory.velocity, -most, most)
        out, left, up = (velocity != 0.0).tolist()
        moved = np.array([left, out or up, out or up])
        references = self._moved(memory.references, measured.angles, velocity, passed)
        # Joints that rest are not looked after, and begin from where they are.
        references = np.where(moved, references, measured.angles)
        controllers, spools = memory.controllers.copy(), np.zeros(len(JOINTS))
        wanted = np.where(moved, references, np.nan)
        table = self.controller.table(self.harvester)
        pid_cycle(measured.angles, wanted, controllers, table, passed, spools)
        return _Tip(velocity, references, controllers), tuple(spools.tolist())

    def _moved(
        self, references: np.ndarray, angles: np.ndarray, velocity: np.ndarray, passed: float
    ) -> np.ndarray:
        """Return the references [rad] a time [s] later, near the machine and within its limits."""
        h = self.harvester
        lengths = (h.boom.length, h.stick.length)
        rates = tip_rates(lengths, h.swing.offset, references[1:].tolist(), velocity.tolist())
        low, high = h.joint_limits().T + np.array([[_MARGIN], [-_MARGIN]])
        ahead = references + passed * rates
        if ((ahead < low) & (rates < 0.0) | (ahead > high) & (rates > 0.0))[1:].any():
            # The tip stops where boom or stick cannot go on.
            ahead[1:] = references[1:]
        wanted = np.clip(ahead, low, high)
        return np.clip(wanted, angles - _LEAD, angles + _LEAD)

    def warm_up(self) -> None:
        """Compile the functions of a cycle."""
        state = OperatorState(self.order_of({'swing': 0.0, 'boom': 1.0, 'arm': 0.0, 'tool': 0.0}))
        tip = state.order._replace(tip=(0.0, 0.0, 0.1))
        self.obey(state._replace(order=tip), Measurement(0.0, np.array([0.0, 0.5, -1.0])))
