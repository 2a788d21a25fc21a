"""
The crane of ARGESIM benchmark C13R.

Simulations with its digital controller, design of controllers, comparison of recordings with the
library, and commands to a crane that runs as nodes.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import Any

import numpy as np

from longreach_crane import c13r
from longreach_crane.machine import BRAKES, MODELS
from longreach_crane.parameters import MATRICES, OUTPUTS, Machinery, default_file, load_machinery
from longreach_crane.results import CraneRun
from longreach_crane.scenario import load_scenario
from longreach_crane.simulation import simulate
from longreach_dynamics.errors import InputError
from longreach_tools.arguments import finite
from longreach_tools.machine_command import MachineCommand, lazily
from longreach_tools.options import add_file, add_results, add_whom
from longreach_tools.output import (
    add_format,
    check_places,
    print_result,
    summary_table,
    table,
    writing,
)

__all__ = ['SUMMARY', 'configure']

SUMMARY = 'a crane with digital control and diagnosis (ARGESIM C13R)'


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the subcommands of ``longreach crane``."""
    commands = parser.add_subparsers(required=True, metavar='COMMAND')

    task = commands.add_parser('c13r', help='run a task of the benchmark')
    task.add_argument('--task', choices=c13r.TASKS, required=True)
    _add_variants(task)
    _add_results(task)
    task.set_defaults(run=_run_task)

    scenario = CRANE.add_run(commands)
    _add_variants(scenario)
    _add_results(scenario)

    many = CRANE.add_sweep(
        commands,
        'longreach_crane.commands:CRANE',
        'crane.load_mass or crane.cable_length',
        scenario_of=lambda *_: c13r.task_scenario('c'),
    )
    _add_variants(many)

    design = commands.add_parser('design', help='design observer and regulator for a crane')
    _add_file(design)
    add_format(design)
    design.set_defaults(run=_run_design)

    CRANE.add_urdf(commands)

    unit = commands.add_parser(
        'fmu', help='write the plant as an FMU 2.0: model exchange and co-simulation'
    )
    _add_file(unit)
    unit.add_argument('--out', metavar='FILE', type=Path, required=True)
    unit.set_defaults(run=_run_fmu)

    point = commands.add_parser('set-point', help='send a set point to a running controller')
    point.add_argument('position', type=finite, help='desired position of the car [m]')
    add_whom(point, 'crane')
    point.set_defaults(run=_run_set_point)

    CRANE.add_services(commands)

    compare = CRANE.add_compare(
        commands,
        'Name what was run with --scenario, --file and the variants; set points by hand and a run'
        ' in real time differ, too',
        what='control cycle',
    )
    _add_variants(compare)
    compare.add_argument('--plot', metavar='FILE', type=Path, help='a picture: png, pdf or svg')

    CRANE.add_demo(
        commands,
        'Task C over ROS: run, record, compare, draw',
        'task_c',
        ('lockstep:=true', 'real_time_factor:=0.0', 'duration:=60.0'),
        _NEXT,
        [('compare', '{bag}', '--plot', '{picture}')],
    )


# --- arguments ------------------------------------------------------------------------------


def _add_file(parser: argparse.ArgumentParser) -> None:
    """Add ``--file``, the crane."""
    add_file(parser, 'CRANE.yaml', "the crane (default: C13R's)")


def _add_variants(parser: argparse.ArgumentParser) -> None:
    """Add the variants of crane and controller."""
    _add_file(parser)
    parser.add_argument('--output', choices=OUTPUTS, help='cycle from which a computed force acts')
    parser.add_argument('--matrices', choices=MATRICES)
    parser.add_argument('--brake', choices=BRAKES, default='viscous')
    parser.add_argument('--model', choices=MODELS, default='nonlinear')


def _add_results(parser: argparse.ArgumentParser) -> None:
    """Add the options for results."""
    add_results(parser, 'one row per control cycle', 'a picture: png, pdf or svg')


def _load(arguments: argparse.Namespace) -> Machinery:
    """Return the crane file with the variants of the arguments."""
    variants = (getattr(arguments, name, None) for name in ('matrices', 'output'))
    return load_machinery(arguments.file).with_variants(*variants)


def _title(arguments: argparse.Namespace) -> dict[str, str]:
    """Return the name of the task or scenario."""
    name = 'task' if 'task' in arguments else 'scenario'
    return {name: str(getattr(arguments, name))}


# --- simulations ----------------------------------------------------------------------------


def _run_task(arguments: argparse.Namespace) -> int:
    """Run ``c13r``."""
    if arguments.task == 'a':
        _run_task_a(arguments)
        return 0
    return CRANE.run(arguments, _load(arguments), c13r.task_scenario(arguments.task))


def _run_task_a(arguments: argparse.Namespace) -> None:
    """Run Task A, whose result is a table of final values."""
    for name in ('csv', 'plot'):
        if getattr(arguments, name) is not None:
            raise InputError(f'--{name} is for tasks b and c; task a is a table of final values')
    variants = (arguments.output, arguments.matrices, arguments.brake, arguments.model)
    if variants != (None, None, 'viscous', 'nonlinear'):
        raise InputError(
            '--output, --matrices, --brake and --model are for tasks b and c; task a has no'
            ' controller, no brake, and compares both models'
        )
    crane = load_machinery(arguments.file).crane
    rows = [c13r.task_a(crane, disturbance) for disturbance in c13r.DISTURBANCES]
    result = {'task': 'a', 'time': c13r.END, 'rows': [row._asdict() for row in rows]}
    head = ('Dest [N]', 'nonlinear [m]', 'linear [m]', 'difference [m]', 'limit [m]', 'error [m]')
    cells = [
        (r.disturbance, *(f'{v:.10f}' for v in r[1:3]), r.difference, r.limit, r.error_estimate)
        for r in rows
    ]
    print_result(result, table(head, cells), arguments.format)


