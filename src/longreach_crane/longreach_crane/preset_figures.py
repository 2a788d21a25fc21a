"""The figure of ``longreach plot --preset crane``: position, angle and force, as C13R asks for."""

from __future__ import annotations

from longreach_crane.parameters import load_machinery
from longreach_crane.results import SET_POINT, columns_of
from longreach_tools.presets import Panel, Preset, Request

__all__ = ['preset']


def preset(request: Request) -> Preset:
    """Return the figure of the crane in the requested file."""
    crane = load_machinery(request.file).crane
    return Preset(
        (*columns_of(crane), SET_POINT),
        (
            Panel(
                'position',
                (('load_position', 'load'), ('car_position', 'car'), ('set_point', 'set point')),
            ),
            Panel('angle', (('angle', 'cable'),), 'deg'),
            Panel('force', (('command', 'desired'), ('motor_force', 'motor'))),
        ),
    )
