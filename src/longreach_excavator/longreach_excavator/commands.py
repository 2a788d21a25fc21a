"""The excavator's own subcommands: digging, poses, loads of a motion, breakout, cohesion."""

from __future__ import annotations

import argparse
import functools
from typing import Any

import numpy as np

from longreach_dynamics.errors import InputError, LongreachError, named
from longreach_dynamics.kinematics import solve_pose
from longreach_dynamics.tables import read_table
from longreach_excavator import figures
from longreach_excavator import inverse as loads
from longreach_excavator.breakout import BREAKOUTS, PINS, breakout, standing
from longreach_excavator.cohesion import BOUNDS, fit_cohesion
from longreach_excavator.columns import COLUMNS
from longreach_excavator.forces import MEASURED_TIME, agreement, printed_forces
from longreach_excavator.kinematics import pin_places
from longreach_excavator.linkage import CYLINDERS
from longreach_excavator.measurements import STEEL, Measurements, read_measurements
from longreach_excavator.parameters import ExcavatorParameters
from longreach_excavator.scenario import DEPTHS, MODES, Scenario, dig_scenario
from longreach_excavator.spec import EXCAVATOR, ExcavatorOptions
from longreach_excavator.step_study import step_study
from longreach_tools.arguments import (
    add_common,
    check_unused,
    finite,
    not_negative,
    numbers,
    positive,
)
from longreach_tools.cli import say
from longreach_tools.machine_command import (
    add_scenario,
    add_study,
    case_of,
    check_files,
    machine_of,
    options_of,
    run_scenario,
    scenario_with,
)
from longreach_tools.options import add_results, pose_of, radians_of
from longreach_tools.output import add_format, report_study, summary_table, table

# Cylinders that carry the bucket's joint.
_STANDING = CYLINDERS[:2]
_LITRES_PER_MINUTE = 1e-3 / 60.0  # [m^3/s]
# Nearer to the end of its stroke a measured piston may stand at the stop [m].
_STOP = 1e-3
# Prefixes of the columns in the table of ``inverse``.
_SHOWN = ('pin_force_', 'force_l', 'force_p', 'power_')


def add_studies(commands: Any) -> None:
    """Add the subcommands that only an excavator has."""
    add = functools.partial(add_study, EXCAVATOR, commands)
    dig = add('dig', _run_dig, 'turn the bucket through the soil', ())
    _add_digging(dig)
    add_results(dig, 'a table of all rows', 'figures 5.17 to 5.25 of the thesis')
    _add_inverse(add('inverse', _run_inverse, 'forces of cylinders, rods, pins in a motion'))
    _add_cohesion(add('cohesion', _run_cohesion, 'cohesion from rod forces or a final pose'))
    forces = add(
        'forces', _run_forces, 'cylinder forces of a dig and the measured (5.8) to (5.10)'
    )
    _add_soil(forces)
    add_results(forces, 'computed and measured forces', 'both over time')
    steps = add('steps', _run_steps, 'force in A by cohesions and step sizes (figures 5.33, 5.34)')
    add_results(steps, 'cohesion, step, time and force of all rows', 'the forces over time')
    out = add('breakout', _run_breakout, 'breakout forces of bucket and arm, and pin loads')
    out.add_argument('--pose', metavar='NAME', default='dig', help='of the other joints')
    add_results(out, 'both strokes; column arm: 1 or 0: the bucket', 'forces, loads of joints')
    _add_pose(add('pose', _run_pose, 'lengths, levers and forces of a pose at rest'))


def _sets_soil(arguments: argparse.Namespace, prefix: str = 'soil.') -> bool:
    """Return whether ``--set`` gives values of the soil, beside the place of the edge."""
    paths = [text.partition('=')[0] for text in getattr(arguments, 'set', ())]
    others = (path for path in paths if path != 'soil.sweep_radius')
    return any(path.startswith(prefix) or prefix.startswith(f'{path}.') for path in others)


def _say(text: str) -> None:
    """Print a line beside the result, on stderr."""
    say(f'longreach excavator: {text}')


# --- digging ----------------------------------------------------------------------------------


