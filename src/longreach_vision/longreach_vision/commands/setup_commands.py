"""Subcommands of ``longreach vision`` to set up cameras: calibrate, pose, marker."""

from __future__ import annotations

import argparse
import itertools
import math
import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from longreach_dynamics.errors import InputError
from longreach_dynamics.parameters import load_yaml
from longreach_tools.arguments import positive
from longreach_tools.output import (
    add_format,
    check_output,
    check_places,
    print_result,
    table,
    writing,
)
from longreach_vision.camera.geometry import Pose
from longreach_vision.camera.model import MODELS, write_camera
from longreach_vision.commands.arguments import add_namespace, add_reading, add_rig, add_scale
from longreach_vision.rig import LONGEST_DELAY, LONGEST_LINE, MarkerOnRig
from longreach_vision.setup.calibration import Calibration, calibrate
from longreach_vision.setup.checkerboards import Board, find_views, list_pictures
from longreach_vision.setup.localisation import Localisation, localise
from longreach_vision.setup.marker_sheet import FORMATS, PAGES, lay_out
from longreach_vision.setup.predicted_accuracy import Prediction
from longreach_vision.setup.reference_points import Reference, load_reference, read_cameras

__all__ = ['configure_setup', 'rig_text', 'write_delay', 'write_line_time', 'write_poses']

# Example marker for a rig file without markers: name and radius [m].
_EXAMPLE = ('marker_1', 0.15)
# Entries of a camera in a rig file that a new pose replaces.
_POSED = ('calibration', 'position', 'orientation', 'covariance')


def configure_setup(commands: Any) -> None:
    """Add the subcommands ``calibrate``, ``pose`` and ``marker``."""
    intrinsics = commands.add_parser(
        'calibrate', help='estimate intrinsics from pictures of a checkerboard'
    )
    intrinsics.add_argument(
        'images', metavar='IMAGES', nargs='+', type=Path, help='pictures, or a folder of them'
    )
    intrinsics.add_argument(
        '--board', required=True, help='number of inner corners, 9x6 for 10 by 7 squares'
    )
    intrinsics.add_argument('--square', required=True, type=positive, help='side of a square [m]')
    intrinsics.add_argument(
        '--model',
        choices=MODELS,
        default='plumb_bob',
        help='distortion model; equidistant for fisheye lenses (default: plumb_bob)',
    )
    intrinsics.add_argument(
        '--name', default='camera', help='name of the camera (default: camera)'
    )
    intrinsics.add_argument(
        '--out', metavar='CAMERA.yaml', type=Path, help='calibration file for ROS'
    )
    add_format(intrinsics)
    intrinsics.add_argument(
        '--plot',
        metavar='FILE',
        type=Path,
        help='plot of corners in the image and errors of pictures',
    )
    intrinsics.set_defaults(run=_run_calibrate)

    pose = commands.add_parser(
        'pose',
        help='estimate camera poses from measured reference points, or refine one',
        description='Estimates poses and plane from the points of REFERENCE.yaml. With --refine,'
        ' instead finds the pose of one camera again, from markers that are tracked in a recording'
        ' of all: the other cameras and the plane are the reference.',
    )
    pose.add_argument('reference', metavar='REFERENCE.yaml', type=Path, nargs='?')
    pose.add_argument(
        '--out',
        metavar='RIG.yaml',
        type=Path,
        help='rig file; in an existing file, only cameras and plane are replaced',
    )
    pose.add_argument(
        '--refine',
        metavar='RECORDING',
        nargs='+',
        help='bag of images, or a video or folder of each camera, in the order of the rig',
    )
    add_namespace(pose)
    add_rig(pose)
    pose.add_argument(
        '--camera',
        metavar='NAME',
        help='with --refine: camera whose pose is wrong (default: the one that moved in the'
        ' recording, if that shows)',
    )
    pose.add_argument(
        '--plane-deviation',
        type=positive,
        default=0.01,
        help='with --refine: standard deviation of the distances of markers from the plane [m]'
        ' (default: 0.01)',
    )
    add_reading(pose)
    add_scale(pose)
    pose.add_argument(
        '--marker',
        metavar='NAME=RADIUS',
        type=_marker,
        action='append',
        default=[],
        help='a marker for the rig file, radius of its outer edge [m]; may be repeated (default:'
        ' those of the file, or an example)',
    )
    add_format(pose)
    pose.add_argument(
        '--plot', metavar='FILE', type=Path, help='plot of cameras, points and their errors'
    )
    pose.set_defaults(run=_run_pose)

    marker = commands.add_parser('marker', help='draw a marker to be printed at exact size')
    marker.add_argument(
        '--diameter', required=True, type=positive, help='diameter of the outer edge [m]'
    )
    marker.add_argument(
        '--inner',
        type=positive,
        default=None,
        help='inner over outer diameter (default: 0.5)',
    )
    marker.add_argument('--disc', action='store_true', help='no inner edge')
    marker.add_argument('--bright', action='store_true', help='bright on dark')
    marker.add_argument(
        '--page',
        choices=(*PAGES, 'fit'),
        help='fit: a page of the size of the marker (default: the smallest page that fits)',
    )
    marker.add_argument(
        '--out', metavar='FILE', required=True, type=Path, help=' or '.join(FORMATS)
    )
    add_format(marker)
    marker.set_defaults(run=_run_marker)


