"""
Parameter objects: frozen dataclasses whose fields know their unit, bounds and source.

A class derives from :class:`Parameters` and declares each field with :func:`quantity` or
:func:`choice`. Construction converts and checks every field; :func:`from_mapping` and
:func:`load` build objects from YAML and refuse unknown, missing and impossible values by their
path. The same declarations drive the parameters of ROS nodes and the tables in the READMEs.

Values are SI units and radians.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import math
import operator
import pickle
import re
import reprlib
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import yaml

from longreach_dynamics.errors import InputError, named
from longreach_dynamics.resources import open_text

# Largest integer that is accepted; a float can represent it.
_LARGEST_INTEGER = 10**300

# Of a YAML file: characters, and values with those that aliases repeat.
_LARGEST_FILE = 4_000_000
_MOST_VALUES = 200_000

# Signs of relations between two fields, and what they allow.
_SIGNS = {
    '<': (operator.lt, 'below'),
    '<=': (operator.le, 'at most'),
    '>': (operator.gt, 'above'),
    '>=': (operator.ge, 'at least'),
}

# Shows a value that is not allowed, however large, in part.
_SHOWN = reprlib.Repr()
_SHOWN.maxstring = _SHOWN.maxother = _SHOWN.maxlong = 200
_SHOWN.maxlist = _SHOWN.maxtuple = _SHOWN.maxdict = 12
_SHOWN.maxlevel = 3


@dataclasses.dataclass(frozen=True)
class Rule:
    """Allowed values and meaning of a field."""

    description: str  # one line, for people
    unit: str = ''  # '1' for a pure number, '' for what has none
    at_least: float | None = None  # bounds; for a field of several values they hold for each
    above: float | None = None
    at_most: float | None = None
    below: float | None = None
    choices: tuple[str, ...] = ()  # the only texts allowed; empty for any
    length: int | None = None  # the number of values of a sequence
    source: str = ''  # where the value comes from
    read_only: bool = True  # as a node's parameter: fixed from the start on

    def range_text(self) -> str:
        """Return what is allowed, as in ``[0, 5) m``."""
        if self.choices:
            return ' | '.join(self.choices)
        low, high = '(-inf', 'inf)'
        if self.at_least is not None:
            low = f'[{self.at_least:g}'
        if self.above is not None:
            low = f'({self.above:g}'
        if self.at_most is not None:
            high = f'{self.at_most:g}]'
        if self.below is not None:
            high = f'{self.below:g})'
        return f'{low}, {high}{self.unit_text}'

    @property
    def unit_text(self) -> str:
        """The unit as it stands behind a number."""
        return '' if self.unit in ('', '1') else f' {self.unit}'

    @property
    def bounds(self) -> tuple[float, float]:
        """The least and the greatest number that is allowed."""
        low = -math.inf if self.at_least is None else self.at_least
        high = math.inf if self.at_most is None else self.at_most
        if self.above is not None:
            low = math.nextafter(self.above, math.inf)
        if self.below is not None:
            high = math.nextafter(self.below, -math.inf)
        return low, high

    def allows(self, value: float) -> bool:
        """Return whether a number is finite and within the bounds."""
        low, high = self.bounds
        return math.isfinite(value) and low <= value <= high


def quantity(
    description: str,
    unit: str = '1',
    *,
    default: Any = dataclasses.MISSING,
    kw_only: bool | None = None,
    **rule: Any,
) -> Any:
    """
    Declare a field: a number, a truth value, a text, a sequence, or another parameter object.

    Parameters
    ----------
    description : str
        One line, for people.
    unit : str
        Unit symbol; '1' for a pure number, '' for what has none.
    default : object, optional
        Without a default the field is required.
    kw_only : bool, optional
        True for a field with a default that derived classes follow with others.
    **rule
        Further fields of :class:`Rule`, such as the bounds ``at_least`` and ``below``.
    """
    keyword_only: Any = dataclasses.MISSING if kw_only is None else kw_only
    metadata = {'rule': Rule(description, unit, **rule)}
    return dataclasses.field(default=default, kw_only=keyword_only, metadata=metadata)


def choice(
    description: str, choices: Sequence[str], *, default: Any = dataclasses.MISSING, **rule: Any
) -> Any:
    """Declare a field whose value is one of a few texts; the rest as of :func:`quantity`."""
    return quantity(description, '', default=default, choices=tuple(choices), **rule)


@dataclasses.dataclass(frozen=True)
class Parameters:
    """
    Base of all parameter objects: converts and checks every field when made.

    ``relations`` of a class are conditions on two fields, such as ``'rod < bore'``, which hold
    where neither is None. A class with other conditions across fields overrides :meth:`check`.
    """

    relations: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        """Convert and check each field, then the object."""
        self._take(dict(vars(self)))

    def _take(self, values: Mapping[str, Any]) -> None:
        """Set fields to values that are converted and checked, then check the object."""
        own = vars(self)
        for name, (kind, rule) in _declared(type(self)).items():
            if name in values:
                own[name] = _converted(name, values[name], kind, rule)
        for cls in type(self).__mro__:
            for relation in vars(cls).get('relations', ()):
                self._check_relation(*relation.split())
        self.check()

    def _check_relation(self, name: str, sign: str, other: str) -> None:
        """Raise InputError where a relation of two fields does not hold."""
        value, limit, rule = vars(self)[name], vars(self)[other], _declared(type(self))[name][1]
        holds, words = _SIGNS[sign]
        if None not in (value, limit) and not holds(value, limit):
            unit = rule.unit_text
            allowed = f'{words} {other} = {limit:.12g}{unit}'
            raise InputError(f'{name} = {value:.12g}{unit}, allowed: {allowed}')

    def check(self) -> None:
        """Raise InputError when fields that are right by themselves contradict each other."""

    def replace(self, **changes: Any) -> Self:
        """Return a checked copy with other values; what is kept is not converted again."""
        kept = {name: getattr(self, name) for name in _declared(type(self))}
        if unknown := changes.keys() - kept.keys():
            raise TypeError(f'{type(self).__name__} has no {", ".join(sorted(unknown))}')
        new = object.__new__(type(self))
        vars(new).update(kept)
        new._take(changes)
        return new

    def with_value(self, path: str, value: Any) -> Self:
        """
        Return a checked copy with one value changed, however deep it lies.

        ``path`` has names between dots, as in a YAML file: ``oil.density``,
        ``beams.beam_2.length``; what stands in a list is meant by its name, or its number from 0
        on. ``value`` is what a YAML file could hold. InputError for a path that leads nowhere,
        with what would be allowed there, or a value that is not allowed.
        """
        return self.with_values({path: value})

    def with_values(self, changes: Mapping[str, Any]) -> Self:
        """Return a copy with values by path changed, checked when all of them are; InputError."""
        changed, inner = _parted(changes)
        for name in (*changed, *inner):
            if name not in _declared(type(self)):
                raise InputError(f'{name} is unknown, allowed here: {_names(type(self))}')
        for name, deeper in inner.items():
            before = self.replace(**{name: changed[name]}) if name in changed else self
            changed[name] = _deeper(getattr(before, name), deeper, name)
        return self.replace(**changed)

    def as_mapping(self) -> dict[str, Any]:
        """Return nested mappings and lists from which :func:`from_mapping` makes the same."""
        values = {}
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if field.default is dataclasses.MISSING or value != field.default:
                values[field.name] = _plain(value)
        return values


def _plain(value: Any) -> Any:
    """Return a value as what a YAML file can hold."""
    if isinstance(value, Parameters):
        return value.as_mapping()
    return [_plain(item) for item in value] if isinstance(value, tuple) else value


def _index(items: tuple[Any, ...], key: str, name: str) -> int:
    """Return where a list with a name has what is meant by a key, its name or its number."""
    names = [str(getattr(item, 'name', i)) for i, item in enumerate(items)]
    if key not in names and key not in map(str, range(len(items))):
        raise InputError(f'{name}.{key} is unknown, allowed here: {", ".join(names)}')
    return names.index(key) if key in names else int(key)


def place_of(values: Any, path: str) -> tuple[str, ...]:
    """Return a path of ``with_value`` with numbers for all names in lists, for comparisons."""
    found: tuple[str, ...] = ()
    for key in path.split('.'):
        if isinstance(values, tuple):
            index = _index(values, key, '.'.join(found))
            found, values = (*found, str(index)), values[index]
        else:
            found, values = (*found, key), getattr(values, key, None)
    return found


def value_at(values: Any, path: str) -> Any:
    """Return what ``with_value`` would change; None where the path leads nowhere."""
    for key in place_of(values, path):
        values = values[int(key)] if isinstance(values, tuple) else getattr(values, key, None)
    return values


def _parted(changes: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Return values by name, and by name those by path below it."""
    whole: dict[str, Any] = {}
    deeper: dict[str, dict[str, Any]] = {}
    for path, value in changes.items():
        name, _, rest = path.partition('.')
        if rest:
            deeper.setdefault(name, {})[rest] = value
        else:
            whole[name] = value
            # What was changed before in what is given as a whole now.
            deeper.pop(name, None)
    return whole, deeper


