"""
Images of circular markers, to judge the detector with: no code of longreach_markers is used here.

A planar target stands in front of a pinhole camera with plumb_bob distortion. Pixels are divided
into S x S cells, of which a straight edge covers a share. Cells are blurred by the point spread
function (Gaussian) and averaged (pixel). With S = 8 and a contrast of 150, pixels are within 0.15
grey levels of the limit.

Order: surroundings with clutter, card, neighbours, marker; times illumination and shadows;
occluders in front; plus glare; optics and pixels; noise; clipping and rounding.

Pixels (u, v): the centre of the first one is (0, 0). Positions of image elements (occluders,
shading, glare) are in pixels of the full frame, directions from u towards v [rad]. Grey levels 0
to 255. Metres in the optical frame: x right, y down, z forward.
"""

import math
from typing import NamedTuple

import cv2
import numpy as np
from scipy.interpolate import RectBivariateSpline
from scipy.ndimage import map_coordinates

OVERSAMPLING = 8


class PinholeCamera(NamedTuple):
    """A camera: focal lengths and principal point [px]; distortion k1, k2, p1, p2, k3."""

    width: int = 2452
    height: int = 2054
    fx: float = 4000.0
    fy: float = 4000.0
    cx: float = 1225.5
    cy: float = 1026.5
    distortion: tuple[float, ...] = (0.0, 0.0, 0.0, 0.0, 0.0)


class Card(NamedTuple):
    """What the marker is fixed on: half its size in radii of the marker, 'square' or 'round'."""

    size: float = 2.0
    shape: str = 'square'


class Shading(NamedTuple):
    """Illumination 1 + strength t + bend t^2, t = (p - at).(direction) / length."""

    strength: float = 0.0
    direction: float = 0.0
    bend: float = 0.0
    at: tuple[float, float] = (0.0, 0.0)
    length: float = 40.0  # [px]


class Bar(NamedTuple):
    """A straight occluder without end: a point of its axis, the direction of its normal."""

    at: tuple[float, float]
    direction: float
    width: float  # [px]
    grey: float


class Shadow(NamedTuple):
    """Less light: on one side of a straight edge, or everywhere but in round spots."""

    at: tuple[float, float]  # a point of the edge
    direction: float  # into the shadow
    light: float  # share that is left
    penumbra: float = 1.0  # width over which light changes linearly [px]
    spots: tuple[tuple[float, float, float], ...] = ()  # centre and radius [px]


class Glare(NamedTuple):
    """Added light: amplitude exp(-d^power), d the distance over width; longer in one direction."""

    at: tuple[float, float]
    width: float  # [px]
    amplitude: float = 350.0
    power: float = 4.0
    length: float | None = None  # instead of the width in its direction [px]
    direction: float = 0.0

    def distance(self, u, v):
        along, across = along_and_across(self, u, v)
        return np.hypot(along / (self.length or self.width), across / self.width)


class Scene(NamedTuple):
    """
    One marker and everything that disturbs its image.

    A bowed paper touches the plane at the marker's centre, and its rim is nearer to the camera if
    ``bow`` is positive; lengths on it stay the same.
    """

    camera: PinholeCamera = PinholeCamera()
    center: tuple[float, float, float] = (0.0, 0.0, 20.0)
    normal: tuple[float, float, float] = (0.0, 0.0, -1.0)
    radius: float = 0.1  # [m]
    inner: float = 0.0  # ratio of the inner radius, 0 for a disc
    roll: float = 0.0  # of the plane's axes about the normal [rad]
    background: float = 200.0  # grey of the card, or of everything if there is none
    marker: float = 50.0
    inside: float = 200.0  # within a ring
    surroundings: float = 110.0  # beyond the card
    card: Card | None = None
    # Centres of equal markers, in radii along the plane's axes.
    neighbours: tuple[tuple[float, float], ...] = ()
    # Grey levels (n, n) of a square of side 2 radius in place of the marker, first row on top.
    texture: np.ndarray | None = None
    present: bool = True  # without it, only surroundings and what is in front of them
    clutter: int = 0  # elements on the surroundings
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
    # First column, first row, width and height [px]; 6 radii wide if it is None.
    window: tuple[int, int, int, int] | None = None
    seed: int = 0

    def changed(self, **changes):
        return self._replace(**changes)


