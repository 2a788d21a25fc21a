"""
Output of a launch on the screen and in its log directory.

Lines are bytes; each is written at once, preceded by the name of its process. Standard output of a
process goes to standard output, its standard error to standard error.
The attribute ``output`` selects the destination: ``screen``; ``log`` (launch.log, standard error
also on the screen); ``both``.
"""

from __future__ import annotations

import os
import select
import time
from collections.abc import Mapping
from pathlib import Path

from longreach_dynamics.errors import LongreachError

__all__ = ['ROUTES', 'LineBuffer', 'Output', 'default_log_root', 'new_log_directory']

_LONGEST = 1 << 20
"""Longest line [bytes]; a longer one is split, so that memory stays bounded."""

# Where the lines of standard output and of standard error go.
ROUTES = {
    'screen': ({'screen'}, {'screen'}),
    'log': ({'log'}, {'log', 'screen'}),
    'both': ({'log', 'screen'}, {'log', 'screen'}),
}


def default_log_root(environment: Mapping[str, str]) -> Path:
    """Return ROS_LOG_DIR, else ROS_HOME/log, else ~/.ros/log."""
    if environment.get('ROS_LOG_DIR'):
        return Path(environment['ROS_LOG_DIR']).expanduser()
    return Path(environment.get('ROS_HOME') or '~/.ros').expanduser() / 'log'


def new_log_directory(root: Path) -> Path:
    """Return the path of a log directory for this run; it is not created here."""
    now = time.time()
    stamp = time.strftime('%Y-%m-%d-%H-%M-%S', time.localtime(now))
    return root / f'{stamp}-{int(now % 1 * 1e6):06d}-{os.uname().nodename}-{os.getpid()}'


class LineBuffer:
    """Splits a stream of bytes into lines."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        """Return the lines that are complete, without their ends."""
        self._rest += data
        *lines, rest = self._rest.split(b'\n')
        self._rest = rest
        if len(rest) >= _LONGEST:
            lines.append(self._rest)
            self._rest = bytearray()
        return [bytes(line).removesuffix(b'\r') for line in lines]

    def finish(self) -> list[bytes]:
        """Return the last line if it has no end."""
        rest, self._rest = bytes(self._rest), bytearray()
        return [rest] if rest else []


class Output:
    """
    Writes lines of processes and messages of the launch.

    Parameters
    ----------
    directory : Path
        Log directory; created if missing.

    Raises
    ------
    LongreachError
        The directory cannot be written.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.screen_lost = False
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
        route = ROUTES[mode][error]
        text = b'[' + process.encode() + b'] ' + line + b'\n'
        if 'screen' in route:
            self._screen(2 if error else 1, text)
        if 'log' in route:
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
            if not self.screen_lost:
                self._screen(2, f'[ERROR] [launch]: launch.log: {error.strerror}\n'.encode())

    def _screen(self, descriptor: int, text: bytes) -> None:
        """Write a text completely; set ``screen_lost`` when the reader has closed its end."""
        while text:
            try:
                text = text[os.write(descriptor, text) :]
            except BlockingIOError:
                select.select((), (descriptor,), ())
            except OSError:
                self.screen_lost = True
                return
