"""Pictures of statics, Ritz functions and modes, as in Henikl 2015, figures 11 and 12."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from longreach_boom.model import boom_bases
from longreach_boom.modes import NaturalModes
from longreach_boom.parameters import BoomParameters
from longreach_dynamics.beams import self_weight_line, tip_force_line
from longreach_tools.output import figure, legend


def draw_statics(
    boom: BoomParameters, angles: np.ndarray, rows: list[dict[str, Any]], file: Path
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


def draw_basis(boom: BoomParameters, file: Path) -> None:
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


def draw_modes(modes: NaturalModes, file: Path) -> None:
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
