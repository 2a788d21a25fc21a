"""State and command of the excavator."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from longreach_excavator.linkage import CYLINDERS

__all__ = ['CLOSED', 'ExcavatorCommand', 'ExcavatorState']


_NO_FORCE = (None,) * len(CYLINDERS)


class ExcavatorCommand(NamedTuple):
    """What the cylinders are told: each a spool position, or a force in place of oil."""

    spools: tuple[float, ...]  # in [-1, 1], positive runs the piston out
    forces: tuple[float | None, ...] = _NO_FORCE  # [N], positive runs it out; None: its oil


class ExcavatorState(NamedTuple):
    """State of an excavator. Never changed in place."""

    y: np.ndarray  # (SIZE,), with terrain more, see longreach_excavator.motion
    forces: tuple[float | None, ...] = _NO_FORCE  # given last [N]; None for cylinders with oil
    swept: bool = False  # the bucket has turned by the scenario's sweep


CLOSED = ExcavatorCommand((0.0,) * len(CYLINDERS))
"""All valves closed."""
