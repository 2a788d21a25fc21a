"""
End all processes of a launch that is itself killed with SIGKILL.

Two mechanisms are used. Each child requests SIGINT from the kernel for the death of its parent
(Linux: PR_SET_PDEATHSIG); only the child gets this signal, once. A guardian process, forked from
the launch, detects the death by the end of a pipe and ends the children's process groups with
SIGINT, SIGTERM and SIGKILL. The launch has one thread only, as fork and PR_SET_PDEATHSIG require.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

__all__ = ['Guardian', 'group_is_alive', 'signal_group']

_PR_SET_PDEATHSIG = 1
_GRACE = 1.0
"""Time [s] between the kernel's SIGINT and the guardian's first signal."""
_PAUSE = 0.05
_DESCRIPTORS = 4096
"""More descriptors than a launch has open."""


class _Group(NamedTuple):
    """A process group, and the times [s] from SIGINT to SIGTERM and from there to SIGKILL."""

    number: int
    sigterm_timeout: float
    sigkill_timeout: float


def signal_group(group: int, number: int) -> None:
    """Send a signal to a process group; ignore one that has ended."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def group_is_alive(group: int) -> bool:
    """Return whether a process group has a member that runs (a zombie does not)."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    for path in Path('/proc').iterdir():
        if path.name.isdigit():
            with contextlib.suppress(OSError):
                # The name in parentheses may contain anything; state, parent, group follow it.
                state, _, number = (path / 'stat').read_text().rpartition(')')[2].split()[:3]
                if int(number) == group and state not in 'ZX':
                    return True
    return False


class Guardian:
    """Starts the guardian and reports process groups to it."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None)
        reader, self._writer = os.pipe()
        self._parent = os.getpid()
        self._pid = os.fork()
        if self._pid == 0:
            try:
                _guard(reader)
            finally:
                os._exit(0)
        os.close(reader)

    def child_setup(self, sigterm_timeout: float, sigkill_timeout: float) -> Callable[[], None]:
        """
        Return the function that a child calls between fork and exec.

        It must be the leader of its process group by then.
        """

        def setup() -> None:
            self._libc.prctl(_PR_SET_PDEATHSIG, signal.SIGINT)
            # Without a guardian there is still the kernel's signal.
            signal.signal(signal.SIGPIPE, signal.SIG_IGN)
            with contextlib.suppress(OSError):
                os.write(
                    self._writer, b'+%d %f %f\n' % (os.getpid(), sigterm_timeout, sigkill_timeout)
                )
            signal.signal(signal.SIGPIPE, signal.SIG_DFL)
            # The parent may have died before the request.
            if os.getppid() != self._parent:
                os._exit(1)

        return setup

    def forget(self, group: int) -> None:
        """Report that a process group has ended; its number may be reused."""
        with contextlib.suppress(OSError):
            os.write(self._writer, b'-%d 0 0\n' % group)

    def close(self) -> None:
        """End the guardian, which first ends the remaining groups."""
        os.close(self._writer)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self._pid, 0)


def _guard(reader: int) -> None:
    """Keep the list of groups until the launch has ended, then end them."""
    os.setsid()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    # The guardian must not keep the launch's output or the pipe's writing end open.
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    os.closerange(3, reader)
    os.closerange(reader + 1, _DESCRIPTORS)
    groups: dict[int, _Group] = {}
    with os.fdopen(reader, 'rb') as lines:
        for line in lines:
            leader, sigterm_timeout, sigkill_timeout = line[1:].split()
            group = _Group(int(leader), float(sigterm_timeout), float(sigkill_timeout))
            if line.startswith(b'+'):
                groups[group.number] = group
            else:
                groups.pop(group.number, None)
    _end(list(groups.values()))


def _end(groups: list[_Group]) -> None:
    """End process groups, with the same time limits as an orderly shutdown."""
    begin = time.monotonic()
    due = [
        (begin + moment, group.number, number)
        for group in groups
        for moment, number in (
            (_GRACE, signal.SIGINT),
            (_GRACE + group.sigterm_timeout, signal.SIGTERM),
            (_GRACE + group.sigterm_timeout + group.sigkill_timeout, signal.SIGKILL),
        )
    ]
    due.sort()
    alive = {group.number for group in groups}
    while due and alive:
        while due and due[0][0] <= time.monotonic():
            _, group_number, number = due.pop(0)
            if group_number in alive:
                signal_group(group_number, number)
        time.sleep(_PAUSE)
        alive = {number for number in alive if group_is_alive(number)}
