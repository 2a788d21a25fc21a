"""``calibrate``, ``pose`` and ``marker``: what they print, write and refuse."""

import functools
import json
import re
import xml.etree.ElementTree as ET
import zlib

import cv2
import numpy as np
import pytest
from small_commands import call, refused
from test_calibration import Studio

from longreach_dynamics.errors import InputError
from longreach_dynamics.parameters import load_yaml
from longreach_dynamics.resources import share_directory
from longreach_markers import (
    Board,
    Camera,
    find_corners,
    find_views,
    load_rig,
    read_camera,
    read_picture,
)
from longreach_vision.commands.setup_figures import PAGES, lay_out, sheet_file

PNG = b'\x89PNG'
SIZE = (480, 400)
TRUTH = Camera('c', *SIZE, 520.0, 521.0, 242.0, 196.0, 'plumb_bob', (-0.1, 0.05, 0.0, 0.0, 0.0))


def printed(capsys, *words):
    call(*words, '--format', 'json')
    out, err = capsys.readouterr()
    return json.loads(out, parse_constant=pytest.fail), err.splitlines()


# --- calibrate ------------------------------------------------------------------------------


@functools.cache
def studio():
    return Studio(TRUTH)


def write_board(file, angles, middle):
    R = cv2.Rodrigues(np.radians(angles))[0]
    t = middle - R @ (0.12, 0.08, 0.0)
    picture = studio().picture(R, t, np.random.default_rng(0), Board(7, 5, 0.04))
    cv2.imwrite(str(file), picture)
    return file


@pytest.fixture(scope='module')
def pictures(tmp_path_factory):
    folder = tmp_path_factory.mktemp('pictures')
    rng = np.random.default_rng(4)
    for k, (a, b) in enumerate(
        [(0, 0), (35, 0), (-35, 5), (5, 35), (0, -35), (25, 25), (-25, 20)]
    ):
        middle = np.array([rng.uniform(-0.05, 0.05), rng.uniform(-0.04, 0.04), 0.45])
        write_board(folder / f'{k}.png', (a, b, 5.0 * k), middle)
    cv2.imwrite(str(folder / 'none.png'), np.full(SIZE[::-1], 100, np.uint8))
    return folder


def test_calibrate_writes_what_ros_reads(capsys, tmp_path, pictures):
    out, plot = tmp_path / 'left.yaml', tmp_path / 'plot.png'
    words = ('calibrate', pictures, '--board', '7x5', '--square', 0.04, '--name', 'left')
    found, warned = printed(capsys, *words, '--out', out, '--plot', plot)
    camera = read_camera(out)
    assert camera.name == found['camera']['name'] == 'left'
    assert (camera.width, camera.height) == SIZE
    for name in ('fx', 'fy', 'cx', 'cy'):
        value = getattr(camera, name)
        assert found['camera'][name] == value
        assert abs(value - getattr(TRUTH, name)) < max(4.0 * found['deviations'][name], 0.3)
    assert found['rms'] < 0.1
    # Seven pictures leave corners to the model.
    assert found['ray_deviation']['median'] < 0.5
    assert 0.0 < found['model_difference'] < 50.0
    assert len(found['images']) == 7
    assert [name.rpartition('/')[2] for name in found['without_board']] == ['none.png']
    assert not found['trusted']
    assert warned == [f'longreach vision: {text}' for text in found['warnings']]
    assert any('only 7 pictures' in text for text in warned)
    assert plot.read_bytes().startswith(PNG)
    call('calibrate', *sorted(pictures.glob('[0-4].png')), '--board', '7x5', '--square', 0.04)
    out, _ = capsys.readouterr()
    assert len([line for line in out.splitlines() if line.strip().startswith('/')]) == 5
    assert 'standard deviation' in out
    assert 'not reliable: see the warnings' in out


def test_calibrate_refuses(tmp_path, pictures):
    words, first = ('calibrate', pictures, '--board', '7x5', '--square', 0.04), pictures / '0.png'
    refused('0.png is one of the inputs', *words, '--out', first)
    refused('0.png is one of the inputs', *words, '--plot', first)
    # A directory cannot be made in place of a file.
    (tmp_path / 'file').write_text('')
    refused('cannot be written', *words, '--out', tmp_path / 'file' / 'c.yaml')


