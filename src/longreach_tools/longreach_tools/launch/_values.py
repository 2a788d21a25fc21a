"""
Typed values from text, by the rules of YAML 1.1 as launch applies them.

Scalars are bool, int, float and str; all entries of a list have one type. ``10`` is an int and
``10.0`` a float; they are not converted into each other, because ROS refuses the wrong one.
"""

from __future__ import annotations

from collections.abc import Callable

__all__ = [
    'TYPES',
    'Value',
    'check_value',
    'convert',
    'dump_parameter',
    'parse_condition',
    'parse_flag',
    'plain_value',
]

Scalar = bool | int | float | str
Value = Scalar | list[Scalar]

TYPES: dict[str, type[Scalar] | None] = {
    'str': str,
    'bool': bool,
    'float': float,
    'int': int,
    'yaml': None,
}
"""Type of a parameter by the attribute ``type``; None: the type that YAML gives."""

_TRUE = ('true', 'yes', 'on')
_FALSE = ('false', 'no', 'off')


def parse_flag(text: str) -> bool:
    """Return a bool as YAML writes it: true, yes, on, 1, false, no, off, 0."""
    word = text.strip()
    if word in ('0', '1'):
        return word == '1'
    # YAML has three spellings of these words: true, True, TRUE.
    lower = word.lower()
    if word in (lower, lower.capitalize(), lower.upper()) and lower in (*_TRUE, *_FALSE):
        return lower in _TRUE
    raise ValueError(f'{text!r} is neither true nor false')


def parse_condition(text: str) -> bool:
    """Return the value of ``if`` and ``unless``: true, 1, false, 0 in any case."""
    word = text.strip().lower()
    if word in ('true', '1'):
        return True
    if word in ('false', '0'):
        return False
    raise ValueError(f'{text!r} is not a condition; allowed: true, false, 1, 0')


def plain_value(text: str) -> object:
    """Return the value of a YAML text."""
    import yaml  # not for launch files without parameters

    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(f'{text!r} is not YAML: {" ".join(str(error).split())}') from error


def convert(text: str, kind: str) -> Value:
    """Return the value of a parameter given as one text."""
    scalar = TYPES[kind]
    if scalar is None:
        return check_value(plain_value(text), text)
    if scalar is bool:
        return parse_flag(text)
    read: Callable[[str], Scalar] = scalar
    try:
        return read(text)
    except ValueError as error:
        raise ValueError(f'{text!r} is not of type {scalar.__name__}') from error


def check_value(value: object, text: str) -> Value:
    """Return a value if a parameter can have it."""
    if isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list):
        if len({type(item) for item in value}) > 1:
            raise ValueError(f'{text!r} is a list of several types; allowed: one type')
        if all(isinstance(item, bool | int | float | str) for item in value):
            return value
    found = 'empty' if value is None else f'a {type(value).__name__}'
    raise ValueError(f'{text!r} is {found}; allowed: bool, int, float, str or a list of these')


def dump_parameter(key: str, name: str, value: Value) -> str:
    """Return a parameter file with one parameter of the node ``key``, or of all: ``/**``."""
    import yaml

    text: str = yaml.safe_dump({key: {'ros__parameters': {name: value}}}, default_flow_style=False)
    return text
