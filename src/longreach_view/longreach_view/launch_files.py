"""Launch files that a view starts, restarts and ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Collection, Mapping, Sequence
from importlib import metadata
from pathlib import Path

from longreach_dynamics.resources import share_directory
from longreach_machine import MACHINE_GROUP
from longreach_tools.launch import Argument, find_launch_file, survey

# Time for the nodes to end in order [s].
_PATIENCE = 10.0
# Two cores start these within 5 s or so; more at once would all be late.
_AT_ONCE = 4


class Started:
    """Running launches by file and arguments: four at once, others when those are heard."""

    def __init__(self, launches: Sequence[Sequence[str]]) -> None:
        self._launches = launches
        # A scenario of the user's.
        self._file = self._given().get('scenario_file', '') if launches else ''
        self._processes = [_launch(words) for words in launches[:_AT_ONCE]]
        self._next_at_last = time.monotonic() + _PATIENCE
        # When launches that were asked to end are killed [s]; 0: they run.
        self._kill_at = 0.0
        # Exit code when all launches have ended, one of them so, and none was heard; otherwise 0.
        self.failure = 0

    def _arguments(self) -> dict[str, Argument]:
        """Return the arguments of the only launch, given ones as defaults; of several none."""
        if len(self._launches) != 1:
            return {}
        declared = survey(find_launch_file(self._launches[0][0], os.environ), {}, os.environ)
        given = self._given()
        return {n: one._replace(default=given.get(n, one.default)) for n, one in declared.items()}

    def _given(self) -> dict[str, str]:
        """Return the arguments of the first launch that were given."""
        return dict(word.split(':=', 1) for word in self._launches[0][1:])

    def scenarios(self) -> list[str]:
        """Return the scenarios among which the only launch can choose, its own first."""
        argument = self._arguments().get('scenario')
        if argument is None:
            return []
        own = self._file or argument.default or ''
        names = {own}
        # Also of a launch file's path.
        machine = Path(self._launches[0][0]).name.partition('.')[0]
        directory = share_directory('longreach_bringup') / 'config' / 'scenarios'
        for point in metadata.entry_points(group=MACHINE_GROUP, name=machine):
            files = directory.glob(f'{point.load().scenario_prefix or machine + "_"}*.yaml')
            names |= {file.stem.removeprefix(f'{machine}_') for file in files}
        return sorted(names - {''}, key=lambda name: (name != own, name))

    def numbers(self) -> list[Argument]:
        """Return the arguments of the only launch that take the place of a scenario's number."""
        every = self._arguments().values()
        return [one for one in every if one.description.endswith('0.0: of the scenario')]

    def restart(self, arguments: Mapping[str, str]) -> None:
        """End the only launch; :meth:`follow` starts it again, with other arguments."""
        if not self._kill_at:
            self._end()
        name, given = self._launches[0][0], {**self._given(), **arguments}
        # Where a file is given the name of a scenario does not count.
        given.pop('scenario_file', None)
        if self._file and given.get('scenario') == self._file:
            given['scenario_file'] = given.pop('scenario')
        if record := given.get('record'):
            # A recording is never overwritten.
            number = 2
            while Path(f'{record}_{number}').exists():
                number += 1
            given['record'] = f'{record}_{number}'
        self._launches = [[name, *(f'{key}:={v}' for key, v in given.items())]]

    def follow(self, heard: Collection[str] = ()) -> list[str]:
        """Start what is due, knowing which machines are heard; return a line for what ended."""
        if self._kill_at:
            if time.monotonic() > self._kill_at:
                self.close()
            if any(process.poll() is None for process in self._processes):
                return [f'longreach launch {self._launches[0][0]} ends, and starts again then']
            self._processes, self._kill_at = [_launch(self._launches[0])], 0.0
        count = len(self._processes)
        quiet = {words[0] for words in self._launches[:count]}.difference(heard)
        if count < len(self._launches) and (not quiet or time.monotonic() > self._next_at_last):
            self._processes.append(_launch(self._launches[count]))
            self._next_at_last = time.monotonic() + _PATIENCE
        codes = [process.poll() for process in self._processes]
        if len(codes) == len(self._launches) and None not in codes and not heard:
            self.failure = next((max(code, 1) for code in codes if code), 0)
        return [
            f'longreach launch {words[0]} has ended with exit code {code}'
            for words, code in zip(self._launches, codes, strict=False)
            if code is not None
        ]

    def _end(self) -> None:
        """Ask all launches to end."""
        self._kill_at = time.monotonic() + _PATIENCE
        for process in self._processes:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)

    def close(self) -> None:
        """End all launches."""
        if not self._kill_at:
            self._end()
        for process in self._processes:
            try:
                process.wait(max(0.1, self._kill_at - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _launch(words: Sequence[str]) -> subprocess.Popen[bytes]:
    """Start a launch; its messages go to stderr, and Ctrl-C reaches it through the view only."""
    command = [sys.executable, '-c', 'from longreach_tools.cli import console; console()']
    return subprocess.Popen(
        [*command, 'launch', *words], stdout=sys.stderr, start_new_session=True
    )