def boards(folder):
    tilts = [(-30, 25, 4), (28, -30, -3), (-20, -28, 6), (25, 25, 2)]
    return [
        write_board(folder / f'{k}.png', angles, (0.0, 0.0, 0.5)) for k, angles in enumerate(tilts)
    ]


@pytest.mark.filterwarnings('error')
def test_part_of_a_larger_board_is_none(tmp_path):
    files = boards(tmp_path)
    for columns, rows in ((6, 4), (3, 3), (5, 4), (7, 4)):
        with pytest.raises(InputError, match=r'shows? (a board of 7x5|a whole board)'):
            find_views(files, Board(columns, rows, 0.04))
    # The same board, turned.
    assert find_corners(read_picture(files[0]), Board(5, 7, 0.04)) is not None


@pytest.mark.filterwarnings('error')
def test_boards_that_are_cut_at_first_do_not_end_the_search(tmp_path):
    board, files = Board(7, 5, 0.04), boards(tmp_path)
    cut = []
    for k, file in enumerate(files[:3]):
        image = read_picture(file)
        grid = find_corners(image, board).reshape(5, 7, 2)
        # A hand in front of the first two columns of corners.
        first, last = 0.5 * (grid[0, 1] + grid[0, 2]), 0.5 * (grid[-1, 1] + grid[-1, 2])
        ends = [first - 3.0 * (last - first), last + 3.0 * (last - first)]
        away = 4.0 * (grid[0, 0] - grid[0, -1])
        hand = np.array([*ends, ends[1] + away, ends[0] + away])
        cv2.fillPoly(image, [np.rint(hand).astype(np.int32)], 110)
        cut.append(tmp_path / f'cut_{k}.png')
        cv2.imwrite(str(cut[-1]), image)
    views, empty, _ = find_views([*cut, *files], board)
    assert [view.name for view in views] == [str(file) for file in files]
    assert empty == [str(file) for file in cut]


# --- pose -----------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path):
    config = share_directory('longreach_vision') / 'config'
    for name in ('reference_example.yaml', 'camera_example.yaml'):
        (tmp_path / name).write_text((config / name).read_text())
    return tmp_path


def test_pose_writes_a_rig(capsys, folder):
    (folder / 'rigs').mkdir()
    out, plot = folder / 'rigs' / 'rig.yaml', folder / 'plot.svg'
    words = ('pose', folder / 'reference_example.yaml', '--out', out, '--plot', plot)
    found, warned = printed(capsys, *words)
    assert warned == found['warnings'] == []
    assert found['trusted']
    rig = load_yaml(out)
    assert list(rig) == ['cameras', 'plane', 'markers']
    # What track reads.
    assert [m.radius for m in load_rig(out).markers] == [0.15]
    for side in ('left', 'right'):
        entry = rig['cameras'][side]
        assert (out.parent / entry['calibration']).samefile(folder / 'camera_example.yaml')
        told, pose = found['cameras'][side], load_rig(out).cameras[side].pose
        np.testing.assert_array_equal(pose.translation, told['position'])
        np.testing.assert_allclose(pose.covariance.ravel(), told['covariance'], rtol=1e-12)
        assert told['residual'] < 0.1
    plane = load_rig(out).plane
    assert plane.offset == pytest.approx(found['plane']['offset'])
    assert plane.covariance is not None
    assert found['tip']['error'] < 0.01
    assert set(found['tip']['in_plane']) == {'left', 'right'}
    assert plot.read_text().startswith('<?xml')
    call(*posing(folder))
    text, err = capsys.readouterr()
    assert err == ''
    assert re.search(r'left +7\.9\d+ +-23\.0', text)
    assert 'a marker at (25.1, 0, 1.7) m, triangulated: ±' in text
    assert 'no warnings' in text


def test_pose_writes_the_markers_of_a_rig(capsys, folder):
    out = folder / 'rig.yaml'
    words = ('pose', folder / 'reference_example.yaml', '--out', out)
    printed(capsys, *words, '--marker', 'tip=0.15', '--marker', 'truck=0.1')
    assert [(m.name, m.radius) for m in load_rig(out).markers] == [('tip', 0.15), ('truck', 0.1)]
    # Those that are there stay, unless others are given.
    printed(capsys, *words)
    assert [m.name for m in load_rig(out).markers] == ['tip', 'truck']
    printed(capsys, *words, '--marker', 'other=0.2')
    assert [m.name for m in load_rig(out).markers] == ['other']
    with pytest.raises(SystemExit):
        call(*words, '--marker', 'tip')
    assert "'tip', allowed: such as tip=0.15" in capsys.readouterr().err


