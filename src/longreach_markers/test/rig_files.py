"""Rig files of rigs that tests make."""

import dataclasses
from pathlib import Path

import yaml

from longreach_markers.camera.files import write_camera


def write_rig(rig, path):
    """Write a rig file, and beside it NAME_left.yaml and NAME_right.yaml with the calibrations."""
    file = Path(path)
    cameras = {}
    for side, mounted in rig.cameras.items():
        calibration = file.with_name(f'{file.stem}_{side}.yaml')
        write_camera(mounted.camera, calibration)
        cameras[side] = {
            'calibration': calibration.name,
            'position': mounted.pose.translation.tolist(),
            'orientation': mounted.pose.quaternion.tolist(),
            **_entry('covariance', mounted.pose.covariance),
            **{
                key: getattr(mounted, key)
                for key in ('delay', 'line_time', 'calibration_deviation')
                if getattr(mounted, key)
            },
        }
    values = {
        'cameras': cameras,
        'plane': {
            'normal': rig.plane.normal.tolist(),
            'offset': rig.plane.offset,
            'centroid': rig.plane.centroid.tolist(),
            **_entry('covariance', rig.plane.covariance),
        },
        'markers': [
            {
                key: list(value) if isinstance(value, tuple) else value
                for key, value in dataclasses.asdict(marker).items()
                if value is not None
            }
            for marker in rig.markers
        ],
        'tracking': dataclasses.asdict(rig.tracking),
        'bodies': [body.as_mapping() for body in rig.bodies],
    }
    text = yaml.safe_dump(values, sort_keys=False, default_flow_style=None, width=99)
    file.write_text(text, encoding='utf-8')


def _entry(key, matrix):
    return {} if matrix is None else {key: matrix.ravel().tolist()}
