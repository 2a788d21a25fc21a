"""
Conversion of images between ROS messages, JPEG or PNG, and arrays.

A message contains ``height`` rows of ``step`` bytes, including padding, values of more than a byte
in either byte order, and one of many encodings (sensor_msgs/image_encodings). Arrays are
[row, column] or [row, column, channel], contiguous, in native byte order.

Grey levels of colour images are those of OpenCV: 0.299 R + 0.587 G + 0.114 B; of a Bayer mosaic,
after bilinear interpolation. Of 16-bit values, the lower ``bits`` are significant, for cameras of
10 or 12 bits that send 16 (:class:`BitDepth`): value * 255 / (2^bits - 1), rounded and limited to
255. For 16 bits this is equal to the conversion of cv_bridge.

Formats of compressed messages are those of image_transport: ``mono8; jpeg compressed mono8``.
"""

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import Iterator
from typing import Any, NamedTuple

import cv2
import numpy as np

from longreach_dynamics.errors import InputError, check_among


class ImageFields(NamedTuple):
    """The fields of a sensor_msgs/Image that define its picture."""

    height: int  # rows
    width: int  # columns
    encoding: str
    is_bigendian: bool
    step: int  # bytes from one row to the next
    data: Any  # step * height bytes, any object with a buffer


class BitDepth:
    """
    Significant bits of the 16-bit images of one camera.

    Parameters
    ----------
    given : int
        9 to 16; 0: 10, 12, 14 or 16, the least that holds the largest value so far. Brighter
        images change the scale of the grey levels at most twice or three times.

    Raises
    ------
    InputError
        For another number.
    """

    def __init__(self, given: int = 0) -> None:
        if given != 0 and not 9 <= given <= 16:
            raise InputError(f'bits = {given}, allowed: [9, 16], or 0: as the largest value needs')
        self._given = given
        self._found = 0

    def of(self, array: np.ndarray) -> int:
        """Return the significant bits of an array of uint16."""
        if self._given:
            return self._given
        largest = int(array.max())
        self._found = max(self._found, next(bits for bits in _DEPTHS if largest < 2**bits))
        return self._found

    @property
    def note(self) -> str:
        """What was found, if it is not 16 bits; empty otherwise."""
        if self._found in (0, 16):
            return ''
        return f'16-bit images are scaled as of {self._found} bits, which hold all values so far'


class _Format(NamedTuple):
    """Storage format of a pixel."""

    dtype: str
    channels: int
    order: str


# Significant bits of cameras that send 16.
_DEPTHS = (10, 12, 14, 16)
_MOSAICS = ('rggb', 'bggr', 'gbrg', 'grbg')


def _formats() -> dict[str, _Format]:
    formats = {
        'mono8': _Format('u1', 1, 'gray'),
        'mono16': _Format('u2', 1, 'gray'),
        '8UC1': _Format('u1', 1, 'gray'),
        '16UC1': _Format('u2', 1, 'gray'),
        # Generic channels: assume the order of OpenCV.
        '8UC3': _Format('u1', 3, 'bgr'),
        '16UC3': _Format('u2', 3, 'bgr'),
        '8UC4': _Format('u1', 4, 'bgra'),
        '16UC4': _Format('u2', 4, 'bgra'),
        # The first two are obsolete names.
        'yuv422': _Format('u1', 2, 'uyvy'),
        'yuv422_yuy2': _Format('u1', 2, 'yuyv'),
        'uyvy': _Format('u1', 2, 'uyvy'),
        'yuyv': _Format('u1', 2, 'yuyv'),
    }
    for bits, dtype in ((8, 'u1'), (16, 'u2')):
        for order in ('bgr', 'rgb', 'bgra', 'rgba'):
            formats[f'{order}{bits}'] = _Format(dtype, len(order), order)
        for order in _MOSAICS:
            formats[f'bayer_{order}{bits}'] = _Format(dtype, 1, order)
    return formats


_FORMATS = _formats()
ENCODINGS = tuple(_FORMATS)

_TO_GRAY = {
    'bgr': cv2.COLOR_BGR2GRAY,
    'rgb': cv2.COLOR_RGB2GRAY,
    'bgra': cv2.COLOR_BGRA2GRAY,
    'rgba': cv2.COLOR_RGBA2GRAY,
    'rggb': cv2.COLOR_BayerRGGB2GRAY,
    'bggr': cv2.COLOR_BayerBGGR2GRAY,
    'gbrg': cv2.COLOR_BayerGBRG2GRAY,
    'grbg': cv2.COLOR_BayerGRBG2GRAY,
    'uyvy': cv2.COLOR_YUV2GRAY_UYVY,
    'yuyv': cv2.COLOR_YUV2GRAY_YUYV,
}
_TO_BGR = {'gray': cv2.COLOR_GRAY2BGR, 'bgra': cv2.COLOR_BGRA2BGR}


