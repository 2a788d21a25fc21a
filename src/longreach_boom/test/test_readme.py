"""
The tables of parameters in the package's README are those of the nodes and of the boom file.
"""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from longreach_boom.controller_node import ControllerNodeParameters
from longreach_boom.parameters import BoomParameters
from longreach_boom.plant_node import PlantParameters
from longreach_boom.simulation import columns_of
from longreach_dynamics.parameters import Parameters, Rule, rule_of
from longreach_node.parameters import table

README = Path(__file__).resolve().parent.parent / 'README.md'


@pytest.mark.parametrize('cls', [PlantParameters, ControllerNodeParameters])
def test_readme_has_the_table_of_a_node(cls: type[Parameters]) -> None:
    assert table(cls) in README.read_text(encoding='utf-8')


def test_readme_has_the_table_of_the_boom_file() -> None:
    lines = ['| name | unit | default | allowed | meaning |', '| --- | --- | --- | --- | --- |']
    expected = '\n'.join([*lines, *rows_of(BoomParameters)])
    assert expected in README.read_text(encoding='utf-8'), f'the table shall be\n{expected}'


def test_readme_names_the_columns_of_a_csv_file(boom: BoomParameters) -> None:
    text = README.read_text(encoding='utf-8')
    for name in {column.replace('_1', '_i') for column in columns_of(boom)}:
        if not name[-1].isdigit():
            assert f'`{name}`' in text


def rows_of(cls: type[Parameters], prefix: str = '', unit: str = '') -> Iterator[str]:
    """Yield the rows of a class; numbers in it without a unit have that of what holds it."""
    hints = typing.get_type_hints(cls)
    for field in dataclasses.fields(cls):
        rule, kind = rule_of(field), hints[field.name]
        name = f'{prefix}{field.name}'
        inner, listed = _inner(kind)
        if isinstance(inner, type) and issubclass(inner, Parameters):
            yield from rows_of(inner, f'{name}.NAME.' if listed else f'{name}.', rule.unit)
            continue
        cells = (
            f'`{name}`',
            rule.unit or (unit if inner is float else ''),
            _default(field),
            _allowed(rule, inner, listed),
            rule.description,
        )
        yield '| ' + ' | '.join(cell.replace('|', '\\|') for cell in cells) + ' |'


def _inner(kind: Any) -> tuple[Any, bool]:
    """Return what a field holds one or many of, and whether it holds many."""
    arguments = [k for k in typing.get_args(kind) if k not in (type(None), ...)]
    if not arguments:
        return kind, False
    return arguments[0], typing.get_origin(kind) is tuple


def _default(field: dataclasses.Field[Any]) -> str:
    """Return a field's default as a boom file would have it."""
    if field.default is dataclasses.MISSING:
        return 'required'
    return {None: 'none', (): '`[]`', '': 'empty'}.get(field.default, f'`{field.default}`')


def _allowed(rule: Rule, kind: Any, listed: bool) -> str:
    """Return what is allowed, without the unit."""
    if kind is str:
        return rule.range_text() if rule.choices else 'a name'
    if typing.get_origin(kind) is tuple:
        return 'list of pairs'
    allowed = dataclasses.replace(rule, unit='').range_text()
    return f'list of {allowed}' if listed else allowed