# --- calibrate ------------------------------------------------------------------------------


def _run_calibrate(arguments: argparse.Namespace) -> None:
    """Run ``calibrate``."""
    check_output(arguments.out, arguments.plot)
    board = Board.parse(arguments.board, arguments.square)
    pictures = list_pictures(arguments.images)
    check_places({'--out': arguments.out, '--plot': arguments.plot}, pictures)
    views, empty, size = find_views(pictures, board, progress=True)
    found = calibrate(views, board, size, arguments.model, arguments.name)
    if arguments.out is not None:
        with writing(arguments.out) as path:
            write_camera(found.camera, path)
    if arguments.plot is not None:
        from longreach_vision.commands.setup_figures import draw_calibration

        draw_calibration(arguments.plot, found)
    print_result(
        _calibration_result(found, empty), _calibration_text(found, empty), arguments.format
    )
    _warn(found.warnings)


def _calibration_result(found: Calibration, empty: Sequence[str]) -> dict[str, Any]:
    """Return a calibration as a JSON object."""
    camera, coverage = found.camera, found.coverage
    rays = found.ray_deviation[np.isfinite(found.ray_deviation)]
    apart = found.difference[np.isfinite(found.difference)]
    difference = float(apart.max()) if apart.size else math.nan
    return {
        'camera': {
            'name': camera.name,
            'width': camera.width,
            'height': camera.height,
            'model': camera.model,
            'fx': camera.fx,
            'fy': camera.fy,
            'cx': camera.cx,
            'cy': camera.cy,
            'distortion': list(camera.distortion),
        },
        'deviations': found.deviations,
        'rms': found.rms,
        'images': [
            {
                'image': view.name,
                'error': float(error),
                'largest': float(np.linalg.norm(residuals, axis=1).max()),
                'tilt': float(tilt),
                'distance': float(distance),
            }
            for view, error, residuals, tilt, distance in zip(
                found.views,
                found.errors,
                found.residuals,
                coverage.tilts,
                coverage.distances,
                strict=True,
            )
        ],
        'outliers': list(found.outliers),
        'without_board': list(empty),
        'coverage': {
            'area': coverage.area,
            'corners_missing': list(coverage.missing),
            'largest_tilt': float(coverage.tilts.max()),
            'turns': list(coverage.turns),
            'distance_ratio': float(coverage.distances.max() / coverage.distances.min()),
        },
        'ray_deviation': {'median': float(np.median(rays)), 'largest': float(rays.max())},
        'model_difference': None if math.isnan(difference) else difference,
        'trusted': not found.warnings,
        'warnings': list(found.warnings),
    }


