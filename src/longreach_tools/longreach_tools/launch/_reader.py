"""
Read a launch file (XML) into a tree of checked entities.

Everything that can be known without arguments is checked here: the XML itself, tags, attributes,
literal values, the syntax of substitutions. Each complaint names file and line.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from xml.parsers import expat

from longreach_dynamics.errors import InputError

from ._functions import FUNCTIONS
from ._grammar import ACTIONS, ALIASES, TAGS, Tag
from ._model import Entity, Location, Template
from ._substitutions import SubstitutionError, parse_template, remove_escapes
from ._values import parse_flag

__all__ = ['read_launch_file']


@dataclass
class _Element:
    """An XML element as expat reports it."""

    tag: str
    attributes: dict[str, str]
    line: int
    children: list[_Element] = field(default_factory=list)


def read_launch_file(path: Path) -> Entity:
    """Return the element ``launch`` of a launch file."""
    if path.suffix != '.xml':
        raise Location(path, 1).unsupported(f'a launch file that is not XML ({path.suffix})')
    root = _read_xml(path)
    location = Location(path, root.line)
    if root.tag != 'launch':
        raise location.error(f'the outermost tag is <{root.tag}>; it must be <launch>')
    return _entity(root, 'launch', path)


def _read_xml(path: Path) -> _Element:
    """Return the root of an XML file."""
    try:
        content = path.read_bytes()
    except FileNotFoundError as error:
        raise InputError(f'{path}: there is no such launch file') from error
    except OSError as error:
        raise InputError(f'{path}: cannot be read: {error.strerror}') from error
    parser = expat.ParserCreate()
    parser.buffer_text = True
    # A holder above the root spares the special case of the first element.
    stack = [_Element('', {}, 0)]

    def start(tag: str, attributes: dict[str, str]) -> None:
        element = _Element(tag, attributes, parser.CurrentLineNumber)
        stack[-1].children.append(element)
        stack.append(element)

    def end(_tag: str) -> None:
        stack.pop()

    def text(data: str) -> None:
        if data.strip():
            shown = ' '.join(data.split())[:40]
            raise Location(path, parser.CurrentLineNumber).error(
                f'text {shown!r} inside <{stack[-1].tag}>; values belong into attributes'
            )

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = text
    try:
        parser.Parse(content, True)
    except expat.ExpatError as error:
        raise Location(path, error.lineno).error(
            f'not well-formed XML: {expat.ErrorString(error.code)}, column {error.offset + 1}'
        ) from error
    return stack[0].children[0]


def _entity(element: _Element, rule: str, path: Path) -> Entity:
    """Return the checked entity of an element; ``rule`` is its key in TAGS."""
    location = Location(path, element.line)
    tag = TAGS[rule]
    _check_names(element, tag, location)
    attributes = {
        name: _value(text, name, tag.attributes[name], location)
        for name, text in element.attributes.items()
    }
    children = [_child(child, element.tag, tag, path) for child in element.children]
    if rule == 'param':
        _check_param(element, location)
    return Entity(rule, location, attributes, tuple(children))


def _check_names(element: _Element, tag: Tag, location: Location) -> None:
    """Refuse unknown, missing and contradictory attributes."""
    for name in element.attributes:
        if name not in tag.attributes:
            allowed = ', '.join(sorted(tag.attributes)) or 'none'
            raise location.unsupported(
                f'the attribute {name!r} of <{element.tag}> (allowed: {allowed})'
            )
    for name in tag.required:
        if name not in element.attributes:
            raise location.error(f'<{element.tag}> needs the attribute {name!r}')
    if {'if', 'unless'} <= element.attributes.keys():
        raise location.error(f"<{element.tag}> has both 'if' and 'unless'; allowed: one of them")


def _child(element: _Element, parent: str, tag: Tag, path: Path) -> Entity:
    """Return the entity of a child, if it is one that its parent may have."""
    name = ALIASES.get(element.tag, element.tag)
    if name in tag.children:
        return _entity(element, tag.children[name], path)
    if tag.actions and name in ACTIONS:
        return _entity(element, name, path)
    allowed = ', '.join(sorted({*tag.children, *(ACTIONS if tag.actions else ())})) or 'none'
    raise Location(path, element.line).unsupported(
        f'<{element.tag}> inside <{parent}> (allowed: {allowed})'
    )


def _check_param(element: _Element, location: Location) -> None:
    """Refuse a param that is neither a value nor a file."""
    given = element.attributes.keys()
    if given != {'from'} and given not in ({'name', 'value'}, {'name', 'value', 'type'}):
        raise location.error("<param> needs 'name' and 'value' (and may have 'type'), or 'from'")


def _value(text: str, name: str, kind: str, location: Location) -> Template | str | bool | float:
    """Return an attribute's value as its kind demands."""
    if kind == 'template':
        try:
            template = parse_template(text)
        except SubstitutionError as error:
            raise location.error(f'{name}="{text}": {error}') from error
        for call in template.calls():
            if call not in FUNCTIONS:
                allowed = ', '.join(sorted(FUNCTIONS))
                raise location.unsupported(f'the substitution $({call}) (allowed: {allowed})')
        return template
    if kind == 'text':
        return remove_escapes(text)
    if kind == 'shutdown':
        if text != 'shutdown':
            raise location.error(f'{name}="{text}"; allowed: shutdown')
        return text
    try:
        if kind == 'flag':
            return parse_flag(text)
        number = int(text) if kind == 'count' else float(text)
    except ValueError:
        kinds = {
            'flag': 'true, false',
            'count': 'a whole number',
            'number': 'a number >= 0',
        }
        raise location.error(
            f'{name}="{text}"; allowed: {kinds[kind]} (no substitution)'
        ) from None
    if kind == 'number' and not (math.isfinite(number) and number >= 0.0):
        raise location.error(f'{name}="{text}"; allowed: a finite number >= 0')
    return number
