"""Two cameras with known poses, reference points that they see, and a reference file of both."""

import numpy as np
from scipy.spatial.transform import Rotation

from longreach_dynamics.parameters import from_mapping
from longreach_markers.camera.geometry import Pose
from longreach_markers.camera.model import Camera
from longreach_markers.setup.localisation import localise, reference_file

LENS = Camera(
    'lens', 2452, 2054, 2200.0, 2201.0, 1230.0, 1020.0, 'plumb_bob', (-0.1, 0.08, 2e-4, -1e-4, 0.0)
)
FISHEYE = Camera(
    'eye', 2452, 2054, 1400.0, 1401.0, 1230.0, 1020.0, 'equidistant', (0.01, 0.002, -0.003, 0.001)
)
# Cameras 23 m from the plane of a boom that reaches 30 m far; the tip is where it works.
POSES = {
    'left': Pose.from_look_at((8.0, -23.0, 2.0), (13.5, 0.0, 6.0)),
    'right': Pose.from_look_at((20.0, -23.0, 2.0), (14.0, 0.0, 6.0)),
}
CAMERAS = {'left': LENS, 'right': LENS}
TIP = np.array([24.0, 0.0, 3.0])
SPREAD = np.array(
    [
        (5.0, 0.0, 1.0),
        (24.0, 0.0, 1.0),
        (6.0, 0.0, 12.0),
        (22.0, 0.0, 11.0),
        (14.0, -5.0, 0.0),
        (10.0, 3.0, 0.5),
        (19.0, -7.0, 0.2),
        (13.0, 0.0, 5.0),
    ]
)
CLUSTERED = np.array(
    [(5.0, 0.0, 1.0), (8.0, 0.0, 1.0), (5.0, 0.0, 3.5), (8.0, 0.0, 3.0), (6.5, 0.0, 2.0)]
)


def mapping(
    points=SPREAD, rng=None, pixel=0.05, deviation=0.01, cameras=CAMERAS, poses=POSES, **more
):
    """A reference file's content; without a generator all is exact."""
    rows = []
    for k, point in enumerate(points):
        noise = deviation * rng.standard_normal(3) if rng else np.zeros(3)
        row = {
            'name': f'p{k + 1}',
            'position': (point + noise).tolist(),
            'deviation': deviation,
            'in_plane': bool(point[1] == 0.0),
        }
        for side, camera in cameras.items():
            pixels = camera.project(poses[side].to_camera(point))
            row[side] = (pixels + (pixel * rng.standard_normal(2) if rng else 0.0)).tolist()
        rows.append(row)
    return {
        'cameras': {side: {'calibration': f'{side}.yaml'} for side in cameras},
        'points': rows,
        'pixel_deviation': pixel,
        'tip': TIP.tolist(),
        **more,
    }


def solved(values, cameras=CAMERAS):
    return localise(from_mapping(reference_file(values['cameras']), values), cameras)


def change(**changes):
    return {**mapping(), **changes}


def points_with(index, **changes):
    values = mapping()
    values['points'][index] |= changes
    return values


def moved_pose(pose, error):
    """Return a pose changed by a rotation vector in the camera [rad] and a displacement [m]."""
    turn = Rotation.from_rotvec(error[:3]).as_matrix()
    return Pose(pose.rotation @ turn, pose.translation + error[3:], pose.covariance)


def pose_error(found, truth):
    """Rotation vector in the camera's frame and translation, as covariances count them."""
    turn = Rotation.from_matrix(truth.rotation.T @ found.rotation).as_rotvec()
    return np.concatenate([turn, found.translation - truth.translation])
