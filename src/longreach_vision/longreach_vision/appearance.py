"""
What markers look like in one camera's images, by the rig and from one image to the next.

Pixels are (u, v) with integer centres.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from longreach_dynamics.errors import InputError
from longreach_vision.circles import Ellipse
from longreach_vision.detection import Observation, lost
from longreach_vision.geometry import intersect, pixel_ray
from longreach_vision.rig import MarkerOnRig, MountedCamera, Rig

__all__ = ['RADIUS', 'RADIUS_BY_RIG', 'Appearance', 'difference', 'mismatch']

# By how much size, shape and inner edge of a marker may change from one time to the next: as
# shares of its size.
RADIUS, _SHAPE, _INNER = 0.12, 0.15, 0.1
# The same of the size beside what the rig says, where nothing has been seen yet. It is as wrong as
# the distance along the ray: poses by hand and a plane that is some per cent off, a marker that is
# not printed to scale, an edge that blur of a few pixels moves.
RADIUS_BY_RIG = 0.12


class Appearance:
    """
    How a camera of the rig shows markers.

    Parameters
    ----------
    mounted : MountedCamera
    rig : Rig
        With the plane in which they move.
    """

    def __init__(self, mounted: MountedCamera, rig: Rig) -> None:
        self.mounted = mounted
        self._rig = rig

    def by_rig(self, marker: MarkerOnRig, center: np.ndarray | None = None) -> Observation:
        """Return what a marker looks like in a place of the image, or its middle, by the rig."""
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
        """Return where on the plane's axes (2,) [m] a pixel (2,) shows a marker."""
        plane = self._rig.plane_of(marker)
        point = intersect(*pixel_ray(self.mounted.camera, self.mounted.pose, center), plane)
        return np.asarray(plane.axes @ point)


def mismatch(seen: Observation, wanted: Observation) -> float:
    """Return by how much size and inner edge of a marker are others than wanted, as shares."""
    return abs(math.log(seen.radius / wanted.radius)) + abs(seen.inner - wanted.inner)


def difference(seen: Observation, wanted: Observation, tolerance: float = RADIUS) -> str:
    """Return in which way a marker does not look like what it should, empty if it does."""
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
