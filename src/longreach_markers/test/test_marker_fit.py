"""The maximum-likelihood fit of a marker: what it finds, what it says about its error."""

import math

import numpy as np
import pytest
from exact_marker import MIDDLE, SIZE, A, U, V, draw, taken

from longreach_markers.camera.model import Camera
from longreach_markers.marker import pixel_parameters as at
from longreach_markers.marker.fit import fit_marker
from longreach_markers.marker.symmetric import SECTORS

UNKNOWN = np.zeros(3)
EVERY = np.ones(2 * SECTORS, bool)


def fit(
    image,
    *,
    camera=None,
    normal=UNKNOWN,
    outline=UNKNOWN,
    inner=0.5,
    off=(0.4, -0.3, 0.03),
    shape=A,
    center=MIDDLE,
    noise=2.0,
    seen=EVERY,
):
    """Fit with a start that is off: by pixels, and by a share of the size."""
    size = (1.0 + off[2]) * shape
    u, v = np.add(center, off[:2])
    start = np.array([u, v, size[0, 0], size[0, 1], size[1, 1], inner])
    packed = np.zeros(16) if camera is None else camera.packed
    normal, outline = np.asarray(normal, float), np.asarray(outline, float)
    return fit_marker(image, packed, normal, outline, start, seen, 1.0, noise)


# --- what is found --------------------------------------------------------------------------


@pytest.mark.parametrize('inner', [0.0, 0.35, 0.5, 0.75])
@pytest.mark.parametrize('blur', [0.7, 1.2])
def test_an_exact_image_gives_its_parameters_back(inner, blur):
    found = fit(taken(draw(inner=inner, blur=blur), 0.0), inner=inner)
    p = found.parameters
    assert found.converged
    assert found.sectors[:SECTORS].all()
    assert found.residual < 0.5
    # Rounding to whole grey levels is all the noise there is.
    np.testing.assert_allclose(p[at.CENTER : at.SHAPE], MIDDLE, atol=0.004)
    np.testing.assert_allclose(p[at.SHAPE : at.BLUR], [17.0, 2.0, 12.0], atol=0.02)
    np.testing.assert_allclose(
        p[at.BLUR : at.BAND], (blur**2 + 1 / 12) * np.array([1, 0, 1]), atol=0.05
    )
    assert p[at.BAND] == pytest.approx(50.0, abs=0.7)
    assert p[at.OUTSIDE] == pytest.approx(200.0, abs=0.7)
    if inner > 0.0:
        assert p[at.RHO] == pytest.approx(inner, abs=2e-3)
        # The bend of a hole of 4 px is not small beside its blur.
        assert p[at.INSIDE] == pytest.approx(190.0, abs=1.5)


def test_motion_is_found_as_the_larger_blur():
    places = MIDDLE + np.outer(np.arange(-7.5, 8.0), [0.25, 0.0])
    exact = np.mean([draw(center=place) for place in places], axis=0)
    found = fit(taken(exact, 0.0))
    p = found.parameters
    np.testing.assert_allclose(p[at.CENTER : at.SHAPE], MIDDLE, atol=0.01)
    still = 0.85**2 + 1.0 / 12.0
    assert p[at.BLUR] - still == pytest.approx(4.0**2 / 12.0, rel=0.15)
    assert p[at.BLUR + 2] == pytest.approx(still, rel=0.15)


def camera_of(h):
    """A camera and the normal in its frame with which the circle has this perspective."""
    camera = Camera('c', SIZE, SIZE, 900.0, 900.0, 4.0, 6.0)
    # h = -A n_uv / (n . (c, 1)) for the normal of pinhole pixels, n_px = K^-T n.
    n_uv = -np.linalg.solve(A, h)
    n_px = np.array([*n_uv, 1.0 - n_uv @ MIDDLE])
    return camera, camera.matrix.T @ n_px


@pytest.mark.parametrize('h', [(0.0, 0.0), (0.01, -0.006), (-0.015, 0.01)])
def test_with_the_normal_the_centre_is_that_of_the_circle(h):
    camera, normal = camera_of(h)
    found = fit(taken(draw(h=h), 0.0), camera=camera, normal=normal)
    np.testing.assert_allclose(found.parameters[at.CENTER : at.SHAPE], MIDDLE, atol=0.004)
    np.testing.assert_allclose(found.parameters[at.PERSPECTIVE :], h, atol=1e-4)
    # Either sense of the normal.
    other = fit(taken(draw(h=h), 0.0), camera=camera, normal=-normal)
    np.testing.assert_allclose(other.parameters, found.parameters, atol=1e-9)


def test_without_the_normal_perspective_is_found_from_the_image():
    found = fit(taken(draw(h=(0.01, -0.006)), 0.0))
    # The centre of the outer ellipse is what is known well: c - A h / (1 - h . h).
    h = found.parameters[at.PERSPECTIVE :]
    shape = np.array([found.parameters[[6, 7]], found.parameters[[7, 8]]])
    ellipse = found.parameters[at.CENTER : at.SHAPE] - shape @ h / (1.0 - h @ h)
    true = np.array([0.01, -0.006])
    np.testing.assert_allclose(ellipse, MIDDLE - A @ true / (1.0 - true @ true), atol=0.02)