class EllipseTruth(NamedTuple):
    """The ellipse that is fitted to the image of the outer edge."""

    center: np.ndarray
    axes: np.ndarray  # semi-axes, the larger first


class Rendered(NamedTuple):
    """A window and its truth; all positions are in pixels of the window."""

    image: np.ndarray
    exact: np.ndarray  # without noise, rounding and clipping
    center: np.ndarray  # of the circle, projected
    ellipse: EllipseTruth
    rim: np.ndarray
    camera: PinholeCamera  # whose full frame is the window


def render(scene, oversampling=OVERSAMPLING):
    exact = render_exact(scene, oversampling)
    u0, v0, width, height = window_of(scene)
    noise = np.random.default_rng([scene.seed, 1]).normal(0.0, 1.0, exact.shape)
    noisy = exact + scene.noise * noise
    if scene.smoothing > 0.0:
        noisy = cv2.GaussianBlur(noisy, (0, 0), scene.smoothing)
    image = np.clip(np.rint(noisy), 0.0, 255.0).astype(np.uint8)
    if scene.median:
        image = cv2.medianBlur(image, 3)
    if scene.jpeg > 0:
        _, packed = cv2.imencode('.jpg', image, [cv2.IMWRITE_JPEG_QUALITY, scene.jpeg])
        image = cv2.imdecode(packed, cv2.IMREAD_GRAYSCALE)
    center, ellipse, rim = truth(scene)
    ellipse = ellipse._replace(center=ellipse.center - (u0, v0))
    cx, cy = scene.camera.cx - u0, scene.camera.cy - v0
    camera = scene.camera._replace(width=width, height=height, cx=cx, cy=cy)
    return Rendered(image, exact, center - (u0, v0), ellipse, rim - (u0, v0), camera)


def render_exact(scene, oversampling=OVERSAMPLING):
    """Return the image of a scene's window without noise, clipping and rounding [row, column]."""
    S, (u0, v0, width, height) = oversampling, window_of(scene)
    pad = math.ceil(5.0 * scene.blur + 0.5 * scene.motion)
    cells_u, cells_v = (
        first - pad - 0.5 + (np.arange((count + 2 * pad) * S) + 0.5) / S
        for first, count in ((u0, width), (v0, height))
    )
    cells = np.full((cells_v.size, cells_u.size), scene.background)
    if scene.card is not None or not scene.present:
        cells[:] = scene.surroundings
        _draw_clutter(scene, cells, S)
    # Places on the paper are smooth: from those of pixels.
    u, v = (np.arange(first - 1.0, last + 2.0) for first, *_, last in (cells_u, cells_v))
    places = _on_paper(scene, *(one.ravel() for one in np.meshgrid(u, v)))
    if scene.present:
        _paint(
            scene, cells,
            *(RectBivariateSpline(v, u, x.reshape(v.size, -1))(cells_v, cells_u) for x in places),
        )  # fmt: skip
    if scene.motion > 0.0:
        along = math.cos(scene.motion_direction), math.sin(scene.motion_direction)
        turns = [S * x * np.fft.fftfreq(n) for x, n in zip(along, cells.T.shape, strict=True)]
        box = np.sinc(scene.motion * np.add.outer(turns[1], turns[0]))
        cells = np.fft.ifft2(np.fft.fft2(cells) * box).real
    cells = _illuminated(scene, cells, cells_u, cells_v[:, None])
    if scene.blur > 0.0:
        cells = cv2.GaussianBlur(cells, (0, 0), scene.blur * S)
    pixels = cells.reshape(height + 2 * pad, S, -1, S).mean(axis=(1, 3))
    return pixels[pad : pad + height, pad : pad + width]


def window_of(scene):
    if scene.window is not None:
        return scene.window
    _, ellipse, _ = truth(scene)
    size = 2 * math.ceil(3.0 * ellipse.axes[0])
    u0, v0 = np.rint(ellipse.center - size / 2.0).astype(int)
    return int(u0), int(v0), size, size


def _lens(camera):
    matrix = np.array([[camera.fx, 0.0, camera.cx], [0.0, camera.fy, camera.cy], [0.0, 0.0, 1.0]])
    return matrix, np.array(camera.distortion) if any(camera.distortion) else None


