"""
The commands of docs/cameras.md, in their order, on rendered material.

The recordings are MJPEG, of cameras with rolling shutters whose clocks differ.
"""

import json
import math
import re
import shlex
from pathlib import Path

import cv2
import numpy as np
import pytest
import yaml
from independent_views import digitised, view, write_video
from known_rig import mapping
from test_setup_commands import TRUTH, write_board

from longreach_markers import MarkerOnRig, MountedCamera, Plane, Pose, Rig, load_rig
from longreach_tools import cli

GUIDE = Path(__file__).resolve().parents[3] / 'docs' / 'cameras.md'
LENGTH = 1.078  # of the bar [m]
OFFSET, LINE_TIME = 0.012, 20e-6  # [s]
RATE, FRAMES = 30.0, 120
RADIUS = 0.14
POINTS = np.array(
    [
        (-1.3, 0.0, -0.6),
        (1.3, 0.0, -0.6),
        (-1.3, 0.0, 1.2),
        (1.3, 0.0, 1.2),
        (0.0, 0.0, 0.4),
        (0.0, -1.0, -0.4),
        (0.6, 0.8, 0.9),
    ]
)

# Tilts [deg] and place [m] of each board.
BOARDS = (
    (0, 0, 0.0, 0.0, 0.45),
    (30, 0, 0.02, 0.0, 0.48),
    (-30, 5, -0.02, 0.0, 0.48),
    (5, 30, 0.0, 0.0, 0.48),
    (0, -30, 0.0, 0.0, 0.48),
    (20, 20, 0.15, 0.13, 0.75),
    (-20, 20, 0.15, -0.13, 0.75),
    (20, -20, -0.15, 0.13, 0.75),
    (-20, -20, -0.15, -0.13, 0.75),
    (30, 0, 0.15, 0.0, 0.75),
    (0, 30, -0.15, 0.0, 0.75),
)


def commands():
    lines = re.findall(r'^    (longreach .*)$', GUIDE.read_text(encoding='utf-8'), re.MULTILINE)
    return [shlex.split(line) for line in lines]


def rig_with(names):
    cameras = {
        name: MountedCamera(TRUTH, Pose.from_look_at((x, -5.0, 0.4), (0.0, 0.0, 0.3)))
        for name, x in (('left', -0.9), ('right', 0.9))
    }
    markers = tuple(MarkerOnRig(name=name, radius=RADIUS) for name in names)
    return Rig(cameras, Plane(np.array([0.0, 1.0, 0.0]), 0.0), markers)


def bar(time):
    """Return the ends of the bar (2, 3): it moves up, down and sideways, and turns."""
    tilt = 0.5 * np.sin(2.1 * time) + 0.2
    middle = np.array(
        [0.35 * np.sin(1.3 * time), 0.0, 0.3 + 0.35 * np.sin(3.7 * time) * np.cos(1.1 * time)]
    )
    half = 0.5 * LENGTH * np.array([np.cos(tilt), 0.0, np.sin(tilt)])
    return np.array([middle - half, middle + half])


@pytest.fixture(scope='module')
def material(tmp_path_factory):
    folder = tmp_path_factory.mktemp('afternoon')
    rng = np.random.default_rng(7)
    for side in ('left', 'right'):
        boards = folder / f'{side}_boards'
        boards.mkdir()
        for k, (a, b, x, y, away) in enumerate(BOARDS):
            middle = np.array([x, y, away]) + 0.005 * rng.standard_normal(3)
            write_board(boards / f'{k}.png', (a, b, 5.0 * k), middle)
    stands = rig_with([f'p{k}' for k in range(len(POINTS))])
    ends = rig_with(['one', 'two'])
    for side, start in (('left', 0.0), ('right', -OFFSET)):
        still = digitised(view(stands, side, lambda _: POINTS), rng)
        cv2.imwrite(str(folder / f'{side}.png'), still)
        images = [
            digitised(view(ends, side, bar, start + k / RATE, LINE_TIME), rng)
            for k in range(FRAMES)
        ]
        write_video(folder / f'{side}.avi', images, 'MJPG', RATE)
    return folder


def write_reference(folder, capsys):
    """Write reference.yaml: measured positions, and the detected pixels nearest to each."""
    poses = {side: one.pose for side, one in rig_with(['p']).cameras.items()}
    errors = {'rng': np.random.default_rng(3), 'pixel': 0.1, 'deviation': 0.002}
    rig = {'cameras': dict.fromkeys(poses, TRUTH), 'poses': poses, 'tip': [1.0, 0.0, 0.5]}
    values = mapping(POINTS, **errors, **rig)
    for side in poses:
        capsys.readouterr()
        assert cli.main(['vision', 'detect', f'{side}.png', '--format', 'json']) == 0
        found = [json.loads(line)['center'] for line in capsys.readouterr().out.splitlines()]
        for row in values['points']:
            row[side] = min(found, key=lambda at, about=row[side]: math.dist(at, about))
    (folder / 'reference.yaml').write_text(yaml.safe_dump(values))


def state_line_time(rig):
    values = yaml.safe_load(rig.read_text())
    for camera in values['cameras'].values():
        camera['line_time'] = LINE_TIME
    rig.write_text(yaml.safe_dump(values))


@pytest.mark.slow
def test_the_commands_of_the_guide(material, monkeypatch, capsys):
    monkeypatch.chdir(material)
    out = {}
    for words in commands():
        if words[1] == 'launch':
            continue
        if words[1:3] == ['vision', 'pose']:
            write_reference(material, capsys)
        capsys.readouterr()
        assert cli.main(words[1:]) == 0, f'{words}: {capsys.readouterr().err}'
        name = words[2] if words[1] == 'vision' else words[1]
        out[name] = capsys.readouterr().out
        if name == 'sync':
            # The motion hardly shows it: not at all, or with an error of a third.
            said = re.search(
                r'shutter of both: \+([\d.]+) us a row of these images, .* ([\d.]+) us', out[name]
            )
            if said is None:
                assert 'rolling shutter of both: cannot be known' in out[name]
            else:
                assert abs(float(said[1]) - 1e6 * LINE_TIME) < 3.0 * float(said[2])
            state_line_time(material / 'rig.yaml')
    assert set(out) == {
        *('marker', 'calibrate', 'detect', 'pose', 'sync', 'check', 'track', 'plot'),
    }
    rig = load_rig('rig.yaml')
    assert abs(rig.cameras['right'].delay - OFFSET) < 1e-3
    *_, error, _, scatter, _ = out['check'].splitlines()[-1].split()
    assert abs(float(error)) < 3.0
    assert float(scatter) < 1.0
    table = np.genfromtxt('tracks.csv', delimiter=',', names=True)
    for k, name in enumerate(('one', 'two')):
        where = np.stack([table[f'{name}in_plane_{axis}'] for axis in 'xz'], axis=1)
        truth = np.array([bar(time)[k][[0, 2]] for time in table['time']])
        off = np.linalg.norm(where - truth, axis=1)
        assert np.sqrt(np.nanmean(off**2)) < 0.004
