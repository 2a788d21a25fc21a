"""What the nodes of cameras, videos and the tracker share: start, parameters, reports."""

from __future__ import annotations

import contextlib
import ctypes
import os
import time
from collections.abc import Callable, Mapping
from typing import Any

from rclpy.node import Node
from rclpy.task import Future

from longreach_node.clock import steady_clock
from longreach_node.parameters import declare
from longreach_vision.ros.node_parameters import StartParameters

PERIOD = 1.0
"""Period of diagnostics [s of wall time]."""

# Parameters of glibc's mallopt.
_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_THRESHOLD = -1, -2, -3
# Memory kept, and glibc's largest allowed M_MMAP_THRESHOLD [bytes].
_KEPT, _LARGEST_BLOCK = 256 << 20, 32 << 20


class VisionNode(Node):
    """A node with parameters of a kind, which may change at run time, until it is ``done``."""

    settings: Any

    def __init__(
        self,
        name: str,
        kind: type[StartParameters],
        otherwise: Callable[[Any], Mapping[str, Any]] | None = None,
    ) -> None:
        # Before the middleware has threads.
        _keep_freed_memory()
        super().__init__(name)
        self.done = Future()
        self.settings = declare(self, kind, self.change, otherwise)
        self._born, self._is_late = time.monotonic(), False
        self.create_timer(PERIOD, self.report, clock=steady_clock())

    def change(self, settings: Any) -> None:
        """Continue with parameters that were changed at run time."""
        self.settings = settings

    def report(self) -> None:
        """Publish diagnostics."""
        raise NotImplementedError

    def missing(self, wanted: int, *publishers: Any) -> str:
        """Say which topics lack subscribers at the start; empty for none, or after the wait."""
        topics = [one.topic_name for one in publishers if one.get_subscription_count() < wanted]
        text = f'{wanted} subscribers on {" and ".join(topics)}' if topics else ''
        is_over = time.monotonic() - self._born > self.settings.start_timeout
        if text and is_over and not self._is_late:
            self.get_logger().warning(f'starts without {text}')
        self._is_late = self._is_late or is_over
        return '' if self._is_late else text


def _keep_freed_memory() -> None:
    """Let this process keep freed memory of images, at most 256 MB."""
    # glibc returns such blocks to the system at once, and the page faults of the next image of
    # 5 MB triple the time to receive it.
    if any(name.startswith('MALLOC_') for name in os.environ):
        return
    with contextlib.suppress(OSError, AttributeError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_M_MMAP_THRESHOLD, _LARGEST_BLOCK)
        mallopt(_M_TRIM_THRESHOLD, _KEPT)
        mallopt(_M_TOP_PAD, _LARGEST_BLOCK)
