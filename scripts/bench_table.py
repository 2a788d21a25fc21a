"""Common parts of the benchmarks: repeated measurement, and a table of times and ratios."""

from __future__ import annotations

import importlib
import math
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

Result = TypeVar('Result')


class Section(NamedTuple):
    """A group of rows that are compared with each other."""

    title: str
    rows: Callable[[bool], list[Row]]
    part: str = ''


class Row(NamedTuple):
    """One measurement."""

    name: str
    times: tuple[float, ...]  # of each repetition [s]
    error: float | None = None  # against the reference
    part: tuple[float, ...] = ()  # a part of ``times`` that is compared separately [s]
    note: str = ''


def measure(
    action: Callable[[], Result], repeats: int, warm: bool = True
) -> tuple[tuple[float, ...], Result]:
    """
    Return the wall-clock time of each of some runs of an action [s], and what the last returned.

    With ``warm`` it runs once before without measurement, which compiles kernels.
    """
    if warm:
        action()
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        result = action()
        times.append(time.perf_counter() - started)
    return tuple(times), result


def of_tests(package: str, module: str) -> Any:
    """Return a module of a package's tests."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / f'src/longreach_{package}/test'))
    return importlib.import_module(module)


def format_rows(rows: Sequence[Row], part: str = '') -> str:
    """Return a table with ratios to the first row; ``part`` is the heading of the rows' parts."""
    heads = ['', 'median', 'least .. most', 'runs', 'ratio']
    heads += [part, 'ratio'] * bool(part)
    with_errors = any(row.error is not None for row in rows)
    heads += ['error'] * with_errors + ['']
    table = [heads]
    for row in rows:
        cells = [
            row.name,
            _seconds(statistics.median(row.times)),
            f'{_seconds(min(row.times))} .. {_seconds(max(row.times))}',
            str(len(row.times)),
            _ratio(row.times, rows[0].times),
        ]
        if part:
            cells += [_seconds(statistics.median(row.part)), _ratio(row.part, rows[0].part)]
        if with_errors:
            cells.append('' if row.error is None else f'{row.error:.0e}')
        table.append([*cells, row.note])
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = []
    for cells in table:
        texts = [cells[0].ljust(widths[0])]
        texts += [cell.rjust(width) for cell, width in zip(cells[1:-1], widths[1:], strict=False)]
        lines.append('  '.join([*texts, cells[-1]]).rstrip())
    return '\n'.join(lines)


def machine_line() -> str:
    """Return a description of the machine: processor, cores, load, Python."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path('/proc/cpuinfo')
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith('model name'):
                model = line.partition(':')[2].strip()
                break
    cores = len(os.sched_getaffinity(0))
    load = os.getloadavg()[0]
    return f'{model}, {cores} cores, load {load:.1f}, Python {platform.python_version()}'


def _seconds(value: float) -> str:
    """Return a time with three digits; NaN stands for none."""
    if math.isnan(value):
        return '-'
    if value < 0.1:
        return f'{1e3 * value:.3g} ms'
    return f'{value:.3g} s' if value < 100.0 else f'{value:.0f} s'


def _ratio(times: Sequence[float], first: Sequence[float]) -> str:
    """Return the ratio of two medians."""
    ratio = statistics.median(times) / statistics.median(first)
    if math.isnan(ratio):
        return '-'
    return f'{ratio:.3g}' if ratio < 100.0 else f'{ratio:.0f}'
