"""
Pictures of circular markers as a camera takes them.

What is sharp is drawn on cells of half a pixel, each with the exact area that a straight edge cuts
off: an edge's distance comes from the marker's plane, through homography and lens distortion, so
that perspective is exact. The blur of the lens, Gaussian, and the square pixel then act together
as weights on the cells,

    w(o) = (g(o - 1/4) + g(o + 1/4)) / 2,   o = +-1/4, +-3/4, ... [px],

with the Gaussian g: two cells side by side are a pixel, and a cell has its own width already. This
is exact without blur; else grey levels are right to 0.4 % of the contrast from a blur of 0.7 px on
and to 1.5 % at 0.5 px, and centres to 0.001 px. Motion blur is the mean over instants of
the exposure, a third of a pixel apart at most; markers move at constant velocity meanwhile. The
stamp of an image is the middle of its exposure.

Then

    I = B (1 - a) + S c,   grey = round(I + sqrt(read^2 + shot I) n),

with the background B, the blurred coverage a and brightness c of all that is drawn, the shading S
and normal noise n, which is taken from a field drawn once, at places that are random.

Only windows around markers and occluders are drawn, on a background that is kept. Elsewhere its
noise stands still, unless the look wants it everywhere.
"""

from __future__ import annotations

import math
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import cv2
import numpy as np
from numba import njit

from longreach_dynamics.errors import InputError, LongreachError
from longreach_dynamics.kernels import kernel
from longreach_vision.cameras import Camera, distort_point, undistort_point
from longreach_vision.geometry import Pose
from longreach_vision.scene import MarkerPath, Scene, backdrop

__all__ = ['CameraSimulator', 'frame_rng', 'render_sequence', 'warm_up']

# The background is kept in this part of a grey level, in 16 bits.
_PART = 64.0
# The noise field: its length, and the steps of its 8 bits in a standard deviation.
_NOISE, _NOISE_STEPS = 1 << 20, 32.0
# Standard deviations after which a Gaussian is over.
_REACH = 4.0
# Cells between exact undistorted rays; between three of them a parabola is good to 1e-4 px.
_KNOTS = 16
# Windows are drawn in squares of this size [px], which fit a cache.
_TILE = 64
# A blur below this is none [px].
_SHARP = 0.01
# Instants in the time in which a marker moves by a pixel.
_INSTANTS = 3.0
_MOST_INSTANTS = 256
# A marker seen at a flatter angle than this is a line (sine).
_FLAT = 0.05
# Nearest distance to the camera at which something is drawn [m].
_NEAR = 0.05

_compiled = njit(error_model='numpy')


class _View(NamedTuple):
    """Numbers of a camera and of the look of its pictures."""

    exposure: float
    blur: float
    white: float  # with gain, as is black
    black: float
    card: float
    gain: float
    read: float
    shot: float
    vignetting: float
    across: float  # shading
    down: float


@_compiled
def _light(view, width, height, u, v):  # type: ignore[no-untyped-def]
    """Return the factor of shading at a pixel."""
    x, y = (u + 0.5) / width - 0.5, (v + 0.5) / height - 0.5
    far = 4.0 * (x * x * width * width + y * y * height * height) / (width**2 + height**2)
    value = (1.0 - view.vignetting * far) * (1.0 + view.across * x) * (1.0 + view.down * y)
    return max(0.0, value)


@_compiled
def _share(value, du, dv):  # type: ignore[no-untyped-def]
    """
    Return the share of a cell in which a linear function is positive.

    Value at the cell's centre, and its changes over the cell along both sides.
    """
    a, b = abs(du), abs(dv)
    low, high = min(a, b), max(a, b)
    far = abs(value)
    if far >= 0.5 * (low + high):
        return 1.0 if value > 0.0 else 0.0
    if far <= 0.5 * (high - low):
        return 0.5 + value / high
    rest = 0.5 * (low + high) - far
    corner = rest * rest / (2.0 * low * high)
    return 1.0 - corner if value > 0.0 else corner


