"""Types of command-line arguments; errors name the value and what is allowed."""

from __future__ import annotations

import argparse
import contextlib
import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np


def finite(text: str) -> float:
    """Return a finite number."""
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


def numbers(text: str) -> tuple[float, ...]:
    """Return finite numbers separated by commas."""
    try:
        return tuple(finite(part) for part in text.split(','))
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
        return np.linspace(finite(start), finite(stop), count(100_000)(number))
    except ValueError as error:
        raise argparse.ArgumentTypeError(
            f'{text!r}, allowed: START:STOP:COUNT such as -5:85:19'
        ) from error


def add_common(
    parser: argparse.ArgumentParser, flag: str, default: Any = None, **words: Any
) -> None:
    """
    Add an option that a command has once, for those of its subcommands that add it.

    It stands before or behind them, is in their helps, and has a default for each; others refuse
    it.
    """
    command = getattr(parser, 'command', parser)
    action = command._option_string_actions.get(flag) or command.add_argument(
        flag, default=argparse.SUPPRESS, **words
    )
    parser.set_defaults(**{action.dest: default})
    if isinstance(shared := getattr(parser, 'shared', None), argparse._ArgumentGroup):
        shared._group_actions.append(action)


def add_network(parser: argparse.ArgumentParser) -> None:
    """Add ``--network`` to a command that talks to nodes; ``longreach`` itself evaluates it."""
    add_common(
        parser,
        '--network',
        default=False,
        action='store_true',
        help='also talk to nodes on other computers (default: on this computer only)',
    )


def add_degrees(parser: argparse.ArgumentParser) -> None:
    """Add ``--degrees``."""
    add_common(parser, '--degrees', False, action='store_true', help='angles are in degrees')


def seed(text: str) -> int:
    """Return a whole number of 0 or more, of a random generator."""
    return _whole(text, 0, math.inf, '0 or more')


def count(most: int) -> Callable[[str], int]:
    """Return the type of whole numbers from 1 to ``most``."""
    return lambda text: _whole(text, 1, most, f'1 to {most}')


def _whole(text: str, least: int, most: float, allowed: str) -> int:
    """Return a whole number; argparse would name the function for text that is none."""
    with contextlib.suppress(ValueError):
        if least <= (value := int(text)) <= most:
            return value
    raise argparse.ArgumentTypeError(f'{text}, allowed: {allowed}, whole numbers')


def optional_file(text: str) -> Path | None:
    """Return a path, or None for an empty text, which launch files pass for no file."""
    return Path(text) if text else None
