"""Measurements of digging: rod forces or strains, angles or lengths, over time or at the end."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import numpy as np

from longreach_dynamics.errors import InputError, check_within
from longreach_dynamics.tables import Table, read_table
from longreach_excavator.columns import COLUMNS
from longreach_excavator.forces import check_forces
from longreach_excavator.linkage import CYLINDERS
from longreach_excavator.parameters import ExcavatorParameters

STEEL = 2.1e11  # modulus of elasticity [Pa]


# Noise of a single row by its unit.
_NOISE = {'N': 2e3, 'rad': math.radians(0.5), 'm': 5e-3}
# By which errors of sensors let values be beyond the strokes [rad or m]: other units exceed it.
_BEYOND = 0.1
# Of rods; larger ones are in another unit.
_LARGEST_STRAIN = 0.01
_RODS, _ANGLES = ('lk', 'pk'), ('theta_2', 'theta_3', 'theta_4')
MEASURED = (
    *(f'force_{rod}' for rod in _RODS),
    *_ANGLES,
    *(f'length_{name}' for name in CYLINDERS),
)


@dataclasses.dataclass(frozen=True)
class Measurements:
    """Measurements of digging; InputError for what cannot have been measured."""

    columns: tuple[str, ...]  # each one of MEASURED
    values: np.ndarray  # (rows, columns): tensions [N], joint angles [rad], lengths [m]
    # (rows,) from the start of the scenario [s], increasing; None: a single row at its end.
    times: np.ndarray | None = None
    name: str = 'data'  # in error messages

    def __post_init__(self) -> None:
        """Check numbers and times."""
        if not np.isfinite(self.values).all():
            raise InputError(f'{self.name} has values that are not finite, allowed: finite ones')
        if self.times is None:
            return
        if not np.isfinite(self.times).all() or self.times[0] < 0.0:
            raise InputError(
                f'{self.name}: time begins at {self.times[0]:g} s, allowed: finite times from 0'
                ' on, when the bucket begins to dig'
            )
        check_rising(self.name, self.times)

    def check_with(self, excavator: ExcavatorParameters) -> None:
        """Raise InputError for values that this machine does not reach: of another unit."""
        ends = dict(zip(_ANGLES, excavator.joint_limits().tolist(), strict=True))
        ends |= {f'length_{c.name}': [c.retracted, c.extended] for c in excavator.cylinders}
        for name, values in zip(self.columns, self.values.T, strict=True):
            if name not in ends:
                check_forces(f'{self.name}: {name}', values, excavator)
                continue
            (first, last), low, high = ends[name], float(values.min()), float(values.max())
            if low < first - _BEYOND or high > last + _BEYOND:
                unit = COLUMNS.unit(name)
                raise InputError(
                    f'{self.name}: {name} goes from {low:g} to {high:g} {unit}, allowed by the'
                    f' strokes: {first:.4g} to {last:.4g} {unit}; look at its unit'
                )


def check_rising(name: str, times: np.ndarray) -> None:
    """Raise InputError for times that do not rise."""
    wrong = np.flatnonzero(np.diff(times) <= 0.0)
    if wrong.size:
        k = int(wrong[0]) + 1
        raise InputError(
            f'{name}: time in row {k + 1} = {times[k]:g} s, allowed: above {times[k - 1]:g} s of'
            ' the row before; sort the rows'
        )


def in_radians(table: Table, names: tuple[str, ...]) -> Table:
    """Return a table in which columns NAME_deg are NAME in radians; InputError for both."""
    for name in names:
        table = _converted(table, f'{name}_deg', name, math.pi / 180.0)
    return table


def _converted(table: Table, given: str, name: str, factor: float) -> Table:
    """Return a table in which a column, if it is there, is another one; InputError for both."""
    if given not in table:
        return table
    if name in table:
        raise InputError(f'{table.file} has columns {name} and {given}, allowed: one of them')
    return Table(table.file, table | {name: factor * table[given]})


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
    table = in_radians(read_table(file, None), _ANGLES)
    for rod in _RODS:
        if f'strain_{rod}' in table:
            if rod_area is None:
                raise InputError(
                    f'{table.file} has the column strain_{rod}, but rod_area is missing: the'
                    ' cross-section with the gauge [m^2]'
                )
            check_within('rod_area', rod_area, '(0, inf) m^2')
            check_within('youngs_modulus', youngs_modulus, '(0, inf) Pa')
            largest = float(np.abs(table[f'strain_{rod}']).max())
            # Written so that NaN is refused.
            if not largest <= _LARGEST_STRAIN:
                raise InputError(
                    f'{table.file}: strain_{rod} goes to {largest:g}, allowed: up to'
                    f' {_LARGEST_STRAIN:g}; microstrain are to be divided by a million'
                )
            stiffness = rod_area * youngs_modulus
            table = _converted(table, f'strain_{rod}', f'force_{rod}', stiffness)
    found = {name: table[name] for name in MEASURED if name in table}
    for angle, cylinder in zip(_ANGLES, CYLINDERS, strict=True):
        if angle in found:
            # It says the same.
            found.pop(f'length_{cylinder}', None)
    if not found:
        raise InputError(
            f'{table.file}: found the columns {", ".join(table)}; allowed: time with any of'
            f' {", ".join(MEASURED)}, strain_lk, strain_pk'
        )
    times, values = table.get('time'), np.stack(list(found.values()), axis=1)
    if times is None and len(values) > 1:
        raise InputError(
            f'{table.file} has {len(values)} rows and no column time, allowed: one row, the end of'
            ' the digging, or a time for each'
        )
    return Measurements(tuple(found), values, times, str(table.file))


def usual_noise(name: str) -> float:
    """Return the standard deviation of a single row of a column, in its unit."""
    return _NOISE[COLUMNS.unit(name)]