@_compiled
def _plane_of(rotation, place, marker, at, M):  # type: ignore[no-untyped-def]
    """
    Fill the map of rays to a marker's plane at a time since the middle of the exposure.

    M (3, 3): (s, t) = (q0/q2, q1/q2), q = M (x, y, 1), with the origin at the centre and the outer
    radius as unit. False when the marker is behind the camera or seen edge-on.
    """
    c, n, e, f = np.empty(3), np.empty(3), np.empty(3), np.empty(3)
    # The first side of the card is level, or along x where that says nothing.
    nx, ny = marker[6], marker[7]
    level = math.hypot(nx, ny)
    if level > 1e-6:
        ex, ey = -ny / level, nx / level
    else:
        ex, ey = 1.0, 0.0
    for i in range(3):
        c[i] = n[i] = e[i] = 0.0
        for j in range(3):
            c[i] += rotation[j, i] * (marker[j] + marker[3 + j] * at - place[j])
            n[i] += rotation[j, i] * marker[6 + j]
        e[i] = rotation[0, i] * ex + rotation[1, i] * ey
    for i in range(3):
        f[i] = n[(i + 1) % 3] * e[(i + 2) % 3] - n[(i + 2) % 3] * e[(i + 1) % 3]
    facing = n[0] * c[0] + n[1] * c[1] + n[2] * c[2]
    distance = math.sqrt(c[0] * c[0] + c[1] * c[1] + c[2] * c[2])
    reach = marker[9] * max(1.0, 1.5 * marker[12])
    if c[2] - reach < _NEAR or abs(facing) < _FLAT * distance:
        return False
    # The inverse of the matrix of columns r e, r f, c, whose determinant is r^2 n.c.
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        M[0, i] = (f[j] * c[k] - f[k] * c[j]) / (marker[9] * facing)
        M[1, i] = (c[j] * e[k] - c[k] * e[j]) / (marker[9] * facing)
        M[2, i] = n[i] / facing
    return True


@_compiled
def _box_of(packed, rotation, place, marker, exposure, margin, box):  # type: ignore[no-untyped-def]
    """
    Fill the window [u0, v0, u1, v1] (4,) that a marker touches in its exposure.

    Returns the longest way of its parts [px], or -1 when it is not to be seen.
    """
    M = np.empty((3, 3))
    box[0], box[1], box[2], box[3] = math.inf, math.inf, -math.inf, -math.inf
    before, path = np.empty((3, 3, 2)), 0.0
    side = max(1.0, marker[12])
    for k in range(2):
        if not _plane_of(rotation, place, marker, (k - 0.5) * exposure, M):
            return -1.0
        P = np.linalg.inv(M)
        for i in range(-1, 2):
            for j in range(-1, 2):
                s, t = i * side, j * side
                depth = P[2, 0] * s + P[2, 1] * t + P[2, 2]
                x = (P[0, 0] * s + P[0, 1] * t + P[0, 2]) / depth
                y = (P[1, 0] * s + P[1, 1] * t + P[1, 2]) / depth
                u, v = distort_point(packed, x, y)
                if not (math.isfinite(u) and math.isfinite(v)):
                    return -1.0
                box[0], box[1] = min(box[0], u - margin), min(box[1], v - margin)
                box[2], box[3] = max(box[2], u + margin), max(box[3], v + margin)
                first = before[i + 1, j + 1]
                if k == 1:
                    path = max(path, math.hypot(u - first[0], v - first[1]))
                first[0], first[1] = u, v
    return path


@_compiled
def _parabola(low, middle, high, w):  # type: ignore[no-untyped-def]
    """Return the parabola through values at -1, 0 and 1, at w."""
    return middle + 0.5 * w * (high - low + w * (high + low - 2.0 * middle))


@_compiled
def _rays(packed, u, v, X, Y):  # type: ignore[no-untyped-def]
    """Fill normalised coordinates of cells, whose first one has its centre at pixel (u, v)."""
    rows, columns = X.shape
    span = 2 * _KNOTS
    down, over = (rows - 1) // span * 2 + 3, (columns - 1) // span * 2 + 3
    KX, KY = np.empty((down, over)), np.empty((down, over))
    found = True
    for i in range(down):
        for j in range(over):
            at_u, at_v = u + 0.5 * _KNOTS * j, v + 0.5 * _KNOTS * i
            KX[i, j], KY[i, j] = undistort_point(packed, at_u, at_v)
            found = found and math.isfinite(KX[i, j])
    if not found:
        # A knot outside of the image, where the lens shows nothing.
        for i in range(rows):
            for j in range(columns):
                X[i, j], Y[i, j] = undistort_point(packed, u + 0.5 * j, v + 0.5 * i)
        return
    x, y = np.empty(over), np.empty(over)
    for i in range(rows):
        k = i // span * 2
        w = (i - _KNOTS * k) / _KNOTS - 1.0
        for j in range(over):
            x[j] = _parabola(KX[k, j], KX[k + 1, j], KX[k + 2, j], w)
            y[j] = _parabola(KY[k, j], KY[k + 1, j], KY[k + 2, j], w)
        for j in range(columns):
            k = j // span * 2
            w = (j - _KNOTS * k) / _KNOTS - 1.0
            X[i, j] = _parabola(x[k], x[k + 1], x[k + 2], w)
            Y[i, j] = _parabola(y[k], y[k + 1], y[k + 2], w)


