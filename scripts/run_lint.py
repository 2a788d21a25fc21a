"""
Run all static checks; called by ``make lint``.

ruff (rules and format), mypy on the libraries and the scripts (strict, see pyproject.toml), and
the import directions of import_contracts.py. All of them run, even when an earlier one fails. Exit
code: 0 if all passed, otherwise 1.
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

from workspace import PIP_ONLY_TESTS

ROOT = Path(__file__).resolve().parent.parent
# The messages are generated, and bringup has no Python code.
LIBRARIES = sorted(
    str(path.relative_to(ROOT))
    for path in ROOT.glob('src/longreach_*/longreach_*')
    if (path / 'py.typed').exists()
)


class Check(NamedTuple):
    """A command, and the module that provides it."""

    name: str
    module: str
    command: list[str]


CHECKS = (
    Check('ruff check', 'ruff', ['ruff', 'check', '.']),
    Check('ruff format', 'ruff', ['ruff', 'format', '--check', '.']),
    Check('mypy', 'mypy', ['mypy', *LIBRARIES, 'scripts']),
    Check('import directions', 'importlinter', ['python3', 'scripts/import_contracts.py']),
)


def main() -> int:
    """Run all checks, print their results, return the exit code."""
    failed = []
    for check in CHECKS:
        started = time.monotonic()
        print(f'--- {check.name}', flush=True)
        if not passes(check):
            failed.append(check.name)
        print(f'    {time.monotonic() - started:.1f} s', flush=True)
    print(f'lint: failed: {", ".join(failed)}' if failed else f'lint: {len(CHECKS)} checks passed')
    return 1 if failed else 0


def passes(check: Check) -> bool:
    """Run one check in the root of the tree."""
    if importlib.util.find_spec(check.module) is None or shutil.which(check.command[0]) is None:
        requirement = PIP_ONLY_TESTS[check.module]
        print(f'{check.name}: not found; install it with: pip install {requirement}')
        return False
    return subprocess.call(check.command, cwd=ROOT) == 0


if __name__ == '__main__':
    sys.exit(main())
