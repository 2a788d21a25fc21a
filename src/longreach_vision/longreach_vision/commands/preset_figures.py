"""The figure of ``longreach plot --preset vision``: tracks of markers, without a truth."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from longreach_dynamics.errors import InputError
from longreach_machine import Curve, Lane, Panel
from longreach_machine.runs import Column, Derived, Source, each
from longreach_markers import TRACKED
from longreach_tools.presets import Preset, Request
from longreach_vision.io.track_table import STATUSES

_TOPIC = 'markers'


def preset(request: Request) -> Preset:
    """Return the figure of all markers of a recording."""
    names = [estimate.name for estimate in request.first(_TOPIC).estimates]
    if not names:
        raise InputError(f'{_TOPIC}: no marker in its first message; nothing to draw')

    def of_each(
        what: str, unit: str, meaning: str, field: str,
        function: Callable[[np.ndarray], np.ndarray] | None = None,
    ) -> list[Column]:  # fmt: skip
        sources = [Source(_TOPIC, f'estimates.{field}', name) for name in names]
        made = [Derived((one,), function) for one in sources] if function else sources
        return each(f'*_{what}', names, unit, meaning, made)

    def panel(label: str, what: str, relative: bool = False) -> Panel:
        return Panel(label, [Curve(f'{name}_{what}', name) for name in names], 'mm', relative)

    return Preset(
        [
            *of_each('x', 'm', 'position in the plane', 'in_plane.x'),
            *of_each('z', 'm', 'position in the plane', 'in_plane.z'),
            *of_each('deviation_x', 'm', 'standard deviation', 'in_plane_covariance[0]', _root),
            *of_each('deviation_z', 'm', 'standard deviation', 'in_plane_covariance[8]', _root),
            *of_each('out', 'm', 'distance from the plane', 'out_of_plane'),
            *of_each('untracked', '', 'not tracked', 'status', _is_untracked),
        ],
        (
            panel('x', 'x', relative=True),
            panel('z', 'z', relative=True),
            panel('deviation of x', 'deviation_x'),
            panel('deviation of z', 'deviation_z'),
            panel('out of plane', 'out'),
        ),
        [Lane(f'{name}_untracked', f'{name} not tracked') for name in names],
        intervals=_TOPIC,
    )


def _root(values: np.ndarray) -> np.ndarray:
    return np.asarray(np.sqrt(np.where(values[:, 0] >= 0.0, values[:, 0], np.nan)))


def _is_untracked(values: np.ndarray) -> np.ndarray:
    return np.asarray(values[:, 0] != STATUSES.index(TRACKED), dtype=float)
