"""What cannot be used is refused with one sentence, and what is strange but possible works."""

import copy
import dataclasses
import os
import re
import struct
import zlib

import cv2
import numpy as np
import pytest
import yaml
from known_rig import CAMERAS, mapping, solved
from small_rig import small_rig, write_rig

from longreach_dynamics.errors import InputError
from longreach_dynamics.parameters import load_yaml
from longreach_markers.camera.files import read_camera
from longreach_markers.io.image_sources import open_source
from longreach_markers.rig import MountedCamera, Rig, load_rig
from longreach_markers.setup.checkerboards import list_pictures, read_picture

# Whatever numpy has to say would stand beside the error.
pytestmark = pytest.mark.filterwarnings('error')


def refused(text, function, *arguments, **options):
    """Call something that has to refuse in one line, and return what it says."""
    with pytest.raises(InputError, match=re.escape(text)) as info:
        function(*arguments, **options)
    assert '\n' not in str(info.value)
    return str(info.value)


def png(width=40, height=30):
    image = np.random.default_rng(2).integers(0, 256, (height, width), np.uint8)
    return cv2.imencode('.png', image)[1].tobytes()


def with_size(data, width, height):
    part = b'IHDR' + struct.pack('>II', width, height) + data[24:29]
    return data[:12] + part + struct.pack('>I', zlib.crc32(part)) + data[33:]


def flipped(data):
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 4]) + data[middle + 1 :]


@pytest.mark.parametrize(
    ('name', 'data', 'text'),
    [
        ('none.png', b'', 'is empty, allowed: a picture'),
        ('text.png', b'these are no pixels\n' * 20, 'cannot be read as a picture'),
        ('flip.png', flipped(png()), 'cannot be read as a picture'),
        ('wide.png', with_size(png(), 2_000_000, 3), 'cannot be read as a picture'),
        ('deep.png', with_size(png(), 90_000, 90_000), 'cannot be read as a picture'),
        ('deep.pgm', b'P5 100000 100000 255\n' + bytes(100), 'cannot be read as a picture'),
        ('nan.tif', bytes(cv2.imencode('.tif', np.full((9, 9), np.nan))[1]), 'float64 of shape'),
    ],
)
def test_files_that_hold_no_picture(tmp_path, capfd, name, data, text):
    file = tmp_path / name
    file.write_bytes(data)
    assert str(file) in refused(text, read_picture, file)
    assert str(file) in refused(text, lambda: list(open_source(file)))
    # OpenCV says nothing beside the error, only libpng does.
    out, err = capfd.readouterr()
    assert not out
    assert all(line.startswith('libpng ') for line in err.splitlines())


def test_colours_depths_and_opacity_are_one_grey(tmp_path):
    grey = np.arange(30 * 40, dtype=np.uint16).reshape(30, 40) % 256
    grey8, file = grey.astype(np.uint8), tmp_path / 'ä ö 日本.png'
    opacity = np.dstack([grey8] * 3 + [np.zeros_like(grey8)])
    # Of twelve bits, the brightest pixel is white.
    for stored in (grey8, grey * 16, opacity):
        cv2.imencode('.png', stored)[1].tofile(file)
        assert np.array_equal(read_picture(file), grey8)


def test_folder_with_other_things_in_it(tmp_path):
    for name in ('10.png', '9.png', 'x²1.png', '²1.png', 'UPPER.PNG'):
        (tmp_path / name).write_bytes(png())
    (tmp_path / '._9.png').write_bytes(b'what some systems put beside each file')
    (tmp_path / 'notes.txt').touch()
    (tmp_path / 'folder.png').mkdir()
    found = [file.name for file in list_pictures([tmp_path])]
    assert sorted(found) == ['10.png', '9.png', 'UPPER.PNG', 'x²1.png', '²1.png']
    assert found.index('9.png') < found.index('10.png')
    (tmp_path / 'gone.png').symlink_to('nothing')
    (gone,) = set(list_pictures([tmp_path])) - {tmp_path / name for name in found}
    refused('gone.png cannot be read: No such file', read_picture, gone)


