"""
The flexible boom of a concrete pump, Henikl et al. (2015).

Natural modes beside finite elements, static equilibrium, the sudden release of a load, scenarios,
sweeps over a parameter, and the comparison of recordings with the library.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

from longreach_boom.model import Load, boom_bases
from longreach_boom.modes import ABOUT, PISTONS, natural_modes
from longreach_boom.parameters import ROTATIONS, BoomParameters, default_file, load_boom
from longreach_boom.remote_commands import configure_remote
from longreach_boom.scenario import HangingLoad, Scenario, load_scenario
from longreach_boom.simulation import SAMPLE_TIME, STEP, Result, columns_of, simulate
from longreach_boom.statics import static_row
from longreach_dynamics.beams import BASIS_SETS
from longreach_dynamics.errors import InputError, LongreachError
from longreach_dynamics.resources import share_directory
from longreach_tools.arguments import (
    allow_lists,
    count,
    finite,
    not_negative,
    optional_file,
    positive,
)
from longreach_tools.demo import call_in_sight, prepare, remove_old_bag
from longreach_tools.output import add_format, check_output, print_result, table, write_csv

__all__ = ['SUMMARY', 'configure']

# Up to here a recording's tip and the library's are the same [m].
_SAME = 1e-9

SUMMARY = 'a flexible concrete-pump boom with hydraulics (Henikl 2015)'


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the subcommands of ``longreach boom``."""
    commands = parser.add_subparsers(required=True, metavar='COMMAND')

    modes = commands.add_parser('modes', help='natural frequencies beside finite elements')
    _add_boom(modes)
    _add_pose(modes, 'sprawled')
    modes.add_argument('--pistons', choices=PISTONS, default='locked')
    modes.add_argument('--about', choices=ABOUT, default='equilibrium', help='state of rest')
    modes.add_argument('--count', type=count(1_000_000), default=6, help='how many (default: 6)')
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
    _add_boom(statics)
    _add_pose(statics, 'sprawled')
    statics.add_argument(
        '--sweep',
        metavar='START:STOP:COUNT',
        type=_sweep,
        help='angles of the first joint in place of that in --pose, in its unit',
    )
    _add_results(statics, 'figure 12 of the paper; needs --sweep')
    statics.set_defaults(run=_run_statics)

    release = commands.add_parser('release', help='sudden release of a load')
    _add_boom(release)
    _add_pose(release, 'site', load=90.0)
    release.add_argument('--duration', type=positive, default=20.0, help='[s] (default: 20)')
    release.add_argument(
        '--friction', choices=('on', 'off'), default='on', help='of the pistons (default: on)'
    )
    _add_steps(release)
    _add_results(release, 'figures 13 and 14 of the paper')
    release.set_defaults(run=_run_release)

    run = commands.add_parser('run', help='run a scenario file')
    run.add_argument('scenario', metavar='SCENARIO.yaml', type=Path)
    _add_boom(run)
    _add_steps(run)
    _add_results(run, 'forces, strains, pistons and beam tips over time')
    run.set_defaults(run=_run_scenario)

    sweep = commands.add_parser('sweep', help='many runs, with many values of a parameter')
    sweep.add_argument('parameter', help='such as oil.bulk_modulus or beams.beam_1.loss_time')
    sweep.add_argument('values', metavar='START:STOP:COUNT', type=_sweep)
    sweep.add_argument(
        '--scenario', metavar='SCENARIO.yaml', type=Path, help='in place of the release of a load'
    )
    _add_boom(sweep)
    _add_pose(sweep, 'site', load=90.0)
    sweep.add_argument('--duration', type=positive, default=20.0, help='[s] (default: 20)')
    _add_steps(sweep)
    sweep.add_argument('--processes', type=count(1000), help='at a time (default: a core each)')
    add_format(sweep)
    sweep.add_argument('--csv', metavar='FILE', type=Path, help='one row for each value')
    sweep.set_defaults(run=_run_sweep)

    basis = commands.add_parser('basis', help='Ritz functions of the beams')
    _add_boom(basis)
    add_format(basis)
    basis.add_argument('--plot', metavar='FILE', type=Path, help='figure 11 of the paper')
    basis.set_defaults(run=_run_basis)

    urdf = commands.add_parser('urdf', help='print the robot description of a boom')
    _add_file(urdf)
    urdf.set_defaults(run=_run_urdf)

    compare = commands.add_parser('compare', help='compare a recorded run with the library')
    compare.add_argument('bag', metavar='BAG', type=Path)
    compare.add_argument(
        '--scenario', metavar='SCENARIO.yaml', type=Path, required=True, help='what was run'
    )
    compare.add_argument('--namespace', default='boom', help='of the recorded topics')
    _add_file(compare)
    add_format(compare)
    compare.set_defaults(run=_run_compare)

    configure_remote(commands)

    demo = commands.add_parser('demo', help='release over ROS: run, record, compare, draw')
    demo.add_argument('--out', metavar='DIR', type=Path, default=Path('out/demo'))
    demo.set_defaults(run=_run_demo)


