"""Parameters of the node of simulated cameras."""

from __future__ import annotations

import dataclasses

from longreach_dynamics.parameters import quantity
from longreach_vision.ros.image_publishers import ImageParameters


@dataclasses.dataclass(frozen=True, kw_only=True)
class CameraNodeParameters(ImageParameters):
    """Parameters of the camera node."""

    rig: str = quantity('rig file: cameras, plane, markers', '')
    look: str = quantity('look file; empty for the installed one', '', default='')
    path: str = quantity(
        'CSV file with time, NAME.x, NAME.z to render; empty for the topic marker_truth',
        '',
        default='',
    )
    frame_rate: float = quantity(
        'images of each camera per second of simulation time',
        'Hz',
        above=0.0,
        at_most=1e3,
        default=15.0,
    )
    scale: float = quantity(
        'image size relative to the cameras', above=0.0, at_most=1.0, default=1.0
    )
    skew: float = quantity('delay of all cameras but the first', 's', at_least=0.0, default=0.0)
    drop_rate: float = quantity(
        'share of images that are dropped, for tests', at_least=0.0, below=1.0, default=0.0
    )
    real_time_factor: float = quantity(
        'simulation time over real time; 0: a path continues when listeners have the previous'
        ' image',
        at_least=0.0,
        at_most=1e4,
        default=1.0,
    )
    lossless: bool = quantity(
        'publish an image only when reliable listeners have the previous one', default=False
    )
    duration: float = quantity(
        'time of marker_truth, or since the start of a path, after which the node ends; 0: never',
        's',
        at_least=0.0,
        default=0.0,
    )
