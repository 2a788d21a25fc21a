"""Demonstrations of the machines: launch, record, compare and draw by printed commands."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from longreach_dynamics.errors import InputError, LongreachError

__all__ = ['call_in_sight', 'demonstrate', 'prepare', 'remove_old_bag']


def demonstrate(
    out: Path,
    name: str,
    launch: Sequence[str],
    calls: Sequence[Sequence[str]],
    advice: str,
    **files: Path,
) -> int:
    """
    Record a launch, call commands on the recording, and say what to try next.

    Parameters
    ----------
    out : path
        Directory for bag and picture; made if it is not there.
    name : str
        Name of both.
    launch : sequence of str
        What follows ``longreach launch``; the recorder is added, RViz is left out.
    calls : sequence of sequence of str
        What follows ``longreach``, command by command. Words may be ``{bag}``, ``{picture}`` or
        the name of one of the files.
    advice : str
        Printed when all went well, with the same names in it.
    **files : path
        Shown relative to where the user is.

    Returns
    -------
    int
        Exit code of the first call that fails, 0 when none does.

    Raises
    ------
    InputError
        When the directory cannot be used.
    LongreachError
        When the launch fails.
    """
    bag, picture = prepare(out) / name, out / f'{name}.png'
    remove_old_bag(bag)
    places = {'bag': bag, 'picture': picture}
    places |= {what: Path(os.path.relpath(file)) for what, file in files.items()}
    code = call_in_sight(['longreach', 'launch', *launch, f'record:={bag}', 'rviz:=false'])
    if code:
        raise LongreachError(f'the launch ended with exit code {code}; the lines above say why')
    for words in calls:
        print()
        code = call_in_sight(['longreach', *(word.format(**places) for word in words)])
        if code:
            return code
    print(advice.format(**places))
    return 0


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
