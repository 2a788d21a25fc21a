"""
Check the directions of imports, and that none go in a circle; called by ``make lint`` and a test.

The contracts are derived from the tree, so that they also apply to a new package. A package is a
directory with a ``setup.py`` below ``src/``. ``longreach_dynamics``, ``longreach_machine``,
``longreach_markers``, ``longreach_node`` and ``longreach_tools`` are shared; every other one is a
machine, or works on machines. The name of a module, in whatever subpackage, determines its allowed
imports; a subpackage has those of a module of its name, for its ``__init__.py`` only:

``conversions``, ``nodes``, ``remote``, ``NAME_node``, ``NAME_ros``
    ROS and messages
``commands``, ``NAME_commands``, ``arguments``, ``spec``, ``figures``, ``NAME_figures``,
``recording``, ``NAME_output``, ``NAME_files``
    the command ``longreach`` and plotting, ROS only through ``remote``
all others
    the library of the machine: no ROS, no plotting, no command
"""

from __future__ import annotations

import ast
import functools
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grimp

ROOT = Path(__file__).resolve().parent.parent
SHARED = (
    'longreach_dynamics', 'longreach_machine', 'longreach_markers', 'longreach_node',
    'longreach_tools',
)  # fmt: skip
MESSAGES = 'longreach_msgs'
ROS_MODULES = re.compile(r'conversions|nodes|remote|\w+_node|\w+_ros')
COMMAND_MODULES = re.compile(
    r'commands|\w+_commands|arguments|spec|figures|\w+_figures|recording|\w+_output|\w+_files'
)
MESSAGE_PACKAGES = re.compile(r'\w+_(msgs|srvs|interfaces)')
# Commands use the nodes' module for the range of discovery, before rclpy is imported. The modules
# that call running nodes are imported when a command runs.
ALLOWED = (
    'longreach_tools.** -> longreach_node.middleware',
    'longreach_tools.machine_command -> longreach_node.remote',
)


def packages(root: Path) -> list[str]:
    """Return the names of the Python packages of a tree."""
    return sorted(path.parent.name for path in root.glob('src/*/setup.py'))


def modules_of(root: Path, package: str) -> list[str]:
    """Return the modules and subpackages of a package, with their dotted names."""
    directory = root / 'src' / package
    paths = (
        p.relative_to(directory).with_suffix('') for p in directory.glob(f'{package}/**/*.py')
    )
    # Generated code is kept beside compiled code.
    names = {
        '.'.join(p.parts).removesuffix('.__init__') for p in paths if '__pycache__' not in p.parts
    }
    return sorted(names - {package})


