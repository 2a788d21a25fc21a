"""``track``, ``render``, ``simulate`` and ``compare``: what they print, write and refuse."""

import dataclasses
import functools
import re
import shutil
from pathlib import Path

import cv2
import numpy as np
import pytest
from independent_views import digitised, view, write_pictures, write_video
from longreach_msgs.msg import MarkerEstimates, MarkerObservations
from rclpy.serialization import deserialize_message
from small_commands import (
    FRAMES,
    call,
    only,
    placed,
    printed,
    refused,
    rendering,
    small_path,
    tracking,
    write_path,
)
from small_rig import NAMES, START, small_rig, write_rig
from test_bag_files import image_message, truth_rows

from longreach_dynamics.errors import InputError, LongreachError
from longreach_dynamics.tables import read_table
from longreach_markers import load_rig
from longreach_tools.cli import _Parser
from longreach_tools.testing import contents, write_bag
from longreach_vision import track
from longreach_vision.commands.track_output import _advice
from longreach_vision.commands.vision_commands import configure
from longreach_vision.io.bag_files import read_tracks
from longreach_vision.io.track_table import CAMERAS, Tracks, columns_of
from longreach_vision.simulator.marker_path import MarkerPath

table = functools.partial(read_table, gaps=True)


def viewed(folder, rig, places, count, right=lambda one: one):
    """Write a rig and pictures of markers at rest, the right ones changed; return how to track."""
    rng, times = np.random.default_rng(3), [k / 15.0 for k in range(count)]
    write_rig(rig, folder / 'rig.yaml')
    for side in rig.cameras:
        exact = view(rig, side, lambda _: places)
        pictures = [digitised(exact, rng) for _ in times]
        if side == 'right':
            pictures = [right(one) for one in pictures]
        write_pictures(folder / side, pictures, times)
    return 'track', *(folder / side for side in rig.cameras), '--rig', folder / 'rig.yaml'


# --- track -----------------------------------------------------------------------------------


@pytest.mark.parametrize('right', [lambda one: np.full_like(one, 12), lambda one: one[::-1, ::-1]])
def test_a_camera_that_contributes_nothing_is_named(capsys, tmp_path, right):
    # Where no marker is if the image is turned.
    places = np.array([(-0.2, 0.0, 0.7), (0.9, 0.0, 1.1)])
    rig = placed(small_rig(), places)
    words = viewed(tmp_path, rig, places, 6, right)
    told = printed(capsys, *words)
    assert [one['tracked'] for one in told['markers']] == [6, 6]
    left, right = told['cameras']
    assert left['camera'] == 'left'
    assert (left['images'], left['tracked'], left['sightings']) == (6, 12, 12)
    assert (right['images'], right['tracked'], right['markers']) == (6, 0, {'one': 0, 'two': 0})
    assert told['advice'].startswith('right tracks markers in 0 sightings, left in 12')
    assert 'the positions are those of left, in the plane' in told['advice']
    call(*words)
    assert re.search(r'^ +right +6 +0 +0 +12$', capsys.readouterr().out, re.MULTILINE)


def test_a_truth_may_contain_the_offset_of_a_marker(capsys, tmp_path):
    # A marker 0.3 m in front of the plane.
    rig = small_rig()
    first = rig.markers[0].replace(offset=-0.3)
    rig = dataclasses.replace(rig, markers=(first, rig.markers[1]))
    centres = START + np.array([[0.0, -0.3, 0.0], [0.0, 0.0, 0.0]])
    words = viewed(tmp_path, rig, centres, 4)
    truth = tmp_path / 'truth.csv'
    for places, included in ((START, False), (centres, True)):
        write_path(MarkerPath(NAMES, np.array([0.0, 1.0]), np.stack([places, places])), truth)
        told = printed(capsys, *words, '--truth', truth)
        assert [one['in_plane']['rms'] < 1e-3 for one in told['errors']] == [True, True]
        call(*words, '--truth', truth)
        said = 'truth of one: includes the offset' in capsys.readouterr().out
        assert said == included
        # The simulator draws the marker at the same place from both.
        told = printed(capsys, 'simulate', truth, '--rig', words[-1], '--rate', 4)
        assert [one['tracked'] for one in told['markers']] == [5, 5]
        assert [one['in_plane']['rms'] < 1e-3 for one in told['errors']] == [True, True]


