"""
Common parts of the machines' tests: calls of the command, launches as processes, recordings.

Every process of a launch has a marker in its environment, by which a test finds processes that are
left over. Set ROS_DOMAIN_ID and ROS_AUTOMATIC_DISCOVERY_RANGE before, to keep other nodes out.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NoReturn

from longreach_tools.bag import absolute_name, bag_typestore, open_bag
from longreach_tools.cli import main

# Longest wait for a process or for an effect of it [s].
DEADLINE = 90.0

_MARKER = 'LONGREACH_TEST_MARKER'
_LONGREACH = [sys.executable, '-c', 'from longreach_tools.cli import console; console()']


class Outcome:
    """Exit code, stdout and stderr of one call of ``longreach MACHINE words`` in this process."""

    def __init__(self, capsys: Any, machine: str, *words: object) -> None:
        self._machine = machine
        self.code = main([machine, *map(str, words)])
        self.out, self.err = capsys.readouterr()

    @property
    def json(self) -> Any:
        """The printed JSON; NaN is refused."""
        assert self.code == 0, self.err
        return json.loads(self.out, parse_constant=_no_constant)

    def refused(self, text: str, code: int = 2) -> None:
        """Check the exit code, and that the only output is one line on stderr with ``text``."""
        assert (self.code, self.out) == (code, ''), f'exit code {self.code}: {self.out}{self.err}'
        (line,) = self.err.splitlines()
        assert line.startswith(f'longreach {self._machine}'), line
        assert text in line, line


def _no_constant(name: str) -> NoReturn:
    """Refuse NaN and infinities, which Python's json accepts although JSON has none."""
    raise AssertionError(f'{name} is not valid JSON')


def longreach(*words: object) -> subprocess.CompletedProcess[str]:
    """Run ``longreach`` in a process of its own and wait for its end."""
    return subprocess.run(
        [*_LONGREACH, *map(str, words)],
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=False,
    )


class Launch:
    """A running ``longreach launch MACHINE arguments``, with its output in a file."""

    def __init__(self, machine: str, directory: Path, *arguments: object) -> None:
        self._mark = uuid.uuid4().hex
        self._log = directory / f'{self._mark}.log'
        with self._log.open('wb') as log:
            self.process = subprocess.Popen(
                [*_LONGREACH, 'launch', machine, *map(str, arguments)],
                cwd=directory,
                env={**os.environ, _MARKER: self._mark},
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def text(self) -> str:
        """Return the output of all its processes."""
        return self._log.read_text(errors='replace')

    def until(self, condition: Callable[[], object], what: str) -> None:
        """Wait until a condition holds; AssertionError after the deadline."""
        end = time.monotonic() + DEADLINE
        while not condition():
            assert time.monotonic() < end, f'no {what}:\n{self.text()}'
            time.sleep(0.02)

    def says(self, text: str) -> None:
        """Wait until the output contains a text."""
        self.until(lambda: text in self.text(), repr(text))

    def pid(self, name: str) -> int:
        """Return the id of the latest process with a name such as plant-1."""
        started = rf'\[{name}\]: process started with pid \[(\d+)\]'
        self.until(lambda: re.search(started, self.text()), f'start of {name}')
        return int(re.findall(started, self.text())[-1])

    def wait(self) -> int:
        """Wait for the end, check that no process is left, and return the exit code."""
        try:
            code = self.process.wait(DEADLINE)
        except subprocess.TimeoutExpired:
            raise AssertionError(f'still running:\n{self.text()}') from None
        assert self.alive() == [], f'processes are left:\n{self.text()}'
        assert 'Traceback' not in self.text(), self.text()
        return code

    def alive(self) -> list[int]:
        """Return the ids of all processes with the marker of this launch."""
        mark = self._mark.encode()
        found = []
        for directory in Path('/proc').iterdir():
            with contextlib.suppress(OSError):
                if directory.name.isdigit() and mark in (directory / 'environ').read_bytes():
                    found.append(int(directory.name))
        return found

    def close(self) -> None:
        """Kill the processes that are left."""
        for pid in self.alive():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()


@contextlib.contextmanager
def launch(machine: str, directory: Path, *arguments: object) -> Iterator[Launch]:
    """Yield a :class:`Launch`; kill all its processes afterwards."""
    running = Launch(machine, directory, *arguments)
    try:
        yield running
    finally:
        running.close()


def contents(bag: Path) -> dict[str, list[tuple[int, bytes]]]:
    """Return time [ns] and bytes of all messages of a complete bag, by topic, in order."""
    found: dict[str, list[tuple[int, bytes]]] = {}
    with open_bag(bag) as opened:
        assert not opened.problem, opened.problem
        for topic, time_, data in opened.messages(opened.select(None)):
            found.setdefault(topic, []).append((time_, bytes(data)))
    return found


def write_bag(path: Path, namespace: str, rows: Iterable[tuple[str, int, Any]]) -> Path:
    """
    Write a bag with the library ``rosbags``, as another program would, and return its path.

    Rows are topic in the namespace, bag time [ns], message of rclpy.
    """
    from rclpy.serialization import serialize_message
    from rosbags import rosbag2

    store = bag_typestore()
    connections: dict[str, Any] = {}
    with rosbag2.Writer(path, version=9, storage_plugin=rosbag2.StoragePlugin.MCAP) as writer:
        for name, time_, message in rows:
            if name not in connections:
                kind = type(message)
                connections[name] = writer.add_connection(
                    absolute_name(name, namespace),
                    f'{kind.__module__.split(".")[0]}/msg/{kind.__name__}',
                    typestore=store,
                )
            writer.write(connections[name], time_, serialize_message(message))
    return path
