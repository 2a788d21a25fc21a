"""Tables of numbers over time in CSV files, with one clear error for each thing that is wrong."""

from __future__ import annotations

import contextlib
import csv
import itertools
import math
import re
from array import array
from collections.abc import Container, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from longreach_dynamics.errors import InputError, check_has
from longreach_dynamics.resources import open_text

# Beyond any calendar in seconds; rows nearer to each other than a nanosecond are no measurement.
_LATEST, _NEAREST = 1e12, 1e-9

_LONGEST_LINE = 1_000_000
# Cells without a number, where a table may have them.
_EMPTY = ('', 'nan', 'na', 'n/a')
_DECIMAL_COMMA = re.compile(r'[-+]?\d*,\d+([eE][-+]?\d+)?')


class Table(dict[str, np.ndarray]):
    """Columns by name, each of shape (rows,), and the file that they come from."""

    def __init__(self, file: str | Path, columns: dict[str, np.ndarray]) -> None:
        super().__init__(columns)
        self.file = Path(file)

    def stack(self, names: Sequence[str]) -> np.ndarray:
        """Return columns side by side, shape (rows, names); InputError for one that is missing."""
        check_has(str(self.file), names, self)
        return np.stack([self[name] for name in names], axis=1)

    def has(self, names: Sequence[str]) -> bool:
        """Return whether all these columns are there."""
        return all(name in self for name in names)


def read_table(
    file: str | Path,
    time: str | None = 'time',
    columns: Container[str] | None = None,
    gaps: bool = False,
) -> Table:
    """
    Read a CSV file with a head line of names and rows of numbers.

    Columns are separated by commas or semicolons; lines that begin with # are left out. The column
    ``time`` must be there and rise from row to row; None: there is none. Only ``columns`` are
    read, where they are there; the cells of others may contain anything. With ``gaps`` cells of
    columns other than the time may be empty or NaN; both are read as NaN. InputError, with file
    and line, for a file that cannot be read, a name that stands twice, a row of another length, a
    cell that is no finite number, and a time that does not rise.
    """
    path = Path(file)
    with open_text(path, 'utf-8-sig') as stream:
        names, values, lines = _read(path, stream, time, columns, gaps)
    read = np.frombuffer(values).reshape(-1, len(names)).T.copy()
    table = Table(path, dict(zip(names, read, strict=True)))
    if time is not None:
        _check_time(table, time, lines)
    return table


def _read(
    path: Path, stream: TextIO, time: str | None, wanted: Container[str] | None, gaps: bool
) -> tuple[list[str], array[float], array[int]]:
    """Return names, numbers row by row, and the line of each row; for arguments see read_table."""
    lines = array('Q')
    numbered = _lines_of_table(path, stream, lines)
    first = next(numbered, '')
    if not first:
        raise InputError(f'{path}: 0 lines, allowed: one of names and others of numbers')
    rows = csv.reader(itertools.chain([first], numbered), delimiter=';' if ';' in first else ',')
    values = array('d')
    try:
        names = [name.strip() for name in next(rows)]
        for name in names:
            if not name or names.count(name) > 1:
                raise InputError(f'{path}: the column name {name!r} is empty or stands twice')
        kept = [
            k for k, name in enumerate(names) if wanted is None or name == time or name in wanted
        ]
        if not kept:
            raise InputError(f'{path}: none of its columns is known, found: {", ".join(names)}')
        read = [names[k] for k in kept]
        open_to_gaps = [gaps and name != time for name in read]
        for row in rows:
            if rows.line_num != len(values) // len(kept) + 2:
                break
            where = f'{path}:{lines[-1]}'
            if len(row) != len(names):
                advice = '; decimal commas? Write decimal points' * (len(row) == 2 * len(names))
                raise InputError(
                    f'{where}: {len(row)} values, allowed: {len(names)}, one for each name{advice}'
                )
            values.extend(_numbers([row[k] for k in kept], read, open_to_gaps, where))
    except csv.Error as error:
        raise InputError(f'{path} is no table: {error}') from error
    if len(lines) != len(values) // len(kept) + 1:
        raise InputError(f'{path}: a quotation mark is not closed on its line')
    if len(lines) < 2:
        raise InputError(f'{path}: 1 lines, allowed: one of names and others of numbers')
    return read, values, lines[1:]


