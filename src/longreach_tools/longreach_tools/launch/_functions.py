"""
Substitutions in launch files: their values.

Names and meanings are those of ROS 2 Jazzy. Values are texts. An argument is evaluated when its
function asks for it, so that an unused default cannot fail.
"""

from __future__ import annotations

import importlib
import math
import os
import random
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from longreach_dynamics.errors import InputError

from ._model import Template
from ._packages import find_executable, find_prefix, find_share
from ._substitutions import SubstitutionError
from ._values import parse_flag

__all__ = ['Scope', 'evaluate', 'evaluate_words']

_IN_EXPRESSIONS = (
    ArithmeticError,
    AttributeError,
    ImportError,
    LookupError,
    NameError,
    RuntimeError,
    SyntaxError,
    TypeError,
)
"""What an expression that is wrong raises, beside ValueError."""


@dataclass
class Scope:
    """
    What substitutions can see.

    ``configurations`` are the values of args and lets. ``anonymous`` is shared by all scopes of a
    launch, so that ``$(anon x)`` is the same name everywhere. ``parameters`` and ``remaps`` are
    those that set_parameter and set_remap gave to all nodes, as (name, YAML) and (from, to).
    """

    file: Path
    log_directory: Path
    configurations: dict[str, str]
    environment: dict[str, str]
    warnings: list[str] = field(default_factory=list)
    anonymous: dict[str, str] = field(default_factory=dict)
    parameters: tuple[tuple[str, str], ...] = ()
    remaps: tuple[tuple[str, str], ...] = ()


def evaluate(template: Template, scope: Scope) -> str:
    """
    Return the text of a template.

    Raises
    ------
    SubstitutionError
        A substitution is unknown, has the wrong arguments or has no value.
    """
    return ''.join(
        part if isinstance(part, str) else _call(part.name, part.arguments, scope)
        for part in template.parts
    )


