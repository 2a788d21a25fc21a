"""Edge points: where they are, which way they point, and how the noise of an image is known."""

import math

import numpy as np
import pytest
from exact_marker import SIZE, U, V, draw, taken
from scipy.special import ndtr

from longreach_markers.marker.edges import (
    GRADIENT_NOISE,
    _gradients,
    find_edges,
    image_noise,
    without_glare,
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
