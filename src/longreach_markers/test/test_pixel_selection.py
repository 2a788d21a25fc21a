"""The pixels that a marker is fitted from: where they are, glare among them, uneven light."""

import numpy as np
import pytest
from exact_marker import MIDDLE, SIZE, A, U, V, draw, parameters, taken

from longreach_markers.camera.model import Camera
from longreach_markers.marker.pixel_selection import (
    LIGHT_TERMS,
    add_light,
    divide_by_light,
    find_burnt,
    select_pixels,
)
from longreach_markers.marker.symmetric import SECTORS

EVERY = np.ones(2 * SECTORS, bool)


def selected(image, p, *, packed=None, disc=False, reach=3.0):
    samples, sector = np.empty((5, image.size)), np.empty(image.size, np.int64)
    size = select_pixels(
        image, np.zeros(16) if packed is None else packed, p, disc, reach,
        0, image.shape[1], 0, image.shape[0], samples, sector,
    )  # fmt: skip
    return samples[:, :size].copy(), sector[:size].copy()


# --- which pixels ---------------------------------------------------------------------------


def test_pixels_are_those_near_the_edges_in_the_sectors_of_the_nearer_one():
    image = np.random.default_rng(0).integers(0, 256, (SIZE, SIZE), dtype=np.uint8)
    samples, sector = selected(image, parameters())
    y = np.linalg.solve(A, samples[:2] - MIDDLE[:, None])
    r = np.hypot(*y)
    # Distances to edges, to first order.
    slope = np.linalg.norm(np.linalg.solve(A, y / r), axis=0)
    outer, inner = abs(r - 1.0) / slope, abs(r - 0.5) / slope
    assert np.minimum(outer, inner).max() <= 3.0
    np.testing.assert_array_equal(sector < SECTORS, outer <= inner)
    turn = (np.arctan2(y[1], y[0]) / (2.0 * np.pi) + 0.5) * SECTORS
    np.testing.assert_array_equal(sector % SECTORS, turn.astype(int) % SECTORS)
    columns, rows = samples[:2].astype(int)
    np.testing.assert_array_equal(samples[2], image[rows, columns])
    # All of them.
    whole = np.linalg.solve(A, np.stack([U.ravel(), V.ravel()]) - MIDDLE[:, None])
    size = np.hypot(*whole)
    scale = np.linalg.norm(np.linalg.solve(A, whole / size), axis=0)
    near = np.minimum(abs(size - 1.0), abs(size - 0.5)) <= 3.0 * scale
    assert samples.shape[1] == np.count_nonzero(near)
    # A disc has one edge.
    _, of_disc = selected(image, parameters(), disc=True)
    assert of_disc.max() < SECTORS
    assert 0 < of_disc.size < sector.size


@pytest.mark.parametrize(
    ('model', 'distortion'),
    [('plumb_bob', (-0.3, 0.1, 0.01, -0.01, 0.0)), ('equidistant', (0.02, 0.01, 0.0, 0.0))],
)
def test_pinhole_places_are_exact_in_a_large_window_of_a_bent_picture(model, distortion):
    camera = Camera('c', 500, 400, 1000.0, 1000.0, 240.0, 200.0, model, distortion)
    # Each pixel has a grey level of its own within its neighbourhood.
    rows, columns = np.mgrid[0:400, 0:500]
    image = (columns % 16 + 16 * (rows % 16)).astype(np.uint8)
    p = parameters(center=(230.0, 190.0), shape=(130.0, 0.0, 110.0))
    samples, _ = selected(image, p, packed=camera.packed, reach=30.0)
    assert samples.shape[1] > 20_000
    pixels = camera.distort((samples[:2].T - [240.0, 200.0]) / 1000.0)
    np.testing.assert_allclose(pixels, np.rint(pixels), atol=2e-3)
    u, v = np.rint(pixels).astype(int).T
    np.testing.assert_array_equal(samples[2], image[v, u])


# --- glare and light ------------------------------------------------------------------------


def test_sectors_that_glare_saturates_are_marked_with_their_neighbours():
    samples, sector = selected(taken(draw(), 0.0), parameters())
    burnt = np.ones(2 * SECTORS, bool)
    find_burnt(samples, sector, burnt)
    assert not burnt.any()
    samples[2, sector == 20] = 255.0
    find_burnt(samples, sector, burnt)
    np.testing.assert_array_equal(np.flatnonzero(burnt), [19, 20, 21])
    # Around the rim, but not from one edge to the other.
    samples[2, sector == 20] = 200.0
    samples[2, sector == 0] = 255.0
    find_burnt(samples, sector, burnt)
    np.testing.assert_array_equal(np.flatnonzero(burnt), [0, 1, SECTORS - 1])


def test_light_is_found_from_residuals_and_divided_out():
    samples, sector = selected(taken(draw(), 0.0), parameters())
    even = samples.copy()
    x, y = (samples[:2] - MIDDLE[:, None]) / 17.0
    given = np.array([0.0, 0.0, 0.0, 0.05, -0.02, 0.03, 0.01, -0.02, 0.015, 0.02])
    terms = np.stack([x**0, x, y, x * x, x * y, y * y, x**3, x * x * y, x * y * y, y**3])
    assert len(terms) == LIGHT_TERMS
    samples[2] *= 1.0 + given @ terms
    light = np.zeros(LIGHT_TERMS)
    residuals = samples[2] - even[2]
    gained = add_light(samples, sector, EVERY, residuals, *MIDDLE, 17.0, light)
    np.testing.assert_allclose(light, given, atol=1e-9)
    # It explains all.
    assert gained == pytest.approx(np.mean(residuals**2))
    divide_by_light(samples, light, *MIDDLE, 17.0)
    np.testing.assert_allclose(samples, even, rtol=1e-8)
