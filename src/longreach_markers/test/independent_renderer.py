"""
Images of circular markers, to judge the detector with: no code of longreach_markers is used here.

A planar target stands in front of a pinhole camera with plumb_bob distortion. Each pixel of a
window is divided into S x S cells. The ray through the middle of a cell meets the target's plane
exactly (perspective, distortion by Newton's method); of an edge that crosses the cell, the covered
share of the cell is that of a half-plane at the edge's distance. The cells are then weighted with
the integral of point spread function (Gaussian) and pixel (box) over the cell.

What is assumed: an edge is straight within a cell (its bend moves it by less than 1e-4 px for
S = 8 and radii from 10 px), rays are bilinear between the corners of a pixel (2e-5 px), and the
grey level of a cell is spread evenly over it. With S = 8 and a contrast of 150 pixels are within
0.11 grey levels of the limit, 0.02 RMS; the centre moves by less than 1e-5 px.

Order: surroundings with clutter, card, neighbours, marker; times illumination and shadows;
occluders in front; plus glare; optics and pixels; noise; clipping and rounding.

Pixels (u, v): the centre of the first one is (0, 0). Positions of image elements (occluders,
shading, glare) are in pixels of the full frame. Grey levels 0 to 255. Metres in the optical frame:
x right, y down, z forward.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import cv2
import numpy as np
from numba import njit

OVERSAMPLING = 8
# The point spread function ends there [standard deviations].
REACH = 5.0
# Pixels along the sides of squares that are painted at once where no edge crosses them.
TOGETHER = 4


@dataclass(frozen=True)
class PinholeCamera:
    """A camera: focal lengths and principal point [px]; distortion k1, k2, p1, p2, k3."""

    width: int = 2452
    height: int = 2054
    fx: float = 4000.0
    fy: float = 4000.0
    cx: float = 1225.5
    cy: float = 1026.5
    distortion: tuple[float, float, float, float, float] = (0.0, 0.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True)
class Card:
    """What the marker is fixed on: half its size in radii of the marker, 'square' or 'round'."""

    size: float = 2.0
    shape: str = 'square'


@dataclass(frozen=True)
class Shading:
    """Illumination 1 + strength t + bend t^2, t = (p - at).(direction) / length."""

    strength: float = 0.0
    direction: float = 0.0  # from u towards v [rad]
    bend: float = 0.0
    at: tuple[float, float] = (0.0, 0.0)
    length: float = 40.0  # [px]


@dataclass(frozen=True)
class Bar:
    """A straight occluder without end, through a point; infinite width hides a half-plane."""

    at: tuple[float, float]  # a point of its axis; of its edge if the width is infinite
    direction: float  # of its normal, from u towards v [rad]
    width: float  # [px]
    grey: float


@dataclass(frozen=True)
class Shadow:
    """
    Less light: on one side of a straight edge, or everywhere but in round spots.

    ``light`` is the share of the light that is left, ``penumbra`` the width over which it changes
    linearly [px].
    """

    at: tuple[float, float]  # a point of the edge
    direction: float  # from u towards v, into the shadow [rad]
    light: float
    penumbra: float = 1.0
    spots: tuple[tuple[float, float, float], ...] = ()  # centre and radius [px]


@dataclass(frozen=True)
class Glare:
    """Added light: amplitude exp(-d^power), d the distance over width; longer in one direction."""

    at: tuple[float, float]
    width: float  # [px]
    amplitude: float = 350.0
    power: float = 4.0
    length: float | None = None  # instead of the width in its direction [px]
    direction: float = 0.0

    def distance(self, pixels: np.ndarray) -> np.ndarray:
        """Return d of pixels (..., 2)."""
        c, s = math.cos(self.direction), math.sin(self.direction)
        u, v = np.moveaxis(pixels - np.array(self.at), -1, 0)
        return np.hypot(
            (c * u + s * v) / (self.length or self.width), (c * v - s * u) / self.width
        )


@dataclass(frozen=True)
class Scene:
    """
    One marker and everything that disturbs its image.

    ``inner`` is the ratio of the inner radius, 0 for a disc. ``background`` is the grey level
    around the marker: of its card, or of everything if there is none; ``inside`` that within a
    ring; ``surroundings`` that beyond the card. ``neighbours`` are the centres of equal markers
    in the same plane, in radii, along the plane's axes. ``texture`` (n, n) replaces the marker by
    a square of cells with these grey levels and of side ``2 radius``, its first row on top.
    A bowed paper touches the plane at the marker's centre, and its rim is nearer to the camera if
    ``bow`` is positive; lengths on it stay the same. ``window`` (first column, first row, width,
    height) is 6 radii wide if it is None.
    """

    camera: PinholeCamera = PinholeCamera()
    center: tuple[float, float, float] = (0.0, 0.0, 20.0)
    normal: tuple[float, float, float] = (0.0, 0.0, -1.0)
    radius: float = 0.1  # [m]
    inner: float = 0.0
    roll: float = 0.0  # of the plane's axes about the normal [rad]
    background: float = 200.0
    marker: float = 50.0
    inside: float = 200.0
    surroundings: float = 110.0
    card: Card | None = None
    neighbours: tuple[tuple[float, float], ...] = ()
    texture: np.ndarray | None = None
    present: bool = True  # without it, only surroundings and what is in front of them
    clutter: int = 0  # elements on the surroundings
    clutter_contrast: float = 80.0
    shading: Shading = Shading()
    shadows: tuple[Shadow, ...] = ()
    bars: tuple[Bar, ...] = ()
    glare: tuple[Glare, ...] = ()
    blur: float = 0.8  # standard deviation [px]
    motion: float = 0.0  # during the exposure [px]; the truth is that of its middle
    motion_direction: float = 0.0
    noise: float = 3.0
    aspect: float = 0.0  # by which it is printed too large along the second axis of the plane
    bow: float = 0.0  # sag of the paper, bent to a cylinder, at the rim over the radius
    bow_direction: float = 0.0  # across the cylinder, from the plane's first axis [rad]
    smoothing: float = 0.0  # of the noisy image, standard deviation [px]
    median: bool = False  # of 3 x 3 noisy pixels
    jpeg: int = 0  # quality of a compressed image; 0: none
    shear: tuple[float, float] = (0.0, 0.0)  # of a rolling shutter, per row from the centre's [px]
    window: tuple[int, int, int, int] | None = None
    seed: int = 0

    def changed(self, **changes: object) -> Scene:
        """Return the scene with some fields replaced."""
        return replace(self, **changes)  # type: ignore[arg-type]


class EllipseTruth(NamedTuple):
    """An ellipse: centre [px], semi-axes with the larger first [px], angle of the major axis."""

    center: np.ndarray
    axes: np.ndarray
    angle: float


class Rendered(NamedTuple):
    """
    A window and its truth; all positions are in pixels of the window.

    ``exact`` is the image without noise and rounding, not clipped. ``center`` is the projected
    centre of the circle. ``ellipse`` is fitted to the distorted image of the outer edge,
    ``ellipse_center`` is its centre, ``undistorted_ellipse`` the exact one of a camera without
    distortion. ``offset`` is the window's first pixel in the full frame, ``camera`` the camera
    whose full frame is the window.
    """

    image: np.ndarray
    exact: np.ndarray
    center: np.ndarray
    ellipse_center: np.ndarray
    ellipse: EllipseTruth
    undistorted_ellipse: EllipseTruth
    rim: np.ndarray
    offset: tuple[int, int]
    camera: PinholeCamera


def render(scene: Scene, oversampling: int = OVERSAMPLING) -> Rendered:
    """
    Return the image of a scene's window with its truth.

    Parameters
    ----------
    scene : Scene
    oversampling : int
        Cells along each side of a pixel.
    """
    exact = render_exact(scene, oversampling)
    u0, v0, width, height = window_of(scene)
    noisy = exact + np.random.default_rng([scene.seed, 1]).normal(0.0, 1.0, exact.shape) * (
        scene.noise
    )
    if scene.smoothing > 0.0:
        noisy = cv2.GaussianBlur(noisy, (0, 0), scene.smoothing)
    image = np.clip(np.rint(noisy), 0.0, 255.0).astype(np.uint8)
    if scene.median:
        image = cv2.medianBlur(image, 3)
    if scene.jpeg > 0:
        _, packed = cv2.imencode('.jpg', image, [cv2.IMWRITE_JPEG_QUALITY, scene.jpeg])
        image = cv2.imdecode(packed, cv2.IMREAD_GRAYSCALE)
    offset = np.array([u0, v0], dtype=float)
    center, ellipse, undistorted, rim = truth(scene)
    ellipse = ellipse._replace(center=ellipse.center - offset)
    undistorted = undistorted._replace(center=undistorted.center - offset)
    camera = replace(
        scene.camera,
        width=width,
        height=height,
        cx=scene.camera.cx - u0,
        cy=scene.camera.cy - v0,
    )
    return Rendered(
        image,
        exact,
        center - offset,
        ellipse.center,
        ellipse,
        undistorted,
        rim - offset,
        (u0, v0),
        camera,
    )


def render_exact(scene: Scene, oversampling: int = OVERSAMPLING) -> np.ndarray:
    """Return the image of a scene's window without noise, clipping and rounding [row, column]."""
    u0, v0, width, height = window_of(scene)
    kernel, pad = pixel_weights(scene.blur, oversampling)
    size = (height + 2 * pad) * oversampling, (width + 2 * pad) * oversampling
    corner = u0 - 0.5 - pad, v0 - 0.5 - pad
    bounded = scene.card is not None or not scene.present
    around = np.full(size, scene.surroundings if bounded else scene.background)
    if bounded and scene.clutter:
        _draw_clutter(scene, around, oversampling)
    camera = scene.camera
    frame = _frame(scene) / np.array([[1.0], [1.0 + scene.aspect], [1.0]])
    center = np.array([*scene.center, *_bow(scene)])
    circles = np.array(_circles(scene))
    card = np.array([0.0, 0.0])
    if scene.card and scene.present:
        card[:] = {'square': 1.0, 'round': 2.0}[scene.card.shape], scene.card.size * scene.radius
    texture = np.empty((0, 0)) if scene.texture is None else np.asarray(scene.texture, dtype=float)
    cells = np.zeros(size)
    instants, weights = _instants(scene.motion)
    along = np.array([math.cos(scene.motion_direction), math.sin(scene.motion_direction)])
    for instant, weight in zip(instants, weights, strict=True):
        shift = instant * along
        rays = _corner_rays(
            corner[0] - shift[0],
            corner[1] - shift[1],
            size[1] // oversampling + 1,
            size[0] // oversampling + 1,
            camera.fx,
            camera.fy,
            camera.cx,
            camera.cy,
            np.array(camera.distortion),
            np.array([*scene.shear, project(camera, center[:3])[1]]),
        )
        _paint_plane(
            cells,
            weight,
            around,
            oversampling,
            rays,
            frame,
            center,
            circles,
            card,
            scene.background,
            texture,
            scene.radius if scene.present else 0.0,
        )
    _illuminate(cells, corner[0], corner[1], oversampling, _image_elements(scene))
    return _integrate(cells, kernel, oversampling, height, width)


