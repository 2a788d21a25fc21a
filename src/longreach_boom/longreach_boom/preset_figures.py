"""The figure of ``longreach plot --preset boom``: as in Henikl 2015, figures 13 and 14."""

from __future__ import annotations

from longreach_boom.parameters import load_boom
from longreach_boom.results import columns_of
from longreach_tools.presets import Panel, Preset, Request

__all__ = ['preset']


def preset(request: Request) -> Preset:
    """Return the figure of the boom in the requested file."""
    boom = load_boom(request.file)

    def panel(label: str, name: str, unit: str = '', relative: bool = False) -> Panel:
        curves = [(f'{name}_{i}', f'{i}') for i in range(1, boom.size + 1)]
        return Panel(label, curves, unit, relative)

    return Preset(
        columns_of(boom).recorded,
        (
            panel('cylinder force', 'force', 'kN'),
            panel('strain', 'strain', '1e-6'),
            panel('piston from\nits start', 'piston', 'mm', relative=True),
            panel('beam tip x from\nits start', 'tip_x', relative=True),
            panel('beam tip z from\nits start', 'tip_z', relative=True),
        ),
    )
