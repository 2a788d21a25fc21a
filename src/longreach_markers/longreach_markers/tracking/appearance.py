"""
Expected appearance of markers in a camera's images, from the rig and from earlier images.

Pixels are (u, v) with integer centres.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from longreach_dynamics.errors import InputError
from longreach_markers.camera.geometry import intersect, pixel_ray
from longreach_markers.marker.detection import Observation, lost
from longreach_markers.marker.observation import Ellipse
from longreach_markers.rig import MarkerOnRig, MountedCamera, Rig

# Largest change of size, shape and inner edge of a marker between two observations, as a share
# of its size.
RADIUS, _SHAPE, _INNER = 0.12, 0.15, 0.1
# Tolerance of the size predicted by the rig, before any observation. It covers errors of the
# distance along the ray (poses set by hand, a plane that is off by some per cent), of the printed
# scale, and of edges shifted by a blur of a few pixels.
RADIUS_BY_RIG = 0.12


class Appearance:
    """Expected appearance of the rig's markers, in the plane of motion, in one camera."""

    def __init__(self, mounted: MountedCamera, rig: Rig) -> None:
        self.mounted = mounted
        self._rig = rig

    def by_rig(self, marker: MarkerOnRig, center: np.ndarray | None = None) -> Observation:
        """Return the appearance that the rig predicts at a pixel (default: the middle)."""
        camera, pose = self.mounted.camera, self.mounted.pose
        middle = np.array([0.5 * (camera.width - 1.0), 0.5 * (camera.height - 1.0)])
        plane = self._rig.plane_of(marker)
        for place in (middle if center is None else center, middle):
            try:
                point = intersect(*pixel_ray(camera, pose, place), plane)
                # Two conjugate half-diameters.
                ends = pose.to_camera(point + marker.radius * np.vstack([plane.axes, -plane.axes]))
                across = camera.project(ends)
                break
            except InputError:
                continue
        else:
            return lost('', middle if center is None else center, 10.0)
        half = 0.5 * (across[:2] - across[2:]).T
        sizes, directions = np.linalg.eigh(half @ half.T)
        axes = np.sqrt(np.maximum(sizes, 1e-6))
        shape = (directions * axes) @ directions.T
        return dataclasses.replace(
            lost('', place, float(axes[1])),
            ellipse=Ellipse(place, axes, math.atan2(directions[1, 0], directions[0, 0])),
            inner=marker.inner,
            bright=marker.bright,
            shape=np.array([shape[0, 0], shape[0, 1], shape[1, 1]]),
        )

    def in_plane(self, center: np.ndarray, marker: MarkerOnRig) -> np.ndarray:
        """Return the coordinates in the plane (2,) [m] of a marker seen at a pixel."""
        plane = self._rig.plane_of(marker)
        point = intersect(*pixel_ray(self.mounted.camera, self.mounted.pose, center), plane)
        return np.asarray(plane.axes @ point)


def mismatch(seen: Observation, wanted: Observation) -> float:
    """Return the relative difference of size and inner edge between two observations."""
    return abs(math.log(seen.radius / wanted.radius)) + abs(seen.inner - wanted.inner)


def difference(seen: Observation, wanted: Observation, tolerance: float = RADIUS) -> str:
    """Return in which respect an observation differs from the expected one; empty if it agrees."""
    if seen.bright != wanted.bright:
        words = ('dark', 'bright')
        return f'{words[seen.bright]} on {words[not seen.bright]} instead of the reverse'
    if not abs(math.log(seen.radius / wanted.radius)) < tolerance:
        return f'radius of {seen.radius:.1f} px, expected {wanted.radius:.1f} px'
    if not abs(seen.inner - wanted.inner) < _INNER:
        return f'inner edge at {seen.inner:.2f} of the radius, expected {wanted.inner:.2f}'
    ratio = seen.radius / wanted.radius
    a, b, d = (seen.shape - ratio * wanted.shape).tolist()
    change = 0.5 * abs(a + d) + math.hypot(0.5 * (a - d), b)
    if not change < _SHAPE * seen.radius:
        return 'an ellipse of another shape'
    return ''
