"""
Sources of images: cameras, streams, video files, pictures in folders.

A source yields frames one by one, in grey or BGR, all of one size.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path

from longreach_dynamics.errors import InputError
from longreach_markers.io.camera_images import CameraSource, CaptureOptions
from longreach_markers.io.source_base import ImageSource
from longreach_markers.io.stored_images import natural_order, stored_source


def open_source(
    spec: str | int,
    *,
    color: bool = False,
    capture: CaptureOptions | None = None,
    clock: Callable[[], int] = time.time_ns,
) -> ImageSource:
    """
    Open a source of images.

    Parameters
    ----------
    spec : str or int
        Camera (0, /dev/video0), address of a stream, video, picture, folder, or pattern of
        pictures (``*``, ``?``).
    color : bool
        Frames in BGR instead of grey.
    capture : CaptureOptions, optional
        Settings of a camera.
    clock : callable
        Time of the frames of a camera [ns].

    Raises
    ------
    InputError
        For what does not exist or cannot be read, and settings that a camera does not have.
    LongreachError
        For a camera or stream that cannot be opened.
    """
    text = str(spec).strip()
    if is_live(text):
        device = int(text) if text.isdecimal() else text
        # The part of an address before @ may contain a password.
        name = re.sub('//[^/@]*@', '//', text)
        if '://' not in text:
            _check_device(device)
            name = f'camera {device}'
        return CameraSource(device, name, capture or CaptureOptions(), clock, color)
    if not text:
        raise InputError("source = '', allowed: a camera, address, file, folder or pattern")
    try:
        return stored_source(text, color)
    except InputError:
        raise
    except (OSError, RuntimeError, ValueError) as error:
        # Unknown user, name too long, invalid pattern, folder without permission.
        reason = getattr(error, 'strerror', None) or error
        raise InputError(
            f'{text} cannot be read: {reason}; allowed: a camera, address, file, folder or pattern'
        ) from error


def is_live(spec: str) -> bool:
    """Return whether a source is a camera or a stream, and no file."""
    is_address = '://' in spec and not spec.startswith('file://')
    return spec.isdecimal() or spec.startswith('/dev/video') or is_address


def _check_device(device: int | str) -> None:
    path = Path(f'/dev/video{device}' if isinstance(device, int) else device)
    if not path.exists():
        there = ' '.join(map(str, sorted(Path('/dev').glob('video*'), key=natural_order)))
        raise InputError(f'camera {device}: there is no {path}, found: {there or "no camera"}')
