"""
Many jobs in parallel, with progress, and with what is done when they are stopped.

The jobs run in processes of this computer, or on a Dask cluster. A process that is killed costs
the time of its jobs, which run again.
"""

from __future__ import annotations

import contextlib
import contextvars
import multiprocessing
import os
import re
import signal
import threading
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from typing import Any, TypeVar

from tqdm import tqdm

from longreach_dynamics.errors import InputError, LongreachError, unwrapped

Job = TypeVar('Job')
Outcome = TypeVar('Outcome')

# How often a job's process may be killed before the job is given up, and how long a scheduler may
# take to answer [s].
_MOST_KILLS = 3
_CONNECT = 10.0


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
    *,
    cluster: str | None = None,
    finished: Callable[[int, Outcome], None] | None = None,
    lost: Callable[[str], Outcome] | None = None,
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
    cluster : str, optional
        Instead of processes: address of a Dask scheduler, such as ``tcp://host:8786``, whose
        workers have the same Longreach, or ``local:4`` for a Dask cluster of four processes here.
    finished : callable, optional
        Called with the number of a job and its outcome when it has finished, in any order.
    lost : callable, optional
        Returns the outcome, from a message, of a job whose process was killed three times; by
        default that is an error.

    Returns
    -------
    list
        What the function returned, in the order of the jobs.

    Raises
    ------
    InputError
        For less than one process, and for a cluster that does not answer.
    LongreachError
        Without ``lost``, if processes are killed again and again.
    InterruptedSweep
        On Ctrl-C, with the outcomes of the finished jobs.
    """
    if processes is not None and processes < 1:
        raise InputError(f'processes = {processes}, allowed: at least 1')
    if processes is not None and cluster is not None:
        raise InputError('processes and cluster are both given; give one')
    processes = min(processes or os.cpu_count() or 1, max(1, len(jobs)))
    stream: Generator[tuple[int, Any]]
    if cluster is not None:
        stream = _on_cluster(function, jobs, cluster)
    elif processes == 1:
        stream = ((k, function(job)) for k, job in enumerate(jobs))
    else:
        stream = _in_processes(function, jobs, processes)
    # None for tqdm: only on a terminal.
    hidden = None if progress is None else not progress
    outcomes: list[Any] = [None] * len(jobs)
    try:
        # Closed at the end of the block: an interruption may come between two outcomes.
        with contextlib.closing(stream), tqdm(total=len(jobs), disable=hidden, unit='run') as bar:
            for k, outcome in stream:
                if isinstance(outcome, _Lost):
                    if lost is None:
                        raise LongreachError(outcome.message)
                    outcome = lost(outcome.message)
                outcomes[k] = outcome
                if finished is not None:
                    finished(k, outcome)
                bar.update()
    except (KeyboardInterrupt, SystemError) as error:
        if not isinstance(unwrapped(error), KeyboardInterrupt):
            raise
        raise InterruptedSweep(outcomes) from None
    return outcomes


class _Kept:
    """Processes, and clients of clusters, for several calls of :func:`run_jobs`."""

    def __init__(self) -> None:
        self.stack = contextlib.ExitStack()
        self.pool: ProcessPoolExecutor | None = None
        self.size = 0
        self.clients: dict[str, Any] = {}


_kept: contextvars.ContextVar[_Kept | None] = contextvars.ContextVar('_kept', default=None)


@contextlib.contextmanager
def keep_workers() -> Iterator[None]:
    """
    Keep processes, and the connection to a cluster, for all calls of ``run_jobs`` in this context.

    A new process needs seconds for its imports, which is long against jobs of a second.
    """
    kept = _Kept()
    token = _kept.set(kept)
    try:
        with kept.stack:
            yield
    finally:
        _kept.reset(token)
        if kept.pool is not None:
            kept.pool.shutdown(cancel_futures=True)


class _Lost:
    """Outcome of a job whose processes were killed."""

    def __init__(self) -> None:
        self.message = (
            f'its process was killed {_MOST_KILLS} times; is there enough memory for so many'
            ' processes?'
        )


# --- processes ------------------------------------------------------------------------------


def _in_processes(
    function: Callable[[Job], Any], jobs: Sequence[Job], processes: int
) -> Generator[tuple[int, Any]]:
    """
    Yield the number and the outcome of each job when it has finished.

    A pool ends when one of its processes is killed, and does not tell which job that process had.
    After some kills the jobs run one at a time, so that one that does not get through is known.
    """
    left = dict(enumerate(jobs))
    kills: Counter[int] = Counter()
    pools = 0
    while left:
        alone = pools >= _MOST_KILLS
        yield from _until_a_kill(function, left, 1 if alone else min(processes, len(left)))
        pools += 1
        if left and alone:
            k = next(iter(left))
            kills[k] += 1
            if kills[k] == _MOST_KILLS:
                del left[k]
                yield k, _Lost()


def _until_a_kill(
    function: Callable[[Job], Any], left: dict[int, Job], processes: int
) -> Generator[tuple[int, Any]]:
    """Run jobs, removing the finished ones, until all are done or a process is killed."""
    with _pool(processes) as pool:
        try:
            with _deaf_to_interrupts():
                futures = {pool.submit(function, job): k for k, job in left.items()}
            for future in as_completed(futures):
                if isinstance(future.exception(), BrokenProcessPool):
                    continue
                k = futures[future]
                del left[k]
                yield k, future.result()
        except BrokenProcessPool:
            # Killed before all jobs were handed over.
            return
        except BaseException:
            # On an interruption, do not wait for running jobs, but for the end of the processes: a
            # second Ctrl-C would interrupt the interpreter's own wait for them, at its exit.
            with _deaf_to_interrupts():
                for process in list((pool._processes or {}).values()):
                    process.terminate()
                pool.shutdown(cancel_futures=True)
            raise


@contextlib.contextmanager
def _pool(processes: int) -> Iterator[ProcessPoolExecutor]:
    """Provide a pool of processes: that of :func:`keep_workers` while it works, or a new one."""
    # Not forked: a fork of a process with threads, such as a node, may hang.
    context = multiprocessing.get_context('spawn')
    kept = _kept.get()
    if kept is None:
        with ProcessPoolExecutor(processes, context, _prepare_worker) as own:
            yield own
        return
    pool = kept.pool
    if pool is None or kept.size < processes:
        if pool is not None:
            pool.shutdown()
        pool, kept.size = ProcessPoolExecutor(processes, context, _prepare_worker), processes
    # Not kept unless all jobs ran: a pool ends with one of its processes.
    kept.pool = None
    try:
        yield pool
    except BaseException:
        pool.shutdown(cancel_futures=True)
        raise
    if pool._broken:
        pool.shutdown()
    else:
        kept.pool = pool


def _prepare_worker() -> None:
    """Give tqdm a lock that is no named semaphore, which a terminated process does not remove."""
    tqdm.set_lock(threading.RLock())


@contextlib.contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    """Block SIGINT in processes started in this context; only this process handles Ctrl-C."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


