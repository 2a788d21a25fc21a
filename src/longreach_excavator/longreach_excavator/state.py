"""State and command of the excavator."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from longreach_excavator.linkage import CYLINDERS

_NO_FORCE = (None,) * len(CYLINDERS)


class ExcavatorCommand(NamedTuple):
    """Command of the cylinders: for each a spool position, or a force in place of its oil."""

    spools: tuple[float, ...]  # in [-1, 1], positive extends
    forces: tuple[float | None, ...] = _NO_FORCE  # [N], positive extends; None: force of its oil


class ExcavatorState(NamedTuple):
    """State of an excavator; never changed in place."""

    y: np.ndarray  # (SIZE,), longer with terrain, see longreach_excavator.motion
    forces: tuple[float | None, ...] = _NO_FORCE  # last prescribed [N]; None: oil
    swept: bool = False  # the bucket has turned by the scenario's sweep


CLOSED = ExcavatorCommand((0.0,) * len(CYLINDERS))
"""All valves closed."""