@_compiled
def _add_marker(X, Y, M, marker, view, cover, value):  # type: ignore[no-untyped-def]
    """Lay a marker over what covers the cells of a tile, with its grey levels."""
    rows, columns = X.shape
    inner, card = marker[10], marker[12]
    band, rest = (view.white, view.black) if marker[11] else (view.black, view.white)
    side = max(1.0, card)
    # More than a cell in the unit of the plane: nearer to an edge, its area counts.
    dx = abs(X[rows // 2, columns - 1] - X[rows // 2, 0]) / (columns - 1)
    dy = abs(Y[rows - 1, columns // 2] - Y[0, columns // 2]) / (rows - 1)
    for i in range(rows):
        for j in range(columns):
            x, y = X[i, j], Y[i, j]
            w = M[2, 0] * x + M[2, 1] * y + M[2, 2]
            if not w > 0.0:
                continue
            s = (M[0, 0] * x + M[0, 1] * y + M[0, 2]) / w
            t = (M[1, 0] * x + M[1, 1] * y + M[1, 2]) / w
            if max(abs(s), abs(t)) > side + 1.0:
                continue
            ds_x, ds_y = (M[0, 0] - s * M[2, 0]) / w, (M[0, 1] - s * M[2, 1]) / w
            dt_x, dt_y = (M[1, 0] - t * M[2, 0]) / w, (M[1, 1] - t * M[2, 1]) / w
            r = math.sqrt(s * s + t * t)
            cell = 2.0 * (dx * (abs(ds_x) + abs(dt_x)) + dy * (abs(ds_y) + abs(dt_y)))
            if max(abs(s), abs(t)) > side + cell:
                continue
            near = min(abs(1.0 - r), abs(inner - r), abs(card - abs(s)), abs(card - abs(t)))
            if near > cell:
                # No edge comes near this cell.
                if card == 0.0 and not inner < r < 1.0:
                    continue
                cover[i, j] = 1.0
                value[i, j] = band if inner < r < 1.0 else rest
                continue
            # Changes of s and t over the cell.
            k, m = min(max(j, 1), columns - 2), min(max(i, 1), rows - 2)
            xu, yu = 0.5 * (X[i, k + 1] - X[i, k - 1]), 0.5 * (Y[i, k + 1] - Y[i, k - 1])
            xv, yv = 0.5 * (X[m + 1, j] - X[m - 1, j]), 0.5 * (Y[m + 1, j] - Y[m - 1, j])
            su, sv = ds_x * xu + ds_y * yu, ds_x * xv + ds_y * yv
            tu, tv = dt_x * xu + dt_y * yu, dt_x * xv + dt_y * yv
            ru, rv = (0.0, 0.0) if r == 0.0 else ((s * su + t * tu) / r, (s * sv + t * tv) / r)
            outer = _share(1.0 - r, ru, rv)
            hole = _share(inner - r, ru, rv) if inner > 0.0 else 0.0
            ring = outer - hole
            if card > 0.0:
                a = _share(card - abs(s), su, sv) * _share(card - abs(t), tu, tv)
                colour = rest * (a - ring) + band * ring
            else:
                a, colour = ring, band * ring
            cover[i, j] = a + (1.0 - a) * cover[i, j]
            value[i, j] = colour + (1.0 - a) * value[i, j]


@_compiled
def _add_bar(bar, u, v, cover, value):  # type: ignore[no-untyped-def]
    """Lay an occluder over the cells of a tile, whose first one is at pixel (u, v)."""
    rows, columns = cover.shape
    nu, nv = bar[2], bar[3]
    for i in range(rows):
        for j in range(columns):
            x, y = u + 0.5 * j - bar[0], v + 0.5 * i - bar[1]
            across, along = x * nu + y * nv, y * nu - x * nv
            a = _share(across - bar[4], 0.5 * nu, 0.5 * nv)
            a *= _share(bar[5] - across, 0.5 * nu, 0.5 * nv)
            a *= _share(bar[6] - abs(along), 0.5 * nu, 0.5 * nv)
            cover[i, j] = a + (1.0 - a) * cover[i, j]
            value[i, j] = a * bar[7] + (1.0 - a) * value[i, j]


@_compiled
def _noisy(view, level, noise, at):  # type: ignore[no-untyped-def]
    """Return the grey level of a pixel with noise, in 8 bits."""
    deviation = math.sqrt(view.read**2 + view.shot * max(0.0, level))
    return np.uint8(min(255.0, max(0.0, level + deviation * noise[at] / _NOISE_STEPS)) + 0.5)


@_compiled
def _draw_tile(  # type: ignore[no-untyped-def]
    image, clean, noise, taps, packed, maps, boxes, counts, markers, view, bars, tile, at
):
    """Draw all markers and occluders that touch a tile [u0, v0, u1, v1], ends left out."""
    u0, v0, u1, v1 = tile[0], tile[1], tile[2], tile[3]
    height, width = v1 - v0, u1 - u0
    margin = taps.size // 2 - 1
    rows, columns = 2 * height + 2 * margin, 2 * width + 2 * margin
    u, v = u0 - 0.25 - 0.5 * margin, v0 - 0.25 - 0.5 * margin
    X, Y = np.empty((rows, columns)), np.empty((rows, columns))
    _rays(packed, u, v, X, Y)
    cover, value = np.zeros((rows, columns)), np.zeros((rows, columns))
    cover_sum, value_sum = np.zeros((rows, columns)), np.zeros((rows, columns))
    count = 1
    for m in range(boxes.shape[0]):
        touches = boxes[m, 0] < u1 and boxes[m, 2] > u0 and boxes[m, 1] < v1 and boxes[m, 3] > v0
        if touches:
            count = max(count, counts[m])
    M = np.empty((3, 3))
    for k in range(count):
        cover[:] = 0.0
        value[:] = 0.0
        for m in range(boxes.shape[0]):
            if not (
                counts[m] > 0
                and boxes[m, 0] < u1
                and boxes[m, 2] > u0
                and boxes[m, 1] < v1
                and boxes[m, 3] > v0
            ):
                continue
            instant = view.exposure * ((k + 0.5) / count - 0.5)
            if _plane_of(maps[:3], maps[3], markers[m], instant, M):
                _add_marker(X, Y, M, markers[m], view, cover, value)
        for b in range(bars.shape[0]):
            _add_bar(bars[b], u, v, cover, value)
        cover_sum += cover
        value_sum += value
    # Blur along v, then along u.
    cover[:height] = 0.0
    value[:height] = 0.0
    for i in range(height):
        for t in range(taps.size):
            weight = taps[t] / count
            for j in range(columns):
                cover[i, j] += weight * cover_sum[2 * i + t, j]
                value[i, j] += weight * value_sum[2 * i + t, j]
    full_height, full_width = image.shape
    for i in range(height):
        for j in range(width):
            a, c = 0.0, 0.0
            for t in range(taps.size):
                a += taps[t] * cover[i, 2 * j + t]
                c += taps[t] * value[i, 2 * j + t]
            light = _light(view, full_width, full_height, u0 + j, v0 + i)
            level = (1.0 - a) * clean[v0 + i, u0 + j] / _PART + light * c
            image[v0 + i, u0 + j] = _noisy(view, level, noise, at)
            at = (at + 1) & (_NOISE - 1)
    return at


@_compiled
def _span(bar, margin, v, width):  # type: ignore[no-untyped-def]
    """Return the first and one past the last column that an occluder touches in row v."""
    low, high = 0.0, width - 1.0
    y = v - bar[1]
    for k in range(2):
        if k == 0:
            slope, offset = bar[2], y * bar[3]
            least, most = bar[4] - margin, bar[5] + margin
        else:
            slope, offset = -bar[3], y * bar[2]
            least, most = -bar[6] - margin, bar[6] + margin
        if abs(slope) < 1e-9:
            if not least <= offset <= most:
                return 0, 0
            continue
        one, two = (least - offset) / slope + bar[0], (most - offset) / slope + bar[0]
        low, high = max(low, min(one, two)), min(high, max(one, two))
    if low > high:
        return 0, 0
    return math.ceil(low), math.floor(high) + 1


@_compiled
def _rise(distance, deviation):  # type: ignore[no-untyped-def]
    """Return the blurred step at a distance, by the error function."""
    if abs(distance) > _REACH * deviation:
        return 1.0 if distance > 0.0 else 0.0
    return 0.5 + 0.5 * math.erf(distance / (deviation * math.sqrt(2.0)))


@kernel
def _draw_bars(covered, clean, view, bars):  # type: ignore[no-untyped-def]
    """Draw occluders over the background; straight edges blur to error functions."""
    height, width = clean.shape
    deviation = math.sqrt(view.blur**2 + 1.0 / 12.0)
    margin = _REACH * deviation
    for b in range(bars.shape[0]):
        for i in range(height):
            first, last = _span(bars[b], margin, i, width)
            for j in range(first, last):
                light = _light(view, width, height, j, i)
                level = clean[i, j] / _PART
                # All of them: the next one may lie on this one's edge.
                for bar in bars:
                    x, y = j - bar[0], i - bar[1]
                    across, along = x * bar[2] + y * bar[3], y * bar[2] - x * bar[3]
                    a = _rise(across - bar[4], deviation) * _rise(bar[5] - across, deviation)
                    a *= _rise(bar[6] - abs(along), deviation)
                    level += a * (light * bar[7] - level)
                covered[i, j] = int(_PART * min(255.0, level) + 0.5)


@kernel
def _draw_markers(image, clean, noise, taps, packed, maps, markers, view, bars, at, windows):  # type: ignore[no-untyped-def]
    """
    Draw the windows of all markers and note these, (n, 4) [u0, v0, u1, v1].

    A marker that is not to be seen has an empty window.
    """
    height, width = image.shape
    n = markers.shape[0]
    boxes, counts = np.zeros((n, 4)), np.zeros(n, dtype=np.int64)
    margin = _REACH * view.blur + 2.0
    for m in range(n):
        path = _box_of(packed, maps[:3], maps[3], markers[m], view.exposure, margin, boxes[m])
        windows[m, :] = 0
        if path < 0.0:
            boxes[m, :] = 0.0
            continue
        counts[m] = int(min(_MOST_INSTANTS, max(1.0, math.ceil(_INSTANTS * path))))
        u0, v0 = max(0.0, math.floor(boxes[m, 0])), max(0.0, math.floor(boxes[m, 1]))
        u1, v1 = min(width, math.ceil(boxes[m, 2]) + 1), min(height, math.ceil(boxes[m, 3]) + 1)
        if u0 < u1 and v0 < v1:
            windows[m, 0], windows[m, 1], windows[m, 2], windows[m, 3] = u0, v0, u1, v1
    tile = np.empty(4, dtype=np.int64)
    for m in range(n):
        for v0 in range(windows[m, 1], windows[m, 3], _TILE):
            for u0 in range(windows[m, 0], windows[m, 2], _TILE):
                tile[0], tile[1] = u0, v0
                tile[2] = min(u0 + _TILE, windows[m, 2])
                tile[3] = min(v0 + _TILE, windows[m, 3])
                at = _draw_tile(
                    image, clean, noise, taps, packed, maps, boxes, counts, markers, view, bars,
                    tile, at,
                )  # fmt: skip


@kernel
def _draw_background(image, clean, noise, view, starts):  # type: ignore[no-untyped-def]
    """
    Fill an image with the background and noise, each row from its own place in the field.

    In single precision throughout, which the processor does eight at a time.
    """
    height, width = image.shape
    part, step = np.float32(1.0 / _PART), np.float32(1.0 / _NOISE_STEPS)
    dark, shot = np.float32(view.read**2), np.float32(view.shot)
    half, most = np.float32(0.5), np.float32(255.5)
    for i in range(height):
        row, levels, field = image[i], clean[i], noise[starts[i] : starts[i] + width]
        for j in range(width):
            level = np.float32(levels[j]) * part
            level += math.sqrt(dark + shot * level) * step * np.float32(field[j]) + half
            level = level if level > half else half
            row[j] = np.uint8(level if level < most else most)


class CameraSimulator:
    """
    A camera that looks at markers.

    Parameters
    ----------
    camera : Camera
        With distortion; resized ones come from :meth:`Camera.scaled`.
    pose : Pose
        T_world_cam.
    scene : Scene
        Its occluders in the image are in this camera's pixels: see :meth:`CameraLook.scaled`.
    buffer : ndarray, shape (height, width), optional
        Where pictures are drawn, uint8 in one piece; nobody else may write to it.

    Raises
    ------
    InputError
        For a buffer that does not fit.
    """

    def __init__(
        self, camera: Camera, pose: Pose, scene: Scene, buffer: np.ndarray | None = None
    ) -> None:
        self.camera = camera
        self.pose = pose
        self.scene = scene
        look = scene.look
        shape = (camera.height, camera.width)
        if buffer is None:
            buffer = np.empty(shape, dtype=np.uint8)
        if buffer.shape != shape or buffer.dtype != np.uint8 or not buffer.flags.c_contiguous:
            raise InputError(
                f'buffer of {buffer.dtype} has shape {buffer.shape}, allowed: uint8 in one piece,'
                f' (height, width) = {shape}'
            )
        self._image = buffer
        self._view = _View(
            exposure=look.exposure,
            blur=look.blur,
            white=look.white * look.gain,
            black=look.black * look.gain,
            card=look.card,
            gain=look.gain,
            read=look.read_noise,
            shot=look.shot_noise,
            vignetting=look.vignetting,
            across=look.shading[0],
            down=look.shading[1],
        )
        self._packed = camera.packed
        self._maps = np.vstack([pose.rotation, pose.translation])
        self._taps = _taps(look.blur)
        self._markers = np.zeros((len(scene.markers), 13))
        for row, marker in zip(self._markers, scene.markers, strict=True):
            row[6:9] = np.array(marker.normal) / math.hypot(*marker.normal)
            row[9:] = marker.radius, marker.inner, marker.bright, look.card
        offsets = np.array([marker.offset for marker in scene.markers])
        self._offsets = self._markers[:, 6:9] * offsets[:, None]
        # The same for each camera of a rig would be seen in differences of their pictures.
        own = np.random.default_rng([look.seed, *camera.name.encode()])
        self._noise = _noise_field(own, camera.width)
        self._clean = self._lit(backdrop(look, camera.width, camera.height))
        # With the occluders that are there, and then with noise, where that stands still.
        self._covered = self._clean.copy() if look.occluders else self._clean
        self._starts = own.integers(0, _NOISE, camera.height)
        self._behind = self._image.copy()
        self._draw_background(self._behind, self._starts)
        self._image[:] = self._behind
        self._windows = np.zeros((len(scene.markers), 4), dtype=np.int64)
        self._bars = np.zeros((0, 8))

    @property
    def windows(self) -> np.ndarray:
        """What the latest picture shows of each marker, (n, 4) [u0, v0, u1, v1], ends left out."""
        return self._windows.copy()

    def centers(self, marker_positions: np.ndarray) -> np.ndarray:
        """
        Return the projected centres of markers at positions (n, 3) [m], shape (n, 2) [px].

        NaN for one that no pixel could show. These are what a detector ought to find.
        """
        points = np.asarray(marker_positions, dtype=np.float64) + self._offsets
        in_camera = (points - self.pose.translation) @ self.pose.rotation
        return np.asarray(self.camera.project(in_camera, strict=False))

    def image(
        self,
        marker_positions: np.ndarray,
        marker_velocities: np.ndarray,
        time: float,
        rng: np.random.Generator,
    ) -> np.ndarray:
        """
        Return the picture at a time.

        Parameters
        ----------
        marker_positions : ndarray, shape (n, 3)
            In the middle of the exposure, in the order of the scene's markers [m]. A marker whose
            position is NaN is not there.
        marker_velocities : ndarray, shape (n, 3)
            [m/s]
        time : float
            For the occluders: the middle of the exposure [s].
        rng : Generator
            For the noise.

        Returns
        -------
        ndarray of uint8, shape (height, width)
            The simulator's own buffer: the next picture takes its place.

        Raises
        ------
        InputError
            For arrays that do not fit the scene.
        """
        markers = self._placed(marker_positions, marker_velocities)
        bars = self._bars_at(time)
        everywhere = self.scene.look.noise_everywhere
        if not np.array_equal(bars, self._bars):
            # Rare, unless they move.
            self._bars = bars
            self._covered[:] = self._clean
            _draw_bars(self._covered, self._clean, self._view, bars)
            if not everywhere:
                self._draw_background(self._behind, self._starts)
                self._image[:] = self._behind
        if everywhere:
            self._draw_background(self._image, rng.integers(0, _NOISE, self.camera.height))
        else:
            for u0, v0, u1, v1 in self._windows:
                self._image[v0:v1, u0:u1] = self._behind[v0:v1, u0:u1]
        _draw_markers(
            self._image,
            self._clean,
            self._noise,
            self._taps,
            self._packed,
            self._maps,
            markers,
            self._view,
            bars,
            rng.integers(_NOISE),
            self._windows,
        )
        return self._image

    def _placed(self, positions: np.ndarray, velocities: np.ndarray) -> np.ndarray:
        """Return the table of markers at these positions."""
        for name, values in (('positions', positions), ('velocities', velocities)):
            if np.shape(values) != self._offsets.shape:
                raise InputError(
                    f'marker_{name} have shape {np.shape(values)}, allowed: (markers, 3) ='
                    f' {self._offsets.shape}'
                )
        there = np.isfinite(positions).all(axis=1)
        moving = np.isfinite(velocities).all(axis=1)
        if not moving[there].all():
            raise InputError('marker_velocities are not finite, allowed: finite numbers')
        markers = self._markers.copy()
        markers[:, :3] = positions + self._offsets
        markers[:, 3:6] = velocities
        # Behind the camera, where nothing is drawn.
        markers[~there, :3] = self.pose.translation - self.pose.rotation[:, 2]
        markers[~there, 3:6] = 0.0
        return markers

    def _bars_at(self, time: float) -> np.ndarray:
        """Return the occluders that are there, (m, 8), each as a rectangle in the image."""
        rows = []
        for occluder in self.scene.look.occluders:
            if occluder.camera not in ('', self.camera.name):
                continue
            ends = occluder.at(time)
            if ends is None:
                continue
            width = occluder.width
            pixels = np.array(ends)
            if occluder.frame == 'world':
                points = (pixels - self.pose.translation) @ self.pose.rotation
                pixels = self.camera.project(points, strict=False)
                if not np.isfinite(pixels).all():
                    continue
                width *= math.sqrt(self.camera.fx * self.camera.fy) / float(points[:, 2].mean())
            way = pixels[1] - pixels[0]
            length = float(np.hypot(*way))
            if length < 1e-6:
                continue
            # To the right of the way, as seen in the image.
            normal = np.array([-way[1], way[0]]) / length
            whole = occluder.kind == 'half_plane'
            reach = 1e6
            limits = (0.0, reach, reach) if whole else (-width / 2.0, width / 2.0, length / 2.0)
            grey = occluder.grey * self._view.gain
            rows.append([*pixels.mean(axis=0), *normal, *limits, grey])
        return np.array(rows).reshape(-1, 8)

    def _lit(self, background: np.ndarray) -> np.ndarray:
        """Return the background with shading and gain, in 1/64 of a grey level, clipped."""
        height, width = background.shape
        x = (np.arange(width) + 0.5) / width - 0.5
        y = ((np.arange(height) + 0.5) / height - 0.5)[:, None]
        view = self._view
        far = 4.0 * ((x * width) ** 2 + (y * height) ** 2) / (width**2 + height**2)
        light = (1.0 - view.vignetting * far) * (1.0 + view.across * x) * (1.0 + view.down * y)
        levels = background * (view.gain * np.maximum(light, 0.0))
        return np.asarray(np.rint(_PART * np.clip(levels, 0.0, 255.0)), dtype=np.int16)

    def _draw_background(self, image: np.ndarray, starts: np.ndarray) -> None:
        """Fill an image with background and occluders, and noise from these places on by rows."""
        _draw_background(image, self._covered, self._noise, self._view, starts)


def _taps(blur: float) -> np.ndarray:
    """Return the weights of cells in a pixel, an even number of them, for a blur [px]."""
    reach = math.ceil(2.0 * _REACH * blur)
    steps = 0.5 * np.arange(-reach, reach + 1)
    # Of less than this no neighbour gets anything.
    bell = np.exp(-0.5 * (steps / blur) ** 2) if blur > _SHARP else (steps == 0.0).astype(float)
    bell /= bell.sum()
    return np.asarray(0.5 * (np.append(bell, 0.0) + np.append(0.0, bell)))


def _noise_field(rng: np.random.Generator, width: int) -> np.ndarray:
    """Return normal noise in 8 bits; a row of an image may begin anywhere in it."""
    values = rng.standard_normal(_NOISE, dtype=np.float32) * _NOISE_STEPS
    field = np.clip(np.rint(values), -127.0, 127.0).astype(np.int8)
    return np.concatenate([field, np.resize(field, width)])


def warm_up() -> None:
    """Compile everything, once and for all runs to come."""
    from longreach_vision.scene import CameraLook, Occluder, SimulatedMarker

    camera = Camera('warm_up', 64, 48, 60.0, 60.0, 31.5, 23.5)
    looks_along_y = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, -1.0, 0.0]])
    bar = Occluder(start=(0.0, 0.0), end=(64.0, 48.0), width=3.0, vanishes=1.0)
    look = CameraLook(clutter=0, occluders=(bar,))
    scene = Scene((SimulatedMarker('one', 0.1),), look)
    simulator = CameraSimulator(camera, Pose(looks_along_y, np.zeros(3)), scene)
    rng = np.random.default_rng(0)
    for time in (0.0, 1.0):
        simulator.image(np.array([[0.0, 1.0, 0.0]]), np.zeros((1, 3)), time, rng)


def frame_rng(seed: int, camera: str, number: int) -> np.random.Generator:
    """Return the generator for the noise of one image, a function of these three alone."""
    return np.random.default_rng([seed, number, *camera.encode()])


def render_sequence(
    simulators: Mapping[str, CameraSimulator],
    path: MarkerPath,
    times: Sequence[float] | np.ndarray,
    out_dir: str | Path,
    *,
    seed: int | None = None,
    video: bool = False,
) -> dict[str, Path]:
    """
    Write what cameras see of a path.

    ``out_dir`` gets a folder NAME for each camera, of pictures 000000_0.000000000.png, ... with
    number and time [s], or a lossless video NAME.avi; and times.csv with the times.

    Parameters
    ----------
    simulators : mapping
        By the names of the folders; all of one scene.
    path : MarkerPath
        With all markers of the scene.
    times : sequence of float, shape (K,)
        Rising from 0 on or later, within the path [s].
    out_dir : path
        New or empty.
    seed : int, optional
        Of the noise; that of the look by default, as the camera node has it.
    video : bool
        Videos instead of pictures, with the mean rate of the times.

    Returns
    -------
    dict
        Folder or video of each camera.

    Raises
    ------
    InputError
        For times outside of the path, a marker that it does not have, a directory that is not
        empty or cannot be made, videos of an odd number of rows or columns.
    LongreachError
        When a file cannot be written.
    """
    at = np.array(times, dtype=np.float64)
    if at.ndim != 1 or not (at.size and np.isfinite(at).all() and at[0] >= 0.0):
        raise InputError(f'times of shape {at.shape}, allowed: one or more numbers from 0 on')
    if (np.diff(at) <= 0.0).any():
        raise InputError('times do not rise; sort them, and leave out doubles')
    paths = {name: path.of(simulator.scene.names) for name, simulator in simulators.items()}
    for time in (at[0], at[-1]):
        path.at(time)
    if video:
        _check_sizes(simulators)
    directory = Path(out_dir)
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise InputError(f'{directory} is not empty; give a new directory')
    # Under its name only when it is complete.
    unfinished = directory.with_name(f'.{directory.name}.{os.getpid()}')
    try:
        unfinished.mkdir(parents=True)
        for name, simulator in simulators.items():
            own = simulator.scene.look.seed if seed is None else seed
            rate = (at.size - 1) / (at[-1] - at[0]) if at.size > 1 else 1.0
            writer = _Writer(unfinished / name, simulator.camera, rate if video else None)
            for number, time in enumerate(at):
                picture = simulator.image(
                    *paths[name].at(time), time, frame_rng(own, name, number)
                )
                writer.write(picture, time)
            writer.close()
        rows = ''.join(f'{float(time)!r}\n' for time in at)
        (unfinished / 'times.csv').write_text('time\n' + rows, encoding='utf-8')
        if directory.exists():
            directory.rmdir()
        unfinished.rename(directory)
    except OSError as error:
        raise InputError(f'{directory} cannot be written: {error.strerror}') from error
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return {name: directory / (f'{name}.avi' if video else name) for name in simulators}


def _check_sizes(simulators: Mapping[str, CameraSimulator]) -> None:
    """Raise InputError for sizes of which a video would lose the last row or column."""
    for name, simulator in simulators.items():
        width, height = simulator.camera.width, simulator.camera.height
        if width % 2 or height % 2:
            raise InputError(
                f'video of {width} x {height} px of {name}, allowed: even numbers, as videos lose'
                ' an odd row or column; write pictures, or scale the camera'
            )


class _Writer:
    """A folder of pictures, or a video where a rate [Hz] is given."""

    def __init__(self, path: Path, camera: Camera, rate: float | None) -> None:
        self._path = path
        self._count = 0
        self._video: cv2.VideoWriter | None = None
        if rate is None:
            path.mkdir()
            return
        code = cv2.VideoWriter.fourcc(*'FFV1')
        size = (camera.width, camera.height)
        self._video = cv2.VideoWriter(str(path.with_suffix('.avi')), code, rate, size, False)
        if not self._video.isOpened():
            raise LongreachError('videos cannot be written: OpenCV has no FFV1 here; use pictures')

    def write(self, picture: np.ndarray, time: float) -> None:
        """Write the next picture, of a time [s]."""
        name = f'{self._count:06d}_{time:.9f}.png'
        if self._video is not None:
            self._video.write(picture)
        elif not cv2.imwrite(str(self._path / name), picture):
            raise LongreachError(f'{self._path} cannot be written; is the disk full?')
        self._count += 1

    def close(self) -> None:
        """End the video."""
        if self._video is not None:
            self._video.release()
