"""Commands that run until they are told to end: signals, and lines on stderr."""

from __future__ import annotations

import contextlib
import signal
import sys


class StopSignals:
    """
    True once SIGINT, SIGTERM or SIGHUP has been received.

    The handlers stay until the end of the process: a second Ctrl-C does no harm meanwhile.
    """

    def __init__(self) -> None:
        self._came = False
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._note)

    def _note(self, *_: object) -> None:
        """Handle a signal."""
        self._came = True

    def __call__(self) -> bool:
        """Return whether one has been received."""
        return self._came


def say(line: str) -> None:
    """Print a line on stderr; a closed terminal ends nothing."""
    with contextlib.suppress(OSError):
        print(line, file=sys.stderr, flush=True)