def test_the_outline_holds_the_shape_where_the_rim_is_hidden():
    camera, normal = camera_of((0.0, 0.0))
    exact = draw(inner=0.0)
    exact[:, 42:] = 120.0
    # The sector in the middle is that to the right.
    seen = EVERY.copy()
    seen[SECTORS // 2 - 11 : SECTORS // 2 + 11] = False
    outline = A[[0, 0, 1], [0, 1, 1]] / 17.4
    errors = []
    for given in (UNKNOWN, outline):
        found = [
            fit(taken(exact, 3.0, k), camera=camera, normal=normal, outline=given, inner=0.0,
                off=(0.2, 0.1, 0.01), noise=3.0, seen=seen)
            for k in range(20)
        ]  # fmt: skip
        good = [one.parameters[at.CENTER : at.SHAPE] - MIDDLE for one in found if one.converged]
        assert len(good) > 15
        errors.append(float(np.sqrt(np.mean(np.square(good)))))
    assert errors[1] < errors[0]
    assert errors[1] < 0.1


def test_what_covers_the_rim_is_left_out():
    exact = draw()
    clean = fit(taken(exact))
    covered = exact.copy()
    covered[20:27, :] = 120.0
    found = fit(taken(covered))
    assert found.converged
    kept = np.mean(found.sectors[:SECTORS])
    assert 0.4 < kept < 0.9
    np.testing.assert_allclose(found.parameters[at.CENTER : at.SHAPE], MIDDLE, atol=0.04)
    assert found.residual < 1.2 * clean.residual
    # Less is known then.
    assert np.trace(found.covariance[4:6, 4:6]) > np.trace(clean.covariance[4:6, 4:6])


def test_glare_is_left_out_and_exposure_is_not_glare():
    exact = draw()
    assert fit(taken(exact)).burnt == 0.0
    glary = exact + 300.0 * np.exp(-(((U - 56.0) / 12.0) ** 4) - ((V - 30.0) / 12.0) ** 4)
    found = fit(taken(glary))
    assert 0.1 < found.burnt < 0.6
    assert not found.sectors[:SECTORS][found.sectors[:SECTORS].size // 2]
    # A white ground that noise takes above the limit here and there.
    for level in (251.0, 254.0):
        exposed = fit(taken(draw(levels=(level, 5.0, level)), 3.0), noise=3.0)
        assert exposed.burnt == 0.0
        assert exposed.sectors[:SECTORS].mean() > 0.9
        np.testing.assert_allclose(exposed.parameters[at.CENTER : at.SHAPE], MIDDLE, atol=0.02)


@pytest.mark.parametrize('known', [False, True])
@pytest.mark.parametrize('inner', [0.0, 0.5])
def test_covariance_is_that_of_many_images(known, inner):
    camera, normal = camera_of((0.004, -0.003)) if known else (None, UNKNOWN)
    exact = draw(inner=inner, h=(0.004, -0.003))
    # What the centre means without the normal is known by the prior only: the ellipse's centre.
    errors, squares = [], []
    for seed in range(120):
        found = fit(
            taken(exact, 4.0, seed), camera=camera, normal=normal, inner=inner, noise=4.0
        )  # fmt: skip
        p = found.parameters
        if known:
            place, covariance = p[at.CENTER : at.SHAPE] - MIDDLE, found.covariance[4:6, 4:6]
        else:
            shape = np.array([p[[6, 7]], p[[7, 8]]])
            J = np.hstack([np.eye(2), -shape])
            chosen = [4, 5, 18, 19]
            place = (
                p[at.CENTER : at.SHAPE]
                - shape @ p[at.PERSPECTIVE :]
                - MIDDLE
                + A @ [0.004, -0.003]
            )
            covariance = J @ found.covariance[np.ix_(chosen, chosen)] @ J.T
        errors.append(place)
        squares.append(place @ np.linalg.solve(covariance, place) / 2.0)
    # 240 numbers: the mean of their squares is good to 9 %.
    assert 0.7 < np.mean(squares) < 1.35
    assert np.linalg.norm(np.mean(errors, axis=0)) < 4.0 * np.std(errors) / math.sqrt(120)


def test_nothing_converges_where_nothing_is():
    random = np.random.default_rng(9)
    for image in (
        np.full((SIZE, SIZE), 90, np.uint8),
        np.zeros((SIZE, SIZE), np.uint8),
        np.full((SIZE, SIZE), 255, np.uint8),
        random.integers(0, 256, (SIZE, SIZE), dtype=np.uint8),
        taken(40.0 + 2.0 * U, 0.0),
    ):
        found = fit(image)
        contrast = abs(found.parameters[at.OUTSIDE] - found.parameters[at.BAND])
        assert not found.converged or contrast < 6.0 * max(found.residual, 0.3)
