"""Let tests import what they share: the independent renderer and the evaluation of detectors."""

from __future__ import annotations

import fcntl
import sys
import tempfile
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))


@pytest.fixture(scope='session')
def compiled_renderer() -> None:
    """Compile the independent renderer once: other workers wait, and load what numba has kept."""
    from evaluation import KINDS, scenes
    from independent_renderer import render

    with (Path(tempfile.gettempdir()) / 'longreach-test-renderer').open('w') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for kind in KINDS:
            render(scenes(kind, 1)[0].scene)
