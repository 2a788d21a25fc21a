"""Let tests import what they share, also with the tests of longreach_markers."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / 'longreach_markers/test')]
