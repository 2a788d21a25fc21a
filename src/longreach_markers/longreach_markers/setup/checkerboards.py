"""
Detection of checkerboards in pictures.

A board of 9x6 has 9 by 6 inner corners, that is 10 by 7 squares, as in ROS camera_calibration.
The board's frame has x along the first and y along the second of the two numbers, z = 0 [m].
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from pathlib import Path

import cv2
import numpy as np
from tqdm import tqdm

from longreach_dynamics.errors import InputError, check_within, named
from longreach_markers.io.images import PICTURES, gray_of
from longreach_markers.io.stored_images import is_picture, natural_order, stored_picture

FEWEST = 3
"""Least number of pictures with a board for a calibration."""

_LOOKED_AT = 3  # pictures that are searched for a larger board
_AGREEING = 2  # pictures that must show the same larger board
_CORNERS_AT_LEAST, _CORNERS_AT_MOST = 3, 100
# Half size of the refinement window, as a share of the smallest square, and its maximum [px].
_WINDOW, _LARGEST_WINDOW = 0.45, 15
_REFINED = (cv2.TERM_CRITERIA_COUNT + cv2.TERM_CRITERIA_EPS, 100, 1e-12)
_COARSE = 800.0  # image width at which a board is searched for


@dataclasses.dataclass(frozen=True)
class Board:
    """
    A checkerboard.

    Parameters
    ----------
    columns, rows : int
        Number of inner corners.
    square : float
        Side length of a square [m].

    Raises
    ------
    InputError
        For a board size that cannot be detected.
    """

    columns: int
    rows: int
    square: float

    def __post_init__(self) -> None:
        for count in (self.columns, self.rows):
            if not _CORNERS_AT_LEAST <= count <= _CORNERS_AT_MOST:
                raise InputError(
                    f'board = {self}, allowed: {_CORNERS_AT_LEAST} to {_CORNERS_AT_MOST} inner'
                    ' corners each way, such as 9x6 for 10 by 7 squares'
                )
        check_within('square', self.square, '(0, 10) m')

    @classmethod
    def parse(cls, text: str, square: float) -> Board:
        """Return the board for a text such as 9x6 (inner corners) and the side of a square [m]."""
        found = re.fullmatch(r'(\d{1,4})[xX](\d{1,4})', text.strip())
        if not found:
            raise InputError(
                f'board = {text!r}, allowed: inner corners such as 9x6 for 10 by 7 squares'
            )
        return cls(int(found[1]), int(found[2]), square)

    def __str__(self) -> str:
        return f'{self.columns}x{self.rows}'

    @property
    def points(self) -> np.ndarray:
        """Corners in the board's frame (n, 3) [m], row by row."""
        y, x = np.mgrid[: self.rows, : self.columns]
        flat = np.stack([x, y, np.zeros_like(x)], axis=-1).reshape(-1, 3)
        return np.asarray(flat * self.square, dtype=np.float64)


@dataclasses.dataclass(frozen=True)
class BoardView:
    """
    Corners of the board in one picture.

    Parameters
    ----------
    name : str
        Name of the picture.
    corners : ndarray, shape (n, 2)
        Pixels [px] in the order of :attr:`Board.points`.
    """

    name: str
    corners: np.ndarray


def list_pictures(paths: Sequence[str | Path]) -> list[Path]:
    """Expand files and folders to a list of pictures, those of a folder in natural order."""
    found: list[Path] = []
    for path in map(Path, paths):
        if path.is_dir():
            inside = [file for file in path.iterdir() if is_picture(file)]
            if not inside:
                raise InputError(f'{path} holds no pictures, allowed: {" ".join(PICTURES)}')
            found += sorted(inside, key=natural_order)
        elif path.is_file():
            found.append(path)
        else:
            raise InputError(f'{path} does not exist; give pictures or a folder of pictures')
    return list(dict.fromkeys(found))


def read_picture(file: str | Path) -> np.ndarray:
    """Read a picture in grey, uint8, without EXIF rotation; 16-bit values up to the brightest."""
    stored = stored_picture(Path(file))
    if stored.dtype == np.uint16:
        scale = 255.0 / max(float(stored.max()), 1.0)
        stored = np.rint(stored * scale).astype(np.uint8)
    with named(f'{file}: '):
        return gray_of(stored)


