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
import threading
from collections.abc import Callable
from importlib import import_module
from typing import Any

from longreach_dynamics.errors import InputError, LongreachError
from longreach_dynamics.resources import use_dds_profile

__all__ = ['node_entry']

# For the middleware to end [s].
_PATIENCE = 3.0


def node_entry(path: str, profile: str = 'fastdds.xml') -> Callable[[], None]:
    """
    Return the function of a console script that runs one node.

    Parameters
    ----------
    path : str
        ``module:factory``. The factory takes no arguments and returns a node; when the node has a
        future ``done``, the process ends once it is set.
    profile : str
        What Fast DDS works by, a file of this package's ``config``: ``fastdds_images.xml`` for a
        node that publishes images.
    """

    def run() -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, _leave_at_once)
        use_dds_profile(profile)
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
    from rclpy.exceptions import ParameterException
    from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
    from rclpy.logging import get_logger
    from rclpy.signals import SignalHandlerOptions, install_signal_handlers
    from rclpy.utilities import ok, try_shutdown

    node = executor = None
    code = 0
    early: list[int] = []
    try:
        # A node is made in peace: a KeyboardInterrupt could strike anywhere, in a __del__ for
        # instance, which swallows it with a traceback, and so could the end of the context.
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda number, _: early.append(number))
        try:
            rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
        except RuntimeError as error:
            print(f'arguments after --ros-args cannot be used: {error}', file=sys.stderr)
            return 2
        node = factory()
        # From here on rclpy ends the spinning on both signals.
        install_signal_handlers(SignalHandlerOptions.ALL)
        if early:
            return code
        executor = SingleThreadedExecutor()
        executor.add_node(node)
        done = getattr(node, 'done', None)
        if done is None:
            executor.spin()
        else:
            executor.spin_until_future_complete(done)
    except ExternalShutdownException:
        pass
    except LongreachError as error:
        logger = node.get_logger() if node is not None else get_logger('longreach')
        logger.fatal(str(error))
        code = 2 if isinstance(error, InputError) else 1
    except ParameterException as error:
        get_logger('longreach').fatal(str(error))
        code = 2
    except RuntimeError:
        # What a node does while a signal ends its context fails in many ways, all of this type.
        if ok():
            raise
    finally:
        # What matters is done. Should the middleware hang while it is taken down, leave anyway.
        watchdog = threading.Timer(_PATIENCE, os._exit, [code])
        watchdog.daemon = True
        watchdog.start()
        # A second Ctrl-C is only noted meanwhile.
        if executor is not None:
            # Before the context goes: its own end would come after, with a traceback.
            executor.shutdown()
        if node is not None:
            node.destroy_node()
        try_shutdown()
        # Not before, because rclpy puts back the handlers that it found: while Python ends it
        # would fall to the system's own, which kill the process.
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
    return code
