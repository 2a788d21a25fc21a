"""Many jobs: order, progress, processes that are killed, clusters, interruptions."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import struct
import subprocess
import sys
import time
from multiprocessing.queues import SimpleQueue
from multiprocessing.synchronize import SemLock
from pathlib import Path

import pytest

from longreach_dynamics import parallel
from longreach_dynamics.errors import InputError, LongreachError
from longreach_dynamics.parallel import each_outcome, keep_workers, run_jobs


def square(number):
    return number * number


def killed_once(job):
    """Kill the own process at the first call for a file; the second finds it."""
    number, file = job
    if file is not None and not file.exists():
        file.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return number * number


def always_killed(number):
    if number == 2:
        # By now the worker of a cluster has the next job as well.
        time.sleep(0.3)
        os.kill(os.getpid(), signal.SIGKILL)
    return number * number


def refused(number):
    raise InputError(f'number = {number}')


def test_outcomes_come_in_the_order_of_the_jobs_with_progress_on_request(capsys):
    for processes in (1, 2):
        assert run_jobs(square, range(9), processes, True) == [k * k for k in range(9)]
        assert '9/9' in capsys.readouterr().err
    assert run_jobs(square, [], progress=False) == []
    assert run_jobs(square, [3], 1, progress=False) == [9]
    assert capsys.readouterr().err == ''
    with pytest.raises(InputError, match='processes = 0, allowed: at least 1'):
        run_jobs(square, [1], 0)


def locks_of_worker(_):
    return [type(lock).__name__ for lock in gc.get_objects() if isinstance(lock, SemLock)]


def test_workers_hold_no_semaphore_that_a_terminated_process_would_leave():
    # Those of the pool's queues are there, which this process removes; not that of tqdm.
    for names in run_jobs(locks_of_worker, range(2), 2):
        assert set(names) == {'Lock', 'BoundedSemaphore'}


@pytest.mark.parametrize('processes', [1, 2])
@pytest.mark.parametrize('wrapped', [False, True])
def test_interruption_keeps_what_is_done(monkeypatch, processes, wrapped):
    finished = 0

    class Bar(parallel.tqdm):
        def update(self, n=1):
            nonlocal finished
            finished += n
            if finished == 2:
                if wrapped:
                    raise SystemError from KeyboardInterrupt()
                raise KeyboardInterrupt

    monkeypatch.setattr(parallel, 'tqdm', Bar)
    done = {}
    with pytest.raises(KeyboardInterrupt):
        run_jobs(square, range(6), processes, finished=lambda k, found: done.update({k: found}))
    assert len(done) == 2
    assert all(found == k * k for k, found in done.items())


@pytest.mark.slow_after(1)
@pytest.mark.parametrize('where', [{'processes': 2}, {'cluster': 'local:2'}])
def test_a_killed_process_costs_time_alone(tmp_path: Path, where):
    jobs = [(k, tmp_path / 'killed' if k == 3 else None) for k in range(8)]
    seen = {}
    outcomes = run_jobs(
        killed_once, jobs, **where, finished=lambda k, outcome: seen.update({k: outcome})
    )
    assert outcomes == [k * k for k in range(8)]
    assert seen == dict(enumerate(outcomes))


def process_of(folder):
    """Return the own process once two processes have a job of this folder."""
    (folder / str(os.getpid())).touch()
    until = time.monotonic() + 60.0
    while len(list(folder.iterdir())) < 2 and time.monotonic() < until:
        time.sleep(0.01)
    return os.getpid()


def worker_of(_job):
    return os.getpid()


def waits(pipe):
    with pipe.open('w') as stream:
        print('begun', file=stream, flush=True)
        signal.pause()


def test_workers_end_with_a_parent_that_is_killed(tmp_path: Path):
    pipe = tmp_path / 'pipe'
    os.mkfifo(pipe)
    spawn = multiprocessing.get_context('spawn')
    process = spawn.Process(target=run_jobs, args=(waits, [pipe] * 2, 2, False))
    process.start()
    with pipe.open() as stream:
        assert [stream.readline() for _ in range(2)] == ['begun\n'] * 2
        process.kill()
        # The end of the file: nobody holds the other end.
        assert stream.read() == ''
    process.join()


def interrupts_within_a_result(number):
    """Write the length of a result and the first of its bytes; interrupt the parent."""
    if number == 0:
        (results,) = (one for one in gc.get_objects() if isinstance(one, SimpleQueue))
        os.write(results._writer.fileno(), struct.pack('!i', 1000) + b'begun')
        os.kill(os.getppid(), signal.SIGINT)
    signal.pause()


def is_interrupted():
    # Processes started in the background ignore it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    run_jobs(interrupts_within_a_result, range(2), 2, False)


def test_an_interruption_ends_also_within_a_result():
    process = multiprocessing.get_context('spawn').Process(target=is_interrupted)
    process.start()
    process.join(60.0)
    try:
        assert process.exitcode == 1
    finally:
        process.kill()
        process.join()


FIRST_PROCESS = """
import multiprocessing, signal
from longreach_dynamics import parallel
signal.signal(signal.SIGINT, signal.default_int_handler)
spawn = multiprocessing.get_context('spawn')
with parallel._deaf_to_interrupts():
    child = spawn.Process(target=signal.raise_signal, args=(signal.SIGINT,))
    child.start()
