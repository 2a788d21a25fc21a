"""
Exact images of a marker, with no code of the fit, and parameters as the fit has them.

Circles seen through a homography, drawn on 8 x 8 cells a pixel, then blurred.
"""

import cv2
import numpy as np

SIZE, CELLS = 72, 8
# Shape matrix and centre of the outer edge [px].
A = np.array([[17.0, 2.0], [2.0, 12.0]])
MIDDLE = np.array([36.3, 35.2])
V, U = np.mgrid[0:SIZE, 0:SIZE].astype(float)


def draw(center=MIDDLE, shape=A, h=(0.0, 0.0), inner=0.5, blur=0.85, levels=(190.0, 50.0, 200.0)):
    """The exact image of a marker: its levels are those inside, of the band and outside."""
    at = (np.arange(SIZE * CELLS) + 0.5) / CELLS - 0.5
    u, v = np.meshgrid(at, at)
    pixels = np.stack([u, v], axis=-1)
    y = (pixels - center) @ np.linalg.inv(shape)
    plane = y / (1.0 - y @ np.array(h))[..., None]
    r = np.hypot(plane[..., 0], plane[..., 1])
    slope = np.hypot(*np.gradient(r)) + 1e-9
    # The share of a cell that lies within a circle: that of a straight edge.
    outer, hole = (np.clip((radius - r) / slope + 0.5, 0.0, 1.0) for radius in (1.0, inner))
    if inner == 0.0:
        hole[:] = 0.0
    grey = levels[2] + (levels[1] - levels[2]) * outer + (levels[0] - levels[1]) * hole
    # The pixel's box is a part of the blur.
    grey = cv2.GaussianBlur(grey, (0, 0), blur * CELLS, borderType=cv2.BORDER_REPLICATE)
    return np.asarray(grey.reshape(SIZE, CELLS, SIZE, CELLS).mean(axis=(1, 3)))


def taken(exact, noise=2.0, seed=0):
    grey = exact + noise * np.random.default_rng(seed).normal(size=exact.shape)
    return np.clip(np.rint(grey), 0, 255).astype(np.uint8)


def parameters(
    inside=(190.0, 0.0, 0.0), rho=0.5, center=MIDDLE, shape=(17.0, 2.0, 12.0),
    blur=(0.8, 0.0, 0.8), band=(50.0, 0.0, 0.0), outside=(200.0, 0.0, 0.0), h=(0.0, 0.0)
):  # fmt: skip
    """Grey levels have slopes."""
    return np.array([*inside, rho, *center, *shape, *blur, *band, *outside, *h])
