"""Subcommands of ``longreach excavator`` that compare its digging with the thesis' results."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from longreach_dynamics.errors import InputError
from longreach_excavator.arguments import add_excavator, say
from longreach_excavator.breakout import BREAKOUTS, Breakout, breakout
from longreach_excavator.forces import MEASURED_TIME, agreement, printed_forces
from longreach_excavator.linkage import CYLINDERS
from longreach_excavator.parameters import load_excavator
from longreach_excavator.scenario import DEPTHS, MODES, dig_scenario
from longreach_excavator.simulation import simulate
from longreach_excavator.step_study import COHESIONS, STEPS, step_study
from longreach_tools.arguments import not_negative, numbers
from longreach_tools.machine_command import check_files
from longreach_tools.options import add_results
from longreach_tools.output import print_result, table, write_csv

# Joints and pins in the table of breakout forces.
_PINS = 'acdefijklp'


def configure_digging(commands: Any) -> None:
    """Add these subcommands to those of ``longreach excavator``."""
    forces = commands.add_parser(
        'forces', help='compare cylinder forces of the digging with the measured (5.8) to (5.10)'
    )
    add_excavator(forces)
    forces.add_argument('--cohesion', type=not_negative, help='[Pa] (default: that of the file)')
    forces.add_argument(
        '--depth', choices=DEPTHS, default='swing', help='as for dig (default: swing)'
    )
    add_results(forces, 'computed and measured forces', 'both over time')
    forces.set_defaults(run=_run_forces)

    study = commands.add_parser(
        'steps',
        help="force in the boom's foot with several cohesions and step sizes (figures 5.33, 5.34)",
    )
    add_excavator(study)
    study.add_argument('--mode', choices=MODES, default='thesis', help='as for dig')
    study.add_argument(
        '--cohesion', type=numbers, default=COHESIONS, help='list [Pa] (default: 10 to 20 kPa)'
    )
    study.add_argument(
        '--step', type=numbers, default=STEPS, help='list [s] (default: 0.01,0.002)'
    )
    add_results(study, 'cohesion, step, time and force of all rows', 'the forces over time')
    study.set_defaults(run=_run_steps)

    out = commands.add_parser(
        'breakout', help='breakout forces of bucket and arm over their strokes, and pin loads'
    )
    add_excavator(out)
    out.add_argument(
        '--pose', default='dig', help='pose of the file, for the other joints (default: dig)'
    )
    add_results(
        out,
        'forces over both strokes; column arm: 1 for the arm, 0 for the bucket',
        'both forces and the loads of the joints',
    )
    out.set_defaults(run=_run_breakout)


def _run_forces(arguments: argparse.Namespace) -> None:
    """Run ``forces``."""
    check_files(arguments)
    excavator = load_excavator(arguments.file)
    scenario = dig_scenario(
        cohesion=arguments.cohesion, duration=MEASURED_TIME, depth=arguments.depth
    )
    run = simulate(excavator, scenario)
    times = run.column('time')
    computed = run.stack([f'pin_force_{name}' for name in CYLINDERS])
    measured = printed_forces().at(times)
    rows = {
        name: agreement(times, computed[:, k], measured[:, k]) for k, name in enumerate(CYLINDERS)
    }
    if arguments.csv is not None:
        names = [f'{kind}_{name}' for kind in ('computed', 'measured') for name in CYLINDERS]
        columns = np.column_stack([times, computed, measured])
        write_csv(arguments.csv, ('time', *names), columns)
    if arguments.plot is not None:
        from longreach_excavator.figures import draw_forces

        draw_forces(arguments.plot, times, computed, measured)
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
    found = {name: a._asdict() for name, a in rows.items()}
    print_result(found, table(head, shown), arguments.format)


def _run_steps(arguments: argparse.Namespace) -> None:
    """Run ``steps``."""
    check_files(arguments)
    excavator = load_excavator(arguments.file)
    cases = step_study(excavator, arguments.mode, arguments.cohesion, arguments.step)
    if not any(len(case.times) for case in cases):
        raise InputError(cases[0].message)
    if arguments.csv is not None:
        rows = [
            np.column_stack([np.tile((c.cohesion, c.step), (len(c.times), 1)), c.times, c.force])
            for c in cases
        ]
        write_csv(arguments.csv, ('cohesion', 'step', 'time', 'force_a'), np.concatenate(rows))
    if arguments.plot is not None:
        from longreach_excavator.figures import draw_steps

        draw_steps(arguments.plot, cases)
    found = [case.summary() for case in cases]
    head = ('step [s]', 'C [Pa]', 'peak in A [kN]', 'at [s]', 'sweep [s]', 'error', 'result')
    shown = [
        (
            one['step_s'],
            one['cohesion_pa'],
            *(
                '-' if value is None else value
                for value in (
                    one['peak_n'] and 1e-3 * one['peak_n'],
                    one['peak_time_s'],
                    one['time_to_sweep_s'],
                    one['difference'] and f'{one["difference"]:.1e}',
                )
            ),
            one['message'] or 'complete',
        )
        for one in found
    ]
    print_result(found, table(head, shown), arguments.format)


def _run_breakout(arguments: argparse.Namespace) -> None:
    """Run ``breakout``."""
    check_files(arguments)
    excavator = load_excavator(arguments.file)
    pose = excavator.pose(arguments.pose)
    found = [breakout(excavator, name, pose) for name in BREAKOUTS]
    if arguments.csv is not None:
        names = ('arm', 'stroke', 'breakout_force', *found[0].loads.columns.names[1:])
        rows = [
            np.column_stack(
                [
                    np.full(len(b.stroke), float(b.cylinder == 'arm')),
                    b.stroke,
                    b.force,
                    b.loads.table[:, 1:],
                ]
            )
            for b in found
        ]
        write_csv(arguments.csv, names, np.concatenate(rows))
    if arguments.plot is not None:
        from longreach_excavator.figures import draw_breakout

        draw_breakout(arguments.plot, found)
    summary = {b.cylinder: _breakout_summary(b) for b in found}
    head = ('cylinder', 'breakout [kN]', 'at piston [m]', *(f'pin {p} [kN]' for p in _PINS))
    rows_shown = [
        (
            name,
            f'{1e-3 * one["force_n"]:.1f}',
            f'{one["piston_m"]:.3f}',
            *(f'{1e-3 * one["pins_n"][p]:.0f}' for p in _PINS),
        )
        for name, one in summary.items()
    ]
    print_result(summary, table(head, rows_shown), arguments.format)
    supply = excavator.oil.supply_pressure
    for name, one in summary.items():
        for cylinder in excavator.cylinders:
            held = one['holding_n'][cylinder.name]
            most = supply * (cylinder.head_area if held > 0.0 else cylinder.rod_area)
            if abs(held) > most:
                say(
                    f'for the breakout of the {name} the {cylinder.name} would have to hold'
                    f' {1e-3 * abs(held):.0f} kN, the supply pressure gives {1e-3 * most:.0f} kN'
                )


def _breakout_summary(found: Breakout) -> dict[str, Any]:
    """Return the largest breakout force, its piston position, and the pin loads there."""
    k = found.best
    return {
        'force_n': float(found.force[k]),
        'piston_m': float(found.stroke[k]),
        'pins_n': {p: float(found.loads.column(f'pin_{p}')[k]) for p in _PINS},
        'holding_n': {
            name: float(found.loads.column(f'pin_force_{name}')[k]) for name in CYLINDERS
        },
    }
