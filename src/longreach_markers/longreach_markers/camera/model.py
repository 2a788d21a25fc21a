"""
Pinhole camera with lens distortion.

Pixels are (u, v) = (column, row); the centre of the first pixel is (0, 0). The camera frame is the
optical frame: x right, y down, z forward. Normalised coordinates are (x, y) = (X/Z, Y/Z) of an
undistorted ray; they exist only for rays in front of the camera. With r^2 = x^2 + y^2:

    plumb_bob            x_d = s x + 2 p1 x y + p2 (r^2 + 2 x^2),  s = 1 + k1 r^2 + k2 r^4 + k3 r^6
    rational_polynomial  the same with s divided by 1 + k4 r^2 + k5 r^4 + k6 r^6
    equidistant          x_d = (t + k1 t^3 + k2 t^5 + k3 t^7 + k4 t^9) x/r,  t = atan r

with y_d alike, and u = fx x_d + cx, v = fy y_d + cy. Henikl 2015, (30), has minus signs: its
camera frame is rotated by half a turn about z.

Far from the axis each model folds over: two rays share a pixel, and only the inner one is valid.
The limit is the radius at which s r, or the polynomial of t, stops increasing. A ray beyond it has
no pixel, and a pixel that only such rays reach has no ray.

Functions in compiled code take the camera as the array ``packed``, :attr:`Camera.packed`, of
shape (16,): fx, fy, cx, cy [px], kind of model, eight coefficients, limit of the radius.

Source of the models: OpenCV, with the names of sensor_msgs/CameraInfo.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import Any

import numpy as np
from numba import njit
from numpy.polynomial import polynomial
from numpy.typing import ArrayLike

from longreach_dynamics.errors import InputError, check_within
from longreach_dynamics.kernels import kernel
from longreach_dynamics.parameters import Parameters, choice, quantity

MODELS = ('plumb_bob', 'rational_polynomial', 'equidistant')

# Allowed numbers of coefficients of each model.
_COEFFICIENTS = {'plumb_bob': (0, 4, 5), 'rational_polynomial': (8,), 'equidistant': (4,)}
# Focal length over the longer side of the image, from the widest fisheye to the longest lens on a
# small part of a sensor (a fifth of a degree); largest ratio of the two focal
# lengths.
_FOCAL, _ASPECT = (0.05, 200.0), 4.0
# Places in the packed array: fx, fy, cx, cy, kind, eight coefficients, limit of the radius.
_SIZE, _LIMIT = 16, 13
# Pixels per side of the grid on which a new camera is checked.
_CHECKED = 33
# Tolerance of normalised coordinates.
_TOLERANCE = 1e-12
_NAN = math.nan


# Division by zero gives inf or NaN here; the following checks detect them.
_compiled = njit(error_model='numpy')


@_compiled
def _radial(packed, w):  # type: ignore[no-untyped-def]
    """Return distorted radius and derivative at a normalised radius (equidistant: an angle)."""
    q = w * w
    if packed[4] == 2.0:
        k1, k2, k3, k4 = packed[5], packed[6], packed[7], packed[8]
        value = w * (1.0 + q * (k1 + q * (k2 + q * (k3 + q * k4))))
        return value, 1.0 + q * (3.0 * k1 + q * (5.0 * k2 + q * (7.0 * k3 + q * 9.0 * k4)))
    s, ds = _scale(packed, q)
    return s * w, s + 2.0 * q * ds


@_compiled
def _scale(packed, q):  # type: ignore[no-untyped-def]
    """Return the factor s of plumb_bob and rational_polynomial at q = r^2, and ds/dq."""
    k1, k2, k3 = packed[5], packed[6], packed[9]
    above = 1.0 + q * (k1 + q * (k2 + q * k3))
    rise = k1 + q * (2.0 * k2 + q * 3.0 * k3)
    if packed[4] == 0.0:
        return above, rise
    k4, k5, k6 = packed[10], packed[11], packed[12]
    below = 1.0 + q * (k4 + q * (k5 + q * k6))
    s = above / below
    return s, (rise - s * (k4 + q * (2.0 * k5 + q * 3.0 * k6))) / below


@_compiled
def _distorted(packed, x, y):  # type: ignore[no-untyped-def]
    """Return distorted coordinates and their derivatives: x_d, y_d, xx, xy, yx, yy."""
    q = x * x + y * y
    if packed[4] == 2.0:
        r = math.sqrt(q)
        if r < 1e-8:
            return x, y, 1.0, 0.0, 0.0, 1.0
        value, slope = _radial(packed, math.atan(r))
        s = value / r
        turn = (slope / (1.0 + q) - s) / q
        return s * x, s * y, s + turn * x * x, turn * x * y, turn * x * y, s + turn * y * y
    s, ds = _scale(packed, q)
    p1, p2 = packed[7], packed[8]
    x_d = s * x + 2.0 * p1 * x * y + p2 * (q + 2.0 * x * x)
    y_d = s * y + p1 * (q + 2.0 * y * y) + 2.0 * p2 * x * y
    mixed = 2.0 * (ds * x * y + p1 * x + p2 * y)
    xx = s + 2.0 * ds * x * x + 2.0 * p1 * y + 6.0 * p2 * x
    yy = s + 2.0 * ds * y * y + 6.0 * p1 * y + 2.0 * p2 * x
    return x_d, y_d, xx, mixed, mixed, yy


@_compiled
def distort_point(packed, x, y):  # type: ignore[no-untyped-def]
    """Return the pixel (u, v) of normalised coordinates, NaN beyond the limit of the model."""
    if not math.hypot(x, y) < packed[_LIMIT]:
        return _NAN, _NAN
    x_d, y_d, xx, xy, yx, yy = _distorted(packed, x, y)
    if not xx * yy - xy * yx > 0.0:
        return _NAN, _NAN
    return packed[0] * x_d + packed[2], packed[1] * y_d + packed[3]


@_compiled
def projection_jacobian(packed, x, y):  # type: ignore[no-untyped-def]
    """Return du/dx, du/dy, dv/dx and dv/dy [px] within the limit of the model."""
    _, _, xx, xy, yx, yy = _distorted(packed, x, y)
    return packed[0] * xx, packed[0] * xy, packed[1] * yx, packed[1] * yy


@_compiled
def _inverse_radial(packed, radius, limit):  # type: ignore[no-untyped-def]
    """Return the inverse of :func:`_radial`, or the limit if no smaller w has this radius."""
    low, high = 0.0, limit
    w = min(radius, 0.5 * limit)
    for _ in range(200):
        value, slope = _radial(packed, w)
        error = value - radius
        if abs(error) <= 4e-16 * radius:
            break
        if error > 0.0:
            high = w
        else:
            low = w
        step = w - error / slope
        if not low < step < high:
            # Without a limit there is no upper bound for bisection.
            step = 2.0 * w + 1.0 if math.isinf(high) else 0.5 * (low + high)
        if abs(step - w) <= 2e-16 * w:
            break
        w = step
    return w


@_compiled
def undistort_point(packed, u, v):  # type: ignore[no-untyped-def]
    """Return the normalised coordinates (x, y) of a pixel, NaN where there is no ray."""
    # Newton's method on the radius, then, with tangential terms, on both coordinates.
    x_d, y_d = (u - packed[2]) / packed[0], (v - packed[3]) / packed[1]
    radius = math.hypot(x_d, y_d)
    if not radius < math.inf:
        return _NAN, _NAN
    limit = packed[_LIMIT]
    equidistant = packed[4] == 2.0
    tangential = not equidistant and (packed[7] != 0.0 or packed[8] != 0.0)
    x, y = 0.0, 0.0
    if radius > 0.0:
        w = _inverse_radial(packed, radius, math.atan(limit) if equidistant else limit)
        if not tangential and not abs(_radial(packed, w)[0] - radius) <= _TOLERANCE:
            return _NAN, _NAN
        r = math.tan(w) if equidistant else w
        x, y = x_d * r / radius, y_d * r / radius
    if tangential:
        return _polished(packed, x_d, y_d, x, y)
    return x, y


@_compiled
def _polished(packed, x_d, y_d, x, y):  # type: ignore[no-untyped-def]
    """Return undistorted x, y by damped Newton steps from an estimate; NaN without."""
    limit = packed[_LIMIT]
    if not math.hypot(x, y) < limit:
        shrunk = 0.999 * limit / math.hypot(x, y)
        x, y = x * shrunk, y * shrunk
    size = 1.0 + math.hypot(x_d, y_d)
    got_x, got_y, xx, xy, yx, yy = _distorted(packed, x, y)
    error = math.hypot(got_x - x_d, got_y - y_d)
    for _ in range(50):
        if error <= 2e-16 * size:
            break
        area = xx * yy - xy * yx
        if not area > 0.0:
            return _NAN, _NAN
        dx = (yy * (x_d - got_x) - xy * (y_d - got_y)) / area
        dy = (xx * (y_d - got_y) - yx * (x_d - got_x)) / area
        part, better = 1.0, False
        while part > 1e-4:
            new_x, new_y = x + part * dx, y + part * dy
            if math.hypot(new_x, new_y) < limit:
                got_x, got_y, xx, xy, yx, yy = _distorted(packed, new_x, new_y)
                new_error = math.hypot(got_x - x_d, got_y - y_d)
                if new_error < error:
                    better = True
                    break
            part *= 0.5
        if not better:
            break
        x, y, error = new_x, new_y, new_error
    # Rounding errors are far below this; without a ray, the error is far above.
    if not (xx * yy - xy * yx > 0.0 and error <= _TOLERANCE * size):
        return _NAN, _NAN
    return x, y


@kernel
def _distort_all(packed, normalised, pixels):  # type: ignore[no-untyped-def]
    """Fill pixels (n, 2) of normalised coordinates (n, 2); NaN beyond the model's limit."""
    for i in range(normalised.shape[0]):
        pixels[i, 0], pixels[i, 1] = distort_point(packed, normalised[i, 0], normalised[i, 1])


