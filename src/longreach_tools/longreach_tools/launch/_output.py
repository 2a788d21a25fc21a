"""
Output of a launch: each line at once, after its process' name, to the stream it came from.

The attribute ``output``: ``screen``, or ``log`` (launch.log, standard error also on the screen).
"""

from __future__ import annotations

import asyncio
import functools
import os
import select
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO

from longreach_dynamics.errors import LongreachError

# Bytes that are read at a time; no pipe holds more than the capacity.
_CHUNK, _CAPACITY = 1 << 16, 1 << 20
# Longest line [bytes]; a longer one is split, so that its parts are not copied again and again.
_LONGEST = 1 << 20


def new_log_directory(environment: Mapping[str, str]) -> Path:
    """Return a path in ROS_LOG_DIR, else ROS_HOME/log, else ~/.ros/log; it is not created here."""
    home = Path(environment.get('ROS_HOME') or '~/.ros') / 'log'
    root = Path(environment.get('ROS_LOG_DIR') or home).expanduser()
    stamp = time.strftime('%Y-%m-%d-%H-%M-%S')
    return root / f'{stamp}-{os.uname().nodename}-{os.getpid()}'


class Output:
    """Writes lines of processes and messages of the launch; creates its log directory."""

    def __init__(self, directory: Path) -> None:
        self.when_lost: Callable[[], None] = lambda: None
        self._screen_lost = False
        try:
            directory.mkdir(parents=True, exist_ok=True)
            self._file = (directory / 'launch.log').open('ab', buffering=0)
        except OSError as error:
            raise LongreachError(
                f'log directory {directory} cannot be written: {error.strerror}; '
                'set ROS_LOG_DIR to a writable directory'
            ) from error

    def line(self, process: str, mode: str, line: bytes, *, error: bool) -> None:
        """Write a line of a process where ``mode`` sends it."""
        text = b'[' + process.encode() + b'] ' + line + b'\n'
        if mode == 'screen' or error:
            self._screen(2 if error else 1, text)
        if mode == 'log':
            self._log(text)

    def message(self, level: str, source: str, text: str) -> None:
        """Write a message of the launch; errors and warnings go to standard error."""
        line = f'[{level}] [{source}]: {text}\n'.encode()
        self._screen(1 if level == 'INFO' else 2, line)
        self._log(line)

    def close(self) -> None:
        """Close the log file."""
        self._file.close()

    def _log(self, text: bytes) -> None:
        """Write to launch.log, with the time [s]."""
        try:
            self._file.write(b'%.7f ' % time.time() + text)
        except OSError as error:
            # A full disk must not stop the supervision of processes.
            self._screen(2, f'[ERROR] [launch]: launch.log: {error.strerror}\n'.encode())

    def _screen(self, descriptor: int, text: bytes) -> None:
        """Write a text completely; call ``when_lost`` when the reader has closed its end."""
        while text and not self._screen_lost:
            try:
                text = text[os.write(descriptor, text) :]
            except BlockingIOError:
                select.select((), (descriptor,), ())
            except OSError:
                self._screen_lost = True
                self.when_lost()


class Lines:
    """Passes on an output stream of a process line by line; ``last`` is the last, not empty."""

    def __init__(
        self, stream: IO[bytes], process: str, mode: str, output: Output, *, error: bool
    ) -> None:
        self._stream = stream
        self._write = functools.partial(output.line, process, mode, error=error)
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
            self._write(line.removesuffix(b'\r'))
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
            self._write(self._rest)
        self._loop.remove_reader(self._stream)
        self._stream.close()
