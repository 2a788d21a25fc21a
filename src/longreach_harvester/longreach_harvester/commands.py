"""Studies of the harvester: its two models, drift of closed valves, poses, driving by hand."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from longreach_dynamics.errors import InputError
from longreach_dynamics.teleoperation import CONTROLS
from longreach_harvester.control import load_controller, references
from longreach_harvester.kinematics import angles_at, tip_at
from longreach_harvester.machine import MODELS, Harvester
from longreach_harvester.parameters import JOINTS, HarvesterParameters
from longreach_harvester.scenario import Scenario, load_scenario, resting_scenario
from longreach_harvester.simulation import COLUMNS, simulate
from longreach_harvester.spec import HARVESTER, HarvesterOptions
from longreach_tools.arguments import allow_lists, numbers, optional_file, positive
from longreach_tools.machine_command import add_file, check_files, machine_of
from longreach_tools.options import add_node_options, add_results
from longreach_tools.output import add_format, print_result, table, write_csv

# Steps of both models in compare-models [s].
_STEPS = {'full': 1e-3, 'reduced': 5e-3}


def add_studies(commands: Any) -> None:
    """Add the subcommands that only a harvester has."""
    by_hand = commands.add_parser(
        'drive', help='drive a running harvester with the keyboard; q quits'
    )
    add_file(HARVESTER, by_hand)
    by_hand.add_argument(
        '--teleoperation', metavar='YAML', type=optional_file, help='teleoperation file'
    )
    by_hand.add_argument(
        '--control',
        choices=('file', *CONTROLS),
        default='file',
        help='what keys move at first (default: as the teleoperation file says)',
    )
    by_hand.add_argument(
        '--speed',
        type=positive,
        default=0.5,
        help='deflection of a stick in whose place a key is, above 0 to 1 (default: 0.5)',
    )
    add_node_options(by_hand, 'harvester')
    add_format(by_hand)
    by_hand.set_defaults(run=_drive)
    models = commands.add_parser(
        'compare-models', help='full against reduced model: figures 5 and 8 to 11 of the paper'
    )
    models.add_argument(
        'scenario', metavar='SCENARIO', type=Path, nargs='?', default=Path('sine'),
        help='a file or a name (default: sine)',
    )  # fmt: skip
    add_file(HARVESTER, models)
    add_results(
        models,
        'both runs beside each other',
        'errors and voltage of the stick, pressures of stick and boom',
    )
    models.set_defaults(run=_compare_models)

    drift = commands.add_parser(
        'drift', help='how far closed valves let the machine move, with switching and without'
    )
    add_file(HARVESTER, drift)
    drift.add_argument('--model', choices=MODELS, default='full', help='(default: full)')
    drift.add_argument(
        '--duration', type=positive, default=600.0, help='simulated time [s] (default: 600)'
    )
    add_format(drift)
    drift.set_defaults(run=_drift)

    pose = commands.add_parser('pose', help='tip, levers and holding pressures of a pose at rest')
    allow_lists(pose)
    add_file(HARVESTER, pose)
    which = pose.add_mutually_exclusive_group()
    which.add_argument(
        '--angles',
        type=numbers,
        metavar='SWING,BOOM,STICK',
        default=(0.0, 0.55, -1.2),
        help='[rad] (default: 0,0.55,-1.2)',
    )
    which.add_argument('--tip', type=numbers, metavar='X,Y,Z', help='end of the stick [m]')
    pose.add_argument('--degrees', action='store_true', help='angles are in degrees')
    add_format(pose)
    pose.set_defaults(run=_pose)


def _harvester(arguments: argparse.Namespace) -> HarvesterParameters:
    """Return the harvester of the arguments."""
    harvester: HarvesterParameters = machine_of(HARVESTER, arguments, HarvesterOptions())
    return harvester


def _drive(arguments: argparse.Namespace) -> int:
    """Run ``drive``."""
    from longreach_harvester.remote import drive_harvester

    return drive_harvester(arguments)


def _compare_models(arguments: argparse.Namespace) -> int:
    """Run ``compare-models``."""
    check_files(arguments)
    harvester = _harvester(arguments)
    scenario = load_scenario(HARVESTER.find_scenario(arguments.scenario))
    runs = {}
    for model, step in _STEPS.items():
        options = HarvesterOptions(model=model, step=step)
        runs[model] = HARVESTER.simulate(harvester, scenario, options)
        runs[model].check()
    full, reduced = runs.values()
    names = [c.name for c in COLUMNS if c.name.startswith(('q_s', 'q_b', 'p_1', 'p_2'))]
    largest = np.abs(full.stack(names) - reduced.stack(names)).max(axis=0)
    result = {
        'steps': _STEPS,
        'largest_difference': dict(zip(names, largest.tolist(), strict=True)),
        'real_time_factor': {
            name: run.summary()['real_time_factor'] for name, run in runs.items()
        },
    }
    if arguments.csv is not None:
        head = [f'{column}_{model}' for model in runs for column in full.columns.names[1:]]
        both = np.hstack([full.table, reduced.table[:, 1:]])
        write_csv(arguments.csv, ['time', *head], both)
    if arguments.plot is not None:
        from longreach_harvester.figures import draw_models

        wanted = references(harvester, scenario, full.column('time'))
        draw_models(arguments.plot, runs, wanted, load_controller().stick)
    rows = [(name, value, COLUMNS.unit(name)) for name, value in zip(names, largest, strict=True)]
    text = table(('full against reduced', 'largest difference', 'unit'), rows)
    speeds = [(name, _STEPS[name], value) for name, value in result['real_time_factor'].items()]
    text += '\n\n' + table(('model', 'step [s]', 'times real time'), speeds)
    print_result(result, text, arguments.format)
    return 0


def _drift(arguments: argparse.Namespace) -> None:
    """Run ``drift``."""
    harvester = _harvester(arguments)
    scenario = resting_scenario().replace(duration=arguments.duration)
    names = [f'q_{name}' for name in JOINTS]
    drifts, messages = {}, {}
    for switching in ('on', 'off'):
        machine = Harvester(
            harvester, scenario, model=arguments.model, switching=switching == 'on'
        )
        run = simulate(machine, min(1.0, arguments.duration))
        moved = np.abs(run.stack(names) - run.stack(names)[0]).max(axis=0)
        drifts[switching] = dict(zip(names, moved.tolist(), strict=True))
        messages[switching] = run.message
    result = {'duration': arguments.duration, 'drift': drifts, 'message': messages}
    rows = [(name, *(drifts[key][name] for key in drifts), 'rad') for name in names]
    text = table(('closed valves', 'switching on', 'switching off', 'unit'), rows)
    text += f'\n\nlargest motion in {arguments.duration:g} s'
    for switching, message in messages.items():
        text += f'\nswitching {switching}: {message}' if message else ''
    print_result(result, text, arguments.format)


def _pose(arguments: argparse.Namespace) -> None:
    """Run ``pose``."""
    harvester = _harvester(arguments)
    if arguments.tip is not None:
        if len(arguments.tip) != len(JOINTS):
            raise InputError(f'--tip has {len(arguments.tip)} numbers, allowed: X,Y,Z')
        angles = angles_at(harvester, arguments.tip)
    else:
        angles = np.array(arguments.angles)
        if angles.size != len(JOINTS):
            raise InputError(f'--angles has {angles.size} numbers, allowed: {", ".join(JOINTS)}')
        angles = np.radians(angles) if arguments.degrees else angles
    machine = Harvester(harvester, Scenario(duration=1.0, angles=tuple(angles.tolist())))
    y = machine.initial_state().y
    sample = machine.joint_sample(machine.initial_state(), (0.0, 0.0, 0.0))
    efforts = dict(zip(sample.names, sample.efforts, strict=True))
    tip = tip_at(harvester, angles)
    rows = []
    for i, name in enumerate(JOINTS[1:], 1):
        linkage = machine.parameters.actuators[i].linkage  # type: ignore[union-attr]
        angle = float(angles[i])
        lever = linkage.arm(angle)
        rows.append(
            {
                'joint': name,
                'angle': angle,
                'length': linkage.position(angle) + float(linkage.row()[4]),
                'lever': lever,
                'force': efforts[name] / lever,
                'head_pressure': float(y[6 + i]),
                'rod_pressure': float(y[9 + i]),
            }
        )
    result = {'angles': angles.tolist(), 'tip': tip.tolist(), 'cylinders': rows}
    head = (
        'joint',
        'angle [rad]',
        'length [m]',
        'lever [m]',
        'force [N]',
        'head [Pa]',
        'rod [Pa]',
    )
    text = table(head, [tuple(row.values()) for row in rows])
    x, y_tip, z = tip.tolist()
    text += f'\n\nswing: {angles[0]:.4f} rad; tip: x = {x:.4f} m, y = {y_tip:.4f} m, z = {z:.4f} m'
    print_result(result, text, arguments.format)
