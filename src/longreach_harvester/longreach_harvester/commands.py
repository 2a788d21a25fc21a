"""
Simulate a forestry machine, Papadopoulos and Gonthier (2002), corrected.

Hydraulics with hoses in full, or reduced to resistances; closed valves that lock, or that leak.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from longreach_dynamics.errors import InputError
from longreach_dynamics.teleoperation import CONTROLS
from longreach_harvester.control import load_controller, references
from longreach_harvester.kinematics import angles_at, tip_at
from longreach_harvester.machine import MODELS, SAMPLE_TIME, STEP, Harvester
from longreach_harvester.parameters import (
    JOINTS,
    HarvesterParameters,
    default_file,
    load_harvester,
)
from longreach_harvester.scenario import Scenario, load_scenario, resting_scenario
from longreach_harvester.sensors import load_sensors
from longreach_harvester.simulation import (
    COLUMNS,
    HarvesterRun,
    simulate,
    with_step_error,
)
from longreach_tools.arguments import allow_lists, numbers, optional_file, positive
from longreach_tools.machine_command import MachineCommand, check_files, lazily
from longreach_tools.options import add_file, add_results, add_steps, add_whom
from longreach_tools.output import (
    add_format,
    print_result,
    summary_table,
    table,
    write_csv,
)

__all__ = ['SUMMARY', 'configure']

SUMMARY = 'a forestry machine with hoses (Papadopoulos and Gonthier 2002)'
# Steps of both models in compare-models [s].
_STEPS = {'full': 1e-3, 'reduced': 5e-3}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the subcommands of ``longreach harvester``."""
    commands = parser.add_subparsers(required=True, metavar='COMMAND')
    run = HARVESTER.add_run(commands)
    _add_harvester(run)
    _add_model(run)
    add_steps(run, STEP, SAMPLE_TIME, 'interval of rows')
    add_results(run, 'a table of all rows', 'angles, spools, pressures and flows over time')
    run.add_argument(
        '--step-error',
        action='store_true',
        help='estimate the error of the angles by a second run with half the step',
    )

    many = HARVESTER.add_sweep(
        commands,
        'longreach_harvester.commands:HARVESTER',
        'head.mass or boom_cylinder.line.capacitance',
        'open_loop',
    )
    _add_harvester(many)
    _add_model(many)
    add_steps(many, STEP, SAMPLE_TIME, 'interval of rows')

    compare = HARVESTER.add_compare(
        commands,
        'Name what was run with --scenario, --file, --model and --step; commands by hand differ,'
        ' too',
        step=STEP,
    )
    _add_harvester(compare)
    _add_model(compare)
    HARVESTER.add_urdf(commands)
    HARVESTER.add_attach(commands, 'put a log into the grapple of a running harvester')
    HARVESTER.add_services(commands, {'release-load': 'let a running harvester drop its log'})
    HARVESTER.add_valves(
        commands,
        'valve_command',
        'commands the valves on {topic}, too; start the harvester with controller:=false'
        ' operator:=false to move them by hand',
        'if it is paused, longreach harvester resume lets it go on',
    )
    HARVESTER.add_move(commands, 'joints')
    by_hand = commands.add_parser(
        'drive', help='drive a running harvester with the keyboard; q quits'
    )
    _add_harvester(by_hand)
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
    add_whom(by_hand, 'harvester')
    add_format(by_hand)
    by_hand.set_defaults(run=lazily('longreach_harvester.remote:drive_harvester'))
    HARVESTER.add_demo(
        commands,
        'the open loop over ROS: run, record, compare, draw',
        'open_loop',
        ('real_time_factor:=0.0', 'duration:=12.0'),
        _NEXT,
    )

    models = commands.add_parser(
        'compare-models', help='full against reduced model: figures 5 and 8 to 11 of the paper'
    )
    models.add_argument(
        'scenario', metavar='SCENARIO', type=Path, nargs='?', default=Path('sine'),
        help='a file or a name (default: sine)',
    )  # fmt: skip
    _add_harvester(models)
    add_results(
        models,
        'both runs beside each other',
        'errors and voltage of the stick, pressures of stick and boom',
    )
    models.set_defaults(run=_compare_models)

    drift = commands.add_parser(
        'drift', help='how far closed valves let the machine move, with switching and without'
    )
    _add_harvester(drift)
    drift.add_argument('--model', choices=MODELS, default='full', help='(default: full)')
    drift.add_argument(
        '--duration', type=positive, default=600.0, help='simulated time [s] (default: 600)'
    )
    add_format(drift)
    drift.set_defaults(run=_drift)

    pose = commands.add_parser('pose', help='tip, levers and holding pressures of a pose at rest')
    allow_lists(pose)
    _add_harvester(pose)
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


