"""The figure of ``longreach plot --preset excavator``: as in Ozunlu 2009, figures 5.17 to 5.25."""

from __future__ import annotations

from longreach_dynamics.runs import Column, Derived, Source
from longreach_excavator.columns import COLUMNS, REACTIONS, size_of
from longreach_excavator.linkage import CYLINDERS
from longreach_tools.presets import Panel, Preset, Request

__all__ = ['preset']

_PINS = dict(zip(REACTIONS, ('boom and chassis', 'arm and boom', 'bucket and arm'), strict=True))


def preset(request: Request) -> Preset:
    """Return the figure of any excavator: its columns are the same for all files."""
    request.refuse_file()
    loads = [
        Column(
            f'load_{pin}',
            'N',
            'magnitude of the reaction',
            Derived(tuple(Source('reactions', f'force.{a}', pin) for a in 'xz'), size_of),
        )
        for pin in REACTIONS
    ]
    turns = [(f'_{joint}', name) for joint, name in zip((2, 3, 4), CYLINDERS, strict=True)]
    return Preset(
        (*COLUMNS, *loads),
        (
            Panel(
                'cylinders, soil',
                [*((f'force_{name}', name) for name in CYLINDERS), ('soil_force', 'soil')],
                'kN',
            ),
            Panel('in the joint', [(f'load_{pin}', _PINS[pin]) for pin in REACTIONS], 'kN'),
            Panel('rate', [(f'omega{end}', name) for end, name in turns], 'deg/s'),
            Panel('angle', [(f'theta{end}', name) for end, name in turns], 'deg'),
            Panel('soil in the\nbucket', [('bucket_mass', 'mass')]),
        ),
    )
