"""
Compiled drawing of markers, occluders and background in simulated images.

The sharp image is drawn on cells of half a pixel, each with the exact area cut off by a straight
edge: the distance to an edge is measured in the marker's plane, through homography and lens
distortion, so that perspective is exact. Gaussian lens blur and the square pixel are then applied
together as weights of the cells,

    w(o) = (g(o - 1/4) + g(o + 1/4)) / 2,   o = +-1/4, +-3/4, ... [px],

with the Gaussian g: two adjacent cells form a pixel, and a cell has a width of its own. This is
exact without blur; otherwise grey levels are accurate to 0.4 % of the contrast for a blur of 0.7
px and more, to 1.5 % at 0.5 px, and centres to 0.001 px. Motion blur is the mean over instants of
the exposure at most a third of a pixel apart; markers move at constant velocity meanwhile.

Then

    I = B (1 - a) + S c,   grey = round(I + sqrt(read^2 + shot I) n),

with the background B, the blurred coverage a and brightness c of all drawn objects, the shading S
and normal noise n, which is read from random positions of a noise field drawn once.

Arrays that are arguments of several functions:

- background, shape (height, width), int16: levels B [1/64 grey level], including shading;
- noise, shape (NOISE_LENGTH + width,), int8: the field n [1/32];
- pose, shape (4, 3): the rotation of T_world_cam, then its translation [m];
- markers, shape (n, 13): position [m] and velocity [m/s] of the centre in the middle of the
  exposure, unit normal, outer radius [m], inner over outer radius, 1 for a bright marker, half
  the card's side in outer radii;
- bars, shape (m, 8): occluders as rectangles in the image: a point u, v on the centre line, the
  unit vector to the right of it, the range across and the half length along the line [px], grey
  level;
- packed, shape (16,): the camera, :attr:`longreach_markers.camera.model.Camera.packed`;
- weights, shape (2 k,): weights of the cells, see :func:`cell_weights`;
- X, Y, cover, value, shape (rows, columns): normalised coordinates, coverage and brightness of
  the cells of a tile.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from longreach_dynamics.kernels import kernel
from longreach_markers import distort_point, undistort_point

# Length of the noise field, and steps of its 8-bit values per standard deviation.
NOISE_LENGTH, _NOISE_STEPS = 1 << 20, 32.0
# Fixed-point scale of the background, in 16 bits.
_PART = 64.0
# Standard deviations at which a Gaussian is cut off.
_REACH = 4.0
# Cells between exact undistorted rays; parabolas through three of them are accurate to 1e-4 px.
_KNOTS = 16
# Windows are drawn in square tiles of this size [px], which fit into the cache.
_TILE = 64
# A smaller blur is treated as zero [px].
_SHARP = 0.01
# Instants per pixel of motion, and their maximum.
_INSTANTS = 3.0
_MOST_INSTANTS = 256
# Sine of the viewing angle below which a marker is not drawn.
_FLAT = 0.05
# Least distance to the camera at which objects are drawn [m].
_NEAR = 0.05

_compiled = njit(error_model='numpy')


class View(NamedTuple):
    """Appearance of a camera, as in the look [s, px, grey levels]."""

    exposure: float
    blur: float
    white: float
    black: float
    gain: float
    read_noise: float
    shot_noise: float
    vignetting: float
    shading: tuple[float, ...]  # across, down


def cell_weights(blur: float) -> np.ndarray:
    """Return the weights of the cells for a blur."""
    reach = math.ceil(2.0 * _REACH * blur)
    steps = 0.5 * np.arange(-reach, reach + 1)
    # Smaller blur does not reach the neighbours.
    bell = np.exp(-0.5 * (steps / blur) ** 2) if blur > _SHARP else (steps == 0.0).astype(float)
    bell /= bell.sum()
    return np.asarray(0.5 * (np.append(bell, 0.0) + np.append(0.0, bell)))


def noise_field(rng: np.random.Generator, width: int) -> np.ndarray:
    """Return normal noise; a row may start anywhere in its first NOISE_LENGTH values."""
    values = rng.standard_normal(NOISE_LENGTH, dtype=np.float32) * _NOISE_STEPS
    field = np.clip(np.rint(values), -127.0, 127.0).astype(np.int8)
    return np.concatenate([field, np.resize(field, width)])


@_compiled
def _light(view, width, height, u, v):  # type: ignore[no-untyped-def]
    """Return the shading factor at a pixel."""
    x, y = (u + 0.5) / width - 0.5, (v + 0.5) / height - 0.5
    far = 4.0 * (x * x * width * width + y * y * height * height) / (width**2 + height**2)
    value = (
        (1.0 - view.vignetting * far) * (1.0 + view.shading[0] * x) * (1.0 + view.shading[1] * y)
    )
    return max(0.0, value)


@_compiled
def _share(value, du, dv):  # type: ignore[no-untyped-def]
    """Return the share of a cell in which a linear function is positive."""
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
def _plane_of(pose, marker, time, M):  # type: ignore[no-untyped-def]
    """Fill the map of rays to a marker's plane."""
    c, n, e, f = np.empty(3), np.empty(3), np.empty(3), np.empty(3)
    # The first side of the card is horizontal, or along x if the marker is horizontal.
    nx, ny = marker[6], marker[7]
    level = math.hypot(nx, ny)
    if level > 1e-6:
        ex, ey = -ny / level, nx / level
    else:
        ex, ey = 1.0, 0.0
    for i in range(3):
        c[i] = n[i] = e[i] = 0.0
        for j in range(3):
            c[i] += pose[j, i] * (marker[j] + marker[3 + j] * time - pose[3, j])
            n[i] += pose[j, i] * marker[6 + j]
        e[i] = pose[0, i] * ex + pose[1, i] * ey
    for i in range(3):
        f[i] = n[(i + 1) % 3] * e[(i + 2) % 3] - n[(i + 2) % 3] * e[(i + 1) % 3]
    facing = n[0] * c[0] + n[1] * c[1] + n[2] * c[2]
    distance = math.sqrt(c[0] * c[0] + c[1] * c[1] + c[2] * c[2])
    radius, card = marker[9], marker[12]
    reach = radius * max(1.0, 1.5 * card)
    if c[2] - reach < _NEAR or abs(facing) < _FLAT * distance:
        return False
    # The inverse of the matrix of columns r e, r f, c, whose determinant is r^2 n.c.
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        M[0, i] = (f[j] * c[k] - f[k] * c[j]) / (radius * facing)
        M[1, i] = (c[j] * e[k] - c[k] * e[j]) / (radius * facing)
        M[2, i] = n[i] / facing
    return True


