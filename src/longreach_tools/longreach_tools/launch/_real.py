"""
Run a launch file with the launch of an installed ROS 2.

Real launch leaves its nodes behind when it gets SIGTERM, and ends with 0 when a node fails. So it
runs in a process of its own, under the same supervision as any process here: SIGTERM and SIGHUP
reach its process group, which its nodes belong to, as SIGINT, as a Ctrl-C in a terminal would.
It remembers how each of its processes ended. Nothing survives a SIGKILL of the command either.

This module is also that process: ``python3 -m longreach_tools.launch._real FILE name:=value ...``.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ._model import Plan, ProcessSpecification, StartStep

__all__ = ['first_failure', 'is_installed', 'plan']

_MODULES = ('launch', 'launch_ros', 'launch_xml')
_ON_SHUTDOWN = (-2, -15, 130, 143)
"""Return codes of a process that SIGINT or SIGTERM ended."""


def is_installed() -> bool:
    """Tell whether launch, launch_ros and launch_xml can be imported."""
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
    return Plan((StartStep(process),))


def first_failure(ends: Mapping[str, tuple[int, bool]]) -> int:
    """
    Return the exit code of the first process that failed, 0 if none did.

    Parameters
    ----------
    ends : mapping
        Return code of each process in the order of their last ends, and whether the launch was
        shutting down by then.
    """
    for code, in_shutdown in ends.values():
        if code != 0 and not (in_shutdown and code in _ON_SHUTDOWN):
            return code if code > 0 else 128 - code
    return 0


def main(words: Sequence[str]) -> int:
    """Run the launch file that ``words`` names with its arguments in real launch."""
    # By name, as these modules are not there where this module is checked.
    launch = importlib.import_module('launch')
    actions = importlib.import_module('launch.actions')
    handlers = importlib.import_module('launch.event_handlers')
    sources = importlib.import_module('launch.launch_description_sources')

    path, *pairs = words
    ends: dict[str, tuple[int, bool]] = {}

    def note_end(event: Any, context: Any) -> None:
        # A process that is respawned counts by its last end.
        ends.pop(event.process_name, None)
        ends[event.process_name] = (event.returncode, context.is_shutdown)

    arguments = [(name, value) for name, _, value in (pair.partition(':=') for pair in pairs)]
    service = launch.LaunchService(argv=pairs)
    service.include_launch_description(
        launch.LaunchDescription(
            [
                actions.RegisterEventHandler(handlers.OnProcessExit(on_exit=note_end)),
                actions.IncludeLaunchDescription(
                    sources.AnyLaunchDescriptionSource(path), launch_arguments=arguments
                ),
            ]
        )
    )
    code: int = service.run()
    return first_failure(ends) or code


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
