"""Figures of tracks, as in Henikl 2015, figures 14 and 15, and of their errors."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from longreach_machine import Curve, Lane, Panel
from longreach_machine.runs import Column
from longreach_markers.marker.detection import TRACKED
from longreach_tools.run_figure import draw_columns
from longreach_vision.io.messages import STATUSES
from longreach_vision.io.track_table import Tracks
from longreach_vision.simulator.marker_path import MarkerPath


def draw_tracks(
    file: Path, tracks: Tracks, path: MarkerPath | None = None, marker: str = ''
) -> None:
    """
    Draw the horizontal and vertical motion of all markers, Henikl 2015, figure 14.

    Of one ``marker`` only the vertical one, figure 15; beside the truth, if known, the errors.
    """
    names, axes = ((marker,), 'z') if marker else (tracks.names, 'xz')
    sides = {side: {'time': tracks.times} for side in ('tracked', 'truth')[: 1 + bool(path)]}
    for name in names:
        found = tracks.positions(name, tracks.best_kind(name))
        places = [found] if path is None else [found, _truth(path, name, tracks.times)]
        known = places[-1][np.isfinite(places[-1][:, 0])]
        for own, moved in zip(sides.values(), places, strict=True):
            for axis in axes:
                k = 'xyz'.index(axis)
                # Of both from the truth, as the noise of one image would shift the error.
                own[f'{name}_{axis}'] = moved[:, k] - (known[0, k] if len(known) else 0.0)
        lost = tracks.column(name, 'status') != STATUSES.index(TRACKED)
        sides['tracked'][f'{name}_lost'] = lost.astype(float)
    panels = []
    for axis in axes:
        curves = [Curve(f'{name}_{axis}', name) for name in names]
        panels.append(Panel(f'{axis} from its start', curves, 'mm'))
    draw_columns(
        file,
        panels,
        [Column(f'{name}_{axis}', 'm') for name in names for axis in axes],
        {side: own.__getitem__ for side, own in sides.items()},
        [Lane(f'{name}_lost', f'{name} not tracked') for name in names],
        differences=path is not None,
    )


def _truth(path: MarkerPath, name: str, times: np.ndarray) -> np.ndarray:
    """Return the true positions of a marker, shape (K, 3) [m], NaN outside the path's time."""
    own = path.of([name])
    first, last = own.times[[0, -1]]
    nowhere = np.full(3, np.nan)
    return np.array([own.at(time)[0][0] if first <= time <= last else nowhere for time in times])
