"""
Images as ROS messages carry them, and as arrays.

A message has height rows of ``step`` bytes, of which those beyond the width are padding, numbers
of more than a byte in either order, and one of many encodings (sensor_msgs/image_encodings).
Arrays are [row, column] or [row, column, channel], in one piece, numbers in this machine's order.

Grey is what OpenCV makes of colours: 0.299 R + 0.587 G + 0.114 B; of a Bayer mosaic after bilinear
interpolation. Of 16 bits, the ``bits`` lower ones count, for cameras of 10 or 12 bits that send
16: value * 255 / (2^bits - 1), rounded, and 255 for what is more. With 16 bits this is what
cv_bridge does, too.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
from typing import Any, NamedTuple

import cv2
import numpy as np

from longreach_dynamics.errors import InputError

__all__ = [
    'ENCODINGS',
    'ImageFields',
    'bgr_of',
    'gray_of',
    'keep_freed_memory',
    'to_array',
    'to_bgr',
    'to_gray',
    'to_message_fields',
]


class ImageFields(NamedTuple):
    """The fields of a sensor_msgs/Image that its picture is in."""

    height: int  # rows
    width: int  # columns
    encoding: str
    is_bigendian: bool
    step: int  # bytes from one row to the next
    data: Any  # step * height bytes, anything with a buffer


class _Format(NamedTuple):
    """How one pixel is stored."""

    dtype: str
    channels: int
    order: str


_MOSAICS = ('rggb', 'bggr', 'gbrg', 'grbg')


def _formats() -> dict[str, _Format]:
    """Return the formats by the names of encodings."""
    formats = {
        'mono8': _Format('u1', 1, 'gray'),
        'mono16': _Format('u2', 1, 'gray'),
        '8UC1': _Format('u1', 1, 'gray'),
        '16UC1': _Format('u2', 1, 'gray'),
        # Channels without a meaning: OpenCV's order is the usual one.
        '8UC3': _Format('u1', 3, 'bgr'),
        '16UC3': _Format('u2', 3, 'bgr'),
        '8UC4': _Format('u1', 4, 'bgra'),
        '16UC4': _Format('u2', 4, 'bgra'),
        # The first two are names of old.
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
_TO_BGR = {
    'gray': cv2.COLOR_GRAY2BGR,
    'rgb': cv2.COLOR_RGB2BGR,
    'bgra': cv2.COLOR_BGRA2BGR,
    'rgba': cv2.COLOR_RGBA2BGR,
    'rggb': cv2.COLOR_BayerRGGB2BGR,
    'bggr': cv2.COLOR_BayerBGGR2BGR,
    'gbrg': cv2.COLOR_BayerGBRG2BGR,
    'grbg': cv2.COLOR_BayerGRBG2BGR,
    'uyvy': cv2.COLOR_YUV2BGR_UYVY,
    'yuyv': cv2.COLOR_YUV2BGR_YUYV,
}

# Numbers of glibc's mallopt.
_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_THRESHOLD = -1, -2, -3
# [bytes]. The second is the most that glibc takes for blocks.
_KEPT, _LARGEST_BLOCK = 256 << 20, 32 << 20


def to_array(fields: ImageFields) -> np.ndarray:
    """
    Return the numbers of an image as they were sent.

    Parameters
    ----------
    fields : ImageFields

    Returns
    -------
    ndarray, shape (height, width) or (height, width, channels), uint8 or uint16
        A view of the data, without a copy, when nothing had to be left out or turned around. Where
        the data can be written to, so can the view.

    Raises
    ------
    InputError
        For an unknown encoding, an empty image, rows or data that are too short.
    """
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
    """Return the format of an image, or raise InputError when its fields contradict it."""
    form = _format(fields.encoding)
    height, width = fields.height, fields.width
    if height < 1 or width < 1:
        raise InputError(
            f'image of {width} x {height} px is empty, allowed: at least 1 x 1; does the camera'
            ' deliver?'
        )
    if form.order in ('uyvy', 'yuyv') and width % 2:
        raise InputError(f'width = {width} px, allowed for {fields.encoding}: even numbers')
    # Interpolation has nothing to begin with in less.
    if form.order in _MOSAICS and min(height, width) < 3:
        raise InputError(
            f'image of {width} x {height} px, allowed for {fields.encoding}: at least 3 x 3'
        )
    row = width * form.channels * np.dtype(form.dtype).itemsize
    if fields.step < row:
        raise InputError(
            f'step = {fields.step}, allowed for {width} px in {fields.encoding}: at least {row};'
            ' encoding or width is not that of the data'
        )
    size = memoryview(fields.data).nbytes
    if size < fields.step * height:
        raise InputError(
            f'image has {size} bytes of data, allowed for {height} rows of {fields.step} bytes:'
            f' {fields.step * height}; it was cut off on its way'
        )
    return form


def _format(encoding: str) -> _Format:
    """Return the format of an encoding."""
    if encoding not in _FORMATS:
        raise InputError(f'encoding = {encoding!r}, allowed: {" | ".join(ENCODINGS)}')
    return _FORMATS[encoding]


def to_gray(fields: ImageFields, bits: int = 16) -> np.ndarray:
    """
    Return an image in grey.

    Parameters
    ----------
    fields : ImageFields
    bits : int
        That count in numbers of 16 bits, 9 to 16.

    Returns
    -------
    ndarray, shape (height, width), uint8
        For mono8 and 8UC1 without padding a view, as of :func:`to_array`.

    Raises
    ------
    InputError
        As :func:`to_array`, and for other ``bits``.
    """
    return _gray(to_array(fields), _format(fields.encoding).order, bits)


def to_bgr(fields: ImageFields, bits: int = 16) -> np.ndarray:
    """
    Return an image in blue, green, red, shape (height, width, 3), uint8.

    Parameters and errors are those of :func:`to_gray`. What the image tells about opacity is left
    out.
    """
    return _bgr(to_array(fields), _format(fields.encoding).order, bits)


def gray_of(array: np.ndarray, bits: int = 16) -> np.ndarray:
    """
    Return a picture as OpenCV reads it in grey.

    Parameters
    ----------
    array : ndarray, shape (h, w), (h, w, 3) or (h, w, 4), uint8 or uint16
        Grey, blue green red, or these with opacity.
    bits : int
        As in :func:`to_gray`.

    Returns
    -------
    ndarray, shape (h, w), uint8
        The same array where nothing is to be done.

    Raises
    ------
    InputError
        For another shape or type, or other ``bits``.
    """
    return _gray(array, _order_of(array), bits)


def bgr_of(array: np.ndarray, bits: int = 16) -> np.ndarray:
    """
    Return a picture as OpenCV reads it in blue, green, red, shape (h, w, 3), uint8.

    Parameters and errors are those of :func:`gray_of`.
    """
    return _bgr(array, _order_of(array), bits)


def _order_of(array: np.ndarray) -> str:
    """Return what the channels of a picture are."""
    orders = {2: {0: 'gray'}, 3: {3: 'bgr', 4: 'bgra'}}
    channels = array.shape[2] if array.ndim == 3 else 0
    order = orders.get(array.ndim, {}).get(channels)
    if order is None or array.size == 0 or array.dtype not in (np.uint8, np.uint16):
        raise InputError(
            f'picture is an array of {array.dtype} of shape {array.shape}, allowed: uint8 | uint16'
            ' of shape (rows, columns), with 3 or 4 channels or none'
        )
    return order


def _gray(array: np.ndarray, order: str, bits: int) -> np.ndarray:
    """Return numbers of some order in grey."""
    if order != 'gray':
        array = cv2.cvtColor(array, _TO_GRAY[order])
    return _eight_bits(array, bits)


def _bgr(array: np.ndarray, order: str, bits: int) -> np.ndarray:
    """Return numbers of some order in blue, green, red."""
    if order != 'bgr':
        array = cv2.cvtColor(array, _TO_BGR[order])
    return _eight_bits(array, bits)


def _eight_bits(array: np.ndarray, bits: int) -> np.ndarray:
    """Return numbers in 8 bits."""
    if not 9 <= bits <= 16:
        raise InputError(f'bits = {bits}, allowed: [9, 16]')
    if array.dtype == np.uint8:
        return np.ascontiguousarray(array)
    scaled: np.ndarray = cv2.convertScaleAbs(array, alpha=255.0 / (2**bits - 1))
    return scaled


def to_message_fields(array: np.ndarray, encoding: str) -> ImageFields:
    """
    Return an array as a message carries it: without padding, in this machine's order of bytes.

    Parameters
    ----------
    array : ndarray, shape (h, w) or (h, w, channels)
        Numbers in the type, and channels in the order, that the encoding says.
    encoding : str

    Returns
    -------
    ImageFields
        Its data is a view of the array where that is in one piece.

    Raises
    ------
    InputError
        For an unknown encoding, or an array that is not in it.
    """
    form = _format(encoding)
    dtype = np.dtype(form.dtype)
    channels = (form.channels,) if form.channels > 1 else ()
    fits = array.ndim >= 2 and array.shape[2:] == channels and array.size > 0
    if not fits or array.dtype.newbyteorder('=') != dtype:
        more = f', {form.channels}' if form.channels > 1 else ''
        raise InputError(
            f'image is an array of {array.dtype} of shape {array.shape}, allowed for {encoding}:'
            f' {dtype} of shape (rows, columns{more})'
        )
    whole = np.ascontiguousarray(array, dtype)
    height, width = array.shape[:2]
    step = width * form.channels * dtype.itemsize
    big = sys.byteorder == 'big'
    return ImageFields(height, width, encoding, big, step, whole.data.cast('B'))


def keep_freed_memory() -> None:
    """
    Let this process keep the memory of images that it has done with, 256 MB at most.

    glibc gives such large blocks back at once, and the next image of 5 MB begins with more than a
    thousand page faults: receiving one then takes three times as long. Without glibc, or with
    limits of its own in the environment (MALLOC_...), nothing happens.
    """
    if any(name.startswith('MALLOC_') for name in os.environ):
        return
    with contextlib.suppress(OSError, AttributeError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_M_MMAP_THRESHOLD, _LARGEST_BLOCK)
        mallopt(_M_TRIM_THRESHOLD, _KEPT)
        mallopt(_M_TOP_PAD, _LARGEST_BLOCK)
