"""Edge points: where they are, which way they point, and how the noise of an image is known."""

import math

import numpy as np
import pytest
from exact_marker import SIZE, U, V, draw, taken
from scipy.special import ndtr

from longreach_markers.marker.edges import (
    GRADIENT_NOISE,
    EdgePoints,
    _gradients,
    find_edges,
    image_noise,
    without_glare,
)
from longreach_markers.marker.ellipses import (
    SECTORS,
    Expectation,
    Hypothesis,
    closed_ellipses,
    outlines_beside,
    rank_hypotheses,
    seen_sectors,
)

WHOLE = (0, SIZE, 0, SIZE)


def step(angle, distance, blur=0.9, low=50.0, high=180.0):
    """A straight edge: n . (p - middle) = distance, n from dark to bright."""
    away = math.cos(angle) * (U - 29.5) + math.sin(angle) * (V - 29.5) - distance
    return np.rint(low + (high - low) * ndtr(away / blur)).astype(np.uint8)


def disc(u, v, radius, inner=0.0, bright=200.0):
    levels = (bright, 40.0, bright)
    return taken(draw((u, v), radius * np.eye(2), inner=inner, levels=levels), 0.0)


@pytest.mark.parametrize('angle', np.radians([0.0, 20.0, 45.0, 77.0, 90.0, 160.0, 230.0, 301.0]))
@pytest.mark.parametrize('distance', [0.0, 0.25, 0.5, -0.37])
def test_points_lie_on_a_straight_edge_and_point_to_its_bright_side(angle, distance):
    edges = find_edges(step(angle, distance), WHOLE, 5.0)
    n = np.array([math.cos(angle), math.sin(angle)])
    away = (edges.u - 29.5) * n[0] + (edges.v - 29.5) * n[1] - distance
    assert edges.u.size >= 50
    assert np.max(np.abs(away)) < 0.15
    assert abs(np.mean(away)) < 0.04
    assert np.min(edges.nu * n[0] + edges.nv * n[1]) > math.cos(math.radians(2.0))
    np.testing.assert_allclose(np.hypot(edges.nu, edges.nv), 1.0, atol=1e-6)
    # One chain, and a point for each column or row that the edge goes through; a diagonal has two.
    assert edges.chains == 1
    assert edges.u.size <= 2 * SIZE


def test_a_ring_is_two_chains_and_both_are_round():
    edges = find_edges(disc(30.2, 28.7, 18.0, 0.5), WHOLE, 5.0)
    assert edges.chains == 2
    assert np.array_equal(np.unique(edges.chain), [0, 1])
    for chain in range(2):
        own = edges.chain == chain
        du, dv = edges.u[own] - 30.2, edges.v[own] - 28.7
        radii = np.hypot(du, dv)
        assert np.ptp(radii) < 0.25
        assert abs(np.mean(du)) < 0.3
        outward = (du * edges.nu[own] + dv * edges.nv[own]) / radii
        assert np.all(np.abs(outward) > 0.99)
        # The outer edge is brighter outside, the inner one inside.
        assert np.all((outward > 0.0) == (np.mean(radii) > 13.0))


def test_chains_end_where_the_direction_turns():
    image = np.full((SIZE, SIZE), 200, np.uint8)
    image[15:45, 20:40] = 40
    # Four sides; their corners are rounded by the window and join some of them.
    edges = find_edges(image, WHOLE, 5.0)
    assert 1 <= edges.chains <= 4
    image[:, 29:31] = 200
    assert find_edges(image, WHOLE, 5.0).chains > edges.chains


def test_a_window_sees_the_same_points_in_pixels_of_the_image():
    image = disc(31.3, 27.8, 12.0)
    whole = find_edges(image, WHOLE, 5.0)
    part = find_edges(image, (10, 55, 8, 50), 5.0)
    np.testing.assert_array_equal(np.sort(part.u), np.sort(whole.u))
    np.testing.assert_array_equal(np.sort(part.v), np.sort(whole.v))
    half = find_edges(image, (0, 31, 0, SIZE), 5.0)
    assert 0.3 * whole.u.size < half.u.size < 0.6 * whole.u.size
    assert half.u.max() < 29.0


def test_gradient_noise_is_that_of_white_noise():
    image = np.rint(np.random.default_rng(1).normal(128.0, 10.0, (200, 200))).astype(np.uint8)
    gradients = np.zeros((3, 200, 200), np.float32)
    _gradients(image, 0, 0, *gradients)
    inside = gradients[:2, 4:-4, 4:-4].reshape(2, -1)
    np.testing.assert_allclose(np.std(inside, axis=1), 10.0 * GRADIENT_NOISE, rtol=0.03)