def to_array(fields: ImageFields) -> np.ndarray:
    """Return the values of an image as they were sent."""
    form = _checked_format(fields)
    dtype = np.dtype(form.dtype).newbyteorder('>' if fields.is_bigendian else '<')
    view: np.ndarray = np.ndarray(
        (fields.height, fields.width, form.channels),
        dtype,
        buffer=memoryview(fields.data).cast('B'),
        strides=(fields.step, form.channels * dtype.itemsize, dtype.itemsize),
    )
    if form.channels == 1:
        view = view[..., 0]
    return np.ascontiguousarray(view, dtype.newbyteorder('='))


def _checked_format(fields: ImageFields) -> _Format:
    check_among('encoding', fields.encoding, ENCODINGS)
    form = _FORMATS[fields.encoding]
    height, width = fields.height, fields.width
    if height < 1 or width < 1:
        raise InputError(
            f'image of {width} x {height} px is empty, allowed: at least 1 x 1; check the camera'
        )
    if form.order in ('uyvy', 'yuyv') and width % 2:
        raise InputError(f'width = {width} px, allowed for {fields.encoding}: even numbers')
    # Bilinear interpolation needs at least 3 x 3 pixels.
    if form.order in _MOSAICS and min(height, width) < 3:
        raise InputError(
            f'image of {width} x {height} px, allowed for {fields.encoding}: at least 3 x 3'
        )
    row = width * form.channels * np.dtype(form.dtype).itemsize
    if fields.step < row:
        raise InputError(
            f'step = {fields.step}, allowed for {width} px in {fields.encoding}: at least {row};'
            ' encoding or width does not match the data'
        )
    size = memoryview(fields.data).nbytes
    if size < fields.step * height:
        raise InputError(
            f'image has {size} bytes of data, allowed for {height} rows of {fields.step} bytes:'
            f' {fields.step * height}; the message is truncated'
        )
    return form


def to_gray(fields: ImageFields, bits: int | BitDepth = 16) -> np.ndarray:
    """Convert an image to grey levels."""
    return _gray(to_array(fields), _FORMATS[fields.encoding].order, bits)


def gray_of(array: np.ndarray, bits: int | BitDepth = 16) -> np.ndarray:
    """Convert a picture read by OpenCV to grey levels (height, width), uint8."""
    return _gray(array, _order_of(array), bits)


def bgr_of(array: np.ndarray, bits: int | BitDepth = 16) -> np.ndarray:
    """Convert a picture read by OpenCV to blue, green, red (height, width, 3), uint8."""
    order = _order_of(array)
    return _eight_bits(array if order == 'bgr' else cv2.cvtColor(array, _TO_BGR[order]), bits)


def _order_of(array: np.ndarray) -> str:
    orders = {2: {0: 'gray'}, 3: {3: 'bgr', 4: 'bgra'}}
    channels = array.shape[2] if array.ndim == 3 else 0
    order = orders.get(array.ndim, {}).get(channels)
    if order is None or array.size == 0 or array.dtype not in (np.uint8, np.uint16):
        raise InputError(
            f'picture is an array of {array.dtype} of shape {array.shape}, allowed: uint8 | uint16'
            ' of shape (rows, columns), with 3 or 4 channels or none'
        )
    return order


def _gray(array: np.ndarray, order: str, bits: int | BitDepth) -> np.ndarray:
    """Convert an array with a given channel order to grey levels."""
    if order != 'gray':
        array = cv2.cvtColor(array, _TO_GRAY[order])
    return _eight_bits(array, bits)


def _eight_bits(array: np.ndarray, bits: int | BitDepth) -> np.ndarray:
    depth = bits if isinstance(bits, BitDepth) else BitDepth(bits or -1)
    if array.dtype == np.uint8:
        return np.ascontiguousarray(array)
    scaled: np.ndarray = cv2.convertScaleAbs(array, alpha=255.0 / (2 ** depth.of(array) - 1))
    return scaled


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


def image_to_gray(message: Any, bits: int | BitDepth = 16) -> np.ndarray:
    """Return a sensor_msgs Image or CompressedImage, of any library, in grey levels."""
    if hasattr(message, 'format'):
        return gray_of_compressed(message.format, bytes(message.data), bits)
    return to_gray(message, bits)


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
