"""Alike markers beside each other in the images of one camera."""

import math

import numpy as np
import pytest
from test_camera_tracker import RADIUS, RATE, Stage, row, swinging

from longreach_markers.marker import detection
from longreach_markers.marker.detection import LOST, TRACKED
from longreach_markers.rig import MarkerOnRig
from longreach_markers.tracking import association
from longreach_markers.tracking.association import _between

NEIGHBOUR = 2.6 * RADIUS


def neighbours(step=NEIGHBOUR):
    """Return three places in a triangle, as near to each other as rings may be."""
    return [[-step, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, step]]


@pytest.mark.parametrize('seed', range(4))
def test_neighbours_are_hidden_together(seed):
    stage = Stage(neighbours(), seed=seed)
    stage.start()
    found = stage.run(
        range(1, 90),
        swinging(stage.places, 0.3, 0.3 + 0.05 * seed),
        lambda k: (90, 220) if k % 30 in range(20, 24 + seed) else (),
    )
    # Most of the frames in which they are seen.
    assert found.count([TRACKED] * 3) > 60


def test_lone_neighbour_is_flagged_until_the_other_one_shows():
    stage = Stage(row(2, NEIGHBOUR))
    motion = swinging(stage.places, 0.4, 0.5)
    stage.start()
    stage.run(range(1, 10), motion)
    stage.run(range(10, 18), motion, lambda _: (100, 240))
    # Only the one on the left is to be seen.
    middle = {k: stage.simulator.centers(motion(k / RATE))[:, 0].mean() for k in range(18, 22)}
    found = stage.run(middle, motion, lambda k: (int(middle[k]), 320))
    assert TRACKED not in {one for one, _ in found}
    stage.run(range(22, 30), motion)
    stage.assert_found(0.1)


@pytest.mark.parametrize('speed', [0.7, 1.2, 2.0])
@pytest.mark.parametrize('height', [0.0, 0.08])
def test_one_marker_passes_before_another(speed, height):
    # The later one in the list is before the other.
    stage = Stage([[0.0, 0.0, 0.0], [-0.9, 0.0, height]], noise=3.0)
    stage.start()
    assert stage.statuses() == [TRACKED] * 2
    way = np.array([[0.0, 0.0, 0.0], [speed, 0.0, 0.0]])
    stage.run(range(1, int(1.8 / speed * RATE)), lambda time: stage.places + time * way)
    stage.assert_found(0.1)


def test_markers_at_rest_come_back_one_by_one():
    stage = Stage(neighbours())
    stage.start()
    stage.run(range(1, 12))
    stage.run(range(12, 16), hidden=lambda _: (0, 320))
    # Half a minute later a curtain is drawn to the left.
    found = stage.run(range(450, 475), hidden=lambda k: (0, max(320 - 14 * (k - 450), 1)))
    assert found[-1] == [TRACKED] * 3


@pytest.mark.parametrize('images', ['without', 'covered'])
def test_a_marker_where_another_one_was_long_ago_is_flagged(images):
    """In a pause or behind a cover of 18 s both move, one to where the other was."""
    stage = Stage(row(2, 0.8))
    stage.start()
    ways = np.array([[1.0, 0.0, 0.4], [-1.0, 0.0, -0.4]])
    stage.run(range(1, 30), lambda time: stage.places + 0.1 * math.sin(2.0 * time) * ways)
    if images == 'covered':
        stage.run(range(30, 300), hidden=lambda _: (0, 320))
    found = stage.run(range(300, 320), stage.places + np.array([0.8, 0.0, 0.0]))
    assert not any(TRACKED in one for one in found)


@pytest.mark.parametrize('off', [-0.22, 0.22])
@pytest.mark.parametrize('count', [2, 4, 6, 8])
def test_a_row_of_alike_markers_gets_its_own_names(count, off):
    # The neighbour's place is nearer than its own, for all but one at the end.
    places = row(count, NEIGHBOUR)
    markers = [
        MarkerOnRig(name, RADIUS, position=(x + off, y, z))
        for name, (x, y, z) in zip('abcdefgh', places, strict=False)
    ]
    stage = Stage(places, markers, clutter=0)
    stage.start()
    stage.assert_found(0.5)
    assert stage.run([1]) == [[TRACKED] * count]


