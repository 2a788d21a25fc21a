"""Markers, their paths, and the images that fall between samples of the truth."""

import dataclasses

import numpy as np
import pytest
from small_rig import small_rig

from longreach_dynamics.errors import InputError
from longreach_markers import Plane
from longreach_tools.output import write_csv
from longreach_vision.simulator.camera_simulator import simulators_of
from longreach_vision.simulator.marker_path import FrameTimes, MarkerPath
from longreach_vision.simulator.scene import (
    CameraLook,
    Occluder,
    backdrop,
    load_look,
)

MS = 1_000_000  # [ns]


# --- look ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ('text', 'match'),
    [
        ('blur: -1', r'blur = -1, allowed: \[0, 10\] px'),
        ('occluders: [{start: [0, 0], end: [0, 0], width: 1}]', 'start and end are both'),
    ],
)
def test_a_look_that_cannot_be_is_refused(tmp_path, text, match):
    file = tmp_path / 'look.yaml'
    file.write_text(text + '\n')
    with pytest.raises(InputError, match=match):
        load_look(file)


def test_occluders_in_the_image_are_scaled_with_it(tmp_path):
    file = tmp_path / 'look.yaml'
    file.write_text(
        'blur: 0.5\noccluders:\n'
        '  - {start: [9.5, 19.5], end: [99.5, -0.5], width: 8, velocity: [4, 0], camera: up}\n'
    )
    look = load_look(file)
    (inside,) = look.scaled(0.25).occluders
    # The centre of the first pixel is 0, its edge -0.5.
    assert inside == Occluder((2.0, 4.5), (24.5, -0.5), 2.0, (1.0, 0.0), 'up')
    assert look.scaled(0.25).blur == 0.5
    text = r"occluders\[0\]\.camera = 'up', allowed: left \| right, or"
    with pytest.raises(InputError, match=text):
        simulators_of(small_rig(), look)


# --- background ----------------------------------------------------------------------------------


def test_a_backdrop_is_a_function_of_seed_and_size():
    assert load_look() == CameraLook()
    look = CameraLook(clutter=30)
    first = backdrop(look, 200, 150)
    assert first.shape == (150, 200)
    assert np.array_equal(first, backdrop(look, 200, 150))
    assert not np.array_equal(first, backdrop(look.replace(seed=2), 200, 150))
    assert first.min() >= 0.0
    assert first.max() <= 255.0


def test_a_backdrop_goes_from_sky_to_ground_with_its_texture():
    look = CameraLook(sky=200.0, ground=100.0, texture=0.0, clutter=0)
    plain = backdrop(look, 320, 240)
    assert plain[0] == pytest.approx(np.full(320, 200.0), abs=1.0)
    assert plain[-1] == pytest.approx(np.full(320, 100.0), abs=1.0)
    rough = backdrop(look.replace(texture=6.0), 320, 240)
    assert (rough - plain).std() == pytest.approx(6.0, rel=0.1)
    assert abs(backdrop(look.replace(clutter=20), 320, 240) - plain).max() > 30.0


def test_markers_are_parallel_to_the_plane_of_the_rig():
    rig = dataclasses.replace(small_rig(), plane=Plane(np.array([0.6, -0.8, 0.0]), 0.0))
    assert simulators_of(rig, CameraLook())['left'].scene.normal == (0.6, -0.8, 0.0)


# --- paths ---------------------------------------------------------------------------------------


def cubic(times):
    t = np.asarray(times, dtype=float)[..., None, None]
    a, b, c, d = np.random.default_rng(4).normal(size=(4, 2, 3))
    return a + t * (b + t * (c + t * d)), b + t * (2.0 * c + 3.0 * t * d)


def test_without_velocities_the_error_falls_with_the_third_power():
    errors = []
    for count in (21, 41):
        times = np.linspace(0.0, 2.0, count)
        places = np.zeros((count, 1, 3))
        places[:, 0, 0] = np.sin(3.0 * times)
        path = MarkerPath(('a',), times, places)
        at = np.linspace(0.0, 2.0, 500)
        got = np.array([path.at(time)[0][0, 0] for time in at])
        errors.append(abs(got - np.sin(3.0 * at)).max())
    assert errors[0] < 2e-3
    assert errors[0] / errors[1] > 6.5


