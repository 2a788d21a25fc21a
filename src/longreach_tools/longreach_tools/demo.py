"""What the demonstrations of all machines do: run commands as a user would, in sight."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from longreach_dynamics.errors import InputError

__all__ = ['call_in_sight', 'remove_old_bag']


def call_in_sight(words: Sequence[str]) -> int:
    """Print a command as it would be typed, run it, and return its exit code."""
    print('$ ' + ' '.join(words), flush=True)
    return subprocess.call(words)


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
