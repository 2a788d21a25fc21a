"""
Compressed pictures: JPEG, PNG and others as arrays, and back.

Formats of messages are those of image_transport: ``mono8; jpeg compressed mono8``.
"""

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import Iterator

import cv2
import numpy as np

from longreach_dynamics.errors import InputError
from longreach_markers.io.images import BitDepth, ImageFields, gray_of, to_gray

PICTURES = ('.bmp', '.jpeg', '.jpg', '.pbm', '.pgm', '.png', '.ppm', '.tif', '.tiff', '.webp')
"""Names of files of pictures in formats that all builds of OpenCV read."""

# Markers in a JPEG file, without stuffed and fill bytes.
_MARK = re.compile(rb'\xff[^\x00\xff\xd0-\xd7]')

# Levels of OpenCV's messages before they were suppressed, one for each thread that does so.
_levels: list[int] = []
_lock = threading.Lock()


def decoded_picture(data: bytes, name: str) -> np.ndarray:
    """Decode a picture, ignoring EXIF rotation."""
    # OpenCV fills missing parts of a JPEG with grey silently.
    if data.startswith(b'\xff\xd8') and not _is_whole_jpeg(data):
        raise InputError(f'{name} is truncated after {len(data)} bytes; copy or record it again')
    flags = cv2.IMREAD_UNCHANGED | cv2.IMREAD_IGNORE_ORIENTATION
    image: np.ndarray | None = None
    with silence(), contextlib.suppress(cv2.error):
        image = cv2.imdecode(np.frombuffer(data, np.uint8), flags)
    if image is None:
        raise InputError(
            f'{name} cannot be read as a picture, allowed: {" ".join(PICTURES)}, whole; if it'
            ' is damaged, copy or record it again'
        )
    return image


def gray_of_compressed(form: str, data: bytes, bits: int | BitDepth = 16) -> np.ndarray:
    """Decode the picture of a sensor_msgs/CompressedImage to grey levels."""
    raw, _, packed = (part.strip() for part in form.partition(';'))
    if 'compressedDepth' in packed:
        raise InputError(
            f'format = {form!r}, allowed: jpeg or png, as of the transport compressed; depth'
            ' images show no markers'
        )
    image = decoded_picture(data, 'image')
    if raw.startswith('bayer') and image.ndim == 2 and not packed.endswith(('mono8', 'mono16')):
        height, width = image.shape
        mosaic = np.ascontiguousarray(image)
        fields = ImageFields(height, width, raw, False, width * image.itemsize, mosaic.data)
        return to_gray(fields, bits)
    return gray_of(image, bits)


def jpeg_of(image: np.ndarray, quality: int) -> bytes:
    """Encode a picture as JPEG."""
    good, data = cv2.imencode('.jpg', image, [cv2.IMWRITE_JPEG_QUALITY, quality])
    assert good
    return bytes(data)


def _is_whole_jpeg(data: bytes) -> bool:
    """Return whether a JPEG is complete, by its markers: thumbnails have ends of their own."""
    at = 2
    while mark := _MARK.search(data, at):
        at = mark.end()
        kind = data[at - 1]
        if kind == 0xD9:
            return True
        if kind not in (0x01, 0xD8):
            at += int.from_bytes(data[at : at + 2], 'big')
    return False


@contextlib.contextmanager
def silence() -> Iterator[None]:
    """Suppress OpenCV's messages on stderr, which the errors raised here replace."""
    # The level is that of the process: the last thread sets it back.
    with _lock:
        if not _levels:
            _levels.append(cv2.utils.logging.getLogLevel())
            cv2.utils.logging.setLogLevel(cv2.utils.logging.LOG_LEVEL_SILENT)
        else:
            _levels.append(_levels[0])
    try:
        yield
    finally:
        with _lock:
            level = _levels.pop()
            if not _levels:
                cv2.utils.logging.setLogLevel(level)