def test_a_path_is_read_from_a_table(tmp_path):
    times = np.linspace(0.0, 1.0, 5)
    places, velocities = cubic(times)
    head, columns = ['time'], [times]
    for index, name in enumerate(('tip', 'arm.2')):
        for axis, letter in enumerate('xyz'):
            head += [f'{name}.{letter}', f'{name}.v{letter}']
            columns += [places[:, index, axis], velocities[:, index, axis]]
    file = tmp_path / 'path.csv'
    write_csv(file, head, np.column_stack(columns))
    path = MarkerPath.from_csv(file)
    assert path.names == ('tip', 'arm.2')
    assert path.at(0.33)[0] == pytest.approx(cubic(0.33)[0], abs=1e-12)
    assert path.of(['arm.2']).at(0.33)[1] == pytest.approx(cubic(0.33)[1][1:], abs=1e-12)
    # y is 0 where the table does not say; a path of one time stands still.
    file.write_text('time,tip.x,tip.z\n0,1,2\n1,2,4\n')
    positions, velocities = MarkerPath.from_csv(file).at(0.5)
    assert (positions.tolist(), velocities.tolist()) == ([[1.5, 0.0, 3.0]], [[1.0, 0.0, 2.0]])
    file.write_text('time,tip.x,tip.z\n2,1,2\n')
    positions, velocities = MarkerPath.from_csv(file).at(2.0)
    assert (positions.tolist(), velocities.tolist()) == ([[1.0, 0.0, 2.0]], [[0.0, 0.0, 0.0]])


@pytest.mark.parametrize(
    ('text', 'match'),
    [
        ('time,tip.x\n0,1\n', 'lacks tip.z'),
        ('time,tip.x,tip.z,tip.vx\n0,1,1,1\n', 'lacks tip.vz'),
        ('time,tip.x,tip.z,size\n0,1,1,1\n', 'column size is unknown'),
        ('time,.x,.z\n0,1,1\n', r'column \.x is unknown'),
        ('time\n0\n', 'no marker, allowed: columns NAME.x'),
        ('time,tip.x,tip.z\n0,nan,1\n', 'finite numbers'),
        ('time,tip.x,tip.z\n1,1,1\n0,1,1\n', 'time'),
    ],
)
def test_a_table_that_is_no_path_is_refused(tmp_path, text, match):
    file = tmp_path / 'path.csv'
    file.write_text(text)
    with pytest.raises(InputError, match=match):
        MarkerPath.from_csv(file)


@pytest.mark.parametrize(
    ('start', 'ends'), [(0.0, r'\[0, 1\] s'), (1.7e9, r'\[1700000000, 1700000001\] s')]
)
@pytest.mark.parametrize('time', [-0.1, 1.1, float('nan')])
def test_a_path_ends(time, start, ends):
    path = MarkerPath(('a',), start + np.array([0.0, 1.0]), np.zeros((2, 1, 3)))
    with pytest.raises(InputError, match=f'allowed for this path: {ends}'):
        path.at(start + time)


# --- images between samples ----------------------------------------------------------------------


def taken(frames, stamps):
    found = []
    for stamp in stamps:
        found += frames.add(int(stamp), *cubic(stamp / 1e9))
    return found


@pytest.mark.parametrize('offset', [0, 4 * MS])
@pytest.mark.parametrize('rate', [7.0, 15.0, 29.97, 200.0, 333.3])
def test_images_are_of_their_own_time_between_samples(rate, offset):
    # 5 ms and 1/15 s: no image but every third falls on a sample.
    frames = taken(FrameTimes(rate, offset * 1e-9), np.arange(0, 2001 * MS, 5 * MS))
    assert [frame.number for frame in frames] == list(range(len(frames)))
    stamps = [round(k * 1e9 / rate) + offset for k in range(int(2.1 * rate) + 1)]
    assert [frame.stamp for frame in frames] == [one for one in stamps if one <= 2000 * MS]
    for frame in frames:
        positions, velocities = cubic(frame.stamp / 1e9)
        assert frame.positions == pytest.approx(positions, abs=1e-12)
        assert frame.velocities == pytest.approx(velocities, abs=1e-9)


@pytest.mark.parametrize(
    ('sent', 'expected', 'missed'),
    [
        # With the first sample at or after it, and none before the first one.
        ((0, 60, 99, 100, 140, 201), (0, 100, 200), 1),
        ((50, 90, 110), (100,), 0),
        # A sample that comes again gives nothing, a time that begins anew gives images anew.
        ((0, 0, 100, 100), (0, 100), 0),
        ((0, 100, 200, 0, 100), (0, 100, 200, 0, 100), 0),
        # Samples that never came are counted, not those after one that came too early.
        ((0, 5, 10, 25, 30, 100), (0, 100), 2 + 13),
        ((0, 10, 20, 21, 31, 41, 51), (0,), 0),
        ((0, 10, 20, 21, 31, 41, 51, 81, 91), (0,), 2),
    ],
)
def test_images_of_samples(sent, expected, missed):
    frames = FrameTimes(10.0)
    found = [frame.stamp // MS for stamp in sent for frame in taken(frames, [stamp * MS])]
    assert found == list(expected)
    assert frames.missed == missed