def test_nothing_to_be_seen_is_a_failure(capsys, tmp_path):
    words = viewed(tmp_path, small_rig(), START + 100.0, 3)
    more = ('--csv', tmp_path / 'a.csv')
    refused('no marker was tracked in 3 images: one: ', *words, *more, kind=LongreachError)
    assert 'lost' in capsys.readouterr().out
    assert (table(tmp_path / 'a.csv')['one.status'] == 2.0).all()


def test_pictures_become_tracks(capsys, scene, tmp_path):
    out, plot, move = tmp_path / 'out', tmp_path / 'a.png', tmp_path / 'b.png'
    more = ('--out', out, '--plot', plot, '--movement', f'two={move}')
    told = printed(capsys, *tracking(scene), *more)
    assert (told['images'], told['complete'], told['errors']) == (FRAMES, True, None)
    assert [one['name'] for one in told['markers']] == list(NAMES)
    columns = table(out / 'tracks.csv')
    path = small_path(0.5)
    truth = np.array([path.at(time)[0] for time in columns['time']])
    for k, one in enumerate(told['markers']):
        name = one['name']
        assert (one['tracked'], one['uncertain'], one['lost']) == (FRAMES, 0, 0)
        for kind, bound in (('in_plane', 3e-4), ('triangulated', 3e-3)):
            found = np.stack([columns[f'{name}.{kind}_{axis}'] for axis in 'xyz'], axis=1)
            assert np.abs(found - truth[:, k]).max() < bound
        assert one['first'][0] == columns[f'{name}.in_plane_x'][0]
        assert (columns[f'{name}.cameras'] == 3.0).all()
    assert (columns['stamp_gap'] == 0.0).all()
    # The bag has the same.
    tracks = read_tracks(out / 'tracks')
    np.testing.assert_array_equal(tracks.table, np.array(list(columns.values())).T)
    for picture in (plot, move):
        assert picture.read_bytes().startswith(b'\x89PNG')
    call(*tracking(scene), '--truth', scene / 'path.csv')
    text = capsys.readouterr().out
    assert re.search(r'^ +one +8 +0 +0 +-0\.50', text, re.MULTILINE)
    assert re.search(r'^ +two +100\.0 % +3\d\.\d\d', text, re.MULTILINE)


def test_recorded_images_give_the_same_tracks(scene, tmp_path):
    call(*tracking(scene), '--csv', tmp_path / 'files.csv', '--bag', tmp_path / 'first')
    rows = []
    for name in ('left', 'right'):
        for file in sorted((scene / 'seen' / name).iterdir()):
            stamp = round(float(file.stem.partition('_')[2]) * 1e9)
            image = cv2.imread(str(file), cv2.IMREAD_GRAYSCALE)
            rows.append((f'{name}/image_raw', stamp, image_message(image, 'mono8', stamp)))
    # As they may come: the right camera's are recorded later.
    bag = write_bag(tmp_path / 'images', 'site', rows)
    words = ('track', bag, '--namespace', 'site', '--config', scene / 'rig.yaml')
    call(*words, '--csv', tmp_path / 'bag.csv', '--bag', tmp_path / 'second')
    assert (tmp_path / 'files.csv').read_bytes() == (tmp_path / 'bag.csv').read_bytes()
    one, other = contents(tmp_path / 'first'), contents(tmp_path / 'second')
    assert one['/vision/markers'] == other['/site/markers']
    # Their frames are of the namespace.
    told = [
        repr(deserialize_message(data, MarkerObservations))
        for _, data in (*one['/vision/observations'], *other['/site/observations'])
    ]
    count = len(told) // 2
    assert [text.replace('vision/', 'site/') for text in told[:count]] == told[count:]
    # In Python a bag is read by its usual topics.
    usual = write_bag(tmp_path / 'usual', 'vision', rows)
    times = [frame.time for frame in track(scene / 'rig.yaml', usual)]
    assert times == table(tmp_path / 'bag.csv')['time'].tolist()


@pytest.mark.parametrize('name', ['left', 'right'])
def test_one_camera_alone(capsys, scene, tmp_path, name):
    words = ('track', scene / 'seen' / name, '--camera', name, '--config', scene / 'rig.yaml')
    out = ('--csv', tmp_path / 'a.csv', '--truth', scene / 'path.csv')
    told = printed(capsys, *words, *out)
    columns = table(tmp_path / 'a.csv')
    assert (columns['two.cameras'] == {'left': 1.0, 'right': 2.0}[name]).all()
    assert np.isnan(columns['two.triangulated_x']).all()
    for one in told['errors']:
        assert one['triangulated'] is None
        assert one['in_plane']['rms'] < 3e-4
    # In Python the rig names it.
    alone = only(load_rig(scene / 'rig.yaml'), name)
    frames = list(track(alone, scene / 'seen' / name))
    assert len(frames) == FRAMES
    assert frames[0].estimates['one'].cameras == (name,)
    assert np.abs(frames[0].estimates['one'].in_plane.position - START[0]).max() < 1e-3


