"""Images of cameras and streams."""

import time

import cv2
import pytest
from test_image_sources import HEIGHT, WIDTH, image, middles

from longreach_dynamics.errors import InputError, LongreachError
from longreach_markers.io.image_sources import CaptureOptions, open_source

_CONTROLS = (
    cv2.CAP_PROP_AUTO_EXPOSURE,
    cv2.CAP_PROP_EXPOSURE,
    cv2.CAP_PROP_AUTOFOCUS,
    cv2.CAP_PROP_FOCUS,
)


class FakeCapture:
    """What OpenCV gives of a camera: three images, then nothing; only 32 x 24 px at 15 Hz."""

    def __init__(self, *_):
        self.values = {
            cv2.CAP_PROP_FRAME_WIDTH: float(WIDTH),
            cv2.CAP_PROP_FRAME_HEIGHT: float(HEIGHT),
            cv2.CAP_PROP_FPS: 15.0,
            cv2.CAP_PROP_FOURCC: float(cv2.VideoWriter.fourcc(*'GREY')),
        }
        self.set_to = []
        # What the camera has of each control: other values are not taken.
        self.fixed = {}
        self.waited, self.age = 0.02, 0.0
        self.count = 0
        self.released = False

    def isOpened(self):  # noqa: N802
        return True

    def set(self, key, value):
        if key in _CONTROLS:
            self.set_to.append((key, value))
            self.values[key] = self.fixed.get(key, value)
            return key not in self.fixed
        return False

    def get(self, key):
        if key == cv2.CAP_PROP_POS_MSEC:
            return (time.monotonic() - self.age) * 1e3
        return self.values.get(key, 0.0)

    def grab(self):
        self.count += 1
        self.age = self.waited
        return self.count <= 3

    def retrieve(self):
        # Unpacking takes long.
        self.age += 0.5
        return True, image(self.count, color=True)

    def release(self):
        self.released = True


@pytest.fixture
def fake(monkeypatch):
    capture = FakeCapture()
    monkeypatch.setattr(cv2, 'VideoCapture', lambda *_: capture)
    monkeypatch.setattr('longreach_markers.io.image_sources._check_device', lambda _: None)
    return capture


def test_a_camera_is_stamped_when_the_driver_had_the_image(fake):
    frames = iter(open_source(0, clock=lambda: 5_000_000_000))
    frame = next(frames)
    assert frame.image[12, 16] == 1
    assert frame.stamp is not None
    assert 19e6 < 5_000_000_000 - frame.stamp < 400e6
    # A time of another clock says nothing.
    fake.waited = -1e6
    assert next(frames).stamp == 5_000_000_000


def test_a_camera_that_is_pulled_out(fake):
    seen = []
    source, text = open_source('/dev/video0'), 'camera /dev/video0 gives no more images, after 3'
    with source, pytest.raises(LongreachError, match=text):
        middles(source, seen)
    assert (seen, source.live, fake.released) == ([1, 2, 3], True, True)


def test_a_camera_does_what_it_is_asked_for(fake):
    asked = CaptureOptions(WIDTH, HEIGHT, 15.0, exposure=0.002, pixel_format='GREY', focus=30.0)
    assert not open_source(0, capture=asked).refused
    # Both without automatics, and exposure in units of 0.1 ms.
    assert fake.set_to == list(zip(_CONTROLS, (1, 20, 0, 30.0), strict=True))
    fake.set_to.clear()
    # A lens is locked where it is.
    assert not open_source(0, capture=CaptureOptions(focus_lock=True)).refused
    assert fake.set_to == [(cv2.CAP_PROP_AUTOFOCUS, 0)]


@pytest.mark.parametrize(
    ('options', 'fixed', 'text'),
    [
        ({'exposure': 0.002}, {cv2.CAP_PROP_EXPOSURE: 50.0}, '0 has 0.005 s and refuses it; its'),
        ({'exposure': 0.002}, {cv2.CAP_PROP_AUTO_EXPOSURE: 3.0}, 'exposure by hand = 1, but'),
        ({'focus': 30.0}, {cv2.CAP_PROP_FOCUS: 0.0}, 'focus = 30, but camera 0 has 0 and'),
        ({'focus_lock': True}, {cv2.CAP_PROP_AUTOFOCUS: -1.0}, '= 0, but camera 0 does not have'),
    ],
)
def test_a_control_that_a_camera_does_not_take_is_a_warning(fake, options, fixed, text):
    fake.fixed = fixed
    source = open_source(0, capture=CaptureOptions(**options))
    (told,) = source.refused
    assert text in told
    assert next(iter(source)).image[12, 16] == 1


@pytest.mark.parametrize(
    ('options', 'text'),
    [
        ({'width': 640}, 'width = 640 px, but camera 0 has 32 px'),
        ({'height': 480}, 'height = 480 px, but camera 0 has 24 px'),
        ({'frame_rate': 30.0}, 'frame_rate = 30 Hz, but camera 0 has 15 Hz'),
        ({'pixel_format': 'MJPG'}, 'pixel_format = MJPG, but camera 0 has GREY'),
    ],
)
def test_a_camera_that_cannot(fake, options, text):
    with pytest.raises(InputError, match=text):
        open_source(0, capture=CaptureOptions(**options))
    assert fake.released


def test_the_password_of_a_stream_is_not_told(fake):
    source = open_source('rtsp://me:secret@10.0.0.2:554/stream')
    assert source.name == 'rtsp://10.0.0.2:554/stream'


def test_a_camera_that_does_not_open(monkeypatch, fake):
    monkeypatch.setattr(FakeCapture, 'isOpened', lambda _: False)
    with pytest.raises(LongreachError, match='camera 3 cannot be opened; check that no other'):
        open_source(3)
    with pytest.raises(LongreachError, match=r'rtsp://10.0.0.2/x cannot .* check address'):
        open_source('rtsp://10.0.0.2/x')


@pytest.mark.parametrize(
    'options',
    [{'width': -1}, {'frame_rate': float('nan')}, {'pixel_format': 'MJPEG'}, {'focus': -2.0}],
)
def test_options_that_no_camera_has(options):
    with pytest.raises(InputError, match=f'{next(iter(options))} = '):
        CaptureOptions(**options)
