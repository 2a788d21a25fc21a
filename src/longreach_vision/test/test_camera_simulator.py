"""
Rendered pictures against a plain one: many samples in each pixel, each on its own ray.

A wrong centre shows as a part of the difference that looks like a shift of the marker: what a
maximum-likelihood fit would make of it is its product with the derivative of the picture.
"""

from typing import NamedTuple

import cv2
import numpy as np
import pytest

from longreach_markers import Camera, MarkerOnRig, Pose
from longreach_vision.simulator.camera_simulator import CameraSimulator
from longreach_vision.simulator.scene import CameraLook, Occluder, Scene

# Nothing but the markers, on one grey.
NONE = dict.fromkeys(('exposure', 'read_noise', 'shot_noise', 'vignetting', 'texture'), 0.0)
PLAIN = CameraLook(
    **NONE, shading=(0.0, 0.0), sky=120.0, ground=120.0, clutter=0, noise_everywhere=False
)
PINHOLE = Camera('left', 84, 76, 900.0, 910.0, 40.3, 38.2)
BENT = PINHOLE.replace(distortion=(-0.9, 0.4, 0.01, -0.02, 0.1), cx=-40.0, cy=-70.0)
FISHEYE = Camera('left', 84, 76, 200.0, 200.0, -110.0, -20.0, 'equidistant', (0.02, 0.0, 0.0, 0.0))
RING = MarkerOnRig('ring', 0.15, 0.55)
MANY = 200
STILL = np.zeros((1, 3))
# Along the world's y, as towards the boom: x to the right, z up.
AHEAD = Pose(np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, -1.0, 0.0]]), np.zeros(3))


def drawn(look, place, *markers, time=0.0, name='left', seed=0):
    """Return a picture of markers at rest, by default of the ring."""
    scene = Scene(markers or (RING,), look)
    simulator = CameraSimulator(PINHOLE.replace(name=name), AHEAD, scene)
    return simulator.image(place, np.zeros_like(place), time, np.random.default_rng(seed))


def in_front(camera, pixel, depth):
    """Return the position (1, 3) that a pixel shows at a depth [m]."""
    ray = np.append(camera.undistort(np.array(pixel)), 1.0)
    return np.asarray(AHEAD.rotation @ (ray * depth))[None]


class View(NamedTuple):
    camera: Camera
    look: CameraLook
    marker: MarkerOnRig
    place: np.ndarray
    normal: tuple[float, ...] = (0.0, 1.0, 0.0)


