"""The offset between the clocks of two cameras: found, not found, written, corrected."""

import argparse
import itertools
import math
import re
from types import SimpleNamespace

import numpy as np
import pytest
import yaml
from independent_views import digitised, view
from known_rig import POSES
from small_commands import make_scene, placed, printed, refused, small_path, with_camera
from small_rig import START, seen_at, small_rig, write_small_rig
from swinging import NAMES, estimated, followed, frames_seen, seen, sightings_of

from longreach_dynamics.errors import InputError, LongreachError
from longreach_markers import Follower, RigFrame, RigTracker, follow, load_rig
from longreach_markers.tracking import pair_fit
from longreach_markers.tracking.clock_offset import estimate_offset
from longreach_vision.commands import tracking_commands
from longreach_vision.commands.arguments import rig_files
from longreach_vision.commands.rig_files import write_time
from longreach_vision.simulator.camera_simulator import drawn_pictures, frame_times, simulators_of
from longreach_vision.simulator.scene import CameraLook

BASE = POSES['right'].translation - POSES['left'].translation
ALONG = tuple(BASE / np.linalg.norm(BASE))


def test_of_a_long_recording_nothing_is_forgotten():
    sightings, images = seen(0.0, duration=0.1), 20_001
    for k in range(images):
        one = {'left': {NAMES[0]: seen_at(100.0, 100.0)}}
        sightings.add(RigFrame(1.0 + k, math.nan, one, {}, times={'left': 1.0 + k}))
    times = sightings.table('left', NAMES[0])[:, 0]
    assert (len(times), times[0]) == (images + 3, 0.0)


# The node does not search. Of the clean ones the last two: more than one image, and more than a
# period of the motion's faster part. Then a bumped camera, lost images and wrong pixels.
@pytest.mark.parametrize(
    ('offset', 'given'),
    [
        (0.015, {'search': False}),
        *((one, {}) for one in (0.015, -0.002, 1.0 / 30.0, -0.2, 0.6)),
        *itertools.product((0.0, 0.015), ({'pitch': 1e-3}, {'dropped': 0.05}, {'wrong': 0.03})),
    ],
)
def test_an_offset_is_found(offset, given):
    found = estimated(offset, **given)
    most = 3.0 if 'search' in given or not given else 4.0
    assert abs(found.offset - offset) < min(3e-4, most * found.deviation)
    assert found.marker in NAMES
    assert found.is_significant == bool(found.warning) == bool(offset)
    # A global shutter.
    assert found.is_line_time_known
    assert not found.has_line_time
    assert abs(found.line_time) < 4.0 * found.line_deviation
    if offset:
        late = 'later' if offset > 0.0 else 'earlier'
        assert f'stamps of right are {1e3 * abs(found.offset):.2f} ms' in found.warning
        assert late in found.warning


@pytest.mark.parametrize('seed', range(3))
def test_it_is_the_same_with_stamps_since_1970(seed):
    start = 1_764_000_000.0
    found, same = (
        estimated(0.004, search=False, seed=seed, pixel=0.005, start=at) for at in (start, 0.0)
    )
    assert abs(found.offset - 0.004) < 4.0 * found.deviation
    assert found.offset == pytest.approx(same.offset, abs=2e-7)
    assert found.deviation == pytest.approx(same.deviation, rel=1e-2)
    assert 'stamps of right are 4.0' in found.warning
    stepped = estimated(0.0, search=False, lost=('right', 5.0, 1), start=start)
    assert stepped.steps[0].time - start == pytest.approx(5.0, abs=0.05)
    bumped = estimated(0.004, search=False, pitch=3e-3, since=5.0, start=start)
    assert bumped.bump - start == pytest.approx(5.0, abs=0.07)


