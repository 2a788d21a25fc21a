"""Images of a rig's cameras for long sequences: exact edges on cells, background, blur, noise."""

import cv2
import numpy as np

CELLS = 3  # of a pixel, in each direction
WHITE, BLACK, BLUR = 215.0, 35.0, 0.8
CARD = 1.5  # half its side over the radius of the marker


class QuickView:
    """What one camera of a rig sees of its markers at rest."""

    def __init__(self, rig, side, *, clutter=0, noise=1.5, seed=1):
        self.mounted, self.markers, self.noise = rig.cameras[side], rig.markers, noise
        self.normal, self.axes = rig.plane.normal, rig.plane.axes
        self.offsets = np.array([marker.offset for marker in rig.markers])[:, None] * self.normal
        one, rng = self.mounted.camera, np.random.default_rng((seed, side == 'right'))
        self.backdrop = np.repeat(np.linspace(190.0, 120.0, one.height)[:, None], one.width, 1)
        for _ in range(clutter):
            corners = rng.uniform(0.0, (one.width, one.height)) + rng.uniform(-40.0, 40.0, (5, 2))
            cv2.fillPoly(self.backdrop, [np.rint(corners).astype(np.int32)], rng.uniform(20, 235))
        # A camera's pixels on cells, as rays.
        ends = [(np.arange(size * CELLS) + 0.5) / CELLS - 0.5 for size in (one.width, one.height)]
        rays = one.undistort(np.stack(np.meshgrid(*ends), axis=-1), strict=False)
        self.rays = np.insert(rays, 2, 1.0, axis=2) @ self.mounted.pose.rotation.T

    def centers(self, places):
        points = self.mounted.pose.to_camera(np.asarray(places, dtype=float) + self.offsets)
        return self.mounted.camera.project(points, strict=False)

    def image(self, places, rng):
        """Return a picture of markers at places (n, 3); one at NaN is not there."""
        image, eye = self.backdrop.copy(), self.mounted.pose.translation
        away = np.abs((places + self.offsets - eye) @ self.normal)
        for k in np.argsort(-away.round(6), kind='stable'):
            self._draw(image, self.markers[k], places[k] + self.offsets[k] - eye)
        image = cv2.GaussianBlur(image, (0, 0), BLUR)
        image += self.noise * rng.standard_normal(image.shape)
        return np.rint(image.clip(0.0, 255.0)).astype(np.uint8)

    def _draw(self, image, marker, place):
        if not np.isfinite(place).all() or place @ self.mounted.pose.rotation[:, 2] <= 0.0:
            return
        reach = CARD * marker.radius * np.array([(a, b) for a in (-1, 1) for b in (-1, 1)])
        corners = self.mounted.camera.project(
            (place + reach @ self.axes) @ self.mounted.pose.rotation, strict=False
        )
        low = np.floor(corners.min(axis=0) - 1.0).clip(0).astype(int)
        high = np.ceil(corners.max(axis=0) + 2.0).clip(0).astype(int)
        window = np.s_[low[1] : high[1], low[0] : high[0]]
        cells = self.rays[tuple(slice(CELLS * one.start, CELLS * one.stop) for one in window)]
        if not image[window].size:
            return
        plane = cells * ((place @ self.normal) / (cells @ self.normal))[..., None] - place
        s, t = np.moveaxis(plane @ self.axes.T / marker.radius, -1, 0)
        r = np.hypot(s, t)
        # Of each cell the share within an edge, as if straight.
        card, outer, inner = (
            np.clip((edge - f) / (np.hypot(*np.gradient(f)) + 1e-12) + 0.5, 0.0, 1.0)
            for f, edge in ((np.maximum(abs(s), abs(t)), CARD), (r, 1.0), (r, marker.inner))
        )
        band, rest = (WHITE, BLACK) if marker.bright else (BLACK, WHITE)
        ring = outer - inner if marker.inner else outer
        shares = [
            cv2.resize(one, None, fx=1 / CELLS, fy=1 / CELLS, interpolation=cv2.INTER_AREA)
            for one in (card, ring)
        ]
        image[window] += shares[0] * (rest - image[window]) + shares[1] * (band - rest)
