"""
Run the demonstrations of all machines; what ``make demo`` calls.

A machine takes part by an entry point of the group ``longreach.demos``, whose name is its command:
``longreach NAME demo`` is called. Ends with the first that fails, with its exit code.
"""

from __future__ import annotations

import subprocess
import sys
from importlib import metadata


def main(arguments: list[str]) -> int:
    """Run ``longreach NAME demo`` with the arguments for each machine and return the exit code."""
    for name in sorted({point.name for point in metadata.entry_points(group='longreach.demos')}):
        code = subprocess.call(['longreach', name, 'demo', *arguments])
        if code:
            return code
    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