def window_of(scene: Scene) -> tuple[int, int, int, int]:
    """Return first column, first row, width and height of a scene's window [px]."""
    if scene.window is not None:
        return scene.window
    _, ellipse, _, _ = truth(scene)
    size = 2 * math.ceil(3.0 * ellipse.axes[0])
    u0, v0 = np.rint(ellipse.center - size / 2.0).astype(int)
    return int(u0), int(v0), size, size


def project(camera: PinholeCamera, points: np.ndarray) -> np.ndarray:
    """Return the pixels (..., 2) of points (..., 3) in the optical frame [m]."""
    x, y = points[..., 0] / points[..., 2], points[..., 1] / points[..., 2]
    return _pixels(camera, x, y)


def _pixels(camera: PinholeCamera, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the distorted pixels of normalised coordinates."""
    k1, k2, p1, p2, k3 = camera.distortion
    r2 = x * x + y * y
    radial = 1.0 + r2 * (k1 + r2 * (k2 + r2 * k3))
    xd = x * radial + 2.0 * p1 * x * y + p2 * (r2 + 2.0 * x * x)
    yd = y * radial + p1 * (r2 + 2.0 * y * y) + 2.0 * p2 * x * y
    return np.stack([camera.fx * xd + camera.cx, camera.fy * yd + camera.cy], axis=-1)


def back_project(camera: PinholeCamera, pixel: np.ndarray) -> np.ndarray:
    """Return the ray (3,) with z = 1 through a pixel (2,)."""
    x, y = _undistort(
        (pixel[0] - camera.cx) / camera.fx,
        (pixel[1] - camera.cy) / camera.fy,
        np.array(camera.distortion),
    )
    return np.array([x, y, 1.0])


def rim_points(scene: Scene, ratio: float = 1.0, count: int = 360) -> np.ndarray:
    """Return points (count, 3) of a circle about the marker's centre, its radius times a ratio."""
    angles = np.arange(count) * (2.0 * math.pi / count)
    size = ratio * scene.radius
    places = size * np.stack([np.cos(angles), (1.0 + scene.aspect) * np.sin(angles)])
    curvature, c, s = _bow(scene)
    along, across = c * places[0] + s * places[1], c * places[1] - s * places[0]
    height = np.zeros(count)
    if curvature != 0.0:
        height = (1.0 - np.cos(curvature * along)) / curvature
        along = np.sin(curvature * along) / curvature
    places = np.stack([c * along - s * across, s * along + c * across, height], axis=1)
    return np.array(scene.center) + places @ _frame(scene)


def truth(scene: Scene) -> tuple[np.ndarray, EllipseTruth, EllipseTruth, np.ndarray]:
    """Return projected centre, ellipse, undistorted ellipse and rim [px of the full frame]."""
    camera = scene.camera
    center = project(camera, np.array(scene.center))
    points = rim_points(scene)
    rim = project(camera, points)
    straight = project(replace(camera, distortion=(0.0,) * 5), points)
    return center, fit_ellipse(rim), fit_ellipse(straight), rim


def fit_ellipse(points: np.ndarray) -> EllipseTruth:
    """Return the ellipse of least algebraic distance to points (n, 2) that are nearly on one."""
    mean = points.mean(axis=0)
    scale = np.abs(points - mean).max()
    x, y = ((points - mean) / scale).T
    # A x^2 + B x y + C y^2 + D x + E y = 1: the middle is inside, so that 1 does not vanish.
    A, B, C, D, E = np.linalg.lstsq(
        np.stack([x * x, x * y, y * y, x, y], axis=1), np.ones(x.size), rcond=None
    )[0]
    shape = np.array([[A, B / 2.0], [B / 2.0, C]])
    center = np.linalg.solve(shape, [-D / 2.0, -E / 2.0])
    level = 1.0 + center @ shape @ center
    values, vectors = np.linalg.eigh(shape)
    axes = np.sqrt(level / values)
    angle = math.atan2(vectors[1, 0], vectors[0, 0])
    if not -math.pi / 2.0 < angle <= math.pi / 2.0:
        angle -= math.copysign(math.pi, angle)
    return EllipseTruth(mean + scale * center, scale * axes, angle)


def pixel_weights(blur: float, oversampling: int) -> tuple[np.ndarray, int]:
    """
    Return the weights of cells along one axis, and how many pixels they reach beyond their own.

    Each is the integral over the cell of the Gaussian convolved with the pixel's box.
    """
    pad = math.ceil(REACH * blur)
    edges = np.arange((2 * pad + 1) * oversampling + 1) / oversampling - pad - 0.5

    def ramp(x: np.ndarray) -> np.ndarray:
        """Return the second integral of the Gaussian."""
        if blur == 0.0:
            return np.maximum(x, 0.0)
        s = x / blur
        below = np.array([0.5 * math.erfc(-value / math.sqrt(2.0)) for value in s])
        return x * below + blur / math.sqrt(2.0 * math.pi) * np.exp(-0.5 * s * s)

    weights = np.diff(ramp(edges + 0.5) - ramp(edges - 0.5))
    return weights / weights.sum(), pad


def plane_axes(scene: Scene) -> tuple[np.ndarray, np.ndarray]:
    """Return the two unit vectors (3,) that span the target's plane."""
    first, second, _ = _frame(scene)
    return first, second


def _frame(scene: Scene) -> np.ndarray:
    """Return the plane's axes and its normal as rows; without roll the first is nearly +x."""
    normal = np.array(scene.normal) / np.linalg.norm(scene.normal)
    first = np.array([1.0, 0.0, 0.0]) - normal[0] * normal
    if np.linalg.norm(first) < 1e-3:
        first = np.array([0.0, 1.0, 0.0]) - normal[1] * normal
    first /= np.linalg.norm(first)
    # Seen by the camera, the second axis points down.
    second = -np.cross(normal, first)
    c, s = math.cos(scene.roll), math.sin(scene.roll)
    return np.array([c * first + s * second, c * second - s * first, normal])


def _bow(scene: Scene) -> tuple[float, float, float]:
    """Return the paper's curvature [1/m] and the direction across the cylinder."""
    c, s = math.cos(scene.bow_direction), math.sin(scene.bow_direction)
    return 2.0 * scene.bow / scene.radius, c, s


def _circles(scene: Scene) -> list[list[float]]:
    """Return the circles as rows: place [m], radii [m], grey levels of band and inside."""
    if not scene.present:
        return [[0.0] * 6]
    places = [(0.0, 0.0), *scene.neighbours]
    if scene.texture is not None:
        places = []
    r = scene.radius
    rows = [[a * r, b * r, r, scene.inner * r, scene.marker, scene.inside] for a, b in places]
    return rows or [[0.0] * 6]


def _instants(motion: float) -> tuple[np.ndarray, np.ndarray]:
    """
    Return Gauss-Legendre positions [px] and weights of instants during the exposure.

    As many as leave 0.01 grey levels, because images are smooth when they are blurred.
    """
    if motion == 0.0:
        return np.zeros(1), np.ones(1)
    nodes, weights = np.polynomial.legendre.leggauss(3 + math.ceil(motion))
    return nodes * motion / 2.0, weights / 2.0


def _image_elements(scene: Scene) -> tuple[np.ndarray, ...]:
    """Return shading (6,), shadows (n, 6), spots (m, 4), bars and glare as numbers."""
    s = scene.shading
    shading = [
        s.at[0],
        s.at[1],
        math.cos(s.direction) / s.length,
        math.sin(s.direction) / s.length,
        s.strength,
        s.bend,
    ]
    shadows = [
        [*t.at, math.cos(t.direction), math.sin(t.direction), t.light, max(t.penumbra, 1e-3)]
        for t in scene.shadows
    ]
    # The spots of each shadow, with its number.
    spots = [[*spot, k] for k, t in enumerate(scene.shadows) for spot in t.spots]
    bars = [
        [b.at[0], b.at[1], math.cos(b.direction), math.sin(b.direction), b.width, b.grey]
        for b in scene.bars
    ]
    glare = [
        [
            *g.at,
            math.cos(g.direction) / (g.length or g.width),
            math.sin(g.direction) / (g.length or g.width),
            -math.sin(g.direction) / g.width,
            math.cos(g.direction) / g.width,
            g.amplitude,
            g.power,
        ]
        for g in scene.glare
    ]
    return (
        np.array(shading),
        np.array(shadows).reshape(len(shadows), 6),
        np.array(spots, float).reshape(len(spots), 4),
        np.array(bars).reshape(len(bars), 6),
        np.array(glare).reshape(len(glare), 8),
    )


def _draw_clutter(scene: Scene, around: np.ndarray, oversampling: int) -> None:
    """Draw polygons, lines, strokes and a texture on the surroundings."""
    rng = np.random.default_rng([scene.seed, 2])
    height, width = around.shape
    reach = 0.5 * min(height, width)
    for _ in range(scene.clutter):
        grey = np.clip(
            scene.surroundings + scene.clutter_contrast * rng.uniform(-1.0, 1.0), 5.0, 250.0
        )
        middle = rng.uniform(0.0, 1.0, 2) * [width, height]
        turn = rng.uniform(0.0, math.pi)
        kind = rng.integers(3)
        if kind == 0:
            sides = rng.integers(3, 7)
            angles = turn + (np.arange(sides) + rng.uniform(-0.3, 0.3, sides)) * (
                2.0 * math.pi / sides
            )
            radii = reach * rng.uniform(0.1, 0.5) * rng.uniform(0.8, 1.1, sides)
            corners = middle + radii[:, None] * np.stack([np.cos(angles), np.sin(angles)], axis=1)
            _fill_polygon(around, corners, grey)
        elif kind == 1:
            _fill_polygon(
                around,
                _stroke(middle, turn, 4.0 * reach, rng.uniform(1.0, 5.0), oversampling),
                grey,
            )
        else:
            # Strokes like those of a letter.
            length, thick = reach * rng.uniform(0.1, 0.35), rng.uniform(1.0, 3.0)
            for _ in range(3):
                place = middle + length * rng.uniform(-0.6, 0.6, 2)
                angle = turn + math.pi / 2.0 * rng.integers(2)
                _fill_polygon(around, _stroke(place, angle, length, thick, oversampling), grey)
    rows, columns, left, right = np.arange(height), np.arange(width), [], []
    for _ in range(2):
        # A plane wave is a sum of two products.
        angle, period = rng.uniform(0.0, math.pi), oversampling * rng.uniform(3.0, 15.0)
        a = 2.0 * math.pi * math.cos(angle) / period * columns + rng.uniform(0.0, 6.0)
        b = 2.0 * math.pi * math.sin(angle) / period * rows
        left += [np.cos(b), -np.sin(b)]
        right += [np.cos(a), np.sin(a)]
    around += np.stack(left, axis=1) @ (0.05 * scene.clutter_contrast * np.stack(right))


def _stroke(
    middle: np.ndarray, angle: float, length: float, thick: float, oversampling: int
) -> np.ndarray:
    """Return the corners of a thin rectangle [cells]; its thickness is in pixels."""
    along = np.array([math.cos(angle), math.sin(angle)]) * length / 2.0
    across = np.array([-math.sin(angle), math.cos(angle)]) * thick * oversampling / 2.0
    return np.array(
        [
            middle + along + across,
            middle - along + across,
            middle - along - across,
            middle + along - across,
        ]
    )


@njit(cache=True, error_model='numpy')
def _fill_polygon(cells, corners, grey):
    """Fill a convex polygon; corners (n, 2) are columns and rows of cells, in either sense."""
    height, width = cells.shape
    n = corners.shape[0]
    area = 0.0
    for k in range(n):
        p, q = corners[k], corners[(k + 1) % n]
        area += p[0] * q[1] - p[1] * q[0]
    normals = np.empty((n, 2))
    for k in range(n):
        p, q = corners[k], corners[(k + 1) % n]
        length = math.copysign(math.hypot(q[0] - p[0], q[1] - p[1]), area)
        normals[k, 0], normals[k, 1] = (p[1] - q[1]) / length, (q[0] - p[0]) / length
    top = max(0, int(corners[:, 1].min()) - 1)
    bottom = min(height, int(corners[:, 1].max()) + 2)
    for j in range(top, bottom):
        # Where in this row the distance to no edge is below minus the half diagonal of a cell.
        left, right = 0.0, width - 1.0
        for k in range(n):
            nu, nv = normals[k]
            there = (j - corners[k, 1]) * nv - corners[k, 0] * nu + 0.75
            if nu > 1e-9:
                left = max(left, -there / nu)
            elif nu < -1e-9:
                right = min(right, -there / nu)
            elif there < 0.0:
                right = -1.0
        for i in range(math.ceil(left), math.floor(right) + 1):
            share = 1.0
            for k in range(n):
                nu, nv = normals[k]
                distance = (i - corners[k, 0]) * nu + (j - corners[k, 1]) * nv
                share = min(share, _half_plane(distance, nu, nv, 1.0))
            cells[j, i] += share * (grey - cells[j, i])


@njit(cache=True, error_model='numpy')
def _half_plane(distance, nu, nv, side):
    """Return the share of a square that a half-plane covers; the distance is positive inside."""
    a, b = side * abs(nu), side * abs(nv)
    if a < b:
        a, b = b, a
    s = abs(distance)
    if s >= 0.5 * (a + b):
        outside = 0.0
    elif s <= 0.5 * (a - b):
        outside = 0.5 - s / a
    else:
        outside = (0.5 * (a + b) - s) ** 2 / (2.0 * a * b)
    return outside if distance < 0.0 else 1.0 - outside


@njit(cache=True, error_model='numpy')
def _undistort(xd, yd, distortion):
    """Return normalised coordinates from distorted ones, by Newton's method."""
    k1, k2, p1, p2, k3 = distortion
    x, y = xd, yd
    for _ in range(50):
        r2 = x * x + y * y
        radial = 1.0 + r2 * (k1 + r2 * (k2 + r2 * k3))
        slope = k1 + r2 * (2.0 * k2 + 3.0 * k3 * r2)
        ex = x * radial + 2.0 * p1 * x * y + p2 * (r2 + 2.0 * x * x) - xd
        ey = y * radial + p1 * (r2 + 2.0 * y * y) + 2.0 * p2 * x * y - yd
        if ex * ex + ey * ey < 1e-28:
            break
        xx = radial + 2.0 * x * x * slope + 2.0 * p1 * y + 6.0 * p2 * x
        xy = 2.0 * x * y * slope + 2.0 * p1 * x + 2.0 * p2 * y
        yy = radial + 2.0 * y * y * slope + 6.0 * p1 * y + 2.0 * p2 * x
        determinant = xx * yy - xy * xy
        x -= (yy * ex - xy * ey) / determinant
        y -= (xx * ey - xy * ex) / determinant
    return x, y


@njit(cache=True, error_model='numpy')
def _corner_rays(u0, v0, columns, rows, fx, fy, cx, cy, distortion, shear):
    """Return normalised coordinates (rows, columns, 2) at the corners of pixels."""
    rays = np.empty((rows, columns, 2))
    plain = np.abs(distortion).max() == 0.0
    for j in range(rows):
        below = v0 + j - shear[2]
        y = (v0 + j - shear[1] * below - cy) / fy
        for i in range(columns):
            x = (u0 + i - shear[0] * below - cx) / fx
            if plain:
                rays[j, i, 0], rays[j, i, 1] = x, y
            else:
                rays[j, i] = _undistort(x, y, distortion)
    return rays


@njit(cache=True, error_model='numpy')
def _edge(level, a, b, slopes, side):
    """Return the share of a cell within an edge; (a, b) is the slope of the level in the plane."""
    gu = a * slopes[0] + b * slopes[2]
    gv = a * slopes[1] + b * slopes[3]
    steep = math.sqrt(gu * gu + gv * gv)
    return _half_plane(level / steep, gu / steep, gv / steep, side)


@njit(cache=True, error_model='numpy')
def _in_circle(a, b, radius, slopes, side, near):
    """Return the share of a cell within a circle about the origin of (a, b)."""
    distance = math.sqrt(a * a + b * b)
    level = radius - distance
    if level > near:
        return 1.0
    if level < -near or radius <= 0.0:
        return 0.0
    if distance == 0.0:
        return 1.0
    return _edge(level, -a / distance, -b / distance, slopes, side)


@njit(cache=True, error_model='numpy')
def _in_square(a, b, half, slopes, side, near):
    """Return the share of a cell within a square about the origin of (a, b)."""
    level_a, level_b = half - abs(a), half - abs(b)
    level = min(level_a, level_b)
    if level > near:
        return 1.0
    if level < -near:
        return 0.0
    share_a = _edge(level_a, -1.0 if a > 0.0 else 1.0, 0.0, slopes, side)
    return share_a * _edge(level_b, 0.0, -1.0 if b > 0.0 else 1.0, slopes, side)


@njit(cache=True, error_model='numpy')
def _in_texture(a, b, half, texture, slopes, side):
    """Return the grey level of a texture, its steps as wide as a cell."""
    n = texture.shape[0]
    pitch = 2.0 * half / n
    spread_a = side * (abs(slopes[0]) + abs(slopes[1])) / pitch
    spread_b = side * (abs(slopes[2]) + abs(slopes[3])) / pitch
    x, y = (a + half) / pitch - 0.5, (b + half) / pitch - 0.5
    i, j = math.floor(x), math.floor(y)
    right = min(max(0.5 + (x - i - 0.5) / spread_a, 0.0), 1.0)
    below = min(max(0.5 + (y - j - 0.5) / spread_b, 0.0), 1.0)
    i0, i1 = min(max(i, 0), n - 1), min(max(i + 1, 0), n - 1)
    j0, j1 = min(max(j, 0), n - 1), min(max(j + 1, 0), n - 1)
    top = texture[j0, i0] + right * (texture[j0, i1] - texture[j0, i0])
    bottom = texture[j1, i0] + right * (texture[j1, i1] - texture[j1, i0])
    return top + below * (bottom - top)


@njit(cache=True, error_model='numpy')
def _layers(a, b, slopes, side, near, circles, card, background, texture, tile):
    """
    Return what a square at (a, b) in the plane shows: share of the surroundings, grey of the rest.

    ``side`` is its side [px]; edges farther away than ``near`` [m] do not cross it.
    """
    behind, grey = 1.0, 0.0
    if card[0] > 0.0:
        if card[0] == 1.0:
            share = _in_square(a, b, card[1], slopes, side, near)
        else:
            share = _in_circle(a, b, card[1], slopes, side, near)
        behind, grey = 1.0 - share, share * background
    for k in range(circles.shape[0]):
        ak, bk = a - circles[k, 0], b - circles[k, 1]
        outer = circles[k, 2]
        if outer > 0.0 and ak * ak + bk * bk < (outer + near) ** 2:
            share = _in_circle(ak, bk, outer, slopes, side, near)
            hole = _in_circle(ak, bk, circles[k, 3], slopes, side, near)
            band = share - hole
            behind *= 1.0 - share
            grey = (1.0 - share) * grey + band * circles[k, 4] + hole * circles[k, 5]
    if texture.shape[0] > 0 and tile > 0.0:
        share = _in_square(a, b, tile, slopes, side, near)
        if share > 0.0:
            behind *= 1.0 - share
            grey = (1.0 - share) * grey + share * _in_texture(a, b, tile, texture, slopes, side)
    return behind, grey


@njit(cache=True, error_model='numpy')
def _reach(slopes, side):
    """Return a distance [m] from the middle of a square that all its corners are within."""
    total = abs(slopes[0]) + abs(slopes[1]) + abs(slopes[2]) + abs(slopes[3])
    return 0.55 * side * total


@njit(cache=True, error_model='numpy')
def _is_uniform(a, b, near, circles, card, texture, tile):
    """Return whether no edge of the plane is within ``near`` of (a, b) [m]."""
    if card[0] == 1.0 and abs(card[1] - max(abs(a), abs(b))) < near:
        return False
    if card[0] == 2.0 and abs(card[1] - math.hypot(a, b)) < near:
        return False
    for k in range(circles.shape[0]):
        distance = math.sqrt((a - circles[k, 0]) ** 2 + (b - circles[k, 1]) ** 2)
        if abs(distance - circles[k, 2]) < near or abs(distance - circles[k, 3]) < near:
            return False
    return texture.shape[0] == 0 or max(abs(a), abs(b)) > tile + near


@njit(cache=True, error_model='numpy')
def _meet(x, y, xu, yu, xv, yv, frame, center, slopes):
    """
    Return where on the paper a ray ends, and write d(a, b)/d(u, v) [m/px].

    ``center`` is followed by the paper's curvature and the direction across the cylinder.
    """
    facing = frame[2, 0] * x + frame[2, 1] * y + frame[2, 2]
    t = (frame[2, 0] * center[0] + frame[2, 1] * center[1] + frame[2, 2] * center[2]) / facing
    k, c, s = center[3], center[4], center[5]
    # The paper's height is f(X), X across the cylinder; f' is its steepness, 0 for a plane.
    wx, wy = c * frame[0, 0] + s * frame[1, 0], c * frame[0, 1] + s * frame[1, 1]
    wz = c * frame[0, 2] + s * frame[1, 2]
    steep, X, end = 0.0, 0.0, 0.0
    if k != 0.0:
        for _ in range(5):
            px, py, pz = x * t - center[0], y * t - center[1], t - center[2]
            X = wx * px + wy * py + wz * pz
            # Straight beyond, where a cylinder would turn back.
            end = min(max(X, -0.9 / abs(k)), 0.9 / abs(k))
            root = math.sqrt(1.0 - (k * end) ** 2)
            steep = k * end / root
            height = (1.0 - root) / k + steep * (X - end)
            above = frame[2, 0] * px + frame[2, 1] * py + frame[2, 2] * pz - height
            t -= above / (facing - steep * (wx * x + wy * y + wz))
    nx, ny, nz = frame[2, 0] - steep * wx, frame[2, 1] - steep * wy, frame[2, 2] - steep * wz
    facing = nx * x + ny * y + nz
    tu = -t * (nx * xu + ny * yu) / facing
    tv = -t * (nx * xv + ny * yv) / facing
    px, py, pz = x * t - center[0], y * t - center[1], t - center[2]
    for i in range(2):
        along = frame[i, 0] * x + frame[i, 1] * y + frame[i, 2]
        slopes[2 * i] = (frame[i, 0] * xu + frame[i, 1] * yu) * t + along * tu
        slopes[2 * i + 1] = (frame[i, 0] * xv + frame[i, 1] * yv) * t + along * tv
    a = frame[0, 0] * px + frame[0, 1] * py + frame[0, 2] * pz
    b = frame[1, 0] * px + frame[1, 1] * py + frame[1, 2] * pz
    if k != 0.0:
        # Lengths on the paper are longer than X.
        longer = math.sqrt(1.0 + steep * steep)
        more = math.asin(k * end) / k + longer * (X - end) - X
        a, b = a + c * more, b + s * more
        for i in range(2):
            more = (longer - 1.0) * (c * slopes[i] + s * slopes[2 + i])
            slopes[i] += c * more
            slopes[2 + i] += s * more
    return a, b


@njit(cache=True, error_model='numpy')
def _meet_within(rays, top, left, bottom, right, p, q, frame, center, slopes):
    """Return where the ray through a place (p, q), 0 to 1, of a rectangle meets the plane."""
    x, y = rays[top, left, 0], rays[top, left, 1]
    xp, yp = rays[top, right, 0] - x, rays[top, right, 1] - y
    xq, yq = rays[bottom, left, 0] - x, rays[bottom, left, 1] - y
    xx, yy = rays[bottom, right, 0] - x - xp - xq, rays[bottom, right, 1] - y - yp - yq
    width, height = right - left, bottom - top
    return _meet(
        x + p * xp + q * xq + p * q * xx,
        y + p * yp + q * yq + p * q * yy,
        (xp + q * xx) / width,
        (yp + q * yy) / width,
        (xq + p * xx) / height,
        (yq + p * yy) / height,
        frame,
        center,
        slopes,
    )


@njit(cache=True, error_model='numpy')
def _paint_uniform(cells, weight, around, S, top, left, bottom, right, seen):
    """Add to the cells of a rectangle of pixels what all of them show, times a weight."""
    behind, grey = weight * seen[0], weight * seen[1]
    for j in range(top * S, bottom * S):
        for i in range(left * S, right * S):
            cells[j, i] += behind * around[j, i] + grey


@njit(cache=True, error_model='numpy')
def _paint_pixel(
    cells,
    weight,
    around,
    S,
    rays,
    row,
    column,
    frame,
    center,
    circles,
    card,
    background,
    texture,
    tile,
    slopes,
):
    """Add to the cells of one pixel what they show of the plane."""
    a, b = _meet_within(rays, row, column, row + 1, column + 1, 0.5, 0.5, frame, center, slopes)
    near = _reach(slopes, 1.0)
    if _is_uniform(a, b, near, circles, card, texture, tile):
        seen = _layers(a, b, slopes, 1.0, near, circles, card, background, texture, tile)
        _paint_uniform(cells, weight, around, S, row, column, row + 1, column + 1, seen)
        return
    side = 1.0 / S
    for j in range(S):
        for i in range(S):
            p, q = (i + 0.5) * side, (j + 0.5) * side
            a, b = _meet_within(
                rays, row, column, row + 1, column + 1, p, q, frame, center, slopes
            )
            near = _reach(slopes, side)
            behind, grey = _layers(
                a, b, slopes, side, near, circles, card, background, texture, tile
            )
            place = row * S + j, column * S + i
            cells[place] += weight * (behind * around[place] + grey)


@njit(cache=True, error_model='numpy')
def _paint_plane(
    cells, weight, around, S, rays, frame, center, circles, card, background, texture, tile
):
    """Add to the cells what they show of the plane at one instant, times its weight."""
    rows, columns = rays.shape[0] - 1, rays.shape[1] - 1
    slopes = np.empty(4)
    for top in range(0, rows, TOGETHER):
        bottom = min(top + TOGETHER, rows)
        for left in range(0, columns, TOGETHER):
            right = min(left + TOGETHER, columns)
            a, b = _meet_within(rays, top, left, bottom, right, 0.5, 0.5, frame, center, slopes)
            size = float(max(bottom - top, right - left))
            near = _reach(slopes, size)
            if _is_uniform(a, b, near, circles, card, texture, tile):
                seen = _layers(a, b, slopes, size, near, circles, card, background, texture, tile)
                _paint_uniform(cells, weight, around, S, top, left, bottom, right, seen)
                continue
            for row in range(top, bottom):
                for column in range(left, right):
                    _paint_pixel(
                        cells,
                        weight,
                        around,
                        S,
                        rays,
                        row,
                        column,
                        frame,
                        center,
                        circles,
                        card,
                        background,
                        texture,
                        tile,
                        slopes,
                    )


@njit(cache=True, error_model='numpy')
def _illuminate(cells, u0, v0, S, elements):
    """Apply illumination, occluders and glare."""
    shading, shadows, spots, bars, glare = elements
    side = 1.0 / S
    limits = np.array([20.0 ** (1.0 / one[7]) for one in glare])
    for j in range(cells.shape[0]):
        v = v0 + (j + 0.5) * side
        for i in range(cells.shape[1]):
            u = u0 + (i + 0.5) * side
            t = (u - shading[0]) * shading[2] + (v - shading[1]) * shading[3]
            light = 1.0 + t * (shading[4] + t * shading[5])
            value = cells[j, i] * min(max(light, 0.2), 2.0)
            for k in range(shadows.shape[0]):
                nu, nv, left, penumbra = shadows[k, 2:]
                away = (u - shadows[k, 0]) * nu + (v - shadows[k, 1]) * nv
                lit = min(max(0.5 - away / penumbra, 0.0), 1.0)
                for m in range(spots.shape[0]):
                    if spots[m, 3] == k:
                        away = math.hypot(u - spots[m, 0], v - spots[m, 1]) - spots[m, 2]
                        lit = max(lit, min(max(0.5 - away / penumbra, 0.0), 1.0))
                value *= left + (1.0 - left) * lit
            for k in range(bars.shape[0]):
                nu, nv, width = bars[k, 2], bars[k, 3], bars[k, 4]
                distance = (u - bars[k, 0]) * nu + (v - bars[k, 1]) * nv
                if math.isinf(width):
                    share = _half_plane(distance, nu, nv, side)
                else:
                    share = _half_plane(distance + width / 2.0, nu, nv, side)
                    share -= _half_plane(distance - width / 2.0, nu, nv, side)
                value += share * (bars[k, 5] - value)
            for k in range(glare.shape[0]):
                du, dv = u - glare[k, 0], v - glare[k, 1]
                along = glare[k, 2] * du + glare[k, 3] * dv
                across = glare[k, 4] * du + glare[k, 5] * dv
                away = math.hypot(along, across)
                # Beyond, less than 1e-6 grey levels.
                if away < limits[k]:
                    value += glare[k, 6] * math.exp(-(away ** glare[k, 7]))
            cells[j, i] = value


@njit(cache=True, fastmath=True, error_model='numpy')
def _integrate(cells, kernel, S, height, width):
    """Return the pixels: weighted sums of the cells around each."""
    rows = cells.shape[0]
    taps = kernel.size
    across = np.empty((rows, width))
    for j in range(rows):
        for i in range(width):
            total = 0.0
            for k in range(taps):
                total += kernel[k] * cells[j, i * S + k]
            across[j, i] = total
    image = np.zeros((height, width))
    for j in range(height):
        for k in range(taps):
            weight = kernel[k]
            for i in range(width):
                image[j, i] += weight * across[j * S + k, i]
    return image