@pytest.mark.parametrize('deviation', [1.0, 3.0, 8.0, 15.0])
def test_noise_is_seen_on_planes_and_beside_edges(deviation):
    random = np.random.default_rng(2)
    for clean in (np.full((SIZE, SIZE), 120.0), 60.0 + 1.5 * U + 0.8 * V, 0.8 * disc(30, 30, 15)):
        # Away from black and white, where noise would be cut off.
        image = np.clip(np.rint(clean + 40.0 + random.normal(0.0, deviation, clean.shape)), 0, 255)
        noise = image_noise(image.astype(np.uint8), *WHOLE)
        # Rounding adds 1/12; edges count as a little noise.
        assert noise == pytest.approx(math.hypot(deviation, 0.29), rel=0.12)


def test_edges_of_glare_are_left_out_but_not_those_of_an_overexposed_image():
    image = disc(36.0, 30.0, 15.0, 0.5)
    edges = find_edges(image, WHOLE, 5.0)
    assert without_glare(image, edges) is edges
    glary = image.copy()
    glary[:, 44:] = 255
    seen = find_edges(glary, WHOLE, 5.0)
    kept = without_glare(glary, seen)
    assert 0 < kept.u.size < seen.u.size
    assert kept.u.max() < 43.0
    assert kept.chains == seen.chains
    overexposed = disc(36.0, 30.0, 15.0, bright=400.0)
    edges = find_edges(overexposed, WHOLE, 5.0)
    assert without_glare(overexposed, edges).u.size == edges.u.size


ROUND = np.diag([15.0, 15.0])


def shape(longer, shorter, angle):
    """The symmetric matrix with these eigenvalues, the first one's vector at an angle."""
    major = np.array([math.cos(angle), math.sin(angle)])
    return shorter * np.eye(2) + (longer - shorter) * np.outer(major, major)


def rim(u, v, A, polarity=1.0, chain=0, part=(0.0, 1.0), count=None):
    """Points of an ellipse, about one per pixel; part is that of its turn, from angle 0."""
    A = np.asarray(A, float)
    size = count or math.ceil(2.0 * math.pi * math.sqrt(np.linalg.det(A)) * (part[1] - part[0]))
    t = 2.0 * math.pi * (part[0] + (np.arange(size) + 0.5) / size * (part[1] - part[0]))
    e = np.column_stack([np.cos(t), np.sin(t)])
    x = e @ A + [u, v]
    n = e @ np.linalg.inv(A)
    n *= polarity / np.linalg.norm(n, axis=1, keepdims=True)
    return EdgePoints(*x.T.copy(), *n.T.copy(), np.full(size, chain, np.int32), 1)


def joined(*parts):
    columns = [
        np.concatenate(column) for column in zip(*(part[:-1] for part in parts), strict=True)
    ]
    return EdgePoints(*columns, chains=int(columns[-1].max()) + 1)


def segment(start, end, chain, side=1.0):
    """Points of a straight edge, one per pixel, brighter to its right if side is 1."""
    a, b = np.array(start, float), np.array(end, float)
    length = math.dist(a, b)
    x = a + (b - a) * ((np.arange(int(length)) + 0.5) / length)[:, None]
    n = side * np.array([b[1] - a[1], a[0] - b[0]]) / length
    ones = np.ones(len(x))
    own = np.full(len(x), chain, np.int32)
    return EdgePoints(*x.T.copy(), n[0] * ones, n[1] * ones, own, 1)


def expect(u=100.0, v=80.0, radius=15.0, search=15.0, **more):
    return Expectation(u, v, radius, search, **more)


@pytest.mark.parametrize('polarity', [1.0, -1.0])
@pytest.mark.parametrize(
    ('longer', 'shorter', 'angle'),
    [(15.0, 15.0, 0.0), (15.0, 8.0, 0.4), (15.0, 5.0, 2.0), (13.0, 12.0, -1.0), (17.0, 9.0, 1.6)],
)
def test_exact_points_give_the_ellipse_back(longer, shorter, angle, polarity):
    A = shape(longer, shorter, angle)
    found = rank_hypotheses(rim(101.3, 78.9, A, polarity), expect())
    assert len(found) == 1
    best = found[0]
    np.testing.assert_allclose([best.u, best.v], [101.3, 78.9], atol=1e-8)
    np.testing.assert_allclose(best.shape, A, atol=1e-8)
    assert best.polarity == polarity
    assert best.support > 0.9
    assert best.inner == 0.0


