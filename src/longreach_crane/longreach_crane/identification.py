"""
What the crane offers to identification: a run by the recorded commands, without the controller.

Car and cable start at rest. Forces on the load that nobody measured are not in it; compare only
the time before them (``duration``).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from longreach_crane.machine import Command, Crane
from longreach_crane.model import ANGLE, CAR_POSITION, swing_frequency
from longreach_crane.parameters import Machinery, load_machinery
from longreach_crane.scenario import InitialState, Scenario
from longreach_dynamics.errors import InputError, check_has
from longreach_identification.machine import (
    FreeParameter,
    Identifiable,
    MeasuredSignal,
    Recording,
    interpolated,
    longest_jump,
    prolonged,
)
from longreach_machine.machine import closed_loop
from longreach_machine.runs import Source

_FREE = (
    FreeParameter('car_mass', 'masses', 'kg', 1e-2, 1e6, 'm_c'),
    FreeParameter('load_mass', 'masses', 'kg', 1e-2, 1e6, 'm_l'),
    FreeParameter('cable_length', 'geometry', 'm', 0.1, 1e3, 'r'),
    FreeParameter('car_friction', 'friction', 'kg/s', 0.0, 1e5, 'd_c with the brake open'),
    FreeParameter('load_friction', 'friction', 'kg/s', 0.0, 1e4, 'd_l'),
    FreeParameter('motor_rate', 'motor', '1/s', 0.1, 1e3, 'inverse time constant of the motor'),
)
# Tolerances of the integration, far below the resolution of sensors.
_RELATIVE, _ABSOLUTE = 1e-8, 1e-9


class CommandedRun(NamedTuple):
    """A run of the crane by recorded commands."""

    start: float  # of the first command [s]
    end: float  # [s]
    position: float  # of the car at the start [m]
    forces: np.ndarray  # (cycles,) desired motor force in each control cycle [N]
    brakes: np.ndarray  # (cycles,) of bool
    doubt: str = ''  # why standard errors do not hold


class CraneIdentification(Identifiable):
    """The crane as a :class:`longreach_identification.machine.Identifiable`."""

    name = 'crane'
    load = staticmethod(load_machinery)
    compared = ('car_position', 'angle')
    free = _FREE
    places = MappingProxyType({free.name: f'crane.{free.name}' for free in _FREE})

    def signals(self, machine: Machinery) -> tuple[MeasuredSignal, ...]:  # noqa: ARG002
        """Return the signals of a crane; ``command`` and ``brake`` are its inputs."""
        car = Source('joint_states', 'position', 'car_joint')
        return (
            MeasuredSignal('command', 'N', (Source('command', 'force'),)),
            MeasuredSignal('brake', '1', (Source('command', 'brake'),)),
            MeasuredSignal('car_position', 'm', (Source('sensors', 'car_position'), car)),
            MeasuredSignal('angle', 'rad', (Source('joint_states', 'position', 'cable_joint'),)),
        )  # fmt: skip

    def experiment(self, machine: Machinery, recording: Recording) -> CommandedRun:
        """Return the commands of a recording on control cycles; InputError without them."""
        check_has(recording.name, ('command', 'car_position'), recording.signals)
        command = recording.signals['command']
        T = machine.controller.sample_time
        start, end = float(command.times[0]), float(command.times[-1])
        cycles = round((end - start) / T) + 1
        at = start + T * np.arange(cycles)

        def held(name: str) -> np.ndarray:
            signal = recording.signals[name]
            # A command acts until the next.
            rows = np.searchsorted(signal.times, at + 1e-6 * T, side='right') - 1
            return np.asarray(signal.values[np.maximum(rows, 0)])

        forces = held('command')
        if not np.isfinite(forces).all():
            raise InputError(f'{recording.name} has commands that are not finite')
        brakes = held('brake') > 0.5 if 'brake' in recording.signals else np.zeros(cycles, bool)
        car = recording.signals['car_position']
        first = car.values[(car.times <= start + T) & np.isfinite(car.values)]
        if not first.size:
            raise InputError(f'{recording.name} has no car_position at the first command')
        inputs = [recording.signals[n] for n in ('command', 'brake') if n in recording.signals]
        apart, doubt = longest_jump(inputs), ''
        if apart > 1.5 * T:
            doubt = (
                f'commands of {recording.name} change between rows that are {apart:.2g} s apart,'
                f' where control cycles have {T:g} s: those between are not known, and errors can'
                ' be several times larger; record every command'
            )
        return CommandedRun(start, end, float(first[-1]), forces, brakes, doubt)

    def predict(
        self, machine: Machinery, experiment: CommandedRun, times: Mapping[str, np.ndarray]
    ) -> dict[str, np.ndarray]:
        """Return ``car_position`` and ``angle`` at given times."""
        T, given = machine.controller.sample_time, len(experiment.forces)
        cycles = round(prolonged(given * T, experiment.start, times) / T)
        scenario = Scenario(
            duration=cycles * T, initial_state=InitialState(car_position=experiment.position)
        )
        crane = Crane(machine.crane, scenario, 'nonlinear', 'viscous', _RELATIVE, _ABSOLUTE)
        inputs = zip(experiment.forces.tolist(), experiment.brakes.tolist(), strict=True)
        commands = [Command(*one) for one in inputs]
        # The last one acts until the end.
        commands += [commands[-1]] * (cycles + 1 - given)
        loop = closed_loop(crane, lambda _, k, __: (None, commands[k]), cycles, T)
        states = np.array([cycle.state.x for cycle in loop])
        rows = experiment.start + T * np.arange(cycles + 1)
        columns = {'car_position': states[:, CAR_POSITION], 'angle': states[:, ANGLE]}
        return interpolated(times, rows, columns)

    def derived(self, machine: Machinery, experiment: CommandedRun) -> dict[str, float]:  # noqa: ARG002
        """Return the frequency of the swing with the car free [Hz]."""
        return {'swing_frequency': swing_frequency(machine.crane) / (2.0 * math.pi)}


CRANE = CraneIdentification()
