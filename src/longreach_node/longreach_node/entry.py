"""
Start and end of a node's process.

A node ends with exit code 0 on Ctrl-C and SIGTERM, at any moment of its life, also while its
modules are still being imported; with 2 for bad input and 1 for a failure, each with one line
instead of a traceback. The entry points of a package are therefore made here, by name: signal
handlers are installed before all imports that take time, also those of this module.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from longreach_dynamics.errors import InputError, LongreachError

# After a signal: longest time for a callback or a constructor to return, then for the middleware
# to be taken down [s].
_CALLBACK_TIMEOUT = 1.5
_SHUTDOWN_TIMEOUT = 3.0

_SIGNALS = (signal.SIGINT, signal.SIGTERM)

# Of the C library: calls a function in a thread when a timer has run down.
_SIGEV_THREAD = 2


def node_entry(path: str, profile: str = 'fastdds.xml') -> Callable[[], None]:
    """
    Return the function of a console script that runs one node.

    ``path`` is ``module:factory``; the factory takes no arguments and returns a node. When that
    has a future ``done``, the process ends once it is set. ``profile`` of Fast DDS is a file in
    ``config``: ``fastdds_images.xml`` for a node that publishes images.
    """

    def run() -> None:
        for number in _SIGNALS:
            # Nothing has been created yet: there is nothing to clean up.
            signal.signal(number, lambda *_: os._exit(0))
        from longreach_node.middleware import check_middleware, use_dds_profile

        use_dds_profile(profile)
        try:
            check_middleware()
        except InputError as error:
            # Before rclpy is initialised it logs nothing.
            print(error, file=sys.stderr)
            sys.exit(2)
        module, name = path.split(':')
        factory = getattr(import_module(module), name)
        sys.exit(_run(factory))

    return run


def machine_node() -> None:
    """
    Run the node after which the console script is called, the function of scripts of machines.

    ``lib/PACKAGE/plant``, where ROS has executables, is a PlantNode of PACKAGE.nodes; without that
    module it is made of the machine's declaration.
    """
    *_, package, name = Path(sys.argv[0]).absolute().parts
    path = f'{package}.nodes:{name.title()}Node'
    if name == 'plant' and find_spec(f'{package}.nodes') is None:
        path = 'longreach_node.plant_node:declared_plant'
    node_entry(path)()


def spin_until(executor: Any, done: Any | None) -> None:
    """Call callbacks until a future is set, whose exception is raised, or the context ends."""
    # rclpy 7.1's own function adds a callback to the future at each turn: 5 MB a minute at 200 Hz.
    if done is None:
        executor.spin()
        return
    # It may be set in another thread while the executor waits.
    done.add_done_callback(lambda _: executor.wake())
    while executor.context.ok() and not done.done():
        executor.spin_once()
    if done.done() and (error := done.exception()) is not None:
        raise error


def _exit_after(seconds: float, code: int) -> Callable[[], object]:
    """End the process after some time [s], whatever it does then; return what cancels it."""
    # A thread of Python could not: rclpy keeps the interpreter's lock while it takes a node down,
    # and Fast DDS may not return from that (eProsima/Fast-DDS issue 6513).
    import ctypes

    class Event(ctypes.Structure):
        """The C library's sigevent."""

        _fields_ = (
            ('value', ctypes.c_void_p),
            ('signal', ctypes.c_int),
            ('notify', ctypes.c_int),
            ('function', ctypes.c_void_p),
            ('rest', ctypes.c_char * 40),
        )

    libc = ctypes.CDLL(None)
    leave = ctypes.cast(libc._exit, ctypes.c_void_p)
    event, timer = Event(code, 0, _SIGEV_THREAD, leave), ctypes.c_void_p()
    libc.timer_create(time.CLOCK_MONOTONIC, ctypes.byref(event), ctypes.byref(timer))
    whole = int(seconds)
    # Interval and first time, each in seconds and nanoseconds.
    times = (ctypes.c_long * 4)(0, 0, whole, round(1e9 * (seconds - whole)))
    libc.timer_settime(timer, 0, times, None)
    return lambda: libc.timer_delete(timer)


def _run(factory: Callable[[], Any]) -> int:
    """Create a node, spin it until it is done or a signal comes, and return the exit code."""
    import ctypes  # noqa: F401  # not first within the handler of a signal

    import rclpy
    from rclpy.exceptions import ParameterException
    from rclpy.executors import ExternalShutdownException
    from rclpy.logging import get_logger
    from rclpy.signals import SignalHandlerOptions, install_signal_handlers
    from rclpy.utilities import ok, try_shutdown

    from longreach_node.clock import ignore_times_before_zero
    from longreach_node.executor import node_executor

    node = executor = None
    code = 0
    early: list[int] = []
    cancels: list[Callable[[], object]] = []

    def record(number: int, frame: object) -> None:  # noqa: ARG001
        early.append(number)
        cancels.append(_exit_after(_CALLBACK_TIMEOUT, 0))

    try:
        # During construction signals are only recorded: a KeyboardInterrupt could be raised at any
        # line, in a __del__ for instance, where it would be printed and lost, and a context that
        # ends in the middle of a constructor makes rclpy fail in many ways.
        for number in _SIGNALS:
            signal.signal(number, record)
        try:
            rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
        except RuntimeError as error:
            print(f'arguments after --ros-args cannot be used: {error}', file=sys.stderr)
            return 2
        ignore_times_before_zero()
        node = factory()
        # From here on rclpy shuts its context down on both signals, and calls ``record`` as well,
        # for a callback that is in the middle of a long calculation.
        install_signal_handlers(SignalHandlerOptions.ALL)
        if early:
            return code
        executor = node_executor()
        executor.add_node(node)
        spin_until(executor, getattr(node, 'done', None))
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
        # What a node does while a signal shuts its context down fails in many ways, all of this
        # type.
        if ok():
            raise
    finally:
        # The node's work is done. Should the middleware hang while it is taken down, exit anyway.
        for cancel in cancels:
            cancel()
        _exit_after(_SHUTDOWN_TIMEOUT, code)
        if executor is not None:
            # Before the context goes: it would end the executor later, with a traceback.
            executor.shutdown()
        if node is not None:
            node.destroy_node()
        try_shutdown()
        # Not earlier, because rclpy puts back the handlers that it found: while Python ends, a
        # second signal would meet the system's own, which kill the process.
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_IGN)
    return code
