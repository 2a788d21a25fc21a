"""Kernels are compiled once: a process that starts later loads them from the cache."""

from __future__ import annotations

import subprocess
import sys

# What numba compiles while all warm-ups run; what is loaded from the cache is no such event.
_COMPILED = """
from numba.core import event
from longreach_tools.warm_up import main
with event.install_recorder('numba:compile') as recorder:
    main()
print(*{e.data['dispatcher'].py_func.__qualname__ for _, e in recorder.buffer})
"""


def test_the_second_start_compiles_nothing() -> None:
    found = ''
    for _ in range(2):
        call = [sys.executable, '-c', _COMPILED]
        found = subprocess.run(call, capture_output=True, text=True, check=True).stdout.strip()
        if not found:
            break
    assert found == ''
