"""Subcommand ``longreach identify plan``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from longreach_dynamics.errors import InputError
from longreach_identification.pages import page_of, signal_patterns
from longreach_tools.arguments import count, names, numbers
from longreach_tools.output import add_format, print_result, table, writing


def configure_plan(commands: Any) -> None:
    """Add the subcommand ``plan``."""
    parser = commands.add_parser(
        'plan', help='which releases and poses at rest pin the parameters down, as scenarios'
    )
    parser.add_argument('--machine', default='boom', help='(default: boom)')
    parser.add_argument('--file', metavar='START.yaml', type=Path, help='file of the machine')
    parser.add_argument(
        '--pose',
        metavar='DEGREES',
        type=numbers,
        action='append',
        default=[],
        help='joint angles of a possible pose; may be repeated (default: the poses of the'
        ' file, and some that are drawn)',
    )
    parser.add_argument(
        '--masses', metavar='KG', type=numbers, default=(5.0, 90.0), help='(default: 5,90)'
    )
    parser.add_argument(
        '--parameters',
        metavar='NAMES',
        type=names,
        help='groups or names to be found (default: those of identify)',
    )
    parser.add_argument(
        '--signals',
        metavar='NAMES',
        type=names,
        help='kinds of signals that will be recorded, such as pressures,strain (default: all, of'
        ' releases with markers seen by two cameras); of sensors with all readings of their rates',
    )
    parser.add_argument(
        '--count', type=count(100), default=3, help='number of experiments (default: 3)'
    )
    parser.add_argument('--repeats', action='store_true', help='an experiment may be chosen again')
    parser.add_argument('--criterion', choices=('D', 'A'), default='D', help='(default: D)')
    parser.add_argument('--processes', type=count(1000), help='parallel simulations')
    parser.add_argument(
        '--out', metavar='DIR', type=Path, help='folder for the chosen scenarios, as YAML files'
    )
    add_format(parser)
    parser.set_defaults(run=_run_plan)


def _run_plan(arguments: argparse.Namespace) -> None:
    """Run ``plan``."""
    import yaml

    from longreach_identification.dynamics import Settings
    from longreach_identification.planning import plan

    page = page_of(arguments.machine)
    start = page.load(None if arguments.file is None else str(arguments.file))
    wanted = arguments.parameters or page.usual(start)
    settings = Settings(signals=signal_patterns(page, start, arguments.signals))
    # A constant of each signal is unknown in each recording, in which a bias is included.
    sought = [n for n in page.chosen(start, wanted) if not n.startswith('gauge_bias')]
    if not sought:
        raise InputError(
            f'--parameters {",".join(wanted)}, allowed: at least one that is no bias of a gauge:'
            ' each recording has biases of its own'
        )
    left = sorted(arguments.out.glob('plan_*.yaml')) if arguments.out is not None else []
    if left:
        raise InputError(f'{left[0]} is of an earlier plan; give another --out, or remove it')
    possible = page.possible(start, arguments.pose, arguments.masses)
    scenarios = {name: [scenario] for name, (scenario, _) in possible.items()}
    at_rest = {}
    resting, recordings = page.possible_at_rest(start, max(arguments.masses))
    if resting:
        at_rest[recordings[-1].name] = recordings
        scenarios[recordings[-1].name] = resting
    found = plan(
        page,
        start,
        [recording for _, recording in possible.values()],
        sought,
        arguments.count,
        settings,
        at_rest=at_rest,
        criterion=arguments.criterion,
        repeats=arguments.repeats,
        processes=arguments.processes,
    )
    files = []
    for number, choice in enumerate(found.choices if arguments.out is not None else (), 1):
        several = scenarios[choice.name]
        for part, scenario in enumerate(several, 1):
            last = f'_{part}' if len(several) > 1 else ''
            file = arguments.out / f'plan_{number}{last}.yaml'
            with writing(file) as path:
                text = yaml.safe_dump(
                    scenario.as_mapping(), sort_keys=False, default_flow_style=None
                )
                path.write_text(f'# {choice.name}\n{text}', encoding='utf-8')
            files.append(str(file))
    head = ('choice', 'experiment', *found.choices[0].standard_errors)
    rows = [
        (str(number), choice.name, *(f'{e:.3g}' for e in choice.standard_errors.values()))
        for number, choice in enumerate(found.choices, 1)
    ]
    summary = 'standard errors after each choice, all together:\n' + table(head, rows)
    result = {
        'choices': [choice._asdict() for choice in found.choices],
        'alone': found.alone,
        'files': files,
    }
    print_result(result, '\n'.join([summary, *files]), arguments.format)
