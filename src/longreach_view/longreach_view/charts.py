"""Charts: which signals are plotted together, and presets for each kind of machine."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from longreach_dynamics.errors import InputError
from longreach_dynamics.parameters import load_yaml
from longreach_dynamics.resources import share_directory

_MOST = 6
_ALL_DIGITS = 12
_KEYS = {'title', 'unit', 'scale', 'signals'}


class Chart(NamedTuple):
    """Signals in one chart, ``/topic.field``, with factor and unit of what is shown."""

    title: str
    unit: str
    scale: float
    signals: tuple[str, ...]
    digits: int = 4  # decimals that are shown

    @property
    def label(self) -> str:
        """Title and unit."""
        return f'{self.title} [{self.unit}]' if self.unit else self.title


def chart_of(signal: str) -> Chart:
    """Return the chart of a chosen signal, in the unit of its message."""
    return Chart(signal.lstrip('/'), '', 1.0, (signal,), _ALL_DIGITS)


def load_presets() -> dict[str, list[dict[str, Any]]]:
    """Return the presets by the name of a robot description, of the installed ``charts.yaml``."""
    path = share_directory('longreach_view') / 'config' / 'charts.yaml'
    presets: dict[str, list[dict[str, Any]]] = load_yaml(path)
    for kind, charts in presets.items():
        for chart in charts:
            if not {'title', 'signals'} <= chart.keys() <= _KEYS:
                raise InputError(
                    f'{path}: a chart of {kind} has {", ".join(chart)}; allowed: title, signals,'
                    ' unit, scale'
                )
    return presets


def preset_charts(
    presets: dict[str, list[dict[str, Any]]], machine: str, kind: str, signals: Iterable[str]
) -> list[Chart]:
    """
    Return the preset charts of a machine, by its namespace and kind, for the signals that exist.

    A kind without a preset is an ``other``.
    """
    prefix = f'/{machine}/' if machine else '/'
    own = [s.removeprefix(prefix) for s in signals if s.startswith(prefix)]
    charts = []
    for chart in presets.get(kind, presets['other']):
        found = [
            prefix + signal
            for pattern in chart['signals']
            for signal in own
            if re.fullmatch(re.escape(pattern).replace(r'\*', r'[^\[\]]*'), signal)
        ]
        if found:
            kept = tuple(dict.fromkeys(found))[:_MOST]
            unit, scale = chart.get('unit', ''), float(chart.get('scale', 1.0))
            charts.append(Chart(chart['title'], unit, scale, kept))
    return charts
