"""Many jobs in parallel processes, with progress, and with what is done when they are stopped."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import Any, TypeVar

from tqdm import tqdm

from longreach_dynamics.errors import InputError, unwrapped

__all__ = ['InterruptedSweep', 'run_jobs']

Job = TypeVar('Job')
Outcome = TypeVar('Outcome')


class InterruptedSweep(KeyboardInterrupt):
    """
    Ctrl-C during :func:`run_jobs`.

    Attributes
    ----------
    outcomes : list
        Results as returned by ``run_jobs``, with None for unfinished jobs.
    """

    def __init__(self, outcomes: list[Any]) -> None:
        super().__init__()
        self.outcomes = outcomes


def run_jobs(
    function: Callable[[Job], Outcome],
    jobs: Sequence[Job],
    processes: int | None = None,
    progress: bool | None = None,
) -> list[Outcome]:
    """
    Call a function once for each job.

    It starts processes, so a script must call it below ``if __name__ == '__main__':``.

    Parameters
    ----------
    function : callable
        Defined at module level.
    jobs : sequence
        Its arguments.
    processes : int, optional
        Number of parallel processes; by default one for each core. 1: run in this process.
    progress : bool, optional
        Whether to show a progress bar on stderr; by default only on a terminal.

    Returns
    -------
    list
        What the function returned, in the order of the jobs.

    Raises
    ------
    InputError
        For less than one process.
    InterruptedSweep
        On Ctrl-C, with the outcomes of the finished jobs.
    """
    if processes is not None and processes < 1:
        raise InputError(f'processes = {processes}, allowed: at least 1')
    processes = min(processes or os.cpu_count() or 1, max(1, len(jobs)))
    # None for tqdm: only on a terminal.
    hidden = None if progress is None else not progress
    outcomes: list[Any] = [None] * len(jobs)
    try:
        with tqdm(total=len(jobs), disable=hidden, unit='run') as bar:
            for k, outcome in _outcomes(function, jobs, processes):
                outcomes[k] = outcome
                bar.update()
    except (KeyboardInterrupt, SystemError) as error:
        if not isinstance(unwrapped(error), KeyboardInterrupt):
            raise
        raise InterruptedSweep(outcomes) from None
    return outcomes


def _outcomes(
    function: Callable[[Job], Outcome], jobs: Sequence[Job], processes: int
) -> Iterator[tuple[int, Outcome]]:
    """Yield the number and the outcome of each job when it has finished."""
    if processes == 1:
        for k, job in enumerate(jobs):
            yield k, function(job)
        return
    # Not forked: a fork of a process with threads, such as a node, may hang.
    context = multiprocessing.get_context('spawn')
    with ProcessPoolExecutor(processes, context, _prepare_worker) as pool:
        with _deaf_to_interrupts():
            futures = {pool.submit(function, job): k for k, job in enumerate(jobs)}
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
