"""Measurements of digging: rod forces or strains, angles or lengths, over time or at the end."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import numpy as np

from longreach_dynamics.errors import InputError
from longreach_dynamics.tables import Table, read_table
from longreach_excavator.linkage import CYLINDERS

STEEL = 2.1e11  # modulus of elasticity [Pa]

_RODS = ('lk', 'pk')
# Measured quantities: unit, and the noise that is assumed where none is given or estimated.
_KINDS = {
    'force': ('N', 2e3),
    'theta': ('rad', math.radians(0.5)),
    'length': ('m', 5e-3),
}
# Larger values mean wrong units.
_LARGEST = {'force': 1e8, 'theta': 2.0 * math.pi, 'length': 100.0}
MEASURED = (
    *(f'force_{rod}' for rod in _RODS),
    *(f'theta_{k}' for k in (2, 3, 4)),
    *(f'length_{name}' for name in CYLINDERS),
)
# Larger strains are not elastic; the column is probably in microstrain.
_LARGEST_STRAIN = 0.01


@dataclasses.dataclass(frozen=True)
class Measurements:
    """Measurements of digging; InputError for what cannot have been measured."""

    columns: tuple[str, ...]  # each one of MEASURED
    values: np.ndarray  # (rows, columns): tensions [N], joint angles [rad], lengths [m]
    # (rows,) from the start of the scenario [s], increasing; None: a single row at its end.
    times: np.ndarray | None = None
    name: str = 'data'  # in error messages

    def __post_init__(self) -> None:
        """Check names, shapes, numbers and times."""
        for name in self.columns:
            if name not in MEASURED or self.columns.count(name) > 1:
                raise InputError(
                    f'{self.name} has the column {name!r}, allowed, each once:'
                    f' {", ".join(MEASURED)}'
                )
        rows = 1 if self.times is None else len(self.times)
        if not self.columns or self.values.shape != (rows, len(self.columns)) or not rows:
            raise InputError(
                f'{self.name} has values of shape {self.values.shape}, allowed: {rows or 1} rows'
                f' of {len(self.columns) or "one or more"} columns; without times one row, the'
                ' end'
            )
        if not np.isfinite(self.values).all():
            raise InputError(f'{self.name} has values that are not finite, allowed: finite ones')
        for name, values in zip(self.columns, self.values.T, strict=True):
            largest, most = float(np.abs(values).max()), _LARGEST[name.partition('_')[0]]
            if largest > most:
                raise InputError(
                    f'{self.name}: {name} goes to {largest:g} {kind_of(name)[0]}, allowed: up to'
                    f' {most:g}; look at its unit'
                )
        if self.times is None:
            return
        if not np.isfinite(self.times).all() or self.times[0] < 0.0:
            raise InputError(
                f'{self.name}: time begins at {self.times[0]:g} s, allowed: finite times from 0'
                ' on, when the bucket begins to dig'
            )
        check_rising(self.name, self.times)


def check_rising(name: str, times: np.ndarray) -> None:
    """Raise InputError for times that do not rise."""
    wrong = np.flatnonzero(np.diff(times) <= 0.0)
    if wrong.size:
        k = int(wrong[0]) + 1
        raise InputError(
            f'{name}: time in row {k + 1} = {times[k]:g} s, allowed: above {times[k - 1]:g} s of'
            ' the row before; sort the rows'
        )


def read_measurements(
    file: str | Path, rod_area: float | None = None, youngs_modulus: float = STEEL
) -> Measurements:
    """
    Read measurements of digging from a CSV file.

    Parameters
    ----------
    file : path
        Any of force_lk, force_pk, tensions of lever and rod [N]; strain_lk, strain_pk, from which
        they follow; theta_2 to theta_4 [rad], or with _deg; length_boom, length_arm, length_bucket
        [m] for joints without an angle. With time [s], or one row for the end of the digging.
        Other columns are ignored, so that a file of ``dig --csv`` can be read.
    rod_area : float, optional
        Cross-section of the lever or rod with the gauge [m^2]; for two side by side, the sum of
        both, whose strains are assumed to be equal.
    youngs_modulus : float
        E of F = A E eps, Ozunlu 2009, (5.6) [Pa].

    Raises
    ------
    InputError
        When no column can be fitted, or a strain cannot be converted to a force.
    """
    return measurements_from(read_table(file, None), rod_area, youngs_modulus)


def measurements_from(
    table: Table, rod_area: float | None = None, youngs_modulus: float = STEEL
) -> Measurements:
    """Return the measurements in a table, see :func:`read_measurements`."""
    found: dict[str, np.ndarray] = {}
    for rod in _RODS:
        force, strain = f'force_{rod}', f'strain_{rod}'
        _check_single(table, force, strain)
        if strain in table:
            found[force] = _force_of(table, strain, rod_area, youngs_modulus)
        elif force in table:
            found[force] = table[force]
    for angle, cylinder in zip(('theta_2', 'theta_3', 'theta_4'), CYLINDERS, strict=True):
        degrees, length = f'{angle}_deg', f'length_{cylinder}'
        _check_single(table, angle, degrees)
        if angle in table:
            found[angle] = table[angle]
        elif degrees in table:
            found[angle] = np.radians(table[degrees])
        elif length in table:
            found[length] = table[length]
    if not found:
        raise InputError(
            f'{table.file}: found the columns {", ".join(table)}; allowed: time with any of'
            f' {", ".join(MEASURED)}, strain_lk, strain_pk'
        )
    times = table.get('time')
    rows = len(next(iter(found.values())))
    if times is None and rows > 1:
        raise InputError(
            f'{table.file} has {rows} rows and no column time, allowed: one row, the end of the'
            ' digging, or a time for each'
        )
    columns = tuple(name for name in MEASURED if name in found)
    values = np.stack([found[name] for name in columns], axis=1)
    return Measurements(columns, values, times, str(table.file))


def _check_single(table: Table, one: str, other: str) -> None:
    """Raise InputError for two columns of the same quantity."""
    if one in table and other in table:
        raise InputError(f'{table.file} has columns {one} and {other}, allowed: one of them')


def _force_of(
    table: Table, name: str, rod_area: float | None, youngs_modulus: float
) -> np.ndarray:
    """Return the tension [N] of a measured strain, (5.6)."""
    if rod_area is None:
        raise InputError(
            f'{table.file} has the column {name}, but rod_area is missing: the cross-section with'
            ' the gauge [m^2]'
        )
    for what, value in (('rod_area', rod_area), ('youngs_modulus', youngs_modulus)):
        if not 0.0 < value < math.inf:
            raise InputError(f'{what} = {value}, allowed: (0, inf)')
    largest = float(np.abs(table[name]).max())
    if largest > _LARGEST_STRAIN:
        raise InputError(
            f'{table.file}: {name} goes to {largest:g}, allowed: up to {_LARGEST_STRAIN:g};'
            ' microstrain are to be divided by a million'
        )
    return rod_area * youngs_modulus * table[name]


def kind_of(name: str) -> tuple[str, float]:
    """Return unit and usual noise of a column."""
    return _KINDS[name.partition('_')[0]]
