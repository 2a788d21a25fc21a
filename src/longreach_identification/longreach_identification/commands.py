"""Command ``longreach identify``: parameters of a machine from recordings, plans, a demo."""

from __future__ import annotations

import argparse
import functools
import sys
from collections.abc import Collection, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any

from longreach_dynamics.errors import InputError, LongreachError, check_among, check_within
from longreach_dynamics.resources import data_directory
from longreach_tools.arguments import add_common, count, names, numbers, positive
from longreach_tools.demo import demonstrate
from longreach_tools.options import add_demo, add_workers
from longreach_tools.output import (
    add_format,
    check_output,
    check_places,
    making_directory,
    print_result,
    table,
    writing,
)

if TYPE_CHECKING:
    from longreach_identification.machine import Identifiable, Recording
    from longreach_identification.pipeline import Identified

_PAGES = 'longreach.identification'
SUMMARY = 'parameters of a machine from recordings (Henikl 2015, section 4.3)'
_DEMO = 'a boom with planted parameters: simulate, record, identify, compare'
_MEASURE = ('boom', 'measure', '--file', '{planted}')
_DEMO_CALLS = (
    (*_MEASURE, 'static_poses', '--seed', '0', '--csv', '{poses}'),
    (*_MEASURE, 'static_poses_loaded', '--seed', '1', '--csv', '{loaded}'),
    (
        *('identify', 'boom', '--static', '{poses}', '{loaded}', '--release', '{bag}'),
        *('--payload', '{poses}=0', '--payload', '{loaded}=90', '--planted', '{planted}'),
        # A recording without one of them, such as that of a run without cameras, is refused.
        *('--signals', 'pressures,pistons,strain,inclination,markers'),
        *('--out', '{found}', '--report', '{report}'),
    ),
)
_NEXT = """
{report} is a page for a browser; it has planted values beside those that were found.
{found} is a boom file: longreach boom release --file {found}"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the subcommands of ``longreach identify``."""
    commands = parser.add_subparsers(required=True, metavar='COMMAND')
    for name in sorted({point.name for point in entry_points(group=_PAGES)}):
        machine = commands.add_parser(
            name,
            help=f'parameters of the {name}',
            description='A RECORDING is a bag, or a CSV file with a column time and columns named'
            ' as the signals; its name in other options is that of its file.',
        )
        add = functools.partial(add_common, machine)
        add('--static', [], nargs='+', help='poses at rest, each approached from both sides')
        text = 'motion with closed valves after the release of a load, or another experiment'
        add('--release', [], nargs='+', help=text)
        text = 'recordings of --release that are predicted, but not fitted'
        add('--validation', [], nargs='+', help=text)
        text = 'mass of the load in a recording without the topic load; may be repeated'
        add('--payload', [], action='append', help=text)
        text = 'time at which the load was released, if the topic load does not say'
        add('--event', [], action='append', help=text)
        text = 'column of CSV files for a signal, with its unit, such as p_head_1=boom:barg'
        add('--column', [], action='append', help=text)
        text = 'groups or names, such as masses,youngs_modulus,damping (default: for the boom'
        text += ' masses,gauges,youngs_modulus,damping; otherwise all)'
        add('--parameters', metavar='NAMES', type=names, help=text)
        text = 'kinds of signals that are compared in motion, such as pressures,strain'
        add('--signals', metavar='NAMES', type=names, help=f'{text} (default: all)')
        text = 'parameters of motion whose likelihood is computed over 3 standard errors to each'
        text += ' side, with all others estimated anew'
        add('--profile', metavar='NAMES', type=names, help=text)
        add('--file', help='machine to begin with')
        add('--out', metavar='FILE.yaml', help='file of the machine with what was found')
        add('--report', help='tables and figures in one file')
        text = 'file of the machine that was simulated, to be compared in the report'
        add('--planted', help=text)
        add('--namespace', help='the machine in bags (default: any)')
        add('--shortest', 5.0, type=positive, help='shortest stretch at rest [s]')
        text = 'of the motion after the release that is compared; takes most of the time'
        add('--duration', 8.0, help=text)
        text = 'outliers of motion weigh less, after Huber'
        add('--robust', False, action='store_true', help=text)
        add_workers(machine)
        add_format(machine)
        machine.set_defaults(run=_run, machine=name)
    text = 'which releases and poses at rest pin the parameters down, as scenarios'
    plan = commands.add_parser('plan', help=text)
    plan.add_argument('--file', help='machine')
    text = 'joint angles of a possible pose; may be repeated (default: the poses of the file, and'
    text += ' some that are drawn)'
    words: dict[str, Any] = {'metavar': 'DEG,..', 'type': numbers, 'default': []}
    plan.add_argument('--pose', action='append', help=text, **words)
    words = {'metavar': 'KG,..', 'type': numbers, 'default': (5.0, 90.0)}
    plan.add_argument('--masses', help='of the loads', **words)
    text = 'groups or names to be found (default: those of identify)'
    plan.add_argument('--parameters', metavar='NAMES', type=names, help=text)
    text = 'kinds of signals that will be recorded, such as pressures,strain (default: all, of'
    text += ' releases with markers seen by two cameras); of sensors with all readings of their'
    text += ' rates'
    plan.add_argument('--signals', metavar='NAMES', type=names, help=text)
    text = 'folder for the chosen scenarios, as YAML files'
    plan.add_argument('--out', metavar='DIR', help=text)
    text = 'number of experiments'
    plan.add_argument('--count', metavar='N', type=count(100), default=3, help=text)
    plan.add_argument('--repeats', action='store_true', help='an experiment may be chosen again')
    add_workers(plan)
    add_format(plan)
    plan.set_defaults(run=_run_plan, machine='boom')
    add_demo(commands, _DEMO, _run_demo)


