"""
Many jobs in parallel, with progress, and with what is done when they are stopped.

The jobs run in processes of this computer, or on a Dask cluster. They are taken from their
iterable as workers need them, and handed over in groups that take a worker a fraction of a second,
so that a million of short ones cost little memory and time. A process that is killed costs the
time of its jobs, which run again.
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
import itertools
import logging
import multiprocessing
import os
import pickle
import re
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import resource_tracker
from typing import Any, TypeVar

from tqdm import tqdm

from longreach_dynamics.errors import InputError, LongreachError, check_one, unwrapped

Job = TypeVar('Job')
Outcome = TypeVar('Outcome')
# Jobs with their numbers, which a worker gets at once; what it returns: its time [s], outcomes.
Group = list[tuple[int, Any]]
Found = tuple[float, list[Any]]

# How often a job's process may be killed before the job is given up; how long a scheduler may take
# to answer, and a cluster be without workers, which a busy computer starts slowly [s].
_MOST_KILLS = 3
_CONNECT = 10.0
_SILENCE = 90.0
# Outcome of a job that was given up, and its message.
_LOST = object()
_KILLED = (
    f'its process was killed {_MOST_KILLS} times; is there enough memory for so many processes?'
)
# Time that a group of jobs should take [s], its largest size, and groups under way a worker.
_GROUP_TIME, _MOST_JOBS, _UNDER_WAY = 0.2, 2000, 3
# Small matrices are slower with several threads, and the cores have their processes.
_THREADS = ('OPENBLAS_NUM_THREADS', 'OMP_NUM_THREADS', 'MKL_NUM_THREADS')


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
    Call a function once for each job; return what it returned, in the order of the jobs.

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

    Raises
    ------
    InputError
        For less than one process, and for a cluster that does not answer.
    LongreachError
        Without ``lost``, if processes are killed again and again; if the scheduler ends.
    """
    outcomes: list[Any] = [None] * len(jobs)
    stream = each_outcome(
        function, jobs, len(jobs), processes, progress, cluster=cluster, lost=lost
    )
    # Closed at the end of the block: an interruption may come between two outcomes.
    with contextlib.closing(stream):
        for k, outcome in stream:
            outcomes[k] = outcome
            if finished is not None:
                finished(k, outcome)
    return outcomes


def each_outcome(
    function: Callable[[Job], Outcome],
    jobs: Iterable[Job],
    count: int,
    processes: int | None = None,
    progress: bool | None = None,
    *,
    cluster: str | None = None,
    lost: Callable[[str], Outcome] | None = None,
) -> Generator[tuple[int, Outcome]]:
    """Yield number and outcome of each of ``count`` jobs as it finishes; see :func:`run_jobs`."""
    if processes is not None and processes < 1:
        raise InputError(f'processes = {processes}, allowed: at least 1')
    check_one(0, processes=processes, cluster=cluster)
    processes = min(processes or os.cpu_count() or 1, max(1, count))
    stream: Generator[tuple[int, Any]]
    if cluster is not None:
        stream = _on_cluster(function, _Supply(jobs, count), cluster)
    elif processes == 1:
        stream = ((k, function(job)) for k, job in enumerate(jobs))
    else:
        stream = _in_processes(function, _Supply(jobs, count), processes)
    # None for tqdm: only on a terminal.
    hidden = None if progress is None else not progress
    try:
        with contextlib.closing(stream), tqdm(total=count, disable=hidden, unit='run') as bar:
            for k, outcome in stream:
                if outcome is _LOST:
                    if lost is None:
                        raise LongreachError(_KILLED)
                    outcome = lost(_KILLED)
                yield k, outcome
                bar.update()
    except SystemError as error:
        # Such as Ctrl-C during compiled code.
        raise unwrapped(error) from None