@pytest.mark.parametrize('after', [1e-9, 1e-6, 1e-4, 2e-3, 7e-3])
def test_images_that_were_read_late_in_a_burst_do_not_mislead(after):
    # One in twenty of the right camera waits, and is stamped just before the next one.
    rig, frames = frames_seen({'left': 0.0, 'right': 0.011})
    late = np.random.default_rng(0).random(len(frames)) < 0.05
    for frame, waits in zip(frames, late, strict=True):
        frame.times['right'] += waits * (1.0 / 30.0 - after)
    found = estimate_offset(sightings_of(rig, frames))
    assert found.is_known
    assert found.deviation > 5e-6
    assert abs(found.offset - 0.011) < 5.0 * found.deviation


def test_the_stated_error_is_that_of_the_positions():
    found = estimated(0.015)
    # Half of the distance covered in 15 ms, as one of two cameras is late.
    times, phases = np.arange(0.0, 8.0, 1.0 / 30.0), np.arange(3.0)[:, None]
    speeds = 1.6 * np.cos(1.6 * times + phases) + 1.23 * np.cos(4.1 * times + 2.0 * phases)
    fastest = np.quantile(np.abs(speeds), 0.99, axis=1).max()
    assert found.error == pytest.approx(0.5 * 0.015 * fastest, rel=0.1)


@pytest.mark.parametrize('offset', [0.0, 0.004])
def test_a_rolling_shutter_is_found(offset):
    found = estimated(offset, line_time=15e-6)
    assert abs(found.line_time - 15e-6) < 4.0 * found.line_deviation
    assert found.has_line_time
    assert abs(found.offset - offset) < 4.0 * found.deviation
    assert 'have rolling shutters: 1' in found.warning
    # At 1.6 to 2.8 m/s, in rows up to 700 from the middle one.
    assert 0.005 < found.line_error < 0.03
    assert f'wrong by up to {1e3 * max(found.line_error, found.error):.2g} mm' in found.warning
    known = estimated(offset, line_time=15e-6, stated=15e-6)
    assert not known.has_line_time
    assert abs(known.offset - offset) < 4.0 * known.deviation
    assert bool(known.warning) == bool(offset)


@pytest.mark.parametrize('apart', [-30e-6, -15e-6, 3e-6])
def test_rolling_shutters_that_differ_are_named(apart):
    found = estimated(0.002, line_time=15e-6, apart=apart, amplitude=0.3)
    assert abs(found.lines_apart - apart) < 5.0 * found.lines_apart_deviation < 2e-6
    assert f'of right and left differ by {1e6 * found.lines_apart:+.2f} us a row' in found.warning
    assert not found.is_known


@pytest.mark.parametrize(('jitter', 'duration'), [(0.0, 3.0), (2e-3, 8.0)])
def test_the_standard_error_is_that_of_the_scatter(jitter, duration):
    given = {'duration': duration, 'jitter': jitter, 'search': False}
    found = [estimated(0.004, seed=seed, **given) for seed in range(15)]
    ratios = np.array([(one.offset - 0.004) / one.deviation for one in found])
    assert 0.5 < np.sqrt(np.mean(ratios**2)) < 1.4


@pytest.mark.parametrize(
    ('given', 'text'),
    [
        ({'amplitude': 0.0}, r'cannot be known \(standard error .* at [\d.]+ px/s'),
        # Along the epipolar lines.
        ({'along': ALONG}, r'cannot be known \(standard error .* at [\d.]+ px/s'),
        ({'duration': 0.2}, 'cannot be known from'),
        ({'steps': 1, 'search': False}, 'the estimate has not converged'),
    ],
)
def test_what_cannot_be_known_is_said(monkeypatch, given, text):
    monkeypatch.setattr(pair_fit, '_MAX_STEPS', given.pop('steps', 30))
    found = estimated(0.015, **given)
    assert not found.is_known
    assert not found.is_line_time_known
    assert not found.warning
    assert re.search(text, str(found))
    assert (found.fields()['deviation'] is None) == math.isinf(found.deviation)


# --- what changes during a recording ----------------------------------------------------------


