"""Panels: which columns of a machine belong together in a figure of a run or a recording."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from longreach_dynamics.runs import Column


class Curve(NamedTuple):
    """
    Columns that are drawn.

    Attributes
    ----------
    column : str
        Name of a column, or the common name of several, such as ``q_*``.
    label : str
        Of the curve; ``*`` stands for the part by which the names of several columns differ.
    wanted : bool
        Whether it is a set point, dashed.
    """

    column: str
    label: str = '*'
    wanted: bool = False


class Panel(NamedTuple):
    """
    One of the axes of a figure, one above the other.

    Attributes
    ----------
    label : str
        Of the vertical axis, without the unit.
    curves : sequence of Curve
        Those whose columns a run or a recording does not have are left out.
    unit : str
        Of the axis, see :func:`longreach_dynamics.runs.convert`; empty: that of the columns.
    relative : bool
        Whether curves are drawn from their first value.
    limits : sequence of str
        Parameters whose values are drawn as lines, in figures of runs.
    optional : bool
        Whether it is left out of the figure of a run in which all of its curves are 0.
    """

    label: str
    curves: Sequence[Curve]
    unit: str = ''
    relative: bool = False
    limits: Sequence[str] = ()
    optional: bool = False


class Lane(NamedTuple):
    """Times at which a column is not zero, as a bar in a strip below the panels."""

    column: str
    label: str


def curves_of(panel: Panel, columns: Iterable[Column]) -> list[tuple[Column, Curve]]:
    """Return the columns of a panel, each with its curve and label."""
    known = list(columns)
    found = []
    for curve in panel.curves:
        for column in known:
            if curve.column in (column.name, column.family):
                key = column.name[_common(column.name, column.family) :]
                found.append((column, curve._replace(label=curve.label.replace('*', key))))
    return found


def _common(one: str, other: str) -> int:
    """Return how many letters two names begin with in common."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((k for k, (a, b) in pairs if a != b), min(len(one), len(other)))
