"""FMUs for co-simulation of machines: valid, and equal to the library."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fmpy.validation import validate_fmu

from longreach_dynamics.errors import InputError
from longreach_excavator.motion import RATE
from longreach_excavator.scenario import Scenario
from longreach_excavator.spec import EXCAVATOR
from longreach_machine.machine import BY_SCENARIO
from longreach_tools import cli

STEP, DURATION = 0.01, 0.5


# In a process of its own: PythonFMU holds the interpreter as long as its library is loaded. When
# the process ends, it reads memory that Python has freed (NTNU-IHB/PythonFMU#229), which at times
# aborts a program that has its results already: os._exit leaves that out.
SCRIPT = """
import json, os, sys
import fmpy, numpy as np

file, step, start, names, rows, outputs = json.loads(sys.argv[1])
table = np.array([tuple(row) for row in rows], dtype=[(one, float) for one in ('time', *names)])
folder = fmpy.extract(file)
# There may be several instances in one process.
other = fmpy.simulation.instantiate_fmu(folder, fmpy.read_model_description(folder))
found = fmpy.simulate_fmu(folder, start_time=start, stop_time=rows[-1][0], step_size=step,
                          output_interval=step, input=table, output=outputs)
print(json.dumps([float(found[name][-1]) for name in outputs]), flush=True)
os._exit(0)
"""


def simulated(
    file: Path, step: float, names: list[str], rows: list[tuple[float, ...]], outputs: list[str]
) -> list[float]:
    """Return the last values of outputs; RuntimeError with stderr when the simulation fails."""
    given = json.dumps([str(file), step, rows[0][0], names, rows, outputs])
    done = subprocess.run([sys.executable, '-c', SCRIPT, given], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return [float(value) for value in json.loads(done.stdout.splitlines()[-1])]


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(
    ('name', 'scenario', 'spools', 'output', 'start'),
    [
        # The scenario, in which the load falls at 0 s, begins where the simulation does.
        ('boom', 'load_release', (0.3, 0.0, -0.2, 0.0), 'beam_1_joint', 1.5),
        ('excavator', 'settle', (0.3, 0.0, -0.2), 'boom_joint', 0.0),
        ('harvester', 'open_loop', (0.3, 0.2, -0.2), 'boom', 0.0),
    ],
)
def test_an_fmu_moves_as_the_machine(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    name: str,
    scenario: str,
    spools: tuple[float, ...],
    output: str,
    start: float,
) -> None:
    """Bit for bit, under constant spools."""
    file = tmp_path / f'{name}.fmu'
    assert cli.main([name, 'fmu', '--scenario', scenario, '--out', str(file)]) == 0
    assert 'its inputs command it; of the scenario it has the start' in capsys.readouterr().err
    assert validate_fmu(str(file)) == []
    spec: Any = getattr(import_module(f'longreach_{name}.spec'), name.upper())
    options = spec.options()
    parameters = spec.load(None, options)
    given = spec.load_scenario(spec.find_scenario(scenario), parameters, options)
    machine, inputs, command = spec.cosimulation(parameters, given, options)
    names = [one.name for one in inputs]
    rows = [(start, *spools), (start + DURATION, *spools)]
    found = simulated(file, STEP, names, rows, [f'{output}_position', f'{output}_velocity'])
    state = machine.initial_state()
    for k in range(round(DURATION / STEP)):
        state = machine.advance(state, command(spools), round(k * STEP, 12), STEP)
    sample = machine.joint_sample(state, command(spools))
    place = sample.names.index(output)
    assert found == [sample.positions[place], sample.velocities[place]]
    if name == 'harvester':
        # Its file would not be there where the FMU runs.
        assert cli.main([name, 'fmu', '--sensors', 'typical', '--out', str(file)]) == 2
        assert 'sensors = typical, allowed: none' in capsys.readouterr().err


def test_an_excavators_loose_cylinder_stays_loose() -> None:
    """Its force is 0 as in the run, whatever the spools; prescribed forces are refused."""
    options = EXCAVATOR.options()
    parameters = EXCAVATOR.load(None, options)
    given = Scenario(duration=DURATION, pose='dig', loose=('bucket',), soil=False)
    machine, _, command = EXCAVATOR.cosimulation(parameters, given, options)
    start = machine.initial_state()
    state = machine.advance(start, command((0.0, 0.0, 0.3)), 0.0, 0.2)
    run = machine.advance(start, BY_SCENARIO, 0.0, 0.2)
    np.testing.assert_array_equal(state.y[:RATE], run.y[:RATE])
    with pytest.raises(InputError, match='mode = thesis, allowed: hydraulic'):
        EXCAVATOR.cosimulation(parameters, given.replace(mode='thesis', loose=()), options)


def test_a_step_that_does_not_fit_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / 'boom.fmu'
    assert cli.main(['boom', 'fmu', '--out', str(file)]) == 0
    names = ['spool_cylinder_1']
    with pytest.raises(RuntimeError, match='fmi2DoStep'):
        simulated(file, 0.0125, names, [(0.0, 0.0), (1.0, 0.0)], ['beam_1_joint_position'])
