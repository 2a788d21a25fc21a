"""Figures of runs, as in Ozunlu 2009, figures 5.17 to 5.25, with the machine from the side."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from longreach_excavator.breakout import Breakout, breakout
from longreach_excavator.cohesion import CohesionFit
from longreach_excavator.columns import REACTIONS
from longreach_excavator.inverse import COLUMNS, InverseResult
from longreach_excavator.linkage import CYLINDERS, bucket_cylinder
from longreach_excavator.motion import RATE, SIZE
from longreach_excavator.parameters import ExcavatorParameters
from longreach_excavator.results import ExcavatorRun
from longreach_excavator.step_study import StepCase
from longreach_excavator.terrain import FIRM, heights, places
from longreach_excavator.visuals import bucket_load
from longreach_tools.output import figure, legend

_JOINTS = dict(zip(REACTIONS, ('boom and chassis', 'arm and boom', 'bucket and arm'), strict=True))


def pins(excavator: ExcavatorParameters, q: np.ndarray) -> dict[str, complex]:
    """
    Return the positions of all pins in a pose, x + j z [m], by the thesis' letters.

    Parameters
    ----------
    excavator : ExcavatorParameters
    q : ndarray, shape (3,)
        [rad].
    """
    p = excavator.pins()
    z2, z23, z234 = np.exp(1j * np.cumsum(q))
    C = p.c * z2
    D = C + p.d * z23
    _, lever, _, _ = bucket_cylinder(q[2], p)
    return {
        'A': 0j,
        'B': p.b * z2,
        'C': C,
        'D': D,
        'E': p.e,
        'F': C + p.f * z23,
        'I': p.i * z2,
        'J': C + p.j * z23,
        'K': C + (p.l + lever) * z23,
        'L': C + p.l * z23,
        'N': D + p.n * z234,
        'P': D + p.p * z234,
    }


# Parts as lines through their pins.
_PARTS = {
    'boom': 'ABICA',
    'arm': 'FCDLJF',
    'bucket': 'DPND',
    'boom cylinder': 'EB',
    'arm cylinder': 'IF',
    'bucket cylinder': 'JK',
    'lever': 'LK',
    'rod': 'PK',
}


def _draw_machine(axis: Any, places: dict[str, complex], shade: str, label: str = '') -> None:
    """Draw all parts as lines; the first one has the label, if given."""
    for name, letters in _PARTS.items():
        points = np.array([places[letter] for letter in letters])
        width = 1.6 if name in CYLINDERS else 0.8
        axis.plot(points.real, points.imag, color=shade, linewidth=width, label=label or None)
        label = ''
    axis.set_aspect('equal', adjustable='datalim')
    axis.set_xlabel('x [m]')
    axis.set_ylabel('z [m]')


def draw_pose(file: str | Path, excavator: ExcavatorParameters, q: np.ndarray) -> None:
    """
    Draw the machine in a pose, with the letters of its pins.

    Parameters
    ----------
    file : path
        Picture to write; its ending decides the format.
    excavator : ExcavatorParameters
    q : ndarray, shape (3,)
        [rad].
    """
    places = pins(excavator, q)
    with figure(file, size=(9.0, 6.0)) as (axis,):
        _draw_machine(axis, places, '0.2')
        ground = -excavator.chassis.foot_height
        axis.axhline(ground, color='C5', linewidth=1.2)
        _name_line(axis, ground, 'ground')
        for letter, place in places.items():
            axis.plot(place.real, place.imag, color='C0', marker='o', markersize=4)
            axis.annotate(
                letter, (place.real, place.imag), xytext=(5, 5), textcoords='offset points'
            )


def draw_run(file: str | Path, result: ExcavatorRun) -> None:
    """
    Draw the machine, forces, reactions, accelerations, rates and angles over time.

    Parameters
    ----------
    file : path
        Picture to write; its ending decides the format.
    result : ExcavatorRun
    """
    time = result.column('time')
    terrain = result.machine.constants.ground.cells > 0
    with figure(file, size=(9.0, 15.0 + 2.0 * terrain), rows=5 + terrain, above=2.5) as axes:
        side, force, reaction, acceleration, rate, angle = axes[:6]
        _draw_side(side, result)
        for k, name in enumerate(CYLINDERS):
            force.plot(time, result.column(f'force_{name}', 'kN'), color=f'C{k}', label=name)
        force.plot(time, result.column('soil_force', 'kN'), color='0.35', ls='--', label='soil')
        force.set_ylabel('cylinders, soil [kN]')
        for k, (name, label) in enumerate(_JOINTS.items()):
            reaction.plot(time, 1e-3 * result.magnitude(name), color=f'C{k}', label=label)
        _draw_breakout_loads(reaction, result)
        reaction.set_ylabel('in the joint [kN]')
        for k in range(3):
            for axis, column, unit in (
                (acceleration, 'alpha', 'deg/s^2'),
                (rate, 'omega', 'deg/s'),
                (angle, 'theta', 'deg'),
            ):
                axis.plot(
                    time,
                    result.column(f'{column}_{k + 2}', unit),
                    color=f'C{k}',
                    label=rf'$\theta_{k + 2}$, {CYLINDERS[k]}',
                )
        acceleration.set_ylabel(r'acceleration [deg/s$^2$]')
        rate.set_ylabel('rate [deg/s]')
        angle.set_ylabel('angle [deg]')
        if terrain:
            axes[-1].plot(time, result.column('bucket_mass'), color='C5')
            axes[-1].set_ylabel('soil in the bucket [kg]')
        axes[-1].set_xlabel('time [s]')
        for axis in axes[1:]:
            axis.set_xlim(time[0], time[-1])
        for axis in (force, reaction, acceleration, rate, angle):
            legend(axis, 4)


def _draw_side(axis: Any, result: ExcavatorRun) -> None:
    """Draw the machine from the side: at the start, in the middle, and at the end of the run."""
    machine, swept = result.machine, result.column('swept')
    middle = int(np.searchsorted(swept, 0.5 * swept.max()))
    ground = machine.constants.ground
    if ground.cells:
        # The row in which the full bucket is highest.
        volume = result.column('bucket_volume')
        full = volume >= 0.9 * volume.max()
        middle = int(np.where(full, result.column('tip_z'), -np.inf).argmax())
    for k, shade, when in (
        (0, 0.75, 'start'),
        (middle, 0.45, 'full' if ground.cells else 'middle'),
        (-1, 0.0, 'end'),
    ):
        places = pins(machine.parameters, result.states[k, :RATE])
        _draw_machine(axis, places, str(shade), when)
    axis.plot(
        result.column('tip_x'), result.column('tip_z'), color='C2', linewidth=1.0, label='tooth'
    )
    surface = machine.constants.medium.surface
    if math.isfinite(surface):
        axis.axhline(surface, color='C5', linewidth=1.2)
        _name_line(axis, surface, 'soil')
    if ground.cells:
        _draw_ground(axis, result, middle)
    legend(axis, 4)


def _draw_breakout_loads(axis: Any, result: ExcavatorRun) -> None:
    """Draw the joint loads at the bucket's breakout, the yellow lines in the thesis' figures."""
    scenario, excavator = result.machine.scenario, result.parameters
    if not scenario.sweep_deg:
        return
    found = breakout(excavator, 'bucket', scenario.angles(excavator))
    for k, pin in enumerate('acd'):
        load = found.loads.column(f'pin_{pin}', 'kN')[found.best]
        label = 'at breakout of the bucket' if k == 2 else None
        axis.axhline(load, color=f'C{k}', linewidth=1.0, ls=':')
        axis.plot([], [], color='0.3', linewidth=1.0, ls=':', label=label)


def _draw_ground(axis: Any, result: ExcavatorRun, middle: int) -> None:
    """Draw the ground at the start and at the end, and the soil in the bucket of a row."""
    ground, states = result.machine.constants.ground, result.states
    x, first = places(ground), heights(states[0, SIZE:])
    last = heights(states[-1, SIZE:])
    firm = states[-1, SIZE + FIRM : SIZE + FIRM + ground.cells]
    axis.plot(x, first, color='C5', linewidth=0.8, ls='--')
    axis.plot(x, last, color='C5', linewidth=1.2)
    axis.fill_between(x, firm, last, color='C5', alpha=0.35, linewidth=0.0)
    axis.fill_between(x, firm.min() - 0.3, firm, color='C5', alpha=0.15, linewidth=0.0)
    _name_line(axis, float(first[0]), 'soil')
    tooth = complex(result.column('tip_x')[middle], result.column('tip_z')[middle])
    load = bucket_load(ground, states[middle], tooth)
    outline = 0.5 * load.diameter * np.exp(1j * np.linspace(0.0, 2.0 * math.pi, 60))
    outline += complex(*load.middle)
    axis.fill(outline.real, outline.imag, color='C5', alpha=0.5)


def _name_line(axis: Any, height: float, name: str) -> None:
    """Write the name of a level line at its left end."""
    axis.text(0.01, height, name, color='C5', va='bottom', transform=axis.get_yaxis_transform())


def draw_forces(
    file: str | Path, times: np.ndarray, computed: np.ndarray, measured: np.ndarray
) -> None:
    """
    Draw computed and measured forces of the cylinders over time.

    Parameters
    ----------
    file : path
        Picture to write; its ending decides the format.
    times : ndarray, shape (rows,)
        Times [s].
    computed, measured : ndarray, shape (rows, 3)
        Forces, positive extends [N].
    """
    with figure(file, size=(9.0, 7.0), rows=3) as axes:
        for k, (axis, name) in enumerate(zip(axes, CYLINDERS, strict=True)):
            label = f'measured, (5.{8 + k})'
            axis.plot(times, 1e-3 * measured[:, k], color='0.5', ls='--', label=label)
            axis.plot(times, 1e-3 * computed[:, k], color=f'C{k}', label='computed')
            axis.axhline(0.0, color='0.7', linewidth=0.8)
            axis.set_ylabel(f'{name} [kN]')
            legend(axis, 2)
        axes[-1].set_xlabel('time [s]')
        axes[-1].set_xlim(times[0], times[-1])


def draw_steps(file: str | Path, cases: list[StepCase]) -> None:
    """
    Draw the force in the boom's foot over time, a panel for each step size.

    Parameters
    ----------
    file : path
        Picture to write; its ending decides the format.
    cases : list of StepCase
    """
    steps = list(dict.fromkeys(case.step for case in cases))
    cohesions = list(dict.fromkeys(case.cohesion for case in cases))
    with figure(file, size=(9.0, 1.0 + 3.0 * len(steps)), rows=len(steps)) as axes:
        for axis, step in zip(axes, steps, strict=True):
            for case in cases:
                if case.step == step:
                    label = f'{1e-3 * case.cohesion:g} kPa'
                    label += '' if case.times.size else ': refused'
                    color = f'C{cohesions.index(case.cohesion)}'
                    force = 1e-3 * case.force
                    axis.plot(case.times, force, color=color, marker='.', label=label)
            axis.set_ylabel(f'in A, step {step:g} s [kN]')
            legend(axis, 4)
        axes[-1].set_xlabel('time [s]')


def draw_breakout(file: str | Path, found: list[Breakout]) -> None:
    """
    Draw breakout forces, and the loads of the joints, over the strokes.

    Parameters
    ----------
    file : path
        Picture to write; its ending decides the format.
    found : list of Breakout
    """
    with figure(file, size=(9.0, 7.0), rows=1 + len(found)) as axes:
        for k, one in enumerate(found):
            share = one.stroke / one.stroke[-1]
            axes[0].plot(share, 1e-3 * one.force, color=f'C{k}', label=one.cylinder)
            axes[0].plot(share[one.best], 1e-3 * one.force[one.best], color=f'C{k}', marker='o')
            for j, (pin, label) in enumerate(zip('acd', _JOINTS.values(), strict=True)):
                load = one.loads.column(f'pin_{pin}', 'kN')
                axes[1 + k].plot(share, load, color=f'C{j}', label=label)
            axes[1 + k].set_ylabel(f'{one.cylinder}: joints [kN]')
            legend(axes[1 + k], 3)
        axes[0].set_ylabel('breakout force [kN]')
        legend(axes[0], 2)
        axes[-1].set_xlabel('share of the stroke')
        axes[-1].set_xlim(0.0, 1.0)


def draw_inverse(file: str | Path, result: InverseResult) -> None:
    """
    Draw the loads of a prescribed motion: cylinders, rods, joints, soil; and its joint angles.

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
            cylinder.plot(time, result.column(f'pin_force_{name}', 'kN'), label=name)
            angle.plot(
                time,
                result.column(f'theta_{k + 2}', 'deg'),
                label=rf'$\theta_{k + 2}$, {name}',
            )
        cylinder.set_ylabel('cylinder [kN]')
        for name in ('lk', 'pk'):
            rod.plot(time, result.column(f'force_{name}', 'kN'), label=name.upper())
        rod.set_ylabel('rod, tension [kN]')
        for pin, label in zip('acd', _JOINTS.values(), strict=True):
            joint.plot(time, result.column(f'pin_{pin}', 'kN'), label=label)
        joint.set_ylabel('in the joint [kN]')
        soil.plot(time, result.column('soil_force', 'kN'), color='0.35', label='soil')
        soil.set_ylabel('on the tooth [kN]')
        angle.set_ylabel('angle [deg]')
        angle.set_xlabel('time [s]')
        angle.set_xlim(time[0], time[-1])
        for axis in (cylinder, rod, joint, soil, angle):
            legend(axis, 3)


def draw_cohesion(file: str | Path, fit: CohesionFit) -> None:
    """
    Draw the sum of squares over the cohesion, and measured and fitted columns over time, if any.

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
            axis.set_ylabel(f'{name} [{COLUMNS.unit(name)}]')
        if axes:
            axes[-1].set_xlabel('time [s]')
            legend(axes[0], 2)