def _deeper(inner: Any, changes: Mapping[str, Any], name: str) -> Any:
    """Return an inner object or list with values changed; ``name`` goes before its errors."""
    if isinstance(inner, tuple):
        items = list(inner)
        whole, deeper = _parted(changes)
        for key, value in whole.items():
            items[_index(inner, key, name)] = value
        for key, below in deeper.items():
            index = _index(inner, key, name)
            items[index] = _deeper(items[index], below, f'{name}.{key}')
        return tuple(items)
    if not isinstance(inner, Parameters):
        raise InputError(f'{name}.{next(iter(changes))} is unknown, allowed here: {name}, a value')
    with named(f'{name}.'):
        return inner.with_values(changes)


def rule_of(field: dataclasses.Field[Any]) -> Rule:
    """Return the rule that a field was declared with."""
    rule: Rule = field.metadata.get('rule', Rule(field.name))
    return rule


def rules_of(*classes: type) -> dict[str, Rule]:
    """Return the rules of all fields of some classes by name."""
    return {field.name: rule_of(field) for cls in classes for field in dataclasses.fields(cls)}


@functools.cache
@typing.no_type_check
def _declared(cls: type) -> dict[str, tuple[Any, Rule]]:
    """Return type and rule of each field of a class by name."""
    types = field_types(cls)
    return {field.name: (types[field.name], rule_of(field)) for field in dataclasses.fields(cls)}