# --- Dask -----------------------------------------------------------------------------------


def _on_cluster(
    function: Callable[[Job], Any], jobs: Sequence[Job], cluster: str
) -> Generator[tuple[int, Any]]:
    """Yield the number and the outcome of each job when a Dask cluster has finished it."""
    try:
        import distributed
    except ImportError:
        raise InputError(
            'a cluster needs the package distributed (Dask); install it: pip install distributed'
        ) from None
    with contextlib.ExitStack() as stack:
        kept = _kept.get()
        if kept is None:
            client = _client(stack, distributed, cluster)
        else:
            if cluster not in kept.clients:
                kept.clients[cluster] = _client(kept.stack, distributed, cluster)
            client = kept.clients[cluster]
        # A later call may have other results: the function is not pure for Dask.
        futures = client.map(function, jobs, pure=False, retries=0)
        numbers = {future: k for k, future in enumerate(futures)}
        try:
            for future in distributed.as_completed(futures):
                error = future.exception()
                if isinstance(error, distributed.KilledWorker):
                    yield numbers[future], _Lost()
                elif isinstance(error, ImportError):
                    raise LongreachError(
                        f'a worker of {cluster} reports: {error}; install the same Longreach for'
                        ' all workers'
                    )
                else:
                    yield numbers[future], future.result()
                # The scheduler keeps a result for as long as somebody refers to it.
                future.release()
        finally:
            client.cancel(futures)


def _client(stack: contextlib.ExitStack, distributed: Any, cluster: str) -> Any:
    """Return a client of a cluster that exists, or of one that ends with ``stack``."""
    local = re.fullmatch(r'local:([1-9]\d{0,2})', cluster)
    if local is None and not re.fullmatch(r'(tcp|tls|ws|wss|ucx)://\S+', cluster):
        raise InputError(
            f'cluster = {cluster!r}, allowed: tcp://HOST:PORT of a Dask scheduler, or local:COUNT'
        )
    if local is not None:
        with _deaf_to_interrupts():
            address = stack.enter_context(
                distributed.LocalCluster(
                    int(local[1]), threads_per_worker=1, dashboard_address=None, protocol='tcp',
                    host='127.0.0.1', silence_logs='CRITICAL',
                    scheduler_kwargs={'allowed_failures': _MOST_KILLS - 1},
                )
            )  # fmt: skip
    else:
        address = cluster
    try:
        client = stack.enter_context(distributed.Client(address, timeout=_CONNECT))
    except (OSError, ValueError) as error:
        raise InputError(
            f'there is no Dask scheduler at {cluster} ({error}); start one with: dask scheduler'
        ) from error
    if not client.scheduler_info()['workers']:
        raise InputError(
            f'the Dask cluster {cluster} has no workers; start some: dask worker {cluster}'
        )
    return client
