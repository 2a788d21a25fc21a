"""
Substitutions in launch files: their values.

Names and meanings are those of ROS 2 Jazzy, except that ``$(eval)`` knows operators only, and that
the values of substitutions are data in its expression, never code. Values are texts. An argument
is evaluated when its function asks for it, so that an unused default cannot fail.
"""

from __future__ import annotations

import ast
import math
import operator
import re
import shlex
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from longreach_dynamics.errors import InputError

from ._model import Template
from ._packages import find_prefix, find_share
from ._substitutions import SubstitutionError
from ._values import parse_flag

__all__ = ['FUNCTIONS', 'Scope', 'evaluate', 'evaluate_words']


@dataclass
class Scope:
    """
    What substitutions can see.

    ``configurations`` are the values of args and lets. ``parameters`` and ``remaps`` are those
    that set_parameter and set_remap gave to all nodes, as (name, YAML) and (from, to).
    """

    file: Path
    configurations: dict[str, str]
    environment: dict[str, str]
    warnings: list[str] = field(default_factory=list)
    parameters: tuple[tuple[str, str], ...] = ()
    remaps: tuple[tuple[str, str], ...] = ()


def evaluate(template: Template, scope: Scope) -> str:
    """
    Return the text of a template.

    Raises
    ------
    SubstitutionError
        A substitution has the wrong arguments or has no value.
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


# What stands in an expression for the value of a substitution.
_VALUE = re.compile('value_of_substitution_([0-9]+)_')
_OPERATORS: dict[type, Callable[..., object]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Not: operator.not_,
    ast.USub: operator.neg,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda item, group: item in group,
    ast.NotIn: lambda item, group: item not in group,
}


def _eval(arguments: Sequence[Template], scope: Scope) -> str:
    values: list[str] = []
    source = ''
    for part in arguments[0].parts:
        if isinstance(part, str):
            source += part
        else:
            source += f'value_of_substitution_{len(values)}_'
            values.append(_call(part.name, part.arguments, scope))
    try:
        return str(_expression(ast.parse(source.strip(), mode='eval').body, values))
    except (SyntaxError, TypeError, ArithmeticError) as error:
        shown = arguments[0].source
        raise SubstitutionError(f'$(eval {shown!r}): {error}') from error


def _expression(node: ast.expr, values: Sequence[str]) -> object:
    """Return the value of a part of an expression; ``values`` are those of substitutions."""

    def value(part: ast.expr) -> object:
        return _expression(part, values)

    match node:
        case ast.Constant(value=str() as text):
            return _VALUE.sub(lambda found: values[int(found[1])], text)
        case ast.Constant(value=constant):
            return constant
        case ast.Name(id=name) if found := _VALUE.fullmatch(name):
            return _literal(values[int(found[1])])
        case ast.Tuple(elts=items) | ast.List(elts=items):
            return [value(item) for item in items]
        case ast.IfExp(test=test, body=body, orelse=other):
            return value(body) if value(test) else value(other)
        case ast.BoolOp(op=op, values=[*parts, last]):
            for part in parts:
                operand = value(part)
                if bool(operand) == isinstance(op, ast.Or):
                    return operand
            return value(last)
        case ast.UnaryOp(op=op, operand=part) if type(op) in _OPERATORS:
            return _OPERATORS[type(op)](value(part))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return _OPERATORS[type(op)](value(left), value(right))
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _OPERATORS:
            return _OPERATORS[type(op)](value(left), value(right))
    raise SubstitutionError(
        f'$(eval): {ast.unparse(node)!r} is not supported; allowed: numbers, quoted texts,'
        ' + - * /, one comparison at a time, in, not, and, or, A if B else C'
    )


def _literal(text: str) -> object:
    """Return a text as it acts in an expression outside of quotes: a bool, a number or a text."""
    if text in ('true', 'false', 'True', 'False'):
        return text.lower() == 'true'
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


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


def _equals(arguments: Sequence[Template], scope: Scope) -> bool:
    left, right = (evaluate(argument, scope) for argument in arguments)
    words = ('true', 'false', '1', '0')
    if left.lower() in words and right.lower() in words:
        return (left.lower() in ('true', '1')) == (right.lower() in ('true', '1'))
    try:
        return math.isclose(float(left), float(right))
    except ValueError:
        return left == right


def _find(find: Callable[[str, dict[str, str]], Path]) -> _Function:
    """Return a substitution that finds a package."""
    return lambda arguments, scope: str(find(evaluate(arguments[0], scope), scope.environment))


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
    'env': (1, 2, _env),
    'equals': (2, 2, lambda arguments, scope: str(_equals(arguments, scope)).lower()),
    'eval': (1, 1, _eval),
    'find-pkg-prefix': (1, 1, _find(find_prefix)),
    'find-pkg-share': (1, 1, _find(find_share)),
    'if': (2, 3, _if),
    'not': (1, 1, _truth(lambda flags: not flags[0])),
    'not-equals': (2, 2, lambda arguments, scope: str(not _equals(arguments, scope)).lower()),
    'or': (2, 2, _truth(any)),
    'var': (1, 2, _var),
}
"""Fewest and most arguments, and the function, by name."""