# Steps of either clock; one of which another is tried 0.1 s before, with too few sightings between
# them; two clocks; two with a bump, whose residuals are 140 to 390 times noise, without a step, if
# each is looked for alone; and bumps alone, of moving and of resting markers.
@pytest.mark.parametrize(
    ('offset', 'given', 'steps'),
    [
        *(
            (0.0, {'rate': rate, 'lost': (side, 5.0, n), 'pitch': 2e-4}, [(5.0, side, -n)])
            for side, (rate, n) in itertools.product(
                ('left', 'right'), ((30.0, 1), (30.0, -1), (15.0, 3), (60.0, 2))
            )
        ),
        (-0.19, {'duration': 7.0, 'lost': ('right', 3.7, 1)}, [(3.9, '', -1)]),
        (
            0.004,
            {'lost': ('right', 4.0, 1), 'late': (1.0 / 30.0, 8.0, math.inf), 'dropped': 0.03},
            [(4.0, 'right', -1), (8.0, 'left', 1)],
        ),
        (0.004, {'lost': ('left', 7.0, 2), 'pitch': 1.8e-3, 'since': 2.4}, [(7.0, 'left', -2)]),
        (0.004, {'lost': ('right', 3.8, 1), 'pitch': 6e-4, 'since': 7.5}, [(3.8, 'right', -1)]),
        *(
            (0.015, {'amplitude': amplitude, 'pitch': pitch, 'since': 5.0, 'duration': 9.0}, [])
            for amplitude, pitch in itertools.product((0.0, 1.0), (3e-4, 3e-3))
        ),
    ],
)
def test_steps_of_clocks_and_bumps_are_named(offset, given, steps):
    found, rate = estimated(offset, **({'duration': 12.0} | given)), given.get('rate', 30.0)
    assert found.misfit < 1.5
    moves, bump = given.get('amplitude', 1.0) > 0.0, given.get('since', math.nan)
    assert found.is_known == (moves and not steps)
    # That before them: -6 ms and -0.2 s from all sightings with one pose.
    assert not moves or abs(found.offset - offset) < min(3e-4, 5.0 * found.deviation)
    for one, (time, camera, images) in zip(found.steps, steps, strict=True):
        assert one.time == pytest.approx(time, abs=(1.5 if len(steps) == 1 else 2.1) / rate)
        assert one.camera == camera
        assert abs(one.jump - images / rate) < min(1e-3, 5.0 * one.deviation)
        jump = f'clock of {camera or "right"} jumps by {1e3 * images / rate:+.1f} ms'
        assert jump in found.warning
    assert [one['camera'] for one in found.fields()['steps']] == [camera for _, camera, _ in steps]
    is_bumped = 'since' in given
    assert found.moved == 'right' * is_bumped
    assert found.bump == pytest.approx(bump, abs=0.07, nan_ok=True)
    said = 'right was bumped at t = ' in str(found) + found.warning
    assert said == (is_bumped and (moves or bool(steps)))
    assert ('no camera has moved' in found.warning) == (bool(steps) and not is_bumped)


@pytest.mark.parametrize('drift', [3e-4, -3e-4])
def test_clocks_that_drift_apart_are_no_more_than_perhaps_lost_images(drift):
    warning = estimated(0.003, duration=20.0, drift=drift, search=False).warning
    found = re.search(r'or that of right runs at another rate, by (\S+) ppm', warning)
    assert float(found[1]) == pytest.approx(1e6 * drift, rel=0.15)


def test_a_bump_of_cameras_that_see_no_motion_tells_no_offset():
    # In one of twelve the image at the bump was taken for motion: 0.1 ms for 15 ms, of 1.7 ms.
    given = {'amplitude': 0.0, 'pitch': 3e-3, 'since': 5.0, 'duration': 9.0}
    assert not any(estimated(0.015, seed=seed, **given).is_known for seed in range(12))


