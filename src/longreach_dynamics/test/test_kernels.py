"""
The cache of compiled functions, each step in a Python of its own as between two runs.
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

RUN = """
from machine.outer import compute, numbers
value = compute(2.0, numbers(3.0))
hits = sum(compute.stats.cache_hits.values())
misses = sum(compute.stats.cache_misses.values())
compute(5.0, numbers(7.0))
print(value, hits, misses, len(compute.signatures))
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A package whose kernel calls a function of another module, and a place for its cache."""
    directory = tmp_path / 'machine'
    directory.mkdir()
    (directory / '__init__.py').write_text('')
    (directory / 'inner.py').write_text(
        textwrap.dedent("""
        from numba import njit

        @njit
        def inner(x, p):
            return p.factor * x + 1.0
        """)
    )
    (directory / 'outer.py').write_text(
        textwrap.dedent("""
        from typing import NamedTuple

        from longreach_dynamics.kernels import kernel
        from machine.inner import inner

        class numbers(NamedTuple):
            factor: float

        @kernel
        def compute(x, p):
            return inner(x, p)
        """)
    )
    return directory


def run(package: Path) -> tuple[float, int, int, int]:
    """Return value, cache hits, cache misses and number of signatures of one fresh Python."""
    environment = os.environ | {'NUMBA_CACHE_DIR': str(package.parent / 'cache')}
    environment['PYTHONPATH'] = os.pathsep.join(
        [str(package.parent), *filter(None, [os.environ.get('PYTHONPATH')])]
    )
    done = subprocess.run(
        [sys.executable, '-c', RUN],
        env=environment,
        cwd=package.parent,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    value, hits, misses, signatures = done.stdout.split()
    return float(value), int(hits), int(misses), int(signatures)


def test_cache_is_used_until_a_called_module_changes(package: Path) -> None:
    assert run(package) == (7.0, 0, 1, 1)
    assert run(package) == (7.0, 1, 0, 1)
    # The file of the kernel itself stays as it is; the callee keeps even its length.
    inner = package / 'inner.py'
    inner.write_text(inner.read_text().replace('+ 1.0', '+ 2.0'))
    assert run(package) == (8.0, 0, 1, 1)
    assert run(package) == (8.0, 1, 0, 1)


def test_a_new_module_in_the_package_is_a_change(package: Path) -> None:
    run(package)
    (package / 'another.py').write_text('')
    value, hits, misses, _ = run(package)
    assert (value, hits, misses) == (7.0, 0, 1)
