"""Studies of the boom: statics and modes, the release of a load, what a data logger records."""

from __future__ import annotations

import argparse
import functools
from typing import Any

import numpy as np

from longreach_boom import figures
from longreach_boom.model import Load, boom_bases
from longreach_boom.modes import ABOUT, PISTONS, natural_modes
from longreach_boom.parameters import BoomParameters
from longreach_boom.scenario import HangingLoad, Scenario
from longreach_boom.sensors import load_sensors
from longreach_boom.spec import BOOM, BoomOptions
from longreach_boom.statics import equilibrium, static_row
from longreach_dynamics.errors import InputError, LongreachError, check_count
from longreach_dynamics.kinematics import joint_places, solve_pose
from longreach_tools.arguments import add_common, count, not_negative, numbers, sweep
from longreach_tools.cli import say
from longreach_tools.machine_command import (
    add_study,
    case_of,
    machine_of,
    options_of,
    run_scenario,
    scenario_with,
)
from longreach_tools.options import add_results, pose_of, radians_of
from longreach_tools.output import add_format, report_study, table, write_csv

# Tolerance of the tip position [m], and largest number of corrections of the sag.
_CLOSE, _MOST_ROUNDS = 1e-5, 50
_WHOLE = 'of the run (default: of the scenario)'


def add_studies(commands: Any) -> None:
    """Add the subcommands that only a boom has."""
    study = functools.partial(add_study, BOOM, commands)
    modes = study('modes', _run_modes, 'natural frequencies, compared with finite elements')
    _add_pose(modes, 'sprawled')
    modes.add_argument('--pistons', choices=PISTONS, default='locked')
    modes.add_argument('--about', choices=ABOUT, default='equilibrium', help='state of rest')
    text = 'number of modes (default: 6)'
    modes.add_argument('--count', metavar='N', type=count(1_000_000), help=text)
    add_format(modes)
    modes.add_argument('--plot', help='mode shapes')

    statics = study('statics', _run_statics, 'forces, pressures and deflections at rest')
    _add_pose(statics, 'sprawled')
    statics.add_argument(
        '--sweep',
        metavar='START:STOP:COUNT',
        type=sweep,
        help='angles of the first joint, instead of the one in --pose, in the same unit',
    )
    add_results(statics, 'a table of all rows', 'figure 12 of the paper; needs --sweep')

    basis = study('basis', _run_basis, 'Ritz functions of the beams')
    add_format(basis)
    basis.add_argument('--plot', help='figure 11 of the paper')

    release = study('release', _run_release, 'sudden release of a load', ())
    _add_pose(release, 'site', load=90.0)
    add_common(release, '--duration', help=_WHOLE)
    text = 'friction of the pistons (default: on)'
    release.add_argument('--friction', choices=('on', 'off'), help=text)
    add_results(release, 'a table of all rows', 'figures 13 and 14 of the paper')

    text = 'what a data logger would record of a scenario, with errors of sensors'
    measure = study('measure', _run_measure, text)
    measure.description = (
        'Rows have the time of measurement. Delay and jitter of a sensor file do not show: they'
        ' are when messages come, whose stamps are that time.'
    )
    measure.add_argument('scenario')
    add_common(measure, '--duration', help=_WHOLE)
    text = 'sensor file, or default, or typical (by default)'
    measure.add_argument('--sensors', default='typical', help=text)
    measure.add_argument('--seed', help="of the noise (default: the sensor file's)")
    measure.add_argument('--rate', default=20.0, help='rows per second')
    measure.add_argument('--csv', required=True, help='signals as columns')


# --- boom, pose and load ----------------------------------------------------------------------


def _add_pose(parser: argparse.ArgumentParser, pose: str, load: float = 0.0) -> None:
    """Add pose and load."""
    parser.set_defaults(usual_pose=pose, usual_load=load)
    text = (
        'a pose of the boom file, or joint angles a,b,.. [rad] (default: sprawled, of release'
        ' site, or the first of the file)'
    )
    add_common(parser, '--pose', metavar='POSE|RAD,..', help=text)
    text = 'position of the tip of the bent boom [m]; selects the pose nearest to --pose'
    add_common(parser, '--tip', type=numbers, metavar='X,Z', help=text)
    add_common(parser, '--degrees', False)
    text = 'mass at the tip [kg] (default: 0, of release 90)'
    add_common(parser, '--load', type=not_negative, help=text)


