"""Where the files that a package installs are found, with ROS and without."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from longreach_dynamics.errors import InputError

__all__ = ['share_directory', 'use_dds_profile']

# Where Fast DDS looks for profiles, and the one for nodes that do not publish images.
_PROFILES = 'FASTRTPS_DEFAULT_PROFILES_FILE'
_USUAL_PROFILE = 'fastdds.xml'


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


def use_dds_profile(name: str = _USUAL_PROFILE) -> None:
    """
    Let Fast DDS in this process and its children use a profile of longreach_node.

    A profile that the user has chosen stays, the usual one of longreach_node gives way to another;
    where longreach_node is not installed nothing is set.

    Parameters
    ----------
    name : str
        The file in its ``config``.
    """
    with contextlib.suppress(InputError):
        directory = share_directory('longreach_node') / 'config'
        chosen = os.environ.get(_PROFILES, '')
        if not chosen or Path(chosen) == directory / _USUAL_PROFILE:
            os.environ[_PROFILES] = str(directory / name)
