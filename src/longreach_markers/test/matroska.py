"""Matroska files of JPEG pictures with given times, which OpenCV cannot write."""

import struct

import cv2


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