def _hanging(arguments: argparse.Namespace) -> tuple[HangingLoad, ...]:
    """Return the load of the arguments."""
    load = arguments.usual_load if arguments.load is None else arguments.load
    return (HangingLoad(mass=load),) if load else ()


def _loads(arguments: argparse.Namespace, boom: BoomParameters) -> tuple[Load, ...]:
    """Return the load of the arguments for the model."""
    return tuple(item.on(boom, '--load') for item in _hanging(arguments))


def _angles(arguments: argparse.Namespace, boom: BoomParameters) -> np.ndarray:
    """Return the joint angles [rad] of ``--pose``, or of the nearest pose for ``--tip``."""
    angles = pose_of(arguments, boom, boom.size, arguments.usual_pose)
    if arguments.tip is None:
        return angles
    check_count('--tip', arguments.tip, 2, 'x,z')
    boom.check_pose(angles)
    loads, wanted, limits = _loads(arguments, boom), np.array(arguments.tip), boom.joint_limits()
    lengths, sag = [beam.length for beam in boom.beams], np.zeros(2)

    def straight(q: np.ndarray) -> np.ndarray:
        """Return x and z of the tip without sag."""
        tip = joint_places(lengths, q)[-1]
        return np.array([tip.real, tip.imag])

    for _ in range(_MOST_ROUNDS):
        # The sag changes little between iterations.
        angles = solve_pose(straight, wanted - sag, limits, angles, 'straight tip')
        miss = equilibrium(boom, angles, loads).tip - wanted
        if np.abs(miss).max() < _CLOSE:
            return angles
        sag = sag + miss
    raise LongreachError(
        f'--tip {wanted.tolist()}: no pose of the bent boom found; start from another --pose'
    )


# --- studies ----------------------------------------------------------------------------------


def _run_modes(arguments: argparse.Namespace) -> None:
    """Run ``modes``."""
    boom = machine_of(BOOM, arguments)
    modes = natural_modes(
        boom,
        _angles(arguments, boom),
        _loads(arguments, boom),
        arguments.pistons,
        arguments.count or 6,
        arguments.about,
    )
    found = len(modes.frequencies)
    if found < (arguments.count or 0):
        raise InputError(f'--count {arguments.count}, allowed for this model: 1 to {found}')
    columns = {
        'frequencies_hz': modes.frequencies.tolist(),
        'damping_ratios': modes.damping_ratios.tolist(),
        'finite_element_hz': modes.finite_element.tolist(),
        'relative_error': modes.relative_error.tolist(),
    }
    head = ('mode', 'frequency [Hz]', 'damping', 'finite elements [Hz]', 'relative error')
    rows = [(k + 1, *row) for k, row in enumerate(zip(*columns.values(), strict=True))]
    draw = functools.partial(figures.draw_modes, modes)
    report_study(arguments, columns, table(head, rows), draw=draw)


def _run_statics(arguments: argparse.Namespace) -> None:
    """Run ``statics``."""
    boom = machine_of(BOOM, arguments)
    loads, angles = _loads(arguments, boom), _angles(arguments, boom)
    if arguments.sweep is None:
        if arguments.plot is not None or arguments.csv is not None:
            raise InputError('--csv and --plot show a sweep; add --sweep START:STOP:COUNT')
        row = static_row(boom, angles, loads)
        report_study(arguments, row, _static_text(boom, row))
        return
    first = radians_of(arguments.sweep, arguments.degrees, '--sweep')
    rows = [static_row(boom, np.append(angle, angles[1:]), loads) for angle in first]
    joints = range(1, boom.size + 1)
    families = {
        'force': 'force', 'strain': 'strain', 'p_head': 'head_pressure', 'p_rod': 'rod_pressure',
    }  # fmt: skip
    names = ('phi_1', 'tip_x', 'tip_z', *(f'{family}_{i}' for family in families for i in joints))
    values = [
        np.concatenate([row['angles'][:1], row['tip'], *(row[k] for k in families.values())])
        for row in rows
    ]
    head = ['phi_1 [deg]', 'tip z [m]', *(f'F_{i}/(p_s A_1)' for i in joints)]
    head += [f'strain_{i} [1e-6]' for i in joints]
    cells = [
        [angle, row['tip'][1], *row['force_share'], *(1e6 * s for s in row['strain'])]
        for angle, row in zip(np.degrees(first).tolist(), rows, strict=True)
    ]
    draw = functools.partial(figures.draw_statics, boom, first, rows)
    report_study(arguments, {'rows': rows}, table(head, cells), names, values, draw)


