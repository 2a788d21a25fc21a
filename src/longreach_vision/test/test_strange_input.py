"""What is strange but possible works, what cannot be used is refused, with boards and commands."""

from __future__ import annotations

import re
from pathlib import Path

import cv2
import numpy as np
import pytest
from small_commands import call, refused
from small_rig import small_rig
from test_setup_commands import board_picture

from longreach_dynamics.errors import InputError
from longreach_markers.camera.files import write_camera
from longreach_markers.setup.calibration import calibrate
from longreach_markers.setup.checkerboards import (
    Board,
    find_corners,
    find_views,
    read_picture,
)
from longreach_vision.simulator.camera_simulator import CameraSimulator
from longreach_vision.simulator.scene import Scene, SimulatedMarker

# Whatever numpy has to say would stand beside the error.
pytestmark = pytest.mark.filterwarnings('error')


def boards(folder: Path) -> list[Path]:
    """Write pictures of a board of 7 x 5 inner corners."""
    files = []
    for k, angles in enumerate([(-30, 25, 4), (28, -30, -3), (-20, -28, 6), (25, 25, 2)]):
        files.append(folder / f'{k}.png')
        cv2.imwrite(str(files[-1]), board_picture(np.array(angles, float), (-0.12, -0.08, 0.5)))
    return files


def test_part_of_a_larger_board_is_none(tmp_path):
    files = boards(tmp_path)
    views, empty, size = find_views(files, Board(7, 5, 0.04))
    assert not empty
    assert abs(calibrate(views, Board(7, 5, 0.04), size).camera.fx - 520.0) < 20.0
    for columns, rows in ((6, 4), (3, 3), (5, 4), (7, 4)):
        with pytest.raises(InputError, match=r'shows? (a board of 7x5|a whole board)'):
            find_views(files, Board(columns, rows, 0.04))
    # The same board, turned.
    assert find_corners(read_picture(files[0]), Board(5, 7, 0.04)) is not None


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
    # A wrong size is still said.
    with pytest.raises(InputError, match='shows a board of'):
        find_views(cut, board)


def test_outputs_do_not_take_the_place_of_inputs(tmp_path):
    files = boards(tmp_path)
    before = files[0].read_bytes()
    words = ('calibrate', *files, '--board', '7x5', '--square', '0.04')
    link = tmp_path / 'link.yaml'
    link.symlink_to(files[0].name)
    for out in (files[0], link):
        refused(f'--out {out} is one of the inputs', *words, '--out', out)
    refused('--plot', *words, '--plot', files[0])
    both = tmp_path / 'both.png'
    refused('give two places', *words, '--out', both, '--plot', both)
    refused('--overlay', 'detect', files[0], '--overlay', files[0])
    assert files[0].read_bytes() == before
    assert not both.exists()


def test_normal_of_any_length(tmp_path, capsys):
    rig = small_rig()
    camera, pose = rig.cameras['left'].camera, rig.cameras['left'].pose
    simulator = CameraSimulator(camera, pose, Scene((SimulatedMarker('one', 0.14),)))
    image = simulator.image(
        np.zeros((1, 3)), np.zeros((1, 3)), 0.0, np.random.default_rng(0)
    ).copy()
    cv2.imwrite(str(tmp_path / 'a.png'), image)
    write_camera(camera, tmp_path / 'camera.yaml')
    u, v = camera.project(pose.to_camera((0.0, 0.0, 0.0)))
    words = (tmp_path / 'a.png', '--at', f'{u:.0f},{v:.0f}', '--radius', '14')
    normal = rig.normal_cam('left')
    told = set()
    for length in (1.0, 1e-200, 1e200, 1e308):
        text = ','.join(f'{value:.17g}' for value in normal * length)
        view = ('--camera', tmp_path / 'camera.yaml', f'--normal={text}')
        call('detect', *words, *view, '--format', 'json')
        told.add(re.search(r'"center": \[([\d.]{7})', capsys.readouterr().out)[1])
    assert len(told) == 1
    refused('--normal 0,0,0', 'detect', *words, *view[:2], '--normal', '0,0,0')