def project(camera, points):
    """Return the pixels (..., 2) of points (..., 3) in the optical frame [m]."""
    still = np.zeros(3)
    pixels, _ = cv2.projectPoints(points.reshape(-1, 1, 3), still, still, *_lens(camera))
    return pixels.reshape(*points.shape[:-1], 2)


def back_project(camera, pixel):
    """Return the rays (3, n) with z = 1 through pixels (2, n)."""
    steps = cv2.TERM_CRITERIA_COUNT, 15, 0.0
    rays = cv2.undistortPointsIter(pixel.T.copy(), *_lens(camera), None, None, steps)
    return np.stack([*rays.reshape(-1, 2).T, np.ones(rays.shape[0])]).reshape(3, *pixel.shape[1:])


def rim_points(scene, ratio=1.0, count=360):
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
    return np.array(scene.center) + places @ plane_axes(scene)


def truth(scene):
    """Return projected centre, ellipse and rim [px of the full frame]."""
    rim = project(scene.camera, rim_points(scene))
    mean = rim.mean(axis=0)
    center, axes, _ = cv2.fitEllipseDirect((rim - mean).astype(np.float32))
    ellipse = EllipseTruth(mean + center, np.sort(axes)[::-1] / 2.0)
    return project(scene.camera, np.array(scene.center)), ellipse, rim


def plane_axes(scene):
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


def _bow(scene):
    """Return the paper's curvature [1/m] and the direction across the cylinder."""
    c, s = math.cos(scene.bow_direction), math.sin(scene.bow_direction)
    return 2.0 * scene.bow / scene.radius, c, s


def _on_paper(scene, u, v):
    """Return where on the paper the rays of pixels end: a, b along its axes [radii], (2, n)."""
    camera, center = scene.camera, np.array(scene.center)
    below = v - project(camera, center)[1]
    rays = back_project(camera, np.stack([u - scene.shear[0] * below, v - scene.shear[1] * below]))
    frame = plane_axes(scene)
    rays, (at_a, at_b, at_n) = frame @ rays, frame @ center
    t = at_n / rays[2]
    curvature, c, s = _bow(scene)
    more = np.zeros_like(t)
    if curvature != 0.0:
        # The paper's height is f(X), X across the cylinder, straight where it would turn back.
        across, most = c * rays[0] + s * rays[1], 0.9 / abs(curvature)
        for _ in range(6):
            X = across * t - c * at_a - s * at_b
            end = np.clip(X, -most, most)
            root = np.sqrt(1.0 - (curvature * end) ** 2)
            steep = curvature * end / root
            height = (1.0 - root) / curvature + steep * (X - end)
            t -= (rays[2] * t - at_n - height) / (rays[2] - steep * across)
        # Lengths on the paper are longer than X.
        more = np.arcsin(curvature * end) / curvature - X
        more += np.sqrt(1.0 + steep * steep) * (X - end)
    a, b = rays[0] * t - at_a + c * more, rays[1] * t - at_b + s * more
    return np.stack([a, b / (1.0 + scene.aspect)]) / scene.radius


def within(level):
    """Return the shares of cells in which a level is positive: half-planes at its distance."""
    slopes, shares = np.abs(np.gradient(level)), (level > 0.0).astype(float)
    near = 2.0 * np.abs(level) < slopes[0] + slopes[1]
    b, a = np.sort(slopes[:, near], axis=0)
    # Of an edge at the distance s in cells, and the components of its normal, the larger first.
    a, b, s = np.array([a, b, np.abs(level[near])]) / np.hypot(a, b)
    corner = 0.5 * (0.5 * (a + b) - s) ** 2 / np.maximum(a * b, 1e-12)
    outside = np.where(s <= 0.5 * (a - b), 0.5 - s / a, corner)
    shares[near] = np.where(level[near] < 0.0, outside, 1.0 - outside)
    return shares


