"""
The vocabulary of command-line options, and their types.

Errors of the types name the value and what is allowed.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from longreach_dynamics.errors import InputError

if TYPE_CHECKING:
    import numpy as np


def finite(text: str) -> float:
    """Return a finite number."""
    try:
        return _finite(text)
    except ValueError as error:
        # argparse would name the function.
        raise argparse.ArgumentTypeError(f'{text!r}, allowed: finite numbers') from error


def _finite(text: str) -> float:
    """Return a finite number; ValueError for text that is none."""
    value = float(text)
    # Python also reads 1_0 and the digits of other scripts.
    if not math.isfinite(value) or '_' in text or not text.isascii():
        raise argparse.ArgumentTypeError(f'{text}, allowed: finite numbers')
    return value


def positive(text: str) -> float:
    """Return a finite number above 0."""
    value = finite(text)
    if value <= 0.0:
        raise argparse.ArgumentTypeError(f'{text}, allowed: above 0')
    return value


def not_negative(text: str) -> float:
    """Return a finite number of 0 or more."""
    value = finite(text)
    if value < 0.0:
        raise argparse.ArgumentTypeError(f'{text}, allowed: 0 or more')
    return value


def within(low: float, high: float) -> Callable[[str], float]:
    """Return the type of numbers from ``low`` to ``high``."""

    def parse(text: str) -> float:
        if not low <= (value := finite(text)) <= high:
            raise argparse.ArgumentTypeError(f'{text}, allowed: {low:g} to {high:g}')
        return value

    return parse


def numbers(text: str) -> tuple[float, ...]:
    """Return finite numbers separated by commas."""
    try:
        return tuple(_finite(part) for part in text.split(','))
    except ValueError as error:
        raise argparse.ArgumentTypeError(
            f'{text!r}, allowed: numbers separated by commas'
        ) from error


def names(text: str) -> tuple[str, ...]:
    """Return names separated by commas."""
    found = tuple(text.split(','))
    if not all(found):
        raise argparse.ArgumentTypeError(f'{text!r}, allowed: names separated by commas')
    return found


def sweep(text: str) -> np.ndarray:
    """Return COUNT equally spaced numbers for START:STOP:COUNT, shape (COUNT,)."""
    import numpy as np

    try:
        start, stop, number = text.split(':')
        return np.linspace(_finite(start), _finite(stop), count(100_000)(number))
    except ValueError as error:
        raise argparse.ArgumentTypeError(
            f'{text!r}, allowed: START:STOP:COUNT such as -5:85:19'
        ) from error


def seed(text: str) -> int:
    """Return a whole number of 0 or more, of a random generator."""
    return _whole(text, 0, math.inf, '0 or more')


def count(most: int, least: int = 1) -> Callable[[str], int]:
    """Return the type of whole numbers from ``least`` to ``most``."""
    return lambda text: _whole(text, least, most, f'{least} to {most}')


def whole(text: str) -> int:
    """Return a whole number, of which the library says what is allowed."""
    try:
        return int(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f'{text!r}, allowed: whole numbers') from error


def _whole(text: str, least: int, most: float, allowed: str) -> int:
    """Return a whole number; argparse would name the function for text that is none."""
    with contextlib.suppress(ValueError):
        if least <= (value := int(text)) <= most:
            return value
    raise argparse.ArgumentTypeError(f'{text}, allowed: {allowed}, whole numbers')


def folder(text: str) -> Path:
    """Return the path of a folder; an empty text would be the current one."""
    if not text:
        raise argparse.ArgumentTypeError("'', allowed: the name of a folder")
    return Path(text)


def optional_file(text: str) -> Path | None:
    """Return a path, or None for an empty text, which launch files pass for no file."""
    return Path(text) if text else None


def check_unused(arguments: argparse.Namespace, allowed: str, *names: str, **usual: Any) -> None:
    """Raise InputError for options other than usual (None), which have no effect in this use."""
    usual = dict.fromkeys(names) | usual
    given = [name for name, value in usual.items() if getattr(arguments, name) != value]
    if given:
        # As the options of add_signals are kept.
        words = ({'begin': 'from', 'end': 'to'}.get(name, name) for name in given)
        shown = ' and '.join(f'--{word.replace("_", "-")}' for word in words)
        raise InputError(f'{shown}, allowed {allowed}')


# Options, and arguments with a name alone, by what they are for: of each the type of its value
# (bool: a flag) or its choices, what stands for the value, and the meaning, if one, with which its
# help begins in every command.
VOCABULARY: dict[str, dict[str, tuple[Any, ...]]] = {
    'input': {
        '--against': (Path, 'BAG'),
        '--arm': (str, 'FILE.yaml'),
        '--column': (str, 'SIGNAL=COLUMN[:UNIT]'),
        '--config': (Path, 'RIG.yaml', 'rig file: cameras, plane and markers'),
        '--data': (Path, 'FILE.csv'),
        '--degrees': (bool, '', 'angles are in degrees'),
        '--event': (str, 'RECORDING=S'),
        '--file': (optional_file, 'FILE.yaml', 'parameters of the'),
        '--look': (Path, 'FILE.yaml'),
        '--motion': (Path, 'FILE.csv'),
        '--payload': (str, 'RECORDING=KG'),
        '--planted': (Path, 'FILE.yaml'),
        '--preset': (str, 'MACHINE'),
        '--refine': (str, 'RECORDING'),
        '--release': (Path, 'RECORDING'),
        '--scenario': (Path, 'FILE|NAME', 'scenario'),
        '--sensors': (str, 'FILE'),
        '--set': (str, 'PATH=VALUE', 'another value than in the file'),
        '--state': (Path, 'FILE.json'),
        '--static': (Path, 'RECORDING'),
        '--truth': (Path, 'FILE.csv|BAG'),
        '--truth-topic': (str, 'TOPIC'),
        '--urdf': (Path, 'FILE.urdf'),
        '--validation': (Path, 'RECORDING'),
        'bag': (Path, 'BAG', 'recording: a directory, or one .mcap or .db3 file'),
        'scenario': (Path, 'SCENARIO', 'a file or a name'),
    },
    'run': {
        '--cluster': (str, 'ADDRESS', 'Dask cluster tcp://HOST:PORT, or local:COUNT for one here'),
        '--duration': (positive, 'S', 'length'),
        '--from': (finite, 'S', 'first time'),
        '--namespace': (str, 'NS', 'namespace of'),
        '--network': (bool, '', 'also talk to nodes on other computers (default: this one only)'),
        '--processes': (count(1000), 'N', 'parallel processes (default: one for each core)'),
        '--rate': (within(1e-6, 1e6), 'HZ'),
        '--sample-time': (finite, 'S'),
        '--scale': (positive, 'FACTOR', 'image size relative to the calibrations'),
        '--seed': (seed, 'N', 'seed'),
        '--speed': (positive, 'FACTOR', 'speed'),
        '--step': (finite, 'S'),
        '--step-error': (bool, ''),
        '--time': (not_negative, 'S'),
        '--to': (finite, 'S', 'last time'),
        '--tolerance': (finite, 'NUMBER'),
    },
    'output': {
        '--bag': (folder, 'DIR'),
        '--csv': (Path, 'FILE'),
        '--export': (Path, 'FILE.html'),
        '--format': (('table', 'json'), '', 'table for people, json for programs'),
        '--movement': (str, 'MARKER=FILE'),
        '--out': (Path, 'FILE'),
        '--overlay': (Path, 'FILE'),
        '--plot': (Path, 'FILE'),
        '--report': (Path, 'FILE.html'),
        '--results': (folder, 'DIR'),
    },
}


def name_of(flags: Iterable[str]) -> tuple[str, str]:
    """Return the name of an option, its first long one, and its key in the vocabulary, if any."""
    name = next((flag for flag in flags if flag.startswith('--') or flag[0] != '-'), '')
    return name, next((key for key, known in VOCABULARY.items() if name in known), '')


def with_vocabulary(flags: Iterable[str], given: dict[str, Any]) -> dict[str, Any]:
    """Return the words for ``add_argument``, with those of the vocabulary that are not given."""
    name, purpose = name_of(flags)
    text = given.get('help', '')
    words: dict[str, Any] = {}
    if purpose:
        kind, metavar, *meaning = VOCABULARY[purpose][name]
        text = ' '.join([*meaning, text]).strip()
        words = {'type': kind, 'metavar': metavar}
        if not metavar:
            words = {'action': 'store_true'} if kind is bool else {'choices': kind}
    elif name.startswith('--') and not {'action', 'choices'} & given.keys():
        # Options of one command: the unit in their help stands for the value.
        unit = re.search(r'\[(.+?)\]', text)
        words = {'metavar': unit[1].upper()} if unit else {}
    return words | given | {'help': with_default(text, given.get('default'))}


def with_default(text: str, default: Any) -> str:
    """Return a help with the default at its end, if there is one that the help does not say."""
    is_said = 'default' in text or isinstance(default, bool | list | None)
    if is_said or default in ('', (), argparse.SUPPRESS):
        return text
    values = default if isinstance(default, tuple) else (default,)
    shown = ','.join(f'{one:g}' if isinstance(one, float) else str(one) for one in values)
    return f'{text} (default: {shown})'.strip()


def add_common(
    parser: argparse.ArgumentParser, flag: str, default: Any = None, **words: Any
) -> None:
    """
    Add an option that a command has once, for those of its subcommands that add it.

    It stands before or behind them, is in their helps, and has a default for each; others refuse
    it.
    """
    shown: Any = parser
    command = getattr(parser, 'command', parser)
    action = command._option_string_actions.get(flag) or command.add_argument(
        flag, default=argparse.SUPPRESS, **words
    )
    action.help = with_default(action.help or '', default)
    parser.set_defaults(**{action.dest: default})
    if command is not parser:
        shown.group_of(action)._group_actions.append(action)
