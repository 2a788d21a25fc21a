"""Subcommand ``longreach vision detect``: markers in single pictures."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from longreach_dynamics.errors import InputError, named
from longreach_markers import (
    LOST,
    Camera,
    Ellipse,
    Observation,
    detect,
    draw,
    find_markers,
    list_pictures,
    read_camera,
    read_picture,
    warm_up,
)
from longreach_tools.arguments import check_unused, positive
from longreach_tools.output import add_format, check_output, check_places, writing
from longreach_vision.commands.arguments import vector, warn

_NONE = 'no ring in the picture'
_PICTURES = ('.png', '.jpg')
_HEAD = ('image', 'status', 'u [px]', 'v [px]', '±u', '±v', 'radius [px]', 'rim', 'ms', '')
# Widths of the columns between picture and reason.
_WIDTHS = (9, 8, 8, 5, 5, 11, 5, 7)


def configure_detection(commands: Any) -> None:
    """Add the subcommand ``detect``."""
    parser = commands.add_parser(
        'detect',
        help='circular markers in pictures',
        description='One marker near a pixel in each picture, or all rings of each.'
        ' The centre of the first pixel is (0, 0).',
    )
    parser.add_argument(
        'images', metavar='IMAGE', nargs='+', type=Path, help='pictures, or a folder of them'
    )
    parser.add_argument(
        '--at',
        type=vector(2),
        metavar='u,v',
        help='approximate centre [px] (default: find all rings)',
    )
    parser.add_argument(
        '--radius', type=positive, help='approximate longer semi-axis of the outer edge [px]'
    )
    parser.add_argument(
        '--search',
        type=positive,
        help='largest distance of the centre from --at [px] (default: the radius, at least 12)',
    )
    text = 'calibration of the camera'
    add = parser.add_argument
    add('--calibration', '--camera', dest='camera', metavar='FILE.yaml', type=Path, help=text)
    parser.add_argument(
        '--normal',
        type=vector(3),
        metavar='nx,ny,nz',
        help="normal of the marker's plane in the camera frame (x right, y down, z forward)",
    )
    parser.add_argument('--overlay', help='last picture with the markers drawn')
    add_format(parser)
    parser.set_defaults(run=_run_detect)


def _run_detect(arguments: argparse.Namespace) -> int:
    """Run ``detect``; return 2 if a picture could not be used."""
    if (arguments.at is None) != (arguments.radius is None):
        missing = 'radius' if arguments.radius is None else 'at'
        raise InputError(
            f'--{missing} is missing; give --at and --radius together, or neither for all rings'
        )
    if arguments.at is None:
        check_unused(arguments, 'with --at', 'search')
    if arguments.camera is None:
        check_unused(arguments, 'with --calibration', 'normal')
    if arguments.normal is not None and not any(arguments.normal):
        raise InputError('--normal 0,0,0; allowed: a vector that is not 0')
    check_output(arguments.overlay)
    if arguments.overlay is not None and arguments.overlay.suffix.lower() not in _PICTURES:
        raise InputError(
            f'--overlay {arguments.overlay}; allowed: a file that ends in {" or ".join(_PICTURES)}'
        )
    camera = None if arguments.camera is None else read_camera(arguments.camera)
    pictures, failed = list_pictures(arguments.images), False
    check_places({'--overlay': arguments.overlay}, pictures)
    warm_up()
    width = max(len(file.name) for file in pictures)
    last: tuple[NDArray[np.uint8], list[Observation | None]] | None = None
    for file in pictures:
        try:
            image = read_picture(file)
            found = _detect(image, camera, arguments, file)
        except InputError as error:
            if len(arguments.images) == len(pictures) == 1:
                raise
            warn(str(error))
            failed = True
            continue
        if last is None and arguments.format == 'table':
            print(_line(width, _HEAD), flush=True)
        last = image, [seen for seen, _ in found]
        for row in found:
            fields = _object(str(file), *row)
            if arguments.format == 'json':
                print(json.dumps(fields, allow_nan=False), flush=True)
            else:
                print(_line(width, _cells(file.name, fields)), flush=True)
    if arguments.overlay is not None and last is not None:
        image, observations = last
        marked = {f'{number}': one for number, one in enumerate(filter(None, observations), 1)}
        _, data = cv2.imencode(arguments.overlay.suffix.lower(), draw(image, marked))
        with writing(arguments.overlay) as path:
            path.write_bytes(data.tobytes())
    return 2 if failed else 0


def _detect(
    image: NDArray[np.uint8], camera: Camera | None, arguments: argparse.Namespace, file: Path
) -> list[tuple[Observation | None, float]]:
    normal = arguments.normal
    if normal is not None:
        # Overflow and underflow of squares are not errors.
        normal = np.array(normal) / max(map(abs, normal))
    view = {'camera': camera, 'normal_cam': normal}
    begin = time.perf_counter()
    with named(f'{file}: '):
        if arguments.at is not None:
            found = [
                detect(image, arguments.at, arguments.radius, search=arguments.search, **view)
            ]
        else:
            found = find_markers(image, strict=True, **view)
    spent = 1e3 * (time.perf_counter() - begin)
    # A picture without rings has one row, too.
    return [(seen, spent / len(found)) for seen in found] or [(None, spent)]


def _object(image: str, seen: Observation | None, milliseconds: float) -> dict[str, Any]:
    fields: dict[str, Any] = {'image': image, 'status': LOST, 'reason': _NONE}
    fields |= dict.fromkeys(('center', 'covariance', 'ellipse', 'inner', 'bright'))
    fields |= {'rim_support': 0.0, 'residual': None}
    if seen is not None:
        fields |= {key: _known(getattr(seen, key)) for key in fields if key != 'image'}
    return fields | {'milliseconds': milliseconds}


def _known(value: Any) -> Any:
    if isinstance(value, str | bool):
        return value
    if isinstance(value, Ellipse):
        return {key: _known(getattr(value, key)) for key in ('center', 'axes', 'angle')}
    return np.asarray(value).tolist() if np.isfinite(value).all() else None


def _cells(image: str, fields: dict[str, Any]) -> tuple[str, ...]:
    values = [''] * 6
    if fields['ellipse'] is not None:
        u, v = fields['center']
        spread = ['', '']
        if fields['covariance'] is not None:
            spread = [f'{value:.3f}' for value in np.sqrt(np.diag(fields['covariance']))]
        radius, rim = max(fields['ellipse']['axes']), 100 * fields['rim_support']
        values = [f'{u:.3f}', f'{v:.3f}', *spread, f'{radius:.2f}', f'{rim:.0f} %']
    return image, fields['status'], *values, f'{fields["milliseconds"]:.2f}', fields['reason']


def _line(width: int, cells: Sequence[str]) -> str:
    widths = (max(width, len(_HEAD[0])), *_WIDTHS)
    aligned = [cell.rjust(size) for cell, size in zip(cells, widths, strict=False)]
    return '  '.join([*aligned, *cells[len(widths) :]]).rstrip()