def _calibration_text(found: Calibration, empty: Sequence[str]) -> str:
    """Return a calibration as text."""
    result = _calibration_result(found, empty)
    pictures = [
        (
            row['image'],
            f'{row["error"]:.3f}',
            f'{row["largest"]:.3f}',
            f'{math.degrees(row["tilt"]):.0f}',
            f'{row["distance"]:.2f}',
        )
        for row in result['images']
    ]
    pictures += [(name, 'left out', '', '', '') for name in found.outliers]
    pictures += [(name, 'no board', '', '', '') for name in empty]
    head = ('picture', 'error [px]', 'largest [px]', 'tilt [deg]', 'distance [m]')
    values = [*(result['camera'][name] for name in ('fx', 'fy', 'cx', 'cy'))]
    values += result['camera']['distortion']
    numbers = [
        (name, float(value), float(deviation))
        for (name, deviation), value in zip(found.deviations.items(), values, strict=True)
    ]
    coverage, rays = result['coverage'], result['ray_deviation']
    return '\n\n'.join(
        [
            table(head, pictures),
            table((found.camera.model, 'value', 'standard deviation'), numbers),
            f'error {found.rms:.3f} px (RMS), rays uncertain by {rays["median"]:.2g} px (median),'
            f' {rays["largest"]:.2g} px (largest)\n'
            f'boards cover {100.0 * coverage["area"]:.0f} % of the image, tilted by up to'
            f' {math.degrees(coverage["largest_tilt"]):.0f} deg, distances differ by a factor of'
            f' {coverage["distance_ratio"]:.2f}\n'
            + ('no warnings' if not found.warnings else 'not reliable: see the warnings'),
        ]
    )


# --- pose -----------------------------------------------------------------------------------


def _run_pose(arguments: argparse.Namespace) -> None:
    """Run ``pose``."""
    if arguments.refine is not None:
        # It tracks, which the other setup commands do not need.
        from longreach_vision.commands.tracking_commands import run_refine

        run_refine(arguments)
        return
    if arguments.reference is None:
        raise InputError('REFERENCE.yaml is missing; give it, or --refine RECORDING')
    if arguments.rig is not None or arguments.camera is not None:
        raise InputError('--rig and --camera are allowed with --refine only')
    file, out = arguments.reference, arguments.out
    check_output(out, arguments.plot)
    reference = load_reference(file)
    named = [getattr(reference.cameras, side).calibration for side in reference.sides]
    read = [file, *(file.parent / name for name in named)]
    check_places({'--out': out, '--plot': arguments.plot}, read)
    cameras = read_cameras(reference, file.parent)
    try:
        found = localise(reference, cameras)
    except InputError as error:
        raise InputError(f'{file}: {error}') from error
    advice = ''
    if out is not None:
        markers = _markers_text(arguments.marker, out)
        cameras_and_plane = rig_text(found, _calibrations(reference, file, out), _kept(out))
        _write_rig(out, cameras_and_plane + markers)
        if markers and not arguments.marker:
            advice = f'\n\n{out} contains an example marker; replace it by your markers'
    if arguments.plot is not None:
        from longreach_vision.commands.setup_figures import draw_localisation

        draw_localisation(arguments.plot, found, cameras)
    print_result(_pose_result(found), _pose_text(found) + advice, arguments.format)
    _warn(found.warnings)


def _marker(text: str) -> tuple[str, float]:
    """Parse name and radius [m] of ``--marker``."""
    name, _, radius = text.partition('=')
    try:
        return name, MarkerOnRig(name=name, radius=positive(radius)).radius
    except (ValueError, InputError) as error:
        raise argparse.ArgumentTypeError(f'{text!r}, allowed: such as tip=0.15') from error


