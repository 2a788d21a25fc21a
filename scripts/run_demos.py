"""
Run the demonstrations of all machines; called by ``make demo``.

For each machine, an entry point of the group ``longreach.machines``, that has a demonstration,
``longreach NAME demo`` is run. The first failure ends the script, with the command's exit code.
"""

from __future__ import annotations

import subprocess
import sys
from importlib import metadata


def main(arguments: list[str]) -> int:
    """Run ``longreach NAME demo`` with the arguments for each machine and return the exit code."""
    machines = metadata.entry_points(group='longreach.machines')
    for name in sorted({point.name for point in machines if point.load().demo}):
        try:
            code = subprocess.call(['longreach', name, 'demo', *arguments])
        except KeyboardInterrupt:
            code = 130
        if code:
            return code
    print(
        '\nTo look at the machines in a browser:\n  . install/setup.bash\n  longreach view --demo'
    )
    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
