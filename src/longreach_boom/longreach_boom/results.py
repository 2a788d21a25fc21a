"""Runs of a boom as tables: what is to be seen in each row, and in all of them together."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from longreach_boom.kinematics import point_motion
from longreach_boom.model import constants_of
from longreach_boom.parameters import BoomParameters
from longreach_boom.state import StateParts, hydraulic_forces, piston_positions, strains
from longreach_dynamics.errors import InputError

__all__ = ['Result', 'columns_of', 'series']


def columns_of(boom: BoomParameters) -> tuple[str, ...]:
    """Return the names of the columns of :func:`series`."""
    names = ('phi', 'piston', 'force', 'strain', 'p_head', 'p_rod', 'spool', 'mode')
    numbered = [f'{name}_{i + 1}' for name in names for i in range(boom.size)]
    return ('time', 'tip_x', 'tip_z', *numbered)


def series(
    boom: BoomParameters, times: np.ndarray, states: np.ndarray, modes: np.ndarray
) -> np.ndarray:
    """
    Return a table of what is to be seen of a run.

    Parameters
    ----------
    boom : BoomParameters
    times : ndarray, shape (rows,)
    states : ndarray, shape (rows, 2 n + 3 N)
    modes : ndarray, shape (rows, N)

    Returns
    -------
    ndarray, shape (rows, 3 + 8 N)
        Columns as in :func:`columns_of`: [s], [m], [rad], [m], p_1 A_1 - p_2 A_2 [N], strain,
        [Pa], spool positions, modes as in :mod:`longreach_boom.motion`.
    """
    constants = constants_of(boom)
    parts = StateParts.of(states, boom)
    last = boom.size - 1
    tip = point_motion(boom, parts.q, parts.v, last, boom.beams[last].length).position
    angles = parts.q[:, : boom.size]
    return np.concatenate(
        [
            times[:, None],
            tip,
            angles,
            piston_positions(angles, constants),
            hydraulic_forces(parts, constants),
            strains(parts, boom),
            parts.head_pressures,
            parts.rod_pressures,
            parts.spools,
            modes,
        ],
        axis=1,
    )


@dataclasses.dataclass(frozen=True)
class Result:
    """
    A run.

    Parameters
    ----------
    boom : BoomParameters
    table : ndarray, shape (rows, 3 + 8 N)
        See :func:`series`.
    states : ndarray, shape (rows, 2 n + 3 N)
    cavitated : tuple of str
        Names of cylinders a chamber of which ran out of oil for some time.
    reference : ndarray, shape (rows, N), optional
        Joint angles of the trajectory that was followed [rad].
    """

    boom: BoomParameters
    table: np.ndarray
    states: np.ndarray
    cavitated: tuple[str, ...]
    reference: np.ndarray | None = None

    def column(self, name: str) -> np.ndarray:
        """Return one column by its name, shape (rows,); InputError for a name that is none."""
        names = columns_of(self.boom)
        if name not in names:
            raise InputError(f'column = {name!r}, allowed: {", ".join(names)}')
        return self.table[:, names.index(name)]

    def summary(self) -> dict[str, Any]:
        """Return the tip's travel, piston motion and pressures as plain numbers."""
        x, z = self.column('tip_x'), self.column('tip_z')
        N = range(1, self.boom.size + 1)
        pistons = [float(np.ptp(self.column(f'piston_{i}'))) for i in N]
        return {
            'duration': float(self.column('time')[-1]),
            'tip_start': [float(x[0]), float(z[0])],
            'tip_end': [float(x[-1]), float(z[-1])],
            'tip_highest': float(z.max()),
            'tip_lowest': float(z.min()),
            'piston_travel': pistons,
            'highest_pressure': float(
                max(self.column(f'{side}_{i}').max() for side in ('p_head', 'p_rod') for i in N)
            ),
            'lowest_pressure': float(
                min(self.column(f'{side}_{i}').min() for side in ('p_head', 'p_rod') for i in N)
            ),
            'cavitated': list(self.cavitated),
            'joint_error': self.joint_error(),
        }

    def joint_error(self) -> list[float]:
        """Return the largest distance of each joint from the trajectory [rad]; empty without."""
        if self.reference is None:
            return []
        angles = np.stack([self.column(f'phi_{i + 1}') for i in range(self.boom.size)], axis=1)
        return [float(error) for error in np.abs(angles - self.reference).max(axis=0)]
