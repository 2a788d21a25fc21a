"""
Read a launch file (XML) into checked elements, and parse the substitutions in their attributes.

``$(name argument ...)`` may stand anywhere in an attribute. Arguments are separated by one space;
those with spaces, parentheses or quotes are in quotes, which do not nest. A backslash takes the
next character as it stands.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple
from xml.parsers import expat

from longreach_dynamics.errors import InputError

_PROCESS = 'name on_exit output respawn respawn_delay respawn_max_retries'
_ACTIONS = 'arg executable group include let node push_ros_namespace'
# Required and optional attributes, and children; on actions also if and unless.
_TAGS = {
    'file': ('', '', 'launch'),
    'launch': ('', 'version', _ACTIONS),
    'arg': ('name', 'default description', 'choice'),
    'choice': ('value', '', ''),
    'executable': ('cmd', _PROCESS, ''),
    'group': ('', '', _ACTIONS),
    'include': ('file', '', 'arg'),
    'include/arg': ('name value', '', ''),
    'let': ('name value', '', ''),
    'node': ('pkg exec', f'{_PROCESS} args namespace', 'param remap'),
    'param': ('', 'from name value type', ''),
    'push_ros_namespace': ('namespace', '', ''),
    'remap': ('from to', '', ''),
}
# Fewest and most arguments of substitutions.
_FUNCTIONS = {
    'and': (2, 2),
    'command': (1, 1),
    'dirname': (0, 0),
    'equals': (2, 2),
    'find-pkg-share': (1, 1),
    'if': (2, 3),
    'not': (1, 1),
    'or': (2, 2),
    'var': (1, 2),
}


def unknown(what: str, allowed: Iterable[str]) -> str:
    """Return the complaint about something that only ROS 2 launch may know."""
    return f'{what} is not known here (allowed: {", ".join(allowed) or "none"}); use ros2 launch'


# --- elements -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Element:
    """One XML element; ``tag`` is its key in the grammar, ``place`` file and line."""

    tag: str
    attributes: dict[str, str]
    place: str
    children: list[Element] = field(default_factory=list)

    def error(self, text: str) -> InputError:
        """Return an InputError that names the place."""
        return InputError(f'{self.place}: {text}')

    def children_of(self, tag: str) -> list[Element]:
        """Return the children with this tag."""
        return [child for child in self.children if child.tag == tag]


def read_launch_file(path: Path) -> Element:
    """Return the element ``launch`` of a launch file."""
    if path.suffix != '.xml':
        raise InputError(f'{path} is not a launch file in XML; use ros2 launch {path}')
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f'{path}: cannot be read: {error.strerror}') from error
    parser = expat.ParserCreate()
    parser.buffer_text = True
    stack = [Element('file', {}, str(path))]

    def start(tag: str, attributes: dict[str, str]) -> None:
        element = _checked(tag, attributes, stack[-1], f'{path}:{parser.CurrentLineNumber}')
        stack[-1].children.append(element)
        stack.append(element)

    def end(_tag: str) -> None:
        stack.pop()

    def text(data: str) -> None:
        if data.strip():
            shown = ' '.join(data.split())[:40]
            raise InputError(
                f'{path}:{parser.CurrentLineNumber}: text {shown!r} inside <{stack[-1].tag}>; '
                'values belong into attributes'
            )

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = text
    try:
        parser.Parse(content, True)
    except expat.ExpatError as error:
        raise InputError(
            f'{path}:{error.lineno}: not well-formed XML: {expat.ErrorString(error.code)}, '
            f'column {error.offset + 1}'
        ) from error
    return stack[0].children[0]


def _checked(tag: str, attributes: dict[str, str], parent: Element, place: str) -> Element:
    """Return an element whose tag and attributes are allowed below its parent."""
    allowed = _TAGS[parent.tag][2].split()
    if tag not in allowed:
        raise InputError(f'{place}: {unknown(f"<{tag}> inside <{parent.tag}>", allowed)}')
    element = Element('include/arg' if parent.tag == 'include' else tag, attributes, place)
    required, optional, _ = _TAGS[element.tag]
    known = [*required.split(), *optional.split()]
    if element.tag in _ACTIONS.split():
        known += ['if', 'unless']
    for name, source in attributes.items():
        if name not in known:
            raise element.error(unknown(f'the attribute {name!r} of <{tag}>', known))
        try:
            parse(source)
        except InputError as error:
            raise element.error(f'{name}="{source}": {error}') from error
    for name in required.split():
        if name not in attributes:
            raise element.error(f'<{tag}> needs the attribute {name!r}')
    if {'if', 'unless'} <= attributes.keys():
        raise element.error(f"<{tag}> has both 'if' and 'unless'; allowed: one of them")
    if tag == 'param' and attributes.keys() - {'type'} not in ({'from'}, {'name', 'value'}):
        raise element.error("<param> needs 'name' and 'value' (and may have 'type'), or 'from'")
    return element


# --- substitutions --------------------------------------------------------------------------


class Call(NamedTuple):
    """A substitution; the arguments have substitutions themselves."""

    name: str
    arguments: tuple[Parts, ...]


# Literal pieces without escapes, and calls, in order.
Parts = tuple[str | Call, ...]


@functools.cache
def parse(text: str) -> Parts:
    """Return the pieces of a text; raises InputError."""
    return _parts(text, 0, stop='', quoted=False)[0]


def _parts(text: str, at: int, stop: str, *, quoted: bool, refuse: str = '') -> tuple[Parts, int]:
    """Read up to a character of ``stop`` or to the end; return the pieces and the position."""
    parts: list[str | Call] = []
    while at < len(text) and text[at] not in stop:
        if text.startswith('$(', at):
            call, at = _call(text, at, quoted=quoted)
            parts.append(call)
            continue
        if text[at] in refuse:
            raise InputError(
                f'{text[at]!r} at column {at + 1} inside a substitution; '
                'put the argument in quotes or a backslash before the character'
            )
        if text[at] == '\\' and at + 1 < len(text):
            at += 1
        if parts and isinstance(parts[-1], str):
            parts[-1] += text[at]
        else:
            parts.append(text[at])
        at += 1
    return tuple(parts), at


def _call(text: str, start: int, *, quoted: bool) -> tuple[Call, int]:
    """Read ``$(name argument ...)``."""
    name = re.split('[ )]', text[start + 2 :], maxsplit=1)[0]
    at = start + 2 + len(name)
    if name not in _FUNCTIONS:
        raise InputError(unknown(f'the substitution $({name})', _FUNCTIONS))
    arguments = []
    while text.startswith(' ', at):
        argument, at = _argument(text, at + 1, quoted=quoted)
        arguments.append(argument)
    if not text.startswith(')', at):
        raise InputError(f'"$({name}" at column {start + 1}: no ")" at column {at + 1}')
    least, most = _FUNCTIONS[name]
    if not least <= len(arguments) <= most:
        raise InputError(
            f'$({name}) got {len(arguments)} arguments, allowed: {least} to {most};'
            ' one with spaces needs quotes'
        )
    return Call(name, tuple(arguments)), at + 1


def _argument(text: str, start: int, *, quoted: bool) -> tuple[Parts, int]:
    """Read one argument, in quotes or not."""
    mark = text[start : start + 1]
    if mark and mark in '\'"' and not quoted:
        parts, at = _parts(text, start + 1, mark, quoted=True)
        if at == len(text):
            raise InputError(f'the quote {mark} at column {start + 1} is not closed')
        return parts, at + 1
    parts, at = _parts(text, start, ' )', quoted=quoted, refuse='(\'"')
    if not parts:
        raise InputError(
            f'empty argument at column {start + 1}; arguments are separated by one space'
        )
    return parts, at