@functools.cache
@typing.no_type_check
def field_types(cls: type) -> dict[str, Any]:
    """Return the types of the fields of a class by name."""
    hints = typing.get_type_hints(cls)
    return {field.name: hints[field.name] for field in dataclasses.fields(cls)}


def _refusal(path: str, value: object, allowed: str) -> InputError:
    """Return the error of a value that is not allowed."""
    return InputError(f'{path} = {_SHOWN.repr(value)}, allowed: {allowed}')


def _converted(path: str, value: Any, kind: Any, rule: Rule) -> Any:
    """Return the value as the type of its field, or raise InputError with its path."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (types.UnionType, typing.Union):
        if value is None and type(None) in arguments:
            return None
        kind = next(k for k in arguments if k is not type(None))
        return _converted(path, value, kind, rule)
    if origin is tuple:
        return _converted_sequence(path, value, arguments[0], rule)
    if isinstance(kind, type) and issubclass(kind, Parameters):
        if isinstance(value, kind):
            return value
        if isinstance(value, Mapping):
            return from_mapping(kind, value, path)
        raise _refusal(path, value, 'a mapping with the keys ' + _names(kind))
    if kind is bool:
        if not isinstance(value, bool):
            raise _refusal(path, value, 'true | false')
        return value
    if kind is str:
        if not isinstance(value, str) or (rule.choices and value not in rule.choices):
            raise _refusal(path, value, rule.range_text() if rule.choices else 'a text')
        return value
    return _converted_number(path, value, kind, rule)


def _converted_sequence(path: str, value: Any, kind: Any, rule: Rule) -> tuple[Any, ...]:
    """Return a sequence as a tuple of converted elements."""
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise _refusal(path, value, 'a list')
    if rule.length is not None and len(value) != rule.length:
        raise InputError(f'{path} has {len(value)} values, allowed: {rule.length}')
    inner = dataclasses.replace(rule, length=2) if typing.get_origin(kind) is tuple else rule
    return tuple(
        _converted(f'{path}[{index}]', element, kind, inner) for index, element in enumerate(value)
    )


def _converted_number(path: str, value: Any, kind: type, rule: Rule) -> Any:
    """Return a number as int or float, or raise InputError."""
    # bool is a kind of int for Python, and a mistake here.
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if isinstance(value, int) and abs(value) > _LARGEST_INTEGER:
        raise _refusal(path, 'an integer of more than 300 digits', rule.range_text())
    if number and not rule.allows(value):
        raise _refusal(path, value, rule.range_text())
    if not number or (kind is int and value != int(value)):
        what = 'an integer' if kind is int else 'a number'
        raise _refusal(path, value, f'{what} in {rule.range_text()}')
    return kind(value)


def _names(cls: type) -> str:
    """Return the names of a parameter class's fields as a list for people."""
    return ', '.join(field.name for field in dataclasses.fields(cls))


