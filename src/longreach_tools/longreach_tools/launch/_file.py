"""
Read a launch file (XML) into checked elements, and evaluate the substitutions in their attributes.

``$(name argument ...)`` may stand anywhere in an attribute. Arguments are separated by one space;
those with spaces, parentheses or quotes are in quotes, which do not nest.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
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
    'param': ('name value', 'type', ''),
    'push_ros_namespace': ('namespace', '', ''),
    'remap': ('from to', '', ''),
}
# What is called: a name, and arguments without calls; a mark stands for the value of one.
_WORD = r"""'(?:(?!\$\()[^'])*'|"(?:(?!\$\()[^"])*"|[^\s'"()]+"""
_CALL = re.compile(rf'\$\(([\w-]+)((?: (?:{_WORD}))*)\)')
_MARK = re.compile('\0(\\d+)\0')


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
    for name in attributes:
        if name not in known:
            raise element.error(unknown(f'the attribute {name!r} of <{tag}>', known))
    for name in required.split():
        if name not in attributes:
            raise element.error(f'<{tag}> needs the attribute {name!r}')
    if {'if', 'unless'} <= attributes.keys():
        raise element.error(f"<{tag}> has both 'if' and 'unless'; allowed: one of them")
    return element


# --- substitutions --------------------------------------------------------------------------


# Puts values in place of marks.
Filling = Callable[[str], str]


def substituted(text: str, call: Callable[[str, Sequence[str]], str]) -> tuple[str, Filling]:
    """
    Return a text with marks for its substitutions, and what puts in their values.

    ``call`` returns the value of a substitution, from its name and arguments. InputError for what
    is none, and for a backslash, by which ROS 2 launch takes the next character as it stands.
    """
    values: list[str] = []

    def fill(part: str) -> str:
        return _MARK.sub(lambda mark: values[int(mark[1])], part)

    # The innermost first; values are not read again.
    while found := _CALL.search(text):
        words = [fill(word.strip(word[0]) if word[0] in '\'"' else word)
                 for word in re.findall(_WORD, found[2])]  # fmt: skip
        values.append(call(found[1], words))
        text = f'{text[: found.start()]}\0{len(values) - 1}\0{text[found.end() :]}'
    if wrong := re.search(r'\$\(|\\', text):
        raise InputError(
            f'{fill(text[wrong.start() :])!r} is no substitution that is known here: $(name'
            ' argument ...), arguments with spaces, parentheses or quotes in quotes; use ros2'
            ' launch'
        )
    return text, fill
