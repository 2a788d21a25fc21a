"""Launch files that a view starts, restarts and ends."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from longreach_dynamics.errors import InputError
from longreach_dynamics.parameters import load_yaml
from longreach_dynamics.resources import share_directory
from longreach_tools.launch import Argument, find_launch_file, survey

NUMBERS = ('cohesion',)
"""Arguments of launch files, numbers, that a restart can change."""

# Time for the nodes to end in order [s].
_PATIENCE = 10.0
_SCENARIO = 'scenario:='
# Two cores start these within 5 s or so; more at once would all be late.
_AT_ONCE = 4
# Scenarios of the crane are named as in ARGESIM C13R.
_PREFIXES = {'crane': ('task_', '')}


class Started:
    """Running launches by file and arguments: four at once, others when those are heard."""

    def __init__(self, launches: Sequence[Sequence[str]]) -> None:
        self._launches = [list(words) for words in launches]
        self._processes = [_launch(words) for words in self._launches[:_AT_ONCE]]
        self._next_at_last = time.monotonic() + _PATIENCE
        # Until when the old launch may take to end; infinite: nothing is restarted.
        self._restarts_until = math.inf

    def scenarios(self) -> tuple[str, ...]:
        """Return the scenarios among which the only launch can choose, its own first."""
        if len(self._launches) != 1:
            return ()
        files = _scenario_files(self._launches[0][0])
        own = [name for name in files if name == self._scenario(self._launches[0])]
        return tuple(dict.fromkeys([*own, *files]))

    def durations(self) -> dict[str, float]:
        """Return how long scenarios last [s], by the names of their launch files."""
        found = {}
        for words in self._launches:
            file = _scenario_files(words[0]).get(self._scenario(words))
            if file is None:
                continue
            values = load_yaml(file)
            # One that has a base may leave it to that.
            if 'duration' not in values:
                values = load_yaml(file.parent / values['base'])
            found[words[0]] = float(values['duration'])
        return found

    def _scenario(self, words: Sequence[str]) -> str:
        """Return the name of a launch's scenario, empty without one."""
        given = [word.removeprefix(_SCENARIO) for word in words if word.startswith(_SCENARIO)]
        if not given and (declared := _declared(words[0]).get('scenario')) is not None:
            given = [declared.default or '']
        return given[-1] if given else ''

    def numbers(self) -> dict[str, float]:
        """Return the arguments of the only launch that a restart can change, and their values."""
        if len(self._launches) != 1:
            return {}
        given = dict(word.split(':=', 1) for word in self._launches[0][1:])
        declared = _declared(self._launches[0][0])
        return {
            name: float(given.get(name, declared[name].default or '0'))
            for name in NUMBERS
            if name in declared
        }

    def restart(self, arguments: Mapping[str, str]) -> None:
        """End the only launch; :meth:`follow` starts it again with other arguments."""
        if len(self._launches) != 1:
            return
        kept = dict(word.partition(':=')[::2] for word in self._launches[0][1:])
        record, number = kept.get('record'), 2
        if record:
            # A recording is never overwritten.
            while Path(f'{record}_{number}').exists():
                number += 1
            kept['record'] = f'{record}_{number}'
        words = [f'{name}:={value}' for name, value in {**kept, **arguments}.items()]
        self._launches = [[self._launches[0][0], *words]]
        self._interrupt()
        self._restarts_until = time.monotonic() + _PATIENCE

    def follow(self, heard: Collection[str] = ()) -> list[str]:
        """Start what is due, or to be restarted; return a line for each launch that ended."""
        lines, count = [], len(self._processes)
        quiet = {words[0] for words in self._launches[:count]}.difference(heard)
        if count < len(self._launches) and (not quiet or time.monotonic() > self._next_at_last):
            self._processes.append(_launch(self._launches[count]))
            self._next_at_last = time.monotonic() + _PATIENCE
        for words, process in zip(self._launches, self._processes, strict=False):
            code = process.poll()
            if code is None:
                if time.monotonic() > self._restarts_until:
                    process.kill()
            elif math.isfinite(self._restarts_until):
                self._processes, self._restarts_until = [_launch(words)], math.inf
            else:
                lines.append(f'longreach launch {words[0]} has ended with exit code {code}')
        return lines

    def _interrupt(self) -> None:
        """Tell all launches to end."""
        for process in self._processes:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)

    def close(self) -> None:
        """End all launches."""
        self._interrupt()
        end = time.monotonic() + _PATIENCE
        for process in self._processes:
            try:
                process.wait(max(0.1, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _declared(name: str) -> dict[str, Argument]:
    """Return the arguments that a launch file declares."""
    return survey(find_launch_file(name, os.environ), {}, os.environ)


def _scenario_files(machine: str) -> dict[str, Path]:
    """Return the installed scenarios of a machine by name."""
    prefix, short = _PREFIXES.get(machine, (f'{machine}_', f'{machine}_'))
    try:
        directory = share_directory('longreach_bringup') / 'config' / 'scenarios'
    except InputError:
        return {}
    files = sorted(directory.glob(f'{prefix}*.yaml'))
    return {file.stem.removeprefix(short): file for file in files}


def _launch(words: Sequence[str]) -> subprocess.Popen[bytes]:
    """Start a launch; its messages go to stderr, and Ctrl-C reaches it through the view only."""
    command = [sys.executable, '-c', 'from longreach_tools.cli import console; console()']
    return subprocess.Popen(
        [*command, 'launch', *words], stdout=sys.stderr, start_new_session=True
    )