def test_pipe_is_no_source(tmp_path):
    os.mkfifo(tmp_path / 'pipe.avi')
    refused('pipe.avi is a pipe or device', open_source, tmp_path / 'pipe.avi')
    refused('/dev/zero is a pipe or device', open_source, '/dev/zero')


ODD = (0, -1, float('nan'), float('inf'), 1e300, 10**400, 'abc', None, [])


def places(values, path=()):
    """Yield the path of each value of a nested mapping, but for those that nobody reads."""
    pairs = values.items() if isinstance(values, dict) else enumerate(values)
    for key, value in pairs:
        if key in ('rectification_matrix', 'projection_matrix'):
            continue
        yield (*path, key)
        if isinstance(value, dict | list):
            yield from places(value, (*path, key))


def test_odd_values_in_files_are_taken_or_refused(tmp_path):
    def changed(values, path, value):
        values = copy.deepcopy(values)
        inner = values
        for key in path[:-1]:
            inner = inner[key]
        inner[path[-1]] = value
        return values

    rig = small_rig()
    left = rig.cameras['left']
    pose = dataclasses.replace(left.pose, covariance=1e-6 * np.eye(6))
    plane = dataclasses.replace(rig.plane, covariance=1e-6 * np.eye(3))
    write_rig(
        Rig({'left': MountedCamera(left.camera, pose)}, plane, rig.markers[:1]),
        tmp_path / 'rig.yaml',
    )
    rng = np.random.default_rng(3)
    for name, read in (('rig_left.yaml', read_camera), ('rig.yaml', load_rig)):
        good = load_yaml(tmp_path / name)
        file = tmp_path / 'odd.yaml'
        told = []
        for path in places(good):
            for value in rng.choice(np.array(ODD, dtype=object), 2, replace=False):
                file.write_text(yaml.safe_dump(changed(good, path, value)))
                try:
                    read(file)
                except InputError as error:
                    told.append(str(error))
        # A calibration that is not there is named itself.
        assert all('\n' not in text and str(tmp_path) in text for text in told)
        assert len(told) > 30


def test_rig_with_one_thing_twice():
    rig = small_rig()
    left, right = rig.cameras.values()
    same = {'left': left, 'right': MountedCamera(right.camera, left.pose)}
    text = 'the cameras left and right are at [-0.8, -5.0, 0.4] m'
    refused(text, Rig, same, rig.plane, rig.markers)
    near = rig.markers[1].replace(position=(-0.4, 0.0, 0.1))
    text = 'one and two are 0.1 m apart, allowed: above 0.14 m'
    refused(text, Rig, rig.cameras, rig.plane, (rig.markers[0], near))
    # One behind the other is a matter of their planes.
    Rig(rig.cameras, rig.plane, (rig.markers[0], near.replace(offset=0.3)))


@pytest.mark.parametrize('pixel', [(-0.7, 10.0, 12.0), (10.0, 301.0, 12.0)])
def test_marker_outside_of_the_image(tmp_path, pixel):
    rig = small_rig()
    marker = rig.markers[0].replace(left=pixel)
    write_rig(Rig(rig.cameras, rig.plane, (marker,)), tmp_path / 'rig.yaml')
    text = f'one has the pixel ({pixel[0]:g}, {pixel[1]:g}) in left, allowed: within 400 x 300 px'
    refused(text, load_rig, tmp_path / 'rig.yaml')
    inside = Rig(rig.cameras, rig.plane, (marker.replace(left=(399.4, 299.4, 20.0)),))
    for factor in (0.25, 0.333, 1.0, 3.0):
        inside.scaled(factor).check_pixels()


def test_pixels_that_were_copied():
    values = mapping()
    for point in values['points']:
        point['left'] = [100.0, 100.0]
    count = len(values['points'])
    refused(f'the {count} pixels of left lie within 0 px', solved, values)


@pytest.mark.slow
def test_wrong_focal_length_shows_in_residuals():
    values = mapping(rng=np.random.default_rng(4), deviation=0.004)
    good = solved(values)
    assert not good.warnings
    camera = CAMERAS['left']
    wrong = camera.replace(fx=1.05 * camera.fx, fy=1.05 * camera.fy)
    refused('the measurements do not fit', solved, values, {**CAMERAS, 'left': wrong})
