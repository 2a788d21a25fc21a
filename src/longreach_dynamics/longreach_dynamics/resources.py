"""Where the files that a package installs are found, with ROS and without."""

from __future__ import annotations

import os
from pathlib import Path

from longreach_dynamics.errors import InputError

__all__ = ['share_directory']


def share_directory(package: str) -> Path:
    """
    Return the directory share/<package> of the first environment prefix that has it.

    Raises
    ------
    InputError
        When no prefix has it: the workspace is not built or not sourced.
    """
    prefixes = os.environ.get('AMENT_PREFIX_PATH', '').split(os.pathsep)
    for prefix in filter(None, prefixes):
        share = Path(prefix) / 'share' / package
        if share.is_dir():
            return share
    raise InputError(
        f'package {package} was not found in AMENT_PREFIX_PATH = {os.pathsep.join(prefixes)!r};'
        ' build the workspace and source install/setup.bash'
    )
