"""
Run all static checks; called by ``make lint``.

ruff (rules and format), mypy on the libraries and the scripts (strict, see pyproject.toml), the
import directions of import_contracts.py, and the rosdep keys of all package.xml. All of them run,
even when an earlier one fails. The number of public names is printed. Exit code: 0 if all passed,
otherwise 1.
"""

from __future__ import annotations

import ast
import importlib.util
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

from workspace import requirements

ROOT = Path(__file__).resolve().parent.parent
# The messages are generated, and bringup has no Python code.
LIBRARIES = sorted(
    str(path.relative_to(ROOT))
    for path in ROOT.glob('src/longreach_*/longreach_*')
    if (path / 'py.typed').exists()
)
# Keys that rosdep resolves on Ubuntu 24.04 with Jazzy, looked up in rosdep/python.yaml and
# jazzy/distribution.yaml of ros/rosdistro. A key that is not there stops `rosdep install`.
ROSDEP_KEYS = {
    'ament_cmake', 'builtin_interfaces', 'control_msgs', 'diagnostic_msgs',
    'geometry_msgs', 'joy', 'python3-argcomplete',
    'python3-matplotlib', 'python3-numpy', 'python3-opencv', 'python3-pil', 'python3-pytest',
    'python3-pytest-timeout', 'python3-pytest-xdist', 'python3-scipy', 'python3-sympy',
    'python3-tqdm', 'python3-yaml',
    'rcl_interfaces', 'rclpy', 'robot_state_publisher', 'ros2launch', 'rosgraph_msgs',
    'rosidl_default_generators', 'rosidl_default_runtime', 'rviz2', 'sensor_msgs',
    'simulation_interfaces', 'std_msgs', 'std_srvs', 'tf2_msgs', 'trajectory_msgs', 'vision_msgs',
    'visualization_msgs',
}  # fmt: skip


class Check(NamedTuple):
    """A command, and the module that provides it."""

    name: str
    module: str
    command: list[str]


CHECKS = (
    Check('ruff check', 'ruff', ['ruff', 'check', '.']),
    Check('ruff format', 'ruff', ['ruff', 'format', '--check', '.']),
    Check('mypy', 'mypy', ['mypy', *LIBRARIES, 'scripts']),
    Check('import directions', 'importlinter', ['python3', 'scripts/import_contracts.py']),
)


def main() -> int:
    """Run all checks, print their results, return the exit code."""
    failed = []
    for check in CHECKS:
        started = time.monotonic()
        print(f'--- {check.name}', flush=True)
        if not passes(check):
            failed.append(check.name)
        print(f'    {time.monotonic() - started:.1f} s', flush=True)
    print('--- rosdep keys')
    if unknown := unknown_keys():
        print(
            f'package.xml: not known to rosdep on Ubuntu 24.04: {", ".join(sorted(unknown))};'
            ' look them up in ros/rosdistro, and add them to ROSDEP_KEYS, or to PIP_ONLY'
        )
        failed.append('rosdep keys')
    print(f'--- {public_names()} public names')
    print(f'lint: failed: {", ".join(failed)}' if failed else 'lint: all checks passed')
    return 1 if failed else 0


def unknown_keys() -> set[str]:
    """Return the dependencies of all packages that neither rosdep nor this tree has."""
    files = list(ROOT.glob('src/*/package.xml'))
    named = {
        element.text or ''
        for file in files
        for element in ElementTree.parse(file).getroot()
        if element.tag.endswith('depend')
    }
    return named - ROSDEP_KEYS - {file.parent.name for file in files}


def public_names() -> int:
    """Return how many names the packages export: their stubs, or ``__all__`` of ``__init__``."""
    count = 0
    for path in ROOT.glob('src/*/longreach_*/**/__init__.py*'):
        for node in ast.parse(path.read_text('utf-8')).body:
            if path.suffix == '.pyi' and isinstance(node, ast.ImportFrom):
                count += len(node.names)
            elif isinstance(node, ast.Assign) and isinstance(node.value, ast.List):
                count += len(node.value.elts) * (ast.unparse(node.targets[0]) == '__all__')
    return count


def passes(check: Check) -> bool:
    """Run one check in the root of the tree."""
    if importlib.util.find_spec(check.module) is None or shutil.which(check.command[0]) is None:
        (needed,) = requirements([check.module])
        print(f'{check.name}: not found; install it with: pip install {needed}')
        return False
    return subprocess.call(check.command, cwd=ROOT) == 0


if __name__ == '__main__':
    sys.exit(main())
