"""The figure of ``longreach plot --preset links``: angles, torques and deflections."""

from __future__ import annotations

from longreach_symbolic.links import load_links
from longreach_symbolic.simulation import columns_of
from longreach_tools.presets import Panel, Preset, Request

__all__ = ['preset']


def preset(request: Request) -> Preset:
    """Return the figure of the links of a file."""
    columns = columns_of(load_links(request.file)).recorded

    def curves(family: str) -> list[tuple[str, str]]:
        return [(column.name, column.name) for column in columns if column.family == family]

    return Preset(
        columns,
        (
            Panel('motor angle', curves('motor_*'), 'deg'),
            Panel('torque', curves('torque_*')),
            Panel('deflection', curves('f_*'), 'mm'),
        ),
    )
