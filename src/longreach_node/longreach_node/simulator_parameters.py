"""Parameters of nodes that work with a machine: its file and scenario, how a plant runs."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, ClassVar, Self

from longreach_dynamics.errors import InputError
from longreach_dynamics.parameters import Parameters, quantity
from longreach_machine import MachineSpec
from longreach_node.frames import FrameParameters

# Between two samples a node does not react to signals and services, so that there must not be
# more than a fraction of a second of work.
_MOST_STEPS = 10_000


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


@dataclasses.dataclass(frozen=True)
class SimulatorParameters(FrameParameters):
    """How a simulator node runs; a machine's node adds its own fields."""

    step: float = quantity('length of a simulation step', 's', above=0.0, default=0.01)
    publish_rate: float = quantity(
        'samples per second of simulation', 'Hz', above=0.0, at_most=1e5, default=100.0
    )
    real_time_factor: float = quantity(
        'speed against real time; 0 is as fast as possible',
        at_least=0.0,
        at_most=1e4,
        default=1.0,
        read_only=False,
    )
    lockstep: bool = quantity('wait for the command to each sample', default=False)
    lockstep_timeout: float = quantity(
        'longest wait for a command in lockstep, in wall time',
        's',
        above=0.0,
        default=10.0,
        read_only=False,
    )
    start_timeout: float = quantity(
        'longest wait for other nodes before the first sample, in wall time',
        's',
        at_least=0.0,
        default=10.0,
    )
    listeners: int = quantity(
        'subscribers of each output to wait for, such as a recorder', at_least=0, default=0
    )
    command_timeout: float = quantity(
        'time without a command after which the safe command acts, in simulation time; 0 is never',
        's',
        at_least=0.0,
        default=0.5,
        read_only=False,
    )
    duration: float = quantity('end of the simulation; 0 is never', 's', at_least=0.0, default=0.0)
    start_paused: bool = quantity('wait for ~/resume or ~/step', default=False)
    publish_clock: bool = quantity(
        'publish simulation time on /clock; only one node of a ROS graph may', default=True
    )
    companions: int = quantity(
        'number of other simulations that must finish before this node ends',
        at_least=0,
        default=0,
    )

    whole_steps: ClassVar[bool] = True
    """Whether samples have to be whole steps; a machine that rounds instants itself says no."""

    def check(self) -> None:
        """Raise InputError when samples or the end do not fall on steps."""
        super().check()
        if 0.0 < self.real_time_factor < 1e-4:
            raise InputError(
                f'real_time_factor = {self.real_time_factor}, allowed: 0, or [0.0001, 10000]'
            )
        if self.publish_rate and self.step and self.whole_steps:
            _whole(
                1.0 / (self.publish_rate * self.step), '1 / (publish_rate step)', 1, _MOST_STEPS
            )
        if self.publish_rate:
            _whole(self.duration * self.publish_rate, 'duration times publish_rate', 0)

    @property
    def sample_time(self) -> float:
        """Interval of samples [s]."""
        return 1.0 / self.publish_rate

    @property
    def steps_per_sample(self) -> int:
        """Number of steps from one sample to the next."""
        return round(1.0 / (self.publish_rate * self.step))

    def description(self, machine: object) -> str:
        """Return the machine and its settings as a line for the log."""
        factor = self.real_time_factor
        files = [(name, getattr(self, name, '')) for name in ('file', 'scenario')]
        return ', '.join(
            (
                type(machine).__name__.strip('_'),
                *(f'{name} {value}' for name, value in files if value),
                f'step {getattr(machine, "step", self.step):g} s',
                f'{self.publish_rate:g} samples/s',
                f'real_time_factor {factor:g}' + ' (as fast as possible)' * (factor == 0.0),
                *['lockstep'] * self.lockstep,
                *[f'until {self.duration:g} s'] * bool(self.duration),
                *['paused: call ~/resume or ~/step'] * self.start_paused,
            )
        )

    @property
    def latched(self) -> bool:
        """Whether outputs are kept for late subscribers, because no sample may be missed."""
        return self.lockstep or self.real_time_factor == 0.0 or self.listeners > 0


@dataclasses.dataclass(frozen=True)
class DrawnParameters(SimulatorParameters, MachineParameters, DrawingParameters):
    """How the plant of a declared machine runs that is drawn."""


@dataclasses.dataclass(frozen=True)
class CycleParameters(SimulatorParameters):
    """How a node runs whose samples are the cycles of a controller."""

    step: float = quantity(
        'length of a simulation step; 0: a control cycle', 's', at_least=0.0, default=0.0
    )
    publish_rate: float = quantity(
        'samples per second of simulation; 0: one for each control cycle, the only allowed rate',
        'Hz',
        at_least=0.0,
        at_most=1e5,
        default=0.0,
    )

    def following(self, sample_time: float) -> Self:
        """Return them with step and rate of a control cycle [s]; InputError for other rates."""
        rate = 1.0 / sample_time
        if self.publish_rate and abs(self.publish_rate * sample_time - 1.0) > 1e-9:
            raise InputError(
                f'publish_rate = {self.publish_rate} Hz, allowed with the sample time'
                f' {sample_time} s of the controller: {rate:g} Hz, or 0'
            )
        return self.replace(step=self.step or sample_time, publish_rate=rate)


def _whole(value: float, what: str, at_least: int, at_most: int | None = None) -> None:
    """Raise InputError unless a value is a whole number within bounds."""
    whole = math.isfinite(value) and abs(value - round(value)) <= 1e-6 * max(1.0, value)
    if not whole or round(value) < at_least or (at_most is not None and round(value) > at_most):
        upper = '' if at_most is None else f' to {at_most}'
        allowed = f'whole numbers from {at_least}{upper or " on"}'
        raise InputError(f'{what} = {value:g}, allowed: {allowed}')