def _summary_text(run: CraneRun) -> str:
    """Return the summary of a run as text."""
    summary = run.summary()
    happened = sorted(
        [(e['time'], e['name']) for e in summary['events']]
        + [(c['time'], f'car passes {c["name"]}') for c in summary['crossings']]
    )
    values = summary['extrema'] | {f'final {name}': v for name, v in summary['final'].items()}
    units = {
        key.replace('final.', 'final ').replace('extrema.', ''): u for key, u in run.UNITS.items()
    }
    return '\n'.join(
        [
            table(('time [s]', 'event'), [(f'{time:.4f}', name) for time, name in happened]),
            '',
            summary_table(values, units),
        ]
    )


# Results of a run in a sweep, with units.
_SWEPT = {
    'max_abs_angle': 'rad',
    'max_car_position': 'm',
    'min_car_position': 'm',
    'final_car_position': 'm',
    'final_load_position': 'm',
    'first_emergency': 's',
}


def _measure(run: CraneRun) -> tuple[float, ...]:
    """Return the results of a run for a sweep; without an emergency its time is NaN."""
    summary = run.summary()
    extrema, final = summary['extrema'], summary['final']
    emergencies = [one['time'] for one in summary['events'] if one['name'] == 'emergency']
    return (
        extrema['max_abs_angle'],
        extrema['max_car_position'],
        extrema['min_car_position'],
        final['car_position'],
        final['load_position'],
        min(emergencies, default=math.nan),
    )


def _run_design(arguments: argparse.Namespace) -> None:
    """Run ``design``."""
    from longreach_crane.design import (
        changes_from_c13r,
        closed_loop_poles,
        design_controller,
        printed_matrices,
    )

    machinery = load_machinery(arguments.file)
    crane, controller = machinery.crane, machinery.controller
    matrices = design_controller(crane, controller, machinery.design)
    poles = closed_loop_poles(crane, controller.sample_time, matrices, controller.output)
    changed = changes_from_c13r(crane, controller.sample_time)
    result: dict[str, Any] = {
        name: getattr(value, 'tolist', lambda v=value: v)()
        for name, value in matrices._asdict().items()
    }
    result['closed_loop_poles'] = [[pole.real, pole.imag] for pole in poles.tolist()]
    result['file'] = str(arguments.file or default_file())
    result['changed_from_c13r'] = {
        name: {'value': value, 'c13r': usual} for name, (value, usual) in changed.items()
    }
    deviation = float(np.abs(matrices.h / printed_matrices().h - 1.0).max())
    result['deviation_of_h_from_c13r'] = deviation
    about = '; '.join(
        f'{name} {value:g} (C13R: {usual:g})' for name, (value, usual) in changed.items()
    )
    text = '\n'.join(
        [
            f'crane of {result["file"]}: {about or "that of C13R"}',
            (
                'C13R prints matrices of LQR and pole placement in continuous time, with one Euler'
                ' step per cycle.'
            ),
            (
                'These are for the exact motion over a cycle, and stable for any crane;'
                f' h differs by up to {100.0 * deviation:.3g} %.'
            ),
            '',
            'M',
            *('  ' + '  '.join(f'{v:12.7f}' for v in row) for row in result['M']),
            *(f'{name}  {result[name]}' for name in ('b', 'd', 'h', 'V', 'closed_loop_poles')),
        ]
    )
    print_result(result, text, arguments.format)


def _run_fmu(arguments: argparse.Namespace) -> None:
    """Run ``fmu``."""
    crane = load_machinery(arguments.file).crane
    check_places({'--out': arguments.out}, [arguments.file])
    from longreach_crane.fmu import write_crane_fmu

    with writing(arguments.out) as path:
        write_crane_fmu(path, crane)


# --- with ROS -------------------------------------------------------------------------------


def _run_set_point(arguments: argparse.Namespace) -> None:
    """Run ``set-point``."""
    from longreach_crane.remote import send_set_point

    topic = send_set_point(arguments.position, arguments.namespace, arguments.timeout)
    print(f'set point {arguments.position:g} m sent to {topic}')


_NEXT = """
The bag is in {bag}, the picture in {picture}. What to try next, after . install/setup.bash:
  longreach bag info {bag}
  longreach crane c13r --task c --brake rigid --plot out/rigid.png
  longreach launch crane scenario:=task_b          in real time; Ctrl-C ends it
  longreach crane set-point 2.5                    in a second shell meanwhile
  cp {file} my_crane.yaml
                                                   change a number in it, then:
  longreach crane c13r --task b --file my_crane.yaml --plot out/mine.png"""

CRANE = MachineCommand(
    name='crane',
    load=_load,
    load_scenario=lambda file, machinery, _: load_scenario(file, machinery.controller.sample_time),
    simulate=lambda machinery, scenario, a: simulate(machinery, scenario, a.model, a.brake),
    read_run=lambda bag, namespace, machinery: lazily('longreach_crane.recording:read_run')(
        bag, namespace, machinery.crane
    ),
    draw_run=lazily('longreach_crane.figures:draw_run'),
    default_file=default_file,
    describe=lambda machinery, prefix: lazily('longreach_crane.description:robot_description')(
        machinery.crane, prefix
    ),
    add_file=_add_file,
    scenarios='task_',
    usual=('Task C', lambda: c13r.task_scenario('c')),
    title=_title,
    text=_summary_text,
    swept=_SWEPT,
    measure=_measure,
)