def _add_digging(parser: argparse.ArgumentParser) -> None:
    """Add the options of digging."""
    add = parser.add_argument
    add(
        '--mode',
        choices=MODES,
        default='hydraulic',
        help='hydraulic: valves and oil; printed: prescribed forces; thesis: prescribed forces,'
        ' no piston friction, soil force in the direction phi_1',
    )
    add('--flow', type=positive, help="of the bucket's open valve [L/min]; mode hydraulic only")
    add(
        '--held',
        action='store_const',
        const=_STANDING,
        help="lock boom and arm, so that the bucket's joint stands, as (4.1) assumes; mode"
        ' hydraulic only',
    )
    add('--pose', metavar='NAME', help='initial pose of the file (default: dig)')
    _add_soil(parser)
    add_common(parser, '--duration', help='of the run (default: of the scenario)')


def _add_soil(parser: argparse.ArgumentParser) -> None:
    """Add cohesion and depth."""
    text = 'of the soil [Pa] (default: that of the file)'
    add_common(parser, '--cohesion', type=not_negative, help=text)
    _add_depth(parser, None)


def _add_depth(parser: argparse.ArgumentParser, default: str | None) -> None:
    """Add ``--depth``."""
    text = (
        "swing: as printed in (4.1), as if the bucket's joint were at rest; surface: below the"
        " soil's surface; terrain: of the tooth below ground that is cut, carried and dumped"
        ' (default: swing; of cohesion that of the scenario, of inverse surface)'
    )
    add_common(parser, '--depth', default, choices=DEPTHS, help=text)


def _run_dig(arguments: argparse.Namespace) -> int:
    a, excavator = arguments, machine_of(EXCAVATOR, arguments, has_scenario=True)
    if a.mode != 'hydraulic':
        check_unused(arguments, 'with --mode hydraulic', 'flow')
    if a.flow is not None:
        with named(f'--flow {a.flow:g} L/min: '):
            excavator = excavator.with_flow('bucket', a.flow * _LITRES_PER_MINUTE)
    given = {name: getattr(a, name) for name in ('mode', 'cohesion', 'pose', 'depth', 'held')}
    digging = dig_scenario(**{name: value for name, value in given.items() if value is not None})
    scenario = scenario_with(EXCAVATOR, arguments, excavator, digging, **given)
    options = options_of(arguments, ExcavatorOptions)
    if arguments.sample_time is None and arguments.mode != 'hydraulic':
        # With prescribed forces the sweep takes 0.125 s.
        options = options.replace(sample_time=options.step)
    return run_scenario(EXCAVATOR, arguments, excavator, scenario, options)


def _run_forces(arguments: argparse.Namespace) -> None:
    excavator = machine_of(EXCAVATOR, arguments)
    digging = dig_scenario(
        'hydraulic', arguments.cohesion, MEASURED_TIME, depth=arguments.depth or 'swing'
    )
    scenario = scenario_with(EXCAVATOR, arguments, excavator, digging)
    run = EXCAVATOR.simulate(excavator, scenario, ExcavatorOptions())
    run.check()
    times = run.column('time')
    computed = run.stack([f'pin_force_{name}' for name in CYLINDERS])
    measured = printed_forces().at(times)
    rows = {
        name: agreement(times, computed[:, k], measured[:, k]) for k, name in enumerate(CYLINDERS)
    }
    head = (
        'cylinder',
        'RMS of the difference [%]',
        'opposite sign [s]',
        'correlation',
        f'computed / measured at {0.5 * MEASURED_TIME:g} s',
    )
    shown = [
        (name, f'{100.0 * a.rms:.0f}', *(f'{value:.2f}' for value in a[1:]))
        for name, a in rows.items()
    ]
    report_study(
        arguments,
        {name: a._asdict() for name, a in rows.items()},
        table(head, shown),
        ('time', *(f'{kind}_{name}' for kind in ('computed', 'measured') for name in CYLINDERS)),
        np.column_stack([times, computed, measured]),
        lambda file: figures.draw_forces(file, times, computed, measured),
    )
    for warning in run.warnings():
        _say(warning)


