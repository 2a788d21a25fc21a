"""How files are opened, and where those that a package installs are found."""

from __future__ import annotations

import contextlib
import importlib.resources
import os
import stat
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from longreach_dynamics.errors import InputError

# An error about a missing file names so many others.
_MOST_NAMES = 20


@contextlib.contextmanager
def open_text(file: str | Path, encoding: str = 'utf-8') -> Iterator[TextIO]:
    """Open a text file for reading: a regular file, or a pipe with a writer; else InputError."""
    try:
        # Of a pipe without a writer nothing is read, where a blocking call would wait for good.
        number = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(number, encoding=encoding) as stream:  # noqa: PTH123
            mode = os.fstat(number).st_mode
            if not (stat.S_ISREG(mode) or stat.S_ISFIFO(mode) or stat.S_ISDIR(mode)):
                raise InputError(f'{file} cannot be read: a device, allowed: a regular file')
            os.set_blocking(number, True)
            yield stream
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else 'not a text file'
        if isinstance(error, FileNotFoundError):
            reason = f'{reason}{_siblings(Path(file))}'
        raise InputError(f'{file} cannot be read: {reason}') from error


def _siblings(file: Path) -> str:
    """Return which files of the same ending are where one is missing, for its error."""
    try:
        names = sorted(p.name for p in file.parent.iterdir() if p.suffix == file.suffix != '')
    except OSError:
        return ''
    if not names:
        return ''
    more = f' and {len(names) - _MOST_NAMES} more' if len(names) > _MOST_NAMES else ''
    return f'; in that directory are {", ".join(names[:_MOST_NAMES])}{more}'


def data_directory(package: str) -> Path:
    """
    Return the directory of ``config`` and ``urdf`` of a Python package; InputError without data.

    Neither ROS nor a sourced workspace is needed: pip installs the data inside the package; in a
    build with links they are beside it, in the source.
    """
    with contextlib.suppress(ModuleNotFoundError):
        inside = Path(str(importlib.resources.files(package)))
        for directory in (inside, inside.resolve().parent):
            if (directory / 'config').is_dir():
                return directory
    raise InputError(f'the data of package {package} were not found; install the package again')


def share_directory(package: str) -> Path:
    """Return the directory share/<package> of the first prefix that has it, pip's as the last."""
    prefixes = os.environ.get('AMENT_PREFIX_PATH', '').split(os.pathsep)
    for prefix in (*filter(None, prefixes), sysconfig.get_path('data')):
        share = Path(prefix) / 'share' / package
        if share.is_dir():
            return share
    raise InputError(
        f'package {package} was not found in AMENT_PREFIX_PATH = {os.pathsep.join(prefixes)!r};'
        ' build the workspace and source install/setup.bash'
    )
