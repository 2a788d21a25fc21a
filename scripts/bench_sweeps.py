"""
Benchmark of many runs: the cost of handing over a run, and the efficiency of parallel processes.

What more cores would do follows from two measured numbers: the time of a run, and the time that
the process which hands runs over spends on each. The latter bounds runs per second, however many
cores there are.
"""

from __future__ import annotations

import os
import pickle
import tempfile
import time
from pathlib import Path

from bench_table import Row, Section

from longreach_crane.parameters import load_machinery
from longreach_crane.scenario import Scenario
from longreach_crane.simulation import simulate
from longreach_dynamics.parallel import each_outcome, keep_workers, run_jobs
from longreach_tools.sweeps import Measured, Results

_CORES = 1000
# Time of a short run [s].
_SHORT = 5e-4


def _short(_job: int) -> Measured:
    """Take the time of a short run."""
    until = time.perf_counter() + _SHORT
    while time.perf_counter() < until:
        pass
    return Measured((1.0,))


def _written(count: int, cores: int) -> float:
    """Return the time of a short run whose results are written [s]."""
    with tempfile.TemporaryDirectory() as folder:
        results = Results(Path(folder), ['a'], {'b': 'm'}, {}, lambda: 'key')
        started = time.perf_counter()
        with results.open():
            for k, one in each_outcome(_short, range(count), count, cores, False):
                results.add((float(k),), one)
        return (time.perf_counter() - started) / count


def _nothing(job: int) -> int:
    """Return the job."""
    return job


def _run(mass: float) -> tuple[float, ...]:
    """Simulate a crane, and return what a sweep keeps of it."""
    machinery = load_machinery()
    crane = machinery.with_value('crane.load_mass', mass)
    run = simulate(crane, Scenario(duration=60.0))
    return tuple(float(value) for value in run.table[-1])


def rows(quick: bool) -> list[Row]:
    """Return the rows of the section."""
    jobs = [100.0 + k for k in range(12 if quick else 60)]
    empty = list(range(200 if quick else 2000))
    found = []
    _run(jobs[0])
    started = time.perf_counter()
    alone = run_jobs(_run, jobs, 1, False)
    single = (time.perf_counter() - started) / len(jobs)
    size = len(pickle.dumps(alone[0]))
    found.append(Row('a run, in this process', (single,), note=f'result of {size} bytes'))
    cores = min(2, os.cpu_count() or 1)
    with keep_workers():
        # The first call starts the processes and loads the kernels in them.
        run_jobs(_run, jobs[: 2 * cores], cores, False)
        started = time.perf_counter()
        run_jobs(_run, jobs, cores, False)
        shared = (time.perf_counter() - started) / len(jobs)
        started = time.perf_counter()
        run_jobs(_nothing, empty, cores, False)
        over = (time.perf_counter() - started) / len(empty)
        written = _written(2000 if quick else 40_000, cores)
    efficiency = single / (cores * shared)
    note = f'efficiency {efficiency:.0%} on {cores} cores'
    found.append(Row(f'the same in {cores} processes, per run', (shared,), note=note))
    most = min(_CORES / single, 1.0 / over)
    note = (
        f'at most {1.0 / over:,.0f} runs/s: {_CORES} cores would do {most:,.0f} runs/s,'
        f' {most * single / _CORES:.0%} busy, {most * size / 1e6:.3g} MB/s of results'
    )
    found.append(Row('handing over a run', (over,), note=note))
    note = f'{_SHORT / (cores * written):.0%} of the processes do runs of {1e3 * _SHORT:g} ms'
    found.append(Row('a short run, results written', (written,), note=note))
    return found


SECTIONS = {'w': Section('many runs of a machine in parallel processes', rows)}
