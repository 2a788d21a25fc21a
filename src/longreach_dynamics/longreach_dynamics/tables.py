"""Tables of numbers over time in CSV files, with one clear error for each thing that is wrong."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from longreach_dynamics.errors import InputError

__all__ = ['Table', 'read_table']

# Beyond any calendar in seconds; rows nearer to each other than a nanosecond are no measurement.
_LATEST, _NEAREST = 1e12, 1e-9


class Table(dict[str, np.ndarray]):
    """Columns by name, each of shape (rows,), and the file that they come from."""

    def __init__(self, file: str | Path, columns: dict[str, np.ndarray]) -> None:
        super().__init__(columns)
        self.file = Path(file)

    def stack(self, names: Sequence[str]) -> np.ndarray:
        """
        Return columns side by side, shape (rows, names).

        Raises
        ------
        InputError
            For a column that is missing, with those that are there.
        """
        for name in names:
            if name not in self:
                raise InputError(
                    f'{self.file}: column {name} is missing, found: {", ".join(self)}; needed:'
                    f' {", ".join(names)}'
                )
        return np.stack([self[name] for name in names], axis=1)

    def has(self, names: Sequence[str]) -> bool:
        """Tell whether all these columns are there."""
        return all(name in self for name in names)


def read_table(file: str | Path, time: str | None = 'time') -> Table:
    """
    Read a CSV file with a head line of names and rows of numbers.

    Parameters
    ----------
    file : path
        Comma-separated, or separated by semicolons; lines that begin with # are left out.
    time : str, optional
        A column that must be there and rise from row to row; None for no such column.

    Raises
    ------
    InputError
        For a file that cannot be read, a name that stands twice, a row of another length, a cell
        that is no finite number, and a time that does not rise; with file and line.
    """
    path = Path(file)
    try:
        text = path.read_text(encoding='utf-8-sig')
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else 'not a text file'
        raise InputError(f'{path} cannot be read: {reason}') from error
    lines = [
        (number, line)
        for number, line in enumerate(text.splitlines(), 1)
        if line.strip() and not line.lstrip().startswith('#')
    ]
    if len(lines) < 2:
        raise InputError(
            f'{path}: {len(lines)} lines, allowed: one of names and others of numbers'
        )
    separator = ';' if ';' in lines[0][1] else ','
    try:
        head, *rows = csv.reader((line for _, line in lines), delimiter=separator)
    except csv.Error as error:
        raise InputError(f'{path} is no table: {error}') from error
    if len(rows) < len(lines) - 1:
        raise InputError(f'{path}: a quotation mark is not closed on its line')
    names = [name.strip() for name in head]
    for name in names:
        if not name or names.count(name) > 1:
            raise InputError(f'{path}: the column name {name!r} is empty or stands twice')
    values = np.empty((len(rows), len(names)))
    for k, ((number, _), row) in enumerate(zip(lines[1:], rows, strict=True)):
        if len(row) != len(names):
            raise InputError(
                f'{path}:{number}: {len(row)} values, allowed: {len(names)}, one for each name'
            )
        for i, cell in enumerate(row):
            values[k, i] = _number(cell, f'{path}:{number}: {names[i]}')
    table = Table(path, dict(zip(names, values.T.copy(), strict=True)))
    if time is not None:
        _check_time(table, time, [number for number, _ in lines[1:]])
    return table


def _number(cell: str, what: str) -> float:
    """Return a cell as a finite number; ``what`` is named in the error."""
    try:
        value = float(cell)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise InputError(f'{what} = {cell.strip()!r}, allowed: finite numbers')
    return value


def _check_time(table: Table, time: str, lines: list[int]) -> None:
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