def _lines_of_table(path: Path, stream: TextIO, numbers: array[int]) -> Iterator[str]:
    """Yield the lines that are neither empty nor comments; their numbers are added to a list."""
    for number, line in enumerate(iter(lambda: stream.readline(_LONGEST_LINE), ''), 1):
        if len(line) == _LONGEST_LINE:
            raise InputError(
                f'{path}:{number}: {_LONGEST_LINE} characters or more, allowed: rows of numbers'
            )
        if line.strip() and not line.lstrip().startswith('#'):
            numbers.append(number)
            yield line


def _numbers(row: list[str], names: list[str], gaps: list[bool], where: str) -> list[float]:
    """Return cells as finite numbers, NaN where there may be gaps; ``where`` is for errors."""
    with contextlib.suppress(ValueError):
        numbers = list(map(float, row))
        if all(map(math.isfinite, numbers)) and _is_plain(''.join(row)):
            return numbers
    for k, (name, cell) in enumerate(zip(names, row, strict=True)):
        if gaps[k] and cell.strip().lower() in _EMPTY:
            row[k] = 'nan'
        elif not _is_finite(cell):
            text = cell.strip(' \t')
            advice = ''
            if _DECIMAL_COMMA.fullmatch(text):
                advice = f'; a decimal comma? Write {text.replace(",", ".")}'
            elif len(names) == 1 and len(text.split()) > 1:
                advice = '; separate columns by commas or semicolons'
            raise InputError(f'{where}: {name} = {text!r}, allowed: finite numbers{advice}')
    return list(map(float, row))


def _is_finite(cell: str) -> bool:
    """Return whether a cell is a finite number."""
    with contextlib.suppress(ValueError):
        return math.isfinite(float(cell)) and _is_plain(cell)
    return False


def _is_plain(text: str) -> bool:
    """Return whether other programs read a number that Python reads, unlike ``1_0``."""
    return text.isascii() and '_' not in text


def _check_time(table: Table, time: str, lines: Sequence[int]) -> None:
    """Raise InputError unless the times rise from row to row, by what clocks can tell."""
    times = table.stack([time])[:, 0]
    far = np.flatnonzero(np.abs(times) > _LATEST)
    if far.size:
        k = int(far[0])
        raise InputError(
            f'{table.file}:{lines[k]}: {time} = {times[k]:g} s, allowed: [{-_LATEST:g},'
            f' {_LATEST:g}] s'
        )
    wrong = np.flatnonzero(np.diff(times) < _NEAREST)
    if wrong.size:
        k = int(wrong[0]) + 1
        near = f' by {_NEAREST:g} s or more' if times[k] > times[k - 1] else ''
        raise InputError(
            f'{table.file}:{lines[k]}: {time} = {times[k]:.12g}, allowed: above'
            f' {times[k - 1]:.12g} of the row before{near}; sort the rows'
        )


def for_json(value: Any) -> Any:
    """Return data for JSON: arrays as lists, None in place of numbers that JSON does not know."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {name: for_json(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [for_json(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def numbers_of(name: str, values: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Return a copy of values as an array of finite numbers; raise InputError for others."""
    try:
        found = np.array(values, dtype=float, order='C')
    except (TypeError, ValueError):
        raise InputError(f'{name} = {values!r}, allowed: numbers of shape {shape}') from None
    if found.shape != shape:
        raise InputError(f'{name} has shape {found.shape}, allowed: {shape}')
    check_numbers(name, found, np.isfinite(found), 'finite numbers')
    return found


def check_numbers(name: str, values: np.ndarray, good: np.ndarray, allowed: str) -> None:
    """Raise InputError for the first number that is not good."""
    if not good.all():
        bad = np.argwhere(~good)[0]
        place = ''.join(f'[{index}]' for index in bad)
        raise InputError(f'{name}{place} = {values[tuple(bad)]:g}, allowed: {allowed}')