def _run(arguments: argparse.Namespace) -> None:
    """Run the identification of a machine."""
    # Slow to import, and not needed for --help.
    from longreach_identification.dynamics import Settings
    from longreach_identification.pipeline import identify_machine
    from longreach_identification.result_files import found_file, report_of, text_of

    files = [*arguments.static, *arguments.release]
    check_output(arguments.out)
    check_output(arguments.report)
    check_places(
        {'--out': arguments.out, '--report': arguments.report},
        [*files, arguments.file, arguments.planted],
    )
    motion_names = [path.name for path in arguments.release]
    validation = [path.name for path in arguments.validation]
    for name in validation:
        check_among('--validation', name, motion_names)
    page, start = _page_of(arguments)
    # What is asked for beside the estimation is checked before it, which takes minutes.
    planted = {}
    if arguments.planted is not None:
        planted = page.planted(start, page.load(str(arguments.planted)))
    known = [entry.name for entry in page.free_parameters(start)]
    for name in arguments.profile or ():
        check_among('--profile', name, known)
    for what in ('profile', 'signals', 'robust'):
        if getattr(arguments, what) and not arguments.release:
            raise InputError(f'--{what} is for recordings of motion; give --release')
    static, motion = _read(arguments, page, start)
    recorded = {name for recording in motion for name in recording.signals}
    settings = Settings(
        signals=_signal_patterns(page, start, arguments.signals, recorded),
        duration=arguments.duration,
        validation=validation,
        robust=arguments.robust,
    )
    workers = {'processes': arguments.processes, 'cluster': arguments.cluster}
    found = identify_machine(
        page,
        start,
        static,
        motion,
        arguments.parameters or page.usual(start),
        settings,
        arguments.shortest,
        **workers,
    )
    more, failed = _profiles(found, arguments.profile or (), **workers)
    if arguments.out is not None:
        with writing(arguments.out) as path:
            path.write_text(found_file(found, files), encoding='utf-8')
    if arguments.report is not None:
        with writing(arguments.report) as path:
            text = report_of(found, files, arguments, planted, more)
            path.write_text(text, encoding='utf-8')
    print_result({**found.to_dict(), **more}, text_of(found, more), arguments.format)
    notes = [f'note: {text}' for text in found.notes]
    for text in (*found.warnings, *failed, *notes):
        print(f'longreach identify: {text}', file=sys.stderr)


def _profiles(
    found: Identified, names: Sequence[str], **workers: Any
) -> tuple[dict[str, Any], list[str]]:
    """Return the profile likelihoods that are asked for, and why others are missing."""
    if not names or found.dynamics is None:
        return {}, []
    from longreach_identification.estimation import profile

    profiles, failed, estimate = {}, [], found.dynamics.estimate
    for name in names:
        # What was identified before, in minutes, is not lost.
        try:
            values, increase = profile(estimate.problem, estimate, name, **workers)
        except LongreachError as error:
            failed.append(f'no profile of {name}: {error}')
            continue
        except KeyboardInterrupt:
            failed.append(f'interrupted: no profile of {name} and those after it')
            break
        profiles[name] = {'values': values.tolist(), 'increase': increase.tolist()}
    return {'profiles': profiles}, failed


def _read(
    arguments: argparse.Namespace, page: Identifiable, start: Any
) -> tuple[list[Recording], list[Recording]]:
    """Read all recordings."""
    from longreach_identification.recordings import column_map, read_csv

    signals = page.signals(start)
    columns = column_map(arguments.column, signals)
    given = [path.name for path in (*arguments.static, *arguments.release)]
    payloads, events = (
        _by_recording(what, entries, given)
        for what, entries in (('--payload', arguments.payload), ('--event', arguments.event))
    )

    def one(path: Path) -> Recording:
        conditions = {'payload': payloads[path.name]} if path.name in payloads else {}
        at = [(events[path.name], 'release')] if path.name in events else []
        if path.suffix.lower() == '.csv':
            return read_csv(path, signals, columns, events=at, conditions=conditions)
        from longreach_identification.bag_files import read_recording

        return read_recording(path, signals, arguments.namespace, at, conditions)

    return [one(path) for path in arguments.static], [one(path) for path in arguments.release]


