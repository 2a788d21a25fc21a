"""Sequences of pictures as folders and videos: all of them, or nothing."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest

from longreach_dynamics.errors import InputError, LongreachError
from longreach_markers.camera.geometry import Pose
from longreach_markers.camera.model import Camera
from longreach_vision.simulator.camera_simulator import CameraSimulator, frame_rng
from longreach_vision.simulator.marker_path import MarkerPath
from longreach_vision.simulator.scene import CameraLook, Scene, SimulatedMarker
from longreach_vision.simulator.sequences import render_sequence

CAMERA = Camera('left', 84, 76, 900.0, 910.0, 40.3, 38.2)
LOOK = CameraLook(clutter=3)
RING = SimulatedMarker('ring', 0.15, 0.55, normal=(0.0, 1.0, 0.0))
# Along the world's y, as towards the boom: x to the right, z up.
AHEAD = Pose(np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, -1.0, 0.0]]), np.zeros(3))


def sway() -> MarkerPath:
    """Return a path of the ring, and of another marker, through the picture."""
    times = np.linspace(0.0, 1.0, 11)
    places = np.zeros((11, 2, 3))
    places[:, :, 1] = 8.0
    places[:, 1, 0] = 0.1 * np.sin(6.0 * times)
    return MarkerPath(('other', 'ring'), times, places)


@pytest.mark.parametrize('video', [False, True])
def test_a_sequence_is_what_single_pictures_are(tmp_path: Path, video: bool) -> None:
    scene = Scene((RING,), LOOK)
    simulators = {
        name: CameraSimulator(CAMERA.replace(name=name), AHEAD, scene)
        for name in ('left', 'right')
    }
    times = [0.0, 0.25, 0.5, 1.0]
    files = render_sequence(simulators, sway(), times, tmp_path / 'run', video=video)
    assert sorted(path.name for path in tmp_path.iterdir()) == ['run']
    assert (tmp_path / 'run' / 'times.csv').read_text() == 'time\n0.0\n0.25\n0.5\n1.0\n'
    for name, file in files.items():
        if video:
            capture = cv2.VideoCapture(str(file))
            pictures = [capture.read()[1][:, :, 0] for _ in times]
            assert not capture.read()[0]
        else:
            pictures = [cv2.imread(str(p), cv2.IMREAD_UNCHANGED) for p in sorted(file.iterdir())]
        assert len(pictures) == 4
        rng = frame_rng(LOOK.seed, name, 2)
        simulator = CameraSimulator(CAMERA.replace(name=name), AHEAD, scene)
        expected = simulator.image(*sway().of(['ring']).at(0.5), 0.5, rng)
        assert np.array_equal(pictures[2], expected)


def test_a_sequence_that_cannot_be_leaves_nothing(tmp_path: Path) -> None:
    simulators = {'left': CameraSimulator(CAMERA, AHEAD, Scene((RING,), LOOK))}
    with pytest.raises(InputError, match=r'time = 2 s, allowed for this path: \[0, 1\] s'):
        render_sequence(simulators, sway(), [0.0, 2.0], tmp_path / 'a')
    with pytest.raises(InputError, match='times do not increase'):
        render_sequence(simulators, sway(), [0.5, 0.5], tmp_path / 'a')
    with pytest.raises(InputError, match="no marker 'ring', found: other"):
        render_sequence(simulators, sway().of(['other']), [0.5], tmp_path / 'a')
    odd = {'left': CameraSimulator(CAMERA.replace(height=51), AHEAD, Scene((RING,), LOOK))}
    with pytest.raises(InputError, match=r'video of \d+ x 51 px of left, allowed: even numbers'):
        render_sequence(odd, sway(), [0.5], tmp_path / 'a', video=True)
    assert not list(tmp_path.iterdir())
    (tmp_path / 'full').mkdir()
    (tmp_path / 'full' / 'mine').write_text('')
    with pytest.raises(InputError, match='full is not empty; give a new directory'):
        render_sequence(simulators, sway(), [0.5], tmp_path / 'full')
    (tmp_path / 'empty').mkdir()
    render_sequence(simulators, sway(), [0.5], tmp_path / 'empty')
    assert (tmp_path / 'empty' / 'left' / '000000_0.500000000.png').exists()


def test_a_failure_while_writing_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cv2, 'imwrite', lambda *_: False)
    simulators = {'left': CameraSimulator(CAMERA, AHEAD, Scene((RING,), LOOK))}
    with pytest.raises(LongreachError, match='cannot be written; is the disk full'):
        render_sequence(simulators, sway(), [0.5], tmp_path / 'a')
    assert not list(tmp_path.iterdir())