@pytest.mark.parametrize('share', [0.35, 0.5, 0.75])
def test_a_part_of_the_rim_is_enough_and_is_said(share):
    A = shape(15.0, 11.0, 0.5)
    best = rank_hypotheses(rim(100.0, 80.0, A, part=(0.1, 0.1 + share)), expect())[0]
    np.testing.assert_allclose([best.u, best.v], [100.0, 80.0], atol=1e-6)
    np.testing.assert_allclose(best.shape, A, atol=1e-6)
    assert best.support == pytest.approx(share, abs=0.05)


def test_parts_of_a_rim_in_many_chains_come_together():
    parts = [rim(100.0, 80.0, ROUND, chain=k, part=(k / 4, k / 4 + 0.17)) for k in range(4)]
    found = rank_hypotheses(joined(*parts), expect())
    assert len(found) == 1
    np.testing.assert_allclose(found[0].shape, ROUND, atol=1e-6)
    assert found[0].support == pytest.approx(0.68, abs=0.09)


def test_points_that_are_off_do_not_move_the_ellipse():
    edges = rim(100.0, 80.0, ROUND)
    random = np.random.default_rng(3)
    stray = joined(
        edges,
        *(
            segment(at, at + random.normal(0.0, 10.0, 2), k + 1)
            for k, at in enumerate(random.uniform([80.0, 60.0], [120.0, 100.0], (12, 2)))
        ),
    )
    best = rank_hypotheses(stray, expect())[0]
    np.testing.assert_allclose([best.u, best.v], [100.0, 80.0], atol=0.1)
    np.testing.assert_allclose(best.shape, ROUND, atol=0.15)


def test_the_nearer_of_two_markers_is_first():
    left, right = rim(90.0, 80.0, ROUND), rim(125.0, 80.0, ROUND, chain=1)
    both = joined(left, right)
    for at, order in ((92.0, (90.0, 125.0)), (120.0, (125.0, 90.0))):
        found = rank_hypotheses(both, expect(at, search=40.0))
        np.testing.assert_allclose([one.u for one in found], order, atol=1e-6)
        assert found[0].score > found[1].score


@pytest.mark.parametrize('outer', [1.0, -1.0])
@pytest.mark.parametrize('ratio', [0.35, 0.5, 0.8])
def test_of_a_ring_the_outer_edge_is_first_and_the_inner_one_its_ratio(outer, ratio):
    A = shape(16.0, 12.0, 0.7)
    edges = joined(
        rim(100.0, 80.0, A, outer), rim(100.0, 80.0, ratio * A, -outer, chain=1)
    )  # fmt: skip
    # Even where the expected radius is between the two, somewhat nearer to the inner one's.
    radius = 16.0 * (0.55 * ratio + 0.45)
    best = rank_hypotheses(edges, expect(radius=radius))[0]
    assert best.polarity == outer
    np.testing.assert_allclose(best.shape, A, atol=1e-6)
    assert best.inner == pytest.approx(ratio, abs=0.03)
    assert best.inner_support > 0.9


def test_polarity_that_was_asked_for_goes_before_all():
    edges = joined(rim(100.0, 80.0, ROUND), rim(104.0, 80.0, 1.1 * ROUND, -1.0, chain=1))
    assert rank_hypotheses(edges, expect())[0].polarity == 1.0
    found = rank_hypotheses(edges, expect(polarity=-1))
    assert [one.polarity for one in found] == [-1.0, 1.0]
    assert found[1].score < -9.0


def test_the_expected_shape_goes_before_distance():
    tilted = shape(15.0, 8.0, 0.5)
    edges = joined(rim(100.0, 80.0, ROUND), rim(112.0, 80.0, tilted, chain=1))
    expected = {'a11': tilted[0, 0], 'a12': tilted[0, 1], 'a22': tilted[1, 1]}
    assert rank_hypotheses(edges, expect())[0].u == pytest.approx(100.0)
    found = rank_hypotheses(edges, expect(**expected))
    assert found[0].u == pytest.approx(112.0, abs=0.05)
    assert found[1].score < -9.0


def test_no_points_and_few_points_are_nothing():
    nothing = np.empty(0)
    none = EdgePoints(nothing, nothing, nothing, nothing, np.empty(0, np.int32), 0)
    few = rim(100.0, 80.0, ROUND, count=5)
    for thorough in (False, True):
        assert rank_hypotheses(none, expect(), thorough=thorough) == []
        assert rank_hypotheses(few, expect(), thorough=thorough) == []
    assert closed_ellipses(none, 4.0, 60.0, 0.6) == []
    assert not seen_sectors(none, Hypothesis(9, 9, 9, 0, 9, 1, 1, 0, 0.5, 1)).any()