def test_alike_markers_share_their_fits(monkeypatch):
    places = [
        [x, 0.0, z] for z in (-0.5 * NEIGHBOUR, 0.5 * NEIGHBOUR) for x, _, _ in row(5, NEIGHBOUR)
    ]
    markers = [
        MarkerOnRig(name, RADIUS, position=tuple(place))
        for name, place in zip('abcdefghij', places, strict=True)
    ]
    stage = Stage(places, markers)
    stage.start()
    assert stage.statuses() == [TRACKED] * 10
    fits = []
    fit = detection.fit_marker
    monkeypatch.setattr(detection, 'fit_marker', lambda *a: fits.append(a) or fit(*a))
    half = int(stage.centers[:, 0].mean())
    for k in range(1, 14):
        fits.clear()
        stage.run([k], hidden=lambda k: (0, 320) if k < 9 else (0, half))
    # Four ellipses are seen whole and two half; each of ten markers searches for itself.
    assert 4 <= len(fits) <= 8


def test_where_not_all_answers_are_compared_none_is_sure(monkeypatch):
    monkeypatch.setattr(association, '_ANSWERS', 1)
    stage = Stage(row(6, NEIGHBOUR), clutter=0)
    stage.start(stage.places - np.array([0.22, 0.0, 0.0]))
    for k in range(1, 4):
        assert TRACKED not in stage.statuses()
        seen = [tuple(np.rint(one.center)) for one in stage.seen.values() if one.status != LOST]
        assert len(set(seen)) == len(seen) > 0
        stage.update(k / RATE, stage.places - np.array([0.22, 0.0, 0.0]))


def test_a_doubt_at_the_start_stays():
    # Half way between both places there is one marker.
    stage = Stage(row(2, NEIGHBOUR), clutter=0)
    middle = np.array([[0.0, 0.0, 0.0], [math.nan, 0.0, 0.0]])
    stage.start(middle)
    for k in range(1, 4):
        assert TRACKED not in stage.statuses(), stage.seen
        stage.update(k / RATE, middle)


@pytest.mark.slow_after(1)
@pytest.mark.timeout(300)
@pytest.mark.parametrize(('seed', 'count'), [(1, 250), *((seed, 1200) for seed in range(2, 6))])
def test_long_run_without_a_swap(seed, count):
    """Track neighbours that swing, with bars, dropped frames and noise; nothing may be wrong."""
    rng = np.random.default_rng(seed)
    stage = Stage(neighbours(), seed=seed, noise=float(rng.uniform(2.0, 4.0)))
    stage.start()
    together, own = rng.uniform(0.5, 2.5, 3), rng.uniform(0.3, 4.0, (3, 1))
    swing = np.array([rng.uniform(0.2, 1.0), 0.0, rng.uniform(0.1, 0.6)])
    phases, little = rng.uniform(0.0, 6.0, (3, 3)), np.array([1.0, 0.0, 0.8]) * 0.03

    def motion(time):
        places = stage.places + swing * np.sin(together * time)
        return places + little * (np.sin(own * time + phases) - np.sin(phases))

    until = {k: 20 + rng.integers(1, 8) for k in range(1, count) if rng.random() > 0.05}
    found = stage.run(until, motion, lambda k: (140, 180) if 20 <= k % 50 < until[k] else ())
    assert found.count([TRACKED] * 3) > 0.4 * count


@pytest.mark.parametrize('line_time', [0.0, 1e-5])
def test_neighbours_in_other_rows_are_known_from_each_other_after_both_were_hidden(line_time):
    stage = Stage([[-0.5, 0.0, 0.4], [0.5, 0.0, -0.4]], line_time=line_time)
    stage.start()
    assert stage.run(range(1, 6)) == [[TRACKED] * 2] * 5
    between = _between(stage.tracker.tracks['a'], stage.tracker.tracks['b'])
    assert len(between) == 5
    apart = stage.centers[1] - stage.centers[0]
    np.testing.assert_allclose([row[1:] for row in between], [apart] * 5, atol=0.3)
