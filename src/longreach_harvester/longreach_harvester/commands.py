"""Studies of the harvester: its two models, poses, driving by hand."""

from __future__ import annotations

import argparse
import functools
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from longreach_dynamics.errors import check_count
from longreach_harvester.bodies import PRESSURE_1
from longreach_harvester.control import load_controller, references
from longreach_harvester.kinematics import angles_at, tip_at
from longreach_harvester.machine import Harvester
from longreach_harvester.model import PRESSURE_2
from longreach_harvester.parameters import JOINTS, HarvesterParameters
from longreach_harvester.scenario import Scenario
from longreach_harvester.simulation import COLUMNS, HarvesterRun
from longreach_harvester.spec import HARVESTER, HarvesterOptions
from longreach_tools.arguments import add_common, numbers
from longreach_tools.machine_command import add_study, case_of, machine_of
from longreach_tools.options import add_node_options, add_results, radians_of
from longreach_tools.output import add_format, figure, legend, print_result, report_study, table

# Steps of both models in compare-models [s].
_STEPS = {'full': 1e-3, 'reduced': 5e-3}
_POSE = (0.0, 0.55, -1.2)  # of pose [rad]


def add_studies(commands: Any) -> None:
    """Add the subcommands that only a harvester has."""
    study = functools.partial(add_study, HARVESTER, commands)
    by_hand = study('drive', _drive, 'drive a running harvester with the keyboard; q quits')
    text = 'of what a key moves: deflection of its stick, above 0 to 1'
    by_hand.add_argument('--speed', default=0.5, help=text)
    add_node_options(by_hand, 'harvester')
    add_format(by_hand)

    text = 'full against reduced model: figures 5 and 8 to 11 of the paper'
    models = study('compare-models', _compare_models, text)
    models.add_argument('scenario', nargs='?', default=Path('sine'))
    drawn = 'errors and voltage of the stick, pressures of stick and boom'
    add_results(models, 'both runs beside each other', drawn)

    pose = study('pose', _pose, 'tip, levers and holding pressures of a pose at rest')
    which = pose.add_mutually_exclusive_group()
    which.add_argument(
        '--pose',
        type=numbers,
        metavar='SWING,BOOM,STICK',
        help='joint angles [rad] (default: 0,0.55,-1.2)',
    )
    which.add_argument('--tip', type=numbers, metavar='X,Y,Z', help='end of the stick [m]')
    add_common(pose, '--degrees', False)
    add_format(pose)


def _drive(arguments: argparse.Namespace) -> int:
    """Run ``drive``."""
    from longreach_harvester.remote import drive_harvester

    return drive_harvester(arguments)


def _compare_models(arguments: argparse.Namespace) -> None:
    """Run ``compare-models``."""
    harvester, scenario, _ = case_of(HARVESTER, arguments)
    runs = {
        model: HARVESTER.simulate(harvester, scenario, HarvesterOptions(model=model, step=step))
        for model, step in _STEPS.items()
    }
    for run in runs.values():
        run.check()
    for warning in dict.fromkeys(one for run in runs.values() for one in run.warnings()):
        print(f'longreach harvester: {warning}', file=sys.stderr)
    full, reduced = runs.values()
    names = [c.name for c in COLUMNS if c.name.startswith(('q_s', 'q_b', 'p_1', 'p_2'))]
    largest = np.abs(full.stack(names) - reduced.stack(names)).max(axis=0)
    speeds = {name: run.summary()['real_time_factor'] for name, run in runs.items()}
    result = {
        'steps': _STEPS,
        'largest_difference': dict(zip(names, largest.tolist(), strict=True)),
        'real_time_factor': speeds,
    }
    head = [f'{column}_{model}' for model in runs for column in full.columns.names[1:]]
    both = np.hstack([full.table, reduced.table[:, 1:]])
    rows = [(name, value, COLUMNS.unit(name)) for name, value in zip(names, largest, strict=True)]
    text = table(('full against reduced', 'largest difference', 'unit'), rows)
    rates = [(name, _STEPS[name], value) for name, value in speeds.items()]
    text += '\n\n' + table(('model', 'step [s]', 'times real time'), rates)
    draw = functools.partial(_draw_models, harvester, scenario, runs)
    report_study(arguments, result, text, ['time', *head], both, draw)


