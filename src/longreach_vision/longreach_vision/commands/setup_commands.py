"""Subcommands of ``longreach vision`` to set up cameras: calibrate, pose, marker."""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from longreach_dynamics.errors import InputError, check_distinct, named
from longreach_markers import (
    MODELS,
    Board,
    Calibration,
    Localisation,
    MarkerOnRig,
    Prediction,
    calibrate,
    find_views,
    list_pictures,
    load_reference,
    load_rig,
    localise,
    read_cameras,
    write_camera,
)
from longreach_tools.arguments import check_unused, not_negative, positive
from longreach_tools.output import (
    add_format,
    check_output,
    check_places,
    checked_ending,
    print_result,
    table,
    writing,
)
from longreach_vision.commands.arguments import add_options, add_rig, warn
from longreach_vision.commands.rig_files import on_old_side, write_localisation
from longreach_vision.commands.setup_figures import (
    FORMATS,
    PAGES,
    draw_calibration,
    draw_localisation,
    lay_out,
    sheet_file,
)

# Of a camera, in the order of the output.
_INTRINSICS = ('name', 'width', 'height', 'model', 'fx', 'fy', 'cx', 'cy')
_PLANE_DEVIATION = 0.01  # [m]


def configure_setup(commands: Any) -> None:
    """Add the subcommands ``calibrate``, ``pose`` and ``marker``."""
    intrinsics = commands.add_parser(
        'calibrate', help='estimate intrinsics from pictures of a checkerboard'
    )
    intrinsics.add_argument(
        'images', metavar='IMAGES', nargs='+', type=Path, help='pictures, or a folder of them'
    )
    text = 'number of inner corners, 9x6 for 10 by 7 squares'
    intrinsics.add_argument('--board', required=True, metavar='NxM', help=text)
    intrinsics.add_argument('--square', required=True, type=positive, help='side of a square [m]')
    intrinsics.add_argument(
        '--model',
        choices=MODELS,
        default='plumb_bob',
        help='distortion model; equidistant for fisheye lenses',
    )
    intrinsics.add_argument(
        '--name', metavar='CAMERA', default='camera', help='name of the camera'
    )
    intrinsics.add_argument('--out', metavar='FILE.yaml', help='calibration file for ROS')
    add_format(intrinsics)
    text = 'plot of corners in the image and errors of pictures'
    intrinsics.add_argument('--plot', help=text)
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
        help='rig file; in an existing file, only cameras and plane are replaced',
    )
    pose.add_argument(
        '--refine',
        nargs='+',
        help='bag of images, or a video or folder of each camera, in the order of the rig',
    )
    add_options(pose, 'namespace')
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
        default=_PLANE_DEVIATION,
        help='with --refine: standard deviation of the distances of markers from the plane [m]',
    )
    add_options(pose, 'rate', 'scale')
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
    pose.add_argument('--plot', help='plot of cameras, points and their errors')
    pose.set_defaults(run=_run_pose)

    marker = commands.add_parser('marker', help='draw a marker to be printed at exact size')
    marker.add_argument(
        '--diameter', required=True, type=positive, help='diameter of the outer edge [m]'
    )
    marker.add_argument(
        '--inner',
        metavar='RATIO',
        type=not_negative,
        default=0.5,
        help='inner over outer diameter; 0: a disc',
    )
    marker.add_argument('--bright', action='store_true', help='bright on dark')
    marker.add_argument(
        '--page',
        choices=(*PAGES, 'fit'),
        help='fit: a page of the size of the marker (default: the smallest page that fits)',
    )
    marker.add_argument('--out', required=True, help=' or '.join(FORMATS))
    add_format(marker)
    marker.set_defaults(run=_run_marker)


# --- calibrate ------------------------------------------------------------------------------


def _run_calibrate(arguments: argparse.Namespace) -> None:
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
        draw_calibration(arguments.plot, found)
    result = _calibration_result(found, empty)
    print_result(result, _calibration_text(found, result), arguments.format)
    warn(*found.warnings)


