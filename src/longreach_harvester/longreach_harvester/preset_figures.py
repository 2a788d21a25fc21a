"""The figure of ``longreach plot --preset harvester``: angles, spools, pressures and flows."""

from __future__ import annotations

from longreach_harvester.parameters import JOINTS
from longreach_harvester.simulation import COLUMNS
from longreach_tools.presets import Panel, Preset, Request

__all__ = ['preset']


def preset(request: Request) -> Preset:
    """Return the figure of any harvester: its columns are the same for all files."""
    request.refuse_file()
    sides = [(f'{side}_{name}', f'{name} {side}') for name in JOINTS for side in (1, 2)]
    return Preset(
        COLUMNS,
        (
            Panel('angle', [(f'q_{name}', name) for name in JOINTS], 'deg'),
            Panel('spool', [(f'spool_{name}', name) for name in JOINTS]),
            Panel('pressure', [(f'p_{column}', label) for column, label in sides], 'bar'),
            Panel('flow', [(f'q_{column}', label) for column, label in sides], 'l/min'),
        ),
    )