def find_corners(image: np.ndarray, board: Board) -> np.ndarray | None:
    """
    Find the inner corners of a board in a picture.

    Parameters
    ----------
    image : ndarray, shape (rows, columns)
        uint8.
    board : Board
        It must be entirely visible.

    Returns
    -------
    ndarray, shape (n, 2), or None
        Pixels in the order of :attr:`Board.points`, except that the board may be rotated by half a
            turn; None where no board is found [px].
    """
    size = (board.columns, board.rows)
    # CALIB_CB_NORMALIZE_IMAGE makes the corners of the SB detector many times less accurate.
    found, corners = cv2.findChessboardCornersSB(image, size, flags=cv2.CALIB_CB_EXHAUSTIVE)
    if not found:
        # The older detector finds some other boards, but takes half a minute for 5 Mpx.
        scale = min(_COARSE / image.shape[1], 1.0)
        small = cv2.resize(image, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)
        found, corners = cv2.findChessboardCorners(
            small, size, flags=cv2.CALIB_CB_ADAPTIVE_THRESH | cv2.CALIB_CB_NORMALIZE_IMAGE
        )
        if not found:
            return None
        corners = (np.asarray(corners) + 0.5) / scale - 0.5
    # On tilted boards the SB detector is off by up to 0.3 px; refinement leaves 0.03 to 0.05 px.
    # The window is as large as the squares allow.
    grid = np.asarray(corners).reshape(board.rows, board.columns, 2)
    gap = min(float(np.linalg.norm(np.diff(grid, axis=k), axis=-1).min()) for k in (0, 1))
    half = int(min(max(_WINDOW * gap, 2.0), _LARGEST_WINDOW))
    corners = cv2.cornerSubPix(
        image, np.asarray(corners, np.float32), (half, half), (-1, -1), _REFINED
    )
    return np.asarray(corners, dtype=np.float64).reshape(-1, 2)


def find_views(
    files: Sequence[Path], board: Board, progress: bool = False
) -> tuple[list[BoardView], list[str], tuple[int, int]]:
    """
    Find a board in pictures.

    Parameters
    ----------
    files : sequence of path
    board : Board
    progress : bool
        Show progress on stderr when it is a terminal.

    Returns
    -------
    views : list of BoardView
    empty : list of str
        Names of the pictures without a board.
    size : tuple of int
        Width and height of the pictures [px].

    Raises
    ------
    InputError
        If pictures cannot be read, have different sizes, or show a larger board, or if
        too few show the board.
    """
    if not files:
        raise InputError('no pictures are given, allowed: files or folders')
    views: list[BoardView] = []
    empty: list[Path] = []
    larger: list[str] = []
    size: tuple[int, int] | None = None
    for file in tqdm(files, disable=None if progress else True, delay=1.0, unit='picture'):
        image = read_picture(file)
        this = (image.shape[1], image.shape[0])
        if size is not None and this != size:
            raise InputError(
                f'{file} has {this[0]} x {this[1]} px and {files[0]} has {size[0]} x {size[1]} px,'
                ' allowed: pictures of one camera in one size, none turned'
            )
        size = this
        corners = find_corners(image, board)
        if corners is None:
            empty.append(file)
        else:
            views.append(BoardView(str(file), corners))
            if len(views) <= _LOOKED_AT:
                larger.append(_larger(image, board))
                # In a larger board, each picture would give a different part.
                if larger[-1] and larger.count(larger[-1]) == _AGREEING:
                    raise InputError(
                        f'{file} shows a board of {larger[-1]}, of which {board} is a part,'
                        f' allowed: all inner corners, --board {larger[-1]}'
                    )
    if len(views) < FEWEST:
        raise InputError(
            f'{len(views)} of {len(views) + len(empty)} pictures show a whole board of {board}'
            f' inner corners, allowed: {FEWEST} or more, 15 to 30 are good; count inner corners,'
            ' not squares, and take sharp pictures of the whole board with a white border'
        )
    assert size is not None
    return views, [str(file) for file in empty], size


def _larger(image: np.ndarray, board: Board) -> str:
    """Return the larger board that contains the given one in a picture; empty for none."""
    found, _, meta = cv2.findChessboardCornersSBWithMeta(
        image, (3, 3), cv2.CALIB_CB_EXHAUSTIVE | cv2.CALIB_CB_LARGER
    )
    if not found:
        return ''
    few, many = sorted(meta.shape[:2])
    own = sorted((board.columns, board.rows))
    is_larger = few >= own[0] and many >= own[1] and [few, many] != own
    return f'{many}x{few}' if is_larger else ''
