"""
Run the tests of the tree, for two cores; called by ``make test`` and ``make test-all``.

    run_tests.py [--all] [--again] [ARGUMENT OF PYTEST ...]

Without ``--all``, tests that are marked as slow are left out. With ``--again``, those that fail
run once more, one at a time: tests with nodes may fail while another process takes the cores.
Paths among the arguments replace the default ``src test``. The exit code is pytest's, or 1 when a
module is missing. The tests of a file run on one core, so that nodes shared by the tests of a
module are started once only. The slowest 20 are listed at the end.
"""

from __future__ import annotations

import importlib.util
import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Module -> requirement.
NEEDED = {'pytest': 'pytest', 'xdist': 'pytest-xdist', 'pytest_timeout': 'pytest-timeout'}
# One worker more than the two cores of CI: tests with nodes wait most of their time. `-n N` among
# the arguments replaces it.
PARALLEL = ['-n', '3', '--dist', 'loadfile', '--durations=20', '--durations-min=1.0']
# An installed ROS adds these plugins to every pytest on the machine. Longreach does not use them,
# and with recent versions of pytest they cause an internal error.
PLUGINS = []
for _plugin in ('launch_pytest', 'launch_ros', 'launch_testing'):
    PLUGINS += ['-p', f'no:{_plugin}']


def main(arguments: list[str]) -> int:
    """Run pytest and return its exit code."""
    missing = [pip for module, pip in NEEDED.items() if importlib.util.find_spec(module) is None]
    if missing:
        print(
            f'tests: not found: {", ".join(missing)}; install with: pip install'
            f' {" ".join(missing)}',
            file=sys.stderr,
        )
        return 1
    words = [word for word in arguments if not word.startswith('-')]
    has_paths = any((ROOT / word.split('::')[0]).exists() for word in words)
    paths = [] if has_paths else ['src', 'test']
    everything = '--all' in arguments
    again = '--again' in arguments
    arguments = [word for word in arguments if word not in ('--all', '--again')]
    # A later -m among the arguments replaces this one.
    quick = [] if everything else ['-m', 'not slow']
    pytest = [sys.executable, '-m', 'pytest', *PLUGINS]
    chosen = [*quick, *paths, *arguments]
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        # Ctrl-C ends pytest, which says so; this script waits for it.
        signal.signal(signal.SIGINT, lambda *_: None)
    code = subprocess.call([*pytest, *PARALLEL, *chosen], cwd=ROOT)
    if code == 1 and again:
        print('tests: those that failed, once more, one at a time:', flush=True)
        only = ['--last-failed', '--last-failed-no-failures', 'none']
        code = subprocess.call([*pytest, *only, '-rfEp', *chosen], cwd=ROOT)
    return code


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
