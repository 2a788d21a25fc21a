"""Subcommands of ``longreach boom`` without motion: modes, statics, Ritz functions."""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import Any

import numpy as np

from longreach_boom.arguments import add_boom, add_pose, angles_of, boom_of, loads_of
from longreach_boom.model import boom_bases
from longreach_boom.modes import ABOUT, PISTONS, natural_modes
from longreach_boom.parameters import BoomParameters
from longreach_boom.statics import static_row
from longreach_dynamics.errors import InputError
from longreach_tools.arguments import count, sweep
from longreach_tools.machine_command import check_files
from longreach_tools.options import add_results
from longreach_tools.output import add_format, print_result, table, write_csv


def configure_statics(commands: Any) -> None:
    """Add these subcommands to those of ``longreach boom``."""
    modes = commands.add_parser('modes', help='natural frequencies, compared with finite elements')
    add_boom(modes)
    add_pose(modes, 'sprawled')
    modes.add_argument('--pistons', choices=PISTONS, default='locked')
    modes.add_argument('--about', choices=ABOUT, default='equilibrium', help='state of rest')
    modes.add_argument(
        '--count', type=count(1_000_000), default=6, help='number of modes (default: 6)'
    )
    modes.add_argument(
        '--elements',
        type=count(200),
        default=20,
        help='finite elements for each beam (default: 20)',
    )
    add_format(modes)
    modes.add_argument('--plot', metavar='FILE', type=Path, help='mode shapes')
    modes.set_defaults(run=_run_modes)

    statics = commands.add_parser('statics', help='forces, pressures and deflections at rest')
    add_boom(statics)
    add_pose(statics, 'sprawled')
    statics.add_argument(
        '--sweep',
        metavar='START:STOP:COUNT',
        type=sweep,
        help='angles of the first joint, instead of the one in --pose, in the same unit',
    )
    add_results(statics, 'a table of all rows', 'figure 12 of the paper; needs --sweep')
    statics.set_defaults(run=_run_statics)

    basis = commands.add_parser('basis', help='Ritz functions of the beams')
    add_boom(basis)
    add_format(basis)
    basis.add_argument('--plot', metavar='FILE', type=Path, help='figure 11 of the paper')
    basis.set_defaults(run=_run_basis)


def _run_modes(arguments: argparse.Namespace) -> None:
    """Run ``modes``."""
    check_files(arguments)
    boom = boom_of(arguments)
    modes = natural_modes(
        boom,
        angles_of(arguments, boom),
        loads_of(arguments, boom),
        arguments.pistons,
        arguments.count,
        arguments.about,
        arguments.elements,
    )
    if arguments.plot is not None:
        from longreach_boom.figures import draw_modes

        draw_modes(arguments.plot, modes)
    columns = {
        'frequencies_hz': modes.frequencies.tolist(),
        'damping_ratios': modes.damping_ratios.tolist(),
        'finite_element_hz': modes.finite_element.tolist(),
        'relative_error': modes.relative_error.tolist(),
    }
    head = ('mode', 'frequency [Hz]', 'damping', 'finite elements [Hz]', 'relative error')
    rows = [(k + 1, *row) for k, row in enumerate(zip(*columns.values(), strict=True))]
    print_result(columns, table(head, rows), arguments.format)


def _run_statics(arguments: argparse.Namespace) -> None:
    """Run ``statics``."""
    check_files(arguments)
    boom = boom_of(arguments)
    loads = loads_of(arguments, boom)
    angles = angles_of(arguments, boom)
    if arguments.sweep is None:
        if arguments.plot is not None or arguments.csv is not None:
            raise InputError('--csv and --plot show a sweep; add --sweep START:STOP:COUNT')
        row = static_row(boom, angles, loads)
        print_result(row, _static_text(boom, row), arguments.format)
        return
    if not arguments.degrees and np.abs(arguments.sweep).max() > 2.0 * np.pi:
        raise InputError('--sweep [rad], allowed: [-2 pi, 2 pi]; add --degrees for degrees')
    first = np.radians(arguments.sweep) if arguments.degrees else arguments.sweep
    rows = [static_row(boom, np.append(angle, angles[1:]), loads) for angle in first]
    if arguments.csv is not None:
        names = ('force', 'strain', 'p_head', 'p_rod')
        numbered = [f'{name}_{i + 1}' for name in names for i in range(boom.size)]
        values = [
            [
                row['angles'][0],
                *row['tip'],
                *row['force'],
                *row['strain'],
                *row['head_pressure'],
                *row['rod_pressure'],
            ]
            for row in rows
        ]
        write_csv(arguments.csv, ('phi_1', 'tip_x', 'tip_z', *numbered), np.array(values))
    if arguments.plot is not None:
        from longreach_boom.figures import draw_statics

        draw_statics(arguments.plot, boom, first, rows)
    head = ['phi_1 [deg]', 'tip z [m]']
    head += [f'F_{i + 1}/(p_s A_1)' for i in range(boom.size)]
    head += [f'strain_{i + 1} [1e-6]' for i in range(boom.size)]
    cells = [
        [
            math.degrees(row['angles'][0]),
            row['tip'][1],
            *row['force_share'],
            *(1e6 * s for s in row['strain']),
        ]
        for row in rows
    ]
    print_result({'rows': rows}, table(head, cells), arguments.format)


def _static_text(boom: BoomParameters, row: dict[str, Any]) -> str:
    """Return one static equilibrium as text."""
    head = (
        'cylinder',
        'force [kN]',
        'force/(p_s A_1)',
        'head [bar]',
        'rod [bar]',
        'tip deflection [m]',
        'strain [1e-6]',
    )
    rows = [
        (
            cylinder.name,
            row['force'][i] / 1e3,
            row['force_share'][i],
            row['head_pressure'][i] / 1e5,
            row['rod_pressure'][i] / 1e5,
            row['deflection'][i],
            row['strain'][i] * 1e6,
        )
        for i, cylinder in enumerate(boom.cylinders)
    ]
    x, z = row['tip']
    text = table(head, rows) + f'\n\ntip of the boom: x = {x:.4f} m, z = {z:.4f} m'
    for name in row['beyond_supply']:
        text += f'\n{name} needs more than the supply pressure: it cannot lift this'
    for name in row['beyond_relief']:
        text += f'\n{name} carries more than its relief valve holds: it gives way'
    return text


def _run_basis(arguments: argparse.Namespace) -> None:
    """Run ``basis``."""
    check_files(arguments)
    boom = boom_of(arguments)
    if arguments.plot is not None:
        from longreach_boom.figures import draw_basis

        draw_basis(arguments.plot, boom)
    rows = []
    for beam, basis in zip(boom.beams, boom_bases(boom), strict=True):
        L = beam.length
        rows.append(
            {
                'beam': beam.name,
                'fit_error': basis.fit_error,
                'tip_slopes': basis.at(L, 1).tolist(),
            }
        )
    head = ('beam', 'error of the fit', "eta'(L) [1/m]")
    cells = [
        (row['beam'], row['fit_error'], ' '.join(f'{s:.6f}' for s in row['tip_slopes']))
        for row in rows
    ]
    print_result(
        {'basis': boom.ritz.basis, 'order': boom.ritz.order, 'beams': rows},
        table(head, cells),
        arguments.format,
    )