def test_pose_keeps_what_else_is_in_a_rig_file(capsys, folder):
    out = folder / 'rig.yaml'
    out.write_text(
        '# ours\ncameras:\n  left: {calibration: old.yaml, delay: 0.015}\n  # gone\n\n'
        '# the markers\nmarkers:\n'
        '  - {name: a, radius: 0.15}  # here\nplane: {normal: [0, 1, 0], offset: 0}\n'
        '# and this\ntracking: {window: 20}'
    )
    call('pose', folder / 'reference_example.yaml', '--out', out)
    capsys.readouterr()
    rig, text = load_yaml(out), out.read_text()
    assert list(rig) == ['cameras', 'markers', 'plane', 'tracking']
    assert rig['markers'] == [{'name': 'a', 'radius': 0.15}]
    assert rig['tracking'] == {'window': 20}
    assert rig['cameras']['left']['calibration'] == 'camera_example.yaml'
    assert rig['cameras']['left']['delay'] == 0.015
    assert 'centroid' in rig['plane']
    for kept in ('# ours\n', '\n\n# the markers\nmarkers:', '# here', '# and this\ntracking'):
        assert kept in text
    call('pose', folder / 'reference_example.yaml', '--out', out)
    assert out.read_text() == text


def test_pose_says_that_what_it_writes_is_no_rig(capsys, folder):
    out, file = folder / 'rig.yaml', folder / 'reference_example.yaml'
    words = ('pose', file, '--out', out, '--marker', 'a=0.15')

    file.write_text(file.read_text().replace('in_plane: true', 'in_plane: false'))
    found, (warned,) = printed(capsys, *words)
    assert found['trusted']
    assert 'plane is missing' in warned
    with pytest.raises(InputError, match=re.escape(warned.partition(' used: ')[2])):
        load_rig(out)


def test_pose_keeps_the_side_of_a_plane_and_says_that_it_keeps_a_plane(capsys, folder):
    out, file = folder / 'rig.yaml', folder / 'reference_example.yaml'
    words = ('pose', file, '--marker', 'a=0.15', '--out')
    printed(capsys, *words, folder / 'new.yaml')
    # The offset of a marker is along the normal of the file, which may be the opposite one.
    out.write_text('plane: {normal: [0, -1, 0], offset: 0.0}\n')
    found, _ = printed(capsys, *words, out)
    planes = [load_rig(name).plane for name in (folder / 'new.yaml', out)]
    for values in (planes[1].normal, found['plane']['normal']):
        np.testing.assert_array_equal(values, -planes[0].normal)
    np.testing.assert_array_equal(planes[1].centroid, planes[0].centroid)
    away = np.random.default_rng(1).normal(size=(4, 3))
    np.testing.assert_allclose(planes[1].distance(away), -planes[0].distance(away), atol=1e-12)
    spreads = []
    for plane in planes:
        turned = (away - plane.centroid) @ np.cross(plane.axes, plane.normal).T
        J = np.column_stack([turned, -np.ones(len(away))])
        spreads.append(J @ plane.covariance @ J.T)
    np.testing.assert_allclose(spreads[1], spreads[0], rtol=1e-9)
    file.write_text(file.read_text().replace('in_plane: true', 'in_plane: false'))
    found, warned = printed(capsys, *words, out)
    # That says nothing about the poses.
    assert found['trusted']
    assert found['warnings'] == [warned[-1].removeprefix('longreach vision: ')]
    assert f'the plane of {out} is unchanged' in warned[-1]
    np.testing.assert_array_equal(load_rig(out).plane.normal, planes[1].normal)
    call(*words, out)
    assert 'not reliable' not in capsys.readouterr().out


LAYOUT = 'rig.yaml: the layout of this file does not allow'


