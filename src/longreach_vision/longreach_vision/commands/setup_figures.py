"""Figures of calibrations, of cameras and reference points, and markers to be printed."""

from __future__ import annotations

import io
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from longreach_dynamics.errors import InputError, check_within
from longreach_markers import Calibration, Camera, Localisation
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


# --- markers to be printed ------------------------------------------------------------------

PAGES = {
    'A4': (210.0, 297.0),
    'A3': (297.0, 420.0),
    'A2': (420.0, 594.0),
    'A1': (594.0, 841.0),
    'A0': (841.0, 1189.0),
}
"""Width and height [mm], ISO 216."""
FORMATS = ('pdf', 'svg')
"""Extensions of the files."""

_SMALLEST, _LARGEST = 0.005, 3.0  # diameter [m]; the largest PDF page has 5.08 m
_INNER = (0.2, 0.85)  # ratios with two separate edges
# Background around the marker, as a share of its diameter: 4.5 px for a radius of 15 px.
_MARGIN = 0.15
_BORDER = 5.0  # unprintable margin
_POINTERS = 6.0  # length of the lines outside of the square
_FOOT = 14.0  # height of scale and text
_SCALE = 100.0
_INCH = 25.4
_LINE, _TEXT = 0.25, 2.4  # 80 characters are about as long as the scale


class Sheet(NamedTuple):
    """A page with one marker on a square of background, in mm from the upper left, y down."""

    radius: float  # of the outer edge
    inner: float  # inner over outer radius, 0 for a disc
    bright: bool  # bright on dark
    page: str  # one of PAGES, or 'fit'
    size: tuple[float, float]
    center: tuple[float, float]
    half: float  # the side of the square

    @property
    def lines(self) -> list[tuple[float, float, float, float]]:
        """Lines x1, y1, x2, y2 [mm]: pointers, cut marks, and the scale with its ends."""
        x, y = self.center
        near, far = self.half + 1.0, self.half + _POINTERS
        lines = []
        for sign in (-1.0, 1.0):
            lines.append((x + sign * near, y, x + sign * far, y))
            lines.append((x, y + sign * near, x, y + sign * far))
            for other in (-1.0, 1.0):
                edge = x + sign * self.half, y + other * self.half
                lines.append((edge[0] + sign, edge[1], x + sign * far, edge[1]))
                lines.append((edge[0], edge[1] + other, edge[0], y + other * far))
        left, level = self.scale
        lines.append((left, level, left + _SCALE, level))
        lines += [(end, level - 1.5, end, level + 1.5) for end in (left, left + _SCALE)]
        return lines

    @property
    def scale(self) -> tuple[float, float]:
        """Left end of the scale [mm]."""
        x, y = self.center
        return x - 0.5 * _SCALE, y + self.half + _POINTERS + 4.0

    @property
    def text(self) -> str:
        """Text at the bottom."""
        diameter = 2.0 * self.radius
        kind = 'disc' if not self.inner else f'ring, inside {self.inner * diameter:.6g} mm'
        way = 'bright on dark' if self.bright else 'dark on bright'
        return f'{diameter:.6g} mm {kind}, {way}. Print at 100 %: the line is 100 mm long'


def lay_out(
    diameter: float, inner: float = 0.5, bright: bool = False, page: str | None = None
) -> Sheet:
    """Lay out a marker of a diameter [m] on a page, by default the smallest that fits."""
    check_within('diameter', diameter, f'[{_SMALLEST:g}, {_LARGEST:g}] m; 0.3 m is good at 20 m')
    if inner != 0.0 and not _INNER[0] <= inner <= _INNER[1]:
        raise InputError(
            f'inner = {inner:g}, allowed: 0 for a disc, [{_INNER[0]:g}, {_INNER[1]:g}] for a ring'
        )
    radius = 500.0 * diameter
    half = radius * (1.0 + 2.0 * _MARGIN)
    needed = 2.0 * (half + _POINTERS + _BORDER), 2.0 * (half + _POINTERS + _BORDER) + _FOOT
    fitting = [
        name
        for name, (width, height) in PAGES.items()
        if width >= needed[0] and height >= needed[1]
    ]
    if page is None:
        page = fitting[0] if fitting else 'fit'
    elif page != 'fit' and page not in fitting:
        width, height = PAGES[page]
        most = min(width, height - _FOOT) - 2.0 * (_POINTERS + _BORDER)
        raise InputError(
            f'page = {page}, allowed for a marker of {2.0 * radius:g} mm:'
            f' {", ".join((*fitting, "fit"))}; {page} holds'
            f' {math.floor(most / (1.0 + 2.0 * _MARGIN)):g} mm'
        )
    size = PAGES.get(page, (max(needed[0], _SCALE + 2.0 * _BORDER), needed[1]))
    center = 0.5 * size[0], 0.5 * (size[1] - _FOOT)
    return Sheet(radius, inner, bright, page, size, center, half)


def sheet_file(sheet: Sheet, kind: str) -> bytes:
    """Return a marker to be printed as a file of one of FORMATS; equal sheets give equal bytes."""
    from matplotlib import rc_context
    from matplotlib.collections import LineCollection
    from matplotlib.figure import Figure
    from matplotlib.patches import Circle, Rectangle

    width, height = sheet.size
    figure = Figure(figsize=(width / _INCH, height / _INCH))
    # A unit of the axes is a millimetre of the page.
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set(xlim=(0.0, width), ylim=(height, 0.0))
    axes.set_axis_off()
    x, y = sheet.center
    marker, background = ('white', 'black') if sheet.bright else ('black', 'white')
    square, side = (x - sheet.half, y - sheet.half), 2.0 * sheet.half
    axes.add_patch(Rectangle(square, side, side, color=background, linewidth=0.0))
    axes.add_patch(Circle((x, y), sheet.radius, color=marker, linewidth=0.0))
    if sheet.inner:
        hole = Circle((x, y), sheet.inner * sheet.radius, color=background, linewidth=0.0)
        axes.add_patch(hole)
    lines = [((x1, y1), (x2, y2)) for x1, y1, x2, y2 in sheet.lines]
    point = 72.0 / _INCH
    axes.add_collection(LineCollection(lines, colors='black', linewidths=_LINE * point))
    left, level = sheet.scale
    axes.text(left, level + 5.0, sheet.text, fontsize=_TEXT * point)
    file = io.BytesIO()
    # Text stays text, and no date or random name makes two files differ.
    date = {'pdf': 'CreationDate', 'svg': 'Date'}[kind]
    with rc_context({'svg.fonttype': 'none', 'svg.hashsalt': 'longreach'}):
        figure.savefig(file, format=kind, metadata={date: None})
    return file.getvalue()
