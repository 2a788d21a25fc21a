"""Figures of tracks, as in Henikl 2015, figures 14 and 15, and of their errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from longreach_markers.marker.detection import TRACKED
from longreach_tools.output import figure
from longreach_vision.io.messages import KINDS, STATUSES
from longreach_vision.io.track_table import Tracks
from longreach_vision.simulator.marker_path import MarkerPath

_MILLI = 1e3
# Number of points of a line of the truth, and its style.
_POINTS = 600
_TRUTH: dict[str, Any] = {'color': '0.45', 'linewidth': 1.0}
_TITLES = {'in_plane': 'error, in the plane [mm]', 'triangulated': 'error, triangulated [mm]'}


def draw_tracks(file: str | Path, tracks: Tracks, path: MarkerPath | None = None) -> None:
    """Draw the horizontal and vertical motion of all markers over time, Henikl 2015, figure 14."""
    time = tracks.times
    kinds = () if path is None else tuple(kind for kind in KINDS if _is_there(tracks, kind))
    with figure(file, size=(9.0, 6.0 + 2.2 * len(kinds)), rows=2 + len(kinds)) as axes:
        ahead, above, *below = axes
        for k, name in enumerate(tracks.names):
            colour = f'C{k}'
            found = tracks.positions(name, tracks.best_kind(name))
            known = found[np.isfinite(found[:, 0])]
            if not len(known):
                ahead.plot([], [], '.', color=colour, label=f'{name}: not seen')
                continue
            start = known[0]
            for axis, i in ((ahead, 0), (above, 2)):
                if path is not None:
                    fine = _fine(path, time)
                    axis.plot(fine, _truth(path, name, fine)[:, i] - start[i], **_TRUTH)
                label = f'{name}: {start[0]:z.1f}, {start[2]:z.1f} m'
                axis.plot(time, found[:, i] - start[i], '.', color=colour, ms=3.0, label=label)
                _mark_lost(axis, tracks, name, colour)
            for axis, kind in zip(below, kinds, strict=True):
                assert path is not None
                errors = tracks.positions(name, kind) - _truth(path, name, time)
                distances = _MILLI * np.linalg.norm(errors, axis=1)
                axis.plot(time, distances, '.', color=colour, ms=2.5)
        for axis, title in ((ahead, r'$\Delta x$ [m]'), (above, r'$\Delta z$ [m]')):
            axis.set_ylabel(title)
        for axis, kind in zip(below, kinds, strict=True):
            axis.set_ylabel(_TITLES[kind])
            axis.set_ylim(bottom=0.0)
        _finish(axes, time, 3, 'tracked from x, z; grey: truth' if path else 'tracked from x, z')


def draw_movement(
    file: str | Path, tracks: Tracks, name: str, path: MarkerPath | None = None
) -> None:
    """Draw the vertical motion of one marker from its initial position, Henikl 2015, figure 15."""
    time = tracks.times
    found = _MILLI * tracks.positions(name, tracks.best_kind(name))[:, 2]
    truth = None if path is None else _MILLI * _truth(path, name, time)[:, 2]
    rows = 1 if truth is None else 2
    with figure(file, size=(9.0, 3.0 * rows), rows=rows) as axes:
        known = np.flatnonzero(np.isfinite(found))
        begin = found[known[0]] if known.size else 0.0
        if path is not None and truth is not None:
            axes[1].set_ylabel('tracked - truth,\nless its mean [mm]')
            both = known[np.isfinite(truth[known])]
            if both.size:
                difference = found - truth
                mean = np.nanmean(difference)
                # The noise of one image would shift the whole line: use the truth as the origin.
                first = truth[both[0]]
                begin, fine = mean + first, _fine(path, time)
                line = _MILLI * (_truth(path, name, fine)[:, 2] - first / _MILLI)
                axes[0].plot(fine, line, label='truth', **_TRUTH)
                axes[1].plot(time, difference - mean, '.-', color='C0', ms=3.0, linewidth=0.6)
                scatter = float(np.nanstd(difference))
                title = f'bias {mean:.3f} mm, scatter {scatter:.3f} mm'
                axes[1].set_title(title, loc='right', fontsize=9)
        axes[0].plot(time, found - begin, '.-', color='C0', ms=4.0, linewidth=0.6, label=name)
        axes[0].set_ylabel(r'$\Delta z$ [mm]')
        _finish(axes, time, 2)


def _finish(axes: list[Any], time: np.ndarray, columns: int, title: str | None = None) -> None:
    axes[-1].set_xlabel('time [s]')
    if len(time) > 1:
        axes[-1].set_xlim(time[0], time[-1])
    place = {'loc': 'lower right', 'bbox_to_anchor': (1.0, 0.98), 'frameon': False}
    axes[0].legend(**place, ncols=columns, title=title, fontsize=9, title_fontsize=9)


def _is_there(tracks: Tracks, kind: str) -> bool:
    return any(np.isfinite(tracks.positions(name, kind)).any() for name in tracks.names)


def _truth(path: MarkerPath, name: str, times: np.ndarray) -> np.ndarray:
    """Return the true positions of a marker, shape (K, 3) [m], NaN outside the path's time."""
    own = path.of([name])
    first, last = own.times[[0, -1]]
    nowhere = np.full(3, np.nan)
    return np.array([own.at(time)[0][0] if first <= time <= last else nowhere for time in times])


def _fine(path: MarkerPath, times: np.ndarray) -> np.ndarray:
    """Return times at which the truth is drawn, over the range of some times."""
    return np.linspace(max(path.times[0], times[0]), min(path.times[-1], times[-1]), _POINTS)


def _mark_lost(axis: Any, tracks: Tracks, name: str, colour: str) -> None:
    away = tracks.column(name, 'status') != STATUSES.index(TRACKED)
    if away.any():
        axis.plot(
            tracks.times[away],
            np.full(int(away.sum()), 0.02),
            '|',
            color=colour,
            ms=6.0,
            transform=axis.get_xaxis_transform(),
        )
