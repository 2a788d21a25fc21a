"""Charts of machines: the panels that they declare, or those of ``charts.yaml``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache, partial
from typing import Any

import numpy as np

from longreach_dynamics.errors import InputError
from longreach_dynamics.parameters import load_yaml
from longreach_dynamics.resources import share_directory
from longreach_machine import convert, curves_of
from longreach_tools.bag import absolute_name
from longreach_tools.presets import Preset, Request, load_preset, preset_names
from longreach_tools.signals import signals_of
from longreach_view.charts import Chart
from longreach_view.world import Line, Machine, World

_MOST = 6
_NUMBER = re.compile(r'\d+')
_KEYS = {'title', 'unit', 'scale', 'signals'}


def load_presets() -> dict[str, list[dict[str, Any]]]:
    """Return charts of machines without a declaration, of the installed ``charts.yaml``."""
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


def machine_charts(presets: dict[str, list[dict[str, Any]]], world: World) -> list[Chart]:
    """Return the charts of all machines: of ``presets``, else of the panels that one declares."""
    charts = []
    for machine in world.machines.values():
        declared = machine.kind in preset_names() - presets.keys()
        chosen = presets.get(machine.kind, presets['other'])
        found = _declared(machine, world) if declared else _preset(chosen, machine, world)
        for title, unit, scale, lines in found:
            for k in range(0, len(lines), _MOST):
                number = f' ({k // _MOST + 1})' if len(lines) > _MOST else ''
                name = f'{machine.name}: {title}{number}'.removeprefix(': ')
                charts.append(Chart(name, unit, scale, tuple(lines[k : k + _MOST])))
    return charts


def _preset(
    charts: Iterable[dict[str, Any]], machine: Machine, world: World
) -> Iterator[tuple[str, str, float, list[Line]]]:
    """Yield title, unit, scale and lines of charts of signals that exist."""
    prefix = f'/{machine.name}/' if machine.name else '/'
    own = [s.removeprefix(prefix) for s in world.signals() if s.startswith(prefix)]
    for chart in charts:
        patterns = (re.escape(p).replace(r'\*', r'[^\[\]]*') for p in chart['signals'])
        found = dict.fromkeys(s for p in patterns for s in own if re.fullmatch(p, s))
        lines = [Line(prefix + s, s.partition('.')[2]) for s in found]
        yield chart['title'], chart.get('unit', ''), float(chart.get('scale', 1.0)), lines


def _declared(machine: Machine, world: World) -> Iterator[tuple[str, str, float, list[Line]]]:
    """Yield title, unit, scale and lines of declared panels, as far as their signals exist."""
    try:
        if machine.robot is not None:
            preset = _of_machine(machine.kind)
        else:
            latest = machine.latest
            request = Request(None, lambda topic: latest[absolute_name(topic, machine.name)])
            preset = load_preset(machine.kind, request)
    except (InputError, KeyError):
        # No marker yet.
        return
    known = dict.fromkeys(world.signals())
    for panel in preset.panels:
        lines: list[Line] = []
        for column, curve in curves_of(panel, preset.columns):
            signals = signals_of(column, machine.name)
            function = getattr(column.source, 'function', None)
            topic, fields = signals[0].topic, tuple(s.field for s in signals)
            exist = known.keys() >= {f'{topic}.{field}' for field in fields}
            # Parameters that a function is bound to may be others than those of this machine.
            if exist and not isinstance(function, partial):
                name = f'{topic}.{column.name if function else fields[0]}'
                lines.append(Line(name, curve.label, curve.wanted, fields, function))
                # A panel has one unit. What is drawn from its start in small units is not here.
                unit = column.unit
        # Entries that differ in a number only, such as a beam more than the installed machine has.
        alike = {_NUMBER.sub('', line.signal) for line in lines if line.function is None}
        drawn = {line.signal for line in lines}
        lines += [
            Line(signal, signal.partition('.')[2])
            for signal in known
            if _NUMBER.sub('', signal) in alike and signal not in drawn
        ]
        if lines:
            shown = panel.unit if unit == 'rad' or not panel.relative else unit
            shown = shown or unit
            scale = float(convert(np.array(1.0), unit, shown))
            title = panel.label.replace('\n', ' ')
            yield title, '' if shown == '1' else shown, scale, lines


@cache
def _of_machine(kind: str) -> Preset:
    """Return the panels of an installed machine."""
    return load_preset(kind, Request(None, dict[str, Any]().__getitem__))
