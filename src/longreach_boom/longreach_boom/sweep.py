"""Many runs of booms in parallel processes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar, overload

import numpy as np

from longreach_boom.machine import STEP
from longreach_boom.parameters import BoomParameters
from longreach_boom.results import BoomRun, columns_of
from longreach_boom.scenario import Scenario
from longreach_boom.simulation import simulate
from longreach_dynamics.errors import InputError, LongreachError
from longreach_dynamics.parallel import run_jobs

__all__ = ['simulate_many']

Outcome = TypeVar('Outcome')
_Job = tuple[BoomParameters, Scenario, float, Callable[[BoomRun], object] | None]


@overload
def simulate_many(
    parameters: Sequence[BoomParameters],
    scenario: Scenario | Sequence[Scenario],
    processes: int | None = ...,
    progress: bool | None = ...,
    step: float = ...,
) -> list[BoomRun]: ...


@overload
def simulate_many(
    parameters: Sequence[BoomParameters],
    scenario: Scenario | Sequence[Scenario],
    processes: int | None = ...,
    progress: bool | None = ...,
    step: float = ...,
    *,
    measure: Callable[[BoomRun], Outcome],
) -> list[Outcome]: ...


def simulate_many(
    parameters: Sequence[BoomParameters],
    scenario: Scenario | Sequence[Scenario],
    processes: int | None = None,
    progress: bool | None = None,
    step: float = STEP,
    *,
    measure: Callable[[BoomRun], object] | None = None,
) -> list[Any]:
    """
    Simulate many booms.

    Other parameters need no recompilation. Processes, progress and interruption are those of
    :func:`longreach_dynamics.parallel.run_jobs`.

    Parameters
    ----------
    parameters : sequence of BoomParameters
    scenario : Scenario or sequence of Scenario
        One scenario for all booms, or one for each.
    processes : int, optional
        Number of parallel processes; by default one for each core. 1: run in this process.
    progress : bool, optional
        Whether to show a progress bar on stderr; by default only on a terminal.
    step : float
        Length of a step [s]; AUTOMATIC: one for each boom, see ``simulate``.
    measure : callable, optional
        Function of a BoomRun whose result is returned instead of the run; it must be defined at
        module level. By default whole runs are returned, several megabytes each.

    Returns
    -------
    list
        Runs, or results of ``measure``, in the order of ``parameters``. A failed run has the rows
        before the failure, or none, and a message.

    Raises
    ------
    InterruptedSweep
        On Ctrl-C, with the outcomes of the finished runs.
    """
    scenarios = [scenario] * len(parameters) if isinstance(scenario, Scenario) else list(scenario)
    if len(scenarios) != len(parameters):
        raise InputError(
            f'scenario has {len(scenarios)} entries, allowed: one, or {len(parameters)}, one for'
            ' each boom'
        )
    jobs = [(p, s, step, measure) for p, s in zip(parameters, scenarios, strict=True)]
    return run_jobs(_run, jobs, processes, progress)


def _run(job: _Job) -> object:
    """Simulate one boom and return the run, or the result of ``measure``."""
    parameters, scenario, step, measure = job
    try:
        run = simulate(parameters, scenario, step)
    except LongreachError as error:
        # Failed before the first step: a run without rows.
        columns, n = columns_of(parameters), parameters.size * (1 + parameters.ritz.functions)
        states = np.empty((0, 2 * n + 3 * parameters.size))
        run = BoomRun(parameters, columns, np.empty((0, len(columns))), states, message=str(error))
    return run if measure is None else measure(run)
