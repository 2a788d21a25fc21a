"""
Run a launch file with the launch of an installed ROS 2.

Real launch leaves its nodes running when it gets SIGTERM, and exits with 0 when a node fails. So
it runs in a child process under the same supervision as any other: SIGTERM and SIGHUP reach its
process group, which contains its nodes, as SIGINT, like a Ctrl-C in a terminal. The child records
how each of its processes ended.

This module is also that process: ``python3 -m longreach_tools.launch._real FILE name:=value ...``.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ._evaluate import Process
from ._processes import respawns_used_up

_MODULES = ('launch', 'launch_ros', 'launch_xml')
# Return codes of a process that SIGINT or SIGTERM ended.
_ON_SHUTDOWN = (-2, -15, 130, 143)


def is_installed() -> bool:
    """Return whether launch, launch_ros and launch_xml can be imported."""
    specs = [importlib.util.find_spec(name) for name in _MODULES]
    # A folder named launch in the working directory looks like a package without an origin.
    return all(spec is not None and spec.origin is not None for spec in specs)


def launch_process(path: Path, arguments: Mapping[str, str]) -> Process:
    """Return the process that runs a launch file in real launch."""
    words = [f'{name}:={value}' for name, value in arguments.items()]
    return Process(
        name='ros_launch-1',
        command=(sys.executable, '-m', __name__, str(path), *words),
        environment=dict(os.environ),
        output='inherit',
    )


def first_failure(ends: Mapping[str, tuple[int, bool]]) -> int:
    """Return the exit code of the first process that failed, 0 if none did."""
    for code, in_shutdown in ends.values():
        if code != 0 and not (in_shutdown and code in _ON_SHUTDOWN):
            return code if code > 0 else 128 - code
    return 0


def main(words: Sequence[str]) -> int:
    """Run the launch file that ``words`` names with its arguments in real launch."""
    # By name: these modules are not installed where this module is type-checked.
    launch = importlib.import_module('launch')
    actions = importlib.import_module('launch.actions')
    handlers = importlib.import_module('launch.event_handlers')
    sources = importlib.import_module('launch.launch_description_sources')

    path, *pairs = words
    arguments = [(name, value) for name, _, value in (pair.partition(':=') for pair in pairs)]
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
                    launch_arguments=arguments,
                ),
            ]
        )
    )
    code: int = service.run()
    return first_failure(ends) or code


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
