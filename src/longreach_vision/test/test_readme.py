"""
The package's README: its files load, and its examples run.
"""

import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from longreach_dynamics.parameters import load
from longreach_markers import load_rig
from longreach_markers.rig import rig_file
from longreach_markers.setup.localisation import reference_file
from longreach_vision.io.picture_files import render_sequence
from longreach_vision.io.track_table import columns_of
from longreach_vision.simulator.camera_simulator import simulators_of
from longreach_vision.simulator.marker_path import MarkerPath
from longreach_vision.simulator.scene import CameraLook

PACKAGE = Path(__file__).resolve().parent.parent
README = (PACKAGE / 'README.md').read_text(encoding='utf-8')


@pytest.mark.parametrize(
    ('cls', 'name'),
    [
        (rig_file(['left', 'right']), 'rig_boom'),
        (reference_file(['left', 'right']), 'reference_example'),
        (CameraLook, 'simulated_cameras'),
    ],
)
def test_readme_shows_a_file_of_each_kind_that_loads(cls, name):
    file = f'config/{name}.yaml'
    assert f'[{name}.yaml]({file})' in README
    assert load(cls, PACKAGE / file)


def test_readme_names_the_columns_of_a_csv_file():
    table_of_columns = set(re.findall(r'`((?:NAME\.)?\w+)`', README))
    assert set(columns_of(['NAME'])) <= table_of_columns


@pytest.mark.parametrize('name', ['longreach_vision', 'longreach_markers'])
def test_every_module_is_named(name):
    package = PACKAGE.with_name(name)
    modules = {path.stem for path in (package / name).rglob('*.py')} - {'__init__'}
    missing = modules - set(re.findall(r'`(\w+)`', (package / 'README.md').read_text()))
    assert not missing, f'README lacks {sorted(missing)}'


def test_examples_run(tmp_path, monkeypatch, capsys):
    """In a workspace with pictures of the boom's markers at rest."""
    config = tmp_path / 'src/longreach_vision/config'
    shutil.copytree(PACKAGE / 'config', config)
    rig = load_rig(config / 'rig_boom.yaml').scaled(0.5)
    places = np.array([[marker.position for marker in rig.markers]])
    still = MarkerPath(rig.names, np.array([0.0, 1.0]), np.repeat(places, 2, axis=0))
    (tmp_path / 'out').mkdir()
    simulators, out = simulators_of(rig, CameraLook(clutter=0)), tmp_path / 'out/pictures'
    render_sequence(simulators, still, np.arange(2) / 15.0, out)
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r'^```python\n(.*?)^```', README, re.MULTILINE | re.DOTALL)
    one_marker, all_markers = (compile(block, 'README', 'exec') for block in blocks)
    exec(one_marker, {'__name__': '__main__'})
    assert capsys.readouterr().out.startswith('TRACKED [')
    exec(all_markers, {'__name__': '__main__'})
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[1] for line in lines] == 2 * list(rig.names)
    for line, marker in zip(lines, 2 * rig.markers, strict=True):
        in_plane, triangulated = (
            np.array(numbers.split(), float) for numbers in re.findall(r'\[(.*?)\]', line)
        )
        assert np.abs(in_plane - marker.position).max() < 1e-3
        assert np.abs(triangulated - marker.position).max() < 5e-3
