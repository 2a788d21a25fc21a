"""`pip install .` without ROS: what it installs is what the packages declare, and it runs."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
# Of the packages that only the command needs, none is declared twice.
GROUPS = ('longreach.machines', 'longreach.commands', 'longreach.identification')


def keywords() -> dict[str, Any]:
    """Return what the build backend gives to setup(), from a process of its own as pip's."""
    program = (
        'import sys; sys.path.insert(0, "scripts"); '
        'import json, wheel_backend; print(json.dumps(wheel_backend.keywords()))'
    )
    done = subprocess.run(
        [sys.executable, '-c', program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_the_distribution_has_all_packages_and_entries() -> None:
    found = keywords()
    names = {path.parent.name for path in ROOT.glob('src/*/setup.py')}
    assert names <= set(found['packages'])
    for group in GROUPS:
        known = {
            f'{point.name} = {point.value}'
            for point in metadata.entry_points(group=group)
            if point.module.partition('.')[0] in names  # not of an overlay
        }
        assert known <= set(found['entry_points'][group])
    assert found['entry_points']['console_scripts'] == ['longreach = longreach_tools.cli:console']
    assert not any(one.startswith(('longreach', 'ros-')) for one in found['install_requires'])
    extras = found['extras_require']
    assert extras['vision'] == ['opencv-contrib-python-headless<5'], 'as requirements.in bounds it'
    assert set(extras['vision']) < set(extras['all'])
    assert not set(extras['all']) & set(found['install_requires'])


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_wheel_runs_without_ros(tmp_path: Path) -> None:
    """In a new environment: a run with a figure, a recording's refusal of nodes, the library."""
    copy = tmp_path / 'source'
    ignored = shutil.ignore_patterns('.venv', 'build', 'install', 'log', 'out', '.git')
    shutil.copytree(ROOT, copy, ignore=ignored, symlinks=True)
    subprocess.run([sys.executable, '-m', 'venv', tmp_path / 'venv'], check=True)
    program = tmp_path / 'venv' / 'bin'
    # Nothing of this environment, but where pip finds packages.
    environment = {
        'PATH': f'{program}:/usr/bin:/bin',
        'HOME': os.environ['HOME'],
        **{name: value for name, value in os.environ.items() if name.startswith('PIP_')},
    }

    def run(*words: str | Path, code: int = 0) -> str:
        done = subprocess.run(
            [program / words[0], *words[1:]],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
        )
        assert done.returncode == code, done.stderr
        return done.stderr if code else done.stdout

    # From a source distribution, which must have all that a wheel is made of.
    make = 'import wheel_backend; wheel_backend.build_sdist("dist")'
    paths = os.environ | {'PYTHONPATH': str(copy / 'scripts')}
    subprocess.run([sys.executable, '-c', make], cwd=copy, env=paths, check=True)
    (archive,) = copy.glob('dist/*.tar.gz')
    # As README does; the modules that are used are compiled by Python.
    run('pip', 'install', '--quiet', '--no-compile', archive)
    assert 'boom' in run('longreach', '--help')
    assert 'load_position' in run('longreach', 'crane', 'run', 'task_b', '--plot', 'crane.png')
    assert (tmp_path / 'crane.png').stat().st_size > 10_000
    for machine in ('excavator', 'harvester', 'links'):
        assert '<robot ' in run('longreach', machine, 'urdf')
    assert 'nodes need ROS 2' in run('longreach', 'launch', 'crane', code=2)
    for words in (('view', 'crane'), ('view', '--demo')):
        (line,) = run('longreach', *words, code=1).splitlines()
        assert 'this needs ROS 2 (rclpy was not found)' in line
    (line,) = run('longreach', 'vision', 'marker', '--help', code=1).splitlines()
    assert 'this needs the Python package opencv-contrib-python-headless' in line
    script = tmp_path / 'first.py'
    readme = (ROOT / 'README.md').read_text().partition('```python\n')[2].partition('```')[0]
    script.write_text(readme)
    assert re.search(r'\d\.\d\d m, \d+ bar', run('python', script))
