"""Installed scenarios by name."""

from __future__ import annotations

from pathlib import Path

from longreach_dynamics.errors import InputError
from longreach_dynamics.resources import share_directory

__all__ = ['find_scenario']


def find_scenario(given: Path, beginning: str, machine: str) -> Path:
    """
    Return the file of a scenario.

    Parameters
    ----------
    given : path
        A file, or the name of an installed scenario.
    beginning : str
        Prefix of the names of the machine's files, such as ``boom_`` or ``task_``.
    machine : str
        Name of the machine, which may be omitted: ``wave`` is ``boom_wave.yaml`` of the boom.

    Raises
    ------
    InputError
        When a name without a suffix is neither a file nor installed; lists the installed names.
    """
    if given.exists() or given.suffix or given.parent != Path():
        return given
    directory = share_directory('longreach_bringup') / 'config' / 'scenarios'
    installed = {
        file.stem.removeprefix(f'{machine}_'): file
        for file in sorted(directory.glob(f'{beginning}*.yaml'))
    }
    name = given.name.removeprefix(f'{machine}_')
    if name not in installed:
        raise InputError(
            f'scenario {given} is unknown, allowed: {", ".join(installed)}, or a file such as'
            ' my.yaml'
        )
    return installed[name]
