"""Subcommands of ``longreach vision`` for simulated images: render, simulate."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from longreach_tools.arguments import positive
from longreach_tools.output import check_places
from longreach_vision.commands.arguments import (
    add_options,
    add_outputs,
    add_rig,
    image_rate,
    motion_of,
    rig_files,
    rig_of,
)
from longreach_vision.commands.track_output import Targets, in_plane, track_markers
from longreach_vision.io.picture_files import render_sequence
from longreach_vision.simulator.camera_simulator import drawn_pictures, frame_times, simulators_of
from longreach_vision.simulator.scene import CameraLook, load_look


def configure_simulation(commands: Any) -> None:
    """Add the subcommands ``render`` and ``simulate``."""
    render = commands.add_parser('render', help='render simulated images of a motion')
    _add_motion(render)
    render.add_argument('--out', metavar='DIR', type=Path, required=True, help='new directory')
    render.set_defaults(run=_run_render)

    simulate = commands.add_parser(
        'simulate', help='render simulated images, track them, and compare with the truth'
    )
    _add_motion(simulate)
    add_outputs(simulate)
    simulate.set_defaults(run=_run_simulate)


def _add_motion(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        'path',
        metavar='PATH.csv|BAG',
        type=Path,
        help='CSV file with time, MARKER.x, MARKER.z, or a bag with marker_truth',
    )
    add_rig(parser)
    add_options(parser, 'truth-topic')
    parser.add_argument('--look', metavar='FILE', type=Path, help='look file of the pictures')
    parser.add_argument(
        '--rate', type=image_rate, default=15.0, help='images per second (default: 15)'
    )
    parser.add_argument('--duration', type=positive, help='[s] (default: duration of the motion)')
    add_options(parser, 'scale')


def _look_of(arguments: argparse.Namespace) -> CameraLook:
    return load_look(arguments.look).scaled(arguments.scale)


def _read(arguments: argparse.Namespace) -> list[Path | None]:
    return [*rig_files(arguments), arguments.path, arguments.look]


def _run_simulate(arguments: argparse.Namespace) -> None:
    rig = rig_of(arguments)
    path = in_plane(rig, motion_of(arguments.path, arguments.truth_topic).of(rig.names))
    times = frame_times(path, arguments.rate, arguments.duration)
    targets = Targets(arguments, rig.names, _read(arguments))
    simulators = simulators_of(rig, _look_of(arguments))
    images = drawn_pictures(simulators, path, times, rig.delays)
    track_markers(targets, rig, images, len(times), path)


def _run_render(arguments: argparse.Namespace) -> None:
    rig = rig_of(arguments)
    check_places({'--out': arguments.out}, _read(arguments))
    path = in_plane(rig, motion_of(arguments.path, arguments.truth_topic))
    times = frame_times(path, arguments.rate, arguments.duration)
    simulators = simulators_of(rig, _look_of(arguments))
    render_sequence(simulators, path, times, arguments.out, rig.delays)
    size = next(iter(simulators.values())).camera
    print(f'{len(times)} images of {size.width} x {size.height} px of each camera:')
    for name in simulators:
        print(f'  {name}: {arguments.out / name}')