@kernel
def _undistort_all(packed, pixels, normalised):  # type: ignore[no-untyped-def]
    """Fill the normalised coordinates (n, 2) of pixels (n, 2); NaN where there is no ray."""
    for i in range(pixels.shape[0]):
        normalised[i, 0], normalised[i, 1] = undistort_point(packed, pixels[i, 0], pixels[i, 1])


@dataclasses.dataclass(frozen=True)
class Camera(Parameters):
    """
    Intrinsics of a camera.

    Raises
    ------
    InputError
        For sizes, focal lengths or numbers of coefficients that are not allowed, a principal point
            far outside the image, and a distortion that folds over within the image.
    """

    name: str = quantity("the camera's name", '')
    width: int = quantity('columns of the image', 'px', at_least=1, at_most=100_000)
    height: int = quantity('rows of the image', 'px', at_least=1, at_most=100_000)
    fx: float = quantity('focal length in pixel widths', 'px', above=0.0)
    fy: float = quantity('focal length in pixel heights', 'px', above=0.0)
    cx: float = quantity('column of the principal point', 'px')
    cy: float = quantity('row of the principal point', 'px')
    model: str = choice('distortion model', MODELS, default='plumb_bob')
    distortion: tuple[float, ...] = quantity(
        'coefficients by model: k1 k2 p1 p2 k3 | k1 k2 p1 p2 k3 k4 k5 k6 | k1 k2 k3 k4', default=()
    )

    def check(self) -> None:
        """Raise InputError for inconsistent values."""
        self._check_coefficients()
        longest = max(self.width, self.height)
        low, high = (share * longest for share in _FOCAL)
        for name, focal in (('fx', self.fx), ('fy', self.fy)):
            if not low <= focal <= high:
                raise InputError(
                    f'{name} = {focal:g} px, allowed for an image of {longest} px: [{low:g},'
                    f' {high:g}] px; is it in mm, or from another image size?'
                )
        if not 1.0 / _ASPECT <= self.fx / self.fy <= _ASPECT:
            raise InputError(
                f'fx = {self.fx:g} px and fy = {self.fy:g} px differ by a factor of more than'
                f' {_ASPECT:g}; is one of them mistyped?'
            )
        for name, center, focal, size in (
            ('cx', self.cx, self.fx, self.width),
            ('cy', self.cy, self.fy, self.height),
        ):
            # A cropped image may have its principal point outside of it.
            margin = max(float(size), focal)
            if not -margin <= center <= size + margin:
                raise InputError(
                    f'{name} = {center:g} px, allowed for an image of {size} px and this focal'
                    f' length: [{-margin:g}, {size + margin:g}] px; is it from another image size?'
                )
        self._check_folding()

    def _check_coefficients(self) -> None:
        count, allowed = len(self.distortion), _COEFFICIENTS[self.model]
        more = '; those beyond are thin prism and tilt terms: leave them out if they are 0'
        if count not in allowed:
            raise InputError(
                f'distortion has {count} coefficients, allowed for {self.model}:'
                f' {" or ".join(map(str, allowed))}{more if count > 8 else ""}'
            )

    def _check_folding(self) -> None:
        """Raise InputError when a pixel of the image has no ray because the model folds over."""
        tangential = self.model != 'equidistant' and any(self.distortion[2:4])
        if math.isinf(self._packed[_LIMIT]) and not tangential:
            return
        u = np.linspace(-0.5, self.width - 0.5, _CHECKED)
        v = np.linspace(-0.5, self.height - 0.5, _CHECKED)
        pixels = np.stack(np.meshgrid(u, v), axis=-1).reshape(-1, 2)
        lost = pixels[np.isnan(self.undistort(pixels, strict=False)[:, 0])]
        if lost.size:
            nearest = lost[np.argmin(np.hypot(lost[:, 0] - self.cx, lost[:, 1] - self.cy))]
            raise InputError(
                f'distortion = {list(self.distortion)} folds over within the image: pixel'
                f' ({nearest[0]:.0f}, {nearest[1]:.0f}) has no ray; calibrate with pictures of the'
                ' board in the corners of the image, or take another model'
            )

    @property
    def matrix(self) -> np.ndarray:
        """Camera matrix K (3, 3), from normalised distorted coordinates to pixels."""
        return np.array([[self.fx, 0.0, self.cx], [0.0, self.fy, self.cy], [0.0, 0.0, 1.0]])

    @property
    def packed(self) -> np.ndarray:
        """Camera as an array for compiled code, shape (16,); see the module's docstring."""
        return self._packed.copy()

    @functools.cached_property
    def _packed(self) -> np.ndarray:
        packed = np.zeros(_SIZE)
        packed[:5] = self.fx, self.fy, self.cx, self.cy, MODELS.index(self.model)
        packed[5 : 5 + len(self.distortion)] = self.distortion
        packed[_LIMIT] = _limit(self.model, self.distortion)
        return packed

    def project(self, points_cam: ArrayLike, *, strict: bool = True) -> np.ndarray:
        """
        Return the pixels (..., 2) of points (..., 3) [m] in the camera frame, Henikl 2015, (30).

        Not necessarily within the image. A point without a pixel, which is not in front of the
        camera or beyond the distortion's limit, is an InputError; without ``strict`` it gives NaN.
        """
        points = _checked(points_cam, 3, 'points')
        depth = points[..., 2:]
        with np.errstate(divide='ignore', invalid='ignore', over='ignore'):
            normalised = np.where(depth > 0.0, points[..., :2] / depth, math.nan)
        pixels = self.distort(normalised, strict=False)
        if lost := _first_lost(pixels, points, strict):
            raise InputError(
                f'point {lost} m of the frame of camera {self.name} has no pixel, allowed: z > 0,'
                f' {self._allowed()}'
            )
        return pixels

    def distort(self, normalised: ArrayLike, *, strict: bool = True) -> np.ndarray:
        """
        Return the pixels (..., 2) [px] of normalised coordinates (..., 2).

        A ray beyond the limit of the model is an InputError; without ``strict`` it gives NaN.
        """
        rays = _checked(normalised, 2, 'normalised coordinates')
        pixels = np.empty_like(rays)
        _distort_all(self.packed, rays.reshape(-1, 2), pixels.reshape(-1, 2))
        if lost := _first_lost(pixels, rays, strict):
            raise InputError(
                f'normalised coordinates {lost} have no pixel of camera {self.name}, allowed:'
                f' {self._allowed()}'
            )
        return pixels

    def undistort(self, pixels: ArrayLike, *, strict: bool = True) -> np.ndarray:
        """
        Return the normalised coordinates (..., 2) of pixels (..., 2) [px], to 1e-12.

        A pixel that no ray in front of the camera reaches is an InputError; without ``strict``
        NaN.
        """
        places = _checked(pixels, 2, 'pixels')
        rays = np.empty_like(places)
        _undistort_all(self.packed, places.reshape(-1, 2), rays.reshape(-1, 2))
        if lost := _first_lost(rays, places, strict):
            raise InputError(
                f'pixel {lost} of camera {self.name} has no ray; the image has'
                f' {self.width} x {self.height} px'
            )
        return rays

    def scaled(self, factor: float) -> Camera:
        """Return the camera of images resized by a factor, u' = (u + 0.5) factor - 0.5."""
        check_within('factor', factor, '(0, inf)')
        return self.replace(
            width=round(self.width * factor),
            height=round(self.height * factor),
            fx=self.fx * factor,
            fy=self.fy * factor,
            cx=(self.cx + 0.5) * factor - 0.5,
            cy=(self.cy + 0.5) * factor - 0.5,
        )

    def _allowed(self) -> str:
        limit = self._packed[_LIMIT]
        return f'sqrt(x^2 + y^2)/z < {limit:.4g}' if limit < math.inf else 'finite numbers'


