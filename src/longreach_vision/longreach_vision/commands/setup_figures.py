"""Figures of calibrations, and of cameras and reference points."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from longreach_markers.camera.model import Camera
from longreach_markers.setup.calibration import Calibration
from longreach_markers.setup.localisation import Localisation
from longreach_tools.output import figure

# Magnification of errors.
_ARROWS, _ELLIPSES = 200.0, 100.0


def draw_calibration(file: str | Path, found: Calibration) -> None:
    """Draw corners with their errors over the image, and the error of each picture."""
    camera = found.camera
    with figure(file, size=(8.0, 9.0), above=3.0) as (image, bars):
        u, v = np.concatenate([view.corners for view in found.views]).T
        du, dv = _ARROWS * found.residuals.reshape(-1, 2).T
        rows, columns = found.ray_deviation.shape
        shown = image.imshow(
            found.ray_deviation,
            extent=(-0.5, camera.width - 0.5, camera.height - 0.5, -0.5),
            cmap='Blues',
            vmin=0.0,
            vmax=max(0.5, float(np.nanmax(found.ray_deviation))),
            interpolation='bilinear' if min(rows, columns) > 1 else 'nearest',
            alpha=0.7,
        )
        image.figure.colorbar(shown, ax=image, label='deviation of a ray [px]', shrink=0.8)
        image.quiver(
            u, v, du, dv, angles='xy', scale_units='xy', scale=1.0, width=1.5e-3, color='C3'
        )
        image.set_xlim(-0.5, camera.width - 0.5)
        image.set_ylim(camera.height - 0.5, -0.5)
        image.set_aspect('equal')
        image.set_title(f'corners; arrows are their errors times {_ARROWS:g}', fontsize=10)
        image.set_xlabel('u [px]')
        image.set_ylabel('v [px]')
        bars.bar(range(len(found.views)), found.errors)
        bars.axhline(found.rms, color='0.4', linewidth=1.0)
        bars.set_xticks(
            range(len(found.views)),
            [Path(view.name).stem for view in found.views],
            rotation=90,
            fontsize=7,
        )
        bars.set_xlabel('picture')
        bars.set_ylabel('error [px]')


def draw_localisation(
    file: str | Path, found: Localisation, cameras: Mapping[str, Camera]
) -> None:
    """Draw cameras, reference points and the tip from above and from the side."""
    points = np.array([point.position for point in found.points])
    every = np.vstack([points, found.tip.point, *(p.translation for p in found.poses.values())])
    _, deep, high = np.ptp(every, axis=0)
    with figure(file, size=(9.0, 11.0), above=max(float(deep / max(high, 1e-3)), 0.2)) as axes:
        for axis, k, name in zip(axes, (1, 2), 'yz', strict=True):
            axis.plot(points[:, 0], points[:, k], 'k.', label='reference points')
            for point in found.points:
                place = (point.position[0], point.position[k])
                axis.annotate(point.name, place, (4, 4), textcoords='offset points', fontsize=7)
                _ellipse(axis, place, point.covariance[np.ix_((0, k), (0, k))], '0.5')
            place = (found.tip.point[0], found.tip.point[k])
            axis.plot(*place, 'C3*', label=f'tip; ellipses are errors times {_ELLIPSES:g}')
            known = [*found.tip.in_plane.values()]
            if found.tip.triangulated is not None:
                known.append(found.tip.triangulated)
            if known:
                best = min(known, key=lambda covariance: float(np.trace(covariance)))
                _ellipse(axis, place, best[np.ix_((0, k), (0, k))], 'C3')
            for c, (side, pose) in enumerate(found.poses.items()):
                camera, t = cameras[side], pose.translation
                axis.plot(t[0], t[k], 's', color=f'C{c}', label=side)
                middle = (camera.width - 1) / 2.0, (camera.height - 1) / 2.0
                for pixel in ((0.0, middle[1]), (camera.width - 1.0, middle[1])):
                    ray = camera.undistort(np.array(pixel), strict=False)
                    depth = 0.4 * float(np.median(np.linalg.norm(points - t, axis=1)))
                    end = pose.to_world(depth * np.append(ray, 1.0))
                    axis.plot((t[0], end[0]), (t[k], end[k]), color=f'C{c}', linewidth=0.8)
            axis.set_aspect('equal', adjustable='datalim')
            axis.set_xlabel('$x$ [m]')
            axis.set_ylabel(f'${name}$ [m]')
        axes[0].legend(loc='lower right', bbox_to_anchor=(1.0, 0.99), frameon=False, ncols=4)


def _ellipse(axis: Any, place: tuple[float, float], covariance: np.ndarray, colour: str) -> None:
    """Draw a magnified ellipse of one standard deviation around a position."""
    values, vectors = np.linalg.eigh(covariance)
    angle = np.linspace(0.0, 2.0 * np.pi, 60)
    circle = np.sqrt(np.maximum(values, 0.0))[:, None] * np.array([np.cos(angle), np.sin(angle)])
    x, y = np.array(place)[:, None] + _ELLIPSES * vectors @ circle
    axis.plot(x, y, color=colour, linewidth=0.8)