def _markers_text(markers: Sequence[tuple[str, float]], out: Path) -> str:
    """Return the markers for a rig file; empty if none are given and the file has some."""
    if not markers and out.is_file() and out.stat().st_size and 'markers' in load_yaml(out):
        return ''
    lines = ['markers:']
    if not markers:
        lines.append(
            '  # An example; replace it by your markers: name and radius of the outer edge [m].'
        )
        markers = [_EXAMPLE]
    lines += [f"  - {{name: '{name}', radius: {radius!r}}}" for name, radius in markers]
    return '\n'.join([*lines, ''])


def _calibrations(reference: Reference, file: Path, out: Path) -> dict[str, str]:
    """Return the calibration files by camera, relative to the rig file."""
    found = {}
    for side in reference.sides:
        named = Path(getattr(reference.cameras, side).calibration)
        if not named.is_absolute():
            named = Path(os.path.relpath(file.parent.resolve() / named, out.parent.resolve()))
        found[side] = str(named)
    return found


def _kept(out: Path) -> dict[str, dict[str, Any]]:
    """Return entries of cameras in an existing rig file that a new pose does not change."""
    if not (out.is_file() and out.stat().st_size):
        return {}
    cameras = load_yaml(out).get('cameras')
    if not isinstance(cameras, dict):
        return {}
    return {
        side: {key: value for key, value in entry.items() if key not in _POSED}
        for side, entry in cameras.items()
        if isinstance(entry, dict)
    }


def rig_text(
    found: Localisation,
    calibrations: dict[str, str],
    kept: dict[str, dict[str, Any]] | None = None,
) -> str:
    """Return the cameras and the plane of a rig file."""
    lines = [_cameras_text(found.poses, calibrations, kept or {})]
    if found.plane is not None:
        plane = found.plane.plane
        assert plane.covariance is not None
        lines += [
            'plane:',
            f'  normal: {_row(plane.normal)}',
            f'  offset: {float(plane.offset)!r}  # [m]',
            f'  centroid: {_row(plane.centroid)}  # [m]',
            '  # Rows; of rotations about two axes in the plane [rad], displacement along n [m].',
            '  covariance:',
            *_rows(plane.covariance, '    '),
        ]
    return '\n'.join([*lines, ''])


def _cameras_text(
    poses: Mapping[str, Pose], calibrations: dict[str, str], kept: dict[str, dict[str, Any]]
) -> str:
    """Return the cameras of a rig file; the arguments are those of :func:`rig_text`."""
    lines = ['cameras:']
    for side, pose in poses.items():
        lines += [
            f'  {side}:',
            f'    calibration: {_quoted(calibrations[side])}',
            f'    position: {_row(pose.translation)}  # in the world [m]',
            f'    orientation: {_row(pose.quaternion)}  # x y z w of the optical frame',
        ]
        if pose.covariance is not None:
            lines += [
                '    # Rows; of rotation vector in the camera [rad], position in the world [m].',
                '    covariance:',
                *_rows(pose.covariance),
            ]
        lines += [f'    {key}: {value!r}' for key, value in kept.get(side, {}).items()]
    return '\n'.join(lines)


def write_poses(rig: Path, out: Path, poses: Mapping[str, Pose]) -> None:
    """Write the poses of all cameras of a rig file into it or into a copy of it."""
    entries = load_yaml(rig)['cameras']
    calibrations = {}
    for side in poses:
        named = Path(entries[side]['calibration'])
        if not named.is_absolute():
            named = Path(os.path.relpath(rig.parent.resolve() / named, out.parent.resolve()))
        calibrations[side] = str(named)
    text = _cameras_text(poses, calibrations, _kept(rig)) + '\n'
    _write_rig(out, text, rig)


def _row(values: np.ndarray) -> str:
    """Return values as a YAML list, in full precision."""
    return '[' + ', '.join(repr(float(value)) for value in values) + ']'