def _limit(model: str, distortion: tuple[float, ...]) -> float:
    """Return the normalised radius at which the distorted radius stops increasing, or inf."""
    if model == 'equidistant':
        k = np.array(distortion)
        angle = math.sqrt(_smallest_root(np.append(1.0, np.array([3.0, 5.0, 7.0, 9.0]) * k)))
        return math.tan(angle) if angle < math.pi / 2.0 else math.inf
    k1, k2, _, _, k3, k4, k5, k6 = (*distortion, *(0.0,) * 8)[:8]
    above, below = np.array([1.0, k1, k2, k3]), np.array([1.0, k4, k5, k6])
    # Numerator of d(r s)/dr, s = above/below, as a polynomial of q = r^2.
    change = polynomial.polysub(
        polynomial.polymul(polynomial.polyder(above), below),
        polynomial.polymul(polynomial.polyder(below), above),
    )
    rise = polynomial.polyadd(polynomial.polymul(above, below), 2.0 * polynomial.polymulx(change))
    return math.sqrt(min(_smallest_root(rise), _smallest_root(below)))


def _smallest_root(coefficients: Any) -> float:
    """Return the smallest positive root of a polynomial, lowest power first; inf for none."""
    trimmed = polynomial.polytrim(coefficients)
    if trimmed.size < 2:
        return math.inf
    roots = polynomial.polyroots(trimmed)
    real = roots.real[(np.abs(roots.imag) < 1e-9 * np.abs(roots)) & (roots.real > 0.0)]
    return float(real.min()) if real.size else math.inf


def _checked(values: ArrayLike, size: int, name: str) -> np.ndarray:
    """Return a contiguous array of floats, shape (..., size)."""
    array = np.ascontiguousarray(values, dtype=np.float64)
    if array.ndim == 0 or array.shape[-1] != size:
        raise InputError(f'{name} have shape {np.shape(values)}, allowed: (..., {size})')
    return array


def _first_lost(results: np.ndarray, given: np.ndarray, strict: bool) -> str:
    """Return the first input whose result is NaN, as text; empty if none counts."""
    lost = np.isnan(results[..., 0])
    first = given[lost][:1] if strict else ()
    return ''.join(f'({", ".join(f"{value:g}" for value in one)})' for one in first)
