"""Arguments shared by subcommands of ``longreach vision``: rig, motion, outputs."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from longreach_dynamics.errors import named
from longreach_dynamics.parameters import load_yaml
from longreach_dynamics.resources import data_directory
from longreach_markers import Rig, load_rig
from longreach_tools.arguments import numbers
from longreach_tools.output import add_format
from longreach_vision.io.bag_files import is_bag, read_truth
from longreach_vision.io.picture_files import VIDEOS
from longreach_vision.simulator.marker_path import MarkerPath


def vector(count: int) -> Callable[[str], tuple[float, ...]]:
    """Return the type of a fixed number of numbers."""

    def parse(text: str) -> tuple[float, ...]:
        if len(values := numbers(text)) != count:
            raise argparse.ArgumentTypeError(f'{text}, allowed: {count} numbers')
        return values

    return parse


def add_rig(parser: argparse.ArgumentParser, required: bool = False) -> None:
    """Add ``--config`` (alias ``--rig``), the rig file."""
    text = '' if required else '(default: the installed rig_boom.yaml)'
    parser.add_argument('--config', '--rig', dest='rig', required=required, help=text)


_OPTIONS: dict[str, dict[str, Any]] = {
    'namespace': {'default': 'vision', 'help': 'the recorded topics'},
    'rate': {'help': 'images per second, instead of the times of the files'},
    'truth-topic': {
        'default': '',
        'help': 'topic of the motion in a bag (default: the only one of type MarkerPositions)',
    },
    'scale': {'default': 1.0},
    'out': {'metavar': 'DIR', 'help': 'directory for tracks.csv and the bag tracks'},
    'csv': {'help': 'tracks: one row for each set of images'},
    'bag': {'help': 'new bag with observations and markers'},
    'overlay': {
        'metavar': 'FILE.mp4|DIR',
        'help': f'annotated images: a video ({", ".join(VIDEOS)}) or pictures',
    },
    'plot': {'help': 'all markers over time, figure 14 of the paper'},
    'movement': {'help': 'vertical motion of one marker, figure 15 of the paper'},
}


def add_options(parser: argparse.ArgumentParser, *names: str) -> None:
    """Add options that several commands have."""
    for name in names:
        parser.add_argument(f'--{name}', **_OPTIONS[name])


def add_outputs(parser: argparse.ArgumentParser) -> None:
    """Add the options for output files and plots of tracks."""
    add_options(parser, 'out', 'csv', 'bag', 'overlay')
    add_format(parser)
    add_options(parser, 'plot', 'movement')


def rig_of(arguments: argparse.Namespace) -> Rig:
    """Return the rig given by the arguments, by default the installed one."""
    rig = load_rig(arguments.rig or installed_rig())
    scale = getattr(arguments, 'scale', 1.0)
    with named(f'--scale {scale:g}: '):
        return rig.scaled(scale)


def warn(*texts: str) -> None:
    """Print warnings on stderr; empty ones are none."""
    for text in filter(None, texts):
        print(f'longreach vision: {text}', file=sys.stderr, flush=True)


def installed_rig() -> Path:
    """Return the installed rig file of the boom."""
    return data_directory('longreach_vision') / 'config' / 'rig_boom.yaml'


def rig_files(arguments: argparse.Namespace) -> list[Path]:
    """Return a rig file, checked by loading it, its base and its calibration files."""
    file: Path = arguments.rig or installed_rig()
    base = load_yaml(file).get('base')
    files = [file] if base is None else [file, file.parent / base]
    cameras = [one for rig in files for one in (load_yaml(rig).get('cameras') or {}).values()]
    named = [one['calibration'] for one in cameras if one and 'calibration' in one]
    return files + [file.parent / name for name in named]


def motion_of(file: Path, topic: str = '') -> MarkerPath:
    """Read the motion of markers from a CSV file or a bag."""
    if is_bag(file):
        return read_truth(file, topic)
    return MarkerPath.from_csv(file)
