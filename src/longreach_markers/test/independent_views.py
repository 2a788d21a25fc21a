"""Whole images of a rig's cameras by the renderer that shares no code with the library."""

import struct
from collections.abc import Callable

import cv2
import numpy as np
from independent_renderer import PinholeCamera, Scene, project, render_exact, window_of


def _element(kind, content):
    name = kind.to_bytes((kind.bit_length() + 7) // 8, 'big')
    return name + (len(content) | 1 << 56).to_bytes(8, 'big') + content


def _number(kind, value):
    return _element(kind, value.to_bytes(4, 'big'))


def write_matroska(file, pictures, times, duration):
    """Write pictures with times [ms], a cluster each, and a duration [ms]."""
    head = _element(
        0x1A45DFA3, _element(0x4282, b'matroska') + _number(0x4287, 4) + _number(0x4285, 2)
    )
    info = _element(
        0x1549A966, _number(0x2AD7B1, 1_000_000) + _element(0x4489, struct.pack('>d', duration))
    )
    height, width = pictures[0].shape[:2]
    track = _element(
        0xAE,
        _number(0xD7, 1)
        + _number(0x73C5, 1)
        + _number(0x83, 1)
        + _element(0x86, b'V_MJPEG')
        + _element(0xE0, _number(0xB0, width) + _number(0xBA, height)),
    )
    clusters = b''.join(
        _element(
            0x1F43B675,
            _number(0xE7, time)
            + _element(0xA3, b'\x81\x00\x00\x80' + cv2.imencode('.jpg', picture)[1].tobytes()),
        )
        for picture, time in zip(pictures, times, strict=True)
    )
    file.write_bytes(head + _element(0x18538067, info + _element(0x1654AE6B, track) + clusters))
    return file


BACKGROUND = 200.0
Motion = Callable[[float], np.ndarray]  # time [s] -> positions (n, 3) [m]


def pinhole(mounted):
    one = mounted.camera
    distortion = (*one.distortion, 0.0, 0.0, 0.0, 0.0, 0.0)[:5]
    return PinholeCamera(one.width, one.height, one.fx, one.fy, one.cx, one.cy, distortion)


def view(rig, side, motion, time=0.0, line_time=0.0):
    """
    Return the exact image of markers by one camera, (height, width) grey levels.

    With a line time [s], rows are exposed one after the other, the middle one at the time.
    """
    mounted = rig.cameras[side]
    camera = pinhole(mounted)
    image = np.full((camera.height, camera.width), BACKGROUND)
    for k, marker in enumerate(rig.markers):

        def seen(at, k=k):
            return project(camera, mounted.pose.to_camera(motion(at)[k]))

        at = time
        for _ in range(10):
            at = time + line_time * (seen(at)[1] - 0.5 * (camera.height - 1.0))
        speed = (seen(at + 1e-4) - seen(at - 1e-4)) / 2e-4
        center = mounted.pose.to_camera(motion(at)[k])
        u, v = project(camera, center)
        if not (0.0 < u < camera.width and 0.0 < v < camera.height):
            continue
        scene = Scene(
            camera=camera,
            center=tuple(center),
            normal=tuple(rig.normal_cam(side)),
            radius=marker.radius,
            inner=marker.inner,
            background=BACKGROUND,
            shear=tuple(line_time * speed),
        )
        _paste(image, render_exact(scene, 4), window_of(scene))
    return image


def _paste(image, exact, window):
    u, v, width, height = window
    rows, columns = (
        slice(max(start, 0), min(start + count, size))
        for start, count, size in zip((v, u), (height, width), image.shape, strict=True)
    )
    image[rows, columns] = exact[
        rows.start - v : rows.stop - v, columns.start - u : columns.stop - u
    ]


def digitised(exact, rng, noise=2.0):
    noisy = exact + noise * rng.standard_normal(exact.shape)
    return np.rint(noisy.clip(0.0, 255.0)).astype(np.uint8)


def write_pictures(folder, pictures, times):
    folder.mkdir(parents=True)
    for k, (picture, time) in enumerate(zip(pictures, times, strict=True)):
        cv2.imwrite(str(folder / f'{k:06d}_{time:.9f}.png'), picture)
    return folder


def write_video(file, images, codec, rate):
    height, width = images[0].shape[:2]
    writer = cv2.VideoWriter(str(file), cv2.VideoWriter.fourcc(*codec), rate, (width, height))
    writer.set(cv2.VIDEOWRITER_PROP_QUALITY, 90.0)
    for image in images:
        writer.write(image if image.ndim == 3 else cv2.cvtColor(image, cv2.COLOR_GRAY2BGR))
    writer.release()
    return file