T = typing.TypeVar('T', bound=Parameters)


def from_mapping(cls: type[T], mapping: Mapping[str, Any], path: str = '') -> T:
    """
    Build a parameter object from nested mappings, values by field name.

    InputError for an unknown key, a missing one, or a value that is not allowed, with its path,
    which begins with ``path``.
    """
    prefix = f'{path}.' if path else ''
    fields = _declared(cls)
    for key in mapping:
        if key not in fields:
            raise InputError(f'{prefix}{key} is unknown, allowed here: {_names(cls)}')
    required = {f.name for f in dataclasses.fields(cls) if f.default is dataclasses.MISSING}
    values = {}
    for name, (kind, rule) in fields.items():
        if name in mapping:
            values[name] = _converted(prefix + name, mapping[name], kind, rule)
        elif name in required:
            unit = f' [{rule.unit}]' if rule.unit else ''
            raise InputError(f'{prefix}{name} is missing: {rule.description}{unit}')
    try:
        return cls(**values)
    except InputError as error:
        # Single fields have been checked above: what is left is a contradiction between them.
        raise InputError(f'{path}: {error}' if path else str(error)) from error


def load(cls: type[T], file: str | Path, check: Callable[[T], object] | None = None) -> T:
    """
    Build a parameter object from a YAML file.

    A file with ``base: FILE``, a path from where it is, has the values of that file but for those
    that it gives itself; entries of lists are matched by their ``name``. ``check`` raises
    InputError for values that do not fit something outside the file. InputError, with file name
    and path of the key, for a file that cannot be read or holds something else.
    """
    values = _with_base(_read(file), Path(file))
    with named(f'{file}: '):
        loaded: T = _built(cls, pickle.dumps(values))  # type: ignore[arg-type]
        if check is not None:
            check(loaded)
    return loaded


@functools.lru_cache(maxsize=16)
def _built(cls: Any, values: bytes) -> Any:
    """Return the object of pickled values; a sweep reads the same file for each run."""
    return from_mapping(cls, pickle.loads(values))


def _with_base(values: dict[str, Any], file: Path) -> dict[str, Any]:
    """Return the values of a file on top of those of the file that it names as its base."""
    if 'base' not in values:
        return values
    base = values['base']
    if not isinstance(base, str):
        raise InputError(f'{file}: base = {base!r}, allowed: the name of a file beside this one')
    try:
        below = _read(file.parent / base)
    except InputError as error:
        raise InputError(
            f'{file}: base = {base!r}: {error}; copy that file beside this one, or give its path'
        ) from error
    if 'base' in below:
        raise InputError(f'{file}: base = {base!r} has a base itself, allowed: one that has none')
    own = {name: value for name, value in values.items() if name != 'base'}
    with named(f'{file}: '):
        merged: dict[str, Any] = _merged(below, own)
    return merged


