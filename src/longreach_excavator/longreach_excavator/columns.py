"""Columns of runs of an excavator: names, units, meanings, and where messages hold them."""

from __future__ import annotations

import numpy as np

from longreach_excavator.linkage import CYLINDERS
from longreach_machine.runs import Column, Columns, Derived, Source, each, sources

# Joints whose reactions have a magnitude: boom in chassis, arm in boom, bucket in arm.
REACTIONS = ('boom_chassis', 'arm_boom', 'bucket_arm')

_JOINTS = (2, 3, 4)


_joints = sources('joint_states', [f'{name}_joint' for name in CYLINDERS])
_oil = sources('hydraulics', CYLINDERS)


def _force_source(part: str) -> tuple[Source, ...]:
    """Return the recorded sources of x and z of a force."""
    return tuple(Source('reactions', f'force.{axis}', part) for axis in 'xz')


def _forces(parts: tuple[str, ...], meaning: str) -> list[Column]:
    """Return columns of x and z of the forces of parts, named as in ``reactions``."""
    return [
        Column(f'{part}_{axis}', 'N', meaning, source)
        for part in parts
        for axis, source in zip('xz', _force_source(part), strict=True)
    ]


def size_of(values: np.ndarray) -> np.ndarray:
    """Return the magnitude of a force from x and z, (rows, 2)."""
    return np.asarray(np.hypot(*values.T))


_SOIL = tuple(Source('soil_force', f'wrench.force.{axis}') for axis in 'xz')

_OBSERVED = (
    *each('alpha_*', _JOINTS, 'rad/s^2', 'joint accelerations'),
    *each('length_*', CYLINDERS, 'm', 'lengths of the cylinders from pin to pin'),
    *each(
        'force_*',
        CYLINDERS,
        'N',
        'forces of the cylinders',
        _joints('effort', [f'{name}_cylinder' for name in CYLINDERS]),
    ),
    *each('pin_force_*', CYLINDERS, 'N', 'the same with friction and stops'),
    Column('force_lk', 'N', 'tensions of the rods'),
    Column('force_pk', 'N', 'tensions of the rods'),
    *_forces(REACTIONS, 'reactions in A, C, D'),
    *_forces(CYLINDERS, 'of the cylinders on boom, arm and K'),
    *_forces(('lk', 'pk'), 'of the rods on arm and bucket'),
    Column('soil_x', 'N', 'of the soil on the tooth', _SOIL[0]),
    Column('soil_z', 'N', 'of the soil on the tooth', _SOIL[1]),
    Column('depth', 'm', 'depth that counts'),
    Column('tip_x', 'm', 'the tooth'),
    Column('tip_z', 'm', 'the tooth'),
    *each('head_flow_*', CYLINDERS, 'm^3/s', 'into the head sides', _oil('head_flow')),
    *each('rod_flow_*', CYLINDERS, 'm^3/s', 'out of the rod sides', _oil('rod_flow')),
)

# For depth: terrain.
CARRIED = (
    Column('soil_moment', 'N m', 'of the soil about the tooth, beside its force'),
    Column(
        'bucket_volume',
        'm^3',
        'of the soil in the bucket, undisturbed',
        Source('terrain', 'bucket_volume'),
    ),
    Column('bucket_mass', 'kg', 'of the soil in the bucket', Source('terrain', 'bucket_mass')),
)

OBSERVED = tuple(column.name for column in (*_OBSERVED, *CARRIED))
"""Columns of :func:`longreach_excavator.observation.observe`; x before z."""

COLUMNS = Columns(
    (
        Column('time', 's', 'of the sample'),
        *each('theta_*', _JOINTS, 'rad', 'joint angles', _joints('position')),
        *each('omega_*', _JOINTS, 'rad/s', 'joint rates', _joints('velocity')),
        *_OBSERVED,
        Column('soil_force', 'N', 'magnitude of the force on the tooth', Derived(_SOIL, size_of)),
        *each(
            'load_*',
            REACTIONS,
            'N',
            'magnitudes of the reactions',
            [Derived(_force_source(name), size_of) for name in REACTIONS],
        ),
        Column('swept', 'rad', 'rotation of the bucket in the world, downwards, since time 0'),
        *each('p_head_*', CYLINDERS, 'Pa', 'pressures of the head sides', _oil('head_pressure')),
        *each('p_rod_*', CYLINDERS, 'Pa', 'pressures of the rod sides', _oil('rod_pressure')),
        *each('spool_*', CYLINDERS, '1', 'spool positions', _oil('spool')),
        *each('work_*', CYLINDERS, 'J', 'work of the cylinders since time 0'),
        Column('work_soil', 'J', 'work on the soil since time 0'),
        Column('work_lost', 'J', 'losses since time 0'),
        *each('energy_*', ('kinetic', 'potential'), 'J', 'of the links'),
        Column('energy_spring', 'J', 'of the stops'),
        *CARRIED,
    )
)
"""Columns of :func:`longreach_excavator.simulation.series`, without those for special valves."""