@functools.cache
def imported(directory: Path) -> set[str]:
    """Return the top-level names of all modules that the files below a directory import."""
    found = set()
    for path in directory.rglob('*.py'):
        for node in ast.walk(ast.parse(path.read_text(encoding='utf-8'), str(path))):
            if isinstance(node, ast.Import):
                found |= {alias.name.split('.')[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
                found.add(node.module.split('.')[0])
    return found


def is_of_ros(module: str) -> bool:
    """Return whether a module may import ROS, by its name or that of its subpackage."""
    return '.ros.' in module or bool(ROS_MODULES.fullmatch(module.rpartition('.')[2]))


def contracts(root: Path) -> list[dict[str, Any]]:
    """Return the contracts of a tree, as import-linter wants them."""
    names = packages(root)
    machines = [name for name in names if name not in SHARED]
    modules = [module for name in machines for module in modules_of(root, name)]
    commands = [m for m in modules if COMMAND_MODULES.fullmatch(m.rpartition('.')[2])]
    ros_modules = [m for m in modules if is_of_ros(m)]
    library = [m for m in modules if m not in {*commands, *ros_modules}]
    external = {found for name in names for found in imported(root / 'src' / name / name)}
    ros = sorted({n for n in external if MESSAGE_PACKAGES.fullmatch(n)} | {'rclpy'})

    def forbidden(
        name: str, sources: list[str], targets: list[str], **more: Any
    ) -> dict[str, Any]:
        targets = sorted({target for target in targets if target not in sources})
        head = {'name': name, 'type': 'forbidden', 'source_modules': sources}
        return head | {'forbidden_modules': targets} | more

    def whole(*packages: str) -> list[str]:
        # A contract about single modules names the contents of a package, too.
        return [*packages, *(f'{package}.**' for package in packages)]

    return [
        forbidden(
            'the numerics know neither ROS nor plotting nor any other package',
            ['longreach_dynamics'],
            [*names, *ros, 'matplotlib'],
        ),
        forbidden(
            'what machines declare knows neither ROS nor plotting nor a machine',
            ['longreach_machine'],
            [*(name for name in names if name not in SHARED[:2]), *ros, 'matplotlib'],
        ),
        forbidden(
            'cameras and markers know neither ROS nor plotting nor any package but the numerics',
            ['longreach_markers'],
            [*(name for name in names if name != 'longreach_dynamics'), *ros, 'matplotlib'],
        ),
        forbidden(
            'what nodes share knows no machine',
            ['longreach_node'],
            [*machines, 'longreach_markers', 'longreach_tools', 'matplotlib'],
        ),
        forbidden(
            'the command knows no machine: machines add subcommands by entry points',
            ['longreach_tools'],
            [*machines, MESSAGES, 'longreach_markers', 'longreach_node'],
            ignore_imports=list(ALLOWED),
            unmatched_ignore_imports_alerting='none',
        ),
        forbidden(
            'the library of a machine knows neither ROS nor plotting',
            library,
            [*ros, *whole('longreach_node', 'longreach_tools'), 'matplotlib'],
            as_packages=False,
        ),
        forbidden(
            'what tracks markers over ROS uses what longreach_markers exports',
            ['longreach_vision'],
            ['longreach_markers.**'],
            allow_indirect_imports=True,
        ),
        # What remote imports is its own affair; commands may call it.
        forbidden(
            'the commands of a machine leave ROS to its remote module',
            commands,
            [*ros, *whole('longreach_node')],
            allow_indirect_imports=True,
            as_packages=False,
        ),
    ]


def as_toml(root: Path) -> Iterator[str]:
    """Yield the lines of import-linter's configuration for a tree."""

    def text(value: Any) -> str:
        if isinstance(value, bool):
            return str(value).lower()
        return f'[{", ".join(map(text, value))}]' if isinstance(value, list) else f"'{value}'"

    yield '[tool.importlinter]'
    yield f'root_packages = {text([*packages(root), MESSAGES])}'
    yield 'include_external_packages = true'
    for contract in contracts(root):
        yield '[[tool.importlinter.contracts]]'
        yield from (f'{key} = {text(value)}' for key, value in contract.items())


def circles(root: Path) -> list[list[str]]:
    """Return groups of modules that import each other, also within functions."""
    graph = grimp.build_graph(*packages(root), exclude_type_checking_imports=True, cache_dir=None)
    imports = {name: graph.find_modules_directly_imported_by(name) for name in graph.modules}
    # What imports nothing that is left, or is imported by nothing, is in no circle.
    left = set(imports)
    while ends := {
        name
        for name in left
        if not imports[name] & left or not any(name in imports[other] for other in left)
    }:
        left -= ends
    return [sorted(left)] if left else []


def main() -> int:
    """Run import-linter on the tree, look for circles, and return the exit code."""
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / 'contracts.toml'
        file.write_text('\n'.join(as_toml(ROOT)) + '\n', encoding='utf-8')
        code = subprocess.call(['lint-imports', '--config', str(file)], cwd=ROOT)
    for found in circles(ROOT):
        print(f'these modules import each other in a circle: {", ".join(found)}')
        code = 1
    return code


if __name__ == '__main__':
    sys.exit(main())