@_compiled
def _box_of(packed, pose, marker, exposure, margin, box):  # type: ignore[no-untyped-def]
    """Fill the box covered by a marker during the exposure."""
    M = np.empty((3, 3))
    box[0], box[1], box[2], box[3] = math.inf, math.inf, -math.inf, -math.inf
    before, way = np.empty((3, 3, 2)), 0.0
    side = max(1.0, marker[12])
    for k in range(2):
        if not _plane_of(pose, marker, (k - 0.5) * exposure, M):
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
                    way = max(way, math.hypot(u - first[0], v - first[1]))
                first[0], first[1] = u, v
    return way


@_compiled
def _parabola(low, middle, high, w):  # type: ignore[no-untyped-def]
    """Return the parabola through the values low, middle, high at -1, 0 and 1, at position w."""
    return middle + 0.5 * w * (high - low + w * (high + low - 2.0 * middle))


@_compiled
def _rays(packed, u, v, X, Y):  # type: ignore[no-untyped-def]
    """Fill the normalised coordinates of cells."""
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
        # A knot is outside the image, where the lens has no ray.
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
    """Draw a marker over the cells of a tile."""
    rows, columns = X.shape
    inner, card = marker[10], marker[12]
    white, black = view.white * view.gain, view.black * view.gain
    band, rest = (white, black) if marker[11] else (black, white)
    side = max(1.0, card)
    # Upper bound of a cell's size in units of the plane: closer to an edge, its area is computed.
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
                # No edge nearby.
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
    """Draw an occluder over the cells of a tile."""
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
def _noisy(view, level, draw):  # type: ignore[no-untyped-def]
    """Return the 8-bit grey level of a pixel with noise."""
    deviation = math.sqrt(view.read_noise**2 + view.shot_noise * max(0.0, level))
    return np.uint8(min(255.0, max(0.0, level + deviation * draw / _NOISE_STEPS)) + 0.5)


@_compiled
def _touches(box, tile):  # type: ignore[no-untyped-def]
    """Return whether the box (4,) of a marker overlaps a tile (4,); zeros: no box."""
    return box[0] < tile[2] and box[2] > tile[0] and box[1] < tile[3] and box[3] > tile[1]