def _by_recording(what: str, entries: Sequence[str], known: Sequence[str]) -> dict[str, float]:
    """Parse RECORDING=NUMBER."""
    found: dict[str, float] = {}
    for entry in entries:
        name, _, number = entry.rpartition('=')
        try:
            value = float(number)
        except ValueError:
            name = ''
        if not name or not abs(value) < float('inf'):
            raise InputError(f'{what} {entry}, allowed: RECORDING=NUMBER')
        check_among(f'recording of {what}', Path(name).name, known)
        if found.setdefault(Path(name).name, value) != value:
            raise InputError(f'{what} gives {name} two values, allowed: one')
    return found


def _page_of(arguments: argparse.Namespace) -> tuple[Identifiable, Any]:
    """Return what a machine offers, and its parameters at the start."""
    (point, *_) = entry_points(group=_PAGES, name=arguments.machine)
    page = point.load()
    return page, page.load(None if arguments.file is None else str(arguments.file))


def _signal_patterns(
    page: Identifiable,
    start: Any,
    kinds: Sequence[str] | None,
    recorded: Collection[str] | None = None,
) -> tuple[str, ...]:
    """Return patterns of signals for kinds of them; InputError for one that is not recorded."""
    if kinds is None:
        return tuple(page.compared)
    from longreach_identification.machine import matches

    known = page.signal_kinds or {one.name: (one.name,) for one in page.signals(start)}
    for kind in kinds:
        check_among('--signals', kind, known)
        if recorded is not None and not any(matches(name, known[kind]) for name in recorded):
            raise InputError(
                f'--signals {kind}: no recording of --release has {" or ".join(known[kind])}; it'
                f' has {", ".join(sorted(recorded))}'
            )
    return tuple(pattern for kind in kinds for pattern in known[kind])


def _run_plan(arguments: argparse.Namespace) -> None:
    """Run ``plan``."""
    import yaml

    from longreach_identification.dynamics import Settings
    from longreach_identification.planning import plan

    page, start = _page_of(arguments)
    wanted = arguments.parameters or page.usual(start)
    settings = Settings(signals=_signal_patterns(page, start, arguments.signals))
    # A constant of each signal is unknown in each recording, in which a bias is included.
    sought = [n for n in page.chosen(start, wanted) if not n.startswith('gauge_bias')]
    if not sought:
        raise InputError(
            f'--parameters {",".join(wanted)}, allowed: at least one that is no bias of a gauge:'
            ' each recording has biases of its own'
        )
    check_within('--masses', min(arguments.masses), '(0, inf) kg')
    if arguments.out is not None:
        # A place that cannot be written is refused before the plan, which takes minutes.
        with making_directory(arguments.out):
            left = sorted(arguments.out.glob('plan_*.yaml'))
        if left:
            raise InputError(f'{left[0]} is of an earlier plan; give another --out, or remove it')
    possible = page.possible(start, arguments.pose, arguments.masses)
    resting, recordings = page.possible_at_rest(start, max(arguments.masses))
    at_rest = {recordings[-1].name: recordings} if resting else {}
    scenarios = {name: [scenario] for name, (scenario, _) in possible.items()}
    scenarios |= dict.fromkeys(at_rest, resting)
    found = plan(
        page,
        start,
        [recording for _, recording in possible.values()],
        sought,
        arguments.count,
        settings,
        at_rest=at_rest,
        repeats=arguments.repeats,
        processes=arguments.processes,
        cluster=arguments.cluster,
    )
    files = []
    for number, choice in enumerate(found.choices if arguments.out is not None else (), 1):
        several = scenarios[choice.name]
        for part, scenario in enumerate(several, 1):
            last = f'_{part}' if len(several) > 1 else ''
            files.append(str(arguments.out / f'plan_{number}{last}.yaml'))
            text = yaml.safe_dump(scenario.as_mapping(), sort_keys=False, default_flow_style=None)
            with writing(files[-1]) as path:
                path.write_text(f'# {choice.name}\n{text}', encoding='utf-8')
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


def _run_demo(arguments: argparse.Namespace) -> int:
    """Run ``demo``, with a boom whose parameters are known."""
    out, planted = arguments.out, data_directory('longreach_boom') / 'config' / 'boom_planted.yaml'
    launch = (
        *('vision', 'boom:=true', f'boom_file:={planted}', 'sensors:=typical'),
        *('scenario:=release_light', 'duration:=15.0', 'real_time_factor:=0.0', 'scale:=0.5'),
    )
    return demonstrate(
        out,
        'identify_release',
        launch,
        _DEMO_CALLS,
        _NEXT,
        planted=planted,
        poses=out / 'identify_static_poses.csv',
        loaded=out / 'identify_static_poses_loaded.csv',
        found=out / 'identify_found.yaml',
        report=out / 'identify_report.html',
    )
