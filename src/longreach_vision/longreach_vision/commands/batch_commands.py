"""Subcommand ``longreach vision track-all``: many recordings, each in a process of its own."""

from __future__ import annotations

import argparse
import contextlib
import functools
import io
import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

from longreach_dynamics.errors import InputError
from longreach_dynamics.parallel import InterruptedSweep, run_jobs
from longreach_tools.options import add_workers
from longreach_tools.output import add_format, making_directory, print_result, table
from longreach_vision.commands.arguments import (
    add_namespace,
    add_reading,
    add_rig,
    add_scale,
    rig_of,
)
from longreach_vision.rig import Rig

__all__ = ['configure_batch']


class _Tracked(NamedTuple):
    """Outcome of one recording."""

    message: str  # empty: complete
    summary: dict[str, Any]  # as ``longreach vision track`` prints it


def configure_batch(commands: Any) -> None:
    """Add the subcommand ``track-all``."""
    parser = commands.add_parser(
        'track-all',
        help='track many recordings in parallel',
        description='Each RECORDING is a bag of images, or a folder with a video or a folder of'
        ' pictures for each camera of the rig, named as the camera. One that fails is a row with'
        ' its message. Recordings whose table exists are not tracked again, so that a stopped'
        ' command goes on.',
    )
    parser.add_argument('recordings', metavar='RECORDING', nargs='+', type=Path)
    parser.add_argument(
        '--out', metavar='DIR', type=Path, required=True, help='folder for RECORDING.csv of each'
    )
    add_rig(parser, required=True)
    add_namespace(parser)
    add_reading(parser)
    add_scale(parser)
    add_workers(parser)
    add_format(parser)
    parser.set_defaults(run=_run_track_all)


def _run_track_all(arguments: argparse.Namespace) -> int:
    """Run ``track-all``."""
    rig = rig_of(arguments)
    names = [path.resolve().name for path in arguments.recordings]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InputError(f'recordings have the names {", ".join(twice)} twice; rename one')
    targets = [arguments.out / f'{name}.csv' for name in names]
    left = [k for k, target in enumerate(targets) if not target.exists()]
    jobs = [
        [*_words(arguments, rig, arguments.recordings[k]), '--csv', str(targets[k])] for k in left
    ]
    with making_directory(arguments.out):
        try:
            found = run_jobs(
                _track, jobs, arguments.processes, cluster=arguments.cluster,
                lost=functools.partial(_Tracked, summary={}),
            )  # fmt: skip
        except InterruptedSweep as interrupt:
            found = interrupt.outcomes
    done = {names[k]: one for k, one in zip(left, found, strict=True) if one is not None}
    rows, results = [], {}
    for k, name in enumerate(names):
        one = done.get(name)
        state = 'complete' if k not in left else 'not tracked'
        if one is not None:
            state = 'failed' if one.message else 'complete'
        results[name] = {
            'status': state,
            'file': str(targets[k]) if targets[k].exists() else None,
            'message': one.message if one else '',
            'summary': one.summary if one else {},
        }
        rows.append((name, state, '-' if k in left else 'before'))
    print_result(
        {'recordings': results}, table(('recording', 'status', 'tracked'), rows), arguments.format
    )
    for name, one in done.items():
        if one.message:
            print(f'longreach vision: {name}: {one.message}', file=sys.stderr)
    if len(done) < len(left):
        print(
            f'longreach vision: interrupted: {len(done)} of {len(left)} recordings are done',
            file=sys.stderr,
        )
        return 130
    return int(any(one.message for one in done.values()))


def _words(arguments: argparse.Namespace, rig: Rig, recording: Path) -> list[str]:
    """Return the arguments of ``longreach vision track`` for a recording."""
    words = ['track', '--rig', str(arguments.rig), '--bits', str(arguments.bits)]
    words += ['--scale', str(arguments.scale), '--format', 'json']
    words += [word for start in arguments.start for word in ('--start', start)]
    if arguments.rate is not None:
        words += ['--rate', str(arguments.rate)]
    sources = {name: _source(recording, name) for name in rig.cameras}
    if any(sources.values()):
        missing = [name for name, source in sources.items() if source is None]
        if missing:
            raise InputError(
                f'{recording} has no video and no folder named {" or ".join(missing)}; allowed:'
                f' one for each camera, {", ".join(rig.cameras)}'
            )
        return [*words, *map(str, sources.values())]
    if not recording.exists():
        raise InputError(f'{recording} does not exist')
    return [*words, '--from-bag', str(recording), '--namespace', arguments.namespace]


def _source(recording: Path, camera: str) -> Path | None:
    """Return the video or the folder of pictures of a camera; None without one."""
    if not recording.is_dir():
        return None
    found = sorted(path for path in recording.iterdir() if path.stem == camera)
    if len(found) > 1:
        raise InputError(
            f'{recording} has {" and ".join(path.name for path in found)}; allowed: one for each'
            ' camera'
        )
    return found[0] if found else None


def _track(words: list[str]) -> _Tracked:
    """Track one recording; in a process of its own."""
    from longreach_tools.cli import main

    out, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        code = main(['vision', *words])
    text = out.getvalue().strip()
    lines = errors.getvalue().strip().splitlines()
    message = ''
    if code:
        message = lines[-1] if lines else f'exit code {code}'
    return _Tracked(message, json.loads(text) if text else {})