@_compiled
def _draw_tile(  # type: ignore[no-untyped-def]
    image, background, noise, weights, packed, pose, boxes, counts, markers, order, view, bars,
    tile, next_noise,
):  # fmt: skip
    """Draw all markers and occluders that overlap a tile."""
    u0, v0, u1, v1 = tile[0], tile[1], tile[2], tile[3]
    height, width = v1 - v0, u1 - u0
    margin = weights.size // 2 - 1
    rows, columns = 2 * height + 2 * margin, 2 * width + 2 * margin
    u, v = u0 - 0.25 - 0.5 * margin, v0 - 0.25 - 0.5 * margin
    X, Y = np.empty((rows, columns)), np.empty((rows, columns))
    _rays(packed, u, v, X, Y)
    cover, value = np.zeros((rows, columns)), np.zeros((rows, columns))
    cover_sum, value_sum = np.zeros((rows, columns)), np.zeros((rows, columns))
    count = 1
    for m in range(boxes.shape[0]):
        if _touches(boxes[m], tile):
            count = max(count, counts[m])
    M = np.empty((3, 3))
    for k in range(count):
        cover[:] = 0.0
        value[:] = 0.0
        for m in order:
            if not _touches(boxes[m], tile):
                continue
            instant = view.exposure * ((k + 0.5) / count - 0.5)
            if _plane_of(pose, markers[m], instant, M):
                _add_marker(X, Y, M, markers[m], view, cover, value)
        for b in range(bars.shape[0]):
            _add_bar(bars[b], u, v, cover, value)
        cover_sum += cover
        value_sum += value
    # Blur along v, then along u.
    cover[:height] = 0.0
    value[:height] = 0.0
    for i in range(height):
        for t in range(weights.size):
            weight = weights[t] / count
            for j in range(columns):
                cover[i, j] += weight * cover_sum[2 * i + t, j]
                value[i, j] += weight * value_sum[2 * i + t, j]
    full_height, full_width = image.shape
    for i in range(height):
        for j in range(width):
            a, c = 0.0, 0.0
            for t in range(weights.size):
                a += weights[t] * cover[i, 2 * j + t]
                c += weights[t] * value[i, 2 * j + t]
            light = _light(view, full_width, full_height, u0 + j, v0 + i)
            level = (1.0 - a) * background[v0 + i, u0 + j] / _PART + light * c
            image[v0 + i, u0 + j] = _noisy(view, level, noise[next_noise])
            next_noise = (next_noise + 1) & (NOISE_LENGTH - 1)
    return next_noise


@_compiled
def _rise(distance, deviation):  # type: ignore[no-untyped-def]
    """Return a step blurred with a standard deviation [px] at a distance [px] from it."""
    if abs(distance) > _REACH * deviation:
        return 1.0 if distance > 0.0 else 0.0
    return 0.5 + 0.5 * math.erf(distance / (deviation * math.sqrt(2.0)))


@kernel
def lit_background(levels, view):  # type: ignore[no-untyped-def]
    """Return a background (height, width) [1/64 grey level] with shading and gain, from [grey]."""
    height, width = levels.shape
    background = np.empty((height, width), np.int16)
    for i in range(height):
        for j in range(width):
            level = levels[i, j] * (view.gain * _light(view, width, height, j, i))
            background[i, j] = np.rint(_PART * min(255.0, max(0.0, level)))
    return background


@kernel
def draw_bars(covered, background, view, bars):  # type: ignore[no-untyped-def]
    """Draw occluders over the background into ``covered``; edges are error functions."""
    height, width = background.shape
    deviation = math.sqrt(view.blur**2 + 1.0 / 12.0)
    for i in range(height):
        for j in range(width):
            level = background[i, j] / _PART
            for bar in bars:
                x, y = j - bar[0], i - bar[1]
                across, along = x * bar[2] + y * bar[3], y * bar[2] - x * bar[3]
                a = _rise(across - bar[4], deviation) * _rise(bar[5] - across, deviation)
                a *= _rise(bar[6] - abs(along), deviation)
                if a > 0.0:
                    level += a * (_light(view, width, height, j, i) * bar[7] - level)
            covered[i, j] = int(_PART * min(255.0, level) + 0.5)


@kernel
def draw_markers(  # type: ignore[no-untyped-def]
    image, background, noise, weights, packed, pose, markers, order, view, bars, next_noise,
    windows,
):  # fmt: skip
    """Draw markers in an order, and occluders; fill their ``windows`` (n, 4) u0, v0, u1, v1."""
    height, width = image.shape
    n = markers.shape[0]
    boxes, counts = np.zeros((n, 4)), np.zeros(n, dtype=np.int64)
    margin = _REACH * view.blur + 2.0
    for m in range(n):
        way = _box_of(packed, pose, markers[m], view.exposure, margin, boxes[m])
        windows[m, :] = 0
        if way < 0.0:
            boxes[m, :] = 0.0
            continue
        counts[m] = int(min(_MOST_INSTANTS, max(1.0, math.ceil(_INSTANTS * way))))
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
                next_noise = _draw_tile(
                    image, background, noise, weights, packed, pose, boxes, counts, markers, order,
                    view, bars, tile, next_noise,
                )  # fmt: skip


@kernel
def draw_background(image, background, noise, view, starts):  # type: ignore[no-untyped-def]
    """Fill an image with background, including occluders, and noise from ``starts`` (height,)."""
    # In single precision, which the processor computes eight at a time.
    height, width = image.shape
    part, step = np.float32(1.0 / _PART), np.float32(1.0 / _NOISE_STEPS)
    dark, shot = np.float32(view.read_noise**2), np.float32(view.shot_noise)
    half, most = np.float32(0.5), np.float32(255.5)
    for i in range(height):
        row, levels, field = image[i], background[i], noise[starts[i] : starts[i] + width]
        for j in range(width):
            level = np.float32(levels[j]) * part
            level += math.sqrt(dark + shot * level) * step * np.float32(field[j]) + half
            level = level if level > half else half
            row[j] = np.uint8(level if level < most else most)
