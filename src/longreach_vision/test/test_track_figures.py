"""What the pictures of tracks show: lines are read from the axes."""

import contextlib
import warnings

import numpy as np
import pytest
from small_path import small_path
from small_rig import frame_at
from test_track_table import tracks_of as table_of

from longreach_vision.commands import track_figures
from longreach_vision.commands.track_figures import draw_movement, draw_tracks
from longreach_vision.simulator.marker_path import MarkerPath


@pytest.fixture
def drawn(monkeypatch):
    kept = []
    whole = track_figures.figure

    @contextlib.contextmanager
    def figure(*words, **options):
        with whole(*words, **options) as axes:
            kept.append(axes)
            yield axes

    monkeypatch.setattr(track_figures, 'figure', figure)
    return kept


def tracks_of(*statuses, shift=0.0):
    return table_of(*(frame_at(0.1 * k, one, shift=shift * k) for k, one in enumerate(statuses)))


def series(axis, label):
    (line,) = [one for one in axis.lines if one.get_label().startswith(label)]
    return np.asarray(line.get_ydata(), float)


def test_markers_over_time(drawn, tmp_path):
    tracks = tracks_of('TRACKED', 'LOST', 'TRACKED', 'UNCERTAIN', shift=0.01)
    draw_tracks(tmp_path / 'a.png', tracks)
    assert (tmp_path / 'a.png').read_bytes().startswith(b'\x89PNG')
    (axes,) = drawn
    ahead, above = axes
    np.testing.assert_allclose(series(ahead, 'one'), [0.0, 0.01, 0.02, 0.03], atol=1e-12)
    np.testing.assert_allclose(series(ahead, 'two'), [0.0, np.nan, 0.02, np.nan], atol=1e-12)
    np.testing.assert_allclose(series(above, 'one'), 0.0, atol=1e-12)
    # Ticks tell when it was not tracked.
    ticks = [line.get_xdata() for line in above.lines if line.get_marker() == '|']
    np.testing.assert_allclose(ticks, [[0.1, 0.3]])


def test_beside_the_truth_there_are_errors_in_millimetres(drawn, tmp_path):
    tracks = tracks_of('TRACKED', 'TRACKED', 'LOST', shift=0.001)
    path = small_path(0.5, speed=0.0).moved('one', np.array([0.0, 0.002, 0.0]))
    draw_tracks(tmp_path / 'a.svg', tracks, path)
    ((_, _, plane, space),) = drawn
    np.testing.assert_allclose(plane.lines[0].get_ydata(), [2.0, np.sqrt(5.0), np.sqrt(8.0)])
    np.testing.assert_allclose(plane.lines[1].get_ydata(), [0.0, 1.0, np.nan])
    expected = [np.linalg.norm([1.0 + k, 1.0 - 2.0, 1.0]) for k in range(3)]
    np.testing.assert_allclose(space.lines[0].get_ydata(), expected)
    assert np.isnan(space.lines[1].get_ydata()).all()


def test_a_movement_in_millimetres(drawn, tmp_path):
    tracks = tracks_of('TRACKED', 'TRACKED', 'TRACKED')
    tracks.table[:, tracks.columns.index('one.in_plane_z')] += [0.0, 0.002, -0.001]
    draw_movement(tmp_path / 'a.png', tracks, 'one')
    np.testing.assert_allclose(series(drawn[0][0], 'one'), [0.0, 2.0, -1.0], atol=1e-9)
    draw_movement(tmp_path / 'b.png', tracks, 'one', small_path(0.5, speed=0.0))
    above, below = drawn[1]
    # The truth rests: what is tracked lies about it.
    np.testing.assert_allclose(series(above, 'truth'), 0.0, atol=1e-9)
    mean = 1.0 / 3.0
    np.testing.assert_allclose(series(above, 'one'), [-mean, 2.0 - mean, -1.0 - mean], atol=1e-9)
    np.testing.assert_allclose(
        below.lines[0].get_ydata(), [-mean, 2.0 - mean, -1.0 - mean], atol=1e-9
    )
    assert below.get_title(loc='right') == 'bias 0.333 mm, scatter 1.247 mm'


def test_a_movement_that_begins_before_the_truth(drawn, tmp_path):
    tracks = tracks_of('TRACKED', 'TRACKED', 'TRACKED')
    times, names = np.array([0.1, 0.2, 0.3]), ('one',)
    positions = np.array([[[-0.5, 0.0, 0.1 + rise]] for rise in (0.0, 0.001, 0.002)])
    draw_movement(tmp_path / 'a.png', tracks, 'one', MarkerPath(names, times, positions))
    above, below = drawn[0]
    np.testing.assert_allclose(series(above, 'truth')[[0, -1]], [0.0, 1.0], atol=1e-9)
    np.testing.assert_allclose(series(above, 'one'), 0.5, atol=1e-9)
    np.testing.assert_allclose(below.lines[0].get_ydata(), [np.nan, 0.5, -0.5], atol=1e-9)
    # No time in common: it is drawn alone.
    late = MarkerPath(names, times + 9.0, positions)
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        draw_movement(tmp_path / 'b.png', tracks, 'one', late)
    np.testing.assert_allclose(series(drawn[1][0], 'one'), 0.0, atol=1e-9)


def test_a_marker_that_was_not_seen_in_the_only_row_is_said_to_be(drawn, tmp_path):
    tracks = tracks_of('LOST')
    for path in (None, small_path(0.5)):
        draw_tracks(tmp_path / 'a.png', tracks, path)
        draw_movement(tmp_path / 'b.png', tracks, 'two', path)
        labels = [line.get_label() for line in drawn[-2][0].lines]
        assert 'two: not seen' in labels
        draw_movement(tmp_path / 'b.png', tracks, 'one', path)
        np.testing.assert_allclose(series(drawn[-1][0], 'one'), [0.0], atol=1e-9)
