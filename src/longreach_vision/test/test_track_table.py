"""Tables of tracks, the noise of series, and errors beside a known truth."""

import dataclasses

import numpy as np
import pytest
from small_commands import small_path
from small_rig import NAMES, START, frame_at

from longreach_tools import run_figure
from longreach_vision.commands.track_output import draw_tracks
from longreach_vision.io.track_table import Tracks, columns_of, compare, noise, row_of
from longreach_vision.simulator.marker_path import MarkerPath


def tracks_of(*frames):
    return Tracks(NAMES, ('left', 'right'), np.array([row_of(frame, NAMES) for frame in frames]))


def test_a_row_has_what_its_columns_say():
    tracks = tracks_of(frame_at(1.0, 'UNCERTAIN', gap=0.002), frame_at(1.1, 'LOST'))
    assert tracks.table.shape == (2, len(columns_of(NAMES)))
    assert tracks.columns[:4] == ('time', 'stamp_gap', 'one.status', 'one.cameras')
    np.testing.assert_array_equal(tracks.times, [1.0, 1.1])
    np.testing.assert_array_equal(tracks.table[:, 1], [0.002, 0.0])
    for name, column, values in (
        ('one', 'cameras', [3, 3]),
        ('two', 'cameras', [2, 0]),
        ('two', 'status', [1, 2]),
        ('one', 'in_plane_deviation_y', [2e-4, 2e-4]),
        ('one', 'triangulated_x', [START[0, 0] + 1e-3] * 2),
        ('one', 'out_of_plane_deviation', [2e-3, 2e-3]),
        ('one', 'left_u', [100.0, 100.0]),
        ('two', 'right_u', [240.0, np.nan]),
        ('two', 'left_status', [2, 2]),
    ):
        np.testing.assert_allclose(tracks.column(name, column), values)


def test_markers_that_nobody_looked_for_are_lost():
    row = row_of(frame_at(0.0), ('one', 'three'))
    tracks = Tracks(('one', 'three'), ('left', 'right'), np.array([row]))
    assert tracks.counts('three') == {'TRACKED': 0, 'UNCERTAIN': 0, 'LOST': 1}
    assert np.isnan(tracks.positions('three')).all()


def test_images_that_do_not_exist_have_no_sightings():
    """Of a camera without an image nothing is lost, nor where what it saw was not recorded."""
    first, second = frame_at(1.0), frame_at(1.1)
    alone = dataclasses.replace(second, observations={'left': second.observations['left']})
    tracks = tracks_of(first, alone)
    np.testing.assert_array_equal(tracks.column('two', 'right_status'), [0.0, np.nan])
    left, right = tracks.sightings()
    assert (left['sightings'], left['lost']) == (4, 2)
    assert (right['sightings'], right['tracked'], right['lost']) == (2, 2, 0)


def test_only_what_was_tracked_is_a_position():
    tracks = tracks_of(frame_at(0.0), frame_at(0.1, 'UNCERTAIN'), frame_at(0.2, 'LOST'))
    np.testing.assert_allclose(tracks.positions('two')[0], START[1])
    assert np.isnan(tracks.positions('two')[1:]).all()
    # The numbers of the uncertain one are in the table nevertheless.
    assert tracks.column('two', 'in_plane_x')[1] == START[1, 0]
    first, second = tracks.summary()
    counts = [first['tracked'], *(second[what] for what in ('tracked', 'uncertain', 'lost'))]
    assert counts == [3, 1, 1, 1]
    assert second['first'] == second['last'] == pytest.approx(START[1].tolist())
    assert second['noise'] is None


def test_reasons_are_counted_whatever_their_numbers():
    rows = np.array([row_of(frame_at(0.1 * k, 'LOST'), NAMES) for k in range(6)])
    told = ['', 'too soft', 'radius of 9.5 px, expected 12.0 px', 'too soft', '', 'too soft']
    told[4] = 'radius of 10 px, expected -1e-3 px'
    tracks = Tracks(NAMES, ('left', 'right'), rows, {'two': told})
    assert tracks.why_not('two') == [('too soft', 3), (told[2], 2)]
    assert tracks.why_not('one') == []
    assert tracks.summary()[1]['reasons'][1] == {'reason': told[2], 'images': 2}


def test_noise_is_that_of_white_noise_under_slow_motion():
    times = np.arange(4000) / 15.0
    white = np.random.default_rng(1).normal(0.0, [1e-4, 3e-4], (4000, 2))
    np.testing.assert_allclose(noise(times, white), [1e-4, 3e-4], rtol=0.06)
    # Half a metre at half a hertz, that is 1.6 m/s.
    slow = 0.5 * np.sin(2.0 * np.pi * 0.5 * times)[:, None]
    assert noise(times, slow + 0.0 * white)[0] < 2e-7
    np.testing.assert_allclose(noise(times, slow + white), [1e-4, 3e-4], rtol=0.06)


