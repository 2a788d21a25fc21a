"""
The figure of ``longreach plot --preset vision``: tracks of markers, without a truth.

Positions from their first value, the standard deviations that the tracker states for them, how far
markers are out of the plane, when none was seen, and the intervals between pairs of images.
"""

from __future__ import annotations

import numpy as np

from longreach_dynamics.errors import InputError
from longreach_machine import Curve, Lane, Panel
from longreach_machine.runs import Column, Derived, Source
from longreach_markers.marker.detection import TRACKED
from longreach_tools.presets import Preset, Request
from longreach_vision.io.messages import STATUSES

_TOPIC = 'markers'


def preset(request: Request) -> Preset:
    """Return the figure of all markers of a recording."""
    names = [estimate.name for estimate in request.first(_TOPIC).estimates]
    if not names:
        raise InputError(f'{_TOPIC}: no marker in its first message; nothing to draw')
    columns = []
    for name in names:

        def source(field: str, name: str = name) -> Source:
            return Source(_TOPIC, f'estimates.{field}', name)

        for axis, place in (('x', 0), ('z', 8)):
            variance = source(f'in_plane_covariance[{place}]')
            columns += [
                Column(f'{name}_{axis}', 'm', 'position in the plane', source(f'in_plane.{axis}')),
                Column(
                    f'{name}_deviation_{axis}',
                    'm',
                    'its standard deviation',
                    Derived((variance,), _root),
                ),
            ]
        columns.append(
            Column(f'{name}_out', 'm', 'distance from the plane', source('out_of_plane'))
        )
        status = Derived((source('status'),), _is_untracked)
        columns.append(Column(f'{name}_untracked', '', 'not tracked', status))

    def panel(label: str, what: str, unit: str, relative: bool = False) -> Panel:
        return Panel(label, [Curve(f'{name}_{what}', name) for name in names], unit, relative)

    return Preset(
        columns,
        (
            panel('x', 'x', 'mm', relative=True),
            panel('z', 'z', 'mm', relative=True),
            panel('deviation of x', 'deviation_x', 'mm'),
            panel('deviation of z', 'deviation_z', 'mm'),
            panel('out of plane', 'out', 'mm'),
        ),
        [Lane(f'{name}_untracked', f'{name} not tracked') for name in names],
        intervals=_TOPIC,
    )


def _root(values: np.ndarray) -> np.ndarray:
    return np.asarray(np.sqrt(np.where(values[:, 0] >= 0.0, values[:, 0], np.nan)))


def _is_untracked(values: np.ndarray) -> np.ndarray:
    return np.asarray(values[:, 0] != STATUSES.index(TRACKED), dtype=float)