def _paint(scene, grey, a, b):
    """Paint what is in front of the surroundings on cells at places on the paper."""

    def square(half):
        return within(half - np.abs(a)) * within(half - np.abs(b))

    if scene.card is not None:
        size, is_square = scene.card.size, scene.card.shape == 'square'
        share = square(size) if is_square else within(size - np.hypot(a, b))
        grey += share * (scene.background - grey)
    if scene.texture is not None:
        places = []
        for x in (b, a):
            place = 0.5 * (x + 1.0) * len(scene.texture) - 0.5
            share = (place - np.floor(place) - 0.5) / np.hypot(*np.gradient(place))
            places.append(np.floor(place) + np.clip(0.5 + share, 0.0, 1.0))
        own = map_coordinates(scene.texture.astype(float), places, order=1, mode='nearest')
        grey += square(1.0) * (own - grey)
        return
    for x, y in ((0.0, 0.0), *scene.neighbours):
        away = np.hypot(a - x, b - y)
        grey += within(1.0 - away) * (scene.marker - grey)
        if scene.inner > 0.0:
            grey += within(scene.inner - away) * (scene.inside - grey)


def along_and_across(one, u, v):
    """Return distances of pixels from the place of an element, along its direction and across."""
    c, s = math.cos(one.direction), math.sin(one.direction)
    du, dv = u - one.at[0], v - one.at[1]
    return c * du + s * dv, c * dv - s * du


def _illuminated(scene, cells, u, v):
    t = along_and_across(scene.shading, u, v)[0] / scene.shading.length
    light = 1.0 + t * (scene.shading.strength + t * scene.shading.bend)
    cells = cells * np.clip(light, 0.2, 2.0)
    for shadow in scene.shadows:
        width = max(shadow.penumbra, 1e-3)
        lit = np.clip(0.5 - along_and_across(shadow, u, v)[0] / width, 0.0, 1.0)
        for at_u, at_v, radius in shadow.spots:
            away = np.hypot(u - at_u, v - at_v) - radius
            lit = np.maximum(lit, np.clip(0.5 - away / width, 0.0, 1.0))
        cells *= shadow.light + (1.0 - shadow.light) * lit
    for bar in scene.bars:
        distance, _ = along_and_across(bar, u, v)
        cells += within(0.5 * bar.width - np.abs(distance)) * (bar.grey - cells)
    for one in scene.glare:
        cells += one.amplitude * np.exp(-(one.distance(u, v) ** one.power))
    return cells


def _draw_clutter(scene, around, oversampling):
    """Draw polygons, lines, strokes and a texture on the surroundings."""
    if not scene.clutter:
        return
    rng = np.random.default_rng([scene.seed, 2])
    height, width = around.shape
    reach = 0.5 * min(height, width)

    def stroke(middle, angle, length, thick):
        return cv2.boxPoints((middle, (length, thick * oversampling), math.degrees(angle)))

    for _ in range(scene.clutter):
        grey = scene.surroundings + 80.0 * rng.uniform(-1.0, 1.0)
        grey = float(np.clip(grey, 5.0, 250.0))
        middle = rng.uniform(0.0, 1.0, 2) * [width, height]
        turn = rng.uniform(0.0, math.pi)
        kind = rng.integers(3)
        if kind == 0:
            sides = rng.integers(3, 7)
            angles = (np.arange(sides) + rng.uniform(-0.3, 0.3, sides)) * (2.0 * math.pi / sides)
            radii = reach * rng.uniform(0.1, 0.5) * rng.uniform(0.8, 1.1, sides)
            corners = np.stack([np.cos(angles + turn), np.sin(angles + turn)], axis=1)
            drawn = [middle + radii[:, None] * corners]
        elif kind == 1:
            drawn = [stroke(middle, turn, 4.0 * reach, rng.uniform(1.0, 5.0))]
        else:
            # Strokes like those of a letter.
            length, thick = reach * rng.uniform(0.1, 0.35), rng.uniform(1.0, 3.0)
            places = [(rng.uniform(-0.6, 0.6, 2), rng.integers(2)) for _ in range(3)]
            drawn = [
                stroke(middle + length * at, turn + 0.5 * math.pi * upright, length, thick)
                for at, upright in places
            ]
        for corners in drawn:
            cv2.fillConvexPoly(around, np.rint(16.0 * corners).astype(np.int32), grey, shift=4)
    v, u = np.ogrid[:height, :width]
    for _ in range(2):
        angle, period = rng.uniform(0.0, math.pi), oversampling * rng.uniform(3.0, 15.0)
        turns = 2.0 * math.pi / period * (math.sin(angle) * v + math.cos(angle) * u)
        around += 4.0 * np.cos(turns + rng.uniform(0.0, 6.0))
