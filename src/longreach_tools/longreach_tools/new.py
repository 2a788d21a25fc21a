"""
Write a package with a machine of your own: as a start a pendulum that a hydraulic cylinder lifts.

It is the package of docs/tutorials/machine.md under another name, with equations, parameters,
node, launch file, declaration and figure.
"""

from __future__ import annotations

import argparse
import re
import shutil
from importlib import metadata
from importlib.util import find_spec
from keyword import kwlist
from pathlib import Path

from longreach_dynamics.errors import InputError
from longreach_dynamics.resources import share_directory

SUMMARY = 'a package with a machine of your own'

_NEXT = """{package} written. What to do next, in the directory above src/, in a shell with ROS 2:
  colcon build --symlink-install && . install/local_setup.bash
  longreach {name} run --plot {name}.png
then change {package}/longreach_{name}/machine.py, and run it again."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add name and directory."""
    parser.add_argument('name', help='of the machine: small letters, digits and _')
    parser.add_argument('--out', metavar='DIR', default=Path('src'), help='directory')
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> None:
    """Write the package."""
    name = arguments.name
    if not re.fullmatch(r'[a-z][a-z0-9]*(_[a-z0-9]+)*', name):
        raise InputError(f'name = {name!r}, allowed: small letters, digits and _, such as my_arm')
    groups = ('longreach.commands', 'longreach.machines')
    known = {one.name for group in groups for one in metadata.entry_points(group=group)}
    # Packages of Longreach that are not Python's.
    known |= {'bringup', 'msgs'}
    if name in known or find_spec(f'longreach_{name}') is not None:
        raise InputError(f'name = {name!r}: longreach {name} is there already; take another name')
    package = arguments.out / f'longreach_{name}'
    if package.exists():
        raise InputError(f'{package} exists; move it away, or give another name or --out')
    words = {
        'pendulum': name,
        'Pendulum': name.title().replace('_', ''),
        'PENDULUM': name.upper(),
    }

    def renamed(text: str) -> str:
        return re.sub('|'.join(words), lambda found: words[found[0]], text)

    template = share_directory('longreach_bringup') / 'pendulum'
    files = {
        file.relative_to(template): file.read_text(encoding='utf-8')
        for file in sorted(template.rglob('*'))
        if file.is_file() and '__pycache__' not in file.parts
    }
    used = {*re.findall(r'\w+', ' '.join(files.values())), *kwlist}
    if name != 'pendulum' and (clash := sorted(used & {*words.values()} - {name})):
        raise InputError(
            f'name = {name!r}: its package would have {clash[0]} twice; take another name'
        )
    made = next((one for one in reversed(package.parents) if not one.exists()), package)
    try:
        for file, text in files.items():
            copy = package / renamed(str(file))
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(renamed(text), encoding='utf-8')
    except OSError as error:
        shutil.rmtree(made, ignore_errors=True)
        raise InputError(f'--out {arguments.out} cannot be written: {error.strerror}') from error
    print(_NEXT.format(package=package, name=name))
