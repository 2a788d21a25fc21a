"""Let tests import what they share: the independent renderer and the evaluation of detectors."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