def _rows(matrix: np.ndarray, indent: str = '      ') -> list[str]:
    """Return a matrix as the lines of a flat YAML list."""
    rows = [', '.join(f'{float(value)!r}' for value in row) for row in matrix]
    return [
        f'{indent}{"[" if k == 0 else " "}{row}{"]" if k == len(rows) - 1 else ","}'
        for k, row in enumerate(rows)
    ]


def _quoted(text: str) -> str:
    """Return a text quoted for YAML."""
    return (
        text
        if re.fullmatch(r'[\w./-]*[A-Za-z][\w./-]*', text)
        else "'" + text.replace("'", "''") + "'"
    )


def _write_rig(out: Path, text: str, source: Path | None = None) -> None:
    """Write a rig file; other entries of an existing file, or of a source, are kept."""
    source = source or out
    if not (source.is_file() and source.stat().st_size):
        with writing(out) as path:
            path.write_text(text, encoding='utf-8')
        return
    old = load_yaml(source)
    with writing(out) as path:
        path.write_text(text, encoding='utf-8')
        expected = old | load_yaml(path)
        path.write_text(_merged(source.read_text(encoding='utf-8'), text), encoding='utf-8')
        try:
            fits = load_yaml(path) == expected
        except InputError:
            fits = False
        if not fits:
            raise InputError(
                f'{source}: the layout of this file does not allow cameras and plane to be'
                ' replaced, allowed: each entry starts a line with its name, no braces around all,'
                ' no end mark, no references; give a new file, and copy the rest to it'
            )


def _merged(old: str, new: str) -> str:
    """Return a YAML file whose top-level entries are replaced by those of a new text."""

    def blocks(text: str) -> list[str]:
        """Split a text before each top-level key."""
        root = yaml.compose(text)
        assert isinstance(root, yaml.MappingNode)
        starts = [0, *(key.start_mark.index for key, _ in root.value), len(text)]
        return [text[k:m] for k, m in itertools.pairwise(starts)]

    fresh = {block.partition(':')[0]: block for block in blocks(new) if block}
    first, *entries = blocks(old)
    kept = [first]
    for block in entries:
        key = block.partition(':')[0].strip('\'" ')
        if key not in fresh:
            kept.append(block)
            continue
        kept.append(fresh.pop(key))
        # Comments before the next key belong to that key.
        tail = re.search(r'(?:^[ \t]*(?:#[^\n]*)?\n)+\Z', block, flags=re.MULTILINE)
        if tail and block is not entries[-1]:
            kept.append(tail[0])
    text = ''.join(kept)
    if fresh and text and not text.endswith('\n'):
        text += '\n'
    return text + ''.join(fresh.values())


def _prediction(value: Prediction) -> dict[str, Any]:
    """Return a prediction as a JSON object: standard deviations along the world's axes [m]."""
    space = value.triangulated
    return {
        'point': value.point.tolist(),
        'in_plane': {side: _deviations(cov) for side, cov in value.in_plane.items()},
        'triangulated': None if space is None else _deviations(space),
        'error': None if math.isnan(value.error) else value.error,
        'movement': None if math.isnan(value.movement) else value.movement,
    }


def _deviations(covariance: np.ndarray) -> list[float]:
    """Return the standard deviations of a covariance."""
    return [float(value) for value in np.sqrt(np.maximum(np.diag(covariance), 0.0))]


