"""
Cameras that track circular markers, Henikl et al. (2015), section 4.2.

:func:`track` tracks the markers in files; ``rig`` has cameras, plane, markers and numbers of the
tracker. Everything else is in subpackages:

``camera``      geometry: ``model`` (lens), ``geometry`` (poses, planes, rays), ``triangulation``,
                ``circles`` (their images), ``undistortion``, ``arrays`` (checks)
``marker``      one marker in one image: ``detection`` with ``limits``, ``edges``, ``ellipses``;
                its maximum-likelihood ``fit`` with ``pixel_model``, ``pixel_selection``,
                ``residuals``, ``shadows``, ``measurement``, ``symmetric``,
                ``products``
``tracking``    markers over time: ``camera_tracker`` with ``image_motion``, ``appearance``,
                ``association``, ``ring_names``; ``rig_tracker`` (positions in space), ``bodies``
                (rigid groups), ``follower`` (start and search), ``image_sets`` (images of equal
                times); ``track_table``, ``diagnostics``; ``sightings``, and what they tell of the
                cameras: ``clock_offset``, ``pose_agreement``, ``pair_fit``, ``camera_judge``
``setup``       ``marker_sheet``; ``checkerboards``, ``intrinsics``, ``calibration``; poses:
                ``reference_points``, ``localisation``, ``bundle_adjustment``,
                ``predicted_accuracy``, ``localisation_advice``; ``known_distance``
``simulator``   ``scene``, ``marker_path``, ``camera_simulator``, ``drawing_kernels``,
                ``sequences``, ``due_frames`` (of a camera node)
``io``          ``images`` (encodings), ``compressed_images``, ``image_sources``, ``pictures`` (in
                the order of time), ``bag_files``, ``overlay``, ``overlay_files``
``ros``         ``tracker_node`` with ``marker_tracker``, ``image_intake``, ``tracker_publishers``,
                ``tracker_parameters``; ``camera_node`` with ``simulated_view``,
                ``camera_parameters``; ``simulated_node``; ``video_node`` with ``video_feed``,
                ``video_parameters``; ``nodes``, ``image_publishers``, ``conversions``, ``remote``
``commands``    ``vision_commands`` with ``setup_commands``, ``rig_files``, ``detection_commands``,
                ``tracking_commands``, ``check_commands``,
                ``simulation_commands``, ``demo_commands``, ``remote_commands``; ``arguments``,
                ``track_output``, ``track_figures``, ``setup_figures``, ``preset_figures``
"""

from __future__ import annotations

import contextlib
import dataclasses
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from longreach_vision.rig import Rig
    from longreach_vision.tracking.rig_tracker import StereoFrame

__all__ = ['track']


def track(
    rig: Rig | str | Path, *sources: str | Path, rate: float | None = None, bits: int = 16
) -> Iterator[StereoFrame]:
    """
    Yield the positions of the markers in each image pair, as ``longreach vision track``.

    Parameters
    ----------
    rig : Rig or path
        Rig file, or a rig in the resolution of the images.
    *sources : path
        Video, folder or pattern of pictures of each camera, in the order of the rig; or a bag of
        images (topics ``/vision/CAMERA/image_raw``). With fewer sources than cameras the first
        cameras are used.
    rate : float, optional
        Images per second, instead of the times of the files [Hz].
    bits : int
        Significant bits of 16-bit images.

    Yields
    ------
    StereoFrame
        In the order of time; ``frame.estimates[NAME].in_plane.position`` is a position [m] if
        ``status`` is not LOST.

    Warns
    -----
    UserWarning
        For a codec that moves edges; at the end, for images that could not be read or used.

    Raises
    ------
    InputError
        For a rig or images that cannot be read, a wrong number of sources, and cameras.
    """
    # Imported here: modules of this package need little of this.
    from longreach_dynamics.errors import InputError
    from longreach_vision.io.bag_files import BagImages, is_bag
    from longreach_vision.io.image_sources import open_source
    from longreach_vision.io.pictures import pictures_of
    from longreach_vision.rig import Rig, load_rig
    from longreach_vision.tracking.follower import Follower, follow

    known = rig if isinstance(rig, Rig) else load_rig(rig)
    names = tuple(known.cameras)
    if len(sources) == 1 and is_bag(Path(sources[0])) and rate is None:
        topics = {name: f'/vision/{name}/image_raw' for name in names}
        recorded = BagImages(sources[0], topics, bits)
        follower = Follower(known)
        for one in follow(follower, iter(recorded)):
            yield one.frame
        for note in (*follower.notes, *recorded.notes):
            warnings.warn(note, stacklevel=2)
        return
    if not 1 <= len(sources) <= len(names):
        raise InputError(
            f'{len(sources)} sources, allowed: 1 to {len(names)}, for {", ".join(names)}'
        )
    used = dict(zip(names, sources, strict=False))
    known = dataclasses.replace(known, cameras={name: known.cameras[name] for name in used})
    with contextlib.ExitStack() as stack:
        opened = {
            name: stack.enter_context(open_source(str(place), bits=bits))
            for name, place in used.items()
        }
        for source in opened.values():
            if source.live:
                raise InputError(
                    f'{source.name} is a camera, allowed: files; for cameras use the nodes:'
                    ' longreach launch vision'
                )
            if source.lossy:
                warnings.warn(source.lossy, stacklevel=2)
        follower = Follower(known)
        for one in follow(follower, pictures_of(opened, rate)):
            yield one.frame
        for note in (*follower.notes, *(n for one in opened.values() for n in one.notes)):
            warnings.warn(note, stacklevel=2)
