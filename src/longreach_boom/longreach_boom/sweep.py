"""Many runs at once, over processes."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import Any, TypeVar, overload

import numpy as np
from tqdm import tqdm

from longreach_boom.machine import STEP
from longreach_boom.parameters import BoomParameters
from longreach_boom.results import BoomRun, columns_of
from longreach_boom.scenario import Scenario
from longreach_boom.simulation import simulate
from longreach_dynamics.errors import InputError, LongreachError, unwrapped

__all__ = ['InterruptedSweep', 'simulate_many']

Outcome = TypeVar('Outcome')
_Job = tuple[BoomParameters, Scenario, float, Callable[[BoomRun], object] | None]


class InterruptedSweep(KeyboardInterrupt):
    """
    Ctrl-C during :func:`simulate_many`.

    Attributes
    ----------
    outcomes : list
        What ``simulate_many`` would have returned, with None for runs that are not done.
    """

    def __init__(self, outcomes: list[Any]) -> None:
        super().__init__()
        self.outcomes = outcomes


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

    Nothing is compiled anew for other parameters, so a sweep costs what its runs cost. Processes
    are started, so a script calls this below ``if __name__ == '__main__':``.

    Parameters
    ----------
    parameters : sequence of BoomParameters
    scenario : Scenario or sequence of them
        One for all, or one for each boom.
    processes : int, optional
        At a time; by default one for each core. 1 stays in this process.
    progress : bool, optional
        Show a bar on stderr; by default if that is a terminal.
    step : float
        Length of a step [s]; AUTOMATIC: one for each boom, see ``simulate``.
    measure : callable, optional
        What to keep of each BoomRun, a function of a module; by default all of it, which is some
        megabytes a run.

    Returns
    -------
    list
        Of BoomRun, or of what ``measure`` returns, in the order of ``parameters``. A run that
        failed has the rows up to there, or none, and a message.

    Raises
    ------
    InterruptedSweep
        On Ctrl-C; it has the outcomes of runs that are done.
    """
    scenarios = [scenario] * len(parameters) if isinstance(scenario, Scenario) else list(scenario)
    if len(scenarios) != len(parameters):
        raise InputError(
            f'scenario has {len(scenarios)} entries, allowed: one, or {len(parameters)}, one for'
            ' each boom'
        )
    if processes is not None and processes < 1:
        raise InputError(f'processes = {processes}, allowed: at least 1')
    jobs = [(p, s, step, measure) for p, s in zip(parameters, scenarios, strict=True)]
    processes = min(processes or os.cpu_count() or 1, max(1, len(jobs)))
    # tqdm's None means: only on a terminal.
    hidden = None if progress is None else not progress
    outcomes: list[Any] = [None] * len(jobs)
    try:
        with tqdm(total=len(jobs), disable=hidden, unit='run') as bar:
            for k, outcome in _outcomes(jobs, processes):
                outcomes[k] = outcome
                bar.update()
    except (KeyboardInterrupt, SystemError) as error:
        if not isinstance(unwrapped(error), KeyboardInterrupt):
            raise
        raise InterruptedSweep(outcomes) from None
    return outcomes


def _outcomes(jobs: Sequence[_Job], processes: int) -> Iterator[tuple[int, object]]:
    """Yield the number and the outcome of each job as soon as it is done."""
    if processes == 1:
        for k, job in enumerate(jobs):
            yield k, _run(job)
        return
    # Not forked: a copy of a process with threads, such as a node's, may hang.
    context = multiprocessing.get_context('spawn')
    with ProcessPoolExecutor(processes, mp_context=context) as pool:
        with _deaf_to_interrupts():
            futures = {pool.submit(_run, job): k for k, job in enumerate(jobs)}
        try:
            for future in as_completed(futures):
                yield futures[future], future.result()
        except BaseException:
            # Whoever interrupts does not want to wait for the runs that have begun.
            for process in list((pool._processes or {}).values()):
                process.terminate()
            pool.shutdown(wait=False, cancel_futures=True)
            raise


@contextlib.contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    """Let processes that are started here never hear Ctrl-C: this one hears it for them."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _run(job: _Job) -> object:
    """Simulate one boom, and return what is wanted of it."""
    parameters, scenario, step, measure = job
    try:
        run = simulate(parameters, scenario, step)
    except LongreachError as error:
        # It has not even begun.
        columns, n = columns_of(parameters), parameters.size * (1 + parameters.ritz.functions)
        states = np.empty((0, 2 * n + 3 * parameters.size))
        run = BoomRun(parameters, columns, np.empty((0, len(columns))), states, message=str(error))
    return run if measure is None else measure(run)
