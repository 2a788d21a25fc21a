"""Let tests import what they share: the second derivation, links, states."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
