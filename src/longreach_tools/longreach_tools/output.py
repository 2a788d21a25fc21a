"""
Output of results: tables, JSON, CSV files and figures.

A file gets its name only when it is complete. Pipes and devices are written to directly.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import errno
import fcntl
import json
import math
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from longreach_dynamics.errors import InputError, LongreachError
from longreach_tools.arguments import add_common

# Extensions of figures; other formats of matplotlib need LaTeX or are not images.
PICTURES = ('eps', 'jpeg', 'jpg', 'pdf', 'png', 'svg', 'tif', 'webp')

# Errors that can only be caused by writing.
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def add_format(parser: argparse.ArgumentParser) -> None:
    """Add ``--format table|json`` to a parser."""
    add_common(parser, '--format', 'table')


def print_result(result: Any, text: str, form: str) -> None:
    """Print a result on stdout: ``table`` prints ``text``, ``json`` the result, NaN as null."""
    if form == 'json':
        # Not at the top, as it loads numba.
        from longreach_dynamics.tables import for_json

        text = json.dumps(for_json(result))
    print(text)


def report_study(
    arguments: argparse.Namespace,
    result: Any,
    text: str,
    columns: Sequence[str] = (),
    rows: Any = (),
    draw: Callable[[Path], None] | None = None,
) -> None:
    """Write the ``--csv`` and ``--plot`` of a study that were asked for, and print its result."""
    if getattr(arguments, 'csv', None) is not None:
        write_csv(arguments.csv, columns, np.asarray(rows))
    if draw is not None and arguments.plot is not None:
        draw(arguments.plot)
    print_result(result, text, arguments.format)


def table(head: Sequence[str], rows: Iterable[Sequence[object]], left: int = 0) -> str:
    """
    Return rows with a header as aligned columns; numbers with six significant digits.

    The first ``left`` columns are aligned to the left, the others to the right.
    """
    cells = [list(head)]
    for row in rows:
        cells.append([f'{cell:.6g}' if isinstance(cell, float) else str(cell) for cell in row])
    columns = []
    for place, column in enumerate(zip(*cells, strict=True)):
        width = max(map(len, column))
        columns.append([c.ljust(width) if place < left else c.rjust(width) for c in column])
    return '\n'.join('  '.join(row).rstrip() for row in zip(*columns, strict=True))


def summary_table(summary: Mapping[str, Any], units: Mapping[str, str]) -> str:
    """
    Return a table of quantities, values and units.

    A list is shown in one cell, a nested mapping with a row for each of its quantities; their
    units are under ``outer.inner`` or ``outer``.
    """
    rows = []
    for name, value in summary.items():
        if isinstance(value, Mapping):
            for inner, item in value.items():
                unit = units.get(f'{name}.{inner}', units.get(name, ''))
                rows.append((f'{name}, {inner}', _plain(item), unit))
        elif isinstance(value, list) and value and isinstance(value[0], Mapping):
            # Events, with time and name.
            unit = units.get(f'{name}.time', '')
            rows += [(f'{name}, {one["name"]}', _plain(one['time']), unit) for one in value]
        else:
            rows.append((name, _plain(value), units.get(name, '')))
    return table(('quantity', 'value', 'unit'), rows)


def _plain(value: Any) -> str:
    """Return a value of a summary as text."""
    if value is None:
        return 'none'
    if isinstance(value, list):
        return ' '.join(_plain(item) for item in value) or 'none'
    return f'{value:.6g}' if isinstance(value, float) else str(value)


def check_output(csv: Path | None = None, plot: Path | None = None) -> None:
    """
    Check that result files, a table and a figure, can be written; call this before the work.

    InputError if a file cannot be written, the figure has no extension of :data:`PICTURES`, or
    both have the same name.
    """
    if plot is not None:
        checked_ending(plot, PICTURES)
    for file in (csv, plot):
        if file is not None:
            with _temporary(Path(file)):
                pass
    check_places({'the table': csv, 'the figure': plot})


def check_places(
    outputs: Mapping[str, str | Path | None], inputs: Iterable[str | Path | None] = ()
) -> None:
    """Raise InputError if two outputs, by option, are one file, or one is or is in an input."""
    sources = {_real(source): _state(source) for source in inputs if source is not None}
    taken: dict[Path, str] = {}
    for name, output in outputs.items():
        found = None if output is None else _state(output)
        is_file = found is not None and stat.S_ISREG(found.st_mode)
        if output is None or (found and not is_file and not stat.S_ISDIR(found.st_mode)):
            continue
        place = _real(output)
        if place in taken:
            raise InputError(f'{taken[place]} and {name} are both {output}; give two places')
        taken[place] = name
        for source, state in sources.items():
            same = found is not None and state is not None and os.path.samestat(found, state)
            if same or place == source or (is_file and source in place.parents):
                raise InputError(f'{name} {output} is one of the inputs; give another place')


def _real(path: str | Path) -> Path:
    """Resolve the links of a path; unchanged if that fails."""
    return Path(os.path.realpath(path))


def _state(path: str | Path) -> os.stat_result | None:
    """Return the status of a file; None if there is none, or if it is not accessible."""
    try:
        return Path(path).stat()
    except OSError:
        return None


@contextlib.contextmanager
def making_directory(directory: str | Path) -> Iterator[Path]:
    """Create a directory and its parents; empty new ones are removed at the end of the block."""
    target = _real(directory)
    missing: list[Path] = []
    try:
        missing = [one for one in (target, *target.parents) if not one.exists()]
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _unwritable(directory, error) from error
    try:
        yield Path(directory)
    finally:
        with contextlib.suppress(OSError):
            for one in missing:
                one.rmdir()


@contextlib.contextmanager
def writing_directory(directory: str | Path) -> Iterator[Path]:
    """
    Yield a temporary path that is renamed to ``directory`` when the block ends without an error.

    The block creates the directory. If the block fails or is interrupted, nothing remains.
    InputError if the directory is not empty, or cannot be written.
    """
    target = _real(directory)
    with _naming_full_disk(directory), making_directory(target.parent) as parent:
        try:
            if target.exists() and (not target.is_dir() or any(target.iterdir())):
                raise InputError(f'{directory} is not empty; give a new directory')
            temporary = Path(tempfile.mkdtemp(dir=parent, prefix='.'))
        except OSError as error:
            raise _unwritable(directory, error) from error
        unfinished = temporary / target.name
        try:
            yield unfinished
            if unfinished.exists():
                # An existing empty directory is replaced.
                unfinished.rename(target)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)


@contextlib.contextmanager
def writing(file: str | Path) -> Iterator[Path]:
    """
    Yield a temporary path that is renamed to ``file`` when the block ends without an error.

    A symbolic link is kept, and its target is written. For a pipe or a device, the bytes are
    copied. Parent directories are created. InputError if the file cannot be written, other
    LongreachErrors for pipes and devices, and for a full disk.
    """
    target = Path(file)
    with _temporary(target) as (temporary, special), _naming_full_disk(file):
        yield temporary
        if special:
            try:
                target.write_bytes(temporary.read_bytes())
            except OSError as error:
                raise LongreachError(f'{target} cannot be written: {error.strerror}') from error
            return
        # mkstemp restricts access to the owner; results get the usual permissions.
        mask = os.umask(0)
        os.umask(mask)
        temporary.chmod(0o666 & ~mask)
        temporary.replace(_real(target))


@contextlib.contextmanager
def locked_directory(directory: Path) -> Iterator[None]:
    """Keep a directory for this process, or raise InputError; an empty new one is removed."""
    with making_directory(directory), contextlib.ExitStack() as stack:
        try:
            handle = os.open(directory, os.O_RDONLY)
            stack.callback(os.close, handle)
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise InputError(
                f'{directory} is being written by another process; give another directory'
            ) from error
        except OSError as error:
            raise _unwritable(directory, error) from error
        yield


@contextlib.contextmanager
def _naming_full_disk(output: str | Path) -> Iterator[None]:
    """Raise LongreachError with the name of an output if the disk gets full in the block."""
    try:
        yield
    except OSError as error:
        if error.errno not in _FULL:
            raise
        raise _unwritable(output, error) from error


def _is_special(target: Path) -> bool:
    """Return whether the target is an existing pipe or device, which must not be replaced."""
    try:
        mode = target.stat().st_mode
    except FileNotFoundError:
        return False
    except OSError as error:
        raise _unwritable(target, error) from error
    if stat.S_ISDIR(mode):
        raise InputError(f'{target} is a directory; give a file')
    if stat.S_ISREG(mode):
        return False
    if stat.S_ISSOCK(mode) or not os.access(target, os.W_OK):
        raise InputError(
            f'{target} is not a regular file and cannot be opened for writing; give another file'
        )
    return True


@contextlib.contextmanager
def _temporary(target: Path) -> Iterator[tuple[Path, bool]]:
    """Yield an empty file to be renamed to the target, and whether that is special."""
    special = _is_special(target)
    with contextlib.ExitStack() as stack:
        directory = None
        if not special:
            directory = stack.enter_context(making_directory(_real(target).parent))
        try:
            handle, name = tempfile.mkstemp(dir=directory, prefix='.', suffix=target.suffix)
        except OSError as error:
            raise _unwritable(target, error) from error
        os.close(handle)
        stack.callback(Path(name).unlink, missing_ok=True)
        yield Path(name), special


def _unwritable(target: str | Path, error: OSError) -> LongreachError:
    """Return the error for a target that cannot be written."""
    if error.errno in _FULL:
        return LongreachError(f'{target} cannot be written: {error.strerror}; make room')
    return InputError(
        f'{target} cannot be written: {error.strerror}; give a place that is writable, or can be'
        ' created'
    )


def write_csv(file: str | Path, columns: Sequence[str], values: np.ndarray) -> None:
    """
    Write an array (rows, columns) with a header line, in full precision.

    Integers, such as flags, are written without a decimal point.
    """
    with writing(file) as path, path.open('w', encoding='utf-8') as stream:
        writer = csv.writer(stream, lineterminator='\n')
        writer.writerow(columns)
        writer.writerows(map(_number, row) for row in values.tolist())


def _number(value: float) -> str:
    """Return the shortest text that is read as the same number; integers without a point."""
    text = repr(float(value))
    return text.removesuffix('.0') if math.isfinite(value) else text


@contextlib.contextmanager
def figure(
    file: str | Path,
    size: tuple[float, float],
    rows: int = 1,
    above: float = 0.0,
    heights: Sequence[float] | None = None,
) -> Iterator[Any]:
    """
    Yield the list of axes of a new figure that is saved when the block ends.

    The axes are ``rows`` below each other, with a common time axis, of equal or relative
    ``heights``. ``above`` is the relative height of additional axes above them, with a separate x
    axis; 0: none. The format follows from the extension of the file, one of :data:`PICTURES`, its
    size is in inches. InputError if the extension is unknown or the file cannot be written.
    """
    ending = checked_ending(file, PICTURES)
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    # No pyplot: no window system, no global state.
    canvas = Figure(figsize=size, layout='constrained')
    if above:
        ratios = (above, *(heights or (1.0,) * rows))
        grid = canvas.add_gridspec(rows + 1, 1, height_ratios=ratios)
        axes = [canvas.add_subplot(grid[0]), canvas.add_subplot(grid[1])]
        axes += [canvas.add_subplot(grid[k + 2], sharex=axes[1]) for k in range(rows - 1)]
        for axis in axes[1:-1]:
            axis.tick_params(labelbottom=False)
    else:
        table = canvas.subplots(rows, 1, sharex=True, squeeze=False, height_ratios=heights)
        axes = list(table[:, 0])
    for axis in axes:
        axis.grid(visible=True, color='0.9')
        axis.set_axisbelow(True)
        axis.spines[['top', 'right']].set_visible(False)
    yield axes
    # Equal data give equal files, so that a figure under version control changes only with its
    # content.
    metadata = {'Date': None} if ending == 'svg' else None
    with writing(file) as path, rc_context({'svg.hashsalt': 'longreach'}):
        canvas.savefig(path, dpi=130, format=ending, metadata=metadata)


def legend(axis: Any, columns: int) -> None:
    """Put the legend above the right end of an axis, where it covers no data."""
    axis.legend(loc='lower right', bbox_to_anchor=(1.0, 0.98), frameon=False, ncols=columns)


def checked_ending(file: str | Path, allowed: Iterable[str]) -> str:
    """Return the extension of a file, without the dot; InputError for one that is not allowed."""
    ending = Path(file).suffix.lstrip('.').lower()
    if ending not in allowed:
        raise InputError(f'{file} has the extension {ending!r}, allowed: {", ".join(allowed)}')
    return ending