# --- arguments ------------------------------------------------------------------------------


def _add_file(parser: argparse.ArgumentParser) -> None:
    """Add ``--file``, the boom."""
    parser.add_argument(
        '--file',
        metavar='BOOM.yaml',
        type=optional_file,
        help='the boom (default: a pump boom of 36 m)',
    )


def _add_boom(parser: argparse.ArgumentParser) -> None:
    """Add the boom and how its bending is described."""
    allow_lists(parser)
    _add_file(parser)
    parser.add_argument('--basis', choices=tuple(BASIS_SETS), help='Ritz functions')
    parser.add_argument('--functions', type=count(1_000_000), help='Ritz functions for each beam')
    parser.add_argument('--rotation', choices=ROTATIONS, help='rotation at a beam tip')


def _add_pose(parser: argparse.ArgumentParser, pose: str, load: float = 0.0) -> None:
    """Add pose and load."""
    parser.add_argument(
        '--pose',
        help='a pose of the boom file, or joint angles a,b,.. [rad]'
        f' (default: {pose}, or the first of the file)',
    )
    parser.set_defaults(usual_pose=pose)
    parser.add_argument('--degrees', action='store_true', help='angles are in degrees')
    parser.add_argument(
        '--load',
        type=not_negative,
        default=load,
        help=f'mass at the tip [kg] (default: {load:g})',
    )
    parser.add_argument(
        '--load-beam', default='', help='beam that it hangs on (default: the last)'
    )
    parser.add_argument(
        '--load-position', type=not_negative, help='along that beam [m] (default: its tip)'
    )


def _add_steps(parser: argparse.ArgumentParser) -> None:
    """Add lengths of steps and of intervals between rows."""
    parser.add_argument(
        '--step', type=positive, default=STEP, help=f'of the integration [s] (default: {STEP:g})'
    )
    parser.add_argument(
        '--sample-time',
        type=positive,
        default=SAMPLE_TIME,
        help=f'between rows, and of the controller [s] (default: {SAMPLE_TIME:g})',
    )


def _add_results(parser: argparse.ArgumentParser, picture: str) -> None:
    """Add what becomes of the results."""
    add_format(parser)
    parser.add_argument('--csv', metavar='FILE', type=Path, help='a table of all rows')
    parser.add_argument('--plot', metavar='FILE', type=Path, help=picture)


def _sweep(text: str) -> np.ndarray:
    """Return the numbers that START:STOP:COUNT means."""
    try:
        start, stop, number = text.split(':')
        values = np.linspace(finite(start), finite(stop), count(100_000)(number))
    except ValueError as error:
        raise argparse.ArgumentTypeError(
            f'{text!r}, allowed: START:STOP:COUNT such as -5:85:19'
        ) from error
    return values


def _boom(arguments: argparse.Namespace) -> BoomParameters:
    """Return the boom file with the description of bending that the arguments name."""
    boom = load_boom(arguments.file)
    names = ('basis', 'functions', 'rotation')
    given = {name: getattr(arguments, name, None) for name in names}
    changes = {name: value for name, value in given.items() if value is not None}
    return boom.replace(ritz=boom.ritz.replace(**changes)) if changes else boom


def _angles(arguments: argparse.Namespace, boom: BoomParameters) -> np.ndarray:
    """Return the joint angles [rad] of ``--pose``."""
    names = [pose.name for pose in boom.poses]
    text: str | None = arguments.pose
    if text is None:
        if not names:
            raise InputError('the boom file has no pose; add one to it, or give --pose a,b,..')
        text = arguments.usual_pose if arguments.usual_pose in names else names[0]
    if text in names:
        return boom.pose(text)
    try:
        angles = np.array([finite(part) for part in text.split(',')])
    except (ValueError, argparse.ArgumentTypeError) as error:
        raise InputError(
            f'--pose {text}, allowed: {", ".join(names)}, or {boom.size} angles with commas'
            ' between'
        ) from error
    if not arguments.degrees and np.abs(angles).max() > 2.0 * np.pi:
        raise InputError(
            f'--pose {text} [rad], allowed: up to a turn; if it is deg, add --degrees'
        )
    return np.radians(angles) if arguments.degrees else angles