def test_a_wrong_number_of_sources_is_refused(scene):
    with pytest.raises(InputError, match='0 sources, allowed: 1 to 2, for left, right'):
        next(track(scene / 'rig.yaml'))


def test_pictures_that_cannot_be_used(capsys, scene, tmp_path):
    shutil.copytree(scene / 'seen', tmp_path / 'seen')
    sides = (tmp_path / 'seen/left', tmp_path / 'seen/right')
    words = ('track', *sides, '--config', scene / 'rig.yaml')
    # One that is cut is left out and told.
    victim = sorted(sides[1].iterdir())[5]
    victim.write_bytes(victim.read_bytes()[:2000])
    told = printed(capsys, *words, '--out', tmp_path / 'out')
    assert (told['images'], told['complete']) == (FRAMES, False)
    assert [one['images'] for one in told['cameras']] == [FRAMES, FRAMES - 1]
    assert f'1 of {FRAMES} pictures of {sides[1]} cannot be read' in told['advice']
    assert f'{victim.name} cannot be read as a picture' in told['advice']
    used = table(tmp_path / 'out/tracks.csv')['one.cameras']
    np.testing.assert_array_equal(used, [3, 3, 3, 3, 3, 1, 3, 3])
    with pytest.warns(UserWarning, match=victim.name):
        assert len(list(track(scene / 'rig.yaml', *sides))) == FRAMES
    # One of another size ends it, and what is before is kept.
    cv2.imwrite(str(victim), np.zeros((50, 60), np.uint8))
    fault = f'{victim.name} has 60 x 50 .* the 5 images tracked before'
    told = printed(capsys, *words, '--out', tmp_path / 'short', fails=fault, kind=InputError)
    assert (told['images'], told['complete']) == (5, False)
    assert len(read_tracks(tmp_path / 'short/tracks').times) == 5
    # Nothing stays if none can be read.
    for file in (tmp_path / 'seen').glob('*/*.png'):
        file.write_bytes(b'')
    new = tmp_path / 'new'
    out = ('--csv', new / 'a.csv', '--bag', new / 'bag', '--overlay', new / 'over')
    refused('is empty', *words, *out)
    assert not new.exists()
    assert capsys.readouterr().out == ''


def test_videos_and_their_overlay(capsys, scene, tmp_path):
    for side in ('left', 'right'):
        files = sorted((scene / 'seen' / side).iterdir())
        images = [cv2.imread(str(file), cv2.IMREAD_GRAYSCALE) for file in files]
        write_video(tmp_path / f'{side}.avi', images, 'FFV1', 15.0)
    call(
        *('track', tmp_path / 'left.avi', tmp_path / 'right.avi', '--rate', 15),
        *('--config', scene / 'rig.yaml', '--csv', tmp_path / 'videos.csv'),
        *('--overlay', tmp_path / 'over.mp4'),
    )
    call(*tracking(scene), '--csv', tmp_path / 'files.csv', '--overlay', tmp_path / 'over')
    video, files = table(tmp_path / 'videos.csv'), table(tmp_path / 'files.csv')
    np.testing.assert_allclose(video['two.in_plane_z'], files['two.in_plane_z'], atol=1e-9)
    pictures = sorted((tmp_path / 'over').iterdir())
    assert len(pictures) == FRAMES
    good, picture = cv2.VideoCapture(str(tmp_path / 'over.mp4')).read()
    assert good
    same = cv2.imread(str(pictures[0]))
    assert same.shape == picture.shape
    # Green is drawn, in both halves.
    for half in np.split(same, 2, axis=1):
        assert (half[:, :, 1].astype(int) - half[:, :, 2] > 80).sum() > 50


SIMULATE = ('simulate', '{path}', '--look', '{scene}/look.yaml')
TWICE = 'two={new}/a/tracks.csv'


