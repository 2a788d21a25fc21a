"""
One to eight cameras that track circular markers, Henikl et al. (2015), section 4.2.

Calibration, camera poses, printed markers; detection in pictures, tracking through videos and
folders; rendered pictures, and the comparison of recordings with the truth.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from longreach_dynamics.errors import InputError
from longreach_dynamics.resources import data_directory
from longreach_tools.arguments import positive
from longreach_tools.bag import checked_name
from longreach_tools.demo import demonstrate
from longreach_tools.options import add_demo, add_node_options
from longreach_tools.output import check_places
from longreach_vision.commands.arguments import (
    add_options,
    add_outputs,
    add_rig,
    installed_rig,
    motion_of,
    rig_files,
    rig_of,
    vector,
)
from longreach_vision.commands.detection_commands import configure_detection
from longreach_vision.commands.setup_commands import configure_setup
from longreach_vision.commands.track_output import Targets, in_plane, track_markers
from longreach_vision.commands.tracking_commands import configure_tracking
from longreach_vision.io.picture_files import render_sequence
from longreach_vision.simulator.camera_simulator import drawn_pictures, frame_times, simulators_of
from longreach_vision.simulator.scene import load_look

SUMMARY = 'one to eight cameras that track circular markers (Henikl 2015)'


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the subcommands of ``longreach vision``."""
    commands = parser.add_subparsers(required=True, metavar='COMMAND')
    configure_setup(commands)
    configure_detection(commands)
    configure_tracking(commands)

    render = commands.add_parser('render', help='render simulated images of a motion')
    _add_motion(render)
    render.add_argument('--out', metavar='DIR', required=True, help='new directory')
    render.set_defaults(run=_run_render)

    simulate = commands.add_parser(
        'simulate', help='render simulated images, track them, and compare with the truth'
    )
    _add_motion(simulate)
    add_outputs(simulate)
    simulate.set_defaults(run=_run_simulate)

    add_demo(commands, 'boom, cameras and tracker over ROS: run, record, compare, draw', _run_demo)
    commands.choices['demo'].add_argument('--scale', help='(default: 1; 0.5 on a single core)')

    begin = commands.add_parser(
        'initialize', help='make a running tracker track a marker at a pixel'
    )
    begin.add_argument('camera', metavar='CAMERA', help='name of the camera in the rig file')
    begin.add_argument('name', metavar='NAME', help='name of the marker in the rig file')
    begin.add_argument(
        '--at', required=True, type=vector(2), metavar='u,v', help='approximate centre [px]'
    )
    begin.add_argument(
        '--radius',
        required=True,
        type=positive,
        help='approximate longer semi-axis of the outer edge [px]',
    )
    text = 'cameras in one process'
    begin.add_argument('--node', metavar='NAME', default='tracker', help=text)
    add_node_options(begin, 'vision')
    begin.set_defaults(run=_run_initialize)


def _add_motion(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        'path',
        metavar='PATH.csv|BAG',
        type=Path,
        help='CSV file with time, MARKER.x, MARKER.z, or a bag with marker_truth',
    )
    add_rig(parser)
    add_options(parser, 'truth-topic')
    parser.add_argument('--look', help='look file of the pictures')
    parser.add_argument('--rate', default=15.0, help='images per second')
    parser.add_argument('--duration', help='of what is rendered (default: the whole motion)')
    add_options(parser, 'scale')


def _read(arguments: argparse.Namespace) -> list[Path | None]:
    return [*rig_files(arguments), arguments.path, arguments.look]


def _run_simulate(arguments: argparse.Namespace) -> None:
    rig = rig_of(arguments)
    path = in_plane(rig, motion_of(arguments.path, arguments.truth_topic).of(rig.names))
    times = frame_times(path, arguments.rate, arguments.duration)
    targets = Targets(arguments, rig.names, _read(arguments))
    simulators = simulators_of(rig, load_look(arguments.look).scaled(arguments.scale))
    images = drawn_pictures(simulators, path, times, rig.delays)
    track_markers(targets, rig, images, len(times), path)


def _run_render(arguments: argparse.Namespace) -> None:
    rig = rig_of(arguments)
    check_places({'--out': arguments.out}, _read(arguments))
    path = in_plane(rig, motion_of(arguments.path, arguments.truth_topic))
    times = frame_times(path, arguments.rate, arguments.duration)
    simulators = simulators_of(rig, load_look(arguments.look).scaled(arguments.scale))
    render_sequence(simulators, path, times, arguments.out, rig.delays)
    size = next(iter(simulators.values())).camera
    print(f'{len(times)} images of {size.width} x {size.height} px of each camera:')
    for name in simulators:
        print(f'  {name}: {arguments.out / name}')


def _run_demo(arguments: argparse.Namespace) -> int:
    out, cores = arguments.out, len(os.sched_getaffinity(0))
    scale = arguments.scale or (1.0 if cores > 1 else 0.5)
    truck = data_directory('longreach_boom') / 'config' / 'boom_on_truck.yaml'
    again = ('vision', 'simulate', '{bag}', '--scale', f'{scale:g}')
    return demonstrate(
        out,
        'vision',
        ('vision', 'boom:=true', f'scale:={scale}', 'duration:=20.0', f'boom_file:={truck}'),
        [
            ('vision', 'compare', '{bag}', '--plot', '{picture}'),
            (*again, '--movement', 'truck={reaction}'),
        ],
        _NEXT,
        reaction=out / 'vision_reaction.png',
        rig=installed_rig(),
        boom=truck,
    )


_NEXT = """
The bag is in {bag}, the pictures in {picture} and {reaction}.
The truck of the second picture is simulated on springs ({boom}).
Next steps, after . install/setup.bash:
  longreach vision render {bag} --duration 2 --scale 0.5 --out out/seen
  longreach vision track out/seen/left out/seen/right --config {rig} --scale 0.5 \\
    --overlay out/seen.mp4
  longreach vision marker --diameter 0.30 --out marker.pdf"""


def _run_initialize(arguments: argparse.Namespace) -> None:
    node = arguments.node
    try:
        checked_name(node)
    except InputError as error:
        raise InputError(
            f'--node {node!r}, allowed: letters, digits and _, no digit first, such as tracker'
        ) from error
    # Imported here: other commands work without ROS.
    from longreach_vision.ros.remote import initialize

    given = arguments.camera, arguments.name, arguments.at, arguments.radius
    print(initialize(*given, node, arguments.namespace, arguments.timeout))