def _pose_result(found: Localisation) -> dict[str, Any]:
    """Return poses as a JSON object."""
    plane = None
    if found.plane is not None:
        fitted, residuals, rms = found.plane
        assert fitted.covariance is not None
        plane = {
            'normal': fitted.normal.tolist(),
            'offset': fitted.offset,
            'centroid': fitted.centroid.tolist(),
            'covariance': fitted.covariance.ravel().tolist(),
            'residuals': residuals.tolist(),
            'rms': None if math.isnan(rms) else rms,
        }
    return {
        'cameras': {
            side: {
                'position': pose.translation.tolist(),
                'orientation': pose.quaternion.tolist(),
                'covariance': np.asarray(pose.covariance).ravel().tolist(),
                'residual': found.rms[side],
            }
            for side, pose in found.poses.items()
        },
        'points': [
            {
                'name': point.name,
                'position': point.position.tolist(),
                'deviations': _deviations(point.covariance),
                'correction': point.correction.tolist(),
                'pixels': {side: off.tolist() for side, off in point.pixels.items()},
            }
            for point in found.points
        ],
        'plane': plane,
        'sum_of_squares': found.sum_of_squares,
        'freedom': found.freedom,
        'tip': _prediction(found.tip),
        'at_points': [_prediction(value) for value in found.at_points],
        'trusted': not found.warnings,
        'warnings': list(found.warnings),
    }


def _pose_text(found: Localisation) -> str:
    """Return poses as text."""
    cameras = [
        (
            side,
            *(f'{value:.4f}' for value in pose.translation),
            *(f'{1e3 * value:.1f}' for value in _deviations(pose.covariance)[3:]),
            f'{1e3 * math.sqrt(float(np.trace(pose.covariance[:3, :3]))):.2f}',
            f'{found.rms[side]:.3f}',
        )
        for side, pose in found.poses.items()
        if pose.covariance is not None
    ]
    head = ('camera', 'x [m]', 'y [m]', 'z [m]', '± x [mm]', '± y [mm]', '± z [mm]')
    parts = [table((*head, '± rotation [mrad]', 'residual [px]'), cameras)]
    points = [
        (
            point.name,
            *(f'{1e3 * value:.1f}' for value in point.correction),
            *(
                f'{float(np.linalg.norm(point.pixels[side])):.3f}' if side in point.pixels else '-'
                for side in found.poses
            ),
        )
        for point in found.points
    ]
    names = ('point', 'moved x [mm]', 'y [mm]', 'z [mm]')
    parts.append(table((*names, *(f'{side} [px]' for side in found.poses)), points))
    lines = [
        f'sum of squares {found.sum_of_squares:.1f} at {found.freedom} degrees of freedom',
    ]
    if found.plane is not None:
        plane = found.plane.plane
        normal = ', '.join(f'{value:.5f}' for value in plane.normal)
        lines.append(f'plane: n = ({normal}), lambda = {plane.offset:.4f} m')
        if not math.isnan(found.plane.rms):
            lines[-1] += f', distance of its points {1e3 * found.plane.rms:.1f} mm (RMS)'
    lines += list(_tip_lines(found.tip))
    lines.append('no warnings' if not found.warnings else 'not reliable: see the warnings')
    return '\n\n'.join([*parts, '\n'.join(lines)])


def _tip_lines(tip: Prediction) -> Iterable[str]:
    """Yield lines about the error of a marker at the tip."""
    place = ', '.join(f'{value:g}' for value in tip.point)
    rows = [(f'in the plane, {side}', cov) for side, cov in tip.in_plane.items()]
    if tip.triangulated is not None:
        rows.append(('triangulated', tip.triangulated))
    for name, cov in rows:
        x, y, z = (1e3 * value for value in _deviations(cov))
        yield f'a marker at ({place}) m, {name}: ± {x:.1f}, {y:.1f}, {z:.1f} mm along x, y, z'
    if not math.isnan(tip.movement):
        yield f'a movement by 1 m from there: ± {1e3 * tip.movement:.2f} mm'


# --- marker ---------------------------------------------------------------------------------


