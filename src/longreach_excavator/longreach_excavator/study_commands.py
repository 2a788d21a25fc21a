"""Subcommands of ``longreach excavator`` about measured motions and measured digging."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from longreach_dynamics.errors import InputError, LongreachError
from longreach_excavator import inverse as loads
from longreach_excavator.arguments import (
    add_digging,
    add_excavator,
    digging_excavator,
    digging_scenario,
    say,
)
from longreach_excavator.cohesion import (
    BOUNDS,
    STEEL,
    CohesionFit,
    Measurements,
    fit_cohesion,
    read_measurements,
)
from longreach_excavator.machine import STEP
from longreach_excavator.parameters import ExcavatorParameters, load_excavator
from longreach_excavator.scenario import FIXED_DEPTHS, Scenario, load_scenario
from longreach_tools.arguments import finite, positive
from longreach_tools.machine_command import check_files
from longreach_tools.options import add_results
from longreach_tools.output import print_result, summary_table, table, write_csv

# Prefixes of the columns that are shown in the table.
_SHOWN = ('pin_force_', 'force_l', 'force_p', 'power_')
# Arguments that a scenario replaces, with their defaults.
_REPLACED = {'mode': 'hydraulic', 'pose': 'dig', 'forces': None, 'depth': 'swing', 'held': ()}


def configure_studies(commands: Any) -> None:
    """Add these subcommands to those of ``longreach excavator``."""
    inverse = commands.add_parser(
        'inverse', help='forces of cylinders, rods and pins in a prescribed motion'
    )
    inverse.add_argument(
        '--motion',
        metavar='FILE.csv',
        type=Path,
        required=True,
        help='time, theta_2 to theta_4 [rad] (or _deg), and if known omega_2 .., alpha_2 ..,'
        ' force_x, force_z on the tooth, soil_moment about it, bucket_mass in the bucket; what dig'
        ' --csv writes will do',
    )
    inverse.add_argument(
        '--cutoff',
        type=positive,
        help='cut-off frequency of the filter for measured angles [Hz] (default: no filter)',
    )
    inverse.add_argument(
        '--soil',
        choices=loads.SOIL_SOURCES,
        default='file',
        help="force on the tooth: of the file, with its moment and bucket mass, by the soil's law,"
        ' or none (default: file)',
    )
    inverse.add_argument(
        '--surface',
        type=finite,
        help="height of the soil over the boom's foot [m]"
        " (default: the bucket's edge in the first row)",
    )
    inverse.add_argument(
        '--depth',
        choices=FIXED_DEPTHS,
        default='surface',
        help='with --soil law (default: surface)',
    )
    add_excavator(inverse)
    add_results(inverse, 'a table of all rows', 'cylinders, rods and joints over time')
    inverse.set_defaults(run=_run_inverse)

    cohesion = commands.add_parser(
        'cohesion', help='estimate the cohesion from measured rod forces or a final pose'
    )
    cohesion.add_argument(
        '--data',
        metavar='FILE.csv',
        type=Path,
        required=True,
        help='time and any of force_lk, force_pk [N], strain_lk, strain_pk, theta_2 .. [rad]'
        ' (or _deg), length_boom .. [m]; one row without time: the end of the digging',
    )
    add_digging(cohesion, 'of the digging, where the data have no time [s] (default: 7)')
    cohesion.add_argument(
        '--scenario',
        metavar='SCENARIO.yaml',
        type=Path,
        help='scenario of the measurement, instead of --pose, --mode, --forces, --depth and'
        ' --held',
    )
    cohesion.add_argument('--lowest', type=positive, default=BOUNDS[0], help='lower bound [Pa]')
    cohesion.add_argument('--highest', type=positive, default=BOUNDS[1], help='upper bound [Pa]')
    cohesion.add_argument(
        '--noise',
        metavar='COLUMN=VALUE',
        type=_noise,
        action='append',
        default=[],
        help='standard deviation of a column, in its unit, for each one (default: estimated; of'
        ' a single row 2 kN, 0.5 deg, 5 mm)',
    )
    cohesion.add_argument(
        '--rod-area',
        type=positive,
        help='A of F = A E eps (5.6): cross-section of the rod with the strain gauge; where two'
        ' rods are side by side, of both [m^2]',
    )
    cohesion.add_argument(
        '--youngs-modulus',
        type=positive,
        default=STEEL,
        help=f"Young's modulus of the rod [Pa] (default: {STEEL:g})",
    )
    add_results(cohesion, 'measured and fitted columns', 'the fit, and how well values fit')
    cohesion.set_defaults(run=_run_cohesion)


def _run_inverse(arguments: argparse.Namespace) -> None:
    """Run ``inverse``."""
    check_files(arguments)
    excavator = load_excavator(arguments.file)
    motion = loads.read_motion(arguments.motion, arguments.cutoff)
    result = loads.inverse(excavator, motion, arguments.soil, arguments.surface, arguments.depth)
    if arguments.csv is not None:
        write_csv(arguments.csv, result.columns.names, result.table)
    if arguments.plot is not None:
        from longreach_excavator.figures import draw_inverse

        draw_inverse(arguments.plot, result)
    pins = tuple(f'pin_{name}' for name in 'abcdefijklp')
    rows = [
        (e.name, e.unit, e.lowest, e.lowest_time, e.highest, e.highest_time)
        for e in result.extremes()
        if e.name in pins or e.name.startswith(_SHOWN)
    ]
    head = ('load', 'unit', 'lowest', 'at [s]', 'highest', 'at [s]')
    print_result(result.summary(), table(head, rows), arguments.format)
    if arguments.soil == 'law' and arguments.surface is None:
        say("the soil begins at the bucket's edge in the first row; --surface puts it elsewhere")
    supply = excavator.oil.supply_pressure
    for cylinder in excavator.cylinders:
        force = result.column(f'force_{cylinder.name}')
        # The supply against an empty other side.
        if force.max() > supply * cylinder.head_area or force.min() < -supply * cylinder.rod_area:
            say(f'{cylinder.name} needs more than the supply pressure of {supply:g} Pa')


def _noise(text: str) -> tuple[str, float]:
    """Return column and value of ``--noise``."""
    name, _, value = text.partition('=')
    try:
        return name, positive(value)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f'{text!r}, allowed: such as force_lk=1500') from error


def _run_cohesion(arguments: argparse.Namespace) -> None:
    """Run ``cohesion``."""
    check_files(arguments)
    excavator = digging_excavator(arguments)
    data = read_measurements(arguments.data, arguments.rod_area, arguments.youngs_modulus)
    if arguments.scenario is not None:
        _check_scenario_alone(arguments)
        scenario = load_scenario(arguments.scenario, excavator, STEP)
    else:
        scenario = digging_scenario(arguments)
    bounds = (arguments.lowest, arguments.highest)
    fit = fit_cohesion(excavator, scenario, data, bounds, dict(arguments.noise) or None)
    if arguments.csv is not None:
        _write_fit(arguments.csv, fit)
    if arguments.plot is not None:
        from longreach_excavator.figures import draw_cohesion

        draw_cohesion(arguments.plot, fit)
    summary = fit.summary()
    residuals = summary['residuals']
    summary |= _other_depth(excavator, scenario, data, bounds, dict(arguments.noise) or None)
    shown = {name: value for name, value in summary.items() if name != 'residuals'}
    shown |= {f'rms of {name}': residual['rms'] for name, residual in residuals.items()}
    units = {'cohesion_pa': 'Pa', 'standard_error_pa': 'Pa', 'sweep_deg': 'deg'}
    units |= {name: 'Pa' for name in summary if name.startswith('cohesion_with_depth_')}
    units |= {f'rms of {name}': residual['unit'] for name, residual in residuals.items()}
    print_result(summary, summary_table(shown, units), arguments.format)


def _other_depth(
    excavator: ExcavatorParameters, scenario: Scenario, data: Measurements, *rest: Any
) -> dict[str, Any]:
    """Return which depth a fit has used, and the cohesion of a fit with the other one."""
    if scenario.mode == 'thesis':
        return {'depth': scenario.depth}
    other = 'surface' if scenario.depth == 'swing' else 'swing'
    try:
        fit = fit_cohesion(excavator, scenario.replace(depth=other), data, *rest)
    except LongreachError as error:
        say(f'with depth: {other} there is no fit: {error}')
        return {'depth': scenario.depth, f'cohesion_with_depth_{other}_pa': None}
    return {'depth': scenario.depth, f'cohesion_with_depth_{other}_pa': fit.cohesion}


def _check_scenario_alone(arguments: argparse.Namespace) -> None:
    """Raise InputError for arguments that a scenario would silently replace."""
    for name, usual in _REPLACED.items():
        if getattr(arguments, name) != usual:
            raise InputError(
                f'--{name} {getattr(arguments, name)} with --scenario {arguments.scenario},'
                ' allowed: one of them'
            )


def _write_fit(file: Path, fit: CohesionFit) -> None:
    """Write measured and fitted columns side by side."""
    names: tuple[str, ...] = ()
    columns = []
    if fit.data.times is not None:
        names, columns = ('time',), [fit.data.times]
    for k, name in enumerate(fit.data.columns):
        names += (f'{name}_measured', f'{name}_fitted')
        columns += [fit.data.values[:, k], fit.fitted[:, k]]
    write_csv(file, names, np.stack(columns, axis=1))