class _Supply:
    """Groups of jobs; jobs that are tried again come first, each by itself."""

    def __init__(self, jobs: Iterable[Any], count: int) -> None:
        self._jobs = iter(enumerate(jobs))
        self._left = count
        self._time, self._done = 0.0, 0
        self.again: Group = []

    def take(self, workers: int) -> Group:
        """Return the next group for one of so many workers; empty: there is none."""
        if self.again:
            return [self.again.pop(0)]
        size = 1
        if self._done:
            # Not so large at the end that some workers have nothing to do.
            shares = self._left // (2 * _UNDER_WAY * workers)
            size = max(1, min(int(_GROUP_TIME * self._done / self._time), shares, _MOST_JOBS))
        group = list(itertools.islice(self._jobs, size))
        self._left -= len(group)
        return group

    def learn(self, found: Found) -> list[Any]:
        """Take the time of a group into account, and return its outcomes."""
        duration, outcomes = found
        self._time, self._done = self._time + max(duration, 1e-9), self._done + len(outcomes)
        return outcomes


def _run_group(function: Callable[[Any], Any], group: Group) -> Found:
    """Run a group of jobs in a worker."""
    start = time.perf_counter()
    outcomes = [function(job) for _, job in group]
    return time.perf_counter() - start, outcomes


# What its parameters keep for themselves is kept from group to group.
_loads = functools.lru_cache(maxsize=1)(pickle.loads)


def _run_pickled(function: bytes, group: Group) -> Found:
    """Run a group of jobs in a worker that reads the function once for all groups."""
    return _run_group(_loads(function), group)


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


# --- processes ------------------------------------------------------------------------------


def _in_processes(
    function: Callable[[Any], Any], supply: _Supply, processes: int
) -> Generator[tuple[int, Any]]:
    """Yield the number and the outcome of each job when it has finished."""
    # A pool ends with a process that is killed, and does not tell which job that had: after some
    # kills the jobs run one at a time.
    kills: Counter[int] = Counter()
    pickled = pickle.dumps(function)
    while left := (yield from _until_a_kill(pickled, supply, processes)):
        kills.update(k for k, _ in left)
        for one in left:
            if kills[one[0]] < _MOST_KILLS - 1:
                supply.again.append(one)
                continue
            alone = _Supply((), 0)
            alone.again.append(one)
            if (yield from _until_a_kill(pickled, alone, 1)):
                yield one[0], _LOST


def _until_a_kill(
    function: bytes, supply: _Supply, processes: int
) -> Generator[tuple[int, Any], None, Group]:
    """Run jobs until all are done; when a process is killed, return those that are not."""
    with _pool(processes) as pool:
        running: dict[Future[Found], Group] = {}
        try:
            while True:
                while len(running) < _UNDER_WAY * processes and (group := supply.take(processes)):
                    running[_submit(pool, function, group)] = group
                if not running:
                    return []
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    if not isinstance(future.exception(), BrokenProcessPool):
                        outcomes = supply.learn(future.result())
                        numbers = [k for k, _ in running.pop(future)]
                        yield from zip(numbers, outcomes, strict=True)
                if pool._broken:
                    return [one for group in running.values() for one in group]
        except BaseException:
            # On an interruption, do not wait for running jobs, but for the end of the processes: a
            # second Ctrl-C would interrupt the interpreter's own wait for them, at its exit.
            with _deaf_to_interrupts():
                for process in list((pool._processes or {}).values()):
                    process.kill()
                # The pool's thread may be reading a result that a process wrote in part: with no
                # other writer, that ends once this one is closed.
                if (writer := getattr(pool._result_queue, '_writer', None)) is not None:
                    writer.close()
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
    """Give tqdm a lock that is no named semaphore, which would stay; end with the parent."""
    tqdm.set_lock(threading.RLock())
    parent = multiprocessing.parent_process()
    if parent is not None:

        def end() -> None:
            parent.join()
            os._exit(1)

        threading.Thread(target=end, daemon=True).start()
    for name in _THREADS:
        os.environ.setdefault(name, '1')


def _submit(pool: ProcessPoolExecutor, function: bytes, group: Group) -> Future[Found]:
    """Hand over a group."""
    try:
        with _deaf_to_interrupts():
            return pool.submit(_run_pickled, function, group)
    except BrokenProcessPool as error:
        refused: Future[Found] = Future()
        refused.set_exception(error)
        return refused


@contextlib.contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    """Block SIGINT in processes started in this context; only this process handles Ctrl-C."""
    # Started with the first process, it would end the block.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


