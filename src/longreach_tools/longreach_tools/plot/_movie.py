"""Moving pictures: a machine from the side, and traces that grow beside it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from longreach_dynamics.errors import InputError, LongreachError
from longreach_tools.output import writing

from ._draw import style_of
from ._picture import Picture, decimate
from ._scene import Scene

# Share of the picture's width that the machine has beside traces.
_MACHINE = 0.56
# Height of a line of text [inch], and most entries of a legend in one line.
_LINE, _COLUMNS = 0.16, 4
# Points of a trace that are drawn: more are not seen.
_POINTS = 600
# Colours of a GIF, and pictures from which they are chosen.
_PALETTE, _SAMPLES = 96, 12
# Browsers show pictures of a GIF for at least 0.02 s [Hz].
GIF_RATE = 50.0


def frames(
    scene: Scene, picture: Picture, times: Sequence[float], size: tuple[int, int], dpi: float
) -> Iterator[np.ndarray]:
    """Yield the pictures at some times, shape (height, width, 3), red, green, blue, 0 to 255."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.collections import PolyCollection
    from matplotlib.figure import Figure

    width, height = size
    canvas = Figure(figsize=(width / dpi, height / dpi), dpi=dpi, layout='constrained')
    agg = FigureCanvasAgg(canvas)
    small: dict[str, Any] = {'fontsize': 'x-small'}
    tiny: dict[str, Any] = {'fontsize': 'xx-small'}
    if picture.panels:
        columns = canvas.add_gridspec(1, 2, width_ratios=(_MACHINE, 1.0 - _MACHINE))
        side = canvas.add_subplot(columns[0])
        rows = columns[1].subgridspec(len(picture.panels), 1)
        axes = [canvas.add_subplot(rows[0])]
        axes += [
            canvas.add_subplot(rows[k], sharex=axes[0]) for k in range(1, len(picture.panels))
        ]
    else:
        side, axes = canvas.add_subplot(), []
    box = _extent(scene, times)
    side.set_aspect('equal', adjustable='box')
    side.set_xlim(box[0], box[1])
    side.set_ylim(box[2], box[3])
    side.set_axis_off()
    machine = side.add_collection(PolyCollection([], animated=True))
    # In the corner of the picture, whatever the shape of the machine.
    words: dict[str, Any] = {'va': 'top', 'animated': True, **small}
    clock = canvas.text(0.01, 0.985, '', **words)
    below = _LINE * dpi / height
    states = [canvas.text(0.01, 0.985 - line * below, '', **words) for line in (1, 2)]
    traces = []
    for axis, panel in zip(axes, picture.panels, strict=True):
        axis.set_ylabel(panel.label, **tiny)
        axis.tick_params(labelsize='xx-small', labelbottom=axis is axes[-1])
        axis.grid(visible=True, color='0.92')
        axis.spines[['top', 'right']].set_visible(False)
        for number, curve in enumerate(panel.curves):
            kept = decimate(curve.values, _POINTS)
            (line,) = axis.plot(curve.time[kept], curve.values[kept], **style_of(number, curve))
            traces.append((line, axis, curve.time[kept], curve.values[kept]))
        if len(panel.curves) > 1:
            _add_legend(axis, len(panel.curves))
    if axes:
        axes[0].set_xlim(*picture.limits)
        axes[-1].set_xlabel(picture.time_label, **small)
    # The full traces set the limits of the axes; then they are drawn as they grow.
    agg.draw()
    canvas.set_layout_engine('none')
    for axis in axes:
        axis.autoscale(enable=False)
    for line, *_ in traces:
        line.set_animated(True)
    agg.draw()
    background = agg.copy_from_bbox(canvas.bbox)
    for time in times:
        agg.restore_region(background)
        _pose(machine, scene, time)
        clock.set_text(f't = {time:.2f} s')
        side.draw_artist(machine)
        canvas.draw_artist(clock)
        for text, alarm in zip(states, (False, True), strict=True):
            text.set_text(', '.join(_holding(picture, time, alarm)))
            text.set_color('tab:red' if alarm else '0.35')
            canvas.draw_artist(text)
        for line, axis, at, values in traces:
            count = int(np.searchsorted(at, time, side='right'))
            line.set_data(at[:count], values[:count])
            axis.draw_artist(line)
        yield np.asarray(agg.buffer_rgba())[:, :, :3].copy()


