"""The README: its example runs."""

import re
from pathlib import Path

import numpy as np
import pytest
from independent_views import digitised, view, write_pictures

from longreach_markers import Camera, MarkerOnRig, MountedCamera, Plane, Pose, Rig, write_camera

README = (Path(__file__).resolve().parent.parent / 'README.md').read_text()


def test_a_printed_marker_is_tracked_in_ten_lines(tmp_path, monkeypatch, capsys):
    camera = Camera('camera', 400, 300, 500.0, 500.0, 199.5, 149.5)
    pose = Pose.from_look_at((0.0, -1.0, 0.0), (0.0, 0.0, 0.0))
    plane = Plane(np.array([0.0, 1.0, 0.0]), 0.0)
    rig = Rig({'left': MountedCamera(camera, pose)}, plane, (MarkerOnRig('mine', 0.05),))
    places = np.array([(0.02 * k, 0.0, -0.01 * k) for k in range(4)])
    rng = np.random.default_rng(1)
    pictures = [digitised(view(rig, 'left', lambda _, at=at: at[None]), rng) for at in places]
    write_pictures(tmp_path / 'pictures', pictures, [0.1 * k for k in range(4)])
    write_camera(camera, tmp_path / 'camera.yaml')
    monkeypatch.chdir(tmp_path)
    (code,) = re.findall(r'^```python\n(.*?)^```', README, re.MULTILINE | re.DOTALL)
    assert len([line for line in code.splitlines() if line]) <= 11
    exec(compile(code, 'README', 'exec'), {})
    rows = np.array(
        [re.sub(r'[\[\]]', '', line).split() for line in capsys.readouterr().out.splitlines()],
        float,
    )
    assert rows[:, 0] == pytest.approx([0.0, 0.1, 0.2, 0.3])
    errors, deviations = rows[:, 1:4] - places, rows[:, 4:7]
    assert np.abs(errors).max() < 1e-4
    assert np.abs(errors[:, [0, 2]] / deviations[:, [0, 2]]).max() < 4.0
