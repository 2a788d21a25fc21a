"""Pictures of cameras as a page shows them."""

from __future__ import annotations

from typing import Any

import numpy as np

_CHANNELS = {'mono8': 1, '8UC1': 1, 'bgr8': 3, 'rgb8': 3, '8UC3': 3}
_WIDEST = 960


def array_of(message: Any) -> np.ndarray | None:
    """
    Return an image message as red, green, blue (height, width, 3), wide ones with fewer pixels.

    None for an encoding that is not of 8 bits grey or colour, and for data of another size.
    """
    channels = _CHANNELS.get(message.encoding)
    height, width, step = int(message.height), int(message.width), int(message.step)
    if channels is None or step < width * channels or len(message.data) < height * step:
        return None
    data = np.frombuffer(message.data, np.uint8, height * step).reshape(height, step)
    image = data[:, : width * channels].reshape(height, width, channels)
    every = max(1, -(-width // _WIDEST))
    image = image[::every, ::every]
    if message.encoding in ('bgr8', '8UC3'):
        image = image[..., ::-1]
    return np.ascontiguousarray(np.broadcast_to(image, (*image.shape[:2], 3)))
