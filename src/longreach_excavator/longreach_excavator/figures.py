"""Pictures of runs, as in Ozunlu 2009, figures 5.17 to 5.25, with the machine beside them."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from longreach_excavator.cohesion import CohesionFit
from longreach_excavator.inverse import InverseResult
from longreach_excavator.linkage import CYLINDERS, bucket_cylinder
from longreach_excavator.motion import RATE
from longreach_excavator.parameters import ExcavatorParameters
from longreach_excavator.results import REACTIONS, Result
from longreach_tools.output import figure

__all__ = ['draw_cohesion', 'draw_inverse', 'draw_run', 'outline']

_JOINTS = dict(zip(REACTIONS, ('boom and chassis', 'arm and boom', 'bucket and arm'), strict=True))


def outline(excavator: ExcavatorParameters, q: np.ndarray) -> dict[str, np.ndarray]:
    """
    Return the parts of the machine in a pose as lines through their pins.

    Parameters
    ----------
    excavator : ExcavatorParameters
    q : ndarray, shape (3,)
        [rad].

    Returns
    -------
    dict
        From the name of a part to points (.., 2), x and z [m].
    """
    p = excavator.pins()
    z2, z23, z234 = np.exp(1j * np.cumsum(q))
    A, C = 0j, p.c * z2
    D = C + p.d * z23
    pins = {name: getattr(p, name.lower()) * z2 for name in 'BI'}
    pins |= {name: C + getattr(p, name.lower()) * z23 for name in 'FJL'}
    _, lever, _, _ = bucket_cylinder(q[2], p)
    K = pins['L'] + lever * z23
    P, N = D + p.p * z234, D + p.n * z234
    lines = {
        'boom': (A, pins['B'], pins['I'], C, A),
        'arm': (pins['F'], C, D, pins['L'], pins['J'], pins['F']),
        'bucket': (D, P, N, D),
        'boom cylinder': (p.e, pins['B']),
        'arm cylinder': (pins['I'], pins['F']),
        'bucket cylinder': (pins['J'], K),
        'lever': (pins['L'], K),
        'rod': (P, K),
    }
    return {
        name: np.array([[point.real, point.imag] for point in points])
        for name, points in lines.items()
    }


def draw_run(file: str | Path, result: Result) -> None:
    """
    Draw the machine, forces, reactions, accelerations, rates and angles over time.

    Parameters
    ----------
    file : path
        Picture to write; its ending decides the format.
    result : Result
    """
    time = result.column('time')
    with figure(file, size=(9.0, 15.0), rows=5, above=2.5) as axes:
        side, force, reaction, acceleration, rate, angle = axes
        _draw_side(side, result)
        for k, name in enumerate(CYLINDERS):
            force.plot(time, 1e-3 * result.column(f'force_{name}'), color=f'C{k}', label=name)
        force.plot(time, 1e-3 * result.column('soil_force'), color='0.35', ls='--', label='soil')
        force.set_ylabel('cylinders, soil [kN]')
        for k, (name, label) in enumerate(_JOINTS.items()):
            reaction.plot(time, 1e-3 * result.magnitude(name), color=f'C{k}', label=label)
        reaction.set_ylabel('in the joint [kN]')
        for k in range(3):
            for axis, column in ((acceleration, 'alpha'), (rate, 'omega'), (angle, 'theta')):
                axis.plot(
                    time,
                    np.degrees(result.column(f'{column}_{k + 2}')),
                    color=f'C{k}',
                    label=rf'$\theta_{k + 2}$, {CYLINDERS[k]}',
                )
        acceleration.set_ylabel(r'acceleration [deg/s$^2$]')
        rate.set_ylabel('rate [deg/s]')
        angle.set_ylabel('angle [deg]')
        angle.set_xlabel('time [s]')
        for axis in axes[1:]:
            axis.set_xlim(time[0], time[-1])
        for axis in (force, reaction, angle):
            _legend(axis, 4)


def _draw_side(axis: Any, result: Result) -> None:
    """Draw the machine from the side: at the beginning, half way, and at the end."""
    machine, swept = result.machine, result.column('swept')
    middle = int(np.searchsorted(swept, 0.5 * swept.max()))
    for k, shade in ((0, 0.75), (middle, 0.45), (-1, 0.0)):
        lines = outline(machine.parameters, result.states[k, :RATE])
        for name, points in lines.items():
            link = name in CYLINDERS
            axis.plot(*points.T, color=str(shade), linewidth=1.6 if link else 0.8)
    axis.plot(result.column('tip_x'), result.column('tip_z'), color='C2', linewidth=1.0)
    surface = machine.constants.medium.surface
    if math.isfinite(surface):
        axis.axhline(surface, color='C5', linewidth=1.2)
    axis.set_aspect('equal', adjustable='datalim')
    axis.set_xlabel('x [m]')
    axis.set_ylabel('z [m]')


def _legend(axis: Any, columns: int) -> None:
    """Put the legend above the right end of an axis, where it hides nothing."""
    axis.legend(loc='lower right', bbox_to_anchor=(1.0, 0.98), frameon=False, ncols=columns)


def draw_inverse(file: str | Path, result: InverseResult) -> None:
    """
    Draw what a prescribed motion asks for: cylinders, rods, joints, and the motion itself.

    Parameters
    ----------
    file : path
        Picture to write; its ending decides the format.
    result : InverseResult
    """
    time = result.column('time')
    with figure(file, size=(9.0, 10.0), rows=5) as axes:
        cylinder, rod, joint, soil, angle = axes
        for k, name in enumerate(CYLINDERS):
            cylinder.plot(time, 1e-3 * result.column(f'pin_force_{name}'), label=name)
            angle.plot(
                time,
                np.degrees(result.column(f'theta_{k + 2}')),
                label=rf'$\theta_{k + 2}$, {name}',
            )
        cylinder.set_ylabel('cylinder [kN]')
        for name in ('lk', 'pk'):
            rod.plot(time, 1e-3 * result.column(f'force_{name}'), label=name.upper())
        rod.set_ylabel('rod, tension [kN]')
        for pin, label in zip('acd', _JOINTS.values(), strict=True):
            joint.plot(time, 1e-3 * result.column(f'pin_{pin}'), label=label)
        joint.set_ylabel('in the joint [kN]')
        soil.plot(time, 1e-3 * result.column('soil_force'), color='0.35')
        soil.set_ylabel('on the tooth [kN]')
        angle.set_ylabel('angle [deg]')
        angle.set_xlabel('time [s]')
        angle.set_xlim(time[0], time[-1])
        for axis in (cylinder, rod, joint, angle):
            _legend(axis, 3)


def draw_cohesion(file: str | Path, fit: CohesionFit) -> None:
    """
    Draw how well cohesions fit, and measured and fitted columns over time if they have one.

    Parameters
    ----------
    file : path
        Picture to write; its ending decides the format.
    fit : CohesionFit
    """
    times, names = fit.data.times, fit.data.columns
    rows = len(names) if times is not None else 0
    with figure(file, size=(9.0, 3.5 + 2.0 * rows), rows=max(rows, 1), above=1.5 * bool(rows)) as (
        scan,
        *axes,
    ):
        scan.plot(1e-3 * fit.scan[:, 0], fit.scan[:, 1], marker='.', color='C0')
        low, high = (1e-3 * (fit.cohesion + way * fit.standard_error) for way in (-2.0, 2.0))
        scan.axvspan(low, high, color='C1', alpha=0.3)
        scan.axvline(1e-3 * fit.cohesion, color='C1')
        scan.set_xscale('log')
        scan.set_yscale('log')
        scan.set_xlabel('cohesion [kPa]')
        scan.set_ylabel('sum of squares')
        for k, (axis, name) in enumerate(zip(axes, names, strict=False)):
            axis.plot(times, fit.data.values[:, k], color='0.6', label='measured')
            axis.plot(times, fit.fitted[:, k], color='C1', label='fitted')
            axis.set_ylabel(name)
        if axes:
            axes[-1].set_xlabel('time [s]')
            _legend(axes[0], 2)
