"""
Detection of one circular marker in one image: position, covariance, status.

Edges and ellipse hypotheses in a window (:mod:`longreach_markers.marker.ellipses`), then a
maximum-likelihood fit (:mod:`longreach_markers.marker.fit`), then its assessment. Pixels are
(u, v) with integer pixel centres.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from longreach_dynamics.errors import InputError
from longreach_markers.camera.model import Camera
from longreach_markers.marker.assessment import assess, explains
from longreach_markers.marker.detection_input import (
    check_image,
    check_place,
    check_view,
    expected_outlines,
)
from longreach_markers.marker.edges import (
    GRADIENT_NOISE,
    EdgePoints,
    find_edges,
    image_noise,
    without_glare,
)
from longreach_markers.marker.ellipses import (
    Expectation,
    Hypothesis,
    closed_ellipses,
    rank_hypotheses,
    seen_sectors,
)
from longreach_markers.marker.fit import fit_marker
from longreach_markers.marker.limits import LIMITS, DetectionLimits
from longreach_markers.marker.observation import LOST as LOST
from longreach_markers.marker.observation import TRACKED as TRACKED
from longreach_markers.marker.observation import UNCERTAIN as UNCERTAIN
from longreach_markers.marker.observation import Observation as Observation
from longreach_markers.marker.observation import lost as lost
from longreach_markers.marker.pixel_parameters import LEAST_NOISE
from longreach_markers.marker.symmetric import SECTORS

_ORDER = {TRACKED: 0, UNCERTAIN: 1, LOST: 2}
# Initial blur [px]: lens and pixel.
_BLUR = 1.0
# Least distance of the centre from the given place that is searched by default [px].
_REACH = 12.0
# Fits in one image, for searches for alike markers, which find the same ellipses. Each by what it
# depends on: the hypothesis, whether edges beside glare were left out, inner edge, shear,
# logarithm of the noise, shape of a circle in the plane.
SharedFits = list[tuple[tuple[float, ...], Observation]]
# Largest differences of what two fits depend on that share a result: of the same edge points the
# same ellipse follows, and the fit moves it to the same optimum; hypothetical inner edges are not
# used where one is expected.
_ALIKE = np.array(
    [*[0.1] * 5, 0.0, 0.05, *[math.inf] * 3, 0.0, 0.03, *[5e-4] * 3, 0.2, *[0.005] * 3]
)


def detect(
    image: NDArray[np.uint8],
    at: ArrayLike,
    radius: float,
    *,
    camera: Camera | None = None,
    normal_cam: ArrayLike | None = None,
    search: float | None = None,
    expected: Observation | None = None,
    shear: ArrayLike = (0.0, 0.0, 0.0),
    exclude: Sequence[tuple[float, float, float]] = (),
    limits: DetectionLimits = LIMITS,
) -> Observation:
    """
    Find a circular marker near a pixel.

    Parameters
    ----------
    image : ndarray of uint8, shape (height, width)
    at : array_like, shape (2,)
        Approximate centre: u, v [px].
    radius : float
        Approximate longer semi-axis of the outer edge [px].
    camera : Camera, optional
        The camera, for its lens distortion.
    normal_cam : array_like, shape (3,), optional
        Normal of the marker's plane in the camera's optical frame, of either sign. With it, the
            centre is that of the circle; requires the camera.
    search : float, optional
        Largest distance of the centre from ``at`` [px]; by default the radius, at least 12.
    expected : Observation, optional
        Previous observation: shape, radius ratio and polarity must agree with it.
    shear : array_like, shape (3,), optional
        Displacement of the image per row (of u, of v) by motion under a rolling shutter, and the
            standard deviation of both.
    exclude : sequence of (u, v, distance)
        Regions excluded for the centre, because they contain other known markers.
    limits : DetectionLimits, optional

    Returns
    -------
    Observation

    Raises
    ------
    InputError
        For an invalid image, a position outside of it, a radius out of range, a normal without a
            camera or perpendicular to the line of sight.
    """
    given = Search(
        image, at, radius,
        camera=camera, normal_cam=normal_cam, search=search, expected=expected, shear=shear,
        limits=limits,
    )  # fmt: skip
    return given.result(exclude)


class Search:
    """A search as :func:`detect`, for several sets of excluded regions; fits can be shared."""

    def __init__(
        self,
        image: NDArray[np.uint8],
        at: ArrayLike,
        radius: float,
        *,
        camera: Camera | None = None,
        normal_cam: ArrayLike | None = None,
        search: float | None = None,
        expected: Observation | None = None,
        shear: ArrayLike = (0.0, 0.0, 0.0),
        limits: DetectionLimits = LIMITS,
        shared: SharedFits | None = None,
    ) -> None:
        self._image = image = check_image(image)
        self._place = place = check_place(at, image)
        if not limits.smallest <= radius <= limits.largest:
            raise InputError(
                f'radius = {radius:g} px; allowed: [{limits.smallest:g}, {limits.largest:g}] px;'
                ' give the longer semi-axis of the outer edge'
            )
        usual = max(_REACH, radius)
        reach = usual if search is None else search
        if not (math.isfinite(reach) and reach > 0.0):
            raise InputError(f'search = {reach:g} px; allowed: above 0')
        reach = min(reach, float(sum(image.shape)))
        self._packed, self._normal = check_view(camera, normal_cam, image)
        window = _window(place, reach, radius)
        self._noise = noise = image_noise(image, *window)
        least = max(limits.edge * GRADIENT_NOISE * noise, limits.least_edge)
        edges = find_edges(image, window, least)
        wanted = Expectation(float(place[0]), float(place[1]), float(radius), float(reach))
        self._outline, likely = expected_outlines(camera, self._normal, place, limits)
        if expected is not None or likely.any():
            a11, a12, a22 = (likely * radius if expected is None else expected.shape).tolist()
            wanted = wanted._replace(
                a11=a11, a12=a12, a22=a22,
                polarity=0 if expected is None else (-1 if expected.bright else 1),
            )  # fmt: skip
        self._radius, self._wanted, self._expected = radius, wanted, expected
        self._camera, self._is_wide = camera, reach > usual
        self._shear = np.asarray(shear, float)
        self._limits = limits
        self._edges = edges
        self._passes: list[tuple[EdgePoints, list[Hypothesis]]] = []
        self._shared: SharedFits = [] if shared is None else shared

    def _hypotheses(self, thorough: bool) -> tuple[EdgePoints, list[Hypothesis]]:
        """Return edges and hypotheses of the first pass, or the thorough one without glare."""
        if len(self._passes) <= thorough:
            edges = without_glare(self._image, self._edges) if thorough else self._edges
            ranked = rank_hypotheses(edges, self._wanted, thorough=thorough)
            self._passes.append((edges, [one for one in ranked if one.score > -9.0]))
        return self._passes[thorough]

    def _refined(self, hypothesis: Hypothesis, edges: EdgePoints) -> Observation:
        """Return the fit of a hypothesis, by whatever search it was made."""
        expected, noise, outline = self._expected, self._noise, self._outline
        inner = math.nan if expected is None else expected.inner
        level = math.log(max(noise, LEAST_NOISE))
        # In a window that is much larger than a marker, noise and the shape of a circle vary: they
        # are those at the ellipse.
        vary = (0.0,) * 4 if self._is_wide else (level, *outline)
        # Both passes have the same edges where there is no glare.
        given = (*hypothesis, edges is not self._edges, inner, *self._shear, *vary)
        known = np.array([one for one, _ in self._shared]).reshape(-1, _ALIKE.size)
        alike = np.flatnonzero((np.abs(known - given) <= _ALIKE).all(axis=1))
        if alike.size:
            return self._shared[int(alike[0])][1]
        if self._is_wide:
            size = hypothesis.longest
            place = np.array([hypothesis.u, hypothesis.v])
            noise = image_noise(self._image, *_window(place, max(_REACH, size), size))
            with contextlib.suppress(InputError):
                outline, _ = expected_outlines(self._camera, self._normal, place, self._limits)
        seen = self._fitted(hypothesis, edges, noise, outline)
        self._shared.append((given, seen))
        return seen

    def _fitted(
        self,
        hypothesis: Hypothesis,
        edges: EdgePoints,
        noise: float,
        outline: NDArray[np.float64],
    ) -> Observation:
        image, expected, limits = self._image, self._expected, self._limits
        inner = hypothesis.inner if hypothesis.inner_support > 0.4 else 0.0
        if expected is not None:
            inner = expected.inner
        shape = (hypothesis.a11, hypothesis.a12, hypothesis.a22)
        start = np.array([hypothesis.u, hypothesis.v, *shape, inner])
        seen = seen_sectors(edges, hypothesis._replace(inner=inner))
        if inner > 0.0 and np.count_nonzero(seen[SECTORS:]) < limits.least_rim * SECTORS:
            # With a hole of few pixels the edge points lie beside it: its grey level would be
            # unknown.
            seen[SECTORS:] = seen[:SECTORS]
        view = self._packed, self._normal, outline
        fit = fit_marker(image, *view, start, seen, _BLUR, noise)
        round_enough = hypothesis.support >= limits.new_rim
        if inner == 0.0 and expected is None and round_enough and not explains(fit, noise, limits):
            # The inner edge may be blurred away: try rings of two widths.
            for ratio in (0.5, 0.75):
                start[5] = ratio
                seen[SECTORS:] = seen[:SECTORS]
                other = fit_marker(image, *view, start, seen, _BLUR, noise)
                if other.converged and other.residual < 0.8 * fit.residual:
                    fit, inner = other, ratio
        if not (fit.converged and np.all(np.isfinite(fit.parameters))):
            place = np.array([hypothesis.u, hypothesis.v])
            return lost('the fit found no marker here', place, hypothesis.a11)
        # Without a camera, assume a field of view of a right angle.
        focal = float(self._packed[0]) or 0.5 * max(image.shape)
        return assess(
            fit, hypothesis, edges, *view, self._shear, focal, noise, limits, disc=inner == 0.0
        )

    def result(self, exclude: Sequence[tuple[float, float, float]] = ()) -> Observation:
        """Return what :func:`detect` finds without some regions."""
        place, radius, expected = self._place, self._radius, self._expected
        limits = self._limits
        best: Observation | None = None
        for thorough in (False, True):
            edges, ranked = self._hypotheses(thorough)
            ranked = [one for one in ranked if not _is_within(one, exclude)]
            for hypothesis in ranked[: 3 if thorough else 1]:
                seen = self._refined(hypothesis, edges)
                # It may be the inner edge of a ring whose outer edge has not been found yet.
                if seen.status == TRACKED and _is_plain(seen, radius, limits):
                    return seen
                if seen.status == TRACKED and thorough and expected is None:
                    if seen.inner == 0.0 and seen.radius < limits.inner_ratio * radius:
                        outer = _around(seen, hypothesis, radius)
                        whole = self._refined(outer, edges)
                        seen = whole if whole.status == TRACKED else seen
                    seen = _questioned(seen, place, radius, ranked, limits)
                if seen.status == TRACKED and thorough:
                    return seen
                if best is None or _ORDER[seen.status] < _ORDER[best.status]:
                    best = seen
        if best is None:
            return lost('no ellipse of this size here', place, radius, expected)
        if best.status == LOST:
            return lost(best.reason, place, radius, expected)
        if best.status == TRACKED and expected is None:
            # The first pass found it, and the second pass found nothing better.
            return _questioned(best, place, radius, ranked, limits)
        return best


def _window(place: NDArray[np.float64], reach: float, radius: float) -> tuple[int, int, int, int]:
    half = reach + 1.3 * radius + 6.0
    return (
        int(place[0] - half), int(place[0] + half) + 1,
        int(place[1] - half), int(place[1] + half) + 1,
    )  # fmt: skip


def _is_within(one: Hypothesis, regions: Sequence[tuple[float, float, float]]) -> bool:
    return any(math.hypot(one.u - u, one.v - v) < distance for u, v, distance in regions)


def _is_plain(seen: Observation, radius: float, limits: DetectionLimits) -> bool:
    """Return whether an observation agrees with the expectation so well that the search ends."""
    change = abs(math.log(seen.radius / radius))
    return seen.rim_support >= limits.plain_rim and change < math.log(limits.plain_radius)


def _around(seen: Observation, hypothesis: Hypothesis, radius: float) -> Hypothesis:
    """Return the hypothetical outer edge for which a small ellipse is the inner edge."""
    ratio = seen.radius / radius
    a11, a12, a22 = (seen.shape / ratio).tolist()
    u, v = seen.center.tolist()
    return hypothesis._replace(
        u=u, v=v, a11=a11, a12=a12, a22=a22,
        polarity=-hypothesis.polarity, inner=ratio, inner_support=1.0,
    )  # fmt: skip


def _questioned(
    seen: Observation,
    at: NDArray[np.float64],
    radius: float,
    ranked: list[Hypothesis],
    limits: DetectionLimits,
) -> Observation:
    """Return a partly visible marker as UNCERTAIN if another ellipse, an occluder, may be it."""
    doubt = ''
    if not limits.smallest_ratio < seen.radius / radius < limits.largest_ratio:
        doubt = f'radius of {seen.radius:.1f} px instead of {radius:.1f} px'
    away = math.dist(seen.center, at)
    for other in ranked:
        center = (other.u, other.v)
        if (
            math.dist(center, at) < away - limits.nearer * radius
            and math.dist(center, seen.center) > limits.nearer * radius
            and other.support >= seen.rim_support
            and limits.smallest_rival < other.longest / radius < limits.largest_rival
        ):
            doubt = f'another ellipse is nearer to ({at[0]:.0f}, {at[1]:.0f})'
    return replace(seen, status=UNCERTAIN, reason=doubt) if doubt else seen


def find_markers(
    image: NDArray[np.uint8],
    radii: tuple[float, float] = (6.0, 60.0),
    *,
    camera: Camera | None = None,
    normal_cam: ArrayLike | None = None,
    window: tuple[int, int, int, int] | None = None,
    exclude: Sequence[tuple[float, float, float]] = (),
    strict: bool = False,
    limits: DetectionLimits = LIMITS,
) -> list[Observation]:
    """
    Find all rings in an image, without prior knowledge.

    A ring is a pair of closed concentric ellipses of opposite polarity, which hardly any other
    object has. Discs are not found.

    Parameters
    ----------
    image : ndarray of uint8, shape (height, width)
    radii : (float, float)
        Range of the longer semi-axis [px].
    camera, normal_cam
        As in :func:`detect`.
    window : (int, int, int, int), optional
        Part of the image, which contains the rings: first column and the one after the last, the
        same of rows.
    exclude
        As in :func:`detect`.
    strict : bool
        Only rings with 75 % of the rim, as much of the inner edge and a band of 3 px, where
        letters are to be left out; those whose edges are ellipses to a fraction of a pixel remain.
    limits : DetectionLimits, optional

    Returns
    -------
    list of Observation
        All ``TRACKED``, with at least 60 % of the rim; from top to bottom.
    """
    image = check_image(image)
    if strict:
        # What a letter's outline is not an ellipse by would pass for correlated noise or light.
        limits = limits.replace(
            least_inner=1.0, inner_share=limits.strict_rim, noisiest=limits.strict_noise,
            shaded_rim=limits.plain_rim,
        )  # fmt: skip
    frame = window or (0, image.shape[1], 0, image.shape[0])
    noise = image_noise(image, *frame)
    edges = find_edges(
        image, frame, max(limits.edge * GRADIENT_NOISE * noise, 2.0 * limits.least_edge)
    )
    found = closed_ellipses(edges, 0.25 * radii[0], radii[1], 0.6)
    rings = []
    for outer in found:
        longest = outer.longest
        if longest < radii[0] or _is_within(outer, exclude):
            continue
        for inner in found:
            ratio = inner.longest / longest
            away = math.hypot(inner.u - outer.u, inner.v - outer.v)
            if (
                inner.polarity != outer.polarity
                and 0.2 < ratio < 0.92
                and away < 0.12 * longest
                and np.linalg.norm(inner.shape - ratio * outer.shape) < 0.2 * longest
            ):
                rings.append((outer, longest))
                break
    seen: list[Observation] = []
    for outer, longest in rings:
        near = detect(
            image, (outer.u, outer.v), longest,
            camera=camera, normal_cam=normal_cam, search=max(3.0, 0.2 * longest), limits=limits,
        )  # fmt: skip
        again = any(
            math.hypot(*(near.center - other.center)) < 0.5 * near.radius for other in seen
        )
        rim, band = (limits.strict_rim, limits.strict_band) if strict else (limits.new_rim, 0.0)
        is_ring = near.status == TRACKED and near.rim_support >= rim and near.inner > 0.0
        if is_ring and (1.0 - near.inner) * near.radius >= band and not again:
            seen.append(near)
    return sorted(seen, key=lambda one: (one.center[1], one.center[0]))


def warm_up() -> None:
    """Compile all kernels of the detection, or load them from the cache."""
    v, u = np.mgrid[0:80, 0:80]
    away = np.hypot(u - 40.3, v - 39.6)
    image = np.where((away < 18.0) & (away > 9.0), 40, 180).astype(np.uint8)
    camera = Camera('warm_up', 80, 80, 2000.0, 2000.0, 40.0, 40.0, 'plumb_bob', ())
    seen = detect(image, (40.0, 40.0), 18.0, camera=camera, normal_cam=(0.0, 0.0, 1.0))
    detect(image, (40.0, 40.0), 18.0, expected=seen)
    find_markers(image)
    # An occlusion, as kernels for hidden rims are used at none before.
    image[:, 48:] = 110
    detect(image, (40.0, 40.0), 18.0, camera=camera, normal_cam=(0.0, 0.0, 1.0))