def _calibration_result(found: Calibration, empty: Sequence[str]) -> dict[str, Any]:
    coverage = found.coverage
    rays = found.ray_deviation[np.isfinite(found.ray_deviation)]
    apart = found.difference[np.isfinite(found.difference)]
    largest = np.linalg.norm(found.residuals, axis=2).max(axis=1)
    names = [view.name for view in found.views]
    rows = zip(names, found.errors, largest, coverage.tilts, coverage.distances, strict=True)
    keys = ('image', 'error', 'largest', 'tilt', 'distance')
    return {
        'camera': {name: getattr(found.camera, name) for name in (*_INTRINSICS, 'distortion')},
        'deviations': found.deviations,
        'rms': found.rms,
        'images': [dict(zip(keys, row, strict=True)) for row in rows],
        'outliers': found.outliers,
        'without_board': empty,
        'coverage': {
            'area': coverage.area,
            'corners_missing': coverage.missing,
            'largest_tilt': coverage.tilts.max(),
            'turns': coverage.turns,
            'distance_ratio': coverage.distances.max() / coverage.distances.min(),
        },
        'ray_deviation': {'median': np.median(rays), 'largest': rays.max()},
        'model_difference': apart.max() if apart.size else None,
        'trusted': not found.warnings,
        'warnings': found.warnings,
    }


def _calibration_text(found: Calibration, result: dict[str, Any]) -> str:
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
    pictures += [(name, 'left out', '', '', '') for name in result['outliers']]
    pictures += [(name, 'no board', '', '', '') for name in result['without_board']]
    head = ('picture', 'error [px]', 'largest [px]', 'tilt [deg]', 'distance [m]')
    values = [result['camera'][name] for name in _INTRINSICS[4:]]
    values += result['camera']['distortion']
    numbers = [
        (name, float(value), float(deviation))
        for (name, deviation), value in zip(found.deviations.items(), values, strict=True)
    ]
    coverage, rays = result['coverage'], result['ray_deviation']
    summary = (
        f'error {found.rms:.3f} px (RMS), rays uncertain by {rays["median"]:.2g} px (median),'
        f' {rays["largest"]:.2g} px (largest)\n'
        f'boards cover {100.0 * coverage["area"]:.0f} % of the image, tilted by up to'
        f' {math.degrees(coverage["largest_tilt"]):.0f} deg, distances differ by a factor of'
        f' {coverage["distance_ratio"]:.2f}\n{_trust(found.warnings)}'
    )
    names = (found.camera.model, 'value', 'standard deviation')
    return '\n\n'.join([table(head, pictures), table(names, numbers), summary])


def _trust(warnings: Sequence[str]) -> str:
    return 'not reliable: see the warnings' if warnings else 'no warnings'


# --- pose -----------------------------------------------------------------------------------


def _run_pose(arguments: argparse.Namespace) -> None:
    if arguments.refine is not None:
        # It tracks, which the other setup commands do not need.
        from longreach_vision.commands.tracking_commands import run_refine

        run_refine(arguments)
        return
    if arguments.reference is None:
        raise InputError('REFERENCE.yaml is missing; give it, or --refine RECORDING')
    tracking = {'scale': 1.0, 'namespace': 'vision', 'plane_deviation': _PLANE_DEVIATION}
    check_unused(arguments, 'with --refine', 'rig', 'camera', 'rate', **tracking)
    check_distinct('--marker', [name for name, _ in arguments.marker])
    file, out = arguments.reference, arguments.out
    check_output(out, arguments.plot)
    reference = load_reference(file)
    entries = [getattr(reference.cameras, side) for side in reference.sides]
    read = [file, *(file.parent / one.calibration for one in entries)]
    check_places({'--out': out, '--plot': arguments.plot}, read)
    cameras = read_cameras(reference, file.parent)
    with named(f'{file}: '):
        found = localise(reference, cameras)
    notes: list[str] = []
    if out is not None:
        found, notes = on_old_side(out, found)
    text = _pose_text(found)
    if out is not None:
        if write_localisation(out, found, reference, file, arguments.marker):
            text += f'\n\n{out} contains an example marker; replace it by your markers'
        try:
            load_rig(out)
        except InputError as error:
            notes.append(f'written, but no rig that can be used: {error}')
    if arguments.plot is not None:
        draw_localisation(arguments.plot, found, cameras)
    # Notes are about the file: the poses may be trusted nevertheless.
    warnings = [*found.warnings, *notes]
    print_result(_pose_result(found) | {'warnings': warnings}, text, arguments.format)
    warn(*warnings)


