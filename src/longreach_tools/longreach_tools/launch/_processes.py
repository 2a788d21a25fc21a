"""
Run a plan: start its processes, show their output, end them together, return the exit code.

One thread waits for output, signals and timers. SIGINT, SIGTERM and
SIGHUP to the launch begin the shutdown; so does a process with ``on_exit="shutdown"`` that ends.
Shutdown sends SIGINT to each process group, then SIGTERM, then SIGKILL.

The exit code is 0 if every process ended with 0, or on the shutdown's SIGINT or SIGTERM; otherwise
it is that of the first process that failed, 128 + n for signal n. Of a respawned process only the
last end counts.
"""

from __future__ import annotations

import contextlib
import functools
import heapq
import itertools
import os
import selectors
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from ._child import Child, Stream, exit_status
from ._guardian import Guardian
from ._model import LogLine, Plan, ProcessSpecification
from ._output import Output

__all__ = ['respawns_used_up', 'run_plan']

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_GROUP_CHECK = 0.05
"""Time [s] between checks of what an ended process has left running."""
_CANNOT_START = 126


def run_plan(plan: Plan, output: Output) -> int:
    """
    Run a plan to its end and return the exit code.

    To be called in the main thread of a program with one thread that ends soon after: SIGINT,
    SIGTERM and SIGHUP are ignored from then on.
    """
    with (
        _signal_pipe() as signals,
        tempfile.TemporaryDirectory(prefix='launch_params_') as directory,
        contextlib.closing(Guardian()) as guardian,
    ):
        return _Supervisor(plan, output, Path(directory), guardian, signals).run()


def respawns_used_up(node: str | None, ends: int) -> str:
    """Return the error message for a process that is not started again."""
    who = f'node {node}' if node else 'the process'
    return (
        f'{who} has ended {ends} times and is NOT started again: no respawns are left. The other'
        ' processes go on without it; end this launch and start it again to get it back'
    )


@contextlib.contextmanager
def _signal_pipe() -> Iterator[int]:
    """
    Turn signals into bytes on a pipe; yield its end for reading.

    Afterwards these signals are ignored, so that a late Ctrl-C does not interrupt the clean-up.
    """
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    for number in (*_SIGNALS, signal.SIGCHLD):
        signal.signal(number, lambda *_: None)
    try:
        yield reader
    finally:
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.set_wakeup_fd(-1)
        os.close(reader)
        os.close(writer)