@pytest.mark.parametrize(
    ('text', 'words'),
    [
        ('--rate and a bag are given', ('x.mcap', '--rate', 5)),
        ('images of 2 cameras', ('{left}', '{right}', '--camera', 'left')),
        ('--camera top, allowed by the rig: left, right', ('{left}', '--camera', 'top')),
        ('two cameras have the images', ('{left}', '{left}')),
        ('multiply the scale by 2', ('{left}', '{right}', '--scale', 0.5)),
        ('--overlay', ('{left}', '--overlay', '{new}/a.gif')),
        ('is one of the inputs', ('{left}', '--overlay', '{left}')),
        ('is one of the inputs', ('{left}/*.png', '--plot', '{first}')),
        ('is one of the inputs', ('{left}', '--truth', '{path}', '--csv', '{path}')),
        ('is not empty', ('{left}', '--overlay', '{right}')),
        ('allowed: MARKER=FILE', ('{left}', '--movement', 'one')),
        ("marker of --movement = 'x', allowed: one | two", ('{left}', '--movement', 'x=a.png')),
        ('cannot be written', ('{left}', '--csv', '{new}/file/any.csv')),
        ("extension 'txt'", ('{left}', '--out', '{new}/away', '--plot', '{new}/away/p.txt')),
        ('--plot and --movement are', (*SIMULATE, '--plot', '{png}', '--movement', 'two={png}')),
        ('--csv and --movement are both', (*SIMULATE, '--out', '{new}/a', '--movement', TWICE)),
        ('rig_left.yaml is one of the inputs', (*SIMULATE, '--csv', '{scene}/rig_left.yaml')),
        ('path.csv is one of the inputs', (*SIMULATE, '--csv', '{path}')),
        ('look.yaml is one of the inputs', (*SIMULATE, '--csv', '{scene}/look.yaml')),
    ],
)
def test_what_track_and_simulate_refuse(scene, tmp_path, text, words):
    (tmp_path / 'file').touch()
    places = {'left': scene / 'seen/left', 'right': scene / 'seen/right', 'new': tmp_path}
    places |= {'first': min(places['left'].iterdir()), 'path': scene / 'path.csv'}
    places |= {'scene': scene, 'png': tmp_path / 'a.png'}
    before = {file: file.read_bytes() for file in scene.rglob('*.*') if file.is_file()}
    given = [str(word).format(**places) for word in words]
    command = () if words[0] == 'simulate' else ('track',)
    refused(text, *command, *given, '--rig', scene / 'rig.yaml')
    assert {file: file.read_bytes() for file in before} == before
    assert {file.name for file in tmp_path.iterdir()} == {'file'}


def test_a_truth_that_cannot_fit(capsys, monkeypatch, scene, tmp_path):
    path = small_path(0.5)
    later = MarkerPath(NAMES, path.times + 9.0, np.array([path.at(t)[0] for t in path.times]))
    late = write_path(later, tmp_path / 'late.csv')
    words = (*tracking(scene), '--plot', tmp_path / 'a.svg', '--truth')
    fault = r'\[0, 0\.466667\] s and a path of \[9, 9\.5\] s have no time in common'
    told = printed(capsys, *words, late, fails=fault, kind=InputError)
    assert (told['images'], told['errors']) == (FRAMES, None)
    assert (tmp_path / 'a.svg').is_file()
    # A marker that it does not have is known before any image is read.
    monkeypatch.setattr('longreach_vision.commands.tracking_commands.opened_files', pytest.fail)
    (tmp_path / 'other.csv').write_text('time,one.x,one.z\n0,0,0\n1,0,0\n')
    other = tmp_path / 'other.csv'
    refused(f"--truth {other}: marker of the path = 'two'", *words, other)


def test_names_that_ros_does_not_allow():
    words = ('initialize', 'top', 'one', '--at', '1,2', '--radius', 9)
    for name in ('a b', '1st', ''):
        refused(f'--node {name!r}, allowed', *words, '--node', name)


@pytest.mark.parametrize('late', [0.0, 0.02])
def test_exchanged_pictures_are_noticed(capsys, scene, tmp_path, late):
    # Of cameras that are not synchronous, speeds in the first pair are unknown.
    for file in (scene / 'seen/right').iterdir():
        head, time = file.stem.rsplit('_', 1)
        shutil.copy(file, tmp_path / f'{head}_{float(time) + late:.9f}{file.suffix}')
    words = ('track', tmp_path, scene / 'seen/left', '--config', scene / 'rig.yaml')
    advice = 'check that the images are given in the order of the rig, left, right'
    if late:
        assert advice in printed(capsys, *words)['advice']
        return
    refused(advice, *words, kind=LongreachError)
    assert advice in capsys.readouterr().out