@pytest.mark.parametrize(
    ('text', 'refusal'),
    [
        ('{cameras: {left: 0}, plane: {offset: 1.0}, markers: [{name: a}]}\n', LAYOUT),
        ('cameras: {left: 0}\nmarkers: [{name: a}]\n...\n', LAYOUT),
        ('cameras: &c {left: 0}\nmarkers: *c\n', LAYOUT),
        ('crane: {car_mass: 10.0}\n', 'rig.yaml: crane is unknown where a rig is'),
        (
            'cameras:\n  top: {calibration: a.yaml}\n  left: {calibration: b.yaml}\n',
            'rig.yaml also has the camera top, which ',
        ),
        ('cameras: {left: 0,\nright: 1}\nmarkers: [a]\n', ''),
        ('"cameras": 0\nmarkers:\n- a\n', ''),
    ],
)
def test_pose_replaces_entries_or_spares_a_file_that_it_would_break(folder, text, refusal):
    out = folder / 'rig.yaml'
    out.write_text(text)
    if refusal:
        refused(refusal, *posing(folder), '--out', out)
        assert out.read_text() == text
        return
    call(*posing(folder), '--out', out)
    rig = load_yaml(out)
    assert set(rig) == {'cameras', 'markers', 'plane'}
    assert rig['markers'] == ['a']
    assert [set(one) >= {'position'} for one in rig['cameras'].values()] == [True, True]


def posing(folder):
    return 'pose', folder / 'reference_example.yaml'


def test_pose_warns_on_stderr(capsys, folder):
    file = folder / 'reference_example.yaml'
    text = file.read_text()
    assert 'tip: [25.1, 0, 1.7]' in text
    file.write_text(text.replace('tip: [25.1, 0, 1.7]', 'tip: [25.1, 0, 60]'))
    found, warned = printed(capsys, 'pose', file)
    assert not found['trusted']
    assert found['tip']['error'] is None
    (said,) = warned
    assert said.startswith('longreach vision: no camera sees the tip at (25.10, 0.00, 60.00) m')


def test_pose_refuses(folder):
    file = folder / 'reference_example.yaml'
    for out in (file, folder / 'camera_example.yaml'):
        refused(f'--out {out} is one of the inputs', 'pose', file, '--out', out)
    broken = folder / 'broken.yaml'
    broken.write_text('cameras: [')
    refused('not valid YAML', 'pose', file, '--out', broken)
    assert broken.read_text() == 'cameras: ['
    file.write_text(json.dumps(load_yaml(file) | {'points': [], 'distances': []}))
    refused(f'{file}: left sees 0 reference points', 'pose', file)


# --- marker ---------------------------------------------------------------------------------


def test_marker_takes_all_kinds(capsys, tmp_path):
    file = tmp_path / 'marker.pdf'
    call('marker', '--diameter', 0.3, '--out', file)
    text, _ = capsys.readouterr()
    assert file.read_bytes().startswith(b'%PDF-')
    assert '420 x 594 mm (A2)' in text
    assert '{name: marker_1, radius: 0.15, inner: 0.5, bright: false}' in text
    out = tmp_path / 'marker.svg'
    disc, _ = printed(capsys, 'marker', '--diameter', 0.1, '--inner', 0, '--bright', '--out', out)
    assert disc['marker'] == {'radius': 0.05, 'inner': 0.0, 'bright': True}
    assert (disc['page'], disc['width'], disc['height']) == ('A4', 0.21, 0.297)
    assert '100 mm disc, bright on dark.' in out.read_text()
    words = ('marker', '--diameter', 0.1, '--inner', 0.6, '--page', 'fit', '--out', out)
    ring, _ = printed(capsys, *words)
    assert (ring['marker']['inner'], ring['page']) == (0.6, 'fit')
    assert '100 mm ring, inside 60 mm, dark on bright.' in out.read_text()


def test_marker_refuses(tmp_path):
    words = ('--out', tmp_path / 'm.png', '--diameter', 0.3)
    refused('m.png has the extension', 'marker', *words)
    assert list(tmp_path.iterdir()) == []


# --- sheets --------------------------------------------------------------------------------------


POINT = 25.4 / 72.0
SVG = '{http://www.w3.org/2000/svg}'


