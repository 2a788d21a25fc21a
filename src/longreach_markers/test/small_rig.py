"""A small rig: two cameras of few pixels, near to two markers of which one moves."""

import dataclasses
from pathlib import Path

import numpy as np
import yaml

from longreach_markers.camera.files import write_camera
from longreach_markers.camera.geometry import Plane, Pose
from longreach_markers.camera.model import Camera
from longreach_markers.camera.triangulation import Location
from longreach_markers.marker.detection import Observation, lost
from longreach_markers.marker.observation import Ellipse
from longreach_markers.rig import MarkerOnRig, MountedCamera, Rig
from longreach_markers.tracking.frames import Estimate, RigFrame


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


NAMES = ('one', 'two')
START = np.array([[-0.5, 0.0, 0.1], [0.5, 0.0, 0.5]])


def small_rig():
    cameras = {}
    for name, x in (('left', -0.8), ('right', 0.8)):
        camera = Camera(
            name, 400, 300, 500.0, 500.0, 199.5, 149.5, 'plumb_bob', (-0.05, 0.02, 0.0, 0.0)
        )
        pose = Pose.from_look_at((x, -5.0, 0.4), (0.0, 0.0, 0.3))
        cameras[name] = MountedCamera(camera, pose)
    markers = tuple(
        MarkerOnRig(name=name, radius=0.14, position=tuple(place.tolist()))
        for name, place in zip(NAMES, START, strict=True)
    )
    return Rig(cameras, Plane(np.array([0.0, 1.0, 0.0]), 0.0), markers)


def write_small_rig(folder):
    write_rig(small_rig(), folder / 'rig.yaml')
    return folder / 'rig.yaml'


def seen_at(u, v, status='TRACKED', radius=12.0):
    if status == 'LOST':
        return lost('nothing there', np.array([u, v]), radius)
    center = np.array([u, v])
    return Observation(
        status=status,
        reason='' if status == 'TRACKED' else 'too soft',
        center=center,
        covariance=np.array([[4e-4, 1e-4], [1e-4, 9e-4]]),
        ellipse=Ellipse(center + 0.1, np.array([radius, 0.8 * radius]), 0.3),
        inner=0.5,
        bright=False,
        rim_support=0.9,
        residual=1.5,
        shape=np.array([radius, 0.0, radius]),
    )


def frame_at(time, status='TRACKED', gap=0.0, shift=0.0):
    """Return a frame in which ``one`` is tracked and ``two`` has a status."""
    place = START + np.array([shift, 0.0, 0.0])
    location = Location(place[0], np.diag([1e-8, 4e-8, 9e-8]))
    space = Location(place[0] + 1e-3, np.diag([1e-6, 4e-6, 9e-6]))
    away = {'out_of_plane': 1e-3, 'out_of_plane_deviation': 2e-3}
    reason = '' if status == 'TRACKED' else 'why not'
    sides, flat = (), None
    if status != 'LOST':
        sides, flat = ('right',), Location(place[1], np.eye(3) * 1e-8)
    estimates = {
        'one': Estimate('one', 'TRACKED', '', ('left', 'right'), location, space, **away),
        'two': Estimate('two', status, reason, sides, flat),
    }
    observations = {
        'left': {'one': seen_at(100.0, 150.0), 'two': seen_at(250.0, 100.0, 'LOST')},
        'right': {'one': seen_at(90.0, 150.0), 'two': seen_at(240.0, 100.0, status)},
    }
    return RigFrame(time=time, gap=gap, observations=observations, estimates=estimates)
