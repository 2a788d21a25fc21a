"""
The arguments that a launch file and its includes declare, and checks of given values.

Conditions are ignored, so that all arguments are found; what cannot be evaluated is skipped.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from longreach_dynamics.errors import InputError

from ._attributes import pair, text
from ._functions import Scope
from ._model import Entity
from ._reader import read_launch_file

__all__ = [
    'BUILT_IN',
    'Argument',
    'check_given',
    'choices_of',
    'refuse_for_real_launch',
    'refuse_unknown',
    'survey',
]

BUILT_IN = ('network',)
"""Arguments that every launch file has, declared or not."""
_OF_REAL_LAUNCH = (
    'emulate_tty',
    'launch-prefix',
    'launch-prefix-filter',
    'sigkill_timeout',
    'sigterm_timeout',
)


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
    return _Survey(path, arguments, environment).found


def check_given(path: Path, arguments: Mapping[str, str], environment: Mapping[str, str]) -> None:
    """Check that given arguments are declared, and have one of the allowed values."""
    seen = _Survey(path, arguments, environment)
    choices = {name: each.choices for name, each in seen.found.items()}
    refuse_for_real_launch(path, arguments, choices, seen.complete)


def refuse_for_real_launch(
    path: Path,
    arguments: Mapping[str, str],
    choices: Mapping[str, Sequence[str] | None],
    complete: bool,
) -> None:
    """Raise an InputError for arguments that do not fit, before real launch runs a file."""
    if complete:
        refuse_unknown(path, arguments, [*choices, *_OF_REAL_LAUNCH])
    for name, value in arguments.items():
        allowed = choices.get(name)
        if allowed and value not in allowed:
            raise InputError(
                f'{path}: argument {name!r} is {value!r}; allowed: {", ".join(allowed)}'
            )


def refuse_unknown(path: Path, arguments: Mapping[str, str], known: Collection[str]) -> None:
    """Raise an InputError for an argument that no file declares."""
    for name in arguments:
        if name not in known and name not in BUILT_IN:
            allowed = ', '.join(sorted({*known} - {*_OF_REAL_LAUNCH})) or 'none'
            raise InputError(f'{path}: no argument {name!r}; allowed: {allowed}')


class _Survey:
    """A walk through a launch file and what it includes; parameters as of :func:`survey`."""

    def __init__(
        self, path: Path, arguments: Mapping[str, str], environment: Mapping[str, str]
    ) -> None:
        self.found: dict[str, Argument] = {}
        self.complete = True
        self._scope = Scope(path, dict(arguments), dict(environment))
        self._visit(read_launch_file(path), (path.resolve(),))

    def _visit(self, entity: Entity, chain: tuple[Path, ...]) -> None:
        """Collect the arguments below an entity; ``chain`` are the files that are open."""
        for child in entity.children:
            try:
                if child.tag == 'arg':
                    self._declare(child)
                elif child.tag in ('let', 'include/arg'):
                    name, value = pair(child, 'name', 'value', self._scope)
                    self._scope.configurations[name] = value
                elif child.tag == 'group':
                    self._visit(child, chain)
                elif child.tag == 'include':
                    self._include(child, chain)
            except InputError:
                # Evaluation reports the error, if this part is used at all.
                self.complete = self.complete and child.tag != 'include'

    def _declare(self, entity: Entity) -> None:
        """Note an argument, and its default for what follows."""
        name = entity.literal('name', '')
        default = entity.template('default')
        argument = Argument(
            name,
            None if default is None else default.source,
            entity.literal('description', ''),
            choices_of(entity),
        )
        self.found.setdefault(name, argument)
        if default is not None and name not in self._scope.configurations:
            self._scope.configurations[name] = text(entity, 'default', self._scope)

    def _include(self, entity: Entity, chain: tuple[Path, ...]) -> None:
        """Visit an included file, once in a chain of includes."""
        path = Path(text(entity, 'file', self._scope)).absolute()
        if path.resolve() in chain:
            return
        root = read_launch_file(path)
        before, self._scope.file = self._scope.file, path
        self._visit(entity, chain)
        self._visit(root, (*chain, path.resolve()))
        self._scope.file = before
