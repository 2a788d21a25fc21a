"""Files and cameras as topics: what is published, when, and how the node ends."""

import itertools

import cv2
import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticArray
from independent_views import write_video
from rclpy.qos import QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import CameraInfo, CompressedImage, Image

from longreach_dynamics.errors import InputError, LongreachError
from longreach_markers import Camera, ImageSource, image_to_gray, read_camera, write_camera
from longreach_markers.io.stored_images import Frame
from longreach_node import diagnostics, qos
from longreach_node.stamps import nanoseconds_of
from longreach_node.testing import bench, setting
from longreach_vision.ros import video_node
from longreach_vision.ros.conversions import camera_to_info
from longreach_vision.ros.video_node import VideoNode

HEIGHT, WIDTH = 24, 32
QOS = QoSProfile(depth=20, reliability=ReliabilityPolicy.RELIABLE)
LOSSY = QoSProfile(depth=20, reliability=ReliabilityPolicy.BEST_EFFORT)


@pytest.fixture(autouse=True)
def quick_end(monkeypatch):
    monkeypatch.setattr(video_node, '_FAREWELL', 0.01)


def write_pictures(folder, names):
    """Write pictures of even grey levels 0, 1, .., brighter by 10 in their right half."""
    folder.mkdir(exist_ok=True)
    for number, name in enumerate(names):
        picture = np.full((HEIGHT, WIDTH), number, np.uint8)
        picture[:, WIDTH // 2 :] += 10
        cv2.imwrite(f'{folder}/{name}.png', picture)
    return folder


@pytest.fixture
def folder(tmp_path):
    return write_pictures(tmp_path / 'pictures', [f'left_{k}' for k in range(5)])


@pytest.fixture
def calibration(tmp_path):
    file = tmp_path / 'camera.yaml'
    write_camera(
        Camera(name='left', width=WIDTH, height=HEIGHT, fx=40.0, fy=41.0, cx=15.0, cy=12.0), file
    )
    return file


def heard(topics, profile=QOS, **parameters):
    with bench(*setting('video', **{'frame_rate': 100.0, 'listeners': 1, **parameters})) as tests:
        # The node finds out about listeners in this order.
        found = [tests.listen(kind, topic, profile) for topic, (kind, _) in topics.items()]
        node = tests.add(VideoNode)
        tests.until(node.done.done, 'end of the file')
        counts = [count for _, count in topics.values()]
        tests.until(lambda: [len(one) for one in found] == counts, f'{counts} messages')
    return found, node


def played(count, profile=QOS, **parameters):
    # The node waits for listeners to images.
    topics = {'camera_info': (CameraInfo, count), 'image_raw': (Image, count)}
    (infos, images), node = heard(topics, profile, **parameters)
    return images, infos, node


def stamps(messages):
    return [nanoseconds_of(message.header.stamp) for message in messages]


def greys(messages):
    return [int(image_to_gray(message)[0, 0]) for message in messages]


@pytest.mark.parametrize('profile', [QOS, LOSSY], ids=['reliable', 'best_effort'])
@pytest.mark.parametrize('pace', ['real_time', 'delivered'])
def test_a_folder(folder, calibration, pace, profile):
    given = {'source': folder, 'camera': calibration, 'pace': pace}
    images, infos, _ = played(5, profile, **given, frame_id='left_optical')
    assert greys(images) == [0, 1, 2, 3, 4]
    assert int(image_to_gray(images[3])[9, 31]) == 13
    assert {image.encoding for image in images} == {'mono8'}
    assert {m.header.frame_id for m in (*images, *infos)} == {'left_optical'}
    assert stamps(images) == stamps(infos)
    assert set(np.diff(stamps(images))) == {10_000_000}
    assert infos[0] == camera_to_info(read_camera(calibration), (), infos[0].header)


def test_compressed_images_for_who_asks_for_them(folder):
    """As image_transport names and writes them; one subscriber of these counts as a listener."""
    topics = {'image_raw/compressed': (CompressedImage, 5)}
    (packed,), _ = heard(topics, source=folder, pace='delivered', jpeg_quality=100)
    assert {message.format for message in packed} == {'mono8; jpeg compressed mono8'}
    assert greys(packed) == [0, 1, 2, 3, 4]
    assert set(np.diff(stamps(packed))) == {10_000_000}


def test_sources_by_name_are_cameras_of_their_own(folder, calibration, tmp_path, capfd):
    short = write_pictures(tmp_path / 'a short', ['top_0'])
    sources = f"left={folder} right={folder} 'top={short}'"
    given = {'frame_rate': 100.0, 'listeners': 1, 'frame_prefix': 'yard/'}
    given |= {'sources': sources, 'calibrations': f'right={calibration}'}
    with bench(*setting('video', **given)) as tests:
        images = {
            name: tests.listen(Image, f'{name}/image_raw', QOS)
            for name in ('left', 'right', 'top')
        }
        infos = tests.listen(CameraInfo, 'right/camera_info', QOS)
        reports = tests.listen(DiagnosticArray, '/diagnostics', qos.DIAGNOSTICS)
        node = tests.add(VideoNode)
        tests.until(node.done.done, 'the end of all')
        node.report()
        tests.until(lambda: len(reports) >= 3, 'diagnostics of each camera')
    assert [len(found) for found in images.values()] == [5, 5, 1]
    assert images['top'][0].header.frame_id == 'yard/top_camera_optical'
    assert infos[0] == camera_to_info(read_camera(calibration), (), infos[0].header)
    names = [report.status[0].name for report in reports]
    assert {'video: left', 'video: right', 'video: top'} <= set(names)
    assert f'end of {short} after 1 images' in capfd.readouterr().err


def test_a_picture_that_is_cut_is_left_out_and_counted(folder, capfd):
    file = folder / 'left_2.png'
    file.write_bytes(file.read_bytes()[:40])
    images, _, node = played(4, source=folder)
    assert node._channels[0][0].counts['damaged'] == 1
    assert f'{file.name} cannot be read as a picture' in capfd.readouterr().err
    assert greys(images) == [0, 1, 3, 4]


@pytest.mark.parametrize('how', ['source', 'now'])
@pytest.mark.parametrize('pace', ['real_time', 'delivered'])
def test_equal_numbers_are_equal_times_of_all_cameras(tmp_path, how, pace):
    numbers = {'left': range(6), 'right': (1, 3, 5)}
    folders = {
        name: write_pictures(tmp_path / name, [f'img_{k}' for k in own])
        for name, own in numbers.items()
    }
    topics = {f'{name}/image_raw': (Image, len(own)) for name, own in numbers.items()}
    sources = ' '.join(f'{name}={folder}' for name, folder in folders.items())
    images, _ = heard(topics, sources=sources, stamps=how, pace=pace)
    begin = stamps(images[0])[0]
    assert (begin == 0) == (how == 'source')
    for found, own in zip(images, numbers.values(), strict=True):
        assert greys(found) == [*range(len(own))]
        assert stamps(found) == [begin + 10_000_000 * number for number in own]


def test_stamps_of_the_file(tmp_path):
    write_pictures(tmp_path, [f'right_{moment}' for moment in ('7.5', '7.75', '8.25')])
    given = {'stamps': 'source', 'pace': 'delivered', 'frame_rate': 0.0}
    images, infos, _ = played(3, source=tmp_path, **given)
    assert stamps(images) == [7_500_000_000, 7_750_000_000, 8_250_000_000]
    # Nobody knows the camera, but its size.
    assert (infos[0].width, infos[0].height, set(infos[0].k)) == (WIDTH, HEIGHT, {0.0})
    assert infos[0].header == images[0].header


def test_a_video_in_colour_is_stamped_alike_each_time(tmp_path):
    images = [np.full((HEIGHT, WIDTH, 3), (k, 100, 200), np.uint8) for k in range(4)]
    file = write_video(tmp_path / 'a.avi', images, 'FFV1', 50.0)
    given = {'stamps': 'source', 'encoding': 'bgr8', 'frame_rate': 0.0}
    images, *_ = played(4, source=file, **given)
    assert stamps(images) == [0, 20_000_000, 40_000_000, 60_000_000]
    shape = HEIGHT, WIDTH, 3
    pictures = [np.frombuffer(image.data, np.uint8).reshape(shape) for image in images]
    assert [picture[3, 3].tolist() for picture in pictures] == [
        [number, 100, 200] for number in range(4)
    ]


def test_it_begins_without_listeners_in_the_end(folder, capfd):
    played(5, source=folder, pace='delivered', listeners=3, start_timeout=0.05)
    said = capfd.readouterr().err
    assert f'shows {folder}; images on /image_raw\n' in said
    assert 'starts without 3 subscribers on /image_raw\n' in said


@pytest.mark.parametrize(
    ('given', 'text'),
    [
        ({'frame_id': "''"}, "frame_id = '', allowed: the name of a frame"),
        ({'camera': '{large}'}, r'gives images of 32 x 24 px, .*yaml is for 64 x 48 px'),
        ({'frame_rate': 0.0}, r'no times of its images; give .*; frame_rate of the video node\)'),
        ({'sources': 'left=/a.avi'}, 'source and sources given, allowed: one of them'),
        ({'source': "''", 'sources': 'a.avi'}, "'a.avi', allowed: CAMERA=FILE such as"),
        ({'source': "''", 'sources': 'a=x.avi a=y.avi'}, "'a=y.avi', allowed: .*each camera once"),
        ({'source': "''", 'sources': 'a=x', 'calibrations': 'b=y'}, 'b, allowed: .* sources, a'),
    ],
)
def test_what_cannot_be(folder, calibration, given, text):
    large = calibration.with_name('large.yaml')
    write_camera(read_camera(calibration).scaled(2.0), large)
    given = {name: str(value).format(large=large) for name, value in given.items()}
    with pytest.raises(InputError, match=text):
        played(0, **{'source': folder, **given})


def test_a_file_that_breaks_off_ends_it_with_what_there_was(folder):
    cv2.imwrite(str(folder / 'left_3.png'), np.zeros((HEIGHT, 40), np.uint8))
    given = {'frame_rate': 100.0, 'pace': 'delivered', 'listeners': 1}
    with bench(*setting('video', source=folder, **given)) as tests:
        images = tests.listen(Image, 'image_raw', QOS)
        node = tests.add(VideoNode)
        with pytest.raises(InputError, match=r'left_3\.png has 40 x 24 px'):
            tests.until(node.done.done)
        tests.until(lambda: len(images) == 3, 'the images before')


# --- cameras ---------------------------------------------------------------------------------


class Plugged(ImageSource):
    """A camera that gives two images each time that it is plugged in."""

    live = True

    def _frames(self):
        for number in range(2):
            stamp = 1_000_000_000 * (number + 1)
            yield Frame(number, stamp, np.full((HEIGHT, WIDTH), number, np.uint8), 'camera')
        raise LongreachError('camera 0 gives no more images')


def plugged(monkeypatch, errors):
    """Let attempts to open a camera end with errors, or with the camera where there is None."""

    def open_source(*_, **__):
        error = next(errors)
        if error is not None:
            raise error
        return Plugged('camera 0')

    monkeypatch.setattr(video_node, 'open_source', open_source)
    monkeypatch.setattr(video_node, 'RETRY', 0.01)


def test_a_camera_comes_back(monkeypatch):
    closed, gone = LongreachError('camera 0 cannot be opened'), InputError('there is no /dev/vi')
    plugged(monkeypatch, itertools.cycle([closed, None, gone, gone]))
    with bench(*setting('video', source='/dev/video0', reconnect=20.0)) as tests:
        images = tests.listen(Image, 'image_raw', QOS)
        reports = tests.listen(DiagnosticArray, '/diagnostics', qos.DIAGNOSTICS)
        node = tests.add(VideoNode)
        tests.until(lambda: len(images) >= 6, 'images of a camera that came back twice')
        tests.until(lambda: reports, 'diagnostics')
        assert not node.done.done()
    assert set(stamps(images)) == {1_000_000_000, 2_000_000_000}
    values = {value.key: int(value.value) for value in reports[-1].status[0].values}
    assert values['lost_camera'] >= 1
    # Reports have the time of what is shown, as in a recording of a file.
    assert nanoseconds_of(reports[-1].header.stamp) in {0, *stamps(images)}


@pytest.mark.parametrize(
    ('errors', 'reconnect', 'text'),
    [
        ((None, *99 * [InputError('it is gone')]), 0.05, 'it is gone'),
        # One that was never there.
        ((InputError('there is no /dev/video0'),), 1e6, 'there is no'),
        # One of another size is not tried again.
        ((None,), 1e6, 'gives images of 32 x 24 px'),
    ],
)
def test_a_camera_that_does_not_come_back(monkeypatch, calibration, errors, reconnect, text):
    plugged(monkeypatch, iter(errors))
    given = {'source': '/dev/video0', 'reconnect': reconnect}
    if errors == (None,):
        write_camera(read_camera(calibration).scaled(2.0), calibration)
        given['camera'] = calibration
    with bench(*setting('video', **given)) as tests:
        node = tests.add(VideoNode)
        with pytest.raises(InputError, match=text):
            tests.until(node.done.done)


def test_a_control_that_the_camera_did_not_take_is_said(monkeypatch, capfd):
    asked = []

    def open_source(*_, capture, **__):
        asked.append(capture)
        source = Plugged('camera 0')
        source.refused.append('focus = 30, but camera 0 has 0')
        return source

    monkeypatch.setattr(video_node, 'open_source', open_source)
    with bench(*setting('video', source='/dev/video0', focus=30.0, exposure=0.002)) as tests:
        reports = tests.listen(DiagnosticArray, '/diagnostics', qos.DIAGNOSTICS)
        tests.add(VideoNode)
        tests.until(
            lambda: reports and 'focus = 30' in reports[-1].status[0].message, 'diagnostics'
        )
    assert reports[-1].status[0].level == diagnostics.WARN
    assert (asked[0].focus, asked[0].exposure, asked[0].focus_lock) == (30.0, 0.002, False)
    assert 'focus = 30, but camera 0 has 0' in capfd.readouterr().err
