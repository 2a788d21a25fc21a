#!/usr/bin/env python3
"""
Run a node for several minutes and report its memory and processor time.

    python3 scripts/soak.py --seconds 600 ros2 run longreach_boom plant
    python3 scripts/soak.py --seconds 600 install/longreach_boom/lib/longreach_boom/plant

The first quarter is excluded because of caches and compilation. Exit code 1 when the memory then
grows by more than half a megabyte per minute; rclpy's spin_until_future_complete leaks 5.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

ALLOWED = 0.5  # [MB/min]
PERIOD = 1.0  # [s]


def usage(process: int) -> tuple[float, float]:
    """Return resident memory [MB] and processor time [s] of a process and its children."""
    pages = int(Path(f'/proc/{process}/statm').read_text().split()[1])
    fields = Path(f'/proc/{process}/stat').read_text().rpartition(')')[2].split()
    ticks = sum(int(field) for field in fields[11:15])
    return pages * os.sysconf('SC_PAGE_SIZE') / 1e6, ticks / os.sysconf('SC_CLK_TCK')


def main() -> int:
    """Run the command and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.split('\n\n', maxsplit=1)[0])
    parser.add_argument('--seconds', type=float, default=600.0, help='duration [s]')
    parser.add_argument('command', nargs=argparse.REMAINDER, help='the node and its arguments')
    options = parser.parse_args()
    if not options.command:
        parser.error('no command; name a node, such as: ros2 run longreach_boom plant')
    process = subprocess.Popen(options.command)
    begun, first = time.monotonic(), None
    try:
        while (elapsed := time.monotonic() - begun) < options.seconds:
            time.sleep(PERIOD)
            if process.poll() is not None:
                print(f'the node ended after {elapsed:.0f} s with {process.returncode}')
                return 1
            if first is None and elapsed > 0.25 * options.seconds:
                first = (elapsed, *usage(process.pid))
        memory, spent = usage(process.pid)
    finally:
        process.terminate()
        process.wait()
    since, memory_then, spent_then = first or (0.0, memory, spent)
    minutes = (options.seconds - since) / 60.0
    growth = (memory - memory_then) / minutes
    share = (spent - spent_then) / (60.0 * minutes)
    print(f'{memory:.1f} MB, growth {growth:.2f} MB/min, {100.0 * share:.0f} % of a core')
    return int(growth > ALLOWED)


if __name__ == '__main__':
    sys.exit(main())
