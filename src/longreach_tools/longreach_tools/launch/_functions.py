"""
Substitutions in launch files: their values.

Names and meanings are those of ROS 2 Jazzy. Values are texts. An argument is evaluated when its
function asks for it, so that an unused default cannot fail.
"""

from __future__ import annotations

import math
import shlex
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from longreach_dynamics.errors import InputError

from ._model import Template
from ._packages import find_share
from ._substitutions import SubstitutionError
from ._values import parse_flag

__all__ = ['FUNCTIONS', 'Scope', 'evaluate', 'evaluate_words']


@dataclass
class Scope:
    """What substitutions can see; ``configurations`` are the values of args and lets."""

    file: Path
    configurations: dict[str, str]
    environment: dict[str, str]
    warnings: list[str] = field(default_factory=list)


def evaluate(template: Template, scope: Scope) -> str:
    """Return the text of a template."""
    return ''.join(
        part if isinstance(part, str) else _call(part.name, part.arguments, scope)
        for part in template.parts
    )


def evaluate_words(template: Template, scope: Scope) -> list[str]:
    """
    Return the words of a command line.

    Literal text is split as a shell splits it; the value of a substitution is never split.
    """
    words: list[str] = []
    word: str | None = None
    for part in template.parts:
        if not isinstance(part, str):
            word = (word or '') + _call(part.name, part.arguments, scope)
            continue
        if part[0].isspace() and word is not None:
            words.append(word)
            word = None
        try:
            pieces = shlex.split(part)
        except ValueError as error:
            raise SubstitutionError(
                f'{part!r}: {str(error).lower()}; quotes cannot enclose a substitution here'
            ) from error
        for count, piece in enumerate(pieces):
            if count and word is not None:
                words.append(word)
                word = None
            word = (word or '') + piece
        if part[-1].isspace() and word is not None:
            words.append(word)
            word = None
    return words if word is None else [*words, word]


def _call(name: str, arguments: Sequence[Template], scope: Scope) -> str:
    """Return the value of one substitution."""
    least, most, function = FUNCTIONS[name]
    if not least <= len(arguments) <= most:
        number = ' or '.join(str(n) for n in range(least, most + 1))
        raise SubstitutionError(
            f'$({name}) got {len(arguments)} arguments, takes {number}; '
            'an argument with spaces needs quotes'
        )
    try:
        return function(arguments, scope)
    except SubstitutionError:
        raise
    except (InputError, ValueError) as error:
        raise SubstitutionError(f'$({name}): {error}') from error


def _var(arguments: Sequence[Template], scope: Scope) -> str:
    name = evaluate(arguments[0], scope)
    if name in scope.configurations:
        return scope.configurations[name]
    if len(arguments) == 2:
        return evaluate(arguments[1], scope)
    known = ', '.join(sorted(scope.configurations)) or 'none'
    raise SubstitutionError(f'$(var {name}): {name!r} is not set here; set are: {known}')


def _command(arguments: Sequence[Template], scope: Scope) -> str:
    line = evaluate(arguments[0], scope)
    try:
        result = subprocess.run(
            shlex.split(line),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env=scope.environment,
            text=True,
            check=False,
        )
    except (OSError, IndexError) as error:
        raise SubstitutionError(f'$(command {line!r}) cannot be run: {error}') from error
    complaint = ' '.join(result.stderr.split())
    if result.returncode:
        raise SubstitutionError(
            f'$(command {line!r}) failed with exit code {result.returncode}: {complaint}'
        )
    if complaint:
        raise SubstitutionError(f'$(command {line!r}) wrote to stderr: {complaint}')
    return result.stdout


def _if(arguments: Sequence[Template], scope: Scope) -> str:
    if parse_flag(evaluate(arguments[0], scope)):
        return evaluate(arguments[1], scope)
    return evaluate(arguments[2], scope) if len(arguments) == 3 else ''


def _equals(arguments: Sequence[Template], scope: Scope) -> str:
    left, right = (evaluate(argument, scope) for argument in arguments)
    words = ('true', 'false', '1', '0')
    if left.lower() in words and right.lower() in words:
        same = (left.lower() in ('true', '1')) == (right.lower() in ('true', '1'))
    else:
        try:
            same = math.isclose(float(left), float(right))
        except ValueError:
            same = left == right
    return str(same).lower()


def _find_share(arguments: Sequence[Template], scope: Scope) -> str:
    return str(find_share(evaluate(arguments[0], scope), scope.environment))


def _truth(function: Callable[[list[bool]], bool]) -> _Function:
    """Return a substitution of truth values."""

    def value(arguments: Sequence[Template], scope: Scope) -> str:
        flags = [parse_flag(evaluate(argument, scope)) for argument in arguments]
        return str(function(flags)).lower()

    return value


_Function = Callable[[Sequence[Template], Scope], str]

FUNCTIONS: dict[str, tuple[int, int, _Function]] = {
    'and': (2, 2, _truth(all)),
    'command': (1, 1, _command),
    'dirname': (0, 0, lambda _, scope: str(scope.file.parent)),
    'equals': (2, 2, _equals),
    'find-pkg-share': (1, 1, _find_share),
    'if': (2, 3, _if),
    'not': (1, 1, _truth(lambda flags: not flags[0])),
    'or': (2, 2, _truth(any)),
    'var': (1, 2, _var),
}
"""Fewest and most arguments, and the function, by name."""
