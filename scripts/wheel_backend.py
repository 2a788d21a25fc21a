"""
The build backend of ``pip install .``: one distribution of all packages, without ROS.

Packages, data, dependencies and entry points are those of each ``src/*/setup.py``, which colcon
uses: nothing is declared a second time. There is no setup.py at the root, because colcon would
take the root for a package.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import runpy
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import setuptools
from setuptools import build_meta

ROOT = Path(__file__).resolve().parent.parent
# What longreach_bringup installs to its share.
_SHARED = {
    'launch': 'launch',
    'config': 'config',
    'rviz': 'rviz',
    'docs/tutorials/pendulum': 'pendulum',
}
# What single commands import when they need it: half a gigabyte that an installation can omit.
_VISION = {'opencv-contrib-python-headless'}
_OPTIONAL = _VISION | {'distributed', 'fmpy', 'osqp', 'pyarrow', 'pythonfmu'}
_VERSION, _PYTHON = '0.1.0', '>=3.11'


def keywords() -> dict[str, Any]:
    """Return the arguments of setup() for all packages together."""
    found: dict[str, Any] = {
        'packages': [],
        'package_dir': {},
        'package_data': {},
        'data_files': [],
        'entry_points': {},
    }
    needed: set[str] = set()
    for file in sorted(ROOT.glob('src/*/setup.py')):
        own = _captured(file)
        directory = file.parent.relative_to(ROOT)
        name = own['name']
        found['packages'] += own['packages']
        found['package_dir'][name] = str(directory / name)
        for package, place in own.get('package_dir', {}).items():
            found['package_dir'][package] = str(directory / place)
        found['package_data'] |= own.get('package_data', {})
        for target, files in own['data_files']:
            if not target.startswith('share/ament_index'):
                found['data_files'].append((target, [str(directory / one) for one in files]))
        needed |= {one for one in own['install_requires'] if not one.startswith('longreach_')}
        for group, entries in own.get('entry_points', {}).items():
            # Of the programs only the command: nodes are started by ROS.
            scripts = group == 'console_scripts'
            chosen = [one for one in entries if not scripts or one.startswith('longreach ')]
            found['entry_points'].setdefault(group, []).extend(chosen)
    for source, target in _SHARED.items():
        for folder, _, files in os.walk(ROOT / source):
            inside = Path(target) / Path(folder).relative_to(ROOT / source)
            paths = [str((Path(folder) / one).relative_to(ROOT)) for one in sorted(files)]
            if paths and '__pycache__' not in folder:
                found['data_files'].append((f'share/longreach_bringup/{inside}', paths))
    return found | {
        'name': 'longreach',
        'version': _VERSION,
        'description': 'Simulation and control of cranes, concrete pumps, excavators, harvesters.',
        'long_description': (ROOT / 'README.md').read_text(encoding='utf-8'),
        'long_description_content_type': 'text/markdown',
        'python_requires': _PYTHON,
        'license': 'Apache-2.0',
        'author': 'Longreach developers',
        'author_email': 'longreach@example.org',
        'install_requires': _bounded(needed - _OPTIONAL - {'setuptools'}),
        'extras_require': {'vision': _bounded(_VISION), 'all': _bounded(_OPTIONAL)},
        'zip_safe': False,
    }


def _bounded(names: set[str]) -> list[str]:
    """Return packages with the versions that requirements.in allows."""
    text = (ROOT / 'requirements.in').read_text(encoding='utf-8')
    bounds = dict(re.findall(r'^([\w.-]+)([<>=!~][^\s#]*)', text, re.MULTILINE))
    return [name + bounds.get(name, '') for name in sorted(names)]


def _captured(file: Path) -> dict[str, Any]:
    """Return the arguments with which a setup.py calls setup()."""
    with contextlib.chdir(file.parent), mock.patch('setuptools.setup') as called:
        runpy.run_path(str(file))
    return dict(called.call_args.kwargs)


class _Backend(build_meta._BuildMetaBackend):  # type: ignore[misc]
    """Setuptools with these arguments in place of a setup.py."""

    def run_setup(self, setup_script: str = 'setup.py') -> None:  # noqa: ARG002
        """Call setup()."""
        setuptools.setup(**keywords())


def _tidy(hook: Callable[..., Any]) -> Callable[..., Any]:
    """Return a hook that leaves no egg-info, by which a Python in this folder finds all twice."""

    @functools.wraps(hook)
    def run(*given: Any, **named: Any) -> Any:
        try:
            return hook(*given, **named)
        finally:
            shutil.rmtree(ROOT / 'longreach.egg-info', ignore_errors=True)

    return run


_backend = _Backend()
build_wheel, build_sdist = _tidy(_backend.build_wheel), _tidy(_backend.build_sdist)
get_requires_for_build_wheel = _tidy(_backend.get_requires_for_build_wheel)
get_requires_for_build_sdist = _tidy(_backend.get_requires_for_build_sdist)
prepare_metadata_for_build_wheel = _tidy(_backend.prepare_metadata_for_build_wheel)