def _add_harvester(parser: argparse.ArgumentParser) -> None:
    """Add ``--file``."""
    add_file(parser, 'YAML', 'harvester file (default: the standard machine)')


def _add_model(parser: argparse.ArgumentParser) -> None:
    """Add ``--model``, ``--switching`` and ``--as-printed``."""
    parser.add_argument(
        '--model',
        choices=MODELS,
        default='full',
        help='full: with lines, 18 states; reduced: resistances, 6 states (default: full)',
    )
    parser.add_argument(
        '--switching',
        choices=('on', 'off'),
        default='on',
        help='whether closed valves lock; off: their greatest resistance leaks (default: on)',
    )
    parser.add_argument(
        '--as-printed',
        action='store_true',
        help='with +P_S2 in the return lines, as (A6a) is printed',
    )
    parser.add_argument(
        '--sensors',
        metavar='YAML',
        help='sensor file, or typical: what the controllers get for angles (default: the truth)',
    )


def _simulate(
    harvester: HarvesterParameters, scenario: Scenario, arguments: argparse.Namespace
) -> HarvesterRun:
    """Simulate a scenario."""
    machine = Harvester(
        harvester,
        scenario,
        arguments.step,
        arguments.model,
        arguments.switching == 'on',
        arguments.as_printed,
        sensors=load_sensors(arguments.sensors) if arguments.sensors else None,
    )
    # Not to be counted: the code that is compiled or loaded in the first step.
    machine.advance(machine.initial_state(), (0.0, 0.0, 0.0), 0.0, machine.step)
    run = simulate(machine, arguments.sample_time)
    if getattr(arguments, 'step_error', False):
        return with_step_error(machine, run, arguments.sample_time)
    return run


# Results of a run in a sweep, with units.
_SWEPT = {f'q_{name}': 'rad' for name in JOINTS} | {f'highest_p_1_{name}': 'Pa' for name in JOINTS}


def _measure(run: HarvesterRun) -> tuple[float, ...]:
    """Return the results of a run for a sweep: angles at the end, highest pressures."""
    final = run.stack([f'q_{name}' for name in JOINTS])[-1]
    pressures = run.stack([f'p_1_{name}' for name in JOINTS]).max(axis=0)
    return (*final.tolist(), *pressures.tolist())


def _compare_models(arguments: argparse.Namespace) -> int:
    """Run ``compare-models``."""
    check_files(arguments)
    harvester = HARVESTER.load(arguments)
    scenario = HARVESTER.scenario_of(arguments, harvester)
    runs = {}
    for model, step in _STEPS.items():
        arguments.step, arguments.sample_time = step, SAMPLE_TIME
        arguments.model, arguments.switching, arguments.as_printed = model, 'on', False
        arguments.sensors = None
        runs[model] = _simulate(harvester, scenario, arguments)
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
    harvester = load_harvester(arguments.file)
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
    harvester = load_harvester(arguments.file)
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
    text += f'\n\ntip: x = {x:.4f} m, y = {y_tip:.4f} m, z = {z:.4f} m'
    print_result(result, text, arguments.format)


def _summary_text(run: HarvesterRun) -> str:
    """Return the summary of a run for people."""
    summary = run.summary()
    parts = [summary.pop(name, {}) for name in ('final', 'lowest', 'highest')]
    rows = [(name, *(part[name] for part in parts), run.columns.unit(name)) for name in parts[0]]
    head = ('quantity', 'at the end', 'lowest', 'highest', 'unit')
    return f'{table(head, rows)}\n\n{summary_table(summary, run.UNITS)}'


_NEXT = """
The bag is in {bag}, the picture in {picture}. What to try next, after . install/setup.bash:
  longreach harvester compare-models --plot out/models.png
  longreach harvester run tip --plot out/tip.png
  longreach launch harvester scenario:=none        in real time; Ctrl-C ends it
  longreach harvester drive                        meanwhile, in another terminal
  cp {file} my_harvester.yaml
                                                   change a number in it, then:
  longreach harvester run open_loop --file my_harvester.yaml --plot out/mine.png"""

HARVESTER = MachineCommand(
    name='harvester',
    load=lambda arguments: load_harvester(arguments.file),
    load_scenario=lambda file, _, __: load_scenario(file),
    simulate=_simulate,
    read_run=lazily('longreach_harvester.recording:read_run'),
    draw_run=lazily('longreach_harvester.figures:draw_run'),
    default_file=default_file,
    describe=lazily('longreach_harvester.description:robot_description'),
    add_file=_add_harvester,
    scenarios='harvester_',
    text=_summary_text,
    swept=_SWEPT,
    measure=_measure,
)