def _run_steps(arguments: argparse.Namespace) -> None:
    excavator = machine_of(EXCAVATOR, arguments)
    if _sets_soil(arguments, 'soil.cohesion'):
        raise InputError('--set soil.cohesion, allowed: the cohesions of figures 5.33 and 5.34')
    cases = step_study(excavator)
    rows = [
        np.column_stack([np.tile((c.cohesion, c.step), (len(c.times), 1)), c.times, c.force])
        for c in cases
    ]
    found = [case.summary() for case in cases]
    shown = [['-' if value is None else value for value in one.values()] for one in found]
    report_study(
        arguments,
        found,
        table(list(found[0]), shown),
        ('cohesion', 'step', 'time', 'force_a'),
        np.concatenate(rows),
        lambda file: figures.draw_steps(file, cases),
    )


# --- without motion ---------------------------------------------------------------------------


def _run_breakout(arguments: argparse.Namespace) -> None:
    excavator = machine_of(EXCAVATOR, arguments)
    pose = excavator.pose(arguments.pose)
    found = [breakout(excavator, name, pose) for name in BREAKOUTS]
    rows = []
    for b in found:
        arm = np.full(len(b.stroke), float(b.cylinder == 'arm'))
        rows.append(np.column_stack([arm, b.stroke, b.force, b.loads.table[:, 1:]]))
    summary = {b.cylinder: b.summary() for b in found}
    head = ('cylinder', 'breakout [kN]', 'at piston [m]', *(f'pin {p} [kN]' for p in PINS))
    shown = [
        (
            name,
            f'{1e-3 * one["force_n"]:.1f}',
            f'{one["piston_m"]:.3f}',
            *(f'{1e-3 * one["pins_n"][p]:.0f}' for p in PINS),
        )
        for name, one in summary.items()
    ]
    report_study(
        arguments,
        summary,
        table(head, shown),
        ('arm', 'stroke', 'breakout_force', *found[0].loads.columns.names[1:]),
        np.concatenate(rows),
        lambda file: figures.draw_breakout(file, found),
    )
    supply = excavator.oil.supply_pressure
    for name, one in summary.items():
        for cylinder in excavator.cylinders:
            held = one['holding_n'][cylinder.name]
            most = supply * (cylinder.head_area if held > 0.0 else cylinder.rod_area)
            if abs(held) > most:
                _say(
                    f'for the breakout of the {name} the {cylinder.name} would have to hold'
                    f' {1e-3 * abs(held):.0f} kN, the supply pressure gives {1e-3 * most:.0f} kN'
                )


def _add_pose(pose: argparse.ArgumentParser) -> None:
    """Add the options of ``pose``."""
    add = pose.add_mutually_exclusive_group().add_argument
    text = 'pose of the file, or theta_2,theta_3,theta_4 [rad] (default: the first)'
    add('--pose', metavar='POSE|RAD,..', help=text)
    add(
        '--tip',
        type=numbers,
        metavar='X,Z[,ATTITUDE]',
        help='position of the tooth [m] and, if given, angle of the bucket to the horizontal'
        ' [rad]: the pose nearest to the first one of the file',
    )
    add_common(pose, '--degrees', False)
    add_format(pose)
    pose.add_argument('--plot', help='the machine with its pins')


def _run_pose(arguments: argparse.Namespace) -> None:
    excavator = machine_of(EXCAVATOR, arguments)
    q = _angles(arguments, excavator)
    row = standing(excavator, q)
    columns = {
        'joint [deg]': row['theta_deg'],
        'stroke allows': ['{:.1f} to {:.1f}'.format(*limits) for limits in row['range_deg']],
        'length [m]': row['length_m'],
        'piston [m]': row['piston_m'],
        'lever [m]': row['lever_m'],
        'weight [kN]': [1e-3 * force for force in row['force_n']],
        'head [bar]': [1e-5 * pressure for pressure in row['p_head_pa']],
        'rod [bar]': [1e-5 * pressure for pressure in row['p_rod_pa']],
    }
    x, z = row['tip_m']
    text = table(('cylinder', *columns), zip(CYLINDERS, *columns.values(), strict=True))
    text += f'\n\ntooth: x = {x:.4f} m, z = {z:.4f} m'
    report_study(arguments, row, text, draw=lambda file: figures.draw_pose(file, excavator, q))