child.join()
raise SystemExit(child.exitcode)
"""


def test_an_interruption_does_not_reach_the_first_process():
    subprocess.run([sys.executable, '-c', FIRST_PROCESS], check=True, timeout=60)


def test_kept_processes_run_the_jobs_of_several_calls(tmp_path: Path):
    def processes(call):
        folder = tmp_path / call
        folder.mkdir()
        return {*run_jobs(process_of, [folder] * 4, 2, False)}

    with keep_workers():
        first = processes('first')
        assert processes('second') == first
        # A kill ends the processes; the next calls have new ones.
        jobs = [(k, tmp_path / 'killed' if k == 1 else None) for k in range(4)]
        assert run_jobs(killed_once, jobs, 2, False) == [0, 1, 4, 9]
        assert first.isdisjoint(processes('after a kill'))
    assert first.isdisjoint(processes('alone'))


def test_kept_connection_to_a_cluster_serves_several_calls():
    pytest.importorskip('distributed')
    with keep_workers():
        first = {*run_jobs(worker_of, range(4), cluster='local:1', progress=False)}
        assert {*run_jobs(worker_of, range(4), cluster='local:1', progress=False)} == first


@pytest.mark.slow_after(1)
@pytest.mark.parametrize('where', [{'processes': 2}, {'cluster': 'local:1'}])
def test_a_job_that_is_killed_again_and_again_is_given_up_and_the_others_are_not(where):
    # A scheduler blames a kill on all jobs of a worker: here the last one has three neighbours.
    distributed = pytest.importorskip('distributed')
    # As on a busy computer, a worker starts again later than a cluster would wait for it.
    with distributed.dask.config.set({'distributed.deploy.lost-worker-timeout': '1ms'}):
        first, *killed, last = run_jobs(always_killed, [0, 2, 2, 2, 3], **where, lost=str)
    assert (first, last) == (0, 9)
    assert all('killed 3 times' in one for one in killed)


def test_a_cluster_that_exists_is_used_and_an_error_when_it_has_lost_all_workers(monkeypatch):
    distributed = pytest.importorskip('distributed')
    with distributed.LocalCluster(
        1, threads_per_worker=1, dashboard_address=None, host='127.0.0.1'
    ) as cluster:
        address = cluster.scheduler_address
        for _ in range(2):
            assert run_jobs(square, [3, 4], cluster=address) == [9, 16]
        outcomes = each_outcome(square, range(10**9), 10**9, cluster=address)
        next(outcomes)
        monkeypatch.setattr(parallel, '_SILENCE', 0.2)
        cluster.scale(0)
        with pytest.raises(LongreachError, match=r'no workers for 0\.2 s'):
            list(outcomes)


@pytest.mark.slow_after(2)
@pytest.mark.parametrize('where', [{'processes': 2}, {'processes': 1}, {'cluster': 'local:1'}])
def test_errors_of_a_job_are_raised(where):
    with pytest.raises(InputError, match='number = 5'):
        run_jobs(refused, [5, 5], **where)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize('where', [{'processes': 2}, {'cluster': 'local:2'}])
def test_jobs_are_taken_as_they_are_needed_and_handed_over_in_groups(where):
    taken = done = 0

    def jobs():
        nonlocal taken
        for taken in range(1, 30_001):
            # No more ahead than the groups of all workers.
            assert taken <= done + 2 * 3 * 2000
            yield taken

    for k, outcome in each_outcome(square, jobs(), 30_000, **where):
        done += 1
        assert outcome == (k + 1) ** 2
    assert done == taken == 30_000


@pytest.mark.slow
def test_a_scheduler_that_ends_is_an_error(tmp_path: Path):
    distributed = pytest.importorskip('distributed')
    file = str(tmp_path / 'scheduler.json')
    command = [sys.executable, '-m', 'distributed.cli.dask_scheduler', '--no-dashboard']
    place = ['--host', '127.0.0.1', '--port', '0', '--scheduler-file', file]
    processes = [subprocess.Popen([*command, *place], stderr=subprocess.DEVNULL)]
    try:
        worker = [sys.executable, '-m', 'distributed.cli.dask_worker', '--no-dashboard']
        options = ['--scheduler-file', file, '--nthreads', '1', '--no-nanny']
        processes.append(subprocess.Popen([*worker, *options], stderr=subprocess.DEVNULL))
        with distributed.Client(scheduler_file=file) as client:
            client.wait_for_workers(1)
            address = client.scheduler.address
        with pytest.raises(LongreachError, match=r'the Dask scheduler tcp://.* has ended'):
            run_jobs(
                square, range(100_000), cluster=address, finished=lambda *_: processes[0].kill()
            )
    finally:
        for process in processes:
            process.kill()
            process.wait()


@pytest.mark.parametrize(
    ('words', 'message'),
    [
        ({'cluster': 'tcp://127.0.0.1:9'}, 'no Dask scheduler at tcp://127.0.0.1:9'),
        ({'cluster': 'local'}, "cluster = 'local', allowed: tcp://HOST:PORT"),
        ({'cluster': 'local:0'}, 'allowed: tcp://HOST:PORT'),
        ({'cluster': 'local:2', 'processes': 2}, 'processes and cluster given'),
    ],
)
def test_wrong_clusters_are_refused(words, message, monkeypatch):
    monkeypatch.setattr('longreach_dynamics.parallel._CONNECT', 0.5)
    with pytest.raises(InputError, match=message):
        run_jobs(square, [1], **words)
