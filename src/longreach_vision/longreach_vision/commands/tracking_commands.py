"""Subcommands of ``longreach vision`` for existing images and tracks."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import itertools
import math
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from longreach_dynamics.errors import InputError, LongreachError, named
from longreach_markers import (
    Agreement,
    Clocks,
    DistanceCheck,
    Follower,
    ImageSource,
    KnownDistance,
    Picture,
    Refinement,
    Rig,
    RigFrame,
    Sightings,
    compare_clocks,
    compare_poses,
    follow,
    opened_files,
    pictures_of,
    refine_pose,
    wrong_camera,
)
from longreach_tools.arguments import positive
from longreach_tools.bag import absolute_name
from longreach_tools.output import add_format, check_output, print_result, table, write_csv
from longreach_vision.commands.arguments import (
    add_options,
    add_outputs,
    add_rig,
    motion_of,
    rig_files,
    rig_of,
    warn,
)
from longreach_vision.commands.rig_files import entries_of, write_poses, write_time
from longreach_vision.commands.track_output import (
    Targets,
    agreement_text,
    print_tracks,
    track_markers,
)
from longreach_vision.io.bag_files import BagImages, is_bag, read_tracks, read_truth
from longreach_vision.io.track_table import cameras_of

# Chi-square of the gaps after a refinement, beyond which the new pose does not fit.
_UNFIT = 9.0


def configure_tracking(commands: Any) -> None:
    """Add the subcommands ``track``, ``sync``, ``compare`` and ``check``."""
    track = commands.add_parser(
        'track',
        help='track markers in videos, folders of pictures, or a bag of images',
        description='Positions of markers from the images of the cameras of a rig. Images of files'
        ' are paired by the times of their names or of the video, images of a bag by their'
        ' stamps.',
    )
    add_recording(track)
    track.add_argument(
        '--camera',
        metavar='NAME',
        help='camera to be used alone (default: of one video or folder the first of the rig)',
    )
    track.add_argument('--truth', help='true motion of the markers')
    add_outputs(track)
    track.set_defaults(run=_run_track)

    sync = commands.add_parser(
        'sync',
        help='measure the clock offsets of cameras, and write them into the rig',
        description='Tracks moving markers, estimates the time by which stamps of each further'
        ' camera are later than those of the first, and writes it as delay of this camera into the'
        ' rig file.',
    )
    add_recording(sync)
    add_format(sync)
    sync.set_defaults(run=_run_sync)

    beside = commands.add_parser('compare', help='compare recorded tracks with the recorded truth')
    beside.add_argument('bag')
    add_options(beside, 'namespace')
    add_rig(beside)
    add_options(beside, 'truth-topic')
    add_format(beside)
    add_options(beside, 'csv', 'plot', 'movement')
    beside.set_defaults(run=_run_compare)

    check = commands.add_parser(
        'check',
        help='compare the measured distance of two markers with the known one',
        description='Tracks a bar with a marker at each end, and compares the distance of the'
        ' triangulated markers with the known one: the true accuracy of cameras and poses.',
    )
    add_recording(check)
    add_format(check)
    check.add_argument(
        '--distance',
        type=_distance,
        metavar='MARKER:MARKER=LENGTH',
        action='append',
        required=True,
        help='two markers and the distance of their centres [m]; may be repeated',
    )
    check.add_argument(
        '--deviation',
        type=positive,
        default=5e-4,
        help='standard deviation of the known distances [m]',
    )
    check.set_defaults(run=_run_check)


def add_recording(parser: argparse.ArgumentParser) -> None:
    """Add images of all cameras, and how they are read and tracked."""
    parser.add_argument(
        'recording',
        metavar='RECORDING',
        nargs='+',
        help='bag of images, or a video or folder of each camera, in the order of the rig',
    )
    add_options(parser, 'namespace')
    add_rig(parser, required=True)
    add_options(parser, 'rate', 'scale')
    parser.set_defaults(camera=None)


# --- track -----------------------------------------------------------------------------------


def _run_track(arguments: argparse.Namespace) -> None:
    whole = rig_of(arguments)
    path = None
    if arguments.truth is not None:
        path = motion_of(arguments.truth)
        with named(f'--truth {arguments.truth}: '):
            path = path.of(whole.names)
    with contextlib.ExitStack() as stack:
        rig, images, total, sources = _opened(stack, arguments, whole)
        read = [*rig_files(arguments), *arguments.recording, arguments.truth]
        read += [file for source in sources for file in source.files]
        targets = Targets(arguments, rig.names, read)
        track_markers(targets, rig, images, total, path, sources, whole.cameras)


def _opened(
    stack: contextlib.ExitStack, arguments: argparse.Namespace, rig: Rig
) -> tuple[Rig, Iterator[Picture], int | None, list[ImageSource | BagImages]]:
    """Open the images of files or a bag; return the rig with their cameras, and their number."""
    given, camera = arguments.recording, arguments.camera
    names = tuple(rig.cameras) if camera is None else (camera,)
    is_recorded = len(given) == 1 and is_bag(Path(given[0]))
    if is_recorded and arguments.rate is not None:
        raise InputError('--rate and a bag are given; leave out --rate: its images have stamps')
    if not is_recorded:
        if len(given) == 1:
            names = names[:1]
        elif len(given) != len(names):
            raise InputError(
                f'images of {len(given)} cameras, allowed: of one, or of {", ".join(names)}, in'
                ' this order'
            )
        if len({os.path.realpath(place) for place in given}) < len(given):
            raise InputError(f'two cameras have the images {given[0]}; give those of each camera')
    if camera is not None and camera not in rig.cameras:
        raise InputError(f'--camera {camera}, allowed by the rig: {", ".join(rig.cameras)}')
    rig = dataclasses.replace(rig, cameras={name: rig.cameras[name] for name in names})
    if is_recorded:
        topics = {name: absolute_name(f'{name}/image_raw', arguments.namespace) for name in names}
        recorded = BagImages(given[0], topics)
        return rig, iter(recorded), None, [recorded]
    sources = opened_files(stack, dict(zip(names, given, strict=True)))
    warn(*(source.lossy for source in sources.values()))
    total = max(source.count for source in sources.values())
    return rig, pictures_of(sources, arguments.rate), total or None, list(sources.values())


# --- sync ------------------------------------------------------------------------------------


def _run_sync(arguments: argparse.Namespace) -> None:
    # What cannot be written is refused before anything is tracked.
    entries_of(arguments.rig)
    rig, sightings = _collected(arguments)
    clocks = compare_clocks(sightings)
    failed = '; '.join(map(str, clocks.failed))
    if not clocks.found:
        raise LongreachError(f'{failed}; {arguments.rig} is unchanged')
    lines, fields = [*map(str, clocks.failed)], []
    for camera, offset in clocks.found.items():
        late, deviation = clocks.offsets[camera]
        delay = round(rig.cameras[camera].delay + late, 9)
        comment = f'standard error {deviation:.2g} s, from {offset.sightings} sightings'
        write_time(arguments.rig, camera, 'delay', delay, comment)
        lines.append(f'{offset}\n{arguments.rig}: cameras.{camera}.delay = {delay:.6f} s')
        fields.append({**offset.fields(), 'camera': camera, 'delay': delay})
    shutters, warning = _write_line_times(arguments, rig, clocks)
    lines += [
        f'{arguments.rig}: cameras.{name}.line_time = {line_time:.4g} s'
        for name, line_time in shutters.items()
    ]
    result: dict[str, Any] = {**fields[0], 'line_times': shutters}
    if len(rig.cameras) > 2:
        failures = [one.fields() for one in clocks.failed]
        result = {'cameras': fields, 'line_times': shutters, 'failed': failures}
    print_result(result, '\n'.join(lines), arguments.format)
    warn(warning)
    unknown = [name for name in list(rig.cameras)[1:] if name not in clocks.found]
    if unknown:
        raise LongreachError(
            f'{failed}; the delay of {", ".join(unknown)} in {arguments.rig} is unchanged'
        )


def _write_line_times(
    arguments: argparse.Namespace, rig: Rig, clocks: Clocks
) -> tuple[dict[str, float], str]:
    """Write the line times that the motion shows; return them, and a warning."""
    try:
        line_time, deviation, cameras = clocks.line_time()
    except LongreachError as error:
        return {}, str(error)
    lines = {}
    for name in cameras:
        # Rows of the calibration, not of images of another size.
        lines[name] = round((rig.cameras[name].line_time + line_time) * arguments.scale, 11)
        comment = f'standard error {deviation * arguments.scale:.2g} s'
        write_time(arguments.rig, name, 'line_time', lines[name], comment)
    left = [name for name in rig.cameras if name not in cameras]
    if not cameras or not left:
        return lines, ''
    return lines, (
        f'the motion does not show the line time of {", ".join(left)}, which have that of their'
        ' data sheet: write it into the rig, then run sync again'
    )


def rig_of_several(arguments: argparse.Namespace) -> Rig:
    """Return the rig of a recording by all of its cameras, of which there are two or more."""
    rig, given = rig_of(arguments), arguments.recording
    if len(rig.cameras) < 2:
        raise InputError(f'{arguments.rig} has one camera, allowed: two or more')
    if len(given) == 1 and not is_bag(Path(given[0])):
        raise InputError(f'{given[0]} is no bag; give a bag, or a video or folder of each camera')
    return rig


def tracked_frames(arguments: argparse.Namespace, rig: Rig) -> Iterator[RigFrame]:
    """Track a recording, and print notes at its end."""
    with contextlib.ExitStack() as stack:
        rig, images, total, sources = _opened(stack, arguments, rig)
        follower = Follower(rig)
        sets = follow(follower, images)
        for one in tqdm(sets, total=total, disable=None, delay=1.0, unit='set', leave=False):
            yield one.frame
    warn(*follower.notes, *(note for source in sources for note in source.notes))


def _collected(arguments: argparse.Namespace) -> tuple[Rig, Sightings]:
    rig = rig_of_several(arguments)
    sightings = Sightings(rig)
    for frame in tracked_frames(arguments, rig):
        sightings.add(frame)
    return rig, sightings


# --- pose --refine ---------------------------------------------------------------------------


def run_refine(arguments: argparse.Namespace) -> None:
    """Run ``pose --refine``."""
    if arguments.reference is not None or arguments.marker:
        raise InputError('--refine and REFERENCE.yaml or --marker are given, allowed: one of them')
    if arguments.rig is None:
        raise InputError('--rig is missing, required with --refine')
    check_output(arguments.out, arguments.plot)
    wanted, arguments.camera, arguments.recording = arguments.camera, None, arguments.refine
    if arguments.out is not None:
        entries_of(arguments.rig)
    known = rig_of(arguments).cameras
    if wanted is not None and wanted not in known:
        raise InputError(f'--camera {wanted}, allowed by the rig: {", ".join(known)}')
    rig, sightings = _collected(arguments)
    clocks = compare_clocks(sightings)
    for one in clocks.of_each():
        if one.steps or one.is_significant:
            raise LongreachError(f'{one.warning}; {arguments.rig} is unchanged')
    agreements = compare_poses(sightings, clocks)
    camera, since = wrong_camera(agreements, wanted or '')
    if not camera:
        raise InputError(
            f'--camera is missing, required as this recording does not show which camera moved:'
            f' {agreement_text(agreements)}'
        )
    refined = refine_pose(sightings, camera, arguments.plane_deviation, since)
    if arguments.out is not None:
        poses = {name: one.pose for name, one in rig.cameras.items()}
        write_poses(arguments.rig, arguments.out, poses | {camera: refined.pose})
    text, fields = _refined(refined, agreements)
    print_result(fields, text, arguments.format)


def _refined(found: Refinement, agreements: Sequence[Agreement]) -> tuple[str, dict[str, Any]]:
    pose = found.pose
    assert pose.covariance is not None
    turn, shift = (
        math.sqrt(float(np.trace(pose.covariance[k : k + 3, k : k + 3]))) for k in (0, 3)
    )
    place = ', '.join(f'{x:.4f}' for x in pose.translation)
    text = (
        f'{agreement_text(agreements)}\n{found.camera}: turned by {1e3 * found.turned:.3f} mrad'
        f' (± {1e3 * turn:.3f}), moved by {1e3 * found.shifted:.2f} mm (± {1e3 * shift:.2f})\n'
        f'position {place} m, from {found.sightings} sightings; chi-square by pixels alone'
        f' {found.before:.3g} before, {found.after:.3g} now'
    )
    warning = ''
    if found.after > _UNFIT:
        warning = (
            'the cameras still disagree: the other camera, the calibration or the times may be'
            ' wrong, too; measure reference points again: longreach vision pose REFERENCE.yaml'
        )
        text += f'\n{warning}'
    agreed = [one.fields() for one in agreements]
    fields = {
        'camera': found.camera,
        'position': pose.translation,
        'orientation': pose.quaternion,
        'covariance': pose.covariance.ravel(),
        'turned': found.turned,
        'shifted': found.shifted,
        'sightings': found.sightings,
        'chi_square': {'before': found.before, 'after': found.after},
        'agreement': agreed[0] if len(agreed) == 1 else agreed,
        'warnings': [warning] if warning else [],
    }
    return text, fields


# --- compare ---------------------------------------------------------------------------------


def _run_compare(arguments: argparse.Namespace) -> None:
    check_output(arguments.csv, arguments.plot)
    rig = rig_of(arguments)
    tracks = read_tracks(arguments.bag, arguments.namespace, cameras_of(rig.cameras))
    path = read_truth(arguments.bag, arguments.truth_topic).of(tracks.names)
    targets = Targets(arguments, tracks.names, [arguments.bag, *rig_files(arguments)])
    targets.check_files()
    if targets.csv is not None:
        write_csv(targets.csv, tracks.columns, tracks.table)
    print_tracks(targets, rig, tracks, path)


# --- check -----------------------------------------------------------------------------------


def _run_check(arguments: argparse.Namespace) -> None:
    rig = rig_of_several(arguments)
    # More than two cameras: all together, and each two, which shows the one that is wrong.
    names = tuple(rig.cameras)
    compared = [names, *itertools.combinations(names, 2)] if len(names) > 2 else [()]
    checks = []
    for markers, length in arguments.distance:
        known = rig, markers, length, arguments.deviation
        checks += [KnownDistance(*known, cameras) for cameras in compared]
    sightings = Sightings(rig)
    for frame in tracked_frames(arguments, rig):
        sightings.add(frame)
        for check in checks:
            check.add(frame)
    results = [check.result() for check in checks]
    warnings = [text for result in results for text in result.warnings]
    if warnings:
        # What may be the cause.
        warnings += filter(None, (one.warning for one in compare_clocks(sightings).of_each()))
    fields = {'distances': [result.fields() for result in results], 'warnings': warnings}
    print_result(fields, _text(results), arguments.format)
    warn(*warnings)


def _distance(text: str) -> tuple[tuple[str, str], float]:
    markers, _, length = text.partition('=')
    one, _, two = markers.partition(':')
    with contextlib.suppress(argparse.ArgumentTypeError):
        if one and two:
            return (one, two), positive(length)
    raise argparse.ArgumentTypeError(f'{text!r}, allowed: such as one:two=1.078')


def _text(results: list[DistanceCheck]) -> str:
    head = ['markers', 'cameras', 'pairs', 'known [m]', 'measured [m]', 'error [mm]', 'explained']
    head += ['scatter [mm]', 'explained']
    rows = [
        (
            ':'.join(one.markers),
            ' '.join(one.cameras) or 'all',
            one.pairs,
            one.length,
            f'{one.mean:.5f}',
            f'{1e3 * one.error:+.3f}',
            f'±{1e3 * one.mean_explained:.3f}',
            f'{1e3 * one.scatter:.3f}',
            f'±{1e3 * one.scatter_explained:.3f}',
        )
        for one in results
    ]
    return table(head, rows)