def _marker(text: str) -> tuple[str, float]:
    name, _, radius = text.partition('=')
    try:
        return name, MarkerOnRig(name=name, radius=positive(radius)).radius
    except (argparse.ArgumentTypeError, InputError) as error:
        raise argparse.ArgumentTypeError(f'{text!r}, allowed: such as tip=0.15 [m]') from error


def _prediction(value: Prediction) -> dict[str, Any]:
    space = value.triangulated
    return {
        'point': value.point,
        'in_plane': {side: _deviations(cov) for side, cov in value.in_plane.items()},
        'triangulated': None if space is None else _deviations(space),
        'error': value.error,
        'movement': value.movement,
    }


def _deviations(covariance: np.ndarray) -> list[float]:
    return [float(value) for value in np.sqrt(np.maximum(np.diag(covariance), 0.0))]


def _pose_result(found: Localisation) -> dict[str, Any]:
    plane = None
    if found.plane is not None:
        fitted, residuals, rms = found.plane
        assert fitted.covariance is not None
        plane = {
            'normal': fitted.normal,
            'offset': fitted.offset,
            'centroid': fitted.centroid,
            'covariance': fitted.covariance.ravel(),
            'residuals': residuals,
            'rms': rms,
        }
    return {
        'cameras': {
            side: {
                'position': pose.translation,
                'orientation': pose.quaternion,
                'covariance': np.asarray(pose.covariance).ravel(),
                'residual': found.rms[side],
            }
            for side, pose in found.poses.items()
        },
        'points': [
            {
                'name': point.name,
                'position': point.position,
                'deviations': _deviations(point.covariance),
                'correction': point.correction,
                'pixels': point.pixels,
            }
            for point in found.points
        ],
        'plane': plane,
        'sum_of_squares': found.sum_of_squares,
        'freedom': found.freedom,
        'tip': _prediction(found.tip),
        'at_points': [_prediction(value) for value in found.at_points],
        'trusted': not found.warnings,
    }


def _pose_text(found: Localisation) -> str:
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
    lines = [f'sum of squares {found.sum_of_squares:.1f} at {found.freedom} degrees of freedom']
    if found.plane is not None:
        plane = found.plane.plane
        normal = ', '.join(f'{value:.5f}' for value in plane.normal)
        lines.append(f'plane: n = ({normal}), lambda = {plane.offset:.4f} m')
        if not math.isnan(found.plane.rms):
            lines[-1] += f', distance of its points {1e3 * found.plane.rms:.1f} mm (RMS)'
    lines += list(_tip_lines(found.tip))
    lines.append(_trust(found.warnings))
    return '\n\n'.join([*parts, '\n'.join(lines)])


def _tip_lines(tip: Prediction) -> Iterable[str]:
    place = ', '.join(f'{value:g}' for value in tip.point)
    rows = {f'in the plane, {side}': cov for side, cov in tip.in_plane.items()}
    if tip.triangulated is not None:
        rows['triangulated'] = tip.triangulated
    for name, cov in rows.items():
        x, y, z = (1e3 * value for value in _deviations(cov))
        yield f'a marker at ({place}) m, {name}: ± {x:.1f}, {y:.1f}, {z:.1f} mm along x, y, z'
    if not math.isnan(tip.movement):
        yield f'a movement by 1 m from there: ± {1e3 * tip.movement:.2f} mm'


# --- marker ---------------------------------------------------------------------------------


def _run_marker(arguments: argparse.Namespace) -> None:
    out = arguments.out
    ending = checked_ending(out, FORMATS)
    check_output(out)
    sheet = lay_out(arguments.diameter, arguments.inner, arguments.bright, arguments.page)
    data = sheet_file(sheet, ending)
    with writing(out) as path:
        path.write_bytes(data)
    rig = {'radius': 0.5 * arguments.diameter, 'inner': arguments.inner}
    rig['bright'] = arguments.bright
    entry = yaml.safe_dump({'name': 'marker_1'} | rig, default_flow_style=True, sort_keys=False)
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
        f'in the rig file: - {entry.strip()}',
        arguments.format,
    )
