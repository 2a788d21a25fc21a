"""Demonstrations of the machines: commands that are printed and run, with a recording."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from longreach_dynamics.errors import InputError, LongreachError


def demonstrate(
    out: Path,
    name: str,
    launch: Sequence[str],
    calls: Sequence[Sequence[str]],
    advice: str,
    **files: Path,
) -> int:
    """
    Record a launch, run commands on the recording, print what to try next; return the exit code.

    Bag and figure have a ``name`` in the directory ``out``. ``launch`` are arguments of
    ``longreach launch``, ``calls`` those of ``longreach`` for each command. In their words and in
    the advice ``{bag}``, ``{picture}`` and the names of ``files`` stand for paths. The first
    command that fails ends it; InputError when nothing can be written, LongreachError when the
    launch fails.
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
    """Create the directory of a demonstration if it is missing; InputError when that fails."""
    if find_spec('rclpy') is None:
        # Before anything is computed: all of them launch nodes.
        raise ModuleNotFoundError(name='rclpy')
    try:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=out):
            pass
    except OSError as error:
        raise InputError(
            f'--out {out} cannot be used: {error.strerror}; give a writable directory, or one that'
            ' can be created'
        ) from error
    return out


def call_in_sight(words: Sequence[str]) -> int:
    """Print a command line, run it, and return its exit code."""
    print('$ ' + ' '.join(words), flush=True)
    with subprocess.Popen(words) as process:
        try:
            return process.wait()
        except BaseException:
            # subprocess would kill it, and a launch could not stop its nodes in order.
            process.terminate()
            process.wait()
            raise


def remove_old_bag(bag: Path) -> None:
    """Remove the bag of an earlier demonstration; InputError when the path is no bag."""
    if not bag.exists():
        return
    if not bag.is_dir() or not any(bag.glob('*.mcap')):
        raise InputError(f'{bag} exists and is not a bag; move it away or choose another --out')
    shutil.rmtree(bag)
