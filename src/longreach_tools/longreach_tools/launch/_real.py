"""
Run a launch file with the launch of an installed ROS 2.

Real launch leaves its nodes running when it gets SIGTERM, and exits with 0 when a node fails. So
it runs in a child process under the same supervision as any other: SIGTERM and SIGHUP reach its
process group, which contains its nodes, as SIGINT, like a Ctrl-C in a terminal. The child records
how each of its processes ended. No process survives a SIGKILL of the command.

This module is also that process: ``python3 -m longreach_tools.launch._real FILE name:=value ...``.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from longreach_dynamics.errors import InputError

from ._model import Plan, ProcessSpecification
from ._processes import respawns_used_up
from ._survey import refuse_for_real_launch

__all__ = ['check_arguments', 'describe', 'first_failure', 'is_installed', 'plan']

_MODULES = ('launch', 'launch_ros', 'launch_xml')
_DEEPEST = 64
_ON_SHUTDOWN = (-2, -15, 130, 143)
"""Return codes of a process that SIGINT or SIGTERM ended."""


def is_installed() -> bool:
    """Return whether launch, launch_ros and launch_xml can be imported."""
    specs = [importlib.util.find_spec(name) for name in _MODULES]
    # A folder named launch in the working directory looks like a package without an origin.
    return all(spec is not None and spec.origin is not None for spec in specs)


def plan(path: Path, arguments: Mapping[str, str]) -> Plan:
    """Return the plan with the one process that runs a launch file in real launch."""
    words = [f'{name}:={value}' for name, value in arguments.items()]
    command = (sys.executable, '-m', __name__, str(path), *words)
    process = ProcessSpecification(
        name='ros_launch-1',
        command=command,
        environment=dict(os.environ),
        output='inherit',
        # Real launch needs up to 10 s for its own SIGTERM and SIGKILL.
        sigterm_timeout=15.0,
    )
    return Plan((process,))


def first_failure(ends: Mapping[str, tuple[int, bool]]) -> int:
    """Return the exit code of the first process that failed, 0 if none did."""
    for code, in_shutdown in ends.values():
        if code != 0 and not (in_shutdown and code in _ON_SHUTDOWN):
            return code if code > 0 else 128 - code
    return 0


def describe(path: Path, what: str) -> int:
    """Print the arguments or the actions of a launch file as real launch reads it."""
    description = _load(path)
    if what == 'actions':
        introspector = importlib.import_module('launch').LaunchIntrospector()
        print(introspector.format_launch_description(description))
        return 0
    print(f'arguments of {path} (name:=value):')
    declared, complete = _declared(description)
    for argument in declared.values():
        default = argument.default_value
        shown = 'required' if default is None else f'default {_text(default)}'
        print(f'  {argument.name}: {shown}\n      {argument.description}')
    if not complete:
        print('and possibly others, which are declared only when the file runs')
    return 0


def _text(substitutions: Iterable[Any]) -> str:
    """Return a default as launch describes it."""
    return ' + '.join(each.describe() for each in substitutions)


def _load(path: Path) -> Any:
    """Return the launch description in a file; an InputError if there is none."""
    sources = importlib.import_module('launch.launch_description_sources')
    context = importlib.import_module('launch').LaunchContext()
    try:
        return sources.AnyLaunchDescriptionSource(str(path)).get_launch_description(context)
    except Exception as error:  # a launch file in Python can raise anything
        raise InputError(f'{path}: ROS 2 launch cannot read it: {error}') from error


def _declared(description: Any) -> tuple[dict[str, Any], bool]:
    """
    Return the actions that declare arguments, by name, and whether these are all.

    What a function of the file returns, and a file whose path depends on arguments, is known only
    when the launch runs.
    """
    actions = importlib.import_module('launch.actions')
    found: dict[str, Any] = {}
    complete = True
    rest = [(description, 0)]
    while rest:
        entity, depth = rest.pop(0)
        below = list(entity.describe_sub_entities())
        for _, some in entity.describe_conditional_sub_entities():
            below += some
        if isinstance(entity, actions.DeclareLaunchArgument):
            found.setdefault(entity.name, entity)
        included = isinstance(entity, actions.IncludeLaunchDescription)
        if isinstance(entity, actions.OpaqueFunction) or (included and not below):
            complete = False
        # A file may include itself.
        if depth < _DEEPEST:
            rest += [(each, depth + 1) for each in below]
    return found, complete


def check_arguments(path: Path, given: Mapping[str, str]) -> None:
    """Check given arguments against those that a launch file of any kind declares."""
    declared, complete = _declared(_load(path))
    choices = {name: each.choices for name, each in declared.items()}
    refuse_for_real_launch(path, given, choices, complete)


def main(words: Sequence[str]) -> int:
    """Run the launch file that ``words`` names with its arguments in real launch."""
    # By name: these modules are not installed where this module is type-checked.
    launch = importlib.import_module('launch')
    actions = importlib.import_module('launch.actions')
    handlers = importlib.import_module('launch.event_handlers')
    sources = importlib.import_module('launch.launch_description_sources')

    path, *pairs = words
    arguments = {name: value for name, _, value in (pair.partition(':=') for pair in pairs)}
    try:
        check_arguments(Path(path), arguments)
    except InputError as error:
        print(f'longreach launch: {error}', file=sys.stderr)
        return 2
    ends: dict[str, tuple[int, bool]] = {}
    counts: Counter[str] = Counter()

    def note_end(event: Any, context: Any) -> None:
        # A process that is respawned counts by its last end.
        ends.pop(event.process_name, None)
        ends[event.process_name] = (event.returncode, context.is_shutdown)
        counts[event.process_name] += 1
        # Launch has no public way to ask for the limit, and says nothing when it is reached.
        limit = getattr(event.action, '_ExecuteLocal__respawn_max_retries', -1)
        respawns = getattr(event.action, '_ExecuteLocal__respawn', False) is True
        if respawns and not context.is_shutdown and counts[event.process_name] == limit + 1:
            node = getattr(event.action, 'node_name', None)
            text = respawns_used_up(node, counts[event.process_name])
            launch.logging.get_logger(event.process_name).error(text)

    service = launch.LaunchService(argv=pairs)
    service.include_launch_description(
        launch.LaunchDescription(
            [
                actions.RegisterEventHandler(handlers.OnProcessExit(on_exit=note_end)),
                actions.IncludeLaunchDescription(
                    sources.AnyLaunchDescriptionSource(path),
                    launch_arguments=list(arguments.items()),
                ),
            ]
        )
    )
    code: int = service.run()
    return first_failure(ends) or code


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
