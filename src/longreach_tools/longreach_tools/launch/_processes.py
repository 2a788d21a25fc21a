"""
Run the processes of a launch: show their output, end them together, return the exit code.

SIGINT, SIGTERM, SIGHUP or the end of a process with ``on_exit="shutdown"`` begin the shutdown:
SIGINT to each process group, then SIGTERM, then SIGKILL. Of a launch that is killed the kernel
sends SIGINT to each process. The exit code is that of the first process that failed, 128 + n for
signal n; it is no failure to end on the shutdown's SIGINT or SIGTERM.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import itertools
import os
import re
import shlex
import signal
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from ._evaluate import ParameterFile, Process
from ._output import Lines, Output

# Time from SIGINT to SIGTERM, and from there to SIGKILL [s].
PATIENCE = 5.0
_GROUP_CHECK = 0.05
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_CANNOT_START = 126
_PR_SET_PDEATHSIG = 1
# What a logger of ROS writes before a message.
_OF_LOGGER = re.compile(r'^\[\w+\] \[[\d.]+\] \[[^\]]*\]: ')


def run_processes(processes: Sequence[Process], output: Output) -> int:
    """
    Run processes to their end and return the exit code; signals are blocked from then on.

    To be called in the main thread of a program with one thread that ends soon after.
    """
    with tempfile.TemporaryDirectory(prefix='launch_params_') as directory:
        return asyncio.run(_Supervisor(output, Path(directory)).run(processes))


def _die_with_parent() -> Callable[[], None]:
    """Return the function that a child calls between fork and exec."""
    libc, parent = ctypes.CDLL(None), os.getpid()

    def request() -> None:
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGINT)
        # The parent may have died before the request.
        if os.getppid() != parent:
            os._exit(1)

    return request


class _Child:
    """A running process, leader of its own group: Ctrl-C in a terminal is for the launch only."""

    def __init__(self, process: Process, words: Sequence[str], output: Output) -> None:
        self._popen = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            env=dict(process.environment),
            start_new_session=True,
            # Safe: the launch has one thread.
            preexec_fn=_die_with_parent(),
        )
        self.pid = self._popen.pid
        self.signals: list[int] = []
        self.ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self.streams = [
            Lines(stream, process.name, process.output, output, error=error)
            for stream, error in ((self._popen.stdout, False), (self._popen.stderr, True))
            if stream is not None
        ]

    def poll(self) -> None:
        """Note the end of the process."""
        code = self._popen.poll()
        if code is not None and not self.ended.done():
            self.ended.set_result(code)

    def send(self, number: int) -> bool:
        """Send a signal to the process group; return False if it has ended."""
        self.signals.append(number)
        try:
            os.killpg(self.pid, number)
        except ProcessLookupError:
            return False
        except PermissionError:
            pass
        return True

    async def end_remains(self) -> None:
        """End what an ended process has left running in its group."""
        # Background processes of a shell ignore SIGINT; what has got it may be about to end.
        for number in (0, signal.SIGTERM, signal.SIGKILL)[not self.signals :]:
            if not self.send(number):
                return
            for _ in range(int(PATIENCE / _GROUP_CHECK)):
                await asyncio.sleep(_GROUP_CHECK)
                if not _runs(self.pid):
                    return


def _runs(group: int) -> bool:
    """Return whether a process group has a member that runs (a zombie does not)."""
    for path in Path('/proc').iterdir():
        if path.name.isdigit():
            with contextlib.suppress(OSError):
                # The name in parentheses may contain anything; state, parent, group follow it.
                state, _, number = (path / 'stat').read_text().rpartition(')')[2].split()[:3]
                if int(number) == group and state not in 'ZX':
                    return True
    return False


class _Supervisor:
    """Starts, watches and ends the processes of a launch."""

    def __init__(self, output: Output, directory: Path) -> None:
        self._output = output
        self._directory = directory
        self._children: set[_Child] = set()
        self._closing = asyncio.Event()
        self._failure = 0
        self._first = ''
        self._reasons: dict[str, str] = {}  # last lines of failed processes
        output.when_lost = lambda: self._shut_down('the output is no longer read')

    async def run(self, processes: Sequence[Process]) -> int:
        """Run all processes to their end and return the exit code."""
        loop = asyncio.get_running_loop()
        for number in _SIGNALS:
            loop.add_signal_handler(number, self._signalled, number)
        loop.add_signal_handler(signal.SIGCHLD, self._poll)
        try:
            await asyncio.gather(*(self._keep(process) for process in processes))
            if self._failure:
                # Once more, because many lines may have come since.
                self._output.message('ERROR', 'launch', self._first)
        finally:
            signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        return self._failure

    def _poll(self) -> None:
        """Note the ends of processes."""
        for child in self._children:
            child.poll()

    def _signalled(self, number: signal.Signals) -> None:
        """Handle a signal to the launch."""
        if self._closing.is_set():
            text = f'{number.name} again: already shutting down, SIGTERM and SIGKILL follow'
            self._output.message('WARN', 'launch', text)
        else:
            self._shut_down(f'{number.name} received')

    def _shut_down(self, reason: str) -> None:
        """Begin the shutdown."""
        if not self._closing.is_set():
            self._closing.set()
            self._output.message('INFO', 'launch', f'shutting down: {reason}')

    async def _keep(self, process: Process) -> None:
        """Run a process, and again as long as it respawns."""
        for start in itertools.count(1):
            if self._closing.is_set() and start == 1:
                return
            code = await self._run(process)
            if process.ends_all:
                self._shut_down(f'{process.name} ended')
            limit = process.respawn_max_retries
            if self._closing.is_set() or not process.respawn or 0 <= limit < start:
                break
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._closing.wait(), process.respawn_delay)
            if self._closing.is_set():
                break
        if code and not self._failure:
            self._failure, reason = code, self._reasons.get(process.name, '')
            self._first = f'{process.name} failed with exit code {code}{reason and ": "}{reason}'
        if process.respawn and not self._closing.is_set():
            text = f'has ended {start} times and is NOT started again; the others go on without it'
            self._output.message('ERROR', process.name, text)

    async def _run(self, process: Process) -> int:
        """Run a process once; return its exit code, 0 if it left as the shutdown asked."""
        name, words = process.name, []
        for count, word in enumerate(process.command):
            if isinstance(word, ParameterFile):
                path = self._directory / f'{name.replace("/", "_")}-{count}.yaml'
                path.write_text(word.text)
                word = str(path)
            words.append(word)
        try:
            child = _Child(process, words, self._output)
        except (OSError, subprocess.SubprocessError) as error:
            self._output.message('ERROR', name, f'process cannot be started: {error}')
            return _CANNOT_START
        self._children.add(child)
        self._output.message('INFO', name, f'process started with pid [{child.pid}]')
        # It may have ended before it was one of the children.
        child.poll()
        end = asyncio.create_task(self._end(process, child))
        code = await child.ended
        end.cancel()
        self._children.discard(child)
        for stream in child.streams:
            stream.flush()
        status = code if code >= 0 else 128 - code
        asked = code == 0 or status - 128 in {*child.signals} - {signal.SIGKILL}
        if code == 0:
            text = f'process has finished cleanly [pid {child.pid}]'
        elif asked:
            text = f'process has left on {signal.Signals(status - 128).name} [pid {child.pid}]'
        else:
            cmd = shlex.join(words)
            text = f"process has died [pid {child.pid}, exit code {code}, cmd '{cmd}']"
        if not asked:
            last = child.streams[1].last.decode(errors='replace')
            self._reasons[name] = _OF_LOGGER.sub('', last)
        self._output.message('INFO' if asked else 'ERROR', name, text)
        await child.end_remains()
        for stream in child.streams:
            stream.close()
        return 0 if asked else status

    async def _end(self, process: Process, child: _Child) -> None:
        """End a process when the shutdown begins."""
        name = process.name
        await self._closing.wait()
        self._output.message('INFO', name, f"sending signal 'SIGINT' to process[{name}]")
        child.send(signal.SIGINT)
        for number in (signal.SIGTERM, signal.SIGKILL):
            await asyncio.sleep(PATIENCE)
            self._output.message(
                'ERROR',
                name,
                f"process[{name}] failed to terminate '{PATIENCE:g}' seconds after receiving "
                f"'{signal.Signals(child.signals[-1]).name}', escalating to '{number.name}'",
            )
            child.send(number)
