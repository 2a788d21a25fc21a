"""Training figures: how a run of the harvester went, whoever drove it."""

from __future__ import annotations

from typing import Any

import numpy as np

from longreach_harvester.kinematics import tip_at
from longreach_harvester.parameters import JOINTS, HarvesterParameters

TRAINING_UNITS = {
    'training.time': 's',
    'training.moving_time': 's',
    'training.tip_path': 'm',
    'training.head_swing_rms': 'rad',
    'training.head_swing_peak': 'rad',
}


def head_swing(angles: np.ndarray, head: np.ndarray) -> np.ndarray:
    """Return the angle of a hanging head (rows, 2) [rad] from the vertical, (rows,) [rad]."""
    pitch = angles[:, 1] + angles[:, 2] + head[:, 0]
    return np.asarray(np.arccos(np.clip(-np.sin(pitch) * np.cos(head[:, 1]), -1.0, 1.0)))


def reversals(spools: np.ndarray, dead_band: float) -> int:
    """Return how often an open valve (rows,) changes sides; passing its dead band is none."""
    sides = np.sign(spools[np.abs(spools) > dead_band])
    return int(np.count_nonzero(np.diff(sides)))


def training_figures(
    harvester: HarvesterParameters,
    times: np.ndarray,
    angles: np.ndarray,
    spools: np.ndarray,
    head: np.ndarray | None = None,
) -> dict[str, Any]:
    """Return the training figures of a run; ``head`` as in :func:`head_swing`, or None."""
    tip = tip_at(harvester, angles)
    bands = [actuator.valve.dead_band for actuator in harvester.actuators]
    opened = (np.abs(spools[1:]) > bands).any(axis=1)
    swing = np.zeros(len(times)) if head is None else head_swing(angles, head)
    turned = {
        f'reversals_{name}': reversals(spools[:, i], bands[i]) for i, name in enumerate(JOINTS)
    }
    return {
        'time': float(times[-1] - times[0]),
        'moving_time': float(np.diff(times)[opened].sum()),
        'tip_path': float(np.linalg.norm(np.diff(tip, axis=0), axis=1).sum()),
        'head_swing_rms': float(np.sqrt(np.mean(swing**2))),
        'head_swing_peak': float(swing.max()),
        **turned,
    }
