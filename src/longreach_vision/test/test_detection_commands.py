"""``detect``: what it prints, what it writes and what it refuses."""

import functools
import itertools
import json
import math
import re

import cv2
import numpy as np
import pytest
import small_commands
from test_detection import marker, taken

from longreach_markers import Camera, detect, find_markers, read_picture, write_camera
from longreach_vision.commands import detection_commands

WIDTH, HEIGHT = 160, 120
CENTER, RADIUS = (83.3, 58.6), 18.0
CAMERA = Camera('c', WIDTH, HEIGHT, 900.0, 900.0, 80.0, 60.0, 'plumb_bob', (-0.2, 0.0, 0, 0, 0))
# Those of the issue, and what else is known.
KEYS = ['image', 'status', 'center', 'covariance', 'ellipse', 'rim_support', 'residual']
KEYS.append('milliseconds')
MORE = ['reason', 'inner', 'bright']


def ring(center=CENTER, seed=0):
    exact, _ = marker(center, RADIUS, camera=CAMERA.replace(distortion=()))
    return taken(exact, seed=seed)


@pytest.fixture
def picture(tmp_path):
    file = tmp_path / 'ring.png'
    cv2.imwrite(str(file), ring())
    return file


@pytest.fixture
def calibration(tmp_path):
    file = tmp_path / 'camera.yaml'
    write_camera(CAMERA, file)
    return file


call = functools.partial(small_commands.call, 'detect')


def printed(capsys, *words):
    """What a call prints: one JSON object on each line, without NaN."""
    assert call(*words, '--format', 'json') == 0
    out, err = capsys.readouterr()
    assert err == ''
    return [json.loads(line, parse_constant=pytest.fail) for line in out.splitlines()]


def refused(text, *words):
    small_commands.refused(text, 'detect', *words)


AT = ('--at', '85,57', '--radius', 17)


def test_an_object_has_the_keys_that_are_promised(capsys, picture):
    (seen,) = printed(capsys, picture, *AT)
    assert [key for key in seen if key not in MORE] == KEYS
    assert set(seen) == {*KEYS, *MORE}
    assert (seen['image'], seen['status'], seen['reason']) == (str(picture), 'TRACKED', '')
    ellipse = seen['ellipse']
    assert list(ellipse) == ['center', 'axes', 'angle']
    np.testing.assert_allclose([seen['center'], ellipse['center']], 2 * [CENTER], atol=0.05)
    np.testing.assert_allclose(ellipse['axes'], RADIUS, atol=0.1)
    assert ellipse['axes'][0] >= ellipse['axes'][1]
    assert -math.pi / 2 < ellipse['angle'] <= math.pi / 2
    assert np.all(np.linalg.eigvalsh(seen['covariance']) > 0.0)
    assert 0.9 < seen['rim_support'] <= 1.0
    assert 1.0 < seen['residual'] < 4.0
    assert 0.0 < seen['milliseconds'] < 1e5
    assert seen['inner'] == pytest.approx(0.5, abs=0.02)
    assert seen['bright'] is False


@pytest.mark.filterwarnings('error')
def test_it_is_what_the_library_finds_with_a_normal_of_any_length(capsys, picture, calibration):
    normal = np.array((-0.1, 0.2, -1.0))
    found = detect(ring(), (85.0, 57.0), 17.0, camera=CAMERA, normal_cam=normal)
    for length in (1.0, 1e-200, 1e200, 1e308):
        # A list may begin with a minus.
        text = ','.join(f'{value:.17g}' for value in normal * length)
        (seen,) = printed(capsys, picture, *AT, '--camera', calibration, '--normal', text)
        np.testing.assert_allclose(seen['center'], found.center, atol=1e-6)
        np.testing.assert_allclose(seen['covariance'], found.covariance, rtol=1e-6)
    (without,) = printed(capsys, picture, *AT)
    assert without['center'] != seen['center']


def test_what_is_lost_is_null_and_no_error(capsys, tmp_path):
    file = tmp_path / 'grey.png'
    cv2.imwrite(str(file), np.full((HEIGHT, WIDTH), 90, np.uint8))
    (seen,) = printed(capsys, file, *AT)
    assert seen['reason'] == 'no ellipse of this size here'
    keys = ('status', 'center', 'covariance', 'residual', 'rim_support')
    assert [seen[key] for key in keys] == ['LOST', [85.0, 57.0], None, None, 0.0]
    (none,) = printed(capsys, file)
    assert set(none) == {*KEYS, *MORE}
    assert (none['status'], none['center']) == ('LOST', None)
    call(file)
    assert 'no ring in the picture' in capsys.readouterr().out


def test_without_a_place_all_rings_are_listed(capsys, tmp_path):
    file = tmp_path / 'two.png'
    two = np.hstack([ring(), ring((60.2, 70.1), 1)])
    cv2.imwrite(str(file), two)
    seen = printed(capsys, file)
    assert {one['image'] for one in seen} == {str(file)}
    places = sorted(one['center'] for one in seen)
    np.testing.assert_allclose(places, [CENTER, (220.2, 70.1)], atol=0.05)