def test_samples_find_a_rim_that_runs_on_in_what_covers_it():
    # Two arcs, each in one chain with a long straight edge that begins where the arc ends.
    arcs = [rim(100.0, 80.0, ROUND, chain=k, part=(0.5 * k, 0.5 * k + 0.3)) for k in range(2)]
    ends = [(part.u[-1], part.v[-1]) for part in arcs]
    ends = [segment(end, np.add(end, (k * 90 - 45, 70)), k) for k, end in enumerate(ends)]
    edges = joined(*arcs, *ends)
    assert not any(
        math.hypot(one.u - 100.0, one.v - 80.0) < 0.5 for one in rank_hypotheses(edges, expect())
    )
    best = rank_hypotheses(edges, expect(), thorough=True)[0]
    np.testing.assert_allclose([best.u, best.v], [100.0, 80.0], atol=0.05)
    assert best.support == pytest.approx(0.6, abs=0.1)


# --- closed ellipses ------------------------------------------------------------------------


def test_closed_ellipses_are_those_that_one_chain_closes():
    A = shape(14.0, 9.0, 1.0)
    edges = joined(
        rim(50.0, 60.0, A),
        rim(50.0, 60.0, 0.5 * A, -1.0, chain=1),
        rim(120.0, 60.0, A, chain=2, part=(0.0, 0.5)),
        rim(200.0, 60.0, 6.0 * A, chain=3),
        rim(300.0, 60.0, 0.1 * A, chain=4, count=30),
        segment((10, 10), (90, 11), 5),
    )
    found = closed_ellipses(edges, 4.0, 60.0, 0.6)
    assert [(round(one.u), one.polarity) for one in found] == [(50, 1.0), (50, -1.0)]
    np.testing.assert_allclose(found[0].shape, A, atol=1e-8)
    np.testing.assert_allclose(found[1].shape, 0.5 * A, atol=1e-8)


# --- sectors --------------------------------------------------------------------------------


def marker(inner=0.0, polarity=1.0, A=ROUND):
    return Hypothesis(
        100.0, 80.0, A[0, 0], A[0, 1], A[1, 1], polarity, 1.0, 0.0, inner, 1.0
    )  # fmt: skip


def test_sectors_of_both_edges_of_a_ring():
    outer, inner = rim(100.0, 80.0, ROUND), rim(100.0, 80.0, 0.5 * ROUND, -1.0, chain=1)
    seen = seen_sectors(joined(outer, inner), marker(0.5))
    assert seen.shape == (2 * SECTORS,)
    assert seen.all()
    assert not seen_sectors(outer, marker(0.5))[SECTORS:].any()
    assert not seen_sectors(joined(outer, inner), marker(0.0))[SECTORS:].any()
    # Of the wrong polarity, nothing is seen.
    assert not seen_sectors(joined(outer, inner), marker(0.5, -1.0)).any()


def test_sectors_at_a_gap_do_not_count():
    seen = seen_sectors(rim(100.0, 80.0, ROUND, part=(0.0, 0.75), count=300), marker())[:SECTORS]
    # Angle 0 is in the middle of the numbering: the gap is the last quarter of the turn.
    gap = np.zeros(SECTORS, bool)
    gap[SECTORS // 4 : SECTORS // 2] = True
    assert not seen[gap].any()
    assert seen[~gap].sum() == pytest.approx(0.75 * SECTORS - 2, abs=1)


def test_an_outline_beside_is_seen_and_its_own_rim_is_not():
    A = shape(15.0, 11.0, 0.4)
    own = rim(100.0, 80.0, A)
    assert not outlines_beside(own, marker(A=A)).any()
    shadow = rim(102.5, 80.0, A, chain=1)
    beside = outlines_beside(joined(own, shadow), marker(A=A))
    assert 0.4 < np.mean(beside) < 0.9
    # The edge of a card around it or the inner edge of a ring has the other polarity.
    card = rim(100.0, 80.0, 1.2 * A, -1.0, chain=1)
    ring = rim(100.0, 80.0, 0.8 * A, -1.0, chain=2)
    assert not outlines_beside(joined(own, card, ring), marker(A=A)).any()
    far = rim(100.0, 80.0, 1.5 * A, chain=1)
    assert not outlines_beside(joined(own, far), marker(A=A)).any()
