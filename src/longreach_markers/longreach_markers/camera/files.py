"""ROS calibration files of cameras (camera_calibration, camera_info_manager)."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from longreach_dynamics.errors import InputError, named
from longreach_dynamics.parameters import load_yaml
from longreach_markers.camera.model import Camera

# Keys of a calibration file for each field.
_KEYS = {
    'width': 'image_width',
    'height': 'image_height',
    'fx': 'camera_matrix.data[0]',
    'cx': 'camera_matrix.data[2]',
    'fy': 'camera_matrix.data[4]',
    'cy': 'camera_matrix.data[5]',
    'model': 'distortion_model',
    'distortion': 'distortion_coefficients.data',
}


def read_camera(path: str | Path, name: str = '') -> Camera:
    """
    Read a calibration file of ROS (camera_calibration, camera_info_manager).

    Rectification and projection matrices are ignored: they belong to rectified images. Without
    distortion_model, as in old files, the model is plumb_bob. ``name`` is that of the camera whose
    file may not have been made yet: the error then says how.

    Raises
    ------
    InputError
        With file and key, for values that are missing, not numbers, or not allowed.
    """
    if name and not Path(path).exists():
        raise InputError(
            f'{path}, the calibration file of the camera {name}, does not exist; make it with'
            f' longreach vision calibrate PICTURES --board 7x5 --square 0.04 --name {name} --out'
            f' {path}'
        )
    values = load_yaml(path)
    with named(f'{path}: '):
        matrix = _matrix(values, 'camera_matrix', (3, 3))
        if matrix[1] or matrix[3] or matrix[6:] != [0.0, 0.0, 1.0]:
            raise InputError(
                f'camera_matrix.data = {matrix}, allowed: [fx, 0, cx, 0, fy, cy, 0, 0, 1]; all 0'
                ' is a camera that is not calibrated'
            )
        coefficients = _matrix(values, 'distortion_coefficients', None)
        try:
            return Camera(
                name=str(values.get('camera_name', 'camera')),
                width=_needed(values, 'image_width'),
                height=_needed(values, 'image_height'),
                fx=matrix[0],
                fy=matrix[4],
                cx=matrix[2],
                cy=matrix[5],
                model=values.get('distortion_model', 'plumb_bob'),
                distortion=tuple(coefficients),
            )
        except InputError as error:
            field, _, rest = str(error).partition(' ')
            raise InputError(f'{_KEYS.get(field, field)} {rest}') from error


def _needed(values: dict[str, Any], key: str) -> Any:
    if key not in values:
        raise InputError(f'{key} is missing, required in a calibration file of ROS')
    return values[key]


def _matrix(values: dict[str, Any], key: str, shape: tuple[int, int] | None) -> list[float]:
    """Return a matrix as a list, row by row; without a shape, a row of any length."""
    entry = _needed(values, key)
    if not isinstance(entry, dict) or not isinstance(entry.get('data'), list):
        raise InputError(f'{key} = {entry!r}, allowed: a mapping with rows, cols and data')
    data = entry['data']
    for i, value in enumerate(data):
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise InputError(f'{key}.data[{i}] = {value!r}, allowed: a number')
        if not abs(value) <= sys.float_info.max:
            number = value if isinstance(value, float) else 'an integer of more than 300 digits'
            raise InputError(f'{key}.data[{i}] = {number}, allowed: a finite number')
    rows, columns = shape or (1, len(data))
    size = [entry.get('rows', rows), entry.get('cols', columns)]
    if len(data) != rows * columns or sorted(map(str, size)) != sorted([str(rows), str(columns)]):
        raise InputError(
            f'{key} has {size[0]} x {size[1]} and {len(data)} values, allowed: {rows} x {columns}'
        )
    return [float(value) for value in data]


def write_camera(camera: Camera, path: str | Path) -> None:
    """
    Write a calibration file of ROS, in full precision.

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    k = camera.matrix
    projection = np.column_stack([k, np.zeros(3)])
    head = {
        'image_width': camera.width,
        'image_height': camera.height,
        'camera_name': camera.name,
        'camera_matrix': _entry(k),
        'distortion_model': camera.model,
        'distortion_coefficients': _entry(np.array([camera.distortion])),
        'rectification_matrix': _entry(np.eye(3)),
        'projection_matrix': _entry(projection),
    }
    text = yaml.safe_dump(head, sort_keys=False, default_flow_style=None, width=99)
    try:
        Path(path).write_text(text, encoding='utf-8')
    except OSError as error:
        raise InputError(f'{path} cannot be written: {error.strerror}') from error


def _entry(matrix: np.ndarray) -> dict[str, Any]:
    return {
        'rows': matrix.shape[0],
        'cols': matrix.shape[1],
        'data': [float(value) for value in matrix.ravel()],
    }
