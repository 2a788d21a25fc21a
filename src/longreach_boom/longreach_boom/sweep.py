"""Many runs in parallel processes."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
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
        Results as returned by ``simulate_many``, with None for unfinished runs.
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

    Other parameters need no recompilation. The function starts processes, so a script must call it
    below ``if __name__ == '__main__':``.

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
    if processes is not None and processes < 1:
        raise InputError(f'processes = {processes}, allowed: at least 1')
    jobs = [(p, s, step, measure) for p, s in zip(parameters, scenarios, strict=True)]
    processes = min(processes or os.cpu_count() or 1, max(1, len(jobs)))
    # None for tqdm: only on a terminal.
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
    """Yield the number and the outcome of each job when it has finished."""
    if processes == 1:
        for k, job in enumerate(jobs):
            yield k, _run(job)
        return
    # Not forked: a fork of a process with threads, such as a node, may hang.
    context = multiprocessing.get_context('spawn')
    with ProcessPoolExecutor(processes, context, _prepare_worker) as pool:
        with _deaf_to_interrupts():
            futures = {pool.submit(_run, job): k for k, job in enumerate(jobs)}
        try:
            for future in as_completed(futures):
                yield futures[future], future.result()
        except BaseException:
            # On an interruption, do not wait for running jobs, but for the end of the processes: a
            # second Ctrl-C would interrupt the interpreter's own wait for them, at its exit.
            with _deaf_to_interrupts():
                for process in list((pool._processes or {}).values()):
                    process.terminate()
                pool.shutdown(cancel_futures=True)
            raise


def _prepare_worker() -> None:
    """
    Give tqdm a lock without a semaphore, for the progress bars of the runs in this process.

    Its own lock is a named semaphore, which a process that is terminated does not remove.
    """
    tqdm.set_lock(threading.RLock())


@contextlib.contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    """Block SIGINT in processes started in this context; only this process handles Ctrl-C."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


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