def _merged(below: Any, above: Any) -> Any:
    """Return nested values with others on top: mappings by key, lists of mappings by name."""
    if isinstance(below, dict) and isinstance(above, dict):
        changed = {key: _merged(below.get(key), value) for key, value in above.items()}
        return {**below, **changed}
    # An empty list has no names: it takes the place of the one below.
    named = (
        above
        and isinstance(above, list)
        and isinstance(below, list)
        and all(isinstance(e, dict) and isinstance(e.get('name'), str) for e in [*below, *above])
    )
    if not named:
        return above
    known = [entry['name'] for entry in below]
    entries = {entry['name']: entry for entry in above}
    if len(entries) < len(above):
        names = ', '.join(entry['name'] for entry in above)
        raise InputError(f'entries with the names {names}, allowed: each name once')
    kept = [_merged(entry, entries.get(entry['name'], {})) for entry in below]
    return kept + [entry for entry in above if entry['name'] not in known]


class Loader(yaml.SafeLoader):
    """The numbers of YAML 1.2 (in 1.1 1e5 is a text and 1:30 is ninety), and no key twice."""

    yaml_implicit_resolvers = {  # noqa: RUF012
        first: [
            (tag, pattern)
            for tag, pattern in resolvers
            if tag.rpartition(':')[2] not in ('int', 'float', 'timestamp')
        ]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        self._count = 0
        self._counts: dict[yaml.Node, int] = {}

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        """Return a node; an alias counts as much as what it repeats."""
        mark = self.peek_event().start_mark
        before = self._count
        is_alias = self.check_event(yaml.AliasEvent)
        node = super().compose_node(parent, index)
        if node is None:
            return None
        if not is_alias:
            self._count += 1
            self._counts[node] = self._count - before
        elif node in self._counts:
            self._count += self._counts[node]
        else:
            raise yaml.composer.ComposerError(None, None, 'an alias contains itself', mark)
        if self._count > _MOST_VALUES:
            raise yaml.composer.ComposerError(
                None, None, f'more than {_MOST_VALUES} values, counting what aliases repeat', mark
            )
        return node

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Return a mapping, or raise for a key that stands twice."""
        seen = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, str | int | float | bool):
                raise yaml.constructor.ConstructorError(
                    None, None, 'a key must be a name', key_node.start_mark
                )
            if key in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f'the key {key!r} stands twice', key_node.start_mark
                )
            seen.add(key)
        return super().construct_mapping(node, deep)


for _tag, _pattern in (
    ('int', r'[-+]?(0|[1-9][0-9]*)$'),
    (
        'float',
        r'[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$|[-+]?\.(inf|Inf|INF)$|\.(nan|NaN|NAN)$',
    ),
):
    Loader.add_implicit_resolver(
        f'tag:yaml.org,2002:{_tag}', re.compile(_pattern), list('-+0123456789.')
    )


@functools.lru_cache(maxsize=8)
def _parsed(text: str) -> Any:
    """Return what a text contains; a sweep reads the same file for each run."""
    return yaml.load(text, Loader=Loader)


def load_yaml(file: str | Path) -> dict[str, Any]:
    """
    Read a YAML file whose top is a mapping.

    InputError when there is no such file, it is a device or too large, it is not YAML (with line
    and column), a key stands twice, an alias contains itself or all of them repeat too much, or
    the top is not a mapping.
    """
    return copy.deepcopy(_read(file))


def _read(file: str | Path) -> dict[str, Any]:
    """Return the values of a file, which others read, too."""
    path = Path(file)
    with open_text(path) as stream:
        text = stream.read(_LARGEST_FILE + 1)
    if len(text) > _LARGEST_FILE:
        raise InputError(
            f'{path} cannot be read: more than {_LARGEST_FILE} characters, allowed: a YAML file of'
            ' parameters'
        )
    try:
        values = _parsed(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f':{mark.line + 1}:{mark.column + 1}' if mark else ''
        raise InputError(f'{path}{where}: not valid YAML: {error.problem}') from error
    except (yaml.YAMLError, RecursionError, ValueError, AttributeError) as error:
        raise InputError(f'{path}: not valid YAML: {error}') from error
    if not isinstance(values, dict):
        raise InputError(f'{path}: the top of the file must be a mapping of names to values')
    return values