def test_letters_are_no_rings():
    rng, found = np.random.default_rng(2), []
    for face in (cv2.FONT_HERSHEY_SIMPLEX, cv2.FONT_HERSHEY_PLAIN, cv2.FONT_HERSHEY_DUPLEX):
        for scale, width in itertools.product((1, 2, 4), (1, 2, 4)):
            page = np.full((200, 450), 180, np.uint8)
            cv2.putText(page, 'OO0o', (15, 150), face, scale, 40, width, cv2.LINE_AA)
            page = taken(cv2.GaussianBlur(page, (0, 0), 0.8) + rng.normal(0.0, 2.0, page.shape), 0)
            found += [one.status for one in find_markers(page, strict=True)]
    # Of 108 letters, 26 were rings with less of the rim or with thinner bands, 6 where what they
    # are no ellipse by passed for correlated noise or light.
    assert 'TRACKED' not in found


@pytest.mark.parametrize('form', ['json', 'table'])
def test_one_picture_that_cannot_be_used_does_not_stop_the_others(
    capsys, monkeypatch, tmp_path, form
):
    for number in (1, 3, 5):
        cv2.imwrite(str(tmp_path / f'p{number}.png'), ring())
    (tmp_path / 'p2.png').write_bytes((tmp_path / 'p1.png').read_bytes()[:60])
    cv2.imwrite(str(tmp_path / 'p4.png'), ring()[:50, :60])
    # What is there is printed before the next picture is read.
    before = []

    def read(file):
        before.append(capsys.readouterr())
        return read_picture(file)

    monkeypatch.setattr(detection_commands, 'read_picture', read)
    overlay = tmp_path / 'seen.jpg'
    words = (*(tmp_path / f'p{k}.png' for k in range(1, 6)), *AT)
    assert call(*words, '--format', form, '--overlay', overlay) == 2
    rest = capsys.readouterr()
    assert 'p1.png' in before[1].out
    assert 'p3.png' in before[3].out
    out = ''.join(one.out for one in (*before, rest))
    errors = ''.join(one.err for one in (*before, rest)).splitlines()
    assert all(line.startswith('longreach vision: ') for line in errors)
    assert [re.search(r'p\d\.png', line)[0] for line in errors] == ['p2.png', 'p4.png']
    names = re.findall(r'p\d\.png', out)
    assert names == ['p1.png', 'p3.png', 'p5.png']
    assert out.count('TRACKED') == 3
    if form == 'json':
        assert len([json.loads(line) for line in out.splitlines()]) == 3
    # Of the last one that there is; something in colour was drawn over the grey.
    drawn = cv2.imread(str(overlay))
    assert drawn.shape == (HEIGHT, WIDTH, 3)
    assert np.ptp(drawn.astype(int), axis=2).max() > 100


def test_columns_of_the_table_stand_below_each_other(capsys, picture, tmp_path):
    long = tmp_path / 'a_picture_with_a_long_name.png'
    long.write_bytes(picture.read_bytes())
    lost = tmp_path / 'z.png'
    cv2.imwrite(str(lost), np.full((HEIGHT, WIDTH), 90, np.uint8))
    call(picture, long, lost, *AT)
    head, *rows, last = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r' +z\.png +LOST .*no ellipse of this size here', last)
    assert len(rows) == 2
    for row in rows:
        assert re.match(r' *\w+\.png +TRACKED +83\.\d{3} +58\.\d{3} ', row)
        for column in ('image', 'status', 'u [px]', 'v [px]', 'rim', 'ms'):
            end = head.index(column) + len(column)
            assert row[end - 1] != ' '
            assert row[end : end + 1] in (' ', '')


# --- refusals -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ('text', 'words'),
    [
        ('--radius is missing', ('--at', '85,57')),
        ('--at is missing', ('--radius', 17)),
        ('--search, allowed with --at', ('--search', 20)),
        ('--normal, allowed with --calibration', (*AT, '--normal', '0,0,1')),
        ('ring.png: the marker at (300, 5) lies outside', ('--at', '300,5', '--radius', 17)),
        ('not 0', (*AT, '--camera', '{camera}', '--normal', '0,0,0')),
        ('--overlay', (*AT, '--overlay', 'a.gif')),
        ('is one of the inputs', (*AT, '--overlay', '{picture}')),
    ],
)
def test_options_that_cannot_be(capsys, picture, calibration, text, words):
    files = {'camera': calibration, 'picture': picture}
    refused(text, picture, *(str(word).format(**files) for word in words))
    assert not capsys.readouterr().out


@pytest.mark.parametrize(
    'words', [('--at', '1,2,3'), ('--normal', '0,1'), ('--radius', 'nan'), ('--search', '0')]
)
def test_values_that_are_no_numbers_end_in_usage(capsys, picture, words):
    with pytest.raises(SystemExit) as info:
        call(picture, *words)
    assert info.value.code == 2
    assert words[0] in capsys.readouterr().err
