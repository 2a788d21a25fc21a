"""Parameters of nodes that work with a machine: its file, its scenario, its drawings."""

from __future__ import annotations

import dataclasses
from typing import Any

from longreach_dynamics.parameters import Parameters, quantity
from longreach_machine import MachineSpec
from longreach_node.frames import FrameParameters


@dataclasses.dataclass(frozen=True, kw_only=True)
class MachineParameters(FrameParameters):
    """Which machine, and which scenario."""

    file: str = quantity("the machine's file; empty: the installed one", '', default='')
    scenario: str = quantity('scenario file; empty: the machine rests', '', default='')

    def read(self, spec: MachineSpec[Any, Any, Any]) -> tuple[Any, Any]:
        """Return parameters and scenario of a declared machine; None for no scenario."""
        machine = spec.load(self.file or None, self)
        if not self.scenario:
            return machine, None
        return machine, spec.load_scenario(self.scenario, machine, self)


@dataclasses.dataclass(frozen=True, kw_only=True)
class DrawingParameters(Parameters):
    """How often a plant is drawn."""

    visual_rate: float = quantity(
        'drawings per second of simulation, if there is a subscriber; 0: none',
        'Hz',
        at_least=0.0,
        at_most=1e3,
        default=30.0,
    )
