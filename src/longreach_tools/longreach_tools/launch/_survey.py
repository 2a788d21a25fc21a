"""
Which arguments a launch file and the files that it includes declare.

Conditions are ignored, so that all of them are found; what cannot be evaluated is passed over.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from longreach_dynamics.errors import InputError

from ._attributes import pair, text
from ._functions import Scope
from ._model import Entity
from ._reader import read_launch_file

__all__ = ['Argument', 'choices_of', 'survey']


@dataclass(frozen=True)
class Argument:
    """A declared argument; ``default`` is the text in the file, None if one must be given."""

    name: str
    default: str | None
    description: str
    choices: tuple[str, ...]


def choices_of(entity: Entity) -> tuple[str, ...]:
    """Return the allowed values of an ``arg``, none if all are."""
    return tuple(child.literal('value', '') for child in entity.children_of('choice'))


def survey(
    path: Path, arguments: Mapping[str, str], environment: Mapping[str, str]
) -> dict[str, Argument]:
    """
    Return the declared arguments by name, in order.

    Parameters
    ----------
    path : Path
        The launch file.
    arguments : mapping
        Values of arguments, as far as they are given.
    environment : mapping
        Where packages are found.

    Raises
    ------
    InputError
        The file itself cannot be read.
    """
    found: dict[str, Argument] = {}
    scope = Scope(path, path.parent, dict(arguments), dict(environment))
    _visit(read_launch_file(path), scope, found, (path.resolve(),))
    return found


def _visit(
    entity: Entity, scope: Scope, found: dict[str, Argument], chain: tuple[Path, ...]
) -> None:
    """Collect the arguments below an entity; ``chain`` are the files that are open."""
    for child in entity.children:
        try:
            if child.tag == 'arg':
                _declare(child, scope, found)
            elif child.tag in ('let', 'include/arg', 'include/let'):
                name, value = pair(child, 'name', 'value', scope)
                scope.configurations[name] = value
            elif child.tag in ('group', 'timer'):
                _visit(child, scope, found, chain)
            elif child.tag == 'include':
                _include(child, scope, found, chain)
        except InputError:
            # Evaluation tells what is wrong, if this part takes part at all.
            continue


def _declare(entity: Entity, scope: Scope, found: dict[str, Argument]) -> None:
    """Note an argument, and its default for what follows."""
    name = entity.literal('name', '')
    default = entity.template('default')
    argument = Argument(
        name,
        None if default is None else default.source,
        entity.literal('description', ''),
        choices_of(entity),
    )
    found.setdefault(name, argument)
    if default is not None and name not in scope.configurations:
        scope.configurations[name] = text(entity, 'default', scope)


def _include(
    entity: Entity, scope: Scope, found: dict[str, Argument], chain: tuple[Path, ...]
) -> None:
    """Visit an included file, once in a chain of includes."""
    path = Path(text(entity, 'file', scope)).absolute()
    if path.resolve() in chain:
        return
    root = read_launch_file(path)
    before, scope.file = scope.file, path
    _visit(entity, scope, found, chain)
    _visit(root, scope, found, (*chain, path.resolve()))
    scope.file = before
