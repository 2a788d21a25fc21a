"""Figures of the machine from the side, and of the studies; as in Ozunlu 2009, figures 5.17 ff."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from longreach_excavator.breakout import Breakout, breakout
from longreach_excavator.cohesion import CohesionFit
from longreach_excavator.columns import REACTIONS
from longreach_excavator.inverse import COLUMNS, InverseResult
from longreach_excavator.kinematics import pin_places
from longreach_excavator.linkage import CYLINDERS, bucket_cylinder
from longreach_excavator.motion import SIZE
from longreach_excavator.parameters import ExcavatorParameters
from longreach_excavator.simulation import ExcavatorRun
from longreach_excavator.step_study import StepCase
from longreach_excavator.terrain import FIRM, heights, places
from longreach_excavator.visuals import bucket_load
from longreach_machine import Curve, Panel
from longreach_machine.runs import Run
from longreach_tools.output import figure, legend
from longreach_tools.run_figure import draw_columns

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
_THETAS = ('theta_2', 'theta_3', 'theta_4')
# Loads of the links' joints.
_JOINTS = {f'pin_{p}': n.replace('_', ' and ') for p, n in zip('acd', REACTIONS, strict=True)}
_INVERSE = (
    Panel('cylinder', [Curve(f'pin_force_{name}', name) for name in CYLINDERS], 'kN'),
    Panel('rod, tension', (Curve('force_lk', 'LK'), Curve('force_pk', 'PK')), 'kN'),
    Panel('in the joint', [Curve(*joint) for joint in _JOINTS.items()], 'kN'),
    Panel('on the tooth', (Curve('soil_force', 'soil'),), 'kN'),
    Panel('angle', [Curve(*pair) for pair in zip(_THETAS, CYLINDERS, strict=True)], 'deg'),
)
# Place of the panel with the loads of the joints in the figure of a run, see spec.
_JOINT_PANEL = 2


def pins(excavator: ExcavatorParameters, q: np.ndarray) -> dict[str, complex]:
    """Return all pins at joint angles (3,) [rad], x + j z [m], by the thesis' letters."""
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


def _draw_machine(axis: Any, at: dict[str, complex], shade: str, label: str = '') -> None:
    """Draw all parts as lines; the first one has the label, if given."""
    for name, letters in _PARTS.items():
        points = np.array([at[letter] for letter in letters])
        width = 1.6 if name in CYLINDERS else 0.8
        axis.plot(points.real, points.imag, color=shade, linewidth=width, label=label or None)
        label = ''
    axis.set_aspect('equal', adjustable='datalim')
    axis.set(xlabel='x [m]', ylabel='z [m]')


def draw_pose(file: str | Path, excavator: ExcavatorParameters, q: np.ndarray) -> None:
    """Draw the machine at joint angles (3,) [rad], with the letters of its pins."""
    at = pins(excavator, q)
    with figure(file, size=(9.0, 6.0)) as (axis,):
        _draw_machine(axis, at, '0.2')
        ground = -excavator.chassis.foot_height
        axis.axhline(ground, color='C5', linewidth=1.2)
        _name_line(axis, ground, 'ground')
        for letter, place in at.items():
            axis.plot(place.real, place.imag, color='C0', marker='o', markersize=4)
            axis.annotate(
                letter, (place.real, place.imag), xytext=(5, 5), textcoords='offset points'
            )


def draw_above(axis: Any, run: Run[Any]) -> None:
    """Draw the machine from the side at three times of a run or a recording, and the ground."""
    q = run.stack(_THETAS)
    turned, tooth = np.abs(q[0].sum() - q.sum(axis=1)), pin_places(run.parameters, q)[:, -1]
    middle, when = int(np.argmax(turned >= 0.5 * turned.max())), 'middle'
    if 'bucket_volume' in run.columns.names and (volume := run.column('bucket_volume')).any():
        # The row in which the full bucket is highest.
        middle, when = (
            int(np.where(volume >= 0.9 * volume.max(), tooth.imag, -np.inf).argmax()),
            'full',
        )
    for k, shade, label in ((0, '0.75', 'start'), (middle, '0.45', when), (-1, '0.0', 'end')):
        _draw_machine(axis, pins(run.parameters, q[k]), shade, label)
    axis.plot(tooth.real, tooth.imag, color='C2', linewidth=1.0, label='tooth')
    if isinstance(run, ExcavatorRun):
        surface = run.machine.constants.medium.surface
        if math.isfinite(surface):
            axis.axhline(surface, color='C5', linewidth=1.2)
            _name_line(axis, surface, 'soil')
        if run.machine.constants.ground.cells:
            _draw_ground(axis, run, middle, tooth[middle])
        if run.machine.scenario.sweep_deg:
            _draw_breakout_loads(axis.figure.axes[_JOINT_PANEL], run)
    legend(axis, 4)


def _draw_breakout_loads(axis: Any, run: ExcavatorRun) -> None:
    """Draw the joint loads at the bucket's breakout, the yellow lines in the thesis' figures."""
    found = breakout(run.parameters, 'bucket', run.machine.scenario.angles(run.parameters))
    for k, pin in enumerate('acd'):
        load = found.loads.column(f'pin_{pin}', 'kN')[found.best]
        axis.axhline(load, color=f'C{k}', linewidth=1.0, ls=':')
    axis.plot([], [], color='0.3', linewidth=1.0, ls=':', label='at breakout of the bucket')