def _run_marker(arguments: argparse.Namespace) -> None:
    """Run ``marker``."""
    from longreach_vision.commands.setup_figures import sheet_file

    out = arguments.out
    ending = out.suffix.lstrip('.').lower()
    if ending not in FORMATS:
        raise InputError(
            f'--out {out} has the extension {ending!r}, allowed: {", ".join(FORMATS)}'
        )
    if arguments.disc and arguments.inner is not None:
        raise InputError('--disc and --inner are given, allowed: one of them; a disc has no inner')
    check_output(out)
    inner = 0.0 if arguments.disc else 0.5 if arguments.inner is None else arguments.inner
    sheet = lay_out(arguments.diameter, inner, arguments.bright, arguments.page)
    data = sheet_file(sheet, ending)
    with writing(out) as path:
        path.write_bytes(data)
    rig = {'radius': 0.5 * arguments.diameter, 'inner': inner, 'bright': arguments.bright}
    entry = ', '.join(f'{key}: {_plain(value)}' for key, value in rig.items())
    width, height = sheet.size
    print_result(
        {
            'file': str(out),
            'page': sheet.page,
            'width': width / 1e3,
            'height': height / 1e3,
            'marker': rig,
        },
        f'{out}: {width:g} x {height:g} mm ({sheet.page}). Print at 100 %, check that the line'
        ' at the bottom is 100 mm long, and glue it to a flat plate\n'
        f'in the rig file: - {{name: marker_1, {entry}}}',
        arguments.format,
    )


def _plain(value: float | bool) -> str:
    """Return a value as YAML text."""
    return str(value).lower() if isinstance(value, bool) else f'{value:g}'


def _warn(warnings: Iterable[str]) -> None:
    """Print warnings on stderr."""
    for text in warnings:
        print(f'longreach vision: {text}', file=sys.stderr)


def write_delay(path: str | Path, camera: str, delay: float, comment: str) -> None:
    """Write the delay of a camera into a rig file; the rest of the file is kept."""
    if not abs(delay) <= LONGEST_DELAY:
        raise InputError(f'delay = {delay:g} s, allowed: at most {LONGEST_DELAY:g} s')
    _write_entry(Path(path), camera, 'delay', delay, comment)


def write_line_time(path: str | Path, camera: str, line_time: float, comment: str) -> None:
    """Write the line time [s] of a camera into a rig file, as :func:`write_delay`."""
    if not abs(line_time) <= LONGEST_LINE:
        raise InputError(f'line_time = {line_time:g} s, allowed: at most {LONGEST_LINE:g} s')
    _write_entry(Path(path), camera, 'line_time', line_time, comment)


def _write_entry(file: Path, camera: str, name: str, number: float, comment: str) -> None:
    """Write a number in seconds into the entry of a camera of a rig file."""
    expected = load_yaml(file)
    expected['cameras'][camera][name] = number
    text = file.read_text(encoding='utf-8')
    entries = _entry_of(_entry_of(yaml.compose(text), 'cameras'), camera)
    line = f'{name}: {number!r}  # [s], {comment}'
    first = entries.value[0][0].start_mark
    known = [(key, value) for key, value in entries.value if key.value == name]
    if known:
        start, stop = known[0][0].start_mark.index, known[0][1].end_mark.index
        # With the comment behind it.
        stop += len(re.match(r'[ \t]*(#[^\n]*)?', text[stop:])[0])  # type: ignore[index]
        text = text[:start] + line + text[stop:]
    else:
        text = f'{text[: first.index]}{line}\n{" " * first.column}{text[first.index :]}'
    with writing(file) as unfinished:
        unfinished.write_text(text, encoding='utf-8')
        try:
            fits = load_yaml(unfinished) == expected
        except InputError:
            fits = False
        if not fits:
            raise InputError(
                f'{file}: the layout of this file does not allow {name} to be written, allowed:'
                f' each entry of a camera on a line of its own; write cameras.{camera}.{name}:'
                f' {number!r} yourself'
            )


def _entry_of(node: yaml.Node | None, key: str) -> yaml.MappingNode:
    """Return the mapping with a key of another mapping."""
    assert isinstance(node, yaml.MappingNode)
    found = next(value for name, value in node.value if name.value == key)
    assert isinstance(found, yaml.MappingNode)
    return found
