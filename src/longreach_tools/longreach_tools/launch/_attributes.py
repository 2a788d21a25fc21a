"""Attributes of an entity, evaluated in a scope; every complaint names the place."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from ._functions import Scope, evaluate, evaluate_words
from ._model import Entity, Template
from ._substitutions import SubstitutionError
from ._values import parse_condition, parse_flag

__all__ = ['condition', 'flag', 'optional_text', 'pair', 'text', 'words']

_Result = TypeVar('_Result')


def optional_text(entity: Entity, name: str, scope: Scope) -> str | None:
    """Return an attribute's text, None if it is not given."""
    return _evaluate(entity, name, lambda template: evaluate(template, scope))


def text(entity: Entity, name: str, scope: Scope) -> str:
    """Return the text of an attribute that is given, or of one whose default is empty."""
    return optional_text(entity, name, scope) or ''


def pair(entity: Entity, first: str, second: str, scope: Scope) -> tuple[str, str]:
    """Return the texts of two attributes."""
    return text(entity, first, scope), text(entity, second, scope)


def words(entity: Entity, name: str, scope: Scope) -> list[str]:
    """Return an attribute's text as the words of a command line, none if it is not given."""
    return _evaluate(entity, name, lambda template: evaluate_words(template, scope)) or []


def flag(entity: Entity, name: str, scope: Scope) -> bool:
    """Return an attribute that is true or false; false if it is not given."""
    read = _evaluate(entity, name, lambda template: parse_flag(evaluate(template, scope)))
    return read or False


def condition(entity: Entity, scope: Scope) -> bool:
    """Return whether ``if`` and ``unless`` of an entity let it take part."""

    def read(template: Template) -> bool:
        return parse_condition(evaluate(template, scope))

    wanted, unwanted = _evaluate(entity, 'if', read), _evaluate(entity, 'unless', read)
    return wanted is not False and unwanted is not True


def _evaluate(entity: Entity, name: str, read: Callable[[Template], _Result]) -> _Result | None:
    """Return what ``read`` makes of an attribute, None if it is not given."""
    template = entity.template(name)
    if template is None:
        return None
    try:
        return read(template)
    except SubstitutionError as error:
        raise entity.location.error(f'{name}="{template.source}": {error}') from error
    except ValueError as error:
        shown = f'{name}="{template.source}"' if '$(' in template.source else name
        raise entity.location.error(f'{shown}: {error}') from error
