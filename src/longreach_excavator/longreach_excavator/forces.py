"""
Prescribed forces of the cylinders over time: the thesis' trend lines, or measurements.

Everywhere in Longreach a positive force extends its cylinder. The thesis counts the boom's and the
bucket's as positive in tension, (5.3) and (5.5), the arm's as positive in compression, (5.4); here
the signs of the trend lines (5.8) to (5.10) are changed accordingly.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from longreach_dynamics.errors import InputError
from longreach_dynamics.hydraulics.parameters import check_pressed
from longreach_dynamics.tables import Table, read_table
from longreach_excavator.linkage import CYLINDERS
from longreach_excavator.parameters import ExcavatorParameters

FORCE_COLUMNS = tuple(f'force_{name}' for name in CYLINDERS)
PRESSURE_COLUMNS = tuple(f'{side}_{name}' for side in ('p_head', 'p_rod') for name in CYLINDERS)

# Highest power of the time first, [N] and [s]; fitted to measurements of about six seconds.
_TREND_LINES = np.array(
    [
        [432.22, -8025.2, 55726.0, -174147.0, 203089.0, -82794.0, 304693.0],
        [55.87, -740.01, 990.47, 21511.0, -124023.0, 261122.0, 143365.0],
        [-33.321, 695.16, -5343.7, 20582.0, -45741.0, 51376.0, -305709.0],
    ]
)
_EXTENDS = np.array([-1.0, 1.0, -1.0])
# Beyond, the polynomials exceed the force of any cylinder [s].
_TREND_END = 7.0
MEASURED_TIME = 6.0
"""Length of the test to which the trend lines were fitted [s]."""
STRONGEST = 1e7
"""Largest force of a cylinder [N]; larger ones mean wrong units."""
# Measured forces below this share of what the weakest cylinder can are in kN: no rod bears 2.5
# times as much.
_THOUSANDTHS = 2.5e-3


@dataclasses.dataclass(frozen=True)
class GivenForces:
    """Forces of the cylinders over time."""

    at: Callable[[np.ndarray], np.ndarray]  # times (rows,) [s] to forces (rows, 3) [N]
    end: float  # time of the last known force [s]


def printed_forces() -> GivenForces:
    """Return the trend lines (5.8) to (5.10) of the measured forces, from 0 to 7 s."""

    def at(times: np.ndarray) -> np.ndarray:
        within = np.clip(np.asarray(times, dtype=float), 0.0, _TREND_END)
        values = [np.polyval(line, within) for line in _TREND_LINES]
        return np.asarray(np.stack(values, axis=-1) * _EXTENDS)

    return GivenForces(at, _TREND_END)


class Agreement(NamedTuple):
    """Agreement of the forces of one cylinder over time with measured ones."""

    rms: float  # of the difference, as a share of the RMS of the measured force
    opposite: float  # time for which the signs differ [s]
    correlation: float
    ratio: float  # of the computed to the measured force half way


def agreement(times: np.ndarray, computed: np.ndarray, measured: np.ndarray) -> Agreement:
    """Return how forces agree with measured ones, both (rows,) [N] at equal intervals [s]."""
    middle = len(times) // 2
    span = float(times[-1] - times[0])
    return Agreement(
        float(np.sqrt(np.mean((computed - measured) ** 2) / np.mean(measured**2))),
        float(np.mean(computed * measured < 0.0)) * span,
        float(np.corrcoef(computed, measured)[0, 1]),
        float(computed[middle] / measured[middle]),
    )


def read_forces(file: str | Path, excavator: ExcavatorParameters) -> GivenForces:
    """Return the forces in a file, linear between rows, or by (5.1) to (5.5) of its pressures."""
    table = read_table(file)
    times, forces = table['time'], _forces(table, excavator)
    check_forces(f'{file}', forces)
    if times[0] > 0.0:
        raise InputError(f'{file}: time begins at {times[0]:g} s, allowed: 0 or before')

    def at(when: np.ndarray) -> np.ndarray:
        return np.stack([np.interp(when, times, column) for column in forces.T], axis=-1)

    return GivenForces(at, float(times[-1]))


def check_forces(
    what: str, forces: np.ndarray, measured_on: ExcavatorParameters | None = None
) -> None:
    """Raise InputError for forces in another unit than N; no force at all is allowed."""
    least, largest = 0.0, float(np.abs(forces).max())
    if measured_on is not None:
        area = min(c.head_area for c in measured_on.cylinders)
        least = _THOUSANDTHS * measured_on.oil.supply_pressure * area
    if largest > 0.0 and not least <= largest <= STRONGEST:
        raise InputError(
            f'{what}: a force of {largest:g} N is the largest, allowed: {least:.3g} to'
            f' {STRONGEST:g} N; look at its unit'
        )


def _forces(table: Table, excavator: ExcavatorParameters) -> np.ndarray:
    """Return the forces of a table (rows, 3) [N]."""
    if table.has(FORCE_COLUMNS):
        return table.stack(FORCE_COLUMNS)
    if not table.has(PRESSURE_COLUMNS):
        raise InputError(
            f'{table.file}: found the columns {", ".join(table)}; allowed: time with'
            f' {", ".join(FORCE_COLUMNS)} [N], or with {", ".join(PRESSURE_COLUMNS)} [Pa]'
        )
    pressures = table.stack(PRESSURE_COLUMNS)
    lowest, highest = float(pressures.min()), float(pressures.max())
    if lowest < 0.0:
        raise InputError(
            f'{table.file}: a pressure of {lowest:g} Pa, allowed: from 0 on, as pressures'
            ' are absolute'
        )
    check_pressed(f'{table.file}', highest)
    heads = np.array([c.head_area for c in excavator.cylinders])
    rods = np.array([c.rod_area for c in excavator.cylinders])
    return np.asarray(pressures[:, :3] * heads - pressures[:, 3:] * rods)