@pytest.mark.parametrize('creep', [2e-5, 3e-5, 6e-5])
def test_a_camera_that_creeps_has_larger_standard_errors(creep):
    # 6 to 8 of them, as bumps leave over what lasts for seconds.
    for seed, amplitude in enumerate((1.0, 0.5, 0.2)):
        found = estimated(0.004, creep=creep, seed=seed, amplitude=amplitude, duration=12.0)
        assert abs(found.offset - 0.004) < 4.0 * found.deviation


@pytest.mark.parametrize('seed', range(6))
def test_sound_recordings_have_no_steps_and_no_bumps(seed):
    rng = np.random.default_rng(seed)
    rate, amplitude = float(rng.choice([10.0, 25.0, 50.0])), float(rng.choice([0.0, 0.1, 1.0]))
    dropped, pitch = float(rng.choice([0.0, 0.1])), 2e-4 * rng.normal()
    found = estimated(0.0, rate=rate, amplitude=amplitude, dropped=dropped, pitch=pitch, seed=seed)
    assert found.steps == ()
    assert math.isnan(found.bump)
    assert found.misfit < 1.5
    assert found.warning == ''


@pytest.mark.parametrize(('shift', 'first', 'span'), [(0.005, 3.0, 0.4), (0.033, 5.3, 0.8)])
def test_a_short_part_with_other_stamps_is_named(shift, first, span):
    start = 1000.0
    found = estimated(0.0, duration=12.0, start=start, late=(shift, first, first + span))
    assert found.contradiction == pytest.approx((first + start, first + span + start), abs=0.3)
    assert abs(found.offset) < 5.0 * found.deviation
    assert 'left and right contradict each other: wrong stamps' in found.warning
    assert found.warning in str(found)


# The last: stamps of three seconds are late, and right again.
@pytest.mark.parametrize('fault', [{'lens': 1.0}, {'late': (0.02, 3.0, 6.0)}])
def test_residuals_far_above_noise_give_no_offset(fault):
    found = estimated(0.004, **fault)
    assert found.misfit > 3.0 or found.steps
    assert not found.is_known
    assert ('times the noise of pixels and calibration' in str(found)) != bool(found.steps)


@pytest.mark.parametrize(
    ('offset', 'given', 'words', 'text'),
    [
        (0.0, {'lost': ('right', 5.0, 1)}, ('sync',), 'clock of right jumps by -33.3 ms at t = '),
        (0.0, {'lost': ('right', 5.0, 1)}, ('pose', '--refine'), 'clock of right jumps by -33.3'),
        (0.0, {'line_time': 15e-6, 'apart': -30e-6}, ('sync',), 'of right and left differ by'),
        (0.004, {}, ('pose', '--refine'), 'add the delay to the rig: longreach vision sync'),
    ],
)
def test_commands_that_write_refuse_other_clocks(
    monkeypatch, tmp_path, offset, given, words, text
):
    file = write_small_rig(tmp_path)
    before, found = file.read_text(), seen(offset, **given)
    monkeypatch.setattr(tracking_commands, '_collected', lambda _: (found.rig, found))
    refused(text, *words, tmp_path / 'bag', '--rig', file, kind=LongreachError)
    assert file.read_text() == before


# --- the rig file ----------------------------------------------------------------------------


def test_a_delay_is_written_and_replaced(tmp_path):
    file = write_small_rig(tmp_path)
    before = file.read_text()
    write_time(file, 'right', 'delay', 0.015, 'first')
    write_time(file, 'right', 'delay', -0.0125, 'standard error 3e-05 s')
    lines = [line for line in file.read_text().splitlines() if line not in before.splitlines()]
    assert lines == ['    delay: -0.0125  # [s], standard error 3e-05 s']
    assert load_rig(file).delays == {'left': 0, 'right': -12_500_000}
    assert load_rig(file).scaled(0.5).delays == load_rig(file).delays


