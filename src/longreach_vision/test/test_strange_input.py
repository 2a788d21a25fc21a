"""Pictures of larger boards, and of boards that are cut."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest
from test_setup_commands import write_board

from longreach_dynamics.errors import InputError
from longreach_markers.setup.checkerboards import (
    Board,
    find_corners,
    find_views,
    read_picture,
)

# Whatever numpy has to say would stand beside the error.
pytestmark = pytest.mark.filterwarnings('error')


def boards(folder: Path) -> list[Path]:
    tilts = [(-30, 25, 4), (28, -30, -3), (-20, -28, 6), (25, 25, 2)]
    return [
        write_board(folder / f'{k}.png', angles, (0.0, 0.0, 0.5)) for k, angles in enumerate(tilts)
    ]


def test_part_of_a_larger_board_is_none(tmp_path):
    files = boards(tmp_path)
    for columns, rows in ((6, 4), (3, 3), (7, 4)):
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