class _Supervisor:
    """Starts, watches and ends the processes of a launch."""

    def __init__(
        self, plan: Plan, output: Output, directory: Path, guardian: Guardian, signals: int
    ) -> None:
        self._output = output
        self._directory = directory
        self._guardian = guardian
        self._signals = signals
        self._running: set[Child] = set()
        self._remains: set[Child] = set()
        self._starts: dict[str, int] = {}
        self._awaiting_respawn: dict[str, int] = {}
        self._failure: int | None = None
        self._shutting_down = False
        self._due: list[tuple[float, int, Callable[[], None], bool]] = []
        self._count = itertools.count()
        self._selector = selectors.DefaultSelector()
        self._selector.register(signals, selectors.EVENT_READ)
        for step in plan.steps:
            self._at(0.0, functools.partial(self._take, step))

    def run(self) -> int:
        """Supervise until no process runs and no timer is pending; return the exit code."""
        with self._selector:
            while True:
                self._do_what_is_due()
                # Pending escalations do not count: there is nothing left to end.
                pending = any(not in_shutdown for *_, in_shutdown in self._due)
                if not (self._running or self._remains or pending):
                    break
                keys = [key for key, _ in self._selector.select(self._patience())]
                for key in keys:
                    if isinstance(key.data, Stream) and not key.data.read(self._output):
                        self._selector.unregister(key.fd)
                # After the streams, as the end of a process closes its own.
                if any(key.fd == self._signals for key in keys):
                    self._take_signals()
                if self._remains:
                    self._look_after_remains()
                if self._output.screen_lost and not self._shutting_down:
                    self._shut_down('the output is no longer read')
        return self._failure or 0

    def _at(self, delay: float, action: Callable[[], None], *, in_shutdown: bool = False) -> None:
        """Schedule an action in ``delay`` seconds; during a shutdown only if ``in_shutdown``."""
        moment = time.monotonic() + delay if delay else 0.0
        heapq.heappush(self._due, (moment, next(self._count), action, in_shutdown))

    def _do_what_is_due(self) -> None:
        while self._due and self._due[0][0] <= time.monotonic():
            _, _, action, in_shutdown = heapq.heappop(self._due)
            if in_shutdown or not self._shutting_down:
                action()

    def _patience(self) -> float | None:
        """Return how long [s] to wait for output and signals at most."""
        waits = [max(0.0, self._due[0][0] - time.monotonic())] if self._due else []
        if self._remains:
            waits.append(_GROUP_CHECK)
        return min(waits, default=None)

    def _take(self, step: ProcessSpecification | LogLine) -> None:
        """Do one step of the plan."""
        if isinstance(step, LogLine):
            self._output.message(step.level, step.source, step.message)
        else:
            self._start(step)

    def _take_signals(self) -> None:
        """Handle the signals received."""
        for number in os.read(self._signals, 4096):
            if number == signal.SIGCHLD:
                self._look_after_children()
                continue
            name = signal.Signals(number).name
            if self._shutting_down:
                self._output.message(
                    'WARN',
                    'launch',
                    f'{name} again: already shutting down, SIGTERM and SIGKILL follow',
                )
            else:
                self._shut_down(f'{name} received')

    def _start(self, process: ProcessSpecification) -> None:
        """Start a process."""
        self._awaiting_respawn.pop(process.name, None)
        self._starts[process.name] = self._starts.get(process.name, 0) + 1
        try:
            child = Child(process, self._directory, self._guardian)
        except (OSError, subprocess.SubprocessError) as error:
            self._output.message('ERROR', process.name, f'process cannot be started: {error}')
            self._fail(_CANNOT_START)
            if process.ends_all:
                self._shut_down(f'{process.name} cannot be started')
            return
        self._running.add(child)
        for stream in child.streams:
            self._selector.register(stream.descriptor, selectors.EVENT_READ, stream)
        self._output.message('INFO', process.name, f'process started with pid [{child.pid}]')

    def _fail(self, code: int) -> None:
        """Record a failure; the first one counts."""
        if self._failure is None:
            self._failure = exit_status(code)

    def _look_after_children(self) -> None:
        """Handle the processes that have ended."""
        for child in sorted(self._running, key=lambda child: child.pid):
            code = child.poll()
            if code is not None:
                self._running.discard(child)
                self._remains.add(child)
                self._look_after_remains()
                self._ended(child, code)
                if child in self._remains:
                    # Background processes of a shell ignore SIGINT.
                    self._end_group(child, signal.SIGTERM)

    def _look_after_remains(self) -> None:
        """Release ended processes of whose group nothing runs."""
        for child in list(self._remains):
            if not child.group_is_alive():
                self._release(child)

    def _release(self, child: Child) -> None:
        """Release a process of whose group nothing runs, after its remaining output."""
        self._remains.discard(child)
        child.forget()
        for stream in child.streams:
            with contextlib.suppress(KeyError):
                self._selector.unregister(stream.descriptor)
            stream.drain(self._output)

    def _ended(self, child: Child, code: int) -> None:
        """Report the end of a process; respawn it, shut down or record a failure."""
        process = child.specification
        asked = bool(child.signals) and child.left_as_asked(code)
        if code == 0:
            text = f'process has finished cleanly [pid {child.pid}]'
        elif asked:
            text = f'process has left on {signal.Signals(exit_status(code) - 128).name}'
            text += f' [pid {child.pid}]'
        else:
            text = (
                f"process has died [pid {child.pid}, exit code {code}, cmd '{child.command_line}']"
            )
        self._output.message('INFO' if code == 0 or asked else 'ERROR', process.name, text)
        if process.ends_all and not self._shutting_down:
            self._shut_down(f'{process.name} ended')
        limit = process.respawn_max_retries
        retries = self._starts[process.name] - 1
        if process.respawn and not self._shutting_down and (limit < 0 or retries < limit):
            self._awaiting_respawn[process.name] = code
            self._at(process.respawn_delay, functools.partial(self._start, process))
            return
        if code != 0 and not asked:
            self._fail(code)
        if process.respawn and not self._shutting_down:
            text = respawns_used_up(process.node, self._starts[process.name])
            self._output.message('ERROR', process.name, text)

    def _shut_down(self, reason: str) -> None:
        """Begin the shutdown."""
        if self._shutting_down:
            return
        self._shutting_down = True
        self._output.message('INFO', 'launch', f'shutting down: {reason}')
        for code in self._awaiting_respawn.values():
            if code != 0:
                self._fail(code)
        # Nothing more is started; other pending actions would only delay the end.
        self._due = [entry for entry in self._due if entry[3]]
        heapq.heapify(self._due)
        for child in sorted(self._running, key=lambda child: child.pid):
            self._end_group(child)

    def _end_group(self, child: Child, number: signal.Signals = signal.SIGINT) -> None:
        """Send a signal to a process group, and schedule stronger ones if it still runs."""
        if child.signals:
            return
        process, name = child.specification, child.specification.name
        self._output.message('INFO', name, f"sending signal '{number.name}' to process[{name}]")
        child.send(number)
        delay = 0.0
        if number == signal.SIGINT:
            delay = process.sigterm_timeout
            self._escalate_after(delay, child, signal.SIGTERM, delay)
        self._escalate_after(
            delay + process.sigkill_timeout, child, signal.SIGKILL, process.sigkill_timeout
        )

    def _escalate_after(
        self, delay: float, child: Child, number: signal.Signals, timeout: float
    ) -> None:
        """Send a stronger signal after a delay, unless the group has ended by then."""
        escalate = functools.partial(self._escalate, child, number, timeout)
        self._at(delay, escalate, in_shutdown=True)

    def _escalate(self, child: Child, number: signal.Signals, timeout: float) -> None:
        """Send a stronger signal to a process group that still runs."""
        if child not in self._running and child not in self._remains:
            return
        name = child.specification.name
        before = signal.Signals(child.signals[-1]).name
        self._output.message(
            'ERROR',
            name,
            f"process[{name}] failed to terminate '{timeout:g}' seconds after receiving "
            f"'{before}', escalating to '{number.name}'",
        )
        child.send(number)
