"""
Results as people and programs want them: tables, JSON, CSV files and pictures.

A file appears under its name only when it is complete.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from longreach_dynamics.errors import InputError

__all__ = ['add_format', 'figure', 'print_result', 'table', 'write_csv', 'writing']


def add_format(parser: argparse.ArgumentParser) -> None:
    """Add ``--format table|json`` to a parser."""
    parser.add_argument(
        '--format',
        choices=('table', 'json'),
        default='table',
        help='table for people, json for programs (default: table)',
    )


def print_result(result: Any, text: str, form: str) -> None:
    """
    Print a result on stdout.

    Parameters
    ----------
    result : object
        What JSON can hold; no NaN.
    text : str
        The same for people.
    form : 'table' or 'json'
    """
    print(json.dumps(result, allow_nan=False) if form == 'json' else text)


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return rows under a head as aligned columns; numbers with six significant digits."""
    cells = [list(head)]
    for row in rows:
        cells.append([f'{cell:.6g}' if isinstance(cell, float) else str(cell) for cell in row])
    widths = [max(len(row[i]) for row in cells) for i in range(len(head))]
    lines = [
        '  '.join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        for row in cells
    ]
    return '\n'.join(line.rstrip() for line in lines)


@contextlib.contextmanager
def writing(file: str | Path) -> Iterator[Path]:
    """
    Give a temporary path that becomes ``file`` when the block ends well, and goes otherwise.

    Raises
    ------
    InputError
        When the file cannot be written there.
    """
    target = Path(file)
    if target.is_dir():
        raise InputError(f'{target} is a directory; name a file')
    try:
        handle, name = tempfile.mkstemp(dir=target.parent, prefix='.', suffix=target.suffix)
    except OSError as error:
        raise InputError(
            f'{target} cannot be written: {error.strerror}; name a file in a directory that'
            ' exists and is writable'
        ) from error
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        # mkstemp makes files that only their owner reads; a result is as open as any other file.
        mask = os.umask(0)
        os.umask(mask)
        temporary.chmod(0o666 & ~mask)
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def write_csv(file: str | Path, columns: Sequence[str], values: np.ndarray) -> None:
    """
    Write an array (rows, columns) with a head line; every number to the last bit.

    Whole numbers, such as flags, are written without a fraction.
    """
    with writing(file) as path, path.open('w', encoding='utf-8') as stream:
        stream.write(','.join(columns) + '\n')
        for row in values.tolist():
            stream.write(','.join(map(_number, row)) + '\n')


def _number(value: float) -> str:
    """Return a number as a text from which the same number is read; whole ones without a point."""
    text = repr(float(value))
    return text.removesuffix('.0') if math.isfinite(value) else text


@contextlib.contextmanager
def figure(file: str | Path, size: tuple[float, float], rows: int = 1) -> Iterator[Any]:
    """
    Give the axes of a new figure, shape (rows,), that is saved when the block ends.

    Parameters
    ----------
    file : path
        Its ending decides the format: png, pdf, svg.
    size : tuple of float
        Width and height [inch].
    rows : int
        Axes one below the other, with one time axis.
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    # No pyplot: no window system, no global state.
    canvas = Figure(figsize=size, layout='constrained')
    formats = canvas.canvas.get_supported_filetypes()
    ending = Path(file).suffix.lstrip('.').lower()
    if ending not in formats:
        raise InputError(
            f'{file} has the ending {ending!r}, allowed: {", ".join(sorted(formats))}'
        )
    axes = canvas.subplots(rows, 1, sharex=True, squeeze=False)[:, 0]
    for axis in axes:
        axis.grid(visible=True, color='0.9')
        axis.set_axisbelow(True)
        axis.spines[['top', 'right']].set_visible(False)
    yield axes
    # The same data give the same file, so that a picture under version control changes only
    # with what it shows.
    metadata = {'Date': None} if ending == 'svg' else None
    with writing(file) as path, rc_context({'svg.hashsalt': 'longreach'}):
        canvas.savefig(path, dpi=130, format=ending, metadata=metadata)
        if ending == 'svg':
            _number_clip_paths(path)


def _number_clip_paths(file: Path) -> None:
    """Give the clip paths of an SVG names by their order; matplotlib takes memory addresses."""
    text = file.read_text(encoding='utf-8')
    for number, name in enumerate(dict.fromkeys(re.findall(r'id="(p[0-9a-f]{10})"', text))):
        text = text.replace(name, f'clip{number}')
    file.write_text(text, encoding='utf-8')
