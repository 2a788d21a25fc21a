"""
Start and end of a node's process.

A node ends with exit code 0 on Ctrl-C, twice Ctrl-C and SIGTERM, at any moment of its life, also
while its modules are still being imported; with 2 for bad input and 1 for a failure, each with one
line instead of a traceback. So the entry points of a package are made here, by name, and the heavy
imports happen behind handlers that know how to leave.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

from longreach_dynamics.errors import InputError, LongreachError

__all__ = ['node_entry']


def node_entry(path: str) -> Callable[[], None]:
    """
    Return the function of a console script that runs one node.

    Parameters
    ----------
    path : str
        ``module:factory``. The factory takes no arguments and returns a node; when the node has a
        future ``done``, the process ends once it is set.
    """

    def run() -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, _leave_at_once)
        module, name = path.split(':')
        factory = getattr(import_module(module), name)
        sys.exit(_spin(factory))

    return run


def _leave_at_once(number: int, frame: object) -> None:  # noqa: ARG001
    """End a process that has not begun to work: there is nothing to clean up yet."""
    os._exit(0)


def _spin(factory: Callable[[], Any]) -> int:
    """Make a node, let it work until it is done or told to stop, and return the exit code."""
    import rclpy
    from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
    from rclpy.logging import get_logger
    from rclpy.utilities import try_shutdown

    node = None
    code = 0
    try:
        # rclpy's own handlers begin here: SIGINT raises KeyboardInterrupt, SIGTERM ends spinning.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        rclpy.init()
        node = factory()
        executor = SingleThreadedExecutor()
        executor.add_node(node)
        done = getattr(node, 'done', None)
        if done is None:
            executor.spin()
        else:
            executor.spin_until_future_complete(done)
    except (KeyboardInterrupt, ExternalShutdownException):
        pass
    except LongreachError as error:
        logger = node.get_logger() if node is not None else get_logger('longreach')
        logger.fatal(str(error))
        code = 2 if isinstance(error, InputError) else 1
    finally:
        # A second Ctrl-C must not interrupt the cleaning up.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        if node is not None:
            node.destroy_node()
        try_shutdown()
    return code
