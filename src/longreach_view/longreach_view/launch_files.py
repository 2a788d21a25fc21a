"""Launch files that a view starts and ends."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Collection, Sequence

# Time for the nodes to end in order [s].
_PATIENCE = 10.0
# Two cores start these within 5 s or so; more at once would all be late.
_AT_ONCE = 4


class Started:
    """Running launches by file and arguments: four at once, others when those are heard."""

    def __init__(self, launches: Sequence[Sequence[str]]) -> None:
        self._launches = launches
        self._processes = [_launch(words) for words in launches[:_AT_ONCE]]
        self._next_at_last = time.monotonic() + _PATIENCE
        # Exit code when all launches have ended, one of them so, and none was heard; otherwise 0.
        self.failure = 0

    def follow(self, heard: Collection[str] = ()) -> list[str]:
        """Start what is due, knowing which machines are heard; return a line for what ended."""
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

    def close(self) -> None:
        """End all launches."""
        for process in self._processes:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
        end = time.monotonic() + _PATIENCE
        for process in self._processes:
            try:
                process.wait(max(0.1, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _launch(words: Sequence[str]) -> subprocess.Popen[bytes]:
    """Start a launch; its messages go to stderr, and Ctrl-C reaches it through the view only."""
    command = [sys.executable, '-c', 'from longreach_tools.cli import console; console()']
    return subprocess.Popen(
        [*command, 'launch', *words], stdout=sys.stderr, start_new_session=True
    )