@pytest.mark.parametrize(
    ('rows', 'tracked', 'sighted', 'advice'),
    [
        # As after a pause, when alike markers may be each other in both images.
        (20, 5, 5, ''),
        (20, 5, 20, 'two cameras hardly ever track a marker together'),
        # Out of view most of the time.
        (120, 8, 8, ''),
    ],
)
def test_only_what_both_cameras_track_for_themselves_shows_exchanged_pictures(
    rows, tracked, sighted, advice
):
    columns = columns_of(NAMES)
    table = np.zeros((rows, len(columns)))
    for k, column in enumerate(columns):
        if column.endswith('status'):
            first = sighted if column.endswith(('left_status', 'right_status')) else tracked
            table[first:, k] = 1.0
    assert _advice(small_rig(), Tracks(NAMES, CAMERAS, table)).partition(':')[0] == advice


# --- render, simulate, compare ---------------------------------------------------------------


def test_a_scale_that_leaves_no_pixel(scene, tmp_path):
    words = ('render', scene / 'path.csv', *rendering(scene), '--out', tmp_path / 'seen')
    refused('--scale 1e-05: width = 0', *words, '--scale', 1e-5)
    assert not (tmp_path / 'seen').exists()


@pytest.mark.parametrize(('words', 'scale'), [((), r'\d\.\d+'), (('--scale', '0.25'), r'0\.25')])
def test_the_demo_calls_what_a_user_would(monkeypatch, tmp_path, words, scale):
    parser = _Parser()
    configure(parser)

    def demonstrate(out, name, launch, lines, advice, **files):
        places = {key: tmp_path / key for key in ('bag', 'picture', *files)}
        assert advice.format(**places)
        assert launch[:2] == ('vision', 'boom:=true')
        # Launch files take a number with a point for one.
        assert re.fullmatch(f'scale:={scale}', launch[2])
        # The truck that the cameras see is that of the model.
        assert Path(launch[-1].removeprefix('boom_file:=')).name == 'boom_on_truck.yaml'
        for line in lines:
            assert line[0] == 'vision'
            parsed = parser.parse_args([word.format(**places) for word in line[1:]])
            assert tmp_path / 'bag' in (vars(parsed).get('path'), parsed.bag)
        return 3

    monkeypatch.setattr('longreach_vision.commands.vision_commands.demonstrate', demonstrate)
    arguments = parser.parse_args(['demo', '--out', str(tmp_path / 'demo'), *words])
    assert arguments.run(arguments) == 3


def test_compare_finds_what_simulate_found(capsys, scene, tmp_path):
    run = write_bag(tmp_path / 'run', 'boom', truth_rows(np.linspace(0.0, 0.5, 51)))
    words = ('simulate', run, *rendering(scene), '--bag', tmp_path / 'tracks')
    expected = printed(capsys, *words)
    # One bag with tracks and truth, as the launch records it.
    found = contents(tmp_path / 'tracks')
    rows = [(f'boom/{name}', *more) for name, *more in truth_rows(np.linspace(0.0, 0.5, 51))]
    for name, kind in (('observations', MarkerObservations), ('markers', MarkerEstimates)):
        topic = f'vision/{name}'
        rows += [(topic, time, deserialize_message(one, kind)) for time, one in found[f'/{topic}']]
    both = write_bag(tmp_path / 'both', 'site', rows)
    words = ('compare', both, '--namespace', 'site/vision', '--config', scene / 'rig.yaml')
    told = printed(capsys, *words, '--csv', tmp_path / 'a.csv', '--plot', tmp_path / 'a.png')
    # Tracks do not have the covariances of pixels, nor the number of images.
    cameras = [one | {'images': None} for one in expected['cameras']]
    assert told == expected | {'clock_offset': None, 'agreement': None, 'cameras': cameras}
    assert len(table(tmp_path / 'a.csv')['time']) == FRAMES
    assert (tmp_path / 'a.png').is_file()
    rows = [row for row in rows if row[0] != 'vision/observations']
    unseen = write_bag(tmp_path / 'unseen', 'site', rows)
    call('compare', unseen, *words[2:], '--csv', tmp_path / 'b.csv')
    assert 'observations were not recorded' in capsys.readouterr().out
    assert np.isnan(table(tmp_path / 'b.csv')['one.left_status']).all()
    refused('is one of the inputs', *words, '--csv', min(both.iterdir()))
    refused('MarkerPositions: none, allowed: one', 'compare', tmp_path / 'tracks')
    refused('/vision/markers', 'compare', run)
