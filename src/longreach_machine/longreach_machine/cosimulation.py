"""
Machines as FMUs for co-simulation (FMI 2.0), made of their declarations by PythonFMU.

The FMU calls the library, with its events, friction and end stops: where it runs, Python must find
Longreach. Inputs are the machine's commands, outputs the positions, velocities and efforts of its
joints. This module is only imported by :func:`write_fmu` and by the FMU itself.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from pythonfmu import Fmi2Causality, Fmi2Slave, Real
from pythonfmu.builder import FmuBuilder
from pythonfmu.enums import Fmi2Initial

from longreach_dynamics.errors import InputError, check_distinct
from longreach_dynamics.parameters import from_mapping
from longreach_machine.linear import Signal
from longreach_machine.machine import JointSample
from longreach_machine.spec import MachineSpec

_FILE = 'machine.json'
_KINDS = ('position', 'velocity', 'effort')
# Of a class without anything of its own PythonFMU gives up a reference too many: a second instance
# in one process crashed.
_SCRIPT = """from longreach_machine.cosimulation import MachineSlave


class {name}(MachineSlave):
    def __init__(self, **given):
        super().__init__(**given)
"""
# A communication step is a whole number of integration steps, but for rounding.
_WHOLE = 1e-6


def write_fmu(
    file: Path, spec: MachineSpec[Any, Any, Any], parameters: Any, scenario: Any, options: Any
) -> None:
    """Write the FMU of a machine that begins as a scenario does; InputError for sensors."""
    if sensors := getattr(options, 'sensors', ''):
        raise InputError(f'sensors = {sensors}, allowed: none, as an FMU has no controllers')
    machine, signals, command = spec.cosimulation(parameters, scenario, options)
    names_of(signals, machine.joint_sample(machine.initial_state(), command([0.0] * len(signals))))
    given = {
        'machine': spec.name,
        'parameters': parameters.as_mapping(),
        'scenario': scenario.as_mapping(),
        'options': options.as_mapping(),
    }
    name = spec.name.capitalize()
    with tempfile.TemporaryDirectory() as directory:
        script = Path(directory) / f'{spec.name}_slave.py'
        script.write_text(_SCRIPT.format(name=name), encoding='utf-8')
        data = Path(directory) / _FILE
        data.write_text(json.dumps(given), encoding='utf-8')
        built = FmuBuilder.build_FMU(script, directory, [data], needsExecutionTool='true')
        file.write_bytes(Path(built).read_bytes())


def names_of(inputs: Sequence[Signal], sample: JointSample) -> list[str]:
    """Return names of inputs, then outputs, with _ for a dot; InputError for two that are one."""
    shown = [f'{joint}.{kind}' for joint in sample.names for kind in _KINDS]
    names = [name.replace('.', '_') for name in (*(signal.name for signal in inputs), *shown)]
    check_distinct('a signal of the FMU, where _ stands for a dot,', names)
    return names


class MachineSlave(Fmi2Slave):  # type: ignore[misc]
    """A machine in an FMU."""

    author = 'Longreach developers'
    description = 'machine simulated by Longreach'

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        data = json.loads((Path(self.resources) / _FILE).read_text(encoding='utf-8'))
        # Installed by pip and by colcon there are two: Python imports the first.
        entry, *_ = metadata.entry_points(group='longreach.machines', name=data['machine'])
        spec = entry.load()
        options = from_mapping(spec.options, data['options'])
        parameters = from_mapping(spec.parameters, data['parameters'])
        scenario = from_mapping(spec.scenarios, data['scenario'])
        self._machine, signals, self._command = spec.cosimulation(parameters, scenario, options)
        self._state = self._machine.initial_state()
        self._begin: float | None = None
        sample = self._machine.joint_sample(self._state, self._command([0.0] * len(signals)))
        names = names_of(signals, sample)
        self._inputs, self._outputs = names[: len(signals)], names[len(signals) :]
        for name in self._inputs:
            setattr(self, name, 0.0)
            self.register_variable(Real(name, causality=Fmi2Causality.input))
        self._show()
        for name in self._outputs:
            self.register_variable(
                Real(name, causality=Fmi2Causality.output, initial=Fmi2Initial.exact)
            )

    def _given(self) -> Any:
        """Return the command of the inputs."""
        return self._command([getattr(self, name) for name in self._inputs])

    def _show(self) -> None:
        """Write the outputs."""
        _, *values = self._machine.joint_sample(self._state, self._given())
        for name, value in zip(self._outputs, np.transpose(values).ravel(), strict=True):
            setattr(self, name, float(value))

    def do_step(self, current_time: float, step_size: float) -> bool:
        """Advance by a communication step, the scenario from where the simulation begins."""
        if self._begin is None:
            self._begin = current_time
        step = self._machine.step
        if step_size < 0.0 or abs(step_size / step - round(step_size / step)) > _WHOLE:
            raise InputError(f'step = {step_size} s, allowed: 0, or whole steps of {step} s')
        time = current_time - self._begin
        self._state = self._machine.advance(self._state, self._given(), time, step_size)
        self._show()
        return True
