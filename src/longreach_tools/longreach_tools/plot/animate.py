"""
Animate a recording: the machine from the side, with traces that grow beside it.

  longreach animate BAG --out run.gif                    joints, or the machine's own figure
  longreach animate BAG sensors.car_position status.angle --out run.mp4
  longreach animate BAG --out run.gif --from 10 --to 20 --speed 2 --size 640x360

The machine is drawn from the robot description in the recording, from an installed one with the
same joints, or from --urdf. Bent beams are drawn if the recording has the topic shape.
"""

from __future__ import annotations

import argparse
import re
import sys
from typing import TYPE_CHECKING

from longreach_dynamics.errors import InputError
from longreach_tools.arguments import check_unused, within
from longreach_tools.options import add_signals, check_span

if TYPE_CHECKING:
    from ._picture import Picture
    from ._scene import Scene

SUMMARY = 'recordings as moving pictures: the machine and its traces'

# More pictures make files of hundreds of megabytes.
_MOST_FRAMES = 5000
# More panels cannot be read beside a machine.
_MOST_PANELS = 3


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments; drawing is imported when the command runs."""
    add_signals(parser, 'traces, as in longreach plot')
    parser.add_argument('--out', required=True, help='.gif, .webp, .mp4 or .webm')
    # Its beginning --joints means the same.
    parser.add_argument('--joints-topic', default='', metavar='TOPIC', help='states of the joints')
    parser.add_argument('--urdf', help='robot description')
    parser.add_argument('--file', help='machine, for traces (default: installed)')
    parser.add_argument('--no-traces', action='store_true', help='the machine alone')
    parser.add_argument('--speed', default=1.0, help='against recorded time')
    parser.add_argument(
        '--size', type=_size, default=(800, 450), metavar='WxH', help='[px] (default: 800x450)'
    )
    parser.add_argument(
        '--dpi',
        type=within(20.0, 1000.0),
        default=100.0,
        metavar='N',
        help='of text and lines: 200 with twice the size for sharp displays',
    )
    parser.add_argument(
        '--rate',
        help='pictures per second (default: 10 for .gif and .webp, 25 for videos)',
    )
    parser.set_defaults(run=run)


def _size(text: str) -> tuple[int, int]:
    """Return width and height of WxH; even numbers, as videos need them."""
    found = re.fullmatch(r'(\d+)x(\d+)', text)
    size = (int(found[1]), int(found[2])) if found else (0, 0)
    if not all(100 <= one <= 4000 and one % 2 == 0 for one in size):
        raise argparse.ArgumentTypeError(f'{text!r}, allowed: WxH, even numbers from 100 to 4000')
    return size


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    from longreach_tools.output import check_output, check_places, checked_ending

    from ._movie import GIF_RATE, WRITERS, frames
    from ._scene import read_scene

    ending = checked_ending(arguments.out, WRITERS)
    if arguments.signals and arguments.no_traces:
        raise InputError('signals and --no-traces; give one of them')
    check_span(arguments)
    check_output(arguments.out)
    check_places({'--out': arguments.out}, (arguments.bag, arguments.urdf, arguments.file))
    scene = read_scene(arguments.bag, arguments.joints_topic, arguments.urdf)
    picture, notes = _traces(arguments, scene)
    scene = scene.moved(picture.origin)
    rate = arguments.rate or (10.0 if ending in ('gif', 'webp') else 25.0)
    if ending == 'gif' and rate > GIF_RATE:
        raise InputError(f'--rate {rate:g}, allowed for .gif: up to {GIF_RATE:g}; or give .webp')
    times = _times(arguments, scene, rate)
    pictures = frames(scene, picture.readable(), times, arguments.size, arguments.dpi)
    count = WRITERS[ending](arguments.out, pictures, rate)
    if scene.ignored:
        notes.append(f'{scene.source}: no joint {", ".join(scene.ignored)}; ignored')
    notes += [
        f'{scene.topic}: no states from {begin:.2f} to {end:.2f} s; motion there is interpolated'
        for begin, end in scene.gaps()
        if begin < times[-1] and end > times[0]
    ]
    for note in notes:
        print(f'longreach animate: {note}', file=sys.stderr)
    size = arguments.out.stat().st_size
    print(
        f'{arguments.out}: {count} pictures, {count / rate:g} s, {size / 1e6:.2f} MB; machine from'
        f' {scene.source}'
    )
    return 0


def _times(arguments: argparse.Namespace, scene: Scene, rate: float) -> list[float]:
    """Return the times of the pictures [s]."""
    begin, end = float(scene.time[0]), float(scene.time[-1])
    if arguments.begin is not None:
        begin = max(begin, arguments.begin)
    if arguments.end is not None:
        end = min(end, arguments.end)
    if begin >= end:
        raise InputError(
            f'no motion between --from and --to; states of the joints are at {scene.time[0]:g} to'
            f' {scene.time[-1]:g} s'
        )
    step = arguments.speed / rate
    count = int((end - begin) / step + 1e-9) + 1
    if count > _MOST_FRAMES:
        raise InputError(
            f'{count} pictures, allowed: {_MOST_FRAMES}; give --from and --to, or a higher --speed'
        )
    return [begin + k * step for k in range(count)]


def _traces(arguments: argparse.Namespace, scene: Scene) -> tuple[Picture, list[str]]:
    """Return the traces, and notes on what was assumed for them."""
    from longreach_tools.fields import Signal, parse_signal
    from longreach_tools.presets import preset_names

    from ._build import Window, build, build_preset

    window = Window(arguments.begin, arguments.end)
    namespace = scene.topic.rpartition('/')[0]
    machine = namespace.rpartition('/')[2]
    joints = Signal(scene.topic, 'position')
    no_preset = arguments.signals or arguments.no_traces or machine not in preset_names()
    if no_preset:
        check_unused(arguments, 'with the traces of a preset', 'file')
    if arguments.signals:
        signals = [parse_signal(text) for text in arguments.signals]
        picture, notes = build(arguments.bag, signals, window)
    elif not no_preset:
        picture, notes = build_preset(
            machine, arguments.bag, namespace, arguments.file, window, most=_MOST_PANELS
        )
    else:
        picture, notes = build(arguments.bag, [joints], window)
    panels = () if arguments.no_traces else picture.panels[:_MOST_PANELS]
    if arguments.signals and len(picture.panels) > len(panels):
        raise InputError(
            f'{len(picture.panels)} panels of different units, allowed: {_MOST_PANELS}; give fewer'
            ' signals'
        )
    return picture._replace(panels=panels), notes
