"""Parameters of nodes that work with a machine: its file, its scenario, its drawings."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, TypeVar

from longreach_dynamics.parameters import Parameters, quantity
from longreach_machine import MachineSpec
from longreach_node.frames import FrameParameters

P = TypeVar('P')
S = TypeVar('S')


@dataclasses.dataclass(frozen=True, kw_only=True)
class MachineParameters(FrameParameters):
    """Which machine, and which scenario."""

    file: str = quantity("the machine's file; empty: the installed one", '', default='')
    scenario: str = quantity('scenario file; empty: the machine rests', '', default='')


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


def machine_and_scenario(
    spec: MachineSpec[P, S, Any], settings: MachineParameters, rest: Callable[[P], S | None]
) -> tuple[P, Any]:
    """Return parameters and scenario of a node's settings, that of ``rest`` without a file."""
    machine = spec.load(settings.file or None, settings)
    if not settings.scenario:
        return machine, rest(machine)
    return machine, spec.load_scenario(settings.scenario, machine, settings)
