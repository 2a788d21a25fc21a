"""Panels: which columns belong together in a figure of a run or a recording; gaps in those."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from longreach_dynamics.errors import InputError
from longreach_machine.runs import Column, Columns

# An interval beyond this many periods is a gap: neither values nor lines go across it.
GAP = 5.0
# Least number of intervals that define a period, and least share of them that are at most half a
# period away from it; others are those of a topic that is published when something changes.
_FEWEST, _EVEN = 3, 0.75


class Curve(NamedTuple):
    """Columns that are drawn."""

    column: str  # the name of one, or the common name of several, such as ``q_*``
    label: str = '*'  # ``*`` stands for the part by which the names of several columns differ
    wanted: bool = False  # a set point, dashed
    optional: bool = False  # whether there are runs without these columns


class Panel(NamedTuple):
    """One of the axes of a figure; curves whose columns a recording lacks are left out."""

    label: str  # of the vertical axis, without the unit
    curves: Sequence[Curve]
    unit: str = ''  # of the axis, see :func:`longreach_machine.runs.convert`; empty: the columns'
    relative: bool = False  # whether figures draw curves from their first value
    limits: Sequence[str] = ()  # parameters whose values are drawn as lines, in figures of runs
    optional: bool = False  # left out of the figure of a run in which all of its curves are 0


class Lane(NamedTuple):
    """Times at which a column is above zero, as a bar in a strip below the panels."""

    column: str
    label: str
    alarm: bool = False  # red


def curves_of(panel: Panel, columns: Iterable[Column]) -> list[tuple[Column, Curve]]:
    """
    Return the columns of a panel, each with its curve and label.

    InputError for columns of several units, which have no axis in common.
    """
    known = list(columns)
    found = []
    for curve in panel.curves:
        for column in known:
            if curve.column in (column.name, column.family):
                shared = os.path.commonprefix((column.name, column.family))  # noqa: RUF071
                label = curve.label.replace('*', column.name.removeprefix(shared))
                found.append((column, curve._replace(label=label)))
    units = dict.fromkeys(column.unit for column, _ in found)
    if len(units) > 1:
        raise InputError(
            f'panel {panel.label!r} has curves in {", ".join(map(repr, units))}, allowed: one'
            ' unit; declare a panel for each'
        )
    return found


def check_curves(panels: Iterable[Panel], columns: Columns) -> None:
    """Raise InputError for a curve of a panel that a run lacks, unless it is optional."""
    names = {name for column in columns for name in (column.name, column.family)}
    for panel in panels:
        for curve in panel.curves:
            if curve.column not in names and not curve.optional:
                raise InputError(
                    f'panel {panel.label!r} has the curve {curve.column!r}, allowed:'
                    f' {", ".join(columns.names)}, or their families; correct its name, or declare'
                    ' it optional'
                )


def period_of(steps: np.ndarray) -> float:
    """Return the median of intervals (n,), 0 where they have no period."""
    if len(steps) < _FEWEST:
        return 0.0
    period = float(np.median(steps))
    return period if np.mean(np.abs(steps - period) <= 0.5 * period) >= _EVEN else 0.0


def with_gaps(time: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return times and values (n,) with an unknown value a period after the last before a gap."""
    period = period_of(np.diff(time))
    gaps = np.flatnonzero(np.diff(time) > GAP * period) if period else np.empty(0, dtype=int)
    return (
        np.insert(time, gaps + 1, time[gaps] + period),
        np.insert(np.asarray(values, dtype=float), gaps + 1, np.nan),
    )