def _draw_models(
    harvester: HarvesterParameters,
    scenario: Scenario,
    runs: Mapping[str, HarvesterRun],
    file: Path,
) -> None:
    """Draw figures 5 and 8 to 11 of the paper."""
    labels = (
        'stick: error [deg]\n(figures 5, 8)',
        'stick: P_4 [bar]\n(figure 9)',
        'stick: command [V]\n(figure 10)',
        'boom, closed: P_4 [bar]\n(figure 11)',
    )
    full_volts = load_controller().stick.full_volts
    with figure(file, size=(8.0, 9.0), rows=4) as axes:
        for (name, run), style in zip(runs.items(), ('C0-', 'C1--'), strict=True):
            time, band = run.column('time'), harvester.stick_cylinder.valve.dead_band
            wanted = references(harvester, scenario, time)[:, 2]
            error = np.degrees(wanted - run.column('q_stick'))
            spool = run.column('spool_stick')
            beyond = np.maximum(np.abs(spool) - band, 0.0) / (1.0 - band)
            volts = full_volts * np.copysign(beyond, spool)
            stick, boom = (run.column(f'p_2_{joint}', 'bar') for joint in ('stick', 'boom'))
            for axis, values in zip(axes, (error, stick, volts, boom), strict=True):
                axis.plot(time, values, style, label=name)
        for axis, label in zip(axes, labels, strict=True):
            axis.set_ylabel(label)
        legend(axes[0], 2)
        axes[-1].set_xlabel('time [s]')


def _pose(arguments: argparse.Namespace) -> None:
    """Run ``pose``."""
    harvester = machine_of(HARVESTER, arguments)
    if arguments.tip is not None:
        check_count('--tip', arguments.tip, len(JOINTS), 'X,Y,Z')
        angles = angles_at(harvester, arguments.tip)
    else:
        angles = np.array(_POSE)
        if arguments.pose is not None:
            angles = radians_of(arguments.pose, arguments.degrees, '--pose')
        check_count('--pose', angles, len(JOINTS), ', '.join(JOINTS))
    machine = Harvester(harvester, Scenario(duration=1.0, angles=tuple(angles.tolist())))
    state = machine.initial_state()
    sample = machine.joint_sample(state, (0.0, 0.0, 0.0))
    efforts = dict(zip(sample.names, sample.efforts, strict=True))
    rows = []
    for i, cylinder in enumerate(harvester.actuators[1:], 1):
        name, angle = JOINTS[i], float(angles[i])
        lever = cylinder.linkage.arm(angle)
        # From pin to pin; only a triangle has pins.
        retracted = cylinder.linkage.retracted
        length = cylinder.linkage.position(angle) + retracted if retracted else None
        rows.append(
            {
                'joint': name,
                'angle': angle,
                'length': length,
                'lever': lever,
                'force': efforts[name] / lever,
                'head_pressure': float(state.y[PRESSURE_1 + i]),
                'rod_pressure': float(state.y[PRESSURE_2 + i]),
            }
        )
    tip = tip_at(harvester, angles).tolist()
    unit, factor = ('deg', 180.0 / np.pi) if arguments.degrees else ('rad', 1.0)
    units = ('', f' [{unit}]', ' [m]', ' [m]', ' [N]', ' [Pa]', ' [Pa]')
    heads = [name.removesuffix('_pressure') for name in rows[0]]
    text = table(
        [head + unit for head, unit in zip(heads, units, strict=True)],
        [
            tuple((row | {'angle': factor * angle}).values())
            for row, angle in zip(rows, angles[1:].tolist(), strict=True)
        ],
    )
    text += f'\n\nswing: {factor * angles[0]:.4f} {unit}; tip: '
    text += ', '.join(f'{axis} = {place:.4f} m' for axis, place in zip('xyz', tip, strict=True))
    result = {'angles': angles.tolist(), 'tip': tip, 'cylinders': rows}
    print_result(result, text, arguments.format)