def _angles(arguments: argparse.Namespace, excavator: ExcavatorParameters) -> np.ndarray:
    """Return the joint angles [rad] of ``--pose`` or ``--tip``."""
    angles = pose_of(arguments, excavator, len(CYLINDERS))
    if arguments.tip is None:
        return angles
    target = np.array(arguments.tip)
    if target.size not in (2, 3):
        raise InputError(f'--tip has {target.size} numbers, allowed: x,z or x,z,attitude')
    # With --degrees the attitude was given in another unit than that of the error.
    what = 'tooth' if target.size == 2 else 'tooth and attitude [m, m, rad]'
    if target.size == 3:
        target[2:] = radians_of(target[2:], arguments.degrees, '--tip: attitude')

    def tooth(q: np.ndarray) -> np.ndarray:
        place = pin_places(excavator, q)[-1]
        return np.array([place.real, place.imag, q.sum()])[: target.size]

    return solve_pose(tooth, target, excavator.joint_limits(), angles, what)


# --- measurements -----------------------------------------------------------------------------


def _add_inverse(inverse: argparse.ArgumentParser) -> None:
    """Add the options of ``inverse``."""
    add = inverse.add_argument
    add(
        '--motion',
        required=True,
        help='time, theta_2 to theta_4 [rad] (or _deg), and if known omega_2 .., alpha_2 ..,'
        ' force_x, force_z on the tooth, soil_moment about it, bucket_mass in the bucket; what dig'
        ' --csv writes will do',
    )
    add('--cutoff', type=positive, help='of the filter for angles [Hz] (default: no filter)')
    add(
        '--soil',
        choices=loads.SOIL_SOURCES,
        default='file',
        help="force on the tooth: of the file, by the soil's law, or none",
    )
    add('--surface', type=finite, help="height of the soil [m] (default: the edge's at first)")
    _add_depth(inverse, None)
    add_results(inverse, 'a table of all rows', 'cylinders, rods and joints over time')


def _run_inverse(arguments: argparse.Namespace) -> None:
    excavator = machine_of(EXCAVATOR, arguments)
    if arguments.soil != 'law' and _sets_soil(arguments):
        raise InputError(f'--set soil., allowed with --soil law, here {arguments.soil}')
    table_read = read_table(arguments.motion)
    motion = loads.motion_from(table_read, arguments.cutoff)
    depth = arguments.depth or 'surface'
    result = loads.inverse(excavator, motion, arguments.soil, arguments.surface, depth)
    # What `dig --csv` writes, whose ports and rail depend on the machine, is no mistake.
    known = {*loads.READ, *COLUMNS.names, *result.columns.names}
    others = [name for name in table_read if name.removesuffix('_deg') not in known]
    if unused := [name for name in others if not name.startswith(('port_', 'rail_'))]:
        _say(f'{arguments.motion}: not used: {", ".join(unused)}; used: {", ".join(loads.READ)}')
    given = {'--surface': arguments.surface, '--depth': arguments.depth}
    if arguments.soil != 'law' and (names := [n for n, v in given.items() if v is not None]):
        _say(f'{" and ".join(names)}: only for the column depth, as --soil is {arguments.soil}')
    pins = tuple(f'pin_{name}' for name in 'abcdefijklp')
    rows = [
        (name, *extreme.values())
        for name, extreme in result.extremes().items()
        if name in pins or name.startswith(_SHOWN)
    ]
    report_study(
        arguments,
        result.summary(),
        table(('load', 'unit', 'lowest', 'at [s]', 'highest', 'at [s]'), rows),
        result.columns.names,
        result.table,
        lambda file: figures.draw_inverse(file, result),
    )
    if arguments.soil == 'law' and arguments.surface is None:
        _say("the soil begins at the bucket's edge in the first row; --surface puts it elsewhere")
    if arguments.soil == 'file' and motion.tooth_forces is None:
        _say(f'{arguments.motion} has no force_x, force_z: without soil')
    supply = excavator.oil.supply_pressure
    for cylinder in excavator.cylinders:
        force, length = (result.column(f'{of}_{cylinder.name}') for of in ('force', 'length'))
        # The supply against an empty other side; at the end of a stroke its stop bears the load.
        pushes = (force > supply * cylinder.head_area) & (length > cylinder.retracted + _STOP)
        pulls = (force < -supply * cylinder.rod_area) & (length < cylinder.extended - _STOP)
        if (pushes | pulls).any():
            _say(f'{cylinder.name} needs more than the supply pressure of {supply:g} Pa')


