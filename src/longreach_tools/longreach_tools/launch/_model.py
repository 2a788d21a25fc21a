"""
The contents of a launch file, and the plan made from them.

A launch file is read into a tree of :class:`Entity` (one for each XML element, checked, with its
place in the file). Evaluating that tree with arguments gives a :class:`Plan`: processes to start
and lines to log. A plan has no side effects until it is run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from longreach_dynamics.errors import InputError

__all__ = [
    'Call',
    'Entity',
    'Location',
    'LogLine',
    'ParameterFile',
    'Plan',
    'ProcessSpecification',
    'Template',
    'UnsupportedError',
]


class UnsupportedError(InputError):
    """A launch file uses a feature that only ROS 2 launch has."""


@dataclass(frozen=True)
class Location:
    """A line of a launch file, counted from 1."""

    file: Path
    line: int

    def __str__(self) -> str:
        return f'{self.file}:{self.line}'

    def error(self, text: str) -> InputError:
        """Return an InputError that names this line."""
        return InputError(f'{self}: {text}')

    def unsupported(self, what: str) -> UnsupportedError:
        """Return the error for a feature that only ROS 2 launch has."""
        return UnsupportedError(
            f'{self}: {what} is not supported by longreach launch; install ROS 2 launch and use:'
            f' ros2 launch {self.file}'
        )


@dataclass(frozen=True)
class Call:
    """A substitution ``$(name argument ...)``."""

    name: str
    arguments: tuple[Template, ...]


@dataclass(frozen=True)
class Template:
    """A text with substitutions: literal pieces (escapes removed) and calls, in order."""

    source: str
    parts: tuple[str | Call, ...]

    def calls(self) -> Iterator[str]:
        """Yield the names of all substitutions, those within arguments too."""
        for part in self.parts:
            if isinstance(part, Call):
                yield part.name
                for argument in part.arguments:
                    yield from argument.calls()


@dataclass(frozen=True)
class Entity:
    """
    One XML element.

    Its tag, attributes and children are known to be allowed; the attributes have the types that
    the grammar gives them (Template, str, bool, int or float).
    """

    tag: str
    location: Location
    attributes: Mapping[str, Template | str | bool | float]
    children: tuple[Entity, ...]

    def template(self, name: str) -> Template | None:
        """Return an attribute that may have substitutions, None if it is not given."""
        return cast('Template | None', self.attributes.get(name))

    def literal(self, name: str, default: str) -> str:
        """Return an attribute without substitutions."""
        return cast('str', self.attributes.get(name, default))

    def flag(self, name: str, default: bool) -> bool:
        """Return an attribute that is true or false."""
        return cast('bool', self.attributes.get(name, default))

    def number(self, name: str, default: float) -> float:
        """Return an attribute that is a number."""
        return cast('float', self.attributes.get(name, default))

    def children_of(self, tag: str) -> list[Entity]:
        """Return the children with this tag, in order."""
        return [child for child in self.children if child.tag == tag]


@dataclass(frozen=True)
class ParameterFile:
    """The text of a parameter file that is written when its process starts."""

    text: str


@dataclass(frozen=True)
class ProcessSpecification:
    """
    A process to run.

    Times are in seconds. ``command`` is passed to the system word by word, or joined with spaces
    to one line for ``/bin/sh`` if ``shell`` is set. ``respawn_max_retries`` below zero means no
    limit. ``ends_all``: the whole launch ends with this process. ``output`` is a mode of
    ``_output``, or ``inherit``: the process has the output streams of the launch. ``node`` is the
    node's full name as far as the launch file gives it.
    """

    name: str
    command: tuple[str | ParameterFile, ...]
    environment: Mapping[str, str] = field(repr=False)
    shell: bool = False
    output: str = 'log'
    respawn: bool = False
    respawn_delay: float = 0.0
    respawn_max_retries: int = -1
    ends_all: bool = False
    sigterm_timeout: float = 5.0
    sigkill_timeout: float = 5.0
    node: str | None = None


@dataclass(frozen=True)
class LogLine:
    """A line to log."""

    message: str
    level: str = 'INFO'
    source: str = 'launch.user'


@dataclass(frozen=True)
class Plan:
    """Steps of a launch file with its arguments, in order."""

    steps: tuple[ProcessSpecification | LogLine, ...]

    @property
    def processes(self) -> tuple[ProcessSpecification, ...]:
        """The processes in the order of their start."""
        return tuple(step for step in self.steps if isinstance(step, ProcessSpecification))