def test_a_file_of_another_layout_is_refused_and_kept(tmp_path):
    file = write_small_rig(tmp_path)
    values = yaml.safe_load(file.read_text())
    file.write_text(yaml.safe_dump(values, default_flow_style=True))
    before = file.read_text()
    with pytest.raises(InputError, match=r'write cameras\.right\.delay: 0\.015 yourself'):
        write_time(file, 'right', 'delay', 0.015, 'any')
    assert file.read_text() == before
    with pytest.raises(InputError, match=r'delay = 20.0, allowed: .* s'):
        write_time(file, 'right', 'delay', 20.0, 'any')


def test_a_rig_with_a_base_is_read_with_all_its_files_and_not_written(tmp_path):
    write_small_rig(tmp_path)
    file = tmp_path / 'other.yaml'
    file.write_text('base: rig.yaml\ntracking: {gap: 0.01}\n')
    names = {one.name for one in rig_files(argparse.Namespace(rig=file))}
    assert names == {'other.yaml', 'rig.yaml', 'rig_left.yaml', 'rig_right.yaml'}
    # Before anything is tracked.
    for words in (('sync',), ('pose', '--out', tmp_path / 'new.yaml', '--refine')):
        refused('base is unknown where a rig is written', *words, 'a.mcap', '--rig', file)


def test_line_times_are_those_of_rows_of_the_calibration(tmp_path):
    """Images of half the size have half as many rows: each takes twice as long."""
    file = write_small_rig(tmp_path)
    rig = load_rig(file)
    clocks = SimpleNamespace(line_time=lambda: (20e-6, 3e-6, [*rig.cameras]))
    words = argparse.Namespace(rig=file, scale=0.5)
    lines, warning = tracking_commands._write_line_times(words, rig, clocks)
    assert (lines, warning) == (dict.fromkeys(rig.cameras, 10e-6), '')
    assert {one.line_time for one in load_rig(file).cameras.values()} == {10e-6}
    assert file.read_text().count('standard error 1.5e-06 s') == len(rig.cameras)


# --- rendered pictures -----------------------------------------------------------------------


@pytest.mark.slow
def test_pictures_with_late_stamps(capsys, tmp_path):
    # The right ones are stamped 15 ms late, which the rig does not say.
    rig, late = tmp_path / 'rig.yaml', with_camera(small_rig(), 'right', delay=0.015)
    make_scene(tmp_path, None, small_path(2.0), late)
    seen = (tmp_path / 'seen/left', tmp_path / 'seen/right', '--rig', rig)
    truth = ('--truth', tmp_path / 'path.csv')
    told = printed(capsys, 'track', *seen, *truth)
    found = told['clock_offset']
    assert abs(found['offset'] - 0.015) < min(3e-4, 3.0 * found['deviation'])
    assert 'stamps of right are' in told['advice']
    assert 'of two are wrong by up to' in told['advice']
    # Wrong by millimetres where it moves: flagged there.
    two = told['errors'][1]
    assert two['uncertain'] > 0.6 * two['rows']
    assert 'miss each other' in told['markers'][1]['reasons'][0]['reason']
    assert two['in_plane']['largest'] < 1e-3
    synced = printed(capsys, 'sync', *seen)
    assert load_rig(rig).cameras['right'].delay == synced['delay']
    assert '# [s], standard error' in rig.read_text()
    told = printed(capsys, 'track', *seen, *truth, '--bag', tmp_path / 'tracks')
    assert told['advice'] == ''
    assert abs(told['clock_offset']['offset']) < 1e-4
    for one in told['errors']:
        assert one['in_plane']['rms'] < 6e-5
        assert one['triangulated']['rms'] < 3e-4
    # Simulated cameras of this rig add the delay that the tracker subtracts.
    told = printed(capsys, 'simulate', tmp_path / 'path.csv', '--rig', rig, '--duration', 0.5)
    assert [one['tracked'] for one in told['errors']] == [8, 8]
    assert max(one['in_plane']['rms'] for one in told['errors']) < 6e-5


LINE = 60e-6  # [s], so that 300 rows take as long as 1080 rows of a usual camera


