"""
Environment variables of ROS and Fast DDS, set and checked before rclpy is initialised.

rclpy is not imported here, so that a command pays nothing for calling these functions early.
"""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path

from longreach_dynamics.errors import InputError
from longreach_dynamics.resources import share_directory

# Where Fast DDS 2 (Jazzy) and 3 (from Kilted on) look for profiles. A tag has another name in 3.
_PROFILES = ('FASTRTPS_DEFAULT_PROFILES_FILE', '')
_PROFILES_3 = ('FASTDDS_DEFAULT_PROFILES_FILE', '_v3')
# The profile of nodes that do not publish images.
_USUAL_PROFILE = 'fastdds.xml'

_DOMAIN = 'ROS_DOMAIN_ID'
# The highest for which DDS has port numbers.
_LAST_DOMAIN = 232

_RMW = 'RMW_IMPLEMENTATION'

_RANGE = 'ROS_AUTOMATIC_DISCOVERY_RANGE'
_ONLY_LOCAL = 'ROS_LOCALHOST_ONLY'
# A user who has set one of these has decided who may take part.
_USERS_CHOICE = (_RANGE, _ONLY_LOCAL, 'ROS_STATIC_PEERS')


def use_dds_profile(name: str = _USUAL_PROFILE) -> None:
    """Let Fast DDS here and in children use a profile of ``config`` unless the user chose one."""
    variable, suffix = _PROFILES
    with contextlib.suppress(InputError):
        # Before version 3 its package was called fastrtps.
        share_directory('fastdds')
        variable, suffix = _PROFILES_3
    with contextlib.suppress(InputError):
        directory = share_directory('longreach_node') / 'config'
        usual, wanted = (
            directory / file.replace('.xml', f'{suffix}.xml') for file in (_USUAL_PROFILE, name)
        )
        chosen = os.environ.get(variable) or os.environ.get(_PROFILES[0])
        if not chosen or Path(chosen) == usual:
            os.environ[variable] = str(wanted)


def check_middleware() -> None:
    """Raise InputError for a ROS_DOMAIN_ID or RMW_IMPLEMENTATION that rclpy would misread."""
    prefixes = os.environ.get('AMENT_PREFIX_PATH', '').split(os.pathsep)
    installed = {
        file.name
        for prefix in prefixes
        for file in (Path(prefix) / 'share/ament_index/resource_index/rmw_typesupport').glob('*')
    } - {'rmw_implementation'}
    chosen = os.environ.get(_RMW)
    if chosen and installed and chosen not in installed:
        raise InputError(
            f'{_RMW} = {chosen}, allowed: {", ".join(sorted(installed))}; correct or unset it, or'
            ' install that package'
        )
    text = os.environ.get(_DOMAIN, '').strip()
    if not text:
        return
    # rcl also reads hexadecimal numbers.
    if re.fullmatch(r'[0-9]+', text):
        number = int(text)
    elif re.fullmatch(r'0[xX][0-9a-fA-F]+', text):
        number = int(text, 16)
    else:
        number = -1
    if not 0 <= number <= _LAST_DOMAIN:
        raise InputError(
            f'{_DOMAIN} = {text}, allowed: whole numbers from 0 to {_LAST_DOMAIN};'
            f' correct it, or unset it for 0'
        )


def limit_discovery(network: bool = False) -> str:
    """Find nodes of this machine only, or of the ``network``; return what to tell the user."""
    if network:
        for name, local in ((_RANGE, 'LOCALHOST'), (_RANGE, 'OFF'), (_ONLY_LOCAL, '1')):
            if os.environ.get(name) == local:
                raise InputError(
                    f'--network (network:=true) contradicts {name} = {local}; unset it, or'
                    ' omit the option'
                )
    if any(os.environ.get(name) for name in _USERS_CHOICE):
        return ''
    # Said explicitly for the network as well: children would otherwise limit themselves.
    os.environ[_RANGE] = 'SUBNET' if network else 'LOCALHOST'
    if network:
        return ''
    return f'only nodes on this machine take part ({_RANGE} = LOCALHOST); for others: --network'