def evaluate_words(template: Template, scope: Scope) -> list[str]:
    """
    Return the words of a command line.

    Literal text is split as a shell splits it; the value of a substitution is never split.

    Raises
    ------
    SubstitutionError
        As :func:`evaluate`; also for a quote that is not closed before the next substitution.
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
    if name not in _FUNCTIONS:
        allowed = ', '.join(sorted(_FUNCTIONS))
        raise SubstitutionError(f'unknown substitution $({name}); allowed: {allowed}')
    least, most, function = _FUNCTIONS[name]
    if len(arguments) < least or (most is not None and len(arguments) > most):
        number = (
            f'{least} or more'
            if most is None
            else ' or '.join(str(n) for n in range(least, most + 1))
        )
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


def _env(arguments: Sequence[Template], scope: Scope) -> str:
    name = evaluate(arguments[0], scope)
    if name in scope.environment:
        return scope.environment[name]
    if len(arguments) == 2:
        return evaluate(arguments[1], scope)
    raise SubstitutionError(
        f'$(env {name}): the environment has no {name}; set it or give a default: '
        f'$(env {name} DEFAULT)'
    )


def _eval(arguments: Sequence[Template], scope: Scope) -> str:
    expression = evaluate(arguments[0], scope)
    modules = evaluate(arguments[1], scope).split(',') if len(arguments) == 2 else ['math']
    names: dict[str, object] = {}
    try:
        for word in modules:
            module = importlib.import_module(word.strip())
            names[word.strip()] = module
            if module is math:
                names.update(vars(math))
        # A launch file may run any command: an expression in it is no further risk.
        return str(eval(expression, {}, names))
    except _IN_EXPRESSIONS as error:
        raise SubstitutionError(f'$(eval {expression!r}): {error}') from error


def _anon(arguments: Sequence[Template], scope: Scope) -> str:
    name = evaluate(arguments[0], scope)
    if name not in scope.anonymous:
        number = random.SystemRandom().randint(0, sys.maxsize)
        scope.anonymous[name] = f'{name}_{os.getpid()}_{number}'
    return scope.anonymous[name]


def _command(arguments: Sequence[Template], scope: Scope) -> str:
    line = evaluate(arguments[0], scope)
    on_stderr = evaluate(arguments[1], scope) if len(arguments) == 2 else 'fail'
    if on_stderr not in ('fail', 'ignore', 'warn', 'capture'):
        raise SubstitutionError(
            f'$(command) got {on_stderr!r} for stderr; allowed: fail, ignore, warn, capture'
        )
    try:
        result = subprocess.run(
            shlex.split(line),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if on_stderr == 'capture' else subprocess.PIPE,
            env=scope.environment,
            text=True,
            check=False,
        )
    except (OSError, IndexError) as error:
        raise SubstitutionError(f'$(command {line!r}) cannot be run: {error}') from error
    complaint = ' '.join((result.stderr or '').split())
    if result.returncode:
        raise SubstitutionError(
            f'$(command {line!r}) failed with exit code {result.returncode}: {complaint}'
        )
    if complaint and on_stderr == 'fail':
        raise SubstitutionError(f'$(command {line!r}) wrote to stderr: {complaint}')
    if complaint and on_stderr == 'warn':
        scope.warnings.append(f'$(command {line!r}) wrote to stderr: {complaint}')
    return result.stdout


def _file_content(arguments: Sequence[Template], scope: Scope) -> str:
    path = evaluate(arguments[0], scope)
    try:
        return Path(path).read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise SubstitutionError(f'$(file-content {path}) cannot be read: {error}') from error


def _find_exec(arguments: Sequence[Template], scope: Scope) -> str:
    name = evaluate(arguments[0], scope)
    found = shutil.which(name, path=scope.environment.get('PATH'))
    if found is None:
        raise SubstitutionError(f'$(find-exec {name}): there is no executable {name!r} on PATH')
    return found


def _exec_in_pkg(arguments: Sequence[Template], scope: Scope) -> str:
    name, package = (evaluate(argument, scope) for argument in arguments)
    return str(find_executable(package, name, scope.environment))


def _if(arguments: Sequence[Template], scope: Scope) -> str:
    if parse_flag(evaluate(arguments[0], scope)):
        return evaluate(arguments[1], scope)
    return evaluate(arguments[2], scope) if len(arguments) == 3 else ''


def _equals(arguments: Sequence[Template], scope: Scope) -> bool:
    left, right = (evaluate(argument, scope) for argument in arguments)
    words = ('true', 'false', '1', '0')
    if left.lower() in words and right.lower() in words:
        return (left.lower() in ('true', '1')) == (right.lower() in ('true', '1'))
    try:
        return math.isclose(float(left), float(right))
    except ValueError:
        return left == right


def _truth(function: Callable[[list[bool]], bool]) -> _Function:
    """Return a substitution of truth values."""

    def value(arguments: Sequence[Template], scope: Scope) -> str:
        flags = [parse_flag(evaluate(argument, scope)) for argument in arguments]
        return str(function(flags)).lower()

    return value


_Function = Callable[[Sequence[Template], Scope], str]

_FUNCTIONS: dict[str, tuple[int, int | None, _Function]] = {
    'all': (1, None, _truth(all)),
    'and': (2, 2, _truth(all)),
    'anon': (1, 1, _anon),
    'any': (1, None, _truth(any)),
    'command': (1, 2, _command),
    'dirname': (0, 0, lambda _, scope: str(scope.file.parent)),
    'env': (1, 2, _env),
    'equals': (2, 2, lambda arguments, scope: str(_equals(arguments, scope)).lower()),
    'eval': (1, 2, _eval),
    'exec-in-pkg': (2, 2, _exec_in_pkg),
    'file-content': (1, 1, _file_content),
    'filename': (0, 0, lambda _, scope: str(scope.file)),
    'find-exec': (1, 1, _find_exec),
    'find-pkg-prefix': (
        1,
        1,
        lambda arguments, scope: str(
            find_prefix(evaluate(arguments[0], scope), scope.environment)
        ),
    ),
    'find-pkg-share': (
        1,
        1,
        lambda arguments, scope: str(find_share(evaluate(arguments[0], scope), scope.environment)),
    ),
    'if': (2, 3, _if),
    'launch_log_dir': (0, 0, lambda _, scope: str(scope.log_directory)),
    'log_dir': (0, 0, lambda _, scope: str(scope.log_directory)),
    'not': (1, 1, _truth(lambda flags: not flags[0])),
    'not-equals': (2, 2, lambda arguments, scope: str(not _equals(arguments, scope)).lower()),
    'or': (2, 2, _truth(any)),
    'var': (1, 2, _var),
}
"""Fewest and most arguments, and the function, by name."""