def rolling(time):
    swing = 0.3 * np.sin(2.0 * np.pi * 0.8 * time + np.array([0.0, 1.0]))
    far = np.array([[0.0, 0.0, 0.7], [0.0, 0.0, 0.4]])  # from the middle row
    return START + far + swing[:, None] * np.array([0.3, 0.0, 1.0])


def rolling_rig(line_time):
    rig = placed(small_rig(), rolling(0.0))
    for side in rig.cameras:
        rig = with_camera(rig, side, line_time=line_time)
    return rig


@pytest.mark.slow
def test_a_rolling_shutter_in_the_rig_times_each_marker_at_its_row():
    rng, rigs = np.random.default_rng(2), {'without': rolling_rig(0.0), 'with': rolling_rig(LINE)}
    errors = {name: [] for name in rigs}
    squares = []
    trackers = {name: RigTracker(one) for name, one in rigs.items()}
    for k in range(20):
        time = k / 30.0
        exact = {side: view(rigs['with'], side, rolling, time, LINE) for side in ('left', 'right')}
        images = {side: digitised(one, rng) for side, one in exact.items()}
        for name, tracker in trackers.items():
            if k == 0:
                # Of the same moment, with other noise: centres, and so rows, differ a little.
                first = {side: digitised(one, rng) for side, one in exact.items()}
                tracker.start(first, dict.fromkeys(images, time))
            found = tracker.update(images, dict.fromkeys(images, time)).estimates
            for one, place in zip(('one', 'two'), rolling(time), strict=True):
                off = found[one].in_plane.position - place
                # From the fourth image on, positions between images are interpolated.
                if k > 3:
                    errors[name].append(off)
                # Without a speed, the row's delay is an uncertainty of the position.
                if name == 'with' and k:
                    assert found[one].status == 'TRACKED'
                    stated = found[one].in_plane.covariance[np.ix_([0, 2], [0, 2])]
                    assert np.sqrt(stated.max()) < (2e-2 if k == 1 else 3e-4)
                    squares.append(off[[0, 2]] @ np.linalg.solve(stated, off[[0, 2]]) / 2.0)
    rms = {name: np.sqrt(np.mean(np.square(one))) for name, one in errors.items()}
    assert rms['without'] > 2e-3
    assert rms['with'] < 1e-4
    assert np.mean(squares) < 1.3


def test_the_shear_of_a_rolling_shutter_is_not_taken_for_a_tilt():
    rig, rng, squares = rolling_rig(LINE), np.random.default_rng(2), []

    def taken(side, k):
        return digitised(view(rig, side, rolling, k / 30.0, LINE), rng)

    for frame in followed(Follower(rig), taken, 8):
        for side, mounted in rig.cameras.items():
            for i, name in enumerate(('one', 'two')):
                at, seen = frame.time, np.zeros(2)
                for _ in range(10):
                    seen = mounted.camera.project(mounted.pose.to_camera(rolling(at)[i]))
                    at = frame.time + mounted.row_delay(float(seen[1]))
                found = frame.observations[side][name]
                off = found.center - seen
                squares.append(off @ np.linalg.solve(found.covariance, off) / 2.0)
    # 4.5 if the shape of the ellipse is taken for the direction of the plane's normal.
    assert np.mean(squares) < 1.5


def test_simulated_cameras_expose_row_by_row():
    rig = small_rig()
    for side in rig.cameras:
        rig = with_camera(rig, side, line_time=LINE)
    path = small_path(0.4, speed=2.0)
    drawn = drawn_pictures(simulators_of(rig, CameraLook(clutter=0)), path, frame_times(path, 30))
    frames = [one.frame for one in follow(Follower(rig), drawn)]
    assert len(frames) == 13
    worst = max(
        np.abs(one.estimates['two'].in_plane.position - path.at(one.time)[0][1]).max()
        for one in frames[4:]
    )
    # 2.8 mm without it; constant velocity while the image is read.
    assert worst < 6e-4
