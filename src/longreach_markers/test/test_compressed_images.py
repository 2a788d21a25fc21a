"""Compressed images: decoded as raw ones, and refused if they are damaged."""

import cv2
import numpy as np
import pytest

from longreach_dynamics.errors import InputError
from longreach_markers.io.compressed_images import gray_of_compressed, jpeg_of
from longreach_markers.io.images import ImageFields, to_gray

RNG = np.random.default_rng(4)


def smooth(*shape):
    """Return an image that JPEG changes little."""
    image = cv2.GaussianBlur(RNG.integers(0, 256, shape).astype(np.float32), (0, 0), 6.0)
    low, high = image.min(), image.max()
    return ((image - low) / (high - low) * 255.0).astype(np.uint8)


def png_of(image):
    return bytes(cv2.imencode('.png', image)[1])


@pytest.mark.parametrize('form', ['mono8; jpeg compressed mono8', 'jpeg', ''])
def test_grey_there_and_back(form):
    image = smooth(40, 60)
    found = gray_of_compressed(form, jpeg_of(image, 98))
    assert (found.shape, found.dtype) == (image.shape, np.uint8)
    assert np.abs(found.astype(int) - image).max() <= 4


def test_sixteen_bits_are_scaled_as_raw_images_are():
    image = RNG.integers(0, 4096, (40, 60), dtype=np.uint16)
    raw = to_gray(ImageFields(40, 60, 'mono16', False, 120, image.data), 12)
    np.testing.assert_array_equal(
        gray_of_compressed('mono16; png compressed ', png_of(image), 12), raw
    )


def test_a_bayer_pattern_is_converted():
    image = RNG.integers(0, 256, (40, 60), dtype=np.uint8)
    raw = to_gray(ImageFields(40, 60, 'bayer_rggb8', False, 60, image.data))
    found = gray_of_compressed('bayer_rggb8; png compressed ', png_of(image))
    np.testing.assert_array_equal(found, raw)
    # Where the publisher has converted it, the picture is grey already.
    found = gray_of_compressed('bayer_rggb8; png compressed mono8', png_of(image))
    np.testing.assert_array_equal(found, image)


def test_depth_images_are_refused():
    with pytest.raises(InputError, match="'16UC1; compressedDepth png', allowed: jpeg"):
        gray_of_compressed('16UC1; compressedDepth png', b'')