def _hanging(arguments: argparse.Namespace) -> tuple[HangingLoad, ...]:
    """Return the load that the arguments name."""
    if arguments.load == 0.0:
        return ()
    return (
        HangingLoad(
            mass=arguments.load, beam=arguments.load_beam, position=arguments.load_position
        ),
    )


def _loads(arguments: argparse.Namespace, boom: BoomParameters) -> tuple[Load, ...]:
    """Return the same as the mechanics know it."""
    return tuple(item.on(boom, '--load') for item in _hanging(arguments))


# --- without motion -------------------------------------------------------------------------


def _run_modes(arguments: argparse.Namespace) -> None:
    """Run ``modes``."""
    check_output(plot=arguments.plot)
    boom = _boom(arguments)
    modes = natural_modes(
        boom,
        _angles(arguments, boom),
        _loads(arguments, boom),
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
    check_output(arguments.csv, arguments.plot)
    boom = _boom(arguments)
    loads = _loads(arguments, boom)
    angles = _angles(arguments, boom)
    if arguments.sweep is None:
        if arguments.plot is not None or arguments.csv is not None:
            raise InputError('--csv and --plot show a sweep; add --sweep START:STOP:COUNT')
        row = static_row(boom, angles, loads)
        print_result(row, _static_text(boom, row), arguments.format)
        return
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
    """Return one static equilibrium for people."""
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
    return text


def _run_basis(arguments: argparse.Namespace) -> None:
    """Run ``basis``."""
    check_output(plot=arguments.plot)
    boom = _boom(arguments)
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


def _run_urdf(arguments: argparse.Namespace) -> None:
    """Run ``urdf``."""
    from longreach_boom.description import robot_description

    print(robot_description(load_boom(arguments.file)))


# --- in motion ------------------------------------------------------------------------------


def _release_scenario(arguments: argparse.Namespace, boom: BoomParameters) -> Scenario:
    """Return the release of the load at time 0."""
    angles = _angles(arguments, boom)
    boom.check_pose(angles)
    return Scenario(
        duration=arguments.duration,
        pose_deg=tuple(np.degrees(angles).tolist()),
        friction=getattr(arguments, 'friction', 'on') == 'on',
        loads=_hanging(arguments),
        release=(0.0,),
    )


def _run_release(arguments: argparse.Namespace) -> None:
    """Run ``release``."""
    boom = _boom(arguments)
    scenario = _release_scenario(arguments, boom)
    _simulate(arguments, boom, scenario)


def _run_scenario(arguments: argparse.Namespace) -> None:
    """Run ``run``."""
    boom = _boom(arguments)
    _simulate(arguments, boom, load_scenario(arguments.scenario, boom, arguments.step))


def _simulate(arguments: argparse.Namespace, boom: BoomParameters, scenario: Scenario) -> None:
    """Simulate a scenario and hand out the results."""
    check_output(arguments.csv, arguments.plot)
    result = simulate(boom, scenario, arguments.step, arguments.sample_time, progress=True)
    _hand_out(arguments, result, result.summary())


def _hand_out(arguments: argparse.Namespace, result: Result, summary: dict[str, Any]) -> None:
    """Write CSV and picture where asked for, then print the summary."""
    if arguments.csv is not None:
        write_csv(arguments.csv, columns_of(result.boom), result.table)
    if arguments.plot is not None:
        from longreach_boom.figures import draw_run

        draw_run(arguments.plot, result)
    rows = [(name, _plain(value)) for name, value in summary.items()]
    print_result(summary, table(('quantity', 'value [s, m, Pa]'), rows), arguments.format)
    for name in _overloaded(result):
        print(
            f'longreach boom: {name} needs more than the supply pressure: its closed valve holds'
            ' this boom, its pump could not have lifted it',
            file=sys.stderr,
        )
    for name in result.cavitated:
        print(
            f'longreach boom: {name} ran out of oil for some time (cavitation): its pressure stood'
            ' at the vapour pressure',
            file=sys.stderr,
        )


def _overloaded(result: Result) -> list[str]:
    """Return the cylinders that begin with more than the supply pressure."""
    boom = result.boom
    return [
        cylinder.name
        for i, cylinder in enumerate(boom.cylinders)
        if max(result.column(f'{side}_{i + 1}')[0] for side in ('p_head', 'p_rod'))
        > boom.oil.supply_pressure
    ]


def _plain(value: Any) -> str:
    """Return a value of a summary for people."""
    if isinstance(value, list):
        return ' '.join(_plain(item) for item in value) or 'none'
    return f'{value:.6g}' if isinstance(value, float) else str(value)


def _run_sweep(arguments: argparse.Namespace) -> None:
    """Run ``sweep``."""
    from longreach_boom.sweep import simulate_many

    check_output(arguments.csv)
    boom = _boom(arguments)
    values = arguments.values.tolist()
    booms = [boom.with_value(arguments.parameter, value) for value in values]
    if arguments.scenario is None:
        scenarios = [_release_scenario(arguments, one) for one in booms]
    else:
        scenarios = [load_scenario(arguments.scenario, one, arguments.step) for one in booms]
    measured = simulate_many(
        booms, scenarios, arguments.processes, step=arguments.step, measure=_measure
    )
    names = (arguments.parameter, *_MEASURED)
    rows = [(value, *row) for value, row in zip(values, measured, strict=True)]
    if arguments.csv is not None:
        write_csv(arguments.csv, names, np.array(rows))
    print_result(
        {
            'parameter': arguments.parameter,
            'rows': [dict(zip(names, r, strict=True)) for r in rows],
        },
        table((arguments.parameter, *(f'{n} [{u}]' for n, u in _MEASURED.items())), rows),
        arguments.format,
    )


# What a sweep keeps of a run, with units.
_MEASURED = {
    'tip_highest': 'm',
    'tip_lowest': 'm',
    'longest_piston_travel': 'm',
    'highest_pressure': 'Pa',
    'largest_joint_error': 'rad',
}


def _measure(result: Result) -> tuple[float, ...]:
    """Return the numbers of a sweep; what the controller leaves is 0 where none acts."""
    summary = result.summary()
    return (
        summary['tip_highest'],
        summary['tip_lowest'],
        max(summary['piston_travel']),
        summary['highest_pressure'],
        max(summary['joint_error'], default=0.0),
    )


def _run_compare(arguments: argparse.Namespace) -> None:
    """Run ``compare``."""
    from longreach_boom.recording import compare, read_run

    boom = load_boom(arguments.file)
    scenario = load_scenario(arguments.scenario, boom, STEP)
    recorded = read_run(arguments.bag, arguments.namespace, boom)
    differences = compare(recorded, simulate(boom, scenario))
    rows = list(differences.items())
    print_result(
        {'bag': str(arguments.bag), 'differences': differences},
        table(('largest difference from the library', 'value'), rows),
        arguments.format,
    )
    apart = max(differences['tip_x'], differences['tip_z']) > _SAME
    if not apart and not differences['samples_missing']:
        if arguments.format == 'table':
            print(
                '\nthe recording is this run of the library; the tip is put together from joints'
            )
    else:
        print(
            'longreach boom compare: the recording is not this run of the library. Name what was'
            ' run with --scenario and --file; commands by hand and a controller in real time'
            ' differ, too',
            file=sys.stderr,
        )


def _run_demo(arguments: argparse.Namespace) -> int:
    """Run ``demo``: the launch file as a user would call it, then ``compare`` and a picture."""
    out = prepare(arguments.out)
    bag, picture = out / 'load_release', out / 'load_release.png'
    remove_old_bag(bag)
    launch = ['longreach', 'launch', 'boom', 'scenario:=load_release', 'controller:=false']
    launch += ['real_time_factor:=0.0', 'duration:=20.0', f'record:={bag}', 'rviz:=false']
    code = call_in_sight(launch)
    if code:
        raise LongreachError(f'the launch ended with exit code {code}; the lines above say why')
    scenario = share_directory('longreach_bringup') / 'config/scenarios/boom_load_release.yaml'
    print()
    name = os.path.relpath(scenario)
    code = call_in_sight(['longreach', 'boom', 'compare', str(bag), '--scenario', name])
    if code:
        return code
    print()
    code = call_in_sight(['longreach', 'boom', 'run', name, '--plot', str(picture)])
    if code == 0:
        print(_NEXT.format(bag=bag, picture=picture, file=os.path.relpath(default_file())))
    return code


_NEXT = """
The bag is in {bag}, the picture in {picture}. What to try next, after . install/setup.bash:
  longreach boom modes --pose site --plot out/modes.png
  longreach boom statics --sweep -5:85:19 --degrees --load 90
  longreach boom run config/scenarios/boom_wave.yaml --plot out/wave.png
  longreach launch boom scenario:=wave             in real time; Ctrl-C ends it
  cp {file} my_boom.yaml
                                                   change a number in it, then:
  longreach boom release --file my_boom.yaml --plot out/mine.png"""
