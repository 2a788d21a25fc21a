"""Studies of the crane: the tasks of the benchmark, design of its controller, an FMU."""

from __future__ import annotations

import argparse
import functools
from typing import Any

import numpy as np

from longreach_crane import c13r
from longreach_crane.spec import CRANE, CraneOptions
from longreach_dynamics.parameters import field_types
from longreach_tools.arguments import check_unused, finite
from longreach_tools.machine_command import (
    add_study,
    machine_of,
    options_of,
    run_scenario,
)
from longreach_tools.options import add_node_options, add_results
from longreach_tools.output import add_format, check_places, print_result, table, writing


def add_studies(commands: Any) -> None:
    """Add the subcommands that only a crane has."""
    study = functools.partial(add_study, CRANE, commands)
    task = study('c13r', _run_task, 'run a task of the benchmark', ())
    task.add_argument('--task', choices=c13r.TASKS, required=True)
    add_results(task, 'one row per control cycle', CRANE.figure())
    add_format(study('design', _run_design, 'design observer and regulator for a crane'))
    unit = study('fmu', _run_fmu, 'write the plant as an FMU 2.0: model exchange, co-simulation')
    unit.add_argument('--out', metavar='FILE.fmu', required=True, help='the FMU')

    point = commands.add_parser('set-point', help='send a set point to a running controller')
    point.add_argument('position', type=finite, help='desired position of the car [m]')
    add_node_options(point, 'crane')
    point.set_defaults(run=_run_set_point)


# --- simulations ----------------------------------------------------------------------------


def _run_task(arguments: argparse.Namespace) -> int:
    """Run ``c13r``."""
    if arguments.task == 'a':
        _run_task_a(arguments)
        return 0
    options = options_of(arguments, CraneOptions)
    machinery = machine_of(CRANE, arguments)
    scenario = c13r.task_scenario(arguments.task)
    return run_scenario(CRANE, arguments, machinery, scenario, options, {'task': arguments.task})


def _run_task_a(arguments: argparse.Namespace) -> None:
    """Run Task A, whose result is a table of final values."""
    allowed = 'with --task b | c; task a has final values of both models, and no controller'
    check_unused(arguments, allowed, 'csv', 'plot', *field_types(CraneOptions))
    crane = machine_of(CRANE, arguments).crane
    rows = [c13r.task_a(crane, disturbance) for disturbance in c13r.DISTURBANCES]
    result = {'task': 'a', 'time': c13r.END, 'rows': [row._asdict() for row in rows]}
    head = ('Dest [N]', 'nonlinear [m]', 'linear [m]', 'difference [m]', 'limit [m]', 'error [m]')
    cells = [
        (r.disturbance, *(f'{v:.10f}' for v in r[1:3]), r.difference, r.limit, r.error_estimate)
        for r in rows
    ]
    print_result(result, table(head, cells), arguments.format)


def _run_design(arguments: argparse.Namespace) -> None:
    """Run ``design``."""
    from longreach_crane.design import (
        changes_from_c13r,
        closed_loop_poles,
        design_controller,
        printed_matrices,
    )

    machinery = machine_of(CRANE, arguments)
    crane, controller = machinery.crane, machinery.controller
    matrices = design_controller(crane, controller, machinery.design)
    poles = closed_loop_poles(crane, controller.sample_time, matrices, controller.output)
    changed = changes_from_c13r(crane, controller.sample_time)
    result: dict[str, Any] = {
        name: getattr(value, 'tolist', lambda v=value: v)()
        for name, value in matrices._asdict().items()
    }
    result['closed_loop_poles'] = [[pole.real, pole.imag] for pole in poles.tolist()]
    result['file'] = str(arguments.file or CRANE.default_file())
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
                'These are for the exact motion over a cycle, with which the loop is stable;'
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
    crane = machine_of(CRANE, arguments).crane
    check_places({'--out': arguments.out}, [arguments.file])
    from longreach_crane.fmu import write_crane_fmu

    with writing(arguments.out) as path:
        write_crane_fmu(path, crane)


# --- with ROS -------------------------------------------------------------------------------


def _run_set_point(arguments: argparse.Namespace) -> None:
    """Run ``set-point``."""
    from longreach_crane.nodes import send_set_point

    topic = send_set_point(arguments.position, arguments.namespace, arguments.timeout)
    print(f'set point {arguments.position:g} m sent to {topic}')
