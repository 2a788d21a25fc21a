"""Parameters of the nodes; what several nodes have is declared once."""

from __future__ import annotations

import dataclasses
import shlex
from typing import Any

from longreach_dynamics.errors import InputError, check_one
from longreach_dynamics.parameters import choice, quantity
from longreach_markers import TrackingParameters, check_cameras, load_rig
from longreach_node.frames import FrameParameters


def _count(meaning: str, unit: str = '1', **rule: Any) -> Any:
    """Declare a whole number of 0 or more, by default 0."""
    return quantity(meaning, unit, at_least=0, default=0, **rule)


def _seconds(meaning: str, default: float, **rule: Any) -> Any:
    return quantity(meaning, 's', at_least=0.0, default=default, **rule)


@dataclasses.dataclass(frozen=True, kw_only=True)
class StartParameters(FrameParameters):
    """Parameters of every node."""

    start_timeout: float = _seconds('longest wait for subscribers', 10.0, at_most=1e4)


@dataclasses.dataclass(frozen=True, kw_only=True)
class RigParameters(StartParameters):
    """Parameters of every node that reads a rig."""

    rig: str = quantity('rig file: cameras, plane, markers', '')
    scale: float = quantity(
        'image size relative to the cameras', above=0.0, at_most=1.0, default=1.0
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class ImageParameters(StartParameters):
    """Parameters of every node that publishes images."""

    jpeg_quality: int = quantity(
        'quality of image_raw/compressed, which is published while it has subscribers',
        at_least=1,
        at_most=100,
        default=95,
    )
    listeners: int = _count(
        'number of subscribers of images of each camera for which file or marker_truth wait'
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class CameraNodeParameters(RigParameters, ImageParameters):
    """Parameters of the camera node."""

    look: str = quantity('look file; empty for the installed one', '', default='')
    frame_rate: float = quantity(
        'images of each camera per second of simulation time',
        'Hz',
        at_least=1e-6,
        at_most=1e3,
        default=15.0,
    )
    skew: float = _seconds('delay of all cameras but the first', 0.0, at_most=1e6)
    real_time_factor: float = quantity(
        'simulation time over real time; 0: as fast as possible, where no image is late',
        at_least=0.0,
        at_most=1e4,
        default=1.0,
    )
    lossless: bool = quantity(
        'publish an image only when reliable listeners have the previous one', default=False
    )
    duration: float = _seconds('time of marker_truth after which the node ends; 0: never', 0.0)


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrackerParameters(RigParameters, TrackingParameters):
    """Parameters of the tracker node; those of the tracking are the rig's unless given."""

    transport: str = choice(
        'images that are subscribed to: CAMERA/image_raw, or CAMERA/image_raw/compressed',
        ('raw', 'compressed'),
        default='raw',
    )
    frame_id: str = quantity(
        'frame of the poses in the rig, without frame_prefix', '', default='world'
    )
    timeout: float = _seconds(
        "lag of one camera's images behind the other's after which images are processed alone",
        0.5,
        at_most=1e3,
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
    recorders: int = _count(
        'number of subscribers of observations and markers before images are subscribed to'
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
        _check_frame(self.frame_id)

    @property
    def tracking(self) -> TrackingParameters:
        """The parameters of the tracking, in pixels of the cameras' full resolution."""
        names = (field.name for field in dataclasses.fields(TrackingParameters))
        return TrackingParameters(**{name: getattr(self, name) for name in names})


@dataclasses.dataclass(frozen=True, kw_only=True)
class SimulatedParameters(CameraNodeParameters, TrackerParameters):
    """Parameters of simulated cameras and tracker in one node."""


def _check_frame(name: str) -> None:
    if not name.strip('/ '):
        raise InputError(f'frame_id = {name!r}, allowed: the name of a frame')


def tracking_of_rig(settings: TrackerParameters) -> dict[str, Any]:
    """Return the parameters of the tracking in the rig file, by name."""
    return dataclasses.asdict(load_rig(settings.rig).tracking)


@dataclasses.dataclass(frozen=True)
class VideoNodeParameters(ImageParameters):
    """Parameters of the video node."""

    source: str = quantity(
        "camera (/dev/video0, or its number as a text: '0'), address of a stream, video file,"
        ' picture, folder, or pattern of pictures',
        default='',
    )
    camera: str = quantity(
        'calibration file; empty for none: camera_info then has the size only', '', default=''
    )
    frame_id: str = quantity('optical frame of the camera', '', default='camera_optical')
    encoding: str = choice('encoding of the images', ('mono8', 'bgr8'), default='mono8')
    frame_rate: float = quantity(
        "images per second; 0 for the source's own", 'Hz', at_least=0.0, at_most=1e4, default=0.0
    )
    pace: str = choice(
        'timing of a file: its own times, or each image as soon as the reliable listeners have the'
        ' previous one',
        ('real_time', 'delivered'),
        default='real_time',
    )
    stamps: str = choice(
        'stamps of a file: from now on, or its own times (else by numbers in names, or from 0),'
        ' for several synchronised cameras',
        ('now', 'source'),
        default='now',
    )
    width: int = _count(
        "requested image width of a camera; 0 for that of the calibration, or the camera's"
        ' default',
        unit='px',
        at_most=100_000,
    )
    height: int = _count('requested image height, likewise', unit='px', at_most=100_000)
    exposure: float = _seconds('exposure time of a camera; 0: automatic', 0.0, at_most=10.0)
    pixel_format: str = quantity(
        "four letters such as GREY, YUYV, MJPG; empty for the camera's default", '', default=''
    )
    focus: float = quantity(
        'position of the lens of a camera in units of the driver, without autofocus; -1: as it is',
        at_least=-1.0,
        at_most=1e6,
        default=-1.0,
    )
    focus_lock: bool = quantity(
        'switch the autofocus of a camera off, and leave its lens where it is', default=False
    )
    reconnect: float = _seconds(
        'time during which connecting to a lost camera is retried, after which the node ends',
        1e6,
        at_most=1e6,
    )
    sources: str = quantity(
        "instead of source: those of several cameras by name, 'left=a.avi top=b.avi', with topics"
        ' and frames below their names',
        default='',
    )
    calibrations: str = quantity('calibration files of sources, likewise', default='')

    def cameras(self) -> dict[str, VideoNodeParameters]:
        """Return the parameters of each camera by its name; that of a single source is empty."""
        if not self.sources:
            return {'': self}
        sources, calibrations = _by_name(self.sources), _by_name(self.calibrations)
        return {
            name: dataclasses.replace(
                self,
                source=source,
                sources='',
                camera=calibrations.get(name, ''),
                calibrations='',
                frame_id=f'{name}_camera_optical',
            )
            for name, source in sources.items()
        }

    def check(self) -> None:
        """Raise InputError for an empty frame name, and sources that are not allowed."""
        super().check()
        check_one(source=self.source, sources=self.sources)
        sources = _by_name(self.sources)
        if sources:
            check_cameras([*sources])
        for name in _by_name(self.calibrations):
            if name not in sources:
                raise InputError(
                    f'calibrations has {name}, allowed: the cameras of sources,'
                    f' {", ".join(sources) or "none"}'
                )
        _check_frame(self.frame_id)


def _by_name(text: str) -> dict[str, str]:
    """Return the values of a text of NAME=VALUE, which are separated by spaces."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise InputError(f'{text!r}: {error}, allowed: quotes in pairs') from error
    found: dict[str, str] = {}
    for word in words:
        name, _, value = word.partition('=')
        if not value or name in found:
            raise InputError(
                f'{word!r}, allowed: CAMERA=FILE such as left=left.avi, each camera once'
            )
        found[name] = value
    return found
