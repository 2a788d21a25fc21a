"""
One process of a launch: its start, its output, the signals that end it.

Each process is the leader of its own session and process group: a Ctrl-C in the terminal reaches
only the launch, which passes it on, and signals also reach the process's own children.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

from ._guardian import Guardian, group_is_alive, signal_group
from ._model import ParameterFile, ProcessSpecification
from ._output import LineBuffer, Output

__all__ = ['Child', 'Stream', 'command_words', 'exit_status']

_CHUNK = 1 << 16
_CAPACITY = 1 << 20
"""No pipe holds more than this [bytes]."""


def exit_status(code: int) -> int:
    """Return a return code as a shell shows it: 128 + n for signal n."""
    return code if code >= 0 else 128 - code


def command_words(
    specification: ProcessSpecification, path_of: Callable[[int, ParameterFile], str]
) -> list[str]:
    """Return a command line; ``path_of`` gives the path of the nth parameter file."""
    words: list[str] = []
    count = 0
    for word in specification.command:
        if isinstance(word, ParameterFile):
            words.append(path_of(count, word))
            count += 1
        else:
            words.append(word)
    return words


class Stream:
    """Standard output or standard error of a process."""

    def __init__(self, descriptor: int, process: str, mode: str, *, error: bool) -> None:
        os.set_blocking(descriptor, False)
        self.descriptor = descriptor
        self._process = process
        self._mode = mode
        self._error = error
        self._lines = LineBuffer()

    def read(self, output: Output) -> bool:
        """Pass on the data available now; return False at the end of the stream."""
        try:
            data = os.read(self.descriptor, _CHUNK)
        except BlockingIOError:
            return True
        for line in self._lines.feed(data) if data else self._lines.finish():
            output.line(self._process, self._mode, line, error=self._error)
        return bool(data)

    def drain(self, output: Output) -> None:
        """Pass on all data available now, with an unfinished last line, and close."""
        # Not until the end of the stream: a daemon outside the group may never stop writing.
        data = bytearray()
        with contextlib.suppress(OSError):
            while len(data) < _CAPACITY and (more := os.read(self.descriptor, _CHUNK)):
                data += more
        for line in (*self._lines.feed(bytes(data)), *self._lines.finish()):
            output.line(self._process, self._mode, line, error=self._error)
        os.close(self.descriptor)


class Child:
    """
    A running process of a launch.

    Parameters
    ----------
    specification : ProcessSpecification
        What to run.
    directory : Path
        Where its parameter files are written.
    guardian : Guardian
        Is told the process group.

    Raises
    ------
    OSError, subprocess.SubprocessError
        The process cannot be started.
    """

    def __init__(
        self, specification: ProcessSpecification, directory: Path, guardian: Guardian
    ) -> None:
        self.specification = specification
        self.signals: list[int] = []
        self.words = command_words(specification, lambda n, f: self._written(directory, n, f))
        self._guardian = guardian
        inherited = specification.output == 'inherit'
        ends = [] if inherited else [os.pipe(), os.pipe()]
        try:
            self._process = subprocess.Popen(
                ' '.join(self.words) if specification.shell else self.words,
                shell=specification.shell,
                stdin=subprocess.DEVNULL,
                stdout=None if inherited else ends[0][1],
                stderr=None if inherited else ends[1][1],
                env=dict(specification.environment),
                start_new_session=True,
                # Safe: the launch has one thread.
                preexec_fn=guardian.child_setup(
                    specification.sigterm_timeout, specification.sigkill_timeout
                ),
            )
        except (OSError, subprocess.SubprocessError):
            for reader, _ in ends:
                os.close(reader)
            raise
        finally:
            for _, writer in ends:
                os.close(writer)
        name, mode = specification.name, specification.output
        self.streams = [
            Stream(reader, name, mode, error=error)
            for (reader, _), error in zip(ends, (False, True), strict=False)
        ]

    def _written(self, directory: Path, count: int, file: ParameterFile) -> str:
        """Write a parameter file and return its path."""
        path = directory / f'{self.specification.name.replace("/", "_")}-{count}.yaml'
        path.write_text(file.text)
        return str(path)

    @property
    def pid(self) -> int:
        """Process id, and number of the process group."""
        return self._process.pid

    @property
    def command_line(self) -> str:
        """The command line, quoted for a shell."""
        return shlex.join(self.words)

    def poll(self) -> int | None:
        """Return the return code, None while the process runs."""
        return self._process.poll()

    def send(self, number: int) -> None:
        """Send a signal to the process and to all that it started in its group."""
        self.signals.append(number)
        signal_group(self.pid, number)

    def group_is_alive(self) -> bool:
        """Return whether any process of the group still runs."""
        return group_is_alive(self.pid)

    def forget(self) -> None:
        """Tell the guardian that the group has ended."""
        self._guardian.forget(self.pid)

    def left_as_asked(self, code: int) -> bool:
        """Return whether a return code is that of a process that ended on request."""
        asked = {n for n in self.signals if n != signal.SIGKILL}
        return code == 0 or exit_status(code) in {128 + n for n in asked}
