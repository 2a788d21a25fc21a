"""Noise and its correlation, as the residuals of a fit show them."""

from __future__ import annotations

import math

import cv2
import numpy as np
import pytest
from exact_marker import MIDDLE, SIZE, U, V

from longreach_vision.marker.pixel_model import (
    BAND,
    BLUR,
    CENTER,
    INSIDE,
    OUTSIDE,
    PARAMETERS,
    RHO,
    SHAPE,
    fill_slopes,
)
from longreach_vision.marker.residuals import (
    CORRELATIONS,
    bend_significance,
    correlation_factor,
    index_pixels,
    measure_noise,
    square_beside_light,
)
from longreach_vision.marker.symmetric import SECTORS

EVERY = np.ones(2 * SECTORS, bool)


class Ring:
    """Pixels near the edges of a ring of 24 px, and what residuals among them say."""

    def __init__(self) -> None:
        self.p = np.zeros(PARAMETERS)
        self.p[INSIDE], self.p[RHO], self.p[CENTER:SHAPE] = 190.0, 0.5, MIDDLE
        self.p[SHAPE:BLUR], self.p[BLUR], self.p[BLUR + 2] = (24.0, 3.0, 18.0), 0.8, 0.8
        self.p[BAND], self.p[OUTSIDE] = 50.0, 200.0
        u, v = U.ravel(), V.ravel()
        samples = np.stack([u, v, 0.0 * u, u, v])
        slopes = np.empty((9, u.size))
        fill_slopes(self.p, False, samples, slopes)
        near = slopes[0] < 4.0
        self.samples, self.slopes = samples[:, near].copy(), slopes[:, near].copy()
        self.sector = np.zeros(near.sum(), np.int64)
        self.place = index_pixels(self.samples, 0, SIZE, 0, SIZE)

    def measured(self, residuals: np.ndarray) -> tuple[float, np.ndarray, float]:
        """Return noise, correlation, and factor of the variance."""
        correlation = np.zeros(CORRELATIONS)
        given = self.place, self.slopes, self.sector, EVERY
        noise = measure_noise(*given, residuals, correlation)
        return noise, correlation, correlation_factor(*given, correlation)

    def noise(self, rng: np.random.Generator, smoothing: float) -> np.ndarray:
        """Return noise of 3 grey levels at the pixels."""
        image = rng.normal(size=(SIZE, SIZE))
        if smoothing > 0.0:
            image = cv2.GaussianBlur(image, (0, 0), smoothing)
            image *= 2.0 * math.sqrt(math.pi) * smoothing
        return 3.0 * image[V.astype(int), U.astype(int)].ravel()[self.kept()]

    def kept(self) -> np.ndarray:
        return (self.samples[4] * SIZE + self.samples[3]).astype(int)


def test_independent_noise_has_no_correlation():
    ring, rng = Ring(), np.random.default_rng(0)
    for _ in range(20):
        noise, correlation, factor = ring.measured(ring.noise(rng, 0.0))
        assert noise == 0.0
        assert not correlation.any()
        assert factor == 1.0


@pytest.mark.parametrize('smoothing', [0.7, 1.0])
def test_smoothed_noise_is_measured(smoothing):
    ring, rng = Ring(), np.random.default_rng(1)
    noises, correlations, factors = zip(
        *(ring.measured(ring.noise(rng, smoothing)) for _ in range(40)), strict=True
    )
    assert np.mean(noises) == pytest.approx(3.0, rel=0.1)
    near = np.mean(correlations, axis=0)[0, CORRELATIONS[1] // 2 + 1]
    assert near == pytest.approx(math.exp(-0.25 / smoothing**2), abs=0.1)
    # The scatter of the sum of residuals times derivatives, over that of independent noise.
    move = ring.slopes[2] + ring.slopes[3]
    J = move * ring.slopes[4]
    sums = [J @ ring.noise(rng, smoothing) for _ in range(400)]
    exact = np.var(sums) / (9.0 * J @ J)
    assert np.mean(factors) == pytest.approx(exact, rel=0.25)


def test_slow_changes_of_light_are_no_correlation():
    ring, rng = Ring(), np.random.default_rng(2)
    light = 4.0 * np.sin(0.15 * ring.samples[0]) * np.cos(0.1 * ring.samples[1])
    noise, _, factor = ring.measured(ring.noise(rng, 0.0) + light)
    assert noise == 0.0
    assert factor == 1.0


def test_a_bend_is_told_from_a_shift_and_another_shape():
    ring, rng = Ring(), np.random.default_rng(3)
    _, _, outer, inner, mu, mv, eu, ev, _ = ring.slopes
    move, stretch = outer + inner, outer + 0.5 * inner
    height = (outer + 0.25 * inner) * (0.6 * mu + 0.8 * mv)
    noise = ring.noise(rng, 0.0)

    def chi_square(change: np.ndarray) -> float:
        return bend_significance(
            ring.p, 0.6, 0.8, ring.slopes, ring.sector, EVERY, noise + change, 9.0
        )

    assert chi_square(0.0 * move) < 14.0
    shifted = 0.2 * move * mu - 0.1 * move * mv + 0.1 * stretch * mu * eu + 0.1 * stretch * mv * ev
    assert chi_square(shifted) == pytest.approx(chi_square(0.0 * move), rel=1e-3, abs=1e-3)
    assert chi_square(0.1 * height * (eu * eu - ev * ev)) > 50.0


def test_light_of_sectors_is_told_from_noise():
    ring, rng = Ring(), np.random.default_rng(3)
    distance, level, eu, ev = *ring.slopes[:2], *ring.slopes[6:8]
    # Of the two edges, the nearer one.
    r = np.hypot(*np.linalg.solve([[24.0, 3.0], [3.0, 18.0]], ring.samples[:2] - MIDDLE[:, None]))
    is_inner = np.abs(r - 0.5) < np.abs(r - 1.0)
    part = ((np.arctan2(ev, eu) / (2.0 * np.pi) + 0.5) * SECTORS).astype(int) % SECTORS
    part = part + SECTORS * is_inner
    z = np.where(level == is_inner, distance, -distance)
    light = rng.normal(0.0, 10.0, (2, 2 * SECTORS))
    noise = rng.normal(0.0, 3.0, z.size)
    uneven = light[0, part] + light[1, part] * z

    def left(residuals: np.ndarray, active: np.ndarray = EVERY) -> float:
        return square_beside_light(ring.slopes, part, active, residuals)

    assert left(uneven) == pytest.approx(0.0, abs=1e-9)
    # The mean is that of what is left of the degrees of freedom.
    assert left(noise) == pytest.approx(9.0, rel=0.1)
    assert left(uneven + noise) == pytest.approx(left(noise))
    half = EVERY & (np.arange(2 * SECTORS) % 2 == 0)
    noise[part % 2 == 1] = 1e3
    assert left(noise, half) == pytest.approx(9.0, rel=0.15)