def _add_legend(axis: Any, entries: int) -> None:
    """Add a legend: above the axis if it is short, otherwise where the traces leave most space."""
    short = entries <= _COLUMNS
    place: dict[str, Any] = {'loc': 'best', 'ncols': 2, 'fontsize': 5}
    if short:
        place = {'loc': 'lower right', 'bbox_to_anchor': (1.0, 0.95), 'ncols': entries}
        place['fontsize'] = 'xx-small'
    legend = axis.legend(frameon=False, columnspacing=1.0, handlelength=1.2, **place)
    # The layout would shrink the axes to the width of their legends.
    legend.set_in_layout(False)
    if short:
        # An empty title has the space for it.
        axis.set_title(' ', fontsize='x-small', pad=1.0)


def _pose(machine: Any, scene: Scene, time: float) -> None:
    """Set the polygons of a machine to a time [s]."""
    parts = scene.outlines(time)
    machine.set_verts([corners for corners, _, _ in parts])
    machine.set_facecolor([color for _, color, _ in parts])
    # Triangles of bent parts have edges of their own colour: no gaps between them.
    machine.set_edgecolor([(0.25, 0.25, 0.25, 1.0) if edge else c for _, c, edge in parts])
    machine.set_linewidth([0.4 if edge else 0.2 for _, _, edge in parts])


def _holding(picture: Picture, time: float, alarm: bool) -> list[str]:
    """Return what holds at a time [s] according to the strips that are alarms, or are none."""
    return [
        strip.label
        for strip in picture.strips
        if strip.written
        and strip.alarm == alarm
        and any(begin <= time < end for begin, end in strip.spans)
    ]


def _extent(scene: Scene, times: Sequence[float]) -> tuple[float, float, float, float]:
    """Return least and greatest x and z of the machine over some times [m]."""
    ends = []
    for time in times:
        if outlines := scene.outlines(time):
            points = np.concatenate([part for part, _, _ in outlines])
            ends += [points.min(axis=0), points.max(axis=0)]
    if not ends:
        raise InputError(f'{scene.source}: no boxes, cylinders or spheres to draw')
    (x0, z0), (x1, z1) = np.min(ends, axis=0).tolist(), np.max(ends, axis=0).tolist()
    margin = 0.04 * max(x1 - x0, z1 - z0)
    return x0 - margin, x1 + margin, z0 - margin, z1 + margin


def _write_images(file: Path, pictures: Iterator[np.ndarray], rate: float) -> int:
    """Write pictures as an animated WebP or GIF that repeats, and return their number."""
    from PIL import Image

    images = [Image.fromarray(one) for one in pictures]
    options: dict[str, Any] = {'quality': 70, 'method': 4}
    unit = 1
    if file.suffix.lower() == '.gif':
        # All pictures share one palette, so that only what moves is stored; colours that occur at
        # some times only, such as an alarm's, must be in the palette as well.
        some = images[:: max(1, len(images) // _SAMPLES)]
        sheet = Image.new('RGB', (some[0].width, some[0].height * len(some)))
        for place, one in enumerate(some):
            sheet.paste(one, (0, place * one.height))
        palette = sheet.quantize(colors=_PALETTE, dither=Image.Dither.NONE)
        images = [one.quantize(palette=palette, dither=Image.Dither.NONE) for one in images]
        # GIF counts in hundredths of a second.
        options, unit = {'optimize': False}, 10
    options['duration'] = _pauses(len(images), rate, unit)
    with writing(file) as path:
        images[0].save(path, save_all=True, append_images=images[1:], loop=0, **options)
    return len(images)


def _pauses(count: int, rate: float, unit: int) -> list[int]:
    """Return how long pictures are shown [ms], in a unit [ms], so that errors do not add up."""
    ends = [unit * round(1000.0 * k / (rate * unit)) for k in range(count + 1)]
    return [end - begin for begin, end in itertools.pairwise(ends)]


def _write_video(file: Path, pictures: Iterator[np.ndarray], rate: float) -> int:
    """Write pictures as a video (VP9, which browsers play), and return their number."""
    import cv2

    count = 0
    with writing(file) as path:
        first = next(pictures)
        height, width = first.shape[:2]
        code = cv2.VideoWriter.fourcc(*'vp09')
        writer = cv2.VideoWriter(str(path), code, rate, (width, height))
        if not writer.isOpened():
            raise LongreachError(
                f'{file}: the installed OpenCV {cv2.__version__} cannot write VP9; give a file'
                ' that ends in .gif'
            )
        try:
            for picture in itertools.chain((first,), pictures):
                writer.write(picture[:, :, ::-1])
                count += 1
        finally:
            writer.release()
    return count


# By the extension.
WRITERS = {'gif': _write_images, 'webp': _write_images, 'mp4': _write_video, 'webm': _write_video}