# --- Dask -----------------------------------------------------------------------------------


def _on_cluster(
    function: Callable[[Any], Any], supply: _Supply, cluster: str
) -> Generator[tuple[int, Any]]:
    """Yield the number and the outcome of each job when a Dask cluster has finished it."""
    import distributed

    with contextlib.ExitStack() as stack:
        kept = _kept.get()
        if kept is None:
            client = _client(stack, distributed, cluster)
        else:
            if cluster not in kept.clients:
                kept.clients[cluster] = _client(kept.stack, distributed, cluster)
            client = kept.clients[cluster]
        try:
            yield from _on_client(client, function, supply, distributed)
        except (OSError, CancelledError) as error:
            raise LongreachError(
                f'the Dask scheduler {cluster} has ended ({error}); start another one'
            ) from error


def _on_client(
    client: Any, function: Callable[[Any], Any], supply: _Supply, distributed: Any
) -> Generator[tuple[int, Any]]:
    """Yield the outcomes of jobs; OSError or CancelledError when the scheduler ends."""
    # It blames a kill on all jobs that the worker had: one that it gives up runs alone once more.
    running: dict[Any, Group] = {}
    suspects: Group = []

    def submit(group: Group) -> None:
        # A later call may have other results: the function is not pure for Dask.
        running[client.submit(_run_group, function, group, pure=False, retries=0)] = group

    try:
        while True:
            workers = max(1, sum(client.nthreads().values()))
            while len(running) < _UNDER_WAY * workers and (group := supply.take(workers)):
                submit(group)
            if alone := not running:
                if not suspects:
                    return
                submit([suspects.pop(0)])
            for future, found in _finished(client, running, distributed):
                group = running.pop(future)
                if not isinstance(found, distributed.KilledWorker):
                    outcomes = supply.learn(_checked(found))
                    yield from zip((k for k, _ in group), outcomes, strict=True)
                elif alone:
                    yield group[0][0], _LOST
                elif len(group) == 1:
                    suspects += group
                else:
                    supply.again += group
                # The scheduler keeps a result for as long as somebody refers to it.
                future.release()
    finally:
        with contextlib.suppress(OSError, CancelledError):
            client.cancel(list(running))


def _finished(client: Any, running: dict[Any, Group], distributed: Any) -> list[tuple[Any, Any]]:
    """Return the futures that have finished, at least one, with their errors or results."""
    absent = False
    while True:
        try:
            done = distributed.wait([*running], _SILENCE, 'FIRST_COMPLETED').done
            # A result that is lost with its worker is waited for again.
            return [(one, one.exception(_SILENCE) or one.result(_SILENCE)) for one in done]
        except TimeoutError:
            # A killed worker starts again within seconds; without any, this would wait forever.
            before, absent = absent, not client.nthreads()
            if before and absent:
                raise LongreachError(
                    f'the Dask cluster has had no workers for {_SILENCE:g} s; start some (each'
                    ' needs memory for a run)'
                ) from None


def _checked(found: Any) -> Any:
    """Return a result; raise an error."""
    if isinstance(found, ImportError):
        raise LongreachError(
            f'a worker reports: {found}; install the same Longreach for all workers'
        )
    if isinstance(found, BaseException):
        raise found
    return found


def _client(stack: contextlib.ExitStack, distributed: Any, cluster: str) -> Any:
    """Return a client of a cluster that exists, or of one that ends with ``stack``."""
    local = re.fullmatch(r'local:([1-9]\d{0,2})', cluster)
    if local is None and not re.fullmatch(r'(tcp|tls|ws|wss|ucx)://\S+', cluster):
        raise InputError(
            f'cluster = {cluster!r}, allowed: tcp://HOST:PORT of a Dask scheduler, or local:COUNT'
        )
    # What it says of a connection that ends is in our own errors.
    logging.getLogger('distributed.client').setLevel(logging.CRITICAL)
    if local is not None:
        # A worker that is killed, and starts again slowly, is not given up.
        settings = {'distributed.deploy.lost-worker-timeout': '1h'}
        stack.enter_context(distributed.dask.config.set(settings))
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