def test_noise_leaves_out_holes_and_uneven_times():
    times = np.arange(200) / 15.0
    values = np.random.default_rng(2).normal(0.0, 1.0, (200, 1))
    values[50] = np.nan
    jumped = times + np.where(np.arange(200) > 120, 5.0, 0.0)
    jump = values + np.where(np.arange(200) > 120, 1e6, 0.0)[:, None]
    assert noise(jumped, jump)[0] == pytest.approx(1.0, rel=0.3)
    assert np.isnan(noise(times[:7], values[:7])).all()
    values[::5] = np.nan
    assert np.isnan(noise(times, values)).all()


def test_errors_beside_the_truth():
    # The marker is beside its plane, and the last row after the end of the path.
    path = small_path(0.35, speed=0.0).moved('one', np.array([0.0, 0.003, 0.0]))
    frames = [
        frame_at(0.1 * k, 'LOST' if k == 2 else 'TRACKED', shift=0.002 + 0.001 * (-1) ** k)
        for k in range(5)
    ]
    one, two = compare(tracks_of(*frames), path)
    assert (one['rows'], one['tracked'], two['tracked'], two['lost']) == (4, 4, 3, 1)
    assert one['motion'] == 0.0
    plane = one['in_plane']
    assert plane['mean'] == pytest.approx([2e-3, -3e-3, 0.0], abs=1e-12)
    assert plane['bias'] == pytest.approx(np.hypot(2e-3, 3e-3))
    assert plane['scatter'] == pytest.approx(1e-3)
    assert plane['rms'] == pytest.approx(np.sqrt(14e-6))
    assert plane['largest'] == pytest.approx(np.hypot(3e-3, 3e-3))
    assert one['triangulated']['mean'] == pytest.approx([3e-3, -2e-3, 1e-3])
    assert two['in_plane']['count'] == 3
    assert two['triangulated'] is None


@pytest.fixture
def drawn(monkeypatch, tmp_path):
    """Draw tracks; return the curves by panel, and the strips."""
    whole, kept = run_figure.draw, []

    def draw(file, picture, above):
        whole(file, picture, above)
        kept.append(picture)

    monkeypatch.setattr(run_figure, 'draw', draw)

    def figure(*words):
        draw_tracks(tmp_path / 'a.png', *words)
        assert (tmp_path / 'a.png').read_bytes().startswith(b'\x89PNG')
        panels = [[curve.values for curve in panel.curves] for panel in kept[-1].rows]
        return panels, {strip.label: strip.spans for strip in kept[-1].strips}, kept[-1]

    return figure


def drawn_of(*statuses, shift=0.0):
    return tracks_of(*(frame_at(0.1 * k, one, shift=shift * k) for k, one in enumerate(statuses)))


def test_markers_over_time(drawn):
    tracks = drawn_of('TRACKED', 'LOST', 'TRACKED', 'UNCERTAIN', shift=0.01)
    (ahead, above), strips, picture = drawn(tracks)
    np.testing.assert_allclose(ahead[0], [0.0, 10.0, 20.0, 30.0], atol=1e-9)
    np.testing.assert_allclose(ahead[1], [0.0, np.nan, 20.0, np.nan], atol=1e-9)
    np.testing.assert_allclose(above[0], 0.0, atol=1e-9)
    assert picture.panels[1].label == 'z from its start\n[mm]'
    np.testing.assert_allclose(strips['two not tracked'], [(0.1, 0.2), (0.3, 0.3)])
    assert list(strips) == ['two not tracked']


def test_beside_the_truth_there_are_errors_in_millimetres(drawn):
    tracks = drawn_of('TRACKED', 'TRACKED', 'LOST', shift=0.001)
    path = small_path(0.5, speed=0.0).moved('one', np.array([0.0, 0.0, 0.002]))
    (_, ahead, _, above), *_ = drawn(tracks, path)
    np.testing.assert_allclose(ahead[0], [0.0, 1.0, 2.0], atol=1e-9)
    np.testing.assert_allclose(ahead[1], [0.0, 1.0, np.nan], atol=1e-9)
    np.testing.assert_allclose(above[0], -2.0)
    (moved, error), *_ = drawn(tracks, path, 'one')
    np.testing.assert_allclose([moved[0], error[0]], -2.0)


def test_a_movement_that_begins_before_the_truth(drawn):
    tracks = drawn_of('TRACKED', 'TRACKED', 'TRACKED')
    times, names = np.array([0.1, 0.2, 0.3]), ('one',)
    positions = np.array([[[-0.5, 0.0, 0.1 + rise]] for rise in (0.0, 0.001, 0.002)])
    _, _, picture = drawn(tracks, MarkerPath(names, times, positions), 'one')
    (panel,) = picture.panels
    np.testing.assert_allclose(panel.others[0].values, [np.nan, 0.0, 1.0], atol=1e-9)
    found = panel.curves[0].values
    np.testing.assert_allclose(panel.differences[0].values, found - [np.nan, 0, 1], atol=1e-9)


def test_a_marker_that_was_not_seen_is_said_to_be(drawn):
    tracks = drawn_of('LOST')
    for path in (None, small_path(0.5)):
        (ahead, *_), strips, _ = drawn(tracks, path)
        assert np.isnan(ahead[1]).all()
        assert list(strips) == ['two not tracked']
        drawn(tracks, path, 'two')
