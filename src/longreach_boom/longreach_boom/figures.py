"""Pictures of runs, statics, Ritz functions and modes, as in Henikl 2015, figures 11 to 14."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from longreach_boom.kinematics import truck_frame
from longreach_boom.model import boom_bases
from longreach_boom.modes import NaturalModes
from longreach_boom.parameters import BoomParameters
from longreach_boom.results import BoomRun
from longreach_boom.state import truck_of
from longreach_dynamics.beams import self_weight_line, tip_force_line
from longreach_tools.output import figure, legend


def draw_run(file: str | Path, result: BoomRun) -> None:
    """
    Draw forces, strains, pistons and beam tips over time, Henikl 2015, figures 13 and 14.

    With a trajectory also the joint angles, and with valve commands also the pressures.

    Parameters
    ----------
    file : path
        Picture to write; its suffix selects the format.
    result : BoomRun
    """
    boom = result.parameters
    time = result.column('time')
    followed = result.reference is not None
    opened = bool(np.any(result.columns_like('spool') != 0.0))
    moves = boom.truck is not None
    rows = 5 + followed + opened + moves
    with figure(file, size=(9.0, 2.0 * rows), rows=rows) as axes:
        force, strain, piston, ahead, above = axes[rows - 5 - moves : rows - moves]
        if result.reference is not None:
            axes[0].set_ylabel(r'joint $\varphi$ [deg]')
            for i in range(boom.size):
                reference = np.degrees(result.reference[:, i])
                label = 'trajectory' if i == 0 else None
                style: dict[str, Any] = {'color': '0.6', 'linestyle': '--', 'linewidth': 2.5}
                axes[0].plot(time, reference, label=label, **style)
                phi = result.column(f'phi_{i + 1}', 'deg')
                axes[0].plot(time, phi, color=f'C{i}', label=f'joint {i + 1}')
            legend(axes[0], boom.size + 1)
        if opened:
            pressure = axes[rows - 6 - moves]
            for i in range(boom.size):
                head = f'head side {i + 1}' if i == 0 else f'{i + 1}'
                pressure.plot(time, result.column(f'p_head_{i + 1}', 'bar'), f'C{i}-', label=head)
                rod = f'rod side {i + 1}' if i == 0 else f'{i + 1}'
                pressure.plot(time, result.column(f'p_rod_{i + 1}', 'bar'), f'C{i}--', label=rod)
            pressure.set_ylabel('pressure [bar]')
            legend(pressure, boom.size)
        for i in range(boom.size):
            color, name = f'C{i}', f'beam and cylinder {i + 1}' if i == 0 else f'{i + 1}'
            full = boom.oil.supply_pressure * boom.cylinders[i].head_area
            way = result.column(f'piston_{i + 1}', 'mm')
            for axis, values in (
                (force, result.column(f'force_{i + 1}') / full),
                (strain, result.column(f'strain_{i + 1}', '1e-6')),
                (piston, way - way[0]),
            ):
                axis.plot(time, values, color=color, label=name)
            # Relative to the start, because tips are metres apart and move by decimetres.
            for axis, side in ((ahead, 'x'), (above, 'z')):
                tip = result.column(f'tip_{side}_{i + 1}')
                start = f'${side}(0)$ = {tip[0]:.3f} m'
                label = f'beam tip 1 from {start}' if i == 0 else f'{i + 1}: {tip[0]:.3f} m'
                axis.plot(time, tip - tip[0], color=color, label=label)
        force.set_ylabel(r'force / $(p_s A_1)$')
        strain.set_ylabel(r'strain [$10^{-6}$]')
        piston.set_ylabel(r'piston $\Delta s_p$ [mm]')
        ahead.set_ylabel('beam tip $x - x(0)$ [m]')
        above.set_ylabel('beam tip $z - z(0)$ [m]')
        truck = truck_of(result.states, boom)
        if truck is not None:
            # Henikl 2015, figure 15: upwards at joint 1, where the slewing gear is.
            gear = truck_frame(boom, truck.T).origin.imag
            axes[-1].plot(time, 1e3 * (gear - gear[0]), color='C4')
            axes[-1].set_ylabel('slewing gear\n$z - z(0)$ [mm]')
        axes[-1].set_xlabel('time [s]')
        axes[-1].set_xlim(time[0], time[-1])
        for axis in (force, strain, piston, ahead, above):
            legend(axis, boom.size)


def draw_statics(
    file: str | Path, boom: BoomParameters, angles: np.ndarray, rows: list[dict[str, Any]]
) -> None:
    """Draw ``rows`` of :func:`static_row` over phi_1 (poses,) [rad], Henikl 2015, figure 12."""
    with figure(file, size=(8.0, 6.0), rows=2) as (force, strain):
        for i in range(boom.size):
            shares = [row['force_share'][i] for row in rows]
            name = f'cylinder and beam {i + 1}' if i == 0 else f'{i + 1}'
            force.plot(np.degrees(angles), shares, color=f'C{i}', label=name)
            shown = [1e6 * row['strain'][i] for row in rows]
            strain.plot(np.degrees(angles), shown, color=f'C{i}', label=name)
        force.set_ylabel(r'force / $(p_s A_1)$')
        strain.set_ylabel(r'strain [$10^{-6}$]')
        strain.set_xlabel(r'$\varphi_1$ [deg]')
        for axis in (force, strain):
            legend(axis, boom.size)


def draw_basis(file: str | Path, boom: BoomParameters) -> None:
    """Draw Ritz functions of the beams and static bending lines, Henikl 2015, figure 11."""
    with figure(file, size=(8.0, 2.2 * boom.size), rows=boom.size) as axes:
        for i, (axis, basis) in enumerate(zip(axes, boom_bases(boom), strict=True)):
            beam = basis.beam
            x = np.linspace(0.0, beam.length, 200)
            line = self_weight_line(beam) if i == boom.size - 1 else tip_force_line(beam)
            axis.plot(x / beam.length, line.at(x), color='0.75', linewidth=4.0, label='static')
            for e, values in enumerate(basis.at(x)):
                scale = np.abs(values).max()
                axis.plot(x / beam.length, values / scale, color=f'C{e}', label=f'$\\eta^{e + 1}$')
            axis.set_ylabel(boom.beams[i].name)
        axes[-1].set_xlabel('$x / L$')
        axes[-1].set_xlim(0.0, 1.0)
        for axis in axes:
            legend(axis, boom.ritz.functions + 1)


def draw_modes(file: str | Path, modes: NaturalModes) -> None:
    """Draw mode shapes over the boom at rest."""
    with figure(file, size=(9.0, 7.0)) as (axis,):
        rest = modes.rest.reshape(-1, 2)
        reach = float(np.ptp(rest, axis=0).max())
        axis.plot(*rest.T, color='0.7', linewidth=4.0, label='at rest')
        for k, shape in enumerate(modes.shapes[:4]):
            moved = rest + 0.08 * reach * shape.reshape(-1, 2)
            label = f'{modes.frequencies[k]:.3g} Hz'
            axis.plot(*moved.T, color=f'C{k}', linewidth=1.2, label=label)
        axis.set_aspect('equal', adjustable='datalim')
        axis.set_xlabel('$x$ [m]')
        axis.set_ylabel('$z$ [m]')
        axis.legend(frameon=False, title='shapes, of arbitrary size and sign')