def pdf_circles(data):
    """Return where the curves of each circle of the page meet [mm]."""
    (content, *_) = re.findall(rb'stream\r?\n(.*?)\r?\nendstream', data, re.DOTALL)
    closed = zlib.decompress(content).split(b'\nh\n')
    ends = [re.findall(rb'(\S+) (\S+) c$', path, re.MULTILINE) for path in closed]
    return [POINT * np.array(found, float) for found in ends if found]


@pytest.mark.parametrize(
    ('diameter', 'inner', 'page'), [(0.3, 0.5, 'A2'), (0.1, 0.0, 'A4'), (0.12, 0.6, 'fit')]
)
def test_circles_of_the_pdf_have_their_radius(diameter, inner, page):
    sheet = lay_out(diameter, inner, page=page)
    data = sheet_file(sheet, 'pdf')
    box = np.array(re.search(rb'/MediaBox \[(.*?)\]', data)[1].split(), float)
    np.testing.assert_allclose(POINT * box, (0.0, 0.0, *sheet.size), atol=1e-3)
    circles = pdf_circles(data)
    radii = [500.0 * diameter] + ([500.0 * diameter * inner] if inner else [])
    assert len(circles) == len(radii)
    for points, radius in zip(circles, radii, strict=True):
        center = np.array([sheet.center[0], sheet.size[1] - sheet.center[1]])
        distances = np.linalg.norm(points - center, axis=1)
        np.testing.assert_allclose(distances, radius, atol=1e-3)


@pytest.mark.parametrize('bright', [False, True])
def test_the_svg_has_the_size_of_the_page_and_the_colours(bright):
    root = ET.fromstring(sheet_file(lay_out(0.3, 0.5, bright), 'svg'))
    sizes = [POINT * float(root.get(name).removesuffix('pt')) for name in ('width', 'height')]
    assert sizes == pytest.approx([420.0, 594.0], abs=1e-3)
    # Black is SVG's default.
    styles = [path.get('style') or '' for path in root.iter(f'{SVG}path')]
    fills = [(re.findall(r'fill: (\S+?)(?:;|$)', style) or ['#000000'])[0] for style in styles]
    marker, background = ('#ffffff', '#000000') if bright else ('#000000', '#ffffff')
    # The square, the outer and the inner circle, after the white page.
    assert fills[1:4] == [background, marker, background]


@pytest.mark.parametrize('kind', ['pdf', 'svg'])
def test_same_sheet_gives_the_same_file(kind):
    assert sheet_file(lay_out(0.25), kind) == sheet_file(lay_out(0.25), kind)


@pytest.mark.parametrize('page', [None, *PAGES, 'fit'])
def test_all_that_is_drawn_lies_on_the_page_and_off_the_background(page):
    sheet = lay_out(0.13, page=page)
    x, y = sheet.center
    for x1, y1, x2, y2 in sheet.lines:
        for u, v in ((x1, y1), (x2, y2)):
            assert 0.0 < u < sheet.size[0]
            assert 0.0 < v < sheet.size[1]
        # No line meets the square of background.
        beside = max(abs(x1 - x), abs(x2 - x)), max(abs(y1 - y), abs(y2 - y))
        nearest = min(abs(x1 - x), abs(x2 - x)), min(abs(y1 - y), abs(y2 - y))
        assert max(beside) > sheet.half
        assert max(nearest) >= sheet.half
    assert sheet.half >= 1.3 * sheet.radius
    left, level = sheet.scale
    assert level + 8.0 < sheet.size[1]
    assert (left, level, left + 100.0, level) in sheet.lines


@pytest.mark.parametrize(
    ('values', 'text'),
    [
        ({'diameter': 0.0}, 'diameter = 0 m, allowed: [0.005, 3] m'),
        ({'diameter': float('nan')}, 'diameter = nan'),
        ({'diameter': 0.3, 'inner': 0.95}, 'inner = 0.95, allowed: 0 for a disc'),
        ({'diameter': 0.3, 'inner': -0.5}, 'inner = -0.5'),
        ({'diameter': 0.212, 'page': 'A3'}, 'A3 holds 211 mm'),
    ],
)
def test_what_cannot_be_printed_is_refused(values, text):
    with pytest.raises(InputError, match=re.escape(text)):
        lay_out(**values)
    assert lay_out(0.211, page='A3').page == 'A3'
