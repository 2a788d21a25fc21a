"""Files of what a data logger would record of a simulated boom."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from longreach_boom.measured_runs import measured, truth_of
from longreach_boom.parameters import BoomParameters
from longreach_boom.scenario import Scenario
from longreach_boom.sensors import SensorParameters
from longreach_boom.simulation import simulate
from longreach_dynamics.errors import LongreachError
from longreach_tools.output import write_csv


def write_readings(
    file: Path,
    boom: BoomParameters,
    scenario: Scenario,
    sensors: SensorParameters,
    seed: int = 0,
    rate: float = 20.0,
) -> None:
    """
    Simulate a scenario, and write what a data logger would record of its sensors.

    Parameters
    ----------
    file : path
        CSV: ``time`` [s] and the signals of identification, see docs/identification.md.
    boom : BoomParameters
    scenario : Scenario
    sensors : SensorParameters
    seed : int
        Of the noise.
    rate : float
        Rows per second [Hz]; each has the latest readings.

    Raises
    ------
    LongreachError
        When the run fails, or the file cannot be written.
    """
    run = simulate(boom, scenario, progress=True)
    if run.message:
        raise LongreachError(run.message)
    shown = measured(truth_of(run, scenario, file.stem), sensors, seed=seed)
    times = np.arange(0.0, scenario.duration + 0.5 / rate, 1.0 / rate)
    columns = {'time': times}
    for name, signal in shown.signals.items():
        # The latest reading at each row.
        latest = np.searchsorted(signal.times, times + 1e-9, side='right') - 1
        columns[name] = signal.values[np.maximum(latest, 0)]
    write_csv(file, list(columns), np.stack(list(columns.values()), axis=1))