def plain_picture(view, moved, bar=None):
    """
    Return a picture in grey levels, not rounded, by brute force.

    Every one of samples x samples points in each pixel is a ray that meets the marker's plane or
    not. ``moved`` is the way of the marker in the exposure [m], ``bar`` two columns and a grey.
    """
    (camera, look, marker, place, normal), samples = view, 12
    margin = int(np.ceil(5.0 * look.blur)) + 1
    columns = np.arange((camera.width + 2 * margin) * samples)
    rows = np.arange((camera.height + 2 * margin) * samples)[:, None]
    # Each row begins elsewhere, and each column: an edge along them is met in many places.
    u = (columns + (rows * 0.618034) % 1.0) / samples - 0.5 - margin
    v = (rows + (columns * 0.618034) % 1.0) / samples - 0.5 - margin
    rays = camera.undistort(np.stack([u, v], axis=-1), strict=False)
    directions = np.concatenate([rays, np.ones((*rays.shape[:2], 1))], axis=-1) @ AHEAD.rotation.T
    normal = np.array(normal) / np.linalg.norm(normal)
    side = np.cross([0.0, 0.0, 1.0], normal)
    side /= np.linalg.norm(side)
    band, rest = (look.white, look.black) if marker.bright else (look.black, look.white)
    instants = 1 if not moved.any() else 20
    mean = np.zeros(directions.shape[:2])
    for k in range(instants):
        center = place[0] + marker.offset * normal + moved * ((k + 0.5) / instants - 0.5)
        points = directions * (center @ normal / (directions @ normal))[..., None] - center
        s, t = points @ side / marker.radius, points @ np.cross(normal, side) / marker.radius
        r = np.hypot(s, t)
        grey = np.where(np.maximum(abs(s), abs(t)) < look.card, rest, look.sky)
        mean += np.where((r < 1.0) & (r >= marker.inner), band, grey) / instants
    if bar is not None:
        mean[(u > bar[0]) & (u < bar[1])] = bar[2]
    if look.blur:
        size = 2 * int(5.0 * look.blur * samples) + 1
        mean = cv2.GaussianBlur(mean, (size, size), look.blur * samples)
    whole = mean.reshape(-1, samples, mean.shape[1] // samples, samples).mean(axis=(1, 3))
    return whole[margin:-margin, margin:-margin]


def picture(view, velocity=STILL, many=MANY):
    """Return what the simulator renders, the mean of many: noise takes the rounding away."""
    camera, look, marker, place, normal = view
    scene = Scene((marker,), look.replace(read_noise=0.7), normal)
    simulator = CameraSimulator(camera, AHEAD, scene)
    rng = np.random.default_rng(0)
    total = np.zeros((camera.height, camera.width))
    for _ in range(many):
        total += simulator.image(place, velocity, 0.0, rng)
    u0, v0, u1, v1 = simulator.windows[0]
    mean = np.full_like(total, look.sky)
    mean[v0:v1, u0:u1] = total[v0:v1, u0:u1] / many
    return mean


def shift(difference, view):
    """Return the shift (u, v) [px] that explains a difference of pictures best."""
    camera, place = view.camera, view.place
    depth = float(AHEAD.rotation[:, 2] @ place[0])
    pixel = camera.project(place @ AHEAD.rotation)[0]
    slopes = []
    for step in 0.1 * np.eye(2):
        below, above = (
            picture(view._replace(place=in_front(camera, pixel + d, depth)), many=20)
            for d in (-step, step)
        )
        slopes.append(((above - below) / 0.2).ravel())
    return np.asarray(np.linalg.lstsq(np.array(slopes).T, difference.ravel(), rcond=None)[0])


# --- against brute force -------------------------------------------------------------------------

CASES = {
    'straight ahead': (PINHOLE, {}, {}, (40.8, 38.4), 8.0),
    'disc without card': (PINHOLE, {'card': 0.0}, {'inner': 0.0}, (35.1, 41.9), 8.0),
    'bright ring, offset': (PINHOLE, {}, {'bright': True, 'offset': -0.4}, (41.3, 36.5), 8.0),
    'tilt 60': (PINHOLE, {}, {'normal': (0.8, 0.5, 0.33)}, (37.2, 36.0), 8.0),
    'no blur': (PINHOLE, {'blur': 0.0}, {'normal': (0.6, 0.8, 0.0)}, (37.2, 36.0), 8.0),
    'little blur': (PINHOLE, {'blur': 0.5}, {}, (37.2, 36.0), 8.0),
    'out of focus': (PINHOLE, {'blur': 2.5}, {'normal': (0.0, 2.0, -1.0)}, (37.2, 36.0), 8.0),
    'distortion': (BENT, {}, {'normal': (-0.3, 0.9, 0.1)}, (40.4, 38.7), 8.0),
    'fisheye': (FISHEYE, {}, {'normal': (0.3, 0.9, 0.1)}, (44.4, 38.7), 1.6),
    'near, cut off': (PINHOLE, {'blur': 1.0}, {}, (44.0, 31.0), 3.6),
    'small': (PINHOLE, {}, {'normal': (0.7, 0.7, 0.0)}, (37.2, 36.0), 25.0),
}


@pytest.mark.parametrize('name', CASES)
def test_a_picture_is_that_of_many_samples(name):
    camera, of_look, of_marker, pixel, depth = CASES[name]
    look, place = PLAIN.replace(**of_look), in_front(camera, pixel, depth)
    own = dict(of_marker)
    normal = own.pop('normal', (0.0, 1.0, 0.0))
    view = View(camera, look, RING.replace(**own), place, normal)
    sampled = plain_picture(view, np.zeros(3))
    assert np.ptp(sampled) > 80.0
    difference = picture(view) - sampled
    # The sampled one itself is not better than that where no blur helps.
    assert abs(difference).max() < (1.5 if look.blur > 0.5 else 4.0)
    assert np.sqrt(np.mean(difference**2)) < 0.25
    assert abs(shift(difference, view)).max() < 0.002


@pytest.mark.slow_after(1)
@pytest.mark.parametrize('way', [(0.02, 0.0, 0.0), (0.03, 0.0, -0.045), (0.0, 0.5, 0.0)])
def test_motion_blurs_over_the_exposure_around_its_middle(way):
    # 2.3 and 6 px across, and 6 % nearer.
    look = PLAIN.replace(exposure=0.01)
    view = View(PINHOLE, look, RING, in_front(PINHOLE, (40.2, 37.4), 8.0))
    sampled = plain_picture(view, np.array(way))
    moving = picture(view, np.array([way]) / look.exposure, many=50)
    difference = moving - sampled
    assert abs(difference).max() < 2.0
    assert abs(shift(difference, view)).max() < 0.002
    still = picture(view, many=50)
    assert abs(moving - still).max() > 2.0


def test_a_bar_is_drawn_before_the_blur():
    bar = Occluder(start=(46.0, -200.0), end=(46.0, 200.0), width=6.0, grey=200.0)
    look = PLAIN.replace(occluders=(bar,))
    place = in_front(PINHOLE, (40.2, 37.4), 8.0)
    view = View(PINHOLE, look, RING, place)
    sampled = plain_picture(view, np.zeros(3), bar=(43.0, 49.0, 200.0))
    # Half a grey level is rounding. Above and below is what lies outside of the marker's window.
    assert abs(drawn(look, place) - sampled).max() < 1.7


# --- occluders -----------------------------------------------------------------------------------


def drawn_with(*occluders, **more):
    place = in_front(PINHOLE, (40.2, 37.4), 16.0)
    return drawn(PLAIN.replace(occluders=occluders), place, **more)


def test_an_occluder_is_there_at_its_times_and_moves_in_its_camera():
    way = {'velocity': (20.0, 0.0), 'appears': 1.0, 'vanishes': 2.0, 'camera': 'left'}
    bar = Occluder((10.0, -9.0), (10.0, 99.0), 8.0, **way)
    free = drawn_with()
    for time in (0.99, 2.0):
        assert np.array_equal(drawn_with(bar, time=time), free)
    assert np.array_equal(drawn_with(bar, time=1.0, name='right'), drawn_with(name='right'))
    for time, at in ((1.0, 10), (1.5, 20), (1.9, 28)):
        seen = np.flatnonzero(drawn_with(bar, time=time)[0] == 60)
        assert seen.mean() == pytest.approx(at, abs=0.5)
    # Where bars cross there is no gap.
    other = Occluder((0.0, 5.0), (84.0, 5.0), width=10.0)
    both = drawn_with(bar, other, time=1.0)
    assert (both[4:7, 5:80] == 60).all()
    assert (both[5:70, 9:12] == 60).all()


# --- only windows --------------------------------------------------------------------------------


def test_only_windows_change_and_nothing_is_left_behind():
    look = PLAIN.replace(texture=8.0, clutter=20, vignetting=0.2, exposure=0.01)
    occluder = Occluder((0.0, 0.0), (84.0, 76.0), width=3.0, velocity=(0.0, 30.0), vanishes=0.35)
    look = look.replace(occluders=(occluder,))
    markers = (RING.replace(radius=0.05), RING.replace(name='two', bright=True, radius=0.04))
    scene = Scene(markers, look)
    simulator = CameraSimulator(PINHOLE, AHEAD, scene)
    rng = np.random.default_rng(3)
    for time in np.arange(0.0, 0.6, 0.1):
        places = np.concatenate(
            [in_front(PINHOLE, rng.uniform((-20, -20), (100, 90)), 8.0) for _ in markers]
        )
        velocities = rng.normal(size=(2, 3))
        seen = simulator.image(places, velocities, time, rng)
        fresh = CameraSimulator(PINHOLE, AHEAD, scene).image(places, velocities, time, rng)
        assert np.array_equal(seen, fresh)


def test_neighbours_in_one_window_do_not_erase_each_other():
    names = ('a', 'b', 'c')
    scene = Scene(tuple(RING.replace(name=name) for name in names), PLAIN.replace(card=0.0))
    rng = np.random.default_rng(0)
    # 2.6 radii apart.
    places = np.concatenate([in_front(PINHOLE, (u, 38.0), 16.0) for u in (18.0, 40.0, 62.0)])
    together = CameraSimulator(PINHOLE, AHEAD, scene).image(places, np.zeros((3, 3)), 0.0, rng)
    alone = np.full(together.shape, 120)
    for name, place in zip(names, places, strict=True):
        picture = drawn(scene.look, place[None], RING.replace(name=name))
        alone += picture.astype(int) - 120
    assert abs(together - alone).max() <= 1


@pytest.mark.parametrize('x', [0.0, 5.0, np.nan, 1e9])
@pytest.mark.parametrize('y', [-8.0, 0.0, 0.1, 8.0, 1e12])
def test_a_marker_that_is_not_to_be_seen_leaves_the_background(x, y):
    # Edge-on in the one case in which it is in front of the camera.
    normal = (1.0, 0.0, 0.0) if (x, y) == (0.0, 8.0) else (0.0, 1.0, 0.0)
    simulator = CameraSimulator(PINHOLE, AHEAD, Scene((RING,), PLAIN, normal))
    velocity = np.full((1, 3), np.nan if np.isnan(x) else 1.0)
    picture = simulator.image(np.array([[x, y, 0.0]]), velocity, 0.0, np.random.default_rng(0))
    assert (abs(picture.astype(int) - 120) <= 1).all()


# --- light and noise -----------------------------------------------------------------------------


def test_the_nearer_of_two_markers_covers_the_other_in_any_order():
    near = MarkerOnRig('near', 0.02, offset=-0.5)
    far = MarkerOnRig('far', 0.05, bright=True)
    places = np.array([[0.0, 2.0, 0.0], [0.02, 2.0, 0.02]])
    first = drawn(PLAIN, places, near, far)
    np.testing.assert_array_equal(first, drawn(PLAIN, places[::-1], far, near))
    alone = drawn(PLAIN, places[:1], near)
    np.testing.assert_array_equal(first[28:48, 31:50], alone[28:48, 31:50])


def test_shading_darkens_corners_and_one_side():
    look = PLAIN.replace(sky=100.0, ground=100.0, vignetting=0.3, shading=(0.2, 0.0), gain=1.5)
    picture = drawn(look, np.array([[0.0, -8.0, 0.0]]))
    assert picture[38, 42] == 150
    assert picture[0, 0] == pytest.approx(150 * 0.7 * 0.9, abs=2.5)
    assert picture[0, -1] == pytest.approx(150 * 0.7 * 1.1, abs=2.5)
    # A marker has the same light: white on white, what is left of the card is rounding.
    white = look.replace(white=100.0, black=100.0)
    seen = drawn(white, in_front(PINHOLE, (22.0, 20.0), 8.0))
    assert (abs(seen.astype(int) - picture) <= 1).all()


def test_hardly_any_blur_is_none():
    place = in_front(PINHOLE, (40.2, 37.4), 8.0)
    sharp, *others = (
        drawn(PLAIN.replace(blur=blur), place).astype(int) for blur in (0.0, 1e-300, 1e-9, 4e-3)
    )
    assert all(np.abs(one - sharp).max() <= 1 for one in others)


def test_grey_levels_end_at_0_and_255():
    look = PLAIN.replace(white=400.0, black=0.0, read_noise=20.0, noise_everywhere=True)
    picture = drawn(look, in_front(PINHOLE, (40.0, 38.0), 4.0))
    # The card fills the image, the ring's band does not: far from its edges.
    assert picture[38, 40] == 255
    assert (picture[38, 63:69] < 80).all()


@pytest.mark.parametrize('everywhere', [True, False])
@pytest.mark.parametrize('grey', [30.0, 180.0])
def test_noise_is_that_of_shot_and_reading(everywhere, grey):
    levels = dict.fromkeys(('sky', 'ground', 'white', 'black'), grey)
    look = PLAIN.replace(**levels, read_noise=2.0, shot_noise=0.05, noise_everywhere=everywhere)
    simulator = CameraSimulator(PINHOLE, AHEAD, Scene((RING,), look))
    rng = np.random.default_rng(1)
    place = in_front(PINHOLE, (40.0, 38.0), 8.0)
    stack = np.array([simulator.image(place, STILL, 0.0, rng).astype(float) for _ in range(60)])
    u0, v0, u1, v1 = simulator.windows[0]
    window = stack[:, v0:v1, u0:u1]
    deviation = np.sqrt(4.0 + 0.05 * grey + 1.0 / 12.0)
    assert window.mean() == pytest.approx(grey, abs=0.05)
    assert window.std() == pytest.approx(deviation, rel=0.02)
    # New each time, and of its own in each pixel.
    pairs = (window[1:] - grey) * (window[:-1] - grey)
    beside = (window[:, :, 1:] - grey) * (window[:, :, :-1] - grey)
    assert abs(pairs.mean()) < 0.03 * deviation**2
    assert abs(beside.mean()) < 0.03 * deviation**2
    outside = stack[:, :2]
    assert outside[0].std() == pytest.approx(deviation, rel=0.25)
    assert (outside.std(axis=0).max() > 0.0) == everywhere


def test_a_picture_repeats_with_its_generator_and_differs_between_cameras():
    look = PLAIN.replace(read_noise=3.0, noise_everywhere=True)
    place = in_front(PINHOLE, (40.0, 38.0), 8.0)

    def make(seed, of_look=1, name='left'):
        return drawn(look.replace(seed=of_look), place, seed=seed, name=name)

    assert np.array_equal(make(1), make(1))
    assert not np.array_equal(make(1), make(2))
    assert not np.array_equal(make(1), make(1, of_look=2))
    # Above the marker.
    noise = [make(1, name=name)[:6].ravel() for name in ('left', 'right')]
    assert abs(np.corrcoef(noise)[0, 1]) < 0.2


# --- use -----------------------------------------------------------------------------------------


def test_centers_are_projections_of_the_circles_centres():
    scene = Scene((RING.replace(offset=0.3), RING.replace(name='behind')), PLAIN)
    places = np.array([[0.1, 8.0, 0.05], [0.0, -8.0, 0.0]])
    centers = CameraSimulator(BENT, AHEAD, scene).centers(places)
    assert centers[0] == pytest.approx(BENT.project(np.array([0.1, -0.05, 8.3])), abs=1e-9)
    assert np.isnan(centers[1]).all()