def _static_text(boom: BoomParameters, row: dict[str, Any]) -> str:
    """Return one static equilibrium as text."""
    shown = (
        ('force [kN]', 'force', 1e-3),
        ('force/(p_s A_1)', 'force_share', 1.0),
        ('head [bar]', 'head_pressure', 1e-5),
        ('rod [bar]', 'rod_pressure', 1e-5),
        ('tip deflection [m]', 'deflection', 1.0),
        ('strain [1e-6]', 'strain', 1e6),
    )
    rows = [
        (cylinder.name, *(factor * row[name][i] for _, name, factor in shown))
        for i, cylinder in enumerate(boom.cylinders)
    ]
    x, z = row['tip']
    text = table(('cylinder', *(head for head, _, _ in shown)), rows)
    text += f'\n\ntip of the boom: x = {x:.4f} m, z = {z:.4f} m'
    for name in row['beyond_supply']:
        text += f'\n{name} needs more than the supply pressure: it cannot lift this'
    for name in row['beyond_relief']:
        text += f'\n{name} carries more than its relief valve holds: it gives way'
    return text


def _run_basis(arguments: argparse.Namespace) -> None:
    """Run ``basis``."""
    boom = machine_of(BOOM, arguments)
    beams = [
        {
            'beam': beam.name,
            'fit_error': basis.fit_error,
            'tip_slopes': basis.at(beam.length, 1).tolist(),
        }
        for beam, basis in zip(boom.beams, boom_bases(boom), strict=True)
    ]
    cells = [
        (row['beam'], row['fit_error'], ' '.join(f'{slope:.6f}' for slope in row['tip_slopes']))
        for row in beams
    ]
    result = {'basis': boom.ritz.basis, 'order': boom.ritz.order, 'beams': beams}
    text = table(('beam', 'error of the fit', "eta'(L) [1/m]"), cells)
    report_study(arguments, result, text, draw=functools.partial(figures.draw_basis, boom))


def _run_release(arguments: argparse.Namespace) -> int:
    """Run ``release``."""
    options = options_of(arguments, BoomOptions)
    boom = machine_of(BOOM, arguments, has_scenario=True)
    angles = _angles(arguments, boom)
    boom.check_pose(angles)
    scenario = Scenario(
        duration=20.0,
        pose_deg=tuple(np.degrees(angles).tolist()),
        loads=_hanging(arguments),
        release=(0.0,),
        friction=arguments.friction != 'off',
    )
    pose = arguments.pose or arguments.tip
    given = {'pose': pose, 'pose_deg': pose, 'loads': arguments.load}
    scenario = scenario_with(BOOM, arguments, boom, scenario, **given, friction=arguments.friction)
    return run_scenario(BOOM, arguments, boom, scenario, options)


def _run_measure(arguments: argparse.Namespace) -> None:
    """Run ``measure``."""
    from longreach_boom.measured_runs import readings

    boom, scenario, _ = case_of(BOOM, arguments)
    sensors = load_sensors(arguments.sensors, boom.size)
    name = arguments.csv.stem
    columns = readings(boom, scenario, sensors, arguments.seed, arguments.rate, name)
    write_csv(arguments.csv, list(columns), np.stack(list(columns.values()), axis=1))
    left_out = [kind for kind in ('gyroscope', 'accelerometer') if getattr(sensors, kind)]
    if left_out:
        of = f'{" and ".join(left_out)} of --sensors {arguments.sensors}'
        say(f'longreach boom measure: {of}: not in the table')
