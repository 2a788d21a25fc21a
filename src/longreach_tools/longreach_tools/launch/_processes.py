"""
Run the processes of a launch: show their output, end them together, return the exit code.

Each line of a process is shown at once, after the name of the process, on the stream it came from.

SIGINT, SIGTERM, SIGHUP or the end of a process with ``on_exit="shutdown"`` begin the shutdown:
SIGINT to each process group, then SIGTERM, then SIGKILL. Of a launch that is killed the kernel
sends SIGINT to each process. The exit code is that of the first process that failed, 128 + n for
signal n; it is no failure to end on the shutdown's SIGINT or SIGTERM.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import functools
import itertools
import os
import re
import select
import shlex
import signal
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO

from ._evaluate import ParameterFile, Process

# Time from SIGINT to SIGTERM, and from there to SIGKILL [s].
PATIENCE = 5.0
_GROUP_CHECK = 0.05
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_CANNOT_START = 126
_PR_SET_PDEATHSIG = 1
# What a logger of ROS writes before a message.
_OF_LOGGER = re.compile(r'^\[\w+\] \[[\d.]+\] \[[^\]]*\]: ')
# Bytes that are read at a time; no pipe holds more than the capacity.
_CHUNK, _CAPACITY = 1 << 16, 1 << 20
# Longest line [bytes]; a longer one is split, so that its parts are not copied again and again.
_LONGEST = 1 << 20


class Screen:
    """Standard output and standard error of the launch."""

    def __init__(self) -> None:
        self.when_lost: Callable[[], None] = lambda: None
        self._lost = False

    def message(self, level: str, source: str, text: str) -> None:
        """Write a message of the launch; errors and warnings go to standard error."""
        self.write(1 if level == 'INFO' else 2, f'[{level}] [{source}]: {text}\n'.encode())

    def write(self, descriptor: int, text: bytes) -> None:
        """Write a text completely; call ``when_lost`` when the reader has closed its end."""
        while text and not self._lost:
            try:
                text = text[os.write(descriptor, text) :]
            except BlockingIOError:
                select.select((), (descriptor,), ())
            except OSError:
                self._lost = True
                self.when_lost()


class _Lines:
    """Passes on an output stream of a process line by line; ``last`` is the last, not empty."""

    def __init__(self, stream: IO[bytes], process: str, write: Callable[[bytes], None]) -> None:
        self._stream, self._process, self._write = stream, process.encode(), write
        self._rest = self.last = b''
        os.set_blocking(stream.fileno(), False)
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(stream, self._read)

    def _read(self) -> bool:
        """Pass on some data; return False when none is available."""
        data = self._stream.read(_CHUNK)
        if data == b'':
            self._loop.remove_reader(self._stream)
        *lines, self._rest = (self._rest + (data or b'')).split(b'\n')
        if len(self._rest) > _LONGEST:
            lines.append(self._rest)
            self._rest = b''
        for line in lines:
            self._write(b'[%s] %s\n' % (self._process, line.removesuffix(b'\r')))
            self.last = line.strip() or self.last
        return bool(data)

    def flush(self) -> None:
        """Pass on all data available now."""
        # Not until the end of the stream: a daemon outside the group may never stop writing.
        for _ in range(_CAPACITY // _CHUNK):
            if not self._read():
                break

    def close(self) -> None:
        """Pass on all data available now, with an unfinished last line, and close."""
        self.flush()
        if self._rest:
            self._write(b'[%s] %s\n' % (self._process, self._rest))
        self._loop.remove_reader(self._stream)
        self._stream.close()


def run_processes(processes: Sequence[Process], screen: Screen) -> int:
    """
    Run processes to their end and return the exit code; signals are blocked from then on.

    To be called in the main thread of a program with one thread that ends soon after.
    """
    with tempfile.TemporaryDirectory(prefix='launch_params_') as directory:
        return asyncio.run(_Supervisor(screen, Path(directory)).run(processes))


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

    def __init__(self, process: Process, words: Sequence[str], screen: Screen) -> None:
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
            _Lines(stream, process.name, functools.partial(screen.write, descriptor))
            for descriptor, stream in enumerate((self._popen.stdout, self._popen.stderr), 1)
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

    def __init__(self, screen: Screen, directory: Path) -> None:
        self._screen = screen
        self._directory = directory
        self._children: set[_Child] = set()
        self._closing = asyncio.Event()
        self._failure = 0
        self._first = ''
        self._reasons: dict[str, str] = {}  # last lines of failed processes
        screen.when_lost = lambda: self._shut_down('the output is no longer read')

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
                self._screen.message('ERROR', 'launch', self._first)
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
            self._screen.message('WARN', 'launch', text)
        else:
            self._shut_down(f'{number.name} received')

    def _shut_down(self, reason: str) -> None:
        """Begin the shutdown."""
        if not self._closing.is_set():
            self._closing.set()
            self._screen.message('INFO', 'launch', f'shutting down: {reason}')

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
            self._screen.message('ERROR', process.name, text)

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
            child = _Child(process, words, self._screen)
        except (OSError, subprocess.SubprocessError) as error:
            self._screen.message('ERROR', name, f'process cannot be started: {error}')
            return _CANNOT_START
        self._children.add(child)
        self._screen.message('INFO', name, f'process started with pid [{child.pid}]')
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
        self._screen.message('INFO' if asked else 'ERROR', name, text)
        await child.end_remains()
        for stream in child.streams:
            stream.close()
        return 0 if asked else status

    async def _end(self, process: Process, child: _Child) -> None:
        """End a process when the shutdown begins."""
        name = process.name
        await self._closing.wait()
        self._screen.message('INFO', name, f"sending signal 'SIGINT' to process[{name}]")
        child.send(signal.SIGINT)
        for number in (signal.SIGTERM, signal.SIGKILL):
            await asyncio.sleep(PATIENCE)
            self._screen.message(
                'ERROR',
                name,
                f"process[{name}] failed to terminate '{PATIENCE:g}' seconds after receiving "
                f"'{signal.Signals(child.signals[-1]).name}', escalating to '{number.name}'",
            )
            child.send(number)
