"""What the demonstrations of all machines do: run commands as a user would, in sight."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from longreach_dynamics.errors import InputError

__all__ = ['call_in_sight', 'prepare', 'remove_old_bag']


def prepare(out: Path) -> Path:
    """
    Make the directory of a demonstration, if it is not there, and return it.

    Raises
    ------
    InputError
        When it cannot be made, or nothing can be written into it.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=out):
            pass
    except OSError as error:
        raise InputError(
            f'--out {out} cannot be used: {error.strerror}; name a directory that is writable, or'
            ' that can be made'
        ) from error
    return out


def call_in_sight(words: Sequence[str]) -> int:
    """Print a command as it would be typed, run it, and return its exit code."""
    print('$ ' + ' '.join(words), flush=True)
    with subprocess.Popen(words) as process:
        try:
            return process.wait()
        except BaseException:
            # subprocess would kill it: a launch then could not end its nodes one by one.
            process.terminate()
            process.wait()
            raise


def remove_old_bag(bag: Path) -> None:
    """
    Remove the bag of an earlier demonstration.

    Raises
    ------
    InputError
        When the directory is something else than a bag.
    """
    if not bag.exists():
        return
    if not bag.is_dir() or not any(bag.glob('*.mcap')):
        raise InputError(f'{bag} is there and is no bag; move it away or choose another --out')
    shutil.rmtree(bag)
