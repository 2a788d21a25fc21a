"""Packages, their files and launch files, found through the ament index of AMENT_PREFIX_PATH."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from longreach_dynamics.errors import InputError

_INDEX = Path('share', 'ament_index', 'resource_index', 'packages')
_BRINGUP = 'longreach_bringup'
_SUFFIX = '.launch.xml'


def _find_prefix(package: str, environment: Mapping[str, str]) -> Path:
    """Return the directory where a package is installed."""
    prefixes = [Path(p) for p in environment.get('AMENT_PREFIX_PATH', '').split(os.pathsep) if p]
    # A name with a slash could point at any file.
    if package and '/' not in package:
        for prefix in prefixes:
            if (prefix / _INDEX / package).is_file():
                return prefix
    if not prefixes:
        raise InputError(
            f'package {package!r} is not found: AMENT_PREFIX_PATH is empty; nodes need ROS 2: '
            'source install/setup.bash of a workspace built by make'
        )
    raise InputError(
        f'package {package!r} is not found in AMENT_PREFIX_PATH '
        f'({os.pathsep.join(map(str, prefixes))}); correct the name, or build the package and'
        ' source install/setup.bash of its workspace'
    )


def find_share(package: str, environment: Mapping[str, str]) -> Path:
    """Return a package's share directory."""
    return _find_prefix(package, environment) / 'share' / package


def find_executable(package: str, name: str, environment: Mapping[str, str]) -> Path:
    """Return a package's executable."""
    directory = _find_prefix(package, environment) / 'lib' / package
    files = directory.iterdir() if directory.is_dir() else ()
    present = sorted(p.name for p in files if p.is_file() and os.access(p, os.X_OK))
    if name in present:
        return directory / name
    raise InputError(
        f'package {package!r} has no executable {name!r} in {directory}; '
        f'allowed: {", ".join(present) or "none, the package has no executables"}'
    )


def find_launch_file(name: str, environment: Mapping[str, str]) -> Path:
    """Return a launch file by a path with slash or suffix, or by its name in our package."""
    if '/' in name or Path(name).suffix in ('.xml', '.py', '.yaml'):
        path = Path(name)
        if not path.is_file():
            raise InputError(f'there is no launch file {name!r}; give a path or a name')
        return path.absolute()
    directory = find_share(_BRINGUP, environment) / 'launch'
    path = directory / (name + _SUFFIX)
    if not path.is_file():
        present = sorted(p.name.removesuffix(_SUFFIX) for p in directory.glob('*' + _SUFFIX))
        raise InputError(
            f'there is no launch file named {name!r} in {directory}; '
            f'allowed: {", ".join(present) or "none"}, or the path of a file'
        )
    return path
