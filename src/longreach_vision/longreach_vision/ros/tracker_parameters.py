"""Parameters of the tracker node."""

from __future__ import annotations

import dataclasses
from typing import Any

from longreach_dynamics.errors import InputError
from longreach_dynamics.parameters import choice, quantity
from longreach_markers.rig import TrackingParameters, load_rig
from longreach_markers.tracking.image_sets import TIMEOUT
from longreach_node.frames import FrameParameters


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrackerParameters(FrameParameters, TrackingParameters):
    """Parameters of the tracker node; those of the tracking are the rig's unless given."""

    rig: str = quantity('rig file: cameras, plane, markers', '')
    scale: float = quantity(
        'image size relative to the cameras', above=0.0, at_most=1.0, default=1.0
    )
    calibration: str = choice(
        "source of the intrinsics: the rig's files, or camera_info; poses are those of the rig",
        ('rig', 'topic'),
        default='rig',
    )
    transport: str = choice(
        'images that are subscribed to: CAMERA/image_raw, or CAMERA/image_raw/compressed',
        ('raw', 'compressed'),
        default='raw',
    )
    bits: int = quantity(
        'significant bits of 16-bit images, from 9 on; 0: as many as the largest value needs',
        at_least=0,
        at_most=16,
        default=0,
    )
    frame_id: str = quantity(
        'frame of the poses in the rig, without frame_prefix', '', default='world'
    )
    timeout: float = quantity(
        "lag of one camera's images behind the other's after which images are processed alone",
        's',
        at_least=0.0,
        at_most=1e3,
        default=TIMEOUT,
    )
    latency: float = quantity(
        'time from the stamp of an image to its results above which diagnostics warn; longer than'
        ' a minute counts as stamps of another clock',
        's',
        above=0.0,
        at_most=1e3,
        default=1.0,
        read_only=False,
    )
    lossless: bool = quantity(
        'subscribe to images reliably and publish latched results, for recordings and simulations;'
        ' requires reliable publishers',
        default=False,
    )
    recorders: int = quantity(
        'number of subscribers of observations and markers before images are subscribed to',
        at_least=0,
        default=0,
    )
    start_timeout: float = quantity(
        'longest wait for these subscribers', 's', at_least=0.0, at_most=1e4, default=10.0
    )
    publish_tf: bool = quantity(
        'publish transforms of cameras, of markers that are TRACKED, and of bodies, if tf2_msgs is'
        ' installed',
        default=True,
    )
    overlay_rate: float = quantity(
        'rate of overlays, and half the rate of RViz markers, if subscribed to; 0: none',
        'Hz',
        at_least=0.0,
        at_most=1e3,
        default=5.0,
        read_only=False,
    )
    overlay_width: int = quantity(
        'width of the overlay of all cameras',
        'px',
        at_least=64,
        at_most=20_000,
        default=1280,
        read_only=False,
    )

    def check(self) -> None:
        """Raise InputError for an empty frame name."""
        super().check()
        if not self.frame_id.strip('/ '):
            raise InputError(f'frame_id = {self.frame_id!r}, allowed: the name of a frame')

    @property
    def tracking(self) -> TrackingParameters:
        """The parameters of the tracking, in pixels of the cameras' full resolution."""
        names = (field.name for field in dataclasses.fields(TrackingParameters))
        return TrackingParameters(**{name: getattr(self, name) for name in names})


def tracking_of_rig(settings: TrackerParameters) -> dict[str, Any]:
    """Return the parameters of the tracking in the rig file, by name."""
    return dataclasses.asdict(load_rig(settings.rig).tracking)
