"""
Cameras that track circular markers over ROS: nodes, commands, bags and simulated cameras.

The tracking is in :mod:`longreach_markers`. :func:`track` tracks the markers in files and bags.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from longreach_markers import Rig, RigFrame

__all__ = ['track']


def track(
    rig: Rig | str | Path, *sources: str | Path, rate: float | None = None
) -> Iterator[RigFrame]:
    """
    Yield the positions of the markers in each set of images, as ``longreach vision track``.

    :func:`longreach_markers.track`, with its parameters, warnings and errors, and besides for a
    bag of images as the only source, with topics ``/vision/CAMERA/image_raw``.
    """
    # Imported here: modules of this package need little of this.
    import longreach_markers
    from longreach_markers import Follower, Rig, follow, load_rig
    from longreach_vision.io.bag_files import BagImages, is_bag

    if len(sources) != 1 or rate is not None or not is_bag(Path(sources[0])):
        yield from longreach_markers.track(rig, *sources, rate=rate)
        return
    known = rig if isinstance(rig, Rig) else load_rig(rig)
    topics = {name: f'/vision/{name}/image_raw' for name in known.cameras}
    recorded = BagImages(sources[0], topics)
    follower = Follower(known)
    for one in follow(follower, iter(recorded)):
        yield one.frame
    for note in (*follower.notes, *recorded.notes):
        warnings.warn(note, stacklevel=2)