def _add_cohesion(cohesion: argparse.ArgumentParser) -> None:
    """Add the options of ``cohesion``."""
    add = cohesion.add_argument
    add(
        '--data',
        required=True,
        help='time and any of force_lk, force_pk [N], strain_lk, strain_pk, theta_2 .. [rad]'
        ' (or _deg), length_boom .. [m]; one row without time: the end of the digging',
    )
    add_scenario(EXCAVATOR, cohesion)
    _add_depth(cohesion, None)
    add('--lowest', type=positive, default=BOUNDS[0], help='lower bound [Pa]')
    add('--highest', type=positive, default=BOUNDS[1], help='upper bound [Pa]')
    add(
        '--rod-area',
        type=positive,
        help='A of F = A E eps (5.6): cross-section of the rod with the strain gauge; where two'
        ' rods are side by side, of both [m^2]',
    )
    add('--youngs-modulus', type=positive, help=f'E [Pa] (default: {STEEL:g})')
    add_results(cohesion, 'measured and fitted columns', 'the fit, and how well values fit')


def _run_cohesion(arguments: argparse.Namespace) -> None:
    excavator, scenario, _ = case_of(EXCAVATOR, arguments, depth=arguments.depth)
    check_files(arguments, *filter(None, [scenario.forces]))
    if arguments.depth is not None:
        scenario = scenario.replace(depth=arguments.depth)
    if not {'strain_lk', 'strain_pk'} & read_table(arguments.data, None).keys():
        allowed = 'with columns strain_lk or strain_pk'
        check_unused(arguments, allowed, 'rod_area', 'youngs_modulus')
    data = read_measurements(arguments.data, arguments.rod_area, arguments.youngs_modulus or STEEL)
    bounds = (arguments.lowest, arguments.highest)
    fit = fit_cohesion(excavator, scenario, data, bounds)
    summary = fit.summary()
    residuals = summary['residuals']
    summary |= _other_depth(excavator, scenario, data, bounds)
    for warning in fit.estimate.warnings:
        _say(warning)
    shown = {n: value for n, value in summary.items() if n not in ('residuals', 'warnings')}
    shown |= {f'rms of {name}': residual['rms'] for name, residual in residuals.items()}
    units = {name: 'Pa' for name in summary if name.endswith('_pa')} | {'sweep_deg': 'deg'}
    units |= {f'rms of {name}': residual['unit'] for name, residual in residuals.items()}
    names, rows = fit.rows()
    text, draw = summary_table(shown, units), lambda file: figures.draw_cohesion(file, fit)
    report_study(arguments, summary, text, names, rows, draw)


def _other_depth(
    excavator: ExcavatorParameters,
    scenario: Scenario,
    data: Measurements,
    bounds: tuple[float, float],
) -> dict[str, Any]:
    """Return which depth a fit has used, and the cohesion of a fit with the other one."""
    if scenario.mode == 'thesis':
        return {'depth': scenario.depth}
    other = 'surface' if scenario.depth == 'swing' else 'swing'
    name = f'cohesion_with_depth_{other}_pa'
    try:
        fit = fit_cohesion(excavator, scenario.replace(depth=other), data, bounds)
    except LongreachError as error:
        _say(f'with depth: {other} there is no fit: {error}')
        return {'depth': scenario.depth, name: None}
    return {'depth': scenario.depth, name: fit.cohesion}
