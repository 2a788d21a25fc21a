"""Sources of images: folders, patterns, videos, cameras, and what each of them may be up to."""

import re
import time
from pathlib import Path

import cv2
import numpy as np
import pytest
from independent_views import write_matroska, write_video

from longreach_dynamics.errors import InputError, LongreachError
from longreach_markers.io import stored_images
from longreach_markers.io.image_sources import open_source, pictures_of

HEIGHT, WIDTH = 24, 32


def image(number, color=False):
    """A picture that tells its number by the grey of its middle."""
    shape = (HEIGHT, WIDTH, 3) if color else (HEIGHT, WIDTH)
    picture = np.zeros(shape, np.uint8)
    picture[4:-4, 4:-4] = number
    return picture


def write(path, picture):
    assert cv2.imwrite(str(path), picture)
    return path


def middles(source, seen=None):
    seen = [] if seen is None else seen
    for frame in source:
        seen.append(int(frame.image[HEIGHT // 2, WIDTH // 2]))
    return seen


def video(path, count, rate=10.0, codec='FFV1'):
    """A video without loss, grey k in the middle of frame k, and noise around it."""
    frames = np.random.default_rng(2).integers(0, 256, (count, HEIGHT, WIDTH, 3), np.uint8)
    frames[:, 4:-4, 4:-4] = np.arange(count)[:, None, None, None]
    return write_video(path, frames, codec, rate)


# --- pictures --------------------------------------------------------------------------------


def test_one_picture_is_read_ahead(tmp_path, monkeypatch):
    for number in range(4):
        write(tmp_path / f'{number}.png', image(number))
    names = []

    def noted(path):
        names.append(path.name)
        return stored_picture(path)

    stored_picture = stored_images.stored_picture
    monkeypatch.setattr(stored_images, 'stored_picture', noted)
    with open_source(str(tmp_path)) as source:
        frames = iter(source)
        next(frames)
        end = time.monotonic() + 20.0
        while len(names) < 2 and time.monotonic() < end:
            time.sleep(0.01)
    # Closed before the other ones are asked for.
    assert names == ['0.png', '1.png']


def test_a_folder_in_the_order_of_people(tmp_path):
    for number in (10, 9, 100, 1):
        write(tmp_path / f'left{number}.png', image(number))
    with open_source(str(tmp_path)) as source:
        frames = [(frame.image[12, 16], frame.number, frame.stamp) for frame in source]
    assert frames == [(1, 0, None), (9, 8, None), (10, 9, None), (100, 99, None)]
    assert (source.count, source.live, source.frame_rate) == (4, False, 0.0)


def test_patterns(tmp_path):
    for number in (3, 4, 6, 11):
        write(tmp_path / f'a{number:04d}.png', image(number))
        write(tmp_path / f'c{2 * number}.png', image(number))
        write(tmp_path / f'b{number}.png', image(number + 100))
    assert middles(open_source(f'{tmp_path}/b*.png')) == [103, 104, 106, 111]
    frames = list(open_source(f'{tmp_path}/a00[01]?.png'))
    assert [frame.image[12, 16] for frame in frames] == [3, 4, 6, 11]
    # Numbers that are missing are frames that were lost.
    assert [frame.number for frame in frames] == [0, 1, 3, 8]
    # One of two frames was kept.
    assert [frame.number for frame in open_source(f'{tmp_path}/c*.png')] == [0, 1, 3, 8]


@pytest.mark.parametrize(
    ('names', 'stamps'),
    [
        (['l_12.5.png', 'l_12.75.png'], [12_500_000_000, 12_750_000_000]),
        (['1700000000.000000001.png'], [1_700_000_000_000_000_001]),
        (['l-1700000000123456789.png'], [1_700_000_000_123_456_789]),
        # Times of day, by date -u -d '2024-01-01 11:59:59' +%s; of 0.1 s from each other.
        (
            ['c_20240101_115959.90.png', 'c_20240101_120000.00.png'],
            [1_704_110_399_900_000_000, 1_704_110_400_000_000_000],
        ),
        (
            ['20231231T235959.5.png', '20240101T000001.25.png'],
            [1_704_067_199_500_000_000, 1_704_067_201_250_000_000],
        ),
        # No date, so that 115959 are seconds.
        (['20249901_115959.5.png', '20249901_120000.0.png'], [115_959_500_000_000, 12 * 10**13]),
        # Of whole seconds, over the end of a minute.
        (
            ['c_20240101_115959.png', 'c_20240101_120000.png', 'c_20240101_120001.png'],
            [1_704_110_399 * 10**9, 1_704_110_400 * 10**9, 1_704_110_401 * 10**9],
        ),
        # Of other lengths, as Python writes them: not in the order of the names.
        (
            ['l_0.05.png', 'l_0.1.png', 'l_0.15.png', 'l_0.2.png'],
            [50_000_000, 100_000_000, 150_000_000, 200_000_000],
        ),
        (['12.5.png', 'other.png'], [None, None]),
        (['0001.png', '0002.png'], [None, None]),
    ],
)
def test_times_in_names(tmp_path, names, stamps):
    for number, name in enumerate(names):
        write(tmp_path / name, image(number))
    assert [frame.stamp for frame in open_source(tmp_path)] == stamps
    assert middles(open_source(tmp_path)) == list(range(len(names)))


def test_grey_and_colour_of_a_picture(tmp_path):
    bgr = np.full((HEIGHT, WIDTH, 3), (10, 200, 100), np.uint8)
    write(tmp_path / '1.tif', bgr.astype(np.uint16) * 257)
    (frame,) = open_source(tmp_path, color=True)
    np.testing.assert_array_equal(frame.image, bgr)
    (frame,) = open_source(tmp_path)
    assert frame.image.shape == (HEIGHT, WIDTH)
    assert abs(int(frame.image[0, 0]) - (0.114 * 10 + 0.587 * 200 + 0.299 * 100)) < 1.0


def test_pictures_of_twelve_bits(tmp_path):
    write(tmp_path / '1.png', np.full((HEIGHT, WIDTH), 4095, np.uint16))
    # Found from the values, and said.
    source = open_source(tmp_path)
    assert middles(source) == [255]
    assert 'scaled as of 12 bits' in source.notes[0]
    write(tmp_path / '2.png', np.full((HEIGHT, WIDTH), 40_000, np.uint16))
    source = open_source(tmp_path)
    assert middles(source) == [255, round(40_000 * 255 / 65535)]
    assert source.notes == []


def numbered(folder, **numbers):
    """Write pictures with numbers in folders; return the sources."""
    for side, own in numbers.items():
        (folder / side).mkdir()
        for number in own:
            write(folder / side / f'{side}_{number:04d}.png', image(1))
    return {side: open_source(folder / side) for side in numbers}


@pytest.mark.parametrize(
    ('left', 'right', 'pairs'),
    [
        # The first picture of one camera is missing, as well as one of the other.
        ((0, 1, 3, 4), (1, 2, 3, 4), {(1, 1), (3, 3), (4, 4)}),
        ((10, 20, 30), (20, 30, 40), {(20, 20), (30, 30)}),
        # Counters that were not started together.
        ((1, 2, 3), (901, 902, 903), {(1, 901), (2, 902), (3, 903)}),
        # Half the rate, no two consecutive numbers, one picture.
        ((0, 1, 2, 3, 4), (0, 2, 4), {(0, 0), (2, 2), (4, 4)}),
        (range(12), (0, 2, 5, 7, 10), {(k, k) for k in (0, 2, 5, 7, 10)}),
        ((0, 10, 20, 30), (5, 10, 15, 20), {(10, 10), (20, 20)}),
        ((0, 1, 2, 3, 4), (3,), {(3, 3)}),
    ],
)
def test_pictures_with_equal_numbers_are_pairs(tmp_path, left, right, pairs):
    sources = numbered(tmp_path, left=left, right=right)
    at = {}
    for one in pictures_of(sources, 10.0):
        at.setdefault(one.stamp, {})[one.camera] = int(Path(one.name).stem[-4:])
    assert {(one['left'], one['right']) for one in at.values() if len(one) == 2} == pairs
    for source in sources.values():
        assert ('hardly overlap' in str(source.notes)) == (left[-1] < right[0])


def test_the_rate_is_that_of_the_smallest_step(tmp_path):
    sources = numbered(tmp_path, left=range(10, 60, 10), right=range(15, 60, 20))
    stamps = {'left': [], 'right': []}
    for one in pictures_of(sources, 10.0):
        stamps[one.camera].append(one.stamp / 1e9)
    assert stamps == {'left': [0.0, 0.1, 0.2, 0.3, 0.4], 'right': [0.05, 0.25, 0.45]}


@pytest.mark.parametrize(
    ('names', 'numbers', 'is_noted'),
    [
        ([f'img_{k}_exp20' for k in (0, 1, 2, 5, 6)], [0, 1, 2, 5, 6], False),
        (['img_3'], [0], False),
        (['img'], [0], False),
        # Two numbers differ; times in milliseconds are no counters.
        ([f'img_{k}_exp{20 + k}' for k in (0, 1, 5)], [0, 1, 2], True),
        ([f'img_{k}' for k in (1700000000033, 1700000000067, 1700000000100)], [0, 1, 2], True),
        (['apple', 'pear'], [0, 1], True),
        (['a_1', 'b_2'], [0, 1], True),
    ],
)
def test_numbers_in_names(tmp_path, names, numbers, is_noted):
    for name in names:
        write(tmp_path / f'{name}.png', image(1))
    source = open_source(tmp_path)
    assert [frame.number for frame in source] == numbers
    assert ['neither times nor one number' in note for note in source.notes] == [True] * is_noted


def test_pictures_are_not_turned(tmp_path):
    # A JPEG that asks its viewer for a quarter of a turn: orientation 6 in an EXIF segment.
    plain = cv2.imencode('.jpg', image(200))[1].tobytes()
    tiff = b'MM\x00*\x00\x00\x00\x08\x00\x01\x01\x12\x00\x03\x00\x00\x00\x01\x00\x06\x00\x00'
    body = b'Exif\x00\x00' + tiff + b'\x00\x00\x00\x00'
    segment = b'\xff\xe1' + (len(body) + 2).to_bytes(2, 'big') + body
    (tmp_path / 'a.jpg').write_bytes(plain[:2] + segment + plain[2:])
    viewed = cv2.imread(str(tmp_path / 'a.jpg'))
    assert viewed is not None
    assert viewed.shape == (WIDTH, HEIGHT, 3)
    (frame,) = open_source(tmp_path)
    assert frame.image.shape == (HEIGHT, WIDTH)


@pytest.mark.parametrize('kind', ['png', 'jpg', 'bmp', 'tif', 'pgm', 'webp'])
@pytest.mark.parametrize('part', [0.98, 0.03, 0.0])
def test_a_picture_that_is_cut_off_is_named(tmp_path, kind, part):
    noise = np.random.default_rng(1).integers(0, 255, (HEIGHT, WIDTH), np.uint8, endpoint=True)
    first, cut, last = (write(tmp_path / f'{k}.{kind}', noise) for k in (1, 2, 3))
    whole = first.read_bytes()
    cut.write_bytes(whole[: int(part * len(whole))])
    source = open_source(tmp_path)
    assert [frame.number for frame in source] == [0, 2]
    text = rf'1 of 3 pictures of {tmp_path} cannot be read .*2\.{kind} (is|cannot)'
    assert re.match(text, source.notes[0])
    # Where none is left it is an error.
    first.unlink()
    last.unlink()
    with pytest.raises(InputError, match=rf'2\.{kind} (is|cannot)'):
        list(open_source(tmp_path))


def test_a_jpeg_with_a_thumbnail_is_cut_off_all_the_same(tmp_path):
    # The thumbnail has an end of its own, which is not that of the picture.
    small = cv2.imencode('.jpg', image(7)[:8, :8])[1].tobytes()
    whole = cv2.imencode('.jpg', image(200), [cv2.IMWRITE_JPEG_PROGRESSIVE, 1])[1].tobytes()
    segment = b'\xff\xe1' + (len(small) + 2).to_bytes(2, 'big') + small
    data = whole[:2] + segment + whole[2:]
    file = tmp_path / 'a.jpg'
    file.write_bytes(data + b'what some cameras put after the end')
    assert abs(middles(open_source(file))[0] - 200) < 3
    file.write_bytes(data[:-20])
    with pytest.raises(InputError, match=r'a\.jpg is truncated after \d+ bytes'):
        list(open_source(file))


@pytest.mark.parametrize(
    ('names', 'second', 'text'),
    [
        (('a_2.5.png', 'b_2.25.png'), image(1), r'b_2.25.png: the time .* is 2.25\d+ s, not aft'),
        (('1.png', '2.png'), image(1)[:, 1:], r'2.png has 31 x 24 px, allowed: 32 x 24 px, .*1'),
        (('1.png', '2.tif'), np.zeros((4, 4), np.float32), r'2.tif: picture is an array of float'),
        (('1.5.png', '99999999999.5.png'), image(1), r'9.5.png: .* allowed: below 2147483648 s'),
    ],
)
def test_pictures_that_are_no_source(tmp_path, names, second, text):
    for name, picture in zip(names, (image(1), second), strict=True):
        write(tmp_path / name, picture)
    with pytest.raises(InputError, match=text):
        list(open_source(tmp_path))


@pytest.mark.parametrize(
    ('spec', 'text'),
    [
        ('{}/none', 'none does not exist, allowed: a camera, address, file, folder or pattern'),
        ('', "source = '', allowed: a camera"),
        ('{}', r'has no pictures, allowed: files \.bmp'),
        ('{}/*.png', r'no picture in .* matches \*\.png'),
        ('{}/text.avi', r'text\.avi cannot be read as a video or picture'),
        ('~nobody-of-this-name/left', 'left cannot be read: Could not determine home'),
        ('{}/a**.png', r"a\*\*\.png cannot be read: Invalid pattern: '\*\*'"),
        ('x' * 300, 'cannot be read: File name too long'),
        ('/dev/video77', 'camera /dev/video77: there is no /dev/video77, found: '),
        ('77', 'camera 77: there is no /dev/video77'),
    ],
)
def test_what_is_not_there(tmp_path, spec, text):
    (tmp_path / 'text.avi').write_text('no video')
    with pytest.raises(InputError, match=text):
        open_source(spec.format(tmp_path) if isinstance(spec, str) else spec)


# --- videos ----------------------------------------------------------------------------------


@pytest.mark.parametrize('name', ['a.avi', 'a.mkv', '12:30.avi'])
def test_a_video(tmp_path, monkeypatch, name):
    video(tmp_path / name, 12)
    monkeypatch.chdir(tmp_path)
    with open_source(name) as source:
        frames = [(frame.image[12, 16], frame.number, frame.stamp) for frame in source]
    assert frames == [(k, k, 100_000_000 * k) for k in range(12)]
    assert (source.frame_rate, source.count) == (10.0, 12)


@pytest.mark.parametrize('name', ['a.mkv', 'a.avi', 'a.mp4'])
@pytest.mark.parametrize('rate', [15.0, 29.97, 60.0])
def test_a_container_that_rounds_times_gives_the_same(tmp_path, name, rate):
    codec = 'mp4v' if name.endswith('mp4') else 'FFV1'
    with open_source(video(tmp_path / name, 40, rate, codec)) as source:
        stamps = np.array([frame.stamp for frame in source])
    # FFmpeg's 29.97 Hz are 30000/1001 Hz in some containers, 1 us in a second.
    np.testing.assert_allclose(stamps, np.arange(40) * 1e9 / rate, atol=2e3)


class FakeVideo:
    """A video whose container tells given times [ms] and a rate [Hz]."""

    def __init__(self, times, rate):
        self.times, self.rate, self.next = times, rate, 0

    def get(self, key):
        return {
            cv2.CAP_PROP_FPS: self.rate,
            cv2.CAP_PROP_POS_MSEC: self.times[max(self.next - 1, 0)],
        }.get(key, 0.0)

    def set(self, *_):
        return True

    def read(self):
        self.next += 1
        known = self.next <= len(self.times)
        return known, image(self.next, color=True) if known else None

    def release(self):
        pass


@pytest.mark.parametrize(
    ('rate', 'times', 'stamps'),
    [
        (15.0, [0, 67, 133, 200], [0, 200e6 / 3, 400e6 / 3, 200e6]),
        # A frame was lost, or the first ones were.
        (15.0, [0, 67, 200, 267], [0, 200e6 / 3, 200e6, 800e6 / 3]),
        (30.0, [33, 67, 100], [100e6 / 3, 200e6 / 3, 100e6]),
        # A rate that varies, or is not that of the file: as they are, from there on.
        (15.0, [0, 67, 140, 200], [0, 200e6 / 3, 140e6, 200e6]),
        (15.0, [0, 71, 133, 204], [0, 71e6, 133e6, 204e6]),
        (25.0, [0, 67, 133, 200], [0, 67e6, 133e6, 200e6]),
        # No container that rounds.
        (15.0, [0.0, 66.8, 133.2, 200.0], [0, 66.8e6, 133.2e6, 200e6]),
        (0.0, [0, 67, 133], [0, 67e6, 133e6]),
        # No times at all.
        (25.0, [0, 0, 0, 0], [0, 40e6, 80e6, 120e6]),
    ],
)
def test_times_in_whole_milliseconds(tmp_path, monkeypatch, rate, times, stamps):
    fake = FakeVideo([float(t) for t in times], rate)
    monkeypatch.setattr(stored_images, 'opened_capture', lambda *_: fake)
    (tmp_path / 'a.mkv').touch()
    with open_source(tmp_path / 'a.mkv') as source:
        assert [frame.stamp for frame in source] == [round(stamp) for stamp in stamps]
    assert source.notes == []


def varying(path, late=0):
    """Write a video of 15 Hz, then 30 Hz, one frame at the time before or earlier [ms]."""
    times = [round(k * 1000 / 15) for k in range(15)]
    times += [1000 + round(k * 1000 / 30) for k in range(30)]
    times[20] -= late
    pictures = [np.full((HEIGHT, WIDTH), 5 * k, np.uint8) for k in range(45)]
    return write_matroska(path / 'a.mkv', pictures, times, times[-1] + 33.0), times


@pytest.mark.parametrize('late', [0, 34, 234])
def test_a_video_whose_rate_varies_has_the_times_of_the_file_where_they_go_on(tmp_path, late):
    # By its number, a frame of the second half is up to a second late.
    file, times = varying(tmp_path, late)
    with open_source(str(file)) as source:
        # Duration times rate.
        assert source.count > 45
        frames = list(source)
    kept = [k for k in range(45) if not late or k != 20]
    assert [frame.number for frame in frames] == kept
    stamps = np.array([frame.stamp for frame in frames]) * 1e-6
    np.testing.assert_allclose(stamps, np.array(times)[kept], atol=0.6)
    notes = ''.join(source.notes)
    assert ('not later than that before are not used: 1' in notes) == bool(late)


def test_a_video_whose_rate_varies_may_break_off(tmp_path):
    file, _ = varying(tmp_path)
    data = file.read_bytes()
    file.write_bytes(data[: 2 * len(data) // 3])
    with open_source(str(file)) as source, pytest.raises(LongreachError, match='is incomplete'):
        list(source)


@pytest.mark.parametrize(
    ('name', 'codec', 'lossy'),
    [('a.mp4', 'mp4v', True), ('a.avi', 'XVID', True), ('a.avi', 'MJPG', False),
     ('a.avi', 'FFV1', False)],
)  # fmt: skip
def test_compression_between_frames_is_said(tmp_path, name, codec, lossy):
    with open_source(video(tmp_path / name, 3, 15.0, codec)) as source:
        assert ('is compressed between frames' in source.lossy) == lossy


@pytest.mark.parametrize('name', ['a.avi', 'a.mkv'])
def test_a_video_that_breaks_off(tmp_path, name):
    data = video(tmp_path / name, 40).read_bytes()
    (tmp_path / name).write_bytes(data[: len(data) // 2])
    seen = []
    with pytest.raises(LongreachError, match=r'is incomplete: \d+ of 40 frames') as caught:
        middles(open_source(tmp_path / name), seen)
    assert not isinstance(caught.value, InputError)
    assert f': {len(seen)} of 40 frames' in str(caught.value)
    assert seen == list(range(len(seen)))
    assert 10 < len(seen) < 30