def _draw_ground(axis: Any, run: ExcavatorRun, row: int, tooth: complex) -> None:
    """Draw the ground at the start and at the end, and the soil in the bucket of a row."""
    ground, states = run.machine.constants.ground, run.states
    x, first, last = places(ground), heights(states[0, SIZE:]), heights(states[-1, SIZE:])
    firm = states[-1, SIZE + FIRM : SIZE + FIRM + ground.cells]
    axis.plot(x, first, color='C5', linewidth=0.8, ls='--')
    axis.plot(x, last, color='C5', linewidth=1.2)
    axis.fill_between(x, firm, last, color='C5', alpha=0.35, linewidth=0.0)
    axis.fill_between(x, firm.min() - 0.3, firm, color='C5', alpha=0.15, linewidth=0.0)
    _name_line(axis, float(first[0]), 'soil')
    middle, diameter = bucket_load(ground, states[row], tooth)
    outline = middle + 0.5 * diameter * np.exp(1j * np.linspace(0.0, 2.0 * math.pi, 60))
    axis.fill(outline.real, outline.imag, color='C5', alpha=0.5)


def _name_line(axis: Any, height: float, name: str) -> None:
    """Write the name of a level line at its left end."""
    axis.text(0.01, height, name, color='C5', va='bottom', transform=axis.get_yaxis_transform())


def draw_forces(
    file: str | Path, times: np.ndarray, computed: np.ndarray, measured: np.ndarray
) -> None:
    """Draw computed and measured forces of the cylinders (rows, 3) [N] over times (rows,) [s]."""
    with figure(file, size=(9.0, 7.0), rows=3) as axes:
        for k, (axis, name) in enumerate(zip(axes, CYLINDERS, strict=True)):
            label = f'measured, (5.{8 + k})'
            axis.plot(times, 1e-3 * measured[:, k], color='0.5', ls='--', label=label)
            axis.plot(times, 1e-3 * computed[:, k], color=f'C{k}', label='computed')
            axis.axhline(0.0, color='0.7', linewidth=0.8)
            axis.set_ylabel(f'{name} [kN]')
            legend(axis, 2)
        axes[-1].set(xlabel='time [s]', xlim=(times[0], times[-1]))


def draw_steps(file: str | Path, cases: list[StepCase]) -> None:
    """Draw the force in the boom's foot over time, a panel for each step size."""
    steps = list(dict.fromkeys(case.step for case in cases))
    cohesions = list(dict.fromkeys(case.cohesion for case in cases))
    with figure(file, size=(9.0, 1.0 + 3.0 * len(steps)), rows=len(steps)) as axes:
        for case in cases:
            label = f'{1e-3 * case.cohesion:g} kPa'
            color = f'C{cohesions.index(case.cohesion)}'
            axis = axes[steps.index(case.step)]
            axis.plot(case.times, 1e-3 * case.force, color=color, marker='.', label=label)
        for axis, step in zip(axes, steps, strict=True):
            axis.set_ylabel(f'in A, step {step:g} s [kN]')
            legend(axis, 4)
        axes[-1].set_xlabel('time [s]')


def draw_breakout(file: str | Path, found: list[Breakout]) -> None:
    """Draw breakout forces, and the loads of the joints, over the strokes."""
    with figure(file, size=(9.0, 7.0), rows=1 + len(found)) as axes:
        for k, one in enumerate(found):
            share = one.stroke / one.stroke[-1]
            axes[0].plot(share, 1e-3 * one.force, color=f'C{k}', label=one.cylinder)
            axes[0].plot(share[one.best], 1e-3 * one.force[one.best], color=f'C{k}', marker='o')
            for pin, name in _JOINTS.items():
                axes[1 + k].plot(share, one.loads.column(pin, 'kN'), label=name)
            axes[1 + k].set_ylabel(f'{one.cylinder}: joints [kN]')
            legend(axes[1 + k], 3)
        axes[0].set_ylabel('breakout force [kN]')
        legend(axes[0], 2)
        axes[-1].set(xlabel='share of the stroke', xlim=(0.0, 1.0))


def draw_inverse(file: Path, result: InverseResult) -> None:
    """Draw the loads of a prescribed motion, and its joint angles, over time."""
    draw_columns(file, _INVERSE, result.columns, {'loads': result.column})


def draw_cohesion(file: str | Path, fit: CohesionFit) -> None:
    """Draw the sum of squares over the cohesion, and the columns over time, if there are times."""
    times, names = fit.data.times, fit.data.columns
    rows = len(names) if times is not None else 0
    size, above = (9.0, 3.5 + 2.0 * rows), 1.5 * bool(rows)
    with figure(file, size=size, rows=max(rows, 1), above=above) as (scan, *axes):
        scan.plot(1e-3 * fit.scan[:, 0], fit.scan[:, 1], marker='.', color='C0')
        low, high = (1e-3 * (fit.cohesion + way * fit.standard_error) for way in (-2.0, 2.0))
        scan.axvspan(low, high, color='C1', alpha=0.3)
        scan.axvline(1e-3 * fit.cohesion, color='C1')
        scan.set(xscale='log', yscale='log', xlabel='cohesion [kPa]', ylabel='sum of squares')
        for k, (axis, name) in enumerate(zip(axes, names, strict=False)):
            axis.plot(times, fit.data.values[:, k], color='0.6', label='measured')
            axis.plot(times, fit.fitted[:, k], color='C1', label='fitted')
            axis.set_ylabel(f'{name} [{COLUMNS.unit(name)}]')
        if axes:
            axes[-1].set_xlabel('time [s]')
            legend(axes[0], 2)
